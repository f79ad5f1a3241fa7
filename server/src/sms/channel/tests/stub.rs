//! A provider of our own: plain HTTP on a socket, so that it can do what a provider should not. It works every signature
//! out by itself, from the request as it came.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub(super) const SECRET: &str = "hunter2hunter2hunter2";
pub(super) const KEY_ID: &str = "AKID-of-the-venue";

/// Whose requests it knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Gateway,
    Aliyun,
    Tencent,
}

/// What it does with a request.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    Say(u16, String),
    /// The same after a while.
    Slow(Duration, u16, String),
    /// Reads all and says nothing.
    Hold,
    /// Reads all and cuts the line.
    Cut,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HashMap<String, String>,
    pub(super) body: String,
}

impl Received {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        form_urlencoded::parse(self.query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
    }

    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

#[derive(Debug)]
pub(super) struct Stub {
    pub(super) port: u16,
    shared: Arc<Shared>,
    serving: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    kind: Kind,
    replies: Mutex<VecDeque<Reply>>,
    received: Mutex<Vec<Received>>,
    wrong: Mutex<Vec<String>>,
    /// The time (Unix ms) that signatures must bear.
    now: AtomicU64,
}

impl Drop for Stub {
    fn drop(&mut self) {
        self.serving.abort();
        if !std::thread::panicking() {
            let wrong = self.shared.wrong.lock().unwrap();
            assert!(wrong.is_empty(), "a request was not signed rightly: {wrong:?}");
        }
    }
}

impl Stub {
    pub(super) async fn open(kind: Kind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            kind,
            replies: Mutex::default(),
            received: Mutex::default(),
            wrong: Mutex::default(),
            now: AtomicU64::new(super::START),
        });
        let stub = shared.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stub.clone(), stream));
            }
        });
        Self { port, shared, serving }
    }

    /// What it does with the next requests; after them it takes each.
    pub(super) fn answer(&self, replies: impl IntoIterator<Item = Reply>) {
        self.shared.replies.lock().unwrap().extend(replies);
    }

    pub(super) fn say(&self, status: u16, body: impl ToString) {
        self.answer([Reply::Say(status, body.to_string())]);
    }

    /// Its clock moves on.
    pub(super) fn advance(&self, by: Duration) {
        self.shared.now.fetch_add(u64::try_from(by.as_millis()).unwrap(), Ordering::SeqCst);
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.shared.received.lock().unwrap().clone()
    }

    pub(super) fn count(&self) -> usize {
        self.received().len()
    }

    /// A channel that asks it, with templates of its own.
    pub(super) fn channel(&self, name: &str, template: &str) -> Value {
        let url = format!("http://127.0.0.1:{}/", self.port);
        let mut channel = json!({
            "name": name, "url": url, "secret": SECRET, "templates": super::templates(template),
        });
        let further = match self.shared.kind {
            Kind::Gateway => json!({"kind": "http"}),
            Kind::Aliyun => json!({"kind": "aliyun", "key_id": KEY_ID, "sign_name": "城市博物馆"}),
            Kind::Tencent => {
                json!({"kind": "tencent", "key_id": KEY_ID, "sign_name": "城市博物馆", "sdk_app_id": "1400006666"})
            }
        };
        channel.as_object_mut().unwrap().extend(further.as_object().unwrap().clone());
        channel
    }
}

async fn serve(stub: Arc<Shared>, mut stream: TcpStream) {
    let Some(request) = read(&mut stream).await else { return };
    if let Err(wrong) = check(stub.kind, stub.now.load(Ordering::SeqCst), &request) {
        stub.wrong.lock().unwrap().push(wrong);
    }
    stub.received.lock().unwrap().push(request);
    let taken = match stub.kind {
        Kind::Gateway => json!({"id": "gw-1"}),
        Kind::Aliyun => json!({"Code": "OK", "Message": "OK", "RequestId": "r", "BizId": "900619746936498440^0"}),
        Kind::Tencent => json!({"Response": {"RequestId": "r", "SendStatusSet": [
            {"SerialNo": "5000:1", "PhoneNumber": "x", "Fee": 1, "SessionContext": "", "Code": "Ok", "Message": "send success", "IsoCode": "CN"}
        ]}}),
    };
    let reply = stub.replies.lock().unwrap().pop_front().unwrap_or(Reply::Say(200, taken.to_string()));
    let (status, body) = match reply {
        Reply::Say(status, body) => (status, body),
        Reply::Slow(wait, status, body) => {
            tokio::time::sleep(wait).await;
            (status, body)
        }
        Reply::Hold => return std::future::pending().await,
        Reply::Cut => return,
    };
    let head = format!(
        "HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).ok()?;
    let mut lines = head.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?);
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    let (path, query, body) = (path.to_owned(), query.to_owned(), String::from_utf8(body).ok()?);
    Some(Received { method, path, query, headers, body })
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digest(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

fn check(kind: Kind, now: u64, request: &Received) -> Result<(), String> {
    let same = |what: &str, got: &str, want: &str| {
        if got == want { Ok(()) } else { Err(format!("{what}: {got}, not {want}")) }
    };
    if kind == Kind::Gateway {
        let at = request.header("x-guidepost-timestamp");
        same("the time", at, &now.to_string())?;
        let want = format!("v1={}", hex(&mac(SECRET.as_bytes(), &format!("{at}.{}", request.body))));
        return same("the signature", request.header("x-guidepost-signature"), &want);
    }
    // Both providers: the headers that are named are signed, with the method, the path, the query and the body's digest.
    let authorization = request.header("authorization");
    let field = |name: &str| {
        let (_, rest) = authorization.split_once(&format!("{name}=")).unwrap_or_default();
        rest.split(',').next().unwrap_or_default().trim().to_owned()
    };
    let signed = field("SignedHeaders");
    let headers: String = signed
        .split(';')
        .map(|name| {
            let value = request.header(name);
            // Tencent signs values in lower case.
            let value = if kind == Kind::Tencent { value.to_ascii_lowercase() } else { value.to_owned() };
            format!("{name}:{value}\n")
        })
        .collect();
    let body = digest(&request.body);
    let canonical = format!("{}\n{}\n{}\n{headers}\n{signed}\n{body}", request.method, request.path, request.query);
    if kind == Kind::Aliyun {
        same(
            "the headers",
            &signed,
            "host;x-acs-action;x-acs-content-sha256;x-acs-date;x-acs-signature-nonce;x-acs-version",
        )?;
        same("the digest", request.header("x-acs-content-sha256"), &body)?;
        same("the date", request.header("x-acs-date"), "2026-08-01T01:00:00Z")?;
        let names: Vec<&str> = request.query.split('&').collect();
        if !names.is_sorted() || request.header("x-acs-signature-nonce").len() < 16 {
            return Err("the query is not sorted, or the nonce is short".to_owned());
        }
        let to_sign = format!("ACS3-HMAC-SHA256\n{}", digest(&canonical));
        same("the key", &field("Credential"), KEY_ID)?;
        return same("the signature", &field("Signature"), &hex(&mac(SECRET.as_bytes(), &to_sign)));
    }
    let at = request.header("x-tc-timestamp");
    same("the time", at, &(now / 1000).to_string())?;
    same("the version", request.header("x-tc-version"), "2021-01-11")?;
    let scope = "2026-08-01/sms/tc3_request";
    same("the key", &field("Credential"), &format!("{KEY_ID}/{scope}"))?;
    let to_sign = format!("TC3-HMAC-SHA256\n{at}\n{scope}\n{}", digest(&canonical));
    let key = ["2026-08-01", "sms", "tc3_request"]
        .iter()
        .fold(format!("TC3{SECRET}").into_bytes(), |key, part| mac(&key, part));
    same("the signature", &field("Signature"), &hex(&mac(&key, &to_sign)))
}
