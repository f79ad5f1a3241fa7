//! Every malformed body, header, query and payload gets its error of the contract.

use api_tests::{Answer, Caller, Order, START, Stores, Venue};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use reqwest::{Method, header};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CONSUME: &str = "/app-api/team/guide-task/booking/consume";

fn post_raw(caller: &Caller, body: impl Into<Vec<u8>>) -> reqwest::RequestBuilder {
    caller.request(Method::POST, CONSUME).header(header::CONTENT_TYPE, "application/json").body(body.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_is_wrong_is_named() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let guide = venue.guide().await;
    let consume = |field: &str, value: Value| {
        let mut body = json!({"orderNo": "BK1", "verifyCode": "483921", "requestId": "r", "entry": "scan"});
        body[field] = value;
        body
    };
    let long = "9".repeat(65);
    for (field, value) in [
        ("orderNo", json!("")),
        ("orderNo", json!(" ")),
        ("orderNo", json!("BK2026' OR 1=1--")),
        ("orderNo", json!("订单")),
        ("orderNo", json!(long)),
        ("orderNo", json!(7)),
        ("orderNo", json!(null)),
        ("orderNo", json!(["BK1"])),
        ("verifyCode", json!("")),
        ("verifyCode", json!("048392")),
        ("verifyCode", json!("48392")),
        ("verifyCode", json!("4839210")),
        ("verifyCode", json!("483-921")),
        ("verifyCode", json!("٤٨٣٩٢١")),
        ("verifyCode", json!(483_921)),
        ("verifyCode", json!(null)),
        ("requestId", json!("")),
        ("requestId", json!("a b")),
        ("requestId", json!(long)),
        ("requestId", json!(1)),
        ("entry", json!("telepathy")),
        ("entry", json!(1)),
        ("entry", json!({"scan": null})),
    ] {
        let answer = guide.post(CONSUME, &consume(field, value.clone())).await;
        assert_eq!(answer.refused(400, 1400), json!({"field": field}), "{value}");
    }
    for field in ["orderNo", "verifyCode"] {
        let mut body = consume("extra", json!({"ignored": true}));
        body.as_object_mut().unwrap().remove(field);
        assert_eq!(guide.post(CONSUME, &body).await.refused(400, 1400), json!({"field": field}));
    }
    let twice = br#"{"orderNo":"BK1","orderNo":"BK2","verifyCode":"483921"}"#;
    assert_eq!(Answer::to(post_raw(&guide, twice)).await.refused(400, 1400)["field"], "orderNo");
    // Unknown fields are ignored: this one gets as far as the order.
    guide.post(CONSUME, &consume("extra", json!(1))).await.refused(404, 2001);
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_the_contract_stand_literally() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let guide = venue.guide().await;
    let msg = |answer: Answer| answer.json()["msg"].as_str().unwrap().to_owned();
    assert_eq!(msg(guide.redeem("BK1", " ").await), "核销码不能为空");
    assert_eq!(msg(guide.redeem("BK1", "012345").await), "核销码必须是首位非 0 的 6 位数字");
    let body = json!({"orderNo": "BK1", "verifyCode": ""});
    let english = guide.request(Method::POST, CONSUME).header("accept-language", "en-GB,en;q=0.9").json(&body);
    assert_eq!(msg(Answer::to(english).await), "Enter the verify code.");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_json_is_1400() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let guide = venue.guide().await;
    let deep = "[".repeat(60_000);
    let bodies: [&[u8]; 13] = [
        b"",
        b"null",
        b"7",
        b"[]",
        br#"["BK1","483921"]"#,
        b"\"text\"",
        b"{",
        b"{}x",
        br#"{"orderNo":"BK1","verifyCode":"483921"} {}"#,
        b"\xff\xfe\x00",
        b"{\"orderNo\":\"\xc3\x28\",\"verifyCode\":\"483921\"}",
        b"orderNo=BK1&verifyCode=483921",
        deep.as_bytes(),
    ];
    for body in bodies {
        Answer::to(post_raw(&guide, body)).await.refused(400, 1400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn size_type_and_method_have_their_own_status() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let guide = venue.guide().await;
    let padded = |size: usize| {
        let start = r#"{"orderNo":"BK1","verifyCode":"483921","pad":""#;
        format!("{start}{}\"}}", "x".repeat(size - start.len() - 2))
    };
    Answer::to(post_raw(&guide, padded(65_536))).await.refused(404, 2001);
    Answer::to(post_raw(&guide, padded(65_537))).await.refused(413, 1400);
    too_much_is_refused_before_it_is_sent(&venue, &guide).await;
    for mime in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx", "é"] {
        let request = guide.request(Method::POST, CONSUME).header(header::CONTENT_TYPE, mime.as_bytes()).body("{}");
        Answer::to(request).await.refused(415, 1400);
    }
    Answer::to(guide.request(Method::POST, CONSUME).body("{}")).await.refused(415, 1400);
    for method in [Method::GET, Method::PUT, Method::DELETE, Method::PATCH] {
        let answer = Answer::to(guide.request(method, CONSUME)).await;
        answer.refused(405, 1400);
        assert_eq!(answer.headers[header::ALLOW], "POST");
    }
}

async fn too_much_is_refused_before_it_is_sent(venue: &Venue, guide: &Caller) {
    let (_, token) = guide.credential.clone().unwrap();
    let mut line = TcpStream::connect(venue.server.address()).await.unwrap();
    let head = format!(
        "POST {CONSUME} HTTP/1.1\r\nhost: x\r\nauthorization: {token}\r\ncontent-type: application/json\r\ncontent-length: 65537\r\n\r\n{{"
    );
    line.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    line.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_under_the_interface_wear_the_envelope() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let nobody = venue.nobody();
    for path in ["/api", "/api/", "/api/nothing", "/app-api/x/y", "/admin-api/", "/open-api/orders", "/api/%ff%00"] {
        for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
            Answer::to(nobody.request(method, path)).await.refused(404, 1404);
        }
    }
    let posted = Answer::to(nobody.request(Method::POST, "/apiary")).await;
    assert_eq!((posted.status, posted.text.is_empty()), (405, false));
    let page = nobody.get("/apiary").await;
    assert_eq!((page.status, page.headers[header::CONTENT_TYPE].to_str().unwrap()), (404, "text/plain; charset=utf-8"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_a_request_id_and_is_not_stored() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let guide = venue.guide().await;
    let mut ids = std::collections::BTreeSet::new();
    for path in ["/api/info", "/api/nothing", "/app-api/team/guide-task/list", CONSUME] {
        let answer = guide.get(path).await;
        assert_eq!(answer.headers[header::CACHE_CONTROL], "no-store", "{path}");
        ids.insert(answer.headers["x-request-id"].to_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 4);
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_and_path_parts_are_checked() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    venue.put_order("BK1", &Order::paid()).await;
    let (guide, visitor) = (venue.guide().await, venue.visitor().await);
    let code = "/app-api/team/booking/booking/verify-code";
    for query in
        ["", "?orderNo=", "?orderNo=%20", "?orderNo=a'b", "?orderNo=%ff%fe", "?orderNo=BK1&orderNo=BK2", "?orderno=BK1"]
    {
        let data = visitor.get(&format!("{code}{query}")).await.refused(400, 1400);
        assert_eq!(data, json!({"field": "orderNo"}), "{query}");
    }
    for date in [
        "2026-13-01",
        "2026-02-30",
        "today",
        "",
        "20260801",
        "2026-8-1",
        "2026-08-01T00:00",
        "9999-12-31",
        "-000001-01-01",
    ] {
        let answer = guide.get(&format!("/app-api/team/guide-task/list?date={date}")).await;
        assert_eq!(answer.refused(400, 1400), json!({"field": "date"}), "{date}");
    }
    for task in ["a%20b", "%ff", "a'b", "%00"] {
        guide.get(&format!("/app-api/team/guide-task/{task}/orders")).await.refused(400, 1400);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_hear_which_field_is_wrong() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    for (field, value) in [
        ("mobile", json!(13_800_000_001_i64)),
        ("visitorName", json!("")),
        ("visitorName", json!("a\u{0}b")),
        ("visitorName", json!("名".repeat(65))),
        ("partySize", json!(0)),
        ("partySize", json!(-1)),
        ("partySize", json!(1.5)),
        ("partySize", json!("4")),
        ("partySize", json!(1e18)),
        ("visitAt", json!(-1)),
        ("visitAt", json!("2026-08-01")),
        ("visitAt", json!(i64::MAX)),
        ("status", json!("PAID")),
        ("status", json!({"paid": null})),
        ("taskNo", json!("")),
        ("taskNo", json!(1)),
    ] {
        let order = Order::paid().with(field, value.clone());
        let data = venue.machine().put("/open-api/orders/BK1", &order.body).await.refused(400, 1400);
        assert_eq!(data, json!({"field": field}), "{value}");
    }
    let task = |field: &str, value: Value| {
        let mut body = json!({"title": "x", "venue": "y", "startsAt": START, "endsAt": START, "guideMobiles": []});
        body[field] = value;
        body
    };
    for (field, value) in
        [("title", json!("")), ("venue", json!(null)), ("startsAt", json!(-5)), ("endsAt", json!(START - 1))]
    {
        let data = venue.machine().put("/open-api/tasks/T5", &task(field, value)).await.refused(400, 1400);
        assert_eq!(data, json!({"field": field}));
    }
    venue.machine().put("/open-api/tasks/T5", &task("guideMobiles", json!(["x"]))).await.refused(400, 4001);
    venue.machine().put("/open-api/orders/BK1", &Order::paid().with("mobile", "12345").body).await.refused(400, 4001);
    venue.machine().post("/open-api/guides", &json!({"mobile": "12345", "name": "x"})).await.refused(400, 4001);
    let data = venue.machine().put("/open-api/orders/a'b", &Order::paid().body).await.refused(400, 1400);
    assert_eq!(data, json!({"field": "orderNo"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn strange_headers_are_answered() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let guide = venue.guide().await;
    let list = "/app-api/team/guide-task/list";
    for (name, value, status) in [
        ("tenant-id", &b"\xff\xfe"[..], 400),
        ("tenant-id", b"1; DROP", 400),
        ("tenant-id", b"1", 200),
        ("tenant-id", b"2", 403),
        ("accept-language", b"\xff;q=\xfe,,;", 200),
        ("x-client", b"\xff", 200),
        ("cookie", b"guidepost=\xff; ;=;", 200),
        ("accept", b"text/html", 200),
    ] {
        let answer = Answer::to(guide.request(Method::GET, list).header(name, value)).await;
        assert_eq!(answer.status, status, "{name}: {value:?}");
        answer.json();
    }
    for value in [&b"Bearer"[..], b"Bearer ", b"Basic YTpi", b"\xff\xff", b"bearer \xc3\xa9"] {
        Answer::to(venue.nobody().request(Method::GET, list).header("authorization", value)).await.refused(401, 1401);
    }
    Answer::to(venue.nobody().request(Method::GET, list).header("cookie", "guidepost=")).await.refused(401, 1401);
}

/// Whatever bytes come, the answer is one of the contract's, and never a 500.
#[tokio::test(flavor = "multi_thread")]
async fn no_body_makes_a_500() {
    let venue = Venue::open(Stores::SqliteMemory).await;
    let guide = venue.guide().await;
    let mut runner = TestRunner::deterministic();
    let near = r#"\{("orderNo"|"verifyCode"|"requestId"|"x"):("\PC{0,12}"|[0-9]{1,30}|null|\[\]|\{\})(,("orderNo"|"verifyCode"):("\PC{0,12}"|-?[0-9.e]{1,9}))?\}?"#;
    let bodies = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        proptest::string::string_regex(near).unwrap().prop_map(String::into_bytes),
    ];
    for _ in 0..400 {
        let body = bodies.new_tree(&mut runner).unwrap().current();
        let answer = Answer::to(post_raw(&guide, body.clone())).await;
        assert!(answer.status < 500, "{}: {:?}", answer.text, String::from_utf8_lossy(&body));
        assert!(wire::ErrorCode::from_code(i32::try_from(answer.code()).unwrap()).is_some(), "{}", answer.text);
    }
}
