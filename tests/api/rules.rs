//! What the design of the verify code asks for beyond single outcomes: its form, its keys, and no way around it.

use crate::every_store;
use api_tests::{Order, Stores, Venue};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::{Value, json};
use std::collections::BTreeSet;

#[apply(every_store)]
async fn codes_are_six_digits_and_the_first_is_not_0(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([100_000, 999_999]);
    let visitor = venue.visitor_of_a_first_order().await;
    let mut codes = BTreeSet::new();
    for n in 0..60 {
        let order_no = format!("BK{n}");
        venue.put_order(&order_no, &Order::paid()).await;
        codes.insert(visitor.verify_code(&order_no).await.ok()["verifyCode"].as_str().unwrap().to_owned());
    }
    assert!(codes.contains("100000") && codes.contains("999999"), "both ends are codes");
    assert!(codes.iter().all(|code| code.len() == 6 && !code.starts_with('0')), "{codes:?}");
    assert!(codes.len() > 55, "only {} different ones", codes.len());
}

async fn keys(venue: &Venue) -> Vec<(String, i64)> {
    let mut redis = venue.redis().await;
    let mut all = Vec::new();
    for pattern in [format!("{}*", venue.prefix()), format!("{{{}*", venue.prefix())] {
        let keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut redis).await.unwrap();
        for key in keys {
            let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut redis).await.unwrap();
            all.push((key.replacen(venue.prefix(), "", 1), left));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn every_key_has_a_time_to_live_and_the_name_that_the_contract_gives() {
    let venue = Venue::open_with(Stores::SqliteRedis, |config| config.verify_code.grace = 10).await;
    venue.random.next([483_921]);
    venue.paid_order_with_code("BK1").await;
    let row: (i64,) = sqlx::query_as("SELECT id FROM booking_order").fetch_one(&venue.database().await).await.unwrap();
    let name = format!("team:booking:verify:1:order:{}", row.0);
    let mut redis = venue.redis().await;
    let value: String =
        redis::cmd("GET").arg(format!("{}{name}", venue.prefix())).query_async(&mut redis).await.unwrap();
    assert_eq!(value, "483921", "the code and nothing else");
    let guide = venue.guide().await;
    guide.redeem("BK1", "100000").await.refused(422, 2003);
    guide.redeem("NOWHERE", "100000").await.refused(404, 2001);
    let visitor = venue.visitor().await;
    visitor
        .post("/app-api/team/booking/booking/verify-code/rotate", &json!({"orderNo": "BK1", "confirm": true}))
        .await
        .ok();
    let keys = keys(&venue).await;
    assert!(keys.len() >= 6, "{keys:?}");
    for (key, left) in &keys {
        assert!(*left > 0, "{key} has no end");
    }
    assert!(keys.iter().any(|(key, _)| *key == name), "{keys:?}");
    assert!(keys.iter().any(|(key, _)| *key == format!("{{{name}}}:wrong")), "{keys:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_redemption_no_key_of_the_order_is_left() {
    let venue = Venue::open_with(Stores::SqliteRedis, |config| config.verify_code.grace = 10).await;
    venue.random.next([483_921]);
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    guide.redeem("BK1", "100000").await.refused(422, 2003);
    guide.redeem("BK1", &code).await.ok();
    let left: Vec<String> =
        keys(&venue).await.into_iter().map(|(key, _)| key).filter(|k| k.contains(":verify:")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// The old way around: by id, or by the order's number alone.
#[apply(every_store)]
async fn there_is_no_way_to_redeem_without_a_code(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.paid_order_with_code("BK1").await;
    let (guide, admin) = (venue.guide().await, venue.admin().await);
    let guide_path = "/app-api/team/guide-task/booking/consume";
    let admin_path = "/admin-api/team/booking-order/booking/consume";
    let bodies: [Value; 4] =
        [json!({"id": 1}), json!({"orderNo": "BK1"}), json!({"orderId": 1, "orderNo": "BK1"}), json!({})];
    for body in &bodies {
        guide.post(guide_path, body).await.refused(400, 1400);
        admin.post(admin_path, body).await.refused(400, 1400);
        guide.post(&format!("{guide_path}?id=1"), body).await.refused(400, 1400);
        admin.put(&format!("{admin_path}?id=1"), body).await.refused(405, 1400);
    }
    for path in ["/admin-api/team/booking-order/consume?id=1", "/app-api/team/guide-task/booking/1/consume"] {
        admin.post(path, &json!({"id": 1})).await.refused(404, 1404);
    }
    assert_eq!(venue.status("BK1").await, "paid");
}
