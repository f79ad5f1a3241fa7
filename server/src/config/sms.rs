//! `[sms]`: what a scene's codes live by, and the channels that carry them.

use super::ConfigError;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use wire::{Mobile, Secret};

/// `[sms]`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SmsConfig {
    /// Numbers that begin with one of these get codes, all others do not.
    pub allowed_prefixes: Vec<String>,
    /// A tenant's sends a day.
    pub daily_cap: u32,
    /// How long each send and use of a code is kept in the database, days, 8 and more.
    pub keep_days: u32,
    /// Whether the channel `log` prints whole codes; for a demo alone.
    pub log_codes: bool,
    /// Scenes by name; what is missing of one is [`SceneConfig::of`] its name.
    #[serde(deserialize_with = "scenes")]
    pub scenes: BTreeMap<String, SceneConfig>,
    /// Channels, in the order in which they are tried.
    pub channels: Vec<ChannelConfig>,
}

impl Default for SmsConfig {
    fn default() -> Self {
        Self {
            allowed_prefixes: vec!["+86".to_owned()],
            daily_cap: 5000,
            keep_days: 90,
            log_codes: false,
            scenes: BTreeMap::new(),
            channels: Vec::new(),
        }
    }
}

/// `[sms.scenes.NAME]`; times in seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SceneConfig {
    /// Life of a code, 1 and more.
    pub ttl: u32,
    /// Between two sends to a number.
    pub cooldown: u32,
    /// Sends a number has in an hour.
    pub hourly: u32,
    /// Sends a number has in a day.
    pub daily: u32,
    /// Wrong tries before the lock.
    pub max_fail: u32,
    /// How long the lock lasts, 1 and more.
    pub lock: u32,
}

impl Default for SceneConfig {
    fn default() -> Self {
        Self { ttl: 300, cooldown: 60, hourly: 5, daily: 10, max_fail: 5, lock: 600 }
    }
}

impl SceneConfig {
    /// What a scene goes by where the settings say nothing. Whoever resets a password or changes a number does it once;
    /// who wants many codes for that is somebody else. (The SMS seed, 6.2: limits of sensitive scenes are stricter.)
    /// `confirm` stays with the usual numbers: it wants a session, goes to that account's own number alone, and at a gate
    /// each group with a broken phone takes one.
    pub fn of(name: &str) -> Self {
        match name {
            "reset_password" | "change_mobile" => Self { hourly: 3, daily: 5, ..Self::default() },
            _ => Self::default(),
        }
    }
}

/// What the settings say of a scene.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SaidOfScene {
    ttl: Option<u32>,
    cooldown: Option<u32>,
    hourly: Option<u32>,
    daily: Option<u32>,
    max_fail: Option<u32>,
    lock: Option<u32>,
}

fn scenes<'de, D: serde::Deserializer<'de>>(from: D) -> Result<BTreeMap<String, SceneConfig>, D::Error> {
    let said = BTreeMap::<String, SaidOfScene>::deserialize(from)?;
    let scene = |(name, said): (String, SaidOfScene)| {
        let usual = SceneConfig::of(&name);
        let scene = SceneConfig {
            ttl: said.ttl.unwrap_or(usual.ttl),
            cooldown: said.cooldown.unwrap_or(usual.cooldown),
            hourly: said.hourly.unwrap_or(usual.hourly),
            daily: said.daily.unwrap_or(usual.daily),
            max_fail: said.max_fail.unwrap_or(usual.max_fail),
            lock: said.lock.unwrap_or(usual.lock),
        };
        (name, scene)
    };
    Ok(said.into_iter().map(scene).collect())
}

/// Who carries a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChannelKind {
    /// A gateway of the house.
    Http,
    /// Nobody: the log. For a demo alone.
    Log,
    /// Alibaba Cloud.
    Aliyun,
    /// Tencent Cloud.
    Tencent,
    /// A mail server, for addresses in place of numbers.
    Smtp,
}

/// A value that a template takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Param {
    /// The code.
    Code,
    /// Its life in minutes.
    Ttl,
}

impl Param {
    /// The name that a template knows it by.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Ttl => "ttl",
        }
    }
}

/// One of `[[sms.channels]]`. Which keys a kind needs and takes is checked at start.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelConfig {
    /// Its name in the log and the database, 1 to 32 of `[0-9A-Za-z_-]`.
    pub name: String,
    /// Who carries the code.
    pub kind: ChannelKind,
    /// `http`: where to post. `smtp`: `smtp://` or `smtps://`. `aliyun`, `tencent`: another endpoint than the usual one.
    /// What stands behind the host may be secret.
    #[serde(default)]
    pub url: Option<Secret>,
    /// `http`, `smtp`: a PEM file of the CA that is trusted instead of the public ones.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// `aliyun`: AccessKey id, `tencent`: SecretId, `smtp`: user name.
    #[serde(default)]
    pub key_id: Option<String>,
    /// `http`: signs what is posted. `aliyun`, `tencent`: the key's secret. `smtp`: password.
    #[serde(default)]
    pub secret: Option<Secret>,
    /// `aliyun`, `tencent`: the signature that the provider has approved.
    #[serde(default)]
    pub sign_name: Option<String>,
    /// `tencent`: region, `ap-guangzhou` where it is missing.
    #[serde(default)]
    pub region: Option<String>,
    /// `tencent`: the application's id.
    #[serde(default)]
    pub sdk_app_id: Option<String>,
    /// `smtp`: the sender's address.
    #[serde(default)]
    pub from: Option<String>,
    /// `aliyun` with `voice`: the number that the called person sees.
    #[serde(default)]
    pub show_number: Option<String>,
    /// This channel's own template ids by scene; `smtp`: texts with `{code}` and `{ttl}` in them.
    #[serde(default)]
    pub templates: BTreeMap<String, String>,
    /// What its templates take, in their order; `aliyun` and `tencent`: the code alone where it is missing.
    #[serde(default)]
    pub params: Option<Vec<Param>>,
    /// It speaks codes instead of writing them.
    #[serde(default)]
    pub voice: bool,
    /// Sends in a second, over all servers; as many as come where it is missing.
    #[serde(default)]
    pub rate: Option<u32>,
}

/// The least `keep_days`.
const MIN_KEEP_DAYS: u32 = 8;

/// The largest `rate`: places in the code store lie a microsecond apart at least.
const MAX_RATE: u32 = 1_000_000;

/// The scenes of the product itself.
pub const SCENES: [&str; 5] = ["login", "register", "reset_password", "change_mobile", "confirm"];

impl SmsConfig {
    /// Whether such a number gets codes.
    pub fn allows(&self, mobile: &Mobile) -> bool {
        self.allowed_prefixes.iter().any(|prefix| mobile.expose().starts_with(prefix.as_str()))
    }

    /// What a scene goes by.
    pub fn scene(&self, name: &str) -> SceneConfig {
        self.scenes.get(name).cloned().unwrap_or_else(|| SceneConfig::of(name))
    }

    /// Every scene that may be sent for: the product's own and those of the settings.
    pub(crate) fn scene_names(&self) -> impl Iterator<Item = &str> {
        let further = self.scenes.keys().map(String::as_str).filter(|name| !SCENES.contains(name));
        SCENES.into_iter().chain(further)
    }

    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if self.allowed_prefixes.is_empty() {
            return Err(ConfigError::key("sms.allowed_prefixes", "names no prefix: nobody would get a code"));
        }
        for prefix in &self.allowed_prefixes {
            let digits = prefix.strip_prefix('+').unwrap_or_default();
            if digits.is_empty() || digits.len() > 15 || !digits.bytes().all(|b| b.is_ascii_digit()) {
                return Err(ConfigError::key("sms.allowed_prefixes", "holds something that is no prefix like +86"));
            }
        }
        if self.keep_days < MIN_KEEP_DAYS {
            return Err(ConfigError::key(
                "sms.keep_days",
                "is 8 days or more: the daily comparison with the providers looks back a week",
            ));
        }
        for (name, scene) in &self.scenes {
            let wrong = |key: &str, reason: &str| Err(ConfigError::key(&format!("sms.scenes.{name}{key}"), reason));
            let named = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
            if !(1..=32).contains(&name.len()) || !name.bytes().all(named) {
                return wrong("", "a scene's name is 1 to 32 lower-case letters, digits and _");
            }
            if scene.ttl < 1 {
                return wrong(".ttl", "must be 1 second or more");
            }
            if scene.lock < 1 {
                return wrong(".lock", "must be 1 second or more");
            }
        }
        for (n, channel) in self.channels.iter().enumerate() {
            let wrong = |key: &str, reason: &str| Err(ConfigError::key(&format!("sms.channels[{n}].{key}"), reason));
            let named = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
            if !(1..=32).contains(&channel.name.len()) || !channel.name.bytes().all(named) {
                return wrong("name", "is 1 to 32 letters, digits, - and _");
            }
            if self.channels[..n].iter().any(|other| other.name == channel.name) {
                return wrong("name", "stands there twice");
            }
            if channel.rate == Some(0) {
                return wrong("rate", "is 1 a second or more: leave it out for no limit");
            }
            if channel.rate.is_some_and(|rate| rate > MAX_RATE) {
                return wrong("rate", "is 1000000 a second or less: leave it out for no limit");
            }
            if channel.params.as_ref().is_some_and(|params| !params.contains(&Param::Code)) {
                return wrong("params", "leaves out the code");
            }
            if let Some(scene) = channel.templates.keys().find(|scene| !self.scene_names().any(|name| name == *scene)) {
                let known = self.scene_names().collect::<Vec<_>>().join(", ");
                return wrong(&format!("templates.{scene}"), &format!("there is no such scene; there are {known}"));
            }
            channel.check().or_else(|(key, reason)| wrong(key, reason))?;
            // One that is found missing when the other channel is down is found too late.
            for scene in self.scene_names() {
                if let Err(reason) = channel.check_template(scene) {
                    return wrong(&format!("templates.{scene}"), reason);
                }
            }
        }
        Ok(())
    }
}

impl ChannelConfig {
    /// The channel that a demo without any has.
    pub(crate) fn log() -> Self {
        Self {
            name: "log".to_owned(),
            kind: ChannelKind::Log,
            url: None,
            ca: None,
            key_id: None,
            secret: None,
            sign_name: None,
            region: None,
            sdk_app_id: None,
            from: None,
            show_number: None,
            templates: BTreeMap::new(),
            params: None,
            voice: false,
            rate: None,
        }
    }

    /// Which keys a kind needs and takes.
    fn check(&self) -> Result<(), (&'static str, &'static str)> {
        use ChannelKind::{Aliyun, Http, Log, Smtp, Tencent};
        let keys: [(&'static str, bool, &[ChannelKind], &[ChannelKind]); 9] = [
            // Key, whether it is there, who needs it, who else takes it.
            ("url", self.url.is_some(), &[Http, Smtp], &[Aliyun, Tencent]),
            ("ca", self.ca.is_some(), &[], &[Http, Smtp]),
            ("key_id", self.key_id.is_some(), &[Aliyun, Tencent], &[Smtp]),
            ("secret", self.secret.is_some(), &[Aliyun, Tencent], &[Http, Smtp]),
            ("sign_name", self.sign_name.is_some(), &[Tencent], &[Aliyun]),
            ("region", self.region.is_some(), &[], &[Tencent]),
            ("sdk_app_id", self.sdk_app_id.is_some(), &[Tencent], &[]),
            ("from", self.from.is_some(), &[Smtp], &[]),
            ("params", self.params.is_some(), &[], &[Aliyun, Tencent]),
        ];
        for (key, there, needs, takes) in keys {
            if needs.contains(&self.kind) && !there {
                return Err((key, "is missing: a channel of this kind needs it"));
            }
            if there && !needs.contains(&self.kind) && !takes.contains(&self.kind) {
                return Err((key, "has no meaning for a channel of this kind"));
            }
        }
        if self.voice && matches!(self.kind, Tencent | Smtp | Log) {
            return Err(("voice", "is for channels of the kinds http and aliyun"));
        }
        if self.show_number.is_some() && !(self.kind == Aliyun && self.voice) {
            return Err(("show_number", "is for a channel of the kind aliyun with `voice = true`"));
        }
        if self.kind == Aliyun && self.voice == self.sign_name.is_some() {
            return Err(("sign_name", "belongs to a channel that writes; one that speaks has none"));
        }
        if self.kind == Http && self.secret.as_ref().is_some_and(|secret| secret.expose().chars().count() < 16) {
            return Err(("secret", "must have 16 characters or more: the gateway knows this server by it"));
        }
        let begins = |scheme: &str| self.url.as_ref().is_some_and(|url| url.expose().starts_with(scheme));
        if self.kind == Http && self.ca.is_some() && !begins("https://") {
            return Err(("ca", "is for TLS: `url` begins with https:// then"));
        }
        if self.kind == Smtp && self.key_id.is_some() != self.secret.is_some() {
            return Err(("key_id", "user name and password (`secret`) go together"));
        }
        Ok(())
    }

    fn check_template(&self, scene: &str) -> Result<(), &'static str> {
        let numbered = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match (self.kind, self.template(scene)) {
            (ChannelKind::Aliyun | ChannelKind::Tencent, None) => {
                Err("is missing: the provider's id of the template that this channel sends for the scene")
            }
            (ChannelKind::Aliyun, Some(id)) => {
                let prefix = if self.voice { "TTS_" } else { "SMS_" };
                let good = id.strip_prefix(prefix).is_some_and(numbered);
                if good { Ok(()) } else { Err("is an id like SMS_123456789, of a voice template TTS_123456789") }
            }
            (ChannelKind::Tencent, Some(id)) if !numbered(id) => Err("is an id of digits alone, like 1110"),
            (ChannelKind::Smtp, Some(text)) if !text.contains("{code}") => {
                Err("is the text of the message: {code} must stand in it")
            }
            (_, Some("")) => Err("is empty: leave it out for the scene's name"),
            _ => Ok(()),
        }
    }

    /// The template of a scene, as far as this channel has one of its own.
    pub(crate) fn template(&self, scene: &str) -> Option<&str> {
        self.templates.get(scene).map(String::as_str)
    }
}
