//! Where events go: to the page, and to the next page after a reload.

use crate::host_types::{Kept, KioskEvent, SourceHealth, WhySignIn};
use std::sync::{Mutex, PoisonError};

/// Takes an event to a page; `false` when the page is gone.
type Page = Box<dyn Fn(KioskEvent) -> bool + Send>;

/// The screen that is told what happens.
#[derive(Default)]
pub(crate) struct Screen {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    page: Option<Page>,
    /// What a page that has just been loaded must know.
    health: Option<SourceHealth>,
    away: Option<crate::host_types::Away>,
    guide: Option<String>,
    why: Option<WhySignIn>,
    kept: Option<Kept>,
}

impl Screen {
    /// This page hears of everything from now on, and at once how things stand. It replaces the one before: there is one
    /// window, and a reload makes a new page.
    pub(crate) fn attach(&self, page: impl Fn(KioskEvent) -> bool + Send + 'static) {
        let mut state = self.lock();
        page(KioskEvent::Session { guide: state.guide.clone(), why: state.why });
        if state.kept.is_some() {
            page(KioskEvent::Kept { kept: state.kept });
        }
        page(KioskEvent::Link { away: state.away });
        if let Some(health) = state.health.clone() {
            page(KioskEvent::Source { health });
        }
        state.page = Some(Box::new(page));
    }

    /// Something has happened.
    pub(crate) fn show(&self, event: KioskEvent) {
        let mut state = self.lock();
        match &event {
            KioskEvent::Source { health } => state.health = Some(health.clone()),
            KioskEvent::Link { away } => state.away = *away,
            KioskEvent::Session { guide, why } => {
                state.guide.clone_from(guide);
                state.why = *why;
            }
            KioskEvent::Kept { kept } => state.kept = *kept,
            KioskEvent::Reading { .. } | KioskEvent::Outcome { .. } => {}
        }
        if state.page.as_ref().is_some_and(|page| !page(event)) {
            state.page = None;
        }
    }

    /// Why somebody has to sign in again, if that was said.
    pub(crate) fn why_sign_in(&self) -> Option<WhySignIn> {
        self.lock().why
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Screen")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_types::{Away, Outcome, SourceState};
    use std::sync::Arc;

    #[test]
    fn a_page_that_comes_late_hears_how_things_stand_and_nothing_of_old_answers() {
        let screen = Screen::default();
        let health = SourceHealth { name: "Desk camera".into(), state: SourceState::Lost };
        screen.show(KioskEvent::Source { health: health.clone() });
        screen.show(KioskEvent::Link { away: Some(Away::Server) });
        screen.show(KioskEvent::Session { guide: Some("Li Na".into()), why: None });
        screen.show(KioskEvent::Kept { kept: Some(Kept::Memory) });
        screen.show(KioskEvent::Outcome { outcome: Outcome::Foreign });
        let heard = Arc::new(Mutex::new(Vec::new()));
        let page = heard.clone();
        screen.attach(move |event| {
            page.lock().unwrap().push(event);
            true
        });
        screen.show(KioskEvent::Outcome { outcome: Outcome::Frozen });
        assert_eq!(
            *heard.lock().unwrap(),
            [
                KioskEvent::Session { guide: Some("Li Na".into()), why: None },
                KioskEvent::Kept { kept: Some(Kept::Memory) },
                KioskEvent::Link { away: Some(Away::Server) },
                KioskEvent::Source { health },
                KioskEvent::Outcome { outcome: Outcome::Frozen },
            ]
        );
    }
}
