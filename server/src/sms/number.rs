//! Numbers and mailboxes as the code store knows them: by a keyed digest, never by themselves.

use super::channel::Recipient;
use crate::app::AppState;
use crate::codes::sms::SmsKey;
use lettre::Address;
use std::time::Duration;
use wire::TenantId;

/// The longest mailbox (RFC 5321).
const MAX_EMAIL: usize = 254;

impl AppState {
    /// The digest of tenant and recipient.
    pub(crate) fn recipient_digest(&self, tenant: TenantId, to: &Recipient) -> String {
        let (kind, text): (&[u8], &str) = match to {
            Recipient::Mobile(mobile) => (b"mobile", mobile.expose()),
            Recipient::Email(address) => (b"email", address),
        };
        self.keys.digests.hex(&[kind, &tenant.0.to_be_bytes(), text.as_bytes()])
    }

    /// The name of the space in which this server keeps its codes.
    pub(super) fn code_space(&self) -> String {
        self.keys.code_space(&self.config.code_store.prefix)
    }

    /// Where a recipient's codes of a scene stand.
    pub(super) fn sms_key(&self, scene: &str, digest: &str) -> SmsKey {
        SmsKey::new(&self.config.code_store.prefix, scene, digest)
    }

    /// Today in the venue's zone, `YYYYMMDD`: the day that a number's sends count in.
    pub(super) fn sms_day(&self) -> String {
        self.now_here().strftime("%Y%m%d").to_string()
    }

    /// How much of that day is left.
    pub(super) fn sms_day_left(&self) -> Duration {
        let midnight = self.now_here().tomorrow().and_then(|tomorrow| tomorrow.start_of_day());
        let left = midnight.map_or(0, |midnight| midnight.timestamp().as_millisecond() - self.clock.now_ms());
        Duration::from_millis(u64::try_from(left).unwrap_or_default())
    }

    fn now_here(&self) -> jiff::ZonedDateTime {
        let now = jiff::Timestamp::from_millisecond(self.clock.now_ms()).unwrap_or_default();
        now.to_zoned_datetime(self.zone.clone())
    }
}

/// A mailbox from a request, letter case forgotten: what mail can be sent to, at a host with a name.
pub(super) fn email(text: &str) -> Option<Recipient> {
    let text = wire::trim(text).to_lowercase();
    let address: Address = text.parse().ok()?;
    let host = address.domain();
    // Quoted names are allowed by the standard and used by nobody but those who try things.
    let plain = text.is_ascii() && !text.contains(['"', '\\']) && !text.contains(char::is_whitespace);
    let fits = plain && text.len() <= MAX_EMAIL && host.contains('.') && !host.starts_with('[');
    fits.then_some(Recipient::Email(text))
}

/// What may be kept of a recipient in the open: a number's last four digits, a mailbox's host.
pub(super) fn shown(to: &Recipient) -> String {
    match to {
        Recipient::Mobile(mobile) => mobile.expose()[mobile.expose().len() - 4..].to_owned(),
        Recipient::Email(address) => address.rsplit_once('@').map_or_else(String::new, |(_, host)| host.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mailboxes_are_read() {
        for (text, good) in [
            ("a@example.org", true),
            (" A.b+c@Example.org\u{200b}", true),
            ("a@example", false),
            ("@example.org", false),
            ("a@@example.org", false),
            ("a b@example.org", false),
            ("a@example.org\r\nBcc: b@example.org", false),
            ("a@example..org", false),
            ("a(b)@example.org", false),
            ("a.@example.org", false),
            ("a:b@example.org", false),
            ("\"a\"@example.org", false),
            ("a@例子.cn", false),
            ("a@[127.0.0.1]", false),
        ] {
            assert_eq!(email(text).is_some(), good, "{text:?}");
        }
        assert_eq!(email("A@Example.org"), email("a@example.org"));
    }
}
