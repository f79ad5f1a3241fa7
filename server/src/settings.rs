//! Settings that change while the server runs: a tenant's own values over those of file and environment.

use crate::app::AppState;
use crate::codes::{Life, LockRule};
use crate::config::{Config, MAX_GRACE};
use crate::db::{Db, DbError};
use serde_json::Value;
use sqlx::Row;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use wire::TenantId;

/// A change is seen by every server within this.
const MAX_AGE: Duration = Duration::from_secs(2);

/// How long wrong codes lock an order.
const ORDER_LOCK: Duration = Duration::from_secs(600);

/// The rules of redemption in a tenant, as of now.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) ttl: u32,
    pub(crate) grace: u32,
    pub(crate) operator: u32,
    pub(crate) ip: u32,
    pub(crate) order: u32,
    pub(crate) by_code: u32,
    pub(crate) freeze: u32,
    pub(crate) count_all: bool,
    pub(crate) consume_failures: u32,
}

/// Every setting that can be changed, by its name in the settings file.
pub(crate) const NAMES: [&str; 9] = [
    "verify_code.ttl",
    "verify_code.grace",
    "limits.consume.operator",
    "limits.consume.ip",
    "limits.consume.order",
    "limits.consume.by_code",
    "limits.consume.freeze",
    "limits.consume.count_all",
    "alerts.consume_failures",
];

impl Rules {
    fn of(config: &Config) -> Self {
        let limits = &config.limits.consume;
        Self {
            ttl: config.verify_code.ttl,
            grace: config.verify_code.grace,
            operator: limits.operator,
            ip: limits.ip,
            order: limits.order,
            by_code: limits.by_code,
            freeze: limits.freeze,
            count_all: limits.count_all,
            consume_failures: config.alerts.consume_failures,
        }
    }

    /// The value of a setting.
    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        Some(match name {
            "verify_code.ttl" => self.ttl.into(),
            "verify_code.grace" => self.grace.into(),
            "limits.consume.operator" => self.operator.into(),
            "limits.consume.ip" => self.ip.into(),
            "limits.consume.order" => self.order.into(),
            "limits.consume.by_code" => self.by_code.into(),
            "limits.consume.freeze" => self.freeze.into(),
            "limits.consume.count_all" => self.count_all.into(),
            "alerts.consume_failures" => self.consume_failures.into(),
            _ => return None,
        })
    }

    /// Sets a setting; `false` where there is none of that name or the value does not fit.
    pub(crate) fn set(&mut self, name: &str, value: &Value) -> bool {
        let number = || value.as_u64().and_then(|n| u32::try_from(n).ok());
        let place = match name {
            "limits.consume.count_all" => {
                return value.as_bool().map(|all| self.count_all = all).is_some();
            }
            "verify_code.ttl" if number().is_some_and(|n| n >= 1) => &mut self.ttl,
            "verify_code.grace" if number().is_some_and(|n| n <= MAX_GRACE) => &mut self.grace,
            "limits.consume.operator" => &mut self.operator,
            "limits.consume.ip" => &mut self.ip,
            "limits.consume.order" => &mut self.order,
            "limits.consume.by_code" => &mut self.by_code,
            "limits.consume.freeze" => &mut self.freeze,
            "alerts.consume_failures" => &mut self.consume_failures,
            _ => return false,
        };
        number().map(|n| *place = n).is_some()
    }

    /// How long a new code lives.
    pub(crate) fn life(&self) -> Life {
        Life { ttl: Duration::from_secs(self.ttl.into()), grace: Duration::from_secs(self.grace.into()) }
    }

    /// What locks an order.
    pub(crate) fn lock(&self) -> LockRule {
        LockRule { max: self.order, lock: ORDER_LOCK }
    }
}

/// What was read lately, by tenant.
#[derive(Debug, Default)]
pub(crate) struct SettingsCache(Mutex<HashMap<TenantId, (Duration, Arc<Rules>)>>);

impl SettingsCache {
    /// Forgets a tenant's: they have just been changed.
    pub(crate) fn forget(&self, tenant: TenantId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&tenant);
    }
}

impl AppState {
    /// The tenant's rules, at most two seconds old.
    pub(crate) async fn rules(&self, tenant: TenantId) -> Result<Arc<Rules>, DbError> {
        let now = self.clock.monotonic();
        let cached = self.settings.0.lock().unwrap_or_else(PoisonError::into_inner).get(&tenant).cloned();
        if let Some((read_at, rules)) = cached
            && now.saturating_sub(read_at) < MAX_AGE
        {
            return Ok(rules);
        }
        let mut rules = Rules::of(&self.config);
        for (name, value) in stored(&self.db, tenant).await? {
            if !rules.set(&name, &value) {
                tracing::warn!(name, "a stored setting does not fit and is left out");
            }
        }
        let rules = Arc::new(rules);
        self.settings.0.lock().unwrap_or_else(PoisonError::into_inner).insert(tenant, (now, rules.clone()));
        Ok(rules)
    }
}

/// A tenant's own values.
pub(crate) async fn stored(db: &Db, tenant: TenantId) -> Result<BTreeMap<String, Value>, DbError> {
    let rows =
        sqlx::query("SELECT name, value FROM setting WHERE tenant_id = ?").bind(tenant.0).fetch_all(db.read()).await?;
    let mut values = BTreeMap::new();
    for row in rows {
        let value = serde_json::from_str(row.try_get::<&str, _>("value")?).unwrap_or(Value::Null);
        values.insert(row.try_get("name")?, value);
    }
    Ok(values)
}
