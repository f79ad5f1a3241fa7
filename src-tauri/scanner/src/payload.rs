//! What a text in a code means to us.

use std::fmt;
use std::time::Instant;
use wire::qr::QrPayload;

/// What was read. The text of a foreign code stays behind: it is a stranger's data and no business of the app.
#[derive(Clone, PartialEq, Eq)]
pub enum Code {
    /// One of our payloads.
    Ours(QrPayload),
    /// A code, but not one of ours.
    Foreign,
}

impl Code {
    /// Tells our payloads from everything else.
    pub fn read(text: &str) -> Self {
        QrPayload::parse(text).map_or(Self::Foreign, Self::Ours)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ours(_) => "Ours(***)",
            Self::Foreign => "Foreign",
        })
    }
}

/// A code that came into sight; doubles are dropped already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// What it is.
    pub code: Code,
    /// When the frame was taken (not: when decoding was done).
    pub seen_at: Instant,
}

/// A [`Sighting`] with its text, for the command line; it never reaches the app.
#[derive(Clone)]
pub struct Reading {
    /// The text as it stands in the code.
    pub text: String,
    /// What it means to us.
    pub code: Code,
    /// When the frame was taken.
    pub seen_at: Instant,
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading").field("text", &"***").field("code", &self.code).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_debug_output_holds_a_text_or_a_code() {
        let text = "TBV:BK777:483921".to_owned();
        let code = Code::read(&text);
        assert!(matches!(code, Code::Ours(_)));
        let reading = Reading { text, code: code.clone(), seen_at: Instant::now() };
        let printed = format!("{code:?} {reading:?} {:?}", Sighting { code: code.clone(), seen_at: reading.seen_at });
        assert!(!printed.contains("483921") && !printed.contains("BK777"), "{printed}");
    }
}
