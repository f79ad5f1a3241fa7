//! SMS codes: how a code gets to a phone.

#[cfg_attr(not(test), expect(dead_code, reason = "nothing sends codes yet"))]
pub(crate) mod channel;
