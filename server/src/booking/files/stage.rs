//! From a file to a preview: read, staged in small transactions, looked at as a whole. No order is touched.

use super::columns::{Columns, status_word};
use super::fault::{Fault, Faults};
use super::guard;
use super::store::{self, Action, Existing, StagedLine};
use super::table::{Stopped, Table};
use crate::app::App;
use crate::booking::NewOrder;
use crate::db::DbError;
use crate::text::Text;
use jiff::tz::TimeZone;
use std::fs::File;
use tokio::sync::mpsc;
use wire::TenantId;

/// Lines that are staged in one transaction: few enough that a redemption does not wait for it.
const AT_ONCE: usize = 500;

/// Orders of a file. So many are applied in one transaction well before the audit's limit of time; several times as many
/// would be read and previewed, and could then never be applied.
const MAX_ORDERS: usize = 100_000;

/// Says how many lines have been read, and about how many there are.
pub(super) type Progress<'a> = &'a (dyn Fn(i64, i64) + Send + Sync);

/// What the reader, on a thread of its own, tells.
enum Piece {
    Header { has_task: bool, expected: i64 },
    Lines(Vec<Result<(i64, NewOrder), Vec<Fault>>>),
}

/// Drops what others have left, and begins; the import's id.
pub(super) async fn begin(app: &App, tenant: TenantId, account: Option<i64>) -> Result<i64, DbError> {
    let now = app.clock.now_ms();
    store::drop_leftovers(&app.db, now).await?;
    store::begin(&app.db, tenant, account, now).await
}

/// Reads a file to its end. Afterwards the import is previewed or refused, or dropped where the database failed.
pub(super) async fn stage(
    app: &App,
    tenant: TenantId,
    import: i64,
    file: File,
    progress: Progress<'_>,
) -> Result<(), DbError> {
    let staged = try_to_stage(app, tenant, import, file, progress).await;
    if staged.is_err() {
        // If this fails as well, it is dropped as a leftover.
        let _ = store::drop_import(&app.db, tenant, import).await;
    }
    staged
}

async fn try_to_stage(
    app: &App,
    tenant: TenantId,
    import: i64,
    file: File,
    progress: Progress<'_>,
) -> Result<(), DbError> {
    // Two pieces at most wait to be staged, so that memory does not grow with the file.
    let (to_stage, mut pieces) = mpsc::channel(2);
    let zone = app.zone.clone();
    let reading = tokio::task::spawn_blocking(move || guard::catch(|| read(file, &zone, &to_stage)));
    let mut faults = Faults::default();
    let (mut done, mut expected) = (0, 0);
    while let Some(piece) = pieces.recv().await {
        match piece {
            Piece::Header { has_task, expected: lines } => {
                expected = lines;
                store::note_header(&app.db, tenant, import, has_task, lines).await?;
            }
            Piece::Lines(lines) => {
                done += i64::try_from(lines.len()).unwrap_or(i64::MAX);
                let good = judge(app, tenant, lines, &mut faults).await?;
                if !store::stage(&app.db, tenant, import, &good, done, app.clock.now_ms()).await? {
                    return Ok(());
                }
                progress(done, expected.max(done));
            }
        }
    }
    match reading.await {
        Ok(Some(Ok(()) | Err(Stopped::Unwanted))) => {}
        Ok(Some(Err(Stopped::Faults(found)))) => found.into_iter().for_each(|fault| faults.push(fault)),
        // A panic of a library's, at a file that nobody had thought of.
        Ok(None) | Err(_) => {
            tracing::warn!(import.id = import, "an order file broke the library that reads it, and was refused");
            faults.push(Fault::file(Text::FileUnreadable));
        }
    }
    for (line, other) in store::named_twice(&app.db, tenant, import).await? {
        let other = other.to_string();
        faults.push(Fault::new(Some(line), Some("orderNo"), Text::OrderTwice).with("{line}", &other, &other));
    }
    let now = app.clock.now_ms();
    if faults.none() {
        store::finish_preview(&app.db, tenant, import, now).await?;
    } else {
        faults.first.sort_by_key(|fault| fault.line);
        store::refuse(&app.db, tenant, import, &faults, now).await?;
    }
    Ok(())
}

/// Reads lines and sends them on in pieces; waits while enough of them wait.
fn read(file: File, zone: &TimeZone, to_stage: &mpsc::Sender<Piece>) -> Result<(), Stopped> {
    let table = Table::open(file)?;
    let expected = table.expected_lines();
    let send = |piece| to_stage.blocking_send(piece).map_err(|_| Stopped::Unwanted);
    let mut columns = None;
    let (mut lines, mut count) = (Vec::with_capacity(AT_ONCE), 0);
    table.read(&mut |line, row| {
        let Some(columns) = &columns else {
            let header = columns.insert(Columns::of(line, row)?);
            return send(Piece::Header { has_task: header.has_task(), expected });
        };
        count += 1;
        if count > MAX_ORDERS {
            return Err(Fault::new(Some(line), None, Text::TooManyOrders).into());
        }
        lines.push(columns.order(line, row, zone).map(|order| (line, order)));
        if lines.len() == AT_ONCE {
            send(Piece::Lines(std::mem::replace(&mut lines, Vec::with_capacity(AT_ONCE))))?;
        }
        Ok(())
    })?;
    if columns.is_none() {
        return Err(Fault::file(Text::FileEmpty).into());
    }
    send(Piece::Lines(lines))
}

/// Holds lines against the orders that there are.
async fn judge(
    app: &App,
    tenant: TenantId,
    lines: Vec<Result<(i64, NewOrder), Vec<Fault>>>,
    faults: &mut Faults,
) -> Result<Vec<StagedLine>, DbError> {
    let numbers: Vec<_> = lines.iter().flatten().map(|(_, order)| &order.order_no).collect();
    let mut existing = store::existing(&app.db, tenant, &numbers).await?;
    let mobiles: Vec<_> = lines.iter().flatten().map(|(_, order)| &order.mobile).collect();
    let visitors = store::visitors(&app.db, tenant, &mobiles).await?;
    let mut good = Vec::with_capacity(lines.len());
    for line in lines {
        let (line, order) = match line {
            Ok(line) => line,
            Err(found) => {
                found.into_iter().for_each(|fault| faults.push(fault));
                continue;
            }
        };
        let new_visitor = !visitors.contains(order.mobile.expose());
        let Some(old) = existing.remove(order.order_no.as_str()) else {
            good.push(StagedLine { line, order, action: Action::New, existing: None, new_visitor });
            continue;
        };
        if old.status != order.status && !old.status.may_become(order.status) {
            let fault = Fault::new(Some(line), Some("status"), Text::IllegalStep)
                .with("{from}", status_word(old.status), old.status.as_str())
                .with("{to}", status_word(order.status), order.status.as_str());
            faults.push(fault);
            continue;
        }
        let action = if is_same(&order, &old) { Action::Same } else { Action::Change };
        good.push(StagedLine { line, order, action, existing: Some(old), new_visitor });
    }
    Ok(good)
}

fn is_same(order: &NewOrder, old: &Existing) -> bool {
    let same_task = |wanted: &Option<wire::TaskNo>| wanted.as_ref().map(wire::TaskNo::as_str) == old.task_no.as_deref();
    old.status == order.status
        && old.mobile.as_deref() == Some(order.mobile.expose())
        && old.visitor_name == order.visitor_name
        && old.party_size == order.party_size
        && old.visit_at == order.visit_at
        && order.task_no.as_ref().is_none_or(same_task)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    /// What comes of a file of so many orders: how many are sent on, and the faults.
    fn read_orders(count: usize) -> (usize, Vec<Fault>) {
        let mut file = tempfile::tempfile().unwrap();
        let mut text = "orderNo,mobile,visitorName,partySize,visitAt,status\n".to_owned();
        text += &"BK1,13800000001,张伟,4,2026-08-01 09:00,consumed\n".repeat(count);
        file.write_all(text.as_bytes()).unwrap();
        file.rewind().unwrap();
        let (to_stage, mut pieces) = mpsc::channel(2);
        let reading = std::thread::spawn(move || read(file, &TimeZone::UTC, &to_stage));
        let mut sent = 0;
        while let Some(piece) = pieces.blocking_recv() {
            if let Piece::Lines(lines) = piece {
                sent += lines.len();
            }
        }
        match reading.join().unwrap() {
            Err(Stopped::Faults(faults)) => (sent, faults),
            _ => (sent, Vec::new()),
        }
    }

    #[test]
    fn more_orders_than_can_be_applied_are_refused_when_they_are_read() {
        assert_eq!(read_orders(MAX_ORDERS), (MAX_ORDERS, vec![]));
        let line = i64::try_from(MAX_ORDERS).unwrap() + 2;
        let (_, faults) = read_orders(MAX_ORDERS + 1);
        assert_eq!(faults, [Fault::new(Some(line), None, Text::TooManyOrders)]);
    }
}
