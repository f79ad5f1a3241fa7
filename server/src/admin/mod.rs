//! The console's own end points: settings, guides, alerts, the audit.

mod alerts;
mod audit;
mod guides;
mod settings;

use crate::app::App;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(settings::get_settings, settings::put_settings))
        .routes(routes!(guides::list_guides))
        .routes(routes!(guides::freeze_guide))
        .routes(routes!(guides::unfreeze_guide))
        .routes(routes!(alerts::list_alerts))
        .routes(routes!(audit::list_redemptions))
        .routes(routes!(audit::export_redemptions))
}
