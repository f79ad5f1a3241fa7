//! The QR payload: what a visitor's page shows and a scanner reads, in its JSON and its compact form.

use crate::clean::is_unseen;
use crate::{OrderNo, VerifyCode};
use serde::{Deserialize, Serialize};

/// The `type` that marks our payloads.
pub const TYPE: &str = "TEAM_BOOKING_VERIFY";

/// Longer texts are no payload of ours; the largest one is under 200 bytes.
const MAX_LEN: usize = 1024;

/// An order and the code that shows that its holder may use it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QrPayload {
    /// The order.
    pub order_no: OrderNo,
    /// The code that is alive now, or was when the QR was drawn.
    pub verify_code: VerifyCode,
}

/// A text that is not one of our codes; no call to the server is made for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not one of our codes")]
pub struct Foreign;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Json<'a> {
    #[serde(borrow)]
    r#type: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    order_no: std::borrow::Cow<'a, str>,
    #[serde(borrow)]
    verify_code: std::borrow::Cow<'a, str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct JsonOut<'a> {
    r#type: &'static str,
    order_no: &'a str,
    verify_code: &'a str,
}

impl QrPayload {
    /// Reads either form. Forgives white space and a byte-order mark around the payload, white space around the order
    /// number, letter case in the compact form, the prefixes (AIM, ECI) and control characters of hardware scanners; nothing else.
    ///
    /// # Errors
    /// [`Foreign`] for everything that is not exactly one of our payloads.
    pub fn parse(text: &str) -> Result<Self, Foreign> {
        if text.len() > MAX_LEN {
            return Err(Foreign);
        }
        // Line ends and tabs are JSON's own white space; other control characters (GS, STX …) come from scanners.
        let text: String = text.chars().filter(|c| !c.is_control() || matches!(c, '\t' | '\n' | '\r')).collect();
        let text = strip_prefixes(&text);
        let compact = text.get(..4).is_some_and(|head| head.eq_ignore_ascii_case("TBV:"));
        if compact { Self::parse_compact(&text[4..]) } else { Self::parse_json(text) }
    }

    fn parse_json(text: &str) -> Result<Self, Foreign> {
        // `from_str` into a struct would take an array of the three values as well.
        if !text.starts_with('{') {
            return Err(Foreign);
        }
        let json: Json<'_> = serde_json::from_str(text).map_err(|_| Foreign)?;
        if json.r#type != TYPE {
            return Err(Foreign);
        }
        Self::from_parts(&json.order_no, &json.verify_code)
    }

    fn parse_compact(rest: &str) -> Result<Self, Foreign> {
        let (order_no, code) = rest.split_once(':').ok_or(Foreign)?;
        Self::from_parts(order_no, code)
    }

    fn from_parts(order_no: &str, code: &str) -> Result<Self, Foreign> {
        Ok(Self {
            order_no: exact_order_no(order_no.trim())?,
            verify_code: VerifyCode::from_exact(code).map_err(|_| Foreign)?,
        })
    }

    /// The JSON form.
    pub fn to_json(&self) -> String {
        let out = JsonOut { r#type: TYPE, order_no: self.order_no.as_str(), verify_code: self.verify_code.expose() };
        serde_json::to_string(&out).unwrap_or_default()
    }

    /// The compact form: upper-case alphanumeric QR mode where the number has neither `_`, so far fewer modules.
    pub fn to_compact(&self) -> String {
        format!("TBV:{}:{}", self.order_no, self.verify_code.expose())
    }
}

/// Around an order number white space is forgiven, other unseen characters are not.
fn exact_order_no(text: &str) -> Result<OrderNo, Foreign> {
    let number = OrderNo::parse(text).map_err(|_| Foreign)?;
    if number.as_str().len() == text.len() { Ok(number) } else { Err(Foreign) }
}

/// Drops white space and marks around the payload and, in front, one AIM (`]Q3`) and one ECI (`\000026`) prefix.
fn strip_prefixes(text: &str) -> &str {
    let mut text = text.trim_matches(is_unseen);
    if let Some(rest) = text.strip_prefix("]Q")
        && rest.starts_with(|c: char| c.is_ascii_hexdigit())
    {
        text = rest[1..].trim_start_matches(is_unseen);
    }
    if let Some(rest) = text.strip_prefix('\\')
        && rest.get(..6).is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()))
    {
        text = rest[6..].trim_start_matches(is_unseen);
    }
    text
}
