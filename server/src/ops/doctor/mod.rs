//! `doctor`: looks at a set-up from the outside and says what is wrong with it, why, and what to do next. It changes
//! nothing, and no secret of the settings stands in what it says.

mod address;
mod stores;
mod web_hooks;

use super::backup::{folder_of, free_space, in_zone, megabytes};
use crate::clock::Clock;
use crate::config::Config;
use crate::secret_key;
use std::fmt::{self, Display};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Clocks that stand further apart than this are named (ms).
const APART: i64 = 3_000;

/// 2026-01-01: this program is not older (Unix ms).
const EARLIEST: i64 = 1_767_225_600_000;

/// With less free space (bytes) a database soon cannot be written, and with less than that it is worth a word.
const TOO_LITTLE: u64 = 64 << 20;
const LITTLE: u64 = 512 << 20;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, and will not always.
    Warning,
    /// The server does not work like this, or is not safe.
    Fault,
}

impl Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Fault => "fault",
        })
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// What was looked at.
    pub about: &'static str,
    /// How it is, and why.
    pub text: String,
    /// What to do next; nothing where it is as it should be.
    pub next: Option<String>,
}

impl Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<8} {:<11} {}", self.level, self.about, self.text)?;
        match &self.next {
            Some(next) => write!(f, "\n{:21}next: {next}", ""),
            None => Ok(()),
        }
    }
}

/// What was found so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn ok(&mut self, about: &'static str, text: impl Into<String>) {
        self.0.push(Finding { level: Level::Ok, about, text: text.into(), next: None });
    }

    fn warning(&mut self, about: &'static str, text: impl Into<String>, next: impl Into<String>) {
        self.0.push(Finding { level: Level::Warning, about, text: text.into(), next: Some(next.into()) });
    }

    fn fault(&mut self, about: &'static str, text: impl Into<String>, next: impl Into<String>) {
        self.0.push(Finding { level: Level::Fault, about, text: text.into(), next: Some(next.into()) });
    }
}

/// Settings that cannot be used, as a finding.
pub fn settings_fault(error: &impl Display) -> Finding {
    let next = Some("correct it; server/guidepost.example.toml shows every setting".to_owned());
    Finding { level: Level::Fault, about: "settings", text: error.to_string(), next }
}

/// Looks at everything. `file` is where the settings were read from; `ca` is a PEM file of a CA that is trusted for
/// `public_url` beside the public ones.
pub async fn examine(config: &Config, file: Option<&Path>, ca: Option<&Path>, clock: &Arc<dyn Clock>) -> Vec<Finding> {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut found = Findings::default();
    settings(&mut found, config, file);
    machine_clock(&mut found, config, clock.as_ref());
    let serving = address::port(&mut found, config).await;
    let tenants = stores::database(&mut found, config, clock.as_ref(), serving).await;
    stores::code_store(&mut found, config, clock.as_ref()).await;
    web_hooks::receivers(&mut found, config, tenants.as_deref()).await;
    disk(&mut found, config);
    address::public_url(&mut found, config, ca, clock, serving).await;
    found.0
}

/// The settings that do nothing, and who may read the files that hold secrets.
fn settings(found: &mut Findings, config: &Config, file: Option<&Path>) {
    match file {
        Some(file) => found.ok("settings", format!("{} was read", file.display())),
        None => found.ok("settings", "from the environment and the defaults; no file was named with --config"),
    }
    for note in config.notes() {
        found.warning("settings", note, "nothing to do, unless you rely on it");
    }
    if let Some(file) = file
        && let Ok(text) = std::fs::read_to_string(file)
        && let Ok(table) = text.parse::<toml::Table>()
        && holds_secret(&toml::Value::Table(table))
    {
        private(found, file, "holds passwords", 0o007, Level::Fault, "chmod o-rwx");
    }
    if config.database.url.is_mysql() && config.secret_key_file.is_none() {
        found.fault(
            "secrets",
            "`secret_key_file` is missing: with MySQL every server needs the same key",
            "make it once (head -c 32 /dev/urandom > secret.key && chmod 600 secret.key), copy it to each server and name it",
        );
    }
    let key = config.secret_key_file.clone();
    if let Some(key) = key.or_else(|| secret_key::beside_database(config).filter(|key| key.exists())) {
        let key = key.as_path();
        match key.metadata() {
            Ok(metadata) if metadata.len() != 32 => found.fault(
                "secrets",
                format!("the secret key {} has {} bytes and must have 32", key.display(), metadata.len()),
                "put the right one back from a backup, or make a new one with head -c 32 /dev/urandom",
            ),
            Ok(_) => private(found, key, "is the server's secret key", 0o077, Level::Fault, "chmod 600"),
            Err(error) => found.fault(
                "secrets",
                format!("the secret key {} cannot be read: {error}", key.display()),
                "put it back from a backup, or make one: head -c 32 /dev/urandom > FILE && chmod 600 FILE",
            ),
        }
    }
}

/// Whether somewhere in the settings there is a password: in an address, or under a name that says so.
fn holds_secret(value: &toml::Value) -> bool {
    match value {
        toml::Value::String(text) => text
            .split_once("://")
            .and_then(|(_, rest)| rest.split('/').next()?.rsplit_once('@'))
            .is_some_and(|(user, _)| user.contains(':')),
        toml::Value::Array(all) => all.iter().any(holds_secret),
        toml::Value::Table(table) => table.iter().any(|(name, value)| {
            let named = ["secret", "password", "access_key", "token"].iter().any(|word| name.contains(word));
            (named && !name.ends_with("_file") && value.is_str()) || holds_secret(value)
        }),
        _ => false,
    }
}

/// Whether nobody may read a file but those who must; `mask` has the rights that are too many.
fn private(found: &mut Findings, file: &Path, what: &str, mask: u32, level: Level, how: &str) {
    let Ok(metadata) = file.metadata() else { return };
    let mode = metadata.permissions().mode() & 0o777;
    let name = file.display();
    if mode & mask == 0 {
        found.ok("secrets", format!("{name} {what}; its mode is {mode:04o}"));
        return;
    }
    let text = format!("{name} {what} and others may read or change it: its mode is {mode:04o}");
    let next = Some(format!("{how} {name}"));
    found.0.push(Finding { level, about: "secrets", text, next });
}

/// What this user may do says nothing of what the server's user may do.
fn other_user(found: &mut Findings, database: &Path) {
    use std::os::unix::fs::MetadataExt;
    let (Ok(me), Ok(file)) = (std::fs::metadata("/proc/self"), database.metadata()) else { return };
    if me.uid() != file.uid() {
        found.warning(
            "user",
            format!("the database belongs to user {} and this is user {}", file.uid(), me.uid()),
            "run doctor as the server's user: what it says of files and ports holds for the user who runs it",
        );
    }
}

fn machine_clock(found: &mut Findings, config: &Config, clock: &dyn Clock) {
    let now = clock.now_ms();
    let zone = &config.timezone;
    let told = in_zone(now, zone, "%Y-%m-%d %H:%M:%S").unwrap_or_else(|_| format!("{now} ms"));
    if now < EARLIEST {
        found.fault(
            "clock",
            format!("this machine's clock says {told} in {zone}, which is long past"),
            "set it, and keep it right by NTP: timedatectl set-ntp true",
        );
    } else {
        found.ok("clock", format!("it is {told} in {zone}"));
    }
}

/// Compares this machine's clock with another's; `asked` and `answered` are what ours said before and after the question.
fn other_clock(found: &mut Findings, whose: &str, theirs: i64, asked: i64, answered: i64) {
    let apart = (theirs - answered).max(asked - theirs).max(0);
    if apart <= APART {
        found.ok("clock", format!("{whose} has the same time as this machine"));
        return;
    }
    let way = if theirs > answered { "ahead of" } else { "behind" };
    found.warning(
        "clock",
        format!("{whose}'s clock is {} s {way} this machine's", apart / 1000),
        "set both by NTP: timedatectl set-ntp true",
    );
}

fn disk(found: &mut Findings, config: &Config) {
    if let Some(database) = config.database.url.sqlite_file() {
        let size = database.metadata().map_or(0, |file| file.len());
        folder(found, &existing(&folder_of(&database)), "the database", size);
    }
    folder(found, &std::env::temp_dir(), "temporary files", 0);
}

fn folder(found: &mut Findings, folder: &Path, what: &str, database: u64) {
    let place = format!("{} (for {what})", folder.display());
    match free_space(folder) {
        Ok(free) => space(found, &place, free, database),
        Err(error) => found.fault("disk", format!("{place}: {error}"), "make the folder, or name another one"),
    }
}

fn space(found: &mut Findings, place: &str, free: u64, database: u64) {
    let told = format!("{} are free in {place}", megabytes(free));
    let next = "free some space; a full disk refuses every redemption";
    if free < TOO_LITTLE {
        found.fault("disk", told, next);
    } else if free < LITTLE.max(2 * database) {
        found.warning("disk", told, next);
    } else {
        found.ok("disk", told);
    }
}

/// A folder, or the nearest one above it that there is.
fn existing(folder: &Path) -> PathBuf {
    let mut at = folder;
    while !at.exists() {
        match at.parent() {
            Some(above) if !above.as_os_str().is_empty() => at = above,
            _ => return PathBuf::from("."),
        }
    }
    at.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(look: impl FnOnce(&mut Findings)) -> Vec<Level> {
        let mut found = Findings::default();
        look(&mut found);
        found.0.iter().map(|finding| finding.level).collect()
    }

    #[test]
    fn little_space_is_a_warning_and_too_little_a_fault() {
        for (free, database, level) in [
            (TOO_LITTLE - 1, 0, Level::Fault),
            (TOO_LITTLE, 0, Level::Warning),
            (LITTLE, 0, Level::Ok),
            (LITTLE, LITTLE, Level::Warning),
        ] {
            assert_eq!(levels(|found| space(found, "/x", free, database)), [level], "{free} {database}");
        }
    }

    #[test]
    fn clocks_may_stand_a_little_apart_and_a_slow_answer_is_no_difference() {
        for (theirs, asked, answered, level) in [
            (10_000, 10_000, 10_010, Level::Ok),
            (13_000, 10_000, 10_000, Level::Ok),
            (14_000, 10_000, 10_000, Level::Warning),
            (6_000, 10_000, 10_000, Level::Warning),
            (12_000, 10_000, 20_000, Level::Ok),
        ] {
            assert_eq!(levels(|found| other_clock(found, "x", theirs, asked, answered)), [level], "{theirs}");
        }
    }

    #[test]
    fn a_password_in_the_settings_is_seen_wherever_it_stands() {
        for (text, holds) in [
            ("[database]\nurl = \"mysql://root:hunter2@h/d\"", true),
            ("[database]\nurl = \"mysql://root@h/d\"", false),
            ("[code_store]\nurl = \"redis://h\"", false),
            ("[[sms.channels]]\nsecret = \"x\"", true),
            ("[[sms.channels]]\naccess_key_secret = \"x\"", true),
            ("secret_key_file = \"/x\"", false),
        ] {
            assert_eq!(holds_secret(&toml::Value::Table(text.parse().unwrap())), holds, "{text}");
        }
    }
}
