//! `backup` and `restore`: the SQLite file as one file, taken while the server serves, and put back in its place.

use crate::clock::Clock;
use crate::config::{Config, DatabaseUrl};
use crate::db::{self, Schema};
use crate::lock_beside_database;
use anyhow::{Context, bail, ensure};
use jiff::Timestamp;
use sqlx::{AnyConnection, Connection};
use std::collections::BTreeSet;
use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::NamedTempFile;

/// How the files are named that SQLite keeps beside a database.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// How the files begin that a backup and a restore work on until they are whole, and how they end.
const TEMPORARY: &str = ".guidepost-";
const PART: &str = ".part";
const RESTORING: &str = ".restoring";

/// A database that others write to all the time is waited for so long. The server's transactions last five seconds at most.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between two tries for the write lock: what others leave between their transactions is short.
const NEXT_TRY: Duration = Duration::from_millis(1);

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

/// What came of a backup.
#[derive(Debug, Clone)]
pub struct BackedUp {
    /// What the backup holds.
    pub contents: Contents,
    /// The moment that it is of, in the venue's zone, to the millisecond: what was acknowledged before is in it.
    pub as_of: String,
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
/// is of a moment near the end, and who writes waits only while the changes since the beginning are copied.
///
/// For a process that does not serve this database itself: see [`copy_while_served`].
///
/// # Errors
/// In words for an admin, and with nothing left behind: where the database is MySQL's, where `file` exists (unless
/// `overwrite`), where there is no space, where the database is written to without a pause, and where the copy is not whole.
pub async fn backup(config: &Config, file: &Path, overwrite: bool, clock: &dyn Clock) -> anyhow::Result<BackedUp> {
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
    sweep(&folder);
    ensure_space(&folder, size, "free some space, or name another folder")?;

    // Beside the target, so that it can be renamed; for its owner alone; gone where anything fails.
    let copy = temporary(&folder, PART)?;
    let as_of = copy_while_served(&whole, &copy, &folder, clock).await?;
    let folded = into_one_file(copy.path()).await;
    folded.map_err(|error| in_words(error, &folder, "the copy cannot be brought into one file"))?;
    copy.file.as_file().sync_all().context("the backup cannot be written to the disk")?;
    ensure_ours(copy.path(), &database).await?;
    let contents = contents_of(copy.path(), config).await?;
    if overwrite {
        copy.file.persist(&target).with_context(|| format!("{} cannot be replaced", file.display()))?;
    } else {
        copy.file.persist_noclobber(&target).map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => anyhow::anyhow!(exists()),
            _ => anyhow::Error::new(error.error).context(format!("{} cannot be made", file.display())),
        })?;
    }
    sync_folder(&folder)?;
    Ok(BackedUp { contents, as_of: in_zone(as_of, &config.timezone, "%Y-%m-%d %H:%M:%S%.3f")? })
}

/// Copies a database that others may write to into `copy` and a file beside it; both together are the database as it was
/// at the moment that is given back (Unix ms). Everything that was acknowledged before is in them.
///
/// 1. A read transaction is held from beginning to end. As long as it lasts, what SQLite brings from the `-wal` file into
///    the database's own file stays in the `-wal` file as well, or nothing is brought there at all: so it does not matter
///    at which moment which page of the file was copied. No journal is played back, no `-wal` file is shortened or removed.
/// 2. The file is copied, which may take long. Everybody may write.
/// 3. Under the write lock the `-wal` file is copied: the changes since 1, and what lay there before.
///
/// Without a `-wal` file (nobody has served this database since it was restored) the write lock is held all the while.
///
/// Closing any descriptor of a file takes from a process every lock that SQLite holds on that file for it (POSIX). So the
/// one that is opened here stays open until the process ends, and the process must serve this database by no other way.
async fn copy_while_served(database: &Path, copy: &Temporary, folder: &Path, clock: &dyn Clock) -> anyhow::Result<i64> {
    let opened = File::open(database).with_context(|| format!("{} cannot be read", database.display()))?;
    let opened: &'static File = Box::leak(Box::new(opened));
    let mut reader = connect(database, "mode=rw").await?;
    let mut writer = connect(database, "mode=rw").await?;
    let copied = copy_both(opened, &mut reader, &mut writer, database, copy, clock).await;
    // Closing ends their transactions.
    let closed = (writer.close().await, reader.close().await);
    let as_of = copied.map_err(|error| match error.downcast::<sqlx::Error>() {
        Ok(error) => in_words(error, folder, "the database cannot be copied"),
        Err(error) => match error.downcast_ref::<io::Error>().map(io::Error::kind) {
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => full(folder),
            _ => error.context("the database cannot be copied"),
        },
    })?;
    closed.0.and(closed.1)?;
    Ok(as_of)
}

async fn copy_both(
    opened: &'static File,
    reader: &mut AnyConnection,
    writer: &mut AnyConnection,
    database: &Path,
    copy: &Temporary,
    clock: &dyn Clock,
) -> anyhow::Result<i64> {
    // The less lies in the `-wal` file, the shorter others wait. Where somebody is in the way, it is longer.
    for shorter in ["PRAGMA busy_timeout = 0", "PRAGMA wal_checkpoint(PASSIVE)", "PRAGMA wal_checkpoint(TRUNCATE)"] {
        let _ = sqlx::query(shorter).execute(&mut *writer).await;
    }
    sqlx::query("BEGIN").execute(&mut *reader).await?;
    // It begins with the first read.
    let _: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM sqlite_master").fetch_one(&mut *reader).await?;
    let journal: String = sqlx::query_scalar("PRAGMA journal_mode").fetch_one(&mut *reader).await?;
    let has_wal = journal == "wal";
    if !has_wal {
        lock_writers(writer).await?;
    }
    let mut target = copy.file.as_file().try_clone()?;
    tokio::task::spawn_blocking(move || io::copy(&mut &*opened, &mut target)).await??;
    if has_wal {
        lock_writers(writer).await?;
        let (from, to) = (beside(database, "-wal"), beside(copy.path(), "-wal"));
        tokio::task::spawn_blocking(move || copy_wal(&from, &to)).await??;
    }
    // Whoever commits after this is acknowledged after it.
    Ok(clock.now_ms())
}

/// From here until the connection is closed nobody else writes.
async fn lock_writers(writer: &mut AnyConnection) -> anyhow::Result<()> {
    let locked = tokio::time::timeout(PATIENCE, async {
        loop {
            match sqlx::query("BEGIN IMMEDIATE").execute(&mut *writer).await {
                Err(error) if primary(&error) == Some(BUSY) => tokio::time::sleep(NEXT_TRY).await,
                done => return done.map(drop),
            }
        }
    });
    Ok(locked.await.context("something writes to it without a pause: end that, or try again later")??)
}

/// Copies the changes; where nobody has made any, there may be no such file.
fn copy_wal(from: &Path, to: &Path) -> io::Result<()> {
    let mut wal = match File::open(from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        opened => opened?,
    };
    let mut target = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut wal, &mut target).map(drop)
}

/// Brings what lies in a database's `-wal` file into the database.
async fn into_one_file(database: &Path) -> Result<(), sqlx::Error> {
    sqlx::any::install_default_drivers();
    let mut connection = AnyConnection::connect(&format!("{}?mode=rw", DatabaseUrl::sqlite(database).expose())).await?;
    let folded = sqlx::query("PRAGMA journal_mode = DELETE").execute(&mut connection).await;
    let closed = connection.close().await;
    folded.and(closed)
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
    sweep(&folder);
    ensure_space(&folder, size, "free some space first")?;

    // From here on a copy beside the database is worked on, whatever happens to the backup.
    let mut copy = temporary(&folder, RESTORING)?;
    let mut source = File::open(&backup).with_context(|| format!("{} cannot be read", file.display()))?;
    std::io::copy(&mut source, copy.file.as_file_mut())
        .with_context(|| format!("{} cannot be copied", file.display()))?;
    ensure_ours(copy.path(), file).await?;
    end_sessions(copy.path()).await?;
    let contents = contents_of(copy.path(), config).await?;
    // Whoever restores may be root, and the server another user.
    let owner = std::fs::metadata(&database).or_else(|_| std::fs::metadata(&folder))?;
    give(copy.file.as_file(), &owner)?;
    give(&lock, &owner)?;
    copy.file.as_file().sync_all().context("the database cannot be written to the disk")?;

    let kept = set_aside(&database, config, clock, |from, to| std::fs::hard_link(from, to)).await?;
    // What is left of the old database would be taken for changes of the new one.
    remove_beside(Some(&database))?;
    copy.file.persist(&database).map_err(|error| error.error).with_context(|| match &kept {
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

/// A file that is worked on until it is whole; deleted, with what SQLite keeps beside it, unless it is renamed. Its lock is
/// held by who works on it.
struct Temporary {
    // Dropped in this order: what lies beside a file that is gone would be nobody's.
    _beside: Beside,
    file: NamedTempFile,
}

impl Temporary {
    fn path(&self) -> &Path {
        self.file.path()
    }
}

/// Removes what lies beside a file.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = remove_beside(Some(&self.0));
    }
}

/// A new file in a folder, mode 0600.
fn temporary(folder: &Path, end: &str) -> anyhow::Result<Temporary> {
    let context = || format!("nothing can be written to {}", folder.display());
    loop {
        let file = tempfile::Builder::new()
            .prefix(TEMPORARY)
            .suffix(end)
            .permissions(std::fs::Permissions::from_mode(0o600))
            .tempfile_in(folder)
            .with_context(context)?;
        match file.as_file().try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => continue,
            // Not every file system has locks; there leftovers stay.
            Err(TryLockError::Error(error)) => tracing::debug!(%error, "{} cannot be locked", file.path().display()),
        }
        // Before it was locked, another backup may have taken it for a leftover.
        if file.as_file().metadata().with_context(context)?.nlink() > 0 {
            return Ok(Temporary { _beside: Beside(file.path().to_owned()), file });
        }
    }
}

/// Removes what backups and restores have left in a folder that were killed: it holds names and phone numbers.
fn sweep(folder: &Path) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    let leftovers: BTreeSet<String> = files.filter_map(|file| worked_on(file.file_name().to_str()?)).collect();
    for file in leftovers.into_iter().map(|name| folder.join(name)) {
        if let Err(error) = remove_unheld(&file) {
            tracing::warn!("{} was left by a backup or restore and cannot be removed: {error:#}", file.display());
        }
    }
}

/// The file that was worked on, where a name is such a file's or one's beside it.
fn worked_on(name: &str) -> Option<String> {
    let file = BESIDE.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
    let rest = file.strip_prefix(TEMPORARY)?;
    let random = rest.strip_suffix(PART).or_else(|| rest.strip_suffix(RESTORING))?;
    let ours = random.len() == 6 && random.chars().all(|c| c.is_ascii_alphanumeric());
    ours.then(|| file.to_owned())
}

fn remove_unheld(file: &Path) -> anyhow::Result<()> {
    let opened = match File::open(file) {
        // What lies beside it was left alone.
        Err(error) if error.kind() == ErrorKind::NotFound => return remove_beside(Some(file)),
        opened => opened?,
    };
    match opened.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(()),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    remove_beside(Some(file))?;
    Ok(std::fs::remove_file(file)?)
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
        Some(FULL) => full(folder),
        _ => anyhow::Error::new(error).context(what.to_owned()),
    }
}

fn full(folder: &Path) -> anyhow::Error {
    anyhow::anyhow!("{} is full: free some space, or name another folder", folder.display())
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

/// Keeps the present database under a dated name: in one file where it can be read, as it is where it is broken. Nothing of
/// it is removed. `link` makes hard links.
async fn set_aside(
    database: &Path,
    config: &Config,
    clock: &dyn Clock,
    link: impl Fn(&Path, &Path) -> io::Result<()>,
) -> anyhow::Result<Option<PathBuf>> {
    let Some(kept) = keep(database, config, clock, link)? else { return Ok(None) };
    let whole = async {
        if !fold(database).await? {
            return Ok(());
        }
        // A link is the folded file itself; a copy was made before, and what lay beside the database is not in it.
        let (ours, theirs) = (std::fs::metadata(database)?, std::fs::metadata(&kept)?);
        if (ours.dev(), ours.ino()) != (theirs.dev(), theirs.ino()) {
            copy_whole(database, &kept).context("the present database cannot be kept aside")?;
        }
        // The one file is everything.
        remove_beside(Some(&kept))
    };
    if let Err(error) = whole.await {
        remove_beside(Some(&kept))?;
        std::fs::remove_file(&kept)?;
        return Err(error);
    }
    Ok(Some(kept))
}

/// Gives the present database, and what lies beside it, a dated name as well as its own.
fn keep(
    database: &Path,
    config: &Config,
    clock: &dyn Clock,
    link: impl Fn(&Path, &Path) -> io::Result<()>,
) -> anyhow::Result<Option<PathBuf>> {
    let dated = format!(".before-restore-{}", in_zone(clock.now_ms(), &config.timezone, "%Y%m%d-%H%M%S")?);
    let kept = std::iter::once(beside(database, &dated))
        .chain((2..100).map(|n| beside(database, &format!("{dated}-{n}"))))
        .find(|kept| !kept.exists() && !BESIDE.iter().any(|end| beside(kept, end).exists()))
        .context("there are too many databases kept aside")?;
    let mut any = false;
    for end in BESIDE.into_iter().chain([""]) {
        let (from, to) = (beside(database, end), beside(&kept, end));
        // Not every file system has hard links.
        match link(&from, &to).or_else(|_| copy_whole(&from, &to)) {
            Ok(()) => any = true,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                let _ = remove_beside(Some(&kept));
                let _ = std::fs::remove_file(&kept);
                return Err(anyhow::Error::new(error).context("the present database cannot be kept aside"));
            }
        }
    }
    Ok(any.then_some(kept))
}

/// Copies a file with its owner and its rights, to the disk.
fn copy_whole(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::copy(from, to)?;
    let (copy, owner) = (OpenOptions::new().write(true).open(to)?, std::fs::metadata(from)?);
    // Whoever restores may be root. Another user's copy is at least no wider.
    let _ = std::os::unix::fs::fchown(&copy, Some(owner.uid()), Some(owner.gid()));
    copy.sync_all()
}

/// Brings the present database into one file. It also finds out whether another program has it open, whose changes would
/// go nowhere and which would delete the new database's files when it ends. `false` where the database is gone or too broken
/// for this: that is what restoring is for.
async fn fold(database: &Path) -> anyhow::Result<bool> {
    if !database.exists() {
        return Ok(false);
    }
    let Err(error) = into_one_file(database).await else { return Ok(true) };
    match primary(&error) {
        Some(BUSY) => bail!("another program has {} open: end it first", database.display()),
        Some(FULL) => bail!("{} is full: free some space first", folder_of(database).display()),
        _ => {
            tracing::warn!("the present database cannot be opened ({error}); its files are kept as they are");
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
    use crate::clock::SystemClock;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

    /// A database whose last change lies beside it, as a killed server leaves it.
    async fn unfolded(folder: &Path) -> PathBuf {
        let (open, database) = (folder.join("open.db"), folder.join("guidepost.db"));
        let mut connection = connect(&open, "mode=rwc").await.unwrap();
        for statement in ["PRAGMA journal_mode = WAL", "CREATE TABLE x (y INTEGER)", "INSERT INTO x VALUES (7)"] {
            sqlx::query(statement).execute(&mut connection).await.unwrap();
        }
        for end in ["", "-wal"] {
            std::fs::copy(beside(&open, end), beside(&database, end)).unwrap();
        }
        connection.close().await.unwrap();
        database
    }

    #[tokio::test]
    async fn what_is_kept_aside_has_its_last_changes_with_and_without_hard_links() {
        type Link = fn(&Path, &Path) -> io::Result<()>;
        let links: [Link; 2] =
            [|from, to| std::fs::hard_link(from, to), |_, _| Err(io::Error::from(ErrorKind::Unsupported))];
        for link in links {
            let folder = tempfile::tempdir().unwrap();
            let database = unfolded(folder.path()).await;
            std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o640)).unwrap();
            let config = Config::demo_in(folder.path());
            let kept = set_aside(&database, &config, &SystemClock::new(), link).await.unwrap().unwrap();
            // The new database takes its place.
            std::fs::remove_file(&database).unwrap();
            remove_beside(Some(&database)).unwrap();
            assert_eq!(kept.metadata().unwrap().permissions().mode() & 0o777, 0o640);
            assert!(!BESIDE.iter().any(|end| beside(&kept, end).exists()), "it is not one file");
            let mut connection = connect(&kept, "mode=ro").await.unwrap();
            let found: i64 = sqlx::query_scalar("SELECT y FROM x").fetch_one(&mut connection).await.unwrap();
            assert_eq!(found, 7);
            connection.close().await.unwrap();
        }
    }

    /// How many transactions have been acknowledged.
    #[derive(Debug, Default)]
    struct Acknowledged(AtomicI64);

    impl Clock for Acknowledged {
        fn now_ms(&self) -> i64 {
            self.0.load(Ordering::SeqCst)
        }

        fn monotonic(&self) -> Duration {
            Duration::ZERO
        }
    }

    /// Each transaction changes three pages, and each is brought into the database's file at once, so that the file changes
    /// under whoever copies it, and the `-wal` file begins anew wherever it may.
    async fn write_without_a_pause(
        mut connection: AnyConnection,
        acknowledged: Arc<Acknowledged>,
        stop: Arc<AtomicBool>,
    ) -> Result<(), sqlx::Error> {
        for n in 1.. {
            if stop.load(Ordering::SeqCst) {
                break;
            }
            sqlx::query("BEGIN IMMEDIATE").execute(&mut connection).await?;
            for (change, id) in [(1, 1 + n % 1000), (-1, 1001 + n % 1000), (1, 0)] {
                let update = sqlx::query("UPDATE x SET n = n + ? WHERE id = ?").bind(change).bind(id);
                update.execute(&mut connection).await?;
            }
            sqlx::query("COMMIT").execute(&mut connection).await?;
            acknowledged.0.store(n, Ordering::SeqCst);
        }
        connection.close().await
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_copy_is_of_one_moment_and_has_all_that_was_acknowledged_by_then() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("guidepost.db");
        let mut connection = connect(&database, "mode=rwc").await.unwrap();
        for statement in [
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = OFF",
            "PRAGMA wal_autocheckpoint = 1",
            "CREATE TABLE x (id INTEGER PRIMARY KEY, n INTEGER, page BLOB)",
            "WITH RECURSIVE i(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM i WHERE id < 2000)
             INSERT INTO x SELECT id, 0, randomblob(3000) FROM i",
        ] {
            sqlx::query(statement).execute(&mut connection).await.unwrap();
        }
        let (acknowledged, stop) = (Arc::new(Acknowledged::default()), Arc::new(AtomicBool::new(false)));
        let writing = tokio::spawn(write_without_a_pause(connection, acknowledged.clone(), stop.clone()));
        let mut written_meanwhile = 0;
        for _ in 0..10 {
            let begun = acknowledged.now_ms();
            let copy = temporary(folder.path(), PART).unwrap();
            let as_of = copy_while_served(&database, &copy, folder.path(), &*acknowledged).await.unwrap();
            written_meanwhile += as_of - begun;
            into_one_file(copy.path()).await.unwrap();
            let mut copied = connect(copy.path(), "mode=ro").await.unwrap();
            let whole: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut copied).await.unwrap();
            assert_eq!(whole, "ok");
            let all = "SELECT n, (SELECT SUM(n) FROM x WHERE id > 0) FROM x WHERE id = 0";
            let (n, sum): (i64, i64) = sqlx::query_as(all).fetch_one(&mut copied).await.unwrap();
            assert_eq!(sum, 0, "half of a transaction is in it");
            // The last one may have been committed and not acknowledged yet.
            assert!((as_of..=as_of + 1).contains(&n), "{as_of} were acknowledged, {n} are in it");
            copied.close().await.unwrap();
        }
        stop.store(true, Ordering::SeqCst);
        writing.await.unwrap().unwrap();
        assert!(written_meanwhile > 0, "nothing was written meanwhile");
    }

    #[test]
    fn too_little_space_is_named_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        ensure_space(folder.path(), 1, "free some").unwrap();
        let error = ensure_space(folder.path(), u64::MAX, "free some").unwrap_err().to_string();
        let name = folder.path().display().to_string();
        assert!(error.contains(&name) && error.contains("are needed: free some"), "{error}");
    }
}
