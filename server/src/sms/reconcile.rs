//! Compares, once a day, how many messages we have sent by a provider's account with how many the provider has counted.

use super::channel::provider_zone;
use super::store::{self, Reconciliation};
use crate::accounts::store::tenants;
use crate::app::AppState;
use crate::db::{Db, DbError, transact};
use crate::ops::alerts;
use jiff::{Timestamp, ToSpan, civil::Date};
use serde_json::{Value, json};
use wire::TenantId;
use wire::api::AlertKind;

const HOUR: i64 = 3_600_000;

/// A day is compared when it has been over for so long (ms): providers count with some delay.
const LATER: i64 = 3 * HOUR;

/// Days that are made up for, should every server have been away.
const DAYS: i64 = 7;

/// A provider that does not answer is asked again after this (ms); a server that ends meanwhile holds it up no longer.
const AGAIN: i64 = HOUR;

/// A provider that has not answered for so long (ms) makes an alert.
const GIVE_UP: i64 = 24 * HOUR;

/// A difference of fewer messages is none.
const LEAST: i64 = 10;

/// Compares what is due, for each account at a provider that counts.
pub(crate) async fn turn(app: &AppState) {
    for names in app.channels.accounts() {
        let Some(&channel) = names.iter().min() else { continue };
        let account = Account { channel, names };
        for ago in 1..=DAYS {
            let Some(day) = Day::ago(app.clock.now_ms(), ago) else { continue };
            if let Err(error) = compare(app, &account, &day, ago == 1).await {
                let day = &day.name;
                tracing::warn!(channel, day, %error, "a day's messages could not be compared; again in a while");
            }
        }
    }
}

/// An account at a provider, which is what a provider counts.
#[derive(Debug)]
struct Account<'a> {
    /// The channel that the comparison stands under: the first by the alphabet, wherever it stands in the settings.
    channel: &'a str,
    /// Every channel that sends by it.
    names: Vec<&'a str>,
}

impl Account<'_> {
    /// How many messages of this time it has taken, or may have.
    async fn taken(&self, db: &Db, from: i64, until: i64) -> Result<i64, DbError> {
        let mut taken = 0;
        for name in &self.names {
            taken += store::taken_by(db, name, from, until).await?;
        }
        Ok(taken)
    }

    /// The tenants whose messages these are.
    async fn tenants(&self, db: &Db, from: i64, until: i64) -> Result<Vec<TenantId>, DbError> {
        let mut tenants = Vec::new();
        for name in &self.names {
            tenants.extend(store::tenants_of(db, name, from, until).await?);
        }
        tenants.sort_unstable_by_key(|tenant: &TenantId| tenant.0);
        tenants.dedup();
        Ok(tenants)
    }
}

/// A day as providers count them.
#[derive(Debug)]
struct Day {
    /// `20260801`
    name: String,
    /// Unix ms, the end excluded.
    from: i64,
    until: i64,
}

impl Day {
    /// The day so many days before the one that has just begun to count.
    fn ago(now: i64, days: i64) -> Option<Self> {
        let today = Timestamp::from_millisecond(now - LATER).ok()?.to_zoned_datetime(provider_zone()).date();
        let date = today.checked_sub(days.days()).ok()?;
        let at = |date: Date| Some(provider_zone().to_timestamp(date.at(0, 0, 0, 0)).ok()?.as_millisecond());
        let next = date.checked_add(1.day()).ok()?;
        Some(Self { name: date.strftime("%Y%m%d").to_string(), from: at(date)?, until: at(next)? })
    }
}

/// Compares a day, unless it was, or another server does. Of older days only those on which we have sent something, and of
/// the newest one only what lies after our beginning: before that the account may have been somebody else's.
async fn compare(app: &AppState, account: &Account<'_>, day: &Day, newest: bool) -> Result<(), DbError> {
    let (now, channel) = (app.clock.now_ms(), account.channel);
    let known = store::reconciliation(&app.db, channel, &day.name).await?;
    let created_at = match known {
        Some(Reconciliation { done: true, .. }) => return Ok(()),
        Some(known) if now < known.due_at => return Ok(()),
        Some(known) => {
            if !transact(|| store::claim_reconciliation(&app.db, channel, &day.name, &known, now + AGAIN)).await? {
                return Ok(());
            }
            known.created_at
        }
        None => {
            let ours = account.taken(&app.db, day.from, day.until).await?;
            if ours == 0 && (!newest || !store::has_begun(&app.db, day.until).await?) {
                return Ok(());
            }
            if !transact(|| store::begin_reconciliation(&app.db, channel, &day.name, now, now + AGAIN)).await? {
                return Ok(());
            }
            now
        }
    };
    let theirs = match app.channels.sent_on(channel, &day.name).await {
        Ok(theirs) => Some(i64::try_from(theirs).unwrap_or(i64::MAX)),
        Err(error) => {
            let day = &day.name;
            tracing::warn!(channel, day, %error, "a provider does not tell how many messages it has counted");
            if now < created_at + GIVE_UP {
                return Ok(());
            }
            None
        }
    };
    end(app, account, day, theirs, now).await
}

/// Writes down what the comparison came to, with its alert, in one transaction.
async fn end(app: &AppState, account: &Account<'_>, day: &Day, theirs: Option<i64>, now: i64) -> Result<(), DbError> {
    let channel = account.channel;
    let ours = account.taken(&app.db, day.from, day.until).await?;
    let bad = theirs.is_none_or(|theirs| differs(ours, theirs, app.config.alerts.sms_reconciliation));
    let to = if bad { concerned(app, account, day).await? } else { Vec::new() };
    let mut data =
        if account.names.len() == 1 { json!({"channel": channel}) } else { json!({"channels": account.names}) };
    data["day"] = json!(day.name);
    // A tenant is not told how much the others send.
    if to.len() == 1 {
        data["ours"] = json!(ours);
        data["theirs"] = json!(theirs);
    }
    let ended = transact(|| end_once(app, channel, day, (ours, theirs), now, (&to, &data))).await?;
    if ended {
        let (channels, day) = (&account.names, &day.name);
        if bad {
            tracing::error!(?channels, day, ours, theirs, "a provider's count of a day's messages is not ours");
        } else {
            tracing::info!(?channels, day, ours, theirs, "a provider's count of a day's messages is ours");
        }
        for tenant in to {
            alerts::log(tenant, AlertKind::SmsReconciliation, None, Some(&data));
        }
    }
    Ok(())
}

async fn end_once(
    app: &AppState,
    channel: &str,
    day: &Day,
    (ours, theirs): (i64, Option<i64>),
    now: i64,
    (to, data): (&[TenantId], &Value),
) -> Result<bool, DbError> {
    let mut tx = app.db.begin().await?;
    if !store::end_reconciliation(&mut tx, channel, &day.name, ours, theirs, now).await? {
        return Ok(false);
    }
    for tenant in to {
        alerts::insert(&mut tx, now, *tenant, AlertKind::SmsReconciliation, None, Some(data)).await?;
    }
    tx.commit().await?;
    Ok(true)
}

/// Who is told: whose messages they were, or everybody where they were nobody's.
async fn concerned(app: &AppState, account: &Account<'_>, day: &Day) -> Result<Vec<TenantId>, DbError> {
    let of_the_day = account.tenants(&app.db, day.from, day.until).await?;
    if of_the_day.is_empty() { tenants(&app.db).await } else { Ok(of_the_day) }
}

/// Whether two counts differ by more than this share of the larger one (percent), and by more than a few.
fn differs(ours: i64, theirs: i64, share: u32) -> bool {
    let difference = ours.abs_diff(theirs);
    let allowed = u128::from(ours.max(theirs).unsigned_abs()) * u128::from(share) / 100;
    u128::from(difference) > allowed.max(u128::from(LEAST.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_messages_or_a_small_share_are_no_difference() {
        for (ours, theirs, share, is_different) in [
            (0, 0, 5, false),
            (0, 10, 5, false),
            (0, 11, 5, true),
            (11, 0, 5, true),
            (1000, 950, 5, false),
            (1000, 949, 5, true),
            (949, 1000, 5, true),
            (1000, 989, 0, true),
            (0, i64::MAX, u32::MAX, false),
        ] {
            assert_eq!(differs(ours, theirs, share), is_different, "{ours}, {theirs}");
        }
    }

    #[test]
    fn a_day_is_the_providers_and_has_been_over_for_three_hours() {
        // 2026-08-01 00:00 in China.
        const MIDNIGHT: i64 = 1_785_513_600_000;
        let day = Day::ago(MIDNIGHT + LATER, 1).unwrap();
        assert_eq!((day.name.as_str(), day.from, day.until), ("20260731", MIDNIGHT - 24 * HOUR, MIDNIGHT));
        assert_eq!(Day::ago(MIDNIGHT + LATER - 1, 1).unwrap().name, "20260730");
        assert_eq!(Day::ago(MIDNIGHT + LATER, 7).unwrap().name, "20260725");
    }
}
