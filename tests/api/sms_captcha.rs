//! The captcha: asked for by risk and only then, bound to number and scene, good once.

use crate::every_code_store;
use api_tests::{Answer, Caller, Stores, Venue};
use futures::future::join_all;
use reqwest::Method;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::Duration;

const MOBILE: &str = "13800000001";

async fn challenge(caller: &Caller, mobile: &str, scene: &str) -> Value {
    caller.post("/api/captcha", &json!({"mobile": mobile, "scene": scene})).await.ok()
}

/// As ALTCHA's widget does it: every number is tried.
fn solve(challenge: &Value) -> Value {
    let (salt, wanted) = (challenge["salt"].as_str().unwrap(), challenge["challenge"].as_str().unwrap());
    let most = challenge["maxnumber"].as_u64().unwrap();
    let hash =
        |number: u64| Sha256::digest(format!("{salt}{number}")).iter().map(|b| format!("{b:02x}")).collect::<String>();
    let number = (0..=most).find(|number| hash(*number) == wanted).expect("a number that solves it");
    json!({
        "algorithm": challenge["algorithm"], "challenge": wanted, "number": number, "salt": salt,
        "signature": challenge["signature"], "took": 1,
    })
}

/// A solution on its way: Base64 of its JSON.
fn token(solution: &Value) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let text = solution.to_string();
    let mut token = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for n in 0..4 {
            token.push(if n <= chunk.len() { char::from(ALPHABET[(bits >> (18 - 6 * n)) as usize & 63]) } else { '=' });
        }
    }
    token
}

/// A captcha for a number and a scene, solved.
pub(crate) async fn solved(caller: &Caller, mobile: &str, scene: &str) -> String {
    token(&solve(&challenge(caller, mobile, scene).await))
}

async fn send_with(caller: &Caller, mobile: &str, scene: &str, token: &str) -> Answer {
    caller.post("/api/sms/send", &json!({"mobile": mobile, "scene": scene, "captchaToken": token})).await
}

#[apply(every_code_store)]
async fn a_number_needs_one_from_its_fourth_send_in_an_hour(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| config.limits.sms.captcha_number = 3).await;
    let nobody = venue.nobody();
    // In whatever scenes.
    for scene in ["login", "register", "login"] {
        nobody.send_sms(MOBILE, scene).await.ok();
        venue.advance(Duration::from_secs(60)).await;
    }
    nobody.send_sms(MOBILE, "login").await.refused(403, 4007);
    nobody.send_sms("13800000002", "login").await.ok();
    let solution = solve(&challenge(&nobody, MOBILE, "login").await);
    // It is for one number and scene.
    send_with(&nobody, "13800000002", "login", &token(&solution)).await.refused(403, 4007);
    send_with(&nobody, MOBILE, "register", &token(&solution)).await.refused(403, 4007);
    // Neither forged nor changed.
    for (field, value) in [
        ("number", json!(solution["number"].as_u64().unwrap() + 1)),
        ("signature", json!("00")),
        ("algorithm", json!("SHA-1")),
        ("salt", json!(solution["salt"].as_str().unwrap().replace("expires=1", "expires=2"))),
    ] {
        let mut forged = solution.clone();
        forged[field] = value;
        send_with(&nobody, MOBILE, "login", &token(&forged)).await.refused(403, 4007);
    }
    for nonsense in ["", "x", "bnVsbA==", "💥", &"A".repeat(5000)] {
        send_with(&nobody, MOBILE, "login", nonsense).await.refused(403, 4007);
    }
    assert_eq!(gateway.messages().len(), 4);
    send_with(&nobody, MOBILE, "login", &token(&solution)).await.ok();
    venue.advance(Duration::from_secs(60)).await;
    // Good once.
    send_with(&nobody, MOBILE, "login", &token(&solution)).await.refused(403, 4007);
    let late = solve(&challenge(&nobody, MOBILE, "login").await);
    venue.advance(Duration::from_secs(600)).await;
    send_with(&nobody, MOBILE, "login", &token(&late)).await.refused(403, 4007);
    venue.advance(Duration::from_secs(3600)).await;
    nobody.send_sms(MOBILE, "login").await.ok();
}

#[apply(every_code_store)]
async fn what_the_cool_down_refuses_leaves_the_captcha_good(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |config| config.limits.sms.captcha_number = 1).await;
    let nobody = venue.nobody();
    nobody.send_sms(MOBILE, "login").await.ok();
    let token = token(&solve(&challenge(&nobody, MOBILE, "login").await));
    send_with(&nobody, MOBILE, "login", &token).await.refused(429, 4002);
    venue.advance(Duration::from_secs(60)).await;
    send_with(&nobody, MOBILE, "login", &token).await.ok();
}

#[apply(every_code_store)]
async fn an_address_needs_one_after_its_fifth_send_in_an_hour_however_many_come_at_once(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| config.limits.sms.captcha_after = 5).await;
    let nobody = venue.nobody();
    let answers = join_all((0..30).map(|n| {
        let nobody = nobody.clone();
        async move { nobody.send_sms(&format!("137{n:08}"), "login").await.code() }
    }))
    .await;
    let count = |code| answers.iter().filter(|answer| **answer == code).count();
    assert_eq!((count(0), count(4007)), (5, 25), "five go out without a captcha");
    assert_eq!(gateway.messages().len(), 5);
    let solution = token(&solve(&challenge(&nobody, MOBILE, "login").await));
    let answers = join_all((0..10).map(|_| send_with(&nobody, MOBILE, "login", &solution))).await;
    assert_eq!(answers.iter().filter(|answer| answer.code() == 0).count(), 1, "a captcha is good once");
}

#[apply(every_code_store)]
async fn a_browser_needs_one_after_its_eighth_send_in_a_day(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |config| config.limits.sms.captcha_device = 8).await;
    let mut cookie = String::new();
    let mut send = async |number: usize| {
        let body = json!({"mobile": format!("137{number:08}"), "scene": "login"});
        let request = venue.nobody().request(Method::POST, "/api/sms/send").json(&body).header("x-client", "web");
        let request = request.header("origin", venue.server.base_url()).header("cookie", &cookie);
        let answer = Answer::to(request).await;
        if let Some(set) = answer.headers.get("set-cookie") {
            let set = set.to_str().unwrap();
            assert!(set.contains("HttpOnly; SameSite=Strict"), "{set}");
            cookie = set.split(';').next().unwrap().to_owned();
        }
        answer
    };
    for n in 0..8 {
        send(n).await.ok();
        venue.advance(Duration::from_secs(1200)).await;
    }
    send(8).await.refused(403, 4007);
    // An app without a cookie is counted by its address alone.
    venue.nobody().send_sms("13799999999", "login").await.ok();
    venue.advance(Duration::from_secs(24 * 3600)).await;
    send(9).await.ok();
}

#[apply(every_code_store)]
async fn a_challenge_is_refused_as_a_send_would_be(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let ask = async |mobile: &str, scene: &str| {
        venue.nobody().post("/api/captcha", &json!({"mobile": mobile, "scene": scene})).await
    };
    ask("x", "login").await.refused(400, 4001);
    ask(MOBILE, "nonsense").await.refused(400, 4010);
    ask(MOBILE, "confirm").await.refused(401, 1401);
    let challenge = ask(MOBILE, "login").await.ok();
    assert_eq!(challenge["algorithm"], "SHA-256");
    assert!(!challenge["salt"].as_str().unwrap().contains("3800000001"));
    assert!(challenge["salt"].as_str().unwrap().ends_with('&'));
}
