//! `cargo xtask run`: the kiosk with made-up bookings, from a fresh clone.

use crate::cargo::Target;
use crate::process::{program, root, run as run_program};
use crate::{apt, npm};
use std::process::Command;

/// Builds and starts it; the program takes this one's place, so that signals and the exit status are its own.
pub(crate) fn run(arguments: &[String]) -> anyhow::Result<()> {
    apt::install(apt::TO_RUN)?;
    npm::install()?;
    npm::build()?;
    let name = if has_display() { "guidepost" } else { "guidepost-server" };
    let target = Target::take()?;
    run_program(&mut target.cargo(&["build", "--workspace", "--bin", name]))?;
    let mut command = program(target.built(name), root());
    drop(target);
    command.stdin(std::process::Stdio::inherit());
    if name == "guidepost" {
        command.arg("--demo").args(arguments);
    } else {
        println!(
            "\nThere is no display here (DISPLAY and WAYLAND_DISPLAY are unset), so the kiosk's window cannot open.\n\
             It can in a desktop session, over `ssh -X`, or unseen: `xvfb-run -a cargo xtask run` (packages xvfb, xauth).\n\
             The pages are served all the same; Ctrl-C ends it.\n"
        );
        if !arguments.is_empty() {
            println!("Left out, for they are the window's: {}\n", arguments.join(" "));
        }
        command.args(["serve", "--demo"]);
        if std::env::var_os("GUIDEPOST_LISTEN").is_none() {
            // Any free port: whatever else is on this machine, the demo starts.
            command.env("GUIDEPOST_LISTEN", "127.0.0.1:0");
        }
    }
    replace_this_process(command)
}

fn has_display() -> bool {
    !cfg!(target_os = "linux")
        || ["DISPLAY", "WAYLAND_DISPLAY"]
            .iter()
            .any(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty()))
}

#[cfg(unix)]
fn replace_this_process(mut command: Command) -> anyhow::Result<()> {
    use std::os::unix::process::CommandExt;
    let error = command.exec();
    Err(anyhow::Error::new(error).context(format!("cannot start `{}`", crate::process::shown(&command))))
}

#[cfg(not(unix))]
fn replace_this_process(mut command: Command) -> anyhow::Result<()> {
    run_program(&mut command)
}
