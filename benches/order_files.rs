//! How long an order file of 100,000 lines takes, what memory it needs, and how long a redemption may have to wait for it.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark that cannot go on has failed, and prints")]

use api_tests::{Answer, Caller, Order, Stores, Venue};
use rust_xlsxwriter::Workbook;
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LINES: usize = 100_000;
const HEADER: [&str; 7] = ["orderNo", "mobile", "visitorName", "partySize", "visitAt", "status", "taskNo"];

fn line(n: usize, status: &str) -> [String; 7] {
    let task = format!("T{}", n % 500);
    let cells = ["欧阳娜娜", "4", "2026-08-01 09:30", status, &task];
    let [name, party, at, status, task] = cells.map(str::to_owned);
    [format!("BK2026{n:08}"), format!("138{n:08}"), name, party, at, status, task]
}

fn csv(status: &str) -> Vec<u8> {
    let lines = (0..LINES).map(|n| line(n, status).join(","));
    let all: Vec<String> = std::iter::once(HEADER.join(",")).chain(lines).collect();
    (all.join("\n") + "\n").into_bytes()
}

fn xlsx(status: &str) -> Vec<u8> {
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    for (column, name) in (0..).zip(HEADER) {
        sheet.write(0, column, name).unwrap();
    }
    for (row, n) in (1..).zip(0..LINES) {
        for (column, cell) in (0..).zip(line(n, status)) {
            sheet.write(row, column, cell).unwrap();
        }
    }
    book.save_to_buffer().unwrap()
}

/// A number of this process's in /proc/self/status, MiB.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// Forgets the highest mark so far.
fn reset_peak() {
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
}

/// Writes an order of a visitor's who is not in the file, as a redemption would, until told to stop; the longest that one
/// took, how many there were, and how many failed.
async fn beside(venue: Arc<Venue>, stop: Arc<AtomicBool>) -> (Duration, u32, u32) {
    let (mut longest, mut done, mut failed) = (Duration::ZERO, 0, 0);
    let order = Order::paid().with("mobile", "13700000001");
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let path = "/open-api/orders/BESIDE";
        if venue.machine().put(path, &order.body).await.status == 200 {
            done += 1
        } else {
            failed += 1
        }
        longest = longest.max(started.elapsed());
    }
    (longest, done, failed)
}

async fn measure<T>(venue: &Arc<Venue>, name: &str, work: impl Future<Output = T>) -> T {
    let before = memory("VmRSS:");
    reset_peak();
    let stop = Arc::new(AtomicBool::new(false));
    let other = tokio::spawn(beside(venue.clone(), stop.clone()));
    let started = Instant::now();
    let done = work.await;
    let took = started.elapsed();
    let peak = memory("VmHWM:");
    stop.store(true, Ordering::Relaxed);
    let (longest, writes, failed) = other.await.unwrap();
    println!(
        "  {name:32} {took:>8.2?}  memory {before} -> {peak} MiB at most  beside it {writes} writes, {failed} failed, the longest {longest:.2?}"
    );
    done
}

async fn import(venue: &Arc<Venue>, admin: &Caller, name: &str, file: Vec<u8>) -> Value {
    let request = admin.request(reqwest::Method::POST, "/admin-api/order-imports").timeout(Duration::from_secs(600));
    let upload = Answer::to(request.header("content-type", "application/octet-stream").body(file));
    let preview = measure(venue, &format!("{name}, preview"), upload).await.ok();
    assert_eq!((&preview["faultCount"], preview["rows"].as_u64()), (&0.into(), Some(LINES as u64)), "{preview}");
    let path = format!("/admin-api/order-imports/{}", preview["id"]);
    let apply = Answer::to(admin.request(reqwest::Method::POST, &path).timeout(Duration::from_secs(600)));
    measure(venue, &format!("{name}, applied"), apply).await.ok()
}

#[tokio::main]
async fn main() {
    for stores in [Stores::SqliteMemory, Stores::MariadbRedis] {
        println!("{stores:?}: {LINES} lines");
        let venue = Arc::new(Venue::open(stores).await);
        let admin = venue.admin().await;
        let new = import(&venue, &admin, "CSV, all orders new", csv("pending_payment")).await;
        assert_eq!(new["new"], LINES);
        let changed = import(&venue, &admin, "XLSX, all orders changed", xlsx("paid")).await;
        assert_eq!(changed["changed"], LINES);
        let same = import(&venue, &admin, "CSV, no order changed", csv("paid")).await;
        assert_eq!(same["unchanged"], LINES);
    }
}
