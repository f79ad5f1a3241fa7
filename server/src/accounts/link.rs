//! One-time sign-in links: how the demo's guides and visitors sign in.

use super::{session, store};
use crate::app::{App, token_hash};
use crate::http::error::ApiError;
use crate::http::extract::Body;
use crate::http::session::WebClient;
use crate::text::Text;
use axum::extract::State;
use axum::response::Response;
use wire::api::{SignInLinkRequest, SignedIn};
use wire::{Envelope, Secret};

/// How long a link is good for (ms).
const LIFE: i64 = 24 * 60 * 60 * 1000;

/// Makes a link's token for an account: good once. The token belongs into a fragment, which no server ever sees.
///
/// # Errors
/// Where the database is away.
pub async fn make(app: &App, account: &store::Account) -> anyhow::Result<Secret> {
    let token = app.new_token();
    let mut tx = app.db.begin().await?;
    let expires_at = app.clock.now_ms() + LIFE;
    store::insert_sign_in_link(&mut tx, &token_hash(token.expose()), account, expires_at).await?;
    tx.commit().await?;
    Ok(token)
}

/// Signs in by the token of a one-time link.
#[utoipa::path(post, path = "/api/auth/sign-in-link", tag = "accounts", request_body = SignInLinkRequest,
    responses((status = 200, body = Envelope<SignedIn>)))]
pub(crate) async fn sign_in_by_link(
    State(app): State<App>,
    WebClient(web): WebClient,
    Body(request): Body<SignInLinkRequest>,
) -> Result<Response, ApiError> {
    let hash = token_hash(wire::trim(request.token.expose()));
    let mut tx = app.db.begin().await?;
    let account = store::use_sign_in_link(&mut tx, &hash, app.clock.now_ms())
        .await?
        .ok_or_else(|| ApiError::unauthenticated(Text::LinkUsed))?;
    let signed_in = session::open(&app, &mut tx, &account).await?;
    tx.commit().await?;
    tracing::info!(account.id = account.id, "signed in by link");
    Ok(session::hand_over(&app, web, signed_in))
}
