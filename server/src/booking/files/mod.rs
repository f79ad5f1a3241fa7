//! Order files: CSV and XLSX, taken whole or not at all.
//!
//! A file becomes rows (`table`, `csv`, `xlsx`), rows become orders (`columns`), orders are staged in the database in
//! small steps and looked at (`stage`), and what was staged is applied in one transaction (`apply`). `upload` is the way in
//! over HTTP, `command_line` the other one.

mod apply;
mod columns;
mod command_line;
mod csv;
mod fault;
mod guard;
mod stage;
mod store;
mod table;
mod upload;
mod xlsx;

use crate::app::App;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use command_line::{FileReport, import_file, keep_servers_away};
pub(crate) use upload::Arrivals;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(upload::upload_orders))
        .routes(routes!(upload::get_import, upload::apply_import))
}

/// Drops what crashed imports and previews that nobody applied have left in the database.
pub(crate) use store::drop_interrupted;
