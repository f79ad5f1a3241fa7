//! SMS codes: who may be sent one, how it gets to a phone, and the check of what was typed.

mod captcha;
mod cause;
pub(crate) mod channel;
mod machine;
mod number;
pub(crate) mod receipts;
pub(crate) mod reconcile;
mod send;
pub(crate) mod store;
pub mod trace;
pub mod trial;
pub(crate) mod verify;
pub(crate) mod watch;

use crate::app::App;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(send::send))
        .routes(routes!(captcha::challenge))
        .routes(routes!(machine::send))
        .routes(routes!(machine::verify))
}
