//! Channels against stub providers that check every request's signature.

mod mail;
mod order;
mod pacing;
mod providers;
mod secrecy;
mod stub;

use super::{Channels, Message, Parts, Recipient, Report, Timing, Via};
use crate::app::{App, AppState};
use crate::clock::{Clock, SystemRandom};
use crate::config::{Config, SmsConfig};
use sqlx::Row;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wire::{Mobile, SmsCode, TenantId};

/// The signature vectors whose name begins so, where they are.
pub(super) fn vectors(name: &str) -> Option<Vec<serde_json::Value>> {
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases/sms-signatures.json");
    let Ok(text) = std::fs::read_to_string(&file) else {
        println!("skipped: {} is not there", file.display());
        return None;
    };
    let all: serde_json::Value = serde_json::from_str(&text).unwrap();
    let all = all["vectors"].as_array().unwrap().clone();
    Some(all.into_iter().filter(|vector| vector["name"].as_str().unwrap().starts_with(name)).collect())
}

const CODE: &str = "048392";
const NUMBER: &str = "13800138000";
/// 2026-08-01 09:00 in Shanghai.
const START: u64 = 1_785_546_000_000;

/// A clock that moves when it is told to.
#[derive(Debug)]
struct Hand(AtomicU64);

impl Hand {
    fn advance(&self, by: Duration) {
        self.0.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }
}

impl Clock for Hand {
    fn now_ms(&self) -> i64 {
        i64::try_from(self.0.load(Ordering::SeqCst)).unwrap()
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst) - START)
    }
}

/// Limits under which a test need not wait long.
const QUICK: Timing = Timing {
    connect: Duration::from_secs(2),
    total: Duration::from_secs(2),
    again: Duration::from_millis(1),
    queue: Duration::ZERO,
    all: Duration::from_secs(10),
};

/// Channels with a database for their alerts.
struct Desk {
    channels: Channels,
    app: App,
    clock: Arc<Hand>,
    _folder: tempfile::TempDir,
}

/// `[[sms.channels]]` as the environment gives it.
fn settings(channels: &serde_json::Value) -> SmsConfig {
    Config::load(None, [("GUIDEPOST_SMS__CHANNELS".to_owned(), channels.to_string())]).unwrap().sms
}

impl Desk {
    async fn open(channels: &serde_json::Value) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(Hand(AtomicU64::new(START)));
        let app = AppState::open(Config::demo_in(folder.path()), clock.clone(), Arc::new(SystemRandom)).await.unwrap();
        let channels = Channels::with_timing(&settings(channels), false, parts(&app), QUICK).unwrap();
        Self { channels, app, clock, _folder: folder }
    }

    async fn send(&self) -> Report {
        self.channels.send(&message()).await
    }

    async fn alerts(&self) -> Vec<String> {
        let rows = sqlx::query("SELECT kind FROM alert ORDER BY id").fetch_all(self.app.db.read()).await.unwrap();
        rows.iter().map(|row| row.get("kind")).collect()
    }
}

fn parts(app: &App) -> Parts {
    Parts {
        db: app.db.clone(),
        clock: app.clock.clone(),
        random: app.random.clone(),
        codes: app.codes.clone(),
        prefix: String::new(),
        metrics: app.metrics.clone(),
    }
}

fn message() -> Message {
    Message {
        id: "send-1".to_owned(),
        tenant: TenantId(1),
        scene: "login".to_owned(),
        to: Recipient::Mobile(Mobile::parse(NUMBER).unwrap()),
        code: SmsCode::from_typed(CODE).unwrap(),
        ttl: Duration::from_secs(300),
        via: Via::Sms,
    }
}

/// A template of each scene.
fn templates(login: &str) -> serde_json::Value {
    let scenes = crate::config::SCENES.map(|scene| (scene.to_owned(), serde_json::json!(login)));
    serde_json::Value::Object(scenes.into_iter().collect())
}
