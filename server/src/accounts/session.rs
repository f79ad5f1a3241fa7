//! Sessions: opaque tokens, kept as their SHA-256 alone, revoked by deleting the row.

use super::store;
use crate::app::{App, token_hash};
use crate::db::{DbError, Tx};
use crate::http::error::{Answer, ApiResult};
use crate::http::session::cookie_name;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use std::time::Duration;
use wire::api::{Role, SignedIn};
use wire::{Envelope, Secret, TenantId};

const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// No request waits longer for the note that its session was used.
const TOUCH_LIMIT: Duration = Duration::from_millis(500);

/// Who calls, and for how long they may.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    /// The tenant that the session belongs to.
    pub(crate) tenant: TenantId,
    /// The account's id.
    pub(crate) account_id: i64,
    /// The account's name.
    pub(crate) name: String,
    /// What the account may be, as of now.
    pub(crate) roles: Vec<Role>,
    /// When the session ends at the latest (Unix ms).
    pub(crate) expires_at: i64,
    token_hash: String,
}

impl Session {
    /// The hash of its token.
    pub(crate) fn token_hash(&self) -> &str {
        &self.token_hash
    }
}

/// How long a session lasts at the most, and how long unused (ms); with several roles the shortest.
fn lives(roles: &[Role]) -> (i64, i64) {
    let one = |role: &Role| match role {
        Role::Visitor => (30 * DAY, 7 * DAY),
        Role::Guide => (12 * HOUR, 2 * HOUR),
        Role::Admin => (8 * HOUR, 30 * MINUTE),
    };
    roles.iter().map(one).reduce(|a, b| (a.0.min(b.0), a.1.min(b.1))).unwrap_or((0, 0))
}

/// No session lives unused for longer (ms).
pub(crate) fn longest_idle() -> i64 {
    [Role::Visitor, Role::Guide, Role::Admin].iter().map(|role| lives(std::slice::from_ref(role)).1).max().unwrap_or(0)
}

/// The session of a token; `None` where there is none, or it has ended, absolutely or from being idle.
pub(crate) async fn find(app: &App, token: &str) -> Result<Option<Session>, DbError> {
    let hash = token_hash(token);
    let Some(row) = store::session(&app.db, &hash).await? else { return Ok(None) };
    let now = app.clock.now_ms();
    let (life, idle) = lives(&row.account.roles);
    // Roles that came since the session began shorten it.
    let expires_at = row.expires_at.min(row.created_at + life);
    if now >= expires_at || now - row.last_used_at >= idle {
        return Ok(None);
    }
    if now - row.last_used_at >= MINUTE {
        // Should it not be noted, the session ends sooner; that must neither stop nor hold up what a reader asks for.
        match tokio::time::timeout(TOUCH_LIMIT, store::touch_session(&app.db, &hash, now)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the use of a session could not be noted"),
            Err(_) => tracing::warn!("the use of a session could not be noted in time"),
        }
    }
    Ok(Some(Session {
        tenant: row.account.tenant,
        account_id: row.account.id,
        name: row.account.name,
        roles: row.account.roles,
        expires_at,
        token_hash: hash,
    }))
}

/// Makes a session within a transaction; the token leaves only in the returned answer.
pub(crate) async fn open(app: &App, tx: &mut Tx, account: &store::Account) -> Result<SignedIn, DbError> {
    let token = app.new_token();
    let now = app.clock.now_ms();
    let expires_at = now + lives(&account.roles).0;
    store::insert_session(tx, &token_hash(token.expose()), account, now, expires_at).await?;
    Ok(SignedIn { token: Some(token), expires_at, roles: account.roles.clone(), name: account.name.clone() })
}

/// Hands a new session over: in the body for apps, as a cookie for browsers.
pub(crate) fn hand_over(app: &App, web: bool, mut signed_in: SignedIn) -> Response {
    let cookie = if web {
        signed_in.token.take().and_then(|token| set_cookie(app, Some((&token, signed_in.expires_at))))
    } else {
        None
    };
    let mut response = Answer(signed_in).into_response();
    if let Some(cookie) = cookie {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    response
}

/// The cookie of a token that ends at a time, or the one that takes it away.
fn set_cookie(app: &App, token: Option<(&Secret, i64)>) -> Option<HeaderValue> {
    let secure = is_secure(app);
    // As long as the session at the most: it must outlive the browser's being closed.
    let (value, age) = token.map_or(("", 0), |(token, end)| (token.expose(), (end - app.clock.now_ms()) / 1000));
    let flags = if secure { "; Secure" } else { "" };
    let text = format!("{}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={age}{flags}", cookie_name(secure));
    let mut header = HeaderValue::from_str(&text).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// Whether the cookie is one for HTTPS alone.
pub(crate) fn is_secure(app: &App) -> bool {
    !plain_loopback(app)
}

/// Whether the pages come over plain HTTP from this machine: the one case in which a cookie may go without `Secure`.
fn plain_loopback(app: &App) -> bool {
    match app.config.public_url.as_deref().map(|url| url.split_once("://")) {
        Some(Some(("http", rest))) => {
            let host = rest.split('/').next().unwrap_or_default();
            let host = host.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).map_or(host, |(host, _)| host);
            matches!(host, "127.0.0.1" | "localhost" | "[::1]")
        }
        Some(_) => false,
        None => app.config.listen.ip().is_loopback(),
    }
}

/// Ends the caller's session.
#[utoipa::path(post, path = "/api/auth/logout", tag = "accounts", responses((status = 200, body = Envelope<bool>)))]
pub(crate) async fn logout(
    axum::extract::State(app): axum::extract::State<App>,
    session: Session,
) -> Result<Response, crate::http::error::ApiError> {
    store::delete_session(&app.db, &session.token_hash).await?;
    let answer: ApiResult<bool> = Ok(Answer(true));
    let mut response = answer.into_response();
    if let Some(cookie) = set_cookie(&app, None) {
        response.headers_mut().insert(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_several_roles_the_shortest_life_holds() {
        assert_eq!(lives(&[Role::Visitor]), (30 * DAY, 7 * DAY));
        assert_eq!(lives(&[Role::Visitor, Role::Guide]), (12 * HOUR, 2 * HOUR));
        assert_eq!(lives(&[Role::Guide, Role::Admin, Role::Visitor]), (8 * HOUR, 30 * MINUTE));
        assert_eq!(lives(&[]), (0, 0));
    }
}
