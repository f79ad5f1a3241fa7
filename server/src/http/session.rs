//! Who calls: sessions and their roles, API keys, and the tenant of a caller who has not signed in yet.

use super::error::ApiError;
use crate::accounts::session::{self, Session};
use crate::accounts::store;
use crate::app::{App, token_hash};
use crate::text::Text;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use wire::TenantId;
use wire::api::Role;

/// The cookie that holds a browser's session. Secure and bound to the host where the page came over HTTPS.
pub(crate) fn cookie_name(secure: bool) -> &'static str {
    if secure { "__Host-guidepost" } else { "guidepost" }
}

impl FromRequestParts<App> for Session {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let token = match bearer(&parts.headers) {
            Some(token) => token,
            None => {
                let token = cookie(&parts.headers, session::is_secure(app))
                    .ok_or_else(|| ApiError::unauthenticated(Text::NotSignedIn))?;
                if !matches!(parts.method, Method::GET | Method::HEAD) {
                    require_same_origin(app, &parts.headers)?;
                }
                token
            }
        };
        let session = session::find(app, &token).await?.ok_or_else(|| ApiError::unauthenticated(Text::NotSignedIn))?;
        match named_tenant(&parts.headers)? {
            Some(tenant) if tenant != session.tenant => Err(ApiError::forbidden(Text::OtherTenant)),
            _ => Ok(session),
        }
    }
}

macro_rules! role_session {
    ($(#[$doc:meta])* $name:ident, $role:expr) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(crate) struct $name(pub(crate) Session);

        impl FromRequestParts<App> for $name {
            type Rejection = ApiError;

            async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
                let session = Session::from_request_parts(parts, app).await?;
                if session.roles.contains(&$role) { Ok(Self(session)) } else { Err(ApiError::forbidden(Text::Forbidden)) }
            }
        }
    };
}

role_session!(
    /// A visitor's session.
    Visitor,
    Role::Visitor
);
role_session!(
    /// A guide's session.
    Guide,
    Role::Guide
);
role_session!(
    /// An admin's session.
    Admin,
    Role::Admin
);

/// A machine, known by its `X-Api-Key`.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) tenant: TenantId,
}

impl FromRequestParts<App> for Machine {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let wrong = || ApiError::unauthenticated(Text::WrongApiKey);
        let key = parts.headers.get("x-api-key").and_then(|v| v.to_str().ok()).ok_or_else(wrong)?;
        let tenant = store::tenant_of_api_key(&app.db, &token_hash(key)).await?.ok_or_else(wrong)?;
        match named_tenant(&parts.headers)? {
            Some(named) if named != tenant => Err(ApiError::forbidden(Text::OtherTenant)),
            _ => Ok(Self { tenant }),
        }
    }
}

/// The tenant of a caller who has not signed in: the header's, or the only one there is.
#[derive(Debug)]
pub(crate) struct NamedTenant(pub(crate) TenantId);

impl FromRequestParts<App> for NamedTenant {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let missing = || ApiError::bad_field("tenant-id", Text::TenantMissing);
        let tenants = store::tenants(&app.db).await?;
        match named_tenant(&parts.headers)? {
            Some(named) if tenants.contains(&named) => Ok(Self(named)),
            None if tenants.len() == 1 => Ok(Self(tenants[0])),
            _ => Err(missing()),
        }
    }
}

/// Whether the caller is a browser, which gets its token as a cookie.
#[derive(Debug)]
pub(crate) struct WebClient(pub(crate) bool);

impl FromRequestParts<App> for WebClient {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let web = parts.headers.get("x-client").is_some_and(|v| v.as_bytes().eq_ignore_ascii_case(b"web"));
        if web {
            // Another site must not be able to sign a visitor in as somebody else.
            require_same_origin(app, &parts.headers)?;
        }
        Ok(Self(web))
    }
}

fn named_tenant(headers: &HeaderMap) -> Result<Option<TenantId>, ApiError> {
    let mut named = headers.get_all("tenant-id").iter();
    let wrong = || ApiError::bad_field("tenant-id", Text::BadField);
    match (named.next(), named.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| wrong())?;
            TenantId::parse(text).map(Some).map_err(|_| wrong())
        }
        (Some(_), Some(_)) => Err(wrong()),
    }
}

fn bearer(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim().to_owned())
}

/// The session's cookie, of the one name that this server gives out: another site could have set the other.
fn cookie(headers: &HeaderMap, secure: bool) -> Option<String> {
    headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .find(|(name, _)| *name == cookie_name(secure))
        .map(|(_, value)| value.to_owned())
}

/// A browser's write must come from our own page: its `Origin` is the host that was asked, or the public address.
pub(crate) fn require_same_origin(app: &App, headers: &HeaderMap) -> Result<(), ApiError> {
    let text = |name| headers.get(name).and_then(|v| v.to_str().ok());
    let origin = text(header::ORIGIN).unwrap_or_default();
    let host_of_origin = origin.split_once("://").map(|(_, host)| host);
    let asked = host_of_origin.is_some_and(|host| text(header::HOST).is_some_and(|h| h.eq_ignore_ascii_case(host)));
    let public = app.config.public_url.as_deref().is_some_and(|url| origin_of(url).eq_ignore_ascii_case(origin));
    if asked || public { Ok(()) } else { Err(ApiError::forbidden(Text::OtherOrigin)) }
}

/// Scheme, host and port of an address.
fn origin_of(url: &str) -> &str {
    let start = url.find("://").map_or(0, |i| i + 3);
    let end = url[start..].find('/').map_or(url.len(), |i| start + i);
    &url[..end]
}
