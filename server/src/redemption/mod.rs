//! Verify codes and redemption: the one way in which a paid order is used up, once.

mod by_code;
mod caller;
mod compensate;
mod feed;
mod issue;
mod limits;
mod redeem;
mod rotate;
pub(crate) mod store;

pub(crate) use limits::{counted_as, freeze_window_of};

use crate::app::App;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// Whether a path is one at which orders are redeemed.
pub(crate) fn is_attempt(path: &str) -> bool {
    matches!(
        path,
        "/app-api/team/guide-task/booking/consume"
            | "/app-api/team/guide-task/booking/consume-by-code"
            | "/admin-api/team/booking-order/booking/consume"
    )
}

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(issue::verify_code))
        .routes(routes!(rotate::rotate))
        .routes(routes!(by_code::consume_by_code))
        .routes(routes!(compensate::compensate))
        .routes(routes!(compensate::reverse))
        .routes(routes!(redeem::consume_as_guide))
        .routes(routes!(redeem::consume_as_admin))
        .routes(routes!(feed::redemptions))
        .routes(routes!(feed::export_redemptions))
}
