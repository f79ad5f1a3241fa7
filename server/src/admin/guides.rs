//! The tenant's guides: who they are, freezing and unfreezing.

use crate::app::App;
use crate::db::DbError;
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::PathPart;
use crate::http::session::Admin;
use crate::ops::alerts;
use crate::redemption::freeze_window_of;
use crate::text::Text;
use axum::extract::State;
use sqlx::Row;
use wire::api::{AlertKind, GuideView};
use wire::{Envelope, ErrorCode, TenantId};

/// The tenant's guides, by name.
#[utoipa::path(get, path = "/admin-api/guides", tag = "admin", responses((status = 200, body = Envelope<Vec<GuideView>>)))]
pub(crate) async fn list_guides(State(app): State<App>, Admin(session): Admin) -> ApiResult<Vec<GuideView>> {
    let rows = sqlx::query(
        "SELECT id, name, mobile, frozen_at FROM account WHERE tenant_id = ? AND is_guide = 1 ORDER BY name, id",
    )
    .bind(session.tenant.0)
    .fetch_all(app.db.read())
    .await?;
    let ids = rows.iter().map(|row| row.try_get("id")).collect::<Result<Vec<i64>, _>>()?;
    // All at once: one after another, a code store that hangs would hold the list up once for every guide.
    let windows: Vec<_> = ids.iter().map(|id| freeze_window_of(&app, session.tenant, *id)).collect();
    let all_held = futures::future::join_all(windows.iter().map(|window| app.codes.held(window))).await;
    let mut guides = Vec::new();
    for ((row, id), held) in rows.iter().zip(ids).zip(all_held) {
        // Without the code store the list is there all the same, and says what is not known.
        let unknown = held.is_err().then(|| "unknown".to_owned());
        let held = held.ok().flatten();
        let by_admin = row.try_get::<Option<i64>, _>("frozen_at")?.is_some();
        let mobile: Option<String> = row.try_get("mobile")?;
        let mobile = mobile.unwrap_or_default();
        guides.push(GuideView {
            id,
            name: row.try_get("name")?,
            mobile: mobile[mobile.len().saturating_sub(4)..].to_owned(),
            frozen: if by_admin { Some("admin".to_owned()) } else { held.map(|_| "failures".to_owned()).or(unknown) },
            frozen_for: held.filter(|_| !by_admin).map(|left| i64::try_from(left.as_secs() + 1).unwrap_or(i64::MAX)),
        });
    }
    Ok(Answer(guides))
}

/// Freezes a guide until somebody unfreezes them.
#[utoipa::path(post, path = "/admin-api/guides/{id}/freeze", tag = "admin",
    params(("id" = i64, Path, description = "the account's number")), responses((status = 200, body = Envelope<bool>)))]
pub(crate) async fn freeze_guide(
    State(app): State<App>,
    Admin(session): Admin,
    PathPart(id): PathPart,
) -> ApiResult<bool> {
    let id = guide_id(&id)?;
    set_frozen(&app, session.tenant, id, Some(app.clock.now_ms())).await?;
    alerts::raise(&app, session.tenant, AlertKind::GuideFrozenByAdmin, Some(id)).await;
    Ok(Answer(true))
}

/// Ends a freeze, by whomever.
#[utoipa::path(post, path = "/admin-api/guides/{id}/unfreeze", tag = "admin",
    params(("id" = i64, Path, description = "the account's number")), responses((status = 200, body = Envelope<bool>)))]
pub(crate) async fn unfreeze_guide(
    State(app): State<App>,
    Admin(session): Admin,
    PathPart(id): PathPart,
) -> ApiResult<bool> {
    let id = guide_id(&id)?;
    // The code store first: where it is away nothing is changed, rather than half of it.
    app.codes.release(&freeze_window_of(&app, session.tenant, id)).await?;
    set_frozen(&app, session.tenant, id, None).await?;
    alerts::raise(&app, session.tenant, AlertKind::GuideUnfrozen, Some(id)).await;
    Ok(Answer(true))
}

fn guide_id(text: &str) -> Result<i64, ApiError> {
    text.parse().map_err(|_| ApiError::bad_field("id", Text::BadField))
}

async fn set_frozen(app: &App, tenant: TenantId, id: i64, at: Option<i64>) -> Result<(), ApiError> {
    let mut tx = app.db.begin().await?;
    let updated = sqlx::query("UPDATE account SET frozen_at = ? WHERE tenant_id = ? AND id = ? AND is_guide = 1")
        .bind(at)
        .bind(tenant.0)
        .bind(id)
        .execute(&mut *tx)
        .await
        .map_err(DbError::from)?;
    if updated.rows_affected() == 0 {
        return Err(ErrorCode::NotFound.into());
    }
    tx.commit().await.map_err(DbError::from)?;
    Ok(())
}
