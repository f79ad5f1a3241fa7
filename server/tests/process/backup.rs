//! `backup` and `restore`, by the real binary: under load, over a killed server, and against whatever may lie there.

use crate::binary::{A_LATER_MIGRATION, Serving, command, database, open, run, sql, text};
use guidepost_server::Config;
use guidepost_server::accounts::{link, store};
use guidepost_server::app::{App, AppState};
use guidepost_server::clock::{Clock, SystemClock, SystemRandom};
use guidepost_server::config::DatabaseUrl;
use serde_json::{Value, json};
use sqlx::Connection;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use wire::{Mobile, TenantId};

fn path_of(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn names(folder: &Path) -> BTreeSet<String> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[track_caller]
fn succeeded(output: &Output) -> &str {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[track_caller]
fn failed(output: &Output, why: &str) {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains(why), "{:?} is not in: {}", why, text(&output.stderr));
}

/// A folder whose database has one order, `BK1`, that nobody has redeemed.
fn a_database() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    succeeded(&run(folder.path(), &["migrate"]));
    sql(&database(folder.path()), "INSERT INTO account (id, tenant_id, name, created_at) VALUES (1, 1, 'x', 0)");
    sql(&database(folder.path()), ORDER);
    folder
}

const ORDER: &str = "INSERT INTO booking_order
    (tenant_id, order_no, account_id, visitor_name, party_size, visit_at, status, created_at, updated_at)
    VALUES (1, 'BK1', 1, 'x', 1, 0, 'paid', 0, 0)";

async fn texts(file: &Path, query: &'static str) -> BTreeSet<String> {
    sqlx::query_scalar(query).fetch_all(&mut open(file).await).await.unwrap().into_iter().collect()
}

/// Where a statement gives one text.
#[tokio::main(flavor = "current_thread")]
async fn one(file: &Path, query: &'static str) -> String {
    sqlx::query_scalar(query).fetch_one(&mut open(file).await).await.unwrap()
}

const REDEEMED: &str = "SELECT o.order_no FROM booking_order o JOIN redemption r ON r.standing_order_id = o.id
    WHERE o.status = 'consumed' AND r.result = 0";

/// People at a server that runs in another process.
struct People {
    client: reqwest::Client,
    address: String,
    key: String,
    app: App,
}

impl People {
    async fn at(serving: &Serving, folder: &Path, key: String) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut config = Config::demo_in(folder);
        config.demo = false;
        config.database.url = DatabaseUrl::sqlite(&database(folder));
        let app = AppState::open(config, Arc::new(SystemClock::new()), Arc::new(SystemRandom)).await.unwrap();
        let client = reqwest::Client::builder().timeout(Duration::from_secs(60)).build().unwrap();
        Self { client, address: serving.address.clone(), key, app }
    }

    /// The answer's `data`, or nothing where there is no success.
    async fn call(&self, method: &str, path: &str, token: Option<&str>, body: &Value) -> Option<Value> {
        let method: reqwest::Method = method.parse().unwrap();
        let get = method == reqwest::Method::GET;
        let request = self.client.request(method, format!("{}{path}", self.address));
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request.header("x-api-key", &self.key),
        };
        let request = if get { request } else { request.json(body) };
        let answer: Value = request.send().await.ok()?.json().await.ok()?;
        (answer["code"] == 0).then(|| answer["data"].clone())
    }

    async fn put_order(&self, order_no: &str) -> Option<Value> {
        let order = json!({"mobile": "13800000001", "visitorName": "张伟", "partySize": 4, "visitAt": 1, "status": "paid", "taskNo": "T1"});
        self.call("PUT", &format!("/open-api/orders/{order_no}"), None, &order).await
    }

    async fn sign_in(&self, mobile: &str) -> String {
        let account = store::account_by_mobile(&self.app.db, TenantId(1), &Mobile::parse(mobile).unwrap()).await;
        let token = link::make(&self.app, &account.unwrap().unwrap()).await.unwrap();
        let body = json!({"token": token.expose()});
        let signed_in = self.call("POST", "/api/auth/sign-in-link", Some(""), &body).await.unwrap();
        signed_in["token"].as_str().unwrap().to_owned()
    }

    /// Books an order and redeems it; whether the server said that it did.
    async fn book_and_redeem(&self, order_no: &str, visitor: &str, guide: &str) -> Option<()> {
        self.put_order(order_no).await?;
        let path = format!("/app-api/team/booking/booking/verify-code?orderNo={order_no}");
        let code = self.call("GET", &path, Some(visitor), &Value::Null).await?;
        let body = json!({"orderNo": order_no, "verifyCode": code["verifyCode"]});
        self.call("POST", "/app-api/team/guide-task/booking/consume", Some(guide), &body).await.map(drop)
    }
}

async fn until(what: &str, so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !so() {
        assert!(begun.elapsed() < Duration::from_secs(120), "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Some seconds' work for whoever copies the database.
const A_LOT: &str = "CREATE TABLE a_lot AS
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 160) SELECT randomblob(1000000) AS x FROM n";

/// The moment that a backup is of (Unix ms), as it was printed.
fn as_of(told: &str) -> i64 {
    let moment = told.split_once(", as of ").and_then(|(_, rest)| rest.split(": ").next()).unwrap();
    let moment: jiff::civil::DateTime = moment.parse().unwrap();
    moment.in_tz(&Config::default().timezone).unwrap().timestamp().as_millisecond()
}

/// Redemptions run all the while: what was acknowledged before the moment that the backup names is in it, much of that while
/// the backup was running; the server goes on answering meanwhile; and what was acknowledged before it was killed is in the
/// database that it leaves behind.
#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_has_all_that_was_acknowledged_before_its_end_and_kill_9_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let key = succeeded(&run(folder.path(), &["api-key", "add", "--name", "tests"])).trim().to_owned();
    sqlx::query(A_LOT).execute(&mut open(&database(folder.path())).await).await.unwrap();
    let mut serve = command(folder.path());
    serve
        .arg("serve")
        .env("GUIDEPOST_LIMITS__CONSUME__OPERATOR", "100000")
        .env("GUIDEPOST_LIMITS__CONSUME__IP", "100000");
    let mut serving = Serving::start(serve);
    let people = Arc::new(People::at(&serving, folder.path(), key).await);
    let guide = json!({"mobile": "13900000001", "name": "林悦"});
    people.call("POST", "/open-api/guides", None, &guide).await.unwrap();
    let task = json!({"title": "x", "venue": "y", "startsAt": 1, "endsAt": 2, "guideMobiles": ["13900000001"]});
    people.call("PUT", "/open-api/tasks/T1", None, &task).await.unwrap();
    people.put_order("FIRST").await.unwrap();
    let (visitor, guide) = (people.sign_in("13800000001").await, people.sign_in("13900000001").await);

    let acknowledged = Arc::new(Mutex::new(BTreeMap::new()));
    let killed = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let (people, visitor, guide) = (people.clone(), visitor.clone(), guide.clone());
            let (acknowledged, killed) = (acknowledged.clone(), killed.clone());
            tokio::spawn(async move {
                for n in 0.. {
                    let order_no = format!("BK{worker}-{n}");
                    match people.book_and_redeem(&order_no, &visitor, &guide).await {
                        Some(()) => {
                            let now = SystemClock::new().now_ms();
                            acknowledged.lock().unwrap().insert(order_no, now);
                        }
                        // Nothing but its end stops it.
                        None => {
                            assert!(killed.load(Ordering::SeqCst), "{order_no} was refused under load");
                            break;
                        }
                    }
                }
            })
        })
        .collect();
    let so_far = || -> BTreeSet<String> { acknowledged.lock().unwrap().keys().cloned().collect() };
    until("redemptions before the backup", || so_far().len() >= 40).await;

    let backup = folder.path().join("backup.db");
    let before = so_far();
    let (place, file) = (folder.path().to_owned(), backup.clone());
    let taken = tokio::task::spawn_blocking(move || run(&place, &["backup", path_of(&file)])).await.unwrap();
    let told = succeeded(&taken).to_owned();
    let meanwhile = so_far().len();
    until("redemptions after the backup", || so_far().len() >= meanwhile + 20).await;
    killed.store(true, Ordering::SeqCst);
    serving.kill();
    for worker in workers {
        worker.await.unwrap();
    }
    let moments = acknowledged.lock().unwrap().clone();
    let acknowledged = so_far();

    // What the killed server left behind.
    let left = database(folder.path());
    let redeemed = texts(&left, REDEEMED).await;
    let lost: Vec<_> = acknowledged.difference(&redeemed).collect();
    assert!(lost.is_empty(), "acknowledged and lost: {lost:?}");
    assert_eq!(texts(&left, "PRAGMA integrity_check").await, BTreeSet::from(["ok".to_owned()]));

    // The backup, in a fresh place.
    let fresh = tempfile::tempdir().unwrap();
    let restored = tokio::task::spawn_blocking({
        let (fresh, file) = (fresh.path().to_owned(), backup.clone());
        move || run(&fresh, &["restore", path_of(&file)])
    });
    let restored = restored.await.unwrap();
    let next = succeeded(&restored);
    assert!(next.contains("everybody signs in again") && !next.contains("is kept as"), "{next}");
    let file = database(fresh.path());
    assert_eq!(texts(&file, "PRAGMA integrity_check").await, BTreeSet::from(["ok".to_owned()]));
    let redeemed = texts(&file, REDEEMED).await;
    let lost: Vec<_> = before.difference(&redeemed).collect();
    assert!(lost.is_empty(), "acknowledged before the backup began, and not in it: {lost:?}");
    let end = as_of(&told);
    let by_then: BTreeSet<String> =
        moments.iter().filter(|(_, at)| **at < end).map(|(order_no, _)| order_no.clone()).collect();
    let lost: Vec<_> = by_then.difference(&redeemed).collect();
    assert!(lost.is_empty(), "acknowledged before the backup's end, and not in it: {lost:?}");
    assert!(by_then.len() > before.len(), "nothing was redeemed while the backup ran: this says nothing of its end");
    assert!(told.contains(" orders, the last redemption at 20"), "{told}");
    assert!(redeemed.len() < acknowledged.len(), "the backup has what came after it");
    // Every redemption is in it whole: the order's status, and the audit's row.
    let half = "SELECT order_no FROM booking_order o WHERE (status = 'consumed')
        <> EXISTS (SELECT 1 FROM redemption r WHERE r.standing_order_id = o.id)";
    assert!(texts(&file, half).await.is_empty());

    let mut serve = command(fresh.path());
    serve.arg("serve");
    let serving = Serving::start(serve);
    let people = People::at(&serving, fresh.path(), people.key.clone()).await;
    let old = people.call("GET", "/api/auth/me", Some(&guide), &Value::Null).await;
    assert_eq!(old, None, "a session came back with the backup");
    let (visitor, guide) = (people.sign_in("13800000001").await, people.sign_in("13900000001").await);
    people.book_and_redeem("AFTER", &visitor, &guide).await.expect("the restored database redeems");
    let again = people.book_and_redeem(before.first().unwrap(), &visitor, &guide).await;
    assert_eq!(again, None, "what was redeemed before the backup was redeemed again");
}

#[test]
fn a_backup_is_for_its_owner_alone_and_replaces_nothing_unasked() {
    let folder = a_database();
    let target = folder.path().join("backups");
    std::fs::create_dir(&target).unwrap();
    let file = target.join("backup.db");
    succeeded(&run(folder.path(), &["backup", path_of(&file)]));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let whole = std::fs::read(&file).unwrap();

    std::fs::write(&file, "something else").unwrap();
    failed(&run(folder.path(), &["backup", path_of(&file)]), "exists already");
    assert_eq!(std::fs::read(&file).unwrap(), b"something else");
    succeeded(&run(folder.path(), &["backup", "--overwrite", path_of(&file)]));
    assert_eq!(std::fs::read(&file).unwrap().len(), whole.len());
    assert_eq!(one(&file, "SELECT order_no FROM booking_order"), "BK1");

    // The database itself, by whatever name.
    let live = database(folder.path());
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(live.parent().unwrap(), &link).unwrap();
    let wal = PathBuf::from(format!("{}-wal", live.display()));
    for itself in [&live, &link.join("guidepost.db"), &wal] {
        failed(&run(folder.path(), &["backup", "--overwrite", path_of(itself)]), "is the database itself");
    }
    failed(&run(folder.path(), &["backup", path_of(&target)]), "is a folder");
    failed(&run(folder.path(), &["backup", "/nowhere/backup.db"]), "the backup's folder /nowhere");
    assert_eq!(one(&live, "SELECT order_no FROM booking_order"), "BK1");
    assert_eq!(names(&target), BTreeSet::from(["backup.db".to_owned()]), "something was left behind");
    // What is damaged is not passed on as a backup.
    damage(&live);
    failed(&run(folder.path(), &["backup", path_of(&target.join("second.db"))]), "");
    assert_eq!(names(&target), BTreeSet::from(["backup.db".to_owned()]), "something was left behind");
}

/// A database that was restored and not served since has no file for its changes.
#[test]
fn a_database_without_a_file_for_its_changes_is_backed_up_as_well() {
    let folder = a_database();
    sql(&database(folder.path()), "PRAGMA journal_mode = DELETE");
    let file = folder.path().join("backup.db");
    succeeded(&run(folder.path(), &["backup", path_of(&file)]));
    assert_eq!(one(&file, "SELECT order_no FROM booking_order"), "BK1");
    assert_eq!(one(&database(folder.path()), "PRAGMA journal_mode"), "delete", "the backup changed the database");
}

/// A backup that ends with its test.
struct Running(Child);

impl Running {
    fn start(folder: &Path, file: &Path) -> Self {
        Self(command(folder).args(["backup", path_of(file)]).spawn().unwrap())
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_killed_backups_and_restores_leave_is_removed_by_the_next_one_and_what_a_running_one_works_on_is_not() {
    let made = tokio::task::spawn_blocking(a_database).await.unwrap();
    let folder = made.path();
    let place = folder.join("backups");
    std::fs::create_dir(&place).unwrap();
    let parts = |end: &str| names(&place).into_iter().filter(|name| name.ends_with(end)).count();

    // Both wait for whoever writes, and so they are killed in the middle.
    let mut other = open(&database(folder)).await;
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    let mut first = Running::start(folder, &place.join("first.db"));
    until("the first backup works", || parts(".part") == 1).await;
    let mut second = Running::start(folder, &place.join("second.db"));
    until("the second backup works, and left the first one's file", || parts(".part") == 2).await;
    first.kill();
    second.kill();
    assert_eq!(parts(".part"), 2);
    sqlx::query("ROLLBACK").execute(&mut other).await.unwrap();
    other.close().await.unwrap();

    // What others have left, whole or in part, and what is none of ours.
    for left in [".guidepost-aB3dE9.part-journal", ".guidepost-aB3dE9.restoring", ".guidepost-aB3dE9.restoring-wal"] {
        std::fs::write(place.join(left), "names and phone numbers").unwrap();
    }
    let others = [".guidepost-notes.part", ".guidepost-aB3dE9.parts", "guidepost-aB3dE9.part"];
    for name in others {
        std::fs::write(place.join(name), "mine").unwrap();
    }
    let (at, file) = (folder.to_owned(), place.join("third.db"));
    let third = tokio::task::spawn_blocking(move || run(&at, &["backup", path_of(&file)])).await.unwrap();
    succeeded(&third);
    let mut stays: BTreeSet<String> = others.map(str::to_owned).into();
    stays.insert("third.db".to_owned());
    assert_eq!(names(&place), stays);

    // A restore works beside the database.
    let beside = database(folder).parent().unwrap().to_owned();
    std::fs::write(beside.join(".guidepost-aB3dE9.restoring"), "names and phone numbers").unwrap();
    let (at, file) = (folder.to_owned(), place.join("third.db"));
    let restored = tokio::task::spawn_blocking(move || run(&at, &["restore", path_of(&file)])).await.unwrap();
    succeeded(&restored);
    assert!(!names(&beside).iter().any(|name| name.starts_with(".guidepost-")), "{:?}", names(&beside));
}

/// Overwrites pages in the middle of a database.
fn damage(file: &Path) {
    let mut file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    file.seek(SeekFrom::Start(4096)).unwrap();
    file.write_all(&[0x5a; 3 * 4096]).unwrap();
}

#[test]
fn nothing_is_restored_while_a_server_serves_or_another_program_has_the_database_open() {
    let folder = a_database();
    let file = folder.path().join("backup.db");
    succeeded(&run(folder.path(), &["backup", path_of(&file)]));
    let live = database(folder.path());
    sql(&live, "UPDATE booking_order SET visitor_name = 'later'");

    let mut serve = command(folder.path());
    serve.arg("serve");
    let mut serving = Serving::start(serve);
    failed(&run(folder.path(), &["restore", path_of(&file)]), "another guidepost-server serves");
    serving.terminate();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let other = runtime.block_on(async {
        let mut other = open(&live).await;
        let _: String = sqlx::query_scalar("PRAGMA journal_mode = WAL").fetch_one(&mut other).await.unwrap();
        let _: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM tenant").fetch_one(&mut other).await.unwrap();
        other
    });
    failed(&run(folder.path(), &["restore", path_of(&file)]), "another program has");
    assert!(!names(live.parent().unwrap()).iter().any(|name| name.contains("before-restore")), "something was left");
    runtime.block_on(other.close()).unwrap();
    assert_eq!(one(&live, "SELECT visitor_name FROM booking_order"), "later");

    succeeded(&run(folder.path(), &["restore", path_of(&file)]));
    assert_eq!(one(&live, "SELECT visitor_name FROM booking_order"), "x");
}

#[test]
fn the_present_database_is_kept_under_a_dated_name_whole_or_broken() {
    let folder = a_database();
    let file = folder.path().join("backup.db");
    succeeded(&run(folder.path(), &["backup", path_of(&file)]));
    let live = database(folder.path());
    sql(&live, "UPDATE booking_order SET visitor_name = 'later'");
    let output = run(folder.path(), &["restore", path_of(&file)]);
    let kept = kept_as(&output);
    assert!(kept.display().to_string().contains(".before-restore-20"), "{}", kept.display());
    assert_eq!(one(&kept, "SELECT visitor_name FROM booking_order"), "later");
    assert_eq!(one(&live, "SELECT visitor_name FROM booking_order"), "x");
    assert_eq!(live.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    // A broken one.
    std::fs::write(&live, "no database at all").unwrap();
    let output = run(folder.path(), &["restore", path_of(&file)]);
    let second = kept_as(&output);
    assert_ne!(second, kept);
    assert_eq!(std::fs::read(second).unwrap(), b"no database at all");
    assert_eq!(one(&live, "PRAGMA integrity_check"), "ok");
    assert_eq!(one(&live, "SELECT visitor_name FROM booking_order"), "x");
}

#[track_caller]
fn kept_as(output: &Output) -> PathBuf {
    let line = |line: &str| line.strip_prefix("the database that was there is kept as ").map(PathBuf::from);
    succeeded(output).lines().find_map(line).expect("what was there is kept")
}

/// SQLite takes changes that lie beside a database for its own, whichever database they were made in.
#[test]
fn changes_of_a_database_that_is_gone_do_not_get_into_the_restored_one() {
    let folder = a_database();
    let file = folder.path().join("backup.db");
    succeeded(&run(folder.path(), &["backup", path_of(&file)]));
    let live = database(folder.path());
    let wal = PathBuf::from(format!("{}-wal", live.display()));
    let changes = changes_beside(&live, &wal);
    std::fs::remove_file(&live).unwrap();
    std::fs::write(&wal, &changes).unwrap();

    let output = run(folder.path(), &["restore", path_of(&file)]);
    let kept = kept_as(&output);
    assert_eq!(one(&live, "SELECT visitor_name FROM booking_order"), "x", "changes of the old database got in");
    assert_eq!(one(&live, "PRAGMA integrity_check"), "ok");
    assert_eq!(std::fs::read(format!("{}-wal", kept.display())).unwrap(), changes);
}

/// Changes that have not come into the database's file yet.
#[tokio::main(flavor = "current_thread")]
async fn changes_beside(file: &Path, wal: &Path) -> Vec<u8> {
    let mut connection = open(file).await;
    for statement in ["PRAGMA journal_mode = WAL", "UPDATE booking_order SET visitor_name = 'stale'"] {
        sqlx::query(statement).execute(&mut connection).await.unwrap();
    }
    let changes = std::fs::read(wal).unwrap();
    // Waited for: a connection that is dropped closes in a while, and takes away what lies beside the file by then.
    connection.close().await.unwrap();
    changes
}

#[test]
fn what_is_no_whole_backup_of_ours_is_refused_and_the_present_database_untouched() {
    let folder = a_database();
    let place = folder.path().join("backups");
    std::fs::create_dir(&place).unwrap();
    let good = place.join("good.db");
    succeeded(&run(folder.path(), &["backup", path_of(&good)]));
    let bytes = std::fs::read(&good).unwrap();
    let copy = |name: &str| {
        let file = place.join(name);
        std::fs::write(&file, &bytes).unwrap();
        file
    };
    let written = |name: &str, content: &[u8]| {
        let file = place.join(name);
        std::fs::write(&file, content).unwrap();
        file
    };
    let damaged = copy("damaged.db");
    damage(&damaged);
    let newer = copy("newer.db");
    sql(&newer, A_LATER_MIGRATION);
    let half = copy("half.db");
    sql(&half, "UPDATE _sqlx_migrations SET success = 0");
    let alien = copy("alien.db");
    sql(&alien, "UPDATE _sqlx_migrations SET checksum = x'00'");
    let foreign = place.join("foreign.db");
    std::fs::write(&foreign, b"").unwrap();
    sql(&foreign, "CREATE TABLE something (id INTEGER)");
    let unfinished = copy("unfinished.db");
    std::fs::write(place.join("unfinished.db-wal"), "changes").unwrap();

    let live = database(folder.path());
    let (before, beside) = (std::fs::read(&live).unwrap(), names(live.parent().unwrap()));
    for (file, why) in [
        (written("text.db", b"no database at all, however long this text may be"), "is no SQLite database"),
        (written("empty.db", b""), "is no SQLite database"),
        (written("short.db", &bytes[..bytes.len() / 2]), "is damaged"),
        (damaged, "is damaged"),
        (newer, "newer guidepost-server (migration 9999)"),
        (half, "failed half way"),
        (alien, "is no database of Guidepost's"),
        (foreign, "is no database of Guidepost's"),
        (unfinished, "is no finished backup"),
        (place.join("nowhere.db"), "there is no backup"),
        (live.clone(), "is the database itself"),
    ] {
        failed(&run(folder.path(), &["restore", path_of(&file)]), why);
        assert_eq!(std::fs::read(&live).unwrap(), before, "{} changed the database", file.display());
    }
    let mut left = names(live.parent().unwrap());
    left.remove("guidepost.db.serve-lock");
    assert_eq!(left, beside, "something was left behind");
}

#[test]
fn wrong_usage_is_exit_2_and_a_mysql_server_has_tools_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["backup"][..], &["restore"], &["backup", "a", "b"], &["restore", "--overwrite", "a"]] {
        assert_eq!(run(folder.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
    failed(&run(folder.path(), &["backup", "/nowhere/x"]), "there is no database to back up");
    let mysql = |argument: &str| {
        let mut command = command(folder.path());
        command.args([argument, "x"]).env("GUIDEPOST_DATABASE__URL", "mysql://u:hunter2@127.0.0.1:1/d");
        command.env("GUIDEPOST_CODE_STORE__URL", "redis://127.0.0.1:1").output().unwrap()
    };
    failed(&mysql("backup"), "mariadb-dump --single-transaction");
    failed(&mysql("restore"), "mariadb DATABASE < FILE");
    assert!(!text(&mysql("backup").stderr).contains("hunter2"));
}
