//! `cargo xtask test`: installs, builds, lints and runs every test. What fails fast comes first.

use crate::cargo::Target;
use crate::npm::npm;
use crate::process::run;
use crate::steps::Steps;
use crate::{apt, controls, deny, npm, schemathesis, types};

/// All steps, in order.
pub(crate) fn test() -> anyhow::Result<()> {
    let mut steps = Steps::new();
    steps.step("Debian packages", || apt::install(&[apt::TO_RUN, apt::TO_TEST].concat()))?;
    steps.step("npm's packages", npm::install)?;
    let target = Target::take()?;
    let cargo = |arguments: &[&str]| run(&mut target.cargo(arguments));

    steps.step("Rust: format", || cargo(&["fmt", "--all", "--check"]))?;
    steps.step("pages: lint and format", || run(&mut npm(&["run", "lint"])))?;
    steps.step("pages: types", || run(&mut npm(&["run", "typecheck"])))?;
    steps.step("pages: types are those of the descriptions", types::check_types)?;
    steps.step("pages: tests", || run(&mut npm(&["test"])))?;
    // The window's pages go into its program, so they come first.
    steps.step("pages: build", npm::build)?;

    steps.step("Rust: lint", || {
        cargo(&["clippy", "--locked", "--workspace", "--all-targets", "--", "--deny", "warnings"])
    })?;
    // With the programs that the window's and the browser's tests start.
    steps.step("Rust: build", || cargo(&["build", "--locked", "--workspace", "--all-targets"]))?;
    steps.step("server: the description is that of the code", || types::check_description(&target))?;
    steps.step("Rust: tests, those of the window among them", || {
        run(target.cargo(&["test", "--locked", "--workspace"]).env("GUIDEPOST_APP_BIN", target.built("guidepost")))
    })?;
    steps.step("schemathesis", schemathesis::install)?;
    steps.step("server: answers are those of the description", || schemathesis::check(&target))?;
    steps.step("browser: tests", || {
        run(npm(&["run", "test:browser"]).env("GUIDEPOST_SERVER_BIN", target.built("guidepost-server")))
    })?;
    steps.step("controls, the short form", || controls::short(&target))?;
    steps.step("cargo-deny", || deny::install(&target))?;
    steps.step("licences, bans, sources", deny::check)?;
    deny::check_advisories(&mut steps)?;
    steps.finish();
    Ok(())
}
