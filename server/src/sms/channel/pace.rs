//! Keeps a channel's sends below its rate, over all servers: each takes a place in the code store.

use crate::codes::CodeStore;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Pace {
    codes: Arc<dyn CodeStore>,
    key: String,
    every: Duration,
}

/// When it is a message's turn.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    Now,
    /// A place is kept for it.
    After(Duration),
    /// Not in time, for this reason.
    Full(String),
}

impl Pace {
    /// So many sends a second.
    pub(super) fn new(codes: Arc<dyn CodeStore>, prefix: &str, channel: &str, rate: u32) -> Self {
        Self { codes, key: format!("{prefix}sms:pace:{channel}"), every: Duration::from_secs(1) / rate.max(1) }
    }

    /// Takes the next place, if it comes within `most`.
    pub(super) async fn turn(&self, most: Duration) -> Turn {
        match self.codes.pace(&self.key, self.every, most).await {
            Ok(Some(wait)) if wait.is_zero() => Turn::Now,
            Ok(Some(wait)) => Turn::After(wait),
            Ok(None) => Turn::Full("has as many messages as it takes".to_owned()),
            Err(error) => Turn::Full(error.to_string()),
        }
    }
}
