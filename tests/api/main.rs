//! The HTTP interface over real HTTP: one test an outcome, its name a sentence.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod errors;
mod lost_answer;
mod machine;
mod race;
mod redemption;
mod sessions;
mod tasks;
mod visitor;
