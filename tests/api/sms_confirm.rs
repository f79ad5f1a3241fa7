//! Compensation and reversal: an admin's two ways around a verify code, each confirmed by an SMS code to the own number.

use crate::every_code_store;
use api_tests::receiver::Receiver;
use api_tests::{Answer, Caller, Gateway, Order, Stores, Venue};
use futures::future::join_all;
use guidepost_server::Config;
use guidepost_server::accounts::create;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::{Value, json};
use std::time::Duration;
use wire::{Mobile, TenantId};

const ADMIN: &str = "+8613600000001";

async fn open(stores: Stores, change: impl FnOnce(&mut Config)) -> (Venue, Gateway, Caller) {
    let (venue, gateway) = Venue::open_with_gateway(stores, change).await;
    let admin = admin(&venue, "chief", Some(ADMIN)).await;
    (venue, gateway, admin)
}

async fn admin(venue: &Venue, username: &str, mobile: Option<&str>) -> Caller {
    let mobile = mobile.map(|mobile| Mobile::parse(mobile).unwrap());
    let made = create::admin(venue.server.app(), TenantId(1), username, mobile.as_ref(), None).await.unwrap().unwrap();
    let body = json!({"username": username, "password": made.expose()});
    let signed_in = venue.nobody().post("/api/auth/login", &body).await.ok();
    venue.bearer(signed_in["token"].as_str().unwrap())
}

/// A new code to the admin's own number.
async fn code(venue: &Venue, gateway: &Gateway, admin: &Caller) -> String {
    venue.advance(Duration::from_secs(60)).await;
    admin.post("/api/sms/send", &json!({"scene": "confirm"})).await.ok();
    gateway.code_of(ADMIN)
}

async fn ask(admin: &Caller, order_no: &str, what: &str, code: &str) -> Answer {
    let path = format!("/admin-api/team/booking-order/{order_no}/{what}");
    admin.post(&path, &json!({"reason": "手机摔坏了", "code": code})).await
}

#[apply(every_code_store)]
async fn an_admin_compensates_and_takes_it_back(stores: Stores) {
    let receiver = Receiver::open().await;
    let hook = receiver.config("booking");
    let (venue, gateway, admin) = open(stores, |config| config.web_hooks = vec![hook]).await;
    let verify_code = venue.paid_order_with_code("BK1").await;

    let sms = code(&venue, &gateway, &admin).await;
    let done = ask(&admin, "bk1", "compensate", &sms).await.ok();
    assert_eq!(done, json!({"orderNo": "BK1", "status": "consumed", "taskNo": "T1"}));
    assert_eq!(venue.status("BK1").await, "consumed");
    // It stands: neither the verify code nor another compensation redeems it again.
    let refused = venue.guide().await.redeem("BK1", &verify_code).await.refused(409, 2002);
    assert_eq!((&refused["status"], &refused["consumedBy"]), (&json!("consumed"), &json!("chief")));
    let sms = code(&venue, &gateway, &admin).await;
    ask(&admin, "BK1", "compensate", &sms).await.refused(409, 2002);
    // The code of a refusal by status was not used up.
    ask(&admin, "BK1", "reverse", &sms).await.ok();
    assert_eq!(venue.status("BK1").await, "paid");
    let sms = code(&venue, &gateway, &admin).await;
    assert_eq!(ask(&admin, "BK1", "reverse", &sms).await.refused(409, 1409)["status"], "paid");

    // The visitor gets a new code, which redeems again.
    let verify_code = venue.visitor().await.verify_code("BK1").await.ok()["verifyCode"].as_str().unwrap().to_owned();
    venue.guide().await.redeem("BK1", &verify_code).await.ok();
    let rows = "SELECT COUNT(*) FROM redemption WHERE result = 0 AND reason = '手机摔坏了' AND operator_type = 'admin'";
    assert_eq!(venue.count(rows).await, 2);
    assert_eq!(venue.count("SELECT COUNT(*) FROM redemption WHERE standing_order_id IS NOT NULL").await, 1);

    let started = std::time::Instant::now();
    while receiver.received().len() < 3 {
        assert!(started.elapsed() < Duration::from_secs(60), "the web hook was not told");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let told: Vec<Value> =
        receiver.received().iter().map(|r| json!([r.event, r.body["statusBefore"], r.body["operator"]])).collect();
    let want = json!([
        ["order.consumed", "paid", "chief"],
        ["order.reversed", "consumed", "chief"],
        ["order.consumed", "paid", "林悦"]
    ]);
    assert_eq!(json!(told), want);
}

#[apply(every_code_store)]
async fn without_a_right_code_nothing_is_compensated_or_reversed(stores: Stores) {
    let (venue, gateway, admin) = open(stores, |_| {}).await;
    venue.put_order("BK1", &Order::paid()).await;
    venue.put_order("BK2", &Order::paid().with("status", "consumed")).await;
    for (what, order_no, status) in [("compensate", "BK1", "paid"), ("reverse", "BK2", "consumed")] {
        let path = format!("/admin-api/team/booking-order/{order_no}/{what}");
        ask(&admin, order_no, what, "048392").await.refused(422, 4005);
        let sms = code(&venue, &gateway, &admin).await;
        let wrong = if sms == "111111" { "222222" } else { "111111" };
        ask(&admin, order_no, what, wrong).await.refused(422, 4004);
        assert_eq!(admin.post(&path, &json!({"reason": "", "code": sms})).await.refused(400, 1400)["field"], "reason");
        assert_eq!(
            admin.post(&path, &json!({"reason": "x", "code": "48392"})).await.refused(400, 1400)["field"],
            "code"
        );
        ask(&venue.guide().await, order_no, what, &sms).await.refused(403, 1403);
        ask(&admin, "NOWHERE", what, &sms).await.refused(404, 2001);
        assert_eq!(venue.status(order_no).await, status);
        // Each refusal that concerns the order is in the audit, without any code.
        let codes: Vec<i64> = venue.results(order_no).await.into_iter().filter(|result| *result != 0).collect();
        assert_eq!(codes, [4005, 4004]);
        // After all of that the code still counts, and then no more.
        ask(&admin, order_no, what, &sms).await.ok();
        let (other, back) = if what == "compensate" { ("reverse", order_no) } else { ("compensate", order_no) };
        ask(&admin, back, other, &sms).await.refused(422, 4005);
    }
}

#[apply(every_code_store)]
async fn a_confirmation_goes_to_the_own_number_and_nowhere_else(stores: Stores) {
    let (venue, gateway, chief) = open(stores, |_| {}).await;
    let without = admin(&venue, "boss", None).await;
    let send = async |caller: &Caller, body: Value| caller.post("/api/sms/send", &body).await;
    assert_eq!(send(&without, json!({"scene": "confirm"})).await.refused(403, 1403)["reason"], "no_mobile");
    // Nor to a number of a country to which nothing is sent.
    let abroad = admin(&venue, "abroad", Some("+12025550123")).await;
    send(&abroad, json!({"scene": "confirm"})).await.refused(400, 4001);
    send(&chief, json!({"scene": "confirm", "mobile": "13800000009"})).await.refused(403, 1403);
    send(&chief, json!({"scene": "confirm", "mobile": "13600000001"})).await.ok();
    assert_eq!(gateway.messages().len(), 1);
    venue.put_order("BK1", &Order::paid()).await;
    // Another admin's code, and a code of another scene for the right number.
    let other = admin(&venue, "other", Some("+8613600000002")).await;
    ask(&other, "BK1", "compensate", &gateway.code_of(ADMIN)).await.refused(422, 4005);
    ask(&without, "BK1", "compensate", &gateway.code_of(ADMIN)).await.refused(403, 1403);
    venue.nobody().send_sms("13600000002", "login").await.ok();
    ask(&other, "BK1", "compensate", &gateway.code_of("+8613600000002")).await.refused(422, 4005);
    assert_eq!(venue.status("BK1").await, "paid");
}

/// A guide redeems and an admin compensates, at the same moment.
#[apply(every_code_store)]
async fn a_redemption_and_a_compensation_at_once_have_one_winner(stores: Stores) {
    let (venue, gateway, admin) = open(stores, |config| {
        config.sms.scenes.entry("confirm".to_owned()).or_default().hourly = 100;
        config.sms.scenes.entry("confirm".to_owned()).or_default().daily = 100;
        config.limits.consume.operator = 1000;
    })
    .await;
    for n in 0..10 {
        let sms = code(&venue, &gateway, &admin).await;
        let order_no = format!("BK{n}");
        let verify_code = venue.paid_order_with_code(&order_no).await;
        let guide = venue.guide().await;
        let chief = venue.sign_in("13600000001").await;
        let (redeemed, compensated) =
            tokio::join!(guide.redeem(&order_no, &verify_code), ask(&chief, &order_no, "compensate", &sms));
        let codes = [redeemed.code(), compensated.code()];
        assert!([[0, 2002], [2002, 0]].contains(&codes), "{codes:?}");
        let successes = venue.results(&order_no).await.into_iter().filter(|result| *result == 0).count();
        assert_eq!(successes, 1, "one order, one redemption");
    }
}

#[apply(every_code_store)]
async fn of_many_reversals_at_once_one_succeeds(stores: Stores) {
    let (venue, gateway, admin) = open(stores, |config| config.limits.sms.wrong = 1000).await;
    let verify_code = venue.paid_order_with_code("BK1").await;
    venue.guide().await.redeem_as("BK1", &verify_code, "r-1").await.ok();
    let sms = code(&venue, &gateway, &admin).await;
    let answers = join_all((0..20).map(|_| ask(&admin, "BK1", "reverse", &sms))).await;
    assert_eq!(answers.iter().filter(|answer| answer.code() == 0).count(), 1);
    assert!(answers.iter().all(|answer| [0, 1409, 4005].contains(&answer.code())));
    // The request id of what was reversed is no success any more.
    venue.guide().await.redeem_as("BK1", &verify_code, "r-1").await.refused(409, 1409);
}
