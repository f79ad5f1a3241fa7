//! `GET …/booking/list`: a visitor's own orders.

use super::{day_of, store};
use crate::app::App;
use crate::http::error::{Answer, ApiResult};
use crate::http::session::Visitor;
use axum::extract::State;
use wire::Envelope;
use wire::api::OwnOrder;

/// The visitor's own orders: those from today on, the next one first, then earlier ones.
#[utoipa::path(get, path = "/app-api/team/booking/booking/list", tag = "visitor",
    responses((status = 200, body = Envelope<Vec<OwnOrder>>)))]
pub(crate) async fn own_orders(State(app): State<App>, Visitor(session): Visitor) -> ApiResult<Vec<OwnOrder>> {
    let today = day_of(&app, None)?.start;
    Ok(Answer(store::own_orders(&app.db, session.tenant, session.account_id, today).await?))
}
