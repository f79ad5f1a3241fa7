//! Watches how many of the codes that were sent are used. It reads the database, so that it sees what every server has sent;
//! whoever of them sees something first raises the alert, once an hour.

use super::store::{self, Used};
use crate::accounts::store::tenants;
use crate::app::AppState;
use crate::codes::{AttemptId, Place, WindowKey};
use crate::db::DbError;
use crate::ops::alerts;
use crate::ops::metrics::range_of;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;
use wire::TenantId;
use wire::api::AlertKind;

/// So long a time is looked at, and an alert of a kind is not raised again.
const HOUR: Duration = Duration::from_secs(3600);

/// Codes that are younger, or still alive, may yet be used.
const SETTLED: Duration = Duration::from_secs(600);

/// Servers look once a minute, each at its own time: one that raises an alert has written it long before this is over.
const ONE_AT_A_TIME: Duration = Duration::from_secs(30);

/// Networks that an alert names.
const MOST_NETWORKS: usize = 5;

/// Scenes that an alert names.
const MOST_SCENES: usize = 20;

/// Looks at every tenant's last hour.
pub(crate) async fn turn(app: &AppState) {
    let tenants = match tenants(&app.db).await {
        Ok(tenants) => tenants,
        Err(error) => return tracing::warn!(%error, "SMS codes are not watched; again in a minute"),
    };
    for tenant in tenants {
        if let Err(error) = look(app, tenant).await {
            tracing::warn!(tenant.id = tenant.0, %error, "SMS codes are not watched; again in a minute");
        }
    }
}

async fn look(app: &AppState, tenant: TenantId) -> Result<(), DbError> {
    let rules = app.rules(tenant).await?;
    let now = app.clock.now_ms();

    // The share of numbers that used a code, of an hour that has settled: of each scene its own, by its codes' life.
    let settled = |scene: &str| SETTLED.max(rules.sms.scene(scene).map_or(SETTLED, |rule| rule.ttl));
    let ages: BTreeSet<Duration> = app.config.sms.scene_names().map(settled).chain([SETTLED]).collect();
    let (mut found, mut from, mut until) = (Vec::new(), i64::MAX, i64::MIN);
    for age in ages {
        let end = now - ms(age);
        let start = end - ms(HOUR);
        let mut all = store::used_by_scene(&app.db, tenant, start, end).await?;
        all.retain(|used| settled(&used.scene) == age && few(used, rules.sms_pass_rate, rules.sms_pass_rate_numbers));
        if !all.is_empty() {
            (from, until) = (from.min(start), until.max(end));
            found.extend(all);
        }
    }
    if !found.is_empty() {
        raise(app, tenant, AlertKind::SmsPassRate, &found, (from, until)).await?;
    }

    // Numbers that used none, of the last hour: whoever runs up the bill has to be seen soon.
    let (from, until) = (now - ms(HOUR), now + 1);
    let all = store::used_by_scene(&app.db, tenant, from, until).await?;
    let (numbers, used) = all.iter().fold((0, 0), |(numbers, used), of| (numbers + of.numbers, used + of.used));
    if pumped(numbers, used, rules.sms_pumping) {
        raise(app, tenant, AlertKind::SmsPumping, &all, (from, until)).await?;
    }
    Ok(())
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// Whether fewer numbers than this share (percent) used a code, where there are enough to judge by.
fn few(of: &Used, share: u32, least: u32) -> bool {
    of.numbers > 0 && of.numbers >= i64::from(least) && of.used * 100 < of.numbers * i64::from(share)
}

/// Whether so many numbers used none, and more than used one.
fn pumped(numbers: i64, used: i64, most: u32) -> bool {
    let unused = numbers - used;
    most > 0 && unused >= i64::from(most) && unused > used
}

async fn raise(
    app: &AppState,
    tenant: TenantId,
    kind: AlertKind,
    of: &[Used],
    (from, until): (i64, i64),
) -> Result<(), DbError> {
    // The database remembers the hour, whatever becomes of the code store; that keeps two servers apart that see it at once.
    if alerts::raised_since(&app.db, tenant, kind, app.clock.now_ms() - ms(HOUR)).await? {
        return Ok(());
    }
    let window =
        WindowKey::named(&app.config.code_store.prefix, "sms:alerted", format_args!("{tenant}:{}", kind.as_str()));
    let attempt = AttemptId::new(uuid::Uuid::new_v4().simple().to_string());
    match app.codes.take(&window, &attempt, 1, ONE_AT_A_TIME).await {
        Ok(Place::Taken) => {}
        Ok(Place::Full(_)) => return Ok(()),
        Err(error) => {
            tracing::warn!(%error, "whether an alert has been raised is not known; again in a minute");
            return Ok(());
        }
    }
    let networks = networks(&store::senders(&app.db, tenant, from, until).await?);
    alerts::raise_about(app, tenant, kind, &data(of, &networks, from, until)).await;
    Ok(())
}

/// What is known of it: where to look next. Numbers are not in the database; `/metrics` has their first digits.
fn data(of: &[Used], networks: &[(String, i64)], from: i64, until: i64) -> Value {
    let scenes = of.iter().take(MOST_SCENES);
    let scenes = scenes.map(|of| json!({"scene": of.scene, "numbers": of.numbers, "used": of.used}));
    let networks = networks.iter().map(|(network, sends)| json!({"network": network, "sends": sends}));
    json!({
        "from": from, "until": until, "scenes": scenes.collect::<Vec<_>>(), "networks": networks.collect::<Vec<_>>(),
    })
}

/// The networks of the most sends, the busiest first.
fn networks(senders: &[(String, i64)]) -> Vec<(String, i64)> {
    let mut by_network = BTreeMap::new();
    for (address, sends) in senders {
        if let Ok(address) = address.parse::<IpAddr>() {
            *by_network.entry(range_of(address)).or_insert(0) += sends;
        }
    }
    let mut networks: Vec<_> = by_network.into_iter().collect();
    networks.sort_by_key(|(_, sends)| -sends);
    networks.truncate(MOST_NETWORKS);
    networks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_judged_where_there_are_enough_numbers() {
        let of = |numbers, used| Used { scene: "login".to_owned(), numbers, used };
        for (numbers, used, share, least, is_few) in [
            (30, 14, 50, 30, true),
            (30, 15, 50, 30, false),
            (29, 0, 50, 30, false),
            (1000, 0, 0, 30, false),
            (0, 0, 50, 0, false),
            (1, 0, 1, 0, true),
        ] {
            assert_eq!(few(&of(numbers, used), share, least), is_few, "{used} of {numbers}");
        }
    }

    #[test]
    fn many_unused_numbers_among_few_used_ones_are_pumping() {
        for (numbers, used, most, is_pumped) in [
            (100, 0, 100, true),
            (99, 0, 100, false),
            // A busy house, where a tenth is on its way.
            (1200, 1080, 100, false),
            (240, 120, 100, false),
            (241, 120, 100, true),
            (5000, 0, 0, false),
        ] {
            assert_eq!(pumped(numbers, used, most), is_pumped, "{used} of {numbers}");
        }
    }

    #[test]
    fn the_busiest_networks_are_named() {
        let senders = [("10.1.2.3", 4), ("10.1.9.9", 5), ("2001:db8::1", 7), ("?", 99), ("10.2.0.1", 1)];
        let senders = senders.map(|(address, sends)| (address.to_owned(), sends));
        let named: Vec<_> =
            networks(&senders).into_iter().map(|(network, sends)| format!("{network} {sends}")).collect();
        assert_eq!(named, ["10.1.0.0/16 9", "2001:db8::/32 7", "10.2.0.0/16 1"]);
    }
}
