//! Running the server: alerts.

pub(crate) mod alerts;
