//! Compensation and reversal: an admin's two ways around a code, each confirmed by an SMS code.
//!
//! Without a way to send that code both are refused rather than done without it.

use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Body, PathPart, order_no, plain_text};
use crate::http::session::Admin;
use crate::text::Text;
use wire::api::{ConfirmedRequest, MachineOrder};
use wire::{Envelope, ErrorCode};

/// Redeems without a verify code: for a broken phone at the gate.
#[utoipa::path(post, path = "/admin-api/team/booking-order/{orderNo}/compensate", tag = "admin", request_body = ConfirmedRequest,
    params(("orderNo" = String, Path, example = "BK202608010001", pattern = "^[0-9A-Za-z_-]{1,64}$", description = "the order's number")),
    responses((status = 200, body = Envelope<MachineOrder>)))]
pub(crate) async fn compensate(
    Admin(_): Admin,
    PathPart(number): PathPart,
    Body(request): Body<ConfirmedRequest>,
) -> ApiResult<MachineOrder> {
    refuse(&number, &request)
}

/// Takes a redemption back: `consumed -> paid`.
#[utoipa::path(post, path = "/admin-api/team/booking-order/{orderNo}/reverse", tag = "admin", request_body = ConfirmedRequest,
    params(("orderNo" = String, Path, example = "BK202608010001", pattern = "^[0-9A-Za-z_-]{1,64}$", description = "the order's number")),
    responses((status = 200, body = Envelope<MachineOrder>)))]
pub(crate) async fn reverse(
    Admin(_): Admin,
    PathPart(number): PathPart,
    Body(request): Body<ConfirmedRequest>,
) -> ApiResult<MachineOrder> {
    refuse(&number, &request)
}

fn refuse(number: &str, request: &ConfirmedRequest) -> ApiResult<MachineOrder> {
    order_no("orderNo", number)?;
    plain_text("reason", &request.reason, 200)?;
    let digits = wire::clean_digits(request.code.expose());
    if digits.len() != 6 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(ApiError::bad_field("code", Text::BadField));
    }
    Err(ApiError::from(ErrorCode::Unavailable).saying(Text::NoConfirmation))
}
