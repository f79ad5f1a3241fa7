//! `POST …/consume`: redeem an order with the code that its holder shows. Every guard, in order.

use super::caller::Caller;
use super::store::{self, Operator, OrderRow};
use crate::app::App;
use crate::codes::{CodeKey, OrderCodes, Verdict};
use crate::config::WebHookEvent;
use crate::db::{DbError, transact};
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Body, ClientAddress, order_no, request_id, verify_code};
use crate::http::session::{Admin, Guide};
use crate::text::Text;
use crate::web_hooks::OrderEvent;
use axum::extract::State;
use subtle::ConstantTimeEq;
use wire::api::{ConsumeRequest, Consumed, OrderStatus};
use wire::{Envelope, ErrorCode, OrderNo, RequestId, TaskNo, VerifyCode};

/// A guide redeems an order of their tasks.
#[utoipa::path(post, path = "/app-api/team/guide-task/booking/consume", tag = "guide", request_body = ConsumeRequest,
    responses((status = 200, body = Envelope<Consumed>)))]
pub(crate) async fn consume_as_guide(
    State(app): State<App>,
    Guide(session): Guide,
    address: ClientAddress,
    Body(request): Body<ConsumeRequest>,
) -> ApiResult<Consumed> {
    consume(app, Operator::guide(&session), address, request).await
}

/// An admin redeems any order of the tenant.
#[utoipa::path(post, path = "/admin-api/team/booking-order/booking/consume", tag = "admin", request_body = ConsumeRequest,
    responses((status = 200, body = Envelope<Consumed>)))]
pub(crate) async fn consume_as_admin(
    State(app): State<App>,
    Admin(session): Admin,
    address: ClientAddress,
    Body(request): Body<ConsumeRequest>,
) -> ApiResult<Consumed> {
    consume(app, Operator::admin(&session), address, request).await
}

async fn consume(
    app: App,
    operator: Operator,
    ClientAddress(address): ClientAddress,
    request: ConsumeRequest,
) -> ApiResult<Consumed> {
    let verify_code = verify_code(&request.verify_code)?;
    let request_id = request_id(request.request_id.as_deref())?;
    let order_no = order_no("orderNo", &request.order_no)?;
    let entry = request.entry.unwrap_or_default();
    let caller = Caller::new(app.clone(), operator, address, request_id, entry).await?;
    let work = async move { Attempt { caller: &caller, order_no, verify_code: &verify_code }.redeem().await };
    app.see_through(work).await.map(Answer)
}

/// One attempt of one operator.
pub(super) struct Attempt<'a> {
    pub(super) caller: &'a Caller,
    pub(super) order_no: OrderNo,
    pub(super) verify_code: &'a VerifyCode,
}

impl Attempt<'_> {
    /// Redeems, or says why not. The order of checks is the contract's; each has its own answer:
    ///
    /// 1. session and role, 2. format: done before this;
    /// 3. replay by `requestId`: the first success comes back, nothing changes;
    /// 4. frozen operator: 2007;
    /// 5. operator's and address's limit: 2005;
    /// 6. order within the tenant and the caller's tasks: 2001, before the code, so that nobody probes others' orders;
    /// 7. status: 2002;
    /// 8. the order's lock: 2005;
    /// 9. verify code: 2004 without the store, 2003 where it is absent, wrong or expired;
    /// 10. conditional update and audit row in one transaction: no row changed is a replay or 2002;
    /// 11. deletion of the code, which can fail and changes nothing.
    async fn redeem(&self) -> Result<Consumed, ApiError> {
        if let Some(replay) = self.replay().await? {
            return Ok(replay);
        }
        let limits = &self.caller.limits;
        let result = match limits.refuse_frozen().await {
            Ok(()) => limits.within(self.redeem_within_limits()).await,
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = &result
            && matches!(refusal.code(), ErrorCode::OperatorFrozen | ErrorCode::ConsumeTooFrequent)
        {
            let order = store::order_in_reach(&self.caller.app.db, &self.caller.operator, &self.order_no).await;
            self.caller.note_limit(order.ok().flatten().map(|order| order.id), refusal.code()).await;
        }
        result
    }

    async fn redeem_within_limits(&self) -> Result<Consumed, ApiError> {
        let Caller { app, operator, limits, .. } = self.caller;
        let Some(order) = store::order_in_reach(&app.db, operator, &self.order_no).await? else {
            limits.count_failure(false).await;
            return Err(ErrorCode::BookingOrderNotExists.into());
        };
        if order.status != OrderStatus::Paid {
            return self.explain_not_paid(&order).await;
        }
        let result = self.redeem_paid(&order).await;
        if let Err(refusal) = &result
            && refusal.code() == ErrorCode::VerifyCodeUnavailable
        {
            self.caller.note_refusal(order.id, order.status, refusal.code()).await;
        }
        result
    }

    async fn redeem_paid(&self, order: &OrderRow) -> Result<Consumed, ApiError> {
        let Caller { app, operator, limits, .. } = self.caller;
        let rules = &limits.rules;
        let key = app.code_key(operator.tenant, order.id);
        let codes = limits.ask(app.codes.look(&key, rules.grace > 0, rules.lock())).await?;
        if let Some(left) = codes.locked {
            return Err(ApiError::retry_after(ErrorCode::ConsumeTooFrequent, left));
        }
        let right = is_alive(&codes, self.verify_code);
        if !right {
            // The winner of a race has deleted the code: who comes second is told so, and it counts as no failure.
            let (status, _) = store::status(&app.db, operator.tenant, order.id).await?;
            if status != OrderStatus::Paid {
                return self.explain_not_paid(order).await;
            }
        }
        self.settle(&key, right).await?;
        if !right {
            self.caller.note_refusal(order.id, OrderStatus::Paid, ErrorCode::VerifyCodeInvalid).await;
            limits.count_failure(true).await;
            return Err(ErrorCode::VerifyCodeInvalid.into());
        }
        self.finish(order, &key).await
    }

    /// 2005 where the order is locked by now: however many codes were compared at once, no more than the rule's are answered.
    pub(super) async fn settle(&self, key: &CodeKey, right: bool) -> Result<(), ApiError> {
        let Caller { app, limits, .. } = self.caller;
        match limits.ask(app.codes.settle(key, &limits.attempt, right, limits.rules.lock())).await? {
            Verdict::Open => Ok(()),
            Verdict::Locked(left) => Err(ApiError::retry_after(ErrorCode::ConsumeTooFrequent, left)),
        }
    }

    /// The code was right: commits, and deletes it.
    pub(super) async fn finish(&self, order: &OrderRow, key: &CodeKey) -> Result<Consumed, ApiError> {
        match transact(|| self.commit(order)).await? {
            Some(consumed) => {
                self.delete_code(key, order).await;
                Ok(consumed)
            }
            None => self.explain_not_paid(order).await,
        }
    }

    /// The success that this request id had; 1409 where the id belongs to another order or to a redemption since reversed.
    async fn replay(&self) -> Result<Option<Consumed>, ApiError> {
        let Some(claim) = self.caller.claim().await? else { return Ok(None) };
        if claim.standing && claim.consumed.order_no == self.order_no {
            return Ok(Some(claim.consumed));
        }
        let Caller { app, operator, .. } = self.caller;
        if let Some(order) = store::order_in_reach(&app.db, operator, &self.order_no).await? {
            self.caller.note_refusal(order.id, order.status, ErrorCode::Conflict).await;
        }
        Err(ApiError::conflict(Text::RequestIdTaken))
    }

    /// The final word: one conditional update and its audit row in one transaction. `None` where somebody else was first.
    async fn commit(&self, order: &OrderRow) -> Result<Option<Consumed>, DbError> {
        let Caller { app, operator, .. } = self.caller;
        let mut tx = app.db.begin().await?;
        let now = app.clock.now_ms();
        if !store::mark_consumed(&mut tx, operator.tenant, order.id, now).await? {
            return Ok(None);
        }
        let row = store::SuccessRow {
            operator,
            order_id: order.id,
            request_id: self.caller.request_id.as_ref(),
            entry: self.caller.entry,
            address: self.caller.address.as_deref(),
            // The update may have waited for another's lock; the feed wants the moment of the insert.
            at: app.clock.now_ms(),
        };
        match store::insert_success(&mut tx, &row).await {
            Ok(()) => {}
            // The unique key has the last word, should the update ever let two through; the same for a request id.
            Err(DbError::Duplicate) => return Ok(None),
            Err(error) => return Err(error),
        }
        app.web_hooks.write(&mut tx, &self.event(order, now)).await?;
        // A commit that fails may have happened all the same: 1503, and the request id finds out.
        tx.commit().await?;
        app.web_hooks.wake(operator.tenant);
        tracing::info!(order.id = order.id, operator.id = operator.account_id, "redeemed");
        Ok(Some(Consumed {
            order_no: self.order_no.clone(),
            status: OrderStatus::Consumed,
            consumed_at: now,
            visitor_name: order.visitor_name.clone(),
            party_size: order.party_size,
            visit_at: order.visit_at,
            task_no: order.task_no.clone(),
            replayed: false,
        }))
    }

    fn event<'a>(&'a self, order: &'a OrderRow, now: i64) -> OrderEvent<'a> {
        let Caller { operator, request_id, entry, .. } = self.caller;
        OrderEvent {
            kind: WebHookEvent::OrderConsumed,
            tenant: operator.tenant,
            order_id: order.id,
            order_no: self.order_no.as_str(),
            request_id: request_id.as_ref().map(RequestId::as_str),
            operator_id: operator.account_id,
            operator_type: operator.type_word(),
            entry: Some(*entry),
            party_size: order.party_size,
            visit_at: order.visit_at,
            task_no: order.task_no.as_ref().map(TaskNo::as_str),
            at: now,
        }
    }

    /// The order is not paid (any more): this attempt's own earlier success, or 2002.
    async fn explain_not_paid(&self, order: &OrderRow) -> Result<Consumed, ApiError> {
        if let Some(replay) = self.replay().await? {
            return Ok(replay);
        }
        Err(self.caller.refuse_not_paid(order.id).await?)
    }

    /// The code has done its work. A code that stays cannot redeem again, and runs out by itself.
    async fn delete_code(&self, key: &CodeKey, order: &OrderRow) {
        let Caller { app, limits, .. } = self.caller;
        if let Err(error) = limits.ask(app.codes.retire(key, self.verify_code)).await {
            tracing::warn!(order.id = order.id, %error, "a used code could not be deleted; it runs out by itself");
        }
    }
}

/// Whether a code is one of those that count now. Compares in constant time, and as long where there is none at all.
pub(super) fn is_alive(codes: &OrderCodes, shown: &VerifyCode) -> bool {
    let mut alive = same_code(codes.current.as_ref(), shown);
    for graced in &codes.graced {
        alive |= same_code(Some(graced), shown);
    }
    alive
}

/// Compares in constant time, and as long where there is no code at all.
fn same_code(alive: Option<&VerifyCode>, shown: &VerifyCode) -> bool {
    let expected = alive.map_or("000000", VerifyCode::expose);
    let equal = expected.as_bytes().ct_eq(shown.expose().as_bytes());
    bool::from(equal) & alive.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_code_that_is_alive_is_the_same() {
        let code = |n| VerifyCode::from_number(n).unwrap();
        assert!(same_code(Some(&code(483_921)), &code(483_921)));
        assert!(!same_code(Some(&code(483_921)), &code(483_922)));
        assert!(!same_code(None, &code(483_921)));
    }
}
