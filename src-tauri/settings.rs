//! What this kiosk remembers from one start to the next: a JSON file, written whole or not at all.

use crate::host_types::Settings;
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What stands in the file: the screen's settings, and those that are set by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Remembered {
    /// What the screen may change.
    #[serde(flatten)]
    pub settings: Settings,
    /// The server's address, where it is not this machine's default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The tenant's id, where that server has several: whoever signs in has to name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<u64>,
}

/// The settings in memory and the file that they are kept in.
#[derive(Debug)]
pub(crate) struct SettingsStore {
    /// `None` where this user has no place to keep a file: the kiosk works, and forgets.
    file: Option<PathBuf>,
    remembered: Mutex<Remembered>,
}

impl SettingsStore {
    /// The name of the file in its folder.
    pub(crate) const FILE: &str = "settings.json";

    /// Reads the settings in `folder`. A file that cannot be read counts as none, so that the kiosk starts.
    pub(crate) fn open(folder: Option<&Path>) -> Self {
        let file = folder.map(|folder| folder.join(Self::FILE));
        let remembered = file.as_deref().and_then(read).unwrap_or_default();
        Self { file, remembered: Mutex::new(remembered) }
    }

    /// The settings as they are now.
    pub(crate) fn get(&self) -> Settings {
        self.lock().settings.clone()
    }

    /// The server's address, if the file names one.
    pub(crate) fn server(&self) -> Option<String> {
        self.lock().server.clone()
    }

    /// The tenant's id, if the file names one.
    pub(crate) fn tenant(&self) -> Option<u64> {
        self.lock().tenant
    }

    /// Changes the settings at once and keeps them. Where they cannot be kept they count until the app ends, and the log
    /// says why: a full disk must not stop the desk.
    pub(crate) fn change(&self, change: impl FnOnce(&mut Settings)) {
        let mut remembered = self.lock();
        let before = remembered.clone();
        change(&mut remembered.settings);
        if *remembered == before {
            return;
        }
        let Some(file) = &self.file else { return };
        if let Err(error) = write(file, &remembered) {
            tracing::warn!(file = %file.display(), %error, "the settings could not be kept; they count until the app ends");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Remembered> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(file: &Path) -> Option<Remembered> {
    let text = match std::fs::read(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        Err(error) => {
            tracing::warn!(file = %file.display(), %error, "the settings cannot be read; starting with the defaults");
            return None;
        }
    };
    serde_json::from_slice(&text)
        .inspect_err(|error| {
            tracing::warn!(file = %file.display(), %error, "the settings are no settings; starting with the defaults");
        })
        .ok()
}

/// A new file beside the old one, moved into its place: a power cut leaves the one or the other.
fn write(file: &Path, remembered: &Remembered) -> anyhow::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    new.write_all(&serde_json::to_vec_pretty(remembered)?)?;
    new.as_file().sync_all()?;
    new.persist(file)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host_types::{Locale, SourceChoice};

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn what_is_changed_is_there_after_a_restart() {
        let folder = folder();
        let source = SourceChoice::Camera { index: 2, name: "Desk camera".into() };
        SettingsStore::open(Some(folder.path())).change(|s| {
            s.locale = Locale::En;
            s.source = Some(source.clone());
        });
        let again = SettingsStore::open(Some(folder.path())).get();
        assert_eq!(again.locale, Locale::En);
        assert_eq!(again.source, Some(source));
    }

    #[test]
    fn a_spoilt_file_means_the_defaults() {
        for text in ["", "{", "[]", "\u{0}", r#"{"locale":"xx"}"#] {
            let folder = folder();
            std::fs::write(folder.path().join(SettingsStore::FILE), text).unwrap();
            assert_eq!(SettingsStore::open(Some(folder.path())).get(), Settings::default(), "{text:?}");
        }
    }

    #[test]
    fn a_change_on_the_screen_keeps_the_servers_address() {
        let folder = folder();
        let file = folder.path().join(SettingsStore::FILE);
        std::fs::write(&file, r#"{"server":"http://desk.example:8080","tenant":2,"sound":false}"#).unwrap();
        let store = SettingsStore::open(Some(folder.path()));
        assert!(!store.get().sound, "what is missing has its default, what is there stays");
        assert!(store.get().mirrored);
        store.change(|s| s.mirrored = false);
        let again = SettingsStore::open(Some(folder.path()));
        assert_eq!((again.server().as_deref(), again.tenant()), (Some("http://desk.example:8080"), Some(2)));
    }

    #[test]
    fn nothing_but_the_settings_is_left_in_the_folder() {
        let folder = folder();
        let store = SettingsStore::open(Some(&folder.path().join("new")));
        store.change(|s| s.sound = false);
        store.change(|s| s.sound = true);
        let names: Vec<_> =
            std::fs::read_dir(folder.path().join("new")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, [SettingsStore::FILE]);
    }

    #[test]
    fn without_a_place_for_the_file_the_settings_count_until_the_end() {
        let store = SettingsStore::open(None);
        store.change(|s| s.sound = false);
        assert!(!store.get().sound);
        // A file where the folder should be: it cannot be made.
        let folder = folder();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let store = SettingsStore::open(Some(&folder.path().join("file")));
        store.change(|s| s.sound = false);
        assert!(!store.get().sound);
    }
}
