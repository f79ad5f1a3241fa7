//! The same code not again until it has been out of sight for a while, from whatever source it comes.

use crate::{Code, Sighting};
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

/// How long a code must be out of sight before it counts as shown again.
pub const OUT_OF_SIGHT: Duration = Duration::from_secs(3);

/// Remembers which codes are in sight. Holds keyed hashes, never a text.
pub struct Dedupe {
    out_of_sight: Duration,
    hasher: RandomState,
    last_seen: HashMap<u64, Instant>,
}

impl Default for Dedupe {
    fn default() -> Self {
        Self::new(OUT_OF_SIGHT)
    }
}

impl Dedupe {
    /// Forgets a code that was not seen for `out_of_sight`.
    pub fn new(out_of_sight: Duration) -> Self {
        Self { out_of_sight, hasher: RandomState::new(), last_seen: HashMap::new() }
    }

    /// Notes that a code with this text is in sight at `at`; true when it was not in sight just before.
    /// Being seen again keeps it in sight, so a code that is held still counts once however long it is held.
    pub fn is_new(&mut self, text: &str, at: Instant) -> bool {
        // Both forms of a payload, and the same one with other white space, are the same code.
        let key = match Code::read(text) {
            Code::Ours(payload) => self.hasher.hash_one((&payload.order_no, payload.verify_code.expose())),
            Code::Foreign => self.hasher.hash_one(text),
        };
        let out_of_sight = self.out_of_sight;
        self.last_seen.retain(|_, seen| at.saturating_duration_since(*seen) < out_of_sight);
        match self.last_seen.entry(key) {
            std::collections::hash_map::Entry::Occupied(mut seen) => {
                // An answer about an older frame may come after one about a newer.
                let latest = at.max(*seen.get());
                seen.insert(latest);
                false
            }
            std::collections::hash_map::Entry::Vacant(free) => {
                free.insert(at);
                true
            }
        }
    }

    /// What a text is, unless it is in sight already. For sources that give one text at a time, as hand scanners do.
    pub fn sighting(&mut self, text: &str, at: Instant) -> Option<Sighting> {
        self.is_new(text, at).then(|| Sighting { code: Code::read(text), seen_at: at })
    }

    /// The new texts of one frame. A foreign code next to one of ours (a poster behind the visitor) is not news, and two
    /// foreign ones are one piece of news.
    pub(crate) fn news<'a>(&mut self, texts: &'a [String], at: Instant) -> Vec<(&'a str, Code)> {
        let seen: Vec<_> = texts.iter().map(|text| (text.as_str(), Code::read(text), self.is_new(text, at))).collect();
        let ours_in_sight = seen.iter().any(|(_, code, _)| matches!(code, Code::Ours(_)));
        let mut foreign_told = ours_in_sight;
        seen.into_iter()
            .filter(|(_, code, new)| {
                *new && (matches!(code, Code::Ours(_)) || !std::mem::replace(&mut foreign_told, true))
            })
            .map(|(text, code, _)| (text, code))
            .collect()
    }
}

impl std::fmt::Debug for Dedupe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dedupe({} in sight)", self.last_seen.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "TBV:BK1:100001";
    const B: &str = "TBV:BK2:100002";

    fn at(start: Instant, ms: u64) -> Instant {
        start + Duration::from_millis(ms)
    }

    fn news(dedupe: &mut Dedupe, texts: &[&str], at: Instant) -> Vec<String> {
        let texts: Vec<String> = texts.iter().map(|t| (*t).to_owned()).collect();
        dedupe.news(&texts, at).into_iter().map(|(text, _)| text.to_owned()).collect()
    }

    #[test]
    fn a_code_counts_once_while_it_is_held_however_long() {
        let (mut dedupe, t) = (Dedupe::default(), Instant::now());
        assert!(dedupe.is_new(A, t));
        for second in 1..60 {
            assert!(!dedupe.is_new(A, at(t, second * 1000)), "after {second} s");
        }
    }

    #[test]
    fn a_code_counts_again_after_three_seconds_out_of_sight_and_not_before() {
        let (mut dedupe, t) = (Dedupe::default(), Instant::now());
        assert!(dedupe.is_new(A, t));
        assert!(!dedupe.is_new(A, at(t, 2_999)));
        assert!(dedupe.is_new(A, at(t, 5_999)));
    }

    #[test]
    fn codes_in_sight_at_once_each_count_once() {
        let (mut dedupe, t) = (Dedupe::default(), Instant::now());
        assert_eq!(news(&mut dedupe, &[A, B], t), [A, B]);
        assert_eq!(news(&mut dedupe, &[B, A], at(t, 100)), [""; 0]);
        assert_eq!(news(&mut dedupe, &[B], at(t, 2_900)), [""; 0]);
        assert_eq!(news(&mut dedupe, &[A, B], at(t, 3_200)), [A], "A was away since 0.1 s, B only since 2.9 s");
    }

    #[test]
    fn both_forms_of_a_payload_are_the_same_code() {
        let (mut dedupe, t) = (Dedupe::default(), Instant::now());
        assert!(dedupe.is_new(A, t));
        let json = r#"{"type":"TEAM_BOOKING_VERIFY","orderNo":"BK1","verifyCode":"100001"}"#;
        assert!(!dedupe.is_new(json, at(t, 10)));
        assert!(dedupe.is_new(&json.replace("100001", "100003"), at(t, 10)), "a new verify code is another code");
    }

    #[test]
    fn a_foreign_code_does_not_block_the_valid_one_after_it() {
        let (mut dedupe, t) = (Dedupe::default(), Instant::now());
        assert_eq!(news(&mut dedupe, &["https://example.org"], t), ["https://example.org"]);
        assert_eq!(news(&mut dedupe, &[A], at(t, 40)), [A]);
        assert_eq!(news(&mut dedupe, &["hello"], at(t, 80)), ["hello"], "another foreign code is news");
    }

    #[test]
    fn ours_goes_before_foreign_in_one_frame_and_the_poster_stays_quiet() {
        let (mut dedupe, t) = (Dedupe::default(), Instant::now());
        assert_eq!(news(&mut dedupe, &["poster", A, "leaflet"], t), [A]);
        assert_eq!(news(&mut dedupe, &["poster", "leaflet"], at(t, 100)), [""; 0]);
        assert_eq!(news(&mut dedupe, &["one", "two"], at(t, 200)), ["one"]);
    }

    #[test]
    fn an_answer_about_an_older_frame_does_not_shorten_the_memory() {
        let (mut dedupe, t) = (Dedupe::default(), Instant::now());
        assert!(dedupe.is_new(A, at(t, 1_000)));
        assert!(!dedupe.is_new(A, t));
        assert!(!dedupe.is_new(A, at(t, 3_900)));
    }

    #[test]
    fn it_forgets_what_is_gone_and_prints_no_code() {
        let (mut dedupe, t) = (Dedupe::default(), Instant::now());
        for i in 0..1_000u64 {
            dedupe.is_new(&format!("foreign {i}"), at(t, i * 100));
        }
        assert!(dedupe.last_seen.len() <= 30, "{dedupe:?}");
        dedupe.is_new(A, at(t, 200_000));
        assert!(!format!("{dedupe:?}").contains("100001"));
    }
}
