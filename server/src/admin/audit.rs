//! `GET /admin-api/redemptions` and its CSV: the audit, filtered, read by keys.

use crate::app::App;
use crate::db::DbError;
use crate::export::{self, CSV, Cell, Part, csv_header, csv_line};
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Query, order_no};
use crate::http::session::Admin;
use crate::redemption::store::{AuditFilter, audit};
use crate::text::Text;
use axum::extract::State;
use axum::response::Response;
use wire::api::{Page, RedemptionView};
use wire::{Envelope, OrderNo, TenantId};

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
    let tenant = session.tenant;
    let (text, next) = lines(&app, tenant, &filter, i64::MAX).await?;
    Ok(export::send(("redemptions.csv", CSV), (csv_header(HEADER) + &text, next), move |before| {
        let (app, filter) = (app.clone(), filter.clone());
        async move { lines(&app, tenant, &filter, before).await }
    }))
}

const HEADER: &str =
    "id,orderNo,result,statusBefore,statusAfter,operator,operatorType,entry,device,address,requestId,at";

async fn lines(app: &App, tenant: TenantId, filter: &AuditFilter, before: i64) -> Result<Part<i64>, DbError> {
    let rows = audit(&app.db, tenant, filter, before, LARGEST_PAGE).await?;
    let full = i64::try_from(rows.len()).is_ok_and(|n| n == LARGEST_PAGE);
    let next = rows.last().filter(|_| full).map(|last| last.id);
    Ok((rows.into_iter().map(|row| line(app, row)).collect(), next))
}

fn line(app: &App, row: RedemptionView) -> String {
    csv_line(
        &app.zone,
        &[
            Cell::Number(row.id),
            Cell::maybe(row.order_no.as_ref().map(OrderNo::as_str)),
            Cell::Number(row.result),
            Cell::maybe(row.status_before),
            Cell::maybe(row.status_after),
            Cell::maybe(row.operator),
            Cell::text(row.operator_type),
            Cell::maybe(row.entry),
            Cell::maybe(row.device),
            Cell::maybe(row.address),
            Cell::maybe(row.request_id),
            Cell::Time(Some(row.at), "%Y-%m-%d %H:%M:%S"),
        ],
    )
}
