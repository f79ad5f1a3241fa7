//! A venue for tests: a server of its own on a temporary file, a clock that stands still, and people who sign in.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a test that cannot go on has failed")]

pub mod authority;
mod chance;
pub mod gateway;
mod http;
mod process;
pub mod provider;
pub mod receiver;
pub mod stores;
mod venue;

pub use chance::{FixedClock, ScriptedRandom};
pub use gateway::Gateway;
pub use http::{Answer, Caller, XLSX};
pub use process::ServerProcess;
pub use provider::Provider;
pub use stores::Stores;
pub use venue::{Order, START, Venue};
