//! Real stores for tests: a Redis and a MariaDB that this process starts on free ports and that end with it.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What a venue stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stores {
    /// SQLite file and codes in memory: the embedded pair.
    SqliteMemory,
    /// SQLite file and Redis.
    SqliteRedis,
    /// MariaDB and Redis.
    MariadbRedis,
}

/// A program that ends with the test, however the test ends: a shell holds it, and lets go when its input closes.
#[derive(Debug)]
pub struct Served {
    keeper: Child,
    /// Where it listens.
    pub port: u16,
    pid_file: PathBuf,
    /// Its files.
    pub folder: TempDir,
}

/// No server takes longer to start, on a machine that does much else.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Waits until something is so.
///
/// # Panics
/// After a minute.
#[track_caller]
pub fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !so() {
        assert!(started.elapsed() < START_LIMIT, "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl Served {
    /// Starts a program that listens on `port`.
    pub fn start(folder: TempDir, port: u16, program: &str, arguments: &[String]) -> Self {
        let pid_file = folder.path().join("pid");
        let mut keeper = Command::new("sh")
            .args(["-c", "\"$@\" >\"$0.log\" 2>&1 </dev/null & echo $! >\"$0\"; cat >/dev/null; kill -9 $(cat \"$0\"); rm -rf \"$(dirname \"$0\")\""])
            .arg(&pid_file)
            .arg(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        wait_until(program, || {
            assert!(keeper.try_wait().unwrap().is_none(), "{program} did not start");
            listens()
        });
        Self { keeper, port, pid_file, folder }
    }

    /// The program's process.
    pub fn pid(&self) -> String {
        std::fs::read_to_string(&self.pid_file).unwrap().trim().to_owned()
    }

    /// Sends it a signal, by name.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args([&format!("-{name}"), &self.pid()]).status().unwrap();
        assert!(sent.success());
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Starts a Redis of its own.
pub fn start_redis(arguments: &[&str]) -> Served {
    start_redis_at(free_port(), arguments)
}

/// The same, on a port that is known beforehand.
pub fn start_redis_at(port: u16, arguments: &[&str]) -> Served {
    let folder = tempfile::tempdir().unwrap();
    let mut all = vec![
        "--port".to_owned(),
        port.to_string(),
        "--bind".to_owned(),
        "127.0.0.1".to_owned(),
        "--save".to_owned(),
        String::new(),
        "--dir".to_owned(),
        folder.path().display().to_string(),
    ];
    all.extend(arguments.iter().map(|a| (*a).to_owned()));
    Served::start(folder, port, "redis-server", &all)
}

/// Starts a MariaDB of its own; its root has no password and may come from this machine alone.
pub fn start_mariadb() -> Served {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let install = Command::new("mariadb-install-db")
        .args(["--no-defaults", "--user=root", "--auth-root-authentication-method=normal", "--skip-test-db"])
        .arg(format!("--datadir={}", data.display()))
        .output()
        .unwrap();
    assert!(install.status.success(), "{}", String::from_utf8_lossy(&install.stderr));
    let port = free_port();
    let arguments = mariadb_arguments(folder.path(), port);
    Served::start(folder, port, "mariadbd", &arguments)
}

fn mariadb_arguments(folder: &Path, port: u16) -> Vec<String> {
    let path = |name: &str| folder.join(name).display().to_string();
    vec![
        "--no-defaults".to_owned(),
        "--user=root".to_owned(),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--port={port}"),
        format!("--datadir={}", path("data")),
        format!("--socket={}", path("socket")),
        format!("--pid-file={}", path("mariadb.pid")),
        "--max-connections=1000".to_owned(),
        "--skip-name-resolve".to_owned(),
        // A crash of the machine is not what these tests are about, and a hundred venues share one disk.
        "--innodb-flush-log-at-trx-commit=2".to_owned(),
        "--innodb-buffer-pool-size=64M".to_owned(),
    ]
}

/// The Redis that this process's tests share; each has a prefix of its own.
pub fn shared_redis() -> u16 {
    static REDIS: OnceLock<Served> = OnceLock::new();
    REDIS.get_or_init(|| start_redis(&[])).port
}

/// The MariaDB that this process's tests share; each has a database of its own.
pub fn shared_mariadb() -> u16 {
    static MARIADB: OnceLock<Served> = OnceLock::new();
    MARIADB.get_or_init(start_mariadb).port
}
