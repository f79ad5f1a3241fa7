//! What is logged holds no code and no whole number, whatever happens.

use super::stub::{Kind, Reply, SECRET, Stub};
use super::{CODE, Desk, NUMBER, message};
use serde_json::json;
use std::io::Write;
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::MakeWriter;

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
