//! The outbox in the database.

use super::OrderEvent;
use crate::db::{Db, DbError, Tx};
use sqlx::Row;
use sqlx::any::AnyRow;
use wire::TenantId;

/// The name of an operator's account.
pub(super) async fn operator_name(tx: &mut Tx, tenant: TenantId, account: i64) -> Result<Option<String>, DbError> {
    let row = sqlx::query("SELECT name FROM account WHERE tenant_id = ? AND id = ?")
        .bind(tenant.0)
        .bind(account)
        .fetch_optional(&mut **tx)
        .await?;
    Ok(row.map(|row| row.try_get("name")).transpose()?)
}

/// An event for a receiver.
#[derive(Debug)]
pub(super) struct NewDelivery<'a> {
    pub(super) hook: &'a str,
    pub(super) event_id: &'a str,
    pub(super) body: &'a str,
    pub(super) event: &'a OrderEvent<'a>,
}

pub(super) async fn insert(tx: &mut Tx, row: &NewDelivery<'_>) -> Result<(), DbError> {
    sqlx::query(
        "INSERT INTO web_hook_delivery (tenant_id, hook, event_id, event, order_id, body, created_at, due_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(row.event.tenant.0)
    .bind(row.hook)
    .bind(row.event_id)
    .bind(row.event.kind.as_str())
    .bind(row.event.order_id)
    .bind(row.body)
    .bind(row.event.at)
    .bind(row.event.at)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// An event that is to be sent.
#[derive(Debug, Clone)]
pub(super) struct Delivery {
    pub(super) id: i64,
    pub(super) event_id: String,
    pub(super) event: String,
    pub(super) body: String,
    pub(super) created_at: i64,
    /// Those before this one.
    pub(super) attempts: i64,
    due_at: i64,
}

/// What may be sent to a receiver now. An event waits for the earlier ones of its order: their ids are smaller, for the
/// order's row was locked when they were written.
pub(super) async fn due(db: &Db, tenant: TenantId, hook: &str, now: i64, limit: i64) -> Result<Vec<Delivery>, DbError> {
    let rows = sqlx::query(
        "SELECT d.id, d.event_id, d.event, d.body, d.created_at, d.attempts, d.due_at FROM web_hook_delivery d
         WHERE d.tenant_id = ? AND d.hook = ? AND d.done_at IS NULL AND d.due_at <= ?
           AND NOT EXISTS (
               SELECT 1 FROM web_hook_delivery e
               WHERE e.tenant_id = d.tenant_id AND e.hook = d.hook AND e.order_id = d.order_id AND e.id < d.id
                 AND e.done_at IS NULL)
         ORDER BY d.due_at, d.id LIMIT ?",
    )
    .bind(tenant.0)
    .bind(hook)
    .bind(now)
    .bind(limit)
    .fetch_all(db.read())
    .await?;
    let delivery = |row: &AnyRow| -> Result<Delivery, sqlx::Error> {
        Ok(Delivery {
            id: row.try_get("id")?,
            event_id: row.try_get("event_id")?,
            event: row.try_get("event")?,
            body: row.try_get("body")?,
            created_at: row.try_get("created_at")?,
            attempts: row.try_get("attempts")?,
            due_at: row.try_get("due_at")?,
        })
    };
    Ok(rows.iter().map(delivery).collect::<Result<_, _>>()?)
}

/// Takes an event on until `until`; `false` where another server was first.
pub(super) async fn claim(tx: &mut Tx, tenant: TenantId, delivery: &Delivery, until: i64) -> Result<bool, DbError> {
    let updated = sqlx::query(
        "UPDATE web_hook_delivery SET due_at = ?, attempts = attempts + 1
         WHERE id = ? AND tenant_id = ? AND done_at IS NULL AND attempts = ? AND due_at = ?",
    )
    .bind(until)
    .bind(delivery.id)
    .bind(tenant.0)
    .bind(delivery.attempts)
    .bind(delivery.due_at)
    .execute(&mut **tx)
    .await?;
    Ok(updated.rows_affected() == 1)
}

/// The receiver has it, whoever holds the claim by now.
pub(super) async fn mark_delivered(tx: &mut Tx, tenant: TenantId, id: i64, now: i64) -> Result<(), DbError> {
    sqlx::query("UPDATE web_hook_delivery SET done_at = ? WHERE id = ? AND tenant_id = ? AND done_at IS NULL")
        .bind(now)
        .bind(id)
        .bind(tenant.0)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// To be tried again, at `due_at`; unless another server has claimed it meanwhile.
pub(super) async fn postpone(
    tx: &mut Tx,
    tenant: TenantId,
    delivery: &Delivery,
    due_at: i64,
    result: &str,
) -> Result<(), DbError> {
    sqlx::query(
        "UPDATE web_hook_delivery SET due_at = ?, last_result = ?
         WHERE id = ? AND tenant_id = ? AND done_at IS NULL AND attempts = ?",
    )
    .bind(due_at)
    .bind(result)
    .bind(delivery.id)
    .bind(tenant.0)
    .bind(delivery.attempts + 1)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Not to be tried again; unless another server has claimed it meanwhile.
pub(super) async fn give_up(
    tx: &mut Tx,
    tenant: TenantId,
    delivery: &Delivery,
    now: i64,
    result: &str,
) -> Result<bool, DbError> {
    let updated = sqlx::query(
        "UPDATE web_hook_delivery SET done_at = ?, given_up = 1, last_result = ?
         WHERE id = ? AND tenant_id = ? AND done_at IS NULL AND attempts = ?",
    )
    .bind(now)
    .bind(result)
    .bind(delivery.id)
    .bind(tenant.0)
    .bind(delivery.attempts + 1)
    .execute(&mut **tx)
    .await?;
    Ok(updated.rows_affected() == 1)
}

/// Deletes what was written before this time, some rows at once; `true` where there may be more.
pub(super) async fn purge(db: &Db, tenant: TenantId, before: i64) -> Result<bool, DbError> {
    const AT_ONCE: i64 = 500;
    let last: Option<i64> = sqlx::query_scalar(
        "SELECT MAX(id) AS last FROM (
             SELECT id FROM web_hook_delivery WHERE tenant_id = ? AND created_at < ? ORDER BY id LIMIT ?) old",
    )
    .bind(tenant.0)
    .bind(before)
    .bind(AT_ONCE)
    .fetch_one(db.read())
    .await?;
    let Some(last) = last else { return Ok(false) };
    let mut tx = db.begin().await?;
    sqlx::query("DELETE FROM web_hook_delivery WHERE tenant_id = ? AND created_at < ? AND id <= ?")
        .bind(tenant.0)
        .bind(before)
        .bind(last)
        .execute(&mut *tx)
        .await?;
    tx.commit().await?;
    Ok(true)
}
