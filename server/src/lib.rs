//! Guidepost's server: orders, verify codes and their redemption, exactly once.
//!
//! `start` makes a running server from settings; the command line and the kiosk that is its own server both call it.
#![forbid(unsafe_code)]

pub mod accounts;
mod admin;
pub mod app;
mod booking;
mod ca;
pub mod clock;
pub mod codes;
pub mod config;
pub mod db;
mod demo;
mod export;
mod http;
pub mod ops;
mod redemption;
mod secret_key;
mod settings;
mod signature;
mod sms;
mod text;
mod web_hooks;

pub use booking::files as order_files;
pub use config::Config;
pub use demo::{Demo, DemoLink};
pub use sms::{trace as sms_trace, trial as sms_trial};

use anyhow::Context;
use app::{App, AppState};
use clock::{Clock, RandomSource, SystemClock, SystemRandom};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use wire::{OrderNo, Secret};

/// How long shut-down waits for what is in flight.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(10);

/// A server that listens.
#[derive(Debug)]
pub struct Running {
    app: App,
    address: SocketAddr,
    base_url: String,
    demo: Option<Demo>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<std::io::Result<()>>,
    /// Who sends web hooks; dropped with this, it stops.
    sending: Option<web_hooks::Sending>,
    /// What it does by itself; dropped with this, it stops.
    upkeep: Option<ops::upkeep::Upkeep>,
    /// Held as long as the process serves a SQLite file.
    _lock: Option<File>,
}

/// The description of the HTTP interface (OpenAPI 3.1, JSON), from which the pages' types are made.
pub fn openapi() -> String {
    http::openapi::document().to_pretty_json().unwrap_or_default()
}

/// Starts a server on the machine's clock and secure random source.
///
/// # Errors
/// Where the database cannot be opened, another process serves the same file, or the address is taken.
pub async fn start(config: Config) -> anyhow::Result<Running> {
    start_with(config, Arc::new(SystemClock::new()), Arc::new(SystemRandom)).await
}

/// Starts a server on a clock and a random source of the caller's.
///
/// # Errors
/// As [`start`].
pub async fn start_with(
    config: Config,
    clock: Arc<dyn Clock>,
    random: Arc<dyn RandomSource>,
) -> anyhow::Result<Running> {
    for note in config.notes() {
        tracing::warn!("{note}");
    }
    // TLS towards the stores needs it; whoever has chosen one before keeps theirs.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listen = config.listen;
    // Before the migration: who may not serve this file must not change it under the one who does.
    let lock = lock_beside_database(&config)?;
    let app = AppState::open(config, clock, random).await?;
    if let Some(reason) = app.codes.unfit().await {
        anyhow::bail!("setting `code_store.url`: {reason}");
    }
    let sending = web_hooks::start(&app).await?;
    let listener = TcpListener::bind(listen).await.with_context(|| format!("cannot listen on {listen}"))?;
    let address = listener.local_addr()?;
    let base_url = match &app.config.public_url {
        Some(url) if listen.port() != 0 => url.trim_end_matches('/').to_owned(),
        _ => format!("http://{address}"),
    };
    let demo = if app.config.demo { Some(demo::make(&app, &base_url).await?) } else { None };

    // Before the first request: whatever is being read then is this server's own.
    if let Err(error) = booking::files::drop_interrupted(&app.db, app.clock.now_ms()).await {
        tracing::warn!(%error, "what old order files have left could not be dropped; the next import does it");
    }
    let service = http::router(app.clone()).into_make_service_with_connect_info::<SocketAddr>();
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(
        axum::serve(listener, service)
            .with_graceful_shutdown(async {
                // A dropped `Running` stops the server as well.
                let _ = stopped.await;
            })
            .into_future(),
    );
    let channels = app.clone();
    // Beside serving: a provider that is away must hold up no start.
    tokio::spawn(async move { channels.channels.check_templates().await });
    let upkeep = ops::upkeep::start(&app);
    tracing::info!(%address, "listening");
    Ok(Running {
        app,
        address,
        base_url,
        demo,
        stop: Some(stop),
        serving,
        sending: Some(sending),
        upkeep: Some(upkeep),
        _lock: lock,
    })
}

/// `memory:` keeps codes in one process: a second one on the same database would issue codes of its own. By whatever
/// path the file is named, the lock lies beside the file itself.
pub(crate) fn lock_beside_database(config: &Config) -> anyhow::Result<Option<File>> {
    let Some(file) = config.database.url.sqlite_file() else { return Ok(None) };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    std::fs::create_dir_all(folder)
        .with_context(|| format!("the database's folder {} cannot be made", folder.display()))?;
    let file = match file.canonicalize() {
        Ok(file) => file,
        Err(_) => folder.canonicalize()?.join(file.file_name().context("setting `database.url` names no file")?),
    };
    let path = lock_of(&file);
    let lock = File::create(&path).with_context(|| format!("cannot make {}", path.display()))?;
    lock.try_lock().map_err(|_| {
        anyhow::anyhow!("another guidepost-server serves {}; on a SQLite file one process alone may", file.display())
    })?;
    Ok(Some(lock))
}

/// The lock of a database's file that is named without links.
pub(crate) fn lock_of(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".serve-lock");
    PathBuf::from(path)
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address that people use, without a slash at its end.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// What the demo made, if this is one.
    pub fn demo(&self) -> Option<&Demo> {
        self.demo.as_ref()
    }

    /// The parts of the server.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// A new one-time link for the visitor of a demo's order.
    ///
    /// # Errors
    /// Where this is no demo or there is no such order.
    pub async fn visitor_link(&self, order_no: &OrderNo) -> anyhow::Result<Secret> {
        anyhow::ensure!(self.demo.is_some(), "sign-in links are for the demo alone");
        demo::visitor_link(&self.app, &self.base_url, order_no).await
    }

    /// Stops accepting, finishes what is in flight within ten seconds, and closes the database.
    ///
    /// # Errors
    /// Where serving had ended with an error.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        let finish = async {
            let served = (&mut self.serving).await;
            self.app.tasks.close();
            self.app.tasks.wait().await;
            if let Some(sending) = self.sending.take() {
                sending.stop().await;
            }
            if let Some(upkeep) = self.upkeep.take() {
                upkeep.stop().await;
            }
            served
        };
        match tokio::time::timeout(SHUTDOWN_LIMIT, finish).await {
            Ok(served) => served??,
            Err(_) => {
                tracing::warn!("some requests did not finish within {SHUTDOWN_LIMIT:?} and were cut off");
                self.serving.abort();
            }
        }
        self.app.db.close().await;
        Ok(())
    }

    /// Waits until serving ends by itself, which it does not do without a fault.
    ///
    /// # Errors
    /// The fault.
    pub async fn ended(&mut self) -> anyhow::Result<()> {
        (&mut self.serving).await??;
        Ok(())
    }
}
