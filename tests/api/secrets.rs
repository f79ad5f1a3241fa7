//! No secret is in any log, at the most talkative level, of any crate of the process; nor in the database's file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use api_tests::receiver::{Receiver, SECRET};
use api_tests::stores::shared_mariadb;
use api_tests::{Gateway, Order, Stores, Venue};
use guidepost_server::config::SceneConfig;
use serde_json::json;
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::MakeWriter;
use wire::Secret;

#[derive(Debug, Clone, Default)]
struct Captured(Arc<Mutex<Vec<u8>>>);

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Captured {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Numbers that cannot be mistaken for times, ids or ports.
const CODES: [u32; 3] = [918_273, 645_546, 837_738];

/// The same, for SMS codes; the second is drawn for a send that the cool-down refuses.
const SMS_CODES: [u32; 6] = [739_164, 264_819, 582_937, 691_473, 847_296, 375_928];

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_logged_or_written() {
    let captured = Captured::default();
    tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(captured.clone()).init();

    let mut secrets: Vec<String> = CODES.iter().chain(&SMS_CODES).map(u32::to_string).collect();
    secrets.extend([SECRET, "u9Xk27Qm"].map(str::to_owned));
    secrets.extend(["13800000001", "13900000001", "wr0ng-passw0rd"].map(str::to_owned));
    secrets.extend(["13600000001", "13700000001", "n3w-passw0rd"].map(str::to_owned));
    let (mut written, mut counted) = (String::new(), String::new());
    for stores in [Stores::SqliteMemory, Stores::SqliteRedis, Stores::MariadbRedis] {
        let receiver = Receiver::open().await;
        let mut hook = receiver.config("booking");
        hook.url = Secret::new(format!("{}?key=u9Xk27Qm", hook.url.expose()));
        let gateway = Gateway::open().await;
        let venue = Venue::open_with(stores, |config| {
            config.web_hooks = vec![hook];
            gateway.set(config);
            config.sms.scenes.insert("shop".to_owned(), SceneConfig::default());
        })
        .await;
        secrets.extend(a_day(&venue).await);
        by_sms(&venue, &gateway).await;
        counted += &venue.nobody().get("/metrics").await.text;
        until_told(&receiver).await;
        written += &database_of(&venue, stores);
    }

    let log = String::from_utf8_lossy(&captured.0.lock().unwrap()).into_owned();
    assert!(
        log.contains("TRACE")
            && log.contains("redeemed")
            && log.contains("refused")
            && log.contains("a wrong SMS code")
            && log.contains("a right SMS code")
            && log.contains("no SMS code is alive"),
        "the log was not captured"
    );
    for secret in &secrets {
        if let Some(at) = found(&log, secret) {
            let line = log[..at].lines().count();
            panic!(
                "{}… stands in the log, line {line}: {}",
                &secret[..3],
                log.lines().nth(line - 1).unwrap_or_default()
            );
        }
    }

    assert!(counted.contains("guidepost_sms_tries_total{scene=\"shop\""), "the counters were not read");
    let more = ["BK1", "NOWHERE", "0000001", "127.0.0.1"].map(str::to_owned);
    for secret in secrets.iter().chain(&more) {
        assert!(found(&counted, secret).is_none(), "{}… stands in /metrics", &secret[..3]);
    }

    assert!(written.contains("13800000001"), "the databases were not read");
    for secret in secrets.iter().filter(|s| !s.starts_with("13")) {
        assert!(found(&written, secret).is_none(), "{}… stands in the database", &secret[..3]);
    }
}

/// Where a secret stands in a text. A part of a longer number is no code: a log is full of parts of a second.
fn found(text: &str, secret: &str) -> Option<usize> {
    let is_code = secret.len() == 6 && secret.bytes().all(|b| b.is_ascii_digit());
    text.match_indices(secret).map(|(at, _)| at).find(|&at| {
        let before = text[..at].bytes().next_back();
        let after = text[at + secret.len()..].bytes().next();
        !is_code
            || !(before.is_some_and(|b| b.is_ascii_digit() || b == b'.') || after.is_some_and(|b| b.is_ascii_digit()))
    })
}

#[test]
fn a_code_is_told_from_a_part_of_a_longer_number() {
    for (text, at) in [
        ("code=\"264819\"", Some(6)),
        ("\\n264819\\r", Some(2)),
        ("TBV:BK1:264819", Some(8)),
        ("264819", Some(0)),
        ("elapsed_secs=0.000264819 code=264819", Some(30)),
        ("0.000264819", None),
        ("21:34:05.264819Z", None),
        ("1264819", None),
        ("2648190", None),
    ] {
        assert_eq!(found(text, "264819"), at, "{text}");
    }
    assert_eq!(found("+8613800000001", "13800000001"), Some(3));
}

/// What happens at a venue, with every secret that there is; gives the tokens.
async fn a_day(venue: &Venue) -> [String; 5] {
    venue.random.next(CODES);
    for order_no in ["BK1", "BK2", "BK3"] {
        venue.put_order(order_no, &Order::paid()).await;
    }
    let (visitor, guide, admin) = (venue.visitor().await, venue.guide().await, venue.admin().await);
    let link = venue.link_token("13800000001").await;
    for order_no in ["BK1", "BK2", "BK3"] {
        visitor.verify_code(order_no).await.ok();
    }
    guide.redeem("BK2", "918273").await.refused(422, 2003);
    guide.redeem_as("BK1", "918273", "r-1").await.ok();
    guide.redeem_as("BK1", "918273", "r-1").await.ok();
    guide.redeem("BK1", "918273").await.refused(409, 2002);
    admin.redeem_as_admin("BK3", "837738").await.ok();
    guide.redeem("NOWHERE", "645546").await.refused(404, 2001);
    let by_code = json!({"verifyCode": "918273"});
    guide.post("/app-api/team/guide-task/booking/consume-by-code", &by_code).await.refused(422, 2003);
    guide.redeem("918273", "645546 7").await.refused(400, 1400);
    let body = json!({"orderNo": "BK1", "verifyCode": 645_546});
    guide.post("/app-api/team/guide-task/booking/consume", &body).await.refused(400, 1400);
    let blocker = venue.block("BK2").await;
    guide.redeem_as("BK2", "645546", "r-2").await.refused(503, 1503);
    blocker.rollback().await.unwrap();
    venue.put_order("BK2", &Order::paid().with("status", "refunding")).await;
    venue.nobody().post("/api/auth/login", &json!({"username": "boss", "password": "wr0ng-passw0rd"})).await;
    venue.nobody().post("/api/auth/sign-in-link", &json!({"token": link})).await.ok();
    let token = |caller: &api_tests::Caller| {
        let (_, value) = caller.credential.clone().unwrap();
        value.trim_start_matches("Bearer ").to_owned()
    };
    [token(&visitor), token(&guide), token(&admin), token(venue.machine()), link]
}

/// What happens by SMS, each outcome of it.
async fn by_sms(venue: &Venue, gateway: &Gateway) {
    let nobody = venue.nobody();
    venue.random.next(SMS_CODES);
    nobody.send_sms("13700000001", "login").await.ok();
    nobody.send_sms("13700000001", "login").await.refused(429, 4002);
    nobody.sms_login("13700000001", "582937").await.refused(422, 4004);
    nobody.sms_login("13700000001", "739164 1").await.refused(400, 1400);
    nobody.sms_login("13700000001", "739164").await.ok();
    nobody.sms_login("13700000001", "739164").await.refused(422, 4005);
    gateway.answer([401]);
    nobody.send_sms("13600000001", "register").await.refused(502, 4008);
    gateway.answer([500]);
    nobody.send_sms("13600000001", "reset_password").await.ok();
    let reset = json!({"mobile": "13600000001", "code": "691473", "newPassword": "n3w-passw0rd"});
    nobody.post("/api/auth/reset-password", &reset).await.refused(403, 1403);
    let send = json!({"mobile": "13600000001", "scene": "shop"});
    venue.machine().post("/open-api/sms/send", &send).await.ok();
    let verify = json!({"mobile": "13600000001", "scene": "shop", "code": "847296"});
    venue.machine().post("/open-api/sms/verify", &verify).await.ok();
    let guide = venue.guide().await;
    guide.post("/api/sms/send", &json!({"scene": "confirm"})).await.ok();
    let change = json!({"mobile": "13600000001", "code": "739164", "oldCode": "375928"});
    guide.post("/api/auth/change-mobile", &change).await.refused(422, 4005);
    nobody.post("/api/captcha", &json!({"mobile": "13600000001", "scene": "login"})).await.ok();
    guide.post("/api/auth/password", &json!({"newPassword": "n3w-passw0rd"})).await.ok();
    nobody.post("/api/auth/login", &json!({"username": "13900000001", "password": "n3w-passw0rd"})).await.ok();
}

/// Two orders are redeemed in a day.
async fn until_told(receiver: &Receiver) {
    let started = std::time::Instant::now();
    while receiver.received().len() < 2 {
        assert!(started.elapsed() < std::time::Duration::from_secs(60), "the web hook was not told");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

/// All that a database holds, as text.
fn database_of(venue: &Venue, stores: Stores) -> String {
    if stores == Stores::MariadbRedis {
        let dump = std::process::Command::new("mariadb-dump")
            .args(["--no-defaults", "-h127.0.0.1", "-uroot", &format!("-P{}", shared_mariadb())])
            .arg(venue.prefix().trim_end_matches(':'))
            .output()
            .unwrap();
        assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
        return String::from_utf8_lossy(&dump.stdout).into_owned();
    }
    let file = venue.database_file();
    let mut bytes = std::fs::read(&file).unwrap();
    bytes.extend(std::fs::read(file.with_extension("db-wal")).unwrap_or_default());
    String::from_utf8_lossy(&bytes).into_owned()
}
