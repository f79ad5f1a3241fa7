//! Signing in, and what a session is good for.

use api_tests::{Answer, Order, Stores, Venue};
use guidepost_server::accounts::create;
use reqwest::{Method, header};
use serde_json::json;
use std::time::Duration;
use wire::{Secret, TenantId};

const ME: &str = "/api/auth/me";
const LIST: &str = "/app-api/team/booking/booking/list";

fn hours(n: u64) -> Duration {
    Duration::from_secs(n * 3600)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_signs_in_once() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let token = venue.link_token("13900000001").await;
    let sign_in = async || venue.nobody().post("/api/auth/sign-in-link", &json!({"token": token})).await;
    assert_eq!(sign_in().await.ok()["roles"], json!(["guide"]));
    sign_in().await.refused(401, 1401);
    venue.nobody().post("/api/auth/sign-in-link", &json!({"token": "made up"})).await.refused(401, 1401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_runs_out() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let token = venue.link_token("13900000001").await;
    venue.advance(hours(24)).await;
    venue.nobody().post("/api/auth/sign-in-link", &json!({"token": token})).await.refused(401, 1401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_gets_a_cookie_and_no_token() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    venue.put_order("BK1", &Order::paid()).await;
    let token = venue.link_token("13800000001").await;
    let origin = format!("http://{}", venue.server.address());
    let sign_in = |origin: &str| {
        let request = venue.nobody().request(Method::POST, "/api/auth/sign-in-link");
        request.header("x-client", "web").header("origin", origin).json(&json!({"token": token}))
    };
    Answer::to(sign_in("http://evil.example")).await.refused(403, 1403);
    let answer = Answer::to(sign_in(&origin)).await;
    assert!(answer.ok().get("token").is_none());
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    let (pair, flags) = cookie.split_once("; ").unwrap();
    assert_eq!(flags, "Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000");

    let mut browser = venue.nobody();
    browser.credential = Some(("cookie".to_owned(), format!("other=1; {pair}")));
    assert_eq!(browser.get(LIST).await.ok().as_array().unwrap().len(), 1);
    // A write by cookie must come from our own page.
    browser.post("/api/auth/logout", &json!({})).await.refused(403, 1403);
    let logout = |origin: &str| browser.request(Method::POST, "/api/auth/logout").header("origin", origin);
    Answer::to(logout("null")).await.refused(403, 1403);
    let gone = Answer::to(logout(&origin)).await;
    gone.ok();
    assert!(gone.headers[header::SET_COOKIE].to_str().unwrap().contains("Max-Age=0"));
    browser.get(LIST).await.refused(401, 1401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_over_https_is_secure_and_bound_to_its_host() {
    let venue =
        Venue::open_with(Stores::SqliteMemory, |config| config.public_url = Some("https://venue.example".to_owned()))
            .await;
    let token = venue.link_token("13900000001").await;
    let request = venue.nobody().request(Method::POST, "/api/auth/sign-in-link").header("x-client", "web");
    let request = request.header("origin", "https://venue.example").json(&json!({"token": token}));
    let answer = Answer::to(request).await;
    let cookie = answer.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(cookie.starts_with("__Host-guidepost=") && cookie.ends_with("; Secure"), "not secure");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_at_logout_at_once() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let (guide, same_guide_elsewhere) = (venue.guide().await, venue.guide().await);
    guide.post("/api/auth/logout", &json!({})).await.ok();
    guide.get(ME).await.refused(401, 1401);
    same_guide_elsewhere.get(ME).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guides_session_ends_when_idle_and_absolutely() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let (idle, busy) = (venue.guide().await, venue.guide().await);
    for _ in 0..7 {
        venue.advance(Duration::from_secs(6000)).await;
        busy.get(ME).await.ok();
    }
    idle.get(ME).await.refused(401, 1401);
    venue.advance(Duration::from_secs(1199)).await;
    busy.get(ME).await.ok();
    venue.advance(Duration::from_secs(1)).await;
    busy.get(ME).await.refused(401, 1401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_comes_later_shortens_a_session() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    venue.put_order("BK1", &Order::paid()).await;
    let visitor = venue.visitor().await;
    let month = visitor.get(ME).await.ok()["expiresAt"].as_i64().unwrap();
    venue.put_guide("13800000001", "张伟").await;
    let me = visitor.get(ME).await.ok();
    assert_eq!(me["roles"], json!(["visitor", "guide"]));
    assert_eq!(month - me["expiresAt"].as_i64().unwrap(), (30 * 24 - 12) * 3_600_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_of_the_other_name_is_not_looked_at() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let guide = venue.guide().await;
    let token = guide.credential.clone().unwrap().1.replace("Bearer ", "");
    let with = |cookie: String| venue.nobody().request(Method::GET, ME).header("cookie", cookie);
    Answer::to(with(format!("__Host-guidepost=stale; guidepost={token}"))).await.ok();
    Answer::to(with(format!("__Host-guidepost={token}"))).await.refused(401, 1401);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_route_asks_for_its_own_role() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    venue.put_order("BK1", &Order::paid()).await;
    let (guide, visitor, admin) = (venue.guide().await, venue.visitor().await, venue.admin().await);
    for caller in [&guide, &admin] {
        caller.get(LIST).await.refused(403, 1403);
        caller.verify_code("BK1").await.refused(403, 1403);
    }
    for caller in [&visitor, &admin] {
        caller.redeem("BK1", "483921").await.refused(403, 1403);
        caller.get("/app-api/team/guide-task/list").await.refused(403, 1403);
    }
    for caller in [&visitor, &guide] {
        caller.redeem_as_admin("BK1", "483921").await.refused(403, 1403);
    }
    let nobody = venue.nobody();
    nobody.redeem("BK1", "483921").await.refused(401, 1401);
    nobody.get(LIST).await.refused(401, 1401);
    venue.bearer("made-up").get(ME).await.refused(401, 1401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_an_unknown_name_have_one_answer() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let password = Secret::new("correct horse");
    create::admin(venue.server.app(), TenantId(1), "boss", None, Some(password)).await.unwrap();
    let login = async |username: &str, password: &str| {
        venue.nobody().post("/api/auth/login", &json!({"username": username, "password": password})).await
    };
    assert_eq!(login("boss", "correct horse").await.ok()["roles"], json!(["admin"]));
    let wrong = login("boss", "correct horse ").await;
    wrong.refused(401, 1401);
    for (username, password) in [("nobody", "correct horse"), ("", ""), ("boss", ""), ("boss", &"x".repeat(5000))] {
        assert_eq!(login(username, password).await.text, wrong.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tenant_must_be_named_where_there_are_several_and_must_be_the_sessions() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let app = venue.server.app();
    let other = create::tenant(app, "Elsewhere").await.unwrap();
    let password = Secret::new("correct horse");
    create::admin(app, other, "boss", None, Some(password)).await.unwrap();
    let login = |tenant: Option<&str>| {
        let request = venue.nobody().request(Method::POST, "/api/auth/login");
        let request = tenant.iter().fold(request, |request, tenant| request.header("tenant-id", *tenant));
        request.json(&json!({"username": "boss", "password": "correct horse"}))
    };
    assert_eq!(Answer::to(login(None)).await.refused(400, 1400)["field"], "tenant-id");
    for wrong in ["99", "-1", "one", "1e3", ""] {
        assert_eq!(Answer::to(login(Some(wrong))).await.refused(400, 1400)["field"], "tenant-id");
    }
    Answer::to(login(Some("1"))).await.refused(401, 1401);
    let token = Answer::to(login(Some("2"))).await.ok()["token"].as_str().unwrap().to_owned();
    let admin = venue.bearer(&token);
    let me = |tenant: &str| admin.request(Method::GET, ME).header("tenant-id", tenant);
    Answer::to(me("2")).await.ok();
    Answer::to(me("1")).await.refused(403, 1403);
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_do_not_see_each_other() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let code = venue.paid_order_with_code("BK1").await;
    let app = venue.server.app();
    let other = create::tenant(app, "Elsewhere").await.unwrap();
    let made = create::admin(app, other, "boss", None, None).await.unwrap().unwrap();
    let key = create::api_key(app, other, "tests").await.unwrap();
    let request = venue.nobody().request(Method::POST, "/api/auth/login").header("tenant-id", "2");
    let signed_in = Answer::to(request.json(&json!({"username": "boss", "password": made.expose()}))).await.ok();
    let admin = venue.bearer(signed_in["token"].as_str().unwrap());
    admin.redeem_as_admin("BK1", &code).await.refused(404, 2001);

    let mut machine = venue.machine().clone();
    machine.credential = Some(("x-api-key".to_owned(), key.expose().to_owned()));
    // The same number is another order there; the task of the other tenant is not known.
    let answer = machine.put("/open-api/orders/BK1", &Order::paid().body).await;
    assert_eq!(answer.refused(400, 1400)["field"], "taskNo");
    machine
        .put("/open-api/orders/BK1", &Order::paid().with("taskNo", json!(null)).with("status", "cancelled").body)
        .await
        .ok();
    venue.guide().await.redeem("BK1", &code).await.ok();
}
