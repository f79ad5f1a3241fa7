//! `GET /admin-api/redemptions` and its CSV: the audit, filtered, read by keys.

use crate::app::App;
use crate::db::DbError;
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Query, order_no};
use crate::http::session::Admin;
use crate::redemption::store::{AuditFilter, audit};
use crate::text::Text;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::stream;
use jiff::Timestamp;
use wire::api::{Page, RedemptionView};
use wire::{Envelope, TenantId};

/// Rows of a page where nobody says otherwise.
const USUAL_PAGE: i64 = 50;
/// Rows of the largest page.
const LARGEST_PAGE: i64 = 500;

/// `before` and `limit` of a list that is read from its newest row backwards.
pub(super) fn page_of(query: &Query) -> Result<(i64, i64), ApiError> {
    let number = |name: &str, usual: i64, most: i64| match query.optional(name)? {
        None => Ok(usual),
        Some(text) => {
            let number = text.parse().ok().filter(|n| (1..=most).contains(n));
            number.ok_or_else(|| ApiError::bad_field(name, Text::BadField))
        }
    };
    Ok((number("before", i64::MAX, i64::MAX)?, number("limit", USUAL_PAGE, LARGEST_PAGE)?))
}

fn filter_of(query: &Query) -> Result<AuditFilter, ApiError> {
    let number = |name: &str| {
        let bad = |_| ApiError::bad_field(name, Text::BadField);
        query.optional(name)?.map(|text| text.parse::<i64>().map_err(bad)).transpose()
    };
    Ok(AuditFilter {
        order_no: query.optional("orderNo")?.map(|text| order_no("orderNo", text)).transpose()?,
        operator: number("operator")?,
        result: number("result")?,
        from: number("from")?,
        to: number("to")?,
    })
}

/// The audit, the newest row first.
#[utoipa::path(get, path = "/admin-api/redemptions", tag = "admin",
    params(
        ("orderNo" = Option<String>, Query, description = "of this order"),
        ("operator" = Option<i64>, Query, description = "of this account"),
        ("result" = Option<i64>, Query, description = "0, or an error's code"),
        ("from" = Option<i64>, Query, description = "not before this time (Unix ms)"),
        ("to" = Option<i64>, Query, description = "before this time (Unix ms)"),
        ("before" = Option<i64>, Query, minimum = 1, description = "older than this row"),
        ("limit" = Option<i64>, Query, minimum = 1, maximum = 500, description = "1 to 500"),
    ),
    responses((status = 200, body = Envelope<Page<RedemptionView>>)))]
pub(crate) async fn list_redemptions(
    State(app): State<App>,
    Admin(session): Admin,
    query: Query,
) -> ApiResult<Page<RedemptionView>> {
    let (before, limit) = page_of(&query)?;
    let items = audit(&app.db, session.tenant, &filter_of(&query)?, before, limit).await?;
    let full = i64::try_from(items.len()).is_ok_and(|n| n == limit);
    let next = items.last().filter(|_| full).map(|last| last.id);
    Ok(Answer(Page { items, next }))
}

/// The same as a CSV file for spreadsheets: a byte-order mark, times in the venue's zone, numbers kept as text.
#[utoipa::path(get, path = "/admin-api/redemptions.csv", tag = "admin",
    params(
        ("orderNo" = Option<String>, Query, description = "of this order"),
        ("operator" = Option<i64>, Query, description = "of this account"),
        ("result" = Option<i64>, Query, description = "0, or an error's code"),
        ("from" = Option<i64>, Query, description = "not before this time (Unix ms)"),
        ("to" = Option<i64>, Query, description = "before this time (Unix ms)"),
    ),
    responses((status = 200, body = String, content_type = "text/csv")))]
pub(crate) async fn export_redemptions(
    State(app): State<App>,
    Admin(session): Admin,
    query: Query,
) -> Result<Response, ApiError> {
    let filter = filter_of(&query)?;
    // The first page is read before the answer begins, so that a database that is away is an error and no empty file.
    let first = audit(&app.db, session.tenant, &filter, i64::MAX, LARGEST_PAGE).await?;
    let head = format!("\u{feff}{HEADER}\r\n{}", lines(&app, &first));
    let rest = stream::try_unfold(next_of(&first), move |before| {
        let (app, filter) = (app.clone(), filter.clone());
        async move { more(&app, session.tenant, &filter, before).await }
    });
    let body = stream::StreamExt::chain(stream::iter([Ok::<_, DbError>(Bytes::from(head))]), rest);
    let headers = [
        (header::CONTENT_TYPE, "text/csv; charset=utf-8"),
        (header::CONTENT_DISPOSITION, "attachment; filename=\"redemptions.csv\""),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

const HEADER: &str =
    "id,orderNo,result,statusBefore,statusAfter,operator,operatorType,entry,device,address,requestId,at";

/// Where the next page begins; `None` at the end.
fn next_of(page: &[RedemptionView]) -> Option<i64> {
    let full = i64::try_from(page.len()).is_ok_and(|n| n == LARGEST_PAGE);
    page.last().filter(|_| full).map(|last| last.id)
}

type Next = Option<(Bytes, Option<i64>)>;

async fn more(app: &App, tenant: TenantId, filter: &AuditFilter, before: Option<i64>) -> Result<Next, DbError> {
    let Some(before) = before else { return Ok(None) };
    let page = audit(&app.db, tenant, filter, before, LARGEST_PAGE).await?;
    Ok(Some((lines(app, &page).into(), next_of(&page))))
}

fn lines(app: &App, rows: &[RedemptionView]) -> String {
    let mut text = String::new();
    for row in rows {
        let order_no = row.order_no.as_ref().map(|no| no.as_str().to_owned());
        let at = Timestamp::from_millisecond(row.at)
            .map(|at| at.to_zoned_datetime(app.zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string());
        let cells = [
            Some(row.id.to_string()),
            order_no,
            Some(row.result.to_string()),
            row.status_before.clone(),
            row.status_after.clone(),
            row.operator.clone(),
            Some(row.operator_type.clone()),
            row.entry.clone(),
            row.device.clone(),
            row.address.clone(),
            row.request_id.clone(),
            at.ok(),
        ];
        let cells: Vec<String> = cells.iter().map(|cell| cell_of(cell.as_deref().unwrap_or_default())).collect();
        text.push_str(&cells.join(","));
        text.push_str("\r\n");
    }
    text
}

/// A cell that a spreadsheet shows as it is: it runs no formula and rounds no long number.
fn cell_of(text: &str) -> String {
    let runs = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let rounds = text.len() > 11 && text.bytes().all(|b| b.is_ascii_digit())
        || text.len() > 1 && text.starts_with('0') && text.bytes().all(|b| b.is_ascii_digit());
    let shown = if runs || rounds { format!("'{text}") } else { text.to_owned() };
    if shown.contains([',', '"', '\n', '\r', ';']) { format!("\"{}\"", shown.replace('"', "\"\"")) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::cell_of;

    #[test]
    fn a_cell_runs_nothing_and_keeps_its_digits() {
        for (text, want) in [
            ("BK1", "BK1"),
            ("=1+1", "'=1+1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("-5", "'-5"),
            ("202608010001", "'202608010001"),
            ("007", "'007"),
            ("2003", "2003"),
            ("a,\"b\"", "\"a,\"\"b\"\"\""),
        ] {
            assert_eq!(cell_of(text), want);
        }
    }
}
