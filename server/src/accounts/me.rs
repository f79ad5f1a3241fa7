//! `GET /api/auth/me`: who is signed in.

use super::session::Session;
use crate::http::error::{Answer, ApiResult};
use wire::Envelope;
use wire::api::Me;

/// Who is signed in.
#[utoipa::path(get, path = "/api/auth/me", tag = "accounts", responses((status = 200, body = Envelope<Me>)))]
pub(crate) async fn me(session: Session) -> ApiResult<Me> {
    Ok(Answer(Me { name: session.name, roles: session.roles, expires_at: session.expires_at }))
}
