//! The embedded code store: for one process, gone with it.

mod sms;

use super::{
    AttemptId, CodeKey, CodeStore, CodesAway, CodesResult, Life, LiveCode, LockRule, OrderCodes, Place, Rotated,
    Verdict, WindowKey,
};
use crate::clock::Clock;
use async_trait::async_trait;
use moka::ops::compute::Op;
use moka::{Expiry, sync::Cache};
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use wire::VerifyCode;

/// Something that dies, by the app's clock.
#[derive(Debug, Clone)]
struct Mortal<T> {
    value: T,
    dies_at: Duration,
}

/// All that the store knows of an order: one entry, so that every change of it is one step.
#[derive(Debug, Clone, Default)]
struct OrderEntry {
    current: Option<Mortal<VerifyCode>>,
    /// The current code's own grace, and that of the one before.
    graced: Vec<Mortal<VerifyCode>>,
    wrong: Vec<AttemptId>,
    wrong_until: Duration,
    rotated: Option<Mortal<AttemptId>>,
}

#[derive(Debug, Clone, Default)]
struct WindowEntry {
    places: VecDeque<(Duration, AttemptId)>,
    span: Duration,
    held_until: Duration,
}

/// What an entry holds, with how long it may matter: the cache frees its memory after that, by its own clock. Whether
/// a part is alive is decided by the app's.
#[derive(Debug, Clone)]
struct Kept<T> {
    inner: T,
    matters_for: Duration,
}

#[derive(Debug)]
struct Forget;

impl<K, T> Expiry<K, Kept<T>> for Forget {
    fn expire_after_create(&self, _: &K, kept: &Kept<T>, _: Instant) -> Option<Duration> {
        Some(kept.matters_for)
    }

    fn expire_after_update(&self, _: &K, kept: &Kept<T>, _: Instant, _: Option<Duration>) -> Option<Duration> {
        Some(kept.matters_for)
    }
}

/// Codes and counts in this process's memory.
#[derive(Debug)]
pub struct MemoryCodes {
    orders: Cache<CodeKey, Kept<OrderEntry>>,
    windows: Cache<WindowKey, Kept<WindowEntry>>,
    numbers: Cache<String, Kept<sms::NumberEntry>>,
    /// When the place after the last one kept is; a row for each channel that has a rate.
    rows: Mutex<HashMap<String, Duration>>,
    clock: Arc<dyn Clock>,
}

/// How much longer an order is locked. One that is locked without any wrong code, by a limit of 0, stays so.
fn lock_left(entry: &OrderEntry, now: Duration, rule: LockRule) -> Duration {
    if entry.wrong_until > now { entry.wrong_until - now } else { rule.lock }
}

/// Changes one entry in one step; what `change` returns comes back.
fn change<K: Hash + Eq + Clone + Send + Sync + 'static, T: Default + Clone + Send + Sync + 'static, R>(
    cache: &Cache<K, Kept<T>>,
    key: &K,
    matters_for: impl FnOnce(&T) -> Duration,
    change: impl FnOnce(&mut T) -> R,
) -> CodesResult<R> {
    let mut result = None;
    cache.entry_by_ref(key).and_compute_with(|entry| {
        let mut inner = entry.map(|entry| entry.into_value().inner).unwrap_or_default();
        result = Some(change(&mut inner));
        let matters_for = matters_for(&inner);
        if matters_for.is_zero() { Op::Remove } else { Op::Put(Kept { inner, matters_for }) }
    });
    result.ok_or_else(|| CodesAway("an entry could not be changed".to_owned()))
}

impl MemoryCodes {
    /// An empty store.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            orders: Cache::builder().expire_after(Forget).build(),
            windows: Cache::builder().expire_after(Forget).build(),
            numbers: Cache::builder().expire_after(Forget).build(),
            rows: Mutex::default(),
            clock,
        }
    }

    fn order<R>(&self, key: &CodeKey, work: impl FnOnce(&mut OrderEntry, Duration) -> R) -> CodesResult<R> {
        let now = self.clock.monotonic();
        let matters_for = |entry: &OrderEntry| {
            let ends = entry.current.iter().chain(&entry.graced).map(|code| code.dies_at);
            let ends = ends.chain(entry.rotated.iter().map(|r| r.dies_at)).chain([entry.wrong_until]);
            ends.max().unwrap_or_default().saturating_sub(now)
        };
        change(&self.orders, key, matters_for, |entry| {
            entry.current.take_if(|code| code.dies_at <= now);
            entry.graced.retain(|code| code.dies_at > now);
            entry.rotated.take_if(|rotated| rotated.dies_at <= now);
            if entry.wrong_until <= now {
                entry.wrong.clear();
            }
            work(entry, now)
        })
    }

    fn window<R>(&self, key: &WindowKey, work: impl FnOnce(&mut WindowEntry, Duration) -> R) -> CodesResult<R> {
        let now = self.clock.monotonic();
        let matters_for = |entry: &WindowEntry| {
            let last = entry.places.back().map_or(Duration::ZERO, |(at, _)| *at + entry.span);
            last.max(entry.held_until).saturating_sub(now)
        };
        change(&self.windows, key, matters_for, |entry| work(entry, now))
    }

    fn seen(entry: &OrderEntry, now: Duration, grace: bool, rule: LockRule) -> OrderCodes {
        let current = entry.current.as_ref().map(|code| code.value.clone());
        let graced = entry.graced.iter().filter(|_| grace).map(|code| code.value.clone());
        OrderCodes {
            graced: graced.filter(|code| current.as_ref() != Some(code)).collect(),
            current,
            locked: (entry.wrong.len() >= rule.max as usize).then(|| lock_left(entry, now, rule)),
        }
    }
}

impl OrderEntry {
    fn set(&mut self, code: VerifyCode, life: Life, now: Duration) -> LiveCode {
        if !life.grace.is_zero() {
            self.graced.push(Mortal { value: code.clone(), dies_at: now + life.ttl + life.grace });
        }
        self.current = Some(Mortal { value: code.clone(), dies_at: now + life.ttl });
        LiveCode { code, left: life.ttl }
    }
}

impl WindowEntry {
    fn pass(&mut self, now: Duration, span: Duration) {
        self.span = span;
        while self.places.front().is_some_and(|(at, _)| *at + span <= now) {
            self.places.pop_front();
        }
    }

    fn has(&self, attempt: &AttemptId) -> bool {
        self.places.iter().any(|(_, id)| id == attempt)
    }
}

#[async_trait]
impl CodeStore for MemoryCodes {
    async fn get_or_set(&self, key: &CodeKey, candidate: VerifyCode, life: Life) -> CodesResult<LiveCode> {
        self.order(key, |entry, now| match &entry.current {
            Some(current) => LiveCode { code: current.value.clone(), left: current.dies_at - now },
            None => entry.set(candidate, life, now),
        })
    }

    async fn look(&self, key: &CodeKey, grace: bool, rule: LockRule) -> CodesResult<OrderCodes> {
        self.order(key, |entry, now| Self::seen(entry, now, grace, rule))
    }

    async fn look_at_all(&self, keys: &[CodeKey], grace: bool, rule: LockRule) -> CodesResult<Vec<OrderCodes>> {
        keys.iter().map(|key| self.order(key, |entry, now| Self::seen(entry, now, grace, rule))).collect()
    }

    async fn rotate(
        &self,
        key: &CodeKey,
        new: VerifyCode,
        life: Life,
        pause: Duration,
        attempt: &AttemptId,
    ) -> CodesResult<Rotated> {
        self.order(key, |entry, now| {
            if let Some(rotated) = &entry.rotated {
                return Rotated::TooSoon(rotated.dies_at - now);
            }
            entry.rotated = Some(Mortal { value: attempt.clone(), dies_at: now + pause });
            entry.graced.clear();
            Rotated::Done(entry.set(new, life, now))
        })
    }

    async fn settle(&self, key: &CodeKey, attempt: &AttemptId, right: bool, rule: LockRule) -> CodesResult<Verdict> {
        self.order(key, |entry, now| {
            if entry.wrong.contains(attempt) {
                return Verdict::Open;
            }
            if entry.wrong.len() >= rule.max as usize {
                return Verdict::Locked(lock_left(entry, now, rule));
            }
            if !right {
                entry.wrong.push(attempt.clone());
                entry.wrong_until = now + rule.lock;
            }
            Verdict::Open
        })
    }

    async fn retire(&self, key: &CodeKey, code: &VerifyCode) -> CodesResult<()> {
        self.order(key, |entry, _| {
            entry.wrong.clear();
            entry.wrong_until = Duration::ZERO;
            if entry.current.as_ref().is_none_or(|current| current.value == *code) {
                *entry = OrderEntry::default();
            }
        })
    }

    async fn delete_if(&self, key: &CodeKey, code: &VerifyCode) -> CodesResult<()> {
        self.order(key, |entry, _| {
            if entry.current.as_ref().is_some_and(|current| current.value == *code) {
                entry.current = None;
                entry.graced.clear();
            }
        })
    }

    async fn delete(&self, key: &CodeKey) -> CodesResult<()> {
        self.order(key, |entry, _| {
            entry.current = None;
            entry.graced.clear();
        })
    }

    async fn take(&self, window: &WindowKey, attempt: &AttemptId, limit: u32, span: Duration) -> CodesResult<Place> {
        self.window(window, |entry, now| {
            entry.pass(now, span);
            if entry.has(attempt) {
                return Place::Taken;
            }
            if entry.places.len() >= limit as usize {
                let first = entry.places.front().map_or(now, |(at, _)| *at);
                return Place::Full((first + span).saturating_sub(now));
            }
            entry.places.push_back((now, attempt.clone()));
            Place::Taken
        })
    }

    async fn give_back(&self, window: &WindowKey, attempt: &AttemptId) -> CodesResult<()> {
        self.window(window, |entry, _| entry.places.retain(|(_, id)| id != attempt))
    }

    async fn count(
        &self,
        window: &WindowKey,
        attempt: &AttemptId,
        limit: u32,
        span: Duration,
        hold: Duration,
    ) -> CodesResult<bool> {
        self.window(window, |entry, now| {
            entry.pass(now, span);
            if entry.has(attempt) {
                return false;
            }
            entry.places.push_back((now, attempt.clone()));
            let reached = entry.places.len() >= limit as usize && entry.held_until <= now;
            if reached {
                entry.held_until = now + hold;
            }
            reached
        })
    }

    async fn held(&self, window: &WindowKey) -> CodesResult<Option<Duration>> {
        self.window(window, |entry, now| entry.held_until.checked_sub(now).filter(|left| !left.is_zero()))
    }

    async fn release(&self, window: &WindowKey) -> CodesResult<()> {
        self.window(window, |entry, _| *entry = WindowEntry::default())
    }

    async fn pace(&self, key: &str, every: Duration, most: Duration) -> CodesResult<Option<Duration>> {
        let now = self.clock.monotonic();
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let next = rows.entry(key.to_owned()).or_default();
        let wait = next.saturating_sub(now);
        if wait > most {
            return Ok(None);
        }
        *next = now + wait + every;
        Ok(Some(wait))
    }

    async fn unfit(&self) -> Option<String> {
        None
    }

    async fn ping(&self) -> CodesResult<()> {
        Ok(())
    }
}
