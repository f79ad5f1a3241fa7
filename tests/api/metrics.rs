//! `GET /metrics`: what is counted, seen over HTTP, and who may look.

use crate::every_code_store;
use crate::sms_captcha::solved;
use api_tests::{Gateway, Order, Stores, Venue};
use guidepost_server::config::Network;
use reqwest::Method;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;

const MOBILE: &str = "13800000001";
const E164: &str = "+8613800000001";

async fn metrics(venue: &Venue) -> String {
    let answer = venue.nobody().get("/metrics").await;
    assert_eq!(
        (answer.status, answer.headers["content-type"].to_str().unwrap()),
        (200, "text/plain; version=0.0.4; charset=utf-8")
    );
    answer.text
}

/// The first message's: further ones may have come since.
fn login_code(gateway: &Gateway) -> String {
    gateway.messages()[0]["params"]["code"].as_str().unwrap().to_owned()
}

/// The count of a line, nought where there is none.
fn count(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |count| count.parse().unwrap())
}

#[apply(every_code_store)]
async fn sends_refusals_tries_and_answers_are_counted(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| {
        config.limits.sms.captcha_number = 2;
        config.trusted_proxies = vec![Network::try_from("127.0.0.1".to_owned()).unwrap()];
    })
    .await;
    let nobody = venue.nobody();
    let before = metrics(&venue).await;
    nobody.send_sms(MOBILE, "login").await.ok();
    nobody.send_sms(MOBILE, "login").await.refused(429, 4002);
    let code = gateway.code_of(E164);
    let wrong = if code == "000000" { "000001" } else { "000000" };
    nobody.sms_login(MOBILE, wrong).await.refused(422, 4004);
    nobody.sms_login(MOBILE, &code).await.ok();
    nobody.sms_login(MOBILE, &code).await.refused(422, 4005);
    gateway.answer([401]);
    nobody.send_sms(MOBILE, "register").await.refused(502, 4008);
    nobody.send_sms(MOBILE, "reset_password").await.refused(403, 4007);
    // Neither a scene nor an address that a caller makes up becomes a label.
    nobody.send_sms(MOBILE, "13800000001").await.refused(400, 4010);
    let from_elsewhere = nobody.request(Method::POST, "/api/sms/send").header("x-forwarded-for", "203.0.113.77");
    let body = json!({"mobile": "19900000001", "scene": "login"});
    assert!(from_elsewhere.json(&body).send().await.unwrap().status().is_success());

    let after = metrics(&venue).await;
    for (name, more) in [
        (r#"guidepost_sms_sends_total{scene="login",via="sms",channel="gateway",outcome="sent"}"#, 2),
        (r#"guidepost_sms_sends_total{scene="register",via="sms",channel="none",outcome="not_taken"}"#, 1),
        (r#"guidepost_sms_refusals_total{scene="login",code="4002"}"#, 1),
        (r#"guidepost_sms_refusals_total{scene="reset_password",code="4007"}"#, 1),
        (r#"guidepost_sms_refusals_total{scene="other",code="4010"}"#, 1),
        (r#"guidepost_sms_tries_total{scene="login",outcome="right"}"#, 1),
        (r#"guidepost_sms_tries_total{scene="login",outcome="wrong"}"#, 1),
        (r#"guidepost_sms_tries_total{scene="login",outcome="expired"}"#, 1),
        (r#"guidepost_sms_captchas_total{scene="reset_password",event="demanded"}"#, 1),
        (r#"guidepost_sms_sends_by_number_total{range="138"}"#, 2),
        (r#"guidepost_sms_sends_by_number_total{range="199"}"#, 1),
        (r#"guidepost_sms_sends_by_address_total{range="127.0.0.0/16"}"#, 2),
        (r#"guidepost_sms_sends_by_address_total{range="203.0.0.0/16"}"#, 1),
        (r#"guidepost_sms_channel_answers_total{channel="gateway",class="taken"}"#, 2),
        (r#"guidepost_sms_channel_answers_total{channel="gateway",class="B"}"#, 1),
        (r#"guidepost_http_requests_total{status="5xx"}"#, 1),
    ] {
        assert_eq!(count(&after, name) - count(&before, name), more, "{name}\n{after}");
    }
    for secret in [MOBILE, E164, "0000001", code.as_str(), "203.0.113"] {
        assert!(!after.contains(secret), "{after}");
    }
}

#[apply(every_code_store)]
async fn a_locked_number_a_solved_captcha_and_a_channel_that_rests_are_counted(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| config.limits.sms.captcha_number = 1).await;
    let nobody = venue.nobody();
    nobody.send_sms(MOBILE, "login").await.ok();
    nobody.send_sms(MOBILE, "register").await.refused(403, 4007);
    let token = solved(&nobody, MOBILE, "register").await;
    nobody.post("/api/sms/send", &json!({"mobile": MOBILE, "scene": "register", "captchaToken": token})).await.ok();
    // Worth nothing a second time.
    nobody
        .post("/api/sms/send", &json!({"mobile": MOBILE, "scene": "register", "captchaToken": token}))
        .await
        .refused(403, 4007);
    let code = login_code(&gateway);
    let wrong = if code == "000000" { "000001" } else { "000000" };
    for _ in 0..5 {
        nobody.sms_login(MOBILE, wrong).await.refused(422, 4004);
    }
    nobody.sms_login(MOBILE, &code).await.refused(429, 4006);
    gateway.answer([401; 5]);
    for n in 0..5 {
        nobody.send_sms(&format!("1390000000{n}"), "login").await.refused(502, 4008);
    }
    let after = metrics(&venue).await;
    for (name, times) in [
        (r#"guidepost_sms_captchas_total{scene="register",event="demanded"}"#, 2),
        (r#"guidepost_sms_captchas_total{scene="register",event="solved"}"#, 1),
        (r#"guidepost_sms_tries_total{scene="login",outcome="locked"}"#, 1),
        (r#"guidepost_sms_channel_answers_total{channel="gateway",class="B"}"#, 5),
        (r#"guidepost_sms_channel_rests_total{channel="gateway"}"#, 1),
    ] {
        assert_eq!(count(&after, name), times, "{name}\n{after}");
    }
}

#[apply(every_code_store)]
async fn redemptions_are_counted_by_their_answer(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    venue.put_order("BK2", &Order::paid()).await;
    let guide = venue.guide().await;
    guide.redeem("BK1", &code).await.ok();
    guide.redeem("BK1", &code).await.refused(409, 2002);
    guide.redeem("BK2", &code).await.refused(422, 2003);
    venue.nobody().redeem("BK2", &code).await.refused(401, 1401);
    let after = metrics(&venue).await;
    for code in ["0", "2002", "2003", "1401"] {
        assert_eq!(count(&after, &format!("guidepost_redemptions_total{{code=\"{code}\"}}")), 1, "{after}");
    }
    assert!(!after.contains("BK1") && !after.contains(&code), "{after}");
}

/// A proxy that publishes everything does not publish this.
#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_not_told_through_a_proxy() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    for header in ["x-forwarded-for", "forwarded", "via"] {
        let asked = venue.nobody().request(Method::GET, "/metrics").header(header, "10.0.0.1");
        let answer = asked.header("accept-language", "en").send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 403);
        let text = answer.text().await.unwrap();
        assert!(text.contains("not through a proxy") && !text.contains("guidepost_"), "{text}");
    }
}
