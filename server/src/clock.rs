//! Time and chance, passed in: nothing else in the server asks the machine for either.

use std::fmt::Debug;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// Where the time comes from.
pub trait Clock: Debug + Send + Sync {
    /// Unix time in milliseconds.
    fn now_ms(&self) -> i64;

    /// Time since some fixed moment; never goes back, whatever happens to the wall clock.
    fn monotonic(&self) -> Duration;
}

/// The machine's clock.
#[derive(Debug)]
pub struct SystemClock(Instant);

impl SystemClock {
    /// Starts counting now.
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the machine's clock")]
    fn now_ms(&self) -> i64 {
        std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
    }

    fn monotonic(&self) -> Duration {
        self.0.elapsed()
    }
}

/// Where random numbers come from; must be fit for secrets.
pub trait RandomSource: Debug + Send + Sync {
    /// A number, every one of the range equally likely.
    fn number(&self, range: RangeInclusive<u32>) -> u32;

    /// Fills with random bytes.
    fn fill(&self, bytes: &mut [u8]);
}

/// The thread's generator of the `rand` crate: ChaCha, seeded by the operating system, reseeded on its own.
#[derive(Debug, Default)]
pub struct SystemRandom;

#[expect(clippy::disallowed_methods, reason = "the one place that asks the secure generator")]
impl RandomSource for SystemRandom {
    fn number(&self, range: RangeInclusive<u32>) -> u32 {
        rand::RngExt::random_range(&mut rand::rng(), range)
    }

    fn fill(&self, bytes: &mut [u8]) {
        rand::Rng::fill_bytes(&mut rand::rng(), bytes);
    }
}
