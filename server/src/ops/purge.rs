//! Deletes what nobody needs any more, some rows at a time, so that no writer waits long.

use crate::accounts::session::longest_idle;
use crate::accounts::store as accounts;
use crate::app::AppState;
use crate::db::DbError;
use crate::sms::store as sms;
use wire::TenantId;

const DAY: i64 = 24 * 3_600_000;

/// Sessions and sign-in links go so long after their end (ms).
const ENDED: i64 = 7 * DAY;

/// How much longer than a code may live its use is kept (ms).
const MARGIN: i64 = DAY;

/// Deletes what is old of every tenant. Several servers may at once.
pub(super) async fn turn(app: &AppState) {
    let tenants = match accounts::tenants(&app.db).await {
        Ok(tenants) => tenants,
        Err(error) => return tracing::warn!(%error, "old rows could not be deleted; again in an hour"),
    };
    for tenant in tenants {
        match purge(app, tenant).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(tenant.id = tenant.0, rows, "old rows were deleted"),
            Err(error) => {
                tracing::warn!(tenant.id = tenant.0, %error, "old rows could not be deleted; again in an hour");
            }
        }
    }
}

async fn purge(app: &AppState, tenant: TenantId) -> Result<u64, DbError> {
    let (db, now) = (&app.db, app.clock.now_ms());
    let longest_ttl = app.rules(tenant).await?.sms.longest_ttl();
    let longest_ttl = i64::try_from(longest_ttl.as_millis()).unwrap_or(i64::MAX);
    let sends_before = now - i64::from(app.config.sms.keep_days) * DAY;
    // While a code may live, its use is what keeps it from being used again.
    let uses_before = sends_before.min(now.saturating_sub(longest_ttl).saturating_sub(MARGIN));
    let ended = now - ENDED;
    let mut rows = 0;
    rows += all(|| sms::purge_sends(db, tenant, sends_before)).await?;
    rows += all(|| sms::purge_uses(db, tenant, uses_before)).await?;
    rows += all(|| accounts::purge_sessions(db, tenant, ended, ended - longest_idle())).await?;
    rows += all(|| accounts::purge_sign_in_links(db, tenant, ended)).await?;
    Ok(rows)
}

/// Some at a time, until there are none; between two of them whoever else wants to write does.
async fn all<F: Future<Output = Result<u64, DbError>>>(some: impl Fn() -> F) -> Result<u64, DbError> {
    let mut rows = 0;
    loop {
        match some().await? {
            0 => return Ok(rows),
            deleted => rows += deleted,
        }
    }
}
