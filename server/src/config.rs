//! Settings: a TOML file, and over it the environment (`GUIDEPOST_` and the path, `__` for a dot, lists as JSON).

use serde::Deserialize;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

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

    // Settings of the contract that this version does not act on yet; `Config::notes` says so at start.
    trusted_proxies: Option<toml::Value>,
    secret_key_file: Option<toml::Value>,
    tls: Option<toml::Value>,
    limits: Option<toml::Value>,
    sms: Option<toml::Value>,
    alerts: Option<toml::Value>,
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
    /// `sqlite:///path/to/file`.
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
    /// `memory:` (embedded, one process).
    pub url: DatabaseUrl,
    /// Stands in front of every key; no braces.
    pub prefix: String,
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
            trusted_proxies: None,
            secret_key_file: None,
            tls: None,
            limits: None,
            sms: None,
            alerts: None,
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
        Self { url: DatabaseUrl("memory:".to_owned()), prefix: String::new() }
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
    /// The file is no TOML.
    #[error("the settings file {0} is not valid TOML: {1}")]
    NotToml(PathBuf, toml::de::Error),
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
    "secret_key_file",
    "tls",
    "limits",
    "sms",
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
            Some(path) => std::fs::read_to_string(path)
                .map_err(|e| ConfigError::Unreadable(path.to_owned(), e))?
                .parse()
                .map_err(|e| ConfigError::NotToml(path.to_owned(), e))?,
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
            .map_err(|e| ConfigError::key(&e.path().to_string(), e.inner().message()))?;
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
        if !self.database.url.0.starts_with("sqlite:") {
            return Err(ConfigError::key("database.url", "this version takes sqlite:///path/to/file"));
        }
        if self.code_store.url.0 != "memory:" {
            return Err(ConfigError::key("code_store.url", "this version takes memory:"));
        }
        if self.code_store.prefix.contains(['{', '}']) {
            return Err(ConfigError::key("code_store.prefix", "braces are not allowed"));
        }
        if self.verify_code.ttl < 1 {
            return Err(ConfigError::key("verify_code.ttl", "must be 1 second or more"));
        }
        if self.verify_code.grace > 0 {
            return Err(ConfigError::key("verify_code.grace", "this version has no grace yet: use 0"));
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
        Ok(())
    }

    /// What the operator should know of these settings, a sentence each.
    pub fn notes(&self) -> Vec<String> {
        let later = [
            ("trusted_proxies", &self.trusted_proxies),
            ("secret_key_file", &self.secret_key_file),
            ("limits", &self.limits),
            ("sms", &self.sms),
            ("alerts", &self.alerts),
            ("devices", &self.devices),
        ];
        later
            .iter()
            .filter(|(_, value)| value.is_some())
            .map(|(key, _)| format!("the setting `{key}` has no effect in this version"))
            .collect()
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
        assert!(config.notes().iter().any(|n| n.contains("`sms`")));
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
            ("[code_store]\nurl = \"redis://127.0.0.1\"", "`code_store.url`"),
            ("[code_store]\nprefix = \"{a}\"", "`code_store.prefix`"),
            ("[tls]\nown_ca = true", "`tls`"),
            ("public_url = \"ftp://x\"", "`public_url`"),
        ] {
            let error = load(text, &[]).unwrap_err();
            assert!(error.contains(key), "{text:?}: {error}");
        }
    }

    #[test]
    fn a_password_in_a_database_address_is_not_printed() {
        let url = DatabaseUrl("mysql://root:hunter2@127.0.0.1/guidepost".to_owned());
        assert_eq!(format!("{url:?}"), "mysql:***");
    }
}
