//! `GET /admin-api/alerts`: what an admin should look at.

use super::audit::page_of;
use crate::app::App;
use crate::http::error::{Answer, ApiResult};
use crate::http::extract::Query;
use crate::http::session::Admin;
use crate::ops::alerts;
use axum::extract::State;
use wire::Envelope;
use wire::api::{AlertView, Page};

/// The tenant's alerts, the newest first.
#[utoipa::path(get, path = "/admin-api/alerts", tag = "admin",
    params(("before" = Option<i64>, Query, minimum = 1, description = "older than this one"), ("limit" = Option<i64>, Query, minimum = 1, maximum = 500, description = "1 to 500")),
    responses((status = 200, body = Envelope<Page<AlertView>>)))]
pub(crate) async fn list_alerts(
    State(app): State<App>,
    Admin(session): Admin,
    query: Query,
) -> ApiResult<Page<AlertView>> {
    let (before, limit) = page_of(&query)?;
    let items = alerts::list(&app, session.tenant, before, limit).await?;
    let full = i64::try_from(items.len()).is_ok_and(|n| n == limit);
    let next = items.last().filter(|_| full).map(|last| last.id);
    Ok(Answer(Page { items, next }))
}
