//! `GET` and `PUT /admin-api/settings`: what can be changed while the server runs.

use crate::app::App;
use crate::db::{DbError, Tx, transact};
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::Body;
use crate::http::session::Admin;
use crate::settings::Rules;
use crate::text::Text;
use axum::extract::State;
use serde_json::Value;
use wire::api::SettingsMap;
use wire::{Envelope, TenantId};

fn map(rules: &Rules) -> SettingsMap {
    SettingsMap(rules.all())
}

/// Every setting that can be changed, as it holds now.
#[utoipa::path(get, path = "/admin-api/settings", tag = "admin",
    responses((status = 200, body = Envelope<SettingsMap>)))]
pub(crate) async fn get_settings(State(app): State<App>, Admin(session): Admin) -> ApiResult<SettingsMap> {
    let rules = app.rules(session.tenant).await?;
    Ok(Answer(map(&rules)))
}

/// Changes the settings named; `null` takes a change back. All or none.
#[utoipa::path(put, path = "/admin-api/settings", tag = "admin", request_body = SettingsMap,
    responses((status = 200, body = Envelope<SettingsMap>)))]
pub(crate) async fn put_settings(
    State(app): State<App>,
    Admin(session): Admin,
    Body(SettingsMap(changes)): Body<SettingsMap>,
) -> ApiResult<SettingsMap> {
    let known = app.rules(session.tenant).await?.all();
    let mut trial = Rules::clone(&*app.rules(session.tenant).await?);
    for (name, value) in &changes {
        if !known.contains_key(name) || !(value.is_null() || trial.set(name, value)) {
            return Err(ApiError::bad_field(name, Text::BadSetting));
        }
    }
    transact(async || {
        let mut tx = app.db.begin().await?;
        for (name, value) in &changes {
            write(&mut tx, session.tenant, name, value, app.clock.now_ms()).await?;
        }
        Ok(tx.commit().await?)
    })
    .await?;
    for (name, value) in &changes {
        tracing::info!(name, value = %value, account.id = session.account_id, "a setting was changed");
    }
    app.settings.forget(session.tenant);
    let rules = app.rules(session.tenant).await?;
    Ok(Answer(map(&rules)))
}

async fn write(tx: &mut Tx, tenant: TenantId, name: &str, value: &Value, now: i64) -> Result<(), DbError> {
    sqlx::query("DELETE FROM setting WHERE tenant_id = ? AND name = ?")
        .bind(tenant.0)
        .bind(name)
        .execute(&mut **tx)
        .await?;
    if !value.is_null() {
        sqlx::query("INSERT INTO setting (tenant_id, name, value, updated_at) VALUES (?, ?, ?, ?)")
            .bind(tenant.0)
            .bind(name)
            .bind(value.to_string())
            .bind(now)
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}
