//! `PUT /open-api/orders/{orderNo}`: create an order, or change it by the life of an order.

use super::store;
use crate::accounts::store::{Rename, grant};
use crate::app::App;
use crate::db::{DbError, transact};
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Body, PathPart, mobile, order_no, plain_text, task_no};
use crate::http::session::Machine;
use crate::redemption::store::insert_arrived_consumed;
use crate::text::Text;
use axum::extract::State;
use wire::api::{MachineOrder, OrderState, OrderStatus, PutOrder, Role};
use wire::{Envelope, Mobile, OrderNo, TaskNo, TenantId};

/// The last moment of the year 9999: later ones are typing errors.
pub(super) const LAST_MOMENT: i64 = 253_402_300_799_999;

/// More people than any venue admits at once.
const MAX_PARTY: i64 = 100_000;

/// An order as it shall be.
#[derive(Debug, Clone)]
pub(crate) struct NewOrder {
    pub(crate) order_no: OrderNo,
    pub(crate) mobile: Mobile,
    pub(crate) visitor_name: String,
    pub(crate) party_size: i64,
    pub(crate) visit_at: i64,
    pub(crate) status: OrderStatus,
    /// `None`: stays as it is; `Some(None)`: none.
    pub(crate) task_no: Option<Option<TaskNo>>,
}

/// Creates an order or changes it. The same status again is a no-op; an illegal step is 1409 with the status.
#[utoipa::path(put, path = "/open-api/orders/{orderNo}", tag = "machine", request_body = PutOrder,
    params(("orderNo" = String, Path, example = "BK202608010001", pattern = "^[0-9A-Za-z_-]{1,64}$", description = "the order's number")),
    responses((status = 200, body = Envelope<MachineOrder>)))]
pub(crate) async fn put_order(
    State(app): State<App>,
    machine: Machine,
    PathPart(number): PathPart,
    Body(request): Body<PutOrder>,
) -> ApiResult<MachineOrder> {
    let order = check_format(&number, request)?;
    let work = {
        let app = app.clone();
        async move { put(&app, machine.tenant, &order).await }
    };
    app.see_through(work).await.map(Answer)
}

/// How many people, if any venue admits as many.
pub(super) fn party_size(people: i64) -> Option<i64> {
    Some(people).filter(|n| (1..=MAX_PARTY).contains(n))
}

/// A time (Unix ms), if it is no typing error.
pub(super) fn visit_at(time: i64) -> Option<i64> {
    Some(time).filter(|t| (0..=LAST_MOMENT).contains(t))
}

/// The name that an order is booked for.
pub(super) fn visitor_name(name: &str) -> Result<String, ApiError> {
    plain_text("visitorName", name, 64)
}

fn check_format(number: &str, request: PutOrder) -> Result<NewOrder, ApiError> {
    let bad = |field| ApiError::bad_field(field, Text::BadField);
    Ok(NewOrder {
        order_no: order_no("orderNo", number)?,
        mobile: mobile(&request.mobile)?,
        visitor_name: visitor_name(&request.visitor_name)?,
        party_size: party_size(request.party_size).ok_or_else(|| bad("partySize"))?,
        visit_at: visit_at(request.visit_at).ok_or_else(|| bad("visitAt"))?,
        status: request.status,
        task_no: request.task_no.map(|no| no.as_deref().map(|no| task_no("taskNo", no)).transpose()).transpose()?,
    })
}

/// Creates or changes, in one transaction; then deletes the verify code where the order left `paid` or changed its owner.
pub(crate) async fn put(app: &App, tenant: TenantId, order: &NewOrder) -> Result<MachineOrder, ApiError> {
    let id = transact(|| put_once(app, tenant, order)).await??;
    tracing::info!(order.id = id, status = order.status.as_str(), "an order was put");
    let task_no = store::task_no_of_order(&app.db, tenant, id).await?;
    Ok(MachineOrder { order_no: order.order_no.clone(), status: order.status, task_no })
}

/// The outer error is the database's, the inner one the caller's.
async fn put_once(app: &App, tenant: TenantId, order: &NewOrder) -> Result<Result<i64, ApiError>, DbError> {
    let mut tx = app.db.begin().await?;
    let now = app.clock.now_ms();
    let named_task = match &order.task_no {
        Some(Some(no)) => match store::task_id(&mut tx, tenant, no).await? {
            Some(id) => Some(Some(id)),
            None => return Ok(Err(ApiError::bad_field("taskNo", Text::TaskUnknown))),
        },
        Some(None) => Some(None),
        None => None,
    };
    let visitor =
        grant(&mut tx, tenant, &order.mobile, Role::Visitor, (&order.visitor_name, Rename::IfNew), now).await?;
    let values = store::OrderValues { order, visitor, now };

    let Some(old) = store::order_to_change(&app.db, &mut tx, tenant, &order.order_no).await? else {
        let id = store::insert_order(&mut tx, tenant, &values, named_task.flatten()).await?;
        if order.status == OrderStatus::Consumed {
            // The moment of the insert: the feed goes by it.
            insert_arrived_consumed(&mut tx, tenant, id, app.clock.now_ms()).await?;
        }
        tx.commit().await?;
        return Ok(Ok(id));
    };
    let key = app.code_key(tenant, old.id);
    let changes_hands = old.visitor != visitor;
    // A code from before would redeem the order as it is from now on: one in the old owner's hands, or one that could not be
    // deleted when the order left `paid`. Without the code store nothing is changed.
    if order.status == OrderStatus::Paid
        && (changes_hands || old.status != OrderStatus::Paid)
        && let Err(away) = app.codes.delete(&key).await
    {
        return Ok(Err(away.into()));
    }
    let legal = old.status == order.status || old.status.may_become(order.status);
    let task_id = named_task.unwrap_or(old.task_id);
    // Conditional on the status all the same: whoever redeems in between wins.
    if !legal || !store::update_order(&mut tx, tenant, &values, &old, task_id).await? {
        let state = OrderState { status: old.status, consumed_at: old.consumed_at, consumed_by: None, device: None };
        return Ok(Err(ApiError::conflict(Text::IllegalChange).with(state)));
    }
    let committed = tx.commit().await;
    let left_paid = old.status == OrderStatus::Paid && order.status != OrderStatus::Paid;
    // Once more where it changed hands: until the commit the old owner could ask for another.
    if (left_paid || changes_hands)
        && let Err(error) = app.codes.delete(&key).await
    {
        tracing::warn!(order.id = old.id, %error, "a verify code could not be deleted; it runs out by itself");
    }
    // A commit that failed may have happened all the same, so the code went either way.
    committed?;
    Ok(Ok(old.id))
}
