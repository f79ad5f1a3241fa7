//! `POST …/consume-by-code`: the manual fallback with nothing but six digits.

use super::limits::Limits;
use super::redeem::{Attempt, is_alive};
use super::store::{self, Operator, OrderRow, TaskChoice};
use crate::app::App;
use crate::booking::{day_of, masked, own_task};
use crate::http::error::{Answer, ApiError, ApiResult};
use crate::http::extract::{Body, ClientAddress, request_id, task_no, verify_code};
use crate::http::session::Guide;
use axum::extract::State;
use tracing::Instrument;
use wire::api::{Candidate, Candidates, Consume, ConsumeByCodeRequest, Consumed, Entry};
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
    let operator = Operator::guide(&session);
    let by_code = ByCode {
        code: verify_code(&request.verify_code)?,
        request_id: request_id(request.request_id.as_deref())?,
        tasks: match &request.task_no {
            Some(no) => Some(task_no("taskNo", no)?),
            None => None,
        }
        .map_or_else(|| day_of(&app, None).map(TaskChoice::Day), |no| Ok(TaskChoice::Task(no)))?,
        limits: Limits::of(&app, &operator, address).await?,
        address: address.map(|a| a.to_string()),
        operator,
        app: app.clone(),
    };
    let redeemed = app.tasks.spawn(async move { by_code.redeem().await }.in_current_span()).await;
    redeemed.map_err(|_| ApiError::from(ErrorCode::Internal))?.map(Answer)
}

struct ByCode {
    app: App,
    operator: Operator,
    address: Option<String>,
    code: VerifyCode,
    request_id: Option<wire::RequestId>,
    tasks: TaskChoice,
    limits: Limits,
}

impl ByCode {
    async fn redeem(&self) -> Result<Consumed, ApiError> {
        // A repeat names no order, so it is looked up by its id alone.
        if let Some(request_id) = &self.request_id
            && let Some(claim) = store::claim(&self.app.db, &self.operator, request_id).await?
        {
            return if claim.standing { Ok(claim.consumed) } else { Err(ErrorCode::Conflict.into()) };
        }
        self.limits.refuse_frozen().await?;
        self.limits.within(self.limits.within_by_code(self.find_and_redeem())).await
    }

    async fn find_and_redeem(&self) -> Result<Consumed, ApiError> {
        let (tenant, guide) = (self.operator.tenant, self.operator.account_id);
        if let TaskChoice::Task(task_no) = &self.tasks
            && own_task(&self.app, tenant, guide, task_no).await?.is_none()
        {
            self.limits.count_failure(false).await;
            return Err(ErrorCode::BookingOrderNotExists.into());
        }
        let orders = store::paid_orders_of_guide(&self.app.db, tenant, guide, &self.tasks).await?;
        let keys: Vec<_> = orders.iter().map(|(_, order)| self.app.code_key(tenant, order.id)).collect();
        let rules = &self.limits.rules;
        let seen = self.app.codes.look_at_all(&keys, rules.grace > 0, rules.lock()).await?;
        let (mut matches, mut locked) = (Vec::new(), None);
        for ((order, key), codes) in orders.into_iter().zip(keys).zip(seen) {
            // Every order is compared, whatever was found before it.
            match (is_alive(&codes, &self.code), codes.locked) {
                (true, None) => matches.push((order, key)),
                (true, Some(left)) => locked = Some(left),
                (false, _) => {}
            }
        }
        match (matches.len(), locked) {
            (1, _) => {}
            (0, Some(left)) => return Err(ApiError::retry_after(ErrorCode::ConsumeTooFrequent, left)),
            (0, None) => {
                self.limits.count_failure(true).await;
                return Err(ErrorCode::VerifyCodeInvalid.into());
            }
            _ => return Err(ApiError::from(ErrorCode::VerifyCodeAmbiguous).with(candidates(&matches))),
        }
        let ((order_no, order), key) = matches.remove(0);
        let attempt = Attempt {
            app: self.app.clone(),
            operator: self.operator.clone(),
            address: self.address.clone(),
            consume: Consume {
                order_no,
                verify_code: self.code.clone(),
                request_id: self.request_id.clone(),
                entry: Entry::Manual,
            },
            limits: self.limits.clone(),
        };
        attempt.finish(&order, &key).await
    }
}

fn candidates(matches: &[((OrderNo, OrderRow), crate::codes::CodeKey)]) -> Candidates {
    let candidate = |((order_no, order), _): &((OrderNo, OrderRow), _)| Candidate {
        order_no: order_no.clone(),
        visitor_name: masked(&order.visitor_name),
        party_size: order.party_size,
    };
    Candidates { candidates: matches.iter().map(candidate).collect() }
}
