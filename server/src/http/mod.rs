//! The router, and the edge that every request passes.

mod docs;
pub(crate) mod error;
pub(crate) mod extract;
mod info;
pub(crate) mod openapi;
mod pages;
pub(crate) mod session;

use crate::app::App;
use crate::{accounts, admin, booking, redemption, sms};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use error::ApiError;
use std::time::Duration;
use tower_http::catch_panic::CatchPanicLayer;
use tracing::Instrument;
use utoipa_axum::router::OpenApiRouter;
use wire::ErrorCode;

/// No request is worked on for longer before its answer begins; a body may take as long to arrive.
const REQUEST_LIMIT: Duration = Duration::from_secs(15);

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Every route of every capability, with its description.
fn api() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::description())
        .merge(accounts::routes())
        .merge(admin::routes())
        .merge(booking::routes())
        .merge(redemption::routes())
        .merge(sms::routes())
        .merge(info::routes())
        .layer(middleware::from_fn(within_limit))
        // A file may take longer to arrive and to be read.
        .merge(booking::file_routes())
}

/// The whole HTTP interface.
pub(crate) fn router(app: App) -> axum::Router {
    let (api, _) = api().split_for_parts();
    api.route("/api/openapi.json", get(openapi::json))
        .route("/docs", get(docs::page))
        .method_not_allowed_fallback(async || ApiError::wrong_method())
        .fallback(pages::page_or_error)
        .layer(DefaultBodyLimit::max(extract::BODY_LIMIT))
        .layer(CatchPanicLayer::custom(|_| {
            // The panic's own text may hold anything; the hook has logged where it happened.
            ApiError::from(ErrorCode::Internal).into_response()
        }))
        .layer(middleware::from_fn_with_state(app.clone(), edge))
        .with_state(app)
}

/// Whether a path belongs to the API, so that even its errors wear the envelope.
pub(crate) fn is_api(path: &str) -> bool {
    ["/api", "/app-api", "/admin-api", "/open-api"]
        .iter()
        .any(|root| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

/// A database that hangs must not keep callers waiting: after the limit it is unknown what came of the request. Work that
/// must not stop half way goes on by itself (`AppState::see_through`).
async fn within_limit(request: Request, next: Next) -> Response {
    let answered = tokio::time::timeout(REQUEST_LIMIT, next.run(request)).await;
    answered.unwrap_or_else(|_| ApiError::from(ErrorCode::Unavailable).into_response())
}

/// Gives each request its id, turns errors into the caller's language and logs how it went.
async fn edge(State(app): State<App>, request: Request, next: Next) -> Response {
    let id = uuid::Uuid::new_v4().simple().to_string();
    let lang = error::lang_of(request.headers());
    let method = request.method().clone();
    let path = request.uri().path().to_owned();
    let span = tracing::info_span!("request", id);
    async {
        let mut response = next.run(request).await;
        let error = response.extensions_mut().remove::<ApiError>();
        if let Some(error) = &error {
            error.log();
            response = error.render(lang, response);
        }
        app.metrics.request(response.status().as_u16());
        if method == Method::POST && redemption::is_attempt(&path) {
            app.metrics.redemption(error.as_ref().map_or(0, |error| error.code().code()));
        }
        let headers = response.headers_mut();
        if let Ok(id) = HeaderValue::from_str(&id) {
            headers.insert(REQUEST_ID, id);
        }
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        if is_api(&path) {
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        // The path alone: a query may hold what somebody put there by mistake.
        tracing::debug!(%method, path, status = response.status().as_u16(), code = error.map(|e| e.code().code()), "answered");
        response
    }
    .instrument(span)
    .await
}
