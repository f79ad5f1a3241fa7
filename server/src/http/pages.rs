//! The visitors' page, embedded in release builds and read from the disk in debug builds.

use super::error::{ApiError, lang_of};
use super::is_api;
use crate::text::Text;
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use rust_embed::{Embed, EmbeddedFile};
use wire::ErrorCode;

/// What Vite builds into `ui/dist/visitor`; the server is complete without it.
#[derive(Embed)]
#[folder = "../ui/dist/visitor"]
#[allow_missing = true]
struct VisitorPage;

/// Nothing from elsewhere, no inline scripts; QR and camera pictures are made on the page itself.
const CSP: &str = "default-src 'self'; img-src 'self' data: blob:; style-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; object-src 'none'";

/// Whatever is no route of the API: a page, or an error, which wears the envelope below the API's roots.
pub(super) async fn page_or_error(request: Request) -> Response {
    let path = request.uri().path();
    let lang = lang_of(request.headers());
    if is_api(path) {
        return ApiError::from(ErrorCode::NotFound).into_response();
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return plain(StatusCode::METHOD_NOT_ALLOWED, Text::WrongMethod.say(lang));
    }
    let path = path.trim_start_matches('/');
    match (VisitorPage::get(if path.is_empty() { "index.html" } else { path }), path) {
        // The names of Vite's assets hold a digest of their content.
        (Some(asset), path) if path.starts_with("assets/") => serve(asset, "public, max-age=31536000, immutable"),
        (Some(asset), _) => serve(asset, "no-cache"),
        (None, "") => plain(StatusCode::OK, Text::PagesNotBuilt.say(lang)),
        (None, _) => plain(StatusCode::NOT_FOUND, Text::NotFound.say(lang)),
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

fn plain(status: StatusCode, text: &str) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{text}\n")).into_response()
}
