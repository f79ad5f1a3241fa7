//! schemathesis, which tries the server's own description on it: installed from the Python registry into the cache folder.

use crate::cargo::Target;
use crate::process::{cache, outcome, program, root, run};
use std::path::{Path, PathBuf};

/// The version that is installed where it is not there yet.
const VERSION: &str = "4.32.5";

/// Installs it, once.
pub(crate) fn install() -> anyhow::Result<()> {
    let folder = folder()?;
    let there = outcome(program(tool(&folder), root()).arg("--version"))
        .is_ok_and(|answer| String::from_utf8_lossy(&answer.stdout).trim().ends_with(VERSION));
    if there {
        println!("schemathesis {VERSION} is installed");
        return Ok(());
    }
    run(program("/usr/bin/python3", root()).args(["-m", "venv", "--clear"]).arg(&folder))?;
    let mut pip = program(folder.join("bin/pip"), root());
    run(pip.args(["install", "--quiet", "--disable-pip-version-check"]).arg(format!("schemathesis=={VERSION}")))
}

/// Runs the test that calls it.
pub(crate) fn check(target: &Target) -> anyhow::Result<()> {
    let mut test = target.cargo(&["test", "--locked", "--workspace", "--test", "description", "--", "--ignored"]);
    run(test.arg("--nocapture").env("GUIDEPOST_SCHEMATHESIS", tool(&folder()?)))
}

fn folder() -> anyhow::Result<PathBuf> {
    Ok(cache()?.join("tools/schemathesis"))
}

fn tool(folder: &Path) -> PathBuf {
    folder.join("bin/schemathesis")
}
