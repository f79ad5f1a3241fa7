//! Verify codes and redemption: the one way in which a paid order is used up, once.

mod issue;
mod redeem;
pub(crate) mod store;

use crate::app::App;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(issue::verify_code))
        .routes(routes!(redeem::consume_as_guide))
        .routes(routes!(redeem::consume_as_admin))
}
