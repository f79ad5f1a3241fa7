//! `GET /api/info`, `/healthz`, `/readyz`, `/metrics`.

use super::error::{Answer, ApiError, ApiResult, lang_of};
use super::session::NamedTenant;
use crate::accounts::store;
use crate::app::App;
use crate::ops::metrics::CONTENT_TYPE;
use crate::text::Text;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::net::{IpAddr, SocketAddr};
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
        .route("/metrics", axum::routing::get(metrics))
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

/// What this process has counted, for whoever asks from this machine or a private network, and not through a proxy: it
/// tells from which networks people come, and how many.
async fn metrics(State(app): State<App>, request: Request) -> Response {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip());
    let by_proxy = ["x-forwarded-for", "forwarded", "via"].iter().any(|name| request.headers().contains_key(*name));
    if by_proxy || !peer.is_some_and(is_inside) {
        let text = format!("{}\n", Text::MetricsInside.say(lang_of(request.headers())));
        return (StatusCode::FORBIDDEN, text).into_response();
    }
    match app.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response(),
        Err(_) => ApiError::from(wire::ErrorCode::Internal).into_response(),
    }
}

/// This machine, and the networks that no stranger can call from: RFC 1918, RFC 4193.
fn is_inside(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::is_inside;

    #[test]
    fn the_counters_are_for_this_machine_and_private_networks() {
        for (address, inside) in [
            ("127.0.0.1", true),
            ("10.1.2.3", true),
            ("172.31.0.1", true),
            ("192.168.0.9", true),
            ("::1", true),
            ("fd00::1", true),
            ("::ffff:192.168.0.9", true),
            ("172.32.0.1", false),
            ("100.64.0.1", false),
            ("203.0.113.7", false),
            ("2002:c0a8:9::1", false),
            ("2001:0:1::1", false),
            ("::ffff:203.0.113.7", false),
        ] {
            assert_eq!(is_inside(address.parse().unwrap()), inside, "{address}");
        }
    }
}
