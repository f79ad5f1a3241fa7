//! A receiver of web hooks, which checks signatures with a computation of its own and answers as it is told.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use guidepost_server::config::WebHookConfig;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;
use wire::Secret;

/// What the server and the receiver share.
pub const SECRET: &str = "a secret of some length";

/// How a request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply {
    /// With this status.
    Status(u16),
    /// Not before [`Receiver::let_go`].
    Hold,
}

/// A request that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The delivery's id, by its header.
    pub delivery: String,
    /// The event, by its header.
    pub event: String,
    /// The body.
    pub body: Value,
}

#[derive(Debug)]
struct Inner {
    received: Mutex<Vec<Received>>,
    replies: Mutex<VecDeque<Reply>>,
    held: Semaphore,
}

/// Listens on a port of this machine, until dropped.
#[derive(Debug)]
pub struct Receiver {
    /// The port.
    pub port: u16,
    inner: Arc<Inner>,
    serving: AbortHandle,
}

impl Receiver {
    /// On any free port.
    pub async fn open() -> Self {
        Self::open_at(0).await
    }

    /// On this port.
    pub async fn open_at(port: u16) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let inner = Arc::new(Inner { received: Mutex::default(), replies: Mutex::default(), held: Semaphore::new(0) });
        let router = axum::Router::new().route("/hook", post(receive)).with_state(inner.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Self { port, inner, serving }
    }

    /// How the next requests are answered; those after them with 200.
    pub fn answer(&self, replies: impl IntoIterator<Item = Reply>) {
        self.inner.replies.lock().unwrap().extend(replies);
    }

    /// Answers all that are held, now and later.
    pub fn let_go(&self) {
        self.inner.held.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    /// What has come.
    pub fn received(&self) -> Vec<Received> {
        self.inner.received.lock().unwrap().clone()
    }

    /// The settings of a server that sends here.
    pub fn config(&self, name: &str) -> WebHookConfig {
        WebHookConfig { url: Secret::new(format!("http://127.0.0.1:{}/hook", self.port)), ..hook(name) }
    }
}

/// A receiver's settings without an address.
pub fn hook(name: &str) -> WebHookConfig {
    WebHookConfig {
        name: name.to_owned(),
        secret: Secret::new(SECRET),
        allow_private: true,
        ..WebHookConfig::default()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn receive(State(inner): State<Arc<Inner>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name: &str| headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    let mut signed = header("x-guidepost-timestamp").into_bytes();
    signed.push(b'.');
    signed.extend_from_slice(&body);
    if header("x-guidepost-signature") != format!("v1={}", hmac_sha256(SECRET.as_bytes(), &signed)) {
        return StatusCode::UNAUTHORIZED;
    }
    let received = Received {
        delivery: header("x-guidepost-delivery"),
        event: header("x-guidepost-event"),
        body: serde_json::from_slice(&body).unwrap(),
    };
    inner.received.lock().unwrap().push(received);
    let reply = inner.replies.lock().unwrap().pop_front();
    match reply {
        None => StatusCode::OK,
        Some(Reply::Status(status)) => StatusCode::from_u16(status).unwrap(),
        Some(Reply::Hold) => {
            let _ = inner.held.acquire().await.unwrap();
            StatusCode::OK
        }
    }
}

/// RFC 2104, by hand: not with the library that the server uses.
pub fn hmac_sha256(key: &[u8], message: &[u8]) -> String {
    let mut block = [0_u8; 64];
    block[..key.len()].copy_from_slice(key);
    let inner = Sha256::new().chain_update(block.map(|b| b ^ 0x36)).chain_update(message).finalize();
    let outer = Sha256::new().chain_update(block.map(|b| b ^ 0x5c)).chain_update(inner).finalize();
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}
