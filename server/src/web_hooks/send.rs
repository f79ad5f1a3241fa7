//! Sends what stands in the outbox: signed, in order for each order, again and again until it is taken or a day has passed.

use super::address::{Inside, PublicOnly};
use super::store::{self, Delivery};
use super::{WebHook, check_tenants, check_url};
use crate::app::App;
use crate::clock::RandomSource;
use crate::config::WebHookConfig;
use crate::db::DbError;
use crate::ops::alerts;
use crate::signature;
use anyhow::Context;
use reqwest::{Client, Url};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{Id, JoinError, JoinHandle, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};
use wire::api::AlertKind;

/// Requests to one receiver at once.
const AT_ONCE: usize = 8;
/// For a connection.
pub(super) const CONNECT_LIMIT: Duration = Duration::from_secs(3);
/// How often the outbox is looked at without being told.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long shut-down waits for requests that are under way.
const STOP_LIMIT: Duration = Duration::from_secs(3);
/// How much longer than its request a server's claim holds (ms), for servers' clocks may differ.
const CLAIM_MARGIN: i64 = 10_000;
/// The first wait before another try (ms); each is twice the one before it.
const FIRST_WAIT: i64 = 1_000;
/// No wait is longer (ms), so that a receiver that is back hears soon.
const LONGEST_WAIT: i64 = 600_000;
/// After this an event is given up (ms).
const GIVE_UP: i64 = 24 * 3_600_000;
/// After this its row is deleted (ms).
const KEEP: i64 = 7 * 24 * 3_600_000;
/// How often old rows are looked for (ms), and how often a receiver makes an alert at most.
const HOUR: i64 = 3_600_000;

/// The senders of a running server; they stop when this is dropped.
#[derive(Debug)]
pub(crate) struct Sending {
    stop: DropGuard,
    senders: Vec<JoinHandle<()>>,
}

/// Starts a sender for each receiver of the settings.
///
/// # Errors
/// Where a receiver's settings cannot be used; the text names the key.
pub(crate) async fn start(app: &App) -> anyhow::Result<Sending> {
    check_tenants(app).await?;
    let stop = CancellationToken::new();
    let mut senders = Vec::new();
    for (n, hook) in app.web_hooks.0.iter().enumerate() {
        let (url, client) = receiver(n, &hook.config)?;
        let sender = Sender {
            app: app.clone(),
            hook: hook.clone(),
            client,
            url,
            running: JoinSet::new(),
            claimed: HashMap::new(),
            ended: Vec::new(),
            alerted_at: None,
            purged_at: None,
        };
        senders.push(tokio::spawn(sender.run(stop.clone())));
    }
    Ok(Sending { stop: stop.drop_guard(), senders })
}

impl Sending {
    /// Finishes what is under way, within some seconds.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        for sender in self.senders {
            let _ = sender.await;
        }
    }
}

/// The `n`th receiver's address, and what calls it.
///
/// # Errors
/// Where its settings cannot be used; the text names the key.
pub(crate) fn receiver(n: usize, config: &WebHookConfig) -> anyhow::Result<(Url, Client)> {
    let url = check_url(config).map_err(|wrong| anyhow::anyhow!("setting `web_hooks[{n}].url` {wrong}"))?;
    let client = client(config, &url).with_context(|| {
        format!("setting `web_hooks[{n}].url`: TLS cannot be used; does this machine have root certificates?")
    })?;
    Ok((url, client))
}

fn client(config: &WebHookConfig, url: &Url) -> reqwest::Result<Client> {
    let limit = Duration::from_secs(config.timeout.into());
    let mut client = Client::builder()
        .user_agent(concat!("guidepost/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(CONNECT_LIMIT.min(limit))
        .timeout(limit)
        // A redirect could lead into the server's own network; a proxy would look names up by itself.
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        // Repeats are counted and spaced here.
        .retry(reqwest::retry::never());
    if url.scheme() == "http" {
        // A machine without root certificates must be able to reach it.
        client = client.tls_certs_only([]);
    }
    if !config.allow_private {
        client = client.dns_resolver(PublicOnly);
    }
    client.build()
}

/// Sends to one receiver. A receiver that is slow or dead holds up no other.
struct Sender {
    app: App,
    hook: Arc<WebHook>,
    url: Url,
    client: Client,
    running: JoinSet<Result<(), String>>,
    /// What is under way.
    claimed: HashMap<Id, Delivery>,
    /// How it ended, as far as it has not been written down.
    ended: Vec<(Delivery, Result<(), String>)>,
    alerted_at: Option<i64>,
    purged_at: Option<i64>,
}

impl Sender {
    async fn run(mut self, stop: CancellationToken) {
        let mut look = tokio::time::interval(LOOK_AGAIN);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(ended) = self.running.join_next_with_id(), if !self.running.is_empty() => self.note(ended),
                () = self.hook.wake.notified() => {}
                _ = look.tick() => self.purge().await,
            }
            while let Some(ended) = self.running.try_join_next_with_id() {
                self.note(ended);
            }
            if let Err(error) = self.turn().await {
                let hook = &self.hook.config.name;
                tracing::warn!(hook, %error, "the outbox of a web hook could not be worked on; once more in a moment");
            }
        }
        self.stop().await;
    }

    fn note(&mut self, ended: Result<(Id, Result<(), String>), JoinError>) {
        let (id, result) = match ended {
            Ok(done) => done,
            Err(error) => (error.id(), Err("a fault of this server".to_owned())),
        };
        if let Some(delivery) = self.claimed.remove(&id) {
            self.ended.push((delivery, result));
        }
    }

    /// Writes down how requests ended and claims what is due, in one transaction: SQLite has one writer, and redemptions
    /// want it, too.
    async fn turn(&mut self) -> Result<(), DbError> {
        let (tenant, now) = (self.hook.tenant, self.app.clock.now_ms());
        let free = AT_ONCE.saturating_sub(self.running.len());
        let mut due = match i64::try_from(free) {
            Ok(free) if free > 0 => store::due(&self.app.db, tenant, &self.hook.config.name, now, free).await?,
            _ => Vec::new(),
        };
        // A claim that ran out while its request goes on is still this sender's.
        due.retain(|d| {
            !self.claimed.values().any(|claimed| claimed.id == d.id) && !self.ended.iter().any(|(e, _)| e.id == d.id)
        });
        if due.is_empty() && self.ended.is_empty() {
            return Ok(());
        }
        // Always in the same order, so that two servers do not wait for each other.
        due.sort_by_key(|delivery| delivery.id);
        let mut tx = self.app.db.begin().await?;
        let mut given_up = 0;
        for (delivery, result) in &self.ended {
            match result {
                Ok(()) => store::mark_delivered(&mut tx, tenant, delivery.id, now).await?,
                Err(reason) if now >= delivery.created_at + GIVE_UP => {
                    if store::give_up(&mut tx, tenant, delivery, now, reason).await? {
                        given_up += 1;
                    }
                }
                Err(reason) => {
                    let wait = wait(&*self.app.random, delivery.attempts);
                    // The last try is when the day is over.
                    let due_at = (now + wait).min(delivery.created_at + GIVE_UP);
                    store::postpone(&mut tx, tenant, delivery, due_at, reason).await?;
                }
            }
        }
        let mut claimed = Vec::new();
        let until = now + i64::from(self.hook.config.timeout) * 1_000 + CLAIM_MARGIN;
        for delivery in due {
            if store::claim(&mut tx, tenant, &delivery, until).await? {
                claimed.push(delivery);
            }
        }
        tx.commit().await?;
        if !self.ended.is_empty() {
            self.ended.clear();
            // What waited for these may be sent now.
            self.hook.wake.notify_one();
        }
        for delivery in claimed {
            let request = self.request(&delivery, now);
            let id = self.running.spawn(send(request, self.hook.clone(), delivery.clone())).id();
            self.claimed.insert(id, delivery);
        }
        if given_up > 0 {
            self.alert(given_up, now).await;
        }
        Ok(())
    }

    fn request(&self, delivery: &Delivery, now: i64) -> reqwest::RequestBuilder {
        let signature = signature::header(self.hook.config.secret.expose(), now, &delivery.body);
        self.client
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header("x-guidepost-event", &delivery.event)
            .header("x-guidepost-delivery", &delivery.event_id)
            .header(signature::TIMESTAMP, now)
            .header(signature::SIGNATURE, signature)
            .body(delivery.body.clone())
    }

    /// One alert an hour, however many events are given up.
    async fn alert(&mut self, events: usize, now: i64) {
        let hook = &self.hook.config.name;
        tracing::error!(hook, events, "events were given up: the receiver of a web hook has not taken them for a day");
        if self.alerted_at.is_none_or(|at| now >= at + HOUR) {
            self.alerted_at = Some(now);
            alerts::raise(&self.app, self.hook.tenant, AlertKind::WebHookGivenUp, None).await;
        }
    }

    /// Once an hour, deletes what is a week old.
    async fn purge(&mut self) {
        let now = self.app.clock.now_ms();
        if self.purged_at.is_some_and(|at| now < at + HOUR) {
            return;
        }
        match store::purge(&self.app.db, self.hook.tenant, now - KEEP).await {
            // The rest a second later.
            Ok(true) => {}
            Ok(false) => self.purged_at = Some(now),
            Err(error) => tracing::warn!(%error, "old deliveries of web hooks could not be deleted"),
        }
    }

    /// Waits for what is under way, writes down how it ended, and gives back what has not.
    async fn stop(mut self) {
        let finish = async {
            while let Some(ended) = self.running.join_next_with_id().await {
                self.note(ended);
            }
        };
        if tokio::time::timeout(STOP_LIMIT, finish).await.is_err() {
            self.running.shutdown().await;
        }
        if let Err(error) = self.put_away().await {
            tracing::warn!(%error, "deliveries of web hooks that were under way are sent again later");
        }
    }

    async fn put_away(&self) -> Result<(), DbError> {
        if self.ended.is_empty() && self.claimed.is_empty() {
            return Ok(());
        }
        let (tenant, now) = (self.hook.tenant, self.app.clock.now_ms());
        let mut tx = self.app.db.begin().await?;
        for (delivery, result) in &self.ended {
            match result {
                Ok(()) => store::mark_delivered(&mut tx, tenant, delivery.id, now).await?,
                Err(reason) => store::postpone(&mut tx, tenant, delivery, now, reason).await?,
            }
        }
        for delivery in self.claimed.values() {
            store::postpone(&mut tx, tenant, delivery, now, "the server stopped").await?;
        }
        Ok(tx.commit().await?)
    }
}

/// Sends once. The answer's status is all that counts; its body is not read.
async fn send(request: reqwest::RequestBuilder, hook: Arc<WebHook>, delivery: Delivery) -> Result<(), String> {
    let result = match request.send().await {
        Ok(answer) if answer.status().is_success() => Ok(()),
        Ok(answer) => Err(format!("HTTP {}", answer.status().as_u16())),
        Err(error) => Err(reason(&error).to_owned()),
    };
    let (hook, event, attempt) = (&hook.config.name, &delivery.event_id, delivery.attempts + 1);
    match &result {
        Ok(()) => tracing::debug!(hook, event, attempt, "a web hook was delivered"),
        Err(reason) => tracing::warn!(hook, event, attempt, reason, "a web hook was not delivered"),
    }
    result
}

/// Why there is no answer, in words of ours: a library's own may hold the address, and with it a secret.
fn reason(error: &reqwest::Error) -> &'static str {
    let causes = || std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    if causes().any(|cause| cause.is::<Inside>()) {
        "the address is inside the server's own network"
    } else if error.is_timeout() {
        "no answer in time"
    } else if error.is_connect() {
        "no connection"
    } else {
        "the connection broke"
    }
}

/// How long to wait (ms) after some attempts have failed before the one that failed now: half of it by chance, so that
/// what failed together does not come back together.
fn wait(random: &dyn RandomSource, attempts: i64) -> i64 {
    let doublings = u32::try_from(attempts).unwrap_or(u32::MAX).min(20);
    let whole = (FIRST_WAIT << doublings).min(LONGEST_WAIT);
    let half = u32::try_from(whole / 2).unwrap_or(u32::MAX);
    i64::from(half) + i64::from(random.number(0..=half))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemRandom;

    #[test]
    fn waits_grow_twofold_up_to_ten_minutes() {
        for (attempts, whole) in [(0, 1_000), (1, 2_000), (5, 32_000), (9, 512_000), (10, 600_000), (1_000, 600_000)] {
            for _ in 0..100 {
                let wait = wait(&SystemRandom, attempts);
                assert!((whole / 2..=whole).contains(&wait), "{attempts}: {wait}");
            }
        }
    }
}
