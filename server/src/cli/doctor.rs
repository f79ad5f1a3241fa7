//! `doctor`.

use super::{Common, say, start_log};
use anyhow::ensure;
use guidepost_server::Config;
use guidepost_server::clock::{Clock, SystemClock};
use guidepost_server::ops::doctor::{Level, examine, settings_fault};
use std::path::Path;
use std::sync::Arc;

/// Says what is wrong with the set-up; a failure where something is.
pub(super) async fn doctor(common: &Common, ca: Option<&Path>) -> anyhow::Result<()> {
    let found = match Config::load(common.config.as_deref(), std::env::vars()) {
        Ok(config) => {
            // What is away is told once, below.
            start_log("off")?;
            let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
            examine(&config, common.config.as_deref(), ca, &clock).await
        }
        Err(error) => vec![settings_fault(&error)],
    };
    for finding in &found {
        say(finding)?;
    }
    let count = |level| found.iter().filter(|finding| finding.level == level).count();
    let (faults, warnings) = (count(Level::Fault), count(Level::Warning));
    say(format_args!("{faults} faults, {warnings} warnings"))?;
    ensure!(faults == 0, "something must be done before this server works as it should");
    Ok(())
}
