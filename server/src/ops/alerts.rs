//! Alerts: what an admin should look at, in the database and in the log.

use crate::app::AppState;
use crate::db::{Db, DbError, Tx};
use serde_json::Value;
use sqlx::Row;
use wire::TenantId;
use wire::api::{AlertKind, AlertView};

/// Raises an alert; `false` where it was not written: the log has it all the same.
pub(crate) async fn raise(app: &AppState, tenant: TenantId, kind: AlertKind, account_id: Option<i64>) -> bool {
    raise_at(&app.db, app.clock.now_ms(), tenant, kind, account_id, None).await
}

/// The same with what there is to know of it: counts, networks, a channel; nothing personal.
pub(crate) async fn raise_about(app: &AppState, tenant: TenantId, kind: AlertKind, data: &Value) {
    raise_at(&app.db, app.clock.now_ms(), tenant, kind, None, Some(data)).await;
}

/// The same for who has a part of the server alone.
pub(crate) async fn raise_at(
    db: &Db,
    now: i64,
    tenant: TenantId,
    kind: AlertKind,
    account_id: Option<i64>,
    data: Option<&Value>,
) -> bool {
    log(tenant, kind, account_id, data);
    let write = async {
        let mut tx = db.begin().await?;
        insert(&mut tx, now, tenant, kind, account_id, data).await?;
        Ok::<_, DbError>(tx.commit().await?)
    };
    let written = write.await;
    if let Err(error) = &written {
        tracing::error!(%error, "an alert could not be written");
    }
    written.is_ok()
}

/// What stands in the log of an alert.
pub(crate) fn log(tenant: TenantId, kind: AlertKind, account_id: Option<i64>, data: Option<&Value>) {
    let data = data.map(tracing::field::display);
    tracing::warn!(tenant.id = tenant.0, alert = kind.as_str(), account.id = account_id, data, "an alert");
}

/// Writes an alert within the transaction of what it is about; after the commit [`log`] says it.
pub(crate) async fn insert(
    tx: &mut Tx,
    now: i64,
    tenant: TenantId,
    kind: AlertKind,
    account_id: Option<i64>,
    data: Option<&Value>,
) -> Result<(), DbError> {
    sqlx::query("INSERT INTO alert (tenant_id, kind, account_id, data, at) VALUES (?, ?, ?, ?, ?)")
        .bind(tenant.0)
        .bind(kind.as_str())
        .bind(account_id)
        .bind(data.map(Value::to_string))
        .bind(now)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Whether an alert of a kind was raised since a time (Unix ms).
pub(crate) async fn raised_since(db: &Db, tenant: TenantId, kind: AlertKind, since: i64) -> Result<bool, DbError> {
    let row = sqlx::query("SELECT 1 FROM alert WHERE tenant_id = ? AND kind = ? AND at > ? LIMIT 1")
        .bind(tenant.0)
        .bind(kind.as_str())
        .bind(since)
        .fetch_optional(db.read())
        .await?;
    Ok(row.is_some())
}

/// A tenant's alerts, the newest first.
pub(crate) async fn list(app: &AppState, tenant: TenantId, before: i64, limit: i64) -> Result<Vec<AlertView>, DbError> {
    let rows = sqlx::query(
        "SELECT l.id, l.kind, l.data, l.at, a.name FROM alert l LEFT JOIN account a ON a.id = l.account_id AND a.tenant_id = l.tenant_id
         WHERE l.tenant_id = ? AND l.id < ? ORDER BY l.id DESC LIMIT ?",
    )
    .bind(tenant.0)
    .bind(before)
    .bind(limit)
    .fetch_all(app.db.read())
    .await?;
    let view = |row: &sqlx::any::AnyRow| -> Result<AlertView, sqlx::Error> {
        Ok(AlertView {
            id: row.try_get("id")?,
            kind: row.try_get("kind")?,
            name: row.try_get("name")?,
            data: row.try_get::<Option<&str>, _>("data")?.and_then(|data| serde_json::from_str(data).ok()),
            at: row.try_get("at")?,
        })
    };
    Ok(rows.iter().map(view).collect::<Result<_, _>>()?)
}
