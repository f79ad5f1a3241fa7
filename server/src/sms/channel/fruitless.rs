//! Notices a channel by which nothing gets through although each answer is about one message alone: a wrong path of a
//! gateway's address refuses every number (D), a dead service behind a proxy answers nobody (E). Neither opens the breaker.

use super::{Answer, Recipient};
use std::sync::{Mutex, PoisonError};

/// So many in a row, each to somebody else.
const ENDS: usize = 5;

/// To whom the last messages went that were refused or whose end is unknown, since one got through. Recipients print
/// stars, and there are never more than five.
#[derive(Debug, Default)]
pub(super) struct Fruitless(Mutex<Vec<Recipient>>);

impl Fruitless {
    /// Counts an answer; says whether it is one of so many that the channel itself must be at fault. Who tries the same
    /// number again and again counts once.
    pub(super) fn note(&self, answer: &Answer, to: &Recipient) -> bool {
        let mut ends = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Answer::Refused(_) | Answer::Unknown(_) => {
                if ends.len() < ENDS && !ends.contains(to) {
                    ends.push(to.clone());
                }
                ends.len() == ENDS
            }
            // The provider works: it took this one, or it knows how many the number has had.
            Answer::Taken(_) | Answer::NumberLimit(_) => {
                ends.clear();
                false
            }
            // The breaker's.
            Answer::Passing(_) | Answer::Unusable(_) | Answer::NoBalance(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Mobile;

    fn refused() -> Answer {
        Answer::Refused("HTTP 404".to_owned())
    }

    fn unknown() -> Answer {
        Answer::Unknown("no answer in time".to_owned())
    }

    fn number(n: usize) -> Recipient {
        Recipient::Mobile(Mobile::parse(&format!("1380013800{n}")).unwrap())
    }

    #[test]
    fn five_numbers_in_a_row_and_whatever_follows_until_one_gets_through() {
        for through in [Answer::Taken(None), Answer::NumberLimit(String::new())] {
            let fruitless = Fruitless::default();
            for n in 0..4 {
                assert!(!fruitless.note(&if n % 2 == 0 { refused() } else { unknown() }, &number(n)), "{n}");
            }
            assert!(!fruitless.note(&Answer::Passing(String::new()), &number(4)), "that is for the breaker");
            assert!(fruitless.note(&unknown(), &number(5)));
            assert!(fruitless.note(&refused(), &number(6)) && fruitless.note(&refused(), &number(0)));
            assert!(!fruitless.note(&through, &number(7)));
            for n in 0..4 {
                assert!(!fruitless.note(&refused(), &number(n)), "it counts anew: {n}");
            }
        }
    }

    #[test]
    fn one_number_that_is_tried_again_and_again_counts_once_and_is_not_printed() {
        let fruitless = Fruitless::default();
        for _ in 0..40 {
            assert!(!fruitless.note(&refused(), &number(1)));
        }
        let printed = format!("{fruitless:?}");
        assert!(printed.contains("8001") && !printed.contains("138001"), "{printed}");
    }
}
