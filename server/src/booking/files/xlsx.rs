//! XLSX: the first visible sheet, cell by cell. A sheet is never in memory as a whole.

use super::fault::Fault;
use super::table::{Cell, EachRow, MAX_COLUMNS, Stopped};
use crate::text::Text;
use calamine::{Data, DataRef, Reader, SheetType, SheetVisible};
use jiff::ToSpan;
use jiff::civil::DateTime;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};

/// What a workbook may be unpacked, bytes: its sheets are read piece by piece.
const MAX_UNPACKED: u64 = 256 << 20;
/// What its table of texts may be unpacked, bytes: it is kept in memory, at several times its size. 100,000 orders whose
/// cells all differ need 25 MiB.
const MAX_TEXTS: u64 = 32 << 20;
/// What all that is neither a sheet nor a text nor left alone may be unpacked, bytes: the reader keeps about thirty times as
/// much of it, styles above all.
const MAX_OTHERS: u64 = 4 << 20;
/// Digits of the number of texts that a workbook may say it has: no honest table of that size has as many.
const COUNT_DIGITS: usize = 6;
/// Folders of parts that are read piece by piece, or not at all.
const NOT_KEPT: [&str; 5] = ["worksheets/", "media/", "drawings/", "pivotcache/", "calcchain.xml"];
/// Parts of a workbook.
const MAX_PARTS: usize = 10_000;

/// A workbook that has been found to be of bearable size.
pub(super) struct Xlsx {
    book: calamine::Xlsx<BufReader<File>>,
    sheet: String,
    expected: i64,
}

impl std::fmt::Debug for Xlsx {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Xlsx").finish_non_exhaustive()
    }
}

fn damaged() -> Stopped {
    Fault::file(Text::FileDamaged).into()
}

impl Xlsx {
    pub(super) fn open(mut file: File) -> Result<Self, Stopped> {
        measure(&mut file)?;
        file.rewind().map_err(|_| damaged())?;
        let mut book = calamine::Xlsx::new(BufReader::new(file)).map_err(|_| damaged())?;
        let sheets = book.sheets_metadata().iter();
        let mut shown = sheets.filter(|s| s.typ == SheetType::WorkSheet && s.visible == SheetVisible::Visible);
        let sheet = shown.next().map(|sheet| sheet.name.clone()).ok_or_else(damaged)?;
        // The last row that a sheet says it has is a guess for the progress bar, and nothing is made by it.
        let expected = book.worksheet_cells_reader(&sheet).map_err(|_| damaged())?.dimensions().end.0;
        Ok(Self { book, sheet, expected: i64::from(expected.min(1_048_576)) })
    }

    pub(super) fn expected_lines(&self) -> i64 {
        self.expected
    }

    pub(super) fn read(mut self, each: &mut EachRow<'_>) -> Result<(), Stopped> {
        let mut cells = self.book.worksheet_cells_reader(&self.sheet).map_err(|_| damaged())?;
        let (mut line, mut row) = (0, Vec::new());
        while let Some(cell) = cells.next_cell().map_err(|_| damaged())? {
            let (at, column) = cell.get_position();
            let at = i64::from(at) + 1;
            if at != line {
                flush(line, &mut row, each)?;
                line = at;
            }
            let column = column as usize;
            let value = value_of(cell.get_value());
            if column < MAX_COLUMNS && value != Cell::Empty {
                if row.len() <= column {
                    row.resize(column + 1, Cell::Empty);
                }
                row[column] = value;
            }
        }
        flush(line, &mut row, each)
    }
}

fn flush(line: i64, row: &mut Vec<Cell>, each: &mut EachRow<'_>) -> Result<(), Stopped> {
    if row.is_empty() {
        return Ok(());
    }
    each(line, row)?;
    row.clear();
    Ok(())
}

/// What is kept of a part, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    NotKept,
    Texts,
    Other,
}

/// Unpacks every part into nothing and counts: what a file says of its own size need not be true.
fn measure(file: &mut File) -> Result<(), Stopped> {
    let mut archive = zip::ZipArchive::new(BufReader::new(file)).map_err(|_| damaged())?;
    let too_much = || Stopped::from(Fault::file(Text::FileUnpacksTooLarge));
    if archive.len() > MAX_PARTS {
        return Err(too_much());
    }
    let (mut all, mut texts, mut others) = (0, 0, 0);
    for n in 0..archive.len() {
        let part = archive.by_index(n).map_err(|_| damaged())?;
        // As the reader looks for them: by either slash, in upper or lower case.
        let name = part.name().map_err(|_| damaged())?.replace('\\', "/").to_ascii_lowercase();
        let kind = match name.rsplit('/').next() {
            Some("sharedstrings.xml") => Kind::Texts,
            Some("styles.xml" | "theme1.xml") => Kind::Other,
            _ if NOT_KEPT.iter().any(|folder| name.contains(folder)) => Kind::NotKept,
            _ => Kind::Other,
        };
        let left = MAX_UNPACKED.saturating_sub(all);
        let left = match kind {
            Kind::NotKept => left,
            Kind::Texts => left.min(MAX_TEXTS.saturating_sub(texts)),
            Kind::Other => left.min(MAX_OTHERS.saturating_sub(others)),
        };
        let size = if kind == Kind::NotKept {
            io::copy(&mut part.take(left + 1), &mut io::sink()).map_err(|_| damaged())?
        } else {
            let mut content = Vec::new();
            let size = part.take(left + 1).read_to_end(&mut content).map_err(|_| damaged())?;
            if misleads(&name, &content) {
                return Err(damaged());
            }
            size as u64
        };
        if size > left {
            return Err(too_much());
        }
        all += size;
        match kind {
            Kind::NotKept => {}
            Kind::Texts => texts += size,
            Kind::Other => others += size,
        }
    }
    Ok(())
}

/// Whether a part would make the reader keep more than was measured: by the number of texts that it is said to have, for
/// which there is room before one is read, or by a place for the workbook among the parts that are not kept.
fn misleads(name: &str, content: &[u8]) -> bool {
    if content.contains(&0) {
        // Another encoding, in which none of what follows would be found.
        return true;
    }
    if name == "_rels/.rels" {
        let text = String::from_utf8_lossy(content).to_ascii_lowercase();
        return text.contains("&#") || NOT_KEPT.iter().any(|folder| text.replace('\\', "/").contains(folder));
    }
    // Wherever the word stands: no honest text has seven digits behind it.
    name.ends_with("sharedstrings.xml")
        && String::from_utf8_lossy(content).split("uniqueCount").skip(1).any(|after| {
            let value = after.trim_start_matches([' ', '\t', '\r', '\n', '=', '\'', '"', '+', '0']);
            value.bytes().take_while(u8::is_ascii_digit).count() > COUNT_DIGITS
        })
}

fn value_of(value: &DataRef<'_>) -> Cell {
    match value {
        DataRef::Empty => Cell::Empty,
        DataRef::Float(number) => Cell::Number(*number),
        #[expect(
            clippy::cast_precision_loss,
            reason = "beyond 15 digits a spreadsheet's number has been rounded anyway"
        )]
        DataRef::Int(number) => Cell::Number(*number as f64),
        DataRef::String(text) => Cell::text(text),
        DataRef::SharedString(text) => Cell::text(text),
        DataRef::DateTime(moment) if moment.is_datetime() => {
            let (year, month, day, hour, minute, second, milli) = moment.to_ymd_hms_milli();
            civil(year, month, day, hour, minute, second, milli).map_or(Cell::Number(moment.as_f64()), Cell::Moment)
        }
        DataRef::DateTimeIso(text) => text.parse().map_or_else(|_| Cell::text(text), Cell::Moment),
        other => Cell::text(&Data::from(other.clone()).to_string()),
    }
}

/// To the second: a spreadsheet keeps a time as a fraction of a day, which is never quite exact.
fn civil(year: u16, month: u8, day: u8, hour: u8, minute: u8, second: u8, milli: u16) -> Option<DateTime> {
    let [month, day, hour, minute, second] = [month, day, hour, minute, second].map(|n| i8::try_from(n).ok());
    let year = i16::try_from(year).ok()?;
    let exact = DateTime::new(year, month?, day?, hour?, minute?, second?, 0).ok()?;
    exact.checked_add(i64::from(milli >= 500).seconds()).ok()
}
