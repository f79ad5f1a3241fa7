//! Running the server: alerts, backups, and what is wrong with a set-up.

pub(crate) mod alerts;
pub mod backup;
pub mod doctor;
