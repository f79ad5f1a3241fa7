//! The code store on Redis (6.2 and newer, or Valkey): standalone, Sentinel and Cluster.
//!
//! Every step of more than one command is one script whose keys share a slot, and which may run twice: a cluster client
//! sends a command again after a lost connection. Every use has one time limit over all that it does, connecting included;
//! connecting itself has its own and goes on when those who wait for it have given up, or under load it would never end.

mod sms;

use super::{
    AttemptId, CodeKey, CodeStore, CodesAway, CodesResult, Life, LiveCode, LockRule, OrderCodes, Place, Rotated,
    Verdict, WindowKey,
};
use crate::ca;
use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use redis::aio::MultiplexedConnection;
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::cluster_routing::{MultipleNodeRoutingInfo, RoutingInfo, SingleNodeRoutingInfo};
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, FromRedisValue, IntoConnectionInfo, RedisError,
    TlsCertificates, TlsMode,
};
use std::collections::HashMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wire::VerifyCode;

/// Sets a code with its life, unless one is alive. What ran out keeps what is left of its grace.
const ISSUE: &str = "
local code = redis.call('GET', KEYS[1])
if code then
  local left = redis.call('PTTL', KEYS[1])
  if left < 0 then
    left = tonumber(ARGV[2])
    redis.call('PEXPIRE', KEYS[1], left)
  end
  return {code, left}
end
local grace = tonumber(ARGV[3])
if grace > 0 then
  local old = redis.call('GET', KEYS[2])
  local left = old and redis.call('PTTL', KEYS[2]) or 0
  if left > 0 then redis.call('SET', KEYS[3], old, 'PX', left) end
  redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2] + grace)
end
redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])
return {ARGV[1], tonumber(ARGV[2])}";

/// Code, graced codes, count of wrong ones and how long it lasts.
const LOOK: &str = "
return {redis.call('GET', KEYS[1]), redis.call('GET', KEYS[2]), redis.call('GET', KEYS[3]),
  redis.call('SCARD', KEYS[4]), redis.call('PTTL', KEYS[4])}";

/// Kills code and grace and sets another, at most once in a while.
const ROTATE: &str = "
local last = redis.call('GET', KEYS[5])
if last == ARGV[5] then
  return {1, redis.call('GET', KEYS[1]) or ARGV[1], redis.call('PTTL', KEYS[1])}
end
if last then return {0, '', redis.call('PTTL', KEYS[5])} end
redis.call('SET', KEYS[5], ARGV[5], 'PX', ARGV[4])
redis.call('DEL', KEYS[2], KEYS[3])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
if tonumber(ARGV[3]) > 0 then redis.call('SET', KEYS[2], ARGV[1], 'PX', ARGV[2] + ARGV[3]) end
return {1, ARGV[1], tonumber(ARGV[2])}";

/// Counts a wrong code or lets a right one pass, unless too many have been answered.
const SETTLE: &str = "
if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 1 then return {0, 0} end
if redis.call('SCARD', KEYS[1]) >= tonumber(ARGV[3]) then return {1, redis.call('PTTL', KEYS[1])} end
if ARGV[2] == '0' then
  redis.call('SADD', KEYS[1], ARGV[1])
  redis.call('PEXPIRE', KEYS[1], ARGV[4])
end
return {0, 0}";

/// Forgets wrong codes, and the code with its helpers if it still is the one that was used.
const RETIRE: &str = "
redis.call('DEL', KEYS[4])
local code = redis.call('GET', KEYS[1])
if not code or code == ARGV[1] then redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[5]) end
return 1";

/// Deletes a code and its grace if it still is this one.
const DELETE_IF: &str = "
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1], KEYS[2], KEYS[3]) end
return 1";

/// Takes a place in a sliding window, if one is free. The place is written first: a Redis that is full refuses that.
const TAKE: &str = "
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local span = tonumber(ARGV[3])
local alive = '(' .. string.format('%d', now - span)
local at = redis.call('ZSCORE', KEYS[1], ARGV[1])
if at and tonumber(at) > now - span then return {1, 0} end
if redis.call('ZCOUNT', KEYS[1], alive, '+inf') >= tonumber(ARGV[2]) then
  local first = redis.call('ZRANGEBYSCORE', KEYS[1], alive, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
  return {0, (tonumber(first[2]) or now) + span - now}
end
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('PEXPIRE', KEYS[1], span)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - span)
return {1, 0}";

/// Counts into a sliding window; says whether this one reached the limit and set the hold, and says so again if it is run
/// twice.
const COUNT: &str = "
local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
if redis.call('ZADD', KEYS[1], 'NX', now, ARGV[1]) == 0 then
  return redis.call('GET', KEYS[2]) == ARGV[1] and 1 or 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[3])
if redis.call('ZCARD', KEYS[1]) < tonumber(ARGV[2]) then return 0 end
return redis.call('SET', KEYS[2], ARGV[1], 'NX', 'PX', ARGV[4]) and 1 or 0";

/// Keeps the next place of a row. The key holds when the place after the last one kept is, in microseconds.
const PACE: &str = "
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local wait = math.max(tonumber(redis.call('GET', KEYS[1]) or 0) - now, 0)
if wait > tonumber(ARGV[2]) then return -1 end
local taken = wait + ARGV[1]
redis.call('SET', KEYS[1], string.format('%.0f', now + taken), 'PX', math.ceil(taken / 1000))
return wait";

/// A Redis address; it may hold a password, so `Debug` shows none of it.
#[derive(Clone)]
pub struct RedisAddress {
    way: Way,
    nodes: Vec<(String, u16)>,
    tls: bool,
    username: Option<String>,
    password: Option<String>,
    database: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Way {
    Standalone,
    Cluster,
    Sentinel { master: String },
}

impl Debug for RedisAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RedisAddress({:?}, {} nodes)", self.way, self.nodes.len())
    }
}

impl RedisAddress {
    /// Reads `redis://`, `redis+sentinel://host:port,…/master[/database]` or `redis+cluster://host:port,…`, each with
    /// `rediss` for TLS, and with `user:password@` in front of the hosts.
    ///
    /// # Errors
    /// What is wrong with it, in words that hold nothing of it.
    pub fn parse(url: &str) -> Result<Self, &'static str> {
        let (scheme, rest) = url.split_once("://").ok_or("has no scheme")?;
        let (tls, way) = match scheme {
            "redis" => (false, "standalone"),
            "rediss" => (true, "standalone"),
            "redis+sentinel" => (false, "sentinel"),
            "rediss+sentinel" => (true, "sentinel"),
            "redis+cluster" => (false, "cluster"),
            "rediss+cluster" => (true, "cluster"),
            _ => return Err("has a scheme that is not memory:, redis, rediss, redis+sentinel or redis+cluster"),
        };
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = authority.rsplit_once('@').map_or((None, authority), |(user, hosts)| (Some(user), hosts));
        let decode = |text: &str| Some(percent_decoded(text)).filter(|text| !text.is_empty());
        let (username, password) = match user.map(|user| user.split_once(':').unwrap_or((user, ""))) {
            Some((username, password)) => (decode(username), decode(password)),
            None => (None, None),
        };
        let port = if way == "sentinel" { 26379 } else { 6379 };
        let nodes: Vec<_> =
            hosts.split(',').map(|host| node(host, port)).collect::<Option<_>>().ok_or("has a host that is none")?;
        let mut path = path.split('/').filter(|part| !part.is_empty());
        let way = match way {
            "sentinel" => Way::Sentinel {
                master: path.next().ok_or("names no master: redis+sentinel://host:port/master")?.to_owned(),
            },
            "cluster" => Way::Cluster,
            _ if nodes.len() > 1 => return Err("names several hosts: that is redis+cluster or redis+sentinel"),
            _ => Way::Standalone,
        };
        let database = path.next().map_or(Ok(0), str::parse).map_err(|_| "has a database that is no number")?;
        if path.next().is_some() || (way == Way::Cluster && database != 0) {
            return Err("has a path that is too long");
        }
        Ok(Self { way, nodes, tls, username, password, database })
    }

    /// Whether it asks for TLS.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    fn tls_mode(&self) -> Option<TlsMode> {
        self.tls.then_some(TlsMode::Secure)
    }

    fn addresses(&self) -> impl Iterator<Item = ConnectionAddr> {
        self.nodes.iter().map(|(host, port)| {
            if self.tls {
                ConnectionAddr::TcpTls { host: host.clone(), port: *port, insecure: false, tls_params: None }
            } else {
                ConnectionAddr::Tcp(host.clone(), *port)
            }
        })
    }
}

fn node(text: &str, port: u16) -> Option<(String, u16)> {
    let (host, port) = match text.rsplit_once(':') {
        // An IPv6 address without a port ends in a bracket.
        Some((host, number)) if !number.ends_with(']') => (host, number.parse().ok()?),
        _ => (text, port),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

fn percent_decoded(text: &str) -> String {
    // A plus sign stands for itself in this part of an address.
    form_urlencoded::parse(text.replace('+', "%2B").as_bytes()).map(|(key, _)| key.into_owned()).collect()
}

/// Connecting may take so many times the limit of a use: a Sentinel is asked before the master.
const CONNECT_TIMES: u32 = 3;

#[derive(Clone)]
enum Connection {
    Node(MultiplexedConnection),
    Cluster(ClusterConnection),
}

enum Connector {
    Standalone(Client),
    Cluster(ClusterClient),
    Sentinel(tokio::sync::Mutex<SentinelClient>),
}

/// A connection in use or in the making.
#[derive(Clone)]
struct Numbered {
    number: u64,
    connection: Shared<BoxFuture<'static, CodesResult<Connection>>>,
}

/// The last connection. A new one is made after any error, so that a fail-over is followed.
#[derive(Default)]
struct Slot {
    made: u64,
    last: Option<Numbered>,
}

impl Slot {
    /// Forgets a connection that failed, unless somebody has made a new one already.
    fn forget(&mut self, number: u64) {
        self.last.take_if(|last| last.number == number);
    }
}

/// Codes and counts on Redis.
pub struct RedisCodes {
    connector: Arc<Connector>,
    slot: Arc<Mutex<Slot>>,
    limit: Duration,
    ping_key: String,
}

impl Debug for RedisCodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisCodes")
    }
}

impl From<RedisError> for CodesAway {
    fn from(error: RedisError) -> Self {
        // What the line says holds nothing of ours, and names a certificate that is not trusted.
        if error.is_io_error() {
            return Self(error.to_string());
        }
        // The kind and the server's code: a whole error may quote a command's arguments.
        Self(format!("{:?} {}", error.kind(), error.code().unwrap_or_default()))
    }
}

impl RedisCodes {
    /// A store that connects when it is first used. `ca` is the file of the CA that signed Redis's certificate, where it
    /// is none of the public ones; `limit` is what a use may take in all; `prefix` stands in front of the store's own key.
    ///
    /// # Errors
    /// Where the address or the CA cannot be used.
    pub fn new(address: &RedisAddress, ca: Option<&Path>, limit: Duration, prefix: &str) -> anyhow::Result<Self> {
        let trusted = ca.map(read_ca).transpose()?;
        let connector = match &address.way {
            Way::Standalone => {
                let node = address.addresses().next().ok_or_else(|| anyhow::anyhow!("no host"))?;
                let mut settings = redis::RedisConnectionInfo::default().set_db(address.database);
                if let Some(username) = &address.username {
                    settings = settings.set_username(username);
                }
                if let Some(password) = &address.password {
                    settings = settings.set_password(password);
                }
                let node = node.into_connection_info()?.set_redis_settings(settings);
                Connector::Standalone(match trusted {
                    Some(trusted) => Client::build_with_tls(node, trusted)?,
                    None => Client::open(node)?,
                })
            }
            Way::Cluster => {
                let mut builder = ClusterClientBuilder::new(address.addresses())
                    .connection_timeout(limit)
                    .response_timeout(limit)
                    .overall_response_timeout(Some(limit));
                if let Some(tls) = address.tls_mode() {
                    builder = builder.tls(tls);
                }
                if let Some(trusted) = trusted {
                    builder = builder.certs(trusted);
                }
                if let Some(username) = &address.username {
                    builder = builder.username(username);
                }
                if let Some(password) = &address.password {
                    builder = builder.password(password);
                }
                Connector::Cluster(builder.build()?)
            }
            Way::Sentinel { master } => {
                let kind = SentinelServerType::Master;
                let mut builder = SentinelClientBuilder::new(address.addresses(), master, kind)?
                    .set_client_to_redis_db(address.database);
                if let Some(tls) = address.tls_mode() {
                    builder = builder.set_client_to_redis_tls_mode(tls).set_client_to_sentinel_tls_mode(tls);
                }
                if let Some(trusted) = trusted {
                    builder = builder
                        .set_client_to_redis_certificates(trusted.clone())
                        .set_client_to_sentinel_certificates(trusted);
                }
                if let Some(username) = &address.username {
                    builder = builder.set_client_to_redis_username(username);
                }
                if let Some(password) = &address.password {
                    builder = builder.set_client_to_redis_password(password);
                }
                Connector::Sentinel(tokio::sync::Mutex::new(builder.build()?))
            }
        };
        let ping_key = format!("{prefix}team:booking:ping");
        Ok(Self { connector: Arc::new(connector), slot: Arc::default(), limit, ping_key })
    }

    /// The connection in use or in the making, or a new one.
    fn connection(&self) -> Numbered {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &slot.last {
            return last.clone();
        }
        slot.made += 1;
        let number = slot.made;
        let (connector, forgetful, limit) = (self.connector.clone(), self.slot.clone(), self.limit);
        let made = tokio::spawn(async move {
            let made = tokio::time::timeout(CONNECT_TIMES * limit, connector.connect(limit)).await;
            let made = made.unwrap_or_else(|_| Err(CodesAway("no connection in time".to_owned())));
            if made.is_err() {
                forgetful.lock().unwrap_or_else(PoisonError::into_inner).forget(number);
            }
            made
        });
        let connection = async { made.await.unwrap_or_else(|_| Err(CodesAway("connecting failed".to_owned()))) };
        let new = Numbered { number, connection: connection.boxed().shared() };
        slot.last = Some(new.clone());
        new
    }

    /// Runs a command within the limit.
    async fn run<T: FromRedisValue>(&self, command: &Cmd) -> CodesResult<T> {
        self.run_all(std::slice::from_ref(command)).await?.pop().ok_or_else(|| CodesAway("no answer".to_owned()))
    }

    /// Runs commands one beside the other, all within one limit.
    async fn run_all<T: FromRedisValue>(&self, commands: &[Cmd]) -> CodesResult<Vec<T>> {
        let Numbered { number, connection } = self.connection();
        let mut connected = false;
        let work = async {
            let connection = connection.await?;
            connected = true;
            let each = commands.iter().map(|command| {
                let mut connection = connection.clone();
                async move { connection.query(command).await }
            });
            futures::future::try_join_all(each).await.map_err(CodesAway::from)
        };
        let done = tokio::time::timeout(self.limit, work).await;
        let done = done.unwrap_or_else(|_| Err(CodesAway("no answer in time".to_owned())));
        if done.is_err() && connected {
            // Whatever it was, the next use begins anew: with another master, or after a reconnect.
            self.slot.lock().unwrap_or_else(PoisonError::into_inner).forget(number);
        }
        done
    }

    /// What the nodes say of themselves.
    pub(crate) async fn look_over(&self) -> CodesResult<Nodes> {
        let looked = tokio::time::timeout(CONNECT_TIMES * self.limit, async {
            let mut connection = self.connection().connection.await?;
            let masters = info_of_masters(&mut connection, "default").await?;
            let (seconds, micros): (i64, i64) = ask_one(&mut connection, redis::cmd("TIME")).await?;
            let writes_to_disk = writes_to_disk(&mut connection).await?;
            Ok(Nodes {
                masters: masters.iter().map(|info| NodeState::of(info)).collect(),
                time_ms: seconds * 1000 + micros / 1000,
                writes_to_disk,
            })
        });
        looked.await.unwrap_or_else(|_| Err(CodesAway("no answer in time".to_owned())))
    }

    async fn script<T: FromRedisValue>(&self, script: &str, keys: &[&str], arguments: &[&str]) -> CodesResult<T> {
        self.run(&eval(script, keys, arguments)).await
    }
}

impl Connector {
    async fn connect(&self, limit: Duration) -> CodesResult<Connection> {
        let config = AsyncConnectionConfig::new().set_connection_timeout(Some(limit)).set_response_timeout(Some(limit));
        let mut new = match self {
            Self::Standalone(client) => {
                Connection::Node(client.get_multiplexed_async_connection_with_config(&config).await?)
            }
            Self::Cluster(client) => Connection::Cluster(client.get_async_connection().await?),
            Self::Sentinel(client) => {
                Connection::Node(client.lock().await.get_async_connection_with_config(&config).await?)
            }
        };
        refuse_eviction(&mut new).await?;
        Ok(new)
    }
}

/// The certificates that are trusted instead of the public ones.
fn read_ca(file: &Path) -> anyhow::Result<TlsCertificates> {
    let pem = ca::read(file).map_err(|reason| anyhow::anyhow!("setting `code_store.ca`: {reason}"))?;
    Ok(TlsCertificates { client_tls: None, root_cert: Some(pem) })
}

impl Connection {
    async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> Result<T, RedisError> {
        match self {
            Self::Node(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(connection).await,
        }
    }
}

/// A script with its text: short ones cost little to send, and a server that has just become the master knows none.
fn eval(script: &str, keys: &[&str], arguments: &[&str]) -> Cmd {
    let mut command = redis::cmd("EVAL");
    command.arg(script).arg(keys.len()).arg(keys).arg(arguments);
    command
}

/// A Redis that evicts would lose counts at its own choice.
async fn refuse_eviction(connection: &mut Connection) -> CodesResult<()> {
    for info in info_of_masters(connection, "memory").await? {
        match line_of(&info, "maxmemory_policy:") {
            Some("noeviction") | None => {}
            Some(policy) => {
                return Err(CodesAway(format!("{EVICTS} (maxmemory-policy {policy}); set it to noeviction")));
            }
        }
    }
    Ok(())
}

/// What every node that holds keys says of itself.
async fn info_of_masters(connection: &mut Connection, section: &str) -> CodesResult<Vec<String>> {
    match connection {
        Connection::Node(_) => Ok(vec![info(connection, section).await?]),
        Connection::Cluster(cluster) => {
            let mut command = redis::cmd("INFO");
            command.arg(section);
            let route = RoutingInfo::MultiNode((MultipleNodeRoutingInfo::AllMasters, None));
            let value = cluster.route_command(command, route).await?;
            let each = HashMap::<String, String>::from_redis_value(value);
            Ok(each.map_err(|error| CodesAway(error.to_string()))?.into_values().collect())
        }
    }
}

pub(crate) const EVICTS: &str = "this Redis evicts";

async fn info(connection: &mut Connection, section: &str) -> CodesResult<String> {
    let mut command = redis::cmd("INFO");
    command.arg(section);
    ask_one(connection, command).await
}

/// Why this Redis writes to disk. Hosted ones may refuse to tell their settings; then `INFO` alone is believed.
async fn writes_to_disk(connection: &mut Connection) -> CodesResult<Option<&'static str>> {
    let info = info(connection, "persistence").await?;
    if line_of(&info, "aof_enabled:") == Some("1") {
        return Ok(Some("appendonly is on"));
    }
    let mut command = redis::cmd("CONFIG");
    command.arg("GET").arg("save");
    let settings: HashMap<String, String> = ask_one(connection, command).await.unwrap_or_default();
    Ok(settings.get("save").filter(|save| !save.is_empty()).map(|_| "save is set"))
}

/// What a node answers; of a cluster any one.
async fn ask_one<T: FromRedisValue>(connection: &mut Connection, command: Cmd) -> CodesResult<T> {
    match connection {
        Connection::Node(node) => Ok(command.query_async(node).await?),
        Connection::Cluster(cluster) => {
            let route = RoutingInfo::SingleNode(SingleNodeRoutingInfo::Random);
            let value = cluster.route_command(command, route).await?;
            T::from_redis_value(value).map_err(|error| CodesAway(error.to_string()))
        }
    }
}

/// What the nodes of a Redis say of themselves.
#[derive(Debug)]
pub(crate) struct Nodes {
    /// Those that hold keys.
    pub(crate) masters: Vec<NodeState>,
    /// The time of one of them, Unix ms.
    pub(crate) time_ms: i64,
    /// Why one of them writes to disk.
    pub(crate) writes_to_disk: Option<&'static str>,
}

/// What a node says of itself.
#[derive(Debug)]
pub(crate) struct NodeState {
    /// Its version; of Valkey the Redis that it stands for.
    pub(crate) version: String,
    /// Whether it is a replica.
    pub(crate) is_replica: bool,
    /// Bytes in use.
    pub(crate) used: u64,
    /// Bytes that it may use; 0 where there is no limit.
    pub(crate) most: u64,
}

impl NodeState {
    fn of(info: &str) -> Self {
        let bytes = |name| line_of(info, name).and_then(|bytes| bytes.parse().ok()).unwrap_or(0);
        Self {
            version: line_of(info, "redis_version:").unwrap_or_default().to_owned(),
            is_replica: line_of(info, "role:") == Some("slave"),
            used: bytes("used_memory:"),
            most: bytes("maxmemory:"),
        }
    }
}

fn line_of<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

fn code(text: &str) -> CodesResult<VerifyCode> {
    VerifyCode::from_exact(text).map_err(|_| CodesAway("a key holds something that is no verify code".to_owned()))
}

fn millis(duration: Duration) -> String {
    duration.as_millis().to_string()
}

/// How much longer an order is locked. One that is locked without any wrong code, by a limit of 0, stays so.
fn lock_left(left: i64, rule: LockRule) -> Duration {
    if left > 0 { from_millis(left) } else { rule.lock }
}

fn from_millis(left: i64) -> Duration {
    Duration::from_millis(u64::try_from(left).unwrap_or(0))
}

/// The keys of an order, in the order in which the scripts number them.
struct Keys([String; 5]);

impl Keys {
    fn of(key: &CodeKey) -> Self {
        let helper = |suffix| key.helper(suffix);
        Self([key.as_str().to_owned(), helper("grace"), helper("before"), helper("wrong"), helper("rotated")])
    }

    fn all(&self) -> [&str; 5] {
        self.0.each_ref().map(String::as_str)
    }
}

type Seen = (Option<String>, Option<String>, Option<String>, u32, i64);

fn order_codes(
    (current, grace_of_last, grace_of_before, wrong, left): Seen,
    grace: bool,
    rule: LockRule,
) -> CodesResult<OrderCodes> {
    let graced = [grace_of_last, grace_of_before]
        .into_iter()
        .flatten()
        .filter(|_| grace)
        .filter(|old| current.as_ref() != Some(old));
    Ok(OrderCodes {
        graced: graced.map(|old| code(&old)).collect::<CodesResult<_>>()?,
        current: current.map(|text| code(&text)).transpose()?,
        locked: (wrong >= rule.max).then(|| lock_left(left, rule)),
    })
}

#[async_trait]
impl CodeStore for RedisCodes {
    async fn get_or_set(&self, key: &CodeKey, candidate: VerifyCode, life: Life) -> CodesResult<LiveCode> {
        let (text, left): (String, i64) = self
            .script(ISSUE, &Keys::of(key).all()[..3], &[candidate.expose(), &millis(life.ttl), &millis(life.grace)])
            .await?;
        Ok(LiveCode { code: code(&text)?, left: from_millis(left) })
    }

    async fn look(&self, key: &CodeKey, grace: bool, rule: LockRule) -> CodesResult<OrderCodes> {
        order_codes(self.script(LOOK, &Keys::of(key).all()[..4], &[]).await?, grace, rule)
    }

    async fn look_at_all(&self, keys: &[CodeKey], grace: bool, rule: LockRule) -> CodesResult<Vec<OrderCodes>> {
        let looks: Vec<Cmd> = keys.iter().map(|key| eval(LOOK, &Keys::of(key).all()[..4], &[])).collect();
        let seen = self.run_all(&looks).await?;
        seen.into_iter().map(|seen| order_codes(seen, grace, rule)).collect()
    }

    async fn rotate(
        &self,
        key: &CodeKey,
        new: VerifyCode,
        life: Life,
        pause: Duration,
        attempt: &AttemptId,
    ) -> CodesResult<Rotated> {
        let arguments = [new.expose(), &millis(life.ttl), &millis(life.grace), &millis(pause), &attempt.0];
        let (done, text, left): (i64, String, i64) = self.script(ROTATE, &Keys::of(key).all(), &arguments).await?;
        if done == 0 {
            return Ok(Rotated::TooSoon(from_millis(left)));
        }
        Ok(Rotated::Done(LiveCode { code: code(&text)?, left: from_millis(left) }))
    }

    async fn settle(&self, key: &CodeKey, attempt: &AttemptId, right: bool, rule: LockRule) -> CodesResult<Verdict> {
        let right = if right { "1" } else { "0" };
        let (locked, left): (i64, i64) = self
            .script(SETTLE, &[&key.helper("wrong")], &[&attempt.0, right, &rule.max.to_string(), &millis(rule.lock)])
            .await?;
        Ok(if locked == 0 { Verdict::Open } else { Verdict::Locked(lock_left(left, rule)) })
    }

    async fn retire(&self, key: &CodeKey, code: &VerifyCode) -> CodesResult<()> {
        self.script(RETIRE, &Keys::of(key).all(), &[code.expose()]).await
    }

    async fn delete_if(&self, key: &CodeKey, code: &VerifyCode) -> CodesResult<()> {
        self.script(DELETE_IF, &Keys::of(key).all()[..3], &[code.expose()]).await
    }

    async fn delete(&self, key: &CodeKey) -> CodesResult<()> {
        let mut command = redis::cmd("DEL");
        command.arg(&Keys::of(key).all()[..3]);
        self.run(&command).await
    }

    async fn take(&self, window: &WindowKey, attempt: &AttemptId, limit: u32, span: Duration) -> CodesResult<Place> {
        let arguments = [attempt.0.as_str(), &limit.to_string(), &millis(span)];
        let (taken, left): (i64, i64) = self.script(TAKE, &[window.as_str()], &arguments).await?;
        Ok(if taken == 1 { Place::Taken } else { Place::Full(from_millis(left)) })
    }

    async fn give_back(&self, window: &WindowKey, attempt: &AttemptId) -> CodesResult<()> {
        let mut command = redis::cmd("ZREM");
        command.arg(window.as_str()).arg(&attempt.0);
        self.run(&command).await
    }

    async fn count(
        &self,
        window: &WindowKey,
        attempt: &AttemptId,
        limit: u32,
        span: Duration,
        hold: Duration,
    ) -> CodesResult<bool> {
        let arguments = [attempt.0.as_str(), &limit.to_string(), &millis(span), &millis(hold)];
        let reached: i64 = self.script(COUNT, &[window.as_str(), &window.held()], &arguments).await?;
        Ok(reached == 1)
    }

    async fn held(&self, window: &WindowKey) -> CodesResult<Option<Duration>> {
        let mut command = redis::cmd("PTTL");
        command.arg(window.held());
        let left: i64 = self.run(&command).await?;
        Ok((left > 0).then(|| from_millis(left)))
    }

    async fn release(&self, window: &WindowKey) -> CodesResult<()> {
        let mut command = redis::cmd("DEL");
        command.arg(window.as_str()).arg(window.held());
        self.run(&command).await
    }

    async fn pace(&self, key: &str, every: Duration, most: Duration) -> CodesResult<Option<Duration>> {
        let arguments = [every.as_micros().to_string(), most.as_micros().to_string()];
        let wait: i64 = self.script(PACE, &[key], &[&arguments[0], &arguments[1]]).await?;
        Ok(u64::try_from(wait).ok().map(Duration::from_micros))
    }

    async fn unfit(&self) -> Option<String> {
        let checked = tokio::time::timeout(self.limit, async {
            let mut connection = self.connection().connection.await?;
            writes_to_disk(&mut connection).await
        });
        match checked.await {
            Ok(Ok(why)) => {
                if let Some(why) = why {
                    tracing::warn!(
                        "this Redis writes to disk ({why}); codes are not to last: turn appendonly and save off"
                    );
                }
                None
            }
            Ok(Err(CodesAway(reason))) if reason.starts_with(EVICTS) => Some(reason),
            Ok(Err(error)) => {
                tracing::error!(%error, "nothing can be redeemed until the code store is back");
                None
            }
            Err(_) => {
                tracing::error!("the code store does not answer; nothing can be redeemed until it does");
                None
            }
        }
    }

    async fn ping(&self) -> CodesResult<()> {
        // A write, so that a read-only or full one is not called ready.
        let mut command = redis::cmd("SET");
        command.arg(&self.ping_key).arg(1).arg("PX").arg(1000);
        self.run(&command).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (url, way, nodes, tls, user, password, database) in [
            ("redis://h", Way::Standalone, 1, false, None, None, 0),
            ("rediss://:p%40ss+@h:7/3", Way::Standalone, 1, true, None, Some("p@ss+"), 3),
            ("redis+cluster://u:p@a:1,b:2,[::1]:3", Way::Cluster, 3, false, Some("u"), Some("p"), 0),
            ("rediss+sentinel://a,b:2/main/1", Way::Sentinel { master: "main".to_owned() }, 2, true, None, None, 1),
        ] {
            let address = RedisAddress::parse(url).unwrap();
            assert_eq!((address.way, address.nodes.len(), address.tls, address.database), (way, nodes, tls, database));
            assert_eq!((address.username.as_deref(), address.password.as_deref()), (user, password));
        }
    }

    #[test]
    fn a_wrong_address_is_refused_without_quoting_it() {
        for url in [
            "redis",
            "http://h",
            "redis://",
            "redis://h:x",
            "redis://a,b",
            "redis+sentinel://h",
            "redis://h/x",
            "redis+cluster://h/1",
        ] {
            RedisAddress::parse(url).unwrap_err();
        }
        assert!(!format!("{:?}", RedisAddress::parse("redis://:hunter2@h").unwrap()).contains("hunter2"));
    }
}
