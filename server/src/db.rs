//! The database, SQLite or MySQL: connections, migrations, and what its errors mean to a caller.

use crate::config::DatabaseConfig;
use anyhow::Context;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::migrate::Migrator;
use sqlx::{Any, AnyConnection, AnyPool, AssertSqlSafe, Transaction};
use std::path::Path;
use std::time::Duration;
use wire::TenantId;

/// A transaction that writes.
pub(crate) type Tx = Transaction<'static, Any>;

/// No transaction may wait longer than this for its turn, so that answers come in time.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(4);

/// Connections to a MySQL server.
const CONNECTIONS: u32 = 24;

/// No transaction lasts longer, its wait for a connection included: the feed of the audit waits for none.
pub(crate) const TRANSACTION_LIMIT: Duration = Duration::from_secs(5);

/// No migration waits longer than this for another server's.
const MIGRATION_LIMIT: Duration = Duration::from_secs(120);

/// Handles to the database.
#[derive(Debug, Clone)]
pub struct Db {
    kind: Kind,
    // SQLite has one writer; queueing for it here is fair and quick, queueing in SQLite is neither.
    write: AnyPool,
    read: AnyPool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Sqlite,
    Mysql,
}

/// Why a statement or a transaction failed, as far as a caller needs to know.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// A unique key stood against it.
    #[error("a unique key stands against it")]
    Duplicate,
    /// Two transactions waited for each other and this one was undone; trying again is safe.
    #[error("two transactions stood in each other's way")]
    Deadlock,
    /// It took too long, and it is unknown whether it committed.
    #[error("the database did not answer in time")]
    TooSlow,
    /// The database cannot be reached, or it is unknown whether it committed.
    #[error("the database is away: {0}")]
    Away(sqlx::Error),
    /// A fault of ours: a statement or a column that does not fit.
    #[error("the database refuses a statement: {0}")]
    Bug(sqlx::Error),
}

impl From<sqlx::Error> for DbError {
    fn from(error: sqlx::Error) -> Self {
        match &error {
            sqlx::Error::Database(inner) if inner.is_unique_violation() => Self::Duplicate,
            // SQLSTATE 40001: serialisation failure.
            sqlx::Error::Database(inner) if inner.code().as_deref() == Some("40001") => Self::Deadlock,
            sqlx::Error::Database(inner) if inner.is_foreign_key_violation() || inner.is_check_violation() => {
                Self::Bug(error)
            }
            // SQLSTATE 22 and 42: a value that does not fit its column, a statement that is none.
            sqlx::Error::Database(inner) if inner.code().is_some_and(|code| is_our_fault(&code)) => Self::Bug(error),
            sqlx::Error::ColumnNotFound(_)
            | sqlx::Error::ColumnDecode { .. }
            | sqlx::Error::ColumnIndexOutOfBounds { .. }
            | sqlx::Error::Decode(_)
            | sqlx::Error::Encode(_)
            | sqlx::Error::RowNotFound
            | sqlx::Error::TypeNotFound { .. } => Self::Bug(error),
            _ => Self::Away(error),
        }
    }
}

fn is_our_fault(sqlstate: &str) -> bool {
    sqlstate.len() == 5 && (sqlstate.starts_with("22") || sqlstate.starts_with("42"))
}

impl Db {
    /// Opens the database; of SQLite the file and its folder are made where they are missing.
    ///
    /// # Errors
    /// Where it cannot be made or reached; the text names it, without any password.
    pub async fn open(config: &DatabaseConfig) -> anyhow::Result<Self> {
        sqlx::any::install_default_drivers();
        match config.url.sqlite_file() {
            Some(file) => Self::open_sqlite(config.url.expose(), &file).await,
            None => Self::open_mysql(config.url.expose()).await,
        }
    }

    async fn open_sqlite(url: &str, file: &Path) -> anyhow::Result<Self> {
        if let Some(folder) = file.parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("the database's folder {} cannot be made", folder.display()))?;
        }
        let separator = if url.contains('?') { '&' } else { '?' };
        let options: AnyConnectOptions =
            format!("{url}{separator}mode=rwc").parse().context("setting `database.url` is no database address")?;
        make_private(file).with_context(|| format!("the database {} cannot be made", file.display()))?;
        // A commit is on the disk before it is answered; readers and the writer do not wait for each other.
        let pragmas = &[
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "PRAGMA busy_timeout = 3000",
            "PRAGMA foreign_keys = ON",
        ];
        let context = || format!("the database {} cannot be opened", file.display());
        connect_once(&options).await.with_context(context)?;
        let write = pool(1, pragmas, options.clone()).await.with_context(context)?;
        let read = pool(4, pragmas, options).await.with_context(context)?;
        Ok(Self { kind: Kind::Sqlite, write, read })
    }

    async fn open_mysql(url: &str) -> anyhow::Result<Self> {
        let options: AnyConnectOptions =
            url.parse().map_err(|_| anyhow::anyhow!("setting `database.url` is no database address"))?;
        let settings = &[
            // A plain read after an update must see what others have committed by then.
            "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
            // A transaction whose server is gone or cut off ends as well (MariaDB alone has a limit for that).
            "SET SESSION innodb_lock_wait_timeout = 2 /*M!100300 , idle_write_transaction_timeout = 5 */",
            "SET SESSION sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
        ];
        connect_once(&options).await.context("the database server cannot be reached")?;
        let pool = pool(CONNECTIONS, settings, options).await.context("the database server cannot be reached")?;
        Ok(Self { kind: Kind::Mysql, write: pool.clone(), read: pool })
    }

    /// Applies pending migrations, one server at a time.
    ///
    /// # Errors
    /// Where one fails, or the database is newer than this program.
    pub async fn migrate(&self) -> anyhow::Result<()> {
        let done = tokio::time::timeout(MIGRATION_LIMIT, async {
            match self.kind {
                // Who serves a SQLite file holds a lock beside it.
                Kind::Sqlite => Ok(migrations(Kind::Sqlite).run(&self.write).await?),
                Kind::Mysql => self.migrate_mysql().await,
            }
        });
        let done: anyhow::Result<()> = done.await.context("another server's migration does not end")?;
        done.context("the database's migration failed")
    }

    /// Under a lock of the database server's, for several servers may start at once. sqlx's own lock asks MariaDB to wait
    /// for ever in a way that MariaDB takes for "not at all". Its name must not be longer than 64 characters.
    async fn migrate_mysql(&self) -> anyhow::Result<()> {
        let mut connection = self.write.acquire().await?;
        let seconds = i64::try_from(MIGRATION_LIMIT.as_secs()).unwrap_or(i64::MAX);
        let locked: Option<i64> =
            sqlx::query_scalar("SELECT GET_LOCK(CONCAT('guidepost-migrate:', MD5(DATABASE())), ?)")
                .bind(seconds)
                .fetch_one(&mut *connection)
                .await?;
        anyhow::ensure!(locked == Some(1), "another server's migration does not end");
        let mut migrator = migrations(Kind::Mysql);
        let migrated = migrator.set_locking(false).run(&mut *connection).await;
        sqlx::query("SELECT RELEASE_LOCK(CONCAT('guidepost-migrate:', MD5(DATABASE())))")
            .execute(&mut *connection)
            .await?;
        Ok(migrated?)
    }

    /// Whether it speaks MySQL, for the few statements that differ.
    pub(crate) fn is_mysql(&self) -> bool {
        self.kind == Kind::Mysql
    }

    /// Where statements that only read go.
    pub(crate) fn read(&self) -> &AnyPool {
        &self.read
    }

    /// Begins a transaction that writes. In SQLite it takes the write lock at once: asking for it later, after a read,
    /// would fail at once where somebody else has written in between.
    pub(crate) async fn begin(&self) -> Result<Tx, DbError> {
        let statement = match self.kind {
            Kind::Sqlite => "BEGIN IMMEDIATE",
            Kind::Mysql => "START TRANSACTION",
        };
        match self.write.begin_with(statement).await {
            Ok(tx) => Ok(tx),
            Err(error @ (sqlx::Error::Database(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed)) => {
                Err(error.into())
            }
            // SQLite undoes a transaction by itself where the disk is full or fails; sqlx then takes the connection to be
            // inside one for ever. It is closed, and the next one is good.
            Err(error) => {
                tracing::warn!(%error, "a connection to the database is replaced");
                self.write.acquire().await?.close().await?;
                Ok(self.write.begin_with(statement).await?)
            }
        }
    }

    /// Behind a `SELECT` of rows that the same transaction then changes: nobody else changes them in between. SQLite has one
    /// writer and needs no word for it.
    pub(crate) fn for_update(&self) -> &'static str {
        match self.kind {
            Kind::Sqlite => "",
            Kind::Mysql => " FOR UPDATE",
        }
    }

    /// Whether the database answers and lets a transaction begin.
    pub(crate) async fn ping(&self) -> Result<(), DbError> {
        sqlx::query("SELECT 1 FROM tenant LIMIT 1").execute(&self.read).await?;
        Ok(self.begin().await?.rollback().await?)
    }

    /// Closes all connections once they are idle.
    pub(crate) async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }
}

/// Runs `work`, one transaction from its beginning to its commit, within the limit. It runs once more where another
/// transaction stood in its way, by a dead lock or by writing first what this one found missing: that one was undone.
pub(crate) async fn transact<T, F>(work: impl Fn() -> F) -> Result<T, DbError>
where
    F: Future<Output = Result<T, DbError>>,
{
    let once = async || {
        let done = tokio::time::timeout(TRANSACTION_LIMIT, work()).await;
        done.unwrap_or_else(|_| Err(DbError::TooSlow))
    };
    match once().await {
        Err(DbError::Deadlock | DbError::Duplicate) => once().await,
        done => done,
    }
}

/// Rows that may go.
#[derive(Debug)]
pub(crate) struct Old<'a> {
    pub(crate) table: &'static str,
    /// Its unique column, a text.
    pub(crate) key: &'static str,
    /// When one may go; `values` stand for its question marks.
    pub(crate) condition: &'static str,
    pub(crate) values: &'a [i64],
}

/// Rows that are deleted at once.
const DELETED_AT_ONCE: i64 = 500;

/// Deletes some of a tenant's rows that may go, and says how many: in a short transaction, for SQLite has one writer. They
/// are looked for outside of it, and the condition stands in the deletion as well: what has changed meanwhile stays.
pub(crate) async fn delete_some(db: &Db, tenant: TenantId, old: &Old<'_>) -> Result<u64, DbError> {
    let Old { table, key, condition, values } = old;
    let select = format!("SELECT {key} FROM {table} WHERE tenant_id = ? AND ({condition}) ORDER BY {key} LIMIT ?");
    let mut query = sqlx::query_scalar::<_, String>(AssertSqlSafe(select)).bind(tenant.0);
    for value in *values {
        query = query.bind(*value);
    }
    let keys = query.bind(DELETED_AT_ONCE).fetch_all(db.read()).await?;
    if keys.is_empty() {
        return Ok(0);
    }
    let marks = vec!["?"; keys.len()].join(", ");
    let delete = format!("DELETE FROM {table} WHERE tenant_id = ? AND ({condition}) AND {key} IN ({marks})");
    transact(async || {
        let mut query = sqlx::query(AssertSqlSafe(delete.clone())).bind(tenant.0);
        for value in *values {
            query = query.bind(*value);
        }
        for key in &keys {
            query = query.bind(key.as_str());
        }
        let mut tx = db.begin().await?;
        let deleted = query.execute(&mut *tx).await?.rows_affected();
        tx.commit().await?;
        Ok(deleted)
    })
    .await
}

fn migrations(kind: Kind) -> Migrator {
    match kind {
        Kind::Sqlite => sqlx::migrate!("./migrations/sqlite"),
        Kind::Mysql => sqlx::migrate!("./migrations/mysql"),
    }
}

/// What a database is to this program, by its own record of migrations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Schema {
    /// There is nothing in it yet.
    Empty,
    /// One of ours, with so many migrations to come.
    Ours { pending: usize },
    /// One of ours, made by a newer program: it has this migration, which we do not know.
    Newer { migration: i64 },
    /// One of ours, left by a migration that failed half way.
    HalfMigrated { migration: i64 },
    /// Another program's.
    Foreign,
}

/// Reads what a database is; `mysql` says what its server speaks.
pub(crate) async fn schema(connection: &mut AnyConnection, mysql: bool) -> Result<Schema, sqlx::Error> {
    let (kind, tables) = if mysql {
        (
            Kind::Mysql,
            "SELECT CAST(table_name AS CHAR) AS name FROM information_schema.tables WHERE table_schema = DATABASE()",
        )
    } else {
        (Kind::Sqlite, "SELECT name FROM sqlite_master WHERE type = 'table'")
    };
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut *connection).await?;
    if !tables.iter().any(|name| name == "_sqlx_migrations") {
        return Ok(if tables.is_empty() { Schema::Empty } else { Schema::Foreign });
    }
    let applied: Vec<(i64, Vec<u8>, i64)> = sqlx::query_as(
        "SELECT version, checksum, CASE WHEN success THEN 1 ELSE 0 END FROM _sqlx_migrations ORDER BY version",
    )
    .fetch_all(&mut *connection)
    .await?;
    let known = migrations(kind);
    for (version, checksum, done) in &applied {
        match known.iter().find(|migration| migration.version == *version) {
            Some(ours) if *ours.checksum != **checksum => return Ok(Schema::Foreign),
            Some(_) if *done == 0 => return Ok(Schema::HalfMigrated { migration: *version }),
            Some(_) => {}
            // The first one is ours, or this would be another program's number.
            None if applied.first().is_some_and(|(first, ..)| known.version_exists(*first)) => {
                return Ok(Schema::Newer { migration: *version });
            }
            None => return Ok(Schema::Foreign),
        }
    }
    Ok(Schema::Ours { pending: known.iter().count() - applied.len() })
}

/// Makes the file, for its owner alone: it holds phone numbers. What SQLite makes beside it has the same rights.
fn make_private(file: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    match std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Connects once, so that the cause of a failure is told: a pool would try until its time is up and say only that.
async fn connect_once(options: &AnyConnectOptions) -> anyhow::Result<()> {
    use sqlx::Connection;
    let connect = async { AnyConnection::connect_with(options).await?.close().await };
    Ok(tokio::time::timeout(ACQUIRE_LIMIT, connect).await.context("no answer in time")??)
}

async fn pool(
    connections: u32,
    settings: &'static [&'static str],
    options: AnyConnectOptions,
) -> Result<AnyPool, sqlx::Error> {
    AnyPoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(ACQUIRE_LIMIT)
        .after_connect(move |connection, _| {
            Box::pin(async move {
                for setting in settings {
                    sqlx::query(*setting).execute(&mut *connection).await?;
                }
                Ok(())
            })
        })
        .connect_with(options)
        .await
}

/// The id that an insert of this transaction made. SQLite does not say it along with the insert.
pub(crate) async fn new_id(tx: &mut Tx, inserted: &sqlx::any::AnyQueryResult) -> Result<i64, DbError> {
    match inserted.last_insert_id() {
        Some(id) => Ok(id),
        None => Ok(sqlx::query_scalar("SELECT last_insert_rowid()").fetch_one(&mut **tx).await?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::DatabaseUrl;

    /// SQLite rolls back by itself where the disk is full; here its own limit on the file's size stands for the disk.
    #[tokio::test]
    async fn after_a_full_disk_the_database_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let url = DatabaseUrl::sqlite(&folder.path().join("a #?% name.db"));
        let db = Db::open(&DatabaseConfig { url, migrate: true }).await.unwrap();
        db.migrate().await.unwrap();
        let mut tx = db.begin().await.unwrap();
        sqlx::query("PRAGMA max_page_count = 1").execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        let insert = "INSERT INTO tenant (name, created_at) VALUES (?, 0)";
        let mut full = false;
        for _ in 0..100 {
            let Ok(mut tx) = db.begin().await else { break };
            full = sqlx::query(insert).bind("x".repeat(100_000)).execute(&mut *tx).await.is_err();
            if full {
                break;
            }
            tx.commit().await.unwrap();
        }
        assert!(full, "the file was never full");
        let mut tx = db.begin().await.expect("a new transaction after a full disk");
        sqlx::query(insert).bind("after").execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        db.ping().await.unwrap();
    }
}
