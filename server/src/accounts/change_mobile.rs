//! `POST /api/auth/change-mobile`: another number, shown by a code to the new one and a code to the old one.

use super::session::Session;
use super::store;
use crate::app::App;
use crate::db::{DbError, transact};
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Body, ClientAddress, mobile, sms_code};
use crate::sms::channel::Recipient;
use crate::sms::verify::{Typed, check, check_confirmation};
use crate::text::Text;
use axum::extract::State;
use std::time::Duration;
use wire::accounts::ChangeMobileRequest;
use wire::{Envelope, ErrorCode};

/// How long the right code of the old number need not be asked for again while that of the new one is corrected.
const WHILE_CORRECTED: Duration = Duration::from_secs(300);

/// Changes the number of the caller's account, and ends its other sessions.
#[utoipa::path(post, path = "/api/auth/change-mobile", tag = "accounts", request_body = ChangeMobileRequest,
    responses((status = 200, body = Envelope<bool>)))]
pub(crate) async fn change_mobile(
    State(app): State<App>,
    session: Session,
    ClientAddress(address): ClientAddress,
    Body(request): Body<ChangeMobileRequest>,
) -> ApiResult<bool> {
    let mobile = mobile(&request.mobile)?;
    let code = sms_code("code", &request.code)?;
    let old_code = sms_code("oldCode", &request.old_code)?;
    let work = app.clone();
    app.see_through(async move {
        let tenant = session.tenant;
        let old = check_confirmation(&work, &session, &old_code, address, WHILE_CORRECTED).await?;
        let to = Recipient::Mobile(mobile.clone());
        let scene = "change_mobile";
        let new = check(&work, &Typed { tenant, to: &to, scene, code: &code, request_id: None, address }).await?;
        let changed = transact(async || {
            let mut tx = work.db.begin().await?;
            if !(old.record(&work, &mut tx).await? && new.record(&work, &mut tx).await?) {
                return Ok(Err(ErrorCode::SmsCodeExpired.into()));
            }
            match store::set_mobile(&mut tx, tenant, session.account_id, &mobile).await {
                Ok(()) => {}
                Err(DbError::Duplicate) => return Ok(Err(ApiError::conflict(Text::MobileTaken))),
                Err(error) => return Err(error),
            }
            // One that was ended since it asked must change nothing any more.
            if !store::end_other_sessions(&mut tx, tenant, session.account_id, session.token_hash()).await? {
                return Ok(Err(ApiError::unauthenticated(Text::NotSignedIn)));
            }
            let orders = store::paid_orders(&mut tx, tenant, session.account_id).await?;
            tx.commit().await?;
            Ok(Ok(orders))
        });
        // Who had the old phone may have seen codes of these orders: new ones are made when they are asked for.
        for order in changed.await?? {
            let key = work.code_key(tenant, order);
            if let Err(error) = work.codes.delete(&key).await {
                tracing::warn!(order.id = order, %error, "a code could not be deleted; it runs out by itself");
            }
        }
        tracing::info!(account.id = session.account_id, "a mobile number was changed");
        Ok(Answer(true))
    })
    .await
}
