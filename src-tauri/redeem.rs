//! One attempt after another: a code comes in, the server decides, the screen shows its answer.
//!
//! One request is in flight at a time; codes that came meanwhile have their turn after it, for the scanner shows each but
//! once. Nothing waits behind an attempt that has failed: that one ends, and the next code has its turn.
//!
//! An answer may be lost after the server has redeemed. So an attempt keeps its `requestId` as long as its end is unknown:
//! repeats of the same attempt, by itself or by a later scan of the same code, find the earlier success instead of "used".

use crate::host_types::{Away, CommandError, KioskEvent, Outcome, WhySignIn};
use crate::link::Link;
use crate::screen::Screen;
use crate::server_client::{Caller, Failure, Refusal, ServerClient};
use crate::session::{Session, SignedIn};
use crate::settings::SettingsStore;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use wire::api::{ConsumeRequest, Entry, OrderState, OrderStatus, RetryAfter};
use wire::{ErrorCode, OrderNo, RequestId, Secret, VerifyCode};

/// How long an attempt waits and when it is repeated.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timings {
    /// After this the person at the gate is told that it cannot be checked now.
    pub attempt: Duration,
    /// Between two tries while that person waits.
    pub quick_repeat: Duration,
    /// Between two tries afterwards.
    pub repeat: Duration,
    /// After this nobody waits for the answer any more.
    pub give_up: Duration,
    /// So long a repeat of this kiosk's own success is shown as that success.
    pub own_success: Duration,
    /// So long an attempt whose end is unknown can be found out by the same code.
    pub unknown_end: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            attempt: Duration::from_secs(5),
            quick_repeat: Duration::from_millis(200),
            repeat: Duration::from_secs(1),
            give_up: Duration::from_secs(60),
            own_success: Duration::from_secs(10),
            unknown_end: Duration::from_secs(600),
        }
    }
}

/// A code that came in.
#[derive(Debug, Clone)]
pub(crate) struct Incoming {
    /// The order.
    pub order_no: OrderNo,
    /// What its holder showed.
    pub verify_code: VerifyCode,
    /// By which way it came.
    pub entry: Entry,
    /// When the frame that held it was taken, or the last key pressed.
    pub seen_at: std::time::Instant,
}

/// More codes than that are not held before a camera at once; the oldest is dropped.
const MOST_WAITING: usize = 8;

/// Where codes come in.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    state: Mutex<InboxState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct InboxState {
    /// What is to be sent, the oldest first: two codes in one picture are two groups.
    waiting: VecDeque<Incoming>,
    /// The way by which the code in hand came, until its answer is shown.
    in_hand: Option<Entry>,
}

impl Inbox {
    /// A code was read: it has its turn after those that came before it.
    pub(crate) fn scanned(&self, incoming: Incoming) {
        let mut state = self.lock();
        if state.waiting.len() >= MOST_WAITING {
            state.waiting.pop_front();
        }
        state.waiting.push_back(incoming);
        drop(state);
        self.changed.notify_one();
    }

    /// A code was typed.
    ///
    /// # Errors
    /// While another typed one has no answer yet: a double click sends once.
    pub(crate) fn typed(&self, incoming: Incoming) -> Result<(), CommandError> {
        let mut state = self.lock();
        let manual = Some(Entry::Manual);
        if state.in_hand == manual || state.waiting.iter().any(|waiting| waiting.entry == Entry::Manual) {
            return Err(CommandError::InFlight);
        }
        state.waiting.push_back(incoming);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Whether an attempt is waiting for its first answer.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.lock();
        state.in_hand.is_some() || !state.waiting.is_empty()
    }

    fn has_waiting(&self) -> bool {
        !self.lock().waiting.is_empty()
    }

    /// Waits until a code is there, and leaves it there.
    async fn arrival(&self) {
        while !self.has_waiting() {
            self.changed.notified().await;
        }
    }

    async fn next(&self) -> Incoming {
        loop {
            self.arrival().await;
            let mut state = self.lock();
            if let Some(incoming) = state.waiting.pop_front() {
                state.in_hand = Some(incoming.entry);
                return incoming;
            }
        }
    }

    fn shown(&self) {
        self.lock().in_hand = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes codes from the inbox and brings answers to the screen.
#[derive(Debug)]
pub(crate) struct Redeemer {
    /// Where codes come in.
    pub inbox: Arc<Inbox>,
    /// Who is signed in.
    pub session: Arc<Session>,
    /// The language of the screen.
    pub settings: Arc<SettingsStore>,
    /// The server.
    pub client: ServerClient,
    /// What is away.
    pub link: Arc<Link>,
    /// Where the answers go.
    pub screen: Arc<Screen>,
    /// How long everything takes.
    pub timings: Timings,
}

impl Redeemer {
    /// Works for ever.
    pub(crate) async fn work(self) {
        let mut request_ids = RequestIds::default();
        loop {
            let incoming = self.inbox.next().await;
            self.redeem(incoming, &mut request_ids).await;
            self.inbox.shown();
        }
    }

    async fn redeem(&self, incoming: Incoming, request_ids: &mut RequestIds) {
        let Some(session) = self.session.current() else {
            self.screen.show(KioskEvent::Outcome { outcome: Outcome::SignedOut });
            return;
        };
        self.screen
            .show(KioskEvent::Reading { order_tail: incoming.order_no.tail().to_owned(), entry: incoming.entry });
        let mut attempt =
            Attempt { request_id: request_ids.of(&incoming, Instant::now(), &self.timings), incoming, session };
        tracing::debug!(elapsed = ?attempt.incoming.seen_at.elapsed(), "a code is on its way");
        let away = match self.while_they_wait(&mut attempt, request_ids).await {
            Ok(answer) => return self.conclude(&attempt, answer, request_ids),
            Err(away) => away,
        };
        let repeating = self.link.repeating();
        let order_no = attempt.incoming.order_no.clone();
        tracing::warn!(order.no = %order_no, ?away, "an attempt has no answer; it is repeated");
        self.screen.show(KioskEvent::Outcome { outcome: Outcome::CannotCheck { order_no, away } });
        self.link.found(Some(away));
        // Nobody is held up by what follows.
        self.inbox.shown();
        let answer = tokio::select! {
            answer = self.until_it_is_back(&mut attempt, request_ids) => answer,
            () = self.inbox.arrival() => None,
        };
        drop(repeating);
        if let Some(answer) = answer {
            self.conclude(&attempt, answer, request_ids);
        }
    }

    /// The tries that the person at the gate waits for.
    async fn while_they_wait(&self, attempt: &mut Attempt, ids: &mut RequestIds) -> Result<Answer, Away> {
        let deadline = Instant::now() + self.timings.attempt;
        loop {
            let tried = tokio::time::timeout_at(deadline, self.try_once(attempt, ids)).await;
            match tried.unwrap_or(Err(Away::Network)) {
                // A lost answer is often the only one that is lost.
                Err(Away::Network) => {}
                said => return said,
            }
            let next = Instant::now() + self.timings.quick_repeat;
            // Known to be away: patience is for the first fault. And nothing waits behind a failed try.
            if next >= deadline || self.link.away().is_some() || self.inbox.has_waiting() {
                return Err(Away::Network);
            }
            tokio::select! {
                () = tokio::time::sleep_until(next) => {}
                () = self.inbox.arrival() => return Err(Away::Network),
            }
        }
    }

    /// The tries after that, so that "it is back" shows what came of it.
    async fn until_it_is_back(&self, attempt: &mut Attempt, ids: &mut RequestIds) -> Option<Answer> {
        let give_up = Instant::now() + self.timings.give_up;
        while Instant::now() < give_up {
            tokio::time::sleep(self.timings.repeat).await;
            if self.session.current().is_none_or(|now| now.token != attempt.session.token) {
                return None;
            }
            match self.try_once(attempt, ids).await {
                Ok(answer) => return Some(answer),
                Err(away) => self.link.found(Some(away)),
            }
        }
        None
    }

    async fn try_once(&self, attempt: &mut Attempt, ids: &mut RequestIds) -> Result<Answer, Away> {
        loop {
            let request = ConsumeRequest {
                order_no: attempt.incoming.order_no.to_string(),
                verify_code: Secret::new(attempt.incoming.verify_code.expose()),
                request_id: Some(attempt.request_id.id.as_str().to_owned()),
                entry: Some(attempt.incoming.entry),
            };
            let caller = Caller { token: Some(attempt.session.token.clone()), locale: self.settings.get().locale };
            match self.client.consume(&caller, &request).await {
                Ok(consumed) => return Ok(Ok(consumed)),
                // The redemption that this id stood for has been reversed since: a new attempt in its own right.
                Err(Failure::Refused(Refusal { code: Some(ErrorCode::Conflict), .. })) if attempt.request_id.kept => {
                    ids.settled(&attempt.incoming);
                    attempt.request_id = ids.of(&attempt.incoming, Instant::now(), &self.timings);
                }
                Err(Failure::Refused(refusal)) => return Ok(Err(refusal)),
                Err(Failure::Away(away)) => return Err(away),
                Err(Failure::Unsent) => return Err(Away::Network),
            }
        }
    }

    /// The server has spoken.
    fn conclude(&self, attempt: &Attempt, answer: Answer, ids: &mut RequestIds) {
        let order_no = &attempt.incoming.order_no;
        let outcome = match answer {
            Ok(consumed) => {
                // Replayed because an answer was lost is news to those who wait; replayed because it is shown twice is not.
                let moment_ago = consumed.replayed && attempt.request_id.shown;
                if !moment_ago {
                    ids.succeeded(&attempt.incoming, Instant::now());
                }
                Outcome::Admitted {
                    order_no: consumed.order_no,
                    visitor_name: consumed.visitor_name,
                    party_size: consumed.party_size,
                    visit_at: consumed.visit_at,
                    task_no: consumed.task_no,
                    consumed_at: consumed.consumed_at,
                    moment_ago,
                }
            }
            Err(refusal) => {
                // A session is looked at before an earlier success is looked up: such a refusal tells nothing of that.
                if !matches!(refusal.code, Some(ErrorCode::Unauthenticated | ErrorCode::Forbidden)) {
                    ids.settled(&attempt.incoming);
                }
                outcome_of(&refusal, order_no)
            }
        };
        tracing::info!(order.no = %order_no, outcome = kind(&outcome), "an attempt has its answer");
        if outcome == Outcome::SignedOut && self.session.end_of(&attempt.session.token) {
            self.screen.show(KioskEvent::Session { guide: None, why: Some(WhySignIn::Ended) });
        }
        let away = match &outcome {
            // The probe finds it back, and the screen leaves this answer.
            Outcome::CannotCheck { away, .. } => Some(*away),
            _ => None,
        };
        self.screen.show(KioskEvent::Outcome { outcome });
        self.link.found(away);
    }
}

/// What the server said.
type Answer = Result<wire::api::Consumed, Refusal>;

/// A code with what is needed to send it again and again as the same attempt.
struct Attempt {
    incoming: Incoming,
    session: SignedIn,
    request_id: KnownId,
}

/// The screen's word for the server's no.
fn outcome_of(refusal: &Refusal, order_no: &OrderNo) -> Outcome {
    let order_no = order_no.clone();
    let read = |data: &serde_json::Value| serde_json::from_value::<OrderState>(data.clone()).ok();
    match refusal.code {
        Some(ErrorCode::Unauthenticated | ErrorCode::Forbidden) => Outcome::SignedOut,
        Some(ErrorCode::BookingOrderNotExists) => Outcome::NotYours { order_no },
        Some(ErrorCode::StatusNotAllowConsume) => match read(&refusal.data) {
            Some(state) if state.status == OrderStatus::Consumed => Outcome::AlreadyRedeemed {
                order_no,
                consumed_at: state.consumed_at,
                consumed_by: state.consumed_by.flatten(),
                device: state.device.flatten(),
            },
            Some(state) => Outcome::WrongStatus { order_no, status: state.status },
            None => Outcome::CannotCheck { order_no, away: Away::Server },
        },
        Some(ErrorCode::VerifyCodeInvalid) => Outcome::NotValid { order_no },
        Some(ErrorCode::ConsumeTooFrequent | ErrorCode::TooManyRequests) => {
            let retry_after = serde_json::from_value::<RetryAfter>(refusal.data.clone()).map(|r| r.retry_after);
            // Without a number the screen would stand still for ever.
            Outcome::TooMany { retry_after: retry_after.unwrap_or(60).max(1) }
        }
        Some(ErrorCode::OperatorFrozen) => Outcome::Frozen,
        // Nothing that a guide could put right: a fault of the kiosk or of the server, and surely no admission.
        _ => Outcome::CannotCheck { order_no, away: Away::Server },
    }
}

/// The outcome's name for the log.
fn kind(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Admitted { .. } => "admitted",
        Outcome::AlreadyRedeemed { .. } => "already redeemed",
        Outcome::WrongStatus { .. } => "wrong status",
        Outcome::NotValid { .. } => "not valid",
        Outcome::NotYours { .. } => "not yours",
        Outcome::Foreign => "foreign",
        Outcome::TooMany { .. } => "too many",
        Outcome::Frozen => "frozen",
        Outcome::CannotCheck { .. } => "cannot check",
        Outcome::SignedOut => "signed out",
    }
}

/// The request ids that still mean something, each for an order and the code that was shown for it. The server answers a
/// repeat without a look at the code, so another code must never be sent under the same id.
#[derive(Debug, Default)]
struct RequestIds {
    shown: HashMap<(OrderNo, VerifyCode), Kept>,
}

#[derive(Debug)]
struct Kept {
    id: RequestId,
    since: Instant,
    /// When this kiosk showed the success; `None` while the end of the attempt is unknown.
    shown: Option<Instant>,
}

/// The id of an attempt.
#[derive(Debug, Clone)]
struct KnownId {
    id: RequestId,
    /// It stood for an earlier attempt already.
    kept: bool,
    /// That attempt's success has been shown.
    shown: bool,
}

impl RequestIds {
    /// So many attempts with an unknown end are remembered; the oldest is forgotten first.
    const MOST: usize = 500;

    /// The id for an attempt that begins: the kept one, or a new one, whose end is unknown from now on.
    fn of(&mut self, incoming: &Incoming, now: Instant, timings: &Timings) -> KnownId {
        self.shown.retain(|_, kept| match kept.shown {
            Some(shown) => now < shown + timings.own_success,
            None => now < kept.since + timings.unknown_end,
        });
        let key = key(incoming);
        if let Some(kept) = self.shown.get(&key) {
            return KnownId { id: kept.id.clone(), kept: true, shown: kept.shown.is_some() };
        }
        if self.shown.len() >= Self::MOST
            && let Some(oldest) = self.shown.iter().min_by_key(|(_, kept)| kept.since).map(|(key, _)| key.clone())
        {
            self.shown.remove(&oldest);
        }
        let id = new_request_id();
        self.shown.insert(key, Kept { id: id.clone(), since: now, shown: None });
        KnownId { id, kept: false, shown: false }
    }

    /// The success is on the screen.
    fn succeeded(&mut self, incoming: &Incoming, now: Instant) {
        if let Some(kept) = self.shown.get_mut(&key(incoming)) {
            kept.shown = Some(now);
        }
    }

    /// The server has refused; the next attempt is a new one.
    fn settled(&mut self, incoming: &Incoming) {
        self.shown.remove(&key(incoming));
    }
}

fn key(incoming: &Incoming) -> (OrderNo, VerifyCode) {
    (incoming.order_no.clone(), incoming.verify_code.clone())
}

fn new_request_id() -> RequestId {
    RequestId::parse(&uuid::Uuid::new_v4().to_string()).expect("a UUID has the form of a request id")
}

#[cfg(test)]
mod tests;
