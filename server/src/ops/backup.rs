//! `backup` and `restore`: the SQLite file as one file, taken while the server serves, and put back in its place.

use crate::clock::Clock;
use crate::config::{Config, DatabaseUrl};
use crate::db::{self, Schema};
use crate::lock_beside_database;
use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use sqlx::{AnyConnection, Connection};
use std::fs::{File, Metadata};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// How the files are named that SQLite keeps beside a database.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// SQLite's primary result codes.
const BUSY: u32 = 5;
const FULL: u32 = 13;

/// What a database holds, so that an admin sees whether it is the right one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Its size in bytes.
    pub bytes: u64,
    /// How many orders are in it.
    pub orders: i64,
    /// When the last of its redemptions was, in the venue's zone.
    pub last_redemption: Option<String>,
}

/// What came of a restore.
#[derive(Debug, Clone)]
pub struct Restored {
    /// What the database holds now.
    pub contents: Contents,
    /// Where the database is that was there before, if there was one.
    pub kept: Option<PathBuf>,
}

/// Writes a whole and checked copy of the database to `file`, for its owner alone. The server may serve meanwhile: the copy
/// is of the moment at which this begins, and nobody who writes waits for it.
///
/// # Errors
/// In words for an admin, and with nothing left behind: where the database is MySQL's, where `file` exists (unless
/// `overwrite`), where there is no space, and where the copy is not whole.
pub async fn backup(config: &Config, file: &Path, overwrite: bool) -> anyhow::Result<Contents> {
    let database = sqlite_file(
        config,
        "a MySQL or MariaDB database is backed up by its own tool: mariadb-dump --single-transaction DATABASE > FILE \
         (mysqldump with MySQL)",
    )?;
    let size = match std::fs::metadata(&database) {
        Ok(found) => found.len() + std::fs::metadata(beside(&database, "-wal")).map_or(0, |wal| wal.len()),
        Err(error) => bail!("there is no database to back up: {}: {error}", database.display()),
    };
    let folder = folder_of(file);
    let target = folder
        .canonicalize()
        .with_context(|| format!("the backup's folder {}", folder.display()))?
        .join(file.file_name().with_context(|| format!("{} names no file", file.display()))?);
    let whole = database.canonicalize()?;
    ensure!(
        target != whole && !BESIDE.iter().any(|end| target == beside(&whole, end)),
        "{} is the database itself: name another file for the backup",
        file.display()
    );
    ensure!(!target.is_dir(), "{} is a folder: name a file in it", file.display());
    let exists = || format!("{} exists already: name another file, or add --overwrite", file.display());
    ensure!(overwrite || target.symlink_metadata().is_err(), exists());
    ensure_space(&folder, size, "free some space, or name another folder")?;

    // Beside the target, so that it can be renamed; for its owner alone; gone where anything fails.
    let copy = temporary(&folder, ".part")?;
    let path = copy.path().to_str().context("the backup's folder has a name that is not UTF-8")?;
    let mut connection = connect(&database, "mode=rw").await?;
    let copied = sqlx::query("VACUUM INTO ?").bind(path).execute(&mut connection).await;
    connection.close().await?;
    copied.map_err(|error| in_words(error, &folder, "the database cannot be copied"))?;
    copy.as_file().sync_all().context("the backup cannot be written to the disk")?;
    ensure_ours(copy.path(), &database).await?;
    let contents = contents_of(copy.path(), config).await?;
    if overwrite {
        copy.persist(&target).with_context(|| format!("{} cannot be replaced", file.display()))?;
    } else {
        copy.persist_noclobber(&target).map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => anyhow::anyhow!(exists()),
            _ => anyhow::Error::new(error.error).context(format!("{} cannot be made", file.display())),
        })?;
    }
    sync_folder(&folder)?;
    Ok(contents)
}

/// Puts a backup in the database's place and keeps what was there under a dated name. Nobody stays signed in: a backup
/// would bring sessions back that have been ended since.
///
/// # Errors
/// In words for an admin, and with the present database as it was: where a server serves it or another program has it
/// open, where `file` is no whole backup of ours or a newer program's, and where there is no space.
pub async fn restore(config: &Config, file: &Path, clock: &dyn Clock) -> anyhow::Result<Restored> {
    let database = sqlite_file(
        config,
        "a MySQL or MariaDB database is restored by its own tool, with every server ended: mariadb DATABASE < FILE \
         (mysql with MySQL)",
    )?;
    let backup = file.canonicalize().with_context(|| format!("there is no backup {}", file.display()))?;
    let size = backup.metadata()?.len();
    for end in ["-wal", "-journal"] {
        let rest = beside(&backup, end);
        ensure!(
            std::fs::metadata(&rest).map_or(0, |rest| rest.len()) == 0,
            "{} is no finished backup: changes that belong to it lie in {}; make backups with `guidepost-server backup`",
            file.display(),
            rest.display()
        );
    }
    // Held to the end, so that no server starts meanwhile.
    let lock = lock_beside_database(config)?.context("setting `database.url` names no file")?;
    let database = match database.canonicalize() {
        Ok(present) => present,
        Err(_) => folder_of(&database).canonicalize()?.join(database.file_name().unwrap_or_default()),
    };
    ensure!(database != backup, "{} is the database itself", file.display());
    let folder = folder_of(&database);
    ensure_space(&folder, size, "free some space first")?;

    // From here on a copy beside the database is worked on, whatever happens to the backup.
    let mut copy = temporary(&folder, ".restoring")?;
    let mut source = File::open(&backup).with_context(|| format!("{} cannot be read", file.display()))?;
    std::io::copy(&mut source, copy.as_file_mut()).with_context(|| format!("{} cannot be copied", file.display()))?;
    ensure_ours(copy.path(), file).await?;
    end_sessions(copy.path()).await?;
    let contents = contents_of(copy.path(), config).await?;
    // Whoever restores may be root, and the server another user.
    let owner = std::fs::metadata(&database).or_else(|_| std::fs::metadata(&folder))?;
    give(copy.as_file(), &owner)?;
    give(&lock, &owner)?;
    copy.as_file().sync_all().context("the database cannot be written to the disk")?;

    let kept = keep(&database, config, clock)?;
    match fold(&database).await {
        // The one file is everything.
        Ok(true) => remove_beside(kept.as_deref())?,
        Ok(false) => {}
        Err(error) => {
            remove_beside(kept.as_deref())?;
            kept.as_ref().map_or(Ok(()), std::fs::remove_file)?;
            return Err(error);
        }
    }
    // What is left of the old database would be taken for changes of the new one.
    remove_beside(Some(&database))?;
    copy.persist(&database).map_err(|error| error.error).with_context(|| match &kept {
        Some(kept) => format!("the database cannot be put in its place; what was there is {}", kept.display()),
        None => format!("{} cannot be made", database.display()),
    })?;
    sync_folder(&folder)?;
    Ok(Restored { contents, kept })
}

/// The database's file, or what to do with a MySQL server.
fn sqlite_file(config: &Config, otherwise: &str) -> anyhow::Result<PathBuf> {
    config.database.url.sqlite_file().with_context(|| otherwise.to_owned())
}

pub(super) fn folder_of(file: &Path) -> PathBuf {
    file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

pub(super) fn beside(file: &Path, end: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(end);
    PathBuf::from(path)
}

/// A new file in a folder, mode 0600, deleted unless it is kept.
fn temporary(folder: &Path, end: &str) -> anyhow::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".guidepost-")
        .suffix(end)
        .permissions(std::fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)
        .with_context(|| format!("nothing can be written to {}", folder.display()))
}

/// Free bytes for this user in the file system of a folder.
pub(super) fn free_space(folder: &Path) -> std::io::Result<u64> {
    let found = rustix::fs::statvfs(folder)?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

fn ensure_space(folder: &Path, needed: u64, next: &str) -> anyhow::Result<()> {
    // A file system that does not tell is tried.
    let free = free_space(folder).unwrap_or(u64::MAX);
    ensure!(
        free >= needed,
        "{} has {} free and {} are needed: {next}",
        folder.display(),
        megabytes(free),
        megabytes(needed)
    );
    Ok(())
}

/// A size for people.
pub fn megabytes(bytes: u64) -> String {
    const MB: u64 = 1 << 20;
    if bytes < 10 * MB { format!("{} kB", bytes.div_ceil(1024)) } else { format!("{} MB", bytes / MB) }
}

async fn connect(file: &Path, how: &str) -> anyhow::Result<AnyConnection> {
    sqlx::any::install_default_drivers();
    let url = format!("{}?{how}", DatabaseUrl::sqlite(file).expose());
    AnyConnection::connect(&url).await.with_context(|| format!("{} cannot be opened", file.display()))
}

/// SQLite's primary result code.
fn primary(error: &sqlx::Error) -> Option<u32> {
    let code = error.as_database_error()?.code()?;
    Some(code.parse::<u32>().ok()? & 0xff)
}

fn in_words(error: sqlx::Error, folder: &Path, what: &str) -> anyhow::Error {
    match primary(&error) {
        Some(FULL) => anyhow::anyhow!("{} is full: free some space, or name another folder", folder.display()),
        _ => anyhow::Error::new(error).context(what.to_owned()),
    }
}

/// Whether a file that nobody writes to is a whole database of ours that this program can use; `named` is what people
/// know it as.
async fn ensure_ours(file: &Path, named: &Path) -> anyhow::Result<()> {
    let named = named.display();
    let mut begins = [0; 16];
    let read = File::open(file)?.read(&mut begins)?;
    ensure!(read == 16 && &begins == b"SQLite format 3\0", "{named} is no SQLite database");
    let looked = async {
        let mut connection = connect(file, "mode=ro&immutable=true").await?;
        let found: String = sqlx::query_scalar("PRAGMA integrity_check(1)").fetch_one(&mut connection).await?;
        ensure!(found == "ok", "{found}");
        let schema = db::schema(&mut connection, false).await?;
        connection.close().await?;
        Ok(schema)
    };
    match looked.await.with_context(|| format!("{named} is damaged: use another backup"))? {
        Schema::Ours { .. } => Ok(()),
        Schema::Empty | Schema::Foreign => bail!("{named} is no database of Guidepost's"),
        Schema::Newer { migration } => {
            bail!("{named} was made by a newer guidepost-server (migration {migration}): use that one")
        }
        Schema::HalfMigrated { migration } => {
            bail!("{named} was left by a migration that failed half way ({migration}): use an older backup")
        }
    }
}

async fn contents_of(file: &Path, config: &Config) -> anyhow::Result<Contents> {
    let mut connection = connect(file, "mode=ro&immutable=true").await?;
    let orders = sqlx::query_scalar("SELECT COUNT(*) FROM booking_order").fetch_one(&mut connection).await?;
    let last: Option<i64> = sqlx::query_scalar("SELECT at FROM redemption WHERE result = 0 ORDER BY id DESC LIMIT 1")
        .fetch_optional(&mut connection)
        .await?;
    connection.close().await?;
    let last_redemption = last.map(|at| in_zone(at, &config.timezone, "%Y-%m-%d %H:%M:%S")).transpose()?;
    Ok(Contents { bytes: std::fs::metadata(file)?.len(), orders, last_redemption })
}

/// A moment in the venue's zone.
pub(super) fn in_zone(ms: i64, zone: &str, format: &str) -> anyhow::Result<String> {
    Ok(Timestamp::from_millisecond(ms)?.in_tz(zone)?.strftime(format).to_string())
}

/// Sessions that were ended, and links that were used, after the backup must not come back with it.
async fn end_sessions(file: &Path) -> anyhow::Result<()> {
    let mut connection = connect(file, "mode=rw").await?;
    for statement in ["PRAGMA journal_mode = DELETE", "DELETE FROM session", "DELETE FROM sign_in_link"] {
        sqlx::query(statement).execute(&mut connection).await.context("sessions cannot be ended in the copy")?;
    }
    Ok(connection.close().await?)
}

/// Gives a file to the owner of another one.
fn give(file: &File, owner: &Metadata) -> anyhow::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (owner.uid(), owner.gid()) {
        std::os::unix::fs::fchown(file, Some(owner.uid()), Some(owner.gid()))
            .with_context(|| format!("the database belongs to user {}: run this as that user", owner.uid()))?;
    }
    Ok(())
}

/// Keeps the present database, and what lies beside it, under a dated name as well as its own.
fn keep(database: &Path, config: &Config, clock: &dyn Clock) -> anyhow::Result<Option<PathBuf>> {
    let dated = format!(".before-restore-{}", in_zone(clock.now_ms(), &config.timezone, "%Y%m%d-%H%M%S")?);
    let kept = std::iter::once(beside(database, &dated))
        .chain((2..100).map(|n| beside(database, &format!("{dated}-{n}"))))
        .find(|kept| !kept.exists() && !BESIDE.iter().any(|end| beside(kept, end).exists()))
        .context("there are too many databases kept aside")?;
    let mut any = false;
    for end in BESIDE.into_iter().chain([""]) {
        let (from, to) = (beside(database, end), beside(&kept, end));
        // Not every file system has hard links.
        match std::fs::hard_link(&from, &to).or_else(|_| std::fs::copy(&from, &to).map(drop)) {
            Ok(()) => any = true,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(anyhow::Error::new(error).context("the present database cannot be kept aside")),
        }
    }
    Ok(any.then_some(kept))
}

/// Brings the present database into one file. It also finds out whether another program has it open, whose changes would
/// go nowhere and which would delete the new database's files when it ends. `false` where the database is gone or too broken
/// for this: that is what restoring is for.
async fn fold(database: &Path) -> anyhow::Result<bool> {
    if !database.exists() {
        return Ok(false);
    }
    let folded = async {
        let mut connection = connect(database, "mode=rw").await?;
        let folded = sqlx::query("PRAGMA journal_mode = DELETE").execute(&mut connection).await;
        let _ = connection.close().await;
        Ok::<_, anyhow::Error>(folded.map(|_| ())?)
    };
    let Err(error) = folded.await else { return Ok(true) };
    match error.downcast_ref::<sqlx::Error>().and_then(primary) {
        Some(BUSY) => bail!("another program has {} open: end it first", database.display()),
        Some(FULL) => bail!("{} is full: free some space first", folder_of(database).display()),
        _ => {
            tracing::warn!("the present database cannot be opened ({error:#}); its files are kept as they are");
            Ok(false)
        }
    }
}

/// Removes what SQLite left beside a database.
fn remove_beside(database: Option<&Path>) -> anyhow::Result<()> {
    for file in database.into_iter().flat_map(|database| BESIDE.map(|end| beside(database, end))) {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(anyhow::Error::new(error).context(format!("{} cannot be removed", file.display())));
            }
            _ => {}
        }
    }
    Ok(())
}

/// What was renamed stays renamed after a power cut.
fn sync_folder(folder: &Path) -> anyhow::Result<()> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.with_context(|| format!("{} cannot be written to the disk", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_space_is_named_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        ensure_space(folder.path(), 1, "free some").unwrap();
        let error = ensure_space(folder.path(), u64::MAX, "free some").unwrap_err().to_string();
        let name = folder.path().display().to_string();
        assert!(error.contains(&name) && error.contains("are needed: free some"), "{error}");
    }
}
