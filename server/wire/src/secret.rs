//! A text that must not be printed.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A code, token or password on its way through a request; `Debug` prints stars.
#[derive(Clone, Deserialize, Serialize, ToSchema, PartialEq, Eq)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text that must not be printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself; never for a log, an error or a URL.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}
