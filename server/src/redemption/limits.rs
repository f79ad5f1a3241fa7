//! Limits of redemption: places in sliding windows, frozen guides, and what counts as a failure.

use super::store::{self, Operator};
use crate::app::App;
use crate::codes::{AttemptId, CodesAway, CodesResult, Place, WindowKey, later};
use crate::http::error::ApiError;
use crate::ops::alerts;
use crate::settings::Rules;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use wire::ErrorCode;
use wire::api::AlertKind;

const MINUTE: Duration = Duration::from_secs(60);
const TEN_MINUTES: Duration = Duration::from_secs(600);
/// What an attempt may wait for the code store in all, in multiples of one use's limit: with the default, an answer comes
/// within two seconds.
const USES: u32 = 2;
const HALF_AN_HOUR: Duration = Duration::from_secs(1800);

/// The limits as one attempt meets them.
#[derive(Debug)]
pub(super) struct Limits {
    app: App,
    operator: Operator,
    address: Option<IpAddr>,
    pub(super) attempt: AttemptId,
    pub(super) rules: Arc<Rules>,
    /// What this attempt may still wait for the code store in all; nothing once a use has failed.
    patience: Mutex<Duration>,
}

/// Whether an attempt's place is given back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    GivenBack,
}

/// Success, replay, 2002, 2004, 2006 and 1503 give the place back, so that a queue at the gate is not held up; all else keeps it.
fn fate<T>(result: &Result<T, ApiError>) -> Fate {
    match result.as_ref().map_err(ApiError::code) {
        Ok(_)
        | Err(
            ErrorCode::StatusNotAllowConsume
            | ErrorCode::VerifyCodeUnavailable
            | ErrorCode::VerifyCodeAmbiguous
            | ErrorCode::Unavailable
            | ErrorCode::Internal,
        ) => Fate::GivenBack,
        Err(_) => Fate::Kept,
    }
}

impl Limits {
    pub(super) async fn of(app: &App, operator: &Operator, address: Option<IpAddr>) -> Result<Self, ApiError> {
        let rules = app.rules(operator.tenant).await?;
        let attempt = AttemptId::new(uuid::Uuid::new_v4().simple().to_string());
        let patience = Mutex::new(USES * Duration::from_millis(app.config.code_store.timeout_ms.into()));
        Ok(Self { app: app.clone(), operator: operator.clone(), address, attempt, rules, patience })
    }

    /// Asks the code store. All that one attempt asks has one limit over it: a store that is slow every time, or hangs in
    /// the middle, holds nobody up for longer.
    pub(super) async fn ask<T>(&self, question: impl Future<Output = CodesResult<T>>) -> CodesResult<T> {
        let patience = *self.patience.lock().unwrap_or_else(PoisonError::into_inner);
        let asked = Instant::now();
        let answer = tokio::time::timeout(patience, question).await;
        let answer = answer.unwrap_or_else(|_| Err(CodesAway("no time is left for it in this attempt".to_owned())));
        let left = if answer.is_ok() { patience.saturating_sub(asked.elapsed()) } else { Duration::ZERO };
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner) = left;
        answer
    }

    fn is_out_of_patience(&self) -> bool {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner).is_zero()
    }

    fn window(&self, what: &str, whom: impl std::fmt::Display) -> WindowKey {
        WindowKey::new(&self.app.config.code_store.prefix, self.operator.tenant, what, whom)
    }

    /// The place of the operator, and the address's.
    fn places(&self) -> Vec<(WindowKey, u32)> {
        let mut places = vec![(self.window("operator", self.operator.account_id), self.rules.operator)];
        if let Some(address) = self.address {
            places.push((self.window("address", counted_as(address)), self.rules.ip));
        }
        places
    }

    /// 2007 for a guide who is frozen, by failures or by an admin.
    pub(super) async fn refuse_frozen(&self) -> Result<(), ApiError> {
        if !self.operator.is_guide() {
            return Ok(());
        }
        let frozen = store::is_frozen(&self.app.db, self.operator.tenant, self.operator.account_id).await?;
        let window = freeze_window(&self.app, &self.operator);
        if frozen || self.ask(self.app.codes.held(&window)).await?.is_some() {
            return Err(ErrorCode::OperatorFrozen.into());
        }
        Ok(())
    }

    /// Takes the operator's and the address's place, or 2005; `work` runs only with both, and what comes of it decides
    /// whether they are given back.
    pub(super) async fn within<T>(&self, work: impl Future<Output = Result<T, ApiError>>) -> Result<T, ApiError> {
        let places = self.places();
        for (n, (window, limit)) in places.iter().enumerate() {
            let taken = self.ask(self.app.codes.take(window, &self.attempt, *limit, MINUTE)).await;
            if !matches!(taken, Ok(Place::Taken)) {
                // The other window was not to blame; and a store that did not answer may have taken this one.
                self.give_back(places[..=n].iter().map(|(window, _)| window)).await;
            }
            if let Place::Full(wait) = taken? {
                return Err(ApiError::retry_after(ErrorCode::ConsumeTooFrequent, wait));
            }
        }
        let result = work.await;
        if fate(&result) == Fate::GivenBack && !self.rules.count_all {
            self.give_back(places.iter().map(|(window, _)| window)).await;
        }
        result
    }

    /// The same for the tighter limit of by-code failures.
    pub(super) async fn within_by_code<T>(
        &self,
        work: impl Future<Output = Result<T, ApiError>>,
    ) -> Result<T, ApiError> {
        let window = self.window("by-code", self.operator.account_id);
        let taken = self.ask(self.app.codes.take(&window, &self.attempt, self.rules.by_code, TEN_MINUTES)).await;
        let result = match taken {
            Ok(Place::Taken) => work.await,
            Ok(Place::Full(wait)) => return Err(ApiError::retry_after(ErrorCode::ConsumeTooFrequent, wait)),
            Err(away) => Err(away.into()),
        };
        if fate(&result) == Fate::GivenBack {
            self.give_back([&window].into_iter()).await;
        }
        result
    }

    /// Waits for it where the store answers. Where it does not, the answer must not wait for that.
    async fn give_back(&self, windows: impl Iterator<Item = &WindowKey>) {
        let hung = self.is_out_of_patience();
        let each = windows.map(async |window| {
            if hung {
                later::give_back_later(&self.app.codes, window, &self.attempt);
            } else {
                later::give_back(&self.app.codes, window, &self.attempt).await;
            }
        });
        futures::future::join_all(each.collect::<Vec<_>>()).await;
    }

    /// Counts a 2001 or 2003: towards freezing a guide, and of wrong codes towards the tenant's alert.
    pub(super) async fn count_failure(&self, wrong_code: bool) {
        if let Err(error) = self.try_to_count(wrong_code).await {
            // The answer is a refusal either way; without the store the next attempt is refused at once.
            tracing::warn!(%error, "a failure could not be counted");
        }
    }

    async fn try_to_count(&self, wrong_code: bool) -> CodesResult<()> {
        let (codes, tenant) = (&self.app.codes, self.operator.tenant);
        if self.operator.is_guide() {
            let window = freeze_window(&self.app, &self.operator);
            let counted = codes.count(&window, &self.attempt, self.rules.freeze, TEN_MINUTES, HALF_AN_HOUR);
            if self.ask(counted).await? {
                alerts::raise(&self.app, tenant, AlertKind::GuideFrozen, Some(self.operator.account_id)).await;
            }
        } else {
            // Admins are alerted, never frozen.
            let window = self.window("admin-failed", self.operator.account_id);
            let counted = codes.count(&window, &self.attempt, self.rules.freeze, TEN_MINUTES, HALF_AN_HOUR);
            if self.ask(counted).await? {
                alerts::raise(&self.app, tenant, AlertKind::AdminFailures, Some(self.operator.account_id)).await;
            }
        }
        if wrong_code {
            let window = self.window("failed", "all");
            let most = self.rules.consume_failures;
            if self.ask(codes.count(&window, &self.attempt, most, TEN_MINUTES, TEN_MINUTES)).await? {
                alerts::raise(&self.app, tenant, AlertKind::ConsumeFailures, None).await;
            }
        }
        Ok(())
    }
}

/// Where a guide's failures are counted; its hold is the guide's freeze.
pub(crate) fn freeze_window(app: &App, operator: &Operator) -> WindowKey {
    freeze_window_of(app, operator.tenant, operator.account_id)
}

/// The same by account.
pub(crate) fn freeze_window_of(app: &App, tenant: wire::TenantId, account_id: i64) -> WindowKey {
    WindowKey::new(&app.config.code_store.prefix, tenant, "failed", account_id)
}

/// IPv6 counts by /64: one household or one attacker has that many addresses.
pub(crate) fn counted_as(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            format!("{a:x}:{b:x}:{c:x}:{d:x}::")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::counted_as;

    #[test]
    fn an_ipv6_address_counts_by_its_network() {
        let one = counted_as("2001:db8:1:2:3:4:5:6".parse().unwrap());
        assert_eq!(one, counted_as("2001:db8:1:2::1".parse().unwrap()));
        assert_ne!(one, counted_as("2001:db8:1:3::1".parse().unwrap()));
        assert_eq!(counted_as("10.0.0.1".parse().unwrap()), "10.0.0.1");
    }
}
