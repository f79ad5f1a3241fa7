//! `GET /api/info`, `/healthz`, `/readyz`.

use super::error::{Answer, ApiError, ApiResult};
use super::session::NamedTenant;
use crate::accounts::store;
use crate::app::App;
use axum::extract::State;
use axum::http::StatusCode;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use wire::Envelope;
use wire::api::Info;

/// The oldest kiosk that may work with this server.
const MIN_APP_VERSION: &str = "0.1.0";

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(info))
        .route("/healthz", axum::routing::get(async || "ok"))
        .route("/readyz", axum::routing::get(readyz))
}

/// What a kiosk or a page wants to know before anyone has signed in.
#[utoipa::path(get, path = "/api/info", tag = "server", responses((status = 200, body = Envelope<Info>)))]
async fn info(State(app): State<App>, tenant: Result<NamedTenant, ApiError>) -> ApiResult<Info> {
    let tenant = match tenant {
        Ok(NamedTenant(tenant)) => store::tenant_name(&app.db, tenant).await?,
        Err(_) => None,
    };
    Ok(Answer(Info {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        min_app_version: MIN_APP_VERSION.to_owned(),
        server_time: app.clock.now_ms(),
        timezone: app.config.timezone.clone(),
        tenant,
        voice: app.channels.speak(),
    }))
}

/// Whether database and code store answer; names the one that does not.
async fn readyz(State(app): State<App>) -> (StatusCode, &'static str) {
    if let Err(error) = app.db.ping().await {
        tracing::error!(%error, "not ready");
        return (StatusCode::SERVICE_UNAVAILABLE, "database\n");
    }
    if let Err(error) = app.codes.ping().await {
        tracing::error!(%error, "not ready");
        return (StatusCode::SERVICE_UNAVAILABLE, "code store\n");
    }
    (StatusCode::OK, "ready\n")
}
