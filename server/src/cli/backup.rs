//! `backup FILE` and `restore FILE`.

use super::say;
use guidepost_server::Config;
use guidepost_server::clock::SystemClock;
use guidepost_server::ops::backup::{self, Contents, megabytes};
use std::path::Path;

/// Writes a backup; where it is interrupted, nothing is left behind.
pub(super) async fn backup(config: Config, file: &Path, overwrite: bool) -> anyhow::Result<()> {
    let contents = tokio::select! {
        contents = backup::backup(&config, file, overwrite) => contents?,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted; there is no backup"),
    };
    say(format_args!("backed up to {}: {}", file.display(), in_words(&contents)))
}

/// Puts a backup in the database's place and says what to do next.
pub(super) async fn restore(config: Config, file: &Path) -> anyhow::Result<()> {
    let restored = backup::restore(&config, file, &SystemClock::new()).await?;
    say(format_args!("restored from {}: {}", file.display(), in_words(&restored.contents)))?;
    if let Some(kept) = restored.kept {
        say(format_args!("the database that was there is kept as {}", kept.display()))?;
    }
    say("Next:")?;
    say("1. start the server: guidepost-server serve")?;
    say("2. everybody signs in again")?;
    say("3. orders redeemed since the backup count as paid: have the booking system send its orders again")?;
    say(
        "4. systems that read the feed of redemptions begin it anew: row numbers after the backup are given out again",
    )?;
    say("5. API keys and passwords are those of the backup: change again what was changed since")
}

fn in_words(contents: &Contents) -> String {
    let last = contents.last_redemption.as_ref();
    let last = last.map_or_else(|| "no redemption".to_owned(), |at| format!("the last redemption at {at}"));
    format!("{}, {} orders, {last}", megabytes(contents.bytes), contents.orders)
}
