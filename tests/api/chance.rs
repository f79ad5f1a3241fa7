//! Time and chance in the tests' hands.

use guidepost_server::clock::{Clock, RandomSource, SystemRandom};
use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// A clock that moves only when it is told to.
#[derive(Debug)]
pub struct FixedClock(AtomicI64, i64);

impl FixedClock {
    /// Starts at this Unix time (ms).
    pub fn at(now: i64) -> Self {
        Self(AtomicI64::new(now), now)
    }

    /// Moves on.
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(i64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for FixedClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(u64::try_from(self.now_ms() - self.1).unwrap())
    }
}

/// Gives out the numbers it was handed, then those of the machine.
#[derive(Debug, Default)]
pub struct ScriptedRandom(Mutex<VecDeque<u32>>);

impl ScriptedRandom {
    /// The numbers to give out next.
    pub fn next(&self, numbers: impl IntoIterator<Item = u32>) {
        self.0.lock().unwrap().extend(numbers);
    }
}

impl RandomSource for ScriptedRandom {
    fn number(&self, range: RangeInclusive<u32>) -> u32 {
        let scripted = self.0.lock().unwrap().pop_front();
        scripted.filter(|n| range.contains(n)).unwrap_or_else(|| SystemRandom.number(range))
    }

    fn fill(&self, bytes: &mut [u8]) {
        SystemRandom.fill(bytes);
    }
}
