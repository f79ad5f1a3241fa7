//! How this server signs what it posts to the house's other systems: web hooks and the SMS gateway.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The header that says when it was signed, Unix ms.
pub(crate) const TIMESTAMP: &str = "x-guidepost-timestamp";
/// The header that holds [`header`].
pub(crate) const SIGNATURE: &str = "x-guidepost-signature";

/// What stands in the header: the version of the way of signing, and the signature.
pub(crate) fn header(secret: &str, timestamp: i64, body: &str) -> String {
    let signed = hmac_sha256(secret.as_bytes(), format!("{timestamp}.{body}").as_bytes());
    format!("v1={}", hex(&signed))
}

/// HMAC-SHA-256.
pub(crate) fn hmac_sha256(key: &[u8], text: &[u8]) -> [u8; 32] {
    // A key of any length is taken.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return [0; 32] };
    mac.update(text);
    mac.finalize().into_bytes().into()
}

/// Two lower-case digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed by `openssl dgst -sha256 -hmac`.
    #[test]
    fn the_signature_is_hmac_sha256_over_time_stamp_and_body() {
        let got = header("a secret of 24 characters", 1_785_546_000_000, "{\"a\":1}");
        assert_eq!(got, "v1=52fcdf7f4f3d3291546e72e4faef90c4203b200d2985e4c7f34ae13813d0f3bd");
    }
}
