//! `POST /api/auth/login`: user name and password (argon2id).

use super::{session, store};
use crate::app::App;
use crate::codes::{AttemptId, Place, WindowKey, later};
use crate::db::transact;
use crate::http::error::ApiError;
use crate::http::extract::{Body, ClientAddress};
use crate::http::session::{NamedTenant, WebClient};
use crate::sms::verify::{WRONG_SPAN, away, wrong_ones_of};
use crate::text::Text;
use argon2::{Argon2, PasswordHasher, PasswordVerifier};
use axum::extract::State;
use axum::response::Response;
use std::sync::LazyLock;
use tokio::sync::Semaphore;
use wire::api::{LoginRequest, SignedIn};
use wire::{Envelope, ErrorCode, Mobile, Secret};

/// Shorter passwords are refused.
pub(crate) const MIN_CHARS: usize = 8;
/// Longer ones are, too: hashing must not become a way to keep the server busy.
pub(crate) const MAX_BYTES: usize = 1024;

/// Each hash takes 19 MiB and a core for a while.
static HASHERS: Semaphore = Semaphore::const_new(2);

/// Hashes beside the threads that answer. Its place lasts as long as the work, which goes on when its caller hangs up.
async fn hashing<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let place = HASHERS.acquire().await.ok()?;
    let work = move || {
        let _place = place;
        work()
    };
    tokio::task::spawn_blocking(work).await.ok()
}

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
    anyhow::ensure!(fits(password), "a password has {MIN_CHARS} characters or more, and at most {MAX_BYTES} bytes");
    let mut salt = [0; 16];
    app.random.fill(&mut salt);
    hash_with_salt(password.expose(), &salt)
}

/// Whether it is neither too short nor too long.
pub(super) fn fits(password: &Secret) -> bool {
    password.expose().chars().count() >= MIN_CHARS && password.expose().len() <= MAX_BYTES
}

/// [`hash`] beside the threads that answer.
///
/// # Errors
/// Where it does not fit.
pub(super) async fn hash_for_request(app: &App, password: &Secret) -> Result<String, ApiError> {
    let (app, password) = (app.clone(), password.clone());
    hashing(move || hash(&app, &password).ok()).await.flatten().ok_or_else(|| ErrorCode::Internal.into())
}

/// So many are answered; then 1429, the right one too.
const WRONG: u32 = 5;

/// Signs in by user name and password; visitors and guides by their number as the user name, too.
#[utoipa::path(post, path = "/api/auth/login", tag = "accounts", request_body = LoginRequest,
    responses((status = 200, body = Envelope<SignedIn>)))]
pub(crate) async fn login(
    State(app): State<App>,
    NamedTenant(tenant): NamedTenant,
    WebClient(web): WebClient,
    ClientAddress(address): ClientAddress,
    Body(request): Body<LoginRequest>,
) -> Result<Response, ApiError> {
    let wrong = || ApiError::unauthenticated(Text::WrongPassword);
    let username = wire::trim(&request.username);
    let known = store::account_by_username(&app.db, tenant, username).await?;
    let (account, hash) = known.map_or((None, None), |(account, hash)| (Some(account), hash));
    let checkable = hash.is_some();
    // One name however it is spelt, whether or not anybody has it.
    let name = Mobile::parse(username).map_or_else(|_| username.to_owned(), |mobile| mobile.expose().to_owned());
    let named = [&tenant.0.to_be_bytes()[..], name.as_bytes()];
    let window = |whom: String| WindowKey::named(&app.config.code_store.prefix, "auth:password", whom);
    let by_name = window(app.keys.digests.hex(&[&b"username"[..], named[0], named[1]]));
    // Who has two names has no more tries for that. A name that nobody has is counted twice as well: it takes as long.
    let by_account = window(match &account {
        Some(account) => app.keys.digests.hex(&[b"account", &account.id.to_be_bytes()]),
        None => app.keys.digests.hex(&[&b"nobody"[..], named[0], named[1]]),
    });
    let mut places = vec![(by_name, WRONG)];
    if let Some(address) = address {
        let rules = app.rules(tenant).await?;
        places.insert(0, wrong_ones_of(&app, &rules, address));
    }
    let attempt = AttemptId::new(uuid::Uuid::new_v4().simple().to_string());
    // The places are taken before the look, so that no more are looked at at once than there are places.
    let asked = places.iter().map(|(window, limit)| (window, *limit, WRONG_SPAN));
    if let Some((_, wait)) = later::take_all(&app.codes, asked, &attempt).await.map_err(away)? {
        return Err(ApiError::retry_after(ErrorCode::TooManyRequests, wait).saying(Text::PasswordTries));
    }
    let of_account = app.codes.take(&by_account, &attempt, WRONG, WRONG_SPAN).await;
    places.push((by_account, WRONG));
    let give_back = async || {
        for (window, _) in &places {
            later::give_back(&app.codes, window, &attempt).await;
        }
    };
    let compares = match of_account {
        Ok(Place::Taken) => true,
        // By another name of the account. To say so would tell that both names are one's: it is a wrong password.
        Ok(Place::Full(_)) => false,
        Err(error) => {
            give_back().await;
            return Err(away(error));
        }
    };
    let hash = hash.unwrap_or_else(|| NOBODY.clone());
    let matches = verify(request.password, hash.clone()).await;
    let account = account.filter(|_| checkable && matches && compares).ok_or_else(wrong)?;
    give_back().await;

    let signed_in = transact(async || {
        let mut tx = app.db.begin().await?;
        // Hashing takes its time: a password that was changed meanwhile opens nothing any more.
        let Some(account) = store::account_with_password(&app.db, &mut tx, &account, &hash).await? else {
            return Ok(None);
        };
        let signed_in = session::open(&app, &mut tx, &account).await?;
        tx.commit().await?;
        Ok(Some(signed_in))
    });
    let signed_in = signed_in.await?.ok_or_else(wrong)?;
    tracing::info!(account.id = account.id, "signed in by password");
    Ok(session::hand_over(&app, web, signed_in))
}

async fn verify(password: Secret, hash: String) -> bool {
    if password.expose().len() > MAX_BYTES {
        return false;
    }
    let check = move || Argon2::default().verify_password(password.expose().as_bytes(), hash.as_str()).is_ok();
    hashing(check).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Who hangs up leaves their hash running: were its place free at once, any number could be started.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_hash_keeps_its_place_when_its_caller_hangs_up() {
        let mut ends = Vec::new();
        for _ in 0..2 {
            let (end, ended) = mpsc::channel::<()>();
            let (begin, begun) = tokio::sync::oneshot::channel();
            let caller = tokio::spawn(hashing(move || {
                let _ = begin.send(());
                let _ = ended.recv();
            }));
            begun.await.unwrap();
            caller.abort();
            assert!(caller.await.unwrap_err().is_cancelled());
            ends.push(end);
        }
        assert_eq!(HASHERS.available_permits(), 0);
        drop(ends);
        assert!(hashing(|| ()).await.is_some());
    }
}
