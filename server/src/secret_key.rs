//! The server's secret key: 32 bytes in a file of its own, from which the keys of each use are derived.
//!
//! Beside a SQLite file it is made when it is first needed. With MySQL it must be named: several servers share one database,
//! and each must have the same.

use crate::clock::RandomSource;
use crate::config::Config;
use crate::signature::{hex, hmac_sha256};
use anyhow::{Context, bail, ensure};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const BYTES: usize = 32;

/// A key that was derived for one use. `Debug` prints stars.
#[derive(Clone)]
pub(crate) struct DerivedKey([u8; BYTES]);

impl std::fmt::Debug for DerivedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

impl DerivedKey {
    /// HMAC-SHA-256 over parts that cannot run into each other: each is led by its length.
    pub(crate) fn digest(&self, parts: &[&[u8]]) -> [u8; BYTES] {
        let mut text = Vec::new();
        for part in parts {
            text.extend((part.len() as u64).to_be_bytes());
            text.extend_from_slice(part);
        }
        hmac_sha256(&self.0, &text)
    }

    /// The same as text.
    pub(crate) fn hex(&self, parts: &[&[u8]]) -> String {
        hex(&self.digest(parts))
    }
}

/// The keys that this server derives from its secret.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// Digests of numbers and names in the code store.
    pub(crate) digests: DerivedKey,
    /// Signs captcha challenges.
    pub(crate) captcha: DerivedKey,
}

impl Keys {
    fn from_secret(secret: [u8; BYTES]) -> Self {
        let secret = DerivedKey(secret);
        let derived = |label: &str| DerivedKey(secret.digest(&[b"guidepost", label.as_bytes()]));
        Self { digests: derived("digests"), captcha: derived("captcha") }
    }

    /// The key as far as there is one; nothing is made.
    pub(crate) fn existing(config: &Config) -> Option<Self> {
        let file = config.secret_key_file.clone().or_else(|| beside_database(config))?;
        read(&file).ok().map(Self::from_secret)
    }

    /// Names the space in which codes are kept under this prefix, without telling the key: servers that name it
    /// differently do not see each other's codes.
    pub(crate) fn code_space(&self, prefix: &str) -> String {
        let mut name = self.digests.hex(&[b"code space", prefix.as_bytes()]);
        name.truncate(16);
        name
    }

    /// Reads the key that the settings name, or that beside the SQLite file, which is made where there is none.
    ///
    /// # Errors
    /// Where it is missing, of another size, or others may read it; the text says what to do.
    pub(crate) fn open(config: &Config, random: &dyn RandomSource) -> anyhow::Result<Self> {
        if let Some(file) = &config.secret_key_file {
            return read(file).map(Self::from_secret).context("setting `secret_key_file`");
        }
        let Some(file) = beside_database(config) else {
            bail!(
                "setting `secret_key_file`: with MySQL every server needs the same key. Make it once \
                 (`head -c 32 /dev/urandom > secret.key && chmod 600 secret.key`), copy it to each and name it"
            );
        };
        if !file.exists() {
            make(&file, random).with_context(|| format!("the secret key {} cannot be made", file.display()))?;
        }
        read(&file).map(Self::from_secret)
    }
}

/// Where the key of a SQLite database lies: `guidepost.db.key` beside `guidepost.db`.
pub(crate) fn beside_database(config: &Config) -> Option<PathBuf> {
    let mut name = config.database.url.sqlite_file()?.into_os_string();
    name.push(".key");
    Some(name.into())
}

/// Written whole under another name first: of two processes that start at once, one makes the key and both read it.
fn make(file: &Path, random: &dyn RandomSource) -> anyhow::Result<()> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    let mut secret = [0; BYTES];
    random.fill(&mut secret);
    // For its owner alone from the beginning.
    let mut new = tempfile::Builder::new()
        .prefix(".secret-key-")
        .permissions(std::fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    new.write_all(&secret)?;
    new.as_file().sync_all()?;
    match new.persist_noclobber(file) {
        Err(error) if error.error.kind() != ErrorKind::AlreadyExists => Err(error.error.into()),
        _ => Ok(()),
    }
}

fn read(file: &Path) -> anyhow::Result<[u8; BYTES]> {
    let bytes = std::fs::read(file).with_context(|| format!("the secret key {} cannot be read", file.display()))?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    ensure!(
        mode & 0o077 == 0,
        "others may read the secret key {} (mode {mode:o}): chmod 600 {}",
        file.display(),
        file.display()
    );
    let length = bytes.len();
    bytes.try_into().map_err(|_| {
        anyhow::anyhow!(
            "the secret key {} has {length} bytes and must have {BYTES}: put the right one back from a backup, or make a \
             new one with `head -c 32 /dev/urandom`",
            file.display()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRandom;

    fn error(config: &Config) -> String {
        format!("{:#}", Keys::open(config, &SystemRandom).unwrap_err())
    }

    #[test]
    fn a_key_is_made_once_beside_a_sqlite_file_for_its_owner_alone() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::demo_in(folder.path());
        let first = Keys::open(&config, &SystemRandom).unwrap();
        let again = Keys::open(&config, &SystemRandom).unwrap();
        assert_eq!(first.digests.hex(&[b"x"]), again.digests.hex(&[b"x"]));
        assert_ne!(first.digests.hex(&[b"x"]), first.captcha.hex(&[b"x"]));
        // Where one part ends and the next begins is part of it.
        assert_ne!(first.digests.hex(&[b"1", b"23"]), first.digests.hex(&[b"12", b"3"]));
        let file = folder.path().join("guidepost.db.key");
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(file.metadata().unwrap().len(), 32);
        assert!(!format!("{first:?}").contains(|c: char| c.is_ascii_digit()));
    }

    #[test]
    fn a_key_that_cannot_be_used_is_named_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret.key");
        let mut config = Config::demo_in(folder.path());
        config.secret_key_file = Some(file.clone());
        assert!(error(&config).contains("cannot be read"), "a key that is named is never made: {}", error(&config));
        for length in [0, 31, 33] {
            std::fs::write(&file, vec![7; length]).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
            assert!(error(&config).contains(&format!("has {length} bytes")));
        }
        std::fs::write(&file, [7; 32]).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert!(error(&config).contains("chmod 600"));
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        Keys::open(&config, &SystemRandom).unwrap();
        config.secret_key_file = None;
        config.database.url = crate::config::DatabaseUrl::new("mysql://h/d");
        assert!(error(&config).contains("every server needs the same key"));
    }
}
