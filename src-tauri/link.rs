//! What is away, and when it is back.

use crate::host_types::{Away, KioskEvent};
use crate::screen::Screen;
use crate::server_client::ServerClient;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How often the server is asked whether it can do its work.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// While something is away.
    pub away: Duration,
    /// While all is well, so that a cut cable shows before a visitor stands there.
    pub well: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { away: Duration::from_secs(1), well: Duration::from_secs(15) }
    }
}

/// The state of the way to the server.
#[derive(Debug)]
pub(crate) struct Link {
    screen: Arc<Screen>,
    away: Mutex<Option<Away>>,
    changed: Notify,
    /// Attempts that are being repeated; they are the better probe.
    repeating: AtomicUsize,
}

impl Link {
    /// A link that is taken to be well until something is found to be away.
    pub(crate) fn new(screen: Arc<Screen>) -> Arc<Self> {
        Arc::new(Self { screen, away: Mutex::default(), changed: Notify::new(), repeating: AtomicUsize::new(0) })
    }

    /// What is away.
    pub(crate) fn away(&self) -> Option<Away> {
        *self.away.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something was found to be away, or to be well; the screen hears of changes.
    pub(crate) fn found(&self, away: Option<Away>) {
        // Held while the screen is told, so that two findings at once arrive in the order in which they count.
        let mut known = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        if *known == away {
            return;
        }
        tracing::info!(?away, "the way to the server has changed");
        *known = away;
        self.screen.show(KioskEvent::Link { away });
        self.changed.notify_one();
    }

    /// No probes while the guard lives.
    pub(crate) fn repeating(self: &Arc<Self>) -> Repeating {
        self.repeating.fetch_add(1, Ordering::Relaxed);
        Repeating(self.clone())
    }

    /// Probes the server for ever.
    pub(crate) async fn probe(self: Arc<Self>, client: ServerClient, pace: Pace) {
        loop {
            let wait = if self.away().is_some() { pace.away } else { pace.well };
            tokio::select! {
                () = self.changed.notified() => continue,
                () = tokio::time::sleep(wait) => {}
            }
            if self.repeating.load(Ordering::Relaxed) > 0 {
                continue;
            }
            let away = client.probe().await;
            if self.repeating.load(Ordering::Relaxed) == 0 {
                self.found(away);
            }
        }
    }
}

/// While it lives an attempt is being repeated.
#[derive(Debug)]
pub(crate) struct Repeating(Arc<Link>);

impl Drop for Repeating {
    fn drop(&mut self) {
        self.0.repeating.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::host_types::{Away, KioskEvent};
    use crate::testing::Desk;

    #[tokio::test]
    async fn the_screen_hears_of_changes_alone_and_that_it_is_back() {
        let mut desk = Desk::open().await;
        desk.server.set_unready("database");
        desk.link.found(Some(Away::Network));
        desk.link.found(Some(Away::Network));
        assert_eq!(desk.next_event().await, KioskEvent::Link { away: Some(Away::Network) });
        assert_eq!(desk.next_event().await, KioskEvent::Link { away: Some(Away::Server) });
        desk.server.set_unready("");
        assert_eq!(desk.next_event().await, KioskEvent::Link { away: None });
    }
}
