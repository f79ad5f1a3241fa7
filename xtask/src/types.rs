//! `cargo xtask types`: the descriptions of the interfaces, made from the Rust code, and the pages' types, made from them.
//! The tests compare what is committed with what the code says now.

use crate::cargo::Target;
use crate::npm;
use crate::process::{outcome, output, program, root, run};
use anyhow::{Context, bail};
use std::fs;
use std::path::{Path, PathBuf};

/// What the server's HTTP interface says.
const SERVER: &str = "ui/shared/api/openapi.json";
/// What the kiosk's screen and shell say to each other. Its test in package `guidepost` compares it, and writes it.
const HOST: &str = "ui/kiosk/host-types.json";
const HOST_TEST: &str = "the_pages_types_are_made_from_these";
/// Description, and the types made from it.
const TYPES: &[(&str, &str)] = &[(SERVER, "ui/shared/api/schema.d.ts"), (HOST, "ui/kiosk/host-types.d.ts")];

/// Writes all of them anew.
pub(crate) fn write() -> anyhow::Result<()> {
    npm::install()?;
    npm::build()?;
    let target = Target::take()?;
    run(&mut target.cargo(&["build", "--workspace", "--bin", "guidepost-server"]))?;
    put(SERVER, &description(&target)?)?;
    let mut host = target.cargo(&["test", "--workspace", "--lib", HOST_TEST]);
    run(host.env("GUIDEPOST_WRITE_TYPES", "1"))?;
    for (json, types) in TYPES {
        put(types, &generated(json)?)?;
    }
    Ok(())
}

/// The pages' types are what the committed descriptions make of them.
pub(crate) fn check_types() -> anyhow::Result<()> {
    TYPES.iter().try_for_each(|(json, types)| compare(types, &generated(json)?))
}

/// The committed description is what the server says. (`cargo test` compares the other one.)
pub(crate) fn check_description(target: &Target) -> anyhow::Result<()> {
    compare(SERVER, &description(target)?)
}

fn description(target: &Target) -> anyhow::Result<Vec<u8>> {
    output(program(target.built("guidepost-server"), root()).arg("openapi"))
}

fn generated(json: &str) -> anyhow::Result<Vec<u8>> {
    let made = scratch("types.d.ts")?;
    let mut command = npm::tool("openapi-typescript");
    command.arg(json).arg("--output").arg(&made);
    output(&mut command)?;
    fs::read(&made).with_context(|| format!("cannot read {}", made.display()))
}

fn put(path: &str, text: &[u8]) -> anyhow::Result<()> {
    let changed = fs::read(root().join(path)).ok().as_deref() != Some(text);
    println!("{path}: {}", if changed { "written anew" } else { "as it was" });
    fs::write(root().join(path), text).with_context(|| format!("cannot write {path}"))
}

fn compare(path: &str, now: &[u8]) -> anyhow::Result<()> {
    let committed = fs::read(root().join(path)).with_context(|| format!("cannot read {path}"))?;
    if committed == now {
        println!("{path} is what the code says");
        return Ok(());
    }
    let new = scratch("now")?;
    fs::write(&new, now)?;
    let mut diff = program("git", root());
    diff.args(["--no-pager", "diff", "--no-index", "--", path]).arg(&new);
    if let Ok(difference) = outcome(&mut diff) {
        println!("{}", String::from_utf8_lossy(&difference.stdout));
    }
    bail!("{path} is not what the code says: run `cargo xtask types` and commit what it writes")
}

/// A file of this process in the folder for temporary files of node's packages, which no tool looks into.
fn scratch(name: &str) -> anyhow::Result<PathBuf> {
    let folder = root().join("node_modules/.cache/guidepost");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    Ok(Path::new(&folder).join(name))
}
