//! Exports: files that come back as the same values, and that break off rather than end half-way.

use crate::every_store;
use api_tests::{Order, START, Stores, Venue};
use reqwest::Method;
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::{Value, json};
use std::time::Duration;

/// The cells of a CSV file as whoever imports it reads them: quotes and one apostrophe in front are dropped.
fn cells(text: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut cell, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut chars = text.strip_prefix('\u{feff}').expect("a byte-order mark").chars().peekable();
    let read = |cell: &mut String| {
        let text = std::mem::take(cell);
        text.strip_prefix('\'').map(str::to_owned).unwrap_or(text)
    };
    while let Some(c) = chars.next() {
        match (c, quoted) {
            ('"', true) if chars.peek() == Some(&'"') => {
                chars.next();
                cell.push('"');
            }
            ('"', _) => quoted = !quoted,
            (',', false) => line.push(read(&mut cell)),
            ('\r', false) => {}
            ('\n', false) => {
                line.push(read(&mut cell));
                lines.push(std::mem::take(&mut line));
            }
            (c, _) => cell.push(c),
        }
    }
    assert!(line.is_empty() && cell.is_empty(), "the last line has no end");
    lines
}

const NAMES: [&str; 11] = [
    "张三",
    "=cmd|' /C calc'!A0",
    "+1",
    "-5",
    "@SUM(A1)",
    "O'Neill, \"Ann\"; x",
    "'t Hooft",
    "12E5",
    "1/2",
    "TRUE",
    "007",
];
const ORDER_NOS: [&str; 11] = [
    "202608010001",
    "12E5",
    "1-2",
    "007",
    "-5",
    "JAN-1",
    "BK1",
    "1E400",
    "_X",
    "TRUE",
    "123456789012345678901234567890",
];

#[apply(every_store)]
async fn orders_come_as_a_file_that_holds_the_same_values(stores: Stores) {
    let venue = Venue::open(stores).await;
    let mut want = vec![Vec::from(
        ["orderNo", "mobile", "visitorName", "partySize", "visitAt", "status", "taskNo"].map(str::to_owned),
    )];
    for (n, (order_no, name)) in ORDER_NOS.iter().zip(NAMES).enumerate() {
        let order = Order::paid().with("visitorName", name).with("visitAt", START + 1_800_000).with("partySize", n + 1);
        let order = if n % 2 == 0 { order } else { order.with("taskNo", json!(null)).with("status", "refunding") };
        venue.put_order(order_no, &order).await;
        let (status, task_no) = if n % 2 == 0 { ("paid", "T1") } else { ("refunding", "") };
        let size = (n + 1).to_string();
        want.push(Vec::from(
            [*order_no, "+8613800000001", name, &size, "2026-08-01 09:30", status, task_no].map(str::to_owned),
        ));
    }
    let admin = venue.admin().await;
    let file = admin.get("/admin-api/orders.csv").await;
    assert_eq!(file.headers["content-type"], "text/csv; charset=utf-8");
    assert_eq!(file.headers["content-disposition"], "attachment; filename=\"orders.csv\"");
    assert_eq!(cells(&file.text), want);
    for line in file.text.lines().skip(1) {
        for cell in line.split(',') {
            let runs = cell.trim_matches('"').starts_with(['=', '+', '-', '@']);
            assert!(!runs, "a spreadsheet would run {cell:?}");
        }
    }

    let count = async |query: &str| cells(&admin.get(&format!("/admin-api/orders.csv?{query}")).await.text).len() - 1;
    assert_eq!(count("status=paid").await, 6);
    assert_eq!(count("status=refunding&taskNo=T1").await, 0);
    assert_eq!(count("taskNo=T1").await, 6);
    assert_eq!(count("date=2026-08-01").await, 11);
    assert_eq!(count("date=2026-08-02").await, 0);
    for query in ["status=gone", "date=today", "date=2026-02-30", "taskNo=a'b"] {
        admin.get(&format!("/admin-api/orders.csv?{query}")).await.refused(400, 1400);
    }
    // Whole numbers are for admins alone.
    for other in [venue.guide().await, venue.visitor().await] {
        other.get("/admin-api/orders.csv").await.refused(403, 1403);
    }
    venue.machine().get("/admin-api/orders.csv").await.refused(401, 1401);
}

/// Makes 900 orders and as many audit rows.
async fn make_many(venue: &Venue) {
    venue.put_order("FIRST", &Order::paid()).await;
    let database = venue.database().await;
    for sql in [
        "INSERT INTO booking_order (tenant_id, order_no, account_id, visitor_name, party_size, visit_at, status, created_at, updated_at)
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900)
         SELECT 1, CONCAT('N', n.i), o.account_id, 'x', 1, 0, 'paid', 0, 0 FROM n JOIN booking_order o ON o.order_no = 'FIRST'",
        "INSERT INTO redemption (tenant_id, order_id, operator_type, result, at)
         SELECT 1, id, 'guide', 2003, 0 FROM booking_order WHERE order_no <> 'FIRST' ORDER BY id",
    ] {
        sqlx::query(sql).execute(&database).await.unwrap();
    }
}

#[apply(every_store)]
async fn the_feed_comes_as_json_lines_to_its_end(stores: Stores) {
    let venue = Venue::open(stores).await;
    make_many(&venue).await;
    let code = venue.paid_order_with_code("BK1").await;
    venue.guide().await.redeem("BK1", &code).await.ok();
    let machine = venue.machine();
    let lines = async |query: &str| {
        let file = machine.get(&format!("/open-api/redemptions.jsonl{query}")).await;
        assert_eq!(file.headers["content-type"], "application/jsonl; charset=utf-8");
        file.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let all = lines("").await;
    assert_eq!(all.len(), 900, "what is not ten seconds old is not in it");
    let page = machine.get("/open-api/redemptions?limit=2").await.ok();
    assert_eq!(page["items"].as_array().unwrap()[..], all[..2]);
    let rest = lines(&format!("?after={}", page["next"])).await;
    assert_eq!(rest[..], all[2..]);
    venue.clock.advance(Duration::from_secs(10));
    let last = lines(&format!("?after={}", all[899]["id"])).await;
    assert_eq!((last.len(), &last[0]["orderNo"]), (1, &json!("BK1")));
    machine.get("/open-api/redemptions.jsonl?after=x").await.refused(400, 1400);
}

/// The database gives out something impossible after some hundred rows: the transfer breaks, and does not end.
#[apply(every_store)]
async fn a_failure_half_way_is_no_end_of_the_file(stores: Stores) {
    let venue = Venue::open(stores).await;
    make_many(&venue).await;
    let admin = venue.admin().await;
    // The audit's file begins with the newest row.
    let files = [
        (&admin, "/admin-api/orders.csv", "N800"),
        (&admin, "/admin-api/redemptions.csv", "N100"),
        (venue.machine(), "/open-api/redemptions.jsonl", "N800"),
    ];
    let database = venue.database().await;
    for (caller, path, far) in files {
        let rename = async |from: &str, to: &str| {
            let sql = sqlx::query("UPDATE booking_order SET order_no = ? WHERE order_no = ?").bind(to).bind(from);
            sql.execute(&database).await.unwrap();
        };
        let whole = caller.request(Method::GET, path).send().await.unwrap().text().await;
        assert!(whole.unwrap().lines().count() >= 900, "{path}");
        rename(far, "a b").await;
        // Where the break comes before the answer's head has gone out, there is no answer at all.
        let half = async { caller.request(Method::GET, path).send().await?.text().await };
        assert!(half.await.is_err(), "{path}: half a file looks like a whole");
        rename("a b", far).await;
    }
}
