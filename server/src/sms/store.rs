//! Sends and uses of SMS codes in the database.

use super::channel::{Outcome, Report};
use crate::db::{Db, DbError, Tx};
use sqlx::Row;
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
    pub(super) at: i64,
}

/// Before the channel is asked: a send that nobody knows of cannot be.
pub(super) async fn insert_send(db: &Db, row: &NewSendRow<'_>) -> Result<(), DbError> {
    let mut tx = db.begin().await?;
    sqlx::query(
        "INSERT INTO sms_send (tenant_id, send_id, scene, via, last_four, digest, address, outcome, at)
         VALUES (?, ?, ?, ?, ?, ?, ?, 'sending', ?)",
    )
    .bind(row.tenant.0)
    .bind(row.id)
    .bind(row.scene)
    .bind(row.via.as_str())
    .bind(row.shown)
    .bind(row.digest)
    .bind(row.address)
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
