//! Numbers that only `parse` builds: order, task and request numbers, mobile numbers, verify codes, SMS codes, tenants.

use crate::clean::{clean_digits, trim};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a text is not the number it should be. Holds nothing of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidNumber {
    /// Nothing is left after cleaning.
    #[error("is empty")]
    Empty,
    /// Other characters, another length or another first digit than the number has.
    #[error("is ill-formed")]
    IllFormed,
}

fn identifier(text: &str, upper: bool) -> Result<String, InvalidNumber> {
    let text = trim(text);
    if text.is_empty() {
        return Err(InvalidNumber::Empty);
    }
    if text.len() > 64 || !text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
        return Err(InvalidNumber::IllFormed);
    }
    Ok(if upper { text.to_ascii_uppercase() } else { text.to_owned() })
}

macro_rules! text_number {
    ($(#[$doc:meta])* $name:ident, $parse:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schema(value_type = String)]
        pub struct $name(String);

        impl $name {
            /// Trims and checks.
            ///
            /// # Errors
            /// [`InvalidNumber`] where nothing is left or other characters stand in it.
            pub fn parse(text: &str) -> Result<Self, InvalidNumber> {
                let parse: fn(&str) -> Result<String, InvalidNumber> = $parse;
                parse(text).map(Self)
            }

            /// The checked text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidNumber;
            fn try_from(text: String) -> Result<Self, InvalidNumber> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(number: $name) -> String {
                number.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_number!(
    /// An order's number: `[0-9A-Za-z_-]{1,64}` after trimming, upper-cased, compared bytewise.
    OrderNo,
    |text| identifier(text, true)
);
text_number!(
    /// A task's number: the form of an order's number, upper-cased likewise.
    TaskNo,
    |text| identifier(text, true)
);
text_number!(
    /// The caller's name for one attempt: `[0-9A-Za-z_-]{1,64}`, its case kept.
    RequestId,
    |text| identifier(text, false)
);

impl OrderNo {
    /// Cleans what a person typed or pasted, spaces and full-width digits inside it as well, and checks it.
    ///
    /// # Errors
    /// [`InvalidNumber`] where nothing is left or other characters stand in it.
    pub fn from_typed(text: &str) -> Result<Self, InvalidNumber> {
        Self::parse(&clean_digits(text))
    }

    /// The last six characters: what a screen shows of it at a glance.
    pub fn tail(&self) -> &str {
        // ASCII by construction, so that bytes are characters.
        &self.0[self.0.len().saturating_sub(6)..]
    }
}

/// A mobile number in E.164 (`+8613800138000`). `Debug` and `Display` show the last four digits alone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Mobile(String);

impl Mobile {
    /// Cleans and checks: a bare mainland number (`1[3-9]` and nine digits) becomes `+86…`, anything else must be E.164.
    ///
    /// # Errors
    /// [`InvalidNumber`] where it is neither.
    pub fn parse(text: &str) -> Result<Self, InvalidNumber> {
        let text = clean_digits(text);
        if text.is_empty() {
            return Err(InvalidNumber::Empty);
        }
        let mainland = |digits: &str| {
            let b = digits.as_bytes();
            b.len() == 11 && b[0] == b'1' && (b'3'..=b'9').contains(&b[1]) && b.iter().all(u8::is_ascii_digit)
        };
        if mainland(&text) {
            return Ok(Self(format!("+86{text}")));
        }
        let Some(digits) = text.strip_prefix('+') else { return Err(InvalidNumber::IllFormed) };
        let e164 = (7..=15).contains(&digits.len())
            && digits.bytes().all(|b| b.is_ascii_digit())
            && !digits.starts_with('0')
            && digits.strip_prefix("86").is_none_or(mainland);
        if e164 { Ok(Self(text)) } else { Err(InvalidNumber::IllFormed) }
    }

    /// The whole number, for the database and the SMS channel; never for a log.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Mobile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "***{}", &self.0[self.0.len() - 4..])
    }
}

impl std::fmt::Display for Mobile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

/// A verify code, 100000-999999: who holds it may use its order now. `Debug` prints stars; there is no `Display`.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, ToSchema)]
#[schema(value_type = String)]
pub struct VerifyCode(String);

impl VerifyCode {
    /// The smallest code: the first digit is never 0, so that a code survives being handled as a number.
    pub const MIN: u32 = 100_000;
    /// The largest code.
    pub const MAX: u32 = 999_999;

    /// Cleans what a person typed and checks it.
    ///
    /// # Errors
    /// [`InvalidNumber`] where it is not six digits with a first digit other than 0.
    pub fn from_typed(text: &str) -> Result<Self, InvalidNumber> {
        let text = clean_digits(text);
        if text.is_empty() { Err(InvalidNumber::Empty) } else { Self::from_exact(&text) }
    }

    /// Checks a code that must stand exactly so: inside a QR nothing is forgiven.
    ///
    /// # Errors
    /// [`InvalidNumber::IllFormed`].
    pub fn from_exact(text: &str) -> Result<Self, InvalidNumber> {
        let b = text.as_bytes();
        if b.len() == 6 && b[0] != b'0' && b.iter().all(u8::is_ascii_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidNumber::IllFormed)
        }
    }

    /// A code from a number drawn in `MIN..=MAX`; `None` outside.
    pub fn from_number(number: u32) -> Option<Self> {
        (Self::MIN..=Self::MAX).contains(&number).then(|| Self(number.to_string()))
    }

    /// The six digits; never for a log, an error or a URL.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for VerifyCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("******")
    }
}

/// A code that was sent to a phone, 000000-999999: who holds it has the phone. Another thing than a verify code: leading
/// zeros belong to it. `Debug` prints stars; there is no `Display`, and no way into an answer.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SmsCode(String);

impl SmsCode {
    /// The largest code; the smallest is 0.
    pub const MAX: u32 = 999_999;

    /// Cleans what a person typed and checks it.
    ///
    /// # Errors
    /// [`InvalidNumber`] where it is not six digits.
    pub fn from_typed(text: &str) -> Result<Self, InvalidNumber> {
        let text = clean_digits(text);
        if text.is_empty() { Err(InvalidNumber::Empty) } else { Self::from_exact(&text) }
    }

    /// Checks a code that must stand exactly so, as in the code store.
    ///
    /// # Errors
    /// [`InvalidNumber::IllFormed`].
    pub fn from_exact(text: &str) -> Result<Self, InvalidNumber> {
        let b = text.as_bytes();
        if b.len() == 6 && b.iter().all(u8::is_ascii_digit) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidNumber::IllFormed)
        }
    }

    /// A code from a number drawn in `0..=MAX`, leading zeros added; `None` outside.
    pub fn from_number(number: u32) -> Option<Self> {
        (number <= Self::MAX).then(|| Self(format!("{number:06}")))
    }

    /// The six digits; never for a log, an error or a URL.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SmsCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("******")
    }
}

/// One organisation on a shared server. Every row, key and query carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct TenantId(pub i64);

impl TenantId {
    /// Reads a `tenant-id` header or a `--tenant` argument.
    ///
    /// # Errors
    /// [`InvalidNumber`] where it is no positive whole number.
    pub fn parse(text: &str) -> Result<Self, InvalidNumber> {
        let text = trim(text);
        if text.is_empty() {
            return Err(InvalidNumber::Empty);
        }
        match text.parse::<i64>() {
            Ok(id) if id > 0 && text.bytes().all(|b| b.is_ascii_digit()) => Ok(Self(id)),
            _ => Err(InvalidNumber::IllFormed),
        }
    }
}

impl std::fmt::Display for TenantId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}
