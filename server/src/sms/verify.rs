//! The check of an SMS code, inside the call that uses it: never a call of its own.

use super::channel::Recipient;
use super::store::{self, UseRow};
use crate::accounts::session::Session;
use crate::accounts::store::mobile_of;
use crate::app::App;
use crate::codes::sms::{Try, TryStep};
use crate::codes::{AttemptId, Place, WindowKey, later};
use crate::db::{DbError, Tx};
use crate::http::error::ApiError;
use crate::ops::this_server;
use crate::redemption::counted_as;
use crate::settings::Rules;
use crate::text::Text;
use std::net::IpAddr;
use std::time::Duration;
use wire::{ErrorCode, RequestId, SmsCode, TenantId};

/// How long a repeat of the same attempt succeeds again: a hand that taps twice.
const REPEATABLE: Duration = Duration::from_secs(10);

/// An address's wrong codes and passwords are counted over this, and an account's wrong passwords.
pub(crate) const WRONG_SPAN: Duration = Duration::from_secs(600);

/// Wrong codes that an address of the venue's own networks has in that time.
const VENUE_WRONG: u32 = 600;

/// A code that somebody has typed.
#[derive(Debug)]
pub(crate) struct Typed<'a> {
    pub(crate) tenant: TenantId,
    pub(crate) to: &'a Recipient,
    pub(crate) scene: &'a str,
    pub(crate) code: &'a SmsCode,
    /// The caller's name for this attempt.
    pub(crate) request_id: Option<&'a RequestId>,
    /// Whose wrong codes are counted; none where a machine asks.
    pub(crate) address: Option<IpAddr>,
}

/// A code that was right, and that the code store has used up. It counts once [`Used::record`] has said so.
#[derive(Debug)]
pub(crate) struct Used {
    tenant: TenantId,
    scene: String,
    send: String,
    attempt: String,
    /// When it was checked (Unix ms).
    checked_at: i64,
    /// So long after the use a repeat of the attempt may find it recorded.
    repeatable: Option<Duration>,
}

impl Used {
    /// Records the use, in the transaction of what the code is used for; `false` where it has been used before. So a code
    /// store that falls back to an older state cannot bring a used code back to life.
    pub(crate) async fn record(&self, app: &App, tx: &mut Tx) -> Result<bool, DbError> {
        let row = UseRow {
            tenant: self.tenant,
            send: &self.send,
            scene: &self.scene,
            attempt: &self.attempt,
            at: app.clock.now_ms(),
        };
        let before = store::insert_use(tx, &row).await?;
        // The store has counted these seconds as well, unless it has fallen back.
        let in_time = |at: i64| {
            let late = Duration::from_millis(u64::try_from(self.checked_at.saturating_sub(at)).unwrap_or_default());
            self.repeatable.is_some_and(|limit| late <= limit)
        };
        let counts = before.is_none_or(|(attempt, at)| attempt == self.attempt && in_time(at));
        if !counts {
            let (scene, send, server) = (&self.scene, &self.send, this_server());
            tracing::warn!(tenant.id = self.tenant.0, scene, send.id = send, server, "an SMS code was used before");
        }
        Ok(counts)
    }
}

/// Checks a code: 4004 with the tries that are left, 4005 where there is none, 4006 where the number is locked, 1429 where
/// the address has had too many wrong ones. Right is said once.
pub(crate) async fn check(app: &App, typed: &Typed<'_>) -> Result<Used, ApiError> {
    check_repeatable(app, typed, REPEATABLE, None).await
}

/// The same, where a right code stays right for `repeatable` in the hands of `holder`.
async fn check_repeatable(
    app: &App,
    typed: &Typed<'_>,
    repeatable: Duration,
    holder: Option<&str>,
) -> Result<Used, ApiError> {
    let rules = app.rules(typed.tenant).await?;
    let rule = rules.sms.scene(typed.scene).ok_or(ErrorCode::SmsSceneInvalid)?;
    let digest = app.recipient_digest(typed.tenant, typed.to);
    let key = app.sms_key(typed.scene, &digest);
    // The attempt of a request id is the same however often it comes, with the same code; it tells nothing of either.
    let name = match (typed.request_id, holder) {
        (Some(id), _) => vec!["request", typed.scene, &digest, id.as_str(), typed.code.expose()],
        (None, Some(holder)) => vec!["holder", typed.scene, &digest, holder, typed.code.expose()],
        (None, None) => vec![],
    };
    let attempt = if name.is_empty() {
        app.keys.digests.hex(&[b"attempt", uuid::Uuid::new_v4().as_bytes()])
    } else {
        app.keys.digests.hex(&name.iter().map(|part| part.as_bytes()).collect::<Vec<_>>())
    };
    let attempt_id = AttemptId::new(attempt.clone());
    let mut blind = [0; 16];
    app.random.fill(&mut blind);

    let place = typed.address.map(|address| {
        let (window, limit) = wrong_ones_of(app, &rules, address);
        (window, limit, AttemptId::new(uuid::Uuid::new_v4().simple().to_string()))
    });
    // The place is taken before the look, so that no more are looked at at once than there are places.
    if let Some((window, limit, place)) = &place
        && let Place::Full(wait) = app.codes.take(window, place, *limit, WRONG_SPAN).await.map_err(away)?
    {
        app.metrics.tried(typed.scene, "limited");
        return Err(ApiError::retry_after(ErrorCode::TooManyRequests, wait));
    }
    let tried = Try { attempt: &attempt_id, code: typed.code, blind, repeatable, rule };
    let checked_at = app.clock.now_ms();
    let step = app.codes.sms_try(&key, &tried).await;
    if !matches!(step, Ok(TryStep::Wrong(_)))
        && let Some((window, _, place)) = place
    {
        later::give_back(&app.codes, &window, &place).await;
    }
    let step = step.map_err(away)?;
    let outcome = match &step {
        TryStep::Right(_) => "right",
        TryStep::Wrong(_) => "wrong",
        TryStep::None => "expired",
        TryStep::Locked(_) => "locked",
    };
    app.metrics.tried(typed.scene, outcome);
    log(typed, &step);
    match step {
        TryStep::Right(send) => Ok(Used {
            tenant: typed.tenant,
            scene: typed.scene.to_owned(),
            send,
            attempt,
            checked_at,
            repeatable: typed.request_id.is_some().then_some(repeatable),
        }),
        TryStep::Wrong(left) => Err(ApiError::sms_code_wrong(left)),
        TryStep::None => Err(ErrorCode::SmsCodeExpired.into()),
        TryStep::Locked(wait) => Err(ApiError::retry_after(ErrorCode::SmsCodeLocked, wait)),
    }
}

/// Where an address's wrong codes and passwords are counted, and how many it has.
pub(crate) fn wrong_ones_of(app: &App, rules: &Rules, address: IpAddr) -> (WindowKey, u32) {
    let venue = app.config.limits.sms.venue_networks.iter().any(|network| network.contains(address));
    let limit = if venue { rules.sms.wrong.max(VENUE_WRONG) } else { rules.sms.wrong };
    (WindowKey::named(&app.config.code_store.prefix, "sms:wrong", counted_as(address)), limit)
}

/// Every outcome with scene, number's end and server, as a send's line has them: where a right code is not taken, whoever
/// looks for the cause lays the two beside each other. Never what was typed.
fn log(typed: &Typed<'_>, step: &TryStep) {
    let (tenant, scene, to, server) = (typed.tenant.0, typed.scene, typed.to, this_server());
    match step {
        TryStep::Right(send) => {
            tracing::info!(tenant.id = tenant, scene, ?to, send.id = send, server, "a right SMS code");
        }
        TryStep::Wrong(left) => tracing::info!(tenant.id = tenant, scene, ?to, left, server, "a wrong SMS code"),
        TryStep::None => {
            tracing::info!(
                tenant.id = tenant,
                scene,
                ?to,
                server,
                "no SMS code is alive: none was sent, it ran out or was used"
            );
        }
        TryStep::Locked(wait) => {
            let seconds = wait.as_secs();
            tracing::info!(tenant.id = tenant, scene, ?to, seconds, server, "an SMS code was not looked at: locked");
        }
    }
}

/// The store is away: said in the words of SMS codes.
pub(crate) fn away(error: crate::codes::CodesAway) -> ApiError {
    ApiError::from(error).saying(Text::SmsCodesAway)
}

/// Checks a code of the scene `confirm`, which went to the number of the caller's own account. Where the call needs another
/// code besides, a right one stays right for this session while the other is corrected; it is used once all the same.
pub(crate) async fn check_confirmation(
    app: &App,
    session: &Session,
    code: &SmsCode,
    address: Option<IpAddr>,
    while_corrected: Duration,
) -> Result<Used, ApiError> {
    let mobile = mobile_of(&app.db, session.tenant, session.account_id).await?;
    let mobile = mobile.ok_or_else(|| ApiError::forbidden_because(Text::NoMobile, "no_mobile"))?;
    let to = Recipient::Mobile(mobile);
    let typed = Typed { tenant: session.tenant, to: &to, scene: "confirm", code, request_id: None, address };
    if while_corrected.is_zero() {
        return check(app, &typed).await;
    }
    check_repeatable(app, &typed, while_corrected, Some(session.token_hash())).await
}
