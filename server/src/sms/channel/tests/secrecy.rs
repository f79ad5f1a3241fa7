//! What is logged holds no code and no whole number, whatever happens.

use super::stub::{Kind, Reply, SECRET, Stub};
use super::{CODE, Desk, NUMBER, message};
use crate::sms::channel::{Message, Outcome, Receipt, Recipient};
use serde_json::json;
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::MakeWriter;
use wire::Mobile;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Kept {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_code_no_number_and_no_secret_is_logged_or_reported() {
    let kept = Kept::default();
    // Of the whole process, and told at once to the places that were come by before: a subscriber of this thread alone
    // would miss lines that another thread, where nobody listens, was the first to come by.
    let subscriber = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(kept.clone()).finish();
    tracing::subscriber::set_global_default(subscriber).unwrap();
    tracing::callsite::rebuild_interest_cache();
    let mut reports = String::new();
    for (kind, template) in [(Kind::Gateway, "G"), (Kind::Aliyun, "SMS_1"), (Kind::Tencent, "1110")] {
        // What a provider says may repeat what it was told.
        let echo = json!({"Code": format!("isv.{CODE}"), "Message": CODE, "Response": {"Error": {"Code": "x", "Message": NUMBER}}});
        for reply in [
            Reply::Say(200, json!({"id": "1"}).to_string()),
            Reply::Say(503, CODE.to_owned()),
            Reply::Say(401, NUMBER.to_owned()),
            Reply::Say(400, NUMBER.to_owned()),
            Reply::Say(500, echo["Message"].to_string()),
            Reply::Hold,
            Reply::Cut,
        ] {
            let stub = Stub::open(kind).await;
            let desk = Desk::open(&json!([stub.channel("cloud", template)])).await;
            stub.answer([reply]);
            reports += &format!("{:?} {:?} {:?}", desk.send().await, desk.channels, message());
        }
    }
    let logged = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("an SMS code was sent") && logged.contains("***8000"), "nothing was logged");
    for secret in [CODE, NUMBER, SECRET] {
        assert!(!logged.contains(secret), "{secret} was logged");
        assert!(!reports.contains(secret), "{secret} was reported");
    }
}

/// What a provider gives as its own id is logged, stored and shown by the trace.
#[tokio::test]
async fn an_id_or_a_reason_that_holds_the_number_or_the_code_is_dropped() {
    let long = format!("{}{NUMBER}", "x".repeat(60));
    let said = |kind: Kind, id: &str| match kind {
        Kind::Gateway => json!({"id": id}),
        Kind::Aliyun => json!({"Code": "OK", "BizId": id}),
        Kind::Tencent => json!({"Response": {"SendStatusSet": [{"SerialNo": id, "Code": "Ok"}]}}),
    };
    for (kind, template) in [(Kind::Gateway, "G"), (Kind::Aliyun, "SMS_1"), (Kind::Tencent, "1110")] {
        let stub = Stub::open(kind).await;
        let desk = Desk::open(&json!([stub.channel("cloud", template)])).await;
        for (id, kept) in [
            ("20260801-77", Some("20260801-77")),
            (NUMBER, None),
            ("+8613800138000", None),
            ("m.86-138-0013-8000.1", None),
            ("0086 138 0013 8000", None),
            (CODE, None),
            ("sms_048-392", None),
            // Cut, and no beginning of a number left.
            (long.as_str(), Some(&long[..60])),
        ] {
            stub.say(200, said(kind, id));
            let report = desk.send().await;
            assert_eq!((report.outcome, report.provider_id.as_deref()), (Outcome::Sent, kept), "{kind:?} {id}");
        }
    }
    let stub = Stub::open(Kind::Gateway).await;
    let desk = Desk::open(&json!([stub.channel("cloud", "G")])).await;
    let abroad = Recipient::Mobile(Mobile::parse("+85251234567").unwrap());
    for id in ["+85251234567", "5123-4567"] {
        stub.say(200, json!({"id": id}));
        assert_eq!(desk.channels.send(&Message { to: abroad.clone(), ..message() }).await.provider_id, None, "{id}");
    }
    let stub = Stub::open(Kind::Aliyun).await;
    let desk = Desk::open(&json!([stub.channel("cloud", "SMS_1")])).await;
    let mobile = Mobile::parse(NUMBER).unwrap();
    for secret in [NUMBER, CODE] {
        let code = format!("isv.MOBILE_{secret}");
        stub.say(200, json!({"Code": code}));
        assert_eq!(desk.send().await.reason, "cloud: an answer that repeats the message");
        // Nor by a receipt, or instead of one.
        let details = json!([{"SendStatus": 2, "ErrCode": format!("TO:{secret}")}]);
        stub.say(200, json!({"Code": "OK", "SmsSendDetailDTOs": {"SmsSendDetailDTO": details}}));
        let told = desk.channels.receipt("cloud", &mobile, "900^0", "send-1", 0).await.unwrap();
        assert_eq!(told, Receipt::Failed("an answer that repeats the message".to_owned()));
        stub.say(200, json!({"Code": code}));
        let error = desk.channels.receipt("cloud", &mobile, "900^0", "send-1", 0).await.unwrap_err().to_string();
        assert_eq!(error, "an answer that repeats the message");
    }
}
