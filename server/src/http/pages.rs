//! The visitors' page, embedded in release builds and read from the disk in debug builds.

use super::error::{ApiError, lang_of};
use super::is_api;
use crate::app::App;
use crate::text::Text;
use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use rust_embed::{Embed, EmbeddedFile};
use wire::ErrorCode;

/// What Vite builds into `ui/dist/visitor`; the server is complete without it.
#[derive(Embed)]
#[folder = "../ui/dist/visitor"]
#[allow_missing = true]
struct VisitorPage;

/// Nothing from elsewhere, no inline scripts; QR and camera pictures are made on the page itself.
const CSP: &str = "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

pub(super) fn routes() -> Router<App> {
    Router::new().route("/", get(index)).route("/{*path}", get(file))
}

async fn index(headers: HeaderMap) -> Response {
    match VisitorPage::get("index.html") {
        Some(page) => serve(page, "no-cache"),
        None => {
            let text = Text::PagesNotBuilt.say(lang_of(&headers)).to_owned() + "\n";
            ([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
        }
    }
}

async fn file(uri: Uri, request: Request) -> Response {
    let path = uri.path().trim_start_matches('/');
    match VisitorPage::get(path) {
        // The names of Vite's assets hold a digest of their content.
        Some(asset) if path.starts_with("assets/") => serve(asset, "public, max-age=31536000, immutable"),
        Some(asset) => serve(asset, "no-cache"),
        None => not_found(request).await,
    }
}

fn serve(file: EmbeddedFile, cache: &'static str) -> Response {
    let mime = HeaderValue::from_str(file.metadata.mimetype());
    let mut response = file.data.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, mime.unwrap_or(HeaderValue::from_static("application/octet-stream")));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(CSP));
    response
}

/// Unknown paths: in the envelope below the API's roots, plain elsewhere.
pub(super) async fn not_found(request: Request) -> Response {
    if is_api(request.uri().path()) {
        return ApiError::from(ErrorCode::NotFound).into_response();
    }
    let text = Text::NotFound.say(lang_of(request.headers())).to_owned() + "\n";
    (StatusCode::NOT_FOUND, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}
