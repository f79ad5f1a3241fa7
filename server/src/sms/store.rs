//! Sends and uses of SMS codes in the database.

use super::channel::{Receipt, Report};
use crate::db::{self, Db, DbError, Tx};
use crate::ops::this_server;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use wire::TenantId;
use wire::accounts::Via;

/// A send that is about to happen.
#[derive(Debug)]
pub(super) struct NewSendRow<'a> {
    pub(super) tenant: TenantId,
    pub(super) id: &'a str,
    pub(super) scene: &'a str,
    pub(super) via: Via,
    pub(super) shown: &'a str,
    pub(super) digest: &'a str,
    pub(super) address: Option<&'a str>,
    pub(super) code_space: &'a str,
    pub(super) at: i64,
}

/// Before the channel is asked: a send that nobody knows of cannot be.
pub(super) async fn insert_send(db: &Db, row: &NewSendRow<'_>) -> Result<(), DbError> {
    let mut tx = db.begin().await?;
    sqlx::query(
        "INSERT INTO sms_send (tenant_id, send_id, scene, via, last_four, digest, address, outcome, server, code_space, at)
         VALUES (?, ?, ?, ?, ?, ?, ?, 'sending', ?, ?, ?)",
    )
    .bind(row.tenant.0)
    .bind(row.id)
    .bind(row.scene)
    .bind(row.via.as_str())
    .bind(row.shown)
    .bind(row.digest)
    .bind(row.address)
    .bind(this_server())
    .bind(row.code_space)
    .bind(row.at)
    .execute(&mut *tx)
    .await?;
    Ok(tx.commit().await?)
}

/// The longest reason that is kept.
const MAX_REASON: usize = 1000;

/// How a send ended.
pub(super) async fn finish_send(db: &Db, tenant: TenantId, id: &str, report: &Report) -> Result<(), DbError> {
    let reason: String = report.reason.chars().take(MAX_REASON).collect();
    let mut tx = db.begin().await?;
    sqlx::query(
        "UPDATE sms_send SET outcome = ?, channel = ?, provider_id = ?, reason = ? WHERE tenant_id = ? AND send_id = ?",
    )
    .bind(report.outcome.as_str())
    .bind(report.channel.as_deref())
    .bind(report.provider_id.as_deref().map(|id| id.chars().take(128).collect::<String>()))
    .bind(reason)
    .bind(tenant.0)
    .bind(id)
    .execute(&mut *tx)
    .await?;
    Ok(tx.commit().await?)
}

/// A send as it stands in the database.
#[derive(Debug)]
pub(super) struct SendRow {
    pub(super) id: String,
    pub(super) scene: String,
    pub(super) via: String,
    pub(super) address: Option<String>,
    pub(super) outcome: String,
    pub(super) channel: Option<String>,
    pub(super) provider_id: Option<String>,
    pub(super) reason: Option<String>,
    /// Unix ms.
    pub(super) at: i64,
    pub(super) receipt: Option<Receipt>,
    pub(super) server: Option<String>,
    pub(super) code_space: Option<String>,
    /// When its code was used (Unix ms).
    pub(super) used_at: Option<i64>,
}

/// A number's sends since `since` (Unix ms), in their order.
pub(super) async fn sends_to(db: &Db, tenant: TenantId, digest: &str, since: i64) -> Result<Vec<SendRow>, DbError> {
    let rows = sqlx::query(
        "SELECT s.send_id, s.scene, s.via, s.address, s.outcome, s.channel, s.provider_id, s.reason, s.at, s.receipt,
           s.server, s.code_space, u.at AS used_at
         FROM sms_send s LEFT JOIN sms_use u ON u.send_id = s.send_id AND u.tenant_id = s.tenant_id
         WHERE s.tenant_id = ? AND s.digest = ? AND s.at >= ? ORDER BY s.at, s.id",
    )
    .bind(tenant.0)
    .bind(digest)
    .bind(since)
    .fetch_all(db.read())
    .await?;
    let row = |row: sqlx::any::AnyRow| {
        Ok(SendRow {
            id: row.try_get("send_id")?,
            scene: row.try_get("scene")?,
            via: row.try_get("via")?,
            address: row.try_get("address")?,
            outcome: row.try_get("outcome")?,
            channel: row.try_get("channel")?,
            provider_id: row.try_get("provider_id")?,
            reason: row.try_get("reason")?,
            at: row.try_get("at")?,
            receipt: row.try_get::<Option<String>, _>("receipt")?.map(|text| receipt_from(&text)),
            server: row.try_get("server")?,
            code_space: row.try_get("code_space")?,
            used_at: row.try_get("used_at")?,
        })
    };
    rows.into_iter().map(row).collect()
}

/// The servers that have sent since `since` (Unix ms) with the space of codes of each one's last send, in order of time.
pub(crate) async fn code_spaces(
    connection: &mut AnyConnection,
    tenants: &[TenantId],
    since: i64,
) -> Result<Vec<(String, String)>, sqlx::Error> {
    let mut spaces = Vec::new();
    for tenant in tenants {
        let rows = sqlx::query(
            "SELECT server, code_space, MAX(at) AS last FROM sms_send
             WHERE tenant_id = ? AND at >= ? AND server IS NOT NULL AND code_space IS NOT NULL
             GROUP BY server, code_space",
        )
        .bind(tenant.0)
        .bind(since)
        .fetch_all(&mut *connection)
        .await?;
        for row in rows {
            spaces.push((row.try_get::<i64, _>("last")?, row.try_get("server")?, row.try_get("code_space")?));
        }
    }
    spaces.sort_unstable();
    Ok(spaces.into_iter().map(|(_, server, space)| (server, space)).collect())
}

/// How a receipt stands in the database: `delivered`, or `failed: ` and why.
fn receipt_from(text: &str) -> Receipt {
    match text.strip_prefix("failed: ") {
        Some(reason) => Receipt::Failed(reason.to_owned()),
        None if text == "delivered" => Receipt::Delivered,
        None => Receipt::Waiting,
    }
}

/// The longest receipt that is kept.
const MAX_RECEIPT: usize = 255;

/// Writes down what became of a message, once; a provider that has a receipt has taken it. `false` where it was known, or
/// the provider does not know yet.
pub(super) async fn settle_receipt(
    db: &Db,
    tenant: TenantId,
    id: &str,
    receipt: &Receipt,
    now: i64,
) -> Result<bool, DbError> {
    let text = match receipt {
        Receipt::Waiting => return Ok(false),
        Receipt::Delivered => "delivered".to_owned(),
        Receipt::Failed(reason) => format!("failed: {reason}").chars().take(MAX_RECEIPT).collect(),
    };
    let mut tx = db.begin().await?;
    let updated = sqlx::query(
        "UPDATE sms_send SET receipt = ?, receipt_at = ?, outcome = CASE WHEN outcome IN ('unknown', 'sending') THEN 'sent' ELSE outcome END
         WHERE tenant_id = ? AND send_id = ? AND receipt IS NULL",
    )
    .bind(text)
    .bind(now)
    .bind(tenant.0)
    .bind(id)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(updated.rows_affected() == 1)
}

/// A code that has been used.
#[derive(Debug)]
pub(super) struct UseRow<'a> {
    pub(super) tenant: TenantId,
    pub(super) send: &'a str,
    pub(super) scene: &'a str,
    pub(super) attempt: &'a str,
    pub(super) at: i64,
}

/// Records the use of a code, once; the attempt that has used it before, and when, if it is not the first.
pub(super) async fn insert_use(tx: &mut Tx, row: &UseRow<'_>) -> Result<Option<(String, i64)>, DbError> {
    let inserted = sqlx::query("INSERT INTO sms_use (send_id, tenant_id, scene, attempt, at) VALUES (?, ?, ?, ?, ?)")
        .bind(row.send)
        .bind(row.tenant.0)
        .bind(row.scene)
        .bind(row.attempt)
        .bind(row.at)
        .execute(&mut **tx)
        .await;
    match inserted.map_err(DbError::from) {
        Ok(_) => Ok(None),
        Err(DbError::Duplicate) => {
            let row = sqlx::query("SELECT attempt, at FROM sms_use WHERE tenant_id = ? AND send_id = ?")
                .bind(row.tenant.0)
                .bind(row.send)
                .fetch_one(&mut **tx)
                .await?;
            Ok(Some((row.try_get("attempt")?, row.try_get("at")?)))
        }
        Err(error) => Err(error),
    }
}

/// Numbers that were sent codes, and those of them that used one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Used {
    pub(super) scene: String,
    pub(super) numbers: i64,
    pub(super) used: i64,
}

/// Of the numbers that were sent codes in this time, how many used one, by scene. A number counts once: only the newest
/// code can be used.
pub(super) async fn used_by_scene(db: &Db, tenant: TenantId, from: i64, until: i64) -> Result<Vec<Used>, DbError> {
    let rows = sqlx::query(
        "SELECT s.scene, COUNT(DISTINCT s.digest) AS numbers,
                COUNT(DISTINCT CASE WHEN u.send_id IS NOT NULL THEN s.digest END) AS used
         FROM sms_send s LEFT JOIN sms_use u ON u.send_id = s.send_id AND u.tenant_id = s.tenant_id
         WHERE s.tenant_id = ? AND s.at >= ? AND s.at < ? AND s.outcome IN ('sent', 'unknown')
         GROUP BY s.scene ORDER BY s.scene",
    )
    .bind(tenant.0)
    .bind(from)
    .bind(until)
    .fetch_all(db.read())
    .await?;
    let used = |row: &AnyRow| -> Result<Used, sqlx::Error> {
        Ok(Used { scene: row.try_get("scene")?, numbers: row.try_get("numbers")?, used: row.try_get("used")? })
    };
    Ok(rows.iter().map(used).collect::<Result<_, _>>()?)
}

/// Addresses that are looked at for an alert.
const MOST_ADDRESSES: i64 = 1000;

/// From where most codes of this time were asked for, and how many.
pub(super) async fn senders(db: &Db, tenant: TenantId, from: i64, until: i64) -> Result<Vec<(String, i64)>, DbError> {
    let rows = sqlx::query(
        "SELECT address, COUNT(*) AS sends FROM sms_send
         WHERE tenant_id = ? AND at >= ? AND at < ? AND outcome IN ('sent', 'unknown') AND address IS NOT NULL
         GROUP BY address ORDER BY sends DESC LIMIT ?",
    )
    .bind(tenant.0)
    .bind(from)
    .bind(until)
    .bind(MOST_ADDRESSES)
    .fetch_all(db.read())
    .await?;
    Ok(rows
        .iter()
        .map(|row| Ok((row.try_get("address")?, row.try_get("sends")?)))
        .collect::<Result<_, sqlx::Error>>()?)
}

/// How many messages of this time a channel has taken, or may have, for all tenants: a provider counts an account.
pub(super) async fn taken_by(db: &Db, channel: &str, from: i64, until: i64) -> Result<i64, DbError> {
    let taken = sqlx::query_scalar(
        "SELECT COUNT(*) AS taken FROM sms_send WHERE channel = ? AND at >= ? AND at < ? AND outcome IN ('sent', 'unknown')",
    )
    .bind(channel)
    .bind(from)
    .bind(until)
    .fetch_one(db.read())
    .await?;
    Ok(taken)
}

/// The tenants whose messages these are.
pub(super) async fn tenants_of(db: &Db, channel: &str, from: i64, until: i64) -> Result<Vec<TenantId>, DbError> {
    let rows = sqlx::query(
        "SELECT DISTINCT tenant_id FROM sms_send WHERE channel = ? AND at >= ? AND at < ? ORDER BY tenant_id",
    )
    .bind(channel)
    .bind(from)
    .bind(until)
    .fetch_all(db.read())
    .await?;
    Ok(rows.iter().map(|row| row.try_get("tenant_id").map(TenantId)).collect::<Result<_, _>>()?)
}

/// Whether this database knows of a time before `at` (Unix ms): a send that was made then, or a day that was compared.
pub(super) async fn has_begun(db: &Db, at: i64) -> Result<bool, DbError> {
    for sql in
        ["SELECT 1 FROM sms_send WHERE at < ? LIMIT 1", "SELECT 1 FROM sms_reconciliation WHERE created_at < ? LIMIT 1"]
    {
        if sqlx::query(sql).bind(at).fetch_optional(db.read()).await?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How far the comparison of a day has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reconciliation {
    pub(super) created_at: i64,
    pub(super) due_at: i64,
    pub(super) attempts: i64,
    pub(super) done: bool,
}

/// The comparison of a channel's day, if it has begun.
pub(super) async fn reconciliation(db: &Db, channel: &str, day: &str) -> Result<Option<Reconciliation>, DbError> {
    let row = sqlx::query(
        "SELECT created_at, due_at, attempts, done_at FROM sms_reconciliation WHERE channel = ? AND day = ?",
    )
    .bind(channel)
    .bind(day)
    .fetch_optional(db.read())
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Reconciliation {
        created_at: row.try_get("created_at")?,
        due_at: row.try_get("due_at")?,
        attempts: row.try_get("attempts")?,
        done: row.try_get::<Option<i64>, _>("done_at")?.is_some(),
    }))
}

/// Begins the comparison of a day; `false` where another server has.
pub(super) async fn begin_reconciliation(
    db: &Db,
    channel: &str,
    day: &str,
    now: i64,
    until: i64,
) -> Result<bool, DbError> {
    let mut tx = db.begin().await?;
    let inserted = sqlx::query(
        "INSERT INTO sms_reconciliation (channel, day, created_at, attempts, due_at) VALUES (?, ?, ?, 1, ?)",
    )
    .bind(channel)
    .bind(day)
    .bind(now)
    .bind(until)
    .execute(&mut *tx)
    .await;
    match inserted.map_err(DbError::from) {
        Ok(_) => {}
        Err(DbError::Duplicate) => return Ok(false),
        Err(error) => return Err(error),
    }
    tx.commit().await?;
    Ok(true)
}

/// Goes on with the comparison of a day; `false` where another server does.
pub(super) async fn claim_reconciliation(
    db: &Db,
    channel: &str,
    day: &str,
    known: &Reconciliation,
    until: i64,
) -> Result<bool, DbError> {
    let mut tx = db.begin().await?;
    let updated = sqlx::query(
        "UPDATE sms_reconciliation SET due_at = ?, attempts = attempts + 1
         WHERE channel = ? AND day = ? AND done_at IS NULL AND attempts = ?",
    )
    .bind(until)
    .bind(channel)
    .bind(day)
    .bind(known.attempts)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(updated.rows_affected() == 1)
}

/// Ends the comparison of a day, `theirs` being missing where the provider did not tell; `false` where it has ended.
pub(super) async fn end_reconciliation(
    tx: &mut Tx,
    channel: &str,
    day: &str,
    ours: i64,
    theirs: Option<i64>,
    now: i64,
) -> Result<bool, DbError> {
    let updated = sqlx::query(
        "UPDATE sms_reconciliation SET ours = ?, theirs = ?, done_at = ? WHERE channel = ? AND day = ? AND done_at IS NULL",
    )
    .bind(ours)
    .bind(theirs)
    .bind(now)
    .bind(channel)
    .bind(day)
    .execute(&mut **tx)
    .await?;
    Ok(updated.rows_affected() == 1)
}

/// Deletes some sends that are older; how many.
pub(crate) async fn purge_sends(db: &Db, tenant: TenantId, before: i64) -> Result<u64, DbError> {
    db::delete_some(db, tenant, &db::Old { table: "sms_send", key: "send_id", condition: "at < ?", values: &[before] })
        .await
}

/// Deletes some uses of codes that are older; how many.
pub(crate) async fn purge_uses(db: &Db, tenant: TenantId, before: i64) -> Result<u64, DbError> {
    db::delete_some(db, tenant, &db::Old { table: "sms_use", key: "send_id", condition: "at < ?", values: &[before] })
        .await
}
