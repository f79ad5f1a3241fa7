//! The description of the HTTP interface, made from the handlers.

use axum::Json;
use utoipa::OpenApi as _;
use utoipa::openapi::OpenApi;
use wire::api::{BadField, OrderState, RetryAfter};

/// What stands above the routes: the title, and the `data` of errors.
#[derive(utoipa::OpenApi)]
#[openapi(
    info(
        title = "Guidepost",
        description = "The front desk of a venue: visitors' codes and their redemption, exactly once."
    ),
    components(schemas(BadField, OrderState, RetryAfter))
)]
struct Description;

/// What stands above the routes.
pub(crate) fn description() -> OpenApi {
    Description::openapi()
}

/// The whole description, for the generator of the pages' types.
pub(crate) fn document() -> OpenApi {
    super::api().split_for_parts().1
}

/// `GET /api/openapi.json`.
pub(crate) async fn json() -> Json<OpenApi> {
    Json(document())
}
