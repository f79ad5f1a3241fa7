//! Running the server: alerts, counters, what it does by itself, backups, and what is wrong with a set-up.

pub(crate) mod alerts;
pub mod backup;
pub mod doctor;
pub(crate) mod metrics;
mod purge;
pub mod upkeep;
