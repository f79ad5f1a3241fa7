//! The source in use: its codes go into the inbox, its health to the screen, its pictures to the preview.

use crate::host_types::{KioskEvent, Outcome, SourceChoice, SourceHealth, SourceState};
use crate::redeem::{Inbox, Incoming};
use crate::screen::Screen;
use scanner::{Code, Event, Preview, Scanner, Sighting, Source};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wire::api::Entry;

/// Pictures a second where nobody says otherwise: a slow camera's rate.
pub(crate) const PICTURES_FPS: f32 = 10.0;

/// How long a page's question for the next picture waits.
const PREVIEW_WAIT: Duration = Duration::from_secs(1);

/// Looks at one source at a time.
#[derive(Debug)]
pub(crate) struct Eye {
    inbox: Arc<Inbox>,
    screen: Arc<Screen>,
    looking: Arc<Mutex<Looking>>,
}

#[derive(Default)]
struct Looking {
    /// Counts the sources; what an earlier one still says is dropped.
    turn: u32,
    scanner: Option<Scanner>,
}

impl std::fmt::Debug for Looking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Looking(turn {})", self.turn)
    }
}

impl Eye {
    /// An eye that looks at nothing yet.
    pub(crate) fn new(inbox: Arc<Inbox>, screen: Arc<Screen>) -> Self {
        Self { inbox, screen, looking: Arc::default() }
    }

    /// Looks at this source from now on. Takes as long as the old one needs to stop.
    pub(crate) fn look_at(&self, source: Source) {
        let turn = {
            let mut looking = self.lock();
            looking.turn += 1;
            looking.turn
        };
        let (inbox, screen, current) = (self.inbox.clone(), self.screen.clone(), self.looking.clone());
        let on_event = move |event| {
            if lock(&current).turn == turn {
                hear(event, &inbox, &screen);
            }
        };
        let started = Scanner::start(source, on_event);
        let old = {
            let mut looking = self.lock();
            // Two choices at once: the later one stays.
            if looking.turn == turn { looking.scanner.replace(started) } else { Some(started) }
        };
        // Outside the lock: stopping waits for the scanner's thread, and that may wait for the lock.
        drop(old);
    }

    /// Looks at nothing any more.
    pub(crate) fn close(&self) {
        let old = {
            let mut looking = self.lock();
            looking.turn += 1;
            looking.scanner.take()
        };
        drop(old);
    }

    /// The next picture after that number, waited for by the caller's thread: eight bytes of its own number
    /// (little-endian), then a JPEG. Empty: none came.
    pub(crate) fn next_picture(&self, after: u64) -> Vec<u8> {
        let (turn, preview) = {
            let looking = self.lock();
            (looking.turn, looking.scanner.as_ref().map(Scanner::preview))
        };
        let asked = Instant::now();
        match preview.and_then(|preview| next_of(&preview, turn, after)) {
            Some(picture) => picture,
            None => {
                // A source that has ended answers at once; the page must not ask in a circle.
                std::thread::sleep(PREVIEW_WAIT.saturating_sub(asked.elapsed()));
                Vec::new()
            }
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Looking> {
        lock(&self.looking)
    }
}

fn lock(looking: &Mutex<Looking>) -> std::sync::MutexGuard<'_, Looking> {
    looking.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Each source numbers its pictures from 1: the source's turn stands in front, so that numbers grow over a change, and
/// stay small enough for a number of JavaScript.
fn next_of(preview: &Preview, turn: u32, after: u64) -> Option<Vec<u8>> {
    let after = if after >> 32 == u64::from(turn) { after & u64::from(u32::MAX) } else { 0 };
    let (sequence, jpeg) = preview.next(after, PREVIEW_WAIT)?;
    let number = (u64::from(turn) << 32) | sequence;
    let mut picture = Vec::with_capacity(8 + jpeg.len());
    picture.extend_from_slice(&number.to_le_bytes());
    picture.extend_from_slice(&jpeg);
    Some(picture)
}

fn hear(event: Event, inbox: &Inbox, screen: &Screen) {
    match event {
        Event::Sighting(Sighting { code: Code::Ours(payload), seen_at }) => inbox.scanned(Incoming {
            order_no: payload.order_no,
            verify_code: payload.verify_code,
            entry: Entry::Scan,
            seen_at,
        }),
        // While an answer is on its way it matters more, and would be taken for this one's.
        Event::Sighting(Sighting { code: Code::Foreign, .. }) if inbox.is_busy() => {}
        Event::Sighting(Sighting { code: Code::Foreign, .. }) => {
            screen.show(KioskEvent::Outcome { outcome: Outcome::Foreign });
        }
        Event::Health { name, state } => {
            tracing::info!(%name, ?state, "the source");
            screen.show(KioskEvent::Source { health: SourceHealth { name, state: state_of(state) } });
        }
    }
}

fn state_of(state: scanner::SourceState) -> SourceState {
    match state {
        scanner::SourceState::Opening => SourceState::Opening,
        scanner::SourceState::Live => SourceState::Live,
        scanner::SourceState::NoCamera => SourceState::NoCamera,
        scanner::SourceState::Lost => SourceState::Lost,
        scanner::SourceState::Busy => SourceState::Busy,
        scanner::SourceState::NoPermission => SourceState::NoPermission,
        scanner::SourceState::Stalled => SourceState::Stalled,
        scanner::SourceState::BrokenFrames => SourceState::BrokenFrames,
        scanner::SourceState::Unsupported => SourceState::Unsupported,
        scanner::SourceState::NoPictures => SourceState::NoPictures,
    }
}

/// The scanner's word for what was chosen; without a choice the first camera.
pub(crate) fn source_of(choice: Option<SourceChoice>) -> Source {
    match choice {
        Some(SourceChoice::Camera { index, name }) => {
            Source::Camera { index, name: Some(name).filter(|name| !name.is_empty()) }
        }
        Some(SourceChoice::Pictures { path }) => pictures(path.into(), PICTURES_FPS),
        None => Source::Camera { index: 0, name: None },
    }
}

/// Pictures in place of a camera, for ever.
pub(crate) fn pictures(path: std::path::PathBuf, fps: f32) -> Source {
    Source::Pictures { path, fps, repeat: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::qr::QrPayload;
    use wire::{OrderNo, VerifyCode};

    fn picture(folder: &std::path::Path, name: &str) {
        let mut jpeg = Vec::new();
        image::codecs::jpeg::JpegEncoder::new(&mut jpeg)
            .encode(&[128; 64 * 48], 64, 48, image::ExtendedColorType::L8)
            .unwrap();
        std::fs::write(folder.join(name), jpeg).unwrap();
    }

    fn number(picture: &[u8]) -> u64 {
        u64::from_le_bytes(picture[..8].try_into().unwrap())
    }

    #[test]
    fn pictures_number_themselves_on_when_the_source_changes() {
        let folder = tempfile::tempdir().unwrap();
        picture(folder.path(), "a.jpg");
        let eye = Eye::new(Arc::default(), Arc::default());
        assert!(eye.next_picture(0).is_empty(), "nothing to see yet");
        let mut last = 0;
        for _ in 0..2 {
            eye.look_at(pictures(folder.path().into(), 30.0));
            for _ in 0..2 {
                let picture = (0..20).map(|_| eye.next_picture(last)).find(|p| !p.is_empty()).unwrap();
                assert!(number(&picture) > last, "{} after {last}", number(&picture));
                assert_eq!(picture[8..10], [0xff, 0xd8], "a JPEG");
                last = number(&picture);
            }
        }
        assert!(last < 1 << 53, "a number of JavaScript");
    }

    #[test]
    fn a_foreign_code_does_not_cover_an_answer_that_is_awaited() {
        let shown = Arc::new(Mutex::new(0));
        let (inbox, screen) = (Inbox::default(), Screen::default());
        let count = shown.clone();
        screen.attach(move |event| {
            *count.lock().unwrap() += usize::from(matches!(event, KioskEvent::Outcome { .. }));
            true
        });
        let foreign = || Event::Sighting(Sighting { code: Code::Foreign, seen_at: Instant::now() });
        hear(foreign(), &inbox, &screen);
        assert_eq!(*shown.lock().unwrap(), 1);
        let payload = QrPayload {
            order_no: OrderNo::parse("BK1").unwrap(),
            verify_code: VerifyCode::from_exact("483921").unwrap(),
        };
        hear(Event::Sighting(Sighting { code: Code::Ours(payload), seen_at: Instant::now() }), &inbox, &screen);
        hear(foreign(), &inbox, &screen);
        assert_eq!(*shown.lock().unwrap(), 1);
    }
}
