//! The parts of a running kiosk, put together.

use crate::bundled_server::BundledServer;
use crate::host_types::{Away, CommandError, KioskEvent, KioskInfo, VisitorPage, WhySignIn};
use crate::keyring::{Keeper, Keyring, Look, Places};
use crate::link::{Link, Pace};
use crate::redeem::{Inbox, Redeemer, Timings};
use crate::screen::Screen;
use crate::server_client::{Caller, Failure, Limits, ServerClient};
use crate::session::{Session, SignedIn};
use crate::settings::SettingsStore;
use crate::source::Eye;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;
use wire::accounts::{CaptchaChallenge, SmsSent, Via};
use wire::api::Role;
use wire::{ErrorCode, Mobile, RequestId, Secret, SmsCode, trim};

/// The zone that a server has where nobody set one; only until the server has been asked.
const USUAL_ZONE: &str = "Asia/Shanghai";

/// What the commands work on.
#[derive(Debug)]
pub(crate) struct Kiosk {
    /// Who is signed in.
    pub session: Arc<Session>,
    /// What this kiosk remembers.
    pub settings: Arc<SettingsStore>,
    /// The server.
    pub client: ServerClient,
    /// What is away.
    pub link: Arc<Link>,
    /// Where codes come in.
    pub inbox: Arc<Inbox>,
    /// Where events go.
    pub screen: Arc<Screen>,
    /// What is looked at.
    pub eye: Arc<Eye>,
    /// Where the session is kept between two starts.
    keeper: Arc<Keeper>,
    /// Whether the session of an earlier start has been looked for.
    resumed: OnceCell<()>,
    /// The server inside this app, in the demo.
    bundled: Option<Bundled>,
    /// The machine's time in Unix milliseconds.
    now: fn() -> i64,
    venue: Mutex<Venue>,
}

/// What stands behind a kiosk.
#[derive(Debug)]
pub(crate) enum Backing {
    /// A server inside this app, with made-up bookings and sessions that are gone with it.
    Demo(Box<BundledServer>),
    /// A server somewhere, and the places where its sessions can be kept.
    Server(Places),
}

/// The bundled server, and what the screen shows of it.
#[derive(Debug)]
struct Bundled {
    visitor_pages: Vec<VisitorPage>,
    /// `None` once it has been stopped.
    server: tokio::sync::Mutex<Option<BundledServer>>,
}

/// What the server has said of the venue.
#[derive(Debug, Clone)]
struct Venue {
    timezone: String,
    clock_offset: i64,
    voice: bool,
}

impl Kiosk {
    /// Puts the parts together and starts what works on its own. To be called inside the runtime.
    ///
    /// # Errors
    /// Where the server's address is none.
    pub(crate) fn start(
        address: &str,
        settings: SettingsStore,
        backing: Backing,
        now: fn() -> i64,
    ) -> anyhow::Result<Self> {
        let client = ServerClient::new(address, Limits::default())?.for_tenant(settings.tenant());
        let (bundled, keyring) = match backing {
            Backing::Demo(server) => (Some(*server), None),
            Backing::Server(places) => (None, Some(Keyring::new(places, client.address(), now))),
        };
        let settings = Arc::new(settings);
        let session = Arc::new(Session::default());
        let screen = Arc::new(Screen::default());
        let link = Link::new(screen.clone());
        let inbox = Arc::new(Inbox::default());
        let redeemer = Redeemer {
            inbox: inbox.clone(),
            session: session.clone(),
            settings: settings.clone(),
            client: client.clone(),
            link: link.clone(),
            screen: screen.clone(),
            timings: Timings::default(),
        };
        let keeper = Arc::new(Keeper::new(keyring, session.clone(), screen.clone()));
        tokio::spawn(keeper.clone().follow());
        tokio::spawn(redeemer.work());
        tokio::spawn(link.clone().probe(client.clone(), Pace::default()));
        let eye = Arc::new(Eye::new(inbox.clone(), screen.clone()));
        let bundled = bundled.map(|server| Bundled {
            visitor_pages: server.visitors().map(|(name, order_no)| VisitorPage { name, order_no }).collect(),
            server: tokio::sync::Mutex::new(Some(server)),
        });
        let venue = Mutex::new(Venue { timezone: USUAL_ZONE.to_owned(), clock_offset: 0, voice: false });
        let resumed = OnceCell::new();
        Ok(Self { session, settings, client, link, inbox, screen, eye, keeper, resumed, bundled, now, venue })
    }

    /// Takes up the session of an earlier start, if one was kept; once, however often it is called.
    pub(crate) async fn resume(&self) {
        self.resumed.get_or_init(|| self.take_up()).await;
    }

    async fn take_up(&self) {
        let mut found = match self.keeper.find().await {
            Look::Found(found) => found,
            Look::Nobody => return,
            Look::Blind => {
                return self.screen.show(KioskEvent::Session { guide: None, why: Some(WhySignIn::NoKeyring) });
            }
        };
        let caller = Caller { token: Some(found.signed_in.token.clone()), ..self.caller_without_session() };
        let guide = match self.client.me(&caller).await {
            Ok(me) if me.roles.contains(&Role::Guide) => me.name,
            // Nobody knows yet; the first answer of the server's will tell.
            Err(failure @ (Failure::Away(_) | Failure::Unsent)) => {
                self.is_away(&failure);
                found.signed_in.guide.clone()
            }
            Err(Failure::Refused(refusal)) if refusal.code != Some(ErrorCode::Unauthenticated) => {
                tracing::warn!(code = ?refusal.code, "the server does not say who is signed in");
                found.signed_in.guide.clone()
            }
            // It has ended, or is no guide's any more.
            Ok(_) | Err(Failure::Refused(_)) => {
                tracing::info!("the session that was kept is of no use any more");
                self.keeper.give_up(found).await;
                return self.screen.show(KioskEvent::Session { guide: None, why: Some(WhySignIn::Ended) });
            }
        };
        found.signed_in.guide = guide;
        self.keeper.take_up(found).await;
    }

    /// What the screen wants to know when it starts, and again when the server is back.
    pub(crate) async fn info(&self) -> KioskInfo {
        // Otherwise the sign-in would flash up before the guide who is signed in.
        self.resume().await;
        let asked = (self.now)();
        match self.client.info(&self.caller_without_session()).await {
            Ok(info) => {
                // The server looked at its clock somewhere between the question and the answer.
                let clock_offset = info.server_time - i64::midpoint(asked, (self.now)());
                *self.venue() = Venue { timezone: info.timezone, clock_offset, voice: info.voice };
            }
            Err(Failure::Refused(refusal)) => {
                tracing::warn!(code = ?refusal.code, "the server does not say what it is")
            }
            Err(failure) => drop(self.is_away(&failure)),
        }
        let Venue { timezone, clock_offset, voice } = self.venue().clone();
        KioskInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            server: self.client.authority(),
            demo: self.bundled.is_some(),
            guide: self.session.current().map(|session| session.guide),
            why: self.screen.why_sign_in(),
            timezone,
            clock_offset,
            voice,
            settings: self.settings.get(),
            visitor_pages: self.bundled.as_ref().map(|bundled| bundled.visitor_pages.clone()).unwrap_or_default(),
        }
    }

    /// Signs in with a one-time link, or with what stands behind `#sign-in=` in it.
    ///
    /// # Errors
    /// A field that is wrong; the server's no; what is away.
    pub(crate) async fn sign_in(&self, link: &str) -> Result<(), CommandError> {
        let token = token_of_link(link)?;
        let caller = self.caller_without_session();
        let signed_in = self.client.sign_in_by_link(&caller, token).await.map_err(|f| self.refusal(f))?;
        self.enter(caller, signed_in, false).await
    }

    /// Has a code for signing in sent to a number.
    ///
    /// # Errors
    /// The server's no, a demand for a captcha among them; what is away.
    pub(crate) async fn send_sms(
        &self,
        mobile: &Mobile,
        captcha_token: Option<Secret>,
        via: Option<Via>,
    ) -> Result<SmsSent, CommandError> {
        let caller = self.caller_without_session();
        let sent = self.client.send_sms(&caller, mobile, captcha_token, via).await;
        sent.map_err(|failure| match failure {
            Failure::Unsent => {
                self.is_away(&failure);
                CommandError::Unsent
            }
            failure => self.refusal(failure),
        })
    }

    /// A captcha for the sending of a code to a number.
    ///
    /// # Errors
    /// The server's no; what is away.
    pub(crate) async fn captcha(&self, mobile: &Mobile) -> Result<CaptchaChallenge, CommandError> {
        self.client.captcha(&self.caller_without_session(), mobile).await.map_err(|f| self.refusal(f))
    }

    /// Signs in with a code that was sent to a number, and keeps the session for the next start.
    ///
    /// # Errors
    /// The server's no; what is away.
    pub(crate) async fn sms_login(
        &self,
        mobile: &Mobile,
        code: &SmsCode,
        request_id: &RequestId,
    ) -> Result<(), CommandError> {
        let caller = self.caller_without_session();
        let signed_in = self.client.sms_login(&caller, mobile, code, request_id).await.map_err(|f| self.refusal(f))?;
        self.enter(caller, signed_in, true).await
    }

    /// Begins a session that the server has given, if its account may work here.
    async fn enter(&self, caller: Caller, signed_in: wire::api::SignedIn, keep: bool) -> Result<(), CommandError> {
        let Some(token) = signed_in.token else {
            tracing::error!("the server gave no token to an app");
            return Err(CommandError::Internal);
        };
        let caller = Caller { token: Some(token.clone()), ..caller };
        // Whether this account may work here is the server's to say, and now, not at the first visitor.
        if let Err(failure) = self.client.tasks(&caller).await {
            let error = self.refusal(failure);
            if let Err(failure) = self.client.sign_out(&caller).await {
                tracing::warn!(?failure, "a session that is of no use here could not be ended");
            }
            return Err(error);
        }
        self.session.begin(SignedIn { token, guide: signed_in.name.clone(), keep });
        self.screen.show(KioskEvent::Session { guide: Some(signed_in.name), why: None });
        Ok(())
    }

    /// Ends the session, here at once and on the server if it can be reached.
    pub(crate) async fn sign_out(&self) {
        let Some(session) = self.session.end() else { return };
        self.screen.show(KioskEvent::Session { guide: None, why: None });
        let caller = Caller { token: Some(session.token), ..self.caller_without_session() };
        // Out of the keyring as well, whether or not the server can be reached.
        let ((), ended) = tokio::join!(self.keeper.settle(), self.client.sign_out(&caller));
        if let Err(failure) = ended {
            tracing::warn!(?failure, "the session ended here and not on the server");
        }
    }

    /// The caller of a request that needs a session.
    ///
    /// # Errors
    /// Where nobody is signed in.
    pub(crate) fn caller(&self) -> Result<Caller, CommandError> {
        let session = self.session.current().ok_or(CommandError::SignedOut)?;
        Ok(Caller { token: Some(session.token), ..self.caller_without_session() })
    }

    /// The answer to a request of `caller`, for the screen. What it tells of the session and of the link is noted.
    ///
    /// # Errors
    /// The screen's word for the failure.
    pub(crate) fn answer<T>(&self, caller: &Caller, answer: Result<T, Failure>) -> Result<T, CommandError> {
        let failure = match answer {
            Ok(answer) => return Ok(answer),
            Err(failure) => failure,
        };
        if let Failure::Refused(refusal) = &failure
            && refusal.code == Some(ErrorCode::Unauthenticated)
        {
            if caller.token.as_ref().is_some_and(|token| self.session.end_of(token)) {
                self.screen.show(KioskEvent::Session { guide: None, why: Some(WhySignIn::Ended) });
            }
            return Err(CommandError::SignedOut);
        }
        Err(self.refusal(failure))
    }

    fn caller_without_session(&self) -> Caller {
        Caller { token: None, locale: self.settings.get().locale }
    }

    fn refusal(&self, failure: Failure) -> CommandError {
        match failure {
            Failure::Refused(refusal) => CommandError::Refused {
                code: refusal.code.map(ErrorCode::code),
                message: refusal.message,
                data: refusal.data,
            },
            failure => CommandError::Away { away: self.is_away(&failure) },
        }
    }

    /// Notes what a failure that is no refusal says is away.
    fn is_away(&self, failure: &Failure) -> Away {
        let away = match failure {
            Failure::Away(away) => *away,
            _ => Away::Network,
        };
        self.link.found(Some(away));
        away
    }

    fn venue(&self) -> std::sync::MutexGuard<'_, Venue> {
        self.venue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A one-time address of a visitor's page of the demo.
    ///
    /// # Errors
    /// Outside the demo, and for an order without a page.
    pub(crate) async fn visitor_link(&self, order_no: &wire::OrderNo) -> Result<Secret, CommandError> {
        let unknown = || CommandError::BadField { field: "orderNo".to_owned(), empty: false };
        let bundled = self.bundled.as_ref().ok_or_else(unknown)?.server.lock().await;
        let link = bundled.as_ref().ok_or_else(unknown)?.visitor_link(order_no).await;
        link.map_err(|error| {
            tracing::error!(order.no = %order_no, %error, "no link to a visitor's page");
            unknown()
        })
    }

    /// Looks at nothing any more, keeps the session or takes it out if that is still to be done, and lets the bundled server
    /// finish what is in flight.
    pub(crate) async fn close(&self) {
        self.eye.close();
        self.keeper.settle().await;
        let server = match &self.bundled {
            Some(bundled) => bundled.server.lock().await.take(),
            None => None,
        };
        if let Some(server) = server {
            server.stop().await;
        }
    }
}

/// What stands behind `#sign-in=` in a link, or the whole text where it is a bare token.
fn token_of_link(link: &str) -> Result<Secret, CommandError> {
    let wrong = |empty| CommandError::BadField { field: "link".to_owned(), empty };
    let link = trim(link);
    if link.is_empty() {
        return Err(wrong(true));
    }
    let token = link.split_once("#sign-in=").map_or(link, |(_, token)| token);
    let is_token = !token.is_empty()
        && token.len() <= 256
        && token.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'='));
    if is_token { Ok(Secret::new(token)) } else { Err(wrong(false)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_types::Kept;
    use crate::testing::{FakeServer, Reply, tls};
    use serde_json::{Value, json};

    async fn kiosk(server: &FakeServer) -> Kiosk {
        tls();
        Kiosk::start(&server.address, SettingsStore::open(None), Backing::Server(Places::default()), || 1_000).unwrap()
    }

    fn signed_in(roles: &[&str]) -> Reply {
        let body =
            json!({"code": 0, "msg": "", "data": {"token": "T", "expiresAt": 9, "roles": roles, "name": "李娜"}});
        Reply::Say(200, body.to_string())
    }

    fn no(code: ErrorCode) -> CommandError {
        CommandError::Refused { code: Some(code.code()), message: "no".into(), data: Value::Null }
    }

    fn nothing() -> Reply {
        Reply::Say(200, json!({"code": 0, "msg": "", "data": []}).to_string())
    }

    #[test]
    fn a_link_or_its_token_signs_in_and_nothing_else() {
        for link in ["abc-_=", " http://127.0.0.1:8080/#sign-in=abc-_= \n", "\u{feff}abc-_="] {
            assert_eq!(token_of_link(link).unwrap().expose(), "abc-_=");
        }
        for (link, empty) in
            [("", true), (" \u{200b}", true), ("http://127.0.0.1/", false), ("http://h/#sign-in=", false)]
        {
            assert_eq!(token_of_link(link), Err(CommandError::BadField { field: "link".into(), empty }), "{link:?}");
        }
        assert!(token_of_link(&"a".repeat(300)).is_err());
    }

    #[tokio::test]
    async fn a_guide_signs_in_and_out() {
        let server = FakeServer::open().await;
        let kiosk = kiosk(&server).await;
        server.replies([signed_in(&["guide"]), nothing()]);
        kiosk.sign_in("http://127.0.0.1/#sign-in=abc").await.unwrap();
        assert_eq!(kiosk.session.current().map(|s| s.guide), Some("李娜".to_owned()));
        kiosk.sign_out().await;
        assert!(kiosk.session.current().is_none());
        let asked = server.asked();
        assert_eq!(asked[0].body, json!({"token": "abc"}));
        assert_eq!(asked[1].authorization.as_deref(), Some("Bearer T"));
        assert_eq!(asked[2].path, "/api/auth/logout");
    }

    #[tokio::test]
    async fn who_may_not_work_here_hears_so_and_is_not_signed_in() {
        let server = FakeServer::open().await;
        let kiosk = kiosk(&server).await;
        server.replies([signed_in(&["visitor"]), Reply::refused(ErrorCode::Forbidden, Value::Null), nothing()]);
        assert_eq!(kiosk.sign_in("abc").await, Err(no(ErrorCode::Forbidden)));
        assert!(kiosk.session.current().is_none());
        assert_eq!(server.asked()[2].path, "/api/auth/logout", "the session is of no use to anybody");
    }

    #[tokio::test]
    async fn a_used_link_is_the_servers_no_and_not_the_end_of_a_session() {
        let server = FakeServer::open().await;
        let kiosk = kiosk(&server).await;
        server.replies([Reply::refused(ErrorCode::Unauthenticated, Value::Null)]);
        assert_eq!(kiosk.sign_in("abc").await, Err(no(ErrorCode::Unauthenticated)));
    }

    fn me(roles: &[&str]) -> Reply {
        Reply::Say(
            200,
            json!({"code": 0, "msg": "", "data": {"name": "李娜", "roles": roles, "expiresAt": 9}}).to_string(),
        )
    }

    /// A kiosk whose sessions are kept in `store`.
    fn kept_in(server: &FakeServer, store: &Arc<keyring_core::CredentialStore>) -> Kiosk {
        tls();
        let store = store.clone();
        let places = Places::default().with(Kept::Keyring, move || Ok(store.clone()));
        Kiosk::start(&server.address, SettingsStore::open(None), Backing::Server(places), || 1_000).unwrap()
    }

    async fn sign_in_by_sms(kiosk: &Kiosk) -> Result<(), CommandError> {
        let (mobile, code) = (Mobile::parse("13900000001").unwrap(), SmsCode::from_typed("０12345").unwrap());
        kiosk.sms_login(&mobile, &code, &RequestId::parse("r1").unwrap()).await
    }

    #[tokio::test]
    async fn a_code_is_asked_for_and_signs_in_and_the_servers_words_come_through() {
        let server = FakeServer::open().await;
        let kiosk = kiosk(&server).await;
        let mobile = Mobile::parse("13900000001").unwrap();
        let captcha = json!({"algorithm": "SHA-256", "challenge": "c", "maxnumber": 9, "salt": "s&", "signature": "g"});
        server.replies([
            Reply::refused(ErrorCode::SmsNeedCaptcha, Value::Null),
            Reply::Say(200, json!({"code": 0, "msg": "", "data": captcha}).to_string()),
            Reply::Say(200, json!({"code": 0, "msg": "", "data": {"expireIn": 300, "retryAfter": 60}}).to_string()),
            Reply::refused(ErrorCode::SmsTooFrequent, json!({"retryAfter": 42})),
            Reply::refused(ErrorCode::SmsCodeWrong, json!({"remaining": 4})),
            signed_in(&["guide"]),
            nothing(),
        ]);
        let refused = |code: ErrorCode, data: Value| CommandError::Refused {
            code: Some(code.code()),
            message: "no".into(),
            data,
        };
        assert_eq!(kiosk.send_sms(&mobile, None, None).await, Err(refused(ErrorCode::SmsNeedCaptcha, Value::Null)));
        assert_eq!(kiosk.captcha(&mobile).await.unwrap().salt, "s&");
        let sent = kiosk.send_sms(&mobile, Some(Secret::new("solved")), Some(Via::Voice)).await.unwrap();
        assert_eq!((sent.expire_in, sent.retry_after), (300, 60));
        let too_soon = refused(ErrorCode::SmsTooFrequent, json!({"retryAfter": 42}));
        assert_eq!(kiosk.send_sms(&mobile, None, None).await, Err(too_soon));
        assert_eq!(sign_in_by_sms(&kiosk).await, Err(refused(ErrorCode::SmsCodeWrong, json!({"remaining": 4}))));
        assert!(kiosk.session.current().is_none());
        sign_in_by_sms(&kiosk).await.unwrap();
        assert_eq!(kiosk.session.current().map(|s| s.guide), Some("李娜".to_owned()));
        let asked = server.asked();
        assert_eq!(
            asked[0].body,
            json!({"mobile": "+8613900000001", "scene": "login", "captchaToken": null, "via": null})
        );
        assert_eq!(asked[1].body, json!({"mobile": "+8613900000001", "scene": "login"}));
        assert_eq!((&asked[2].body["captchaToken"], &asked[2].body["via"]), (&json!("solved"), &json!("voice")));
        assert_eq!(asked[5].body, json!({"mobile": "+8613900000001", "code": "012345", "requestId": "r1"}));
    }

    #[tokio::test]
    async fn a_visitor_with_a_right_code_hears_so_and_is_kept_nowhere() {
        let server = FakeServer::open().await;
        let store: Arc<keyring_core::CredentialStore> = keyring_core::mock::Store::new().unwrap();
        let kiosk = kept_in(&server, &store);
        server.replies([signed_in(&["visitor"]), Reply::refused(ErrorCode::Forbidden, Value::Null), nothing()]);
        assert_eq!(sign_in_by_sms(&kiosk).await, Err(no(ErrorCode::Forbidden)));
        assert_eq!(server.asked()[2].path, "/api/auth/logout");
        kiosk.close().await;
        kept_in(&server, &store).resume().await;
        assert_eq!(server.asked().len(), 3, "nobody to ask after");
    }

    #[tokio::test]
    async fn a_restart_finds_the_session_until_it_is_signed_out_though_the_server_is_away() {
        let server = FakeServer::open().await;
        let store: Arc<keyring_core::CredentialStore> = keyring_core::mock::Store::new().unwrap();
        let first = kept_in(&server, &store);
        server.replies([signed_in(&["guide"]), nothing()]);
        sign_in_by_sms(&first).await.unwrap();
        first.close().await;

        let second = kept_in(&server, &store);
        server.replies([me(&["visitor", "guide"]), Reply::Cut]);
        assert_eq!(second.info().await.guide.as_deref(), Some("李娜"));
        assert_eq!(second.session.current().unwrap().token, Secret::new("T"));
        let asked = server.asked();
        assert_eq!((asked[2].path.as_str(), asked[2].authorization.as_deref()), ("/api/auth/me", Some("Bearer T")));

        // Nobody had to ask why.
        assert_eq!(second.info().await.why, None);

        // The server is away: nobody is signed out for that.
        let third = kept_in(&server, &store);
        assert_eq!(third.info().await.guide.as_deref(), Some("李娜"));
        assert!(third.link.away().is_some());
        third.sign_out().await;
        assert_eq!(kept_in(&server, &store).info().await.guide, None, "it was taken out all the same");
    }

    #[tokio::test]
    async fn a_session_that_has_ended_meanwhile_is_taken_out_of_the_keyring() {
        for answer in [Reply::refused(ErrorCode::Unauthenticated, Value::Null), me(&["visitor"])] {
            let server = FakeServer::open().await;
            let store: Arc<keyring_core::CredentialStore> = keyring_core::mock::Store::new().unwrap();
            let first = kept_in(&server, &store);
            server.replies([signed_in(&["guide"]), nothing()]);
            sign_in_by_sms(&first).await.unwrap();
            first.close().await;
            server.replies([answer, nothing()]);
            let second = kept_in(&server, &store);
            let info = second.info().await;
            assert_eq!((info.guide, info.why), (None, Some(WhySignIn::Ended)));
            assert_eq!(server.asked()[2].path, "/api/auth/me");
            let asked = server.asked().len();
            kept_in(&server, &store).resume().await;
            assert_eq!(server.asked().len(), asked, "nothing was kept");
        }
    }

    #[tokio::test]
    async fn who_has_to_sign_in_again_because_no_place_can_be_looked_into_hears_so_and_nobody_else() {
        tls();
        let server = FakeServer::open().await;
        let open = |places| {
            Kiosk::start(&server.address, SettingsStore::open(None), Backing::Server(places), || 1_000).unwrap()
        };
        let locked = || Err(keyring_core::Error::NoStorageAccess("it is locked".into()));
        let empty: Arc<keyring_core::CredentialStore> = keyring_core::mock::Store::new().unwrap();
        let empty = move || Ok(empty.clone());
        let kiosk = open(Places::default().with(Kept::Keyring, locked).with(Kept::UntilReboot, empty.clone()));
        server.replies([Reply::Cut]);
        assert_eq!(kiosk.info().await.why, Some(WhySignIn::NoKeyring));
        server.replies([signed_in(&["guide"]), nothing()]);
        sign_in_by_sms(&kiosk).await.unwrap();
        assert_eq!(kiosk.screen.why_sign_in(), None);
        kiosk.sign_out().await;
        assert_eq!(kiosk.screen.why_sign_in(), None, "who signed out knows why");
        let kiosk = open(Places::default().with(Kept::Keyring, empty).with(Kept::UntilReboot, locked));
        assert_eq!(kiosk.info().await.why, None, "nobody was signed in");
    }

    #[tokio::test]
    async fn a_message_that_surely_was_not_sent_is_told_from_one_of_which_nobody_knows() {
        tls();
        let mobile = Mobile::parse("13900000001").unwrap();
        let address = crate::testing::unused_address().await;
        let kiosk =
            Kiosk::start(&address, SettingsStore::open(None), Backing::Server(Places::default()), || 1_000).unwrap();
        assert_eq!(kiosk.send_sms(&mobile, None, None).await.unwrap_err(), CommandError::Unsent);
        assert_eq!(kiosk.link.away(), Some(Away::Network));
        let server = FakeServer::open().await;
        let kiosk = super::tests::kiosk(&server).await;
        server.replies([Reply::Cut]);
        let lost = CommandError::Away { away: Away::Network };
        assert_eq!(kiosk.send_sms(&mobile, None, None).await.unwrap_err(), lost);
    }

    #[tokio::test]
    async fn a_session_that_ends_while_the_app_runs_is_taken_out_by_itself() {
        let server = FakeServer::open().await;
        let store: Arc<keyring_core::CredentialStore> = keyring_core::mock::Store::new().unwrap();
        let first = kept_in(&server, &store);
        let (tell, mut heard) = tokio::sync::mpsc::unbounded_channel();
        first.screen.attach(move |event| {
            if let KioskEvent::Kept { kept } = event {
                tell.send(kept).ok();
            }
            true
        });
        server.replies([signed_in(&["guide"]), nothing()]);
        sign_in_by_sms(&first).await.unwrap();
        let mut next =
            async || tokio::time::timeout(std::time::Duration::from_secs(20), heard.recv()).await.unwrap().unwrap();
        assert_eq!(next().await, Some(Kept::Keyring));
        server.replies([Reply::refused(ErrorCode::Unauthenticated, Value::Null)]);
        let caller = first.caller().unwrap();
        assert_eq!(first.answer(&caller, first.client.tasks(&caller).await), Err(CommandError::SignedOut));
        assert_eq!(next().await, None);
        assert_eq!(first.screen.why_sign_in(), Some(WhySignIn::Ended));
        let asked = server.asked().len();
        kept_in(&server, &store).resume().await;
        assert_eq!(server.asked().len(), asked, "nothing was kept");
    }

    #[tokio::test]
    async fn a_session_that_has_ended_is_noticed_by_any_request() {
        let server = FakeServer::open().await;
        let kiosk = kiosk(&server).await;
        kiosk.session.begin(SignedIn { token: Secret::new("T"), guide: "李娜".into(), keep: false });
        server.replies([Reply::refused(ErrorCode::Unauthenticated, Value::Null)]);
        let caller = kiosk.caller().unwrap();
        let answer = kiosk.client.tasks(&caller).await;
        assert_eq!(kiosk.answer(&caller, answer), Err(CommandError::SignedOut));
        assert!(kiosk.session.current().is_none());
        assert_eq!(kiosk.caller().unwrap_err(), CommandError::SignedOut);
    }

    #[tokio::test]
    async fn the_screen_learns_zone_and_clock_from_the_server_and_starts_without_it() {
        let server = FakeServer::open().await;
        let kiosk = kiosk(&server).await;
        server.replies([Reply::Cut]);
        let info = kiosk.info().await;
        assert_eq!((info.timezone.as_str(), info.clock_offset), (USUAL_ZONE, 0));
        let said = json!({"version": "1", "minAppVersion": "0", "serverTime": 5_000, "timezone": "Asia/Urumqi", "tenant": null});
        server.replies([Reply::Say(200, json!({"code": 0, "msg": "", "data": said}).to_string()), Reply::Cut]);
        for _ in 0..2 {
            let info = kiosk.info().await;
            assert_eq!((info.timezone.as_str(), info.clock_offset), ("Asia/Urumqi", 4_000), "kept while it is away");
        }
    }
}
