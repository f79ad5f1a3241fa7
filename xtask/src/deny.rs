//! Licences, banned crates, sources, advisories: cargo-deny by deny.toml.

use crate::cargo::Target;
use crate::process::{cache, outcome, program, root, run};
use crate::steps::Steps;
use std::path::{Path, PathBuf};

/// The version that is installed where it is not there yet.
const VERSION: &str = "0.20.2";

/// Builds cargo-deny into the cache folder, once.
pub(crate) fn install(target: &Target) -> anyhow::Result<()> {
    let tools = cache()?.join("tools");
    let wanted = format!("cargo-deny {VERSION}");
    let there = outcome(program(tool(&tools), root()).arg("--version"))
        .is_ok_and(|answer| String::from_utf8_lossy(&answer.stdout).trim() == wanted);
    if there {
        println!("{wanted} is installed");
        return Ok(());
    }
    let mut install = target.cargo(&["install", "cargo-deny", "--locked", "--force", "--version", VERSION, "--debug"]);
    // It runs for seconds: optimising it would take longer than all its runs. Built in a folder of its own that goes away.
    install.env_remove("CARGO_TARGET_DIR").env("CARGO_PROFILE_DEV_DEBUG", "false").arg("--root").arg(&tools);
    run(&mut install)
}

/// Licences, bans and sources.
pub(crate) fn check() -> anyhow::Result<()> {
    run(program(tool(&cache()?.join("tools")), root()).args(["--locked", "check", "licenses", "bans", "sources"]))
}

/// Known holes in the crates we use, where the machine has the RustSec database; it lives outside the package registries,
/// and a machine that was never given it may not be able to reach it.
pub(crate) fn check_advisories(steps: &mut Steps) -> anyhow::Result<()> {
    if advisory_database().is_none() {
        steps.not_checked(
            "advisories: this machine has no RustSec database. \
             `cargo deny fetch db` brings it where its host can be reached.",
        );
        return Ok(());
    }
    let tools = cache()?.join("tools");
    steps.step("advisories", || run(program(tool(&tools), root()).args(["--locked", "check", "advisories"])))
}

/// Where cargo-deny keeps it.
fn advisory_database() -> Option<PathBuf> {
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))?;
    let folder = home.join("advisory-dbs");
    let entries = std::fs::read_dir(&folder).ok()?;
    entries
        .flatten()
        .any(|entry| entry.path().join(".git").exists() || entry.path().join("HEAD").exists())
        .then_some(folder)
}

fn tool(tools: &Path) -> PathBuf {
    tools.join("bin/cargo-deny")
}
