//! Receipts: what became of messages that a provider has taken. Providers are asked by number, and a whole number is stored
//! nowhere: so it is kept here for ten minutes, in the memory of the process that sent, and forgotten with it.

use super::channel::{Message, Outcome, Receipt, Recipient, Report};
use super::store;
use crate::app::AppState;
use crate::db::transact;
use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use wire::{Mobile, TenantId};

/// When a provider is asked, from the send on; after the last of them no more.
const ASK_AFTER: [Duration; 3] = [Duration::from_secs(30), Duration::from_secs(120), Duration::from_secs(600)];

/// Sends that are kept; of more, the oldest are given up.
const MOST: usize = 10_000;

/// Questions in one turn, which is a second: fewer than either provider takes.
const PER_TURN: usize = 5;

/// Sends of this process whose receipts are still to come.
#[derive(Debug, Default)]
pub(crate) struct Receipts(Mutex<VecDeque<Expected>>);

/// A message that a provider may have taken. Its number prints stars.
#[derive(Debug, Clone)]
struct Expected {
    tenant: TenantId,
    send: String,
    channel: String,
    to: Mobile,
    provider_id: String,
    /// Unix ms.
    sent_at: i64,
    /// By the monotonic clock.
    sent: Duration,
    /// How often the provider was asked.
    asked: usize,
}

impl Expected {
    fn due(&self, now: Duration) -> bool {
        ASK_AFTER.get(self.asked).is_some_and(|after| now >= self.sent + *after)
    }
}

impl Receipts {
    /// A message is on its way; its receipt is asked for where the channel keeps any.
    pub(super) fn expect(&self, app: &AppState, message: Message, sent_at: i64, report: Report) {
        let Report { outcome: Outcome::Sent | Outcome::Unknown, channel: Some(channel), provider_id, .. } = report
        else {
            return;
        };
        let Recipient::Mobile(to) = message.to else { return };
        if !app.channels.with_records().any(|name| name == channel) {
            return;
        }
        let expected = Expected {
            tenant: message.tenant,
            send: message.id,
            channel,
            to,
            provider_id: provider_id.unwrap_or_default(),
            sent_at,
            sent: app.clock.monotonic(),
            asked: 0,
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST
            && let Some(oldest) = all.pop_front()
        {
            app.metrics.receipt(&oldest.channel, "dropped");
        }
        all.push_back(expected);
    }

    /// Takes some that are due.
    fn take_due(&self, now: Duration) -> Vec<Expected> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut due = Vec::new();
        let mut left = VecDeque::with_capacity(all.len());
        for expected in all.drain(..) {
            if due.len() < PER_TURN && expected.due(now) { due.push(expected) } else { left.push_back(expected) }
        }
        *all = left;
        due
    }

    fn put_back(&self, expected: Expected) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_back(expected);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Asks for some receipts that are due, and writes down what is told.
pub(crate) async fn turn(app: &AppState) {
    for mut expected in app.receipts.take_due(app.clock.monotonic()) {
        expected.asked += 1;
        let Expected { channel, to, provider_id, send, sent_at, .. } = &expected;
        let told = app.channels.receipt(channel, to, provider_id, send, *sent_at).await;
        let receipt = told.unwrap_or_else(|error| {
            tracing::warn!(send.id = send, channel, %error, "a receipt could not be asked for");
            Receipt::Waiting
        });
        match receipt {
            Receipt::Delivered => settle(app, expected, &receipt, "delivered").await,
            Receipt::Failed(_) => settle(app, expected, &receipt, "failed").await,
            Receipt::Waiting if expected.asked < ASK_AFTER.len() => app.receipts.put_back(expected),
            Receipt::Waiting => {
                tracing::info!(send.id = send, channel, "no receipt came");
                app.metrics.receipt(channel, "unanswered");
            }
        }
    }
}

async fn settle(app: &AppState, expected: Expected, receipt: &Receipt, result: &str) {
    let Expected { tenant, send, channel, .. } = &expected;
    let now = app.clock.now_ms();
    match transact(|| store::settle_receipt(&app.db, *tenant, send, receipt, now)).await {
        Ok(true) => {
            tracing::info!(tenant.id = tenant.0, send.id = send, channel, ?receipt, "a receipt came");
            app.metrics.receipt(channel, result);
        }
        // `sms trace` has asked before.
        Ok(false) => {}
        Err(error) => {
            tracing::warn!(send.id = send, %error, "a receipt could not be written; it is asked for again");
            if expected.asked < ASK_AFTER.len() {
                app.receipts.put_back(expected);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{SystemClock, SystemRandom};
    use crate::config::{Config, SCENES};
    use crate::sms::channel::Via;
    use serde_json::json;
    use std::sync::Arc;
    use wire::SmsCode;

    async fn app(folder: &std::path::Path) -> Arc<AppState> {
        let templates: serde_json::Value = SCENES.iter().map(|scene| ((*scene).to_owned(), json!("1110"))).collect();
        let channels = json!([
            {"name": "cloud", "kind": "tencent", "key_id": "k", "secret": "s", "sign_name": "x", "sdk_app_id": "1", "templates": templates},
            {"name": "gateway", "kind": "http", "url": "http://127.0.0.1:1/"},
        ]);
        let mut config = Config::demo_in(folder);
        config.sms = Config::load(None, [("GUIDEPOST_SMS__CHANNELS".to_owned(), channels.to_string())]).unwrap().sms;
        AppState::open(config, Arc::new(SystemClock::new()), Arc::new(SystemRandom)).await.unwrap()
    }

    fn message(to: Recipient) -> Message {
        Message {
            id: "send-1".to_owned(),
            tenant: TenantId(1),
            scene: "login".to_owned(),
            to,
            code: SmsCode::from_typed("048392").unwrap(),
            ttl: Duration::from_secs(300),
            via: Via::Sms,
        }
    }

    fn report(outcome: Outcome, channel: &str) -> Report {
        Report { outcome, channel: Some(channel.to_owned()), provider_id: None, reason: String::new() }
    }

    #[tokio::test]
    async fn only_what_a_channel_with_receipts_may_have_taken_is_kept_and_no_number_is_printed() {
        let folder = tempfile::tempdir().unwrap();
        let app = app(folder.path()).await;
        let number = || Recipient::Mobile(Mobile::parse("13800138000").unwrap());
        for (to, outcome, channel, kept) in [
            (number(), Outcome::Sent, "cloud", 1),
            (number(), Outcome::Unknown, "cloud", 2),
            (number(), Outcome::NotTaken, "cloud", 2),
            (number(), Outcome::NumberLimit, "cloud", 2),
            (number(), Outcome::Sent, "gateway", 2),
            (Recipient::Email("li@example.org".to_owned()), Outcome::Sent, "cloud", 2),
        ] {
            app.receipts.expect(&app, message(to), 0, report(outcome, channel));
            assert_eq!(app.receipts.len(), kept, "{outcome:?} {channel}");
        }
        let printed = format!("{:?}", app.receipts);
        assert!(printed.contains("8000") && !printed.contains("138001"), "{printed}");
    }

    #[tokio::test]
    async fn no_more_are_kept_than_may_be_and_few_are_asked_for_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let app = app(folder.path()).await;
        for n in 0..MOST + 3 {
            let mut message = message(Recipient::Mobile(Mobile::parse("13800138000").unwrap()));
            message.id = n.to_string();
            app.receipts.expect(&app, message, 0, report(Outcome::Sent, "cloud"));
        }
        assert_eq!(app.receipts.len(), MOST);
        let later = app.clock.monotonic() + ASK_AFTER[0];
        let due: Vec<String> = app.receipts.take_due(later).into_iter().map(|expected| expected.send).collect();
        assert_eq!(due, ["3", "4", "5", "6", "7"], "the oldest are given up, the next ones come first");
        assert_eq!(app.receipts.len(), MOST - PER_TURN);
    }
}
