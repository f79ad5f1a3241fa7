//! Database and code store, as `doctor` sees them.

use super::super::backup::folder_of;
use super::{Findings, Level, existing, other_clock, other_user, private};
use crate::accounts;
use crate::clock::Clock;
use crate::codes::{CodeStore, CodesAway, EVICTS, RedisAddress, RedisCodes};
use crate::config::Config;
use crate::db::{self, Schema};
use crate::lock_of;
use crate::secret_key::Keys;
use crate::sms;
use sqlx::mysql::MySqlConnectOptions;
use sqlx::{AnyConnection, Connection};
use std::collections::BTreeMap;
use std::fs::{OpenOptions, TryLockError};
use std::path::Path;
use std::time::Duration;
use wire::TenantId;

/// A database that needs longer to answer is away.
const PATIENCE: Duration = Duration::from_secs(5);

/// The oldest that are known to work.
const OLDEST_MARIADB: (u32, u32) = (10, 6);
const OLDEST_MYSQL: (u32, u32) = (8, 0);
const OLDEST_REDIS: (u32, u32) = (6, 2);

const DATABASE: &str = "database";
const CODES: &str = "code store";

/// The database: there, of a fit version, migrated, writable, whole, and served by nobody else; `serving` says whether a
/// guidepost serves at our port. Gives back the tenants that are in it when it is served, where that can be known.
pub(super) async fn database(
    found: &mut Findings,
    config: &Config,
    clock: &dyn Clock,
    serving: bool,
) -> Option<Vec<TenantId>> {
    match config.database.url.sqlite_file() {
        Some(file) => sqlite(found, config, &file, clock, serving).await,
        None => mysql(found, config, clock).await,
    }
}

/// The tenants of a database that the first migration has just made.
fn first_tenants(found: &mut Findings, config: &Config, text: &str) -> Option<Vec<TenantId>> {
    if config.database.migrate {
        found.ok(DATABASE, text);
        return Some(vec![TenantId(1)]);
    }
    found.fault(DATABASE, format!("{text}, and `database.migrate` is off"), "guidepost-server migrate");
    None
}

async fn sqlite(
    found: &mut Findings,
    config: &Config,
    file: &Path,
    clock: &dyn Clock,
    serving: bool,
) -> Option<Vec<TenantId>> {
    network(found, file);
    let name = file.display();
    let Ok(metadata) = file.metadata() else {
        let folder = existing(&folder_of(file));
        if !folder.is_dir() {
            found.fault(
                DATABASE,
                format!("{name} cannot be made: {} is no folder", folder.display()),
                "name another file in `database.url`",
            );
        } else if rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK).is_ok() {
            return first_tenants(found, config, &format!("{name} does not exist yet: `serve` and `migrate` make it"));
        } else {
            found.fault(
                DATABASE,
                format!("{name} does not exist, and this user may not write to {}", folder.display()),
                "give the folder to the server's user, or name another file in `database.url`",
            );
        }
        return None;
    };
    if !metadata.is_file() {
        let kind = if metadata.is_dir() { "a folder" } else { "no ordinary file" };
        found.fault(
            DATABASE,
            format!("{name} is {kind}"),
            "name a file in `database.url`, like /srv/guidepost/guidepost.db",
        );
        return None;
    }
    other_user(found, file);
    lock(found, config, file, serving);
    let mut connection = connect(found, config, file).await?;
    let looked = async {
        let version: String = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut connection).await?;
        let whole: String = sqlx::query_scalar("PRAGMA quick_check(1)").fetch_one(&mut connection).await?;
        let journal: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut connection).await?;
        Ok::<_, sqlx::Error>((version, whole, journal))
    };
    let damaged = "restore a backup: guidepost-server restore FILE";
    match looked.await {
        Ok((version, whole, journal)) if whole == "ok" => {
            // `serve` turns it on again after a restore.
            found.ok(DATABASE, format!("{name} is whole (SQLite {version}, journal {})", journal.to_uppercase()));
        }
        Ok((_, whole, _)) => {
            found.fault(DATABASE, format!("{name} is damaged: {whole}"), damaged);
            return None;
        }
        Err(error) => {
            // A file that is no database may be anybody's.
            let next = "name another file in `database.url`; if it was Guidepost's, restore a backup: \
                        guidepost-server restore FILE";
            found.fault(DATABASE, format!("{name} cannot be read: {error}"), next);
            return None;
        }
    }
    let migrated = migrations(found, &mut connection, config, clock).await;
    let _ = connection.close().await;
    if migrated.ours {
        private(found, file, "holds phone numbers", 0o077, Level::Warning, "chmod 600");
    }
    migrated.tenants
}

/// One process alone serves a file. Who holds the lock is not kept from anything here: it is let go at once.
fn lock(found: &mut Findings, config: &Config, file: &Path, serving: bool) {
    let Ok(path) = file.canonicalize().map(|file| lock_of(&file)) else { return };
    let opened = match OpenOptions::new().read(true).write(true).open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = folder_of(&path);
            if rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK).is_err() {
                found.fault(
                    DATABASE,
                    format!("this user may not write to {}", folder.display()),
                    "give the folder to the server's user: SQLite keeps files beside the database",
                );
            }
            return;
        }
        Err(error) => {
            let next = "give it to the server's user, or delete it while no server runs";
            return found.fault(DATABASE, format!("{} cannot be written: {error}", path.display()), next);
        }
        Ok(opened) => opened,
    };
    // With port 0 nobody can say whether it is the one that was meant.
    if serving || config.listen.port() == 0 {
        return;
    }
    if matches!(opened.try_lock_shared(), Err(TryLockError::WouldBlock)) {
        found.fault(
            DATABASE,
            format!("another guidepost-server serves {}, and not at {}", file.display(), config.listen),
            "end it, or name another file in `database.url`: one process alone may serve a file",
        );
    }
}

/// Opens the file as the server does, but never makes it.
async fn connect(found: &mut Findings, config: &Config, file: &Path) -> Option<AnyConnection> {
    sqlx::any::install_default_drivers();
    let url = config.database.url.expose();
    let url = format!("{url}{}mode=rw", if url.contains('?') { '&' } else { '?' });
    match AnyConnection::connect(&url).await {
        Ok(connection) => Some(connection),
        Err(error) => {
            found.fault(
                DATABASE,
                format!("{} cannot be opened: {error}", file.display()),
                "run this as the server's user; if it still fails, restore a backup: guidepost-server restore FILE",
            );
            None
        }
    }
}

/// SQLite's locks and its shared memory do not work over a network.
fn network(found: &mut Findings, file: &Path) {
    let Ok(kind) = rustix::fs::statfs(existing(&folder_of(file))).map(|found| found.f_type) else { return };
    if let Some(name) = network_name(kind) {
        found.fault(
            DATABASE,
            format!("the database lies on a network file system ({name}), where SQLite loses data"),
            "move it to a disk of this machine, or use MySQL or MariaDB",
        );
    }
}

/// By the magic numbers of statfs(2).
fn network_name(kind: impl TryInto<i64>) -> Option<&'static str> {
    // Of some file systems the number is negative where it is read as a signed one.
    match kind.try_into().unwrap_or(0) & 0xffff_ffff {
        0x6969 => Some("NFS"),
        0x517b => Some("SMB"),
        0xff53_4d42 => Some("CIFS"),
        0xfe53_4d42 => Some("SMB 2"),
        0x0102_1997 => Some("9P"),
        0x00c3_6400 => Some("Ceph"),
        0x5346_414f => Some("AFS"),
        0x0bd0_0bd0 => Some("Lustre"),
        0x0116_1970 => Some("GFS2"),
        _ => None,
    }
}

async fn mysql(found: &mut Findings, config: &Config, clock: &dyn Clock) -> Option<Vec<TenantId>> {
    sqlx::any::install_default_drivers();
    let url = config.database.url.expose();
    let Ok(options) = url.parse::<MySqlConnectOptions>() else {
        found.fault(
            DATABASE,
            "`database.url` is no database address",
            "write it as mysql://user:password@host/database; percent-encode what is special in the password",
        );
        return None;
    };
    let at = format!("{}:{}", options.get_host(), options.get_port());
    let mut connection = match tokio::time::timeout(PATIENCE, AnyConnection::connect(url)).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => {
            away(found, &at, &error);
            return None;
        }
        Err(_) => {
            found.fault(
                DATABASE,
                format!("the database server at {at} does not answer"),
                "check the address, the firewall, and whether the server runs",
            );
            return None;
        }
    };
    let asked = clock.now_ms();
    let looked = async {
        let version: String = sqlx::query_scalar("SELECT VERSION()").fetch_one(&mut connection).await?;
        let now: i64 = sqlx::query_scalar("SELECT CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)")
            .fetch_one(&mut connection)
            .await?;
        Ok::<_, sqlx::Error>((version, now))
    };
    match looked.await {
        Ok((version, now)) => {
            let (maker, number, oldest) = maker_of(&version);
            if number < oldest {
                found.fault(
                    DATABASE,
                    format!("the database server at {at} is {maker} {}.{}", number.0, number.1),
                    format!("upgrade it to {maker} {}.{} or newer", oldest.0, oldest.1),
                );
            } else {
                found.ok(DATABASE, format!("{maker} {}.{} at {at} answers", number.0, number.1));
            }
            other_clock(found, "the database server", now, asked, clock.now_ms());
        }
        Err(error) => {
            found.fault(DATABASE, format!("the database server at {at}: {error}"), "see the server's own log");
            return None;
        }
    }
    let migrated = migrations(found, &mut connection, config, clock).await;
    let _ = connection.close().await;
    migrated.tenants
}

/// Why it cannot be reached. What the database server says names the user, never the password.
fn away(found: &mut Findings, at: &str, error: &sqlx::Error) {
    let code = error.as_database_error().and_then(|error| error.code());
    match code.as_deref() {
        Some("28000") => found.fault(
            DATABASE,
            format!("the database server at {at} does not take this user or password"),
            "correct `database.url`, or GRANT the user its rights on the database",
        ),
        Some("42000") => found.fault(
            DATABASE,
            format!("the database server at {at} has no such database, or this user may not use it"),
            "make it: CREATE DATABASE NAME CHARACTER SET utf8mb4, and GRANT ALL ON NAME.* to the user",
        ),
        // What is wrong with the address itself could quote it.
        _ if matches!(error, sqlx::Error::Configuration(_)) => {
            found.fault(
                DATABASE,
                "`database.url` has a part that cannot be",
                "correct the part behind the question mark",
            );
        }
        _ => found.fault(
            DATABASE,
            format!("the database server at {at} cannot be reached: {error}"),
            "check the address, the firewall, and whether the server runs",
        ),
    }
}

fn maker_of(version: &str) -> (&'static str, (u32, u32), (u32, u32)) {
    // Old protocol: MariaDB puts a version that is not its own in front.
    let own = version.strip_prefix("5.5.5-").unwrap_or(version);
    let (maker, oldest) =
        if version.contains("MariaDB") { ("MariaDB", OLDEST_MARIADB) } else { ("MySQL", OLDEST_MYSQL) };
    (maker, number_of(own), oldest)
}

fn number_of(version: &str) -> (u32, u32) {
    let mut parts = version.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

/// What the tables of a database say.
#[derive(Default)]
struct Migrated {
    /// It is one of ours.
    ours: bool,
    /// The tenants that are in it when it is served.
    tenants: Option<Vec<TenantId>>,
}

/// Whose it is, how far it is migrated, and whether it can be written.
async fn migrations(
    found: &mut Findings,
    connection: &mut AnyConnection,
    config: &Config,
    clock: &dyn Clock,
) -> Migrated {
    let schema = db::schema(connection, config.database.url.is_mysql()).await;
    let whole = matches!(schema, Ok(Schema::Ours { pending: 0 }));
    let ours = matches!(schema, Ok(Schema::Ours { .. } | Schema::Newer { .. } | Schema::HalfMigrated { .. }));
    let unusable = Migrated { ours, tenants: None };
    match schema {
        Ok(Schema::Ours { pending: 0 }) => found.ok(DATABASE, "every migration has been applied"),
        Ok(Schema::Ours { pending }) if config.database.migrate => {
            found.ok(DATABASE, format!("{pending} migrations are pending: `serve` applies them"));
        }
        Ok(Schema::Ours { pending }) => found.fault(
            DATABASE,
            format!("{pending} migrations are pending, and `database.migrate` is off"),
            "guidepost-server migrate",
        ),
        Ok(Schema::Empty) => {
            let tenants = first_tenants(found, config, "it is empty: `serve` and `migrate` fill it");
            return Migrated { ours, tenants };
        }
        Ok(Schema::Newer { migration }) => {
            found.fault(
                DATABASE,
                format!("a newer guidepost-server has migrated it (migration {migration})"),
                "use that program, or restore a backup from before",
            );
            return unusable;
        }
        Ok(Schema::HalfMigrated { migration }) => {
            found.fault(
                DATABASE,
                format!("migration {migration} failed half way"),
                "restore the backup from before it, and start the new program again",
            );
            return unusable;
        }
        Ok(Schema::Foreign) => {
            found.fault(DATABASE, "it is another program's", "name another one in `database.url`");
            return unusable;
        }
        Err(error) => {
            found.fault(DATABASE, format!("its tables cannot be read: {error}"), "GRANT the user its rights");
            return unusable;
        }
    }
    // Changes no row, and is refused all the same where nothing can be written.
    match sqlx::query("UPDATE tenant SET name = name WHERE id = -1").execute(&mut *connection).await {
        Ok(_) => found.ok(DATABASE, "it can be written"),
        Err(error) => found.fault(
            DATABASE,
            format!("it cannot be written: {error}"),
            "check the rights of the file and its folder or of the database's user, the disk, and whether the server is a \
             replica or read-only",
        ),
    }
    let tenants = accounts::store::tenants_by(&mut *connection).await.ok();
    if let (Some(tenants), true) = (&tenants, whole) {
        same_codes(found, connection, config, tenants, clock.now_ms()).await;
    }
    Migrated { ours, tenants }
}

/// Sends of this time (ms) show how the servers keep their codes.
const LATELY: i64 = 3_600_000;

/// Whether the servers that send SMS codes keep them where a server with these settings looks for them: of two with other
/// prefixes or secret keys, one does not know the codes of the other.
async fn same_codes(
    found: &mut Findings,
    connection: &mut AnyConnection,
    config: &Config,
    tenants: &[TenantId],
    now: i64,
) {
    let Some(keys) = Keys::existing(config) else { return };
    let Ok(spaces) = sms::store::code_spaces(connection, tenants, now - LATELY).await else { return };
    // A server that was started again with other settings is another process on the same machine.
    let machine = |server: &str| server.rsplit_once('/').map_or(server, |(machine, _)| machine).to_owned();
    let last: BTreeMap<String, String> = spaces.into_iter().map(|(server, space)| (machine(&server), space)).collect();
    let ours = keys.code_space(&config.code_store.prefix);
    let (same, other): (Vec<_>, Vec<_>) = last.into_iter().partition(|(_, space)| *space == ours);
    for (machine, _) in other {
        found.warning(
            CODES,
            format!(
                "the server on {machine} has sent SMS codes within the hour and keeps them under another \
                 `code_store.prefix` or secret key than these settings: what it sends is no code here"
            ),
            "make both the same on every server, and start again those that differ",
        );
    }
    if !same.is_empty() {
        let machines = same.into_iter().map(|(machine, _)| machine).collect::<Vec<_>>().join(", ");
        found
            .ok(CODES, format!("prefix and secret key are those of the servers that have sent SMS codes ({machines})"));
    }
}

/// The code store: there, of a fit version, one that forgets when it should and not before.
pub(super) async fn code_store(found: &mut Findings, config: &Config, clock: &dyn Clock) {
    let url = config.code_store.url.expose();
    if url == "memory:" {
        return found.ok(CODES, "in the server's own memory: one server alone");
    }
    let limit = Duration::from_millis(config.code_store.timeout_ms.into());
    let codes = RedisAddress::parse(url).map_err(|wrong| anyhow::anyhow!("setting `code_store.url` {wrong}"));
    let codes = codes.and_then(|address| {
        RedisCodes::new(&address, config.code_store.ca.as_deref(), limit, &config.code_store.prefix)
    });
    let codes = match codes {
        Ok(codes) => codes,
        Err(error) => return found.fault(CODES, format!("{error:#}"), "correct the setting"),
    };
    let asked = clock.now_ms();
    let nodes = match codes.look_over().await {
        Ok(nodes) => nodes,
        Err(away) => return redis_away(found, &away),
    };
    let answered = clock.now_ms();
    for node in &nodes.masters {
        let version = &node.version;
        if number_of(version) < OLDEST_REDIS {
            found.fault(CODES, format!("Redis is version {version}"), "upgrade it to 6.2 or newer, or use Valkey");
        } else {
            found.ok(CODES, format!("Redis {version} answers and does not evict"));
        }
        if node.most > 0 && node.used > node.most / 5 * 4 {
            found.warning(
                CODES,
                format!("Redis uses {} % of the memory it may use", node.used * 100 / node.most),
                "raise its maxmemory: a full one refuses every redemption",
            );
        }
    }
    other_clock(found, "Redis", nodes.time_ms, asked, answered);
    if let Some(why) = nodes.writes_to_disk {
        found.warning(
            CODES,
            format!("Redis writes to disk ({why}), and codes are not to last"),
            "set appendonly no and save \"\"",
        );
    }
    match codes.ping().await {
        Ok(()) => found.ok(CODES, "it can be written"),
        Err(_) if nodes.masters.iter().any(|node| node.is_replica) => found.fault(
            CODES,
            "this Redis is a replica: it cannot be written",
            "name its master, or use redis+sentinel:// so that the master is found",
        ),
        Err(away) => redis_away(found, &away),
    }
}

fn redis_away(found: &mut Findings, CodesAway(reason): &CodesAway) {
    let next = if reason.starts_with(EVICTS) {
        "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf"
    } else if ["NOAUTH", "WRONGPASS", "Authentication"].iter().any(|word| reason.contains(word)) {
        "correct user and password in `code_store.url`; percent-encode what is special in them"
    } else if reason.contains("NOPERM") {
        "give the user of `code_store.url` its rights: INFO, TIME, EVAL and every command on its keys"
    } else if reason.contains("OOM") {
        "raise its maxmemory: it is full"
    } else if reason.contains("certificate") {
        "name the CA that signed its certificate in `code_store.ca`, and the host that stands in the certificate in \
         `code_store.url`"
    } else {
        "check address and port in `code_store.url`, the firewall, and whether Redis runs (rediss:// where it wants TLS)"
    };
    found.fault(CODES, format!("nothing can be redeemed: {reason}"), next);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (version, maker, number) in [
            ("10.11.6-MariaDB-0+deb12u1", "MariaDB", (10, 11)),
            ("5.5.5-10.5.23-MariaDB", "MariaDB", (10, 5)),
            ("8.0.36", "MySQL", (8, 0)),
            ("5.7.44-log", "MySQL", (5, 7)),
        ] {
            let (made_by, found, _) = maker_of(version);
            assert_eq!((made_by, found), (maker, number), "{version}");
        }
        assert!(number_of("6.0.16") < OLDEST_REDIS && number_of("7.0.15") >= OLDEST_REDIS);
        assert_eq!(number_of(""), (0, 0));
    }

    #[test]
    fn network_file_systems_are_known_and_disks_are_none() {
        assert_eq!(network_name(0x6969_i64), Some("NFS"));
        // CIFS as a signed number of 32 bits.
        assert_eq!(network_name(i64::from(0xff53_4d42_u32.cast_signed())), Some("CIFS"));
        for disk in [0xef53_i64, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert_eq!(network_name(disk), None);
        }
    }
}
