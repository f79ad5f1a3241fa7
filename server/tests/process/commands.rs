//! The real binary: what it prints, how it ends, what it refuses.

use crate::binary::{Serving, command, run, text};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::{Command, Stdio};

#[test]
fn wrong_usage_is_exit_2_and_a_wrong_setting_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["serve", "--nonsense"][..], &["admin", "add"], &[], &["api-key", "add"]] {
        assert_eq!(run(folder.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
    let output = command(folder.path()).arg("serve").env("GUIDEPOST_VERIFY_CODE__TTL", "0").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("`verify_code.ttl`"), "{}", text(&output.stderr));
    let output = run(folder.path(), &["serve", "--config", "/nowhere.toml"]);
    assert!(text(&output.stderr).contains("/nowhere.toml"), "{}", text(&output.stderr));
}

#[test]
fn what_shows_sms_codes_is_refused_outside_a_demo() {
    let folder = tempfile::tempdir().unwrap();
    let log = r#"[{"name": "log", "kind": "log"}]"#;
    for (name, value, key) in [
        ("GUIDEPOST_SMS__LOG_CODES", "true", "`sms.log_codes`"),
        ("GUIDEPOST_SMS__CHANNELS", log, "`sms.channels[0].kind`"),
    ] {
        let output = command(folder.path()).arg("serve").env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(key), "{}", text(&output.stderr));
        let mut demo = Command::new(env!("CARGO_BIN_EXE_guidepost-server"));
        demo.args(["serve", "--demo"]).env("GUIDEPOST_LISTEN", "127.0.0.1:0").env(name, value);
        demo.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        Serving::start(demo);
    }
}

#[tokio::test]
async fn a_venue_is_set_up_from_the_command_line_and_sigterm_ends_it() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let folder = tempfile::tempdir().unwrap();
    let mut add = command(folder.path());
    add.args(["admin", "add", "--username", "boss", "--mobile", "13800138000", "--password-stdin"]);
    let mut adding = add.stdin(Stdio::piped()).spawn().unwrap();
    adding.stdin.take().unwrap().write_all(b"correct horse\n").unwrap();
    assert!(adding.wait().unwrap().success());
    let output = run(folder.path(), &["admin", "add", "--username", "boss", "--password-stdin"]);
    assert!(!output.status.success(), "an empty password was taken");
    let key = run(folder.path(), &["api-key", "add", "--name", "booking"]);
    let key = text(&key.stdout).trim().to_owned();
    assert!(key.starts_with("gp_") && !key.contains(char::is_whitespace), "the key stands alone");

    let mut serve = command(folder.path());
    serve.arg("serve");
    let mut serving = Serving::start(serve);
    let client = reqwest::Client::new();
    let post = async |path: &str, body: Value| {
        let request = client.post(format!("{}{path}", serving.address)).header("x-api-key", &key).json(&body);
        request.send().await.unwrap().json::<Value>().await.unwrap()
    };
    let signed_in = post("/api/auth/login", json!({"username": "boss", "password": "correct horse"})).await;
    assert_eq!(signed_in["data"]["roles"], json!(["admin"]));
    assert_eq!(post("/open-api/guides", json!({"mobile": "13900000001", "name": "林悦"})).await["code"], 0);
    for (path, want) in [("/healthz", "ok"), ("/readyz", "ready\n")] {
        assert_eq!(client.get(format!("{}{path}", serving.address)).send().await.unwrap().text().await.unwrap(), want);
    }

    // Who has forgotten their password gets another by the command line, and whoever is signed in with the old one is out.
    let reset = run(folder.path(), &["admin", "reset-password", "--username", "boss"]);
    let password = text(&reset.stdout).trim().to_owned();
    let old = signed_in["data"]["token"].as_str().unwrap();
    let me = client.get(format!("{}/api/auth/me", serving.address)).bearer_auth(old).send().await.unwrap();
    assert_eq!(me.status(), 401);
    let again = async |password: &str| post("/api/auth/login", json!({"username": "boss", "password": password})).await;
    assert_eq!(again("correct horse").await["code"], 1401);
    assert_eq!(again(&password).await["data"]["roles"], json!(["admin"]));
    let nobody = run(folder.path(), &["admin", "reset-password", "--username", "nobody"]);
    assert!(!nobody.status.success() && text(&nobody.stderr).contains("no admin has that user name"));

    // Other commands may run meanwhile; a second server on the same file may not.
    assert!(run(folder.path(), &["api-key", "add", "--name", "second"]).status.success());
    let second = run(folder.path(), &["serve"]);
    assert!(text(&second.stderr).contains("another guidepost-server serves"), "{}", text(&second.stderr));

    assert_eq!(serving.terminate().code(), Some(0));
    let mut serve = command(folder.path());
    serve.arg("serve");
    Serving::start(serve);
}

#[test]
fn the_demo_says_where_to_look_and_wants_loopback_and_an_empty_database() {
    let folder = tempfile::tempdir().unwrap();
    let mut demo = command(folder.path());
    demo.args(["serve", "--demo"]);
    let mut serving = Serving::start(demo);
    serving.terminate();
    let mut rest = String::new();
    serving.lines.read_to_string(&mut rest).unwrap();
    let start = format!("{}/?order=BK", serving.address);
    assert!(rest.lines().any(|l| l.starts_with("visitor page of ") && l.contains(&start) && l.contains("#sign-in=")));
    assert!(rest.contains("sign-in link of guide") && rest.contains("admin: user name admin, password "));

    let again = run(folder.path(), &["serve", "--demo"]);
    assert!(text(&again.stderr).contains("empty database"), "{}", text(&again.stderr));
    let open = command(folder.path()).args(["serve", "--demo"]).env("GUIDEPOST_LISTEN", "0.0.0.0:0").output().unwrap();
    assert!(text(&open.stderr).contains("`listen`"), "{}", text(&open.stderr));
}

const HEADER: &str = "orderNo,mobile,visitorName,partySize,visitAt,status\n";

#[test]
fn orders_are_imported_from_the_command_line_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.csv");
    let path = file.to_str().unwrap();
    let good = format!("{HEADER}BK1,13800000001,张三,12,2026-08-01 09:30,paid\n");
    std::fs::write(&file, format!("{good}BK2,1380000,李四,12,2026-08-01 09:30,paid\n")).unwrap();
    for arguments in [&["import", "orders", path][..], &["import", "orders", path, "--dry-run"]] {
        let output = run(folder.path(), arguments);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
        assert!(text(&output.stderr).contains("line 3, mobile: "), "{}", text(&output.stderr));
        assert!(!text(&output.stderr).contains("1380000"), "a fault quotes a number: {}", text(&output.stderr));
    }
    let chinese =
        command(folder.path()).args(["import", "orders", path]).env("LC_ALL", "zh_CN.UTF-8").output().unwrap();
    assert!(text(&chinese.stderr).contains("第 3 行, mobile: 手机号格式不正确"), "{}", text(&chinese.stderr));

    std::fs::write(&file, good).unwrap();
    let output = run(folder.path(), &["import", "orders", path, "--dry-run"]);
    assert!(output.status.success() && text(&output.stdout).contains("a dry run: nothing was changed"));
    let new = "orders: 1 (1 new, 0 changed, 0 unchanged); tasks made as drafts: 0\n";
    let same = "orders: 1 (0 new, 0 changed, 1 unchanged); tasks made as drafts: 0\n";
    for want in [new, same] {
        let output = run(folder.path(), &["import", "orders", path]);
        assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), want), "{}", text(&output.stderr));
    }
    for arguments in [&["import"][..], &["import", "orders"], &["import", "orders", path, "--nonsense"]] {
        assert_eq!(run(folder.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
    let output = run(folder.path(), &["import", "orders", "/nowhere.csv"]);
    assert!(output.status.code() == Some(1) && text(&output.stderr).contains("/nowhere.csv cannot be opened"));
    let output = run(folder.path(), &["import", "orders", path, "--tenant", "9"]);
    assert!(output.status.code() == Some(2) && text(&output.stderr).contains("there is no tenant 9"));
}

#[test]
fn an_import_that_cannot_reach_the_codes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("orders.csv");
    std::fs::write(&file, format!("{HEADER}BK1,13800000001,张三,12,2026-08-01 09:30,paid\n")).unwrap();
    let path = file.to_str().unwrap();
    let mut serve = command(folder.path());
    serve.arg("serve");
    let serving = Serving::start(serve);
    let output = run(folder.path(), &["import", "orders", path]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("import the file over HTTP"), "{}", text(&output.stderr));
    // Only to say what it would do, it deletes no code.
    assert!(run(folder.path(), &["import", "orders", path, "--dry-run"]).status.success());
    drop(serving);
    // A port where nobody listens.
    let away = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut import = command(folder.path());
    import.args(["import", "orders", path]).env("GUIDEPOST_CODE_STORE__URL", format!("redis://{away}"));
    let output = import.output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(1), ""));
    assert!(text(&output.stderr).contains("the code store is away"), "{}", text(&output.stderr));
    let output = run(folder.path(), &["import", "orders", path]);
    assert!(text(&output.stdout).starts_with("orders: 1 (1 new"), "nothing had been imported before");
}
