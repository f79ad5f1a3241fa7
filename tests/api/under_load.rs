//! Stores that fail while a dozen guides redeem: nothing is redeemed without them, every answer comes soon, and all goes
//! on by itself afterwards.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use api_tests::stores::{Served, mariadb, redis_cli, start_mariadb, start_redis};
use api_tests::{Answer, Caller, Order, Stores, Venue};
use guidepost_server::config::DatabaseUrl;
use rstest::rstest;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

/// One fault at a time.
static ALONE: Mutex<()> = Mutex::const_new(());

/// How many redeem at once, each an operator of their own.
const GUIDES: usize = 12;

/// What a busy machine may add to a limit at most.
const MOST_SLACK: Duration = Duration::from_secs(1);

/// What is waited for comes within this.
const PATIENCE: Duration = Duration::from_secs(90);

/// What was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ask {
    Put,
    Issue,
    Redeem,
}

/// One request and what came of it.
#[derive(Debug, Clone, Copy)]
struct Seen {
    guide: usize,
    ask: Ask,
    began: Instant,
    ended: Instant,
    code: i64,
}

/// What the guides do and see.
#[derive(Debug, Default)]
struct Log {
    seen: std::sync::Mutex<Vec<Seen>>,
    over: AtomicBool,
}

impl Log {
    async fn note(&self, guide: usize, ask: Ask, answer: impl Future<Output = Answer>) -> Answer {
        let began = Instant::now();
        let answer = answer.await;
        let seen = Seen { guide, ask, began, ended: Instant::now(), code: answer.code() };
        self.seen.lock().unwrap().push(seen);
        answer
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    fn all(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    fn sums(&self) -> BTreeMap<(Ask, i64), (usize, Duration)> {
        let mut sums = BTreeMap::<_, (usize, Duration)>::new();
        for seen in self.all() {
            let (count, longest) = sums.entry((seen.ask, seen.code)).or_default();
            *count += 1;
            *longest = (*longest).max(seen.ended - seen.began);
        }
        sums
    }
}

/// A dozen guides at work, each on orders of their own.
struct Load {
    log: Arc<Log>,
    guides: Vec<JoinHandle<()>>,
}

impl Load {
    async fn start(venue: &Venue) -> Self {
        let mobiles: Vec<String> = (0..GUIDES).map(|n| format!("137{n:08}")).collect();
        for mobile in &mobiles {
            venue.put_guide(mobile, "讲解员").await;
        }
        venue.put_task("T1", &mobiles.iter().map(String::as_str).collect::<Vec<_>>()).await;
        let visitor = venue.visitor_of_a_first_order().await;
        let log = Arc::<Log>::default();
        let mut guides = Vec::new();
        for (n, mobile) in mobiles.iter().enumerate() {
            let (guide, machine) = (venue.sign_in(mobile).await, venue.machine().clone());
            guides.push(tokio::spawn(work(log.clone(), n, machine, visitor.clone(), guide)));
        }
        let load = Self { log, guides };
        load.until_each_has(3, "the load", |seen| seen.ask == Ask::Redeem && seen.code == 0).await;
        load
    }

    /// Waits until every guide has seen so many of these.
    async fn until_each_has(&self, how_many: usize, what: &str, wanted: impl Fn(&Seen) -> bool) {
        let started = Instant::now();
        loop {
            let all = self.log.all();
            let of = |guide| all.iter().filter(|seen| seen.guide == guide && wanted(seen)).count();
            if (0..GUIDES).all(|guide| of(guide) >= how_many) {
                return;
            }
            assert!(!self.guides.iter().any(JoinHandle::is_finished), "no answer at all: {:?}", self.log.sums());
            assert!(started.elapsed() < PATIENCE, "waited in vain for {what}: {:?}", self.log.sums());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until each guide redeems again, and ends their work.
    async fn finish(self) -> Vec<Seen> {
        let mended = Instant::now();
        let back = |seen: &Seen| seen.began > mended && seen.ask == Ask::Redeem && seen.code == 0;
        self.until_each_has(3, "redemptions after the fault", back).await;
        self.log.over.store(true, Ordering::SeqCst);
        for guide in self.guides {
            guide.await.unwrap();
        }
        self.log.all()
    }
}

/// Puts an order, asks for its code and redeems it, with the same request id until that is done; then the next one.
async fn work(log: Arc<Log>, n: usize, machine: Caller, visitor: Caller, guide: Caller) {
    for i in 0.. {
        let order_no = format!("G{n}-{i}");
        let path = format!("/open-api/orders/{order_no}");
        while log.note(n, Ask::Put, machine.put(&path, &Order::paid().body)).await.code() != 0 {
            tokio::task::yield_now().await;
        }
        loop {
            let issued = log.note(n, Ask::Issue, visitor.verify_code(&order_no)).await;
            // Redeemed by an attempt whose answer said that it is unknown.
            let code = match issued.code() {
                0 => issued.data()["verifyCode"].as_str().unwrap().to_owned(),
                2002 => "100000".to_owned(),
                _ => continue,
            };
            if log.note(n, Ask::Redeem, guide.redeem_as(&order_no, &code, &format!("r-{i}"))).await.code() == 0 {
                break;
            }
        }
        if log.is_over() {
            return;
        }
    }
}

/// Every order that was answered with a success has one, and `others` besides.
async fn rows_agree(venue: &Venue, seen: &[Seen], others: i64) {
    let answered = seen.iter().filter(|seen| seen.ask == Ask::Redeem && seen.code == 0).count();
    let answered = i64::try_from(answered).unwrap() + others;
    assert_eq!(venue.count("SELECT COUNT(*) FROM redemption WHERE result = 0").await, answered);
    assert_eq!(venue.count("SELECT COUNT(*) FROM booking_order WHERE status = 'consumed'").await, answered);
}

/// From `begun` on, when the fault began, all came within the limit; as long as the longest one took before, the machine
/// that runs the tests may add to it.
#[track_caller]
fn all_came_within(limit: Duration, seen: &[Seen], begun: Instant, of: &[Ask]) {
    let before = seen.iter().filter(|s| s.ended < begun).map(|s| s.ended - s.began).max();
    let limit = limit + before.unwrap_or_default().clamp(Duration::from_millis(400), MOST_SLACK);
    let seen: Vec<_> = seen.iter().filter(|s| s.ended > begun).collect();
    let late: Vec<_> = seen.iter().filter(|s| of.contains(&s.ask) && s.ended - s.began > limit).collect();
    let told: Vec<_> = late.iter().map(|s| (s.ask, s.code, s.ended - s.began)).collect();
    assert!(late.is_empty(), "{} answers of {} came after more than {limit:?}: {told:?}", late.len(), seen.len());
}

/// What befalls a Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Stopped,
    Hanging,
    RestartedEmpty,
    Full,
    ReadOnly,
}

impl Fault {
    fn begin(self, redis: &Served) {
        match self {
            Self::Stopped | Self::RestartedEmpty => redis.kill(),
            Self::Hanging => redis.signal("STOP"),
            Self::Full => drop(redis_cli(redis.port, &["config", "set", "maxmemory", "1"])),
            Self::ReadOnly => drop(redis_cli(redis.port, &["replicaof", "127.0.0.1", "1"])),
        }
    }

    fn end(self, redis: &Served) {
        match self {
            Self::Stopped | Self::RestartedEmpty => redis.start_again(),
            Self::Hanging => redis.signal("CONT"),
            Self::Full => drop(redis_cli(redis.port, &["config", "set", "maxmemory", "0"])),
            Self::ReadOnly => drop(redis_cli(redis.port, &["replicaof", "no", "one"])),
        }
    }
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn without_redis_nothing_is_redeemed_and_every_answer_comes_within_two_seconds(
    #[values(Fault::Stopped, Fault::Hanging, Fault::RestartedEmpty, Fault::Full, Fault::ReadOnly)] fault: Fault,
    #[values(Stores::SqliteRedis, Stores::MariadbRedis)] stores: Stores,
) {
    let _alone = ALONE.lock().await;
    let redis = start_redis(&[]);
    let venue = Venue::open_with(stores, |config| {
        config.code_store.url = DatabaseUrl::new(format!("redis://127.0.0.1:{}", redis.port));
        config.code_store.timeout_ms = 800;
        without_limits(config);
    })
    .await;
    let load = Load::start(&venue).await;
    fault.begin(&redis);
    let begun = Instant::now();
    if fault != Fault::RestartedEmpty {
        load.until_each_has(3, "answers without Redis", |seen| seen.began > begun && seen.code == 2004).await;
    }
    let ended = Instant::now();
    fault.end(&redis);
    let seen = load.finish().await;

    let forgets = matches!(fault, Fault::Stopped | Fault::RestartedEmpty);
    let codes: BTreeMap<i64, usize> = seen.iter().fold(BTreeMap::new(), |mut codes, seen| {
        *codes.entry(seen.code).or_default() += 1;
        codes
    });
    let known = |code: i64| code == 0 || code == 2004 || (code == 2003 && forgets);
    assert!(codes.keys().all(|code| known(*code)), "{codes:?}");
    // One that still answers may show a code that is alive. Nothing redeems.
    let without = seen.iter().filter(|seen| seen.began > begun && seen.ended < ended && seen.ask == Ask::Redeem);
    let redeemed: Vec<_> = without.filter(|seen| seen.code != 2004).collect();
    assert!(redeemed.is_empty(), "without Redis: {redeemed:?}");
    all_came_within(Duration::from_secs(2), &seen, begun, &[Ask::Issue, Ask::Redeem]);
    rows_agree(&venue, &seen, 0).await;
}

/// Faults repeat attempts; limits have tests of their own.
fn without_limits(config: &mut guidepost_server::Config) {
    let limits = &mut config.limits.consume;
    for limit in [&mut limits.operator, &mut limits.ip, &mut limits.order, &mut limits.freeze] {
        *limit = 1_000_000_000;
    }
    config.verify_code.ttl = 600;
}

/// The database hangs in the middle of the load: whoever asks is told so soon, and what was issued before redeems after.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_hangs_is_1503_soon_and_costs_no_code() {
    /// The limit of a request; one that only waits for a connection, or commits, is answered in 5 s.
    const SOON: Duration = Duration::from_secs(15);
    let _alone = ALONE.lock().await;
    let server = start_mariadb();
    mariadb(&server, "CREATE DATABASE venue");
    let venue = Venue::open_with(Stores::SqliteRedis, |config| {
        config.database.url = DatabaseUrl::new(format!("mysql://root@127.0.0.1:{}/venue", server.port));
        without_limits(config);
    })
    .await;
    let kept = venue.paid_order_with_code("KEPT").await;
    let admin = venue.admin().await;
    let load = Load::start(&venue).await;
    server.signal("STOP");
    let begun = Instant::now();
    let within = |seen: &Seen| seen.began > begun;
    load.until_each_has(2, "answers without the database", within).await;
    let redeemed = tokio::time::timeout(SOON + MOST_SLACK, admin.redeem_as_admin("KEPT", &kept)).await;
    redeemed.expect("an answer soon").refused(503, 1503);
    let ended = Instant::now();
    server.signal("CONT");
    let seen = load.finish().await;

    let without: Vec<_> = seen.iter().filter(|seen| within(seen) && seen.ended < ended).collect();
    assert!(without.len() >= 2 * GUIDES && without.iter().all(|seen| seen.code == 1503), "{without:?}");
    // One whose commit was under way finds its success by its request id; 2002 is what a visitor is told meanwhile.
    assert!(seen.iter().all(|seen| [0, 1503, 2002].contains(&seen.code)), "{seen:?}");
    all_came_within(SOON, &seen, begun, &[Ask::Put, Ask::Issue, Ask::Redeem]);
    admin.redeem_as_admin("KEPT", &kept).await.ok();
    rows_agree(&venue, &seen, 1).await;
}
