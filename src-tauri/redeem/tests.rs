//! The attempt against a listener that answers, cuts or says nothing: one test an outcome.

use crate::host_types::{Away, CommandError, KioskEvent, Outcome};
use crate::testing::{Desk, Reply, TOKEN, incoming};
use std::time::Duration;
use wire::ErrorCode;
use wire::api::{Entry, OrderStatus};

const ORDER: &str = "BK202608010001";
const CODE: &str = "483921";

fn admitted(outcome: &Outcome) -> Option<bool> {
    match outcome {
        Outcome::Admitted { moment_ago, .. } => Some(*moment_ago),
        _ => None,
    }
}

fn order() -> wire::OrderNo {
    wire::OrderNo::parse(ORDER).unwrap()
}

#[tokio::test]
async fn a_mark_at_once_then_the_answer() {
    let mut desk = Desk::open().await;
    desk.scan(ORDER, CODE);
    // The server says nothing yet, and the mark is there.
    assert_eq!(desk.next_event().await, KioskEvent::Reading { order_tail: "010001".into(), entry: Entry::Scan });
    desk.server.replies([Reply::consumed(ORDER, false)]);
    assert_eq!(
        desk.outcome().await,
        Outcome::Admitted {
            order_no: order(),
            visitor_name: "王芳".into(),
            party_size: 12,
            visit_at: 1_785_549_600_000,
            task_no: Some(wire::TaskNo::parse("T1").unwrap()),
            consumed_at: 1_785_547_200_000,
            moment_ago: false,
        }
    );
    let asked = desk.server.asked();
    assert_eq!(asked[0].path, "/app-api/team/guide-task/booking/consume");
    assert_eq!(asked[0].authorization.as_deref(), Some(&*format!("Bearer {TOKEN}")));
    assert_eq!(asked[0].order_no(), ORDER);
    assert_eq!(asked[0].body["verifyCode"], CODE);
    assert_eq!(asked[0].body["entry"], "scan");
}

#[tokio::test]
async fn a_lost_answer_is_asked_for_again_with_the_same_request_id() {
    for lost in [Reply::Cut, Reply::Half, Reply::Silence] {
        let mut desk = Desk::open().await;
        desk.server.replies([lost, Reply::consumed(ORDER, true)]);
        desk.scan(ORDER, CODE);
        // It is news to those who wait: not "a moment ago", and nothing of it on the screen.
        assert!(matches!(desk.next_event().await, KioskEvent::Reading { .. }));
        let KioskEvent::Outcome { outcome } = desk.next_event().await else { panic!("no answer") };
        assert_eq!(admitted(&outcome), Some(false));
        let asked = desk.server.asked();
        assert_eq!(asked.len(), 2);
        assert_eq!(asked[0].request_id(), asked[1].request_id());
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_cannot_be_checked_and_the_answer_shows_when_it_is_back() {
    let mut desk = Desk::with(|t| t.attempt = Duration::from_millis(700)).await;
    desk.scan(ORDER, CODE);
    assert!(matches!(desk.next_event().await, KioskEvent::Reading { .. }));
    let cannot = Outcome::CannotCheck { order_no: order(), away: Away::Network };
    assert_eq!(desk.next_event().await, KioskEvent::Outcome { outcome: cannot });
    assert_eq!(desk.next_event().await, KioskEvent::Link { away: Some(Away::Network) });
    desk.server.replies([Reply::consumed(ORDER, true)]);
    let KioskEvent::Outcome { outcome } = desk.next_event().await else { panic!("no answer") };
    assert_eq!(admitted(&outcome), Some(false));
    assert_eq!(desk.next_event().await, KioskEvent::Link { away: None });
    let ids: std::collections::HashSet<_> = desk.server.asked().iter().map(|a| a.request_id()).collect();
    assert_eq!(ids.len(), 1, "one attempt, one id");
}

#[tokio::test]
async fn the_servers_own_trouble_shows_at_once_and_clears_by_itself() {
    for (reply, away) in [
        (Reply::refused(ErrorCode::VerifyCodeUnavailable, serde_json::Value::Null), Away::CodeService),
        (Reply::refused(ErrorCode::Unavailable, serde_json::Value::Null), Away::Server),
        (Reply::refused(ErrorCode::Internal, serde_json::Value::Null), Away::Server),
        (Reply::Say(502, "<html>Bad Gateway</html>".into()), Away::Server),
        (Reply::Say(200, "<html>Welcome to the hotel</html>".into()), Away::Server),
        (Reply::Say(200, r#"{"code":0,"msg":"","data":{"orderNo":"X"}}"#.into()), Away::Server),
    ] {
        let mut desk = Desk::open().await;
        desk.server.replies([reply]);
        desk.scan(ORDER, CODE);
        assert_eq!(desk.outcome().await, Outcome::CannotCheck { order_no: order(), away });
        desk.server.replies([Reply::consumed(ORDER, false)]);
        assert_eq!(admitted(&desk.outcome().await), Some(false));
    }
}

#[tokio::test]
async fn every_refusal_has_its_answer_on_the_screen() {
    use serde_json::{Value, json};
    let consumed = json!({"status": "consumed", "consumedAt": 5, "consumedBy": "李娜", "device": null});
    let order_no = order();
    for (code, data, outcome) in [
        (ErrorCode::VerifyCodeInvalid, Value::Null, Outcome::NotValid { order_no: order_no.clone() }),
        (ErrorCode::BookingOrderNotExists, Value::Null, Outcome::NotYours { order_no: order_no.clone() }),
        (
            ErrorCode::StatusNotAllowConsume,
            consumed,
            Outcome::AlreadyRedeemed {
                order_no: order_no.clone(),
                consumed_at: Some(5),
                consumed_by: Some("李娜".into()),
                device: None,
            },
        ),
        (
            ErrorCode::StatusNotAllowConsume,
            json!({"status": "refunding", "consumedAt": null}),
            Outcome::WrongStatus { order_no: order_no.clone(), status: OrderStatus::Refunding },
        ),
        (ErrorCode::ConsumeTooFrequent, json!({"retryAfter": 17}), Outcome::TooMany { retry_after: 17 }),
        (ErrorCode::TooManyRequests, json!({"retryAfter": 3}), Outcome::TooMany { retry_after: 3 }),
        (ErrorCode::TooManyRequests, Value::Null, Outcome::TooMany { retry_after: 60 }),
        (ErrorCode::OperatorFrozen, Value::Null, Outcome::Frozen),
        (ErrorCode::Unauthenticated, Value::Null, Outcome::SignedOut),
        (ErrorCode::Forbidden, Value::Null, Outcome::SignedOut),
        (
            ErrorCode::StatusNotAllowConsume,
            json!({"status": "of a later version"}),
            Outcome::CannotCheck { order_no: order_no.clone(), away: Away::Server },
        ),
        (ErrorCode::BadRequest, Value::Null, Outcome::CannotCheck { order_no, away: Away::Server }),
    ] {
        let mut desk = Desk::open().await;
        desk.server.replies([Reply::refused(code, data)]);
        desk.scan(ORDER, CODE);
        assert_eq!(desk.outcome().await, outcome, "{code:?}");
        assert_eq!(desk.server.asked().len(), 1, "a refusal is not repeated");
        assert_eq!(desk.session.current().is_none(), outcome == Outcome::SignedOut);
    }
}

#[tokio::test]
async fn a_fault_that_a_repeat_does_not_cure_leaves_the_screen_when_the_server_is_well() {
    let mut desk = Desk::open().await;
    desk.server.replies([Reply::refused(ErrorCode::BadRequest, serde_json::Value::Null)]);
    desk.scan(ORDER, CODE);
    desk.outcome().await;
    assert_eq!(desk.next_event().await, KioskEvent::Link { away: Some(Away::Server) });
    assert_eq!(desk.next_event().await, KioskEvent::Link { away: None });
}

/// The server answers a repeat without a look at the code: another code under the same id would be let in unchecked.
#[tokio::test]
async fn another_code_for_the_same_order_is_another_attempt() {
    let mut desk = Desk::open().await;
    desk.server.replies([
        Reply::consumed(ORDER, false),
        Reply::refused(ErrorCode::StatusNotAllowConsume, serde_json::json!({"status": "consumed", "consumedAt": 5})),
    ]);
    desk.scan(ORDER, CODE);
    assert_eq!(admitted(&desk.outcome().await), Some(false));
    desk.scan(ORDER, "100000");
    assert!(matches!(desk.outcome().await, Outcome::AlreadyRedeemed { .. }));
    let asked = desk.server.asked();
    assert_ne!(asked[0].request_id(), asked[1].request_id());
}

#[tokio::test]
async fn another_code_is_another_attempt_after_a_lost_answer_too() {
    let mut desk = Desk::with(|t| t.attempt = Duration::from_millis(300)).await;
    desk.scan(ORDER, CODE);
    assert!(matches!(desk.outcome().await, Outcome::CannotCheck { .. }));
    desk.server.replies([Reply::refused(
        ErrorCode::StatusNotAllowConsume,
        serde_json::json!({"status": "consumed", "consumedAt": 5}),
    )]);
    desk.scan(ORDER, "100000");
    assert!(matches!(desk.outcome().await, Outcome::AlreadyRedeemed { .. }));
    let asked = desk.server.asked();
    assert_ne!(asked[0].request_id(), asked.last().unwrap().request_id());
}

#[tokio::test]
async fn two_codes_in_one_picture_are_both_sent() {
    let mut desk = Desk::open().await;
    desk.server.replies([Reply::consumed("BK1", false), Reply::consumed("BK2", false)]);
    desk.scan("BK1", CODE);
    desk.scan("BK2", CODE);
    for _ in 0..2 {
        assert_eq!(admitted(&desk.outcome().await), Some(false));
    }
    let orders: Vec<String> = desk.server.asked().iter().map(|asked| asked.order_no().to_owned()).collect();
    assert_eq!(orders, ["BK1", "BK2"]);
}

#[tokio::test]
async fn after_a_refusal_the_next_code_has_its_turn() {
    let mut desk = Desk::open().await;
    let no = Reply::refused(ErrorCode::VerifyCodeInvalid, serde_json::Value::Null);
    desk.server.replies([no, Reply::consumed("BK2", false)]);
    desk.scan(ORDER, CODE);
    assert_eq!(desk.outcome().await, Outcome::NotValid { order_no: order() });
    desk.scan("BK2", CODE);
    assert_eq!(admitted(&desk.outcome().await), Some(false));
}

#[tokio::test]
async fn nothing_waits_behind_a_failed_attempt_and_who_came_meanwhile_has_their_turn() {
    let mut desk = Desk::with(|t| t.attempt = Duration::from_secs(3600)).await;
    // The first try is lost, a second one would be as well: with an hour's patience only the next code ends the attempt.
    desk.server.replies([Reply::Silence]);
    desk.scan(ORDER, CODE);
    desk.server.asked_times(1).await;
    desk.scan("BK2", CODE);
    desk.scan("BK3", CODE);
    let cannot = Outcome::CannotCheck { order_no: order(), away: Away::Network };
    assert_eq!(desk.outcome().await, cannot);
    // The second is lost as well, and holds up the third no more than the first did.
    let cannot = Outcome::CannotCheck { order_no: wire::OrderNo::parse("BK2").unwrap(), away: Away::Network };
    assert_eq!(desk.outcome().await, cannot);
    desk.server.replies([Reply::consumed("BK3", false)]);
    assert_eq!(admitted(&desk.outcome().await), Some(false));
    assert_eq!(desk.server.asked().last().unwrap().order_no(), "BK3");
}

#[tokio::test]
async fn one_request_is_in_flight_at_a_time() {
    let mut desk = Desk::open().await;
    desk.scan(ORDER, CODE);
    desk.server.asked_times(1).await;
    desk.scan("BK2", CODE);
    assert!(matches!(desk.next_event().await, KioskEvent::Reading { .. }));
    assert!(desk.inbox.is_busy());
    assert_eq!(desk.server.asked().len(), 1, "the second code waits for the first one's answer");
    desk.server.replies([Reply::consumed("BK2", false)]);
    desk.outcome().await;
}

#[tokio::test]
async fn a_new_code_ends_the_repeats_of_an_old_one() {
    let mut desk = Desk::open().await;
    desk.server.replies([Reply::refused(ErrorCode::Unavailable, serde_json::Value::Null)]);
    desk.scan(ORDER, CODE);
    desk.outcome().await;
    desk.server.asked_times(3).await;
    desk.server.replies([Reply::consumed("BK2", false)]);
    desk.scan("BK2", CODE);
    // The old one may have had its answer in the very moment; then the new one comes next.
    let mut orders = Vec::new();
    while orders.last().is_none_or(|last| last != "BK2") {
        if let Outcome::Admitted { .. } = desk.outcome().await {
            orders = desk.server.asked().iter().map(|a| a.order_no().to_owned()).collect();
        }
    }
    assert!(orders.iter().rev().skip_while(|o| *o == "BK2").all(|o| o == ORDER), "{orders:?}");
}

#[tokio::test]
async fn a_later_scan_finds_the_success_whose_answer_was_lost() {
    let mut desk = Desk::with(|t| t.give_up = Duration::ZERO).await;
    desk.server.replies([Reply::refused(ErrorCode::Unavailable, serde_json::Value::Null)]);
    desk.scan(ORDER, CODE);
    desk.outcome().await;
    desk.server.replies([Reply::consumed(ORDER, true)]);
    desk.scan(ORDER, CODE);
    assert_eq!(admitted(&desk.outcome().await), Some(false));
    let asked = desk.server.asked();
    assert_eq!(asked[0].request_id(), asked.last().unwrap().request_id());
}

#[tokio::test]
async fn ones_own_success_a_moment_ago_is_shown_as_that_success_and_later_as_used() {
    let mut desk = Desk::open().await;
    desk.server.replies([Reply::consumed(ORDER, false), Reply::consumed(ORDER, true)]);
    for moment_ago in [false, true, true] {
        desk.scan(ORDER, CODE);
        assert_eq!(admitted(&desk.outcome().await), Some(moment_ago));
    }
    let asked = desk.server.asked();
    assert_eq!(asked[0].request_id(), asked[1].request_id());

    let mut desk = Desk::with(|t| t.own_success = Duration::ZERO).await;
    desk.server.replies([
        Reply::consumed(ORDER, false),
        Reply::refused(ErrorCode::StatusNotAllowConsume, serde_json::json!({"status": "consumed", "consumedAt": 5})),
    ]);
    desk.scan(ORDER, CODE);
    desk.outcome().await;
    desk.scan(ORDER, CODE);
    assert!(matches!(desk.outcome().await, Outcome::AlreadyRedeemed { .. }));
    let asked = desk.server.asked();
    assert_ne!(asked[0].request_id(), asked[1].request_id());
}

#[tokio::test]
async fn after_a_refusal_the_next_attempt_is_a_new_one() {
    let mut desk = Desk::open().await;
    desk.server.replies([Reply::refused(ErrorCode::VerifyCodeInvalid, serde_json::Value::Null)]);
    for _ in 0..2 {
        desk.scan(ORDER, CODE);
        desk.outcome().await;
    }
    let asked = desk.server.asked();
    assert_ne!(asked[0].request_id(), asked[1].request_id());
}

#[tokio::test]
async fn a_success_that_was_reversed_since_is_attempted_anew() {
    let mut desk = Desk::open().await;
    desk.server.replies([
        Reply::consumed(ORDER, false),
        Reply::refused(ErrorCode::Conflict, serde_json::Value::Null),
        Reply::consumed(ORDER, false),
    ]);
    desk.scan(ORDER, CODE);
    desk.outcome().await;
    desk.scan(ORDER, CODE);
    assert_eq!(admitted(&desk.outcome().await), Some(false));
    let ids: Vec<_> = desk.server.asked().iter().map(|a| a.request_id()).collect();
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[1], ids[2]);
}

#[tokio::test]
async fn a_typed_code_is_sent_once_and_works_while_something_is_away() {
    let mut desk = Desk::open().await;
    desk.inbox.typed(incoming(ORDER, CODE, Entry::Manual)).unwrap();
    desk.server.asked_times(1).await;
    // A double click, and a code in view meanwhile: the one is refused, the other waits.
    assert_eq!(desk.inbox.typed(incoming(ORDER, CODE, Entry::Manual)), Err(CommandError::InFlight));
    desk.server.replies([Reply::refused(ErrorCode::Unavailable, serde_json::Value::Null)]);
    assert_eq!(desk.outcome().await, Outcome::CannotCheck { order_no: order(), away: Away::Server });
    desk.server.replies([Reply::consumed("BK2", false)]);
    let typed = tokio::time::timeout(Duration::from_secs(20), async {
        while desk.inbox.typed(incoming("BK2", CODE, Entry::Manual)).is_err() {
            tokio::task::yield_now().await;
        }
    });
    typed.await.expect("the desk takes typed codes again");
    while desk.server.asked().last().unwrap().order_no() != "BK2" {
        desk.outcome().await;
    }
    assert_eq!(desk.server.asked().last().unwrap().body["entry"], "manual");
}

#[tokio::test]
async fn a_typed_code_is_not_pushed_aside_by_a_scanned_one() {
    let mut desk = Desk::open().await;
    desk.scan(ORDER, CODE);
    desk.server.asked_times(1).await;
    desk.inbox.typed(incoming("TYPED", CODE, Entry::Manual)).unwrap();
    desk.scan("SCANNED", CODE);
    desk.server.replies([Reply::consumed("X", false)]);
    desk.outcome().await;
    desk.outcome().await;
    assert_eq!(desk.server.asked().last().unwrap().order_no(), "TYPED");
}

#[tokio::test]
async fn with_nobody_signed_in_nothing_is_sent() {
    let mut desk = Desk::open().await;
    desk.session.end();
    desk.scan(ORDER, CODE);
    assert_eq!(desk.next_event().await, KioskEvent::Outcome { outcome: Outcome::SignedOut });
    assert!(desk.server.asked().is_empty());
}

#[tokio::test]
async fn repeats_end_with_the_session() {
    let mut desk = Desk::open().await;
    desk.server.replies([Reply::refused(ErrorCode::Unavailable, serde_json::Value::Null)]);
    desk.scan(ORDER, CODE);
    desk.outcome().await;
    desk.session.end();
    // Without repeats the probe has its turn, and finds all well.
    loop {
        if desk.next_event().await == (KioskEvent::Link { away: None }) {
            break;
        }
    }
}

#[test]
fn no_code_and_no_token_is_in_the_log_at_its_most_talkative() {
    #[derive(Clone, Default)]
    struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);
    impl std::io::Write for Log {
        fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::level_filters::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    // Of the whole process: what the tests beside this one log must hold no code and no token either. A subscriber of
    // this thread alone would miss lines that another thread, where nobody listens, was the first to come by.
    tracing::subscriber::set_global_default(subscriber).unwrap();
    tracing::callsite::rebuild_interest_cache();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut desk = Desk::open().await;
        desk.server.replies([
            Reply::Cut,
            Reply::refused(ErrorCode::Unavailable, serde_json::Value::Null),
            Reply::Say(200, format!(r#"{{"code":0,"data":"{CODE}","msg":""}}"#)),
            Reply::consumed(ORDER, false),
        ]);
        desk.scan(ORDER, CODE);
        while admitted(&desk.outcome().await).is_none() {}
        tracing::trace!(?desk.inbox, incoming = ?incoming(ORDER, CODE, Entry::Scan), session = ?desk.session);
    });
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(log.contains("an attempt has its answer"), "the log is on: {log}");
    assert!(!log.contains(CODE), "{log}");
    assert!(!log.contains(TOKEN), "{log}");
}
