//! Where bookings come from and how people see them: orders, tasks, the machine interface.

mod export;
pub mod files;
mod guides;
mod orders;
mod own_orders;
pub(crate) mod store;
mod tasks;

use crate::app::App;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use files::routes as file_routes;
pub(crate) use orders::{NewOrder, put as put_order};
pub(crate) use store::masked;
pub(crate) use tasks::{NewTask, day_of, own_task, put as put_task};

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(own_orders::own_orders))
        .routes(routes!(tasks::task_list))
        .routes(routes!(tasks::task_orders))
        .routes(routes!(tasks::put_task))
        .routes(routes!(orders::put_order))
        .routes(routes!(guides::post_guide))
        .routes(routes!(export::export_orders))
}
