//! The real binary in a folder of its own: commands that end, and a server that ends with its test.

use sqlx::Connection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// Where the database of a folder is.
pub(crate) fn database(folder: &Path) -> PathBuf {
    folder.join("a folder/guidepost.db")
}

/// The binary, set up for a database in `folder` and any free port.
pub(crate) fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_guidepost-server"));
    command
        .env("GUIDEPOST_LISTEN", "127.0.0.1:0")
        .env("GUIDEPOST_DATABASE__URL", format!("sqlite://{}", database(folder).display()))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs a command to its end.
pub(crate) fn run(folder: &Path, arguments: &[&str]) -> Output {
    command(folder).args(arguments).output().unwrap()
}

/// What a program printed.
pub(crate) fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Makes a database newer than the program.
pub(crate) const A_LATER_MIGRATION: &str = "INSERT INTO _sqlx_migrations
    (version, description, success, checksum, execution_time) VALUES (9999, 'x', 1, x'00', 0)";

/// A connection to a database's file.
pub(crate) async fn open(file: &Path) -> SqliteConnection {
    SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(file)).await.unwrap()
}

/// Runs a statement on a database's file.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn sql(file: &Path, statement: &'static str) {
    let mut connection = open(file).await;
    sqlx::query(statement).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
}

/// A server that is killed when the test ends, however it ends.
pub(crate) struct Serving {
    child: Child,
    /// `http://ADDRESS:PORT`.
    pub(crate) address: String,
    /// What it prints.
    pub(crate) lines: BufReader<ChildStdout>,
}

impl Serving {
    /// Starts it and waits until it answers.
    pub(crate) fn start(command: Command) -> Self {
        Self::start_with(command, Stdio::null())
    }

    /// The same with its log in a file.
    pub(crate) fn start_logging(command: Command, log: std::fs::File) -> Self {
        Self::start_with(command, log.into())
    }

    fn start_with(mut command: Command, log: Stdio) -> Self {
        let mut child = command.stderr(log).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("said {line:?}")).to_owned();
        Self { child, address, lines }
    }

    /// Asks it to end.
    pub(crate) fn terminate(&mut self) -> std::process::ExitStatus {
        let killed = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(killed.success());
        self.child.wait().unwrap()
    }

    /// Ends it at once, as a power cut does.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
