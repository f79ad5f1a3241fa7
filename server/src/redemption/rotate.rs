//! `POST …/verify-code/rotate`: "someone saw my code". The old code, grace included, dies at once.

use super::{issue, store};
use crate::app::App;
use crate::codes::{AttemptId, Rotated};
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Body, order_no};
use crate::http::session::Visitor;
use crate::text::Text;
use axum::extract::State;
use std::time::Duration;
use wire::api::{RotateRequest, VerifyCodeView};
use wire::{Envelope, ErrorCode};

/// At most once in this for an order.
const PAUSE: Duration = Duration::from_secs(60);

/// Another code for one's own paid order, in place of the one that is alive.
#[utoipa::path(post, path = "/app-api/team/booking/booking/verify-code/rotate", tag = "visitor", request_body = RotateRequest,
    responses((status = 200, body = Envelope<VerifyCodeView>)))]
pub(crate) async fn rotate(
    State(app): State<App>,
    Visitor(session): Visitor,
    Body(request): Body<RotateRequest>,
) -> ApiResult<VerifyCodeView> {
    let order_no = order_no("orderNo", &request.order_no)?;
    if !request.confirm {
        return Err(ApiError::bad_field("confirm", Text::ConfirmRotation));
    }
    let order = store::own_order(&app.db, session.tenant, session.account_id, &order_no)
        .await?
        .ok_or(ErrorCode::BookingOrderNotExists)?;
    issue::require_paid(order.status, order.consumed_at)?;
    let key = app.code_key(session.tenant, order.id);
    let life = app.rules(session.tenant).await?.life();
    let attempt = AttemptId::new(uuid::Uuid::new_v4().simple().to_string());
    match app.codes.rotate(&key, issue::new_code(&*app.random)?, life, PAUSE, &attempt).await? {
        Rotated::TooSoon(wait) => {
            Err(ApiError::retry_after(ErrorCode::TooManyRequests, wait).saying(Text::RotatedJustNow))
        }
        Rotated::Done(live) => issue::view(&app, &session, order_no, &key, live).await,
    }
}
