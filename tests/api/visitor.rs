//! The visitor's side: own orders and their codes.

use crate::every_store;
use api_tests::{Order, START, Stores, Venue};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use std::time::Duration;

#[apply(every_store)]
async fn the_same_code_comes_until_it_runs_out_and_asking_does_not_stretch_it(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([483_921, 483_921, 725_310]);
    venue.put_order("BK1", &Order::paid()).await;
    let (phone, tablet) = (venue.visitor().await, venue.visitor().await);
    let first = phone.verify_code("BK1").await.ok();
    assert_view(&first, "483921", 0, 60_000);
    venue.advance(Duration::from_secs(50)).await;
    let later = tablet.verify_code(" bk1%20").await.ok();
    assert_view(&later, "483921", 50_000, 10_000);
    assert!(later["expireTime"].as_i64() <= first["expireTime"].as_i64(), "asking stretched it");
    venue.advance(Duration::from_secs(10)).await;
    assert_view(&phone.verify_code("BK1").await.ok(), "725310", 60_000, 60_000);
}

/// A view of a code at a time after the start, with so much left of its life. Redis has a clock of its own, which goes on
/// while a test runs.
fn assert_view(view: &serde_json::Value, code: &str, at: i64, left: i64) {
    assert_eq!((&view["orderNo"], &view["verifyCode"]), (&json!("BK1"), &json!(code)));
    assert_eq!(view["serverTime"], START + at);
    let got = view["expireTime"].as_i64().unwrap() - START - at;
    assert!((left - 9_000..=left).contains(&got), "{got} of {left} ms left");
}

#[apply(every_store)]
async fn the_life_of_a_code_is_a_setting(stores: Stores) {
    let venue = Venue::open_with(stores, |config| config.verify_code.ttl = 5).await;
    venue.put_order("BK1", &Order::paid()).await;
    let left = venue.visitor().await.verify_code("BK1").await.ok()["expireTime"].as_i64().unwrap() - START;
    assert!((1_000..=5_000).contains(&left), "{left}");
}

#[apply(every_store)]
async fn somebody_elses_order_and_no_order_have_one_answer(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_order("BK1", &Order::paid()).await;
    venue.put_order("BK2", &Order::paid().with("mobile", "13800000002")).await;
    let visitor = venue.visitor().await;
    let unknown = visitor.verify_code("NOWHERE").await;
    unknown.refused(404, 2001);
    assert_eq!(visitor.verify_code("BK2").await.text, unknown.text);
}

#[apply(every_store)]
async fn only_a_paid_order_has_a_code(stores: Stores) {
    let venue = Venue::open(stores).await;
    for status in ["pending_payment", "refunding", "refunded", "cancelled"] {
        venue.put_order(status, &Order::paid().with("status", status)).await;
        let data = venue.visitor().await.verify_code(status).await.refused(409, 2002);
        assert_eq!(data, json!({"status": status, "consumedAt": null}), "a visitor is not told who and where");
    }
    let code = venue.paid_order_with_code("BK1").await;
    venue.guide().await.redeem("BK1", &code).await.ok();
    let data = venue.visitor().await.verify_code("BK1").await.refused(409, 2002);
    assert_eq!(data, json!({"status": "consumed", "consumedAt": START}));
}

#[apply(every_store)]
async fn a_visitor_sees_their_own_orders_alone(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_order("BK2", &Order::paid().with("visitAt", START + 1)).await;
    venue.put_order("BK1", &Order::paid().with("taskNo", json!(null))).await;
    venue.put_order("BK3", &Order::paid().with("mobile", "13800000002")).await;
    // Earlier ones come last, and the latest of them first.
    for (order_no, days) in [("OLD2", 2), ("OLD1", 1), ("OLD3", 3)] {
        venue.put_order(order_no, &Order::paid().with("visitAt", START - days * 86_400_000)).await;
    }
    let all = venue.visitor().await.get("/app-api/team/booking/booking/list").await.ok();
    let numbers: Vec<&str> = all.as_array().unwrap().iter().map(|order| order["orderNo"].as_str().unwrap()).collect();
    assert_eq!(numbers, ["BK1", "BK2", "OLD1", "OLD2", "OLD3"]);
    let orders = venue.visitor().await.get("/app-api/team/booking/booking/list").await.ok();
    assert_eq!(
        json!(orders.as_array().unwrap()[..2]),
        json!([
            {"orderNo": "BK1", "visitorName": "张伟", "partySize": 4, "visitAt": START, "status": "paid", "consumedAt": null, "title": null, "venue": null},
            {"orderNo": "BK2", "visitorName": "张伟", "partySize": 4, "visitAt": START + 1, "status": "paid", "consumedAt": null, "title": "晨光古城徒步", "venue": "东门广场"},
        ])
    );
}
