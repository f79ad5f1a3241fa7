//! `GET /open-api/redemptions` and its JSON lines: the audit as a feed, complete and in order.

use super::store;
use crate::app::{App, AppState};
use crate::db::DbError;
use crate::export::{self, JSON_LINES, Part};
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::Query;
use crate::http::session::Machine;
use crate::text::Text;
use axum::extract::State;
use axum::response::Response;
use wire::api::{RedemptionFeed, RedemptionView};
use wire::{Envelope, TenantId};

/// Rows show once they are this old (ms). A row's id and time are given when it is inserted, and its transaction ends
/// within [`crate::db::TRANSACTION_LIMIT`] of that; the other half is for servers whose clocks differ.
const SETTLED: i64 = 10_000;

/// Rows of a page where nobody says otherwise.
const USUAL_PAGE: i64 = 100;
/// Rows of the largest page.
const LARGEST_PAGE: i64 = 500;

/// The rows after the cursor, oldest first.
#[utoipa::path(get, path = "/open-api/redemptions", tag = "machine",
    params(
        ("after" = Option<i64>, Query, description = "the cursor: `next` of the answer before; from the start where it is missing"),
        ("limit" = Option<i64>, Query, description = "1 to 500; 100 where it is missing"),
    ),
    responses((status = 200, body = Envelope<RedemptionFeed>)))]
pub(crate) async fn redemptions(State(app): State<App>, machine: Machine, query: Query) -> ApiResult<RedemptionFeed> {
    let after = cursor(&query)?;
    let limit = number(&query, "limit", 1..=LARGEST_PAGE)?.unwrap_or(USUAL_PAGE);
    let items = settled_after(&app, machine.tenant, after, limit, app.clock.now_ms()).await?;
    let next = items.last().map_or(after, |last| last.id);
    Ok(Answer(RedemptionFeed { items, next }))
}

/// The same to the end, a JSON object a line.
#[utoipa::path(get, path = "/open-api/redemptions.jsonl", tag = "machine",
    params(("after" = Option<i64>, Query, description = "a cursor; from the start where it is missing")),
    responses((status = 200, body = String, content_type = "application/jsonl")))]
pub(crate) async fn export_redemptions(
    State(app): State<App>,
    machine: Machine,
    query: Query,
) -> Result<Response, ApiError> {
    // The end is where the feed ended when it was asked; it moves on while the file goes out.
    let (tenant, now) = (machine.tenant, app.clock.now_ms());
    let first = lines_after(&app, tenant, cursor(&query)?, now).await?;
    Ok(export::send(("redemptions.jsonl", JSON_LINES), first, move |after| {
        let app = app.clone();
        async move { lines_after(&app, tenant, after, now).await }
    }))
}

fn cursor(query: &Query) -> Result<i64, ApiError> {
    Ok(number(query, "after", 0..=i64::MAX)?.unwrap_or(0))
}

fn number(query: &Query, name: &str, range: std::ops::RangeInclusive<i64>) -> Result<Option<i64>, ApiError> {
    let bad = || ApiError::bad_field(name, Text::BadField);
    let parse = |text: &str| text.parse().ok().filter(|n| range.contains(n)).ok_or_else(bad);
    query.optional(name)?.map(parse).transpose()
}

/// The rows after the cursor up to the first that is not settled at `now`, which must be a time before this is called.
///
/// Commits come out of order: behind a young row one with a smaller id may still turn up. So the reader never passes it,
/// whatever is behind; what is before a settled row has been committed or will never be.
async fn settled_after(
    app: &AppState,
    tenant: TenantId,
    after: i64,
    limit: i64,
    now: i64,
) -> Result<Vec<RedemptionView>, DbError> {
    let mut rows = store::audit_after(&app.db, tenant, after, limit).await?;
    let settled = rows.iter().take_while(|row| row.at <= now - SETTLED).count();
    rows.truncate(settled);
    Ok(rows)
}

async fn lines_after(app: &AppState, tenant: TenantId, after: i64, now: i64) -> Result<Part<i64>, DbError> {
    let rows = settled_after(app, tenant, after, LARGEST_PAGE, now).await?;
    let full = i64::try_from(rows.len()).is_ok_and(|n| n == LARGEST_PAGE);
    let next = rows.last().filter(|_| full).map(|last| last.id);
    let mut text = String::new();
    for row in rows {
        // A row is made of numbers and texts: there is nothing in it that JSON cannot hold.
        text.push_str(&serde_json::to_string(&row).map_err(|error| sqlx::Error::Decode(error.into()))?);
        text.push('\n');
    }
    Ok((text, next))
}
