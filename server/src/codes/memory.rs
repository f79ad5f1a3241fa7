//! The embedded code store: for one process, gone with it.

use super::{CodeKey, CodeStore, CodesAway, LiveCode};
use crate::clock::Clock;
use async_trait::async_trait;
use moka::ops::compute::Op;
use moka::{Expiry, sync::Cache};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wire::VerifyCode;

#[derive(Debug, Clone)]
struct Entry {
    code: VerifyCode,
    /// By the app's clock, which alone decides.
    dies_at: Duration,
    ttl: Duration,
}

/// Frees the memory of dead entries, by the cache's own clock; whether a code is alive is decided by the app's.
#[derive(Debug)]
struct Forget;

impl Expiry<CodeKey, Entry> for Forget {
    fn expire_after_create(&self, _: &CodeKey, entry: &Entry, _: Instant) -> Option<Duration> {
        Some(entry.ttl)
    }

    fn expire_after_update(&self, _: &CodeKey, entry: &Entry, _: Instant, _: Option<Duration>) -> Option<Duration> {
        Some(entry.ttl)
    }
}

/// Codes in this process's memory.
#[derive(Debug)]
pub struct MemoryCodes {
    entries: Cache<CodeKey, Entry>,
    clock: Arc<dyn Clock>,
}

impl MemoryCodes {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { entries: Cache::builder().expire_after(Forget).build(), clock }
    }

    fn left(&self, entry: &Entry) -> Option<Duration> {
        entry.dies_at.checked_sub(self.clock.monotonic()).filter(|left| !left.is_zero())
    }
}

#[async_trait]
impl CodeStore for MemoryCodes {
    async fn get_or_set(&self, key: &CodeKey, candidate: VerifyCode, ttl: Duration) -> Result<LiveCode, CodesAway> {
        let result = self.entries.entry_by_ref(key).and_compute_with(|current| match current {
            Some(current) if self.left(current.value()).is_some() => Op::Nop,
            _ => Op::Put(Entry { code: candidate, dies_at: self.clock.monotonic() + ttl, ttl }),
        });
        let entry = result.into_entry().ok_or_else(|| CodesAway("the entry is gone".to_owned()))?.into_value();
        // An entry that ran out between the two looks at the clock is given no life: the caller asks again.
        let left = self.left(&entry).unwrap_or_default();
        Ok(LiveCode { code: entry.code, left })
    }

    async fn get(&self, key: &CodeKey) -> Result<Option<VerifyCode>, CodesAway> {
        Ok(self.entries.get(key).filter(|entry| self.left(entry).is_some()).map(|entry| entry.code))
    }

    async fn delete_if(&self, key: &CodeKey, code: &VerifyCode) -> Result<(), CodesAway> {
        self.entries.entry_by_ref(key).and_compute_with(|current| match current {
            Some(current) if current.value().code == *code => Op::Remove,
            _ => Op::Nop,
        });
        Ok(())
    }

    async fn delete(&self, key: &CodeKey) -> Result<(), CodesAway> {
        self.entries.invalidate(key);
        Ok(())
    }

    async fn ping(&self) -> Result<(), CodesAway> {
        Ok(())
    }
}
