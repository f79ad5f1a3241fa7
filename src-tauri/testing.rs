//! What the tests of this crate share: a listener that answers as it is told, cuts or says nothing, and a desk in front of it.

use crate::host_types::{KioskEvent, Outcome};
use crate::link::{Link, Pace};
use crate::redeem::{Inbox, Incoming, Redeemer, Timings};
use crate::screen::Screen;
use crate::server_client::{Caller, Limits, ServerClient};
use crate::session::{Session, SignedIn};
use crate::settings::SettingsStore;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use wire::api::Entry;
use wire::{OrderNo, Secret, VerifyCode};

/// Nothing in a test takes longer than this unless it is broken.
const LIMIT: Duration = Duration::from_secs(20);

/// Short enough that a silent server costs little, long enough for a busy machine.
pub(crate) const LIMITS: Limits = Limits {
    connect: Duration::from_millis(500),
    one_try: Duration::from_millis(500),
    request: Duration::from_secs(2),
    send: Duration::from_secs(2),
};

pub(crate) const TOKEN: &str = "token-that-nobody-may-see";

/// The TLS provider, as `run` installs it.
pub(crate) fn tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// The address of a port that nobody listens on.
pub(crate) async fn unused_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// What the listener does with a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Answers.
    Say(u16, String),
    /// Reads the whole request and cuts the connection.
    Cut,
    /// Sends the head and half of the body, and cuts the connection.
    Half,
    /// Reads the whole request and says nothing for as long as the client waits.
    Silence,
}

impl Reply {
    /// A success for this order.
    pub(crate) fn consumed(order_no: &str, replayed: bool) -> Self {
        let body = serde_json::json!({"code": 0, "msg": "", "data": {
            "orderNo": order_no, "status": "consumed", "consumedAt": 1_785_547_200_000_i64, "visitorName": "王芳",
            "partySize": 12, "visitAt": 1_785_549_600_000_i64, "taskNo": "T1", "replayed": replayed}});
        Self::Say(200, body.to_string())
    }

    /// A refusal.
    pub(crate) fn refused(code: wire::ErrorCode, data: serde_json::Value) -> Self {
        let body = serde_json::json!({"code": code.code(), "msg": "no", "data": data});
        Self::Say(code.status(), body.to_string())
    }
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) authorization: Option<String>,
    pub(crate) body: serde_json::Value,
}

impl Asked {
    pub(crate) fn request_id(&self) -> String {
        self.body["requestId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn order_no(&self) -> &str {
        self.body["orderNo"].as_str().unwrap()
    }
}

#[derive(Debug)]
struct Script {
    /// What `/readyz` says is away; nothing when it is empty.
    unready: &'static str,
    /// What comes next, one a request; the last one stays.
    replies: VecDeque<Reply>,
    asked: Vec<Asked>,
}

/// A listener on this machine that behaves as it is told.
#[derive(Debug, Clone)]
pub(crate) struct FakeServer {
    pub(crate) address: String,
    script: Arc<Mutex<Script>>,
}

impl FakeServer {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let script = Script { unready: "", replies: VecDeque::from([Reply::Silence]), asked: Vec::new() };
        let server = Self { address, script: Arc::new(Mutex::new(script)) };
        let served = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().serve(stream));
            }
        });
        server
    }

    pub(crate) fn set_unready(&self, unready: &'static str) {
        self.script.lock().unwrap().unready = unready;
    }

    pub(crate) fn replies(&self, replies: impl IntoIterator<Item = Reply>) {
        self.script.lock().unwrap().replies = replies.into_iter().collect();
    }

    pub(crate) fn answer_with(&self, status: u16, body: &str) {
        self.replies([Reply::Say(status, body.to_owned())]);
    }

    /// Everything asked so far but probes.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.script.lock().unwrap().asked.clone()
    }

    /// Waits until so many requests have come.
    pub(crate) async fn asked_times(&self, times: usize) -> Vec<Asked> {
        tokio::time::timeout(LIMIT, async {
            while self.asked().len() < times {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
        .expect("the requests come");
        self.asked()
    }

    async fn serve(self, stream: TcpStream) -> Option<()> {
        let mut stream = BufReader::new(stream);
        let Request { path, authorization, body, .. } = read_request(&mut stream).await?;
        let reply = {
            let mut script = self.script.lock().unwrap();
            match path.as_str() {
                "/healthz" => Reply::Say(200, "ok".into()),
                "/readyz" => {
                    let (status, word) = if script.unready.is_empty() { (200, "ready") } else { (503, script.unready) };
                    Reply::Say(status, format!("{word}\n"))
                }
                _ => {
                    let body = serde_json::from_slice(&body).unwrap_or_default();
                    script.asked.push(Asked { path, authorization, body });
                    if script.replies.len() > 1 { script.replies.pop_front()? } else { script.replies[0].clone() }
                }
            }
        };
        let (status, body, sent) = match reply {
            Reply::Cut => return None,
            Reply::Silence => {
                // Until the client has had enough.
                stream.read_to_end(&mut Vec::new()).await.ok()?;
                return None;
            }
            Reply::Half => (200, "{\"code\": 0}".to_owned(), 5),
            Reply::Say(status, body) => (status, body.clone(), body.len()),
        };
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.ok()?;
        stream.write_all(&body.as_bytes()[..sent]).await.ok()?;
        stream.flush().await.ok()
    }
}

struct Request {
    head: String,
    path: String,
    authorization: Option<String>,
    body: Vec<u8>,
}

async fn read_request(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let (mut head, mut authorization, mut length) = (String::new(), None, 0);
    stream.read_line(&mut head).await.ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().ok()?,
            _ => {}
        }
        head += &line;
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { head, path, authorization, body })
}

/// Stands before a real server and loses its first answer to a redemption, after the server has given it.
pub(crate) async fn losing_an_answer(server: std::net::SocketAddr) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let lost = Arc::new(std::sync::atomic::AtomicBool::new(false));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let lost = lost.clone();
            tokio::spawn(async move {
                let mut stream = BufReader::new(stream);
                let request = read_request(&mut stream).await?;
                let mut behind = TcpStream::connect(server).await.ok()?;
                behind.write_all(format!("{}connection: close\r\n\r\n", request.head).as_bytes()).await.ok()?;
                behind.write_all(&request.body).await.ok()?;
                let mut answer = Vec::new();
                behind.read_to_end(&mut answer).await.ok()?;
                if request.path.ends_with("/consume") && !lost.swap(true, std::sync::atomic::Ordering::SeqCst) {
                    return None;
                }
                stream.write_all(&answer).await.ok()
            });
        }
    });
    address
}

/// A desk with a signed-in guide in front of a fake server.
pub(crate) struct Desk {
    pub(crate) server: FakeServer,
    pub(crate) client: ServerClient,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) link: Arc<Link>,
    pub(crate) session: Arc<Session>,
    events: mpsc::UnboundedReceiver<KioskEvent>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Desk {
    pub(crate) async fn open() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Timings)) -> Self {
        tls();
        let server = FakeServer::open().await;
        let client = ServerClient::new(&server.address, LIMITS).unwrap();
        Self::before(server, client, change).await
    }

    /// A desk whose redemptions go to `client`'s server.
    pub(crate) async fn before(server: FakeServer, client: ServerClient, change: impl FnOnce(&mut Timings)) -> Self {
        let mut timings = Timings {
            attempt: Duration::from_secs(2),
            quick_repeat: Duration::from_millis(10),
            repeat: Duration::from_millis(50),
            give_up: Duration::from_secs(60),
            own_success: Duration::from_secs(60),
            unknown_end: Duration::from_secs(600),
        };
        change(&mut timings);
        let (send, events) = mpsc::unbounded_channel();
        let screen = Arc::new(Screen::default());
        let session = Arc::new(Session::default());
        session.begin(SignedIn { token: Secret::new(TOKEN), guide: "李娜".into(), keep: false });
        let link = Link::new(screen.clone());
        let inbox = Arc::new(Inbox::default());
        let redeemer = Redeemer {
            inbox: inbox.clone(),
            session: session.clone(),
            settings: Arc::new(SettingsStore::open(None)),
            client: client.clone(),
            link: link.clone(),
            screen: screen.clone(),
            timings,
        };
        let pace = Pace { away: Duration::from_millis(20), well: Duration::from_secs(60) };
        let tasks = vec![tokio::spawn(redeemer.work()), tokio::spawn(link.clone().probe(client.clone(), pace))];
        screen.attach(move |event| send.send(event).is_ok());
        let mut desk = Self { server, client, inbox, link, session, events, tasks };
        for _ in 0..2 {
            desk.next_event().await; // how things stand
        }
        desk
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller { token: Some(Secret::new(TOKEN)), locale: crate::host_types::Locale::ZhCn }
    }

    pub(crate) fn scan(&self, order_no: &str, verify_code: &str) {
        self.inbox.scanned(incoming(order_no, verify_code, Entry::Scan));
    }

    pub(crate) async fn next_event(&mut self) -> KioskEvent {
        tokio::time::timeout(LIMIT, self.events.recv()).await.expect("something happens").unwrap()
    }

    /// The next answer, whatever happens before.
    pub(crate) async fn outcome(&mut self) -> Outcome {
        loop {
            if let KioskEvent::Outcome { outcome } = self.next_event().await {
                return outcome;
            }
        }
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

pub(crate) fn incoming(order_no: &str, verify_code: &str, entry: Entry) -> Incoming {
    Incoming {
        order_no: OrderNo::parse(order_no).unwrap(),
        verify_code: VerifyCode::from_exact(verify_code).unwrap(),
        entry,
        seen_at: std::time::Instant::now(),
    }
}
