//! Redeeming: every outcome of `POST …/consume`.

use crate::every_store;
use api_tests::{Order, START, Stores, Venue};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use std::time::Duration;

#[apply(every_store)]
async fn a_code_redeems_only_once(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    assert_eq!(
        guide.redeem("BK1", &code).await.ok(),
        json!({
            "orderNo": "BK1", "status": "consumed", "consumedAt": START, "visitorName": "张伟", "partySize": 4,
            "visitAt": START, "taskNo": "T1", "replayed": false,
        })
    );
    venue.advance(Duration::from_secs(1)).await;
    assert_eq!(
        guide.redeem("BK1", &code).await.refused(409, 2002),
        json!({"status": "consumed", "consumedAt": START, "consumedBy": "林悦", "device": null})
    );
    assert_eq!(venue.status("BK1").await, "consumed");
    assert_eq!(venue.results("BK1").await, [0, 2002]);
}

#[apply(every_store)]
async fn absent_wrong_and_expired_codes_have_one_answer_and_destroy_nothing(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([483_921, 725_310]);
    venue.put_order("BK1", &Order::paid()).await;
    let guide = venue.guide().await;
    let absent = guide.redeem("BK1", "483921").await;
    absent.refused(422, 2003);
    let visitor = venue.visitor().await;
    assert_eq!(visitor.verify_code("BK1").await.ok()["verifyCode"], "483921");
    let wrong = guide.redeem("BK1", "483922").await;
    venue.advance(Duration::from_secs(60)).await;
    let expired = guide.redeem("BK1", "483921").await;
    assert_eq!((&absent.text, &wrong.text), (&wrong.text, &expired.text));
    assert_eq!(visitor.verify_code("BK1").await.ok()["verifyCode"], "725310");
    guide.redeem("BK1", "483921").await.refused(422, 2003);
    guide.redeem("BK1", "725310").await.ok();
    assert_eq!(venue.results("BK1").await, [2003, 2003, 2003, 2003, 0]);
}

/// Redis has a clock of its own, which goes on while a test runs.
fn nearly_a_minute(stores: Stores) -> Duration {
    if stores == Stores::SqliteMemory { Duration::from_millis(59_999) } else { Duration::from_secs(50) }
}

#[apply(every_store)]
async fn a_code_is_alive_to_its_last_millisecond(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    venue.advance(nearly_a_minute(stores)).await;
    guide.redeem("BK1", &code).await.ok();
}

#[apply(every_store)]
async fn what_people_type_is_cleaned(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([483_921]);
    venue.paid_order_with_code("BK-1_A").await;
    let answer = venue.guide().await.redeem("\u{feff} bk -\u{200b}１_a\n", " ４８３\u{200b}９２１ ").await;
    assert_eq!(answer.ok()["orderNo"], "BK-1_A");
}

#[apply(every_store)]
async fn orders_that_are_not_the_guides_have_one_answer_with_any_code(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    venue.put_guide("13900000002", "周航").await;
    venue.put_task("T2", &["13900000002"]).await;
    venue.put_order("BK2", &Order::paid().with("taskNo", json!(null))).await;
    venue.put_order("BK3", &Order::paid().with("status", "refunded")).await;
    let stranger = venue.sign_in("13900000002").await;
    let unknown = stranger.redeem("NOWHERE", &code).await;
    unknown.refused(404, 2001);
    for (order_no, code) in [("BK1", code.as_str()), ("BK1", "100000"), ("BK2", "100000"), ("BK3", "100000")] {
        assert_eq!(stranger.redeem(order_no, code).await.text, unknown.text, "{order_no}");
    }
    assert_eq!(venue.status("BK1").await, "paid");
    assert!(venue.results("BK1").await.is_empty(), "what is out of reach leaves no row");
}

#[apply(every_store)]
async fn an_admin_redeems_any_order_of_the_tenant(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_order("BK1", &Order::paid().with("taskNo", json!(null))).await;
    let code = venue.visitor().await.verify_code("BK1").await.ok()["verifyCode"].as_str().unwrap().to_owned();
    venue.guide().await.redeem("BK1", &code).await.refused(404, 2001);
    let admin = venue.admin().await;
    admin.redeem_as_admin("BK1", "100000").await.refused(422, 2003);
    assert_eq!(admin.redeem_as_admin("BK1", &code).await.ok()["taskNo"], json!(null));
    assert_eq!(admin.redeem_as_admin("BK1", &code).await.refused(409, 2002)["consumedBy"], "boss");
}

#[apply(every_store)]
async fn an_order_that_is_not_paid_says_where_it_stands_before_any_code_is_looked_at(stores: Stores) {
    let venue = Venue::open(stores).await;
    let guide = venue.guide().await;
    for status in ["pending_payment", "refunding", "refunded", "cancelled"] {
        venue.put_order(status, &Order::paid().with("status", status)).await;
        let data = guide.redeem(status, "483921").await.refused(409, 2002);
        assert_eq!(data, json!({"status": status, "consumedAt": null, "consumedBy": null, "device": null}));
    }
    venue.put_order("OLD", &Order::paid().with("status", "consumed")).await;
    let data = guide.redeem("OLD", "483921").await.refused(409, 2002);
    assert_eq!(data, json!({"status": "consumed", "consumedAt": START, "consumedBy": null, "device": null}));
}

#[apply(every_store)]
async fn the_same_request_id_gets_the_first_success_back_and_changes_nothing(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    let mut first = guide.redeem_as("BK1", &code, "attempt-1").await.ok();
    venue.advance(Duration::from_secs(300)).await;
    // The code is long dead by now; a repeat is looked up before anything else.
    let again = guide.redeem_as("bk1 ", "999999", "attempt-1").await.ok();
    first["replayed"] = json!(true);
    assert_eq!(again, first);
    assert_eq!(venue.results("BK1").await, [0]);
}

#[apply(every_store)]
async fn a_request_id_belongs_to_one_order_and_one_operator(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_guide("13900000002", "周航").await;
    venue.put_task("T1", &["13900000001", "13900000002"]).await;
    let code = venue.paid_order_with_code("BK1").await;
    let other_code = venue.paid_order_with_code("BK2").await;
    let (guide, colleague) = (venue.guide().await, venue.sign_in("13900000002").await);
    guide.redeem_as("BK1", &code, "attempt-1").await.ok();
    assert_eq!(guide.redeem_as("BK2", &other_code, "attempt-1").await.refused(409, 1409), json!(null));
    assert_eq!(venue.status("BK2").await, "paid");
    colleague.redeem_as("BK1", &code, "attempt-1").await.refused(409, 2002);
    assert_eq!(colleague.redeem_as("BK2", &other_code, "attempt-1").await.ok()["replayed"], false);
}

#[apply(every_store)]
async fn refusals_are_not_remembered(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    let wrong = if code == "100000" { "100001" } else { "100000" };
    guide.redeem_as("BK1", wrong, "attempt-1").await.refused(422, 2003);
    assert_eq!(guide.redeem_as("BK1", &code, "attempt-1").await.ok()["replayed"], false);
}

#[apply(every_store)]
async fn a_code_of_one_order_is_worth_nothing_for_another(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([483_921, 725_310]);
    let code = venue.paid_order_with_code("BK1").await;
    venue.paid_order_with_code("BK2").await;
    let guide = venue.guide().await;
    guide.redeem("BK2", &code).await.refused(422, 2003);
    guide.redeem("BK1", &code).await.ok();
}

#[apply(every_store)]
async fn how_the_code_came_and_from_where_is_in_the_audit(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let body = json!({"orderNo": "BK1", "verifyCode": code, "requestId": "r-1", "entry": "manual"});
    venue.guide().await.post("/app-api/team/guide-task/booking/consume", &body).await.ok();
    let row: (String, String, String, String, String, String, i64) = sqlx::query_as(
        "SELECT request_id, operator_type, entry, address, status_before, status_after, at FROM redemption",
    )
    .fetch_one(&venue.database().await)
    .await
    .unwrap();
    let text = |s: &str| s.to_owned();
    let want = (text("r-1"), text("guide"), text("manual"), text("127.0.0.1"), text("paid"), text("consumed"), START);
    assert_eq!(row, want);
}

#[apply(every_store)]
async fn a_database_that_does_not_answer_is_503_and_the_code_works_afterwards(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    let blocker = venue.block("BK1").await;
    guide.redeem_as("BK1", &code, "attempt-1").await.refused(503, 1503);
    blocker.rollback().await.unwrap();
    assert_eq!(guide.redeem_as("BK1", &code, "attempt-1").await.ok()["replayed"], false);
    assert_eq!(venue.results("BK1").await, [0]);
}
