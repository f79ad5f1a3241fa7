//! What ends an account's sessions ends them for good: whoever asked before it and is served after it gets nothing.

use crate::every_store;
use api_tests::stores::{redis_cli, start_redis, wait_until};
use api_tests::{Answer, Caller, Gateway, Stores, Venue};
use futures::future::{join, join_all};
use guidepost_server::config::DatabaseUrl;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use tokio::sync::Barrier;

const GUIDE: &str = "13900000001";

/// A venue whose limits are out of the way.
async fn venue(stores: Stores) -> (Venue, Gateway) {
    Venue::open_with_gateway(stores, |config| {
        let sms = &mut config.limits.sms;
        (sms.ip, sms.captcha_after, sms.captcha_number) = (10_000, 10_000, 10_000);
        for scene in ["login", "confirm", "change_mobile", "reset_password"] {
            let rule = config.sms.scenes.entry(scene.to_owned()).or_default();
            (rule.cooldown, rule.hourly, rule.daily) = (0, 10_000, 10_000);
        }
    })
    .await
}

async fn login(venue: &Venue, password: &str) -> Answer {
    venue.nobody().post("/api/auth/login", &json!({"username": GUIDE, "password": password})).await
}

async fn set(guide: &Caller, password: &str) -> Answer {
    guide.post("/api/auth/password", &json!({"newPassword": password})).await
}

/// Resets the guide's password by SMS.
async fn reset(venue: &Venue, gateway: &Gateway, password: &str) {
    venue.nobody().send_sms(GUIDE, "reset_password").await.ok();
    let body = json!({"mobile": GUIDE, "code": gateway.code_of("+8613900000001"), "newPassword": password});
    venue.nobody().post("/api/auth/reset-password", &body).await.ok();
}

#[apply(every_store)]
async fn a_session_that_a_reset_has_ended_sets_no_password_any_more(stores: Stores) {
    let (venue, gateway) = venue(stores).await;
    for round in 0..2 {
        let thief = venue.guide().await;
        let owners = format!("owner's own {round}");
        // Six are being hashed or wait for it whenever the reset is done.
        let sets = (0..6).map(async |_| while set(&thief, "the thief's one").await.code() == 0 {});
        join(reset(&venue, &gateway, &owners), join_all(sets)).await;
        login(&venue, &owners).await.ok();
        login(&venue, "the thief's one").await.refused(401, 1401);
    }
}

#[apply(every_store)]
async fn a_log_in_with_a_password_that_a_reset_has_changed_opens_nothing(stores: Stores) {
    let (venue, gateway) = venue(stores).await;
    set(&venue.guide().await, "the old one 0").await.ok();
    for round in 0..2 {
        let (old, new) = (format!("the old one {round}"), format!("the old one {}", round + 1));
        // The reset begins once both have logged in, and they go on: however long hashes take, it finds them at it.
        let begun = Barrier::new(3);
        let logins = (0..2).map(async |_| {
            let mut opened = Vec::new();
            loop {
                let answer = login(&venue, &old).await;
                if answer.code() != 0 {
                    assert!(!opened.is_empty(), "each logs in before the reset: {}", answer.text);
                    return opened;
                }
                opened.push(venue.bearer(answer.data()["token"].as_str().unwrap()));
                if opened.len() == 1 {
                    begun.wait().await;
                }
            }
        });
        let resetting = async {
            begun.wait().await;
            reset(&venue, &gateway, &new).await;
        };
        let ((), opened) = join(resetting, join_all(logins)).await;
        let opened = opened.concat();
        assert!(!opened.is_empty(), "some logged in before the reset");
        for session in opened {
            session.get("/api/auth/me").await.refused(401, 1401);
        }
    }
}

#[apply(every_store)]
async fn a_log_in_by_a_code_to_the_old_number_opens_nothing_of_the_account_that_has_another(stores: Stores) {
    let (venue, gateway) = venue(stores).await;
    for round in 0..12 {
        let (old, new) = (format!("139000001{round:02}"), format!("137000001{round:02}"));
        let code_of = |number: &str| gateway.code_of(&format!("+86{number}"));
        venue.put_guide(&old, "林悦").await;
        let owner = venue.sign_in(&old).await;
        owner.send_sms(&old, "confirm").await.ok();
        let old_code = code_of(&old);
        owner.send_sms(&new, "change_mobile").await.ok();
        let change = json!({"mobile": new, "code": code_of(&new), "oldCode": old_code});
        venue.nobody().send_sms(&old, "login").await.ok();
        let log_in = json!({"mobile": old, "code": code_of(&old), "requestId": "one"});
        let logins = (0..8).map(|_| async { venue.nobody().post("/api/auth/sms-login", &log_in).await });
        let (changed, answers) = join(owner.post("/api/auth/change-mobile", &change), join_all(logins)).await;
        changed.ok();
        for answer in answers.iter().filter(|answer| answer.code() == 0) {
            let me = venue.bearer(answer.data()["token"].as_str().unwrap()).get("/api/auth/me").await;
            // After the change the old number is a stranger's, with a visitor's account of its own.
            assert!(me.code() == 1401 || me.data()["roles"] == json!(["visitor"]), "{}", me.text);
        }
        assert_eq!(owner.get("/api/auth/me").await.ok()["roles"], json!(["guide"]));
    }
}

/// The change has come in while its session stood, and goes on once the reset is done.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_a_reset_has_ended_changes_no_number_any_more() {
    let redis = start_redis(&[]);
    let (venue, gateway) = Venue::open_with_gateway(Stores::SqliteRedis, |config| {
        config.code_store.url = DatabaseUrl::new(format!("redis://127.0.0.1:{}", redis.port));
        config.code_store.prefix.clear();
        config.code_store.timeout_ms = 10_000;
    })
    .await;
    let (thief, new) = (venue.guide().await, "13700000001");
    thief.send_sms(GUIDE, "confirm").await.ok();
    let old_code = gateway.code_of("+8613900000001");
    thief.send_sms(new, "change_mobile").await.ok();
    let change = json!({"mobile": new, "code": gateway.code_of("+8613700000001"), "oldCode": old_code});
    venue.nobody().send_sms(GUIDE, "reset_password").await.ok();

    let body = json!({"mobile": GUIDE, "code": gateway.code_of("+8613900000001"), "newPassword": "owner's own"});
    // Somebody else's passwords are hashed before, so that there is time.
    venue.put_guide("13900000002", "周航").await;
    let other = venue.sign_in("13900000002").await;
    let busy = (0..40).map(|n| {
        let other = other.clone();
        tokio::spawn(async move { set(&other, &format!("another's one {n}")).await })
    });
    let busy: Vec<_> = busy.collect();
    let nobody = venue.nobody();
    let reset = tokio::spawn(async move { nobody.post("/api/auth/reset-password", &body).await });
    // The reset has used its code up, and hashes.
    let codes = ["keys", "sms:code:reset_password:*"];
    wait_until("the code is used", || redis_cli(redis.port, &codes).trim().is_empty());
    redis_cli(redis.port, &["client", "pause", "10000", "write"]);
    let changed = tokio::spawn(async move { thief.post("/api/auth/change-mobile", &change).await });
    reset.await.unwrap().ok();
    redis_cli(redis.port, &["client", "unpause"]);
    changed.await.unwrap().refused(401, 1401);
    for set in busy {
        set.await.unwrap().ok();
    }
    assert_eq!(venue.count("SELECT COUNT(*) FROM account WHERE mobile = '+8613900000001'").await, 1);
}
