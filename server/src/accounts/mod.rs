//! Accounts and how their people sign in: SMS codes, passwords, one-time links, sessions.

mod change_mobile;
pub mod create;
pub mod link;
mod me;
pub(crate) mod password;
pub(crate) mod session;
mod set_password;
mod sms_login;
pub mod store;

use crate::app::App;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(password::login))
        .routes(routes!(sms_login::sms_login))
        .routes(routes!(sms_login::register))
        .routes(routes!(set_password::reset_password))
        .routes(routes!(set_password::set_password))
        .routes(routes!(change_mobile::change_mobile))
        .routes(routes!(link::sign_in_by_link))
        .routes(routes!(session::logout))
        .routes(routes!(me::me))
}
