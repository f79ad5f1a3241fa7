//! Who is signed in at this kiosk, and the token that shows it: in memory here, and between two starts in the system's
//! keyring (`keyring.rs`), never in a file.

use tokio::sync::watch;
use wire::Secret;

/// A guide's session.
#[derive(Debug, Clone)]
pub(crate) struct SignedIn {
    /// The bearer token.
    pub token: Secret,
    /// The guide's name.
    pub guide: String,
    /// It is to outlive the app. A session made from a one-time link ends with it.
    pub keep: bool,
}

/// The session of this kiosk, if there is one.
#[derive(Debug)]
pub(crate) struct Session {
    current: watch::Sender<Option<SignedIn>>,
}

impl Default for Session {
    fn default() -> Self {
        Self { current: watch::Sender::new(None) }
    }
}

impl Session {
    /// Who is signed in.
    pub(crate) fn current(&self) -> Option<SignedIn> {
        self.current.borrow().clone()
    }

    /// Hears of every change from now on, whoever makes it.
    pub(crate) fn changes(&self) -> watch::Receiver<Option<SignedIn>> {
        self.current.subscribe()
    }

    /// Somebody signed in.
    pub(crate) fn begin(&self, signed_in: SignedIn) {
        self.current.send_replace(Some(signed_in));
    }

    /// Ends the session and says whose it was.
    pub(crate) fn end(&self) -> Option<SignedIn> {
        self.current.send_replace(None)
    }

    /// Ends the session that this token stands for. `false`: it had been replaced meanwhile, and the new one stays.
    pub(crate) fn end_of(&self, token: &Secret) -> bool {
        self.current.send_if_modified(|current| {
            let same = current.as_ref().is_some_and(|s| s.token == *token);
            if same {
                *current = None;
            }
            same
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signed_in(token: &str, guide: &str) -> SignedIn {
        SignedIn { token: Secret::new(token), guide: guide.into(), keep: true }
    }

    #[test]
    fn the_end_of_an_old_session_leaves_the_new_one_alone() {
        let session = Session::default();
        session.begin(signed_in("old", "A"));
        session.begin(signed_in("new", "B"));
        assert!(!session.end_of(&Secret::new("old")));
        assert_eq!(session.current().map(|s| s.guide), Some("B".to_owned()));
        assert!(session.end_of(&Secret::new("new")));
        assert!(session.current().is_none());
    }

    #[test]
    fn a_token_is_not_printed() {
        let session = Session::default();
        session.begin(signed_in("tell-nobody", "A"));
        assert!(!format!("{session:?}").contains("tell-nobody"));
    }
}
