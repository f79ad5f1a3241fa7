//! What the server does by itself about SMS codes: receipts, alerts, the daily comparison, and what it forgets.

use crate::every_code_store;
use api_tests::{Gateway, Provider, START, Stores, Venue};
use futures::future::join_all;
use guidepost_server::Config;
use guidepost_server::ops::upkeep;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::{Value, json};
use sqlx::Row;
use std::time::{Duration, Instant};

const MOBILE: &str = "13800000001";
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: i64 = 24 * 3_600_000;

/// A venue whose first channel is a provider that keeps receipts and counts.
async fn open_with_provider(stores: Stores, change: impl FnOnce(&mut Config)) -> (Venue, Provider) {
    let (provider, gateway) = (Provider::open().await, Gateway::open().await);
    let venue = Venue::open_with(stores, |config| {
        gateway.set(config);
        config.sms.channels.clear();
        provider.set(config);
        change(config);
    })
    .await;
    (venue, provider)
}

/// One turn of everything, by several servers at once.
async fn turn(venue: &Venue) {
    join_all((0..4).map(|_| upkeep::turn(venue.server.app()))).await;
}

/// The alerts of a kind, by what is known of them.
async fn alerts(venue: &Venue, kind: &str) -> Vec<Value> {
    let rows = sqlx::query("SELECT data FROM alert WHERE kind = ? ORDER BY id").bind(kind);
    let rows = rows.fetch_all(&venue.database().await).await.unwrap();
    rows.iter().map(|row| serde_json::from_str(row.get("data")).unwrap()).collect()
}

/// Outcome and receipt of each send.
async fn sends(venue: &Venue) -> Vec<(String, Option<String>)> {
    let rows = sqlx::query("SELECT outcome, receipt FROM sms_send ORDER BY id");
    let rows = rows.fetch_all(&venue.database().await).await.unwrap();
    rows.iter().map(|row| (row.get("outcome"), row.get("receipt"))).collect()
}

/// The loops of the server may be in the middle of what a turn finds done.
async fn until(what: &str, so: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !so().await {
        assert!(started.elapsed() < MINUTE, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[apply(every_code_store)]
async fn a_receipt_is_fetched_and_settles_a_send_whose_end_was_unknown(stores: Stores) {
    let (venue, provider) = open_with_provider(stores, |_| {}).await;
    let nobody = venue.nobody();
    nobody.send_sms(MOBILE, "login").await.ok();
    provider.be_unclear_once();
    nobody.send_sms("13800000002", "login").await.ok();
    let known = |outcome: &str, receipt: Option<&str>| (outcome.to_owned(), receipt.map(str::to_owned));
    assert_eq!(sends(&venue).await, [known("sent", None), known("unknown", None)]);
    provider.report("SUCCESS");
    venue.advance(Duration::from_secs(29)).await;
    turn(&venue).await;
    assert_eq!(provider.asked(), 0, "asked too soon");
    venue.advance(Duration::from_secs(1)).await;
    turn(&venue).await;
    let settled = [known("sent", Some("delivered")), known("sent", Some("delivered"))];
    until("the receipts are written", async || sends(&venue).await == settled).await;
    venue.advance(HOUR).await;
    turn(&venue).await;
    assert_eq!((provider.asked(), provider.sent()), (2, 2), "asked once each, and nothing was sent again");
    let counted = venue.nobody().get("/metrics").await.text;
    assert!(counted.contains("guidepost_sms_receipts_total{channel=\"cloud\",result=\"delivered\"} 2"), "{counted}");
}

#[apply(every_code_store)]
async fn a_receipt_is_asked_for_three_times_and_no_more(stores: Stores) {
    let (venue, provider) = open_with_provider(stores, |_| {}).await;
    venue.nobody().send_sms(MOBILE, "login").await.ok();
    for (after, asked) in [(30, 1), (89, 1), (1, 2), (479, 2)] {
        venue.advance(Duration::from_secs(after)).await;
        turn(&venue).await;
        until("the provider is asked", async || provider.asked() == asked).await;
    }
    // It did not arrive, which is told in its last minute.
    provider.report("FAIL");
    venue.advance(Duration::from_secs(1)).await;
    turn(&venue).await;
    let failed = [("sent".to_owned(), Some("failed: UNDELIV".to_owned()))];
    until("the receipt is written", async || sends(&venue).await == failed).await;
    venue.nobody().send_sms("13800000002", "login").await.ok();
    provider.report("WAITING");
    for after in [30, 90, 480, 3600] {
        venue.advance(Duration::from_secs(after)).await;
        turn(&venue).await;
    }
    until("the provider is asked", async || provider.asked() == 6).await;
    let counted = venue.nobody().get("/metrics").await.text;
    assert!(counted.contains("guidepost_sms_receipts_total{channel=\"cloud\",result=\"unanswered\"} 1"), "{counted}");
}

#[apply(every_code_store)]
async fn few_codes_that_are_used_make_one_alert_an_hour_with_where_to_look(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| config.alerts.sms_pass_rate_numbers = 4).await;
    let nobody = venue.nobody();
    let send = async |numbers: std::ops::Range<u32>, scene: &str| {
        for n in numbers {
            nobody.send_sms(&format!("138000000{n:02}"), scene).await.ok();
        }
    };
    // Half of the numbers use a code; one of them by the second, which killed the first.
    send(1..5, "login").await;
    venue.advance(MINUTE).await;
    send(1..2, "login").await;
    for n in 1..3 {
        let mobile = format!("138000000{n:02}");
        nobody.sms_login(&mobile, &gateway.code_of(&format!("+86{mobile}"))).await.ok();
    }
    venue.advance(11 * MINUTE).await;
    turn(&venue).await;
    assert_eq!(alerts(&venue, "sms_pass_rate").await, [Value::Null; 0]);
    // Nobody uses those; three of them would be too few to judge by.
    send(11..14, "register").await;
    venue.advance(11 * MINUTE).await;
    turn(&venue).await;
    assert_eq!(alerts(&venue, "sms_pass_rate").await, [Value::Null; 0]);
    send(14..15, "register").await;
    turn(&venue).await;
    assert_eq!(alerts(&venue, "sms_pass_rate").await, [Value::Null; 0], "it may yet be used");
    venue.advance(11 * MINUTE).await;
    for _ in 0..3 {
        turn(&venue).await;
    }
    let raised = alerts(&venue, "sms_pass_rate").await;
    assert_eq!(raised.len(), 1, "one alert an hour: {raised:?}");
    assert_eq!(raised[0]["scenes"], json!([{"scene": "register", "numbers": 4, "used": 0}]));
    assert_eq!(raised[0]["networks"][0]["network"], "127.0.0.0/16");
    let admin = venue.admin().await;
    let listed = admin.get("/admin-api/alerts").await.ok();
    assert_eq!((&listed["items"][0]["kind"], &listed["items"][0]["data"]), (&json!("sms_pass_rate"), &raised[0]));
    // The next hour again, unless the setting says never.
    send(21..25, "register").await;
    for _ in 0..3 {
        venue.advance(20 * MINUTE).await;
        // Or the session would end unused.
        admin.get("/admin-api/alerts").await.ok();
    }
    admin.put("/admin-api/settings", &json!({"alerts.sms_pass_rate": 0})).await.ok();
    turn(&venue).await;
    assert_eq!(alerts(&venue, "sms_pass_rate").await.len(), 1);
    admin.put("/admin-api/settings", &json!({"alerts.sms_pass_rate": 100})).await.ok();
    turn(&venue).await;
    assert_eq!(alerts(&venue, "sms_pass_rate").await.len(), 2);
}

/// A scene whose codes live for a day does not hold up the others.
#[apply(every_code_store)]
async fn each_scene_is_judged_once_its_own_codes_are_dead(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |config| {
        config.alerts.sms_pass_rate_numbers = 4;
        config.sms.scenes.entry("register".to_owned()).or_default().ttl = 86_400;
    })
    .await;
    for n in 1..5 {
        venue.nobody().send_sms(&format!("1380000000{n}"), "login").await.ok();
        venue.nobody().send_sms(&format!("1380000001{n}"), "register").await.ok();
    }
    venue.advance(11 * MINUTE).await;
    turn(&venue).await;
    let scenes =
        async || alerts(&venue, "sms_pass_rate").await.into_iter().map(|of| of["scenes"].clone()).collect::<Vec<_>>();
    let of = |scene: &str| json!([{"scene": scene, "numbers": 4, "used": 0}]);
    assert_eq!(scenes().await, [of("login")]);
    venue.advance(24 * HOUR).await;
    turn(&venue).await;
    assert_eq!(scenes().await, [of("login"), of("register")]);
}

#[apply(every_code_store)]
async fn many_numbers_that_use_no_code_make_an_alert_at_once(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| config.alerts.sms_pumping = 4).await;
    let nobody = venue.nobody();
    // As many use their codes as do not.
    for n in 0..8 {
        let mobile = format!("1380000000{n}");
        nobody.send_sms(&mobile, "login").await.ok();
        if n < 4 {
            nobody.sms_login(&mobile, &gateway.code_of(&format!("+86{mobile}"))).await.ok();
        }
    }
    turn(&venue).await;
    assert_eq!(alerts(&venue, "sms_pumping").await, [Value::Null; 0]);
    nobody.send_sms("13800000008", "login").await.ok();
    for _ in 0..3 {
        turn(&venue).await;
    }
    let raised = alerts(&venue, "sms_pumping").await;
    assert_eq!(raised.len(), 1, "one alert an hour: {raised:?}");
    assert_eq!(raised[0]["scenes"], json!([{"scene": "login", "numbers": 9, "used": 4}]));
    assert_eq!(raised[0]["networks"], json!([{"network": "127.0.0.0/16", "sends": 9}]));
}

/// Each sees what the other has sent, and one of them says so.
#[tokio::test(flavor = "multi_thread")]
async fn two_servers_raise_one_alert_about_what_both_have_sent() {
    let (venue, _gateway) = Venue::open_with_gateway(Stores::MariadbRedis, |_| {}).await;
    let other = venue.another_server().await;
    venue.admin().await.put("/admin-api/settings", &json!({"alerts.sms_pumping": 4})).await.ok();
    for n in 0..4 {
        venue.nobody().send_sms(&format!("1380000000{n}"), "login").await.ok();
    }
    // The settings are a moment old at most.
    venue.advance(Duration::from_secs(5)).await;
    for _ in 0..3 {
        join_all([&venue.server, &other].map(|server| upkeep::turn(server.app()))).await;
    }
    let raised = alerts(&venue, "sms_pumping").await;
    assert_eq!(raised.len(), 1, "one alert an hour: {raised:?}");
    assert_eq!(raised[0]["scenes"], json!([{"scene": "login", "numbers": 4, "used": 0}]));
    other.stop().await.unwrap();
}

/// Twelve sends of a day, which the provider knows or does not know of.
async fn a_day_of_twelve(venue: &Venue) {
    a_day_of_twelve_then(venue, "UPDATE sms_send SET channel = channel").await;
}

/// The same, with a change of their rows before the day is over.
async fn a_day_of_twelve_then(venue: &Venue, change: &'static str) {
    for n in 0..12 {
        venue.nobody().send_sms(&format!("138000000{n:02}"), "login").await.ok();
    }
    sqlx::query(change).execute(&venue.database().await).await.unwrap();
    // 03:00 the next day in China, where it is 09:00 now.
    venue.advance(18 * HOUR - Duration::from_secs(1)).await;
    turn(venue).await;
    assert_eq!(venue.count("SELECT COUNT(*) FROM sms_reconciliation WHERE day = '20260801'").await, 0);
    venue.advance(Duration::from_secs(1)).await;
}

#[apply(every_code_store)]
async fn a_day_that_the_provider_counts_otherwise_makes_one_alert(stores: Stores) {
    let (venue, provider) = open_with_provider(stores, |_| {}).await;
    a_day_of_twelve(&venue).await;
    provider.count("20260801", 1);
    turn(&venue).await;
    venue.advance(2 * HOUR).await;
    turn(&venue).await;
    let about = json!({"channel": "cloud", "day": "20260801", "ours": 12, "theirs": 1});
    assert_eq!(alerts(&venue, "sms_reconciliation").await, [about], "a day is compared once");
    // The next one is empty on both sides.
    venue.advance(24 * HOUR).await;
    turn(&venue).await;
    assert_eq!(
        venue.count("SELECT COUNT(*) FROM sms_reconciliation WHERE ours = theirs AND day = '20260802'").await,
        1
    );
    assert_eq!(alerts(&venue, "sms_reconciliation").await.len(), 1);
}

#[apply(every_code_store)]
async fn a_day_that_the_provider_counts_the_same_makes_none_even_where_all_servers_slept(stores: Stores) {
    let (venue, provider) = open_with_provider(stores, |_| {}).await;
    a_day_of_twelve(&venue).await;
    // Ten more or fewer are no matter.
    provider.count("20260801", 2);
    venue.advance(4 * 24 * HOUR).await;
    turn(&venue).await;
    let compared = "SELECT COUNT(*) FROM sms_reconciliation WHERE day = '20260801' AND ours = 12 AND theirs = 2";
    assert_eq!(venue.count(compared).await, 1);
    // Of the days on which nothing was sent only the last one was asked for.
    assert_eq!(venue.count("SELECT COUNT(*) FROM sms_reconciliation WHERE day > '20260801'").await, 1);
    assert_eq!(alerts(&venue, "sms_reconciliation").await, [Value::Null; 0]);
}

/// A provider counts an account, whichever of its channels has sent.
#[apply(every_code_store)]
async fn channels_of_one_account_are_compared_together_with_one_alert(stores: Stores) {
    let (venue, provider) = open_with_provider(stores, |config| {
        let mut other = config.sms.channels[0].clone();
        other.name = "another".to_owned();
        other.sign_name = Some("城市剧院".to_owned());
        config.sms.channels.push(other);
    })
    .await;
    let moved = "UPDATE sms_send SET channel = 'another'";
    a_day_of_twelve_then(&venue, moved).await;
    provider.count("20260801", 12);
    provider.count("20260802", 11);
    turn(&venue).await;
    assert_eq!(alerts(&venue, "sms_reconciliation").await, [Value::Null; 0], "neither has sent twelve by itself");
    assert_eq!(venue.count("SELECT COUNT(*) FROM sms_reconciliation").await, 1, "asked once");
    venue.advance(24 * HOUR).await;
    turn(&venue).await;
    let about = json!({"channels": ["cloud", "another"], "day": "20260802", "ours": 0, "theirs": 11});
    assert_eq!(alerts(&venue, "sms_reconciliation").await, [about]);
}

/// Before our beginning the account may have been another system's.
#[apply(every_code_store)]
async fn the_day_before_the_first_send_is_not_compared(stores: Stores) {
    let (venue, provider) = open_with_provider(stores, |_| {}).await;
    provider.count("20260731", 500);
    for mobile in [MOBILE, "13800000002"] {
        turn(&venue).await;
        assert_eq!(venue.count("SELECT COUNT(*) FROM sms_reconciliation").await, 0);
        // The first send of all changes nothing for the day before it.
        venue.nobody().send_sms(mobile, "login").await.ok();
    }
    provider.count("20260801", 1);
    provider.count("20260802", 500);
    for day in 1..3 {
        venue.advance(24 * HOUR).await;
        turn(&venue).await;
        assert_eq!(venue.count("SELECT COUNT(*) FROM sms_reconciliation").await, day);
    }
    let about = json!({"channel": "cloud", "day": "20260802", "ours": 0, "theirs": 500});
    assert_eq!(alerts(&venue, "sms_reconciliation").await, [about], "a day on which others alone have sent is one");
}

#[apply(every_code_store)]
async fn a_provider_that_does_not_tell_its_count_is_asked_for_a_day_and_then_makes_an_alert(stores: Stores) {
    let (venue, provider) = open_with_provider(stores, |_| {}).await;
    a_day_of_twelve(&venue).await;
    provider.be_silent(true);
    turn(&venue).await;
    venue.advance(HOUR - Duration::from_secs(1)).await;
    turn(&venue).await;
    let attempts = "SELECT attempts FROM sms_reconciliation WHERE day = '20260801'";
    assert_eq!(venue.count(attempts).await, 1, "once an hour, whoever asks");
    for _ in 0..23 {
        venue.advance(HOUR).await;
        turn(&venue).await;
    }
    assert_eq!(venue.count(attempts).await, 24);
    assert_eq!(alerts(&venue, "sms_reconciliation").await, [Value::Null; 0]);
    venue.advance(HOUR).await;
    turn(&venue).await;
    let about = json!({"channel": "cloud", "day": "20260801", "ours": 12, "theirs": null});
    assert_eq!(alerts(&venue, "sms_reconciliation").await, [about]);
    provider.be_silent(false);
    turn(&venue).await;
    assert_eq!(venue.count(attempts).await, 25, "it is given up");
}

#[apply(every_code_store)]
async fn old_sends_and_uses_are_deleted_and_newer_ones_stay(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |config| {
        config.sms.keep_days = 10;
        // A code of this scene may live for twenty days, and so long its use must be known.
        config.sms.scenes.entry("login".to_owned()).or_default().ttl = 20 * 86_400;
    })
    .await;
    let database = venue.database().await;
    let mut tx = database.begin().await.unwrap();
    // More than go at once.
    let mut add = async |id: String, age: i64| {
        let at = START - age;
        let send = "INSERT INTO sms_send (tenant_id, send_id, scene, via, last_four, digest, outcome, at)
                    VALUES (1, ?, 'login', 'sms', '0001', 'd', 'sent', ?)";
        sqlx::query(send).bind(&id).bind(at).execute(&mut *tx).await.unwrap();
        let used = "INSERT INTO sms_use (send_id, tenant_id, scene, attempt, at) VALUES (?, 1, 'login', 'a', ?)";
        sqlx::query(used).bind(&id).bind(at).execute(&mut *tx).await.unwrap();
    };
    for n in 0..1100 {
        add(format!("old-{n}"), 30 * DAY).await;
    }
    add("middle".to_owned(), 11 * DAY).await;
    add("at-the-edge".to_owned(), 10 * DAY).await;
    add("new".to_owned(), DAY).await;
    tx.commit().await.unwrap();
    turn(&venue).await;
    let left = async |sql: &'static str| {
        let rows = sqlx::query(sql).fetch_all(&database).await.unwrap();
        rows.iter().map(|row| row.get::<String, _>("send_id")).collect::<Vec<_>>()
    };
    assert_eq!(left("SELECT send_id FROM sms_send ORDER BY at").await, ["at-the-edge", "new"]);
    let uses = left("SELECT send_id FROM sms_use ORDER BY at").await;
    assert_eq!(uses, ["middle", "at-the-edge", "new"], "a use is known for as long as its code may live");
}

#[apply(every_code_store)]
async fn sessions_and_links_go_a_week_after_their_end_and_not_before(stores: Stores) {
    let venue = Venue::open(stores).await;
    let guide = venue.guide().await;
    let database = venue.database().await;
    let before = venue.count("SELECT COUNT(*) FROM session").await;
    // Name, end, last use, in days from now.
    for (name, ends, used) in [
        ("ended", -8, -8),
        ("ended lately", -6, -6),
        ("alive", 20, -6),
        ("idle for long", 15, -15),
        ("idle lately", 20, -13),
    ] {
        let session = "INSERT INTO session (token_hash, tenant_id, account_id, created_at, expires_at, last_used_at)
                       SELECT ?, 1, MIN(id), 0, ?, ? FROM account";
        let session = sqlx::query(session).bind(name).bind(START + ends * DAY).bind(START + used * DAY);
        session.execute(&database).await.unwrap();
    }
    for (name, ends, used) in [
        ("run out", -8, None),
        ("used", 1, Some(-8)),
        ("run out lately", -6, None),
        ("used lately", 1, Some(-6)),
        ("open", 1, None),
    ] {
        let link = "INSERT INTO sign_in_link (token_hash, tenant_id, account_id, expires_at, used_at)
                    SELECT ?, 1, MIN(id), ?, ? FROM account";
        let link = sqlx::query(link).bind(name).bind(START + ends * DAY).bind(used.map(|used: i64| START + used * DAY));
        link.execute(&database).await.unwrap();
    }
    turn(&venue).await;
    let left = async |sql: &'static str| {
        let rows = sqlx::query(sql).fetch_all(&database).await.unwrap();
        rows.iter().map(|row| row.get::<String, _>("token_hash")).collect::<Vec<_>>()
    };
    let sessions = "SELECT token_hash FROM session WHERE created_at = 0 ORDER BY token_hash";
    assert_eq!(left(sessions).await, ["alive", "ended lately", "idle lately"]);
    let links = "SELECT token_hash FROM sign_in_link WHERE LENGTH(token_hash) < 20 ORDER BY token_hash";
    assert_eq!(left(links).await, ["open", "run out lately", "used lately"]);
    assert_eq!(venue.count("SELECT COUNT(*) FROM session").await, before + 3);
    guide.get("/api/auth/me").await.ok();
}
