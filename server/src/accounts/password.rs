//! `POST /api/auth/login`: user name and password (argon2id).

use super::{session, store};
use crate::app::App;
use crate::codes::{AttemptId, Place, WindowKey, later};
use crate::http::error::ApiError;
use crate::http::extract::Body;
use crate::http::session::{NamedTenant, WebClient};
use crate::sms::verify::away;
use crate::text::Text;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use axum::extract::State;
use axum::response::Response;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::sync::Semaphore;
use wire::api::{LoginRequest, SignedIn};
use wire::{Envelope, ErrorCode, Secret};

/// Shorter passwords are refused.
pub(crate) const MIN_CHARS: usize = 8;
/// Longer ones are, too: hashing must not become a way to keep the server busy.
pub(crate) const MAX_BYTES: usize = 1024;

/// Each hash takes 19 MiB and a core for a while.
static HASHERS: Semaphore = Semaphore::const_new(2);

/// Checked against where the name is unknown, so that the time does not tell.
static NOBODY: LazyLock<String> = LazyLock::new(|| hash_with_salt("nobody", &[0; 16]).unwrap_or_default());

fn hash_with_salt(password: &str, salt: &[u8; 16]) -> anyhow::Result<String> {
    let hash = Argon2::default().hash_password_with_salt(password.as_bytes(), salt);
    Ok(hash.map_err(|e| anyhow::anyhow!("the password cannot be hashed: {e}"))?.to_string())
}

/// What the database keeps of a password: argon2id as a PHC string.
///
/// # Errors
/// Where it is too short or too long.
pub(crate) fn hash(app: &App, password: &Secret) -> anyhow::Result<String> {
    let text = password.expose();
    anyhow::ensure!(text.chars().count() >= MIN_CHARS, "a password has {MIN_CHARS} characters or more");
    anyhow::ensure!(text.len() <= MAX_BYTES, "a password has at most {MAX_BYTES} bytes");
    let mut salt = [0; 16];
    app.random.fill(&mut salt);
    hash_with_salt(text, &salt)
}

/// The same beside the threads that answer; `None` where it is too short or too long.
pub(super) async fn hash_for_request(app: &App, password: &Secret) -> Option<String> {
    let (app, password) = (app.clone(), password.clone());
    let _permit = HASHERS.acquire().await.ok()?;
    tokio::task::spawn_blocking(move || hash(&app, &password).ok()).await.ok()?
}

/// Wrong passwords of an account are counted over this.
const WRONG_SPAN: Duration = Duration::from_secs(600);

/// So many are answered; then 1429, the right one too.
const WRONG: u32 = 5;

/// Signs in by user name and password; visitors and guides by their number as the user name, too.
#[utoipa::path(post, path = "/api/auth/login", tag = "accounts", request_body = LoginRequest,
    responses((status = 200, body = Envelope<SignedIn>)))]
pub(crate) async fn login(
    State(app): State<App>,
    NamedTenant(tenant): NamedTenant,
    WebClient(web): WebClient,
    Body(request): Body<LoginRequest>,
) -> Result<Response, ApiError> {
    let wrong = || ApiError::unauthenticated(Text::WrongPassword);
    let username = wire::trim(&request.username);
    let known = store::account_by_username(&app.db, tenant, username).await?;
    let (account, hash) = known.map_or((None, None), |(account, hash)| (Some(account), hash));
    // By whatever name an account is meant; a name that nobody has is counted as well, or the limit would tell.
    let whom = match &account {
        Some(account) => app.keys.digests.hex(&[b"account", &account.id.to_be_bytes()]),
        None => app.keys.digests.hex(&[b"username", &tenant.0.to_be_bytes(), username.to_lowercase().as_bytes()]),
    };
    let window = WindowKey::named(&app.config.code_store.prefix, "auth:password", whom);
    let attempt = AttemptId::new(uuid::Uuid::new_v4().simple().to_string());
    // The place is taken before the look, so that no more are looked at at once than there are places.
    if let Place::Full(wait) = app.codes.take(&window, &attempt, WRONG, WRONG_SPAN).await.map_err(away)? {
        return Err(ApiError::retry_after(ErrorCode::TooManyRequests, wait).saying(Text::PasswordTries));
    }
    let checkable = hash.is_some();
    let matches = verify(request.password, hash.unwrap_or_else(|| NOBODY.clone())).await;
    let account = account.filter(|_| checkable && matches).ok_or_else(wrong)?;
    later::give_back(&app.codes, &window, &attempt).await;

    let mut tx = app.db.begin().await?;
    let signed_in = session::open(&app, &mut tx, &account).await?;
    tx.commit().await?;
    tracing::info!(account.id = account.id, "signed in by password");
    Ok(session::hand_over(&app, web, signed_in))
}

async fn verify(password: Secret, hash: String) -> bool {
    if password.expose().len() > MAX_BYTES {
        return false;
    }
    let Ok(_permit) = HASHERS.acquire().await else { return false };
    let check = move || Argon2::default().verify_password(password.expose().as_bytes(), hash.as_str()).is_ok();
    tokio::task::spawn_blocking(check).await.unwrap_or(false)
}
