//! A session bus with GNOME's keyring on it, in a test's own folder: nothing of the machine's own is used or changed. And
//! a sandbox that forbids the kernel's keyring, as containers do.

use crate::stage::{Stage, text, wait};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// No services are started by themselves: who is on this bus is for the test to say.
const BUS: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>session</type>
  <listen>unix:dir=FOLDER</listen>
  <auth>EXTERNAL</auth>
  <policy context="default"><allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/></policy>
</busconfig>
"#;

/// Starts a session bus and gives its address.
pub(crate) async fn bus(stage: &mut Stage) -> anyhow::Result<String> {
    let folder = stage.folder.path().join("bus");
    std::fs::create_dir(&folder)?;
    let config = folder.join("bus.conf");
    std::fs::write(&config, BUS.replace("FOLDER", text(&folder)?))?;
    let mut daemon = stage.command("dbus-daemon");
    daemon.args(["--nofork", "--nopidfile", "--print-address=1", "--config-file", text(&config)?]);
    stage.start(daemon, "bus")?;
    let said = stage.said("bus");
    let said = wait("the bus says its address", || {
        Ok(std::fs::read_to_string(&said).ok().filter(|said| said.ends_with('\n')))
    })
    .await?;
    Ok(said.trim().to_owned())
}

/// Starts GNOME's keyring on a bus: open, or locked with nobody there to unlock it.
pub(crate) async fn keyring(stage: &mut Stage, bus: &str, locked: bool) -> anyhow::Result<()> {
    let folder = stage.folder.path().join("keyring");
    let run = folder.join("run");
    std::fs::create_dir_all(&run)?;
    std::fs::set_permissions(&run, std::fs::Permissions::from_mode(0o700))?;
    let mut daemon = stage.command("gnome-keyring-daemon");
    daemon
        .args(["--foreground", "--components=secrets"])
        .env("DBUS_SESSION_BUS_ADDRESS", bus)
        .env("XDG_DATA_HOME", &folder)
        .env("XDG_CACHE_HOME", &folder)
        .env("XDG_CONFIG_HOME", &folder)
        .env("XDG_RUNTIME_DIR", &run);
    if locked {
        daemon.arg("--start");
    } else {
        let password = folder.join("password");
        std::fs::write(&password, "of the test's own")?;
        daemon.arg("--unlock").stdin(std::fs::File::open(password)?);
    }
    stage.start(daemon, "keyring")?;
    let mut names = stage.command("dbus-send");
    names.env("DBUS_SESSION_BUS_ADDRESS", bus).args([
        "--print-reply",
        "--dest=org.freedesktop.DBus",
        "/",
        "org.freedesktop.DBus.ListNames",
    ]);
    wait("the keyring is on the bus", || {
        let names = names.output()?;
        Ok(String::from_utf8_lossy(&names.stdout).contains("org.freedesktop.secrets").then_some(()))
    })
    .await
}

/// Runs the app and forbids it, and all that it starts, the calls for the kernel's keyring: they fail with EPERM.
const SANDBOX: &str = r#"#!/usr/bin/env python3
import ctypes, os, platform, struct, sys

ARCH, CALLS = {"x86_64": (0xC000003E, (248, 249, 250)), "aarch64": (0xC00000B7, (217, 218, 219))}[platform.machine()]
steps = [(0x20, 0, 0, 4), (0x15, 1, 0, ARCH), (0x06, 0, 0, 0x7FFF0000), (0x20, 0, 0, 0)]
for left, call in zip((3, 2, 1), CALLS):
    steps.append((0x15, left, 0, call))
steps += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | 1)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
filter = Filter(len(steps), ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(filter), 0, 0) == 0
os.execv("APP", ["APP"] + sys.argv[1:])
"#;

/// Runs the app in a session keyring of its own, as every log-in to a system does.
const LOG_IN: &str = r#"#!/usr/bin/env python3
import ctypes, os, platform, sys

keyctl = {"x86_64": 250, "aarch64": 219}[platform.machine()]
ctypes.CDLL(None).syscall(keyctl, 1, None)
os.execv("APP", ["APP"] + sys.argv[1:])
"#;

/// A program that stands for the app, started by a log-in of its own.
pub(crate) fn in_a_log_in(stage: &Stage, app: &Path) -> anyhow::Result<PathBuf> {
    script(stage, "log-in", LOG_IN, app)
}

/// A program that stands for the app, without the kernel's keyring.
pub(crate) fn without_kernel_keyring(stage: &Stage, app: &Path) -> anyhow::Result<PathBuf> {
    script(stage, "sandboxed", SANDBOX, app)
}

/// The recipe of docs/kiosk.md for a user without a desktop: a bus and a keyring with an empty password, begun with the app.
const WITHOUT_DESKTOP: &str = r#"#!/bin/sh
exec dbus-run-session -- bash -c 'printf "\n" | gnome-keyring-daemon --unlock --components=secrets >/dev/null; exec APP "$@"' bash "$@"
"#;

/// A program that stands for the app, started as docs/kiosk.md says for a user without a desktop.
pub(crate) fn without_desktop(stage: &Stage, app: &Path) -> anyhow::Result<PathBuf> {
    script(stage, "without-desktop", WITHOUT_DESKTOP, app)
}

fn script(stage: &Stage, name: &str, script: &str, app: &Path) -> anyhow::Result<PathBuf> {
    let program = stage.folder.path().join(name);
    std::fs::write(&program, script.replace("APP", text(app)?))?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755))?;
    Ok(program)
}
