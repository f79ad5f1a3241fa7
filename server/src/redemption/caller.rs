//! Who attempts a redemption, from where and under which limits; and what the audit keeps of its refusals.

use super::limits::Limits;
use super::store::{self, Claim, Operator, RefusalRow};
use crate::app::App;
use crate::db::{DbError, transact};
use crate::http::error::ApiError;
use std::net::IpAddr;
use wire::api::{Entry, OrderStatus};
use wire::{ErrorCode, RequestId};

/// What every way of redeeming knows of its caller.
pub(super) struct Caller {
    pub(super) app: App,
    pub(super) operator: Operator,
    pub(super) address: Option<String>,
    pub(super) request_id: Option<RequestId>,
    pub(super) entry: Entry,
    pub(super) limits: Limits,
}

impl Caller {
    pub(super) async fn new(
        app: App,
        operator: Operator,
        address: Option<IpAddr>,
        request_id: Option<RequestId>,
        entry: Entry,
    ) -> Result<Self, ApiError> {
        let limits = Limits::of(&app, &operator, address).await?;
        Ok(Self { address: address.map(|a| a.to_string()), app, operator, request_id, entry, limits })
    }

    /// The success that this attempt's request id had.
    pub(super) async fn claim(&self) -> Result<Option<Claim>, DbError> {
        match &self.request_id {
            Some(request_id) => store::claim(&self.app.db, &self.operator, request_id).await,
            None => Ok(None),
        }
    }

    /// Writes a refusal that concerns an order into the audit. Should that fail, the refusal stands all the same.
    pub(super) async fn note_refusal(&self, order_id: i64, status: OrderStatus, result: ErrorCode) {
        tracing::info!(order.id = order_id, operator.id = self.operator.account_id, result = result.code(), "refused");
        let row = RefusalRow {
            operator: &self.operator,
            order_id,
            request_id: self.request_id.as_ref(),
            entry: Some(self.entry),
            address: self.address.as_deref(),
            status,
            result,
        };
        let noted = transact(|| store::insert_refusal(&self.app.db, &*self.app.clock, &row)).await;
        if let Err(error) = noted {
            tracing::error!(order.id = order_id, %error, "a refusal could not be written into the audit");
        }
    }

    /// 2002 with where the order stands and who redeemed it.
    pub(super) async fn refuse_not_paid(&self, order_id: i64) -> Result<ApiError, DbError> {
        let state = store::order_state(&self.app.db, self.operator.tenant, order_id).await?;
        self.note_refusal(order_id, state.status, ErrorCode::StatusNotAllowConsume).await;
        Ok(ApiError::not_paid(state))
    }

    /// A limit or a frozen operator: one row an operator and minute, with the order if it is known.
    pub(super) async fn note_limit(&self, order_id: Option<i64>, result: ErrorCode) {
        let (db, clock, address) = (&self.app.db, &*self.app.clock, self.address.as_deref());
        let noted = transact(|| store::insert_limited(db, clock, &self.operator, order_id, address, result)).await;
        if let Err(error) = noted {
            tracing::error!(%error, "a refusal could not be written into the audit");
        }
    }
}
