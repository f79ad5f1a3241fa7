//! What every handler has at hand: settings, database, code store, clock and random source.

use crate::booking::files::Arrivals;
use crate::clock::{Clock, RandomSource};
use crate::codes::{CodeKey, CodeStore, MemoryCodes, RedisAddress, RedisCodes};
use crate::config::Config;
use crate::db::Db;
use crate::http::error::ApiError;
use crate::ops::metrics::Metrics;
use crate::secret_key::Keys;
use crate::settings::SettingsCache;
use crate::signature::hex;
use crate::sms::channel::{Channels, Parts};
use crate::sms::receipts::Receipts;
use crate::web_hooks::WebHooks;
use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::tz::TimeZone;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;
use tracing::Instrument;
use wire::{ErrorCode, Secret, TenantId};

/// Cheap to clone; all clones share one state.
pub type App = Arc<AppState>;

/// The parts of a running server.
#[derive(Debug)]
pub struct AppState {
    /// The settings.
    pub config: Config,
    /// The database.
    pub db: Db,
    /// The code store.
    pub codes: Arc<dyn CodeStore>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Where random numbers come from.
    pub random: Arc<dyn RandomSource>,
    /// Derived from the server's secret key.
    pub(crate) keys: Keys,
    /// The venue's zone.
    pub zone: TimeZone,
    /// Settings that were read lately.
    pub(crate) settings: SettingsCache,
    /// Who is told of redemptions.
    pub(crate) web_hooks: WebHooks,
    /// Who carries SMS codes.
    pub(crate) channels: Channels,
    /// Sends whose receipts are still to come.
    pub(crate) receipts: Receipts,
    /// What is counted.
    pub(crate) metrics: Metrics,
    /// Work that goes on when its caller has gone; shut-down waits for it.
    pub tasks: TaskTracker,
    /// Places for order files that are read at the same time.
    pub(crate) uploads: Arc<Semaphore>,
    /// Order files that are arriving.
    pub(crate) arrivals: Arrivals,
}

/// Order files that are read at the same time: each may take some memory and much of the database's time.
const UPLOADS: usize = 2;

impl AppState {
    /// Opens the database, migrates it if the settings say so, and makes the code store.
    ///
    /// # Errors
    /// Where a part cannot be opened; the text says which.
    pub async fn open(config: Config, clock: Arc<dyn Clock>, random: Arc<dyn RandomSource>) -> anyhow::Result<App> {
        let zone = TimeZone::get(&config.timezone).context("setting `timezone`")?;
        let db = Db::open(&config.database).await?;
        if config.database.migrate {
            db.migrate().await?;
        }
        let keys = Keys::open(&config, &*random)?;
        let codes = open_codes(&config, &clock)?;
        let web_hooks = WebHooks::new(&config.web_hooks);
        let metrics = Metrics::new(&config.sms);
        let parts = Parts {
            db: db.clone(),
            clock: clock.clone(),
            random: random.clone(),
            codes: codes.clone(),
            prefix: config.code_store.prefix.clone(),
            metrics: metrics.clone(),
        };
        let channels = Channels::new(&config.sms, config.demo, parts)?;
        Ok(Arc::new(Self {
            config,
            web_hooks,
            channels,
            receipts: Receipts::default(),
            metrics,
            db,
            codes,
            clock,
            random,
            keys,
            zone,
            settings: SettingsCache::default(),
            tasks: TaskTracker::new(),
            uploads: Arc::new(Semaphore::new(UPLOADS)),
            arrivals: Arrivals::default(),
        }))
    }

    /// The key of an order's code.
    pub(crate) fn code_key(&self, tenant: TenantId, order_id: i64) -> CodeKey {
        CodeKey::new(&self.config.code_store.prefix, tenant, order_id)
    }

    /// Runs work to its end even where its caller hangs up in the middle, as between a commit and what must follow it.
    pub(crate) async fn see_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
    ) -> Result<T, ApiError> {
        // Work that ends without a result has panicked.
        self.tasks.spawn(work.in_current_span()).await.unwrap_or_else(|_| Err(ErrorCode::Internal.into()))
    }

    /// A new token: 256 random bits.
    pub(crate) fn new_token(&self) -> Secret {
        let mut bytes = [0; 32];
        self.random.fill(&mut bytes);
        Secret::new(URL_SAFE_NO_PAD.encode(bytes))
    }
}

fn open_codes(config: &Config, clock: &Arc<dyn Clock>) -> anyhow::Result<Arc<dyn CodeStore>> {
    let url = config.code_store.url.expose();
    if url == "memory:" {
        return Ok(Arc::new(MemoryCodes::new(clock.clone())));
    }
    let address = RedisAddress::parse(url).map_err(|wrong| anyhow::anyhow!("setting `code_store.url` {wrong}"))?;
    let limit = Duration::from_millis(config.code_store.timeout_ms.into());
    Ok(Arc::new(RedisCodes::new(&address, config.code_store.ca.as_deref(), limit, &config.code_store.prefix)?))
}

/// What the database keeps of a token or key: its SHA-256, hex.
pub(crate) fn token_hash(token: &str) -> String {
    hex(&Sha256::digest(token.as_bytes()))
}
