//! The example client of docs/, run as a booking system would run it.

use crate::every_store;
use api_tests::{Caller, Stores, Venue};
use guidepost_server::clock::{Clock, SystemClock};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/example-client");

fn client(venue: &Venue) -> Command {
    let mut command = Command::new("python3");
    let (_, key) = venue.machine().credential.clone().unwrap();
    command
        .arg("-B")
        .arg(format!("{FOLDER}/booking_client.py"))
        .env("GUIDEPOST_URL", format!("http://{}", venue.server.address()))
        .env("GUIDEPOST_API_KEY", key);
    command
}

/// Runs it beside the server, which must not wait for it.
async fn run(mut command: Command) -> Output {
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

#[track_caller]
fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

async fn push(venue: &Venue, file: &Path) -> Output {
    let mut command = client(venue);
    command.arg("push").arg(file);
    run(command).await
}

async fn redeem(visitor: &Caller, guide: &Caller, order_no: &str) {
    let code = visitor.verify_code(order_no).await.ok();
    guide.redeem(order_no, code["verifyCode"].as_str().unwrap()).await.ok();
}

#[apply(every_store)]
async fn the_example_client_sends_bookings_again_and_again(stores: Stores) {
    let venue = Venue::open(stores).await;
    let bookings = Path::new(FOLDER).join("bookings.json");
    for _ in 0..2 {
        let sent = push(&venue, &bookings).await;
        assert_eq!(lines(&sent), ["BK202608010001: paid", "BK202608010002: pending_payment"]);
    }
    let guide = venue.guide().await;
    redeem(&venue.visitor().await, &guide, "BK202608010001").await;
    let sent = push(&venue, &bookings).await;
    assert_eq!(lines(&sent), ["BK202608010001: stays consumed", "BK202608010002: pending_payment"]);

    // A fault in one order is named, and does not hold up the others.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bookings.json");
    let order = |party: i64| json!({"mobile": "13800000001", "visitorName": "x", "partySize": party, "visitAt": 1, "status": "paid"});
    std::fs::write(&file, json!({"orders": {"BAD": order(-1), "GOOD": order(1)}}).to_string()).unwrap();
    let sent = push(&venue, &file).await;
    assert_eq!(sent.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&sent.stdout), "GOOD: paid\n");
    assert!(String::from_utf8_lossy(&sent.stderr).starts_with("BAD: 1400 "));
    let mut wrong_key = client(&venue);
    wrong_key.arg("push").arg(&file).env("GUIDEPOST_API_KEY", "gp_wrong");
    let sent = run(wrong_key).await;
    assert!(!sent.status.success() && String::from_utf8_lossy(&sent.stderr).contains("1401"));
}

#[apply(every_store)]
async fn the_example_client_reads_each_redemption_once_from_where_it_ended(stores: Stores) {
    let venue = Venue::open(stores).await;
    let bookings = Path::new(FOLDER).join("bookings.json");
    lines(&push(&venue, &bookings).await);
    let (visitor, guide) = (venue.visitor().await, venue.guide().await);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("cursor.json");
    let follow = async || {
        let mut command = client(&venue);
        command.args(["follow", "--once", "--state"]).arg(&state);
        lines(&run(command).await)
    };
    assert!(follow().await.is_empty());
    redeem(&visitor, &guide, "BK202608010001").await;
    // Rows show once they are ten seconds old.
    venue.advance(Duration::from_secs(11)).await;
    let told = follow().await;
    assert!(told.len() == 1 && told[0].ends_with("BK202608010001: paid -> consumed"), "{told:?}");
    assert!(follow().await.is_empty(), "the cursor was not kept");
    let from = async |name: &str, content: Option<&str>| {
        let file = folder.path().join(name);
        if let Some(content) = content {
            std::fs::write(&file, content).unwrap();
        }
        let mut command = client(&venue);
        command.args(["follow", "--once", "--state"]).arg(&file);
        run(command).await
    };
    for (name, content) in [("none.json", None), ("empty.json", Some("")), ("blank.json", Some("\n"))] {
        assert_eq!(lines(&from(name, content).await), told, "without a cursor it begins at the beginning");
    }
    for content in ["{\"after\": ", "[]", "{}"] {
        let refused = from("broken.json", Some(content)).await;
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1));
        assert!(error.contains("holds no cursor") && !error.contains("Traceback"), "{error}");
    }
}

/// The client's receiver; it ends with its test.
struct Receiver(Child, String);

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// By another program than the client's and the server's.
fn hmac(secret: &str, text: &str) -> String {
    let mut openssl = Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", secret, "-r"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    openssl.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = openssl.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap().to_owned()
}

#[tokio::test]
async fn the_example_client_takes_signed_web_hooks_alone_and_each_once() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    const SECRET: &str = "a secret of 24 characters";
    let mut child = Command::new("python3")
        .arg("-B")
        .arg(format!("{FOLDER}/booking_client.py"))
        .args(["listen", "--port", "0"])
        .env("GUIDEPOST_HOOK_SECRET", SECRET)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = told.next().unwrap().unwrap().strip_prefix("listening on ").unwrap().to_owned();
    let mut receiver = Receiver(child, address);
    let sender = reqwest::Client::new();
    let now = SystemClock::new().now_ms();
    let send = async |stamp: i64, body: &str, signature: Option<String>| {
        let request = sender.post(&receiver.1).header("x-guidepost-timestamp", stamp).body(body.to_owned());
        let request = match signature {
            Some(signature) => request.header("x-guidepost-signature", signature),
            None => request,
        };
        request.send().await.unwrap().status().as_u16()
    };
    let body = json!({"id": "1", "event": "order.consumed", "orderNo": "BK1"}).to_string();
    let signed =
        |stamp: i64, body: &str, secret: &str| Some(format!("v1={}", hmac(secret, &format!("{stamp}.{body}"))));
    let right = signed(now, &body, SECRET);
    assert_eq!(send(now, &body.replace("BK1", "BK2"), right.clone()).await, 401);
    assert_eq!(send(now + 1, &body, right.clone()).await, 401);
    assert_eq!(send(now, &body, signed(now, &body, "another secret, as long")).await, 401);
    assert_eq!(send(now, &body, None).await, 401);
    let old = now - 6 * 60 * 1000;
    assert_eq!(send(old, &body, signed(old, &body, SECRET)).await, 401);
    for _ in 0..2 {
        assert_eq!(send(now, &body, right.clone()).await, 204);
    }
    let second = body.replace("\"1\"", "\"2\"").replace("BK1", "BK3");
    assert_eq!(send(now, &second, signed(now, &second, SECRET)).await, 204);
    receiver.0.kill().unwrap();
    let told: Vec<String> = told.map(Result::unwrap).collect();
    assert_eq!(told, ["order.consumed BK1", "order.consumed BK3"]);
}
