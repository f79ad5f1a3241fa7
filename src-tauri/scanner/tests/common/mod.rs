//! What the tests share: pictures of codes, and events that can be waited for.
#![allow(dead_code, reason = "each test binary uses its own part")]

use qrcodegen::{QrCode, QrCodeEcc};
use scanner::frames::Pixels;
use scanner::{Code, Event, SourceState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Long enough for a loaded machine; reached only by a test that fails.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// The shared corpora, where they are.
pub(crate) fn corpora() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    root.is_dir().then_some(root)
}

/// A payload of ours.
pub(crate) fn ours(n: u32) -> String {
    format!("TBV:BK20260801{n:04}:{}", 100_000 + n)
}

/// A grey frame of `width * height` with codes next to each other on light ground.
pub(crate) fn frame_with(texts: &[&str], width: usize, height: usize) -> Vec<u8> {
    let mut pixels = vec![200u8; width * height];
    let cell = width / texts.len().max(1);
    for (i, text) in texts.iter().enumerate() {
        let code = QrCode::encode_text(text, QrCodeEcc::Medium).unwrap();
        let modules = code.size() as usize;
        let scale = cell.min(height) / (modules + 8);
        assert!(scale >= 2, "the frame is too small for the code");
        let (left, top) = (i * cell + (cell - modules * scale) / 2, (height - modules * scale) / 2);
        for y in 0..modules * scale {
            for x in 0..modules * scale {
                if code.get_module((x / scale) as i32, (y / scale) as i32) {
                    pixels[(top + y) * width + left + x] = 30;
                }
            }
        }
    }
    pixels
}

/// The same as YUYV, as a webcam sends it.
pub(crate) fn yuyv_with(texts: &[&str]) -> Pixels {
    let (width, height) = (640, 480);
    let data = frame_with(texts, width, height).into_iter().flat_map(|y| [y, 128]).collect();
    Pixels::Yuyv { data, width, height }
}

/// The same as a JPEG.
pub(crate) fn jpeg_with(texts: &[&str]) -> Vec<u8> {
    let (width, height) = (640u16, 480u16);
    let mut jpeg = Vec::new();
    jpeg_encoder::Encoder::new(&mut jpeg, 90)
        .encode(&frame_with(texts, width.into(), height.into()), width, height, jpeg_encoder::ColorType::Luma)
        .unwrap();
    jpeg
}

/// Writes a picture whole, as a program that knows its trade does: under another name first.
pub(crate) fn put(path: &Path, bytes: &[u8]) {
    let draft = path.with_extension("part");
    std::fs::write(&draft, bytes).unwrap();
    std::fs::rename(draft, path).unwrap();
}

/// Everything a scanner said, to wait on.
#[derive(Clone, Default)]
pub(crate) struct Said(Arc<(Mutex<Vec<Event>>, Condvar)>);

impl Said {
    pub(crate) fn listener(&self) -> impl Fn(Event) + Send + Sync + 'static {
        let shared = Arc::clone(&self.0);
        move |event| {
            shared.0.lock().unwrap().push(event);
            shared.1.notify_all();
        }
    }

    pub(crate) fn all(&self) -> Vec<Event> {
        self.0.0.lock().unwrap().clone()
    }

    /// Waits until the events fulfil a condition; `what` names it in the failure.
    pub(crate) fn wait_for(&self, what: &str, condition: impl Fn(&[Event]) -> bool) {
        let deadline = Instant::now() + LIMIT;
        let mut events = self.0.0.lock().unwrap();
        while !condition(&events) {
            let left = deadline.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "{what}: not within {LIMIT:?}, but {events:?}");
            events = self.0.1.wait_timeout(events, left).unwrap().0;
        }
    }

    /// Waits for one state after the other; others may stand between.
    pub(crate) fn wait_for_states(&self, wanted: &[SourceState]) {
        self.wait_for(&format!("states {wanted:?}"), |events| {
            let mut wanted = wanted.iter().peekable();
            for event in events {
                if let Event::Health { state, .. } = event {
                    wanted.next_if(|next| *next == state);
                }
            }
            wanted.peek().is_none()
        });
    }

    pub(crate) fn wait_for_codes(&self, wanted: &[&str]) {
        let wanted: Vec<Code> = wanted.iter().map(|text| Code::read(text)).collect();
        self.wait_for(&format!("{} codes", wanted.len()), |events| codes(events).starts_with(&wanted));
    }

    pub(crate) fn codes(&self) -> Vec<Code> {
        codes(&self.all())
    }

    pub(crate) fn states(&self) -> Vec<SourceState> {
        self.all()
            .iter()
            .filter_map(|event| match event {
                Event::Health { state, .. } => Some(*state),
                Event::Sighting(_) => None,
            })
            .collect()
    }
}

fn codes(events: &[Event]) -> Vec<Code> {
    events
        .iter()
        .filter_map(|event| match event {
            Event::Sighting(sighting) => Some(sighting.code.clone()),
            Event::Health { .. } => None,
        })
        .collect()
}
