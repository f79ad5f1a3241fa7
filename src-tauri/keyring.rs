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
}

/// What an entry holds: with the name, so that the kiosk can say who is signed in while the server is away.
#[derive(Serialize, Deserialize)]
struct Stored {
    token: Secret,
    guide: String,
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
    /// For the server at this address.
    pub(crate) fn new(places: Places, server: String) -> Self {
        Self { places, server, limit: LIMIT }
    }

    /// The session that was kept, and where.
    async fn find(&self) -> Option<(Kept, SignedIn)> {
        for place in &self.places.0 {
            let read = |entry: &Entry| match entry.get_secret() {
                Ok(bytes) => Ok(Some(bytes)),
                Err(Error::NoEntry) => Ok(None),
                Err(error) => Err(error),
            };
            match self.ask(place, read, |_| ()).await {
                Ok(Some(bytes)) => match serde_json::from_slice::<Stored>(&bytes) {
                    Ok(Stored { token, guide }) => return Some((place.kept, SignedIn { token, guide, keep: true })),
                    Err(_) => tracing::warn!(place = ?place.kept, "what is kept there is no session"),
                },
                Ok(None) => {}
                Err(why) => tracing::warn!(place = ?place.kept, %why, "cannot look for a session"),
            }
        }
        None
    }

    /// Keeps a session in the best place that takes it, and nowhere else.
    async fn keep(&self, signed_in: &SignedIn) -> Kept {
        let stored = Stored { token: signed_in.token.clone(), guide: signed_in.guide.clone() };
        let Ok(bytes) = serde_json::to_vec(&stored) else { return Kept::Memory };
        let mut kept = Kept::Memory;
        for place in &self.places.0 {
            if kept != Kept::Memory {
                // An older session must not come to light when the better place fails one day.
                self.delete(place).await;
                continue;
            }
            let bytes = bytes.clone();
            let write = move |entry: &Entry| {
                // The kernel takes an entry from whoever has no session of the system's, and then neither gives it back
                // nor lets it go. So it has to be found out before the token is in it.
                entry.set_secret(TRIAL)?;
                entry.get_secret()?;
                entry.set_secret(&bytes)
            };
            // A prompt that is answered later would keep what may have been signed out by then.
            match self.ask(place, write, |entry| drop(entry.delete_credential())).await {
                Ok(()) => kept = place.kept,
                Err(why) => tracing::warn!(place = ?place.kept, %why, "cannot keep the session"),
            }
        }
        tracing::info!(place = ?kept, "where the session is kept");
        kept
    }

    /// Takes the session out of every place.
    async fn forget(&self) {
        for place in &self.places.0 {
            self.delete(place).await;
        }
    }

    async fn delete(&self, place: &Place) {
        let delete = |entry: &Entry| match entry.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(error),
        };
        if let Err(why) = self.ask(place, delete, |_| ()).await {
            tracing::warn!(place = ?place.kept, %why, "a session that may be kept there cannot be taken out");
        }
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
    /// The session of this token, wherever it was kept.
    Session(Secret),
}

impl Keeper {
    /// A keeper that has not looked yet.
    pub(crate) fn new(keyring: Option<Keyring>, session: Arc<Session>, screen: Arc<Screen>) -> Self {
        Self { keyring, session, screen, holds: Mutex::default() }
    }

    /// The session of an earlier start, and where it was. What comes of it is for [`Self::take_up`] or [`Self::give_up`] to
    /// say; until then it stays, whatever happens.
    pub(crate) async fn find(&self) -> Option<(Kept, SignedIn)> {
        self.keyring.as_ref()?.find().await
    }

    /// The session that was found is this kiosk's again.
    pub(crate) async fn take_up(&self, kept: Kept, found: SignedIn) {
        tracing::info!(place = ?kept, "a session was found");
        // Held until the session has begun: in between it would look like one that has ended.
        let mut holds = self.holds.lock().await;
        *holds = Some(Holds::Session(found.token.clone()));
        let guide = Some(found.guide.clone());
        self.session.begin(found);
        self.screen.show(KioskEvent::Session { guide });
        self.screen.show(KioskEvent::Kept { kept: Some(kept) });
    }

    /// The session that was found is of no use any more.
    pub(crate) async fn give_up(&self, found: SignedIn) {
        *self.holds.lock().await = Some(Holds::Session(found.token));
        self.settle().await;
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
            let wanted = session.as_ref().map_or(Holds::Nothing, |session| Holds::Session(session.token.clone()));
            if holds.as_ref() == Some(&wanted) {
                return;
            }
            let kept = match &session {
                Some(session) => Some(keyring.keep(session).await),
                None => {
                    keyring.forget().await;
                    tracing::info!("no session is kept any more");
                    None
                }
            };
            *holds = Some(wanted);
            self.screen.show(KioskEvent::Kept { kept });
        }
    }
}

#[cfg(test)]
mod tests;
