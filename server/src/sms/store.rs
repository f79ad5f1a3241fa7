//! Sends and uses of SMS codes in the database.

use super::channel::{Outcome, Receipt, Report};
use crate::db::{Db, DbError, Tx};
use crate::ops::this_server;
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
    let outcome = match report.outcome {
        Outcome::Sent => "sent",
        Outcome::Unknown => "unknown",
        Outcome::NotTaken => "not_taken",
        Outcome::NumberLimit => "number_limit",
        Outcome::Refused => "refused",
    };
    let reason: String = report.reason.chars().take(MAX_REASON).collect();
    let mut tx = db.begin().await?;
    sqlx::query(
        "UPDATE sms_send SET outcome = ?, channel = ?, provider_id = ?, reason = ? WHERE tenant_id = ? AND send_id = ?",
    )
    .bind(outcome)
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

/// How a receipt stands in the database: `delivered`, or `failed` and why.
fn receipt_from(text: &str) -> Receipt {
    match text.strip_prefix("failed") {
        Some(reason) => Receipt::Failed(reason.trim_start_matches([':', ' ']).to_owned()),
        None if text == "delivered" => Receipt::Delivered,
        None => Receipt::Waiting,
    }
}

/// Keeps what the provider said afterwards, once; that it does not know yet is not kept.
pub(super) async fn write_receipt(
    db: &Db,
    tenant: TenantId,
    id: &str,
    receipt: &Receipt,
    at: i64,
) -> Result<(), DbError> {
    let text = match receipt {
        Receipt::Waiting => return Ok(()),
        Receipt::Delivered => "delivered".to_owned(),
        Receipt::Failed(reason) => format!("failed: {reason}"),
    };
    let mut tx = db.begin().await?;
    sqlx::query(
        "UPDATE sms_send SET receipt = ?, receipt_at = ? WHERE tenant_id = ? AND send_id = ? AND receipt IS NULL",
    )
    .bind(text)
    .bind(at)
    .bind(tenant.0)
    .bind(id)
    .execute(&mut *tx)
    .await?;
    Ok(tx.commit().await?)
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

/// Records the use of a code, once; the attempt that has used it before, if it is not the first.
pub(super) async fn insert_use(tx: &mut Tx, row: &UseRow<'_>) -> Result<Option<String>, DbError> {
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
            let row = sqlx::query("SELECT attempt FROM sms_use WHERE tenant_id = ? AND send_id = ?")
                .bind(row.tenant.0)
                .bind(row.send)
                .fetch_one(&mut **tx)
                .await?;
            Ok(Some(row.try_get("attempt")?))
        }
        Err(error) => Err(error),
    }
}
