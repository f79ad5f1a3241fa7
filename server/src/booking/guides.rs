//! `POST /open-api/guides`: make a guide, or give a known one another name.

use crate::accounts::store::{Rename, grant};
use crate::app::App;
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Body, plain_text};
use crate::http::session::Machine;
use crate::text::Text;
use axum::extract::State;
use wire::api::{MachineGuide, PostGuide, Role};
use wire::{Envelope, Mobile};

/// Makes a guide; posted again, the name is changed.
#[utoipa::path(post, path = "/open-api/guides", tag = "machine", request_body = PostGuide,
    responses((status = 200, body = Envelope<MachineGuide>)))]
pub(crate) async fn post_guide(
    State(app): State<App>,
    machine: Machine,
    Body(request): Body<PostGuide>,
) -> ApiResult<MachineGuide> {
    let mobile = Mobile::parse(request.mobile.expose()).map_err(|_| ApiError::bad_field("mobile", Text::BadField))?;
    let name = plain_text("name", &request.name, 64)?;
    let mut tx = app.db.begin().await?;
    grant(&mut tx, machine.tenant, &mobile, Role::Guide, (&name, Rename::Always), app.clock.now_ms()).await?;
    tx.commit().await?;
    Ok(Answer(MachineGuide { name }))
}
