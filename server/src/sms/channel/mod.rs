//! Channels: who carries a code to a phone or a mailbox, and what is done when one fails.

mod aliyun;
mod breaker;
mod call;
mod fruitless;
mod http;
mod log;
mod pace;
mod smtp;
mod tencent;
#[cfg(test)]
mod tests;

use crate::clock::{Clock, RandomSource};
use crate::codes::CodeStore;
use crate::config::{ChannelConfig, ChannelKind, Param, SmsConfig};
use crate::db::Db;
use crate::ops::metrics::Metrics;
use crate::ops::{alerts, this_server};
use async_trait::async_trait;
use breaker::Breaker;
use fruitless::Fruitless;
use jiff::tz::{self, TimeZone};
use pace::{Pace, Turn};
use serde_json::json;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wire::api::AlertKind;
use wire::{Mobile, SmsCode, TenantId};

/// Both providers count days by this zone, whatever the venue's is.
pub(super) fn provider_zone() -> TimeZone {
    TimeZone::fixed(tz::offset(8))
}

/// To whom a code goes. `Debug` shows an end of it alone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum Recipient {
    /// A phone.
    Mobile(Mobile),
    /// A mailbox.
    Email(String),
}

impl Debug for Recipient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Mobile(mobile) => Debug::fmt(mobile, f),
            Self::Email(address) => write!(f, "***@{}", address.rsplit_once('@').map_or("", |(_, host)| host)),
        }
    }
}

/// How a code is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// Written.
    Sms,
    /// Spoken.
    Voice,
}

/// A code on its way.
#[derive(Debug, Clone)]
pub(crate) struct Message {
    /// The send's own id, 1 to 64 of `[0-9A-Za-z_-]`; a provider that is asked again is told the same one.
    pub(crate) id: String,
    /// Whose alerts a failure makes.
    pub(crate) tenant: TenantId,
    pub(crate) scene: String,
    pub(crate) to: Recipient,
    pub(crate) code: SmsCode,
    /// How long the code lives.
    pub(crate) ttl: Duration,
    pub(crate) via: Via,
}

impl Message {
    /// The code's life as people are told it: whole minutes that it surely lives, and never none.
    fn minutes(&self) -> String {
        (self.ttl.as_secs() / 60).max(1).to_string()
    }
}

/// What came of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A channel has taken it.
    Sent,
    /// It may have gone out: code and cool-down stay, and it is not sent again.
    Unknown,
    /// No channel has taken it, and none will: it may be asked for again at once.
    NotTaken,
    /// The provider has a limit of its own for this number.
    NumberLimit,
    /// Number or content is refused for good.
    Refused,
}

impl Outcome {
    /// The database's and the counters' word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Unknown => "unknown",
            Self::NotTaken => "not_taken",
            Self::NumberLimit => "number_limit",
            Self::Refused => "refused",
        }
    }
}

/// What came of a message, for the answer, the log and the trace.
#[derive(Debug, Clone)]
pub(crate) struct Report {
    pub(crate) outcome: Outcome,
    /// The channel that decided it.
    pub(crate) channel: Option<String>,
    /// The provider's own id of the message.
    pub(crate) provider_id: Option<String>,
    /// What each channel said, in order; nothing secret.
    pub(crate) reason: String,
}

/// What one try by one channel came to: the five classes of failure, and success.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    /// Taken, under the provider's own id.
    Taken(Option<String>),
    /// A: surely not taken, and may be in a moment.
    Passing(String),
    /// B: the channel cannot be used until somebody does something about it.
    Unusable(String),
    /// B as well: there is no money left.
    NoBalance(String),
    /// C: the provider's limit for this number.
    NumberLimit(String),
    /// D: number or content is refused.
    Refused(String),
    /// E: it may have been taken.
    Unknown(String),
}

impl Answer {
    /// Its class, as the table of failures names them.
    const fn class(&self) -> &'static str {
        match self {
            Self::Taken(_) => "taken",
            Self::Passing(_) => "A",
            Self::Unusable(_) => "B",
            Self::NoBalance(_) => "no_balance",
            Self::NumberLimit(_) => "C",
            Self::Refused(_) => "D",
            Self::Unknown(_) => "E",
        }
    }

    /// Why, where it was not taken.
    fn reason(&self) -> &str {
        match self {
            Self::Taken(_) => "taken",
            Self::Passing(reason)
            | Self::Unusable(reason)
            | Self::NoBalance(reason)
            | Self::NumberLimit(reason)
            | Self::Refused(reason)
            | Self::Unknown(reason) => reason,
        }
    }

    /// Without what a provider repeats of a message: an id or a reason that holds its number or its code is none. What is
    /// left may be logged and kept.
    fn about(self, message: &Message) -> Self {
        let plain = |reason: String| if repeats(&reason, message) { REPEATED.to_owned() } else { reason };
        match self {
            Self::Taken(id) => Self::Taken(id.filter(|id| !repeats(id, message))),
            Self::Passing(reason) => Self::Passing(plain(reason)),
            Self::Unusable(reason) => Self::Unusable(plain(reason)),
            Self::NoBalance(reason) => Self::NoBalance(plain(reason)),
            Self::NumberLimit(reason) => Self::NumberLimit(plain(reason)),
            Self::Refused(reason) => Self::Refused(plain(reason)),
            Self::Unknown(reason) => Self::Unknown(plain(reason)),
        }
    }
}

/// What stands for a reason that repeats the message's number or code.
const REPEATED: &str = "an answer that repeats the message";

/// Whether a text of a provider holds a message's number, in whatever form, or its code.
fn repeats(text: &str, message: &Message) -> bool {
    let number = match &message.to {
        Recipient::Mobile(mobile) => has_number(text, mobile),
        Recipient::Email(address) => text.to_lowercase().contains(address.as_str()),
    };
    number || digits(text).contains(message.code.expose())
}

/// Whether a text holds a number: with or without its country's prefix, in one piece or in groups.
fn has_number(text: &str, mobile: &Mobile) -> bool {
    let number = mobile.expose();
    // A prefix of another country has three digits at most.
    let own = number.strip_prefix("+86").or(number.get(4..)).unwrap_or(number);
    digits(text).contains(own)
}

/// The same long after a send, when its code is forgotten here and a provider may still know it: no reason of theirs has
/// six digits in a row.
fn may_repeat(text: &str, to: &Mobile) -> bool {
    has_number(text, to) || text.split(|c: char| !c.is_ascii_digit()).any(|run| run.len() >= 6)
}

fn digits(text: &str) -> String {
    text.chars().filter(char::is_ascii_digit).collect()
}

/// What a channel is asked to send.
#[derive(Debug)]
struct Request<'a> {
    message: &'a Message,
    /// The channel's own template for the scene.
    template: Option<&'a str>,
}

/// One who carries codes.
#[async_trait]
trait Carrier: Debug + Send + Sync {
    /// Sends once.
    async fn carry(&self, request: &Request<'_>) -> Answer;

    /// Whether the provider keeps receipts and a count of each day.
    fn keeps_records(&self) -> bool {
        false
    }

    /// What became of a message: by the provider's id of it and, where that is empty, by ours; `sent_at` in Unix ms.
    async fn receipt(
        &self,
        _to: &Mobile,
        _provider_id: &str,
        _send_id: &str,
        _sent_at: i64,
    ) -> anyhow::Result<Receipt> {
        anyhow::bail!("a channel of this kind has no receipts")
    }

    /// What is wrong with a template, as far as the provider tells.
    async fn template_fault(&self, _template: &str) -> anyhow::Result<Option<String>> {
        Ok(None)
    }

    /// How many messages the provider has counted on a day (`20260801`, in its own zone, China's).
    async fn sent_on(&self, _day: &str) -> anyhow::Result<u64> {
        anyhow::bail!("a channel of this kind keeps no count")
    }
}

/// What became of a message that a provider has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Receipt {
    /// It is not known yet.
    Waiting,
    /// It is on the phone.
    Delivered,
    /// It is not, for this reason.
    Failed(String),
}

/// Limits of time; those of the contract by default.
#[derive(Debug, Clone, Copy)]
struct Timing {
    /// For a connection.
    connect: Duration,
    /// For a request in all.
    total: Duration,
    /// Before the second try.
    again: Duration,
    /// The longest wait for a place below a channel's rate.
    queue: Duration,
    /// For a message in all: whoever asked for it is answered before their own patience ends, which is longer.
    all: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            total: Duration::from_secs(5),
            again: Duration::from_secs(1),
            queue: Duration::from_secs(2),
            all: Duration::from_millis(12_500),
        }
    }
}

/// Why a channel was not asked whose answer might come too late.
const NO_TIME: &str = "not asked, for no time is left";

/// An alert of one kind about one channel is not raised again for so long (ms).
const ALERT_AGAIN: i64 = 3_600_000;

#[derive(Debug)]
struct Channel {
    config: ChannelConfig,
    carrier: Box<dyn Carrier>,
    breaker: Breaker,
    fruitless: Fruitless,
    pace: Option<Pace>,
}

/// The channels of the settings, in their order.
#[derive(Debug)]
pub(crate) struct Channels {
    channels: Vec<Channel>,
    timing: Timing,
    db: Db,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    /// When an alert was last raised (Unix ms), by tenant, channel and kind.
    alerted: Mutex<HashMap<(TenantId, String, &'static str), i64>>,
}

/// What channels are made from.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// Where alerts are written.
    pub(crate) db: Db,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn RandomSource>,
    /// Where the servers agree on a channel's pace.
    pub(crate) codes: Arc<dyn CodeStore>,
    /// `code_store.prefix`.
    pub(crate) prefix: String,
    /// Where answers are counted.
    pub(crate) metrics: Metrics,
}

impl Channels {
    /// The channels of the settings. Without any, a demo has the log.
    ///
    /// # Errors
    /// Where a channel cannot be used, or is for a demo and this is none; the text names the setting.
    pub(crate) fn new(config: &SmsConfig, demo: bool, parts: Parts) -> anyhow::Result<Self> {
        Self::with_timing(config, demo, parts, Timing::default())
    }

    fn with_timing(config: &SmsConfig, demo: bool, parts: Parts, timing: Timing) -> anyhow::Result<Self> {
        anyhow::ensure!(
            demo || !config.log_codes,
            "setting `sms.log_codes`: whoever reads the log could log in as anybody; it is for `serve --demo` alone"
        );
        let mut configs = config.channels.clone();
        if demo && configs.is_empty() {
            configs.push(ChannelConfig::log());
        }
        let mut channels = Vec::new();
        for (n, channel) in configs.into_iter().enumerate() {
            let carrier: Box<dyn Carrier> = match channel.kind {
                ChannelKind::Log => {
                    anyhow::ensure!(
                        demo,
                        "setting `sms.channels[{n}].kind`: the channel log sends nothing; it is for `serve --demo` alone"
                    );
                    Box::new(log::Log { codes: config.log_codes })
                }
                ChannelKind::Http => {
                    Box::new(http::Gateway::new(&channel, timing, parts.clock.clone()).map_err(keyed(n))?)
                }
                ChannelKind::Aliyun => Box::new(
                    aliyun::Aliyun::new(&channel, timing, parts.clock.clone(), parts.random.clone())
                        .map_err(keyed(n))?,
                ),
                ChannelKind::Tencent => {
                    Box::new(tencent::Tencent::new(&channel, timing, parts.clock.clone()).map_err(keyed(n))?)
                }
                ChannelKind::Smtp => {
                    Box::new(smtp::Smtp::new(&channel, timing, parts.clock.clone()).map_err(keyed(n))?)
                }
            };
            let pace = channel.rate.map(|rate| Pace::new(parts.codes.clone(), &parts.prefix, &channel.name, rate));
            channels.push(Channel {
                config: channel,
                carrier,
                breaker: Breaker::default(),
                fruitless: Fruitless::default(),
                pace,
            });
        }
        let Parts { db, clock, metrics, .. } = parts;
        Ok(Self { channels, timing, db, clock, metrics, alerted: Mutex::default() })
    }

    /// Whether there is a channel for this way and kind of recipient.
    pub(crate) fn can(&self, to: &Recipient, via: Via) -> bool {
        self.channels.iter().any(|channel| channel.suits(to, via))
    }

    /// Whether there is one that speaks codes to a phone.
    pub(crate) fn speak(&self) -> bool {
        self.channels.iter().any(|channel| channel.config.voice)
    }

    /// Sends a message by the first channel that takes it:
    ///
    /// 1. A channel whose breaker is open, or that has no place below its rate within two seconds, is passed over.
    /// 2. A failure that passes (A) is tried once more after a second, then the next channel is; one that cannot be used (B)
    ///    makes an alert and the next one is tried.
    /// 3. The provider's limit for the number (C), a refusal (D) and an unknown end (E) are the end of it: another channel
    ///    would break the limit, be refused as well, or send twice.
    /// 4. A try that might not end in time is not begun: the first one of two is made, and the next channel asked.
    ///
    /// Whoever calls this must see it through, or a message that was sent is not known of.
    pub(crate) async fn send(&self, message: &Message) -> Report {
        let mut said = Vec::new();
        let mut tried = false;
        let began = self.clock.monotonic();
        for channel in self.channels.iter().filter(|channel| channel.suits(&message.to, message.via)) {
            tried = true;
            let name = &channel.config.name;
            match self.try_channel(channel, message, began).await {
                Ok((outcome, provider_id, reason)) => {
                    said.push(format!("{name}: {reason}"));
                    let report = Report { outcome, channel: Some(name.clone()), provider_id, reason: said.join("; ") };
                    return self.logged(message, report);
                }
                Err(reason) => said.push(format!("{name}: {reason}")),
            }
        }
        if tried {
            self.alert(message.tenant, AlertKind::SmsChannelDown, "", None).await;
        } else {
            said.push("there is no channel for it".to_owned());
        }
        let report = Report { outcome: Outcome::NotTaken, channel: None, provider_id: None, reason: said.join("; ") };
        self.logged(message, report)
    }

    /// Every channel's name, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.channels.iter().map(|channel| channel.config.name.as_str())
    }

    /// A channel's settings.
    pub(crate) fn config(&self, channel: &str) -> Option<&ChannelConfig> {
        self.named(channel).ok().map(|channel| &channel.config)
    }

    /// Sends a message by one channel and no other, to try it.
    ///
    /// # Errors
    /// Where there is no such channel, or it is not for this kind of message.
    pub(crate) async fn send_by(&self, channel: &str, message: &Message) -> anyhow::Result<Report> {
        let channel = self.named(channel)?;
        anyhow::ensure!(channel.suits(&message.to, message.via), "this channel is for another kind of message");
        let name = &channel.config.name;
        let (outcome, provider_id, reason) = match self.try_channel(channel, message, self.clock.monotonic()).await {
            Ok(decided) => decided,
            Err(reason) => (Outcome::NotTaken, None, reason),
        };
        let report = Report { outcome, channel: Some(name.clone()), provider_id, reason: format!("{name}: {reason}") };
        Ok(self.logged(message, report))
    }

    /// The channels whose providers keep receipts and a count of each day.
    pub(crate) fn with_records(&self) -> impl Iterator<Item = &str> {
        let keep = self.channels.iter().filter(|channel| channel.carrier.keeps_records());
        keep.map(|channel| channel.config.name.as_str())
    }

    /// The same, those of one account together: a provider counts an account, whichever of our channels has sent.
    pub(crate) fn accounts(&self) -> Vec<Vec<&str>> {
        let mut accounts: Vec<(_, Vec<&str>)> = Vec::new();
        for Channel { config, .. } in self.channels.iter().filter(|channel| channel.carrier.keeps_records()) {
            // Tencent counts an application, and several keys may be good for one.
            let id = if config.kind == ChannelKind::Tencent { &config.sdk_app_id } else { &config.key_id };
            let account = (config.kind, id);
            match accounts.iter_mut().find(|(known, _)| *known == account) {
                Some((_, names)) => names.push(&config.name),
                None => accounts.push((account, vec![&config.name])),
            }
        }
        accounts.into_iter().map(|(_, names)| names).collect()
    }

    /// What became of a message that this channel has taken; `provider_id` is empty where the provider told none.
    ///
    /// # Errors
    /// Where there is no such channel, it keeps no receipts, or it does not answer.
    pub(crate) async fn receipt(
        &self,
        channel: &str,
        to: &Mobile,
        provider_id: &str,
        send_id: &str,
        sent_at: i64,
    ) -> anyhow::Result<Receipt> {
        let told = self.named(channel)?.carrier.receipt(to, provider_id, send_id, sent_at).await;
        match told {
            Ok(Receipt::Failed(reason)) if may_repeat(&reason, to) => Ok(Receipt::Failed(REPEATED.to_owned())),
            Err(error) if may_repeat(&error.to_string(), to) => anyhow::bail!(REPEATED),
            told => told,
        }
    }

    /// Asks the providers about every template of the settings and says in the log what is wrong with one: found when the
    /// other channel is down, it is found too late.
    pub(crate) async fn check_templates(&self) {
        for channel in &self.channels {
            let name = &channel.config.name;
            let templates: BTreeSet<&String> = channel.config.templates.values().collect();
            for template in templates {
                match channel.carrier.template_fault(template).await {
                    Ok(None) => {}
                    Ok(Some(fault)) => tracing::error!(channel = name, template, fault, "a template cannot be used"),
                    Err(error) => tracing::warn!(channel = name, template, %error, "a template could not be checked"),
                }
            }
        }
    }

    /// How many messages a channel's provider has counted on a day (`20260801`, China's), to compare with our own count.
    ///
    /// # Errors
    /// Where there is no such channel, it keeps no count, or it does not answer.
    pub(crate) async fn sent_on(&self, channel: &str, day: &str) -> anyhow::Result<u64> {
        self.named(channel)?.carrier.sent_on(day).await
    }

    fn named(&self, name: &str) -> anyhow::Result<&Channel> {
        let channel = self.channels.iter().find(|channel| channel.config.name == name);
        channel.ok_or_else(|| anyhow::anyhow!("there is no such channel any more"))
    }

    fn logged(&self, message: &Message, report: Report) -> Report {
        let Report { outcome, channel, provider_id, reason } = &report;
        let (send, tenant, scene, to) = (&message.id, message.tenant.0, &message.scene, &message.to);
        let (channel, provider_id) = (channel.as_deref(), provider_id.as_deref());
        if *outcome == Outcome::Sent {
            tracing::info!(
                tenant.id = tenant,
                send.id = send,
                scene,
                ?to,
                server = this_server(),
                channel,
                provider_id,
                "an SMS code was sent"
            );
        } else {
            tracing::warn!(
                tenant.id = tenant,
                send.id = send,
                scene,
                ?to,
                server = this_server(),
                channel,
                provider_id,
                ?outcome,
                reason,
                "an SMS code was not surely sent"
            );
        }
        report
    }

    /// How a channel decided it, or why the next one may be tried.
    async fn try_channel(
        &self,
        channel: &Channel,
        message: &Message,
        began: Duration,
    ) -> Result<(Outcome, Option<String>, String), String> {
        let name = &channel.config.name;
        let request = Request { message, template: channel.config.template(&message.scene) };
        let ends_in_time =
            |after: Duration| self.clock.monotonic() - began + after + self.timing.total <= self.timing.all;
        let mut first = None;
        loop {
            if !ends_in_time(Duration::ZERO) {
                return Err(NO_TIME.to_owned());
            }
            if !channel.breaker.admits(self.clock.monotonic()) {
                return Err(first.unwrap_or_else(|| "failed five times in a row and rests".to_owned()));
            }
            if let Some(pace) = &channel.pace {
                match pace.turn(self.timing.queue).await {
                    Turn::Now => {}
                    Turn::After(wait) => tokio::time::sleep(wait).await,
                    Turn::Full(reason) => return Err(reason),
                }
                if !ends_in_time(Duration::ZERO) {
                    return Err(NO_TIME.to_owned());
                }
            }
            let answer = channel.carrier.carry(&request).await.about(message);
            self.metrics.answered(name, answer.class());
            let opened = channel.breaker.note(&answer, self.clock.monotonic());
            if opened {
                self.metrics.rests(name);
                tracing::error!(channel = name, "a channel has failed five times in a row; it rests for 30 s");
                self.alert(message.tenant, AlertKind::SmsChannelDown, name, None).await;
            }
            if channel.fruitless.note(&answer, &message.to) {
                self.alert(message.tenant, AlertKind::SmsChannelDown, name, Some(&answer)).await;
            }
            match answer {
                Answer::Taken(provider_id) => return Ok((Outcome::Sent, provider_id, "taken".to_owned())),
                Answer::NumberLimit(reason) => return Ok((Outcome::NumberLimit, None, reason)),
                Answer::Refused(reason) => return Ok((Outcome::Refused, None, reason)),
                Answer::Unknown(reason) => return Ok((Outcome::Unknown, None, reason)),
                // No time for a second try is left; there may be for the next channel's first.
                Answer::Passing(reason) if !ends_in_time(self.timing.again) => return Err(reason),
                Answer::Passing(reason) if first.is_none() => {
                    first = Some(reason);
                    tokio::time::sleep(self.timing.again).await;
                }
                Answer::Passing(reason) => return Err(format!("{reason}, twice")),
                Answer::Unusable(reason) => {
                    tracing::error!(channel = name, reason, "a channel cannot be used; the next one is tried");
                    self.alert(message.tenant, AlertKind::SmsChannelDown, name, None).await;
                    return Err(reason);
                }
                Answer::NoBalance(reason) => {
                    tracing::error!(channel = name, reason, "a provider says that there is no money left");
                    self.alert(message.tenant, AlertKind::SmsNoBalance, name, None).await;
                    return Err(reason);
                }
            }
        }
    }

    /// At once, and then not again for an hour. `answer` is told where it is what nobody has looked at yet.
    async fn alert(&self, tenant: TenantId, kind: AlertKind, channel: &str, answer: Option<&Answer>) {
        let now = self.clock.now_ms();
        let key = (tenant, channel.to_owned(), kind.as_str());
        let alerted = || self.alerted.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = {
            let mut alerted = alerted();
            alerted.retain(|_, at| now < *at + ALERT_AGAIN);
            let known = alerted.len();
            alerted.entry(key.clone()).or_insert(now);
            alerted.len() > known
        };
        if !fresh {
            return;
        }
        // Without a name it is about all of them.
        let about = (!channel.is_empty()).then(|| match answer {
            Some(answer) => json!({"channel": channel, "class": answer.class(), "reason": answer.reason()}),
            None => json!({"channel": channel}),
        });
        if !alerts::raise_at(&self.db, now, tenant, kind, None, about.as_ref()).await {
            // The next failure raises it again.
            alerted().remove(&key);
        }
    }
}

/// Puts the channel's number before what is wrong with one of its keys.
fn keyed(n: usize) -> impl Fn(anyhow::Error) -> anyhow::Error {
    move |error| anyhow::anyhow!("setting `sms.channels[{n}].{error:#}")
}

impl Channel {
    fn suits(&self, to: &Recipient, via: Via) -> bool {
        let mail = self.config.kind == ChannelKind::Smtp;
        mail == matches!(to, Recipient::Email(_)) && self.config.voice == (via == Via::Voice)
    }
}

/// The values that a template takes, in its order.
fn params(wanted: &[Param], message: &Message) -> impl Iterator<Item = (Param, String)> {
    wanted.iter().map(|param| {
        let value = match param {
            Param::Code => message.code.expose().to_owned(),
            Param::Ttl => message.minutes(),
        };
        (*param, value)
    })
}

/// What is wrong with the variables that a template has, by what it is given.
fn variables_fault(has: &[String], given: &[String]) -> Option<String> {
    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let sorted = |names: &[String]| {
        let mut names = names.to_vec();
        names.sort_unstable();
        names.dedup();
        names
    };
    let (has, given) = (sorted(has), sorted(given));
    (has != given).then(|| format!("it has the variables {}, and `params` gives {}", list(&has), list(&given)))
}

/// The names between an opening and `}` in a template's text.
fn variables(text: &str, opening: &str) -> Vec<String> {
    text.split(opening).skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| word(name)).collect()
}

/// The longest word of a provider that is kept.
const LONGEST_WORD: usize = 64;

/// What a provider calls something, for a log: a text of theirs may hold anything.
fn word(text: &str) -> String {
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '^' | ':');
    let mut word: String = text.chars().filter(fits).collect();
    if word.len() > LONGEST_WORD {
        word.truncate(LONGEST_WORD);
        // The beginning of a number is no longer known as one.
        word.truncate(word.trim_end_matches(|c: char| !c.is_ascii_alphabetic()).len());
    }
    if word.is_empty() {
        word.push('-');
    }
    word
}
