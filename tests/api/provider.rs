//! A stand-in for Tencent Cloud's SMS: it takes messages, tells their receipts, and counts the days as it is told to.
//! That requests are signed rightly is tested beside the channels.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use guidepost_server::Config;
use guidepost_server::config::{ChannelConfig, SCENES};
use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

#[derive(Debug, Default)]
struct Inner {
    sent: Mutex<Vec<Value>>,
    /// Whether the next messages are answered so that nobody knows whether they were taken.
    unclear: Mutex<VecDeque<bool>>,
    receipt: Mutex<Option<String>>,
    asked: Mutex<usize>,
    counts: Mutex<HashMap<String, u64>>,
    silent: Mutex<bool>,
}

/// Listens on a port of this machine, until dropped.
#[derive(Debug)]
pub struct Provider {
    port: u16,
    inner: Arc<Inner>,
    serving: AbortHandle,
}

impl Provider {
    /// On any free port.
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let inner = Arc::new(Inner::default());
        let app = axum::Router::new().route("/", post(answer)).with_state(inner.clone());
        let serving = tokio::spawn(async { axum::serve(listener, app).await.unwrap() }).abort_handle();
        Self { port, inner, serving }
    }

    /// Settings with the channel `cloud` before the others.
    pub fn set(&self, config: &mut Config) {
        let templates: HashMap<&str, &str> = SCENES.iter().map(|scene| (*scene, "1110")).collect();
        let channel: ChannelConfig = serde_json::from_value(json!({
            "name": "cloud", "kind": "tencent", "url": format!("http://127.0.0.1:{}/", self.port), "key_id": "k",
            "secret": "hunter2", "sign_name": "城市博物馆", "sdk_app_id": "1400006666", "templates": templates,
        }))
        .unwrap();
        config.sms.channels.insert(0, channel);
    }

    /// How many messages have come.
    pub fn sent(&self) -> usize {
        self.inner.sent.lock().unwrap().len()
    }

    /// The next message is answered so that nobody knows whether it was taken.
    pub fn be_unclear_once(&self) {
        self.inner.unclear.lock().unwrap().push_back(true);
    }

    /// From now on every receipt is this: `SUCCESS` or `FAIL`.
    pub fn report(&self, status: &str) {
        *self.inner.receipt.lock().unwrap() = Some(status.to_owned());
    }

    /// How often receipts were asked for.
    pub fn asked(&self) -> usize {
        *self.inner.asked.lock().unwrap()
    }

    /// Says that so many messages were sent on a day (`20260801`); none without it.
    pub fn count(&self, day: &str, messages: u64) {
        self.inner.counts.lock().unwrap().insert(day.to_owned(), messages);
    }

    /// Tells no counts, or tells them again.
    pub fn be_silent(&self, silent: bool) {
        *self.inner.silent.lock().unwrap() = silent;
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(inner): State<Arc<Inner>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    let said = match headers["x-tc-action"].to_str().unwrap() {
        "SendSms" => {
            inner.sent.lock().unwrap().push(body.clone());
            if inner.unclear.lock().unwrap().pop_front().unwrap_or_default() {
                return (StatusCode::BAD_GATEWAY, "<html>").into_response();
            }
            json!({"SendStatusSet": [{"SerialNo": "", "Code": "Ok"}]})
        }
        "PullSmsSendStatusByPhoneNumber" => {
            *inner.asked.lock().unwrap() += 1;
            let receipt = inner.receipt.lock().unwrap().clone();
            let sent = inner.sent.lock().unwrap().clone();
            let to = sent.iter().filter(|sent| sent["PhoneNumberSet"][0] == body["PhoneNumber"]);
            let status = |sent: &Value| {
                let context = &sent["SessionContext"];
                receipt.as_ref().map(|receipt| json!({"SerialNo": "", "SessionContext": context, "ReportStatus": receipt, "Description": "UNDELIV"}))
            };
            json!({"PullSmsSendStatusSet": to.filter_map(status).collect::<Vec<_>>()})
        }
        "SendStatusStatistics" if *inner.silent.lock().unwrap() => {
            return (StatusCode::BAD_GATEWAY, "<html>").into_response();
        }
        "SendStatusStatistics" => {
            let day = body["BeginTime"].as_str().unwrap().get(..8).unwrap().to_owned();
            let count = inner.counts.lock().unwrap().get(&day).copied().unwrap_or_default();
            json!({"SendStatusStatistics": {"RequestSuccessCount": count}})
        }
        _ => json!({"DescribeTemplateStatusSet": []}),
    };
    Json(json!({"Response": said})).into_response()
}
