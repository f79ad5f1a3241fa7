//! Several servers over one MariaDB and one Redis.

use api_tests::{Answer, Order, Stores, Venue};
use futures::StreamExt;
use futures::future::join_all;
use guidepost_server::clock::{Clock, SystemClock};
use serde_json::json;
use std::time::Duration;

/// 500 orders, each tried five times at once, on two servers that are processes of their own; a session for each client.
/// Two clients on different servers share a request id, two more another one, and the fifth has one of its own.
#[tokio::test(flavor = "multi_thread")]
async fn of_500_orders_tried_five_times_at_once_on_two_processes_each_is_redeemed_once() {
    const ORDERS: usize = 500;
    const CLIENTS: [(usize, &str); 5] = [(0, "a"), (1, "a"), (0, "b"), (1, "b"), (0, "c")];
    let raise = |config: &mut guidepost_server::Config| config.verify_code.ttl = 3600;
    let venue = Venue::open_at(SystemClock::new().now_ms(), Stores::MariadbRedis, raise).await;
    let raised = ["OPERATOR", "IP"].map(|limit| (format!("LIMITS__CONSUME__{limit}"), "100000".to_owned()));
    let raised: Vec<(&str, String)> = raised.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let servers = [venue.server_process(&raised), venue.server_process(&raised)];
    let visitor = venue.visitor_of_a_first_order().await;
    let mut orders = Vec::new();
    for n in 0..ORDERS {
        let order_no = format!("BK{n}");
        venue.put_order(&order_no, &Order::paid()).await;
        let code = visitor.verify_code(&order_no).await.ok()["verifyCode"].as_str().unwrap().to_owned();
        orders.push((order_no, code));
    }
    let mut clients = Vec::new();
    for (server, name) in CLIENTS {
        clients.push((venue.guide().await.at(servers[server].base.clone()), name));
    }
    let clients = &clients;
    let answers: Vec<Vec<Answer>> = futures::stream::iter(orders)
        .map(async |(order_no, code)| {
            let attempts = clients
                .iter()
                .map(async |(client, name)| client.redeem_as(&order_no, &code, &format!("{order_no}-{name}")).await);
            join_all(attempts).await
        })
        .buffer_unordered(20)
        .collect()
        .await;
    let (mut successes, mut replays, mut refusals, mut by_server) = (0, 0, 0, [0; 2]);
    for tries in &answers {
        let first = |answer: &Answer| answer.code() == 0 && answer.data()["replayed"] == false;
        let winners: Vec<usize> = (0..tries.len()).filter(|n| first(&tries[*n])).collect();
        assert_eq!(winners.len(), 1, "one order, one success: {tries:?}");
        by_server[CLIENTS[winners[0]].0] += 1;
        successes += 1;
        for (n, answer) in tries.iter().enumerate().filter(|(n, _)| *n != winners[0]) {
            if CLIENTS[n].1 == CLIENTS[winners[0]].1 {
                assert_eq!(answer.ok()["replayed"], true);
                replays += 1;
            } else {
                assert_eq!(answer.refused(409, 2002)["status"], "consumed");
                refusals += 1;
            }
        }
    }
    assert_eq!((successes, successes + replays + refusals), (ORDERS, ORDERS * CLIENTS.len()));
    assert!(by_server.iter().all(|won| *won > 0), "one server alone has redeemed: {by_server:?}");
    let count = |sql| venue.count(sql);
    assert_eq!(count("SELECT COUNT(*) FROM redemption WHERE result = 0").await, 500);
    assert_eq!(count("SELECT COUNT(*) FROM redemption WHERE standing_order_id IS NOT NULL").await, 500);
    assert_eq!(count("SELECT COUNT(*) FROM booking_order WHERE status = 'consumed'").await, 500);
    assert_eq!(
        count("SELECT COUNT(*) FROM redemption WHERE result NOT IN (0, 2002)").await,
        0,
        "a loser was told something else"
    );
}

/// Sliding, not by the minute: what was guessed at seconds 35 and 50 still counts at second 65; at 95 the first half is free again,
/// at 110 the second.
#[tokio::test(flavor = "multi_thread")]
async fn ten_guesses_in_any_minute_and_not_eleven_over_two_servers_and_a_minutes_edge() {
    let venue = Venue::open(Stores::MariadbRedis).await;
    let second = venue.another_server().await;
    let here = venue.guide().await;
    let there = here.at(format!("http://{}", second.address()));
    let guess = async |n: usize| [&here, &there][n % 2].redeem("NOWHERE", "100000").await;
    venue.advance(Duration::from_secs(35)).await;
    for n in 0..5 {
        guess(n).await.refused(404, 2001);
    }
    venue.advance(Duration::from_secs(15)).await;
    for n in 5..10 {
        guess(n).await.refused(404, 2001);
    }
    for n in 0..2 {
        guess(n).await.refused(429, 2005);
    }
    venue.advance(Duration::from_secs(15)).await;
    for n in 0..2 {
        let wait = guess(n).await.refused(429, 2005)["retryAfter"].as_i64().unwrap();
        assert!((20..=30).contains(&wait), "at second 65: {wait}");
    }
    // At second 95 the five of second 35 have left; those of second 50 have not.
    venue.advance(Duration::from_secs(30)).await;
    for n in 0..5 {
        guess(n).await.refused(404, 2001);
    }
    for n in 0..2 {
        guess(n).await.refused(429, 2005);
    }
    venue.advance(Duration::from_secs(15)).await;
    for n in 1..6 {
        guess(n).await.refused(404, 2001);
    }
    for n in 0..2 {
        guess(n).await.refused(429, 2005);
    }
    second.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn by_code_fails_five_times_in_ten_minutes_over_two_servers() {
    let venue = Venue::open(Stores::MariadbRedis).await;
    let second = venue.another_server().await;
    venue.random.next([483_921]);
    let code = venue.paid_order_with_code("BK1").await;
    let here = venue.guide().await;
    let there = here.at(format!("http://{}", second.address()));
    let by_code = async |n: usize, code: &str| {
        let body = json!({"verifyCode": code});
        [&here, &there][n % 2].post("/app-api/team/guide-task/booking/consume-by-code", &body).await
    };
    for n in 0..5 {
        by_code(n, "100000").await.refused(422, 2003);
        // A minute apart, so that the operator's limit is not what stands.
        venue.advance(Duration::from_secs(60)).await;
    }
    let visitor = venue.visitor().await;
    for n in 0..2 {
        // The right code, too.
        let alive = visitor.verify_code("BK1").await.ok()["verifyCode"].as_str().unwrap().to_owned();
        assert_ne!(alive, code, "the first code should have run out");
        let wait = by_code(n, &alive).await.refused(429, 2005)["retryAfter"].as_i64().unwrap();
        assert!((280..=300).contains(&wait), "{wait}");
    }
    // Ten minutes after the first failure one place is free, and no more.
    venue.advance(Duration::from_secs(300)).await;
    by_code(0, "100000").await.refused(422, 2003);
    by_code(1, "100000").await.refused(429, 2005);
    second.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_are_counted_together_and_changes_reach_every_server() {
    let venue = Venue::open(Stores::MariadbRedis).await;
    let second = venue.another_server().await;
    let here = venue.guide().await;
    let there = here.at(format!("http://{}", second.address()));
    for n in 0..10 {
        let guide = if n % 2 == 0 { &here } else { &there };
        guide.redeem("NOWHERE", "100000").await.refused(404, 2001);
    }
    here.redeem("NOWHERE", "100000").await.refused(429, 2005);
    there.redeem("NOWHERE", "100000").await.refused(429, 2005);
    venue.admin().await.put("/admin-api/settings", &json!({"limits.consume.operator": 11})).await.ok();
    // The other server has read its settings a moment ago, and reads them again soon.
    venue.clock.advance(Duration::from_secs(5));
    there.redeem("NOWHERE", "100000").await.refused(404, 2001);
    here.redeem("NOWHERE", "100000").await.refused(429, 2005);
    // A session that ends on one server has ended on all.
    here.post("/api/auth/logout", &json!({})).await.ok();
    there.redeem("NOWHERE", "100000").await.refused(401, 1401);
    second.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn several_servers_may_start_at_once_on_an_empty_database() {
    let venue = Venue::open(Stores::MariadbRedis).await;
    let servers = join_all((0..8).map(|_| venue.another_server_on_an_empty_database())).await;
    assert_eq!(servers.len(), 8);
    for server in servers {
        server.stop().await.unwrap();
    }
}
