//! Passwords and numbers of accounts: reset, set, changed; what ends with that, and how often a password may be wrong.

use crate::every_code_store;
use api_tests::{Answer, Caller, Order, Stores, Venue};
use futures::future::join_all;
use guidepost_server::accounts::create;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use std::time::Duration;
use wire::{Mobile, TenantId};

const GUIDE: &str = "13900000001";
const GUIDE_E164: &str = "+8613900000001";

async fn login(venue: &Venue, username: &str, password: &str) -> Answer {
    venue.nobody().post("/api/auth/login", &json!({"username": username, "password": password})).await
}

async fn reset(venue: &Venue, mobile: &str, code: &str, password: &str) -> Answer {
    let body = json!({"mobile": mobile, "code": code, "newPassword": password});
    venue.nobody().post("/api/auth/reset-password", &body).await
}

#[apply(every_code_store)]
async fn a_password_is_reset_by_sms_and_ends_every_session(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let guide = venue.guide().await;
    venue.nobody().send_sms(GUIDE, "reset_password").await.ok();
    let code = gateway.code_of(GUIDE_E164);
    // A password that cannot be uses no code up.
    assert_eq!(reset(&venue, GUIDE, &code, "short").await.refused(400, 1400)["field"], "newPassword");
    reset(&venue, GUIDE, &code, "tower bridge").await.ok();
    guide.get("/api/auth/me").await.refused(401, 1401);
    reset(&venue, GUIDE, &code, "tower bridge 2").await.refused(422, 4005);
    // With the number as the user name, however it is written.
    for name in [GUIDE, "+8613900000001", " 139 0000 0001"] {
        let signed_in = login(&venue, name, "tower bridge").await.ok();
        assert_eq!((&signed_in["roles"], &signed_in["name"]), (&json!(["guide"]), &json!("林悦")));
    }
    login(&venue, GUIDE, "tower bridge 2").await.refused(401, 1401);
}

#[apply(every_code_store)]
async fn a_reset_tells_nobody_but_the_holder_whether_a_number_is_known_and_is_not_for_admins(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let mobile = Mobile::parse("13600000001").unwrap();
    let made = create::admin(venue.server.app(), TenantId(1), "chief", Some(&mobile), None).await.unwrap().unwrap();
    for (number, text) in [("13600000001", "管理员"), ("13600000002", "尚未登记")] {
        venue.nobody().send_sms(number, "reset_password").await.ok();
        let code = gateway.code_of(&format!("+86{number}"));
        let wrong = if code == "111111" { "222222" } else { "111111" };
        reset(&venue, number, wrong, "a long password").await.refused(422, 4004);
        let answer = reset(&venue, number, &code, "a long password").await;
        answer.refused(403, 1403);
        assert!(answer.text.contains(text), "{}", answer.text);
        reset(&venue, number, &code, "a long password").await.refused(422, 4005);
    }
    let signed_in = login(&venue, "chief", made.expose()).await.ok();
    let chief = venue.bearer(signed_in["token"].as_str().unwrap());
    chief.post("/api/auth/password", &json!({"newPassword": "a long password"})).await.refused(403, 1403);
}

#[apply(every_code_store)]
async fn a_password_that_is_set_ends_the_other_sessions(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let (here, there) = (venue.guide().await, venue.guide().await);
    venue.nobody().post("/api/auth/password", &json!({"newPassword": "tower bridge"})).await.refused(401, 1401);
    let long = "x".repeat(1025);
    for wrong in ["1234567", long.as_str()] {
        let answer = here.post("/api/auth/password", &json!({"newPassword": wrong})).await;
        assert_eq!(answer.refused(400, 1400)["field"], "newPassword");
    }
    here.post("/api/auth/password", &json!({"newPassword": "tower bridge"})).await.ok();
    here.get("/api/auth/me").await.ok();
    there.get("/api/auth/me").await.refused(401, 1401);
    login(&venue, GUIDE, "tower bridge").await.ok();
}

#[apply(every_code_store)]
async fn a_number_is_changed_by_codes_to_both(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let new = "13700000001";
    venue.put_order("BK1", &Order::paid().with("mobile", GUIDE)).await;
    let (here, there) = (venue.guide().await, venue.guide().await);
    here.verify_code("BK1").await.ok();
    let change = async |caller: &Caller, mobile: &str, code: &str, old: &str| {
        let body = json!({"mobile": mobile, "code": code, "oldCode": old});
        caller.post("/api/auth/change-mobile", &body).await
    };
    venue.random.next([444_444]);
    here.send_sms(new, "change_mobile").await.ok();
    venue.random.next([555_555]);
    here.post("/api/sms/send", &json!({"scene": "confirm"})).await.ok();
    assert_eq!(
        (gateway.code_of("+8613700000001"), gateway.code_of(GUIDE_E164)),
        ("444444".to_owned(), "555555".to_owned())
    );
    change(&venue.nobody(), new, "444444", "555555").await.refused(401, 1401);
    assert_eq!(change(&here, new, "444444", "55555").await.refused(400, 1400)["field"], "oldCode");
    change(&here, new, "444444", "111111").await.refused(422, 4004);
    // The old one's code need not be asked for again while the new one's is corrected; nobody else may use it meanwhile.
    change(&here, new, "111111", "555555").await.refused(422, 4004);
    change(&there, new, "444444", "555555").await.refused(422, 4005);
    // A code is for one number.
    change(&here, "13700000002", "444444", "555555").await.refused(422, 4005);
    change(&here, new, "444444", "555555").await.ok();
    here.get("/api/auth/me").await.ok();
    there.get("/api/auth/me").await.refused(401, 1401);
    change(&here, new, "444444", "555555").await.refused(422, 4005);
    assert_eq!(venue.count("SELECT COUNT(*) FROM account WHERE mobile = '+8613700000001' AND is_guide = 1").await, 1);
    assert_eq!(venue.count("SELECT COUNT(*) FROM account WHERE mobile = '+8613900000001'").await, 0);
}

#[apply(every_code_store)]
async fn a_number_that_another_account_has_is_1409(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    venue.put_guide("13700000001", "陈").await;
    let guide = venue.guide().await;
    guide.send_sms("13700000001", "change_mobile").await.ok();
    guide.send_sms(GUIDE, "confirm").await.ok();
    let body = json!({
        "mobile": "13700000001", "code": gateway.code_of("+8613700000001"), "oldCode": gateway.code_of(GUIDE_E164),
    });
    guide.post("/api/auth/change-mobile", &body).await.refused(409, 1409);
    assert_eq!(venue.count("SELECT COUNT(*) FROM account WHERE mobile = '+8613900000001'").await, 1);
}

#[apply(every_code_store)]
async fn five_wrong_passwords_of_an_account_in_ten_minutes_and_not_six(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let made = create::admin(venue.server.app(), TenantId(1), "chief", None, None).await.unwrap().unwrap();
    // Right ones count nothing.
    for _ in 0..7 {
        login(&venue, "chief", made.expose()).await.ok();
    }
    let answers = join_all((0..20).map(|_| login(&venue, "chief", "wrong"))).await;
    assert_eq!(answers.iter().filter(|answer| answer.code() == 1401).count(), 5);
    let wait = login(&venue, "chief", made.expose()).await.refused(429, 1429)["retryAfter"].as_i64().unwrap();
    assert!((590..=600).contains(&wait), "{wait}");
    // A name that nobody has is answered likewise.
    for _ in 0..5 {
        login(&venue, "nobody", "wrong").await.refused(401, 1401);
    }
    login(&venue, "nobody", "wrong").await.refused(429, 1429);
    venue.advance(Duration::from_secs(600)).await;
    login(&venue, "chief", made.expose()).await.ok();
}

/// However a name is spelt, and by whichever of its names an account is meant: the answers are those of a name that nobody
/// has.
#[apply(every_code_store)]
async fn wrong_passwords_do_not_tell_whether_a_name_is_known_or_whose_it_is(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let app = venue.server.app();
    let mobile = Mobile::parse("13900000009").unwrap();
    let made = create::admin(app, TenantId(1), "chief", Some(&mobile), None).await.unwrap().unwrap();
    let tries = async |names: [&str; 7]| {
        let mut codes = Vec::new();
        for name in names {
            codes.push(login(&venue, name, "wrong").await.code());
        }
        codes
    };
    let known = [
        "13900000009",
        "+8613900000009",
        "139 0000 0009",
        "13900000009",
        "13900000009",
        "+8613900000009",
        "139 00000009",
    ];
    let unknown = known.map(|name| name.replace('9', "8"));
    let unknown = unknown.each_ref().map(|name| name.as_str());
    let as_one = [1401, 1401, 1401, 1401, 1401, 1429, 1429];
    assert_eq!((tries(known).await, tries(unknown).await), (as_one.to_vec(), as_one.to_vec()));
    // By the account's other name: none of its tries is left, which is not said.
    assert_eq!(tries(["chief"; 7]).await, as_one);
    venue.advance(Duration::from_secs(600)).await;
    let names = ["chief", "13900000009", "chief", "13900000009", "chief"];
    for name in names {
        login(&venue, name, "wrong").await.refused(401, 1401);
    }
    login(&venue, "chief", made.expose()).await.refused(401, 1401);
    assert_eq!(tries(["CHIEF"; 7]).await, as_one, "another name, as the database sees it");
    venue.advance(Duration::from_secs(600)).await;
    login(&venue, "139 0000 0009", made.expose()).await.ok();
}

/// Each costs a hash.
#[apply(every_code_store)]
async fn an_address_has_so_many_wrong_passwords(stores: Stores) {
    let (venue, _gateway) = Venue::open_with_gateway(stores, |config| config.limits.sms.wrong = 3).await;
    for n in 0..3 {
        login(&venue, &format!("nobody{n}"), "wrong").await.refused(401, 1401);
    }
    login(&venue, "nobody3", "wrong").await.refused(429, 1429);
    venue.advance(Duration::from_secs(600)).await;
    let made = create::admin(venue.server.app(), TenantId(1), "chief", None, None).await.unwrap().unwrap();
    for _ in 0..5 {
        login(&venue, "chief", made.expose()).await.ok();
    }
}
