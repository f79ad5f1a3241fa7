//! The audit as a feed: complete and in order, however slowly others commit.

use crate::every_store;
use api_tests::{Caller, START, Stores, Venue};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Reads on from where it is.
struct Reader {
    machine: Caller,
    next: i64,
    ids: Vec<i64>,
}

impl Reader {
    fn of(venue: &Venue) -> Self {
        Self { machine: venue.machine().clone(), next: 0, ids: Vec::new() }
    }

    /// One page; the rows in it.
    async fn read(&mut self, limit: usize) -> Vec<Value> {
        let page = self.machine.get(&format!("/open-api/redemptions?after={}&limit={limit}", self.next)).await.ok();
        let items = page["items"].as_array().unwrap().clone();
        self.ids.extend(items.iter().map(|row| row["id"].as_i64().unwrap()));
        self.next = page["next"].as_i64().expect("the cursor is always there");
        items
    }
}

async fn all_ids(venue: &Venue) -> Vec<i64> {
    sqlx::query_scalar("SELECT id FROM redemption ORDER BY id").fetch_all(&venue.database().await).await.unwrap()
}

const INSERT: &str = "INSERT INTO redemption (tenant_id, operator_type, result, at) VALUES (1, 'guide', 2005, ?)";

#[apply(every_store)]
async fn a_row_shows_once_it_is_ten_seconds_old_and_the_cursor_is_always_there(stores: Stores) {
    let venue = Venue::open(stores).await;
    let mut reader = Reader::of(&venue);
    assert!(reader.read(10).await.is_empty());
    assert_eq!(reader.next, 0);
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    guide.redeem_as("BK1", &code, "r-1").await.ok();
    venue.clock.advance(Duration::from_millis(9_999));
    assert!(reader.read(10).await.is_empty());
    guide.redeem("BK1", &code).await.refused(409, 2002);
    venue.clock.advance(Duration::from_millis(1));
    let rows = reader.read(10).await;
    assert_eq!(
        rows,
        [json!({
            "id": reader.next, "orderNo": "BK1", "requestId": "r-1", "result": 0, "statusBefore": "paid", "statusAfter": "consumed",
            "operator": "林悦", "operatorType": "guide", "entry": "scan", "device": null, "address": "127.0.0.1", "at": START,
        })]
    );
    let cursor = reader.next;
    assert!(reader.read(10).await.is_empty());
    assert_eq!(reader.next, cursor);
    venue.clock.advance(Duration::from_secs(10));
    assert_eq!(reader.read(10).await[0]["result"], 2002);

    for query in ["after=x", "after=-1", "limit=0", "limit=501", "after=1&after=2", "after=1.5"] {
        let field = query.split('=').next().unwrap();
        let data = venue.machine().get(&format!("/open-api/redemptions?{query}")).await.refused(400, 1400);
        assert_eq!(data["field"], field, "{query}");
    }
    guide.get("/open-api/redemptions").await.refused(401, 1401);
    guide.get("/open-api/redemptions.jsonl").await.refused(401, 1401);
}

#[apply(every_store)]
async fn another_tenants_rows_are_not_in_it(stores: Stores) {
    let venue = Venue::open(stores).await;
    let database = venue.database().await;
    for sql in [
        "INSERT INTO tenant (id, name, created_at) VALUES (2, 'x', 0)",
        "INSERT INTO redemption (tenant_id, operator_type, result, at) VALUES (2, 'guide', 2005, 0)",
        "INSERT INTO redemption (tenant_id, operator_type, result, at) VALUES (1, 'guide', 2007, 0)",
        "INSERT INTO redemption (tenant_id, operator_type, result, at) VALUES (2, 'guide', 2005, 0)",
    ] {
        sqlx::query(sql).execute(&database).await.unwrap();
    }
    let rows = Reader::of(&venue).read(10).await;
    assert_eq!(rows.iter().map(|row| row["result"].as_i64().unwrap()).collect::<Vec<_>>(), [2007]);
}

/// Transactions that take their ids and then stay open for some seconds, while others commit and a reader reads.
/// SQLite has one writer, whose rows come in the order of their ids.
#[tokio::test(flavor = "multi_thread")]
async fn each_row_is_read_once_and_in_order_though_commits_come_late() {
    let venue = Venue::open(Stores::MariadbRedis).await;
    let database = venue.database().await;
    let mut reader = Reader::of(&venue);
    // Each round: some take ids and are held; some commit at once; time goes on; those held for long enough commit, in
    // another order than they began.
    let mut held = Vec::new();
    for round in 0..60_i64 {
        let now = START + round * 1_000;
        if round < 45 {
            for life in [4, 1] {
                let mut tx = database.begin().await.unwrap();
                // By the clock of a server that is two seconds ahead.
                sqlx::query(INSERT).bind(now + 2_000).execute(&mut *tx).await.unwrap();
                held.push((round + life, tx));
                sqlx::query(INSERT).bind(now).execute(&database).await.unwrap();
            }
        }
        for n in (0..held.len()).rev() {
            if held[n].0 <= round {
                held.remove(n).1.commit().await.unwrap();
            }
        }
        let limit = if round % 2 == 0 { 3 } else { 100 };
        reader.read(limit).await;
        venue.clock.advance(Duration::from_secs(1));
    }
    assert!(held.is_empty());
    while !reader.read(100).await.is_empty() {}
    let all = all_ids(&venue).await;
    assert_eq!(all.len(), 45 * 4);
    assert_eq!(reader.ids, all, "a row was missed, or came twice or late");
}

/// Redemptions and refusals of several operators at once, with a clock that goes on, and a reader beside them.
#[apply(every_store)]
async fn each_row_is_read_once_and_in_order_while_others_redeem(stores: Stores) {
    const GUIDES: usize = 4;
    const EACH: usize = 8;
    let venue = Arc::new(Venue::open(stores).await);
    let mobiles: Vec<String> = (0..GUIDES).map(|n| format!("1390000001{n}")).collect();
    for mobile in &mobiles {
        venue.put_guide(mobile, "x").await;
    }
    venue.put_task("T1", &mobiles.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let mut work = Vec::new();
    for (n, mobile) in mobiles.iter().enumerate() {
        let guide = venue.sign_in(mobile).await;
        for k in 0..EACH {
            let order_no = format!("BK{n}-{k}");
            let code = venue.paid_order_with_code(&order_no).await;
            work.push((guide.clone(), order_no, code));
        }
    }
    let done = Arc::new(AtomicBool::new(false));
    let reading = tokio::spawn({
        let (venue, done) = (venue.clone(), done.clone());
        async move {
            let mut reader = Reader::of(&venue);
            let mut moved = 0;
            while !done.load(Ordering::SeqCst) {
                reader.read(3).await;
                // Codes live for a minute by this clock.
                if moved < 400 {
                    venue.clock.advance(Duration::from_millis(100));
                    moved += 1;
                }
            }
            reader
        }
    });
    let redeem = |(guide, order_no, code): (Caller, String, String)| async move {
        guide.redeem(&order_no, &code).await.ok();
        guide.redeem(&order_no, &code).await.refused(409, 2002);
    };
    futures::StreamExt::for_each_concurrent(futures::stream::iter(work), 8, redeem).await;
    done.store(true, Ordering::SeqCst);
    let mut reader = reading.await.unwrap();
    venue.clock.advance(Duration::from_secs(10));
    while !reader.read(7).await.is_empty() {}
    let all = all_ids(&venue).await;
    assert_eq!(all.len(), GUIDES * EACH * 2);
    assert_eq!(reader.ids, all);
}

/// A row that waited for its turn is as old as its insert, not as the wait.
#[apply(every_store)]
async fn a_rows_time_is_that_of_its_insert(stores: Stores) {
    let venue = Venue::open(stores).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    let other = venue.block("BK1").await;
    let redeemed = tokio::spawn({
        let (guide, code) = (guide.clone(), code.clone());
        async move { guide.redeem_as("BK1", &code, "r-1").await }
    });
    for _ in 0..30 {
        venue.clock.advance(Duration::from_millis(100));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    other.rollback().await.unwrap();
    // On a busy machine the wait for the lock may have been too long.
    let mut answer = redeemed.await.unwrap();
    while answer.code() == 1503 {
        answer = guide.redeem_as("BK1", &code, "r-1").await;
    }
    let consumed = answer.ok();
    let at: i64 = venue.count("SELECT at FROM redemption").await;
    assert_eq!(at, START + 3_000, "the row is older than its insert");
    // The answer tells when the order was redeemed, and a repeat tells the same.
    assert_eq!(guide.redeem_as("BK1", &code, "r-1").await.ok()["consumedAt"], consumed["consumedAt"]);
}
