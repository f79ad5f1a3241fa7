//! `doctor`, by the real binary: a healthy set-up, and one broken in each way that it knows. No secret is printed.

use crate::binary::{A_LATER_MIGRATION, Serving, command, database, run, sql, text};
use api_tests::FixedClock;
use api_tests::stores::{free_port, redis_cli, start_mariadb, start_redis};
use guidepost_server::Config;
use guidepost_server::clock::Clock;
use guidepost_server::ops::doctor::examine;
use serde_json::json;
use std::fmt::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

/// What `doctor` printed, and how it ended.
struct Told {
    code: Option<i32>,
    text: String,
}

impl Told {
    /// The finding of this level about this with this in its text.
    #[track_caller]
    fn has(&self, level: &str, about: &str, what: &str) -> &Self {
        let start = format!("{level:<8} {about:<11} ");
        let found = self.text.lines().any(|line| line.starts_with(&start) && line.contains(what));
        assert!(found, "no {level} about {about} with {what:?} in:\n{}", self.text);
        self
    }

    /// What is no fault and no warning ends well, and every other finding says what to do next.
    #[track_caller]
    fn ends(&self, faults: usize) {
        let lines: Vec<&str> = self.text.lines().collect();
        let of = |level: &str| lines.iter().filter(|line| line.starts_with(&format!("{level:<8} "))).count();
        assert_eq!(of("fault"), faults, "{}", self.text);
        assert_eq!(self.code, Some(i32::from(faults > 0)), "{}", self.text);
        let next = lines.iter().filter(|line| line.trim_start().starts_with("next: ")).count();
        assert_eq!(next, of("fault") + of("warning"), "{}", self.text);
        assert!(!self.text.contains("hunter2"), "a secret was printed:\n{}", self.text);
    }
}

/// Runs `doctor` with these settings over the usual ones.
fn doctor(folder: &Path, settings: &[(&str, &str)], arguments: &[&str]) -> Told {
    let mut command = command(folder);
    let output = command.arg("doctor").args(arguments).envs(settings.iter().copied()).output().unwrap();
    let mut said = text(&output.stdout).to_owned();
    let _ = write!(said, "{}", text(&output.stderr));
    Told { code: output.status.code(), text: said }
}

/// 2100-01-01 in Shanghai (Unix ms).
const LATER: i64 = 4_102_416_000_000;

/// What is found where this machine's clock stands at `clock`.
#[tokio::main(flavor = "current_thread")]
async fn by_the_clock(folder: &Path, settings: &[(&str, &str)], ca: Option<&Path>, clock: i64) -> Told {
    let usual =
        [("GUIDEPOST_LISTEN", "127.0.0.1:0".to_owned()), (DATABASE, format!("sqlite://{}/x.db", folder.display()))];
    let usual = usual.into_iter().map(|(name, value)| (name.to_owned(), value));
    let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let config = Config::load(None, usual.chain(settings)).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(FixedClock::at(clock));
    let found = examine(&config, None, ca, &clock).await;
    Told { code: None, text: found.iter().map(|finding| format!("{finding}\n")).collect() }
}

const DATABASE: &str = "GUIDEPOST_DATABASE__URL";
const CODES: &str = "GUIDEPOST_CODE_STORE__URL";
const KEY: &str = "GUIDEPOST_SECRET_KEY_FILE";

#[test]
fn a_healthy_server_has_no_fault_before_and_while_it_serves() {
    let folder = tempfile::tempdir().unwrap();
    doctor(folder.path(), &[], &[]).has("ok", "database", "does not exist yet").ends(0);
    assert!(!database(folder.path()).exists(), "doctor made a database");

    let listen = format!("127.0.0.1:{}", free_port());
    let url = format!("http://{listen}");
    let settings = [("GUIDEPOST_LISTEN", listen.as_str()), ("GUIDEPOST_PUBLIC_URL", url.as_str())];
    let mut serve = command(folder.path());
    serve.arg("serve").envs(settings);
    let mut serving = Serving::start(serve);
    let told = doctor(folder.path(), &settings, &[]);
    told.has("ok", "clock", "it is 20").has("ok", "port", "is served by a guidepost-server");
    told.has("ok", "database", "is whole").has("ok", "database", "every migration").has(
        "ok",
        "database",
        "can be written",
    );
    told.has("ok", "code store", "own memory").has("ok", "disk", "(for the database)");
    told.has("ok", "secrets", "its mode is 0600").has("ok", "public_url", "a guidepost-server answers").ends(0);
    serving.terminate();
    let told = doctor(folder.path(), &settings, &[]);
    told.has("ok", "port", "is free").has("warning", "public_url", "nothing listens").ends(0);
}

#[test]
fn the_port_of_another_program_and_an_address_of_another_machine_are_faults() {
    let folder = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = other.local_addr().unwrap().to_string();
    // It takes connections, says something, and is no guidepost.
    std::thread::spawn(move || {
        use std::io::Write;
        for mut stream in other.incoming().flatten() {
            let _ = stream.write_all(b"HTTP/1.0 200 OK\r\n\r\nok");
        }
    });
    let told = doctor(folder.path(), &[("GUIDEPOST_LISTEN", &listen)], &[]);
    told.has("fault", "port", "another program has").ends(1);
    // Set aside for documentation (RFC 5737).
    let told = doctor(
        folder.path(),
        &[("GUIDEPOST_LISTEN", "192.0.2.1:8080"), ("GUIDEPOST_PUBLIC_URL", "http://192.0.2.1")],
        &[],
    );
    told.has("fault", "port", "this machine has no address").has("fault", "public_url", "plain HTTP");
}

#[test]
fn a_broken_a_foreign_and_a_newer_database_are_faults() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), &["migrate"]).status.success());
    let file = database(folder.path());
    // Everything in one file.
    sql(&file, "PRAGMA journal_mode = DELETE");
    let whole = std::fs::read(&file).unwrap();
    sql(&file, "UPDATE _sqlx_migrations SET success = 0");
    doctor(folder.path(), &[], &[]).has("fault", "database", "failed half way").ends(1);
    std::fs::write(&file, &whole).unwrap();
    sql(&file, A_LATER_MIGRATION);
    doctor(folder.path(), &[], &[]).has("fault", "database", "a newer guidepost-server").ends(1);
    std::fs::write(&file, &whole).unwrap();
    sql(&file, "DELETE FROM _sqlx_migrations");
    let pending = [("GUIDEPOST_DATABASE__MIGRATE", "false")];
    doctor(folder.path(), &pending, &[]).has("fault", "database", "are pending").ends(1);
    doctor(folder.path(), &[], &[]).has("ok", "database", "are pending: `serve` applies them").ends(0);
    sql(&file, "DROP TABLE _sqlx_migrations");
    doctor(folder.path(), &[], &[]).has("fault", "database", "another program's").ends(1);

    let mut damaged = whole.clone();
    damaged[4096..3 * 4096].fill(0x5a);
    std::fs::write(&file, damaged).unwrap();
    doctor(folder.path(), &[], &[]).has("fault", "database", "is damaged").ends(1);
    std::fs::write(&file, "no database at all").unwrap();
    doctor(folder.path(), &[], &[]).has("fault", "database", "cannot be").ends(1);
}

#[test]
fn files_that_others_may_read_are_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(run(folder.path(), &["migrate"]).status.success());
    let mode = |file: &Path, mode| std::fs::set_permissions(file, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(&database(folder.path()), 0o644);
    let (config, key) = (folder.path().join("guidepost.toml"), folder.path().join("secret.key"));
    std::fs::write(&key, [7; 32]).unwrap();
    mode(&key, 0o640);
    let text = format!(
        "secret_key_file = {:?}\n[devices]\n[[sms.channels]]\nname = \"gateway\"\nkind = \"http\"\nurl = \"http://127.0.0.1:1/\"\nsecret = \"hunter2 hunter2 hunter2\"\n",
        key.display().to_string()
    );
    std::fs::write(&config, text).unwrap();
    mode(&config, 0o644);
    let config_name = config.display().to_string();
    let told = doctor(folder.path(), &[], &["--config", &config_name]);
    told.has("warning", "secrets", "holds phone numbers and others may").has("fault", "secrets", "holds passwords");
    told.has("fault", "secrets", "secret key").has("warning", "settings", "`devices` has no effect").ends(2);

    for file in [&config, &key, &database(folder.path())] {
        mode(file, 0o600);
    }
    doctor(folder.path(), &[], &["--config", &config_name]).has("ok", "secrets", "holds passwords").ends(0);
}

/// Whoever follows advice about rights on what is none of ours breaks something else: `chmod 600 /tmp`.
#[test]
fn no_rights_are_spoken_of_where_there_is_no_database_of_ours() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let (text, foreign, empty) = (place.join("notes.txt"), place.join("foreign.db"), place.join("empty.db"));
    std::fs::write(&text, "notes of somebody, long enough to be a database's head, and none").unwrap();
    std::fs::write(&foreign, "").unwrap();
    sql(&foreign, "CREATE TABLE something (id INTEGER)");
    std::fs::write(&empty, "").unwrap();
    for (file, level, what) in [
        (place, "fault", "is a folder"),
        (Path::new("/dev/null"), "fault", "is no ordinary file"),
        (&text.join("guidepost.db"), "fault", "notes.txt is no folder"),
        (&text, "fault", "notes.txt cannot be read"),
        (&foreign, "fault", "another program's"),
        (&empty, "ok", "it is empty"),
    ] {
        let told = doctor(place, &[(DATABASE, &format!("sqlite://{}", file.display()))], &[]);
        told.has(level, "database", what).ends(usize::from(level == "fault"));
        assert!(!told.text.contains("chmod") && !told.text.contains("phone"), "{}", told.text);
    }
}

/// Runs `serve` with settings that it refuses.
#[track_caller]
fn refuses(folder: &Path, settings: &[(&str, &str)], why: &str) {
    let output = command(folder).arg("serve").envs(settings.iter().copied()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
}

#[test]
fn what_serve_refuses_to_start_with_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let mut serve = command(place);
    let mut serving = Serving::start({
        serve.arg("serve");
        serve
    });
    // Somebody serves the database at another port.
    let listen = format!("127.0.0.1:{}", free_port());
    let settings = [("GUIDEPOST_LISTEN", listen.as_str())];
    refuses(place, &settings, "another guidepost-server serves");
    doctor(place, &settings, &[]).has("fault", "database", "another guidepost-server serves").ends(1);
    serving.terminate();
    doctor(place, &settings, &[]).ends(0);

    let lock = std::path::PathBuf::from(format!("{}.serve-lock", database(place).display()));
    std::fs::remove_file(&lock).unwrap();
    std::fs::create_dir(&lock).unwrap();
    refuses(place, &settings, ".serve-lock");
    doctor(place, &settings, &[]).has("fault", "database", ".serve-lock cannot be written").ends(1);
    std::fs::remove_dir(&lock).unwrap();

    // Tables that nobody would make.
    let elsewhere = tempfile::tempdir().unwrap();
    let off = [("GUIDEPOST_DATABASE__MIGRATE", "false")];
    doctor(elsewhere.path(), &off, &[]).has("fault", "database", "`database.migrate` is off").ends(1);
}

#[test]
fn a_web_hook_without_its_tenant_is_a_fault_and_one_without_its_receiver_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (here, nobody) = (listener.local_addr().unwrap().port(), free_port());
    let hook = |name: &str, url: String, private: bool, tenant: i64| json!({"name": name, "url": url, "secret": "hunter2hunter2hunter2", "allow_private": private, "tenant": tenant});
    let hooks = json!([
        hook("reached", format!("http://127.0.0.1:{here}/hunter2?hunter2"), true, 1),
        hook("away", format!("http://127.0.0.1:{nobody}/hunter2"), true, 1),
        hook("inside", format!("http://localhost:{here}/hunter2"), false, 1),
        hook("unknown", "https://booking.invalid/hunter2".to_owned(), false, 1),
    ]);
    let hooks = hooks.to_string();
    let look = |hooks: &str| doctor(place, &[("GUIDEPOST_WEB_HOOKS", hooks)], &[]);
    // Before there is a database, and with one.
    for _ in 0..2 {
        let told = look(&hooks);
        told.has("ok", "web hooks", "reached: the receiver at 127.0.0.1:").has("warning", "web hooks", "away: ");
        told.has("warning", "web hooks", "inside the server's own network");
        told.has("warning", "web hooks", "booking.invalid:443 cannot be connected to: its name is not known").ends(0);
        assert!(run(place, &["migrate"]).status.success());
    }
    let seventh = json!([hook("seventh", format!("http://127.0.0.1:{here}"), true, 7)]).to_string();
    refuses(place, &[("GUIDEPOST_WEB_HOOKS", &seventh)], "there is no tenant 7");
    look(&seventh).has("fault", "web hooks", "`web_hooks[0].tenant`: there is no tenant 7").ends(1);
    let private = json!([hook("private", format!("http://127.0.0.1:{here}"), false, 1)]).to_string();
    refuses(place, &[("GUIDEPOST_WEB_HOOKS", &private)], "inside the server's own network");
    look(&private).has("fault", "settings", "inside the server's own network").ends(1);
}

#[test]
fn settings_that_cannot_be_used_are_the_one_finding() {
    let folder = tempfile::tempdir().unwrap();
    let told = doctor(folder.path(), &[("GUIDEPOST_VERIFY_CODE__TTL", "0")], &[]);
    told.has("fault", "settings", "`verify_code.ttl`").ends(1);
    let told = doctor(folder.path(), &[("GUIDEPOST_VERIFY_CODE", "redis://:hunter2@h")], &[]);
    told.has("fault", "settings", "`verify_code`").ends(1);
    let config = folder.path().join("guidepost.toml");
    std::fs::write(&config, "[database]\nurl = mysql://root:hunter2@h/d\n").unwrap();
    let told = doctor(folder.path(), &[], &["--config", config.to_str().unwrap()]);
    told.has("fault", "settings", "line 2").ends(1);
    assert_eq!(run(folder.path(), &["doctor", "--nonsense"]).status.code(), Some(2));
}

#[test]
fn each_fault_of_a_redis_is_told_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let redis = start_redis(&[]);
    let url = format!("redis://127.0.0.1:{}", redis.port);
    let look = || doctor(folder.path(), &[(CODES, &url)], &[]);
    let told = look();
    told.has("ok", "code store", "answers and does not evict").has("ok", "code store", "can be written");
    told.has("ok", "clock", "Redis has the same time").ends(0);

    by_the_clock(folder.path(), &[(CODES, &url)], None, LATER).has("warning", "clock", "Redis's clock is");

    let set = |name: &str, value: &str| redis_cli(redis.port, &["config", "set", name, value]);
    set("save", "60 1");
    look().has("warning", "code store", "writes to disk (save is set)").ends(0);
    set("save", "");
    set("maxmemory-policy", "allkeys-lru");
    look().has("fault", "code store", "evicts").ends(1);
    set("maxmemory-policy", "noeviction");
    set("maxmemory", "1");
    let told = look();
    told.has("fault", "code store", "OOM").has("warning", "code store", "of the memory it may use").ends(1);
    set("maxmemory", "0");
    redis_cli(redis.port, &["replicaof", "127.0.0.1", "1"]);
    look().has("fault", "code store", "is a replica").ends(1);
    redis_cli(redis.port, &["replicaof", "no", "one"]);
    set("requirepass", "hunter2");
    let wrong = format!("redis://:hunter2222@127.0.0.1:{}", redis.port);
    for url in [&url, &wrong] {
        let told = doctor(folder.path(), &[(CODES, url)], &[]);
        told.has("fault", "code store", "nothing can be redeemed").ends(1);
        assert!(told.text.contains("correct user and password"), "{}", told.text);
    }
    let right = format!("redis://:hunter2@127.0.0.1:{}", redis.port);
    doctor(folder.path(), &[(CODES, &right)], &[]).ends(0);
    redis.kill();
    let told = doctor(folder.path(), &[(CODES, &right)], &[]);
    told.has("fault", "code store", "nothing can be redeemed").ends(1);
}

#[test]
fn each_fault_of_a_database_server_is_told_with_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let (mariadb, redis) = (start_mariadb(), start_redis(&[]));
    let root = |statement: &str| {
        let mut command = Command::new("mariadb");
        command.args(["--no-defaults", "--user=root", "--host=127.0.0.1"]).arg(format!("--port={}", mariadb.port));
        let done = command.args(["--execute", statement]).output().unwrap();
        assert!(done.status.success(), "{}", text(&done.stderr));
    };
    root("CREATE DATABASE guidepost; CREATE USER boss@localhost IDENTIFIED BY 'hunter2'; CREATE USER boss@'127.0.0.1' IDENTIFIED BY 'hunter2';
          GRANT ALL ON guidepost.* TO boss@localhost; GRANT ALL ON guidepost.* TO boss@'127.0.0.1'");
    let codes = format!("redis://127.0.0.1:{}", redis.port);
    let key = folder.path().join("secret.key");
    std::fs::write(&key, [7; 32]).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let key = key.display().to_string();
    let look = |database: &str| doctor(folder.path(), &[(DATABASE, database), (CODES, &codes), (KEY, &key)], &[]);
    let url = format!("mysql://boss:hunter2@127.0.0.1:{}/guidepost", mariadb.port);
    look(&url).has("ok", "database", "it is empty").has("ok", "clock", "the database server has the same time").ends(0);
    let migrate =
        command(folder.path()).arg("migrate").env(DATABASE, &url).env(CODES, &codes).env(KEY, &key).output().unwrap();
    assert!(migrate.status.success(), "{}", text(&migrate.stderr));
    let told = look(&url);
    told.has("ok", "database", "MariaDB 1").has("ok", "database", "every migration");
    told.has("ok", "database", "can be written").ends(0);

    // Several servers share this database: without the key that all have none may serve.
    let told = doctor(folder.path(), &[(DATABASE, &url), (CODES, &codes)], &[]);
    told.has("fault", "secrets", "every server needs the same key").ends(1);
    std::fs::write(&key, [7; 31]).unwrap();
    look(&url).has("fault", "secrets", "has 31 bytes and must have 32").ends(1);
    std::fs::write(&key, [7; 32]).unwrap();

    let told = by_the_clock(folder.path(), &[(DATABASE, &url), (CODES, &codes), (KEY, &key)], None, LATER);
    told.has("warning", "clock", "the database server's clock is").has("warning", "clock", "s behind this machine's");

    root("SET GLOBAL read_only = 1");
    look(&url).has("fault", "database", "cannot be written").ends(1);
    root("SET GLOBAL read_only = 0");
    root(
        "REVOKE ALL ON guidepost.* FROM boss@localhost, boss@'127.0.0.1'; GRANT SELECT ON guidepost.* TO boss@localhost, boss@'127.0.0.1'",
    );
    look(&url).has("fault", "database", "cannot be written").ends(1);
    look(&url.replace("/guidepost", "/elsewhere")).has("fault", "database", "no such database").ends(1);
    look(&url.replace("hunter2", "hunter22")).has("fault", "database", "does not take this user").ends(1);
    mariadb.kill();
    look(&url).has("fault", "database", "cannot be reached").ends(1);
}

/// Serves TLS, and this file as the answer to `/healthz`, until its test ends.
struct Https(std::process::Child, u16);

impl Drop for Https {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn openssl(folder: &Path, arguments: &[&str]) {
    let done = Command::new("openssl").args(arguments).current_dir(folder).output().unwrap();
    assert!(done.status.success(), "{}", text(&done.stderr));
}

/// A key and a certificate, `NAME.key` and `NAME.pem`, signed by another one of the folder (or by itself).
fn certificate(folder: &Path, name: &str, by: Option<&str>, more: &[&str]) {
    let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
    let subject = format!("/CN={name}");
    let mut all = vec!["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    all.extend(["-keyout", &key, "-out", &pem, "-subj", &subject]);
    let (ca, ca_key) = by.map(|by| (format!("{by}.pem"), format!("{by}.key"))).unwrap_or_default();
    if by.is_some() {
        all.extend(["-CA", &ca, "-CAkey", &ca_key]);
    }
    all.extend(more);
    openssl(folder, &all);
}

const LEAF: [&str; 2] = ["-addext", "basicConstraints=critical,CA:FALSE"];

fn serve_tls(folder: &Path, name: &str, chain: Option<&str>) -> Https {
    let port = free_port();
    let (key, pem) = (format!("{name}.key"), format!("{name}.pem"));
    let mut command = Command::new("openssl");
    command.args(["s_server", "-quiet", "-HTTP", "-accept", &format!("127.0.0.1:{port}"), "-key", &key, "-cert", &pem]);
    if let Some(chain) = chain {
        command.args(["-cert_chain", &format!("{chain}.pem")]);
    }
    let null = std::process::Stdio::null;
    let child = command.current_dir(folder).stdin(null()).stdout(null()).stderr(null()).spawn().unwrap();
    let served = Https(child, port);
    api_tests::stores::wait_until("TLS is served", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    served
}

/// What visitors' phones would say "security error" to is told by its cause: name, chain, clock, port.
#[test]
fn an_address_that_phones_do_not_trust_is_told_by_its_cause() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    // The answer of a guidepost-server, through a proxy that ends TLS.
    std::fs::write(place.join("healthz"), "HTTP/1.0 200 OK\r\nx-request-id: 1\r\n\r\nok").unwrap();
    certificate(place, "root", None, &["-days", "400", "-addext", "keyUsage=critical,keyCertSign"]);
    let ca =
        ["-days", "400", "-addext", "basicConstraints=critical,CA:TRUE", "-addext", "keyUsage=critical,keyCertSign"];
    certificate(place, "middle", Some("root"), &ca);
    let here = ["-addext", "subjectAltName=IP:127.0.0.1"];
    let leaf = |name: &str, by: Option<&str>, more: &[&str]| certificate(place, name, by, &[&LEAF[..], more].concat());
    leaf("good", Some("middle"), &[&here[..], &["-days", "300"]].concat());
    leaf("short", Some("middle"), &[&here[..], &["-days", "3"]].concat());
    leaf("other", Some("middle"), &["-days", "300", "-addext", "subjectAltName=DNS:tickets.example.org"]);
    leaf("itself", None, &[&here[..], &["-days", "300"]].concat());
    let root = place.join("root.pem").display().to_string();
    let ask = |port: u16, trusted: bool| {
        let url = format!("https://127.0.0.1:{port}");
        let arguments: &[&str] = if trusted { &["--ca", &root] } else { &[] };
        doctor(place, &[("GUIDEPOST_PUBLIC_URL", &url)], arguments)
    };
    for (name, chain, trusted, level, what) in [
        ("good", Some("middle"), true, "ok", "a guidepost-server answers"),
        ("short", Some("middle"), true, "warning", "ends within 14 days"),
        ("good", None, true, "fault", "the chain is incomplete"),
        ("good", Some("middle"), false, "fault", "no CA that phones know"),
        ("other", Some("middle"), true, "fault", "for another name: tickets.example.org, not 127.0.0.1"),
        ("itself", None, true, "fault", "has signed itself"),
    ] {
        let served = serve_tls(place, name, chain);
        ask(served.1, trusted).has(level, "public_url", what).ends(usize::from(level == "fault"));
    }
    // By another clock the same certificate has run out, or has not begun.
    let served = serve_tls(place, "good", Some("middle"));
    let url = format!("https://127.0.0.1:{}", served.1);
    let at = |clock| by_the_clock(place, &[("GUIDEPOST_PUBLIC_URL", &url)], Some(Path::new(&root)), clock);
    at(LATER).has("fault", "public_url", "ran out on").has("fault", "public_url", "the clock here says 2100-01-01");
    at(0).has("fault", "public_url", "begins on").has("fault", "clock", "which is long past");
    let mut plain = command(place);
    plain.arg("serve");
    let plain = Serving::start(plain);
    let port = plain.address.rsplit(':').next().unwrap().parse().unwrap();
    ask(port, true).has("fault", "public_url", "does not speak TLS").ends(1);
    ask(free_port(), true).has("warning", "public_url", "nothing listens").ends(0);
    // RFC 6761: this name is never known.
    let unknown = [("GUIDEPOST_PUBLIC_URL", "https://tickets.invalid")];
    doctor(place, &unknown, &[]).has("fault", "public_url", "is not known (DNS)").ends(1);
    let password = [("GUIDEPOST_PUBLIC_URL", "https://u:hunter2@tickets.invalid")];
    doctor(place, &password, &[]).has("fault", "public_url", "a user name or a password").ends(1);
}
