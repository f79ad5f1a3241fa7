//! The code store: where verify codes live their short lives and attempts are counted, and nowhere else.

pub(crate) mod later;
mod memory;
mod redis;
pub mod sms;

pub use memory::MemoryCodes;
pub(crate) use redis::EVICTS;
pub use redis::{RedisAddress, RedisCodes};

use async_trait::async_trait;
use std::fmt::Debug;
use std::time::Duration;
use wire::{TenantId, VerifyCode};

/// The code store cannot be reached or did not answer in time; nothing is redeemed without it.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the code store is away: {0}")]
pub struct CodesAway(pub String);

/// What every use of the store gives.
pub type CodesResult<T> = Result<T, CodesAway>;

/// A code that is alive, and for how much longer.
#[derive(Debug, Clone)]
pub struct LiveCode {
    /// The code.
    pub code: VerifyCode,
    /// What is left of its life, grace left out.
    pub left: Duration,
}

/// How long a code lives.
#[derive(Debug, Clone, Copy)]
pub struct Life {
    /// Its life.
    pub ttl: Duration,
    /// How much longer it counts after that.
    pub grace: Duration,
}

/// What there is of an order's codes.
#[derive(Debug, Clone, Default)]
pub struct OrderCodes {
    /// The code that is alive.
    pub current: Option<VerifyCode>,
    /// Codes that ran out and are in their grace.
    pub graced: Vec<VerifyCode>,
    /// The order is locked for so long.
    pub locked: Option<Duration>,
}

/// What came of a rotation.
#[derive(Debug, Clone)]
pub enum Rotated {
    /// The old code is dead, grace included, and this one lives.
    Done(LiveCode),
    /// The last rotation was too short a time ago.
    TooSoon(Duration),
}

/// How many wrong codes in a row lock an order, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct LockRule {
    /// So many are answered.
    pub max: u32,
    /// From the last of them on.
    pub lock: Duration,
}

/// Whether a compared code may be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Right or wrong: it may be said.
    Open,
    /// Too many wrong ones have been answered: neither right nor wrong is said for so long.
    Locked(Duration),
}

/// Whether there was a place in a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Taken.
    Taken,
    /// None is free for so long.
    Full(Duration),
}

/// One try of one caller. A script that is run twice for the same attempt counts once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttemptId(pub(crate) String);

impl AttemptId {
    /// From a name that no other attempt has.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }
}

/// Where an order's code stands: `team:booking:verify:{tenantId}:order:{orderId}`, the braces standing for the numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CodeKey(String);

impl CodeKey {
    /// The key of an order, behind the deployment's prefix.
    pub fn new(prefix: &str, tenant: TenantId, order_id: i64) -> Self {
        Self(format!("{prefix}team:booking:verify:{tenant}:order:{order_id}"))
    }

    /// The literal key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// A helper in the key's cluster slot: literally `{` + key + `}:suffix`.
    pub(crate) fn helper(&self, suffix: &str) -> String {
        format!("{{{}}}:{suffix}", self.0)
    }
}

/// Where a sliding window of attempts stands.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WindowKey(String);

impl WindowKey {
    /// The window `what` of `whom` in a tenant, behind the deployment's prefix.
    pub fn new(prefix: &str, tenant: TenantId, what: &str, whom: impl std::fmt::Display) -> Self {
        Self(format!("{prefix}team:booking:limit:{tenant}:{what}:{whom}"))
    }

    /// Sends of an address, in all tenants: literally `sms:ip:ADDRESS`.
    pub fn of_sms_address(prefix: &str, address: impl std::fmt::Display) -> Self {
        Self(format!("{prefix}sms:ip:{address}"))
    }

    /// The window `what` of `whom`, literally `what:whom` behind the prefix.
    pub fn named(prefix: &str, what: &str, whom: impl std::fmt::Display) -> Self {
        Self(format!("{prefix}{what}:{whom}"))
    }

    /// The literal key.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Says that the window has been overrun, in the window's cluster slot.
    pub(crate) fn held(&self) -> String {
        format!("{{{}}}:held", self.0)
    }
}

/// Every change is one atomic step, safe to run twice; whatever goes wrong is [`CodesAway`].
#[async_trait]
pub trait CodeStore: sms::SmsCodes {
    /// The code that is alive, or else `candidate`, set with its whole life in the same step.
    async fn get_or_set(&self, key: &CodeKey, candidate: VerifyCode, life: Life) -> CodesResult<LiveCode>;

    /// The code that is alive, those in grace, and whether the order is locked by this rule.
    async fn look(&self, key: &CodeKey, grace: bool, rule: LockRule) -> CodesResult<OrderCodes>;

    /// The same for many orders at once, in their order.
    async fn look_at_all(&self, keys: &[CodeKey], grace: bool, rule: LockRule) -> CodesResult<Vec<OrderCodes>>;

    /// Kills the code, grace included, and sets another; at most once in `pause`.
    async fn rotate(
        &self,
        key: &CodeKey,
        new: VerifyCode,
        life: Life,
        pause: Duration,
        attempt: &AttemptId,
    ) -> CodesResult<Rotated>;

    /// Counts a wrong code (`right` false), or lets a right one pass, in one step with the look at the count: however many
    /// were compared at once, no more than the rule's are answered.
    async fn settle(&self, key: &CodeKey, attempt: &AttemptId, right: bool, rule: LockRule) -> CodesResult<Verdict>;

    /// The order has been redeemed: its count of wrong codes goes, and the code with its helpers if it still is this one.
    async fn retire(&self, key: &CodeKey, code: &VerifyCode) -> CodesResult<()>;

    /// Deletes the code if it still is this one: a newer one belongs to somebody who asked after us.
    async fn delete_if(&self, key: &CodeKey, code: &VerifyCode) -> CodesResult<()>;

    /// Deletes whatever code there is, grace included: the order has left `paid`, or changed hands.
    async fn delete(&self, key: &CodeKey) -> CodesResult<()>;

    /// Takes a place in a sliding window, if one of `limit` is free.
    async fn take(&self, window: &WindowKey, attempt: &AttemptId, limit: u32, span: Duration) -> CodesResult<Place>;

    /// Gives a place back.
    async fn give_back(&self, window: &WindowKey, attempt: &AttemptId) -> CodesResult<()>;

    /// Counts into a sliding window; `true` where this one reached `limit` and set the window's hold for `hold`.
    async fn count(
        &self,
        window: &WindowKey,
        attempt: &AttemptId,
        limit: u32,
        span: Duration,
        hold: Duration,
    ) -> CodesResult<bool>;

    /// How much longer a window's hold lasts.
    async fn held(&self, window: &WindowKey) -> CodesResult<Option<Duration>>;

    /// Forgets a window and its hold.
    async fn release(&self, window: &WindowKey) -> CodesResult<()>;

    /// Keeps a place in a row of places that lie `every` apart, and says how long to wait for it; `None` where that would be
    /// longer than `most`. Run twice it keeps two: the row is slower for a moment, never faster.
    async fn pace(&self, key: &str, every: Duration, most: Duration) -> CodesResult<Option<Duration>>;

    /// Why this store must not be used, if it answers and is set up wrongly. Says in the log what is merely unwise.
    async fn unfit(&self) -> Option<String>;

    /// Whether the store answers.
    async fn ping(&self) -> CodesResult<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_holds_tenant_and_order_literally() {
        let key = CodeKey::new("", TenantId(1), 100);
        assert_eq!(key.as_str(), "team:booking:verify:1:order:100");
        assert_eq!(key.helper("fail"), "{team:booking:verify:1:order:100}:fail");
        assert_eq!(CodeKey::new("a:", TenantId(2), 7).as_str(), "a:team:booking:verify:2:order:7");
    }
}
