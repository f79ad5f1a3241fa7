//! Alerts: what an admin should look at, in the database and in the log.

use crate::app::AppState;
use crate::db::{Db, DbError};
use sqlx::Row;
use wire::TenantId;
use wire::api::{AlertKind, AlertView};

/// Raises an alert. Should it not be written, the log has it all the same.
pub(crate) async fn raise(app: &AppState, tenant: TenantId, kind: AlertKind, account_id: Option<i64>) {
    write(&app.db, app.clock.now_ms(), tenant, kind, account_id).await;
}

/// The same for who has a part of the server alone.
pub(crate) async fn write(db: &Db, now: i64, tenant: TenantId, kind: AlertKind, account_id: Option<i64>) {
    tracing::warn!(tenant.id = tenant.0, alert = kind.as_str(), account.id = account_id, "an alert");
    if let Err(error) = insert(db, now, tenant, kind, account_id).await {
        tracing::error!(%error, "an alert could not be written");
    }
}

async fn insert(db: &Db, now: i64, tenant: TenantId, kind: AlertKind, account_id: Option<i64>) -> Result<(), DbError> {
    let mut tx = db.begin().await?;
    sqlx::query("INSERT INTO alert (tenant_id, kind, account_id, at) VALUES (?, ?, ?, ?)")
        .bind(tenant.0)
        .bind(kind.as_str())
        .bind(account_id)
        .bind(now)
        .execute(&mut *tx)
        .await?;
    Ok(tx.commit().await?)
}

/// A tenant's alerts, the newest first.
pub(crate) async fn list(app: &AppState, tenant: TenantId, before: i64, limit: i64) -> Result<Vec<AlertView>, DbError> {
    let rows = sqlx::query(
        "SELECT l.id, l.kind, l.at, a.name FROM alert l LEFT JOIN account a ON a.id = l.account_id AND a.tenant_id = l.tenant_id
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
            at: row.try_get("at")?,
        })
    };
    Ok(rows.iter().map(view).collect::<Result<_, _>>()?)
}
