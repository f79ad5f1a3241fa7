//! What handlers take from a request; whatever does not fit becomes an error of the contract.

use super::error::ApiError;
use crate::text::Text;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::de::DeserializeOwned;
use std::net::{IpAddr, SocketAddr};
use wire::{InvalidNumber, OrderNo, TaskNo};

/// A JSON body.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let json = request
            .headers()
            .get(header::CONTENT_TYPE)
            .and_then(|v| v.to_str().ok())
            .and_then(|v| v.split(';').next())
            .is_some_and(|mime| mime.trim().eq_ignore_ascii_case("application/json"));
        if !json {
            return Err(ApiError::not_json());
        }
        let bytes = Bytes::from_request(request, state).await.map_err(|rejection| {
            match rejection.into_response().status() {
                StatusCode::PAYLOAD_TOO_LARGE => ApiError::too_large(),
                _ => ApiError::bad_request(Text::BadRequest),
            }
        })?;
        parse(&bytes).map(Self)
    }
}

/// Reads JSON and names the field that does not fit. The reason is not passed on: it may quote the value.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let reason = error.inner().to_string();
        let named = ["missing field `", "duplicate field `"]
            .iter()
            .find_map(|start| reason.strip_prefix(start))
            .and_then(|rest| rest.split('`').next());
        // An error within valid JSON is a field's.
        let valid = || serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
        match named {
            Some(name) => ApiError::bad_field(name, Text::BadField),
            None if path != "." && valid() => ApiError::bad_field(&path, Text::BadField),
            None => ApiError::bad_request(Text::BadJson),
        }
    })?;
    json.end().map_err(|_| ApiError::bad_request(Text::BadJson))?;
    Ok(value)
}

/// The query's parameters.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Query {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        Ok(Self(form_urlencoded::parse(query.as_bytes()).into_owned().collect()))
    }
}

impl Query {
    /// A parameter that may be missing; given twice it is an error, for nobody can say which one is meant.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<&str>, ApiError> {
        let mut values = self.0.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str());
        match (values.next(), values.next()) {
            (value, None) => Ok(value),
            _ => Err(ApiError::bad_field(name, Text::BadField)),
        }
    }

    /// A parameter that must be there.
    pub(crate) fn required(&self, name: &str) -> Result<&str, ApiError> {
        self.optional(name)?.ok_or_else(|| ApiError::bad_field(name, Text::BadField))
    }
}

/// The one variable part of a path.
#[derive(Debug)]
pub(crate) struct PathPart(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for PathPart {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(part) =
            Path::from_request_parts(parts, state).await.map_err(|_| ApiError::bad_request(Text::BadRequest))?;
        Ok(Self(part))
    }
}

/// The address a request came from: the peer's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) Option<IpAddr>);

impl<S: Send + Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        Ok(Self(peer.map(|ConnectInfo(address)| address.ip().to_canonical())))
    }
}

/// An order number from a request.
pub(crate) fn order_no(field: &str, text: &str) -> Result<OrderNo, ApiError> {
    OrderNo::parse(text).map_err(|_| ApiError::bad_field(field, Text::OrderNoIllFormed))
}

/// A task number from a request.
pub(crate) fn task_no(field: &str, text: &str) -> Result<TaskNo, ApiError> {
    TaskNo::parse(text).map_err(|_: InvalidNumber| ApiError::bad_field(field, Text::BadField))
}

/// A text for people: trimmed, of some length, without control characters.
pub(crate) fn plain_text(field: &str, text: &str, max_chars: usize) -> Result<String, ApiError> {
    let text = wire::trim(text);
    let fits = !text.is_empty() && text.chars().count() <= max_chars && !text.chars().any(char::is_control);
    fits.then(|| text.to_owned()).ok_or_else(|| ApiError::bad_field(field, Text::BadField))
}
