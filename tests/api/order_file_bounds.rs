//! Order files that are made to do harm, and uploads that are left hanging: what memory, time and places they may take.

use api_tests::{Caller, Stores, Venue};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::every_store;
use crate::order_file_kinds::{archive, workbook};

const CSV: &str = "orderNo,mobile,visitorName,partySize,visitAt,status\n";
/// What a run may write to, MiB: about 60 are the program's own.
const MEMORY: u32 = 200;

/// A workbook of one empty sheet, with this part in the place of, or beside, its own.
fn with_part(name: &str, content: &[u8]) -> Vec<u8> {
    let book = workbook(|_| {});
    let mut parts = zip::ZipArchive::new(std::io::Cursor::new(book)).unwrap();
    let mut kept = Vec::new();
    for n in 0..parts.len() {
        let mut part = parts.by_index(n).unwrap();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut part, &mut bytes).unwrap();
        kept.push((part.name().unwrap().to_string(), bytes));
    }
    kept.retain(|(kept, _)| kept != name);
    kept.push((name.to_owned(), content.to_vec()));
    archive(&kept.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect::<Vec<_>>())
}

fn styles(count: usize) -> Vec<u8> {
    let xfs = "<xf/>".repeat(count);
    format!("<styleSheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><cellXfs>{xfs}</cellXfs></styleSheet>")
        .into_bytes()
}

fn texts(count: &str, texts: &str) -> Vec<u8> {
    format!(
        "<sst xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\" uniqueCount=\"{count}\">{texts}</sst>"
    )
    .into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_bounded_whatever_a_file_holds() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    for (what, file, want) in [
        ("nothing but commas", vec![b','; 20 << 20], "line 1: this line is too long"),
        (
            "a quote without end",
            [CSV.as_bytes(), b"\"", &vec![b'\n'; 20 << 20]].concat(),
            "line 2: this line is too long",
        ),
        ("9,000,000 styles", with_part("xl/styles.xml", &styles(9_000_000)), "holds too much"),
        ("as many styles as may be", with_part("xl/styles.xml", &styles(830_000)), ""),
        (
            "as many texts as may be",
            with_part("xl/sharedStrings.xml", &texts("1", &"<si><t>ab</t></si>".repeat(1_860_000))),
            "",
        ),
        (
            "more texts",
            with_part("xl/sharedStrings.xml", &texts("1", &"<si><t>ab</t></si>".repeat(1_870_000))),
            "holds too much",
        ),
        (
            "room for texts that are not there",
            with_part("xl/sharedStrings.xml", &texts("90000000000", "")),
            "no valid XLSX",
        ),
        (
            "a workbook among the sheets",
            with_part("_rels/.rels", b"<Relationships><Relationship Target=\"xl/worksheets/w.xml\"/></Relationships>"),
            "no valid XLSX",
        ),
    ] {
        let ran = venue.dry_run(&file, MEMORY);
        let said = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.code().is_some_and(|code| code <= 1), "{what}: broke off: {said}");
        assert!(said.contains(want) && !said.contains("panicked"), "{what}: {said}");
    }
}

/// The library that reads workbooks counts the columns of a reference that has no end.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_breaks_its_reader_is_one_quiet_line_of_the_log() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let sheet = b"<worksheet xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\"><sheetData><row r=\"1\"><c r=\"ZZZZZZZZZZZZ1\"><v>1</v></c></row></sheetData></worksheet>";
    let ran = venue.dry_run(&with_part("xl/worksheets/sheet1.xml", sheet), MEMORY);
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!(ran.status.code(), Some(1), "{said}");
    assert!(said.contains("file: the file cannot be read"), "{said}");
    assert!(!["panicked", "overflow", "backtrace", "calamine"].iter().any(|word| said.contains(word)), "{said}");
    assert_eq!(said.lines().filter(|line| line.contains("WARN")).count(), 1, "{said}");
}

/// A file of which a part is sent, and the rest is not.
fn half_an_upload(venue: &Venue, admin: &Caller) -> TcpStream {
    let (name, value) = admin.credential.clone().unwrap();
    let mut stream = TcpStream::connect(venue.server.address()).unwrap();
    let head = format!(
        "POST /admin-api/order-imports HTTP/1.1\r\nHost: x\r\n{name}: {value}\r\nContent-Type: text/csv\r\n\
         Content-Length: 1000000\r\n\r\n{CSV}"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_uploads_keep_no_other_tenant_out_and_one_tenant_has_few() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let admin = venue.admin().await;
    let mut slow: Vec<_> = (0..3).map(|_| half_an_upload(&venue, &admin)).collect();
    // Whether they have all come by then or not: three leave a place.
    admin.upload(CSV).await.ok();
    let started = Instant::now();
    let refused = loop {
        let answer = admin.upload(CSV).await;
        if answer.status != 200 {
            break answer;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "a tenant may have any number of uploads");
        // One that came while this was uploaded may have been the one too many.
        slow.push(half_an_upload(&venue, &admin));
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(refused.refused(429, 1429), json!({"retryAfter": 5}));
    assert_eq!(refused.headers["retry-after"], "5");
    let other = guidepost_server::accounts::create::tenant(venue.server.app(), "other").await.unwrap();
    let boss = guidepost_server::accounts::create::admin(venue.server.app(), other, "boss", None, None).await.unwrap();
    let login = venue.nobody().request(reqwest::Method::POST, "/api/auth/login");
    let login = login.header("tenant-id", other.0.to_string());
    let login = login.json(&json!({"username": "boss", "password": boss.unwrap().expose()}));
    let token = api_tests::Answer::to(login).await.ok();
    venue.bearer(token["token"].as_str().unwrap()).upload(CSV).await.ok();
    // Who hangs up gives the place back.
    drop(slow);
    let started = Instant::now();
    while admin.upload(CSV).await.status != 200 {
        assert!(started.elapsed() < Duration::from_secs(30), "the places are never free again");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_comes_while_two_are_read_is_asked_to_come_again() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let admin = venue.admin().await;
    // Nobody can stage anything while this stands in the way.
    let block = venue.block("").await;
    let uploads = futures::future::join_all((0..3).map(|_| admin.upload(CSV))).await;
    block.rollback().await.unwrap();
    let busy: Vec<_> = uploads.iter().filter(|answer| answer.status == 429).collect();
    assert_eq!(busy.len(), 1, "{uploads:?}");
    assert_eq!(busy[0].headers["retry-after"], "5");
    assert_eq!(busy[0].refused(429, 1429), json!({"retryAfter": 5}));
}

#[apply(every_store)]
async fn what_a_server_was_reading_when_it_died_is_dropped(stores: Stores) {
    let venue = Venue::open(stores).await;
    let database = venue.database().await;
    let account = venue.count("SELECT MIN(id) FROM account").await;
    for (import, account) in [(77, Some(account)), (78, None)] {
        let sql = "INSERT INTO order_import (id, tenant_id, account_id, state, created_at, touched_at) VALUES (?, 1, ?, 'reading', ?, ?)";
        let now = api_tests::START;
        sqlx::query(sql).bind(import).bind(account).bind(now).bind(now).execute(&database).await.unwrap();
        let sql = "INSERT INTO order_import_row (import_id, line, tenant_id, order_no, mobile, visitor_name, party_size, visit_at, status, action)
            VALUES (?, 2, 1, 'X', '+8613800000001', 'x', 1, 0, 'paid', 'new')";
        sqlx::query(sql).bind(import).execute(&database).await.unwrap();
    }
    let venue = venue.restart().await;
    let admin = venue.admin().await;
    let state =
        async |import: i64| admin.get(&format!("/admin-api/order-imports/{import}")).await.ok()["state"].clone();
    // Another server of MariaDB may be reading it, and on either the command line.
    assert_eq!(state(77).await, if stores == Stores::MariadbRedis { "reading" } else { "dropped" });
    assert_eq!(state(78).await, "reading");
    venue.advance(Duration::from_secs(121)).await;
    assert_eq!((state(77).await, state(78).await), (json!("dropped"), json!("dropped")));
    assert_eq!(venue.count("SELECT COUNT(*) FROM order_import_row").await, 0, "names and numbers stay");
}

#[apply(every_store)]
async fn a_preview_of_yesterday_is_not_applied(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let code = venue.paid_order_with_code("BK2").await;
    let line = "BK1,13800000001,张伟,4,2026-08-01 09:00,paid\nBK2,13800000002,张伟,4,2026-08-01 09:00,paid\n";
    let preview = admin.upload(format!("{CSV}{line}")).await.ok();
    let fresh = admin.upload(format!("{CSV}{line}")).await.ok();
    let age = async |preview: &serde_json::Value, by: i64| {
        let sql = sqlx::query("UPDATE order_import SET touched_at = touched_at - ? WHERE id = ?");
        sql.bind(by).bind(preview["id"].as_i64()).execute(&venue.database().await).await.unwrap();
    };
    age(&preview, 24 * 3_600_000 + 1).await;
    age(&fresh, 24 * 3_600_000).await;
    assert_eq!(admin.apply(&preview).await.refused(409, 1409)["state"], "dropped");
    assert_eq!(venue.count("SELECT COUNT(*) FROM booking_order WHERE order_no = 'BK1'").await, 0);
    venue.guide().await.redeem("BK2", &code).await.ok();
    admin.apply(&fresh).await.refused(409, 1409);
}
