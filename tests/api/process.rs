//! Servers as processes of their own: the program `guidepost-server`, started as an operator would.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;

/// A running `guidepost-server serve`. A shell holds it and kills it when this goes, however the test ends.
#[derive(Debug)]
pub struct ServerProcess {
    keeper: Child,
    /// Where it listens, as it says: `http://ADDRESS:PORT`.
    pub base: String,
}

/// The program, built from the sources that this test was built from.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        // The whole workspace, as everywhere else: with one package's features most crates would be built again.
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--quiet", "--workspace", "--bin", "guidepost-server"]);
        if !cfg!(debug_assertions) {
            build.arg("--release");
        }
        build.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."));
        // What cargo tells about this package would make build scripts that watch it run again.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            if ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|start| text.starts_with(start))
                || text == "CARGO_CRATE_NAME"
                || text == "CARGO_PRIMARY_PACKAGE"
            {
                build.env_remove(name);
            }
        }
        assert!(build.status().unwrap().success(), "the server was not built");
        // This program stands in the folder `deps` beside it.
        let tests = std::env::current_exe().unwrap();
        tests.parent().and_then(Path::parent).unwrap().join("guidepost-server")
    })
}

impl ServerProcess {
    /// Starts one on any free port with these settings, by their environment names without `GUIDEPOST_`.
    pub fn start(settings: &[(&str, String)]) -> Self {
        Self::start_with_log(settings, Stdio::inherit())
    }

    /// The same, its log going there.
    pub fn start_with_log(settings: &[(&str, String)], log: impl Into<Stdio>) -> Self {
        let mut keeper = Command::new("sh");
        keeper.args(["-c", "\"$0\" serve & cat >/dev/null; kill -9 $!"]).arg(program());
        keeper.env("GUIDEPOST_LISTEN", "127.0.0.1:0").env("GUIDEPOST_LOG", "error");
        keeper.envs(settings.iter().map(|(name, value)| (format!("GUIDEPOST_{name}"), value)));
        let mut keeper = keeper.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(keeper.stdout.take().unwrap()).read_line(&mut said).unwrap();
        let base = said.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("it says {said:?}")).to_owned();
        Self { keeper, base }
    }
}

/// Runs `guidepost-server` to its end, with `memory` MiB at most to write to: beyond that it breaks off.
pub(crate) fn command(settings: &[(&str, String)], memory: u32, arguments: &[&str]) -> Output {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "ulimit -d \"$0\" && exec \"$@\""])
        .arg((memory * 1024).to_string())
        .arg(program())
        .args(arguments);
    shell.env("LANG", "C").env_remove("LC_ALL").env_remove("LC_MESSAGES").env("GUIDEPOST_LOG", "warn");
    shell.envs(settings.iter().map(|(name, value)| (format!("GUIDEPOST_{name}"), value)));
    shell.output().unwrap()
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}
