//! `import orders FILE [--dry-run]`: what it did on standard output, what is wrong with the file on standard error.

use super::{open_with, say, set_up, speaks_chinese};
use anyhow::bail;
use guidepost_server::Config;
use guidepost_server::order_files::{import_file, keep_servers_away};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::path::Path;

pub(super) async fn orders(config: Config, tenant: Option<i64>, file: &Path, dry_run: bool) -> anyhow::Result<()> {
    // TLS towards the stores needs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let _lock = if dry_run { None } else { keep_servers_away(&config)? };
    let app = open_with(config).await?;
    let tenant = set_up::tenant(&app, tenant).await?;
    // A bar is for people: a log file would get all its steps.
    let bar = if std::io::stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta}") {
        bar.set_style(style);
    }
    let progress = |done: i64, expected: i64| {
        bar.set_length(expected.unsigned_abs());
        bar.set_position(done.unsigned_abs());
    };
    let chinese = speaks_chinese();
    let imported = import_file(&app, tenant, file, dry_run, chinese, &progress).await;
    bar.finish_and_clear();
    let report = imported?;
    for fault in &report.faults {
        writeln!(std::io::stderr(), "{fault}")?;
    }
    if !report.faults.is_empty() {
        bail!("{}", if chinese { "文件有错误，没有导入任何订单" } else { "nothing was imported" });
    }
    say(report.summary)?;
    match (dry_run, chinese) {
        (true, true) => say("试运行：没有任何改动"),
        (true, false) => say("a dry run: nothing was changed"),
        (false, _) => Ok(()),
    }
}
