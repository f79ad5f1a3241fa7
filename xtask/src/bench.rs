//! `cargo xtask bench`: how well and how fast the scanner reads; `cargo xtask bench refusals`: whether an answer's time tells
//! its reason, or who is known; `cargo xtask bench orders`: what an order file of 100,000 lines takes.

use crate::apt;
use crate::cargo::Target;
use crate::process::{root, run};
use anyhow::{Context, bail};
use std::path::PathBuf;

/// Measures on the folders that are named, or on each folder of `../shared/corpora`.
pub(crate) fn bench(folders: &[String]) -> anyhow::Result<()> {
    match folders {
        [word] if word == "refusals" => return of_the_interface("refusals"),
        [word] if word == "orders" => return of_the_interface("order_files"),
        _ => {}
    }
    apt::install(apt::TO_RUN)?;
    let mut folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
    if folders.is_empty() {
        let corpora = root().join("../shared/corpora");
        let entries = std::fs::read_dir(&corpora)
            .with_context(|| format!("{} cannot be read: name folders of pictures", corpora.display()))?;
        folders = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
        folders.sort();
        if folders.is_empty() {
            bail!("{} has no folders: name folders of pictures", corpora.display());
        }
    }
    let target = Target::take()?;
    // The scanner's own features alone: this is what is shipped and measured.
    let mut command = target.cargo_in(&std::env::current_dir()?);
    command.args(["run", "--release", "--package", "scanner", "--manifest-path"]).arg(root().join("Cargo.toml"));
    run(command.args(["--", "--bench"]).args(folders))
}

/// Measures the HTTP interface on real stores, in one run.
fn of_the_interface(bench: &str) -> anyhow::Result<()> {
    apt::install(&[apt::TO_RUN, apt::TO_TEST].concat())?;
    let target = Target::take()?;
    // The tests' own build: a ratio of one run does not depend on how fast the build is, and a time is at most as good.
    run(&mut target.cargo(&["bench", "--profile", "dev", "--locked", "--workspace", "--bench", bench]))
}
