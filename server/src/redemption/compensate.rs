//! Compensation and reversal: an admin's two ways around a code, each confirmed by an SMS code to the admin's own number.

use super::store::{self, ConfirmedRow, Operator, OrderRow, RefusalRow};
use crate::accounts::session::Session;
use crate::app::App;
use crate::config::WebHookEvent;
use crate::db::{DbError, transact};
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Body, ClientAddress, PathPart, order_no, plain_text, sms_code};
use crate::http::session::Admin;
use crate::sms::verify::{Used, check_confirmation};
use crate::text::Text;
use crate::web_hooks::OrderEvent;
use axum::extract::State;
use std::net::IpAddr;
use std::time::Duration;
use wire::api::{ConfirmedRequest, MachineOrder, OrderStatus};
use wire::{Envelope, ErrorCode, OrderNo, SmsCode, TaskNo};

/// Redeems without a verify code: for a broken phone at the gate.
#[utoipa::path(post, path = "/admin-api/team/booking-order/{orderNo}/compensate", tag = "admin", request_body = ConfirmedRequest,
    params(("orderNo" = String, Path, example = "BK202608010001", pattern = "^[0-9A-Za-z_-]{1,64}$", description = "the order's number")),
    responses((status = 200, body = Envelope<MachineOrder>)))]
pub(crate) async fn compensate(
    State(app): State<App>,
    Admin(session): Admin,
    address: ClientAddress,
    PathPart(number): PathPart,
    Body(request): Body<ConfirmedRequest>,
) -> ApiResult<MachineOrder> {
    confirmed(app, session, address, &number, request, Step::Compensate).await
}

/// Takes a redemption back: `consumed -> paid`.
#[utoipa::path(post, path = "/admin-api/team/booking-order/{orderNo}/reverse", tag = "admin", request_body = ConfirmedRequest,
    params(("orderNo" = String, Path, example = "BK202608010001", pattern = "^[0-9A-Za-z_-]{1,64}$", description = "the order's number")),
    responses((status = 200, body = Envelope<MachineOrder>)))]
pub(crate) async fn reverse(
    State(app): State<App>,
    Admin(session): Admin,
    address: ClientAddress,
    PathPart(number): PathPart,
    Body(request): Body<ConfirmedRequest>,
) -> ApiResult<MachineOrder> {
    confirmed(app, session, address, &number, request, Step::Reverse).await
}

/// What is done to the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Compensate,
    Reverse,
}

impl Step {
    /// The status that it leads from and to.
    const fn way(self) -> (OrderStatus, OrderStatus) {
        match self {
            Self::Compensate => (OrderStatus::Paid, OrderStatus::Consumed),
            Self::Reverse => (OrderStatus::Consumed, OrderStatus::Paid),
        }
    }
}

/// Order of checks: session and role; format; the order within the tenant: 2001; its status; the SMS code; then one
/// transaction with the use of the code, the conditional update and its audit row. So that no code is used up for an order
/// that is not there or stands elsewhere.
async fn confirmed(
    app: App,
    session: Session,
    ClientAddress(address): ClientAddress,
    number: &str,
    request: ConfirmedRequest,
    step: Step,
) -> ApiResult<MachineOrder> {
    let order_no = order_no("orderNo", number)?;
    let reason = plain_text("reason", &request.reason, 200)?;
    let code = sms_code("code", &request.code)?;
    let operator = Operator::admin(&session);
    let order = store::order_in_reach(&app.db, &operator, &order_no).await?;
    let order = order.ok_or(ErrorCode::BookingOrderNotExists)?;
    let work = app.clone();
    app.see_through(async move {
        let client = address.map(|address| address.to_string());
        let attempt = Confirmed { app: &work, operator, order_no, order, reason, address: client, step };
        let result = attempt.run(&session, &code, address).await;
        if let Err(refusal) = &result {
            attempt.note_refusal(refusal.code()).await;
        }
        result.map(Answer)
    })
    .await
}

/// Where the order stands instead: 2002 for a compensation, 1409 for a reversal.
async fn wrong_status(app: &App, operator: &Operator, order_id: i64, step: Step) -> Result<ApiError, DbError> {
    let state = store::order_state(&app.db, operator.tenant, order_id).await?;
    Ok(match step {
        Step::Compensate => ApiError::not_paid(state),
        Step::Reverse => ApiError::conflict(Text::IllegalChange).with(state),
    })
}

struct Confirmed<'a> {
    app: &'a App,
    operator: Operator,
    order_no: OrderNo,
    order: OrderRow,
    reason: String,
    address: Option<String>,
    step: Step,
}

enum Done {
    Yes,
    /// The SMS code was used before.
    CodeUsed,
    /// Somebody else was first.
    OtherStatus,
}

impl Confirmed<'_> {
    async fn run(&self, session: &Session, code: &SmsCode, address: Option<IpAddr>) -> Result<MachineOrder, ApiError> {
        let Self { app, operator, order, step, .. } = self;
        if order.status != step.way().0 {
            return Err(wrong_status(app, operator, order.id, *step).await?);
        }
        let used = check_confirmation(app, session, code, address, Duration::ZERO).await?;
        match transact(|| self.commit(&used)).await? {
            Done::Yes => Ok(self.finish().await),
            Done::CodeUsed => Err(ErrorCode::SmsCodeExpired.into()),
            Done::OtherStatus => Err(wrong_status(app, operator, order.id, *step).await?),
        }
    }

    /// Writes the refusal into the audit. Should that fail, the refusal stands all the same.
    async fn note_refusal(&self, result: ErrorCode) {
        let Self { app, operator, order, .. } = self;
        let (order_id, status, address) = (order.id, order.status, self.address.as_deref());
        let row = RefusalRow { operator, order_id, request_id: None, entry: None, address, status, result };
        if let Err(error) = transact(|| store::insert_refusal(&app.db, &*app.clock, &row)).await {
            tracing::error!(order.id = order_id, %error, "a refusal could not be written into the audit");
        }
    }

    async fn commit(&self, used: &Used) -> Result<Done, DbError> {
        let Self { app, operator, order, .. } = self;
        let mut tx = app.db.begin().await?;
        let now = app.clock.now_ms();
        let changed = match self.step {
            Step::Compensate => store::mark_consumed(&mut tx, operator.tenant, order.id, now).await?,
            Step::Reverse => store::mark_reversed(&mut tx, operator.tenant, order.id, now).await?,
        };
        if !changed {
            return Ok(Done::OtherStatus);
        }
        if !used.record(app, &mut tx).await? {
            return Ok(Done::CodeUsed);
        }
        let (before, after) = self.step.way();
        let row = ConfirmedRow {
            operator,
            order_id: order.id,
            address: self.address.as_deref(),
            reason: &self.reason,
            before,
            after,
            // The update may have waited for another's lock; the feed wants the moment of the insert.
            at: app.clock.now_ms(),
        };
        match store::insert_confirmed(&mut tx, &row).await {
            Ok(()) => {}
            // The unique key has the last word, should the update ever let two through.
            Err(DbError::Duplicate) => return Ok(Done::OtherStatus),
            Err(error) => return Err(error),
        }
        app.web_hooks.write(&mut tx, &self.event(now)).await?;
        tx.commit().await?;
        app.web_hooks.wake(operator.tenant);
        let (order, operator, after) = (order.id, operator.account_id, after.as_str());
        tracing::info!(order.id = order, operator.id = operator, status = after, "an admin's confirmed change");
        Ok(Done::Yes)
    }

    fn event(&self, at: i64) -> OrderEvent<'_> {
        let Self { operator, order, .. } = self;
        OrderEvent {
            kind: match self.step {
                Step::Compensate => WebHookEvent::OrderConsumed,
                Step::Reverse => WebHookEvent::OrderReversed,
            },
            tenant: operator.tenant,
            order_id: order.id,
            order_no: self.order_no.as_str(),
            request_id: None,
            operator_id: operator.account_id,
            operator_type: operator.type_word(),
            entry: None,
            party_size: order.party_size,
            visit_at: order.visit_at,
            task_no: order.task_no.as_ref().map(TaskNo::as_str),
            at,
        }
    }

    /// A verify code that is still alive belongs to what the order was before.
    async fn finish(&self) -> MachineOrder {
        let key = self.app.code_key(self.operator.tenant, self.order.id);
        if let Err(error) = self.app.codes.delete(&key).await {
            tracing::warn!(order.id = self.order.id, %error, "a code could not be deleted; it runs out by itself");
        }
        MachineOrder { order_no: self.order_no.clone(), status: self.step.way().1, task_no: self.order.task_no.clone() }
    }
}
