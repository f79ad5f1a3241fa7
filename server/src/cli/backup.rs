//! `backup FILE` and `restore FILE`.

use super::say;
use guidepost_server::Config;
use guidepost_server::clock::SystemClock;
use guidepost_server::ops::backup::{self, Contents, megabytes};
use std::path::Path;

/// What a restore leaves to people; docs/backup.md has it at length.
const NEXT: &str = "Next:
1. start the server: guidepost-server serve
2. everybody signs in again
3. orders are as they were when the backup was made: those redeemed since count as paid and could be redeemed again;
   have the booking system send its orders again, the redeemed ones as cancelled
4. systems that read the feed of redemptions begin it anew: numbers of rows after the backup are given out again
5. API keys, passwords and roles are those of the backup: change again what was changed since";

/// Writes a backup; where it is interrupted, nothing is left behind.
pub(super) async fn backup(config: Config, file: &Path, overwrite: bool) -> anyhow::Result<()> {
    let clock = SystemClock::new();
    let done = tokio::select! {
        done = backup::backup(&config, file, overwrite, &clock) => done?,
        _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted; there is no backup"),
    };
    let contents = in_words(&done.contents);
    say(format_args!("backed up to {}, as of {}: {contents}", file.display(), done.as_of))
}

/// Puts a backup in the database's place and says what to do next.
pub(super) async fn restore(config: Config, file: &Path) -> anyhow::Result<()> {
    let restored = backup::restore(&config, file, &SystemClock::new()).await?;
    say(format_args!("restored from {}: {}", file.display(), in_words(&restored.contents)))?;
    if let Some(kept) = restored.kept {
        say(format_args!("the database that was there is kept as {}", kept.display()))?;
    }
    say(NEXT)
}

fn in_words(contents: &Contents) -> String {
    let last = contents.last_redemption.as_ref();
    let last = last.map_or_else(|| "no redemption".to_owned(), |at| format!("the last redemption at {at}"));
    format!("{}, {} orders, {last}", megabytes(contents.bytes), contents.orders)
}
