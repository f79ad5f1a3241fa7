//! A channel's own limit is kept, over all servers.

use super::Desk;
use super::stub::{Kind, Stub};
use crate::clock::SystemClock;
use crate::codes::{CodeStore, MemoryCodes, RedisAddress, RedisCodes};
use crate::sms::channel::Outcome;
use api_tests::stores::{redis_cli, start_cluster, start_redis};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(600);

/// Of places that lie ten minutes apart those within 25 minutes are given out, whoever asks: three.
async fn three_places_in_all(servers: [Arc<dyn CodeStore>; 2]) {
    let turns = (0..20).map(|n| {
        let server = servers[n % 2].clone();
        async move { server.pace("sms:pace:cloud", LONG, LONG * 5 / 2).await.unwrap() }
    });
    let turns = futures::future::join_all(turns).await;
    let mut waits: Vec<u64> = turns.into_iter().flatten().map(|wait| wait.as_secs()).collect();
    waits.sort_unstable();
    assert_eq!(waits.len(), 3, "{waits:?}");
    for (n, wait) in waits.iter().enumerate() {
        let due = LONG.as_secs() * n as u64;
        assert!((due.saturating_sub(300)..=due).contains(wait), "{waits:?}");
    }
    // Another channel has a row of its own.
    assert_eq!(servers[0].pace("sms:pace:other", LONG, Duration::ZERO).await.unwrap(), Some(Duration::ZERO));
}

#[tokio::test]
async fn two_servers_share_a_channels_places_on_redis() {
    let redis = start_redis(&[]);
    let server = || -> Arc<dyn CodeStore> {
        let address = RedisAddress::parse(&format!("redis://127.0.0.1:{}", redis.port)).unwrap();
        Arc::new(RedisCodes::new(&address, None, Duration::from_secs(10), "").unwrap())
    };
    three_places_in_all([server(), server()]).await;
    // The row goes by itself.
    let client = redis::Client::open(format!("redis://127.0.0.1:{}", redis.port)).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let left: i64 = redis::cmd("PTTL").arg("sms:pace:cloud").query_async(&mut connection).await.unwrap();
    assert!((1..=1_800_000).contains(&left), "{left}");
}

#[tokio::test]
async fn two_servers_share_a_channels_places_on_a_cluster() {
    let nodes = start_cluster(&[]);
    // Each begins at another node: where the row lies is for the cluster to say.
    let server = |n: usize| -> Arc<dyn CodeStore> {
        let address = RedisAddress::parse(&format!("redis+cluster://127.0.0.1:{}", nodes[n].port)).unwrap();
        Arc::new(RedisCodes::new(&address, None, Duration::from_secs(10), "").unwrap())
    };
    three_places_in_all([server(0), server(1)]).await;
    let rows = nodes.iter().map(|node| redis_cli(node.port, &["exists", "sms:pace:cloud"]).trim().to_owned());
    assert_eq!(rows.filter(|row| row == "1").count(), 1, "the row lies on one node");
}

#[tokio::test]
async fn the_embedded_store_gives_places_out_as_well() {
    let store: Arc<dyn CodeStore> = Arc::new(MemoryCodes::new(Arc::new(SystemClock::new())));
    three_places_in_all([store.clone(), store]).await;
}

#[tokio::test]
async fn a_channel_without_a_place_is_passed_over_and_none_at_all_means_not_taken() {
    let (first, second) = (Stub::open(Kind::Gateway).await, Stub::open(Kind::Gateway).await);
    let mut channels = json!([first.channel("first", "A"), second.channel("second", "B")]);
    channels[0]["rate"] = json!(2);
    channels[1]["rate"] = json!(2);
    let desk = Desk::open(&channels).await;
    let mut went = Vec::new();
    for _ in 0..3 {
        let report = desk.send().await;
        went.push((report.outcome, report.channel));
    }
    let by = |channel: &str| (Outcome::Sent, Some(channel.to_owned()));
    assert_eq!(went, [by("first"), by("second"), (Outcome::NotTaken, None)]);
    assert_eq!((first.count(), second.count()), (1, 1));
}
