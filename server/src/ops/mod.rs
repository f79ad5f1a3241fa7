//! Running the server: alerts, counters, what it does by itself, backups, and what is wrong with a set-up.

pub(crate) mod alerts;
pub mod backup;
pub mod doctor;
pub(crate) mod metrics;
mod purge;
pub mod upkeep;

use std::sync::OnceLock;

/// What this server is called in the log, where several write into one: the machine's name and the process's number.
pub(crate) fn this_server() -> &'static str {
    static NAME: OnceLock<String> = OnceLock::new();
    NAME.get_or_init(|| {
        let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        format!("{}/{}", machine.trim(), std::process::id())
    })
}
