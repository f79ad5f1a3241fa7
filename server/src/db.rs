//! The database: one writer, several readers, migrations, and what its errors mean to a caller.

use crate::config::DatabaseConfig;
use anyhow::Context;
use sqlx::any::{AnyConnectOptions, AnyPoolOptions};
use sqlx::{Any, AnyPool, Transaction};
use std::time::Duration;

/// A transaction that writes.
pub(crate) type Tx = Transaction<'static, Any>;

/// No transaction may wait longer than this for its turn, so that answers come in time.
const ACQUIRE_LIMIT: Duration = Duration::from_secs(4);

/// Handles to the database.
#[derive(Debug, Clone)]
pub struct Db {
    // SQLite has one writer; queueing for it here is fair and quick, queueing in SQLite is neither.
    write: AnyPool,
    read: AnyPool,
}

/// Why a statement or a transaction failed, as far as a caller needs to know.
#[derive(Debug, thiserror::Error)]
pub enum DbError {
    /// A unique key stood against it.
    #[error("a unique key stands against it")]
    Duplicate,
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
            sqlx::Error::Database(inner) if inner.is_foreign_key_violation() || inner.is_check_violation() => {
                Self::Bug(error)
            }
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

impl Db {
    /// Opens the database, making the file and its folder where they are missing.
    ///
    /// # Errors
    /// Where the file cannot be made or opened; the text names it.
    pub async fn open(config: &DatabaseConfig) -> anyhow::Result<Self> {
        sqlx::any::install_default_drivers();
        let url = config.url.expose();
        let file = url.trim_start_matches("sqlite:").trim_start_matches("//").split('?').next().unwrap_or_default();
        if let Some(folder) = std::path::Path::new(file).parent() {
            std::fs::create_dir_all(folder)
                .with_context(|| format!("the database's folder {} cannot be made", folder.display()))?;
        }
        let separator = if url.contains('?') { '&' } else { '?' };
        let options: AnyConnectOptions =
            format!("{url}{separator}mode=rwc").parse().context("setting `database.url` is no database address")?;
        let pool = |connections: u32| {
            AnyPoolOptions::new()
                .max_connections(connections)
                .acquire_timeout(ACQUIRE_LIMIT)
                .after_connect(|connection, _| {
                    Box::pin(async move {
                        // A commit is on the disk before it is answered; readers and the writer do not wait for each other.
                        for pragma in [
                            "PRAGMA journal_mode = WAL",
                            "PRAGMA synchronous = FULL",
                            "PRAGMA busy_timeout = 3000",
                            "PRAGMA foreign_keys = ON",
                        ] {
                            sqlx::query(pragma).execute(&mut *connection).await?;
                        }
                        Ok(())
                    })
                })
                .connect_with(options.clone())
        };
        let context = || format!("the database {file} cannot be opened");
        let write = pool(1).await.with_context(context)?;
        let read = pool(4).await.with_context(context)?;
        Ok(Self { write, read })
    }

    /// Applies pending migrations.
    ///
    /// # Errors
    /// Where one fails, or the database is newer than this program.
    pub async fn migrate(&self) -> anyhow::Result<()> {
        sqlx::migrate!("./migrations/sqlite").run(&self.write).await.context("the database's migration failed")
    }

    /// Where statements that only read go.
    pub(crate) fn read(&self) -> &AnyPool {
        &self.read
    }

    /// Begins a transaction that writes. It takes the write lock at once: asking for it later, after a read, would
    /// fail at once where somebody else has written in between.
    pub(crate) async fn begin(&self) -> Result<Tx, DbError> {
        Ok(self.write.begin_with("BEGIN IMMEDIATE").await?)
    }

    /// Whether the database answers.
    pub(crate) async fn ping(&self) -> Result<(), DbError> {
        sqlx::query("SELECT 1 FROM tenant LIMIT 1").execute(&self.read).await?;
        Ok(())
    }

    /// Closes all connections once they are idle.
    pub(crate) async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }
}
