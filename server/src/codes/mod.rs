//! The code store: where verify codes live their short lives, and nowhere else.

mod memory;

pub use memory::MemoryCodes;

use async_trait::async_trait;
use std::fmt::Debug;
use std::time::Duration;
use wire::{TenantId, VerifyCode};

/// The code store cannot be reached or did not answer in time; nothing is redeemed without it.
#[derive(Debug, thiserror::Error)]
#[error("the code store is away: {0}")]
pub struct CodesAway(pub String);

/// A code that is alive, and for how much longer.
#[derive(Debug, Clone)]
pub struct LiveCode {
    /// The code.
    pub code: VerifyCode,
    /// What is left of its life.
    pub left: Duration,
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
}

/// Every change is one atomic step; whatever goes wrong is [`CodesAway`].
#[async_trait]
pub trait CodeStore: Debug + Send + Sync {
    /// The code that is alive, or else `candidate`, set with its whole life in the same step.
    async fn get_or_set(&self, key: &CodeKey, candidate: VerifyCode, ttl: Duration) -> Result<LiveCode, CodesAway>;

    /// The code that is alive.
    async fn get(&self, key: &CodeKey) -> Result<Option<VerifyCode>, CodesAway>;

    /// Deletes the code if it still is this one: a newer one belongs to somebody who asked after us.
    async fn delete_if(&self, key: &CodeKey, code: &VerifyCode) -> Result<(), CodesAway>;

    /// Deletes whatever code there is: the order has left `paid`.
    async fn delete(&self, key: &CodeKey) -> Result<(), CodesAway>;

    /// Whether the store answers.
    async fn ping(&self) -> Result<(), CodesAway>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_holds_tenant_and_order_literally() {
        assert_eq!(CodeKey::new("", TenantId(1), 100).as_str(), "team:booking:verify:1:order:100");
        assert_eq!(CodeKey::new("a:", TenantId(2), 7).as_str(), "a:team:booking:verify:2:order:7");
    }
}
