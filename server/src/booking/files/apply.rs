//! From a preview to orders: everything in one transaction of a few statements over all lines, or nothing.
//!
//! Each statement is conditional on what the line was looked at with. What stands otherwise when all is done has been
//! changed by somebody else since, and undoes the whole.

use super::fault::Faults;
use super::store;
use crate::app::App;
use crate::codes::CodesAway;
use crate::db::DbError;
use futures::StreamExt;
use wire::TenantId;

/// How often the database may undo it for the sake of others.
const TRIES: u32 = 3;
/// The audit's rows are complete within 5 s of their time, which its readers rely on; this leaves the commit a second (ms).
const AUDIT_LIMIT: i64 = 4_000;
/// Codes that are deleted at once.
const CODES_AT_ONCE: usize = 32;

/// Why a preview could not be applied.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotApplied {
    /// The codes of orders that leave `paid` could not be deleted.
    #[error(transparent)]
    Codes(#[from] CodesAway),
    #[error(transparent)]
    Db(#[from] DbError),
}

/// What came of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Applied {
    Now,
    /// There is no preview: it was applied before, is still read, refused or dropped.
    NotThere,
    /// Orders have changed since the preview; it is refused now.
    Refused,
}

/// Applies a preview, once, however often it is asked for.
pub(super) async fn apply(app: &App, tenant: TenantId, import: i64) -> Result<Applied, NotApplied> {
    app.codes.ping().await?;
    // Before codes are deleted for its sake.
    store::drop_if_left(&app.db, tenant, import, app.clock.now_ms()).await?;
    let no_codes = store::must_have_no_codes(&app.db, tenant, import).await?;
    if let (_, Some(away)) = delete_codes(app, tenant, no_codes).await {
        return Err(away.into());
    }
    let mut tries = 1;
    let applied = loop {
        match in_one_transaction(app, tenant, import).await {
            Err(DbError::Deadlock | DbError::Duplicate) if tries < TRIES => tries += 1,
            // Somebody made the same accounts or orders each time: not a bug, and worth another try later.
            Err(DbError::Duplicate) => break Err(DbError::Deadlock),
            other => break other,
        }
    };
    match applied {
        Ok(Outcome::Committed) => {}
        Ok(Outcome::NotThere) => return Ok(Applied::NotThere),
        Ok(Outcome::Undone(faults)) => {
            store::refuse(&app.db, tenant, import, &faults, app.clock.now_ms()).await?;
            return Ok(Applied::Refused);
        }
        Err(error) => {
            // A commit that failed may have happened all the same, so the codes go either way.
            let _ = delete_lost_codes(app, tenant, import).await;
            return Err(error.into());
        }
    }
    delete_lost_codes(app, tenant, import).await?;
    store::delete_lines(&app.db, tenant, import).await?;
    Ok(Applied::Now)
}

enum Outcome {
    Committed,
    NotThere,
    Undone(Faults),
}

async fn in_one_transaction(app: &App, tenant: TenantId, import: i64) -> Result<Outcome, DbError> {
    let (now, started) = (app.clock.now_ms(), app.clock.monotonic());
    let mut tx = app.db.begin().await?;
    if !store::claim(&mut tx, tenant, import, now).await? {
        return Ok(Outcome::NotThere);
    }
    let (new, changed) = store::previewed(&mut tx, tenant, import).await?;
    store::make_visitors(&mut tx, tenant, import, now).await?;
    let drafts = signed(store::make_drafts(&mut tx, tenant, import, now).await?);
    let has_changed = signed(store::change_orders(&app.db, &mut tx, tenant, import, now).await?);
    let made = signed(store::make_orders(&mut tx, tenant, import, now).await?);
    // Where all went as foreseen, only orders that nothing was done to can stand otherwise.
    let faults = store::not_as_wanted(&mut tx, tenant, import, (made, has_changed) != (new, changed)).await?;
    if !faults.none() {
        tx.rollback().await?;
        return Ok(Outcome::Undone(faults));
    }
    store::note_done(&mut tx, tenant, import, made, has_changed, drafts).await?;
    let at = app.clock.now_ms();
    store::audit_arrivals(&mut tx, tenant, import, at).await?;
    if app.clock.now_ms() - at > AUDIT_LIMIT {
        return Err(DbError::TooSlow);
    }
    tx.commit().await?;
    let took = app.clock.monotonic().saturating_sub(started);
    tracing::info!(import.id = import, new = made, changed = has_changed, ?took, "an order file was applied");
    Ok(Outcome::Committed)
}

fn signed(rows: u64) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// After the commit: what could not be deleted runs out by itself, and redeems nothing that is not paid.
async fn delete_lost_codes(app: &App, tenant: TenantId, import: i64) -> Result<(), DbError> {
    let orders = store::lost_their_codes(&app.db, tenant, import).await?;
    if let (count, Some(error)) = delete_codes(app, tenant, orders).await {
        tracing::warn!(count, %error, "verify codes could not be deleted; they run out by themselves");
    }
    Ok(())
}

/// How many could not be deleted, and why the last of them.
async fn delete_codes(app: &App, tenant: TenantId, orders: Vec<i64>) -> (usize, Option<CodesAway>) {
    let delete = |order| {
        let key = app.code_key(tenant, order);
        async move { app.codes.delete(&key).await }
    };
    let done: Vec<_> = futures::stream::iter(orders).map(delete).buffer_unordered(CODES_AT_ONCE).collect().await;
    let failed: Vec<CodesAway> = done.into_iter().filter_map(Result::err).collect();
    (failed.len(), failed.into_iter().next_back())
}
