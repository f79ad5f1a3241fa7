//! The parts of a running kiosk, put together.

use crate::bundled_server::BundledServer;
use crate::host_types::{CommandError, KioskEvent, KioskInfo, VisitorPage};
use crate::link::{Link, Pace};
use crate::redeem::{Inbox, Redeemer, Timings};
use crate::screen::Screen;
use crate::server_client::{Caller, Failure, Limits, ServerClient};
use crate::session::{Session, SignedIn};
use crate::settings::SettingsStore;
use crate::source::Eye;
use std::sync::{Arc, Mutex, PoisonError};
use wire::{ErrorCode, Secret, trim};

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
    /// The server inside this app, in the demo.
    bundled: Option<Bundled>,
    /// The machine's time in Unix milliseconds.
    now: fn() -> i64,
    venue: Mutex<Venue>,
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
}

impl Kiosk {
    /// Puts the parts together and starts what works on its own. To be called inside the runtime.
    ///
    /// # Errors
    /// Where the server's address is none.
    pub(crate) fn start(
        address: &str,
        settings: SettingsStore,
        bundled: Option<BundledServer>,
        now: fn() -> i64,
    ) -> anyhow::Result<Self> {
        let client = ServerClient::new(address, Limits::default())?;
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
        tokio::spawn(redeemer.work());
        tokio::spawn(link.clone().probe(client.clone(), Pace::default()));
        let eye = Arc::new(Eye::new(inbox.clone(), screen.clone()));
        let bundled = bundled.map(|server| Bundled {
            visitor_pages: server.visitors().map(|(name, order_no)| VisitorPage { name, order_no }).collect(),
            server: tokio::sync::Mutex::new(Some(server)),
        });
        let venue = Mutex::new(Venue { timezone: USUAL_ZONE.to_owned(), clock_offset: 0 });
        Ok(Self { session, settings, client, link, inbox, screen, eye, bundled, now, venue })
    }

    /// What the screen wants to know when it starts, and again when the server is back.
    pub(crate) async fn info(&self) -> KioskInfo {
        let asked = (self.now)();
        match self.client.info(&self.caller_without_session()).await {
            Ok(info) => {
                // The server looked at its clock somewhere between the question and the answer.
                let clock_offset = info.server_time - i64::midpoint(asked, (self.now)());
                *self.venue() = Venue { timezone: info.timezone, clock_offset };
            }
            Err(Failure::Away(away)) => self.link.found(Some(away)),
            Err(Failure::Refused(refusal)) => {
                tracing::warn!(code = ?refusal.code, "the server does not say what it is")
            }
        }
        let Venue { timezone, clock_offset } = self.venue().clone();
        KioskInfo {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            server: self.client.authority(),
            demo: self.bundled.is_some(),
            guide: self.session.current().map(|session| session.guide),
            timezone,
            clock_offset,
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
        self.session.begin(SignedIn { token, guide: signed_in.name.clone() });
        self.screen.show(KioskEvent::Session { guide: Some(signed_in.name) });
        Ok(())
    }

    /// Ends the session, here at once and on the server if it can be reached.
    pub(crate) async fn sign_out(&self) {
        let Some(session) = self.session.end() else { return };
        self.screen.show(KioskEvent::Session { guide: None });
        let caller = Caller { token: Some(session.token), ..self.caller_without_session() };
        if let Err(failure) = self.client.sign_out(&caller).await {
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
                self.screen.show(KioskEvent::Session { guide: None });
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
            Failure::Refused(refusal) => CommandError::Refused { message: refusal.message },
            Failure::Away(away) => {
                self.link.found(Some(away));
                CommandError::Away { away }
            }
        }
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

    /// Looks at nothing any more, and lets the bundled server finish what is in flight.
    pub(crate) async fn close(&self) {
        self.eye.close();
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
    use crate::testing::{FakeServer, Reply, tls};
    use serde_json::{Value, json};

    async fn kiosk(server: &FakeServer) -> Kiosk {
        tls();
        Kiosk::start(&server.address, SettingsStore::open(None), None, || 1_000).unwrap()
    }

    fn signed_in(roles: &[&str]) -> Reply {
        let body =
            json!({"code": 0, "msg": "", "data": {"token": "T", "expiresAt": 9, "roles": roles, "name": "李娜"}});
        Reply::Say(200, body.to_string())
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
        assert_eq!(kiosk.sign_in("abc").await, Err(CommandError::Refused { message: "no".into() }));
        assert!(kiosk.session.current().is_none());
        assert_eq!(server.asked()[2].path, "/api/auth/logout", "the session is of no use to anybody");
    }

    #[tokio::test]
    async fn a_used_link_is_the_servers_no_and_not_the_end_of_a_session() {
        let server = FakeServer::open().await;
        let kiosk = kiosk(&server).await;
        server.replies([Reply::refused(ErrorCode::Unauthenticated, Value::Null)]);
        assert_eq!(kiosk.sign_in("abc").await, Err(CommandError::Refused { message: "no".into() }));
    }

    #[tokio::test]
    async fn a_session_that_has_ended_is_noticed_by_any_request() {
        let server = FakeServer::open().await;
        let kiosk = kiosk(&server).await;
        kiosk.session.begin(SignedIn { token: Secret::new("T"), guide: "李娜".into() });
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
