//! What `sms trace` finds, step by step, on each store: the same as a caller has just seen.

use crate::every_code_store;
use api_tests::stores::start_cluster;
use api_tests::{Gateway, Stores, Venue};
use guidepost_server::Running;
use guidepost_server::config::DatabaseUrl;
use guidepost_server::sms_trace::{Question, Trace, trace};
use guidepost_server::sms_trial::{Order, Trial};
use rstest::rstest;
use rstest_reuse::apply;
use std::time::Duration;
use wire::{Mobile, TenantId};

const MOBILE: &str = "13800000001";

async fn trace_of(server: &Running, mobile: &str, tenant: i64, scene: Option<&str>) -> Trace {
    let mobile = Mobile::parse(mobile).unwrap();
    let tenant = TenantId(tenant);
    let question = Question { tenant, mobile: &mobile, scene, codes_elsewhere: false, chinese: false };
    trace(server.app(), &question).await.unwrap()
}

async fn traced(venue: &Venue) -> Trace {
    trace_of(&venue.server, MOBILE, 1, None).await
}

#[track_caller]
fn has(trace: &Trace, parts: &[&str]) {
    let text = trace.lines.join("\n");
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    assert!(!text.contains(&MOBILE[1..]), "the whole number is said:\n{text}");
}

fn end(trace: &Trace) -> &str {
    trace.lines.last().unwrap()
}

#[apply(every_code_store)]
async fn code_cool_down_tries_and_counts_are_those_that_callers_meet(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let nobody = venue.nobody();
    let before = traced(&venue).await;
    has(&before, &["there is no send today", "nothing is known of any scene asked about"]);
    assert!(before.fault.is_none() && end(&before).contains("no request got as far"), "{before:?}");

    venue.random.next([48_392]);
    nobody.send_sms(MOBILE, "login").await.ok();
    let state = "login: a code is alive, for 5 min 0 s more; the next send in 1 min 0 s; 5 tries left; 1 of 5 sends in this hour, 1 of 10 today";
    let trace = traced(&venue).await;
    // On Redis, time does not stand still.
    if stores == Stores::SqliteMemory {
        has(&trace, &[state]);
    }
    has(&trace, &["nothing is known of the other scenes"]);
    has(&trace, &["09:00:00 login sms, from 127.0.0.1: taken by a channel", "gateway: taken, the provider's id gw-1"]);
    has(&trace, &["a channel of this kind keeps no receipts: ask the gateway about send "]);
    assert!(end(&trace).contains("gateway has taken the message of 09:00:00"), "{trace:?}");
    assert!(!trace.lines.join("\n").contains("048392"), "{trace:?}");

    venue.advance(Duration::from_secs(100)).await;
    nobody.sms_login(MOBILE, "000000").await.refused(422, 4004);
    has(&traced(&venue).await, &["login: a code is alive, for 3 min ", "; no cool-down; 4 tries left; "]);
    for n in 1..5 {
        nobody.sms_login(MOBILE, &format!("00000{n}")).await.refused(422, 4004);
    }
    let locked = traced(&venue).await;
    has(&locked, &["; locked for "]);
    assert!(locked.fault.is_none() && end(&locked).contains("login is locked by wrong codes for "), "{locked:?}");

    venue.advance(Duration::from_secs(600)).await;
    has(&traced(&venue).await, &["login: no code is alive; no cool-down; 5 tries left; 1 of 5 sends in this hour"]);
    venue.random.next([739_164]);
    nobody.send_sms(MOBILE, "login").await.ok();
    nobody.sms_login(MOBILE, "739164").await.ok();
    let used = traced(&venue).await;
    has(&used, &["2 of 5 sends in this hour, 2 of 10 today", "login: no code is alive; the next send in "]);
    assert_eq!(end(&used), "so: the code of 09:11:40 was used at 09:11:40: the message did arrive");
    assert_eq!(gateway.messages().len(), 2);

    // Another scene, number and tenant know nothing of it; nor does the next day.
    let other = trace_of(&venue.server, MOBILE, 1, Some("register")).await;
    has(&other, &["went on to a channel: 0", "nothing is known"]);
    for (mobile, tenant) in [("13800000002", 1), (MOBILE, 2)] {
        has(&trace_of(&venue.server, mobile, tenant, None).await, &["went on to a channel: 0", "nothing is known"]);
    }
    venue.advance(Duration::from_secs(15 * 3600)).await;
    has(&traced(&venue).await, &["2026-08-02 (Asia/Shanghai)", "went on to a channel: 0"]);
}

#[apply(every_code_store)]
async fn each_end_of_a_send_is_told_with_what_to_do_next(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    for (status, code, said, ends, fault) in [
        (
            401,
            4008,
            "gateway: key or password are wrong",
            "no channel took it: gateway: key or password are wrong",
            true,
        ),
        (404, 4008, "(HTTP 404)", "the provider refuses the number or the content", true),
        (500, 0, "no clear answer", "gateway gave no clear answer and the message may have gone out", false),
    ] {
        gateway.answer([status]);
        let answer = venue.nobody().send_sms(MOBILE, "login").await;
        assert_eq!(answer.json()["code"], code, "{status}");
        let trace = traced(&venue).await;
        has(&trace, &[said]);
        assert!(end(&trace).contains(ends) && trace.fault.is_some() == fault, "{status}: {trace:?}");
        venue.advance(Duration::from_secs(60)).await;
    }
    has(
        &traced(&venue).await,
        &["went on to a channel: 3", "no channel took it", "refused by the provider", "unknown end"],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_on_a_cluster_finds_what_another_server_has_sent() {
    let nodes = start_cluster(&[]);
    let gateway = Gateway::open().await;
    let venue = Venue::open_with(Stores::MariadbRedis, |config| {
        gateway.set(config);
        config.code_store.url = DatabaseUrl::new(format!("redis+cluster://127.0.0.1:{}", nodes[0].port));
    })
    .await;
    venue.nobody().send_sms(MOBILE, "login").await.ok();
    let beside = venue.another_server().await;
    let trace = trace_of(&beside, MOBILE, 1, None).await;
    has(
        &trace,
        &["login: a code is alive, for ", "1 of 5 sends in this hour, 1 of 10 today", "went on to a channel: 1"],
    );
}

/// A real send by each channel is a send like any other.
#[apply(every_code_store)]
async fn a_send_that_tries_a_channel_is_traced_with_channel_and_the_providers_id(stores: Stores) {
    let (venue, gateway) = Venue::open_with_gateway(stores, |_| {}).await;
    let mobile = Mobile::parse(MOBILE).unwrap();
    let order = Order {
        tenant: TenantId(1),
        mobile: Some(&mobile),
        mail: None,
        scene: Some("login"),
        pause: Duration::ZERO,
        chinese: false,
    };
    let tried = async || {
        let mut lines = Vec::new();
        let trial = Trial::plan(venue.server.app(), &order).unwrap();
        let say = |line| {
            lines.push(line);
            Ok(())
        };
        trial.run(say).await.unwrap();
        lines.join("\n")
    };
    tried().await;
    has(&traced(&venue).await, &["gateway: taken, the provider's id gw-1"]);
    gateway.answer([401]);
    let said = tried().await;
    assert!(said.contains("(HTTP 401)"), "the channel is named twice: {said}");
    has(&traced(&venue).await, &["gateway: key or password are wrong", "(HTTP 401)"]);
}
