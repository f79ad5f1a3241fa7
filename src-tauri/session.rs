//! Who is signed in at this kiosk, and the token that shows it.
//!
//! A session made from a one-time link lives in memory only. A session that is to outlive the process belongs into the
//! system's keyring, never into a file.

use std::sync::{Mutex, PoisonError};
use wire::Secret;

/// A guide's session.
#[derive(Debug, Clone)]
pub(crate) struct SignedIn {
    /// The bearer token.
    pub token: Secret,
    /// The guide's name.
    pub guide: String,
}

/// The session of this kiosk, if there is one.
#[derive(Debug, Default)]
pub(crate) struct Session {
    current: Mutex<Option<SignedIn>>,
}

impl Session {
    /// Who is signed in.
    pub(crate) fn current(&self) -> Option<SignedIn> {
        self.lock().clone()
    }

    /// Somebody signed in.
    pub(crate) fn begin(&self, signed_in: SignedIn) {
        *self.lock() = Some(signed_in);
    }

    /// Ends the session and says whose it was.
    pub(crate) fn end(&self) -> Option<SignedIn> {
        self.lock().take()
    }

    /// Ends the session that this token stands for. `false`: it had been replaced meanwhile, and the new one stays.
    pub(crate) fn end_of(&self, token: &Secret) -> bool {
        let mut current = self.lock();
        let same = current.as_ref().is_some_and(|s| s.token == *token);
        if same {
            *current = None;
        }
        same
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<SignedIn>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_an_old_session_leaves_the_new_one_alone() {
        let session = Session::default();
        let old = Secret::new("old");
        session.begin(SignedIn { token: old.clone(), guide: "A".into() });
        session.begin(SignedIn { token: Secret::new("new"), guide: "B".into() });
        assert!(!session.end_of(&old));
        assert_eq!(session.current().map(|s| s.guide), Some("B".to_owned()));
        assert!(session.end_of(&Secret::new("new")));
        assert!(session.current().is_none());
    }

    #[test]
    fn a_token_is_not_printed() {
        let session = Session::default();
        session.begin(SignedIn { token: Secret::new("tell-nobody"), guide: "A".into() });
        assert!(!format!("{session:?}").contains("tell-nobody"));
    }
}
