//! `POST /api/sms/send`: the gates, each with its answer and its edge.

use crate::every_code_store;
use api_tests::{Stores, Venue};
use futures::future::join_all;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::{Value, json};
use std::time::Duration;

const MOBILE: &str = "13800000001";
const E164: &str = "+8613800000001";

#[apply(every_code_store)]
async fn a_code_keeps_its_leading_zero_and_comes_with_its_life(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    venue.random.next([48_392]);
    let sent = venue.nobody().send_sms(" １３８ 0000 0001\u{200b}", "login").await.ok();
    assert_eq!(sent, json!({"expireIn": 300, "retryAfter": 60}));
    let message = &gateway.messages()[0];
    assert_eq!(message["params"], json!({"code": "048392", "ttl": "5"}));
    assert_eq!(
        (&message["mobile"], &message["scene"], &message["templateId"]),
        (&json!(E164), &json!("login"), &json!("login"))
    );
    venue.nobody().sms_login(MOBILE, "０48 392").await.ok();
}

#[apply(every_code_store)]
async fn the_answer_is_the_same_whether_the_number_is_known_or_not(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let known = venue.nobody().send_sms("13900000001", "login").await;
    let unknown = venue.nobody().send_sms("13900000002", "login").await;
    assert_eq!((known.status, known.text), (unknown.status, unknown.text));
    let known = venue.nobody().send_sms("13900000001", "reset_password").await;
    let unknown = venue.nobody().send_sms("13900000002", "reset_password").await;
    assert_eq!((known.status, known.text), (unknown.status, unknown.text));
}

#[apply(every_code_store)]
async fn a_number_of_another_form_or_prefix_gets_nothing(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| {
        config.sms.allowed_prefixes = vec!["+86".to_owned(), "+852".to_owned()]
    })
    .await;
    let nobody = venue.nobody();
    for mobile in ["", "1380000000", "12800000001", "+44 7700 900123", "+8612345678901", "x"] {
        nobody.send_sms(mobile, "login").await.refused(400, 4001);
    }
    nobody.send_sms("+85251234567", "login").await.ok();
    // The number stands before the scene.
    nobody.send_sms("x", "nonsense").await.refused(400, 4001);
    for scene in ["nonsense", "", "Login", "login ", "login:{x}"] {
        nobody.send_sms(MOBILE, scene).await.refused(400, 4010);
    }
    assert_eq!(nobody.post("/api/sms/send", &json!({"scene": "login"})).await.refused(400, 1400)["field"], "mobile");
    let body = json!({"mobile": MOBILE, "scene": "login", "via": "pigeon"});
    assert_eq!(nobody.post("/api/sms/send", &body).await.refused(400, 1400)["field"], "via");
    let body = json!({"mobile": MOBILE, "scene": "login", "via": "voice"});
    assert_eq!(nobody.post("/api/sms/send", &body).await.refused(400, 1400)["field"], "via");
    for scene in ["confirm", "change_mobile"] {
        nobody.send_sms(MOBILE, scene).await.refused(401, 1401);
    }
    assert_eq!(gateway.messages().len(), 1);
}

#[apply(every_code_store)]
async fn what_the_cool_down_refuses_counts_nowhere(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| {
        config.sms.scenes.entry("login".to_owned()).or_default().daily = 2;
        config.limits.sms.ip = 3;
        config.limits.sms.captcha_after = 3;
        config.sms.daily_cap = 2;
    })
    .await;
    let nobody = venue.nobody();
    nobody.send_sms(MOBILE, "login").await.ok();
    for _ in 0..20 {
        let answer = nobody.send_sms(MOBILE, "login").await;
        assert_eq!(answer.refused(429, 4002)["retryAfter"], 60);
        assert_eq!(answer.headers["retry-after"], "60");
        assert_eq!(answer.json()["msg"], "发送过于频繁请稍后再试");
    }
    venue.advance(Duration::from_secs(42)).await;
    assert_eq!(nobody.send_sms(MOBILE, "login").await.refused(429, 4002)["retryAfter"], 18);
    venue.advance(Duration::from_secs(18)).await;
    // The day's second one, though twenty were refused; the same for the address and the tenant.
    nobody.send_sms(MOBILE, "login").await.ok();
    assert_eq!(gateway.messages().len(), 2);
    venue.advance(Duration::from_secs(60)).await;
    // The tenant's gate stands before the number's.
    nobody.send_sms("13800000002", "login").await.refused(429, 1429);
    // What it refuses takes no place of the address's: otherwise the address would be full by now, 4009.
    nobody.send_sms("13800000002", "login").await.refused(429, 1429);
}

#[apply(every_code_store)]
async fn an_hour_has_five_and_a_day_ten(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let nobody = venue.nobody();
    for _ in 0..5 {
        nobody.send_sms(MOBILE, "login").await.ok();
        venue.advance(Duration::from_secs(60)).await;
    }
    // Five minutes after the first one: it leaves the hour in fifty-five.
    assert_eq!(nobody.send_sms(MOBILE, "login").await.refused(429, 4002)["retryAfter"], 3300);
    // Another scene has limits of its own.
    nobody.send_sms(MOBILE, "register").await.ok();
    venue.advance(Duration::from_secs(3300)).await;
    nobody.send_sms(MOBILE, "login").await.ok();
    venue.advance(Duration::from_secs(3600)).await;
    for _ in 0..4 {
        nobody.send_sms(MOBILE, "login").await.ok();
        venue.advance(Duration::from_secs(60)).await;
    }
    let answer = nobody.send_sms(MOBILE, "login").await;
    answer.refused(429, 4003);
    assert!(answer.json()["msg"].as_str().unwrap().starts_with("今日发送次数已达上限"), "{}", answer.text);
    // The count of the day goes by the venue's date: 11:04 now, midnight is 13 hours away.
    venue.advance(Duration::from_secs(13 * 3600)).await;
    nobody.send_sms(MOBILE, "login").await.ok();
    assert_eq!(gateway.messages().len(), 12);
}

/// Who resets a password does it once.
#[apply(every_code_store)]
async fn a_reset_has_three_an_hour_and_five_a_day(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let nobody = venue.nobody();
    for _ in 0..3 {
        nobody.send_sms(MOBILE, "reset_password").await.ok();
        venue.advance(Duration::from_secs(60)).await;
    }
    nobody.send_sms(MOBILE, "reset_password").await.refused(429, 4002);
    venue.advance(Duration::from_secs(3600)).await;
    for _ in 0..2 {
        nobody.send_sms(MOBILE, "reset_password").await.ok();
        venue.advance(Duration::from_secs(60)).await;
    }
    nobody.send_sms(MOBILE, "reset_password").await.refused(429, 4003);
    nobody.send_sms(MOBILE, "login").await.ok();
    assert_eq!(gateway.messages().len(), 6);
}

#[apply(every_code_store)]
async fn a_send_that_no_channel_took_can_be_tried_again_at_once_and_counts_for_the_day(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| {
        config.sms.scenes.entry("login".to_owned()).or_default().daily = 3;
    })
    .await;
    let nobody = venue.nobody();
    // The gateway does not take our key: the channel cannot be used.
    gateway.answer([401, 400]);
    for _ in 0..2 {
        let answer = nobody.send_sms(MOBILE, "login").await;
        answer.refused(502, 4008);
        assert!(answer.json()["msg"].as_str().unwrap().contains("已计入今日次数"), "{}", answer.text);
        // A code that was not sent is worth nothing.
        nobody.sms_login(MOBILE, &gateway.code_of(E164)).await.refused(422, 4005);
    }
    nobody.send_sms(MOBILE, "login").await.ok();
    venue.advance(Duration::from_secs(60)).await;
    let full = nobody.send_sms(MOBILE, "login").await;
    assert!(full.refused(429, 4003).is_null());
    // From 09:01 to midnight in Shanghai.
    assert_eq!(full.headers["retry-after"], "53940");
    let rows = venue.count("SELECT COUNT(*) FROM sms_send WHERE outcome = 'not_taken' OR outcome = 'refused'").await;
    assert_eq!((rows, venue.count("SELECT COUNT(*) FROM sms_send WHERE outcome = 'sent'").await), (2, 1));
}

#[apply(every_code_store)]
async fn sends_that_no_channel_took_fill_no_hour(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| {
        (config.limits.sms.captcha_after, config.limits.sms.captcha_number) = (100, 7);
    })
    .await;
    let nobody = venue.nobody();
    // More than an hour has.
    gateway.answer([400; 6]);
    for _ in 0..6 {
        nobody.send_sms(MOBILE, "login").await.refused(502, 4008);
    }
    nobody.send_sms(MOBILE, "login").await.ok();
    nobody.sms_login(MOBILE, &gateway.code_of(E164)).await.ok();
    // But towards the captcha they count: nobody is to use a number's day up while the channels are down.
    nobody.send_sms(MOBILE, "register").await.refused(403, 4007);
}

#[apply(every_code_store)]
async fn a_send_with_an_unknown_end_counts_as_sent_and_its_code_counts(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    gateway.answer([500]);
    let nobody = venue.nobody();
    nobody.send_sms(MOBILE, "login").await.ok();
    nobody.send_sms(MOBILE, "login").await.refused(429, 4002);
    assert_eq!(gateway.messages().len(), 1, "it is not sent twice");
    nobody.sms_login(MOBILE, &gateway.code_of(E164)).await.ok();
    assert_eq!(venue.count("SELECT COUNT(*) FROM sms_send WHERE outcome = 'unknown'").await, 1);
}

#[apply(every_code_store)]
async fn an_address_has_its_limit_and_the_venues_own_another(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |config| {
        config.trusted_proxies = vec!["127.0.0.1".to_owned().try_into().unwrap()];
        config.limits.sms.venue_networks = vec!["10.0.0.0/8".to_owned().try_into().unwrap()];
        (config.limits.sms.ip, config.limits.sms.venue) = (3, 6);
    })
    .await;
    let mut number = 0;
    let mut send = async |address: &str| {
        number += 1;
        let body = json!({"mobile": format!("138{number:08}"), "scene": "login"});
        let request = venue.nobody().request(reqwest::Method::POST, "/api/sms/send").json(&body);
        api_tests::Answer::to(request.header("x-forwarded-for", address)).await
    };
    for _ in 0..3 {
        send("203.0.113.9").await.ok();
    }
    let wait = send("203.0.113.9").await.refused(429, 4009)["retryAfter"].as_i64().unwrap();
    assert!((3590..=3600).contains(&wait), "{wait}");
    for _ in 0..6 {
        send("10.1.2.3").await.ok();
    }
    send("10.1.2.3").await.refused(429, 4009);
    // IPv6 counts by /64.
    for n in 0..3 {
        send(&format!("2001:db8:1:2::{n}")).await.ok();
    }
    send("2001:db8:1:2::9").await.refused(429, 4009);
    send("2001:db8:1:3::9").await.ok();
    venue.advance(Duration::from_secs(3600)).await;
    send("203.0.113.9").await.ok();
}

#[apply(every_code_store)]
async fn a_tenants_day_has_its_limit_and_one_alert(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| config.sms.daily_cap = 2).await;
    for n in 1..=2 {
        venue.nobody().send_sms(&format!("1380000000{n}"), "login").await.ok();
    }
    // An alert that could not be written is not taken for one that was.
    let database = venue.database().await;
    sqlx::query("ALTER TABLE alert RENAME TO away").execute(&database).await.unwrap();
    venue.nobody().send_sms("13800000003", "login").await.refused(429, 1429);
    sqlx::query("ALTER TABLE away RENAME TO alert").execute(&database).await.unwrap();
    for _ in 0..3 {
        venue.nobody().send_sms("13800000003", "login").await.refused(429, 1429);
    }
    assert_eq!(gateway.messages().len(), 2);
    let alerts = venue.admin().await.get("/admin-api/alerts").await.ok();
    let of_ours = |alert: &&Value| alert["kind"] == "sms_daily_cap";
    assert_eq!(
        alerts["items"].as_array().unwrap_or(alerts.as_array().unwrap_or(&vec![])).iter().filter(of_ours).count(),
        1,
        "{alerts}"
    );
    // The next morning is another day, though the first one's alert is not a day old.
    venue.advance(Duration::from_secs(23 * 3600)).await;
    for n in 3..=4 {
        venue.nobody().send_sms(&format!("1380000000{n}"), "login").await.ok();
    }
    venue.nobody().send_sms("13800000005", "login").await.refused(429, 1429);
    let alerts = venue.count("SELECT COUNT(*) FROM alert WHERE kind = 'sms_daily_cap'").await;
    assert_eq!(alerts, 2, "one a day");
}

#[apply(every_code_store)]
async fn settings_take_effect_while_the_server_runs(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let admin = venue.admin().await;
    let all = admin.get("/admin-api/settings").await.ok();
    assert_eq!(
        (&all["sms.scenes.confirm.max_fail"], &all["sms.daily_cap"], &all["accounts.auto_register"]),
        (&json!(5), &json!(5000), &json!(true))
    );
    for (name, value) in [
        ("sms.scenes.login.ttl", json!(0)),
        ("sms.scenes.login.lock", json!(0)),
        ("sms.scenes.nonsense.ttl", json!(5)),
        ("sms.scenes.login.nonsense", json!(5)),
        ("sms.daily_cap", json!("5")),
        ("sms.allowed_prefixes", json!(["+1"])),
        ("accounts.auto_register", json!(1)),
    ] {
        assert_eq!(admin.put("/admin-api/settings", &json!({name: value})).await.refused(400, 1400)["field"], name);
    }
    let changes = json!({"sms.scenes.login.cooldown": 5, "sms.scenes.login.ttl": 7, "sms.scenes.login.hourly": 2});
    admin.put("/admin-api/settings", &changes).await.ok();
    let nobody = venue.nobody();
    assert_eq!(nobody.send_sms(MOBILE, "login").await.ok(), json!({"expireIn": 7, "retryAfter": 5}));
    venue.advance(Duration::from_secs(5)).await;
    nobody.send_sms(MOBILE, "login").await.ok();
    venue.advance(Duration::from_secs(5)).await;
    assert_eq!(nobody.send_sms(MOBILE, "login").await.refused(429, 4002)["retryAfter"], 3590);
    // A limit of nothing is one.
    admin
        .put("/admin-api/settings", &json!({"sms.scenes.register.daily": 0, "sms.scenes.login.hourly": null}))
        .await
        .ok();
    nobody.send_sms(MOBILE, "register").await.refused(429, 4003);
    nobody.send_sms(MOBILE, "login").await.ok();
}

#[apply(every_code_store)]
async fn of_200_simultaneous_sends_for_one_number_one_goes_out(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let nobody = venue.nobody();
    let answers = join_all((0..200).map(|_| nobody.send_sms(MOBILE, "login"))).await;
    let ok = answers.iter().filter(|answer| answer.code() == 0).count();
    assert_eq!((ok, gateway.messages().len()), (1, 1), "one number, one message");
    assert!(answers.iter().all(|answer| [0, 4002].contains(&answer.code())));
    nobody.sms_login(MOBILE, &gateway.code_of(E164)).await.ok();
}
