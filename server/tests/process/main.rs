//! The real binary: its commands, what they print, how they end, what they refuse.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod backup;
mod binary;
mod commands;
mod doctor;
mod sms;
mod web_hooks;
