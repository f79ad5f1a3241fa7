//! A venue: its server, its bookings and its people.

use crate::process::command;
use crate::stores::{Stores, shared_cluster, shared_mariadb, shared_redis};
use crate::{Caller, FixedClock, ScriptedRandom, ServerProcess};
use guidepost_server::accounts::{create, link, store};
use guidepost_server::config::{CodeStoreConfig, DatabaseUrl, WebHookConfig};
use guidepost_server::{Config, Running, start_with};
use serde_json::{Value, json};
use sqlx::{Any, AnyConnection, AnyPool, AssertSqlSafe, Connection, Row, Transaction};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use wire::{Mobile, TenantId};

/// When every test begins: 2026-08-01 09:00 in Shanghai (Unix ms).
pub const START: i64 = 1_785_546_000_000;

/// A server of its own on stores of its own, stopped when dropped.
#[derive(Debug)]
pub struct Venue {
    /// The clock that the server goes by.
    pub clock: Arc<FixedClock>,
    /// Where the server's random numbers come from.
    pub random: Arc<ScriptedRandom>,
    /// The server.
    pub server: Running,
    machine: Caller,
    client: reqwest::Client,
    folder: TempDir,
    stores: Stores,
    database: DatabaseUrl,
    codes: CodeStoreConfig,
    web_hooks: Vec<WebHookConfig>,
}

/// A database of a test's own on the shared server.
async fn make_database(name: &str) -> DatabaseUrl {
    sqlx::any::install_default_drivers();
    let server = format!("mysql://root@127.0.0.1:{}", shared_mariadb());
    let mut connection = AnyConnection::connect(&format!("{server}/mysql")).await.unwrap();
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut connection).await.unwrap();
    DatabaseUrl::new(format!("{server}/{name}"))
}

/// The secret key of a venue's servers, made where there is none.
fn secret_key_in(folder: &Path) -> PathBuf {
    let file = folder.join("secret.key");
    if !file.exists() {
        std::fs::write(&file, [7; 32]).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    file
}

/// Makes everything under a pattern older: what would have run out by then is gone.
const AGE: &str = "
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= tonumber(ARGV[2]) then redis.call('DEL', key)
  else
    if left > 0 then redis.call('PEXPIRE', key, left - ARGV[2]) end
    if redis.call('TYPE', key).ok == 'zset' then
      local all = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
      for n = 1, #all, 2 do redis.call('ZADD', key, all[n + 1] - ARGV[2], all[n]) end
    end
  end
end";

/// An order to be put.
#[derive(Debug, Clone)]
pub struct Order {
    /// The body of the `PUT`.
    pub body: Value,
}

impl Order {
    /// A paid order of four people in task T1, for the visitor 13800000001.
    pub fn paid() -> Self {
        Self {
            body: json!({
                "mobile": "13800000001", "visitorName": "张伟", "partySize": 4, "visitAt": START, "status": "paid",
                "taskNo": "T1",
            }),
        }
    }

    /// With another value of a field.
    #[must_use]
    pub fn with(mut self, field: &str, value: impl Into<Value>) -> Self {
        self.body[field] = value.into();
        self
    }
}

impl Venue {
    /// A venue with the guide 13900000001 and their task T1 today.
    pub async fn open(stores: Stores) -> Self {
        Self::open_with(stores, |_| {}).await
    }

    /// The same, with other settings.
    pub async fn open_with(stores: Stores, change: impl FnOnce(&mut Config)) -> Self {
        Self::open_at(START, stores, change).await
    }

    /// The same at another time (Unix ms): at that of the machine, who signs in here is known to processes beside it.
    pub async fn open_at(now: i64, stores: Stores, change: impl FnOnce(&mut Config)) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::demo_in(folder.path());
        config.demo = false;
        let name = format!("t{}", uuid::Uuid::new_v4().simple());
        if stores != Stores::SqliteMemory {
            config.code_store.url = DatabaseUrl::new(match stores {
                Stores::SqliteCluster => format!("redis+cluster://127.0.0.1:{}", shared_cluster()[0]),
                _ => format!("redis://127.0.0.1:{}", shared_redis()),
            });
            config.code_store.prefix = format!("{name}:");
            // A machine that runs a hundred tests at once is slow; how long it may take has tests of its own.
            config.code_store.timeout_ms = 10_000;
        }
        if stores == Stores::MariadbRedis {
            config.database.url = make_database(&name).await;
        }
        change(&mut config);
        if config.database.url.is_mysql() && config.secret_key_file.is_none() {
            config.secret_key_file = Some(secret_key_in(folder.path()));
        }
        let (database, codes) = (config.database.url.clone(), config.code_store.clone());
        let web_hooks = config.web_hooks.clone();
        let clock = Arc::new(FixedClock::at(now));
        let random = Arc::new(ScriptedRandom::default());
        let server = start_with(config, clock.clone(), random.clone()).await.unwrap();
        let client = reqwest::Client::builder().timeout(Duration::from_secs(20)).build().unwrap();
        let key = create::api_key(server.app(), TenantId(1), "tests").await.unwrap();
        let credential = Some(("x-api-key".to_owned(), key.expose().to_owned()));
        let base = format!("http://{}", server.address());
        let machine = Caller { client: client.clone(), base, credential };
        let venue = Self { clock, random, server, machine, client, folder, stores, database, codes, web_hooks };
        venue.put_guide("13900000001", "林悦").await;
        venue.put_task("T1", &["13900000001"]).await;
        venue
    }

    /// Settings with the stores and web hooks of this venue's.
    fn same_stores(&self) -> Config {
        let mut config = Config::demo_in(self.folder.path());
        config.demo = false;
        config.database.url = self.database.clone();
        config.code_store = self.codes.clone();
        config.web_hooks = self.web_hooks.clone();
        config.secret_key_file = config.database.url.is_mysql().then(|| secret_key_in(self.folder.path()));
        config
    }

    /// Another server on the same stores, with a clock and a random source of its own.
    pub async fn another_server(&self) -> Running {
        start_with(self.same_stores(), self.clock.clone(), Arc::new(ScriptedRandom::default())).await.unwrap()
    }

    /// Stops the server and starts another on the same stores.
    pub async fn restart(self) -> Self {
        let config = self.same_stores();
        self.server.stop().await.unwrap();
        let server = start_with(config, self.clock.clone(), self.random.clone()).await.unwrap();
        let machine = Caller { base: format!("http://{}", server.address()), ..self.machine };
        Self { server, machine, ..self }
    }

    /// Another server on the same MariaDB and Redis, a process of its own with the machine's clock; `settings` as
    /// [`ServerProcess::start`] takes them.
    pub fn server_process(&self, settings: &[(&str, String)]) -> ServerProcess {
        let stores = [
            ("DATABASE__URL", self.database.expose().to_owned()),
            ("CODE_STORE__URL", self.codes.url.expose().to_owned()),
            ("CODE_STORE__PREFIX", self.codes.prefix.clone()),
            ("CODE_STORE__TIMEOUT_MS", self.codes.timeout_ms.to_string()),
            ("SECRET_KEY_FILE", secret_key_in(self.folder.path()).display().to_string()),
        ];
        ServerProcess::start(&[&stores, settings].concat())
    }

    /// `import orders FILE --dry-run` as a process of its own on the same database, with `memory` MiB at most.
    pub fn dry_run(&self, file: &[u8], memory: u32) -> std::process::Output {
        let path = self.folder.path().join("orders");
        std::fs::write(&path, file).unwrap();
        let settings = [("DATABASE__URL", self.database.expose().to_owned())];
        command(&settings, memory, &["import", "orders", path.to_str().unwrap(), "--dry-run"])
    }

    /// Another server, on a database beside this one's that the first of them makes; all of them migrate it.
    pub async fn another_server_on_an_empty_database(&self) -> Running {
        let name = format!("{}_again", self.codes.prefix.trim_end_matches(':'));
        let server = format!("mysql://root@127.0.0.1:{}", shared_mariadb());
        let mut connection = AnyConnection::connect(&format!("{server}/mysql")).await.unwrap();
        let create = AssertSqlSafe(format!("CREATE DATABASE IF NOT EXISTS {name}"));
        sqlx::query(create).execute(&mut connection).await.unwrap();
        let mut config = Config::demo_in(self.folder.path());
        config.demo = false;
        config.database.url = DatabaseUrl::new(format!("{server}/{name}"));
        config.secret_key_file = Some(secret_key_in(self.folder.path()));
        config.code_store = self.codes.clone();
        start_with(config, self.clock.clone(), Arc::new(ScriptedRandom::default())).await.unwrap()
    }

    /// The visitor of [`Order::paid`], signed in after a first order has made their account.
    pub async fn visitor_of_a_first_order(&self) -> Caller {
        self.put_order("FIRST", &Order::paid().with("status", "cancelled")).await;
        self.visitor().await
    }

    /// A number out of the database.
    pub async fn count(&self, sql: &'static str) -> i64 {
        sqlx::query(sql).fetch_one(&self.database().await).await.unwrap().get(0)
    }

    /// The booking system, with its API key.
    pub fn machine(&self) -> &Caller {
        &self.machine
    }

    /// Somebody who has not signed in.
    pub fn nobody(&self) -> Caller {
        Caller { credential: None, ..self.machine.clone() }
    }

    /// Somebody with this bearer token.
    pub fn bearer(&self, token: &str) -> Caller {
        let credential = Some(("authorization".to_owned(), format!("Bearer {token}")));
        Caller { credential, ..self.machine.clone() }
    }

    /// The same people, asking at another address.
    pub fn at(&self, base: String) -> Caller {
        Caller { client: self.client.clone(), base, credential: None }
    }

    /// Makes a guide.
    pub async fn put_guide(&self, mobile: &str, name: &str) {
        self.machine.post("/open-api/guides", &json!({"mobile": mobile, "name": name})).await.ok();
    }

    /// Makes a task of today with these guides.
    pub async fn put_task(&self, task_no: &str, guides: &[&str]) {
        let body = json!({
            "title": "晨光古城徒步", "venue": "东门广场", "startsAt": START, "endsAt": START + 7_200_000, "guideMobiles": guides,
        });
        self.machine.put(&format!("/open-api/tasks/{task_no}"), &body).await.ok();
    }

    /// Puts an order.
    pub async fn put_order(&self, order_no: &str, order: &Order) {
        self.machine.put(&format!("/open-api/orders/{order_no}"), &order.body).await.ok();
    }

    /// A one-time sign-in token for the account of a number.
    pub async fn link_token(&self, mobile: &str) -> String {
        let app = self.server.app();
        let mobile = Mobile::parse(mobile).unwrap();
        let account = store::account_by_mobile(&app.db, TenantId(1), &mobile).await.unwrap().unwrap();
        link::make(app, &account).await.unwrap().expose().to_owned()
    }

    /// The account of a number, signed in.
    pub async fn sign_in(&self, mobile: &str) -> Caller {
        self.bearer(&self.session_token(mobile).await)
    }

    /// The token of a new session for the account of a number.
    pub async fn session_token(&self, mobile: &str) -> String {
        let token = self.link_token(mobile).await;
        let signed_in = self.nobody().post("/api/auth/sign-in-link", &json!({"token": token})).await.ok();
        signed_in["token"].as_str().unwrap().to_owned()
    }

    /// Where the server listens: `http://ADDRESS:PORT`.
    pub fn base(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The guide of task T1, signed in.
    pub async fn guide(&self) -> Caller {
        self.sign_in("13900000001").await
    }

    /// The visitor of [`Order::paid`], signed in.
    pub async fn visitor(&self) -> Caller {
        self.sign_in("13800000001").await
    }

    /// An admin, signed in by password.
    pub async fn admin(&self) -> Caller {
        let made = create::admin(self.server.app(), TenantId(1), "boss", None, None).await.unwrap().unwrap();
        let body = json!({"username": "boss", "password": made.expose()});
        let signed_in = self.nobody().post("/api/auth/login", &body).await.ok();
        self.bearer(signed_in["token"].as_str().unwrap())
    }

    /// Puts [`Order::paid`] under a number, and gives the visitor's code for it.
    pub async fn paid_order_with_code(&self, order_no: &str) -> String {
        self.put_order(order_no, &Order::paid()).await;
        let answer = self.visitor().await.verify_code(order_no).await.ok();
        answer["verifyCode"].as_str().unwrap().to_owned()
    }

    /// Time passes: for the server, and for what stands in its Redis.
    pub async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        if self.stores != Stores::SqliteMemory {
            let prefix = [&self.codes.prefix, "*"].concat();
            // Helpers stand in braces, so that their prefix begins one character later.
            for pattern in [prefix.clone(), format!("{{{prefix}")] {
                let mut command = redis::cmd("EVAL");
                command.arg(AGE).arg(0).arg(pattern).arg(u64::try_from(by.as_millis()).unwrap());
                for mut node in self.redis_nodes().await {
                    let () = command.query_async(&mut node).await.unwrap();
                }
            }
        }
    }

    /// The Redis, beside the server.
    pub async fn redis(&self) -> redis::aio::MultiplexedConnection {
        let mut nodes = self.redis_nodes().await;
        assert_eq!(nodes.len(), 1, "a Cluster has several");
        nodes.remove(0)
    }

    /// The nodes of the Redis; one where it is no Cluster.
    pub async fn redis_nodes(&self) -> Vec<redis::aio::MultiplexedConnection> {
        let urls = match self.stores {
            Stores::SqliteCluster => shared_cluster().iter().map(|port| format!("redis://127.0.0.1:{port}")).collect(),
            _ => vec![self.codes.url.expose().to_owned()],
        };
        let connect =
            async |url: String| redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap();
        futures::future::join_all(urls.into_iter().map(connect)).await
    }

    /// The prefix of this venue's keys.
    pub fn prefix(&self) -> &str {
        &self.codes.prefix
    }

    /// The database, beside the server: to look, and to stand in its way.
    pub async fn database(&self) -> AnyPool {
        AnyPool::connect(self.database.expose()).await.unwrap()
    }

    /// Stands in the way of whoever wants to write this order, until rolled back.
    pub async fn block(&self, order_no: &str) -> Transaction<'static, Any> {
        let database = self.database().await;
        if self.stores != Stores::MariadbRedis {
            return database.begin_with("BEGIN IMMEDIATE").await.unwrap();
        }
        let mut tx = database.begin().await.unwrap();
        let row = sqlx::query("SELECT id FROM booking_order WHERE order_no = ? FOR UPDATE").bind(order_no);
        row.fetch_one(&mut *tx).await.unwrap();
        tx
    }

    /// The SQLite database's file.
    pub fn database_file(&self) -> std::path::PathBuf {
        self.folder.path().join("guidepost.db")
    }

    /// An order's status in the database.
    pub async fn status(&self, order_no: &str) -> String {
        let row = sqlx::query("SELECT status FROM booking_order WHERE order_no = ?").bind(order_no);
        row.fetch_one(&self.database().await).await.unwrap().get("status")
    }

    /// The audit's results for an order, in order.
    pub async fn results(&self, order_no: &str) -> Vec<i64> {
        let rows = sqlx::query(
            "SELECT r.result FROM redemption r JOIN booking_order o ON o.id = r.order_id WHERE o.order_no = ? ORDER BY r.id",
        );
        let rows = rows.bind(order_no).fetch_all(&self.database().await).await.unwrap();
        rows.iter().map(|row| row.get("result")).collect()
    }
}
