//! `/open-api/sms`: codes for other systems of the house, with scenes of their own.

use super::channel::Recipient;
use super::number::email;
use super::send::{Asked, Sending, allowed_mobile};
use super::verify::{Typed, check};
use crate::app::App;
use crate::config::SCENES;
use crate::db::transact;
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Body, request_id, sms_code};
use crate::http::session::Machine;
use crate::text::Text;
use axum::extract::State;
use wire::accounts::{MachineSmsSend, MachineSmsVerified, MachineSmsVerify, SmsSent};
use wire::{Envelope, ErrorCode, Secret};

/// Sends a code of one of the settings' scenes. The number's limits and the tenant's hold; a machine has no address's.
#[utoipa::path(post, path = "/open-api/sms/send", tag = "machine", request_body = MachineSmsSend,
    responses((status = 200, body = Envelope<SmsSent>)))]
pub(crate) async fn send(
    State(app): State<App>,
    machine: Machine,
    Body(request): Body<MachineSmsSend>,
) -> ApiResult<SmsSent> {
    let to = recipient(&app, request.mobile.as_ref(), request.email.as_ref())?;
    refuse_own_scenes(&request.scene)?;
    let asked = Asked { tenant: machine.tenant, to };
    let sending = Sending::new(&app, asked, request.scene, request.via.unwrap_or_default(), None).await?;
    app.see_through(async move { sending.run().await }).await.map(Answer)
}

/// Checks a code, and uses it up where it is right.
#[utoipa::path(post, path = "/open-api/sms/verify", tag = "machine", request_body = MachineSmsVerify,
    responses((status = 200, body = Envelope<MachineSmsVerified>)))]
pub(crate) async fn verify(
    State(app): State<App>,
    machine: Machine,
    Body(request): Body<MachineSmsVerify>,
) -> ApiResult<MachineSmsVerified> {
    let to = recipient(&app, request.mobile.as_ref(), request.email.as_ref())?;
    refuse_own_scenes(&request.scene)?;
    let code = sms_code("code", &request.code)?;
    let request_id = request_id(request.request_id.as_deref())?;
    let work = app.clone();
    app.see_through(async move {
        let (tenant, scene) = (machine.tenant, request.scene.as_str());
        let typed = Typed { tenant, to: &to, scene, code: &code, request_id: request_id.as_ref(), address: None };
        let used = check(&work, &typed).await?;
        let first = transact(async || {
            let mut tx = work.db.begin().await?;
            let first = used.record(&work, &mut tx).await?;
            tx.commit().await?;
            Ok(first)
        });
        if first.await? {
            Ok(Answer(MachineSmsVerified { verified: true }))
        } else {
            Err(ErrorCode::SmsCodeExpired.into())
        }
    })
    .await
}

fn recipient(app: &App, mobile: Option<&Secret>, address: Option<&Secret>) -> Result<Recipient, ApiError> {
    match (mobile, address) {
        (Some(mobile), None) => allowed_mobile(app, mobile),
        (None, Some(address)) => {
            email(address.expose()).ok_or_else(|| ApiError::bad_field("email", Text::EmailIllFormed))
        }
        // Neither, or both: nobody can say which one is meant.
        _ => Err(ApiError::bad_field("mobile", Text::BadField)),
    }
}

/// Codes that open accounts of ours are none of another system's business.
fn refuse_own_scenes(scene: &str) -> Result<(), ApiError> {
    if SCENES.contains(&scene) { Err(ErrorCode::SmsSceneInvalid.into()) } else { Ok(()) }
}
