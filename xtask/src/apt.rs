//! The Debian packages that building and testing need, and how they get onto the machine.

use crate::process::{outcome, output, program, root, run};
use anyhow::bail;
use std::collections::BTreeSet;
use std::process::Command;

/// To build the app, and to show it: the screens are in Chinese first.
pub(crate) const TO_RUN: &[&str] = &[
    "build-essential",       // a C and C++ compiler: SQLite, ring, zxing-cpp
    "cmake",                 // zxing-cpp
    "libclang-dev",          // the camera's bindings are made when building
    "libwebkit2gtk-4.1-dev", // the window
    "pkg-config",            // finds the window's libraries
    "fonts-noto-cjk",        // Chinese text
];

/// To test besides.
pub(crate) const TO_TEST: &[&str] = &[
    "chromium",          // the visitor's page
    "chromium-driver",   // the same, beside the kiosk's window
    "dbus-bin",          // looks who is on that bus
    "dbus-daemon",       // a session bus of a test's own
    "fonts-dejavu-core", // Latin text
    "git",               // copies of the tree for the controls
    "gnome-keyring",     // where the kiosk keeps its session
    "mariadb-server",    // the database of several servers
    "openbox",           // a window manager
    "openssl",           // certificates, right ones and wrong ones
    "procps",            // `kill`, for whole groups of processes
    "python3",           // the example of a booking system; a sandbox for the kiosk
    "python3-venv",      // a place for schemathesis
    "redis-server",      // the code store of several servers
    "webkit2gtk-driver", // the kiosk's window
    "xvfb",              // a display
];

/// Installs what is missing of these, or says how.
pub(crate) fn install(wanted: &[&str]) -> anyhow::Result<()> {
    let mut query = program("dpkg-query", root());
    query.args(["--show", "--showformat=${binary:Package} ${Status}\n"]).args(wanted);
    // It fails for packages that it has never heard of: they are missing from its answer as well.
    let Ok(answer) = outcome(&mut query) else {
        println!("This is no Debian, so nothing is installed here. Needed are what Debian calls: {}", wanted.join(" "));
        return Ok(());
    };
    let missing = missing(&String::from_utf8_lossy(&answer.stdout), wanted);
    if missing.is_empty() {
        println!("all {} Debian packages are installed", wanted.len());
        return Ok(());
    }
    if !is_root()? {
        bail!(
            "these Debian packages are missing: {missing}\nTo install them:\n\n  \
             sudo apt-get update && sudo apt-get install {options} {missing}\n",
            missing = missing.join(" "),
            options = INSTALL_OPTIONS.join(" "),
        );
    }
    println!("installing Debian packages: {}", missing.join(" "));
    run(&mut apt_get("update"))?;
    run(apt_get("install").arg("--yes").args(INSTALL_OPTIONS).args(&missing))
}

/// Nothing that is there goes, nothing comes that is not asked for.
const INSTALL_OPTIONS: &[&str] = &["--no-remove", "--no-install-recommends"];

fn apt_get(action: &str) -> Command {
    let mut command = program("apt-get", root());
    // Another installation may be under way on a machine that has just started.
    command.env("DEBIAN_FRONTEND", "noninteractive").args([action, "--quiet", "--option=DPkg::Lock::Timeout=300"]);
    command
}

fn is_root() -> anyhow::Result<bool> {
    Ok(output(program("id", root()).arg("-u"))?.trim_ascii() == b"0")
}

/// What `dpkg-query` does not call installed. It names a package as `libfoo:amd64` where several architectures may be.
fn missing<'a>(answer: &str, wanted: &[&'a str]) -> Vec<&'a str> {
    let installed: BTreeSet<&str> = answer
        .lines()
        .filter_map(|line| line.split_once(' '))
        .filter(|(_, status)| status.ends_with(" ok installed"))
        .map(|(package, _)| package.split(':').next().unwrap_or(package))
        .collect();
    wanted.iter().copied().filter(|package| !installed.contains(package)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_half_installed_or_unknown_is_missing() {
        let answer = "cmake install ok installed\n\
            xvfb deinstall ok config-files\n\
            libclang-dev:amd64 install ok installed\n\
            libclang-dev:i386 deinstall ok config-files\n\
            openbox install ok unpacked\n\
            xauth hold ok installed\n";
        let wanted = ["cmake", "xvfb", "libclang-dev", "openbox", "xauth", "never-heard-of"];
        assert_eq!(missing(answer, &wanted), ["xvfb", "openbox", "never-heard-of"]);
    }
}
