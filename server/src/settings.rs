//! Settings that change while the server runs: a tenant's own values over those of file and environment.

use crate::app::AppState;
use crate::codes::sms::SceneRule;
use crate::codes::{Life, LockRule};
use crate::config::{Config, MAX_GRACE, SCENES, SceneConfig};
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

/// A tenant's rules as of now.
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
    pub(crate) sms_pass_rate: u32,
    pub(crate) sms_pass_rate_numbers: u32,
    pub(crate) sms_pumping: u32,
    pub(crate) auto_register: bool,
    pub(crate) sms: SmsRules,
}

/// The rules of SMS codes in a tenant.
#[derive(Debug, Clone)]
pub(crate) struct SmsRules {
    /// Sends an address has in an hour; one of the venue's own.
    pub(crate) ip: u32,
    pub(crate) venue: u32,
    pub(crate) captcha_after: u32,
    pub(crate) captcha_device: u32,
    pub(crate) captcha_number: u32,
    pub(crate) wrong: u32,
    pub(crate) daily_cap: u32,
    scenes: BTreeMap<String, SceneConfig>,
}

impl SmsRules {
    fn of(config: &Config) -> Self {
        let limits = &config.limits.sms;
        let scenes = SCENES.into_iter().chain(config.sms.scenes.keys().map(String::as_str));
        Self {
            ip: limits.ip,
            venue: limits.venue,
            captcha_after: limits.captcha_after,
            captcha_device: limits.captcha_device,
            captcha_number: limits.captcha_number,
            wrong: limits.wrong,
            daily_cap: config.sms.daily_cap,
            scenes: scenes.map(|name| (name.to_owned(), config.sms.scene(name))).collect(),
        }
    }

    /// What a scene goes by; `None` where there is no such scene.
    pub(crate) fn scene(&self, name: &str) -> Option<SceneRule> {
        let scene = self.scenes.get(name)?;
        let seconds = |n: u32| Duration::from_secs(n.into());
        Some(SceneRule {
            ttl: seconds(scene.ttl),
            cool_down: seconds(scene.cooldown),
            hourly: scene.hourly,
            daily: scene.daily,
            max_fail: scene.max_fail,
            lock: seconds(scene.lock),
        })
    }

    /// The longest life of any scene's codes.
    pub(crate) fn longest_ttl(&self) -> Duration {
        Duration::from_secs(self.scenes.values().map(|scene| scene.ttl).max().unwrap_or_default().into())
    }

    /// Where the value of `sms.scenes.NAME.field` stands, and its smallest value.
    fn scene_place(&mut self, name: &str) -> Option<(&mut u32, u32)> {
        let (scene, field) = name.strip_prefix("sms.scenes.")?.split_once('.')?;
        let scene = self.scenes.get_mut(scene)?;
        Some(match field {
            "ttl" => (&mut scene.ttl, 1),
            "cooldown" => (&mut scene.cooldown, 0),
            "hourly" => (&mut scene.hourly, 0),
            "daily" => (&mut scene.daily, 0),
            "max_fail" => (&mut scene.max_fail, 0),
            "lock" => (&mut scene.lock, 1),
            _ => return None,
        })
    }
}

/// Every setting of these that can be changed, by its name in the settings file; those of scenes come besides.
const NAMES: [&str; 20] = [
    "verify_code.ttl",
    "verify_code.grace",
    "limits.consume.operator",
    "limits.consume.ip",
    "limits.consume.order",
    "limits.consume.by_code",
    "limits.consume.freeze",
    "limits.consume.count_all",
    "limits.sms.ip",
    "limits.sms.venue",
    "limits.sms.captcha_after",
    "limits.sms.captcha_device",
    "limits.sms.captcha_number",
    "limits.sms.wrong",
    "alerts.consume_failures",
    "alerts.sms_pass_rate",
    "alerts.sms_pass_rate_numbers",
    "alerts.sms_pumping",
    "accounts.auto_register",
    "sms.daily_cap",
];

const SCENE_FIELDS: [&str; 6] = ["ttl", "cooldown", "hourly", "daily", "max_fail", "lock"];

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
            sms_pass_rate: config.alerts.sms_pass_rate,
            sms_pass_rate_numbers: config.alerts.sms_pass_rate_numbers,
            sms_pumping: config.alerts.sms_pumping,
            auto_register: config.accounts.auto_register,
            sms: SmsRules::of(config),
        }
    }

    /// Every setting that can be changed, by its name, with its value.
    pub(crate) fn all(&self) -> BTreeMap<String, Value> {
        let mut rules = self.clone();
        let scenes = self.sms.scenes.keys();
        let of_scenes = scenes.flat_map(|scene| SCENE_FIELDS.map(|field| format!("sms.scenes.{scene}.{field}")));
        let names = NAMES.map(str::to_owned).into_iter().chain(of_scenes);
        names.filter_map(|name| rules.place(&name).map(|place| place.value()).map(|value| (name, value))).collect()
    }

    /// Sets a setting; `false` where there is none of that name or the value does not fit.
    pub(crate) fn set(&mut self, name: &str, value: &Value) -> bool {
        match (self.place(name), value.as_bool(), value.as_u64().and_then(|n| u32::try_from(n).ok())) {
            (Some(Place::Truth(place)), Some(truth), _) => *place = truth,
            (Some(Place::Number(place, least, most)), _, Some(n)) if (least..=most).contains(&n) => *place = n,
            _ => return false,
        }
        true
    }

    /// Where a setting's value stands.
    fn place(&mut self, name: &str) -> Option<Place<'_>> {
        let any = |place| Some(Place::Number(place, 0, u32::MAX));
        let sms = &mut self.sms;
        match name {
            "limits.consume.count_all" => Some(Place::Truth(&mut self.count_all)),
            "accounts.auto_register" => Some(Place::Truth(&mut self.auto_register)),
            "verify_code.ttl" => Some(Place::Number(&mut self.ttl, 1, u32::MAX)),
            "verify_code.grace" => Some(Place::Number(&mut self.grace, 0, MAX_GRACE)),
            "limits.consume.operator" => any(&mut self.operator),
            "limits.consume.ip" => any(&mut self.ip),
            "limits.consume.order" => any(&mut self.order),
            "limits.consume.by_code" => any(&mut self.by_code),
            "limits.consume.freeze" => any(&mut self.freeze),
            "limits.sms.ip" => any(&mut sms.ip),
            "limits.sms.venue" => any(&mut sms.venue),
            "limits.sms.captcha_after" => any(&mut sms.captcha_after),
            "limits.sms.captcha_device" => any(&mut sms.captcha_device),
            "limits.sms.captcha_number" => any(&mut sms.captcha_number),
            "limits.sms.wrong" => any(&mut sms.wrong),
            "alerts.consume_failures" => any(&mut self.consume_failures),
            "alerts.sms_pass_rate" => Some(Place::Number(&mut self.sms_pass_rate, 0, 100)),
            "alerts.sms_pass_rate_numbers" => any(&mut self.sms_pass_rate_numbers),
            "alerts.sms_pumping" => any(&mut self.sms_pumping),
            "sms.daily_cap" => any(&mut sms.daily_cap),
            name => sms.scene_place(name).map(|(place, least)| Place::Number(place, least, u32::MAX)),
        }
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

/// The value of a setting: a truth, or a number with the least and the most that it may be.
enum Place<'a> {
    Truth(&'a mut bool),
    Number(&'a mut u32, u32, u32),
}

impl Place<'_> {
    fn value(&self) -> Value {
        match self {
            Self::Truth(truth) => (**truth).into(),
            Self::Number(number, ..) => (**number).into(),
        }
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
