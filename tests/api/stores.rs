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
    /// SQLite file and a Redis Cluster of three nodes.
    SqliteCluster,
}

/// A program that ends with the test, however the test ends: a shell holds it, and lets go when its input closes.
#[derive(Debug)]
pub struct Served {
    keeper: Child,
    /// Where it listens.
    pub port: u16,
    program: String,
    arguments: Vec<String>,
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
        let keeper = Command::new("sh")
            .args(["-c", "cat >/dev/null; kill -9 $(cat \"$0\"); rm -rf \"$(dirname \"$0\")\""])
            .arg(&pid_file)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let served =
            Self { keeper, port, program: program.to_owned(), arguments: arguments.to_vec(), pid_file, folder };
        served.start_again();
        served
    }

    /// Starts the program, for the first time or after it was killed.
    pub fn start_again(&self) {
        let started = Command::new("sh")
            .args(["-c", "\"$@\" >>\"$0.log\" 2>&1 </dev/null & echo $! >\"$0\""])
            .arg(&self.pid_file)
            .arg(&self.program)
            .args(&self.arguments)
            .status()
            .unwrap();
        assert!(started.success());
        wait_until(&self.program, || TcpStream::connect(("127.0.0.1", self.port)).is_ok());
    }

    /// Kills the program and waits until its port is free.
    pub fn kill(&self) {
        self.signal("KILL");
        wait_until("the port is free", || TcpStream::connect(("127.0.0.1", self.port)).is_err());
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
        // In a folder that it shares, one that starts removes the temporary tables of the others.
        .arg(format!("--tmpdir={}", folder.path().display()))
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
        format!("--tmpdir={}", folder.display()),
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

/// The nodes of the Redis Cluster that this process's tests share; each has a prefix of its own.
pub fn shared_cluster() -> Vec<u16> {
    static CLUSTER: OnceLock<Vec<Served>> = OnceLock::new();
    CLUSTER.get_or_init(|| start_cluster(&[])).iter().map(|node| node.port).collect()
}

/// Three nodes of a Redis Cluster.
pub fn start_cluster(arguments: &[&str]) -> Vec<Served> {
    let nodes: Vec<Served> = (0..3)
        .map(|_| {
            let bus = free_port().to_string();
            start_redis(&[&["--cluster-enabled", "yes", "--cluster-port", &bus], arguments].concat())
        })
        .collect();
    let addresses = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port));
    let made =
        Command::new("redis-cli").args(["--cluster", "create"]).args(addresses).arg("--cluster-yes").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stdout));
    for node in &nodes {
        wait_until("the cluster is ready", || redis_cli(node.port, &["cluster", "info"]).contains("cluster_state:ok"));
    }
    nodes
}

/// A master, its replica, and a sentinel that moves the mastership soon.
#[derive(Debug)]
pub struct Sentinel {
    /// Master and replica, as they began.
    pub nodes: [Served; 2],
    /// The sentinel.
    pub sentinel: Served,
}

/// Starts a master named `main`, a replica and a sentinel.
pub fn start_sentinel() -> Sentinel {
    let master = start_redis(&[]);
    let replica = start_redis(&["--replicaof", "127.0.0.1", &master.port.to_string()]);
    wait_until("the replica follows", || {
        redis_cli(replica.port, &["info", "replication"]).contains("master_link_status:up")
    });
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let settings = folder.path().join("sentinel.conf");
    let text = format!(
        "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {} 1\nsentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n",
        master.port
    );
    std::fs::write(&settings, text).unwrap();
    let sentinel =
        Served::start(folder, port, "redis-server", &[settings.display().to_string(), "--sentinel".to_owned()]);
    wait_until("the sentinel knows the replica", || {
        redis_cli(port, &["sentinel", "master", "main"]).contains("num-slaves\n1")
    });
    Sentinel { nodes: [master, replica], sentinel }
}

impl Sentinel {
    /// The port of the master, as the sentinel says.
    pub fn master(&self) -> String {
        let answer = redis_cli(self.sentinel.port, &["sentinel", "get-master-addr-by-name", "main"]);
        answer.lines().nth(1).unwrap_or_default().trim().to_owned()
    }
}

/// What a Redis answers to a command.
pub fn redis_cli(port: u16, command: &[&str]) -> String {
    let output = Command::new("redis-cli").args(["-p", &port.to_string()]).args(command).output().unwrap();
    String::from_utf8_lossy(&output.stdout).replace('\r', "")
}

/// What a MariaDB answers to a statement.
pub fn mariadb(server: &Served, sql: &str) -> String {
    let output = Command::new("mariadb")
        .args(["--no-defaults", "-h127.0.0.1", "-uroot", &format!("-P{}", server.port), "-N", "-r", "-e", sql])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
