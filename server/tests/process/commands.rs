//! The real binary: what it prints, how it ends, what it refuses.

use crate::binary::{Serving, command, run, text};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::process::Stdio;

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
