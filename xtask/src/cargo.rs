//! Calling cargo: one target folder, one set of features, whoever calls.
//!
//! Every call names the whole workspace (`--workspace --bin …`, never `-p …`): cargo unites the features of what a call
//! names, and with other features most crates would be built a second time.

use crate::process::{cache, program, root, run};
use anyhow::Context;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The target folder, held for this checkout.
pub(crate) struct Target {
    folder: PathBuf,
    /// Held until this is dropped.
    _lock: File,
}

impl Target {
    /// Takes the target folder: `CARGO_TARGET_DIR`, or one in the user's cache folder, so that a fresh clone is warm.
    ///
    /// Cargo tells the workspace's own crates of two checkouts apart by the times of their files alone, so what another
    /// checkout has built could pass as built from this one. Whose it was stands in a file; where it was another's, the
    /// workspace's crates go first (the rest stays).
    pub(crate) fn take() -> anyhow::Result<Self> {
        let folder = match std::env::var_os("CARGO_TARGET_DIR").filter(|value| !value.is_empty()) {
            Some(folder) => root().join(folder),
            None => cache()?.join("target"),
        };
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let note = folder.join("guidepost-checkout");
        let mut lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&note)
            .with_context(|| format!("cannot open {}", note.display()))?;
        if lock.try_lock().is_err() {
            println!("waiting for another `cargo xtask` to finish with {} …", folder.display());
            lock.lock()?;
        }
        let mut owner = String::new();
        lock.read_to_string(&mut owner)?;
        let here = root().display().to_string();
        let target = Self { folder, _lock: lock };
        if owner != here {
            for profile in ["dev", "release"] {
                run(&mut target.cargo(&["clean", "--quiet", "--workspace", "--profile", profile]))?;
            }
            let mut lock = &target._lock;
            lock.set_len(0)?;
            lock.rewind()?;
            lock.write_all(here.as_bytes())?;
        }
        Ok(target)
    }

    /// A cargo command in `folder` on this target folder.
    pub(crate) fn cargo_in(&self, folder: &Path) -> Command {
        let mut command = program(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()), folder);
        command.env("CARGO_TARGET_DIR", &self.folder).env("CARGO_INCREMENTAL", "0");
        command
    }

    /// A cargo command at the root.
    pub(crate) fn cargo(&self, arguments: &[&str]) -> Command {
        let mut command = self.cargo_in(root());
        command.args(arguments);
        command
    }

    /// The folder itself.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where `cargo build` puts a program.
    pub(crate) fn built(&self, name: &str) -> PathBuf {
        self.folder.join("debug").join(name)
    }
}
