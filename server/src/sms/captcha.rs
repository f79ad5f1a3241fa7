//! `POST /api/captcha`: a proof-of-work challenge as ALTCHA defines it, bound to a number and a scene, good once.
//!
//! The challenge is the SHA-256 of a salt and a secret number; whoever has tried the numbers may send. The salt carries
//! until when it counts and for whom, and ends with `&`, so that no digit of the number can be read as a part of it.

use super::channel::Recipient;
use super::send::Asked;
use crate::accounts::session::Session;
use crate::app::{App, AppState};
use crate::codes::WindowKey;
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::Body;
use crate::http::session::NamedTenant;
use crate::signature::hex;
use axum::extract::State;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use std::time::Duration;
use subtle::ConstantTimeEq;
use wire::accounts::{CaptchaChallenge, CaptchaRequest, CaptchaSolution};
use wire::{Envelope, Secret, TenantId};

/// How long a challenge counts.
const LIFE: Duration = Duration::from_secs(600);

/// A browser tries about half as many numbers, which takes it a second or less.
const MAX_NUMBER: u32 = 100_000;

/// Longer tokens are none of ours.
const MAX_TOKEN: usize = 2048;

const ALGORITHM: &str = "SHA-256";

/// A challenge for a number and a scene.
#[utoipa::path(post, path = "/api/captcha", tag = "accounts", request_body = CaptchaRequest,
    responses((status = 200, body = Envelope<CaptchaChallenge>)))]
pub(crate) async fn challenge(
    State(app): State<App>,
    tenant: Result<NamedTenant, ApiError>,
    session: Result<Session, ApiError>,
    Body(request): Body<CaptchaRequest>,
) -> ApiResult<CaptchaChallenge> {
    let asked = Asked::read(&app, request.mobile.as_ref(), &request.scene, tenant, session).await?;
    let mut salt = [0; 12];
    app.random.fill(&mut salt);
    let number = app.random.number(0..=MAX_NUMBER);
    Ok(Answer(make(&app, asked.tenant, &asked.to, &request.scene, &salt, number)))
}

fn make(app: &AppState, tenant: TenantId, to: &Recipient, scene: &str, random: &[u8], number: u32) -> CaptchaChallenge {
    let expires = app.clock.now_ms() / 1000 + i64::try_from(LIFE.as_secs()).unwrap_or(0);
    let salt = format!("{}?expires={expires}&for={}&", hex(random), bound_to(app, tenant, to, scene));
    let challenge = hex(&Sha256::digest(format!("{salt}{number}")));
    let signature = app.keys.captcha.hex(&[b"challenge", challenge.as_bytes()]);
    CaptchaChallenge { algorithm: ALGORITHM.to_owned(), challenge, maxnumber: MAX_NUMBER, salt, signature }
}

fn bound_to(app: &AppState, tenant: TenantId, to: &Recipient, scene: &str) -> String {
    app.keys.captcha.hex(&[b"for", app.recipient_digest(tenant, to).as_bytes(), scene.as_bytes()])
}

/// The window in which a solved challenge has one place, and for how long; `None` where it is not solved, has run out, or
/// is for another number or scene.
pub(super) fn solved(
    app: &AppState,
    tenant: TenantId,
    to: &Recipient,
    scene: &str,
    token: &Secret,
) -> Option<(WindowKey, Duration)> {
    let token = wire::trim(token.expose());
    if token.len() > MAX_TOKEN {
        return None;
    }
    let solution: CaptchaSolution = serde_json::from_slice(&STANDARD.decode(token).ok()?).ok()?;
    let signature = app.keys.captcha.hex(&[b"challenge", solution.challenge.as_bytes()]);
    let same = |a: &str, b: &str| bool::from(a.as_bytes().ct_eq(b.as_bytes()));
    let right = solution.algorithm == ALGORITHM
        && same(&signature, &solution.signature)
        && same(&hex(&Sha256::digest(format!("{}{}", solution.salt, solution.number))), &solution.challenge);
    // Whatever was hashed with the right signature is a salt that we made, whole.
    let parts = solution.salt.strip_suffix('&')?.split_once('?')?.1;
    let part = |name: &str| parts.split('&').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    let expires: i64 = part("expires")?.parse().ok()?;
    let alive = app.clock.now_ms() / 1000 < expires;
    let ours = same(part("for")?, &bound_to(app, tenant, to, scene));
    (right && alive && ours)
        .then(|| (WindowKey::named(&app.config.code_store.prefix, "sms:captcha", &solution.challenge), LIFE))
}
