//! An SMS gateway of the house: it keeps what is posted to it, as phones would, and answers as it is told.

use crate::{Stores, Venue};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use guidepost_server::Config;
use guidepost_server::config::ChannelConfig;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

#[derive(Debug, Default)]
struct Inner {
    messages: Mutex<Vec<Value>>,
    replies: Mutex<VecDeque<u16>>,
}

/// Listens on a port of this machine, until dropped.
#[derive(Debug)]
pub struct Gateway {
    port: u16,
    inner: Arc<Inner>,
    serving: AbortHandle,
}

impl Gateway {
    /// On any free port.
    pub async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let inner = Arc::new(Inner::default());
        let app = axum::Router::new().route("/sms", post(take)).with_state(inner.clone());
        let serving = tokio::spawn(async { axum::serve(listener, app).await.unwrap() }).abort_handle();
        Self { port, inner, serving }
    }

    /// Where it takes messages.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/sms", self.port)
    }

    /// Settings with this gateway as the one channel, and so that no test of something else meets a captcha.
    pub fn set(&self, config: &mut Config) {
        let url = self.url();
        let channel: ChannelConfig =
            serde_json::from_value(json!({"name": "gateway", "kind": "http", "url": url})).unwrap();
        config.sms.channels = vec![channel];
        let limits = &mut config.limits.sms;
        (limits.ip, limits.captcha_after, limits.captcha_device, limits.captcha_number) =
            (10_000, 10_000, 10_000, 10_000);
    }

    /// What has come.
    pub fn messages(&self) -> Vec<Value> {
        self.inner.messages.lock().unwrap().clone()
    }

    /// The newest code that came for a number (E.164).
    #[track_caller]
    pub fn code_of(&self, mobile: &str) -> String {
        let messages = self.messages();
        let message = messages.iter().rev().find(|message| message["mobile"] == mobile).expect("a message");
        message["params"]["code"].as_str().unwrap().to_owned()
    }

    /// Answers the next ones so, and those after them with 200.
    pub fn answer(&self, statuses: impl IntoIterator<Item = u16>) {
        self.inner.replies.lock().unwrap().extend(statuses);
    }
}

impl Venue {
    /// A venue with a gateway as its one SMS channel, and other settings.
    pub async fn open_with_gateway(stores: Stores, change: impl FnOnce(&mut Config)) -> (Self, Gateway) {
        let gateway = Gateway::open().await;
        let venue = Self::open_with(stores, |config| {
            gateway.set(config);
            change(config);
        })
        .await;
        (venue, gateway)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take(State(inner): State<Arc<Inner>>, Json(message): Json<Value>) -> (StatusCode, Json<Value>) {
    inner.messages.lock().unwrap().push(message);
    let status = inner.replies.lock().unwrap().pop_front().unwrap_or(200);
    (StatusCode::from_u16(status).unwrap(), Json(json!({"id": "gw-1"})))
}
