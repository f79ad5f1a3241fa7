//! Two tenants on one server with the same order, task and mobile numbers: neither sees, changes or uses up the other's.

use crate::every_store;
use api_tests::{Answer, Caller, Order, START, Stores, Venue};
use guidepost_server::accounts::{create, link, store};
use reqwest::Method;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::{Value, json};
use sqlx::Row;
use wire::{Mobile, TenantId};

/// A tenant's people; everywhere the same numbers, and its own names.
struct People {
    tenant: i64,
    name: &'static str,
    machine: Caller,
    admin: Caller,
    guide: Caller,
    visitor: Caller,
    /// The guide's account.
    guide_id: i64,
    /// The code of order BK1.
    code: String,
}

const WRONG: &str = "100000";
const BY_CODE: &str = "/app-api/team/guide-task/booking/consume-by-code";

/// Tenant 1 is the venue's own, tenant 2 is made here. Both have the guide 13900000001 in the task T1 and the visitor
/// 13800000001 with the paid order BK1.
async fn two_tenants(venue: &Venue) -> [People; 2] {
    let app = venue.server.app();
    let other = create::tenant(app, "Elsewhere").await.unwrap();
    assert_eq!(other, TenantId(2));
    venue.random.next([483_921, 725_310]);
    [people(venue, TenantId(1), "甲馆").await, people(venue, other, "乙馆").await]
}

async fn people(venue: &Venue, tenant: TenantId, name: &'static str) -> People {
    let app = venue.server.app();
    let key = create::api_key(app, tenant, "tests").await.unwrap();
    let mut machine = venue.machine().clone();
    machine.credential = Some(("x-api-key".to_owned(), key.expose().to_owned()));
    machine.post("/open-api/guides", &json!({"mobile": "13900000001", "name": format!("{name}讲解员")})).await.ok();
    let task = json!({
        "title": name, "venue": name, "startsAt": START, "endsAt": START + 7_200_000, "guideMobiles": ["13900000001"],
    });
    machine.put("/open-api/tasks/T1", &task).await.ok();
    machine.put("/open-api/orders/BK1", &order(name).body).await.ok();

    let sign_in = async |mobile: &str| {
        let mobile = Mobile::parse(mobile).unwrap();
        let account = store::account_by_mobile(&app.db, tenant, &mobile).await.unwrap().unwrap();
        let token = link::make(app, &account).await.unwrap();
        let body = json!({"token": token.expose()});
        let signed_in = venue.nobody().post("/api/auth/sign-in-link", &body).await.ok();
        (venue.bearer(signed_in["token"].as_str().unwrap()), account.id)
    };
    let (guide, guide_id) = sign_in("13900000001").await;
    let (visitor, _) = sign_in("13800000001").await;
    let made = create::admin(app, tenant, "boss", None, None).await.unwrap().unwrap();
    let login = venue.nobody().request(Method::POST, "/api/auth/login").header("tenant-id", tenant.0.to_string());
    let login = login.json(&json!({"username": "boss", "password": made.expose()}));
    let admin = venue.bearer(Answer::to(login).await.ok()["token"].as_str().unwrap());
    let code = visitor.verify_code("BK1").await.ok()["verifyCode"].as_str().unwrap().to_owned();
    People { tenant: tenant.0, name, machine, admin, guide, visitor, guide_id, code }
}

/// An order whose visitor has the tenant's name.
fn order(name: &str) -> Order {
    Order::paid().with("visitorName", name)
}

async fn status(venue: &Venue, of: &People, order_no: &str) -> String {
    let row = sqlx::query("SELECT status FROM booking_order WHERE tenant_id = ? AND order_no = ?");
    row.bind(of.tenant).bind(order_no).fetch_one(&venue.database().await).await.unwrap().get("status")
}

async fn by_code(guide: &Caller, code: &str) -> Answer {
    guide.post(BY_CODE, &json!({"verifyCode": code})).await
}

/// Every value of a field in a list.
fn all(list: &Value, field: &str) -> Vec<Value> {
    list.as_array().unwrap().iter().map(|item| item[field].clone()).collect()
}

#[apply(every_store)]
async fn each_sees_its_own_under_the_same_numbers(stores: Stores) {
    let venue = Venue::open(stores).await;
    for of in &two_tenants(&venue).await {
        let name = of.name;
        let tasks = of.guide.get("/app-api/team/guide-task/list").await.ok();
        assert_eq!((all(&tasks, "title"), &tasks[0]["total"]), (vec![json!(name)], &json!(1)), "{name}");
        let orders = of.guide.get("/app-api/team/guide-task/T1/orders").await.ok();
        assert_eq!(all(&orders, "visitorName"), [format!("{}*", name.chars().next().unwrap())], "{name}");
        let own = of.visitor.get("/app-api/team/booking/booking/list").await.ok();
        assert_eq!((all(&own, "visitorName"), all(&own, "title")), (vec![json!(name)], vec![json!(name)]));
        let guides = of.admin.get("/admin-api/guides").await.ok();
        assert_eq!(all(&guides, "id"), [json!(of.guide_id)], "{name}");
    }
}

#[apply(every_store)]
async fn a_code_redeems_the_order_of_its_own_tenant_alone(stores: Stores) {
    let venue = Venue::open(stores).await;
    let [one, two] = two_tenants(&venue).await;
    assert_ne!(one.code, two.code);
    one.machine.put("/open-api/orders/ONLY1", &order("甲馆").with("partySize", 9).body).await.ok();
    let only = one.visitor.verify_code("ONLY1").await.ok()["verifyCode"].as_str().unwrap().to_owned();
    // The other's code for the order of the same number, by every way there is.
    two.guide.redeem("BK1", &one.code).await.refused(422, 2003);
    two.admin.redeem_as_admin("BK1", &one.code).await.refused(422, 2003);
    by_code(&two.guide, &one.code).await.refused(422, 2003);
    by_code(&two.guide, &only).await.refused(422, 2003);
    // An order that the other alone has.
    for answer in [
        two.guide.redeem("ONLY1", &only).await,
        two.admin.redeem_as_admin("ONLY1", &only).await,
        two.visitor.verify_code("ONLY1").await,
    ] {
        answer.refused(404, 2001);
    }
    let rotate = json!({"orderNo": "ONLY1", "confirm": true});
    let path = "/app-api/team/booking/booking/verify-code/rotate";
    two.visitor.post(path, &rotate).await.refused(404, 2001);
    assert_eq!(status(&venue, &one, "ONLY1").await, "paid");
    // One's own works, the other's stays as it was; the same request id is another attempt there.
    assert_eq!(two.guide.redeem_as("BK1", &two.code, "r-1").await.ok()["visitorName"], "乙馆");
    assert_eq!(
        (status(&venue, &one, "BK1").await, status(&venue, &two, "BK1").await),
        ("paid".into(), "consumed".into())
    );
    let answer = one.guide.redeem_as("BK1", &one.code, "r-1").await.ok();
    assert_eq!((&answer["visitorName"], &answer["replayed"]), (&json!("甲馆"), &json!(false)));
}

#[apply(every_store)]
async fn by_code_finds_the_order_of_its_own_tenant_alone(stores: Stores) {
    let venue = Venue::open(stores).await;
    // Both tenants' orders have the same code by now: no ambiguity, for neither sees the other's.
    let app = venue.server.app();
    let other = create::tenant(app, "Elsewhere").await.unwrap();
    venue.random.next([483_921, 483_921]);
    let (one, two) = (people(&venue, TenantId(1), "甲馆").await, people(&venue, other, "乙馆").await);
    assert_eq!(one.code, two.code);
    assert_eq!(by_code(&two.guide, &one.code).await.ok()["visitorName"], "乙馆");
    assert_eq!(status(&venue, &one, "BK1").await, "paid");
    assert_eq!(by_code(&one.guide, &one.code).await.ok()["visitorName"], "甲馆");
}

#[apply(every_store)]
async fn rotating_kills_the_code_of_its_own_tenant_alone(stores: Stores) {
    let venue = Venue::open(stores).await;
    let [one, two] = two_tenants(&venue).await;
    let body = json!({"orderNo": "BK1", "confirm": true});
    let path = "/app-api/team/booking/booking/verify-code/rotate";
    two.visitor.post(path, &body).await.ok();
    two.guide.redeem("BK1", &two.code).await.refused(422, 2003);
    // Nor does its pause of a minute hold the other up.
    assert_eq!(one.visitor.verify_code("BK1").await.ok()["verifyCode"], one.code);
    one.visitor.post(path, &body).await.ok();
}

#[apply(every_store)]
async fn a_machine_changes_its_own_tenant_alone(stores: Stores) {
    let venue = Venue::open(stores).await;
    let [one, two] = two_tenants(&venue).await;
    two.machine.put("/open-api/orders/BK1", &order("乙馆").with("status", "refunding").body).await.ok();
    assert_eq!(
        (status(&venue, &one, "BK1").await, status(&venue, &two, "BK1").await),
        ("paid".into(), "refunding".into())
    );
    assert_eq!(one.visitor.verify_code("BK1").await.ok()["verifyCode"], one.code, "its code has gone");
    let task = json!({"title": "改了", "venue": "改了", "startsAt": START, "endsAt": START, "guideMobiles": []});
    two.machine.put("/open-api/tasks/T1", &task).await.ok();
    two.machine.post("/open-api/guides", &json!({"mobile": "13900000001", "name": "改了"})).await.ok();
    let tasks = one.guide.get("/app-api/team/guide-task/list").await.ok();
    assert_eq!(all(&tasks, "title"), ["甲馆"]);
    assert_eq!(one.guide.get("/api/auth/me").await.ok()["name"], "甲馆讲解员");
    // A task that the other alone has, and the other's tenant by name.
    one.machine.put("/open-api/tasks/T9", &task).await.ok();
    let foreign = two.machine.put("/open-api/orders/NEW", &order("乙馆").with("taskNo", "T9").body).await;
    assert_eq!(foreign.refused(400, 1400)["field"], "taskNo");
    let named = two.machine.request(Method::PUT, "/open-api/orders/BK1").header("tenant-id", "1");
    Answer::to(named.json(&order("乙馆").body)).await.refused(403, 1403);
    one.guide.redeem("BK1", &one.code).await.ok();
}

#[apply(every_store)]
async fn an_admin_reads_and_rules_their_own_tenant_alone(stores: Stores) {
    let venue = Venue::open(stores).await;
    let [one, two] = two_tenants(&venue).await;
    // Settings.
    let before = one.admin.get("/admin-api/settings").await.ok();
    two.admin.put("/admin-api/settings", &json!({"limits.consume.freeze": 1, "verify_code.ttl": 7})).await.ok();
    assert_eq!(one.admin.get("/admin-api/settings").await.ok(), before);
    assert_eq!(two.admin.get("/admin-api/settings").await.ok()["verify_code.ttl"], 7);
    // Freezing by the other's account number.
    for what in ["freeze", "unfreeze"] {
        let path = format!("/admin-api/guides/{}/{what}", one.guide_id);
        two.admin.post(&path, &json!({})).await.refused(404, 1404);
    }
    one.guide.redeem("BK1", WRONG).await.refused(422, 2003);
    // One failure freezes in tenant 2, and the alert is there.
    two.guide.redeem("BK1", WRONG).await.refused(422, 2003);
    two.guide.redeem("BK1", WRONG).await.refused(403, 2007);
    one.guide.redeem("BK1", &one.code).await.ok();
    assert_eq!(one.admin.get("/admin-api/alerts").await.ok()["items"], json!([]));
    let alerts = two.admin.get("/admin-api/alerts").await.ok();
    assert_eq!(all(&alerts["items"], "name"), ["乙馆讲解员"]);
    // The audit, whole and filtered, and as a file.
    let rows = async |of: &People, query: &str| {
        let page = of.admin.get(&format!("/admin-api/redemptions{query}")).await.ok();
        let mut results: Vec<i64> = all(&page["items"], "result").iter().map(|r| r.as_i64().unwrap()).collect();
        results.sort_unstable();
        (results, all(&page["items"], "operator"))
    };
    let name = |of: &People| json!(format!("{}讲解员", of.name));
    assert_eq!(rows(&one, "").await, (vec![0, 2003], vec![name(&one); 2]));
    assert_eq!(rows(&two, "").await, (vec![2003, 2007], vec![name(&two); 2]));
    assert_eq!(rows(&two, "?orderNo=BK1").await.0, [2003, 2007]);
    assert_eq!(rows(&two, &format!("?operator={}", one.guide_id)).await.0, Vec::<i64>::new());
    assert_eq!(rows(&two, "?result=0").await.0, Vec::<i64>::new());
    for (of, other) in [(&one, &two), (&two, &one)] {
        let file = of.admin.get("/admin-api/redemptions.csv").await.text;
        assert_eq!(file.lines().count(), 3, "{file}");
        assert!(file.contains(of.name) && !file.contains(other.name), "{file}");
        let filtered = of.admin.get(&format!("/admin-api/redemptions.csv?operator={}", other.guide_id)).await.text;
        assert_eq!(filtered.lines().count(), 1, "{filtered}");
    }
}

/// Failures, addresses and locks of one are nothing to the other.
#[apply(every_store)]
async fn limits_are_counted_by_tenant(stores: Stores) {
    let venue = Venue::open_with(stores, |config| {
        config.limits.consume.ip = 6;
        config.alerts.consume_failures = 6;
    })
    .await;
    let [one, two] = two_tenants(&venue).await;
    // The order's lock, the address's fence and the tenant's alert, each up to the last but one; all from one address.
    for _ in 0..5 {
        one.guide.redeem("BK1", WRONG).await.refused(422, 2003);
    }
    one.admin.redeem_as_admin("BK1", &one.code).await.refused(429, 2005);
    one.admin.redeem_as_admin("NOWHERE", WRONG).await.refused(429, 2005);
    for _ in 0..4 {
        two.guide.redeem("BK1", WRONG).await.refused(422, 2003);
    }
    two.admin.redeem_as_admin("BK1", &two.code).await.ok();
    for of in [&one, &two] {
        assert_eq!(of.admin.get("/admin-api/alerts").await.ok()["items"], json!([]), "{}", of.name);
    }
}
