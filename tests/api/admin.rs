//! The audit as an admin reads it; compensation and reversal, which wait for SMS.

use crate::every_store;
use api_tests::{START, Stores, Venue};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::{Value, json};

fn ids(page: &Value) -> Vec<i64> {
    page["items"].as_array().unwrap().iter().map(|row| row["id"].as_i64().unwrap()).collect()
}

#[apply(every_store)]
async fn the_audit_is_read_page_by_page_and_filtered(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.random.next([483_921, 725_310]);
    let code = venue.paid_order_with_code("BK1").await;
    venue.paid_order_with_code("BK2").await;
    let (guide, admin) = (venue.guide().await, venue.admin().await);
    guide.redeem("BK2", "100000").await.refused(422, 2003);
    guide.redeem_as("BK1", &code, "r-1").await.ok();
    guide.redeem("BK1", &code).await.refused(409, 2002);
    let all = admin.get("/admin-api/redemptions").await.ok();
    assert_eq!((ids(&all).len(), &all["next"]), (3, &json!(null)));
    let first = admin.get("/admin-api/redemptions?limit=2").await.ok();
    let second = admin.get(&format!("/admin-api/redemptions?limit=2&before={}", first["next"])).await.ok();
    assert_eq!([ids(&first), ids(&second)].concat(), ids(&all));
    let success = admin.get("/admin-api/redemptions?result=0&orderNo=bk1").await.ok()["items"][0].clone();
    assert_eq!(
        success,
        json!({
            "id": success["id"], "orderNo": "BK1", "requestId": "r-1", "result": 0, "statusBefore": "paid", "statusAfter": "consumed",
            "operator": "林悦", "operatorType": "guide", "entry": "scan", "device": null, "address": "127.0.0.1", "at": START,
        })
    );
    let later = format!("/admin-api/redemptions?from={}", START + 1);
    assert!(ids(&admin.get(&later).await.ok()).is_empty());
    for query in ["limit=0", "limit=501", "before=x", "result=x", "orderNo=a'b", "from=yesterday"] {
        admin.get(&format!("/admin-api/redemptions?{query}")).await.refused(400, 1400);
    }
    guide.get("/admin-api/redemptions").await.refused(403, 1403);
}

#[apply(every_store)]
async fn the_audit_comes_as_a_file_for_spreadsheets(stores: Stores) {
    let venue = Venue::open(stores).await;
    venue.put_guide("13900000001", "=HYPERLINK(\"x\")").await;
    let code = venue.paid_order_with_code("BK1").await;
    venue.guide().await.redeem("BK1", &code).await.ok();
    let file = venue.admin().await.get("/admin-api/redemptions.csv").await;
    let lines: Vec<&str> = file.text.trim_start_matches('\u{feff}').lines().collect();
    assert!(file.text.starts_with('\u{feff}') && lines[0].starts_with("id,orderNo,result"), "{}", file.text);
    assert!(lines[1].ends_with(",2026-08-01 09:00:00"), "{}", lines[1]);
    assert!(lines[1].contains("\"'=HYPERLINK(\"\"x\"\")\""), "{}", lines[1]);
}
