//! Which channel sends, how often, and what comes of it.

use super::stub::{Kind, Reply, Stub};
use super::{Desk, message, parts, settings};
use crate::sms::channel::{Channels, Outcome, Recipient, Report, Timing, Via};
use serde_json::json;
use std::time::Duration;
use tokio::net::TcpListener;
use wire::Mobile;

/// A gateway that nobody answers at.
async fn nobody() -> serde_json::Value {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    json!({"name": "nobody", "kind": "http", "url": format!("http://127.0.0.1:{port}/")})
}

async fn two() -> (Stub, Stub, Desk) {
    let (first, second) = (Stub::open(Kind::Gateway).await, Stub::open(Kind::Gateway).await);
    let desk = Desk::open(&json!([first.channel("first", "LOGIN_01"), second.channel("second", "M7")])).await;
    (first, second, desk)
}

fn told(report: &Report) -> (Outcome, Option<&str>) {
    (report.outcome, report.channel.as_deref())
}

#[tokio::test]
async fn a_code_is_posted_with_the_channels_template_and_signed() {
    let (first, second, desk) = two().await;
    let report = desk.send().await;
    assert_eq!(told(&report), (Outcome::Sent, Some("first")));
    assert_eq!(report.provider_id.as_deref(), Some("gw-1"));
    assert_eq!(
        first.received()[0].json(),
        json!({
            "requestId": "send-1", "mobile": "+8613800138000", "scene": "login", "templateId": "LOGIN_01",
            "params": {"code": "048392", "ttl": "5"},
        })
    );
    assert_eq!((first.count(), second.count()), (1, 0));
    assert!(desk.alerts().await.is_empty());
}

#[tokio::test]
async fn a_scene_without_a_template_is_sent_under_its_own_name() {
    let stub = Stub::open(Kind::Gateway).await;
    let mut channel = stub.channel("gateway", "x");
    channel.as_object_mut().unwrap().remove("templates");
    let desk = Desk::open(&json!([channel])).await;
    desk.send().await;
    assert_eq!(stub.received()[0].json()["templateId"], "login");
}

#[tokio::test]
async fn with_the_primary_down_the_backup_sends_once_with_its_own_template() {
    let backup = Stub::open(Kind::Aliyun).await;
    let desk = Desk::open(&json!([nobody().await, backup.channel("backup", "SMS_2")])).await;
    let report = desk.send().await;
    assert_eq!(told(&report), (Outcome::Sent, Some("backup")));
    assert!(report.reason.starts_with("nobody: no connection"), "{}", report.reason);
    let received = backup.received();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].parameter("TemplateCode").as_deref(), Some("SMS_2"));
}

#[tokio::test]
async fn what_passes_is_tried_once_more_by_the_same_channel() {
    for status in [429, 503] {
        let (first, second, desk) = two().await;
        first.say(status, "");
        assert_eq!(told(&desk.send().await), (Outcome::Sent, Some("first")), "{status}");
        assert_eq!((first.count(), second.count()), (2, 0));
        // Twice: then the next one.
        first.answer([Reply::Say(status, String::new()), Reply::Say(status, String::new())]);
        assert_eq!(told(&desk.send().await), (Outcome::Sent, Some("second")));
        assert_eq!((first.count(), second.count()), (4, 1));
        assert!(desk.alerts().await.is_empty());
    }
}

#[tokio::test]
async fn a_channel_that_cannot_be_used_is_left_at_once_with_an_alert_an_hour() {
    for status in [401, 403] {
        let (first, second, desk) = two().await;
        first.answer([(); 3].map(|()| Reply::Say(status, String::new())));
        assert_eq!(told(&desk.send().await), (Outcome::Sent, Some("second")));
        assert_eq!((first.count(), second.count()), (1, 1), "not tried again");
        desk.send().await;
        assert_eq!(desk.alerts().await, ["sms_channel_down"]);
    }
}

#[tokio::test]
async fn a_refusal_is_final() {
    for status in [400, 404, 422] {
        let (first, second, desk) = two().await;
        first.say(status, "");
        assert_eq!(told(&desk.send().await), (Outcome::Refused, Some("first")));
        assert_eq!((first.count(), second.count()), (1, 0));
    }
}

/// Each is about one message, five numbers in a row are about the channel. The breaker stays shut all the same.
#[tokio::test]
async fn a_channel_that_refuses_or_leaves_unknown_five_numbers_in_a_row_makes_an_alert_an_hour() {
    let (first, second, desk) = two().await;
    let to = |n: usize| {
        let to = Recipient::Mobile(Mobile::parse(&format!("138001380{n:02}")).unwrap());
        crate::sms::channel::Message { to, ..message() }
    };
    // Somebody who tries a wrong number again and again, then three more, and one who gets a code.
    first.answer([(); 8].map(|()| Reply::Say(404, String::new())));
    for n in [1, 1, 1, 1, 1, 2, 3, 4, 5] {
        desk.channels.send(&to(n)).await;
    }
    assert!(desk.alerts().await.is_empty());
    for n in 1..=10 {
        first.answer([if n % 2 == 0 { Reply::Cut } else { Reply::Say(404, String::new()) }]);
        let outcome = if n % 2 == 0 { Outcome::Unknown } else { Outcome::Refused };
        assert_eq!(told(&desk.channels.send(&to(n)).await), (outcome, Some("first")), "classes stay what they are");
        assert_eq!(desk.alerts().await.len(), usize::from(n >= 5), "after {n}");
    }
    assert_eq!((first.count(), second.count()), (19, 0));
    assert_eq!(desk.alerts().await, ["sms_channel_down"]);
    let about: String = sqlx::query_scalar("SELECT data FROM alert").fetch_one(desk.app.db.read()).await.unwrap();
    let about: serde_json::Value = serde_json::from_str(&about).unwrap();
    assert_eq!(about, json!({"channel": "first", "class": "D", "reason": "HTTP 404"}));
    // An hour later it does the same.
    let hour = Duration::from_secs(3600);
    desk.clock.advance(hour);
    first.advance(hour);
    first.say(404, "");
    desk.channels.send(&to(1)).await;
    assert_eq!(desk.alerts().await.len(), 2);
}

#[tokio::test]
async fn an_alert_that_was_not_written_is_raised_by_the_next_failure() {
    let (first, _second, desk) = two().await;
    first.answer([(); 3].map(|()| Reply::Say(401, String::new())));
    let sql = async |sql: &'static str| {
        let mut tx = desk.app.db.begin().await.unwrap();
        sqlx::query(sql).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
    };
    sql("ALTER TABLE alert RENAME TO away").await;
    desk.send().await;
    sql("ALTER TABLE away RENAME TO alert").await;
    assert!(desk.alerts().await.is_empty());
    for _ in 0..2 {
        desk.send().await;
        assert_eq!(desk.alerts().await, ["sms_channel_down"]);
    }
}

#[tokio::test]
async fn an_unknown_end_is_never_sent_again() {
    for reply in [Reply::Hold, Reply::Cut, Reply::Say(500, String::new()), Reply::Say(502, "<html>".to_owned())] {
        let (first, second, desk) = two().await;
        first.answer([reply.clone()]);
        assert_eq!(told(&desk.send().await), (Outcome::Unknown, Some("first")), "{reply:?}");
        assert_eq!((first.count(), second.count()), (1, 0), "{reply:?}");
        assert!(desk.alerts().await.is_empty());
    }
}

#[tokio::test]
async fn a_slow_answer_counts() {
    let (first, second, desk) = two().await;
    first.answer([Reply::Slow(Duration::from_millis(200), 202, String::new())]);
    assert_eq!(told(&desk.send().await), (Outcome::Sent, Some("first")));
    assert_eq!((first.count(), second.count()), (1, 0));
}

/// Who has asked must hear of it before their own patience ends, which is longer than ours.
#[tokio::test]
async fn a_try_that_might_end_too_late_is_not_begun() {
    // Time for a second try, for the next channel alone, and for nothing.
    for (taken, asked, outcome) in
        [(7_999, (2, 0), Outcome::Sent), (8_000, (1, 1), Outcome::Sent), (8_001, (1, 0), Outcome::NotTaken)]
    {
        let (first, second, desk) = two().await;
        first.answer([Reply::Slow(Duration::from_millis(200), 503, String::new())]);
        let hurry = async {
            while first.count() == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let taken = Duration::from_millis(taken);
            desk.clock.advance(taken);
            first.advance(taken);
            second.advance(taken);
        };
        let (report, ()) = tokio::join!(desk.send(), hurry);
        assert_eq!((report.outcome, (first.count(), second.count())), (outcome, asked), "after {taken} ms: {report:?}");
    }
}

#[tokio::test]
async fn with_all_channels_down_nothing_is_taken_and_an_alert_says_so() {
    let (first, second, desk) = two().await;
    first.answer([Reply::Say(503, String::new()), Reply::Say(503, String::new())]);
    second.say(401, "");
    let report = desk.send().await;
    assert_eq!(told(&report), (Outcome::NotTaken, None));
    assert_eq!(report.reason, "first: HTTP 503, twice; second: HTTP 401");
    assert!(desk.alerts().await.iter().all(|kind| kind == "sms_channel_down"));
    assert!(!desk.alerts().await.is_empty());
}

#[tokio::test]
async fn after_five_failures_in_a_row_a_channel_rests_for_thirty_seconds() {
    let (first, second, desk) = two().await;
    first.answer([(); 6].map(|()| Reply::Say(503, String::new())));
    for _ in 0..3 {
        assert_eq!(told(&desk.send().await), (Outcome::Sent, Some("second")));
    }
    // Two, two, and one: the fifth opened it, and its second try was not made.
    assert_eq!((first.count(), second.count()), (5, 3));
    assert_eq!(desk.alerts().await, ["sms_channel_down"]);
    let about: String = sqlx::query_scalar("SELECT data FROM alert").fetch_one(desk.app.db.read()).await.unwrap();
    assert_eq!(about, r#"{"channel":"first"}"#);
    desk.send().await;
    assert_eq!((first.count(), second.count()), (5, 4));
}

#[tokio::test]
async fn after_its_rest_one_message_tries_a_channel_and_a_success_brings_it_back() {
    let (first, second, desk) = two().await;
    let rest = |seconds| {
        let rest = Duration::from_secs(seconds);
        desk.clock.advance(rest);
        first.advance(rest);
        second.advance(rest);
    };
    first.answer([(); 6].map(|()| Reply::Say(503, String::new())));
    for _ in 0..3 {
        desk.send().await;
    }
    rest(29);
    assert_eq!(told(&desk.send().await), (Outcome::Sent, Some("second")), "it rests still");
    rest(1);
    assert_eq!(told(&desk.send().await), (Outcome::Sent, Some("second")), "it was tried once and failed");
    assert_eq!(first.count(), 6);
    rest(29);
    assert_eq!(told(&desk.send().await), (Outcome::Sent, Some("second")), "it rests again");
    rest(1);
    for _ in 0..2 {
        assert_eq!(told(&desk.send().await), (Outcome::Sent, Some("first")));
    }
    assert_eq!((first.count(), second.count()), (8, 6));
}

#[tokio::test]
async fn one_channel_is_tried_by_its_name_and_no_other_stands_in() {
    let (first, second, desk) = two().await;
    assert_eq!(desk.channels.names().collect::<Vec<_>>(), ["first", "second"]);
    second.say(401, "");
    let report = desk.channels.send_by("second", &message()).await.unwrap();
    assert_eq!((told(&report), report.reason.as_str()), ((Outcome::NotTaken, Some("second")), "second: HTTP 401"));
    assert_eq!(told(&desk.channels.send_by("second", &message()).await.unwrap()), (Outcome::Sent, Some("second")));
    desk.channels.send_by("third", &message()).await.unwrap_err();
    assert_eq!((first.count(), second.count()), (0, 2));
}

#[tokio::test]
async fn without_a_channel_for_it_nothing_is_taken() {
    let (_first, _second, desk) = two().await;
    let spoken = crate::sms::channel::Message { via: Via::Voice, ..message() };
    let report = desk.channels.send(&spoken).await;
    assert_eq!((report.outcome, report.reason.as_str()), (Outcome::NotTaken, "there is no channel for it"));
    assert!(!desk.channels.can(&spoken.to, Via::Voice) && desk.channels.can(&spoken.to, Via::Sms));
}

#[tokio::test]
async fn a_spoken_code_goes_by_a_channel_that_speaks() {
    let (written, spoken) = (Stub::open(Kind::Gateway).await, Stub::open(Kind::Gateway).await);
    let mut voice = spoken.channel("voice", "V1");
    voice["voice"] = json!(true);
    let desk = Desk::open(&json!([written.channel("sms", "S1"), voice])).await;
    let message = crate::sms::channel::Message { via: Via::Voice, ..message() };
    assert_eq!(told(&desk.channels.send(&message).await), (Outcome::Sent, Some("voice")));
    desk.send().await;
    assert_eq!((written.count(), spoken.count()), (1, 1));
    assert_eq!(spoken.received()[0].json()["templateId"], "V1");
}

#[tokio::test]
async fn what_is_for_a_demo_is_refused_elsewhere_by_name() {
    let (_first, _second, desk) = two().await;
    let log = settings(&json!([{"name": "log", "kind": "log"}]));
    let mut codes = settings(&json!([]));
    codes.log_codes = true;
    for (config, key) in [(&log, "`sms.channels[0].kind`"), (&codes, "`sms.log_codes`")] {
        let error = Channels::new(config, false, parts(&desk.app)).unwrap_err().to_string();
        assert!(error.contains(key) && error.contains("--demo"), "{error}");
        Channels::new(config, true, parts(&desk.app)).unwrap();
    }
    // A demo without channels has the log.
    let demo = Channels::new(&settings(&json!([])), true, parts(&desk.app)).unwrap();
    assert_eq!(told(&demo.send(&message()).await), (Outcome::Sent, Some("log")));
}

#[test]
fn the_limits_of_time_are_those_of_the_documents() {
    let Timing { connect, total, again, queue, all } = Timing::default();
    assert_eq!(
        [connect, total, again, queue, all].map(|limit| limit.as_millis()),
        [2_000, 5_000, 1_000, 2_000, 12_500]
    );
}
