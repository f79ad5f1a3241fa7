//! Exports: files that go out while they are read, and CSV cells that come back as the same values.

use crate::db::DbError;
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A part of a file, and from where to read the next one; `None` at the end.
pub(crate) type Part<N> = (String, Option<N>);

/// Sends a file part by part. The first was read before the answer begins, so that a database that is away is an error
/// and no empty file. Where a later one cannot be read, the transfer breaks off: half a file must not look like a whole.
pub(crate) fn send<N, F>(
    (name, kind): (&'static str, &'static str),
    (head, next): Part<N>,
    more: impl Fn(N) -> F + Send + 'static,
) -> Response
where
    N: Send + 'static,
    F: Future<Output = Result<Part<N>, DbError>> + Send + 'static,
{
    let rest = stream::try_unfold((next, more), |(next, more)| async move {
        let Some(from) = next else { return Ok(None) };
        let (text, next) =
            more(from).await.inspect_err(|error| tracing::error!(%error, "an export was broken off half-way"))?;
        Ok(Some((Bytes::from(text), (next, more))))
    });
    let body = stream::iter([Ok::<_, DbError>(Bytes::from(head))]).chain(rest);
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    (headers, Body::from_stream(body)).into_response()
}

/// The kind of a CSV file.
pub(crate) const CSV: &str = "text/csv; charset=utf-8";

/// The kind of a file with a JSON value on each line.
pub(crate) const JSON_LINES: &str = "application/jsonl; charset=utf-8";

/// A CSV file's first line, after the byte-order mark by which spreadsheets know UTF-8.
pub(crate) fn csv_header(names: &str) -> String {
    format!("\u{feff}{names}\r\n")
}

/// A cell of a CSV file.
#[derive(Debug, Clone)]
pub(crate) enum Cell {
    /// A text, whatever stands in it.
    Text(Option<String>),
    /// A number to calculate with.
    Number(i64),
    /// A moment (Unix ms), shown in the venue's zone by this pattern.
    Time(Option<i64>, &'static str),
}

impl Cell {
    /// A text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(Some(text.into()))
    }

    /// A text that may be missing.
    pub(crate) fn maybe(text: Option<impl Into<String>>) -> Self {
        Self::Text(text.map(Into::into))
    }

    fn write(&self, zone: &TimeZone) -> String {
        match self {
            Self::Text(text) => quoted(&guarded(text.as_deref().unwrap_or_default())),
            Self::Number(number) => number.to_string(),
            Self::Time(at, pattern) => {
                let at = at.and_then(|at| Timestamp::from_millisecond(at).ok());
                at.map(|at| at.to_zoned_datetime(zone.clone()).strftime(pattern).to_string()).unwrap_or_default()
            }
        }
    }
}

/// A line of a CSV file, its end included.
pub(crate) fn csv_line(zone: &TimeZone, cells: &[Cell]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| cell.write(zone)).collect();
    cells.join(",") + "\r\n"
}

/// A text that a spreadsheet neither runs nor turns into a number, a date or a truth value, by an apostrophe in front.
/// A text that begins with one gets another: whoever reads the file drops one, always.
fn guarded(text: &str) -> String {
    let is_plain = text.chars().next().is_none_or(char::is_alphabetic) && !is_word_of_spreadsheets(text);
    if is_plain { text.to_owned() } else { format!("'{text}") }
}

/// A text that begins with a letter and yet is no text to a spreadsheet: `TRUE`, `Mar-1`, `SEPT2`, `上午9:00`.
fn is_word_of_spreadsheets(text: &str) -> bool {
    const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let lower = text.trim_end().to_lowercase();
    let has_digit = text.chars().any(char::is_numeric);
    matches!(lower.as_str(), "true" | "false")
        || has_digit && MONTHS.iter().any(|month| lower.starts_with(month))
        || has_digit && (lower.starts_with("上午") || lower.starts_with("下午"))
}

fn quoted(text: &str) -> String {
    let splits = text.contains([',', ';', '"', '\n', '\r', '\t']);
    let trims = text.trim() != text;
    if splits || trims { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_runs_nothing_and_stays_what_it_is() {
        for (text, want) in [
            ("", ""),
            ("BK202608010001", "BK202608010001"),
            ("张三", "张三"),
            ("O'Neill, Ann", "\"O'Neill, Ann\""),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
            ("two\nlines", "\"two\nlines\""),
            ("a;b", "\"a;b\""),
            // What runs.
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-5", "'-5"),
            ("+8613800000001", "'+8613800000001"),
            (" =1+1", "' =1+1"),
            ("x ", "\"x \""),
            ("\t=1+1", "\"'\t=1+1\""),
            ("＝1+1", "'＝1+1"),
            // What would be another value.
            ("202608010001", "'202608010001"),
            ("2003", "'2003"),
            ("007", "'007"),
            ("12E5", "'12E5"),
            ("1-2", "'1-2"),
            ("1/2", "'1/2"),
            ("1:30", "'1:30"),
            ("(5)", "'(5)"),
            ("¥5", "'¥5"),
            (".5", "'.5"),
            ("5%", "'5%"),
            ("#N/A", "'#N/A"),
            ("８００", "'８００"),
            ("8月1日", "'8月1日"),
            ("TRUE", "'TRUE"),
            ("March", "March"),
            ("MAR-1", "'MAR-1"),
            ("SEPT2", "'SEPT2"),
            ("下午3:00", "'下午3:00"),
            // What whoever reads the file would drop.
            ("'t Hooft", "''t Hooft"),
            ("''", "'''"),
        ] {
            assert_eq!(quoted(&guarded(text)), want, "{text:?}");
            let read = guarded(text);
            assert_eq!(read.strip_prefix('\'').unwrap_or(&read), text, "it does not come back");
        }
    }

    #[test]
    fn numbers_and_times_are_for_calculating_with() {
        let zone = TimeZone::get("Asia/Shanghai").unwrap();
        let cells = [
            Cell::Number(-4),
            Cell::Time(Some(1_785_546_000_000), "%Y-%m-%d %H:%M"),
            Cell::Time(None, "%Y"),
            Cell::text("1"),
        ];
        assert_eq!(csv_line(&zone, &cells), "-4,2026-08-01 09:00,,'1\r\n");
    }
}
