//! Several servers over one MariaDB and one Redis.

use api_tests::{Order, Stores, Venue};
use futures::StreamExt;
use futures::future::join_all;
use serde_json::json;
use std::collections::BTreeMap;

/// 500 orders, each tried five times at once from both servers, a session for each client.
#[tokio::test(flavor = "multi_thread")]
async fn of_500_orders_tried_five_times_at_once_on_two_servers_each_is_redeemed_once() {
    const ORDERS: usize = 500;
    const TRIES: usize = 5;
    let venue = Venue::open_with(Stores::MariadbRedis, |config| {
        config.limits.consume.operator = 100_000;
        config.limits.consume.ip = 100_000;
    })
    .await;
    let admin = venue.admin().await;
    let raised = json!({"limits.consume.operator": 100_000, "limits.consume.ip": 100_000, "verify_code.ttl": 600});
    admin.put("/admin-api/settings", &raised).await.ok();
    let second = venue.another_server().await;
    let visitor = venue.visitor_of_a_first_order().await;
    let mut codes = Vec::new();
    for n in 0..ORDERS {
        let order_no = format!("BK{n}");
        venue.put_order(&order_no, &Order::paid()).await;
        codes.push((
            order_no.clone(),
            visitor.verify_code(&order_no).await.ok()["verifyCode"].as_str().unwrap().to_owned(),
        ));
    }
    let mut clients = Vec::new();
    for n in 0..TRIES {
        let mut guide = venue.guide().await;
        if n % 2 == 1 {
            guide = guide.at(format!("http://{}", second.address()));
        }
        clients.push(guide);
    }
    let answers: Vec<i64> = futures::stream::iter(codes)
        .map(|(order_no, code)| {
            let clients = &clients;
            async move {
                let tries = clients.iter().map(|client| client.redeem(&order_no, &code));
                join_all(tries).await.iter().map(api_tests::Answer::code).collect::<Vec<_>>()
            }
        })
        .buffer_unordered(20)
        .flat_map(futures::stream::iter)
        .collect()
        .await;
    let mut counted = BTreeMap::<i64, usize>::new();
    for answer in answers {
        *counted.entry(answer).or_default() += 1;
    }
    assert_eq!(counted, BTreeMap::from([(0, ORDERS), (2002, ORDERS * (TRIES - 1))]));
    let standing = venue.count("SELECT COUNT(*) FROM redemption WHERE standing_order_id IS NOT NULL").await;
    let consumed = venue.count("SELECT COUNT(*) FROM booking_order WHERE status = 'consumed'").await;
    assert_eq!((standing, consumed), (500, 500));
    assert_eq!(
        venue.count("SELECT COUNT(*) FROM redemption WHERE result = 2003").await,
        0,
        "a loser was told that the code is wrong"
    );
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
    venue.clock.advance(std::time::Duration::from_secs(5));
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
    let servers = join_all((0..4).map(|_| venue.another_server_on_an_empty_database())).await;
    assert_eq!(servers.len(), 4);
    for server in servers {
        server.stop().await.unwrap();
    }
}
