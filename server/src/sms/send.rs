//! `POST /api/sms/send`: a code to a number. Every gate, in order.

use super::captcha;
use super::channel::{Message, Outcome, Recipient, Report, Via as Carried};
use super::number::shown;
use super::store::{self, NewSendRow};
use super::verify::away;
use crate::accounts::session::{self, Session};
use crate::accounts::store::mobile_of;
use crate::app::{App, token_hash};
use crate::codes::later::{self, until_done_twice};
use crate::codes::sms::{NewSend, SceneRule, SendStep, SmsKey, Undo};
use crate::codes::{AttemptId, Place, WindowKey};
use crate::config::SCENES;
use crate::db::transact;
use crate::http::error::{Answer, ApiError};
use crate::http::extract::{self, Body, ClientAddress};
use crate::http::session::{NamedTenant, WebClient};
use crate::ops::{alerts, this_server};
use crate::redemption::counted_as;
use crate::settings::Rules;
use crate::text::Text;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use wire::accounts::{SendSmsRequest, SmsSent, Via};
use wire::api::AlertKind;
use wire::{Envelope, ErrorCode, Mobile, Secret, SmsCode, TenantId};

const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

/// Sends from an address of the venue's own networks in an hour that go without a captcha.
const VENUE_CAPTCHA_AFTER: u32 = 100;

/// Sends a code.
#[utoipa::path(post, path = "/api/sms/send", tag = "accounts", request_body = SendSmsRequest,
    responses((status = 200, body = Envelope<SmsSent>)))]
pub(crate) async fn send(
    State(app): State<App>,
    ClientAddress(address): ClientAddress,
    tenant: Result<NamedTenant, ApiError>,
    session: Result<Session, ApiError>,
    WebClient(web): WebClient,
    KnownBrowser(known): KnownBrowser,
    Body(request): Body<SendSmsRequest>,
) -> Result<Response, ApiError> {
    let asked = Asked::read(&app, request.mobile.as_ref(), &request.scene, tenant, session).await;
    let asked = asked.inspect_err(|error| app.metrics.refused(&request.scene, error))?;
    let fresh = (web && known.is_none()).then(|| app.new_token());
    let browser = known.or_else(|| fresh.as_ref().map(|id| id.expose().to_owned()));
    let caller = Caller { address, browser: browser.map(|id| token_hash(&id)), captcha: request.captcha_token };
    let sending = Sending::new(&app, asked, request.scene, request.via.unwrap_or_default(), Some(caller)).await?;
    let sent = app.see_through(async move { sending.run().await }).await;
    let mut response = sent.map(Answer).into_response();
    if let Some(cookie) = fresh.and_then(|id| browser_cookie(&app, &id)) {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    Ok(response)
}

/// For whom a code is asked for.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) tenant: TenantId,
    pub(super) to: Recipient,
}

impl Asked {
    /// Format and prefix, then the scene, then the session that some scenes need.
    pub(super) async fn read(
        app: &App,
        mobile: Option<&Secret>,
        scene: &str,
        tenant: Result<NamedTenant, ApiError>,
        session: Result<Session, ApiError>,
    ) -> Result<Self, ApiError> {
        let mobile = mobile.map(|mobile| allowed_mobile(app, mobile)).transpose()?;
        if !SCENES.contains(&scene) {
            return Err(ErrorCode::SmsSceneInvalid.into());
        }
        let missing = || ApiError::bad_field("mobile", Text::BadField);
        match scene {
            "confirm" => {
                let session = session?;
                let own = mobile_of(&app.db, session.tenant, session.account_id).await?;
                let own = own.ok_or_else(|| ApiError::forbidden_because(Text::NoMobile, "no_mobile"))?;
                let own = allowed(app, own)?;
                if mobile.is_some_and(|mobile| own != mobile) {
                    return Err(ApiError::forbidden(Text::ConfirmOwnNumber));
                }
                Ok(Self { tenant: session.tenant, to: own })
            }
            "change_mobile" => Ok(Self { tenant: session?.tenant, to: mobile.ok_or_else(missing)? }),
            _ => Ok(Self { tenant: tenant?.0, to: mobile.ok_or_else(missing)? }),
        }
    }
}

/// A number from a request; 4001 where it is none, or none of those that get codes.
pub(super) fn allowed_mobile(app: &App, mobile: &Secret) -> Result<Recipient, ApiError> {
    allowed(app, extract::mobile(mobile)?)
}

/// The same of a number that is one.
fn allowed(app: &App, mobile: Mobile) -> Result<Recipient, ApiError> {
    if !app.config.sms.allows(&mobile) {
        return Err(ErrorCode::MobileInvalid.into());
    }
    Ok(Recipient::Mobile(mobile))
}

/// A person who asks, as far as it is known who that is. A machine is none.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) address: Option<IpAddr>,
    /// A digest of what the browser was given.
    pub(super) browser: Option<String>,
    pub(super) captcha: Option<Secret>,
}

/// One send on its way through the gates.
pub(super) struct Sending {
    app: App,
    tenant: TenantId,
    to: Recipient,
    scene: String,
    via: Via,
    rules: Arc<Rules>,
    rule: SceneRule,
    key: SmsKey,
    digest: String,
    /// The send's own id.
    id: String,
    caller: Option<Caller>,
}

/// A place in somebody's window, and what is said where none is free.
struct Gate {
    window: WindowKey,
    limit: u32,
    span: Duration,
    full: Full,
}

#[derive(Clone, Copy)]
enum Full {
    NeedsCaptcha,
    Address,
    Tenant,
}

impl Sending {
    pub(super) async fn new(
        app: &App,
        Asked { tenant, to }: Asked,
        scene: String,
        via: Via,
        caller: Option<Caller>,
    ) -> Result<Self, ApiError> {
        let rules = app.rules(tenant).await?;
        let rule = rules.sms.scene(&scene).ok_or(ErrorCode::SmsSceneInvalid)?;
        if via == Via::Voice && !app.channels.can(&to, Carried::Voice) {
            return Err(ApiError::bad_field("via", Text::NoVoice));
        }
        let digest = app.recipient_digest(tenant, &to);
        let key = app.sms_key(&scene, &digest);
        let id = uuid::Uuid::new_v4().simple().to_string();
        Ok(Self { app: app.clone(), tenant, to, scene, via, rules, rule, key, digest, id, caller })
    }

    /// The order of the gates is the contract's; format, prefix and scene stand before this:
    ///
    /// 1. lock: 4006;
    /// 2. captcha where risk asks for it: 4007;
    /// 3. the address's and the tenant's counts, reserved: 4009, 1429;
    /// 4. in one step on the number's keys: cool-down, hour's limit (4002), day's limit (4003), count, cool-down and code;
    ///    a refusal there gives the reservations back;
    /// 5. the channel: 4008 where none took it, 4003 where the provider has had enough of the number.
    pub(super) async fn run(self) -> Result<SmsSent, ApiError> {
        let code = self.pass_gates().await.inspect_err(|error| {
            // No row tells of it: who looks for what became of a number's codes finds it in the log.
            let (tenant, scene, to, code) = (self.tenant.0, &self.scene, &self.to, error.code().code());
            tracing::info!(tenant.id = tenant, scene, ?to, code, server = this_server(), "an SMS code was not sent");
            self.app.metrics.refused(&self.scene, error);
            if error.code() == ErrorCode::SmsNeedCaptcha {
                self.app.metrics.captcha(&self.scene, "demanded");
            }
        })?;
        if self.caller.as_ref().is_some_and(|caller| caller.captcha.is_some()) {
            self.app.metrics.captcha(&self.scene, "solved");
        }
        self.carry(code).await
    }

    async fn pass_gates(&self) -> Result<SmsCode, ApiError> {
        let state = self.app.codes.sms_look(&self.key, self.rule).await.map_err(away)?;
        if let Some(left) = state.locked {
            return Err(ApiError::retry_after(ErrorCode::SmsCodeLocked, left));
        }
        let mut gates = Vec::new();
        let mut without_captcha = None;
        if let Some(caller) = &self.caller {
            let solved = self.solved(caller)?;
            if solved.is_none() {
                without_captcha = Some(self.rules.sms.captcha_number);
                if state.sends >= self.rules.sms.captcha_number {
                    return Err(ErrorCode::SmsNeedCaptcha.into());
                }
            }
            gates = self.gates_of(caller, solved);
        }
        gates.push(Gate {
            window: self.window("sms:tenant", format_args!("{}:{}", self.tenant, self.app.sms_day())),
            limit: self.rules.sms.daily_cap,
            span: DAY,
            full: Full::Tenant,
        });
        let attempt = AttemptId::new(self.id.clone());
        self.pass(&gates, &attempt, without_captcha).await
    }

    fn window(&self, what: &str, whom: impl std::fmt::Display) -> WindowKey {
        WindowKey::named(&self.app.config.code_store.prefix, what, whom)
    }

    /// The gate of a captcha that was solved; 4007 for a token that counts for nothing.
    fn solved(&self, caller: &Caller) -> Result<Option<Gate>, ApiError> {
        let Some(token) = &caller.captcha else { return Ok(None) };
        let solved = captcha::solved(&self.app, self.tenant, &self.to, &self.scene, token);
        let (window, span) = solved.ok_or(ErrorCode::SmsNeedCaptcha)?;
        Ok(Some(Gate { window, limit: 1, span, full: Full::NeedsCaptcha }))
    }

    /// The gates of address and browser. Without a captcha they are narrower, so that however many ask at once no more pass
    /// without one than may.
    fn gates_of(&self, caller: &Caller, solved: Option<Gate>) -> Vec<Gate> {
        let sms = &self.rules.sms;
        let free = solved.is_none();
        let mut gates = Vec::from_iter(solved);
        if let Some(address) = caller.address {
            let venue = self.app.config.limits.sms.venue_networks.iter().any(|network| network.contains(address));
            let (limit, after) = if venue {
                (sms.venue, sms.captcha_after.max(VENUE_CAPTCHA_AFTER))
            } else {
                (sms.ip, sms.captcha_after)
            };
            gates.push(Gate {
                window: WindowKey::of_sms_address(&self.app.config.code_store.prefix, counted_as(address)),
                limit: if free { limit.min(after) } else { limit },
                span: HOUR,
                full: if free && after < limit { Full::NeedsCaptcha } else { Full::Address },
            });
        }
        if let Some(browser) = &caller.browser {
            gates.push(Gate {
                window: self.window("sms:browser", browser),
                limit: if free { sms.captcha_device } else { u32::MAX },
                span: DAY,
                full: Full::NeedsCaptcha,
            });
        }
        gates
    }

    /// Takes every gate's place and then makes the number's own step; whatever refuses, the places taken come back.
    async fn pass(
        &self,
        gates: &[Gate],
        attempt: &AttemptId,
        without_captcha: Option<u32>,
    ) -> Result<SmsCode, ApiError> {
        let places = gates.iter().map(|gate| (&gate.window, gate.limit, gate.span));
        if let Some((full, wait)) = later::take_all(&self.app.codes, places, attempt).await.map_err(away)? {
            return Err(self.full(gates[full].full, wait).await);
        }
        let stepped = self.step(without_captcha).await;
        if stepped.is_err() {
            self.give_back(gates, attempt).await;
        }
        stepped
    }

    async fn full(&self, full: Full, wait: Duration) -> ApiError {
        match full {
            Full::NeedsCaptcha => ErrorCode::SmsNeedCaptcha.into(),
            Full::Address => ApiError::retry_after(ErrorCode::SmsIpLimit, wait),
            Full::Tenant => {
                // One alert a day.
                let window = self.window("sms:cap-reached", format_args!("{}:{}", self.tenant, self.app.sms_day()));
                let attempt = AttemptId::new(self.id.clone());
                // A place and no count: those that find none leave nothing behind, however many come.
                if let Ok(Place::Taken) = self.app.codes.take(&window, &attempt, 1, DAY).await
                    && !alerts::raise(&self.app, self.tenant, AlertKind::SmsDailyCap, None).await
                {
                    // The next one that is refused raises it.
                    later::give_back(&self.app.codes, &window, &attempt).await;
                }
                ApiError::retry_after(ErrorCode::TooManyRequests, wait).saying(Text::SmsDailyCap)
            }
        }
    }

    async fn give_back(&self, gates: &[Gate], attempt: &AttemptId) {
        for gate in gates {
            later::give_back(&self.app.codes, &gate.window, attempt).await;
        }
    }

    /// The number's own step.
    async fn step(&self, without_captcha: Option<u32>) -> Result<SmsCode, ApiError> {
        let code = SmsCode::from_number(self.app.random.number(0..=SmsCode::MAX)).ok_or(ErrorCode::Internal)?;
        let day = self.app.sms_day();
        let new = NewSend { id: &self.id, code: &code, day: &day, without_captcha, rule: self.rule };
        let step = self.app.codes.sms_send(&self.key, &new).await;
        match step {
            Ok(SendStep::Taken) => Ok(code),
            Ok(SendStep::Locked(left)) => Err(ApiError::retry_after(ErrorCode::SmsCodeLocked, left)),
            Ok(SendStep::NeedsCaptcha) => Err(ErrorCode::SmsNeedCaptcha.into()),
            Ok(SendStep::TooSoon(left)) => Err(ApiError::retry_after(ErrorCode::SmsTooFrequent, left)),
            Ok(SendStep::DayFull) => Err(ApiError::from(ErrorCode::SmsDailyLimit).again_after(self.app.sms_day_left())),
            Err(error) => {
                // It may have been written all the same, or be written once the store goes on.
                self.undo_later(Undo::CodeCoolDownAndHour);
                Err(away(error))
            }
        }
    }

    /// Hands the code to the channels. A send that nobody knows of cannot be: its row is written first.
    async fn carry(&self, code: SmsCode) -> Result<SmsSent, ApiError> {
        let (shown, address) = (shown(&self.to), self.caller.as_ref().and_then(|caller| caller.address));
        let (metrics, via) = (&self.app.metrics, self.via.as_str());
        metrics.going(&self.to, address);
        let address = address.map(|address| address.to_string());
        let at = self.app.clock.now_ms();
        let row = NewSendRow {
            tenant: self.tenant,
            id: &self.id,
            scene: &self.scene,
            via: self.via,
            shown: &shown,
            digest: &self.digest,
            address: address.as_deref(),
            code_space: &self.app.code_space(),
            at,
        };
        if let Err(error) = transact(|| store::insert_send(&self.app.db, &row)).await {
            self.undo(Undo::CodeCoolDownAndHour).await;
            return Err(error.into());
        }
        let message = Message {
            id: self.id.clone(),
            tenant: self.tenant,
            scene: self.scene.clone(),
            to: self.to.clone(),
            code,
            ttl: self.rule.ttl,
            via: match self.via {
                Via::Sms => Carried::Sms,
                Via::Voice => Carried::Voice,
            },
        };
        let report = self.app.channels.send(&message).await;
        metrics.sent(&self.scene, via, report.channel.as_deref(), report.outcome.as_str());
        let answer = self.settle(&report).await;
        let finished = transact(|| store::finish_send(&self.app.db, self.tenant, &self.id, &report)).await;
        if let Err(error) = finished {
            tracing::error!(send.id = self.id, %error, "how a send ended could not be written; it is tried again");
            tokio::spawn(finish_later(self.app.clone(), self.tenant, self.id.clone(), report.clone()));
        }
        self.app.receipts.expect(&self.app, message, at, report);
        answer
    }

    /// What the number keeps of a send, and what the caller is told.
    async fn settle(&self, report: &Report) -> Result<SmsSent, ApiError> {
        let seconds = |duration: Duration| u32::try_from(duration.as_secs()).unwrap_or(u32::MAX);
        match report.outcome {
            // With an unknown end the message may still come: then its code must count.
            Outcome::Sent | Outcome::Unknown => {
                Ok(SmsSent { expire_in: seconds(self.rule.ttl), retry_after: seconds(self.rule.cool_down) })
            }
            Outcome::NotTaken | Outcome::Refused => {
                self.undo(Undo::CodeCoolDownAndHour).await;
                Err(ErrorCode::SmsSendFailed.into())
            }
            Outcome::NumberLimit => {
                self.undo(Undo::Code).await;
                // Of a minute, an hour or a day, which no provider tells: not before the cool-down, which stays.
                Err(ApiError::from(ErrorCode::SmsDailyLimit).again_after(self.rule.cool_down))
            }
        }
    }

    async fn undo(&self, undo: Undo) {
        if self.app.codes.sms_undo(&self.key, &self.id, undo).await.is_err() {
            self.undo_later(undo);
        }
    }

    /// Once the store answers again. Shut-down does not wait for it.
    fn undo_later(&self, undo: Undo) {
        let (codes, key, id) = (self.app.codes.clone(), self.key.clone(), self.id.clone());
        tokio::spawn(async move {
            if !until_done_twice(|| codes.sms_undo(&key, &id, undo)).await {
                tracing::warn!(send.id = id, "a send could not be taken back; its cool-down ends by itself");
            }
        });
    }
}

/// How long after one another it is tried to write down how a send ended, once the database did not take it.
const FINISH_AGAIN: [Duration; 3] = [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(60)];

/// Writes down how a send ended once the database goes on. Shut-down does not wait for it.
async fn finish_later(app: App, tenant: TenantId, id: String, report: Report) {
    for wait in FINISH_AGAIN {
        tokio::time::sleep(wait).await;
        if transact(|| store::finish_send(&app.db, tenant, &id, &report)).await.is_ok() {
            return;
        }
    }
    tracing::error!(send.id = id, "how a send ended was not written");
}

/// The cookie by which a browser's sends are counted, towards the captcha alone.
const BROWSER_COOKIE: &str = "guidepost-browser";

/// As long as anything counts by it.
const BROWSER_COOKIE_AGE: u32 = 86_400;

/// What a browser was given when it last asked for a code.
#[derive(Debug)]
pub(crate) struct KnownBrowser(Option<String>);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for KnownBrowser {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        let cookies = parts.headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
        let pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let known = pairs.filter(|(name, value)| *name == BROWSER_COOKIE && (1..=64).contains(&value.len()));
        Ok(Self(known.map(|(_, value)| value.to_owned()).next()))
    }
}

fn browser_cookie(app: &App, id: &Secret) -> Option<HeaderValue> {
    let flags = if session::is_secure(app) { "; Secure" } else { "" };
    let text = format!(
        "{BROWSER_COOKIE}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age={BROWSER_COOKIE_AGE}{flags}",
        id.expose()
    );
    HeaderValue::from_str(&text).ok()
}
