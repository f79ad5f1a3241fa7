//! `GET /admin-api/orders.csv`: orders as a file that spreadsheets show and that can be imported again.

use super::store::{self, FiledOrder, OrderFilter};
use super::tasks::{date_of, day_of};
use crate::app::App;
use crate::db::DbError;
use crate::export::{self, CSV, Cell, Part, csv_header, csv_line};
use crate::http::error::ApiError;
use crate::http::extract::{Query, task_no};
use crate::http::session::Admin;
use crate::text::Text;
use axum::extract::State;
use axum::response::Response;
use wire::api::OrderStatus;
use wire::{TaskNo, TenantId};

/// The columns of order files.
const HEADER: &str = "orderNo,mobile,visitorName,partySize,visitAt,status,taskNo";

/// Orders that are read at once.
const PART: i64 = 500;

/// The tenant's orders as a CSV file for spreadsheets and for import: a byte-order mark, times in the venue's zone,
/// whole mobile numbers.
#[utoipa::path(get, path = "/admin-api/orders.csv", tag = "admin",
    params(
        ("date" = Option<String>, Query, description = "for this day, YYYY-MM-DD, in the venue's zone"),
        ("taskNo" = Option<String>, Query, description = "of this task"),
        ("status" = Option<OrderStatus>, Query, description = "in this status"),
    ),
    responses((status = 200, body = String, content_type = "text/csv")))]
pub(crate) async fn export_orders(
    State(app): State<App>,
    Admin(session): Admin,
    query: Query,
) -> Result<Response, ApiError> {
    let status = |word| OrderStatus::parse(word).ok_or_else(|| ApiError::bad_field("status", Text::BadField));
    let filter = OrderFilter {
        visit: date_of(&query)?.map(|date| day_of(&app, Some(date))).transpose()?,
        task_no: query.optional("taskNo")?.map(|no| task_no("taskNo", no)).transpose()?,
        status: query.optional("status")?.map(status).transpose()?,
    };
    let tenant = session.tenant;
    let (text, next) = lines(&app, tenant, &filter, 0).await?;
    // Whole numbers leave the house: the log says who took them.
    tracing::info!(tenant.id = tenant.0, operator.id = session.account_id, "orders are exported");
    Ok(export::send(("orders.csv", CSV), (csv_header(HEADER) + &text, next), move |after| {
        let (app, filter) = (app.clone(), filter.clone());
        async move { lines(&app, tenant, &filter, after).await }
    }))
}

async fn lines(app: &App, tenant: TenantId, filter: &OrderFilter, after: i64) -> Result<Part<i64>, DbError> {
    let orders = store::orders_after(&app.db, tenant, filter, after, PART).await?;
    let full = i64::try_from(orders.len()).is_ok_and(|n| n == PART);
    let next = orders.last().filter(|_| full).map(|last| last.id);
    Ok((orders.into_iter().map(|order| line(app, order)).collect(), next))
}

fn line(app: &App, order: FiledOrder) -> String {
    csv_line(
        &app.zone,
        &[
            Cell::text(order.order_no.as_str()),
            Cell::maybe(order.mobile.as_ref().map(|mobile| mobile.expose())),
            Cell::text(order.visitor_name),
            Cell::Number(order.party_size),
            Cell::Time(Some(order.visit_at), "%Y-%m-%d %H:%M"),
            Cell::text(order.status.as_str()),
            Cell::maybe(order.task_no.as_ref().map(TaskNo::as_str)),
        ],
    )
}
