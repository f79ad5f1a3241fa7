//! SMS codes: how a code gets to a phone.

#[expect(dead_code, reason = "nothing sends codes yet")]
pub(crate) mod channel;
