//! Limits: the operator's, the address's, the order's, by-code's, freezing and alerts. Each outcome and its edge.

use crate::every_store;
use api_tests::{Answer, Caller, Order, Stores, Venue};
use futures::future::join_all;
use reqwest::Method;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::{Value, json};
use std::time::Duration;

const WRONG: &str = "100000";

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Orders with a code each, none of which is [`WRONG`].
async fn orders(venue: &Venue, how_many: usize) -> Vec<(String, String)> {
    let mut orders = Vec::new();
    let visitor = {
        venue.put_order("FIRST", &Order::paid()).await;
        venue.visitor().await
    };
    for n in 0..how_many {
        let order_no = format!("BK{n}");
        venue.put_order(&order_no, &Order::paid()).await;
        venue.random.next([200_000 + u32::try_from(n).unwrap()]);
        let code = visitor.verify_code(&order_no).await.ok()["verifyCode"].as_str().unwrap().to_owned();
        orders.push((order_no, code));
    }
    orders
}

/// Settings as an admin changes them.
async fn set(admin: &Caller, name: &str, value: impl Into<Value>) {
    admin.put("/admin-api/settings", &json!({name: value.into()})).await.ok();
}

#[apply(every_store)]
async fn an_operator_guesses_ten_times_in_any_minute_and_not_eleven(stores: Stores) {
    let venue = Venue::open(stores).await;
    let orders = orders(&venue, 4).await;
    let guide = venue.guide().await;
    // Over several orders, so that no order's own lock stands before the operator's limit; across a minute's edge.
    for n in 0..9 {
        guide.redeem(&orders[n % 3].0, WRONG).await.refused(422, 2003);
        venue.advance(seconds(6)).await;
    }
    // 54 s after the first one.
    guide.redeem(&orders[0].0, WRONG).await.refused(422, 2003);
    let refusal = guide.redeem(&orders[3].0, &orders[3].1).await;
    let wait = refusal.refused(429, 2005)["retryAfter"].as_i64().unwrap();
    assert!((1..=6).contains(&wait), "{wait}");
    assert_eq!(refusal.headers["retry-after"].to_str().unwrap(), wait.to_string());
    venue.advance(seconds(6)).await;
    // The first one has left the window: one place is free, the second still stands in it.
    guide.redeem("NOWHERE", WRONG).await.refused(404, 2001);
    guide.redeem("NOWHERE", WRONG).await.refused(429, 2005);
}

#[apply(every_store)]
async fn ten_guesses_at_once_are_ten_and_not_more(stores: Stores) {
    let venue = Venue::open(stores).await;
    let guide = venue.guide().await;
    let answers = join_all((0..40).map(|_| guide.redeem("NOWHERE", WRONG))).await;
    let answered = answers.iter().filter(|a| a.code() == 2001).count();
    assert_eq!((answered, answers.iter().filter(|a| a.code() == 2005).count()), (10, 30));
}

#[apply(every_store)]
async fn a_queue_at_the_gate_is_not_held_up(stores: Stores) {
    let venue = Venue::open(stores).await;
    let orders = orders(&venue, 40).await;
    let guide = venue.guide().await;
    for (order_no, code) in &orders {
        guide.redeem(order_no, code).await.ok();
    }
    // Neither are repeats and orders that were used counted.
    for (order_no, code) in &orders[..15] {
        guide.redeem(order_no, code).await.refused(409, 2002);
    }
}

#[apply(every_store)]
async fn every_attempt_counts_where_a_setting_says_so(stores: Stores) {
    let venue = Venue::open(stores).await;
    let orders = orders(&venue, 11).await;
    set(&venue.admin().await, "limits.consume.count_all", true).await;
    let guide = venue.guide().await;
    for (order_no, code) in &orders[..10] {
        guide.redeem(order_no, code).await.ok();
    }
    guide.redeem(&orders[10].0, &orders[10].1).await.refused(429, 2005);
}

#[apply(every_store)]
async fn an_address_is_an_outer_fence_around_all_its_operators(stores: Stores) {
    let venue = Venue::open(stores).await;
    set(&venue.admin().await, "limits.consume.ip", 3).await;
    venue.put_guide("13900000002", "周航").await;
    let (guide, colleague) = (venue.guide().await, venue.sign_in("13900000002").await);
    for caller in [&guide, &colleague, &guide] {
        caller.redeem("NOWHERE", WRONG).await.refused(404, 2001);
    }
    colleague.redeem("NOWHERE", WRONG).await.refused(429, 2005);
    venue.advance(seconds(60)).await;
    colleague.redeem("NOWHERE", WRONG).await.refused(404, 2001);
}

/// A wrong guess that came by these hops.
async fn redeem_behind(caller: &Caller, forwarded: &str) -> Answer {
    let request = caller.request(Method::POST, "/app-api/team/guide-task/booking/consume");
    let request = request.header("x-forwarded-for", forwarded);
    Answer::to(request.json(&json!({"orderNo": "NOWHERE", "verifyCode": WRONG}))).await
}

#[apply(every_store)]
async fn a_forged_forwarded_for_does_not_widen_the_fence(stores: Stores) {
    let venue = Venue::open_with(stores, |config| config.limits.consume.ip = 3).await;
    let guide = venue.guide().await;
    for forged in ["198.51.100.1", "198.51.100.2, 198.51.100.3", "2001:db8::1"] {
        redeem_behind(&guide, forged).await.refused(404, 2001);
    }
    for forged in ["198.51.100.4", "127.0.0.1, 198.51.100.5", ""] {
        redeem_behind(&guide, forged).await.refused(429, 2005);
    }
}

#[apply(every_store)]
async fn behind_a_trusted_proxy_the_right_most_untrusted_hop_is_fenced(stores: Stores) {
    let venue = Venue::open_with(stores, |config| {
        config.limits.consume.ip = 3;
        config.limits.consume.operator = 100;
        config.trusted_proxies =
            ["127.0.0.1", "10.0.0.0/8"].map(|network| network.to_owned().try_into().unwrap()).into();
    })
    .await;
    let guide = venue.guide().await;
    // Whatever stands left of it was written by the caller.
    for n in 0..3 {
        redeem_behind(&guide, &format!("198.51.100.{n}, 203.0.113.9, 10.0.0.2")).await.refused(404, 2001);
    }
    for forwarded in ["198.51.100.7, 203.0.113.9, 10.0.0.2", "203.0.113.9"] {
        redeem_behind(&guide, forwarded).await.refused(429, 2005);
    }
    // Others behind the same proxy have a fence of their own, with the same words to the left.
    redeem_behind(&guide, "198.51.100.0, 203.0.113.10, 10.0.0.2").await.refused(404, 2001);
    // IPv6 counts by /64.
    for n in 1..4 {
        redeem_behind(&guide, &format!("2001:db8:1:2::{n}")).await.refused(404, 2001);
    }
    redeem_behind(&guide, "2001:db8:1:2:ffff::4").await.refused(429, 2005);
    redeem_behind(&guide, "2001:db8:1:3::1").await.refused(404, 2001);
}

#[apply(every_store)]
async fn five_wrong_codes_lock_an_order_for_everybody_and_the_right_code_too(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_guide("13900000002", "周航").await;
    venue.put_task("T1", &["13900000001", "13900000002"]).await;
    let orders = orders(&venue, 2).await;
    let (guide, colleague) = (venue.guide().await, venue.sign_in("13900000002").await);
    let (order_no, code) = &orders[0];
    for n in 0..5 {
        [&guide, &colleague][n % 2].redeem(order_no, WRONG).await.refused(422, 2003);
    }
    let wait = colleague.redeem(order_no, code).await.refused(429, 2005)["retryAfter"].as_i64().unwrap();
    assert!((595..=600).contains(&wait), "{wait}");
    venue.admin().await.redeem_as_admin(order_no, code).await.refused(429, 2005);
    // Another order is not concerned, and a new code does not open this one.
    guide.redeem(&orders[1].0, &orders[1].1).await.ok();
    venue.advance(seconds(61)).await;
    let fresh = venue.visitor().await.verify_code(order_no).await.ok()["verifyCode"].as_str().unwrap().to_owned();
    guide.redeem(order_no, &fresh).await.refused(429, 2005);
    venue.advance(seconds(540)).await;
    let fresh = venue.visitor().await.verify_code(order_no).await.ok()["verifyCode"].as_str().unwrap().to_owned();
    guide.redeem(order_no, &fresh).await.ok();
}

#[apply(every_store)]
async fn of_many_wrong_codes_at_once_no_more_than_five_are_answered(stores: Stores) {
    let venue = Venue::open(stores).await;
    let orders = orders(&venue, 1).await;
    set(&venue.admin().await, "limits.consume.operator", 1000).await;
    let guide = venue.guide().await;
    let codes: Vec<String> = (0..60).map(|n| (100_000 + n).to_string()).collect();
    let answers = join_all(codes.iter().map(|code| guide.redeem(&orders[0].0, code))).await;
    let answered = answers.iter().filter(|a| a.code() == 2003).count();
    assert_eq!((answered, answers.iter().filter(|a| a.code() == 2005).count()), (5, 55));
}

#[apply(every_store)]
async fn a_success_clears_an_orders_count(stores: Stores) {
    let venue = Venue::open(stores).await;
    let orders = orders(&venue, 1).await;
    let (order_no, code) = &orders[0];
    let guide = venue.guide().await;
    for _ in 0..4 {
        guide.redeem(order_no, WRONG).await.refused(422, 2003);
    }
    guide.redeem(order_no, code).await.ok();
    // The redemption is taken back as a reversal leaves it.
    let database = venue.database().await;
    for sql in [
        "UPDATE redemption SET standing_order_id = NULL",
        "UPDATE booking_order SET status = 'paid', consumed_at = NULL WHERE order_no = 'BK0'",
    ] {
        sqlx::query(sql).execute(&database).await.unwrap();
    }
    venue.random.next([654_321]);
    assert_eq!(venue.visitor().await.verify_code(order_no).await.ok()["verifyCode"], "654321");
    // With the four from before, the second of these would lock it.
    for _ in 0..4 {
        guide.redeem(order_no, WRONG).await.refused(422, 2003);
    }
    guide.redeem(order_no, "654321").await.ok();
}

#[apply(every_store)]
async fn fifty_failures_freeze_a_guide_with_an_alert_and_an_admin_never(stores: Stores) {
    let venue = Venue::open(stores).await;
    let orders = orders(&venue, 2).await;
    let (guide, admin) = (venue.guide().await, venue.admin().await);
    set(&admin, "limits.consume.operator", 1000).await;
    for _ in 0..49 {
        guide.redeem("NOWHERE", WRONG).await.refused(404, 2001);
        admin.redeem_as_admin("NOWHERE", WRONG).await.refused(404, 2001);
    }
    guide.redeem(&orders[0].0, WRONG).await.refused(422, 2003);
    for _ in 0..3 {
        guide.redeem(&orders[0].0, &orders[0].1).await.refused(403, 2007);
    }
    for _ in 0..2 {
        admin.redeem_as_admin("NOWHERE", WRONG).await.refused(404, 2001);
    }
    admin.redeem_as_admin(&orders[1].0, &orders[1].1).await.ok();
    let alerts = admin.get("/admin-api/alerts").await.ok();
    let of = |name: &str| -> Vec<String> {
        let items = alerts["items"].as_array().unwrap().iter().rev();
        items.filter(|a| a["name"] == name).map(|a| a["kind"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((of("林悦"), of("boss")), (vec!["guide_frozen".to_owned()], vec!["admin_failures".to_owned()]));
    let guides = admin.get("/admin-api/guides").await.ok();
    assert_eq!(guides[0]["frozen"], "failures");
    // One row an operator and minute.
    venue.advance(seconds(60)).await;
    guide.redeem("NOWHERE", WRONG).await.refused(403, 2007);
    let rows = admin.get("/admin-api/redemptions?result=2007").await.ok();
    let rows: Vec<(&Value, &Value)> =
        rows["items"].as_array().unwrap().iter().map(|row| (&row["operator"], &row["orderNo"])).collect();
    assert_eq!(rows, [(&json!("林悦"), &json!(null)), (&json!("林悦"), &json!("BK0"))]);
    venue.advance(seconds(1740)).await;
    let code = venue.visitor().await.verify_code(&orders[0].0).await.ok()["verifyCode"].as_str().unwrap().to_owned();
    guide.redeem(&orders[0].0, &code).await.ok();
}

#[apply(every_store)]
async fn an_admin_freezes_and_unfreezes_a_guide(stores: Stores) {
    let venue = Venue::open(stores).await;
    let orders = orders(&venue, 1).await;
    let (guide, admin) = (venue.guide().await, venue.admin().await);
    let id = admin.get("/admin-api/guides").await.ok()[0]["id"].as_i64().unwrap();
    admin.post(&format!("/admin-api/guides/{id}/freeze"), &json!({})).await.ok();
    guide.redeem(&orders[0].0, &orders[0].1).await.refused(403, 2007);
    let by_code = json!({"verifyCode": orders[0].1});
    guide.post("/app-api/team/guide-task/booking/consume-by-code", &by_code).await.refused(403, 2007);
    // It does not end by itself.
    venue.advance(seconds(1700)).await;
    guide.redeem(&orders[0].0, WRONG).await.refused(403, 2007);
    admin.post(&format!("/admin-api/guides/{id}/unfreeze"), &json!({})).await.ok();
    guide.redeem(&orders[0].0, WRONG).await.refused(422, 2003);
}

#[apply(every_store)]
async fn unfreezing_ends_a_freeze_by_failures_too(stores: Stores) {
    let venue = Venue::open(stores).await;
    let orders = orders(&venue, 1).await;
    let (guide, admin) = (venue.guide().await, venue.admin().await);
    set(&admin, "limits.consume.freeze", 2).await;
    for _ in 0..2 {
        guide.redeem("NOWHERE", WRONG).await.refused(404, 2001);
    }
    guide.redeem("NOWHERE", WRONG).await.refused(403, 2007);
    let id = admin.get("/admin-api/guides").await.ok()[0]["id"].as_i64().unwrap();
    admin.post(&format!("/admin-api/guides/{id}/unfreeze"), &json!({})).await.ok();
    guide.redeem(&orders[0].0, &orders[0].1).await.ok();
    admin.post("/admin-api/guides/999/unfreeze", &json!({})).await.refused(404, 1404);
}

#[apply(every_store)]
async fn many_wrong_codes_in_a_tenant_raise_one_alert(stores: Stores) {
    let venue = Venue::open(stores).await;
    let orders = orders(&venue, 2).await;
    let (guide, admin) = (venue.guide().await, venue.admin().await);
    set(&admin, "alerts.consume_failures", 3).await;
    for n in 0..6 {
        guide.redeem(&orders[n % 2].0, WRONG).await.refused(422, 2003);
    }
    let alerts = admin.get("/admin-api/alerts").await.ok();
    let items = alerts["items"].as_array().unwrap();
    assert_eq!((items.len(), &items[0]["kind"]), (1, &json!("consume_failures")));
}

#[apply(every_store)]
async fn limits_leave_one_row_an_operator_and_minute(stores: Stores) {
    let venue = Venue::open(stores).await;
    let orders = orders(&venue, 1).await;
    let (guide, admin) = (venue.guide().await, venue.admin().await);
    set(&admin, "limits.consume.operator", 0).await;
    for _ in 0..3 {
        guide.redeem(&orders[0].0, &orders[0].1).await.refused(429, 2005);
    }
    venue.advance(seconds(60)).await;
    guide.redeem("NOWHERE", WRONG).await.refused(429, 2005);
    let rows = admin.get("/admin-api/redemptions?result=2005").await.ok();
    let orders: Vec<&Value> = rows["items"].as_array().unwrap().iter().map(|row| &row["orderNo"]).collect();
    assert_eq!(orders, [&json!(null), &json!("BK0")]);
}

#[apply(every_store)]
async fn settings_change_while_the_server_runs_all_or_none(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let before = admin.get("/admin-api/settings").await.ok();
    assert_eq!((&before["verify_code.ttl"], &before["limits.consume.operator"]), (&json!(60), &json!(10)));
    for (name, value) in [
        ("verify_code.ttl", json!(0)),
        ("verify_code.grace", json!(11)),
        ("limits.consume.operator", json!(-1)),
        ("limits.consume.operator", json!("10")),
        ("limits.consume.count_all", json!(1)),
        ("listen", json!("0.0.0.0:1")),
        ("nonsense", json!(null)),
    ] {
        let body = json!({"limits.consume.ip": 7, name: value});
        assert_eq!(admin.put("/admin-api/settings", &body).await.refused(400, 1400)["field"], name);
    }
    assert_eq!(admin.get("/admin-api/settings").await.ok(), before);
    set(&admin, "verify_code.ttl", 5).await;
    venue.put_order("BK1", &Order::paid()).await;
    let view = venue.visitor().await.verify_code("BK1").await.ok();
    let life = view["expireTime"].as_i64().unwrap() - view["serverTime"].as_i64().unwrap();
    assert!((4000..=5000).contains(&life), "{life}");
    set(&admin, "verify_code.ttl", json!(null)).await;
    assert_eq!(admin.get("/admin-api/settings").await.ok(), before);
    venue.guide().await.get("/admin-api/settings").await.refused(403, 1403);
}
