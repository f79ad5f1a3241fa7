//! SMS codes while a part fails: the code store is away, a server ends in the middle of a send.

use api_tests::stores::start_redis;
use api_tests::{Gateway, Stores, Venue};
use futures::future::join_all;
use guidepost_server::config::DatabaseUrl;
use serde_json::json;
use std::net::TcpListener;
use std::time::{Duration, Instant};

const MOBILE: &str = "13800000001";
const E164: &str = "+8613800000001";

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_nothing_is_sent_and_nobody_signs_in_and_it_comes_back_by_itself() {
    let redis = start_redis(&[]);
    let (venue, gateway) = Venue::open_with_gateway(Stores::SqliteRedis, |config| {
        config.code_store.url = DatabaseUrl::new(format!("redis://127.0.0.1:{}", redis.port));
        config.code_store.timeout_ms = 800;
    })
    .await;
    let nobody = venue.nobody();
    nobody.send_sms(MOBILE, "login").await.ok();
    let code = gateway.code_of(E164);
    redis.kill();
    let answer = nobody.send_sms("13800000002", "login").await;
    answer.refused(503, 2004);
    assert_eq!(answer.json()["msg"], "验证码服务暂不可用，请稍后重试");
    nobody.sms_login(MOBILE, &code).await.refused(503, 2004);
    // A limit that cannot be looked at lets nobody pass.
    nobody.post("/api/auth/login", &json!({"username": "boss", "password": "x"})).await.refused(503, 2004);
    assert_eq!(gateway.messages().len(), 1);
    redis.start_again();
    // Empty: a code that is lost means that another is asked for.
    let started = Instant::now();
    while nobody.sms_login(MOBILE, &code).await.code() != 4005 {
        assert!(started.elapsed() < Duration::from_secs(60), "the code store did not come back");
    }
    nobody.send_sms(MOBILE, "login").await.ok();
    nobody.sms_login(MOBILE, &gateway.code_of(E164)).await.ok();
}

/// A Redis that hangs takes a send's step once it goes on, when nobody waits for it any more: it is taken back.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_store_that_hung_has_written_late_is_taken_back() {
    let redis = start_redis(&[]);
    let (venue, gateway) = Venue::open_with_gateway(Stores::SqliteRedis, |config| {
        config.code_store.url = DatabaseUrl::new(format!("redis://127.0.0.1:{}", redis.port));
        config.code_store.timeout_ms = 800;
        config.limits.sms.ip = 1;
    })
    .await;
    venue.nobody().send_sms("12345", "login").await.refused(400, 4001);
    redis.signal("STOP");
    for _ in 0..3 {
        venue.nobody().send_sms(MOBILE, "login").await.refused(503, 2004);
    }
    redis.signal("CONT");
    let started = Instant::now();
    while venue.nobody().send_sms(MOBILE, "login").await.code() != 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "the number or the address stays closed");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(gateway.messages().len(), 1);
}

/// A server that is killed while a channel does not answer leaves every key with its life, and a row that says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_ends_in_the_middle_of_sends_leaves_no_key_without_a_life() {
    let venue = Venue::open(Stores::MariadbRedis).await;
    // It takes connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let channels = json!([{"name": "silent", "kind": "http", "url": format!("http://127.0.0.1:{}/", silent.local_addr().unwrap().port())}]);
    let limits = json!({"sms": {"ip": 1000, "captcha_after": 1000}});
    let server = venue.server_process(&[("SMS__CHANNELS", channels.to_string()), ("LIMITS", limits.to_string())]);
    let nobody = venue.at(server.base.clone());
    let sends = tokio::spawn(async move {
        let each = (0..40).map(|n| {
            let nobody = nobody.clone();
            async move {
                let body = json!({"mobile": format!("137{n:08}"), "scene": "login"});
                let _ = nobody.request(reqwest::Method::POST, "/api/sms/send").json(&body).send().await;
            }
        });
        join_all(each).await;
    });
    let started = Instant::now();
    let sending = "SELECT COUNT(*) FROM sms_send WHERE outcome = 'sending'";
    while venue.count(sending).await < 5 {
        assert!(started.elapsed() < Duration::from_secs(60), "no send has begun");
    }
    drop(server);
    sends.await.unwrap();
    assert!(venue.count(sending).await >= 5, "it was not killed in the middle");
    let mut redis = venue.redis().await;
    let pattern = format!("*{}*", venue.prefix());
    let keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut redis).await.unwrap();
    assert!(keys.len() > 25, "{keys:?}");
    for key in keys {
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut redis).await.unwrap();
        assert!(left > 0, "{key} has no life");
    }
}

/// The database is written by somebody else for too long: nothing is sent, and the number may ask again at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_send_that_cannot_be_written_down_does_not_happen() {
    let gateway = Gateway::open().await;
    let venue = Venue::open_with(Stores::SqliteRedis, |config| gateway.set(config)).await;
    let blocker = venue.block("BK1").await;
    venue.nobody().send_sms(MOBILE, "login").await.refused(503, 1503);
    blocker.rollback().await.unwrap();
    assert_eq!(gateway.messages().len(), 0);
    venue.nobody().send_sms(MOBILE, "login").await.ok();
}
