//! Web hooks: told at least once, in order for each order, whatever the receiver does, and never in a redemption's way.

use crate::every_store;
use api_tests::receiver::{Receiver, Reply, hmac_sha256, hook};
use api_tests::stores::free_port;
use api_tests::{Answer, START, Stores, Venue};
use guidepost_server::config::{DatabaseUrl, WebHookConfig, WebHookEvent};
use rstest::rstest;
use rstest_reuse::apply;
use serde_json::json;
use sqlx::Row;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use wire::Secret;

/// No wait in a test is longer than this, on a machine that does much else.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until something is so, by the machine's clock; the venue's stands still.
async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let started = Instant::now();
    while !so().await {
        assert!(started.elapsed() < LIMIT, "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// The same while time goes on at the venue, so that what waits for another try gets it.
async fn until_later(venue: &Venue, what: &str, mut so: impl AsyncFnMut() -> bool) {
    until(what, async || {
        venue.clock.advance(Duration::from_millis(500));
        so().await
    })
    .await;
}

async fn venue_with(stores: Stores, hooks: Vec<WebHookConfig>) -> Venue {
    Venue::open_with(stores, |config| {
        config.web_hooks = hooks;
        config.verify_code.ttl = 86_400;
        config.limits.consume.operator = 10_000;
    })
    .await
}

/// An order of its own, redeemed.
async fn redeem(venue: &Venue, order_no: &str) -> Answer {
    let code = venue.paid_order_with_code(order_no).await;
    venue.guide().await.redeem_as(order_no, &code, &format!("r-{order_no}")).await
}

const OPEN: &str = "SELECT COUNT(*) FROM web_hook_delivery WHERE done_at IS NULL";

#[tokio::test]
async fn the_receivers_own_computation_is_that_of_the_standard() {
    // RFC 4231, test case 2.
    let got = hmac_sha256(b"Jefe", b"what do ya want for nothing?");
    assert_eq!(got, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

#[apply(every_store)]
async fn a_redemption_is_told_once_with_what_happened_and_no_secret(stores: Stores) {
    let receiver = Receiver::open().await;
    let venue = venue_with(stores, vec![receiver.config("booking")]).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    guide.redeem("BK1", if code == "100000" { "100001" } else { "100000" }).await.refused(422, 2003);
    let consumed = guide.redeem_as("BK1", &code, "r-1").await.ok();
    guide.redeem_as("BK1", &code, "r-1").await.ok();
    guide.redeem("BK1", &code).await.refused(409, 2002);
    until("it is told", async || venue.count(OPEN).await == 0).await;
    let received = receiver.received();
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0].event, "order.consumed");
    assert_eq!(
        received[0].body,
        json!({
            "id": received[0].delivery, "event": "order.consumed", "tenant": 1, "orderNo": "BK1", "requestId": "r-1",
            "statusBefore": "paid", "statusAfter": "consumed", "operator": "林悦", "operatorType": "guide", "entry": "scan",
            "partySize": 4, "visitAt": START, "taskNo": "T1", "at": consumed["consumedAt"],
        })
    );
    let text = received[0].body.to_string();
    assert!(!text.contains("138000") && !text.contains(&code), "{text}");
}

#[apply(every_store)]
async fn whoever_answers_with_an_error_or_a_redirect_is_asked_again_with_the_same_id(stores: Stores) {
    let receiver = Receiver::open().await;
    receiver.answer([500, 302, 404].map(Reply::Status));
    let venue = venue_with(stores, vec![receiver.config("booking")]).await;
    redeem(&venue, "BK1").await.ok();
    until_later(&venue, "it is taken", async || venue.count(OPEN).await == 0).await;
    let received = receiver.received();
    assert_eq!(received.len(), 4);
    assert!(received.iter().all(|one| *one == received[0]), "a repeat differs: {received:?}");
    let row = sqlx::query("SELECT attempts, given_up, last_result FROM web_hook_delivery");
    let row = row.fetch_one(&venue.database().await).await.unwrap();
    let row: (i64, i64, String) = (row.get(0), row.get(1), row.get(2));
    assert_eq!(row, (4, 0, "HTTP 404".to_owned()));
    // Whatever is told later, what was taken is not sent again.
    venue.clock.advance(Duration::from_secs(3_600));
    redeem(&venue, "BK2").await.ok();
    until("the other is told", async || venue.count(OPEN).await == 0).await;
    assert_eq!(receiver.received().len(), 5);
}

/// The wait doubles: nothing is sent before it is over.
#[apply(every_store)]
async fn a_failed_attempt_waits_before_the_next(stores: Stores) {
    let receiver = Receiver::open().await;
    receiver.answer([Reply::Status(500)]);
    let venue = venue_with(stores, vec![receiver.config("booking")]).await;
    redeem(&venue, "BK1").await.ok();
    redeem(&venue, "BK2").await.ok();
    until("the other is told", async || venue.count(OPEN).await == 1).await;
    until("the failure is written down", async || {
        venue.count("SELECT COUNT(*) FROM web_hook_delivery WHERE last_result = 'HTTP 500'").await == 1
    })
    .await;
    let due: i64 = venue.count("SELECT due_at FROM web_hook_delivery WHERE done_at IS NULL").await;
    assert!((START + 500..=START + 1_000).contains(&due), "{}", due - START);
    // Others are told meanwhile, by looks at the outbox that leave this one alone.
    redeem(&venue, "BK3").await.ok();
    until("the third is told", async || receiver.received().len() == 3).await;
    assert_eq!(venue.count(OPEN).await.min(1), 1);
    venue.clock.advance(Duration::from_secs(1));
    until("it is told again", async || venue.count(OPEN).await == 0).await;
    assert_eq!(receiver.received().len(), 4);
}

#[apply(every_store)]
async fn a_dead_receiver_hears_of_it_when_it_is_back_and_holds_up_no_other(stores: Stores) {
    let port = free_port();
    let alive = Receiver::open().await;
    let dead = WebHookConfig { url: Secret::new(format!("http://127.0.0.1:{port}/hook")), ..hook("dead") };
    let venue = venue_with(stores, vec![dead, alive.config("alive")]).await;
    for n in 0..12 {
        redeem(&venue, &format!("BK{n}")).await.ok();
    }
    until("the other has all", async || alive.received().len() == 12).await;
    until("it was tried", async || {
        venue.count("SELECT COUNT(*) FROM web_hook_delivery WHERE last_result = 'no connection'").await > 0
    })
    .await;
    let receiver = Receiver::open_at(port).await;
    until_later(&venue, "all is told", async || venue.count(OPEN).await == 0).await;
    let told: BTreeSet<String> = receiver.received().iter().map(|one| one.delivery.clone()).collect();
    assert_eq!((told.len(), receiver.received().len()), (12, 12));
}

/// The receiver holds its request while redemptions are answered: they wait for nothing of it.
#[apply(every_store)]
async fn a_slow_receiver_holds_up_no_redemption(stores: Stores) {
    let receiver = Receiver::open().await;
    receiver.answer([Reply::Hold; 100]);
    let mut config = receiver.config("slow");
    config.timeout = 30;
    let venue = venue_with(stores, vec![config]).await;
    redeem(&venue, "BK1").await.ok();
    until("it holds a request", async || receiver.received().len() == 1).await;
    for n in 2..20 {
        redeem(&venue, &format!("BK{n}")).await.ok();
    }
    until("it holds as many as it gets", async || receiver.received().len() == 8).await;
    assert_eq!(venue.count(OPEN).await, 19, "something was taken: it did not hold");
    receiver.let_go();
    until("all is told", async || venue.count(OPEN).await == 0).await;
    assert_eq!(receiver.received().len(), 19);
}

#[apply(every_store)]
async fn a_receiver_that_takes_too_long_gets_the_same_again(stores: Stores) {
    let receiver = Receiver::open().await;
    receiver.answer([Reply::Hold]);
    let mut config = receiver.config("slow");
    config.timeout = 1;
    let venue = venue_with(stores, vec![config]).await;
    redeem(&venue, "BK1").await.ok();
    until_later(&venue, "it is taken", async || venue.count(OPEN).await == 0).await;
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    assert_eq!(received[0], received[1]);
    assert_eq!(venue.count("SELECT COUNT(*) FROM web_hook_delivery WHERE last_result = 'no answer in time'").await, 1);
}

/// A later event of an order that is still waiting is not sent before it; those of others are.
#[apply(every_store)]
async fn events_of_an_order_come_in_order_and_others_do_not_wait(stores: Stores) {
    let receiver = Receiver::open().await;
    receiver.answer([500, 500].map(Reply::Status));
    let venue = venue_with(stores, vec![receiver.config("booking")]).await;
    redeem(&venue, "BK1").await.ok();
    until("the failure is written down", async || {
        venue.count("SELECT COUNT(*) FROM web_hook_delivery WHERE last_result IS NOT NULL").await == 1
    })
    .await;
    // The reversal of it, as its transaction will write it.
    let later = "INSERT INTO web_hook_delivery (tenant_id, hook, event_id, event, order_id, body, created_at, due_at)
        SELECT tenant_id, hook, 'later', 'order.reversed', order_id, body, created_at, created_at FROM web_hook_delivery";
    sqlx::query(later).execute(&venue.database().await).await.unwrap();
    receiver.answer([Reply::Status(200)]);
    redeem(&venue, "BK2").await.ok();
    // The second 500 went to one of BK1 and BK2; both come to an end.
    until_later(&venue, "all is told", async || venue.count(OPEN).await == 0).await;
    let received = receiver.received();
    let events: Vec<(String, String)> = received
        .iter()
        .filter(|one| one.body["orderNo"] == "BK1")
        .map(|one| (one.event.clone(), one.delivery.clone()))
        .collect();
    let last = events.len() - 1;
    assert!(events[..last].iter().all(|(event, _)| event == "order.consumed"), "{events:?}");
    assert_eq!(events[last], ("order.reversed".to_owned(), "later".to_owned()));
}

/// While an order's first event is under way its second is not sent, though others are.
#[apply(every_store)]
async fn an_event_waits_for_the_one_before_it_that_is_under_way(stores: Stores) {
    let receiver = Receiver::open().await;
    receiver.answer([Reply::Hold]);
    let mut config = receiver.config("booking");
    config.timeout = 30;
    let venue = venue_with(stores, vec![config]).await;
    redeem(&venue, "BK1").await.ok();
    until("the first is under way", async || receiver.received().len() == 1).await;
    let later = "INSERT INTO web_hook_delivery (tenant_id, hook, event_id, event, order_id, body, created_at, due_at)
        SELECT tenant_id, hook, 'later', 'order.reversed', order_id, body, created_at, created_at FROM web_hook_delivery";
    sqlx::query(later).execute(&venue.database().await).await.unwrap();
    for n in 2..6 {
        let order_no = format!("BK{n}");
        redeem(&venue, &order_no).await.ok();
        let told = async || receiver.received().iter().any(|one| one.body["orderNo"] == order_no.as_str());
        until("another order's is told", told).await;
    }
    assert!(receiver.received().iter().all(|one| one.delivery != "later"), "it overtook the one before it");
    receiver.let_go();
    until("all is told", async || venue.count(OPEN).await == 0).await;
    assert_eq!(receiver.received().last().unwrap().delivery, "later");
}

#[apply(every_store)]
async fn a_receiver_hears_what_it_asked_for_alone(stores: Stores) {
    let (all, none) = (Receiver::open().await, Receiver::open().await);
    let mut reversed = none.config("reversed");
    reversed.events = vec![WebHookEvent::OrderReversed];
    let venue = venue_with(stores, vec![all.config("all"), reversed]).await;
    redeem(&venue, "BK1").await.ok();
    until("it is told", async || all.received().len() == 1).await;
    assert_eq!(venue.count("SELECT COUNT(*) FROM web_hook_delivery").await, 1);
    assert!(none.received().is_empty());
}

/// Several servers share the outbox: as long as nothing fails each event is told once.
#[tokio::test(flavor = "multi_thread")]
async fn of_two_servers_one_tells_each_event() {
    let receiver = Receiver::open().await;
    let venue = venue_with(Stores::MariadbRedis, vec![receiver.config("booking")]).await;
    let second = venue.another_server().await;
    let guide = venue.guide().await;
    let mut work = Vec::new();
    for n in 0..60 {
        let order_no = format!("BK{n}");
        let code = venue.paid_order_with_code(&order_no).await;
        let guide = if n % 2 == 0 { guide.clone() } else { guide.at(format!("http://{}", second.address())) };
        work.push((guide, order_no, code));
    }
    let redeem = |(guide, order_no, code): (api_tests::Caller, String, String)| async move {
        guide.redeem(&order_no, &code).await.ok();
    };
    futures::StreamExt::for_each_concurrent(futures::stream::iter(work), 10, redeem).await;
    until("all is told", async || venue.count(OPEN).await == 0).await;
    let received = receiver.received();
    let told: BTreeSet<&str> = received.iter().map(|one| one.delivery.as_str()).collect();
    assert_eq!((told.len(), received.len()), (60, 60), "an event was told twice");
    assert_eq!(venue.count("SELECT MAX(attempts) FROM web_hook_delivery").await, 1);
    second.stop().await.unwrap();
}

/// The outbox is part of the redemption: without it nothing is redeemed, and what is undone there is undone here.
#[apply(every_store)]
async fn without_its_event_in_the_outbox_nothing_is_redeemed(stores: Stores) {
    let receiver = Receiver::open().await;
    let venue = venue_with(stores, vec![receiver.config("booking")]).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    let database = venue.database().await;
    sqlx::query("ALTER TABLE web_hook_delivery RENAME TO away").execute(&database).await.unwrap();
    let answer = guide.redeem_as("BK1", &code, "r-1").await;
    // MariaDB says that the table is missing, which is a fault of ours; SQLite's word may mean anything.
    let wanted = if stores == Stores::MariadbRedis { 1500 } else { 1503 };
    assert_eq!((answer.code(), venue.status("BK1").await.as_str()), (wanted, "paid"), "redeemed without its event");
    assert!(venue.results("BK1").await.is_empty());
    sqlx::query("ALTER TABLE away RENAME TO web_hook_delivery").execute(&database).await.unwrap();
    guide.redeem_as("BK1", &code, "r-1").await.ok();
    until("it is told", async || venue.count(OPEN).await == 0).await;
    assert_eq!(receiver.received().len(), 1);
}

/// Two answers to each request, on a line that stays open: the second is nobody's, least of all the next request's.
#[apply(every_store)]
async fn a_receiver_that_answers_twice_is_taken_at_its_first_word(stores: Stores) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Secret::new(format!("http://{}/hook", listener.local_addr().unwrap()));
    let requests = Arc::new(AtomicUsize::new(0));
    let answering = tokio::spawn({
        let requests = requests.clone();
        async move {
            while let Ok((line, _)) = listener.accept().await {
                tokio::spawn(answer_twice(line, requests.clone()));
            }
        }
    });
    let venue = venue_with(stores, vec![WebHookConfig { url, ..hook("twice") }]).await;
    for n in 1..5 {
        redeem(&venue, &format!("BK{n}")).await.ok();
        until("it is told", async || venue.count(OPEN).await == 0).await;
        assert_eq!(requests.load(Ordering::SeqCst), n);
    }
    assert_eq!(venue.count("SELECT MAX(attempts) FROM web_hook_delivery").await, 1);
    answering.abort();
}

async fn answer_twice(mut line: TcpStream, requests: Arc<AtomicUsize>) {
    let mut read = Vec::new();
    while line.read_buf(&mut read).await.is_ok_and(|n| n > 0) {
        // The body is an object, and ends with the last brace.
        if read.windows(4).any(|four| four == b"\r\n\r\n") && read.ends_with(b"}") {
            read.clear();
            requests.fetch_add(1, Ordering::SeqCst);
            let twice = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n";
            let _ = line.write_all(twice).await;
        }
    }
}

/// A receiver that is to speak TLS and does not gets nothing to read.
#[apply(every_store)]
async fn where_tls_is_asked_for_nothing_goes_out_without_it(stores: Stores) {
    let receiver = Receiver::open().await;
    let url = Secret::new(format!("https://127.0.0.1:{}/hook", receiver.port));
    let venue = venue_with(stores, vec![WebHookConfig { url, ..hook("tls") }]).await;
    redeem(&venue, "BK1").await.ok();
    let tried = "SELECT COUNT(*) FROM web_hook_delivery WHERE last_result IS NOT NULL OR done_at IS NOT NULL";
    until("it was tried", async || venue.count(tried).await == 1).await;
    assert_eq!((venue.count(OPEN).await, receiver.received().len()), (1, 0));
}

/// `localhost` is a name; what it stands for is found out when it is connected to.
#[apply(every_store)]
async fn an_address_inside_the_network_is_reached_only_where_that_is_allowed(stores: Stores) {
    let receiver = Receiver::open().await;
    let inside =
        WebHookConfig { url: Secret::new(format!("http://localhost:{}/hook", receiver.port)), ..hook("inside") };
    let refused = WebHookConfig { allow_private: false, ..inside.clone() };
    let venue = venue_with(stores, vec![refused]).await;
    redeem(&venue, "BK1").await.ok();
    let tried = "SELECT COUNT(*) FROM web_hook_delivery WHERE last_result IS NOT NULL OR done_at IS NOT NULL";
    until("it was tried", async || venue.count(tried).await == 1).await;
    assert!(receiver.received().is_empty(), "an address inside the network was reached");
    let reason = sqlx::query_scalar::<_, String>("SELECT last_result FROM web_hook_delivery");
    let reason = reason.fetch_one(&venue.database().await).await.unwrap();
    assert_eq!(reason, "the address is inside the server's own network");

    let allowed = venue_with(stores, vec![inside]).await;
    redeem(&allowed, "BK1").await.ok();
    until("it is told", async || receiver.received().len() == 1).await;
}

#[tokio::test]
async fn a_literal_address_inside_the_network_is_refused_at_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = guidepost_server::Config::demo_in(folder.path());
    config.database.url = DatabaseUrl::sqlite(&folder.path().join("x.db"));
    config.web_hooks = vec![WebHookConfig {
        url: Secret::new("http://[::ffff:10.0.0.1]/hook?token=s3cr3t"),
        allow_private: false,
        ..hook("inside")
    }];
    let error = format!("{:#}", guidepost_server::start(config).await.unwrap_err());
    assert!(error.contains("`web_hooks[0].url`") && error.contains("allow_private"), "{error}");
    assert!(!error.contains("s3cr3t"), "{error}");
}

#[apply(every_store)]
async fn after_a_day_it_is_given_up_with_an_alert_and_the_next_event_goes_out(stores: Stores) {
    let port = free_port();
    let dead = WebHookConfig { url: Secret::new(format!("http://127.0.0.1:{port}/hook")), ..hook("dead") };
    let venue = venue_with(stores, vec![dead]).await;
    redeem(&venue, "BK1").await.ok();
    redeem(&venue, "BK2").await.ok();
    let failed = "SELECT COUNT(*) FROM web_hook_delivery WHERE last_result IS NOT NULL AND due_at < 1785546050000";
    until("both have failed", async || venue.count(failed).await == 2).await;
    // Just before the day is over they are tried once more, for the last time but one. A wait is shorter than a claim.
    venue.clock.advance(Duration::from_secs(86_400 - 60));
    let tried =
        "SELECT COUNT(*) FROM web_hook_delivery WHERE attempts = 2 AND done_at IS NULL AND due_at <= 1785632342000";
    until("they are tried before the day is over", async || venue.count(tried).await == 2).await;
    venue.clock.advance(Duration::from_secs(60));
    let given_up = "SELECT COUNT(*) FROM web_hook_delivery WHERE given_up = 1 AND done_at IS NOT NULL AND attempts = 3";
    until("they are given up", async || venue.count(given_up).await == 2).await;
    let admin = venue.admin().await;
    until("an alert was raised", async || {
        !admin.get("/admin-api/alerts").await.ok()["items"].as_array().unwrap().is_empty()
    })
    .await;
    let alerts = admin.get("/admin-api/alerts").await.ok();
    assert_eq!(alerts["items"].as_array().unwrap().len(), 1, "one alert is enough: {alerts}");
    assert_eq!(alerts["items"][0]["kind"], "web_hook_given_up");

    // What was given up is not sent any more; a new event is.
    let receiver = Receiver::open_at(port).await;
    redeem(&venue, "BK3").await.ok();
    until("the new one is told", async || venue.count(OPEN).await == 0).await;
    assert_eq!(receiver.received().iter().map(|one| one.body["orderNo"].clone()).collect::<Vec<_>>(), ["BK3"]);

    // After a week the rows are gone.
    venue.clock.advance(Duration::from_secs(8 * 86_400));
    until("old rows are deleted", async || venue.count("SELECT COUNT(*) FROM web_hook_delivery").await == 0).await;
}

/// A server that stops gives back what its requests have not finished, and another goes on with it.
#[apply(every_store)]
async fn what_was_under_way_at_shut_down_is_told_by_the_next_server(stores: Stores) {
    let receiver = Receiver::open().await;
    receiver.answer([Reply::Hold]);
    let mut config = receiver.config("booking");
    config.timeout = 30;
    let venue = venue_with(stores, vec![config]).await;
    redeem(&venue, "BK1").await.ok();
    until("it is under way", async || receiver.received().len() == 1).await;
    let next = venue.restart().await;
    until("it is told", async || receiver.received().len() == 2).await;
    let received = receiver.received();
    assert_eq!(received[0], received[1]);
    until("that is written down", async || next.count(OPEN).await == 0).await;
}
