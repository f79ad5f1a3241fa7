//! The guide's side: tasks of a day and their orders.

use crate::every_store;
use api_tests::{Order, START, Stores, Venue};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;

const DAY: i64 = 24 * 60 * 60 * 1000;

#[apply(every_store)]
async fn a_guide_sees_their_own_tasks_of_a_day_in_the_venues_zone(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_guide("13900000002", "周航").await;
    venue.put_task("T2", &["13900000002"]).await;
    // 00:30 in Shanghai on 2 August, still 1 August in UTC.
    let late = json!({"title": "夜游", "venue": "码头", "startsAt": START + 15 * 3_600_000 + 1_800_000, "endsAt": START + DAY, "guideMobiles": ["13900000001"]});
    venue.machine().put("/open-api/tasks/T3", &late).await.ok();
    let statuses = ["paid", "consumed", "paid", "cancelled", "refunded", "pending_payment"];
    for (n, status) in statuses.into_iter().enumerate() {
        venue.put_order(&format!("BK{n}"), &Order::paid().with("status", status)).await;
    }
    let guide = venue.guide().await;
    let numbers = |tasks: serde_json::Value| -> Vec<String> {
        tasks.as_array().unwrap().iter().map(|t| t["taskNo"].as_str().unwrap().to_owned()).collect()
    };
    let list = "/app-api/team/guide-task/list";
    let today = guide.get(list).await.ok();
    assert_eq!(
        today,
        json!([{"taskNo": "T1", "title": "晨光古城徒步", "venue": "东门广场", "startsAt": START, "endsAt": START + 7_200_000, "total": 3, "paid": 2, "consumed": 1}])
    );
    assert_eq!(guide.get(&format!("{list}?date=2026-08-01")).await.ok(), today);
    assert_eq!(numbers(guide.get(&format!("{list}?date=2026-08-02")).await.ok()), ["T3"]);
    assert!(numbers(guide.get(&format!("{list}?date=2026-07-31")).await.ok()).is_empty());
}

#[apply(every_store)]
async fn a_tasks_orders_show_masked_names_to_its_own_guides(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_order("BK1", &Order::paid().with("visitorName", "欧阳明月")).await;
    let orders = venue.guide().await.get("/app-api/team/guide-task/t1/orders").await.ok();
    assert_eq!(
        orders,
        json!([{"orderNo": "BK1", "visitorName": "欧阳*", "partySize": 4, "visitAt": START, "status": "paid", "consumedAt": null}])
    );
    venue.put_guide("13900000002", "周航").await;
    let stranger = venue.sign_in("13900000002").await;
    stranger.get("/app-api/team/guide-task/T1/orders").await.refused(404, 1404);
    stranger.get("/app-api/team/guide-task/T9/orders").await.refused(404, 1404);
}

#[apply(every_store)]
async fn a_guide_who_is_taken_off_a_task_redeems_its_orders_no_more(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    venue.put_task("T1", &[]).await;
    guide.redeem("BK1", &code).await.refused(404, 2001);
    venue.put_task("T1", &["13900000001"]).await;
    guide.redeem("BK1", &code).await.ok();
}
