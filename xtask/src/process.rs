//! Running other programs: each failure names the whole command.

use anyhow::{Context, bail};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The root of this checkout.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Where things are kept between runs and between checkouts: `~/.cache/guidepost`.
pub(crate) fn cache() -> anyhow::Result<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = named("XDG_CACHE_HOME").or_else(|| named("HOME").map(|home| home.join(".cache")));
    Ok(cache.context("neither XDG_CACHE_HOME nor HOME is set: set CARGO_TARGET_DIR and one of them")?.join("guidepost"))
}

/// A program that runs in `folder` and reads nothing from the terminal.
pub(crate) fn program(name: impl AsRef<OsStr>, folder: &Path) -> Command {
    let mut command = Command::new(name);
    command.current_dir(folder).stdin(Stdio::null());
    // Cargo tells *us* about xtask with these. Build scripts that watch them (ring's does) would see a change and build
    // half of the crates again whenever cargo is called by us after it was called by hand.
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let about_xtask = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|start| text.starts_with(start));
        if about_xtask || text == "CARGO_CRATE_NAME" || text == "CARGO_PRIMARY_PACKAGE" {
            command.env_remove(name);
        }
    }
    command
}

/// The command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let mut text = String::new();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            let _ = write!(text, "{}={} ", name.display(), quoted(value));
        }
    }
    text + &quoted_words(command)
}

/// The same without its environment.
pub(crate) fn quoted_words(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    std::iter::once(program).chain(command.get_args()).map(quoted).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Runs it, its output going where ours goes.
pub(crate) fn run(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !status.success() {
        bail!("failed ({status}): {}", shown(command));
    }
    Ok(())
}

/// Runs it and returns what it wrote to standard output; its standard error goes where ours goes.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output =
        command.stderr(Stdio::inherit()).output().with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !output.status.success() {
        bail!("failed ({}): {}", output.status, shown(command));
    }
    Ok(output.stdout)
}

/// Runs it whatever its end, and returns all that it wrote.
pub(crate) fn outcome(command: &mut Command) -> anyhow::Result<Output> {
    command.output().with_context(|| format!("cannot start `{}`", shown(command)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_it_would_be_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command.args(["test", "--", "a b", "it's"]).env("CI", "true");
        assert_eq!(shown(&command), r"CI=true cargo test -- 'a b' 'it'\''s'");
    }
}
