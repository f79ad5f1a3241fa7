//! What handlers take from a request; whatever does not fit becomes an error of the contract.

use super::error::ApiError;
use crate::app::App;
use crate::config::Network;
use crate::text::Text;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use serde::de::DeserializeOwned;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wire::{ErrorCode, InvalidNumber, Mobile, OrderNo, RequestId, Secret, SmsCode, TaskNo, VerifyCode};

/// Bodies over this are refused.
pub(super) const BODY_LIMIT: usize = 64 * 1024;

/// A body that takes longer to arrive is refused.
const BODY_TIME: Duration = Duration::from_secs(10);

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
        // Refused before it is sent, where the caller says how much is to come.
        let declared = request.headers().get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
        if declared.is_some_and(|length| length > BODY_LIMIT as u64) {
            return Err(ApiError::too_large());
        }
        let read = tokio::time::timeout(BODY_TIME, Bytes::from_request(request, state)).await;
        let bytes =
            read.map_err(|_| ApiError::too_slow())?.map_err(|rejection| match rejection.into_response().status() {
                StatusCode::PAYLOAD_TOO_LARGE => ApiError::too_large(),
                _ => ApiError::bad_request(Text::BadRequest),
            })?;
        parse(&bytes).map(Self)
    }
}

/// Reads JSON and names the field that does not fit. The reason is not passed on: it may quote the value.
fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    // Every request is an object; a list of its values in order would be read as one, too.
    if bytes.iter().find(|b| !b.is_ascii_whitespace()) != Some(&b'{') {
        return Err(ApiError::bad_request(Text::BadJson));
    }
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

/// The address a request came from: the peer's, or what a trusted proxy says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientAddress(pub(crate) Option<IpAddr>);

impl FromRequestParts<App> for ClientAddress {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Self::Rejection> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|ConnectInfo(address)| address.ip().to_canonical());
        // A hop that is no text is none that can be read; those beside it are.
        let forwarded = parts.headers.get_all("x-forwarded-for").iter();
        let forwarded: Vec<_> = forwarded.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
        let forwarded = forwarded.iter().map(AsRef::as_ref);
        Ok(Self(peer.map(|peer| client_of(peer, forwarded, &app.config.trusted_proxies))))
    }
}

/// The right-most hop that is no trusted proxy. What stands left of it anybody could have written.
fn client_of<'a>(peer: IpAddr, forwarded: impl DoubleEndedIterator<Item = &'a str>, trusted: &[Network]) -> IpAddr {
    let is_trusted = |address: IpAddr| trusted.iter().any(|network| network.contains(address));
    let mut nearest = peer;
    for hop in forwarded.rev().flat_map(|line| line.rsplit(',')) {
        if !is_trusted(nearest) {
            break;
        }
        // A hop that cannot be read ends the chain: the proxy before it is all that is known.
        let Some(address) = address_of(hop.trim()) else { break };
        nearest = address.to_canonical();
    }
    nearest
}

/// An address; some proxies write the port as well.
fn address_of(hop: &str) -> Option<IpAddr> {
    hop.parse().ok().or_else(|| hop.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

/// A mobile number from a request; 4001 where it is none.
pub(crate) fn mobile(number: &Secret) -> Result<Mobile, ApiError> {
    Mobile::parse(number.expose()).map_err(|_| ErrorCode::MobileInvalid.into())
}

/// An order number from a request, cleaned as what people type is.
pub(crate) fn order_no(field: &str, text: &str) -> Result<OrderNo, ApiError> {
    OrderNo::from_typed(text).map_err(|_| ApiError::bad_field(field, Text::OrderNoIllFormed))
}

/// A verify code from a request, cleaned as what people type is.
pub(crate) fn verify_code(code: &Secret) -> Result<VerifyCode, ApiError> {
    VerifyCode::from_typed(code.expose()).map_err(|wrong| {
        let text = match wrong {
            InvalidNumber::Empty => Text::CodeEmpty,
            InvalidNumber::IllFormed => Text::CodeIllFormed,
        };
        ApiError::bad_field("verifyCode", text)
    })
}

/// An SMS code from a request, cleaned as what people type is.
pub(crate) fn sms_code(field: &str, code: &Secret) -> Result<SmsCode, ApiError> {
    SmsCode::from_typed(code.expose()).map_err(|wrong| {
        let text = match wrong {
            InvalidNumber::Empty => Text::SmsCodeEmpty,
            InvalidNumber::IllFormed => Text::SmsCodeIllFormed,
        };
        ApiError::bad_field(field, text)
    })
}

/// The caller's name for an attempt.
pub(crate) fn request_id(text: Option<&str>) -> Result<Option<RequestId>, ApiError> {
    text.map(RequestId::parse).transpose().map_err(|_| ApiError::bad_field("requestId", Text::BadField))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_the_right_most_hop_that_is_not_trusted() {
        let trusted = ["10.0.0.0/8", "192.168.1.1"].map(|n| Network::try_from(n.to_owned()).unwrap());
        for (peer, forwarded, want) in [
            ("203.0.113.9", vec!["1.1.1.1"], "203.0.113.9"),
            ("10.0.0.1", vec![], "10.0.0.1"),
            ("10.0.0.1", vec!["1.1.1.1"], "1.1.1.1"),
            ("10.0.0.1", vec!["6.6.6.6, 1.1.1.1, 10.0.0.2"], "1.1.1.1"),
            ("10.0.0.1", vec!["6.6.6.6", "1.1.1.1", "192.168.1.1"], "1.1.1.1"),
            ("10.0.0.1", vec!["1.1.1.1, nonsense"], "10.0.0.1"),
            ("10.0.0.1", vec!["1.1.1.1:4711"], "1.1.1.1"),
            ("10.0.0.1", vec!["[2001:db8::1]:4711"], "2001:db8::1"),
            ("10.0.0.1", vec!["10.0.0.3"], "10.0.0.3"),
            ("10.0.0.1", vec!["2001:db8::1"], "2001:db8::1"),
        ] {
            let got = client_of(peer.parse().unwrap(), forwarded.clone().into_iter(), &trusted);
            assert_eq!(got.to_string(), want, "{peer} {forwarded:?}");
        }
    }
}
