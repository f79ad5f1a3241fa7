//! Order files and the orders that there are: whole or not at all, by the life of an order, beside redemptions.

use api_tests::{Caller, Order, Stores, Venue};
use guidepost_server::accounts::create;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::{Value, json};
use std::time::Duration;
use wire::TenantId;

use crate::every_store;

/// A file of lines behind the header; `{}` of a line is what most of them share.
fn file(lines: &[&str]) -> String {
    let mut text = "orderNo,mobile,visitorName,partySize,visitAt,status,taskNo\n".to_owned();
    for line in lines {
        text += &line.replace("{}", "13800000001,张伟,4,2026-08-01 09:00");
        text.push('\n');
    }
    text
}

/// New, changed, unchanged, faults.
fn counts(view: &Value) -> [i64; 4] {
    ["new", "changed", "unchanged", "faultCount"].map(|key| view[key].as_i64().unwrap())
}

async fn import(admin: &Caller, file: String) -> Value {
    let preview = admin.upload(file).await.ok();
    assert_eq!(preview["faultCount"], 0, "{preview}");
    admin.apply(&preview).await.ok()
}

#[apply(every_store)]
async fn a_fault_in_the_last_line_changes_nothing(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let mut lines: Vec<String> = (0..1200).map(|n| format!("BK{n},{{}},paid,T9")).collect();
    lines.push("BK1200,{},paid?,T9".to_owned());
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let preview = admin.upload(file(&lines)).await.ok();
    assert_eq!((&preview["state"], &preview["faults"][0]["line"]), (&json!("refused"), &json!(1202)));
    admin.apply(&preview).await.refused(409, 1409);
    assert_eq!(venue.count("SELECT COUNT(*) FROM booking_order").await, 0);
    assert_eq!(venue.count("SELECT COUNT(*) FROM task WHERE task_no = 'T9'").await, 0);
    assert_eq!(venue.count("SELECT COUNT(*) FROM order_import_row").await, 0);
    let applied = import(&admin, file(&lines[..1200])).await;
    assert_eq!(counts(&applied), [1200, 0, 0, 0]);
}

#[apply(every_store)]
async fn an_order_is_changed_by_its_life_or_named(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    for (no, status) in
        [("A", "pending_payment"), ("B", "paid"), ("C", "refunding"), ("D", "cancelled"), ("E", "consumed")]
    {
        venue.put_order(no, &Order::paid().with("status", status)).await;
    }
    let good = ["A,{},paid,T1", "B,{},退款中,T1", "C,{},paid,T1", "D,{},cancelled,T1", "E,{},consumed,T1"];
    let preview = admin
        .upload(file(&["A,{},consumed,T1", "B,{},refunded,T1", good[2], "D,{},paid,T1", "E,{},paid,T1"]))
        .await
        .ok();
    let lines: Vec<_> = preview["faults"].as_array().unwrap().iter().map(|f| f["line"].as_i64().unwrap()).collect();
    assert_eq!(lines, [2, 3, 5, 6]);
    assert_eq!(preview["faults"][3]["message"], "the order is consumed and may not become paid");
    let applied = import(&admin, file(&good)).await;
    assert_eq!(counts(&applied), [0, 3, 2, 0]);
    for (no, want) in [("A", "paid"), ("B", "refunding"), ("C", "paid"), ("D", "cancelled"), ("E", "consumed")] {
        assert_eq!(venue.status(no).await, want);
    }
    let again = import(&admin, file(&good)).await;
    assert_eq!(counts(&again), [0, 0, 5, 0], "the same file again changes nothing");
}

#[apply(every_store)]
async fn a_redemption_between_preview_and_apply_stands_and_refuses_the_file(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let code = venue.paid_order_with_code("BK1").await;
    // Once where the file changes the order, and once where it does not.
    for (n, line) in ["BK1,{},refunding,T1", "BK1,{},paid,T1"].into_iter().enumerate() {
        if n == 1 {
            venue.put_order("BK3", &Order::paid()).await;
        }
        let order = ["BK1", "BK3"][n];
        let preview = admin.upload(file(&["NEW,{},paid,T9", &line.replace("BK1", order)])).await.ok();
        assert_eq!(preview["faultCount"], 0);
        let code = if n == 0 { code.clone() } else { venue.paid_order_with_code("BK3").await };
        venue.guide().await.redeem(order, &code).await.ok();
        let refused = admin.apply(&preview).await.refused(409, 1409);
        assert_eq!((&refused["state"], &refused["faults"][0]["line"]), (&json!("refused"), &json!(3)), "{refused}");
        assert_eq!(venue.status(order).await, "consumed");
    }
    assert_eq!(venue.count("SELECT COUNT(*) FROM booking_order WHERE order_no = 'NEW'").await, 0);
    assert_eq!(venue.count("SELECT COUNT(*) FROM task WHERE task_no = 'T9'").await, 0);
}

#[apply(every_store)]
async fn an_order_that_leaves_paid_or_changes_hands_loses_its_code(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let mut codes = Vec::new();
    for no in ["LEFT", "MOVED", "STAYS"] {
        codes.push(venue.paid_order_with_code(no).await);
    }
    let moved = "MOVED,13800000002,张伟,4,2026-08-01 09:00,paid,T1";
    import(&admin, file(&["LEFT,{},refunding,T1", moved, "STAYS,{},paid,T1"])).await;
    let guide = venue.guide().await;
    // Back to paid: an old code must not be good again.
    venue.put_order("LEFT", &Order::paid()).await;
    guide.redeem("LEFT", &codes[0]).await.refused(422, 2003);
    guide.redeem("MOVED", &codes[1]).await.refused(422, 2003);
    guide.redeem("STAYS", &codes[2]).await.ok();
    assert_eq!(venue.sign_in("13800000002").await.verify_code("MOVED").await.ok()["orderNo"], "MOVED");
}

#[apply(every_store)]
async fn two_imports_of_one_file_make_its_orders_once(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let lines: Vec<String> =
        (0..700).map(|n| format!("BK{n},138000{n:05},张伟,4,2026-08-01 09:00,consumed,T{}", n % 7)).collect();
    let text = file(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let mut previews = Vec::new();
    for _ in 0..4 {
        previews.push(admin.upload(text.clone()).await.ok());
    }
    assert!(previews.iter().all(|preview| preview["new"] == 700));
    let applied = futures::future::join_all(previews.iter().map(|preview| admin.apply(preview))).await;
    let applied: Vec<Value> = applied.iter().map(api_tests::Answer::ok).collect();
    let new: i64 = applied.iter().map(|view| view["new"].as_i64().unwrap()).sum();
    let unchanged: i64 = applied.iter().map(|view| view["unchanged"].as_i64().unwrap()).sum();
    assert_eq!((new, unchanged), (700, 2100));
    assert_eq!(venue.count("SELECT COUNT(*) FROM booking_order").await, 700);
    let audit = "SELECT COUNT(*) FROM redemption WHERE operator_type = 'system' AND result = 0 AND standing_order_id = order_id";
    assert_eq!(venue.count(audit).await, 700, "each order that arrived consumed has one row in the audit");
    // T1 was there, with its guide.
    assert_eq!(venue.count("SELECT COUNT(*) FROM task").await, 7);
    let title = "SELECT COUNT(*) FROM task WHERE task_no = 'T1' AND title <> 'T1'";
    assert_eq!(venue.count(title).await, 1, "a known task stays as it is");
}

#[apply(every_store)]
async fn a_preview_is_applied_once_however_often_it_is_asked_for(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let preview = admin.upload(file(&["BK1,{},paid,T1"])).await.ok();
    let answers = futures::future::join_all((0..5).map(|_| admin.apply(&preview))).await;
    let first = answers[0].ok();
    assert_eq!(counts(&first), [1, 0, 0, 0]);
    for answer in &answers {
        assert_eq!(answer.ok(), first, "who asks again gets the first answer");
    }
    assert_eq!(admin.get(&format!("/admin-api/order-imports/{}", preview["id"])).await.ok(), first);
}

#[apply(every_store)]
async fn a_task_column_that_is_missing_leaves_tasks_and_an_empty_cell_takes_an_order_out(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    venue.put_order("BK1", &Order::paid()).await;
    let without = "orderNo,mobile,visitorName,partySize,visitAt,status\nBK1,13800000001,王五,4,2026-08-01 09:00,paid\n";
    assert_eq!(counts(&import(&admin, without.to_owned()).await), [0, 1, 0, 0]);
    let in_task = "SELECT COUNT(*) FROM booking_order WHERE task_id IS NOT NULL";
    assert_eq!(venue.count(in_task).await, 1);
    assert_eq!(counts(&import(&admin, file(&["BK1,{},paid,"])).await), [0, 1, 0, 0]);
    assert_eq!(venue.count(in_task).await, 0);
    // A guide who books becomes a visitor as well, and keeps their name.
    import(&admin, file(&["BK2,13900000001,别名,4,2026-08-01 09:00,paid,T1"])).await;
    let me = venue.guide().await.get("/api/auth/me").await.ok();
    assert_eq!((&me["name"], &me["roles"]), (&json!("林悦"), &json!(["visitor", "guide"])));
}

#[apply(every_store)]
async fn a_preview_that_nobody_applies_is_dropped_after_a_day(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let preview = admin.upload(file(&["BK1,{},paid,T1"])).await.ok();
    // What a server leaves that dies while it reads.
    let database = venue.database().await;
    for sql in [
        "INSERT INTO order_import (id, tenant_id, state, created_at, touched_at) VALUES (77, 1, 'reading', 0, 0)",
        "INSERT INTO order_import_row (import_id, line, tenant_id, order_no, mobile, visitor_name, party_size, visit_at, status, action)
         VALUES (77, 2, 1, 'X', '+8613800000001', 'x', 1, 0, 'paid', 'new')",
    ] {
        sqlx::query(sql).execute(&database).await.unwrap();
    }
    venue.advance(Duration::from_secs(24 * 3600 + 1)).await;
    let password = create::admin(venue.server.app(), TenantId(1), "next", None, None).await.unwrap().unwrap();
    let body = json!({"username": "next", "password": password.expose()});
    let signed_in = venue.nobody().post("/api/auth/login", &body).await.ok();
    let admin = venue.bearer(signed_in["token"].as_str().unwrap());
    admin.upload(file(&[])).await.ok();
    assert_eq!(venue.count("SELECT COUNT(*) FROM order_import_row").await, 0);
    assert_eq!(admin.apply(&preview).await.refused(409, 1409)["state"], "dropped");
    assert_eq!(admin.get("/admin-api/order-imports/77").await.ok()["state"], "dropped");
    assert_eq!(venue.count("SELECT COUNT(*) FROM booking_order").await, 0);
}

#[apply(every_store)]
async fn a_file_read_in_the_background_says_how_far_it_is(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let lines: Vec<String> = (0..2000).map(|n| format!("BK{n},{{}},paid,")).collect();
    let text = file(&lines.iter().map(String::as_str).collect::<Vec<_>>());
    let request = admin.request(reqwest::Method::POST, "/admin-api/order-imports?background=true");
    let begun = api_tests::Answer::to(request.header("content-type", "text/csv").body(text)).await.ok();
    let path = format!("/admin-api/order-imports/{}", begun["id"]);
    let started = std::time::Instant::now();
    loop {
        let view = admin.get(&path).await.ok();
        assert!(view["done"].as_i64() <= view["rows"].as_i64(), "{view}");
        if view["state"] == "previewed" {
            assert_eq!((&view["done"], &view["rows"], &view["new"]), (&json!(2000), &json!(2000), &json!(2000)));
            break;
        }
        assert_eq!(view["state"], "reading");
        assert!(started.elapsed() < Duration::from_secs(60), "it is never read: {view}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[apply(every_store)]
async fn a_file_that_is_still_read_cannot_be_applied(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let reading =
        "INSERT INTO order_import (id, tenant_id, state, created_at, touched_at) VALUES (77, 1, 'reading', ?, ?)";
    sqlx::query(reading).bind(api_tests::START).bind(api_tests::START).execute(&venue.database().await).await.unwrap();
    assert_eq!(admin.apply(&json!({"id": 77})).await.refused(409, 1409)["state"], "reading");
}

#[apply(every_store)]
async fn another_tenant_sees_nothing_of_it(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let preview = admin.upload(file(&["BK1,{},paid,T1"])).await.ok();
    let other = create::tenant(venue.server.app(), "other").await.unwrap();
    let password = create::admin(venue.server.app(), other, "boss", None, None).await.unwrap().unwrap();
    let login =
        venue.nobody().request(reqwest::Method::POST, "/api/auth/login").header("tenant-id", other.0.to_string());
    let login = login.json(&json!({"username": "boss", "password": password.expose()}));
    let signed_in = api_tests::Answer::to(login).await.ok();
    let stranger = venue.bearer(signed_in["token"].as_str().unwrap());
    stranger.get(&format!("/admin-api/order-imports/{}", preview["id"])).await.refused(404, 1404);
    stranger.apply(&preview).await.refused(404, 1404);
    import(&stranger, file(&["BK1,{},cancelled,T1"])).await;
    admin.apply(&preview).await.ok();
    assert_eq!(venue.count("SELECT COUNT(*) FROM booking_order WHERE order_no = 'BK1'").await, 2);
    let mixed =
        "SELECT COUNT(*) FROM booking_order o JOIN account a ON a.id = o.account_id JOIN task t ON t.id = o.task_id
        WHERE a.tenant_id <> o.tenant_id OR t.tenant_id <> o.tenant_id";
    assert_eq!(venue.count(mixed).await, 0);
}
