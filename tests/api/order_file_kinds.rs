//! What an order file may be: delimiters, encodings, workbooks, and what is said of the others.

use api_tests::{Caller, Stores, Venue, XLSX};
use rstest::rstest;
use rstest_reuse::apply;
use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook};
use serde_json::{Value, json};
use sqlx::Row;
use std::io::Write;

use crate::every_store;

const HEADER: [&str; 7] = ["orderNo", "mobile", "visitorName", "partySize", "visitAt", "status", "taskNo"];

/// A shared case; `None`, and a word about it, where the cases are not on this machine.
#[expect(clippy::print_stderr, reason = "who runs the tests must see what was not checked")]
fn case(name: &str) -> Option<Vec<u8>> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases/orders").join(name);
    match std::fs::read(&file) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            eprintln!("NOT CHECKED: {} cannot be read: {error}", file.display());
            None
        }
    }
}

/// Line and field of each fault.
fn places(preview: &Value) -> Vec<(i64, String)> {
    let place = |fault: &Value| (fault["line"].as_i64().unwrap_or(0), fault["field"].as_str().unwrap_or("").to_owned());
    preview["faults"].as_array().unwrap().iter().map(place).collect()
}

fn message(preview: &Value, n: usize) -> &str {
    preview["faults"][n]["message"].as_str().unwrap()
}

async fn orders(venue: &Venue) -> Vec<(String, String, i64, i64, String, Option<String>)> {
    let rows = sqlx::query(
        "SELECT o.order_no, o.visitor_name, o.party_size, o.visit_at, o.status, t.task_no FROM booking_order o
         LEFT JOIN task t ON t.id = o.task_id ORDER BY o.order_no",
    );
    let rows = rows.fetch_all(&venue.database().await).await.unwrap();
    rows.iter().map(|r| (r.get(0), r.get(1), r.get(2), r.get(3), r.get(4), r.get(5))).collect()
}

/// A workbook of one sheet with the usual header.
pub(crate) fn workbook(fill: impl FnOnce(&mut rust_xlsxwriter::Worksheet)) -> Vec<u8> {
    let mut book = Workbook::new();
    let sheet = book.add_worksheet();
    for (column, name) in (0..).zip(HEADER) {
        sheet.write(0, column, name).unwrap();
    }
    fill(sheet);
    book.save_to_buffer().unwrap()
}

fn texts(sheet: &mut rust_xlsxwriter::Worksheet, row: u32, cells: [&str; 7]) {
    for (column, text) in (0..).zip(cells) {
        sheet.write(row, column, text).unwrap();
    }
}

async fn refused(admin: &Caller, file: Vec<u8>) -> Value {
    let preview = admin.upload(file).await.ok();
    assert_eq!(preview["state"], "refused", "{preview}");
    admin.apply(&preview).await.refused(409, 1409);
    preview
}

#[apply(every_store)]
async fn every_good_case_is_the_same_three_orders(stores: Stores) {
    let day = 1_785_547_800_000;
    let want = |n: i64, name: &str, party, at, status: &str, task: Option<&str>| {
        (format!("BK20260801000{n}"), name.to_owned(), party, at, status.to_owned(), task.map(str::to_owned))
    };
    let want = [
        want(1, "张三", 12, day, "paid", Some("T20260801A")),
        want(2, "欧阳娜娜", 4, day, "paid", Some("T20260801A")),
        want(3, "O'Neill, Ann", 2, day + 1_800_000, "pending_payment", None),
    ];
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    for (n, name) in ["gbk-excel.csv", "utf8.csv", "utf8-bom-crlf.csv", "semicolon.csv", "tab.csv"].iter().enumerate() {
        let Some(file) = case(name) else { return };
        let preview = admin.upload_as("text/csv; charset=utf-8", file).await.ok();
        let (new, same, tasks) = if n == 0 { (3, 0, 1) } else { (0, 3, 0) };
        let counts =
            |view: &Value| ["rows", "new", "changed", "unchanged", "newTasks", "faultCount"].map(|k| view[k].clone());
        assert_eq!(counts(&preview).map(|n| n.as_i64().unwrap()), [3, new, 0, same, tasks, 0], "{name}: {preview}");
        if n == 0 {
            assert_eq!(orders(&venue).await, [], "a preview changes nothing");
        }
        let applied = admin.apply(&preview).await.ok();
        assert_eq!((applied["state"].as_str(), counts(&applied)), (Some("applied"), counts(&preview)), "{name}");
        assert_eq!(orders(&venue).await, want, "{name}");
    }
    let guides = "SELECT COUNT(*) FROM task_guide g JOIN task t ON t.id = g.task_id WHERE t.task_no = 'T20260801A'";
    assert_eq!(venue.count(guides).await, 0, "a draft has no guides");
    assert_eq!(venue.count("SELECT COUNT(*) FROM account WHERE is_visitor = 1").await, 3);
    assert_eq!(venue.count("SELECT COUNT(*) FROM order_import_row").await, 0, "lines go when they have been applied");
}

#[apply(every_store)]
async fn every_bad_case_is_named_and_changes_nothing(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let Some(bad) = case("bad-rows.csv") else { return };
    let preview = refused(&admin, bad).await;
    let fields = ["orderNo", "mobile", "partySize", "visitAt", "status", "orderNo", "orderNo"];
    let want: Vec<_> = (2..).zip(fields.map(str::to_owned)).collect();
    assert_eq!(places(&preview), want);
    assert!(message(&preview, 0).contains("rounded"), "{preview}");
    assert!(message(&preview, 5).ends_with("line 8") && message(&preview, 6).ends_with("line 7"), "{preview}");

    let preview = refused(&admin, case("missing-column.csv").unwrap()).await;
    assert_eq!(places(&preview), ["mobile", "visitAt", "status"].map(|field| (1, field.to_owned())));
    let preview = refused(&admin, case("empty.csv").unwrap()).await;
    assert_eq!(preview["faults"], json!([{"line": null, "field": null, "message": "the file is empty"}]));
    assert_eq!(orders(&venue).await, []);
    assert_eq!(venue.count("SELECT COUNT(*) FROM account WHERE is_visitor = 1").await, 0);

    let preview = admin.upload(case("header-only.csv").unwrap()).await.ok();
    assert_eq!((preview["state"].as_str(), preview["rows"].as_i64()), (Some("previewed"), Some(0)));
    let preview = admin.upload(case("quoted-newline.csv").unwrap()).await.ok();
    admin.apply(&preview).await.ok();
    assert_eq!(orders(&venue).await[0].1, "李四 (团长)");
}

#[apply(every_store)]
async fn a_workbook_holds_texts_numbers_times_and_formulas(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let moment = Format::new().set_num_format("yyyy/m/d h:mm");
    let file = workbook(|sheet| {
        texts(sheet, 1, ["bk 1", "138 0000 0001", "张三", "１２", "2026-08-01 09:30", "已支付", "t9"]);
        // What a spreadsheet makes of typed numbers and times, and a formula's result.
        sheet.write(2, 0, 202_608_010_002_i64).unwrap();
        sheet.write(2, 1, 13_800_000_002_i64).unwrap();
        sheet.write(2, 2, "=cmd|'/c calc'!A1").unwrap();
        sheet.write(2, 3, 4).unwrap();
        sheet.write_with_format(2, 4, ExcelDateTime::parse_from_str("2026-08-01 09:30").unwrap(), &moment).unwrap();
        sheet.write(2, 5, Formula::new("=LOWER(\"PAID\")").set_result("paid")).unwrap();
        // A line far below, and a cell far to the right, cost nothing.
        texts(sheet, 1_048_575, ["BK3", "13800000003", "Ann", "1", "2026-08-01 09:30", "paid", ""]);
    });
    let preview = admin.upload_as(XLSX, file).await.ok();
    assert_eq!((preview["rows"].as_i64(), preview["faults"].as_array().unwrap().len()), (Some(3), 0), "{preview}");
    admin.apply(&preview).await.ok();
    let orders = orders(&venue).await;
    let day = 1_785_547_800_000;
    assert_eq!((orders[0].0.as_str(), orders[0].1.as_str(), orders[0].3), ("202608010002", "=cmd|'/c calc'!A1", day));
    assert_eq!((orders[1].0.as_str(), orders[1].2, orders[1].5.as_deref()), ("BK1", 12, Some("T9")));
    assert_eq!((orders[2].0.as_str(), orders[2].3), ("BK3", day));
    // A formula in a name is data: it is stored as it stands.
    assert_eq!(venue.count("SELECT COUNT(*) FROM account WHERE mobile = '+8613800000002'").await, 1);
}

#[apply(every_store)]
async fn a_workbooks_faults_are_named_by_its_own_lines(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let moment = Format::new().set_num_format("yyyy-mm-dd");
    let good = ["BK1", "13800000001", "张三", "1", "2026-08-01 09:30", "paid", ""];
    let file = workbook(|sheet| {
        texts(sheet, 3, good);
        sheet.write(3, 0, 1.9e18).unwrap();
        texts(sheet, 5, good);
        sheet.write_with_format(5, 0, ExcelDateTime::parse_from_str("2026-08-01").unwrap(), &moment).unwrap();
        texts(sheet, 7, good);
        sheet.write(7, 3, 2.5).unwrap();
        texts(sheet, 8, good);
        sheet.write(8, 0, "BK2").unwrap();
        sheet.write(8, 4, 46_235.4).unwrap();
        sheet.write(9, 9, "a note of nobody's").unwrap();
    });
    let preview = refused(&admin, file).await;
    let fields = places(&preview);
    let of = |line| fields.iter().filter(|(at, _)| *at == line).map(|(_, field)| field.as_str()).collect::<Vec<_>>();
    assert_eq!((of(4), of(6), of(8), of(9)), (vec!["orderNo"], vec!["orderNo"], vec!["partySize"], vec!["visitAt"]));
    assert_eq!(of(10), [""], "a cell beside the table");
    assert!(message(&preview, 0).contains("rounded") && message(&preview, 1).contains("date"), "{preview}");
}

/// A zip archive with these parts.
pub(crate) fn archive(parts: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, content) in parts {
        zip.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_list_of_orders_is_said_to_be_none() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let admin = venue.admin().await;
    let bomb = archive(&[("xl/sharedStrings.xml", &vec![b' '; 49 << 20])]);
    assert!(bomb.len() < 100_000);
    let mut cut = workbook(|sheet| texts(sheet, 1, ["BK1"; 7]));
    cut.truncate(cut.len() / 2);
    for (file, want) in [
        (b" \n\n\t \n".to_vec(), "the file is empty"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and so on".to_vec(), "old Excel file"),
        (bomb, "holds too much"),
        (cut, "no valid XLSX"),
        (archive(&[("a.txt", b"x")]), "no valid XLSX"),
        (b"PK\x03\x04nonsense".to_vec(), "no valid XLSX"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec(), "no column"),
        (vec![0; 4096], "no column"),
    ] {
        let preview = refused(&admin, file).await;
        assert!(message(&preview, 0).contains(want), "{want}: {preview}");
    }
    let zh = admin.request(reqwest::Method::POST, "/admin-api/order-imports").header("content-type", "text/csv");
    let answer = api_tests::Answer::to(zh.header("accept-language", "zh-CN").body("")).await.ok();
    assert_eq!(message(&answer, 0), "文件是空的");
}

/// Sends 21 MiB in chunks; the answer's first line.
async fn upload_in_pieces(venue: &Venue, admin: &Caller) -> String {
    let address = venue.server.address();
    let (name, value) = admin.credential.clone().unwrap();
    tokio::task::spawn_blocking(move || {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let head = format!(
            "POST /admin-api/order-imports HTTP/1.1\r\nHost: x\r\n{name}: {value}\r\nContent-Type: text/csv\r\n\
             Transfer-Encoding: chunked\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let chunk = [b"100000\r\n", vec![b'\n'; 1 << 20].as_slice(), b"\r\n"].concat();
        for _ in 0..21 {
            // The server may have hung up by then: it has seen enough.
            let _ = stream.write_all(&chunk);
        }
        let mut line = String::new();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut line).unwrap();
        line
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_has_its_limits_and_its_callers() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let admin = venue.admin().await;
    admin.upload_as("application/json", "{}").await.refused(415, 1400);
    admin.upload(vec![b'x'; (20 << 20) + 1]).await.refused(413, 1400);
    // Without a length beforehand.
    let status = upload_in_pieces(&venue, &admin).await;
    assert!(status.starts_with("HTTP/1.1 413 "), "{status}");
    // 64 KiB is for other bodies.
    let long = format!("orderNo,mobile,visitorName,partySize,visitAt,status\n{}", "\n".repeat(200_000));
    assert_eq!(admin.upload(long).await.ok()["rows"], 0);
    venue.guide().await.upload("").await.refused(403, 1403);
    venue.nobody().upload("").await.refused(401, 1401);
    admin.get("/admin-api/order-imports/x").await.refused(400, 1400);
    admin.get("/admin-api/order-imports/999").await.refused(404, 1404);
    admin.apply(&json!({"id": 999})).await.refused(404, 1404);
}

#[apply(every_store)]
async fn an_export_that_is_imported_again_changes_nothing(stores: Stores) {
    let venue = Venue::open(stores).await;
    let admin = venue.admin().await;
    let names = [
        "'t Hooft",
        "''",
        "007",
        "3号团",
        "（张伟）",
        "🎉",
        "=1+1",
        "+8613800000001",
        "'=1+1",
        "TRUE",
        "O'Neill, \"Ann\"",
        "- x",
    ];
    for (n, name) in names.iter().enumerate() {
        let order_no = ["7", "-5", "BK", "_X", "1E4"][n % 5].to_owned() + &n.to_string();
        let order = api_tests::Order::paid().with("visitorName", *name);
        let order = if n % 3 == 0 { order.with("taskNo", serde_json::Value::Null) } else { order };
        venue.put_order(&order_no, &order).await;
    }
    let before = orders(&venue).await;
    assert!(names.iter().all(|name| before.iter().any(|order| order.1 == *name)), "{before:?}");
    let file = admin.get("/admin-api/orders.csv").await.text;
    let preview = admin.upload(file).await.ok();
    let count = i64::try_from(names.len()).unwrap();
    assert_eq!((&preview["unchanged"], &preview["faultCount"]), (&json!(count), &json!(0)), "{preview}");
    admin.apply(&preview).await.ok();
    assert_eq!(orders(&venue).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_of_two_encodings_is_refused_by_its_lines() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let admin = venue.admin().await;
    let line = |no: &[u8], name: &[u8]| [no, b",13800000001,", name, b",4,2026-08-01 09:30,paid\n"].concat();
    let header = b"orderNo,mobile,visitorName,partySize,visitAt,status\n".to_vec();
    let file = [header, line(b"BK1", b"Jos\xc3\xa9"), line(b"BK2", b"M\xfcller"), line(b"BK3", b"Ann")].concat();
    let preview = refused(&admin, file).await;
    assert_eq!(places(&preview), [(3, "visitorName".to_owned())]);
    assert!(message(&preview, 0).contains("cannot be read"), "{preview}");
}
