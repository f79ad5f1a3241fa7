//! `POST …/consume-by-code`: the manual fallback with nothing but six digits.

use super::caller::Caller;
use super::redeem::{Attempt, is_alive};
use super::store::{self, Operator, OrderRow, TaskChoice};
use crate::app::App;
use crate::booking::{day_of, masked, own_task};
use crate::codes::CodeKey;
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Body, ClientAddress, request_id, task_no, verify_code};
use crate::http::session::Guide;
use crate::text::Text;
use axum::extract::State;
use std::time::Duration;
use wire::api::{Candidate, Candidates, ConsumeByCodeRequest, Consumed, Entry};
use wire::{Envelope, ErrorCode, OrderNo, VerifyCode};

/// Redeems the one order among the guide's that has this code now.
///
/// It looks only among the live codes of the paid orders in the caller's own tasks of today, or of the task named: no
/// reverse key and no search through the tenant. Several matches: 2006, and the desk picks the order. It obeys orders'
/// locks; its failures never count against orders, and have a tighter limit of their own.
#[utoipa::path(post, path = "/app-api/team/guide-task/booking/consume-by-code", tag = "guide", request_body = ConsumeByCodeRequest,
    responses((status = 200, body = Envelope<Consumed>)))]
pub(crate) async fn consume_by_code(
    State(app): State<App>,
    Guide(session): Guide,
    ClientAddress(address): ClientAddress,
    Body(request): Body<ConsumeByCodeRequest>,
) -> ApiResult<Consumed> {
    let code = verify_code(&request.verify_code)?;
    let request_id = request_id(request.request_id.as_deref())?;
    let tasks = match &request.task_no {
        Some(no) => TaskChoice::Task(task_no("taskNo", no)?),
        None => TaskChoice::Day(day_of(&app, None)?),
    };
    let operator = Operator::guide(&session);
    let caller = Caller::new(app.clone(), operator, address, request_id, Entry::Manual).await?;
    app.see_through(ByCode { caller, code, tasks }.redeem()).await.map(Answer)
}

struct ByCode {
    caller: Caller,
    code: VerifyCode,
    tasks: TaskChoice,
}

/// An order whose code was shown.
struct Match {
    order_no: OrderNo,
    order: OrderRow,
    key: CodeKey,
    locked: Option<Duration>,
}

impl ByCode {
    async fn redeem(self) -> Result<Consumed, ApiError> {
        if let Some(replay) = self.replay().await? {
            return Ok(replay);
        }
        let limits = &self.caller.limits;
        if let Err(refusal) = limits.refuse_frozen().await {
            if refusal.code() == ErrorCode::OperatorFrozen {
                self.caller.note_limit(None, refusal.code()).await;
            }
            return Err(refusal);
        }
        // What is found is redeemed within the limits as well; the match is kept for the audit of a refusal.
        let mut found = None;
        let result = limits.within(limits.within_by_code(self.find_and_redeem(&mut found))).await;
        if let Err(refusal) = &result
            && refusal.code() == ErrorCode::ConsumeTooFrequent
        {
            self.caller.note_limit(found, refusal.code()).await;
        }
        result
    }

    /// A repeat names no order, so it is looked up by its id alone; 1409 where the redemption was reversed since, or was
    /// of another task than the one named.
    async fn replay(&self) -> Result<Option<Consumed>, ApiError> {
        let Some(claim) = self.caller.claim().await? else { return Ok(None) };
        let same_task = match &self.tasks {
            TaskChoice::Task(named) => claim.consumed.task_no.as_ref() == Some(named),
            TaskChoice::Day(_) => true,
        };
        if claim.standing && same_task {
            return Ok(Some(claim.consumed));
        }
        Err(ApiError::conflict(Text::RequestIdTaken))
    }

    /// `found` is the order that a refusal is about, where there is just one.
    async fn find_and_redeem(&self, found: &mut Option<i64>) -> Result<Consumed, ApiError> {
        let Caller { app, operator, limits, .. } = &self.caller;
        if let TaskChoice::Task(task_no) = &self.tasks
            && own_task(app, operator.tenant, operator.account_id, task_no).await?.is_none()
        {
            limits.count_failure(false).await;
            return Err(ErrorCode::BookingOrderNotExists.into());
        }
        let mut matches = self.matches().await?;
        if matches.len() > 1 {
            for Match { order, .. } in &matches {
                self.caller.note_refusal(order.id, order.status, ErrorCode::VerifyCodeAmbiguous).await;
            }
            return Err(ApiError::from(ErrorCode::VerifyCodeAmbiguous).with(candidates(&matches)));
        }
        let Some(Match { order_no, order, key, locked }) = matches.pop() else {
            return self.explain_no_match().await;
        };
        *found = Some(order.id);
        if let Some(left) = locked {
            return Err(ApiError::retry_after(ErrorCode::ConsumeTooFrequent, left));
        }
        let attempt = Attempt { caller: &self.caller, order_no, verify_code: &self.code };
        attempt.settle(&key, true).await?;
        attempt.finish(&order, &key).await
    }

    /// Every order is compared, whatever was found before it, and a locked one like the others: two orders of one code
    /// must not become one because somebody guessed at the other.
    async fn matches(&self) -> Result<Vec<Match>, ApiError> {
        let Caller { app, operator, limits, .. } = &self.caller;
        let orders = store::paid_orders_of_guide(&app.db, operator.tenant, operator.account_id, &self.tasks).await?;
        let keys: Vec<_> = orders.iter().map(|(_, order)| app.code_key(operator.tenant, order.id)).collect();
        let rules = &limits.rules;
        let seen = limits.ask(app.codes.look_at_all(&keys, rules.grace > 0, rules.lock())).await?;
        let mut matches = Vec::new();
        for (((order_no, order), key), codes) in orders.into_iter().zip(keys).zip(seen) {
            if is_alive(&codes, &self.code) {
                matches.push(Match { order_no, order, key, locked: codes.locked });
            }
        }
        Ok(matches)
    }

    /// No order has this code: this attempt's own success that came in between, or 2003. Without an order there is no
    /// status to read once more: that some order was redeemed in this moment would say nothing about a code that is wrong.
    async fn explain_no_match(&self) -> Result<Consumed, ApiError> {
        if let Some(replay) = self.replay().await? {
            return Ok(replay);
        }
        self.caller.limits.count_failure(true).await;
        Err(ErrorCode::VerifyCodeInvalid.into())
    }
}

fn candidates(matches: &[Match]) -> Candidates {
    let candidate = |Match { order_no, order, .. }: &Match| Candidate {
        order_no: order_no.clone(),
        visitor_name: masked(&order.visitor_name),
        party_size: order.party_size,
    };
    Candidates { candidates: matches.iter().map(candidate).collect() }
}
