//! Settings: a TOML file, and over it the environment (`GUIDEPOST_` and the path, `__` for a dot, lists as JSON).

mod sms;

pub use sms::{ChannelConfig, ChannelKind, Param, SCENES, SceneConfig, SmsConfig};

use crate::codes::RedisAddress;
use crate::web_hooks;
use serde::Deserialize;
use sqlx::sqlite::SqliteConnectOptions;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use wire::Secret;

/// All settings, with their defaults. Times are in seconds.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where to listen; port 0 takes any free one.
    pub listen: SocketAddr,
    /// The address that people use; made from `listen` where it is missing.
    pub public_url: Option<String>,
    /// The venue's zone (IANA name).
    pub timezone: String,
    /// How much this program logs: `error`, `warn`, `info`, `debug` or `trace`.
    pub log: String,
    /// The database.
    pub database: DatabaseConfig,
    /// The code store.
    pub code_store: CodeStoreConfig,
    /// Verify codes.
    pub verify_code: VerifyCodeConfig,
    /// Limits.
    pub limits: LimitsConfig,
    /// What makes an alert.
    pub alerts: AlertsConfig,
    /// Peers whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<Network>,
    /// Who is told of redemptions.
    pub web_hooks: Vec<WebHookConfig>,
    /// Accounts.
    pub accounts: AccountsConfig,
    /// 32 secret bytes, mode 0600; made by itself beside a SQLite file, required with MySQL.
    pub secret_key_file: Option<PathBuf>,
    /// SMS codes and their channels.
    pub sms: SmsConfig,

    // Settings of the contract that this version does not act on yet; `Config::notes` says so at start.
    tls: Option<toml::Value>,
    devices: Option<toml::Value>,

    /// Makes guides, today's tasks and paid orders in an empty database; `serve --demo` sets it.
    #[serde(skip)]
    pub demo: bool,
    /// A folder that lives as long as the settings: the demo's database where none was named.
    #[serde(skip)]
    pub(crate) demo_folder: Option<std::sync::Arc<tempfile::TempDir>>,
}

/// `[database]`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DatabaseConfig {
    /// `sqlite:///path/to/file` or `mysql://user:password@host/database`.
    pub url: DatabaseUrl,
    /// Apply pending migrations at start.
    pub migrate: bool,
}

/// A database address; it may hold a password, so `Debug` shows its scheme alone.
#[derive(Clone, Deserialize, PartialEq, Eq)]
#[serde(transparent)]
pub struct DatabaseUrl(String);

impl DatabaseUrl {
    /// The address of a SQLite file.
    pub fn sqlite(file: &Path) -> Self {
        // What a URL would read as its own syntax is percent-encoded.
        let path = file.to_string_lossy().replace('%', "%25").replace('?', "%3F").replace('#', "%23");
        Self(format!("sqlite://{path}"))
    }

    /// The address itself; never for a log.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// From a text.
    pub fn new(url: impl Into<String>) -> Self {
        Self(url.into())
    }

    /// Whether it names a MySQL or MariaDB server.
    pub fn is_mysql(&self) -> bool {
        self.0.starts_with("mysql:") || self.0.starts_with("mariadb:")
    }

    /// The file of a SQLite database.
    pub(crate) fn sqlite_file(&self) -> Option<PathBuf> {
        let options: SqliteConnectOptions = self.0.strip_prefix("sqlite:").and_then(|_| self.0.parse().ok())?;
        Some(options.get_filename().to_owned())
    }
}

impl std::fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:***", self.0.split(':').next().unwrap_or_default())
    }
}

/// `[code_store]`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CodeStoreConfig {
    /// `memory:` (embedded, one process), `redis://`, `rediss://`, `redis+sentinel://` or `redis+cluster://`.
    pub url: DatabaseUrl,
    /// With `rediss`: the CA that signed Redis's certificate, a PEM file; without it, the public ones are trusted.
    pub ca: Option<PathBuf>,
    /// Stands in front of every key; no braces.
    pub prefix: String,
    /// What one use of the store may take in all, connecting included, milliseconds.
    pub timeout_ms: u32,
}

/// `[verify_code]`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VerifyCodeConfig {
    /// Life of a verify code, seconds, 1 and more.
    pub ttl: u32,
    /// How long a code that ran out still counts, seconds, at most 10.
    pub grace: u32,
}

/// `[limits]`
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Limits of redemption.
    pub consume: ConsumeLimits,
    /// Limits of SMS codes.
    pub sms: SmsLimits,
}

/// `[limits.sms]`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SmsLimits {
    /// Sends an address has in an hour.
    pub ip: u32,
    /// Sends from an address in an hour that go without a captcha.
    pub captcha_after: u32,
    /// The same from a browser or device in 24 hours.
    pub captcha_device: u32,
    /// The same to a number in an hour.
    pub captcha_number: u32,
    /// The venue's own networks: its Wi-Fi, its kiosks.
    pub venue_networks: Vec<Network>,
    /// Sends an address of these has in an hour.
    pub venue: u32,
    /// Wrong SMS codes an address has in 10 min.
    pub wrong: u32,
}

impl Default for SmsLimits {
    fn default() -> Self {
        Self {
            ip: 30,
            captcha_after: 5,
            captcha_device: 8,
            captcha_number: 3,
            venue_networks: Vec::new(),
            venue: 600,
            wrong: 30,
        }
    }
}

/// `[accounts]`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AccountsConfig {
    /// Whether a right code for an unknown number makes a visitor's account.
    pub auto_register: bool,
}

impl Default for AccountsConfig {
    fn default() -> Self {
        Self { auto_register: true }
    }
}

/// `[limits.consume]`; none has a hidden bound.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsumeLimits {
    /// Attempts an operator has in any 60 s.
    pub operator: u32,
    /// The same for an address.
    pub ip: u32,
    /// Wrong codes in a row for one order before it is locked for 10 min.
    pub order: u32,
    /// By-code failures of an operator in 10 min.
    pub by_code: u32,
    /// A guide's failures in 10 min before freezing for 30 min.
    pub freeze: u32,
    /// Count every attempt, successes among them.
    pub count_all: bool,
}

impl Default for ConsumeLimits {
    fn default() -> Self {
        Self { operator: 10, ip: 300, order: 5, by_code: 5, freeze: 50, count_all: false }
    }
}

/// `[alerts]`
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AlertsConfig {
    /// A tenant's wrong codes in 10 min before an alert.
    pub consume_failures: u32,
    /// An alert where fewer of the numbers that were sent an SMS code have used one, percent; 0 is never.
    pub sms_pass_rate: u32,
    /// With fewer numbers in an hour and scene nothing is said of them.
    pub sms_pass_rate_numbers: u32,
    /// Numbers that were sent SMS codes in an hour and used none before an alert; 0 is never.
    pub sms_pumping: u32,
    /// How far our count of a day's SMS may be from the provider's before an alert, percent; 10 messages in any case.
    pub sms_reconciliation: u32,
}

impl Default for AlertsConfig {
    fn default() -> Self {
        Self {
            consume_failures: 200,
            sms_pass_rate: 50,
            sms_pass_rate_numbers: 30,
            sms_pumping: 100,
            sms_reconciliation: 5,
        }
    }
}

/// One of `[[web_hooks]]`: a receiver that is told of redemptions.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebHookConfig {
    /// Its name in the log and the database, 1 to 32 of `[0-9A-Za-z_-]`; what waits for it is found by this name.
    pub name: String,
    /// Where to send; what stands behind the host may be secret.
    pub url: Secret,
    /// Signs what is sent, 16 characters and more.
    pub secret: Secret,
    /// Whose redemptions.
    pub tenant: i64,
    /// Of what it is told.
    pub events: Vec<WebHookEvent>,
    /// What one request may take, seconds, 1 to 30.
    pub timeout: u32,
    /// Whether the address may lie inside the server's own network.
    pub allow_private: bool,
}

impl Default for WebHookConfig {
    fn default() -> Self {
        Self {
            name: String::new(),
            url: Secret::new(""),
            secret: Secret::new(""),
            tenant: 1,
            events: vec![WebHookEvent::OrderConsumed, WebHookEvent::OrderReversed],
            timeout: 10,
            allow_private: false,
        }
    }
}

/// What a receiver may be told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum WebHookEvent {
    /// An order was redeemed.
    #[serde(rename = "order.consumed")]
    OrderConsumed,
    /// A redemption was taken back.
    #[serde(rename = "order.reversed")]
    OrderReversed,
}

impl WebHookEvent {
    /// The wire's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OrderConsumed => "order.consumed",
            Self::OrderReversed => "order.reversed",
        }
    }
}

/// A network (`10.0.0.0/8`) or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no address and no network like 10.0.0.0/8");
        let (address, bits) = text.split_once('/').map_or((text.as_str(), None), |(a, b)| (a, Some(b)));
        let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.trim().parse()).map_err(|_| wrong())?;
        if bits > most { Err(wrong()) } else { Ok(Self { address, bits }) }
    }
}

impl Network {
    /// Whether an address lies in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, width: u8| {
            let shift = width - self.bits;
            u32::from(shift) >= 128 || a >> shift == b >> shift
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            public_url: None,
            timezone: "Asia/Shanghai".to_owned(),
            log: "info".to_owned(),
            database: DatabaseConfig::default(),
            code_store: CodeStoreConfig::default(),
            verify_code: VerifyCodeConfig::default(),
            limits: LimitsConfig::default(),
            alerts: AlertsConfig::default(),
            trusted_proxies: Vec::new(),
            web_hooks: Vec::new(),
            accounts: AccountsConfig::default(),
            sms: SmsConfig::default(),
            secret_key_file: None,
            tls: None,
            devices: None,
            demo: false,
            demo_folder: None,
        }
    }
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self { url: DatabaseUrl("sqlite:///var/lib/guidepost/guidepost.db".to_owned()), migrate: true }
    }
}

impl Default for CodeStoreConfig {
    fn default() -> Self {
        Self { url: DatabaseUrl("memory:".to_owned()), ca: None, prefix: String::new(), timeout_ms: 800 }
    }
}

impl Default for VerifyCodeConfig {
    fn default() -> Self {
        Self { ttl: 60, grace: 0 }
    }
}

/// Why the settings cannot be used; names the key.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("the settings file {0} cannot be read: {1}")]
    Unreadable(PathBuf, std::io::Error),
    /// The file is no TOML. The line is told by its number alone: it may hold a password.
    #[error("the settings file {0} is not valid TOML, line {1}: {2}")]
    NotToml(PathBuf, usize, String),
    /// A key is unknown or its value is ill-typed.
    #[error("setting `{key}`: {reason}")]
    Key {
        /// Its path.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ConfigError {
    fn key(key: &str, reason: impl Into<String>) -> Self {
        Self::Key { key: key.to_owned(), reason: reason.into() }
    }
}

/// A code that ran out counts for no longer than this (s).
pub(crate) const MAX_GRACE: u32 = 10;

const PREFIX: &str = "GUIDEPOST_";
const TOP_LEVEL: &[&str] = &[
    "listen",
    "public_url",
    "timezone",
    "log",
    "database",
    "code_store",
    "verify_code",
    "trusted_proxies",
    "web_hooks",
    "secret_key_file",
    "tls",
    "limits",
    "sms",
    "accounts",
    "alerts",
    "devices",
];

impl Config {
    /// Reads the file, lays the environment over it and checks every value.
    ///
    /// # Errors
    /// [`ConfigError`], naming the key that is wrong.
    pub fn load(
        file: Option<&Path>,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let mut table = match file {
            None => toml::Table::new(),
            Some(path) => {
                let text = std::fs::read_to_string(path).map_err(|e| ConfigError::Unreadable(path.to_owned(), e))?;
                text.parse().map_err(|error: toml::de::Error| {
                    let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
                    ConfigError::NotToml(path.to_owned(), before.matches('\n').count() + 1, error.message().to_owned())
                })?
            }
        };
        for (name, value) in environment {
            let Some(path) = name.strip_prefix(PREFIX) else { continue };
            let path: Vec<String> = path.split("__").map(str::to_ascii_lowercase).collect();
            // Variables of other programs may share the prefix; only the settings' own names are ours.
            if TOP_LEVEL.contains(&path[0].as_str()) {
                put(&mut table, &path, from_environment(&value));
            }
        }
        let config: Self = serde_path_to_error::deserialize(toml::Value::Table(table))
            .map_err(|e| ConfigError::key(&e.path().to_string(), unquoted(e.inner().message())))?;
        config.check()?;
        Ok(config)
    }

    /// The settings of a demo whose files stand in `folder`: loopback, any free port, embedded database and code store.
    pub fn demo_in(folder: &Path) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            database: DatabaseConfig { url: DatabaseUrl::sqlite(&folder.join("guidepost.db")), migrate: true },
            demo: true,
            ..Self::default()
        }
    }

    /// Turns these settings into the demo's. Where no database was named, a new one in a temporary folder is used.
    ///
    /// # Errors
    /// [`ConfigError`] where the server would not listen on loopback, and where no temporary folder can be made.
    pub fn into_demo(mut self) -> Result<Self, ConfigError> {
        if !self.listen.ip().is_loopback() {
            return Err(ConfigError::key(
                "listen",
                "--demo serves this machine only: use an address like 127.0.0.1:8080",
            ));
        }
        if self.database.url == DatabaseConfig::default().url {
            let folder = tempfile::Builder::new()
                .prefix("guidepost-demo-")
                .tempdir()
                .map_err(|e| ConfigError::key("database.url", format!("no temporary folder for the demo: {e}")))?;
            self.database.url = DatabaseUrl::sqlite(&folder.path().join("guidepost.db"));
            self.demo_folder = Some(std::sync::Arc::new(folder));
        }
        self.demo = true;
        Ok(self)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let mysql = self.database.url.is_mysql();
        if !mysql && !self.database.url.0.starts_with("sqlite:") {
            return Err(ConfigError::key(
                "database.url",
                "is sqlite:///path/to/file or mysql://user:password@host/database",
            ));
        }
        let in_memory = |file: &Path| {
            let name = file.to_string_lossy();
            name.is_empty() || name.contains(":memory:") || name.starts_with("file:")
        };
        if !mysql && self.database.url.sqlite_file().is_none_or(|file| in_memory(&file)) {
            return Err(ConfigError::key("database.url", "must name a file: sqlite:///path/to/file"));
        }
        if mysql && self.code_store.url.0 == "memory:" {
            return Err(ConfigError::key(
                "code_store.url",
                "memory: keeps codes in one process; with MySQL name a Redis: redis://host:6379",
            ));
        }
        let redis = match self.code_store.url.0.as_str() {
            "memory:" => None,
            url => Some(RedisAddress::parse(url).map_err(|wrong| ConfigError::key("code_store.url", wrong))?),
        };
        // Naming a CA and going without TLS all the same would be worse than not serving.
        if self.code_store.ca.is_some() && !redis.is_some_and(|redis| redis.is_tls()) {
            return Err(ConfigError::key("code_store.ca", "is for TLS: `code_store.url` begins with rediss then"));
        }
        if self.code_store.timeout_ms < 1 {
            return Err(ConfigError::key("code_store.timeout_ms", "must be 1 ms or more"));
        }
        if self.code_store.prefix.contains(['{', '}']) {
            return Err(ConfigError::key("code_store.prefix", "braces are not allowed"));
        }
        if self.verify_code.ttl < 1 {
            return Err(ConfigError::key("verify_code.ttl", "must be 1 second or more"));
        }
        if self.verify_code.grace > MAX_GRACE {
            return Err(ConfigError::key("verify_code.grace", "is at most 10 seconds"));
        }
        // Serving plain HTTP to somebody who asked for TLS would be worse than not serving.
        if self.tls.is_some() {
            return Err(ConfigError::key(
                "tls",
                "this version serves no TLS yet: put a proxy in front and leave it out",
            ));
        }
        if jiff::tz::TimeZone::get(&self.timezone).is_err() {
            return Err(ConfigError::key("timezone", format!("there is no zone {:?}", self.timezone)));
        }
        if self.log.parse::<tracing::level_filters::LevelFilter>().is_err() {
            return Err(ConfigError::key("log", "is one of error, warn, info, debug, trace, off"));
        }
        if let Some(url) = &self.public_url
            && !(url.starts_with("http://") || url.starts_with("https://"))
        {
            return Err(ConfigError::key("public_url", "must begin with http:// or https://"));
        }
        if self.alerts.sms_pass_rate > 100 {
            return Err(ConfigError::key("alerts.sms_pass_rate", "is at most 100 percent"));
        }
        self.sms.check()?;
        self.check_web_hooks()
    }

    fn check_web_hooks(&self) -> Result<(), ConfigError> {
        for (n, hook) in self.web_hooks.iter().enumerate() {
            let wrong = |key: &str, reason: &str| Err(ConfigError::key(&format!("web_hooks[{n}].{key}"), reason));
            let named = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
            if !(1..=32).contains(&hook.name.len()) || !hook.name.chars().all(named) {
                return wrong("name", "is 1 to 32 letters, digits, - and _");
            }
            if self.web_hooks[..n].iter().any(|other| other.name == hook.name) {
                return wrong("name", "stands there twice");
            }
            if let Err(reason) = web_hooks::check_url(hook) {
                return wrong("url", reason);
            }
            if hook.secret.expose().chars().count() < 16 {
                return wrong("secret", "must have 16 characters or more: the receiver knows this server by it");
            }
            if hook.tenant < 1 {
                return wrong("tenant", "is a tenant's number");
            }
            if hook.events.is_empty() {
                return wrong("events", "names no event: leave it out for all");
            }
            if !(1..=30).contains(&hook.timeout) {
                return wrong("timeout", "is 1 to 30 seconds");
            }
        }
        Ok(())
    }

    /// What the operator should know of these settings, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let later = [("devices", &self.devices)];
        later
            .iter()
            .filter(|(_, value)| value.is_some())
            .map(|(key, _)| format!("the setting `{key}` has no effect in this version"))
            .collect()
    }
}

/// Without the value, which may hold a password: `invalid type: string "…", expected a map`.
fn unquoted(message: &str) -> String {
    match (message.split_once(" string \""), message.rsplit_once("\", expected ")) {
        (Some((before, _)), Some((_, expected))) => format!("{before} text, expected {expected}"),
        _ => message.to_owned(),
    }
}

/// A list or table as JSON, a number or truth value as itself, anything else as text.
fn from_environment(value: &str) -> toml::Value {
    let json = || serde_json::from_str::<toml::Value>(value).ok();
    let structured = value.starts_with(['[', '{']) || value.parse::<i64>().is_ok() || matches!(value, "true" | "false");
    structured.then(json).flatten().unwrap_or_else(|| toml::Value::String(value.to_owned()))
}

fn put(table: &mut toml::Table, path: &[String], value: toml::Value) {
    match path {
        [] => {}
        [key] => {
            table.insert(key.clone(), value);
        }
        [key, rest @ ..] => {
            let entry = table.entry(key.clone()).or_insert_with(|| toml::Table::new().into());
            if !entry.is_table() {
                *entry = toml::Table::new().into();
            }
            if let Some(inner) = entry.as_table_mut() {
                put(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str, environment: &[(&str, &str)]) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("guidepost.toml");
        std::fs::write(&file, text).unwrap();
        let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Config::load(Some(&file), environment).map_err(|e| e.to_string())
    }

    #[test]
    fn the_example_file_loads() {
        let text = include_str!("../guidepost.example.toml");
        let config = load(text, &[]).unwrap();
        assert_eq!(config.verify_code.ttl, 60);
        assert_eq!((config.limits.sms.wrong, config.sms.scene("login").hourly, config.notes().len()), (30, 5, 0));
    }

    #[test]
    fn the_environment_lies_over_the_file() {
        let config = load(
            "listen = \"127.0.0.1:1\"\n[verify_code]\nttl = 5",
            &[
                ("GUIDEPOST_LISTEN", "127.0.0.1:0"),
                ("GUIDEPOST_VERIFY_CODE__TTL", "7"),
                ("GUIDEPOST_CODE_STORE__PREFIX", "x:"),
                ("GUIDEPOST_TRUSTED_PROXIES", r#"["10.0.0.0/8"]"#),
                ("GUIDEPOST_SOMETHING_ELSE", "ignored"),
                ("OTHER", "ignored"),
            ],
        )
        .unwrap();
        assert_eq!((config.listen.port(), config.verify_code.ttl, config.code_store.prefix.as_str()), (0, 7, "x:"));
    }

    #[test]
    fn a_wrong_setting_is_named() {
        for (text, key) in [
            ("listen = 7", "`listen`"),
            ("[verify_code]\nttl = 0", "`verify_code.ttl`"),
            ("[verify_code]\nttl = -1", "`verify_code.ttl`"),
            ("[verify_code]\nlife = 1", "verify_code"),
            ("colour = \"red\"", "colour"),
            ("timezone = \"Mars/Olympus\"", "`timezone`"),
            ("[code_store]\nurl = \"http://127.0.0.1\"", "`code_store.url`"),
            ("[database]\nurl = \"mysql://127.0.0.1/x\"", "`code_store.url`"),
            ("[database]\nurl = \"sqlite::memory:\"", "`database.url`"),
            ("[database]\nurl = \"sqlite:\"", "`database.url`"),
            ("[database]\nurl = \"postgres://127.0.0.1/x\"", "`database.url`"),
            ("[verify_code]\ngrace = 11", "`verify_code.grace`"),
            ("trusted_proxies = [\"10.0.0.0/33\"]", "trusted_proxies"),
            ("[code_store]\nprefix = \"{a}\"", "`code_store.prefix`"),
            ("[code_store]\nca = \"/ca.pem\"", "`code_store.ca`"),
            ("[code_store]\nurl = \"redis://h\"\nca = \"/ca.pem\"", "`code_store.ca`"),
            ("[tls]\nown_ca = true", "`tls`"),
            ("public_url = \"ftp://x\"", "`public_url`"),
            ("[[web_hooks]]\nurl = \"https://example.org\"", "`web_hooks[0].name`"),
            ("[[web_hooks]]\nname = \"a\"\nurl = \"https://10.0.0.1/\"", "allow_private"),
            ("[[web_hooks]]\nname = \"a\"\nurl = \"https://example.org\"\nsecret = \"short\"", "`web_hooks[0].secret`"),
            ("[[web_hooks]]\nevents = [\"order.paid\"]", "web_hooks[0].events"),
            ("[sms]\nallowed_prefixes = []", "`sms.allowed_prefixes`"),
            ("[sms]\nallowed_prefixes = [\"86\"]", "`sms.allowed_prefixes`"),
            ("[sms]\ndaily_cap = -1", "`sms.daily_cap`"),
            ("[sms]\nkeep_days = 7", "`sms.keep_days`"),
            ("[alerts]\nsms_pass_rate = 101", "`alerts.sms_pass_rate`"),
            ("[sms.scenes.login]\nttl = 0", "`sms.scenes.login.ttl`"),
            ("[sms.scenes.login]\nlock = 0", "`sms.scenes.login.lock`"),
            ("[sms.scenes.login]\nlife = 1", "sms.scenes.login"),
            ("[sms.scenes.\"a:b\"]", "`sms.scenes.a:b`"),
            ("[[sms.channels]]\nkind = \"http\"", "name"),
            ("[[sms.channels]]\nname = \"a\"\nkind = \"pigeon\"", "`sms.channels[0].kind`"),
            ("[[sms.channels]]\nname = \"a b\"\nkind = \"log\"", "`sms.channels[0].name`"),
            ("[[sms.channels]]\nname = \"a\"\nkind = \"http\"", "`sms.channels[0].url`"),
            ("[[sms.channels]]\nname = \"a\"\nkind = \"log\"\nurl = \"http://h\"", "`sms.channels[0].url`"),
            ("[[sms.channels]]\nname = \"a\"\nkind = \"log\"\nrate = 0", "`sms.channels[0].rate`"),
            ("[[sms.channels]]\nname = \"a\"\nkind = \"log\"\nrate = 1000001", "`sms.channels[0].rate`"),
            ("[[sms.channels]]\nname = \"a\"\nkind = \"log\"\nvoice = true", "`sms.channels[0].voice`"),
            (
                "[[sms.channels]]\nname = \"a\"\nkind = \"http\"\nurl = \"http://h\"\nsecret = \"short\"",
                "`sms.channels[0].secret`",
            ),
            (
                "[[sms.channels]]\nname = \"a\"\nkind = \"http\"\nurl = \"http://h\"\ntemplates = { logni = \"x\" }",
                "`sms.channels[0].templates.logni`",
            ),
            ("[[sms.channels]]\nname = \"a\"\nkind = \"aliyun\"\nkey_id = \"k\"", "`sms.channels[0].secret`"),
        ] {
            let error = load(text, &[]).unwrap_err();
            assert!(error.contains(key), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_line_that_is_no_toml_is_named_and_not_quoted() {
        let error = load("listen = \"127.0.0.1:1\"\n[code_store]\nurl = redis://:hunter2@h", &[]).unwrap_err();
        assert!(error.contains("line 3") && !error.contains("hunter2"), "{error}");
    }

    #[test]
    fn web_hooks_come_from_the_environment_as_well_and_keep_their_secrets() {
        let hooks = r#"[{"name": "booking", "url": "https://example.org/x7Qz", "secret": "hunter2hunter2hunter2"}]"#;
        let config = load("", &[("GUIDEPOST_WEB_HOOKS", hooks)]).unwrap();
        assert_eq!((config.web_hooks[0].tenant, config.web_hooks[0].events.len()), (1, 2));
        let printed = format!("{config:?}");
        assert!(!printed.contains("hunter2") && !printed.contains("x7Qz"), "{printed}");
    }

    #[test]
    fn a_provider_without_a_template_for_a_scene_is_refused_at_start() {
        let channel = |kind: &str, templates: &str| {
            let keys = "\"key_id\": \"k\", \"secret\": \"hunter2\", \"sign_name\": \"s\"";
            let app = if kind == "tencent" { ", \"sdk_app_id\": \"1\"" } else { "" };
            let channels =
                format!("[{{\"name\": \"a\", \"kind\": \"{kind}\", {keys}{app}, \"templates\": {{{templates}}}}}]");
            load("[sms.scenes.parking]", &[("GUIDEPOST_SMS__CHANNELS", channels.as_str())])
        };
        let all = |id: &str, last: &str| {
            SCENES.iter().map(|scene| format!("\"{scene}\": \"{id}\", ")).collect::<String>()
                + &format!("\"parking\": \"{last}\"")
        };
        for (kind, templates, key) in [
            ("aliyun", "", "`sms.channels[0].templates.login`"),
            ("aliyun", &all("SMS_1", "1110"), "`sms.channels[0].templates.parking`"),
            ("tencent", &all("1110", "SMS_1"), "`sms.channels[0].templates.parking`"),
        ] {
            let error = channel(kind, templates).unwrap_err();
            assert!(error.contains(key) && !error.contains("hunter2"), "{error}");
        }
        let config = channel("aliyun", &all("SMS_1", "SMS_2")).unwrap();
        assert_eq!(config.sms.channels[0].template("parking"), Some("SMS_2"));
        assert!(!format!("{config:?}").contains("hunter2"));
        channel("tencent", &all("1110", "1111")).unwrap();
    }

    #[test]
    fn a_scene_keeps_the_defaults_of_what_is_not_set() {
        let config = load("[sms.scenes.login]\nttl = 120", &[("GUIDEPOST_SMS__SCENES__CONFIRM__DAILY", "3")]).unwrap();
        assert_eq!(config.sms.scene("login"), SceneConfig { ttl: 120, ..SceneConfig::default() });
        assert_eq!(config.sms.scene("confirm"), SceneConfig { daily: 3, ..SceneConfig::default() });
        assert_eq!(config.sms.scene("register"), SceneConfig::default());
        let config = load("[sms.scenes.reset_password]\nttl = 120", &[]).unwrap();
        let stricter = SceneConfig { hourly: 3, daily: 5, ..SceneConfig::default() };
        assert_eq!(config.sms.scene("change_mobile"), stricter);
        assert_eq!(config.sms.scene("reset_password"), SceneConfig { ttl: 120, ..stricter });
    }

    #[test]
    fn a_password_in_the_wrong_place_is_not_quoted() {
        for text in [
            "database = \"mysql://root:hunter2@h/d\"",
            "database = \"mysql://root:hunter2\\\", expected x@h/d\"",
            "trusted_proxies = \"hunter2\"",
            "[verify_code]\nttl = \"hunter2\"",
        ] {
            let error = load(text, &[]).unwrap_err();
            assert!(error.contains("expected") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_network_holds_its_addresses() {
        let network = |text: &str| Network::try_from(text.to_owned()).unwrap();
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        for (net, address, holds) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.1", "10.0.0.1", true),
            ("10.0.0.1", "10.0.0.2", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("::/0", "2001:db8::1", true),
            ("2001:db8::/32", "2001:db8:1::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("::/0", "1.2.3.4", false),
        ] {
            assert_eq!(network(net).contains(ip(address)), holds, "{net} {address}");
        }
    }

    #[test]
    fn a_password_in_a_database_address_is_not_printed() {
        let url = DatabaseUrl("mysql://root:hunter2@127.0.0.1/guidepost".to_owned());
        assert_eq!(format!("{url:?}"), "mysql:***");
    }
}
