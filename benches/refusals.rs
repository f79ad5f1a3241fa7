//! Whether "no code", "a wrong code" and "an expired code" can be told apart by their time: medians and ratios of one run.
#![expect(clippy::print_stdout, reason = "a benchmark that cannot go on has failed, and prints")]

use api_tests::{Order, Stores, Venue};
use std::time::{Duration, Instant};

const ROUNDS: usize = 600;
const WRONG: &str = "100000";

#[tokio::main]
async fn main() {
    for stores in [Stores::SqliteMemory, Stores::SqliteRedis, Stores::MariadbRedis] {
        let venue = Venue::open_with(stores, |config| {
            let limits = &mut config.limits.consume;
            (limits.operator, limits.ip, limits.order, limits.freeze) = (1_000_000, 1_000_000, 1_000_000, 1_000_000);
            config.alerts.consume_failures = 1_000_000;
        })
        .await;
        venue.random.next([200_001, 200_002, 200_003]);
        let expired = venue.paid_order_with_code("EXPIRED").await;
        venue.advance(Duration::from_secs(61)).await;
        venue.put_order("ABSENT", &Order::paid()).await;
        let guide = venue.guide().await;
        let mut times = [const { Vec::new() }; 3];
        for round in 0..ROUNDS {
            if round % 100 == 0 {
                venue.paid_order_with_code("WRONG").await;
            }
            // One of each in turn, so that whatever else the machine does meets them alike.
            for (kind, (order_no, code)) in
                [("ABSENT", WRONG), ("WRONG", WRONG), ("EXPIRED", expired.as_str())].into_iter().enumerate()
            {
                let started = Instant::now();
                guide.redeem(order_no, code).await.refused(422, 2003);
                times[kind].push(started.elapsed());
            }
        }
        let median = |times: &mut Vec<Duration>| {
            times.sort();
            (times[times.len() / 2], times[times.len() * 95 / 100])
        };
        let [absent, wrong, expired] = times.each_mut().map(median);
        println!("{stores:?}: median and 95th percentile of {ROUNDS} refusals");
        for (name, (half, most)) in [("no code", absent), ("wrong code", wrong), ("expired code", expired)] {
            let ratio = half.as_secs_f64() / absent.0.as_secs_f64();
            println!("  {name:12} {half:>10.1?} {most:>10.1?}  {ratio:.3} of no code");
        }
    }
}
