//! SMS codes in the calls that use them: log-in and registration, wrong tries, locks, repeats, and codes used once for ever.

use crate::every_code_store;
use api_tests::{Answer, Caller, Gateway, Order, Stores, Venue};
use futures::future::join_all;
use guidepost_server::accounts::create;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use std::time::Duration;

const MOBILE: &str = "13800000001";
const E164: &str = "+8613800000001";

/// A code that has been sent, and six digits that are another.
async fn sent(venue: &Venue, gateway: &Gateway, scene: &str) -> (String, String) {
    venue.nobody().send_sms(MOBILE, scene).await.ok();
    let code = gateway.code_of(E164);
    let wrong = if code == "111111" { "222222" } else { "111111" };
    (code, wrong.to_owned())
}

async fn login_as(caller: &Caller, code: &str, request_id: &str) -> Answer {
    caller.post("/api/auth/sms-login", &json!({"mobile": MOBILE, "code": code, "requestId": request_id})).await
}

#[apply(every_code_store)]
async fn a_right_code_makes_a_visitor_or_signs_in_who_is_known(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let nobody = venue.nobody();
    let (code, _) = sent(&venue, &gateway, "login").await;
    let signed_in = nobody.sms_login(MOBILE, &code).await.ok();
    assert_eq!((&signed_in["roles"], &signed_in["name"]), (&json!(["visitor"]), &json!("*0001")));
    let me = venue.bearer(signed_in["token"].as_str().unwrap()).get("/api/auth/me").await.ok();
    assert_eq!(me["name"], "*0001");
    // An order for the number then is theirs.
    venue.put_order("BK1", &Order::paid()).await;
    let visitor = venue.bearer(signed_in["token"].as_str().unwrap());
    visitor.verify_code("BK1").await.ok();

    nobody.send_sms("13900000001", "login").await.ok();
    let signed_in = nobody.sms_login("13900000001", &gateway.code_of("+8613900000001")).await.ok();
    assert_eq!((&signed_in["roles"], &signed_in["name"]), (&json!(["guide"]), &json!("林悦")));
}

#[apply(every_code_store)]
async fn registration_takes_a_name_and_leaves_a_known_one(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let nobody = venue.nobody();
    let register = async |code: &str, name: &str| {
        nobody.post("/api/auth/register", &json!({"mobile": MOBILE, "code": code, "name": name})).await
    };
    let (code, _) = sent(&venue, &gateway, "register").await;
    assert_eq!(register(&code, " \u{200b}").await.refused(400, 1400)["field"], "name");
    assert_eq!(register(&code, "王芳").await.ok()["name"], "王芳");
    venue.advance(Duration::from_secs(60)).await;
    let (code, _) = sent(&venue, &gateway, "register").await;
    assert_eq!(register(&code, "另一个").await.ok()["name"], "王芳");
    assert_eq!(venue.count("SELECT COUNT(*) FROM account WHERE mobile = '+8613800000001'").await, 1);
}

#[apply(every_code_store)]
async fn without_auto_registration_a_right_code_of_an_unknown_number_is_1403(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| config.accounts.auto_register = false).await;
    let (code, wrong) = sent(&venue, &gateway, "login").await;
    // Whether a number is known is told to who holds it, and to nobody else.
    venue.nobody().sms_login(MOBILE, &wrong).await.refused(422, 4004);
    assert_eq!(venue.nobody().sms_login(MOBILE, &code).await.refused(403, 1403)["reason"], "no_account");
    venue.nobody().sms_login(MOBILE, &code).await.refused(422, 4005);
    assert_eq!(venue.count("SELECT COUNT(*) FROM account WHERE mobile = '+8613800000001'").await, 0);
}

#[apply(every_code_store)]
async fn a_browser_gets_its_token_as_a_cookie_alone(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let (code, _) = sent(&venue, &gateway, "login").await;
    let body = json!({"mobile": MOBILE, "code": code});
    let request = venue.nobody().request(reqwest::Method::POST, "/api/auth/sms-login").json(&body);
    let origin = venue.server.base_url().to_owned();
    let answer = Answer::to(request.header("x-client", "web").header("origin", origin)).await;
    assert_eq!(answer.ok().get("token"), None);
    assert!(answer.headers["set-cookie"].to_str().unwrap().contains("HttpOnly; SameSite=Strict"));
    let request = venue.nobody().request(reqwest::Method::POST, "/api/auth/sms-login").json(&body);
    let foreign = request.header("x-client", "web").header("origin", "https://evil.example");
    Answer::to(foreign).await.refused(403, 1403);
}

#[apply(every_code_store)]
async fn a_wrong_try_keeps_the_code_and_the_fifth_locks_for_ten_minutes(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let nobody = venue.nobody();
    let (code, wrong) = sent(&venue, &gateway, "login").await;
    for left in (1..5).rev() {
        let answer = nobody.sms_login(MOBILE, &wrong).await;
        assert_eq!(answer.refused(422, 4004), json!({"remaining": left}));
        assert_eq!(answer.json()["msg"], "验证码不正确");
        // Neither a new send nor its code resets the count.
        if left == 2 {
            venue.advance(Duration::from_secs(60)).await;
            nobody.send_sms(MOBILE, "login").await.ok();
        }
    }
    let code_now = gateway.code_of(E164);
    let wrong = if code_now == wrong { "333333".to_owned() } else { wrong };
    assert_eq!(nobody.sms_login(MOBILE, &wrong).await.refused(422, 4004), json!({"remaining": 0}));
    let answer = nobody.sms_login(MOBILE, &code_now).await;
    assert_eq!(answer.refused(429, 4006)["retryAfter"], 600, "the right code is refused, too");
    assert_eq!(answer.json()["msg"], "错误次数过多请稍后再试");
    nobody.sms_login(MOBILE, &code).await.refused(429, 4006);
    nobody.send_sms(MOBILE, "login").await.refused(429, 4006);
    // Other scenes are open.
    nobody.send_sms(MOBILE, "register").await.ok();
    venue.advance(Duration::from_secs(599)).await;
    nobody.send_sms(MOBILE, "login").await.refused(429, 4006);
    venue.advance(Duration::from_secs(1)).await;
    let (code, wrong) = sent(&venue, &gateway, "login").await;
    assert_eq!(nobody.sms_login(MOBILE, &wrong).await.refused(422, 4004), json!({"remaining": 4}));
    nobody.sms_login(MOBILE, &code).await.ok();
    // A success clears the count.
    venue.advance(Duration::from_secs(60)).await;
    let (_, wrong) = sent(&venue, &gateway, "login").await;
    assert_eq!(nobody.sms_login(MOBILE, &wrong).await.refused(422, 4004), json!({"remaining": 4}));
}

#[apply(every_code_store)]
async fn none_sent_run_out_and_used_are_one_answer_and_count_nothing(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| config.limits.sms.wrong = 1).await;
    let nobody = venue.nobody();
    for _ in 0..7 {
        let answer = nobody.sms_login(MOBILE, "123456").await;
        answer.refused(422, 4005);
        assert_eq!(answer.json()["msg"], "验证码已过期请重新获取");
    }
    let (code, _) = sent(&venue, &gateway, "login").await;
    venue.advance(Duration::from_secs(299)).await;
    nobody.sms_login(MOBILE, &code).await.ok();
    nobody.sms_login(MOBILE, &code).await.refused(422, 4005);
    let (code, _) = sent(&venue, &gateway, "login").await;
    venue.advance(Duration::from_secs(300)).await;
    nobody.sms_login(MOBILE, &code).await.refused(422, 4005);
    for wrong in ["", "12345", "1234567", "12345a", "１２３４５"] {
        assert_eq!(nobody.sms_login(MOBILE, wrong).await.refused(400, 1400)["field"], "code");
    }
}

#[apply(every_code_store)]
async fn a_code_is_worth_nothing_in_another_scene_or_for_another_number_or_tenant(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let other = create::tenant(venue.server.app(), "另一家").await.unwrap();
    let at = async |tenant: i64, path: &str, body: serde_json::Value| {
        let request = venue.nobody().request(reqwest::Method::POST, path).json(&body);
        Answer::to(request.header("tenant-id", tenant)).await
    };
    at(1, "/api/sms/send", json!({"mobile": MOBILE, "scene": "login"})).await.ok();
    let code = gateway.code_of(E164);
    let login = json!({"mobile": MOBILE, "code": code});
    let register = json!({"mobile": MOBILE, "code": code, "name": "x"});
    let reset = json!({"mobile": MOBILE, "code": code, "newPassword": "a long password"});
    at(1, "/api/auth/register", register).await.refused(422, 4005);
    at(1, "/api/auth/reset-password", reset).await.refused(422, 4005);
    at(1, "/api/auth/sms-login", json!({"mobile": "13800000002", "code": code})).await.refused(422, 4005);
    at(other.0, "/api/auth/sms-login", login.clone()).await.refused(422, 4005);
    // The other tenant's cool-down is another one, and its send kills nothing here.
    at(other.0, "/api/sms/send", json!({"mobile": MOBILE, "scene": "login"})).await.ok();
    at(1, "/api/auth/sms-login", login).await.ok();
}

#[apply(every_code_store)]
async fn a_new_send_makes_a_new_code_and_the_old_one_is_dead(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    venue.random.next([111_111]);
    let (old, _) = sent(&venue, &gateway, "login").await;
    venue.advance(Duration::from_secs(60)).await;
    venue.random.next([222_222]);
    let (new, _) = sent(&venue, &gateway, "login").await;
    assert_eq!((old.as_str(), new.as_str()), ("111111", "222222"));
    venue.nobody().sms_login(MOBILE, &old).await.refused(422, 4004);
    venue.nobody().sms_login(MOBILE, &new).await.ok();
}

#[apply(every_code_store)]
async fn an_address_has_so_many_wrong_codes(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| config.limits.sms.wrong = 3).await;
    let nobody = venue.nobody();
    for n in 0..4 {
        venue.random.next([222_222]);
        nobody.send_sms(&format!("1370000000{n}"), "login").await.ok();
    }
    for n in 0..3 {
        nobody.sms_login(&format!("1370000000{n}"), "111111").await.refused(422, 4004);
    }
    let wait = nobody.sms_login("13700000003", "222222").await.refused(429, 1429)["retryAfter"].as_i64().unwrap();
    assert!((590..=600).contains(&wait), "{wait}");
    venue.advance(Duration::from_secs(600)).await;
    let (code, _) = sent(&venue, &gateway, "login").await;
    nobody.sms_login(MOBILE, &code).await.ok();
}

#[apply(every_code_store)]
async fn a_repeat_within_ten_seconds_succeeds_again_with_a_fresh_token(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let nobody = venue.nobody();
    let (code, wrong) = sent(&venue, &gateway, "login").await;
    // A wrong code that is repeated counts once.
    for _ in 0..3 {
        assert_eq!(login_as(&nobody, &wrong, "r-0").await.refused(422, 4004), json!({"remaining": 4}));
    }
    let first = login_as(&nobody, &code, "r-1").await.ok();
    venue.advance(Duration::from_secs(9)).await;
    let again = login_as(&nobody, &code, "r-1").await.ok();
    assert_ne!(first["token"], again["token"]);
    for signed_in in [&first, &again] {
        venue.bearer(signed_in["token"].as_str().unwrap()).get("/api/auth/me").await.ok();
    }
    // Neither another name nor another code nor no name at all repeats it.
    login_as(&nobody, &code, "r-2").await.refused(422, 4005);
    login_as(&nobody, &wrong, "r-1").await.refused(422, 4005);
    nobody.sms_login(MOBILE, &code).await.refused(422, 4005);
    venue.advance(Duration::from_secs(1)).await;
    login_as(&nobody, &code, "r-1").await.refused(422, 4005);
    assert_eq!(login_as(&nobody, &code, "r 1").await.refused(400, 1400)["field"], "requestId");
}

#[apply(every_code_store)]
async fn two_taps_at_once_both_succeed(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let nobody = venue.nobody();
    let (code, _) = sent(&venue, &gateway, "login").await;
    for answer in join_all((0..5).map(|_| login_as(&nobody, &code, "r-1"))).await {
        answer.ok();
    }
    assert_eq!(venue.count("SELECT COUNT(*) FROM account WHERE mobile = '+8613800000001'").await, 1);
    assert_eq!(venue.count("SELECT COUNT(*) FROM sms_use").await, 1);
}

#[apply(every_code_store)]
async fn of_200_right_codes_at_once_one_succeeds(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| config.limits.sms.wrong = 1000).await;
    let (code, _) = sent(&venue, &gateway, "login").await;
    let nobody = venue.nobody();
    let answers = join_all((0..200).map(|_| nobody.sms_login(MOBILE, &code))).await;
    let ok = answers.iter().filter(|answer| answer.code() == 0).count();
    assert_eq!(ok, 1, "one code, one log-in");
    // No rightful one is told that it was wrong; those that found no place of the address's are told that.
    assert!(answers.iter().all(|answer| [0, 4005, 1429].contains(&answer.code())));
    assert_eq!(venue.count("SELECT COUNT(*) FROM session").await, 1);
}

#[apply(every_code_store)]
async fn of_200_wrong_codes_at_once_five_are_compared(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |config| config.limits.sms.wrong = 1000).await;
    let (code, _) = sent(&venue, &gateway, "login").await;
    let nobody = venue.nobody();
    let guesses = (0..200).map(|n| format!("{n:06}")).filter(|guess| *guess != code);
    let answers = join_all(guesses.map(|guess| {
        let nobody = nobody.clone();
        async move { nobody.sms_login(MOBILE, &guess).await }
    }))
    .await;
    let mut compared: Vec<_> =
        answers.iter().filter(|a| a.code() == 4004).map(|a| a.data()["remaining"].as_i64().unwrap()).collect();
    compared.sort_unstable();
    assert_eq!(compared, [0, 1, 2, 3, 4], "five wrong codes are compared, whatever comes at once");
    assert!(answers.iter().all(|answer| [4004, 4006, 1429].contains(&answer.code())));
    nobody.sms_login(MOBILE, &code).await.refused(429, 4006);
}

/// A key of a node, and what it held.
type Dumped = Vec<(redis::aio::MultiplexedConnection, String, Vec<u8>)>;

/// What the number's keys hold; helpers are not among them.
async fn dump(venue: &Venue) -> Dumped {
    let mut all = Vec::new();
    for mut node in venue.redis_nodes().await {
        let pattern = format!("{}*", venue.prefix());
        let keys: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut node).await.unwrap();
        for key in keys {
            let state: Vec<u8> = redis::cmd("DUMP").arg(&key).query_async(&mut node).await.unwrap();
            all.push((node.clone(), key, state));
        }
    }
    all
}

async fn restore(before: Dumped) {
    for (mut node, key, state) in before {
        let mut restore = redis::cmd("RESTORE");
        restore.arg(key).arg(60_000).arg(state).arg("REPLACE");
        let () = restore.query_async(&mut node).await.unwrap();
    }
}

/// Redis falls back to an older state, as a replica that lags may.
#[apply(every_code_store)]
async fn a_used_code_cannot_come_alive_again(stores: Stores) {
    if stores == Stores::SqliteMemory {
        return;
    }
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let (code, _) = sent(&venue, &gateway, "login").await;
    let before = dump(&venue).await;
    venue.nobody().sms_login(MOBILE, &code).await.ok();
    restore(before).await;
    // The store says that it is right; the database knows better.
    venue.nobody().sms_login(MOBILE, &code).await.refused(422, 4005);
    assert_eq!(venue.count("SELECT COUNT(*) FROM session").await, 1);
}

/// Nor for the request that has used it, once its ten seconds are over.
#[apply(every_code_store)]
async fn a_used_code_cannot_come_alive_again_for_its_own_request(stores: Stores) {
    if stores == Stores::SqliteMemory {
        return;
    }
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let (code, _) = sent(&venue, &gateway, "login").await;
    let before = dump(&venue).await;
    let nobody = venue.nobody();
    login_as(&nobody, &code, "r1").await.ok();
    for (later, again) in [(10, 0), (1, 4005)] {
        venue.clock.advance(Duration::from_secs(later));
        restore(before.clone()).await;
        assert_eq!(login_as(&nobody, &code, "r1").await.code(), again, "{later} s later");
    }
    assert_eq!(venue.count("SELECT COUNT(*) FROM session").await, 2);
}

/// The contract's keys, literally; all of them with a life; no number and, beside the one key, no code in any.
#[apply(every_code_store)]
async fn keys_are_the_contracts_and_all_have_a_life(stores: Stores) {
    if stores == Stores::SqliteMemory {
        return;
    }
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let (code, wrong) = sent(&venue, &gateway, "login").await;
    venue.nobody().sms_login(MOBILE, &wrong).await.refused(422, 4004);
    let mut keys = Vec::new();
    for mut node in venue.redis_nodes().await {
        let pattern = format!("*{}*", venue.prefix());
        let found: Vec<String> = redis::cmd("KEYS").arg(pattern).query_async(&mut node).await.unwrap();
        keys.extend(found.into_iter().map(|key| (node.clone(), key)));
    }
    let names: Vec<&str> =
        keys.iter().map(|(_, key)| key.trim_start_matches('{').strip_prefix(venue.prefix()).unwrap()).collect();
    let digest = names.iter().find_map(|name| name.strip_prefix("sms:code:login:")).unwrap();
    assert!(digest.starts_with('{') && digest.ends_with('}') && digest.len() == 66, "{digest}");
    for name in ["sms:code:login:", "sms:cd:login:", "sms:hour:login:", "sms:day:20260801:login:", "sms:fail:login:"] {
        assert!(names.contains(&format!("{name}{digest}").as_str()), "{name} is missing of {names:?}");
    }
    assert!(names.contains(&"sms:ip:127.0.0.1"), "{names:?}");
    let code_key = format!("{}sms:code:login:{digest}", venue.prefix());
    let mut values = Vec::new();
    for (mut node, key) in keys {
        let left: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut node).await.unwrap();
        assert!(left > 0, "{key} has no life");
        assert!(!key.contains("3800000001"), "a number stands in {key}");
        if key == code_key {
            values.push(redis::cmd("GET").arg(&key).query_async::<String>(&mut node).await.unwrap());
        }
    }
    assert_eq!(values, [code], "the code and nothing else");
}
