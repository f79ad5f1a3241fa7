//! By code alone: the manual fallback with nothing but six digits.

use crate::every_store;
use api_tests::{Answer, Caller, Order, START, Stores, Venue};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use std::time::Duration;

async fn by_code(guide: &Caller, code: &str) -> Answer {
    guide.post("/app-api/team/guide-task/booking/consume-by-code", &json!({"verifyCode": code})).await
}

async fn by_code_in(guide: &Caller, code: &str, task_no: &str) -> Answer {
    let body = json!({"verifyCode": code, "taskNo": task_no});
    guide.post("/app-api/team/guide-task/booking/consume-by-code", &body).await
}

#[apply(every_store)]
async fn six_digits_redeem_the_one_order_that_has_them(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([483_921, 725_310]);
    venue.paid_order_with_code("BK1").await;
    venue.paid_order_with_code("BK2").await;
    let guide = venue.guide().await;
    let answer = by_code(&guide, " ７２５ 310 ").await.ok();
    assert_eq!((&answer["orderNo"], &answer["replayed"]), (&json!("BK2"), &json!(false)));
    assert_eq!(venue.status("BK1").await, "paid");
    // Used, it is alive no more.
    by_code(&guide, "725310").await.refused(422, 2003);
}

#[apply(every_store)]
async fn a_code_that_two_orders_have_is_left_to_the_desk(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([483_921, 483_921]);
    venue.paid_order_with_code("BK1").await;
    venue.paid_order_with_code("BK2").await;
    let guide = venue.guide().await;
    // More often than the limit of failures: an ambiguous code is none.
    for _ in 0..7 {
        assert_eq!(
            by_code(&guide, "483921").await.refused(409, 2006),
            json!({"candidates": [
                {"orderNo": "BK1", "visitorName": "张*", "partySize": 4}, {"orderNo": "BK2", "visitorName": "张*", "partySize": 4},
            ]})
        );
    }
    guide.redeem("BK2", "483921").await.ok();
    assert_eq!(by_code(&guide, "483921").await.ok()["orderNo"], "BK1");
}

#[apply(every_store)]
async fn it_looks_among_the_callers_own_tasks_of_today_alone(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([483_921, 725_310]);
    venue.put_guide("13900000002", "周航").await;
    venue.put_task("T2", &["13900000002"]).await;
    let tomorrow = START + 24 * 3_600_000;
    let body =
        json!({"title": "x", "venue": "y", "startsAt": tomorrow, "endsAt": tomorrow, "guideMobiles": ["13900000001"]});
    venue.machine().put("/open-api/tasks/T3", &body).await.ok();
    venue.put_order("BK1", &Order::paid().with("taskNo", "T2")).await;
    venue.put_order("BK2", &Order::paid().with("taskNo", "T3")).await;
    let visitor = venue.visitor().await;
    for order_no in ["BK1", "BK2"] {
        visitor.verify_code(order_no).await.ok();
    }
    let guide = venue.guide().await;
    by_code(&guide, "483921").await.refused(422, 2003);
    by_code(&guide, "725310").await.refused(422, 2003);
    by_code_in(&guide, "483921", "T2").await.refused(404, 2001);
    by_code_in(&guide, "483921", "T9").await.refused(404, 2001);
    assert_eq!(by_code_in(&guide, "725310", "t3").await.ok()["orderNo"], "BK2");
}

#[apply(every_store)]
async fn its_failures_have_a_tighter_limit_and_touch_no_orders_count(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([483_921]);
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    for _ in 0..5 {
        by_code(&guide, "100000").await.refused(422, 2003);
    }
    let wait = by_code(&guide, &code).await.refused(429, 2005)["retryAfter"].as_i64().unwrap();
    assert!((590..=600).contains(&wait), "{wait}");
    guide.redeem("BK1", &code).await.ok();
    venue.advance(Duration::from_secs(600)).await;
    by_code(&guide, "100000").await.refused(422, 2003);
}

#[apply(every_store)]
async fn it_obeys_orders_locks(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([483_921]);
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    for _ in 0..5 {
        guide.redeem("BK1", "100000").await.refused(422, 2003);
    }
    by_code(&guide, &code).await.refused(429, 2005);
}

#[apply(every_store)]
async fn a_repeat_is_known_by_its_request_id(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    let body = json!({"verifyCode": code, "requestId": "r-1"});
    let path = "/app-api/team/guide-task/booking/consume-by-code";
    assert_eq!(guide.post(path, &body).await.ok()["replayed"], false);
    assert_eq!(guide.post(path, &body).await.ok()["replayed"], true);
    assert_eq!(venue.results("BK1").await, [0]);
}

/// Two orders with one code are two, even if somebody has locked one of them by guessing.
#[apply(every_store)]
async fn a_locked_order_is_a_candidate_like_the_others(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([483_921, 483_921]);
    venue.paid_order_with_code("BK1").await;
    venue.paid_order_with_code("BK2").await;
    let guide = venue.guide().await;
    for _ in 0..5 {
        guide.redeem("BK1", "100000").await.refused(422, 2003);
    }
    let data = by_code(&guide, "483921").await.refused(409, 2006);
    assert_eq!(data["candidates"].as_array().unwrap().len(), 2);
    assert_eq!((venue.status("BK1").await, venue.status("BK2").await), ("paid".to_owned(), "paid".to_owned()));
    assert_eq!(venue.results("BK2").await, [2006]);
    guide.redeem("BK1", "483921").await.refused(429, 2005);
    guide.redeem("BK2", "483921").await.ok();
}

/// A hand that taps several times: all answers are the one success, however far each had got when the first committed.
#[apply(every_store)]
async fn the_same_digits_several_times_at_once_are_one_success(stores: Stores) {
    let venue = Venue::open(stores).await;
    let guide = venue.guide().await;
    for n in 0..10 {
        let order_no = format!("BK{n}");
        let body = json!({"verifyCode": venue.paid_order_with_code(&order_no).await, "requestId": order_no});
        let taps = (0..4).map(|_| guide.post("/app-api/team/guide-task/booking/consume-by-code", &body));
        let answers = futures::future::join_all(taps).await;
        let first = answers.into_iter().filter(|answer| answer.ok()["replayed"] == false).count();
        assert_eq!((first, venue.results(&order_no).await), (1, vec![0]));
    }
}

#[apply(every_store)]
async fn a_lock_and_a_limit_are_in_the_audit(stores: Stores) {
    let venue = Venue::open(stores).await;
    let guide = venue.guide().await;
    let code = venue.paid_order_with_code("BK1").await;
    for _ in 0..5 {
        guide.redeem("BK1", "100000").await.refused(422, 2003);
    }
    by_code(&guide, &code).await.refused(429, 2005);
    assert_eq!(venue.results("BK1").await, [2003, 2003, 2003, 2003, 2003, 2005]);
    venue.admin().await.post("/admin-api/guides/1/freeze", &json!({})).await.ok();
    by_code(&guide, &code).await.refused(403, 2007);
    by_code(&guide, &code).await.refused(403, 2007);
    assert_eq!(venue.count("SELECT COUNT(*) FROM redemption WHERE result = 2007").await, 1);
}

#[apply(every_store)]
async fn its_limit_leaves_one_row_an_operator_and_minute(stores: Stores) {
    let venue = Venue::open(stores).await;
    let (guide, admin) = (venue.guide().await, venue.admin().await);
    for _ in 0..5 {
        by_code(&guide, "100000").await.refused(422, 2003);
    }
    for _ in 0..3 {
        by_code(&guide, "100000").await.refused(429, 2005);
    }
    venue.advance(Duration::from_secs(60)).await;
    by_code(&guide, "100000").await.refused(429, 2005);
    let rows = admin.get("/admin-api/redemptions?result=2005").await.ok();
    let rows: Vec<_> = rows["items"].as_array().unwrap().iter().map(|row| (&row["operator"], &row["at"])).collect();
    assert_eq!(rows, [(&json!("林悦"), &json!(START + 60_000)), (&json!("林悦"), &json!(START))]);
}

/// That another order is redeemed in the same moment makes no guess at a code a harmless one.
#[apply(every_store)]
async fn a_wrong_code_beside_a_redemption_is_a_wrong_code(stores: Stores) {
    let venue = Venue::open(stores).await;
    let guide = venue.guide().await;
    venue.put_guide("13900000002", "周航").await;
    venue.put_task("T1", &["13900000001", "13900000002"]).await;
    let other = venue.sign_in("13900000002").await;
    for n in 0..5 {
        let order_no = format!("BK{n}");
        let code = venue.paid_order_with_code(&order_no).await;
        let wrong = if code == "100000" { "100001" } else { "100000" };
        let (redeemed, guessed) = tokio::join!(guide.redeem(&order_no, &code), by_code(&other, wrong));
        redeemed.ok();
        guessed.refused(422, 2003);
        assert_eq!(venue.results(&order_no).await, [0]);
    }
    by_code(&other, "100000").await.refused(429, 2005);
}
