//! `import orders FILE`, without its terminal.

use super::apply::{NotApplied, apply};
use super::stage::{self, Progress};
use super::store;
use crate::app::App;
use crate::config::Config;
use crate::lock_beside_database;
use crate::text::Lang;
use anyhow::Context;
use std::fs::File;
use std::path::Path;
use wire::TenantId;
use wire::api::{ImportState, OrderImport};

/// What came of a file.
#[derive(Debug)]
pub struct FileReport {
    /// What it did, or would do; in the reader's language.
    pub summary: String,
    /// What is wrong with it, line by line; empty where nothing is.
    pub faults: Vec<String>,
}

/// Keeps servers away that hold codes in memory: an import must delete codes, and cannot reach those. The lock lasts as long
/// as the file is open; `None` where there is nothing to lock.
///
/// # Errors
/// Where a server is at work.
pub fn keep_servers_away(config: &Config) -> anyhow::Result<Option<File>> {
    if config.code_store.url.expose() != "memory:" {
        return Ok(None);
    }
    lock_beside_database(config).context(
        "this database's server keeps verify codes in its memory, and an import must delete some: \
         import the file over HTTP (POST /admin-api/order-imports), or stop the server first",
    )
}

/// Reads a file and applies it, or only says what it would do.
///
/// # Errors
/// Where the file cannot be opened, or the database or the code store is away. Faults of the file are in the report.
pub async fn import_file(
    app: &App,
    tenant: TenantId,
    path: &Path,
    dry_run: bool,
    chinese: bool,
    progress: Progress<'_>,
) -> anyhow::Result<FileReport> {
    let lang = if chinese { Lang::Zh } else { Lang::En };
    let file = File::open(path).with_context(|| format!("{} cannot be opened", path.display()))?;
    anyhow::ensure!(file.metadata()?.is_file(), "{} is no file", path.display());
    if !dry_run {
        // Before a long file is read for nothing.
        app.codes.ping().await?;
    }
    let import = stage::begin(app, tenant, None).await?;
    stage::stage(app, tenant, import, file, progress).await?;
    let look = async || {
        let view = store::view(&app.db, tenant, import, lang).await?;
        view.context("the import has gone")
    };
    let mut view = look().await?;
    if view.state == ImportState::Previewed {
        if dry_run {
            store::drop_import(&app.db, tenant, import).await?;
        } else {
            let applied = apply(app, tenant, import).await;
            if let Err(NotApplied::Codes(_)) = &applied {
                store::drop_import(&app.db, tenant, import).await?;
            }
            applied?;
            view = look().await?;
        }
    }
    anyhow::ensure!(view.state != ImportState::Dropped, "the import was dropped by another process");
    Ok(FileReport { summary: summary(&view, lang), faults: faults(&view, lang) })
}

fn summary(view: &OrderImport, lang: Lang) -> String {
    let OrderImport { rows, new, changed, unchanged, new_tasks, .. } = view;
    match lang {
        Lang::Zh => format!("订单：{rows}（新增 {new}，变更 {changed}，不变 {unchanged}）；新建任务草稿：{new_tasks}"),
        Lang::En => format!(
            "orders: {rows} ({new} new, {changed} changed, {unchanged} unchanged); tasks made as drafts: {new_tasks}"
        ),
    }
}

fn faults(view: &OrderImport, lang: Lang) -> Vec<String> {
    let mut lines = Vec::new();
    for fault in &view.faults {
        let place = match (fault.line, lang) {
            (Some(line), Lang::Zh) => format!("第 {line} 行"),
            (Some(line), Lang::En) => format!("line {line}"),
            (None, Lang::Zh) => "文件".to_owned(),
            (None, Lang::En) => "file".to_owned(),
        };
        let field = fault.field.as_ref().map(|field| format!(", {field}")).unwrap_or_default();
        lines.push(format!("{place}{field}: {}", fault.message));
    }
    let told = i64::try_from(view.faults.len()).unwrap_or(i64::MAX);
    if view.fault_count > told {
        let more = view.fault_count - told;
        lines.push(match lang {
            Lang::Zh => format!("还有 {more} 处错误"),
            Lang::En => format!("and {more} more"),
        });
    }
    lines
}
