//! The pages' side: npm's packages and the built pages.

use crate::process::{output, program, root, run};
use crate::stamp;
use anyhow::Context;
use std::path::PathBuf;
use std::process::Command;

/// An npm command at the root.
pub(crate) fn npm(arguments: &[&str]) -> Command {
    let mut command = program("npm", root());
    command.args(arguments);
    command
}

/// A program that npm installed.
pub(crate) fn tool(name: &str) -> Command {
    program(root().join("node_modules/.bin").join(name), root())
}

/// `npm ci`, where the packages are not those of the lock file.
pub(crate) fn install() -> anyhow::Result<()> {
    let version = output(program("node", root()).arg("--version"))
        .context("Node.js 20.19 or newer is needed; see https://nodejs.org/en/download")?;
    // The version counts: some packages bring a binary for it.
    let digest = stamp::digest(&[at("package-lock.json")], &[], &String::from_utf8_lossy(&version))?;
    stamp::unless_fresh(&at("node_modules/.guidepost"), &digest, "npm's packages", || run(&mut npm(&["ci"])))
}

/// `npm run build`, where the pages' sources have changed.
pub(crate) fn build() -> anyhow::Result<()> {
    let sources = [at("ui"), at("package.json"), at("package-lock.json")];
    let digest = stamp::digest(&sources, &["dist", "node_modules"], "")?;
    stamp::unless_fresh(&at("ui/dist/.guidepost"), &digest, "the pages", || run(&mut npm(&["run", "build"])))
}

fn at(path: &str) -> PathBuf {
    root().join(path)
}
