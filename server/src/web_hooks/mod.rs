//! Web hooks: other systems are told of redemptions and reversals, from an outbox that is written in the redemption's own
//! transaction. What has been committed is told at least once, what has not is never told.

mod address;
mod send;
mod store;

use crate::app::AppState;
use crate::config::{WebHookConfig, WebHookEvent};
use crate::db::{DbError, Tx};
use reqwest::Url;
use serde::Serialize;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Notify;
use wire::TenantId;
use wire::api::{Entry, OrderStatus};

pub(crate) use address::connect;
pub(crate) use send::{Sending, receiver, start};

/// The receivers of the settings file.
#[derive(Debug)]
pub(crate) struct WebHooks(Vec<Arc<WebHook>>);

/// A receiver.
#[derive(Debug)]
struct WebHook {
    config: WebHookConfig,
    tenant: TenantId,
    /// Something may have come into the outbox.
    wake: Notify,
}

/// Checks a receiver's address: HTTP or HTTPS, a host, no password in it, and no address of the server's own network
/// unless that is allowed. What a name stands for is checked when it is connected to.
pub(crate) fn check_url(config: &WebHookConfig) -> Result<Url, &'static str> {
    let url = Url::parse(config.url.expose()).map_err(|_| "is no web address")?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("must begin with http:// or https://");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user name or password: the signature tells the receiver who calls, leave them out");
    }
    let literal = url.host_str().and_then(|host| host.trim_matches(['[', ']']).parse::<IpAddr>().ok());
    if !config.allow_private && literal.is_some_and(|address| !address::is_public(address)) {
        return Err("is inside the server's own network: if that is meant, set `allow_private = true` beside it");
    }
    Ok(url)
}

/// Something that happened to an order.
#[derive(Debug)]
pub(crate) struct OrderEvent<'a> {
    pub(crate) kind: WebHookEvent,
    pub(crate) tenant: TenantId,
    pub(crate) order_id: i64,
    pub(crate) order_no: &'a str,
    pub(crate) request_id: Option<&'a str>,
    /// The operator's account.
    pub(crate) operator_id: i64,
    pub(crate) operator_type: &'a str,
    pub(crate) entry: Option<Entry>,
    pub(crate) party_size: i64,
    pub(crate) visit_at: i64,
    pub(crate) task_no: Option<&'a str>,
    /// When it happened (Unix ms).
    pub(crate) at: i64,
}

/// What is sent. No phone number and no code is in it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    id: &'a str,
    event: &'a str,
    tenant: i64,
    order_no: &'a str,
    request_id: Option<&'a str>,
    status_before: &'a str,
    status_after: &'a str,
    operator: Option<&'a str>,
    operator_type: &'a str,
    entry: Option<&'a str>,
    party_size: i64,
    visit_at: i64,
    task_no: Option<&'a str>,
    at: i64,
}

impl WebHooks {
    /// The receivers of the settings.
    pub(crate) fn new(configs: &[WebHookConfig]) -> Self {
        let hook = |config: &WebHookConfig| {
            Arc::new(WebHook { config: config.clone(), tenant: TenantId(config.tenant), wake: Notify::new() })
        };
        Self(configs.iter().map(hook).collect())
    }

    fn of(&self, tenant: TenantId) -> impl Iterator<Item = &Arc<WebHook>> {
        self.0.iter().filter(move |hook| hook.tenant == tenant)
    }

    /// Puts an event into the outbox, within the transaction in which it happens.
    pub(crate) async fn write(&self, tx: &mut Tx, event: &OrderEvent<'_>) -> Result<(), DbError> {
        let mut operator = None;
        for hook in self.of(event.tenant).filter(|hook| hook.config.events.contains(&event.kind)) {
            if operator.is_none() {
                operator = store::operator_name(tx, event.tenant, event.operator_id).await?;
            }
            let id = uuid::Uuid::new_v4().to_string();
            let body = body_of(event, &id, operator.as_deref());
            let row = store::NewDelivery { hook: &hook.config.name, event_id: &id, body: &body, event };
            store::insert(tx, &row).await?;
        }
        Ok(())
    }

    /// After the commit: the senders look at once. Without it they look within a second.
    pub(crate) fn wake(&self, tenant: TenantId) {
        for hook in self.of(tenant) {
            hook.wake.notify_one();
        }
    }
}

fn body_of(event: &OrderEvent<'_>, id: &str, operator: Option<&str>) -> String {
    let (before, after) = match event.kind {
        WebHookEvent::OrderConsumed => (OrderStatus::Paid, OrderStatus::Consumed),
        WebHookEvent::OrderReversed => (OrderStatus::Consumed, OrderStatus::Paid),
    };
    let body = Body {
        id,
        event: event.kind.as_str(),
        tenant: event.tenant.0,
        order_no: event.order_no,
        request_id: event.request_id,
        status_before: before.as_str(),
        status_after: after.as_str(),
        operator,
        operator_type: event.operator_type,
        entry: event.entry.map(Entry::as_str),
        party_size: event.party_size,
        visit_at: event.visit_at,
        task_no: event.task_no,
        at: event.at,
    };
    serde_json::json!(body).to_string()
}

/// Checks the receivers against the database: each must name a tenant that is there.
async fn check_tenants(app: &AppState) -> anyhow::Result<()> {
    if app.web_hooks.0.is_empty() {
        return Ok(());
    }
    let tenants = crate::accounts::store::tenants(&app.db).await?;
    for (n, hook) in app.web_hooks.0.iter().enumerate() {
        check_tenant(n, &hook.config, &tenants)?;
    }
    Ok(())
}

/// Checks that the `n`th receiver's tenant is there.
pub(crate) fn check_tenant(n: usize, config: &WebHookConfig, tenants: &[TenantId]) -> anyhow::Result<()> {
    let tenant = config.tenant;
    let there = tenants.contains(&TenantId(tenant));
    anyhow::ensure!(there, "setting `web_hooks[{n}].tenant`: there is no tenant {tenant}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{SystemClock, SystemRandom};
    use crate::config::Config;
    use sqlx::Row;
    use wire::Secret;

    fn hook(name: &str, events: &[WebHookEvent]) -> WebHookConfig {
        WebHookConfig {
            name: name.to_owned(),
            url: Secret::new("https://example.org/hook"),
            events: events.to_vec(),
            ..WebHookConfig::default()
        }
    }

    #[test]
    fn an_address_inside_the_network_must_be_allowed() {
        for (url, allow_private, good) in [
            ("https://example.org/hook?x=1", false, true),
            ("http://8.8.8.8/", false, true),
            ("http://[2606:4700::1111]:8080/", false, true),
            ("http://127.0.0.1/", false, false),
            ("http://127.0.0.1/", true, true),
            // Other spellings of 127.0.0.1.
            ("http://0x7f.1/", false, false),
            ("http://2130706433/", false, false),
            ("http://[::ffff:127.0.0.1]/", false, false),
            ("http://[::1]/", false, false),
            ("http://169.254.169.254/latest", false, false),
            ("https://user:password@example.org/", false, false),
            ("ftp://example.org/", false, false),
            ("example.org", false, false),
        ] {
            let config = WebHookConfig { url: Secret::new(url), allow_private, ..hook("x", &[]) };
            assert_eq!(check_url(&config).is_ok(), good, "{url}");
        }
    }

    #[tokio::test]
    async fn each_receiver_gets_the_events_that_it_asked_for() {
        use WebHookEvent::{OrderConsumed, OrderReversed};
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::demo_in(folder.path());
        config.web_hooks = vec![hook("both", &[OrderConsumed, OrderReversed]), hook("reversed", &[OrderReversed])];
        config.web_hooks.push(WebHookConfig { tenant: 2, ..hook("others", &[OrderReversed]) });
        let app = AppState::open(config, Arc::new(SystemClock::new()), Arc::new(SystemRandom)).await.unwrap();
        let mut tx = app.db.begin().await.unwrap();
        for sql in [
            "INSERT INTO account (id, tenant_id, mobile, name, created_at) VALUES (5, 1, '+8613900000001', '林悦', 0)",
            "INSERT INTO booking_order (id, tenant_id, order_no, account_id, visitor_name, party_size, visit_at, status, created_at, updated_at)
             VALUES (7, 1, 'BK1', 5, 'x', 4, 0, 'paid', 0, 0)",
        ] {
            sqlx::query(sql).execute(&mut *tx).await.unwrap();
        }
        for kind in [OrderConsumed, OrderReversed] {
            let event = OrderEvent {
                kind,
                tenant: TenantId(1),
                order_id: 7,
                order_no: "BK1",
                request_id: Some("r-1"),
                operator_id: 5,
                operator_type: "admin",
                entry: None,
                party_size: 4,
                visit_at: 9,
                task_no: None,
                at: 12,
            };
            app.web_hooks.write(&mut tx, &event).await.unwrap();
        }
        tx.commit().await.unwrap();
        let rows = sqlx::query("SELECT hook, event, body, event_id FROM web_hook_delivery ORDER BY id");
        let rows = rows.fetch_all(app.db.read()).await.unwrap();
        let names: Vec<(String, String)> = rows.iter().map(|row| (row.get("hook"), row.get("event"))).collect();
        let want = [("both", "order.consumed"), ("both", "order.reversed"), ("reversed", "order.reversed")];
        assert_eq!(names, want.map(|(hook, event)| (hook.to_owned(), event.to_owned())));
        let body: serde_json::Value = serde_json::from_str(rows[1].get("body")).unwrap();
        assert_eq!(
            body,
            serde_json::json!({
                "id": rows[1].get::<String, _>("event_id"), "event": "order.reversed", "tenant": 1, "orderNo": "BK1",
                "requestId": "r-1", "statusBefore": "consumed", "statusAfter": "paid", "operator": "林悦", "operatorType": "admin",
                "entry": null, "partySize": 4, "visitAt": 9, "taskNo": null, "at": 12,
            })
        );
    }
}
