//! `GET …/verify-code`: the code that shows that its holder may use the order now.

use super::store;
use crate::accounts::session::Session;
use crate::app::App;
use crate::clock::RandomSource;
use crate::codes::{CodeKey, LiveCode};
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Query, order_no};
use crate::http::session::Visitor;
use axum::extract::State;
use wire::api::{OrderState, OrderStatus, VerifyCodeView};
use wire::{Envelope, ErrorCode, OrderNo, VerifyCode};

/// The code of one's own paid order: the same one until it runs out, however often and from wherever it is asked for.
///
/// Order of checks: session and role; format; the caller's own order; status; then the code, and the status once more,
/// for the order may have left `paid` while the code was made.
#[utoipa::path(get, path = "/app-api/team/booking/booking/verify-code", tag = "visitor",
    params(("orderNo" = String, Query, example = "BK202608010001", pattern = "^[0-9A-Za-z_-]{1,64}$", description = "the order's number")),
    responses((status = 200, body = Envelope<VerifyCodeView>)))]
pub(crate) async fn verify_code(
    State(app): State<App>,
    Visitor(session): Visitor,
    query: Query,
) -> ApiResult<VerifyCodeView> {
    let order_no = order_no("orderNo", query.required("orderNo")?)?;
    let order = store::own_order(&app.db, session.tenant, session.account_id, &order_no)
        .await?
        .ok_or(ErrorCode::BookingOrderNotExists)?;
    require_paid(order.status, order.consumed_at)?;

    let key = app.code_key(session.tenant, order.id);
    let life = app.rules(session.tenant).await?.life();
    let live = app.codes.get_or_set(&key, new_code(&*app.random)?, life).await?;
    view(&app, &session, order_no, &key, live).await
}

/// The answer, if the order still is the caller's and paid: either may have changed while the code was made.
pub(super) async fn view(
    app: &App,
    session: &Session,
    order_no: OrderNo,
    key: &CodeKey,
    live: LiveCode,
) -> ApiResult<VerifyCodeView> {
    // At once: what is left of a code's life is measured from here.
    let server_time = app.clock.now_ms();
    let order = store::own_order(&app.db, session.tenant, session.account_id, &order_no).await?;
    if order.as_ref().is_none_or(|order| order.status != OrderStatus::Paid) {
        app.codes.delete_if(key, &live.code).await?;
    }
    let order = order.ok_or(ErrorCode::BookingOrderNotExists)?;
    require_paid(order.status, order.consumed_at)?;

    let left = i64::try_from(live.left.as_millis()).unwrap_or(i64::MAX);
    Ok(Answer(VerifyCodeView {
        order_no,
        verify_code: live.code,
        server_time,
        expire_time: server_time.saturating_add(left),
    }))
}

pub(super) fn require_paid(status: OrderStatus, consumed_at: Option<i64>) -> Result<(), ApiError> {
    if status == OrderStatus::Paid {
        return Ok(());
    }
    Err(ApiError::not_paid(OrderState { status, consumed_at, consumed_by: None, device: None }))
}

/// A number drawn evenly from 100000-999999: never six digits of which the first might be 0.
pub(super) fn new_code(random: &dyn RandomSource) -> Result<VerifyCode, ApiError> {
    let number = random.number(VerifyCode::MIN..=VerifyCode::MAX);
    VerifyCode::from_number(number).ok_or_else(|| ErrorCode::Internal.into())
}
