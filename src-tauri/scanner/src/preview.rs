//! The latest frame, for whoever wants to look at it.

use crate::frames::Pixels;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// A handle on the latest frame; cheap to clone. Frames that nobody asks for cost nothing, and stay reachable when the
/// scanner has stopped.
#[derive(Clone, Default)]
pub struct Preview(Arc<Shared>);

#[derive(Default)]
struct Shared {
    latest: Mutex<Latest>,
    changed: Condvar,
}

#[derive(Default)]
struct Latest {
    sequence: u64,
    frame: Option<Arc<Shown>>,
    ended: bool,
}

/// A frame, and its JPEG once somebody asked for it.
struct Shown {
    pixels: Pixels,
    jpeg: OnceLock<Option<Arc<[u8]>>>,
}

impl Preview {
    /// Waits until there is a frame newer than sequence `after` (0 for any) and gives it as a JPEG with its own number.
    /// `None` when none came within `wait`, or none will come any more.
    pub fn next(&self, after: u64, wait: Duration) -> Option<(u64, Arc<[u8]>)> {
        let deadline = Instant::now() + wait;
        let mut latest = self.lock();
        loop {
            if latest.sequence > after
                && let Some(frame) = latest.frame.clone()
            {
                let sequence = latest.sequence;
                drop(latest);
                // Outside the lock: encoding holds up nobody but the one who asked.
                let jpeg = frame.jpeg.get_or_init(|| frame.pixels.preview());
                return jpeg.clone().map(|jpeg| (sequence, jpeg));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || latest.ended {
                return None;
            }
            latest = self.0.changed.wait_timeout(latest, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub(crate) fn show(&self, pixels: Pixels) {
        let mut latest = self.lock();
        latest.sequence += 1;
        latest.frame = Some(Arc::new(Shown { pixels, jpeg: OnceLock::new() }));
        self.0.changed.notify_all();
    }

    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.0.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Latest> {
        self.0.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Preview {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Preview(frame {})", self.lock().sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gray(shade: u8) -> Pixels {
        Pixels::Gray { data: vec![shade; 64 * 48], width: 64, height: 48 }
    }

    fn shade(jpeg: &[u8]) -> u8 {
        crate::jpeg::luma(jpeg).unwrap().pixels()[0]
    }

    #[test]
    fn the_latest_frame_wins_and_comes_once() {
        let preview = Preview::default();
        assert!(preview.next(0, Duration::ZERO).is_none());
        preview.show(gray(10));
        preview.show(gray(200));
        let (sequence, jpeg) = preview.next(0, Duration::ZERO).unwrap();
        assert_eq!((sequence, shade(&jpeg)), (2, 200));
        assert!(preview.next(sequence, Duration::ZERO).is_none());
        preview.show(gray(90));
        assert_eq!(shade(&preview.next(sequence, Duration::ZERO).unwrap().1), 90);
    }

    #[test]
    fn who_waits_is_woken_by_a_frame_and_by_the_end() {
        let preview = Preview::default();
        let waiting = preview.clone();
        let waiter = std::thread::spawn(move || {
            let first = waiting.next(0, Duration::from_secs(60)).map(|(sequence, _)| sequence);
            (first, waiting.next(1, Duration::from_secs(60)).is_none())
        });
        preview.show(gray(50));
        preview.end();
        assert_eq!(waiter.join().unwrap(), (Some(1), true));
        assert!(preview.next(0, Duration::ZERO).is_some(), "the last picture remains");
    }
}
