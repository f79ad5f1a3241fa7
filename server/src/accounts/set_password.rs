//! `POST /api/auth/reset-password` and `POST /api/auth/password`: passwords of visitors and guides.

use super::session::Session;
use super::{password, store};
use crate::app::App;
use crate::db::transact;
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Body, ClientAddress, mobile, sms_code};
use crate::http::session::NamedTenant;
use crate::sms::channel::Recipient;
use crate::sms::verify::{Typed, check};
use crate::text::Text;
use axum::extract::State;
use wire::accounts::{ResetPasswordRequest, SetPasswordRequest};
use wire::api::Role;
use wire::{Envelope, ErrorCode, Secret};

/// Sets a new password by a code of the scene `reset_password`, and ends every session of the account. Not for admins:
/// whoever holds a phone must not become one.
#[utoipa::path(post, path = "/api/auth/reset-password", tag = "accounts", request_body = ResetPasswordRequest,
    responses((status = 200, body = Envelope<bool>)))]
pub(crate) async fn reset_password(
    State(app): State<App>,
    NamedTenant(tenant): NamedTenant,
    ClientAddress(address): ClientAddress,
    Body(request): Body<ResetPasswordRequest>,
) -> ApiResult<bool> {
    let mobile = mobile(&request.mobile)?;
    let code = sms_code("code", &request.code)?;
    // Before the code is used up.
    fits(&request.new_password)?;
    let work = app.clone();
    app.see_through(async move {
        let to = Recipient::Mobile(mobile.clone());
        let scene = "reset_password";
        let used = check(&work, &Typed { tenant, to: &to, scene, code: &code, request_id: None, address }).await?;
        // After it: a hash is dear, and a right code is a rare thing.
        let hash = password::hash_for_request(&work, &request.new_password).await?;
        let done: Result<i64, ApiError> = transact(async || {
            let mut tx = work.db.begin().await?;
            if !used.record(&work, &mut tx).await? {
                return Ok(Err(ErrorCode::SmsCodeExpired.into()));
            }
            let account = store::account_in(&work.db, &mut tx, tenant, &mobile).await?;
            let done = match account {
                None => Err(ApiError::forbidden_because(Text::NoAccount, "no_account")),
                Some(account) if account.roles.contains(&Role::Admin) => Err(ApiError::forbidden(Text::AdminPassword)),
                Some(account) => {
                    store::set_password(&mut tx, tenant, account.id, &hash).await?;
                    store::end_sessions(&mut tx, tenant, account.id).await?;
                    Ok(account.id)
                }
            };
            // The code is used up either way.
            tx.commit().await?;
            Ok(done)
        })
        .await?;
        // Not within the macro: it evaluates nothing where nobody listens.
        let account = done?;
        tracing::info!(account.id = account, "a password was reset");
        Ok(Answer(true))
    })
    .await
}

/// Sets the caller's own password, and ends the account's other sessions.
#[utoipa::path(post, path = "/api/auth/password", tag = "accounts", request_body = SetPasswordRequest,
    responses((status = 200, body = Envelope<bool>)))]
pub(crate) async fn set_password(
    State(app): State<App>,
    session: Session,
    Body(request): Body<SetPasswordRequest>,
) -> ApiResult<bool> {
    if session.roles.contains(&Role::Admin) {
        return Err(ApiError::forbidden(Text::AdminPassword));
    }
    fits(&request.new_password)?;
    let hash = password::hash_for_request(&app, &request.new_password).await?;
    let set = transact(async || {
        let mut tx = app.db.begin().await?;
        store::set_password(&mut tx, session.tenant, session.account_id, &hash).await?;
        // Hashing takes its time: a session that was ended meanwhile must change nothing any more.
        if !store::end_other_sessions(&mut tx, session.tenant, session.account_id, session.token_hash()).await? {
            return Ok(false);
        }
        tx.commit().await?;
        Ok(true)
    });
    if !set.await? {
        return Err(ApiError::unauthenticated(Text::NotSignedIn));
    }
    tracing::info!(account.id = session.account_id, "a password was set");
    Ok(Answer(true))
}

fn fits(password: &Secret) -> Result<(), ApiError> {
    if password::fits(password) { Ok(()) } else { Err(ApiError::bad_field("newPassword", Text::PasswordIllFormed)) }
}
