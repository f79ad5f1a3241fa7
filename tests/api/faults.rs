//! Stores that stop, hang, forget, fill up or turn read-only: nothing is redeemed without them, and all comes back by itself.

use api_tests::stores::{mariadb, redis_cli, start_cluster, start_mariadb, start_redis, start_sentinel, wait_until};
use api_tests::{Caller, Order, Stores, Venue};
use guidepost_server::config::DatabaseUrl;
use guidepost_server::ops::upkeep;
use serde_json::json;
use std::time::{Duration, Instant};

/// A venue on a code store at this address, with the time limit of the product.
async fn venue_on(url: String) -> Venue {
    Venue::open_with(Stores::SqliteRedis, |config| {
        config.code_store.url = DatabaseUrl::new(url);
        config.code_store.timeout_ms = 800;
        // The same keys in every run, and so the same nodes of a cluster.
        config.code_store.prefix.clear();
        // Faults repeat attempts; limits have tests of their own.
        config.limits.consume.operator = 10_000;
        config.limits.consume.ip = 10_000;
        config.limits.consume.by_code = 10_000;
        config.limits.consume.freeze = 10_000;
    })
    .await
}

/// Asks until the answer has this code; everything before it must be one of `meanwhile`.
async fn until(caller: &Caller, order_no: &str, code: &str, want: i64, meanwhile: &[i64]) {
    let started = Instant::now();
    loop {
        let got = caller.redeem(order_no, code).await.code();
        if got == want {
            return;
        }
        assert!(meanwhile.contains(&got), "{got} while waiting for {want}");
        assert!(started.elapsed() < Duration::from_secs(60), "waited in vain for {want}, last {got}");
    }
}

/// A code, asked for until the store is back.
async fn fresh_code(visitor: &Caller, order_no: &str) -> String {
    let started = Instant::now();
    loop {
        let answer = visitor.verify_code(order_no).await;
        if answer.code() == 0 {
            return answer.data()["verifyCode"].as_str().unwrap().to_owned();
        }
        answer.refused(503, 2004);
        assert!(started.elapsed() < Duration::from_secs(60), "the code store did not come back");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_redis_nothing_is_redeemed_and_it_comes_back_empty_by_itself() {
    let redis = start_redis(&[]);
    let venue = venue_on(format!("redis://127.0.0.1:{}", redis.port)).await;
    let code = venue.paid_order_with_code("BK1").await;
    let (guide, visitor) = (venue.guide().await, venue.visitor().await);
    redis.kill();
    for _ in 0..3 {
        guide.redeem("BK1", &code).await.refused(503, 2004);
        visitor.verify_code("BK1").await.refused(503, 2004);
    }
    assert_eq!(venue.nobody().get("/readyz").await.status, 503);
    assert_eq!(venue.status("BK1").await, "paid");
    redis.start_again();
    // Its memory is gone: the old code is worth nothing, a new one all.
    until(&guide, "BK1", &code, 2003, &[2004]).await;
    let code = fresh_code(&visitor, "BK1").await;
    guide.redeem("BK1", &code).await.ok();
    assert_eq!(venue.results("BK1").await.iter().filter(|r| **r == 0).count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_was_restarted_while_nobody_asked_costs_nobody_an_answer() {
    let redis = start_redis(&[]);
    let venue = venue_on(format!("redis://127.0.0.1:{}", redis.port)).await;
    venue.paid_order_with_code("BK1").await;
    let visitor = venue.visitor().await;
    redis.kill();
    redis.start_again();
    upkeep::turn(venue.server.app()).await;
    visitor.verify_code("BK1").await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_hangs_is_not_waited_for() {
    let redis = start_redis(&[]);
    let venue = venue_on(format!("redis://127.0.0.1:{}", redis.port)).await;
    let code = venue.paid_order_with_code("BK1").await;
    let (guide, visitor) = (venue.guide().await, venue.visitor().await);
    redis.signal("STOP");
    let within = Duration::from_secs(2);
    for _ in 0..2 {
        let redeemed = tokio::time::timeout(within, guide.redeem("BK1", &code)).await;
        redeemed.expect("an answer within two seconds").refused(503, 2004);
        let issued = tokio::time::timeout(within, visitor.verify_code("BK1")).await;
        issued.expect("an answer within two seconds").refused(503, 2004);
    }
    assert_eq!(venue.status("BK1").await, "paid");
    redis.signal("CONT");
    until(&guide, "BK1", &code, 0, &[2004]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_is_full_or_read_only_redeems_nothing() {
    let redis = start_redis(&[]);
    let venue = venue_on(format!("redis://127.0.0.1:{}", redis.port)).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    for (spoil, mend) in [
        (&["config", "set", "maxmemory", "1"][..], &["config", "set", "maxmemory", "0"][..]),
        (&["replicaof", "127.0.0.1", "1"], &["replicaof", "no", "one"]),
    ] {
        redis_cli(redis.port, spoil);
        guide.redeem("BK1", &code).await.refused(503, 2004);
        assert_eq!(venue.status("BK1").await, "paid");
        redis_cli(redis.port, mend);
    }
    until(&guide, "BK1", &code, 0, &[2004]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_cannot_be_deleted_changes_nothing() {
    let redis = start_redis(&[]);
    let venue = venue_on(format!("redis://127.0.0.1:{}", redis.port)).await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    redis_cli(redis.port, &["acl", "setuser", "default", "-del"]);
    guide.redeem("BK1", &code).await.ok();
    assert!(redis_cli(redis.port, &["keys", "*order*"]).contains("order"), "the code was deleted all the same");
    guide.redeem("BK1", &code).await.refused(409, 2002);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_that_evicts_is_refused() {
    let redis = start_redis(&["--maxmemory-policy", "allkeys-lru"]);
    let folder = tempfile::tempdir().unwrap();
    let mut config = guidepost_server::Config::demo_in(folder.path());
    config.code_store.url = DatabaseUrl::new(format!("redis://127.0.0.1:{}", redis.port));
    let error = guidepost_server::start(config).await.unwrap_err();
    assert!(format!("{error:#}").contains("noeviction"), "{error:#}");
    // Changed while the server runs, it is noticed at the next connection.
    redis_cli(redis.port, &["config", "set", "maxmemory-policy", "noeviction"]);
    let venue = venue_on(format!("redis://127.0.0.1:{}", redis.port)).await;
    venue.put_order("BK1", &Order::paid()).await;
    let visitor = venue.visitor().await;
    visitor.verify_code("BK1").await.ok();
    redis_cli(redis.port, &["config", "set", "maxmemory-policy", "allkeys-lru"]);
    redis_cli(redis.port, &["client", "kill", "type", "normal"]);
    let started = Instant::now();
    while visitor.verify_code("BK1").await.code() != 2004 {
        assert!(started.elapsed() < Duration::from_secs(30), "an evicting Redis is still used");
    }
    visitor.verify_code("BK1").await.refused(503, 2004);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redis_with_a_password_is_used_with_it_and_not_without() {
    let redis = start_redis(&["--requirepass", "sesame open"]);
    let venue = venue_on(format!("redis://:sesame%20open@127.0.0.1:{}", redis.port)).await;
    let code = venue.paid_order_with_code("BK1").await;
    venue.guide().await.redeem("BK1", &code).await.ok();
    let without = venue_on(format!("redis://127.0.0.1:{}", redis.port)).await;
    without.put_order("BK1", &Order::paid()).await;
    without.visitor().await.verify_code("BK1").await.refused(503, 2004);
}

/// What every kind of Redis must do.
async fn redemption_core(venue: &Venue, from: usize) {
    let (guide, visitor) = (venue.guide().await, venue.visitor_of_a_first_order().await);
    for n in from..from + 20 {
        let order_no = format!("BK{n}");
        venue.put_order(&order_no, &Order::paid()).await;
        let code = fresh_code(&visitor, &order_no).await;
        assert_eq!(fresh_code(&visitor, &order_no).await, code);
        let wrong = if code == "100000" { "100001" } else { "100000" };
        guide.redeem(&order_no, wrong).await.refused(422, 2003);
        guide.redeem_as(&order_no, &code, &format!("r-{n}")).await.ok();
        assert_eq!(guide.redeem_as(&order_no, &code, &format!("r-{n}")).await.ok()["replayed"], true);
        guide.redeem(&order_no, &code).await.refused(409, 2002);
    }
    let order_no = format!("LOCKED{from}");
    venue.put_order(&order_no, &Order::paid()).await;
    let code = fresh_code(&visitor, &order_no).await;
    let by_code = json!({"verifyCode": if code == "100000" { "100001" } else { "100000" }});
    guide.post("/app-api/team/guide-task/booking/consume-by-code", &by_code).await.refused(422, 2003);
    for _ in 0..5 {
        guide.redeem(&order_no, if code == "100000" { "100001" } else { "100000" }).await.refused(422, 2003);
    }
    guide.redeem(&order_no, &code).await.refused(429, 2005);
    let rotated = json!({"orderNo": order_no, "confirm": true});
    visitor.post("/app-api/team/booking/booking/verify-code/rotate", &rotated).await.ok();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_three_redeems() {
    let nodes = start_cluster(&[]);
    let addresses: Vec<String> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
    let venue = venue_on(format!("redis+cluster://{}", addresses.join(","))).await;
    redemption_core(&venue, 0).await;
    let used =
        nodes.iter().filter(|node| redis_cli(node.port, &["info", "commandstats"]).contains("cmdstat_eval:")).count();
    assert_eq!(used, 3, "the keys were spread over all nodes");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fail_over_by_sentinel_is_followed() {
    let sentinel = start_sentinel();
    let venue = venue_on(format!("redis+sentinel://127.0.0.1:{}/main", sentinel.sentinel.port)).await;
    redemption_core(&venue, 0).await;
    let code = venue.paid_order_with_code("BKX").await;
    let before = sentinel.master();
    sentinel.nodes[0].signal("KILL");
    let guide = venue.guide().await;
    guide.redeem("BKX", &code).await.refused(503, 2004);
    wait_until("another master", || ![String::new(), before.clone()].contains(&sentinel.master()));
    let visitor = venue.visitor().await;
    let code = fresh_code(&visitor, "BKX").await;
    until(&guide, "BKX", &code, 0, &[2004]).await;
    redemption_core(&venue, 100).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_stops_in_the_middle_costs_no_code() {
    let server = start_mariadb();
    let url = format!("mysql://root@127.0.0.1:{}/venue", server.port);
    mariadb(&server, "CREATE DATABASE venue");
    let venue = Venue::open_with(Stores::SqliteRedis, |config| {
        config.database.url = DatabaseUrl::new(url);
        config.limits.consume.operator = 1000;
    })
    .await;
    let code = venue.paid_order_with_code("BK1").await;
    let guide = venue.guide().await;
    server.kill();
    guide.redeem_as("BK1", &code, "r-1").await.refused(503, 1503);
    assert_eq!(venue.nobody().get("/readyz").await.status, 503);
    server.start_again();
    let started = Instant::now();
    loop {
        let answer = guide.redeem_as("BK1", &code, "r-1").await;
        if answer.code() == 0 {
            break;
        }
        answer.refused(503, 1503);
        assert!(started.elapsed() < Duration::from_secs(60), "the database did not come back");
    }
    guide.redeem("BK1", &code).await.refused(409, 2002);
}

/// The old owner may hold a live code: without the code store an order does not change hands.
#[tokio::test(flavor = "multi_thread")]
async fn without_redis_an_order_does_not_change_hands() {
    let redis = start_redis(&[]);
    let venue = venue_on(format!("redis://127.0.0.1:{}", redis.port)).await;
    venue.paid_order_with_code("BK1").await;
    redis.kill();
    let other = Order::paid().with("mobile", "13800000002").body;
    venue.machine().put("/open-api/orders/BK1", &other).await.refused(503, 2004);
    assert_eq!(venue.count("SELECT COUNT(DISTINCT account_id) FROM booking_order").await, 1);
    let account =
        "SELECT COUNT(*) FROM booking_order o JOIN account a ON a.id = o.account_id WHERE a.mobile = '+8613800000001'";
    assert_eq!(venue.count(account).await, 1);
    // What takes nothing from the old owner goes on.
    venue.put_order("BK1", &Order::paid().with("partySize", 5)).await;
}

/// The code that could not be deleted is dead before the order can be redeemed again.
#[tokio::test(flavor = "multi_thread")]
async fn a_code_that_outlived_its_orders_payment_redeems_nothing() {
    let redis = start_redis(&[]);
    let venue = venue_on(format!("redis://127.0.0.1:{}", redis.port)).await;
    let guide = venue.guide().await;
    let code = venue.paid_order_with_code("BK1").await;
    redis_cli(redis.port, &["replicaof", "127.0.0.1", "1"]);
    // What takes nothing from anybody goes on, and leaves the code in the store.
    venue.put_order("BK1", &Order::paid().with("status", "refunding")).await;
    venue.machine().put("/open-api/orders/BK1", &Order::paid().body).await.refused(503, 2004);
    redis_cli(redis.port, &["replicaof", "no", "one"]);
    venue.put_order("BK1", &Order::paid()).await;
    guide.redeem("BK1", &code).await.refused(422, 2003);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_store_that_fails_behind_the_order_is_in_the_audit() {
    let redis = start_redis(&[]);
    let venue = venue_on(format!("redis://127.0.0.1:{}", redis.port)).await;
    let guide = venue.guide().await;
    let code = venue.paid_order_with_code("BK1").await;
    redis_cli(redis.port, &["set", "team:booking:verify:1:order:1", "garbage"]);
    guide.redeem("BK1", &code).await.refused(503, 2004);
    assert_eq!(venue.results("BK1").await, [2004]);
}

/// What was sent to a store that hung is done when it goes on, and must not cost the operator their places.
#[tokio::test(flavor = "multi_thread")]
async fn attempts_at_a_store_that_hangs_leave_no_places_taken() {
    let redis = start_redis(&[]);
    let venue = venue_on(format!("redis://127.0.0.1:{}", redis.port)).await;
    let admin = venue.admin().await;
    venue.put_order("BK1", &Order::paid()).await;
    // An admin is not asked for a freeze first, so that the place is what hangs.
    let redeem = json!({"orderNo": "BK1", "verifyCode": "100000"});
    let path = "/admin-api/team/booking-order/booking/consume";
    admin.post(path, &redeem).await.refused(422, 2003);
    let places = || redis_cli(redis.port, &["zcard", "team:booking:limit:1:address:127.0.0.1"]).trim().to_owned();
    assert_eq!(places(), "1");
    redis.signal("STOP");
    let all = (0..6).map(|_| admin.post(path, &redeem));
    for answer in futures::future::join_all(all).await {
        answer.refused(503, 2004);
    }
    redis.signal("CONT");
    wait_until("the places are free again", || places() == "1");
}
