//! `POST /open-api/guides`: make a guide, or give a known one another name.

use crate::accounts::store::{Rename, grant};
use crate::app::App;
use crate::db::transact;
use crate::http::error::{Answer, ApiResult};
use crate::http::extract::{Body, mobile, plain_text};
use crate::http::session::Machine;
use axum::extract::State;
use wire::Envelope;
use wire::api::{MachineGuide, PostGuide, Role};

/// Makes a guide; posted again, the name is changed.
#[utoipa::path(post, path = "/open-api/guides", tag = "machine", request_body = PostGuide,
    responses((status = 200, body = Envelope<MachineGuide>)))]
pub(crate) async fn post_guide(
    State(app): State<App>,
    machine: Machine,
    Body(request): Body<PostGuide>,
) -> ApiResult<MachineGuide> {
    let mobile = mobile(&request.mobile)?;
    let name = plain_text("name", &request.name, 64)?;
    transact(async || {
        let mut tx = app.db.begin().await?;
        let now = app.clock.now_ms();
        grant(&mut tx, machine.tenant, &mobile, Role::Guide, (&name, Rename::Always), now).await?;
        Ok(tx.commit().await?)
    })
    .await?;
    Ok(Answer(MachineGuide { name }))
}
