//! Grace and rotation: codes that ran out, and codes that somebody saw.

use crate::every_store;
use api_tests::{Answer, Caller, Order, Stores, Venue};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use std::time::Duration;

async fn rotate(visitor: &Caller, order_no: &str) -> Answer {
    let body = json!({"orderNo": order_no, "confirm": true});
    visitor.post("/app-api/team/booking/booking/verify-code/rotate", &body).await
}

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[apply(every_store)]
async fn a_rotated_code_is_dead_at_once_grace_included(stores: Stores) {
    let venue = Venue::open_with(stores, |config| config.verify_code.grace = 10).await;
    venue.random.next([483_921, 725_310]);
    venue.paid_order_with_code("BK1").await;
    let (visitor, guide) = (venue.visitor().await, venue.guide().await);
    assert_eq!(rotate(&visitor, "BK1").await.ok()["verifyCode"], "725310");
    guide.redeem("BK1", "483921").await.refused(422, 2003);
    assert_eq!(visitor.verify_code("BK1").await.ok()["verifyCode"], "725310");
    guide.redeem("BK1", "725310").await.ok();
}

#[apply(every_store)]
async fn a_code_in_its_grace_is_killed_by_a_rotation(stores: Stores) {
    let venue = Venue::open_with(stores, |config| config.verify_code.grace = 10).await;
    venue.random.next([483_921, 725_310, 646_464]);
    venue.paid_order_with_code("BK1").await;
    venue.advance(seconds(61)).await;
    let (visitor, guide) = (venue.visitor().await, venue.guide().await);
    visitor.verify_code("BK1").await.ok();
    rotate(&visitor, "BK1").await.ok();
    guide.redeem("BK1", "483921").await.refused(422, 2003);
    guide.redeem("BK1", "725310").await.refused(422, 2003);
    guide.redeem("BK1", "646464").await.ok();
}

#[apply(every_store)]
async fn an_order_is_rotated_once_a_minute(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_order("BK1", &Order::paid()).await;
    venue.put_order("BK2", &Order::paid()).await;
    let visitor = venue.visitor().await;
    rotate(&visitor, "BK1").await.ok();
    let wait = rotate(&visitor, "BK1").await.refused(429, 1429)["retryAfter"].as_i64().unwrap();
    assert!((58..=60).contains(&wait), "{wait}");
    rotate(&visitor, "BK2").await.ok();
    venue.advance(seconds(60)).await;
    rotate(&visitor, "BK1").await.ok();
}

#[apply(every_store)]
async fn a_rotation_is_confirmed_and_of_ones_own_paid_order(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_order("BK1", &Order::paid()).await;
    venue.put_order("BK2", &Order::paid().with("mobile", "13800000002")).await;
    venue.put_order("BK3", &Order::paid().with("status", "refunding")).await;
    let visitor = venue.visitor().await;
    let path = "/app-api/team/booking/booking/verify-code/rotate";
    let unconfirmed = visitor.post(path, &json!({"orderNo": "BK1", "confirm": false})).await;
    assert_eq!(unconfirmed.refused(400, 1400)["field"], "confirm");
    assert_eq!(visitor.post(path, &json!({"orderNo": "BK1"})).await.refused(400, 1400)["field"], "confirm");
    rotate(&visitor, "BK2").await.refused(404, 2001);
    rotate(&visitor, "BK3").await.refused(409, 2002);
}

#[apply(every_store)]
async fn without_grace_a_code_that_ran_out_is_dead(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    venue.advance(seconds(60)).await;
    venue.guide().await.redeem("BK1", &code).await.refused(422, 2003);
}

#[apply(every_store)]
async fn with_grace_it_counts_a_little_longer_and_no_longer(stores: Stores) {
    let venue = Venue::open_with(stores, |config| config.verify_code.grace = 10).await;
    venue.random.next([483_921, 725_310, 483_921, 725_310]);
    let guide = venue.guide().await;
    venue.paid_order_with_code("BK1").await;
    venue.paid_order_with_code("BK2").await;
    venue.advance(seconds(65)).await;
    // Whether or not the visitor has asked for the next one by then.
    venue.visitor().await.verify_code("BK1").await.ok();
    guide.redeem("BK1", "483921").await.ok();
    venue.advance(seconds(6)).await;
    guide.redeem("BK2", "725310").await.refused(422, 2003);
}
