//! `/open-api/sms`: codes for other systems of the house.

use crate::every_code_store;
use api_tests::{Gateway, Stores, Venue};
use guidepost_server::config::SceneConfig;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use std::time::Duration;

const MOBILE: &str = "13800000001";
const E164: &str = "+8613800000001";

async fn open(stores: Stores) -> (Venue, Gateway) {
    Venue::open_with_gateway(stores, |config| {
        // Gates of people do not stand before a machine.
        config.limits.sms.ip = 1;
        config.limits.sms.captcha_number = 0;
        let scene = SceneConfig { ttl: 120, cooldown: 30, daily: 2, ..SceneConfig::default() };
        config.sms.scenes.insert("shop_pay".to_owned(), scene);
    })
    .await
}

#[apply(every_code_store)]
async fn a_machine_sends_and_verifies_once(stores: Stores) {
    let (venue, gateway) = open(stores).await;
    let send = json!({"mobile": MOBILE, "scene": "shop_pay"});
    assert_eq!(
        venue.machine().post("/open-api/sms/send", &send).await.ok(),
        json!({"expireIn": 120, "retryAfter": 30})
    );
    let code = gateway.code_of(E164);
    let verify = |code: &str| json!({"mobile": MOBILE, "scene": "shop_pay", "code": code, "requestId": "r-1"});
    let wrong = if code == "111111" { "222222" } else { "111111" };
    let path = "/open-api/sms/verify";
    assert_eq!(venue.machine().post(path, &verify(wrong)).await.refused(422, 4004), json!({"remaining": 4}));
    venue.nobody().post(path, &verify(&code)).await.refused(401, 1401);
    assert_eq!(venue.machine().post(path, &verify(&code)).await.ok(), json!({"verified": true}));
    venue.machine().post(path, &verify(&code)).await.ok();
    venue.advance(Duration::from_secs(10)).await;
    venue.machine().post(path, &verify(&code)).await.refused(422, 4005);
    // It opens no account.
    venue.nobody().sms_login(MOBILE, &code).await.refused(422, 4005);
    // The number's limits hold.
    venue.machine().post("/open-api/sms/send", &send).await.refused(429, 4002);
    venue.advance(Duration::from_secs(30)).await;
    venue.machine().post("/open-api/sms/send", &send).await.ok();
    venue.advance(Duration::from_secs(30)).await;
    venue.machine().post("/open-api/sms/send", &send).await.refused(429, 4003);
}

#[apply(every_code_store)]
async fn the_products_own_scenes_are_no_business_of_machines_nor_theirs_of_people(stores: Stores) {
    let (venue, gateway) = open(stores).await;
    for scene in ["login", "register", "reset_password", "change_mobile", "confirm", "nonsense", ""] {
        let body = json!({"mobile": MOBILE, "scene": scene, "code": "123456"});
        venue.machine().post("/open-api/sms/send", &body).await.refused(400, 4010);
        venue.machine().post("/open-api/sms/verify", &body).await.refused(400, 4010);
    }
    venue.nobody().send_sms(MOBILE, "shop_pay").await.refused(400, 4010);
    let machine = venue.machine();
    machine.post("/open-api/sms/send", &json!({"mobile": "x", "scene": "shop_pay"})).await.refused(400, 4001);
    let both = json!({"mobile": MOBILE, "email": "a@example.org", "scene": "shop_pay"});
    for body in [json!({"scene": "shop_pay"}), both, json!({"email": "a@example", "scene": "shop_pay"})] {
        machine.post("/open-api/sms/send", &body).await.refused(400, 1400);
    }
    assert_eq!(gateway.messages().len(), 0);
}
