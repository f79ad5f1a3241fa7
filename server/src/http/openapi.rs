//! The description of the HTTP interface, made from the handlers.

use axum::Json;
use utoipa::openapi::{InfoBuilder, OpenApi, OpenApiBuilder};

/// What stands above the routes.
pub(crate) fn description() -> OpenApi {
    let info = InfoBuilder::new()
        .title("Guidepost")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("The front desk of a venue: visitors' codes and their redemption, exactly once."));
    OpenApiBuilder::new().info(info.build()).build()
}

/// The whole description, for the generator of the pages' types.
pub(crate) fn document() -> OpenApi {
    super::api().split_for_parts().1
}

/// `GET /api/openapi.json`.
pub(crate) async fn json() -> Json<OpenApi> {
    Json(document())
}
