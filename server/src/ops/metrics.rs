//! Counters for `GET /metrics`. No label holds a number, a code, a token, an order number or a whole address, and none can
//! be invented by a caller: each takes its values from a list or is bounded.

use crate::config::SmsConfig;
use crate::http::error::ApiError;
use crate::sms::channel::Recipient;
use prometheus_client::encoding::prometheus_text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// Address ranges that have a label of their own; all others are counted together.
const MOST_RANGES: usize = 200;

/// What stands for all that has no label of its own.
const OTHER: &str = "other";

/// The media type of [`Metrics::text`].
pub(crate) const CONTENT_TYPE: &str = prometheus_text::CONTENT_TYPE;

/// A counter for each combination of `N` labels.
type Counters<const N: usize> = Family<[(&'static str, String); N], Counter>;

/// What this process has counted since it began. Clones share their counts.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    registry: Arc<Registry>,
    /// The scenes that there are.
    scenes: Arc<BTreeSet<String>>,
    /// Prefixes of numbers that get codes.
    prefixes: Arc<Vec<String>>,
    /// Address ranges that have a label.
    ranges: Arc<Mutex<BTreeSet<String>>>,
    sends: Counters<4>,
    refusals: Counters<2>,
    tries: Counters<2>,
    captchas: Counters<2>,
    by_address: Counters<1>,
    by_number: Counters<1>,
    answers: Counters<2>,
    breakers: Counters<1>,
    receipts: Counters<2>,
    redemptions: Counters<1>,
    requests: Counters<1>,
}

impl Metrics {
    /// All at nought.
    pub(crate) fn new(config: &SmsConfig) -> Self {
        let mut registry = Registry::with_prefix("guidepost");
        let (sends, refusals, tries, captchas) = <(Counters<4>, Counters<2>, Counters<2>, Counters<2>)>::default();
        let (by_address, by_number, answers) = <(Counters<1>, Counters<1>, Counters<2>)>::default();
        let (breakers, receipts, redemptions, requests) =
            <(Counters<1>, Counters<2>, Counters<1>, Counters<1>)>::default();
        registry.register("sms_sends", "SMS codes handed to the channels, by what came of it", sends.clone());
        registry.register("sms_refusals", "SMS codes that were not sent, by the error's code", refusals.clone());
        registry.register("sms_tries", "SMS codes that were typed, by what they were", tries.clone());
        registry.register("sms_captchas", "Captchas that were demanded and solved", captchas.clone());
        registry.register("sms_sends_by_address", "SMS codes by the caller's network, /16 or /32", by_address.clone());
        registry.register("sms_sends_by_number", "SMS codes by the number's first digits", by_number.clone());
        registry.register("sms_channel_answers", "What channels answered, by class", answers.clone());
        registry.register("sms_channel_rests", "How often a channel began to rest after failures", breakers.clone());
        registry.register("sms_receipts", "What became of SMS codes that a provider has taken", receipts.clone());
        registry.register("redemptions", "Attempts to redeem, by the answer's code", redemptions.clone());
        registry.register("http_requests", "Requests, by the class of their status", requests.clone());
        Self {
            registry: Arc::new(registry),
            scenes: Arc::new(config.scene_names().map(str::to_owned).collect()),
            prefixes: Arc::new(config.allowed_prefixes.clone()),
            ranges: Arc::default(),
            sends,
            refusals,
            tries,
            captchas,
            by_address,
            by_number,
            answers,
            breakers,
            receipts,
            redemptions,
            requests,
        }
    }

    /// All counts in Prometheus's text format.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        let mut text = String::new();
        prometheus_text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    /// A code that was handed to the channels.
    pub(crate) fn sent(&self, scene: &str, via: &str, channel: Option<&str>, outcome: &str) {
        let channel = channel.unwrap_or("none");
        let labels = [("scene", self.scene(scene)), ("via", via), ("channel", channel), ("outcome", outcome)];
        count(&self.sends, labels);
    }

    /// To whom and for whom one goes, as far as it may be told.
    pub(crate) fn going(&self, to: &Recipient, address: Option<IpAddr>) {
        count(&self.by_number, [("range", self.number_range(to))]);
        let range = address.map_or_else(|| "none".to_owned(), |address| self.bounded(range_of(address)));
        count(&self.by_address, [("range", &range)]);
    }

    /// A send that was refused before it came to the channels.
    pub(crate) fn refused(&self, scene: &str, error: &ApiError) {
        let code = error.code().code().to_string();
        count(&self.refusals, [("scene", self.scene(scene)), ("code", &code)]);
    }

    /// A code that was typed: `right`, `wrong`, `expired`, `locked`, `limited`.
    pub(crate) fn tried(&self, scene: &str, outcome: &str) {
        count(&self.tries, [("scene", self.scene(scene)), ("outcome", outcome)]);
    }

    /// A captcha: `demanded`, `solved`.
    pub(crate) fn captcha(&self, scene: &str, event: &str) {
        count(&self.captchas, [("scene", self.scene(scene)), ("event", event)]);
    }

    /// What a channel has answered.
    pub(crate) fn answered(&self, channel: &str, class: &str) {
        count(&self.answers, [("channel", channel), ("class", class)]);
    }

    /// A channel that rests from now on.
    pub(crate) fn rests(&self, channel: &str) {
        count(&self.breakers, [("channel", channel)]);
    }

    /// What became of a message: `delivered`, `failed`, `unanswered`, `dropped`.
    pub(crate) fn receipt(&self, channel: &str, result: &str) {
        count(&self.receipts, [("channel", channel), ("result", result)]);
    }

    /// An attempt to redeem, by its answer's code.
    pub(crate) fn redemption(&self, code: i32) {
        count(&self.redemptions, [("code", &code.to_string())]);
    }

    /// A request, by its answer's status.
    pub(crate) fn request(&self, status: u16) {
        count(&self.requests, [("status", &format!("{}xx", status / 100))]);
    }

    /// The scene, if there is one of this name.
    fn scene<'a>(&self, name: &'a str) -> &'a str {
        if self.scenes.contains(name) { name } else { OTHER }
    }

    /// A mainland number's first three digits, the prefix of any other; no more than three digits in either case.
    fn number_range<'a>(&'a self, to: &'a Recipient) -> &'a str {
        let Recipient::Mobile(mobile) = to else { return "mail" };
        let number = mobile.expose();
        if let Some(mainland) = number.strip_prefix("+86") {
            return mainland.get(..3).unwrap_or(OTHER);
        }
        let prefixes = self.prefixes.iter().filter(|prefix| number.starts_with(prefix.as_str()));
        let longest = prefixes.max_by_key(|prefix| prefix.len());
        longest.map_or(OTHER, |prefix| prefix.get(..4).unwrap_or(prefix))
    }

    /// The range, or what stands for all further ones: a caller with many addresses must not fill the memory.
    fn bounded(&self, range: String) -> String {
        let mut known = self.ranges.lock().unwrap_or_else(PoisonError::into_inner);
        if known.contains(&range) {
            return range;
        }
        if known.len() >= MOST_RANGES {
            return OTHER.to_owned();
        }
        known.insert(range.clone());
        range
    }
}

fn count<const N: usize>(counters: &Counters<N>, labels: [(&'static str, &str); N]) {
    counters.get_or_create(&labels.map(|(name, value)| (name, value.to_owned()))).inc();
}

/// The network that an address is told by: `203.0.0.0/16`, `2001:db8::/32`.
pub(crate) fn range_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            format!("{a}.{b}.0.0/16")
        }
        IpAddr::V6(v6) => {
            let [a, b, ..] = v6.segments();
            format!("{a:x}:{b:x}::/32")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::Mobile;

    fn metrics(prefixes: &[&str]) -> Metrics {
        Metrics::new(&SmsConfig {
            allowed_prefixes: prefixes.iter().map(|&prefix| prefix.to_owned()).collect(),
            ..SmsConfig::default()
        })
    }

    fn mobile(number: &str) -> Recipient {
        Recipient::Mobile(Mobile::parse(number).unwrap())
    }

    #[test]
    fn a_number_is_told_by_its_first_digits_alone() {
        let metrics = metrics(&["+86", "+852", "+1", "+447700900"]);
        for (number, range) in [
            ("13800138000", "138"),
            ("+8619900138000", "199"),
            ("+85251234567", "+852"),
            ("+12025550123", "+1"),
            // A prefix as long as a number tells no more than others.
            ("+447700900123", "+447"),
            ("+4915112345678", "other"),
        ] {
            assert_eq!(metrics.number_range(&mobile(number)), range);
        }
        assert_eq!(metrics.number_range(&Recipient::Email("li@example.org".to_owned())), "mail");
    }

    #[test]
    fn addresses_are_told_by_their_networks_and_not_by_more_than_can_be_kept() {
        for (address, range) in [
            ("203.0.113.7", "203.0.0.0/16"),
            ("::ffff:203.0.113.7", "203.0.0.0/16"),
            ("2001:db8:1:2::3", "2001:db8::/32"),
        ] {
            assert_eq!(range_of(address.parse().unwrap()), range);
        }
        let metrics = metrics(&["+86"]);
        for n in 0..1000 {
            let address: IpAddr = format!("10.{}.0.{}", n % 250, n / 250).parse().unwrap();
            metrics.going(&mobile("13800138000"), Some(address));
        }
        let text = metrics.text().unwrap();
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("guidepost_sms_sends_by_address")).collect();
        assert_eq!(lines.len(), MOST_RANGES + 1);
        assert!(lines.contains(&"guidepost_sms_sends_by_address_total{range=\"10.0.0.0/16\"} 4"), "{text}");
        assert!(lines.contains(&"guidepost_sms_sends_by_address_total{range=\"other\"} 200"), "{text}");
    }

    #[test]
    fn a_scene_that_there_is_not_makes_no_label() {
        let metrics = metrics(&["+86"]);
        for scene in ["login", "x1", "13800138000"] {
            metrics.tried(scene, "wrong");
        }
        let text = metrics.text().unwrap();
        assert!(text.contains("guidepost_sms_tries_total{scene=\"login\",outcome=\"wrong\"} 1"), "{text}");
        assert!(text.contains("guidepost_sms_tries_total{scene=\"other\",outcome=\"wrong\"} 2"), "{text}");
        assert!(!text.contains("138"), "{text}");
    }
}
