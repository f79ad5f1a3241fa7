//! Where a session outlives the app: the system's keyring, or the place that comes next to it. Never a file.
//!
//! On Linux the Secret Service (GNOME's keyring, KDE's wallet), then the kernel's keyring, which forgets at a reboot; on
//! Windows and macOS the system's own. A place may be missing, locked, or wait for a prompt that nobody answers: each call
//! has a thread of its own and a time limit, and what fails is told to the log in full and to the guide in a sentence.

use crate::host_types::{Kept, KioskEvent};
use crate::screen::Screen;
use crate::session::{Session, SignedIn};
use keyring_core::{CredentialStore, Entry, Error};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, oneshot};
use wire::Secret;

/// The name of our entries. Each names its server as well, so that no server is ever sent another one's token.
const SERVICE: &str = "guidepost";

/// What an entry holds for a moment before it holds a session.
const TRIAL: &[u8] = b"trial";

/// How long one call to a place may take. A locked keyring asks whoever sits there to unlock it, and at a kiosk nobody does.
const LIMIT: Duration = Duration::from_secs(5);

/// Opens a place; done anew for each call, for a service may start, stop or be unlocked meanwhile.
type Open = Arc<dyn Fn() -> keyring_core::Result<Arc<CredentialStore>> + Send + Sync>;

/// A place that can hold a session.
#[derive(Clone)]
struct Place {
    kept: Kept,
    open: Open,
}

/// The places that can hold a session, the best one first.
#[derive(Clone, Default)]
pub(crate) struct Places(Vec<Place>);

impl std::fmt::Debug for Places {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|place| place.kept)).finish()
    }
}

/// One server's session in these places.
#[derive(Debug)]
pub(crate) struct Keyring {
    places: Places,
    server: String,
    limit: Duration,
    /// The machine's time in Unix milliseconds.
    now: fn() -> i64,
    /// The `at` of the newest entry that was seen or written.
    latest: AtomicI64,
}

/// What an entry holds.
#[derive(Serialize, Deserialize)]
struct Stored {
    /// When its session was kept, in Unix milliseconds. A place that was locked for a while brings back an old entry; the
    /// newest one counts, whichever place has it.
    at: i64,
    /// `None`: the session that was kept at that time was signed out, and so is everything older.
    session: Option<StoredSession>,
}

/// With the name, so that the kiosk can say who is signed in while the server is away.
#[derive(Serialize, Deserialize)]
struct StoredSession {
    token: Secret,
    guide: String,
}

/// Which session is meant, and when it was kept.
#[derive(Debug, Clone, PartialEq)]
struct Held {
    token: Secret,
    at: i64,
}

/// The session of an earlier start.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    /// Where it was.
    kept: Kept,
    at: i64,
    /// Whose it is.
    pub signed_in: SignedIn,
}

/// What a look into every place has brought.
#[derive(Debug)]
pub(crate) enum Look {
    /// The newest session that is kept.
    Found(Found),
    /// Nobody is signed in.
    Nobody,
    /// Nobody knows: the best place is locked or missing, so that it could not have kept a session either.
    Blind,
}

/// What a place holds once a session has been taken out of it.
#[derive(PartialEq)]
enum Left {
    Nothing,
    /// An entry that is none of the session's business.
    Another,
}

/// Why a place is of no use.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("{}", cause(.0))]
    Refuses(Error),
    #[error("it did not answer in time; it may be locked and wait for somebody to unlock it")]
    Silent,
}

/// What an error says, without what stands in the entry.
fn cause(error: &Error) -> String {
    match error {
        Error::BadDataFormat(..) => "the entry is spoilt".to_owned(),
        Error::Ambiguous(entries) => format!("there are {} entries for this server", entries.len()),
        other => other.to_string(),
    }
}

/// What stands in an entry; `None` where there is none, or nothing of ours.
fn read(entry: &Entry) -> keyring_core::Result<Option<Stored>> {
    let bytes = match entry.get_secret() {
        Ok(bytes) => bytes,
        Err(Error::NoEntry) => return Ok(None),
        Err(error) => return Err(error),
    };
    let stored = serde_json::from_slice(&bytes).ok();
    if stored.is_none() && bytes != TRIAL {
        tracing::warn!("what is kept there is no session");
    }
    Ok(stored)
}

/// Deletes an entry of which this is true, or that is spoilt.
fn remove(entry: &Entry, which: impl FnOnce(&Stored) -> bool) -> keyring_core::Result<Left> {
    if read(entry)?.is_some_and(|stored| !which(&stored)) {
        return Ok(Left::Another);
    }
    match entry.delete_credential() {
        Ok(()) | Err(Error::NoEntry) => Ok(Left::Nothing),
        Err(error) => Err(error),
    }
}

impl Places {
    /// Those of this system.
    pub(crate) fn of_this_system() -> Self {
        let places = Self::default();
        #[cfg(target_os = "linux")]
        let places = places
            .with(Kept::Keyring, || Ok(zbus_secret_service_keyring_store::Store::new()?))
            .with(Kept::UntilReboot, || Ok(linux_keyutils_keyring_store::Store::new()?));
        #[cfg(target_os = "macos")]
        let places = places.with(Kept::Keyring, || Ok(apple_native_keyring_store::keychain::Store::new()?));
        #[cfg(windows)]
        let places = places.with(Kept::Keyring, || Ok(windows_native_keyring_store::Store::new()?));
        places
    }

    /// And then this one.
    pub(crate) fn with(
        mut self,
        kept: Kept,
        open: impl Fn() -> keyring_core::Result<Arc<CredentialStore>> + Send + Sync + 'static,
    ) -> Self {
        self.0.push(Place { kept, open: Arc::new(open) });
        self
    }
}

impl Keyring {
    /// For the server at this address. `now` is the machine's time in Unix milliseconds.
    pub(crate) fn new(places: Places, server: String, now: fn() -> i64) -> Self {
        Self { places, server, limit: LIMIT, now, latest: AtomicI64::new(i64::MIN) }
    }

    /// The newest session that is kept. What is older is deleted, wherever it is.
    async fn find(&self) -> Look {
        let (mut entries, mut unread) = (Vec::new(), Vec::new());
        for place in &self.places.0 {
            match self.ask(place, read, |_| ()).await {
                Ok(Some(stored)) => entries.push((place, stored)),
                Ok(None) => {}
                Err(why) => {
                    tracing::warn!(place = ?place.kept, %why, "cannot look for a session");
                    unread.push(place.kept);
                }
            }
        }
        // A sign-out is as old as its session and counts before it; of two like ones the better place's.
        let newest = (0..entries.len()).rev().max_by_key(|&i| (entries[i].1.at, entries[i].1.session.is_none()));
        let Some(newest) = newest else {
            return match self.places.0.first() {
                Some(best) if unread.contains(&best.kept) || !self.takes(best).await => Look::Blind,
                _ => Look::Nobody,
            };
        };
        let (place, Stored { at, session }) = entries.swap_remove(newest);
        self.latest.fetch_max(at, Ordering::Relaxed);
        let mut settled = unread.is_empty();
        for (place, _) in entries {
            settled &= self.clear(place, at).await.is_ok();
        }
        match session {
            Some(StoredSession { token, guide }) => {
                Look::Found(Found { kept: place.kept, at, signed_in: SignedIn { token, guide, keep: true } })
            }
            None => {
                if settled {
                    // There is nothing left that it could speak of.
                    self.clear(place, at).await.ok();
                }
                Look::Nobody
            }
        }
    }

    /// Keeps a session in the best place that takes it, and nowhere else.
    async fn keep(&self, signed_in: &SignedIn) -> (Kept, Held) {
        // Newer than anything seen before, though the clock may have been put back.
        let at = (self.now)().max(self.latest.load(Ordering::Relaxed).saturating_add(1));
        self.latest.fetch_max(at, Ordering::Relaxed);
        let held = Held { token: signed_in.token.clone(), at };
        let session = StoredSession { token: signed_in.token.clone(), guide: signed_in.guide.clone() };
        let stored = Arc::new(Stored { at, session: Some(session) });
        let mut kept = Kept::Memory;
        for place in &self.places.0 {
            if kept != Kept::Memory {
                // An older session must not come to light when the better place fails one day; and if it cannot be taken
                // out, it is still the older one.
                if let Err(why) = self.clear(place, at).await {
                    tracing::debug!(place = ?place.kept, %why, "an older session that may be there stays");
                }
                continue;
            }
            match self.write(place, &stored).await {
                Ok(()) => kept = place.kept,
                Err(why) => tracing::warn!(place = ?place.kept, %why, "cannot keep the session"),
            }
        }
        tracing::info!(place = ?kept, "where the session is kept");
        (kept, held)
    }

    /// Takes a session out of every place, and whatever is older: it has been signed out. A newer one stays, for it is
    /// another kiosk's of the same user of this system. Where a place cannot be reached, another one notes the sign-out.
    async fn forget(&self, held: &Held) {
        let (mut emptied, mut unreached, mut another) = (Vec::new(), false, false);
        for place in &self.places.0 {
            match self.clear(place, held.at).await {
                Ok(Left::Nothing) => emptied.push(place),
                Ok(Left::Another) => another = true,
                Err(why) => {
                    tracing::warn!(place = ?place.kept, %why, "a session that may be kept there cannot be taken out");
                    unreached = true;
                }
            }
        }
        if another {
            tracing::info!("signed out: a newer session is kept, which stays");
            return;
        }
        if !unreached {
            tracing::info!("signed out: no session is kept any more");
            return;
        }
        let signed_out = Arc::new(Stored { at: held.at, session: None });
        for place in emptied {
            match self.write(place, &signed_out).await {
                Ok(()) => {
                    tracing::info!(place = ?place.kept, "signed out: it is noted, and what could not be taken out is not used");
                    return;
                }
                Err(why) => tracing::debug!(place = ?place.kept, %why, "cannot note the sign-out"),
            }
        }
        tracing::warn!("signed out: the session may be found again, for it could not be taken out nor that be noted");
    }

    /// Takes this very session out of every place, and nothing else.
    async fn take_out(&self, token: &Secret) {
        for place in &self.places.0 {
            let token = token.clone();
            let mine = move |stored: &Stored| stored.session.as_ref().is_some_and(|session| session.token == token);
            if let Err(why) = self.ask(place, |entry| remove(entry, mine), |_| ()).await {
                tracing::warn!(place = ?place.kept, %why, "a session that may be kept there cannot be taken out");
            }
        }
    }

    /// Empties a place of what was kept at this time or before.
    async fn clear(&self, place: &Place, at: i64) -> Result<Left, Unusable> {
        self.ask(place, move |entry| remove(entry, |stored| stored.at <= at), |_| ()).await
    }

    /// Whether a place that holds nothing would take a session: a locked one says that it is empty without being unlocked.
    async fn takes(&self, place: &Place) -> bool {
        let attempt = |entry: &Entry| {
            // A prompt may have been answered after somebody signed in.
            if read(entry)?.is_none() {
                entry.set_secret(TRIAL)?;
                entry.get_secret()?;
                remove(entry, |_| false)?;
            }
            Ok(())
        };
        match self.ask(place, attempt, |_| ()).await {
            Ok(()) => true,
            Err(why) => {
                tracing::warn!(place = ?place.kept, %why, "no session can be kept here");
                false
            }
        }
    }

    async fn write(&self, place: &Place, stored: &Arc<Stored>) -> Result<(), Unusable> {
        let (new, late) = (stored.clone(), stored.at);
        let write = move |entry: &Entry| {
            let bytes = serde_json::to_vec(&*new).map_err(|error| Error::PlatformFailure(error.into()))?;
            // The kernel takes an entry from whoever has no session of the system's, and then neither gives it back
            // nor lets it go. So it has to be found out before the token is in it.
            entry.set_secret(TRIAL)?;
            entry.get_secret()?;
            entry.set_secret(&bytes)
        };
        // A prompt that is answered later would keep what may have been signed out by then.
        self.ask(place, write, move |entry| drop(remove(entry, |stored| stored.at <= late))).await
    }

    /// Does something with this server's entry in a place, within the time limit. What is done only after it is undone.
    async fn ask<T: Send + 'static>(
        &self,
        place: &Place,
        work: impl FnOnce(&Entry) -> keyring_core::Result<T> + Send + 'static,
        undo: impl FnOnce(&Entry) + Send + 'static,
    ) -> Result<T, Unusable> {
        let (open, server) = (place.open.clone(), self.server.clone());
        let (tell, mut answer) = oneshot::channel();
        // Not one of the runtime's threads: it waits for those when it ends, and this one may hang for ever.
        let thread = std::thread::Builder::new().name("keyring".into()).spawn(move || {
            let done = open().and_then(|store| {
                let entry = store.build(SERVICE, &server, None)?;
                let result = work(&entry)?;
                Ok((store, entry, result))
            });
            match done {
                Ok((_store, entry, result)) => {
                    if tell.send(Ok(result)).is_err() {
                        undo(&entry);
                    }
                }
                Err(error) => drop(tell.send(Err(error))),
            }
        });
        if let Err(error) = thread {
            return Err(Unusable::Refuses(Error::PlatformFailure(error.into())));
        }
        let told = match tokio::time::timeout(self.limit, &mut answer).await {
            Ok(told) => told.ok(),
            Err(_) => {
                // From here on the thread hears that nobody waits; what it said a moment before still counts.
                answer.close();
                answer.try_recv().ok()
            }
        };
        // Silence before the time: the thread has panicked, which its own words have told.
        told.ok_or(Unusable::Silent)?.map_err(Unusable::Refuses)
    }
}

/// Sees to it that the keyring holds the session of this kiosk, and nothing when nobody is signed in.
#[derive(Debug)]
pub(crate) struct Keeper {
    /// `None` in the demo, whose sessions are gone with it.
    keyring: Option<Keyring>,
    session: Arc<Session>,
    screen: Arc<Screen>,
    /// What the keyring holds; `None` until it has been looked at. Held through each change, so that they come one by one.
    holds: Mutex<Option<Holds>>,
}

/// What the keyring holds.
#[derive(Debug, PartialEq)]
enum Holds {
    Nothing,
    /// This session, wherever it was kept.
    Session(Held),
}

impl Keeper {
    /// A keeper that has not looked yet.
    pub(crate) fn new(keyring: Option<Keyring>, session: Arc<Session>, screen: Arc<Screen>) -> Self {
        Self { keyring, session, screen, holds: Mutex::default() }
    }

    /// The session of an earlier start. What comes of it is for [`Self::take_up`] or [`Self::give_up`] to say; until then it
    /// stays, whatever happens.
    pub(crate) async fn find(&self) -> Look {
        match &self.keyring {
            Some(keyring) => keyring.find().await,
            None => Look::Nobody,
        }
    }

    /// The session that was found is this kiosk's again.
    pub(crate) async fn take_up(&self, found: Found) {
        let Found { kept, at, signed_in } = found;
        tracing::info!(place = ?kept, "a session was found");
        // Held until the session has begun: in between it would look like one that has ended.
        let mut holds = self.holds.lock().await;
        *holds = Some(Holds::Session(Held { token: signed_in.token.clone(), at }));
        let guide = Some(signed_in.guide.clone());
        self.session.begin(signed_in);
        self.screen.show(KioskEvent::Session { guide, why: None });
        self.screen.show(KioskEvent::Kept { kept: Some(kept) });
    }

    /// The session that was found is of no use any more. Another one, which may be good, is left alone.
    pub(crate) async fn give_up(&self, found: Found) {
        let mut holds = self.holds.lock().await;
        if let Some(keyring) = &self.keyring {
            keyring.take_out(&found.signed_in.token).await;
        }
        holds.get_or_insert(Holds::Nothing);
    }

    /// Follows the session for ever, whoever ends or begins it.
    pub(crate) async fn follow(self: Arc<Self>) {
        let mut changes = self.session.changes();
        // Somebody may have been quicker than this.
        self.settle().await;
        while changes.changed().await.is_ok() {
            self.settle().await;
        }
    }

    /// Makes the keyring hold what is the session now. When it returns, that is so, or cannot be.
    pub(crate) async fn settle(&self) {
        let Some(keyring) = &self.keyring else { return };
        let mut holds = self.holds.lock().await;
        loop {
            let session = self.session.current().filter(|session| session.keep);
            if holds.is_none() && session.is_none() {
                // Nobody has looked yet: what is kept is for the next start.
                return;
            }
            let kept = match (&session, holds.as_ref()) {
                (None, Some(Holds::Nothing)) => return,
                (Some(session), Some(Holds::Session(held))) if held.token == session.token => return,
                (Some(session), _) => {
                    let (kept, held) = keyring.keep(session).await;
                    *holds = Some(Holds::Session(held));
                    Some(kept)
                }
                (None, held) => {
                    if let Some(Holds::Session(held)) = held {
                        keyring.forget(held).await;
                    }
                    *holds = Some(Holds::Nothing);
                    None
                }
            };
            self.screen.show(KioskEvent::Kept { kept });
        }
    }
}

#[cfg(test)]
mod tests;
