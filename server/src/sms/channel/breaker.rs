//! Keeps from a channel that fails: after five failures in a row it rests for 30 s, then one message tries it.

use super::Answer;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// So many in a row.
const FAILURES: u32 = 5;
/// So long it rests.
const REST: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
pub(super) struct Breaker(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// In a row.
    failures: u32,
    /// By the monotonic clock.
    rests_until: Duration,
}

impl Breaker {
    /// Whether the channel may be asked. After a rest one message may, and if its end is not told, another after 30 s.
    pub(super) fn admits(&self, now: Duration) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.failures < FAILURES {
            return true;
        }
        if now < state.rests_until {
            return false;
        }
        state.rests_until = now + REST;
        true
    }

    /// Counts an answer; says whether the channel rests from now on that did not before.
    pub(super) fn note(&self, answer: &Answer, now: Duration) -> bool {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Answer::Passing(_) | Answer::Unusable(_) | Answer::NoBalance(_) => {
                state.failures = state.failures.saturating_add(1);
                if state.failures >= FAILURES {
                    state.rests_until = now + REST;
                }
                state.failures == FAILURES
            }
            // It works, whatever it thinks of this number.
            Answer::Taken(_) | Answer::NumberLimit(_) | Answer::Refused(_) => {
                state.failures = 0;
                false
            }
            // Says nothing of the channel.
            Answer::Unknown(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn failing(breaker: &Breaker, times: u32) -> Vec<bool> {
        (0..times).map(|_| breaker.note(&Answer::Passing(String::new()), s(0))).collect()
    }

    #[test]
    fn five_in_a_row_open_it_for_thirty_seconds() {
        let breaker = Breaker::default();
        assert_eq!(failing(&breaker, 4), [false; 4]);
        assert!(breaker.admits(s(0)));
        assert!(breaker.note(&Answer::Unusable(String::new()), s(1)));
        assert!(!breaker.admits(s(1)) && !breaker.admits(s(30)));
        assert!(breaker.admits(s(31)), "one tries it");
        assert!(!breaker.admits(s(31)), "and no other meanwhile");
        assert!(!breaker.note(&Answer::Passing(String::new()), s(32)), "it rests again, which is no news");
        assert!(!breaker.admits(s(61)) && breaker.admits(s(62)));
        breaker.note(&Answer::Taken(None), s(62));
        assert!(breaker.admits(s(62)) && breaker.admits(s(62)));
    }

    #[test]
    fn a_success_between_starts_anew_and_an_unknown_end_counts_neither_way() {
        let breaker = Breaker::default();
        failing(&breaker, 4);
        breaker.note(&Answer::Taken(None), s(0));
        failing(&breaker, 4);
        assert!(breaker.admits(s(0)));
        breaker.note(&Answer::Unknown(String::new()), s(0));
        assert_eq!(failing(&breaker, 1), [true]);
        assert!(!breaker.admits(s(0)));
    }
}
