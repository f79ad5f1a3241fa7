//! `cargo xtask COMMAND`: the project's own commands. A fresh machine needs Rust and Node to begin with, no more.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, reason = "these are commands at a terminal")]

mod apt;
mod bench;
mod cargo;
mod controls;
mod deny;
mod npm;
mod process;
mod run;
mod schemathesis;
mod stamp;
mod steps;
mod test;
mod types;

use anyhow::bail;
use std::io::Write;
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask COMMAND

  run [-- ARGUMENTS]   build and open the kiosk with made-up bookings; ARGUMENTS go to `guidepost`
                       (`-- --pictures DIR` reads pictures in place of a camera)
  test                 install what is missing, build, lint, run every test; stops at the first failure
  types                write the descriptions of the interfaces and the pages' types anew
  controls [NAME]      take guards away in a copy of the tree and see that the tests notice; about half an hour
  bench [FOLDER...]    measure the scanner on folders of pictures (release build); `bench refusals`: what the times of
                       refusals tell; `bench orders`: an order file of 100,000 lines
  help                 this page

Builds go to CARGO_TARGET_DIR, or to guidepost/target in the user's cache folder. docs/development.md has more.";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "cargo xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(arguments: &[String]) -> anyhow::Result<()> {
    let (command, rest) = arguments.split_first().map_or(("help", &[][..]), |(first, rest)| (first.as_str(), rest));
    match (command, rest) {
        ("run", rest) => run::run(rest.strip_prefix(&["--".to_owned()]).unwrap_or(rest)),
        ("test", []) => test::test(),
        ("types", []) => types::write(),
        ("controls", []) => controls::controls(None),
        ("controls", [name]) => controls::controls(Some(name)),
        ("bench", folders) => bench::bench(folders.strip_prefix(&["--".to_owned()]).unwrap_or(folders)),
        ("help" | "--help" | "-h", _) => {
            // Who pipes it into `head` has seen enough.
            let _ = writeln!(std::io::stdout(), "{HELP}");
            Ok(())
        }
        ("test" | "types" | "controls", _) => bail!("`{command}` takes no such arguments; see `cargo xtask help`"),
        _ => bail!("there is no command `{command}`; see `cargo xtask help`"),
    }
}
