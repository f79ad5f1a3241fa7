//! Accounts and how their people sign in: sessions, passwords, one-time links.

pub mod create;
pub mod link;
mod me;
pub(crate) mod password;
pub(crate) mod session;
pub mod store;

use crate::app::App;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(password::login))
        .routes(routes!(link::sign_in_by_link))
        .routes(routes!(session::logout))
        .routes(routes!(me::me))
}
