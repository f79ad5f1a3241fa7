//! What an answer's time tells, as medians and ratios of one run: whether there was no code, a wrong one or one that ran out;
//! and whether a number or a user name is known.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark that cannot go on has failed, and prints")]

use api_tests::{Caller, Order, Stores, Venue};
use guidepost_server::accounts::create;
use serde_json::json;
use std::time::{Duration, Instant};
use wire::{Secret, TenantId};

const ROUNDS: usize = 600;
const WRONG: &str = "100000";

/// So many wrong passwords of an account are answered.
const PASSWORDS: usize = 5;

#[tokio::main]
async fn main() {
    for stores in [Stores::SqliteMemory, Stores::SqliteRedis, Stores::MariadbRedis] {
        println!("{stores:?}: median and 95th percentile, and what the medians are of the first one's");
        verify_codes(stores).await;
        numbers(stores).await;
        user_names(stores).await;
    }
}

/// Runs one of each kind in turn, so that whatever else the machine does meets them alike, and prints what they took.
async fn compare<const KINDS: usize>(
    rounds: usize,
    names: [&str; KINDS],
    before: impl AsyncFn(usize),
    act: impl AsyncFn(usize, usize),
) {
    let mut times = [const { Vec::new() }; KINDS];
    for round in 0..rounds {
        before(round).await;
        for turn in 0..KINDS {
            let kind = (turn + round) % KINDS;
            let started = Instant::now();
            act(kind, round).await;
            times[kind].push(started.elapsed());
        }
    }
    let figures = times.each_mut().map(|times| {
        times.sort();
        (times[times.len() / 2], times[times.len() * 95 / 100])
    });
    for (name, (half, most)) in names.into_iter().zip(figures) {
        let ratio = half.as_secs_f64() / figures[0].0.as_secs_f64();
        println!("  {name:36} {half:>10.1?} {most:>10.1?}  {ratio:.3}");
    }
}

async fn verify_codes(stores: Stores) {
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
    let kinds = [("ABSENT", WRONG), ("WRONG", WRONG), ("EXPIRED", expired.as_str())];
    let again = async |round: usize| {
        if round.is_multiple_of(100) {
            venue.paid_order_with_code("WRONG").await;
        }
    };
    compare(ROUNDS, ["verify code: none", "wrong", "ran out"], again, async |kind, _| {
        let (order_no, code) = kinds[kind];
        guide.redeem(order_no, code).await.refused(422, 2003);
    })
    .await;
}

async fn numbers(stores: Stores) {
    const NUMBERS: usize = ROUNDS / 3;
    let (venue, _gateway) = Venue::open_with_gateway(stores, |config| {
        config.limits.sms.wrong = 1_000_000;
        config.sms.daily_cap = 1_000_000;
    })
    .await;
    let number = |kind: usize, n: usize| format!("13{}{n:08}", 7 + kind);
    for n in 0..NUMBERS {
        venue.put_order(&format!("BK{n}"), &Order::paid().with("mobile", number(0, n))).await;
    }
    let nobody = venue.nobody();
    let nothing = async |_| {};
    for scene in ["login", "reset_password"] {
        let names = [format!("{scene}: sent to a known number"), "to an unknown one".to_owned()];
        compare(NUMBERS, names.each_ref().map(String::as_str), nothing, async |kind, n| {
            nobody.send_sms(&number(kind, n), scene).await.ok();
        })
        .await;
    }
    let wrong = async |caller: &Caller, path: &str, mobile: String| {
        let body = json!({"mobile": mobile, "code": "000000", "newPassword": "correct horse battery"});
        let answer = caller.post(path, &body).await;
        assert!([0, 4004].contains(&answer.code()), "{}", answer.code());
    };
    for path in ["/api/auth/sms-login", "/api/auth/reset-password"] {
        let names = [format!("{path}: wrong, known"), "unknown".to_owned()];
        compare(NUMBERS, names.each_ref().map(String::as_str), nothing, async |kind, n| {
            wrong(&nobody, path, number(kind, n)).await;
        })
        .await;
    }
}

async fn user_names(stores: Stores) {
    const NAMES: usize = 12;
    let venue = Venue::open(stores).await;
    for n in 0..NAMES {
        let password = Some(Secret::new("correct horse battery"));
        create::admin(venue.server.app(), TenantId(1), &format!("known{n}"), None, password).await.unwrap();
    }
    let nobody = venue.nobody();
    let names = ["wrong password: known name", "unknown name"];
    compare(
        NAMES * PASSWORDS,
        names,
        async |_| {},
        async |kind, round| {
            let name = format!("{}{}", ["known", "nobody"][kind], round / PASSWORDS);
            nobody
                .post("/api/auth/login", &json!({"username": name, "password": "wrong horse"}))
                .await
                .refused(401, 1401);
        },
    )
    .await;
}
