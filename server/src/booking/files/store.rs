//! Order files in the database: staged lines, their application as statements over all of them, and what is left of them.

use super::fault::{Fault, Faults, TOLD};
use crate::booking::NewOrder;
use crate::db::{Db, DbError, Tx, new_id};
use crate::redemption::store::{status_of, unknown_word};
use crate::text::{Lang, Text};
use sqlx::any::AnyRow;
use sqlx::{Any, QueryBuilder, Row};
use std::collections::{HashMap, HashSet};
use wire::api::{ImportFault, ImportState, OrderImport, OrderStatus};
use wire::{Mobile, OrderNo, TenantId};

/// A reader that has given no sign of life for so long is dead (ms).
const DEAD_AFTER: i64 = 2 * 60_000;
/// Who has not applied a preview by then does not want it (ms).
const PREVIEW_LIFE: i64 = 24 * 3_600_000;
/// Lines that are deleted in one transaction.
const DELETED_AT_ONCE: i64 = 5_000;

/// What a line does to the orders that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    New,
    Change,
    Same,
}

impl Action {
    const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Change => "change",
            Self::Same => "same",
        }
    }
}

/// An order as it stands when a line about it is read.
#[derive(Debug, Clone)]
pub(super) struct Existing {
    pub(super) id: i64,
    pub(super) account_id: i64,
    pub(super) mobile: Option<String>,
    pub(super) visitor_name: String,
    pub(super) party_size: i64,
    pub(super) visit_at: i64,
    pub(super) status: OrderStatus,
    pub(super) task_no: Option<String>,
}

/// A line that is good.
#[derive(Debug)]
pub(super) struct StagedLine {
    pub(super) line: i64,
    pub(super) order: NewOrder,
    pub(super) action: Action,
    pub(super) existing: Option<Existing>,
    /// The number has no account of a visitor's yet.
    pub(super) new_visitor: bool,
}

impl StagedLine {
    /// Whether the order changes hands.
    fn new_owner(&self) -> bool {
        self.existing.as_ref().is_some_and(|old| old.mobile.as_deref() != Some(self.order.mobile.expose()))
    }

    /// Whether the order moves to another task, or to none.
    fn new_task(&self) -> bool {
        let Some(wanted) = &self.order.task_no else { return false };
        let wanted = wanted.as_ref().map(wire::TaskNo::as_str);
        self.existing.as_ref().is_some_and(|old| old.task_no.as_deref() != wanted)
    }
}

/// Begins an import; its id.
pub(super) async fn begin(db: &Db, tenant: TenantId, account: Option<i64>, now: i64) -> Result<i64, DbError> {
    let mut tx = db.begin().await?;
    let inserted = sqlx::query(
        "INSERT INTO order_import (tenant_id, account_id, state, created_at, touched_at) VALUES (?, ?, 'reading', ?, ?)",
    )
    .bind(tenant.0)
    .bind(account)
    .bind(now)
    .bind(now)
    .execute(&mut *tx)
    .await?;
    let id = new_id(&mut tx, &inserted).await?;
    tx.commit().await?;
    Ok(id)
}

/// Notes what the header has told.
pub(super) async fn note_header(
    db: &Db,
    tenant: TenantId,
    import: i64,
    has_task: bool,
    expected: i64,
) -> Result<(), DbError> {
    let mut tx = db.begin().await?;
    sqlx::query("UPDATE order_import SET has_task = ?, expected = ? WHERE tenant_id = ? AND id = ?")
        .bind(i64::from(has_task))
        .bind(expected)
        .bind(tenant.0)
        .bind(import)
        .execute(&mut *tx)
        .await?;
    Ok(tx.commit().await?)
}

/// The orders with these numbers, as they stand now.
pub(super) async fn existing(
    db: &Db,
    tenant: TenantId,
    numbers: &[&OrderNo],
) -> Result<HashMap<String, Existing>, DbError> {
    if numbers.is_empty() {
        return Ok(HashMap::new());
    }
    let mut sql = QueryBuilder::<Any>::new(
        "SELECT o.order_no, o.id, o.account_id, a.mobile, o.visitor_name, o.party_size, o.visit_at, o.status, t.task_no
         FROM booking_order o JOIN account a ON a.id = o.account_id AND a.tenant_id = o.tenant_id
         LEFT JOIN task t ON t.id = o.task_id AND t.tenant_id = o.tenant_id
         WHERE o.tenant_id = ",
    );
    sql.push_bind(tenant.0).push(" AND o.order_no IN (");
    let mut list = sql.separated(", ");
    for number in numbers {
        list.push_bind(number.as_str());
    }
    sql.push(")");
    let rows = sql.build().fetch_all(db.read()).await?;
    let order = |row: &AnyRow| -> Result<(String, Existing), sqlx::Error> {
        Ok((
            row.try_get("order_no")?,
            Existing {
                id: row.try_get("id")?,
                account_id: row.try_get("account_id")?,
                mobile: row.try_get("mobile")?,
                visitor_name: row.try_get("visitor_name")?,
                party_size: row.try_get("party_size")?,
                visit_at: row.try_get("visit_at")?,
                status: status_of(row)?,
                task_no: row.try_get("task_no")?,
            },
        ))
    };
    Ok(rows.iter().map(order).collect::<Result<_, _>>()?)
}

/// Which of these numbers have an account of a visitor's.
pub(super) async fn visitors(db: &Db, tenant: TenantId, mobiles: &[&Mobile]) -> Result<HashSet<String>, DbError> {
    if mobiles.is_empty() {
        return Ok(HashSet::new());
    }
    let mut sql = QueryBuilder::<Any>::new("SELECT mobile FROM account WHERE is_visitor = 1 AND tenant_id = ");
    sql.push_bind(tenant.0).push(" AND mobile IN (");
    let mut list = sql.separated(", ");
    for mobile in mobiles {
        list.push_bind(mobile.expose());
    }
    sql.push(")");
    let rows = sql.build().fetch_all(db.read()).await?;
    Ok(rows.iter().map(|row| row.try_get("mobile")).collect::<Result<_, sqlx::Error>>()?)
}

/// Stages lines, and says how far reading is; `false` where the import was dropped meanwhile.
pub(super) async fn stage(
    db: &Db,
    tenant: TenantId,
    import: i64,
    lines: &[StagedLine],
    done: i64,
    now: i64,
) -> Result<bool, DbError> {
    let mut tx = db.begin().await?;
    let alive = sqlx::query(
        "UPDATE order_import SET done = ?, touched_at = ? WHERE tenant_id = ? AND id = ? AND state = 'reading'",
    )
    .bind(done)
    .bind(now)
    .bind(tenant.0)
    .bind(import)
    .execute(&mut *tx)
    .await?;
    if alive.rows_affected() == 0 {
        return Ok(false);
    }
    if !lines.is_empty() {
        let mut sql = QueryBuilder::<Any>::new(
            "INSERT INTO order_import_row (import_id, line, tenant_id, order_no, mobile, visitor_name, party_size, visit_at,
                status, task_no, action, order_id, old_status, old_account_id, new_visitor, new_owner, new_task) ",
        );
        sql.push_values(lines, |mut row, staged| {
            let (order, old) = (&staged.order, staged.existing.as_ref());
            row.push_bind(import)
                .push_bind(staged.line)
                .push_bind(tenant.0)
                .push_bind(order.order_no.as_str())
                .push_bind(order.mobile.expose())
                .push_bind(order.visitor_name.as_str())
                .push_bind(order.party_size)
                .push_bind(order.visit_at)
                .push_bind(order.status.as_str())
                .push_bind(order.task_no.as_ref().and_then(Option::as_ref).map(wire::TaskNo::as_str))
                .push_bind(staged.action.as_str())
                .push_bind(old.map(|old| old.id))
                .push_bind(old.map(|old| old.status.as_str()))
                .push_bind(old.map(|old| old.account_id))
                .push_bind(i64::from(staged.new_visitor))
                .push_bind(i64::from(staged.new_owner()))
                .push_bind(i64::from(staged.new_task()));
        });
        sql.build().execute(&mut *tx).await?;
    }
    tx.commit().await?;
    Ok(true)
}

/// Lines that name an order which another line names as well, and that other line.
pub(super) async fn named_twice(db: &Db, tenant: TenantId, import: i64) -> Result<Vec<(i64, i64)>, DbError> {
    let rows = sqlx::query(
        "SELECT r.line, CASE WHEN r.line = d.first_line THEN d.last_line ELSE d.first_line END AS other
         FROM order_import_row r JOIN (
            SELECT order_no, MIN(line) AS first_line, MAX(line) AS last_line FROM order_import_row
            WHERE import_id = ? AND tenant_id = ? GROUP BY order_no HAVING COUNT(*) > 1) d ON d.order_no = r.order_no
         WHERE r.import_id = ? AND r.tenant_id = ? ORDER BY r.line",
    )
    .bind(import)
    .bind(tenant.0)
    .bind(import)
    .bind(tenant.0)
    .fetch_all(db.read())
    .await?;
    Ok(rows.iter().map(|row| Ok((row.try_get("line")?, row.try_get("other")?))).collect::<Result<_, sqlx::Error>>()?)
}

/// Ends reading with a preview of what would come of it; `false` where the import was dropped meanwhile.
pub(super) async fn finish_preview(db: &Db, tenant: TenantId, import: i64, now: i64) -> Result<bool, DbError> {
    // Counted before the transaction: nobody else writes these lines.
    let row = sqlx::query(
        "SELECT COUNT(CASE WHEN r.action = 'new' THEN 1 END) AS new_orders,
            COUNT(CASE WHEN r.action = 'change' THEN 1 END) AS changed,
            COUNT(CASE WHEN r.action = 'same' THEN 1 END) AS unchanged,
            COUNT(DISTINCT CASE WHEN t.id IS NULL THEN r.task_no END) AS new_tasks
         FROM order_import_row r LEFT JOIN task t ON t.tenant_id = r.tenant_id AND t.task_no = r.task_no
         WHERE r.import_id = ? AND r.tenant_id = ?",
    )
    .bind(import)
    .bind(tenant.0)
    .fetch_one(db.read())
    .await?;
    let count = |name| row.try_get::<i64, _>(name);
    let mut tx = db.begin().await?;
    let updated = sqlx::query(
        "UPDATE order_import SET state = 'previewed', expected = done, new_orders = ?, changed = ?, unchanged = ?,
            new_tasks = ?, touched_at = ?
         WHERE tenant_id = ? AND id = ? AND state = 'reading'",
    )
    .bind(count("new_orders")?)
    .bind(count("changed")?)
    .bind(count("unchanged")?)
    .bind(count("new_tasks")?)
    .bind(now)
    .bind(tenant.0)
    .bind(import)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    Ok(updated.rows_affected() == 1)
}

/// Ends an import that has faults, while it is read or when it was to be applied; its lines go.
pub(super) async fn refuse(db: &Db, tenant: TenantId, import: i64, faults: &Faults, now: i64) -> Result<(), DbError> {
    let mut tx = db.begin().await?;
    let updated = sqlx::query(
        "UPDATE order_import SET state = 'refused', fault_count = ?, touched_at = ?
         WHERE tenant_id = ? AND id = ? AND state IN ('reading', 'previewed')",
    )
    .bind(faults.count)
    .bind(now)
    .bind(tenant.0)
    .bind(import)
    .execute(&mut *tx)
    .await?;
    if updated.rows_affected() == 1 {
        for (n, fault) in (0_i64..).zip(&faults.first) {
            sqlx::query(
                "INSERT INTO order_import_fault (import_id, n, tenant_id, line, field, zh, en) VALUES (?, ?, ?, ?, ?, ?, ?)",
            )
            .bind(import)
            .bind(n)
            .bind(tenant.0)
            .bind(fault.line)
            .bind(fault.field)
            .bind(fault.zh.as_str())
            .bind(fault.en.as_str())
            .execute(&mut *tx)
            .await?;
        }
    }
    tx.commit().await?;
    delete_lines(db, tenant, import).await
}

/// Gives an import up; its lines go.
pub(super) async fn drop_import(db: &Db, tenant: TenantId, import: i64) -> Result<(), DbError> {
    let mut tx = db.begin().await?;
    sqlx::query(
        "UPDATE order_import SET state = 'dropped' WHERE tenant_id = ? AND id = ? AND state IN ('reading', 'previewed')",
    )
    .bind(tenant.0)
    .bind(import)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    delete_lines(db, tenant, import).await
}

/// Gives one import up where its reader is dead, or where nobody has applied it for too long; its lines go.
pub(super) async fn drop_if_left(db: &Db, tenant: TenantId, import: i64, now: i64) -> Result<(), DbError> {
    // Looked at first: most are in use, and who only looks need not wait for a turn to write.
    let row = sqlx::query("SELECT state, touched_at FROM order_import WHERE tenant_id = ? AND id = ?")
        .bind(tenant.0)
        .bind(import)
        .fetch_optional(db.read())
        .await?;
    let Some(row) = row else { return Ok(()) };
    let oldest = match row.try_get("state")? {
        "reading" => now - DEAD_AFTER,
        "previewed" => now - PREVIEW_LIFE,
        _ => return Ok(()),
    };
    let touched_at: i64 = row.try_get("touched_at")?;
    if touched_at >= oldest {
        return Ok(());
    }
    let mut tx = db.begin().await?;
    let updated = sqlx::query(
        "UPDATE order_import SET state = 'dropped'
         WHERE tenant_id = ? AND id = ? AND touched_at = ? AND state IN ('reading', 'previewed')",
    )
    .bind(tenant.0)
    .bind(import)
    .bind(touched_at)
    .execute(&mut *tx)
    .await?;
    tx.commit().await?;
    if updated.rows_affected() == 0 {
        return Ok(());
    }
    delete_lines(db, tenant, import).await
}

/// An import, as its admin sees it.
pub(super) async fn view(db: &Db, tenant: TenantId, import: i64, lang: Lang) -> Result<Option<OrderImport>, DbError> {
    let row = sqlx::query(
        "SELECT state, expected, done, new_orders, changed, unchanged, new_tasks, fault_count FROM order_import
         WHERE tenant_id = ? AND id = ?",
    )
    .bind(tenant.0)
    .bind(import)
    .fetch_optional(db.read())
    .await?;
    let Some(row) = row else { return Ok(None) };
    let faults = sqlx::query(
        "SELECT line, field, zh, en FROM order_import_fault WHERE tenant_id = ? AND import_id = ? ORDER BY n",
    )
    .bind(tenant.0)
    .bind(import)
    .fetch_all(db.read())
    .await?;
    let words = if lang == Lang::En { "en" } else { "zh" };
    let fault = |row: &AnyRow| -> Result<ImportFault, sqlx::Error> {
        Ok(ImportFault { line: row.try_get("line")?, field: row.try_get("field")?, message: row.try_get(words)? })
    };
    let state = ImportState::parse(row.try_get("state")?).ok_or_else(|| unknown_word("state"))?;
    let done = row.try_get("done")?;
    Ok(Some(OrderImport {
        id: import,
        state,
        done,
        rows: if state == ImportState::Reading { row.try_get::<i64, _>("expected")?.max(done) } else { done },
        new: row.try_get("new_orders")?,
        changed: row.try_get("changed")?,
        unchanged: row.try_get("unchanged")?,
        new_tasks: row.try_get("new_tasks")?,
        fault_count: row.try_get("fault_count")?,
        faults: faults.iter().map(fault).collect::<Result<_, _>>()?,
    }))
}

/// `previewed -> applied`, so that a preview is applied once; `false` where it is not there to be applied.
pub(super) async fn claim(tx: &mut Tx, tenant: TenantId, import: i64, now: i64) -> Result<bool, DbError> {
    let updated = sqlx::query(
        "UPDATE order_import SET state = 'applied', applied_at = ?, touched_at = ?
         WHERE tenant_id = ? AND id = ? AND state = 'previewed' AND touched_at >= ?",
    )
    .bind(now)
    .bind(now)
    .bind(tenant.0)
    .bind(import)
    .bind(now - PREVIEW_LIFE)
    .execute(&mut **tx)
    .await?;
    Ok(updated.rows_affected() == 1)
}

/// Makes visitors of the numbers' owners. An account that is new is called by the first of its lines.
pub(super) async fn make_visitors(tx: &mut Tx, tenant: TenantId, import: i64, now: i64) -> Result<(), DbError> {
    sqlx::query(
        "INSERT INTO account (tenant_id, mobile, name, is_visitor, is_guide, is_admin, created_at)
         SELECT r.tenant_id, r.mobile, r.visitor_name, 1, 0, 0, ? FROM order_import_row r
         JOIN (SELECT MIN(line) AS line FROM order_import_row
               WHERE import_id = ? AND tenant_id = ? AND new_visitor = 1 GROUP BY mobile) f ON f.line = r.line
         WHERE r.import_id = ? AND r.tenant_id = ?
           AND NOT EXISTS (SELECT 1 FROM account a WHERE a.tenant_id = r.tenant_id AND a.mobile = r.mobile)",
    )
    .bind(now)
    .bind(import)
    .bind(tenant.0)
    .bind(import)
    .bind(tenant.0)
    .execute(&mut **tx)
    .await?;
    // Read first, and changed by their ids: MariaDB would keep every account locked that such an update looks at.
    let rows = sqlx::query(
        "SELECT DISTINCT a.id FROM order_import_row r JOIN account a ON a.tenant_id = r.tenant_id AND a.mobile = r.mobile
         WHERE r.import_id = ? AND r.tenant_id = ? AND r.new_visitor = 1 AND a.is_visitor = 0",
    )
    .bind(import)
    .bind(tenant.0)
    .fetch_all(&mut **tx)
    .await?;
    for some in rows.chunks(500) {
        let mut sql = QueryBuilder::<Any>::new("UPDATE account SET is_visitor = 1 WHERE tenant_id = ");
        sql.push_bind(tenant.0).push(" AND id IN (");
        let mut list = sql.separated(", ");
        for row in some {
            list.push_bind(row.try_get::<i64, _>("id")?);
        }
        sql.push(")");
        sql.build().execute(&mut **tx).await?;
    }
    Ok(())
}

/// Makes drafts of tasks that are not known: called by their number, without a place or guides, from the first to the last
/// of their orders' times. How many.
pub(super) async fn make_drafts(tx: &mut Tx, tenant: TenantId, import: i64, now: i64) -> Result<u64, DbError> {
    let inserted = sqlx::query(
        "INSERT INTO task (tenant_id, task_no, title, venue, starts_at, ends_at, created_at, updated_at)
         SELECT d.tenant_id, d.task_no, d.task_no, '', d.starts_at, d.ends_at, ?, ? FROM (
            SELECT r.tenant_id, r.task_no, MIN(r.visit_at) AS starts_at, MAX(r.visit_at) AS ends_at FROM order_import_row r
            WHERE r.import_id = ? AND r.tenant_id = ? AND r.task_no IS NOT NULL AND (r.action = 'new' OR r.new_task = 1)
            GROUP BY r.tenant_id, r.task_no) d
         WHERE NOT EXISTS (SELECT 1 FROM task t WHERE t.tenant_id = d.tenant_id AND t.task_no = d.task_no)",
    )
    .bind(now)
    .bind(now)
    .bind(import)
    .bind(tenant.0)
    .execute(&mut **tx)
    .await?;
    Ok(inserted.rows_affected())
}

/// Changes the orders that still have the status and the visitor which their lines were looked at with. How many.
///
/// Owner and task are statements of their own: they stand in indexes, which would be written for every line.
pub(super) async fn change_orders(
    db: &Db,
    tx: &mut Tx,
    tenant: TenantId,
    import: i64,
    now: i64,
) -> Result<u64, DbError> {
    // The statements that neither database takes from the other: updates that read from other tables.
    let [values, owners, tasks] = if db.is_mysql() {
        [
            "UPDATE order_import_row r JOIN booking_order o ON o.id = r.order_id AND o.tenant_id = r.tenant_id
             SET o.visitor_name = r.visitor_name, o.party_size = r.party_size, o.visit_at = r.visit_at,
                o.status = r.status, o.updated_at = ?
             WHERE r.import_id = ? AND r.tenant_id = ? AND r.action = 'change'
               AND o.status = r.old_status AND o.account_id = r.old_account_id",
            "UPDATE order_import_row r JOIN booking_order o ON o.id = r.order_id AND o.tenant_id = r.tenant_id
             JOIN account a ON a.tenant_id = r.tenant_id AND a.mobile = r.mobile
             SET o.account_id = a.id, o.updated_at = ?
             WHERE r.import_id = ? AND r.tenant_id = ? AND r.new_owner = 1 AND o.account_id = r.old_account_id",
            "UPDATE order_import_row r JOIN booking_order o ON o.id = r.order_id AND o.tenant_id = r.tenant_id
             LEFT JOIN task t ON t.tenant_id = r.tenant_id AND t.task_no = r.task_no
             SET o.task_id = t.id, o.updated_at = ?
             WHERE r.import_id = ? AND r.tenant_id = ? AND r.new_task = 1",
        ]
    } else {
        [
            "UPDATE booking_order AS o
             SET visitor_name = r.visitor_name, party_size = r.party_size, visit_at = r.visit_at, status = r.status,
                updated_at = ?
             FROM order_import_row r
             WHERE r.import_id = ? AND r.tenant_id = ? AND r.action = 'change' AND o.id = r.order_id
               AND o.tenant_id = r.tenant_id AND o.status = r.old_status AND o.account_id = r.old_account_id",
            "UPDATE booking_order AS o SET account_id = a.id, updated_at = ?
             FROM order_import_row r JOIN account a ON a.tenant_id = r.tenant_id AND a.mobile = r.mobile
             WHERE r.import_id = ? AND r.tenant_id = ? AND r.new_owner = 1 AND o.id = r.order_id
               AND o.tenant_id = r.tenant_id AND o.account_id = r.old_account_id",
            "UPDATE booking_order AS o SET task_id = t.id, updated_at = ?
             FROM order_import_row r LEFT JOIN task t ON t.tenant_id = r.tenant_id AND t.task_no = r.task_no
             WHERE r.import_id = ? AND r.tenant_id = ? AND r.new_task = 1 AND o.id = r.order_id AND o.tenant_id = r.tenant_id",
        ]
    };
    let updated = sqlx::query(values).bind(now).bind(import).bind(tenant.0).execute(&mut **tx).await?;
    for statement in [owners, tasks] {
        sqlx::query(statement).bind(now).bind(import).bind(tenant.0).execute(&mut **tx).await?;
    }
    Ok(updated.rows_affected())
}

/// Makes the orders that are new and still not there. How many.
pub(super) async fn make_orders(tx: &mut Tx, tenant: TenantId, import: i64, now: i64) -> Result<u64, DbError> {
    let inserted = sqlx::query(
        "INSERT INTO booking_order (tenant_id, order_no, account_id, visitor_name, party_size, visit_at, status, task_id,
            consumed_at, created_at, updated_at)
         SELECT r.tenant_id, r.order_no, a.id, r.visitor_name, r.party_size, r.visit_at, r.status, t.id,
            CASE WHEN r.status = 'consumed' THEN ? ELSE NULL END, ?, ?
         FROM order_import_row r
         JOIN account a ON a.tenant_id = r.tenant_id AND a.mobile = r.mobile
         LEFT JOIN task t ON t.tenant_id = r.tenant_id AND t.task_no = r.task_no
         WHERE r.import_id = ? AND r.tenant_id = ? AND r.action = 'new'
           AND NOT EXISTS (SELECT 1 FROM booking_order o WHERE o.tenant_id = r.tenant_id AND o.order_no = r.order_no)",
    )
    .bind(now)
    .bind(now)
    .bind(now)
    .bind(import)
    .bind(tenant.0)
    .execute(&mut **tx)
    .await?;
    Ok(inserted.rows_affected())
}

/// Which orders do not stand as their lines say, when all has been done: somebody has changed them since they were looked
/// at. `all`: not of those alone that had nothing to be done to them.
pub(super) async fn not_as_wanted(tx: &mut Tx, tenant: TenantId, import: i64, all: bool) -> Result<Faults, DbError> {
    let rows = sqlx::query(
        "SELECT r.line, o.status, COUNT(*) OVER () AS n FROM order_import_row r
         JOIN order_import i ON i.id = r.import_id AND i.tenant_id = r.tenant_id
         LEFT JOIN booking_order o ON o.tenant_id = r.tenant_id AND o.order_no = r.order_no
         LEFT JOIN account a ON a.id = o.account_id AND a.tenant_id = o.tenant_id
         LEFT JOIN task t ON t.id = o.task_id AND t.tenant_id = o.tenant_id
         WHERE r.import_id = ? AND r.tenant_id = ? AND (? = 1 OR r.action = 'same')
           AND (o.id IS NULL OR a.mobile IS NULL OR o.status <> r.status OR a.mobile <> r.mobile
                OR o.visitor_name <> r.visitor_name OR o.party_size <> r.party_size OR o.visit_at <> r.visit_at
                OR (i.has_task = 1 AND COALESCE(t.task_no, '') <> COALESCE(r.task_no, '')))
         ORDER BY r.line LIMIT ?",
    )
    .bind(import)
    .bind(tenant.0)
    .bind(i64::from(all))
    .bind(i64::try_from(TOLD).unwrap_or(i64::MAX))
    .fetch_all(&mut **tx)
    .await?;
    let mut faults = Faults::default();
    for row in &rows {
        let status: Option<&str> = row.try_get("status")?;
        let (zh, en) =
            status.and_then(OrderStatus::parse).map_or(("", ""), |s| (super::columns::status_word(s), s.as_str()));
        let line = Some(row.try_get("line")?);
        faults.push(Fault::new(line, Some("orderNo"), Text::ChangedSincePreview).with("{from}", zh, en));
        faults.count = row.try_get("n")?;
    }
    Ok(faults)
}

/// Writes into the audit which of the new orders had been redeemed elsewhere before they arrived.
pub(super) async fn audit_arrivals(tx: &mut Tx, tenant: TenantId, import: i64, now: i64) -> Result<(), DbError> {
    sqlx::query(
        "INSERT INTO redemption (tenant_id, order_id, operator_type, status_before, status_after, result, at, standing_order_id)
         SELECT r.tenant_id, o.id, 'system', 'consumed', 'consumed', 0, ?, o.id FROM order_import_row r
         JOIN booking_order o ON o.tenant_id = r.tenant_id AND o.order_no = r.order_no
         WHERE r.import_id = ? AND r.tenant_id = ? AND r.action = 'new' AND r.status = 'consumed'
           AND NOT EXISTS (SELECT 1 FROM redemption x WHERE x.tenant_id = r.tenant_id AND x.standing_order_id = o.id)
         ORDER BY r.line",
    )
    .bind(now)
    .bind(import)
    .bind(tenant.0)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Notes what has been done.
pub(super) async fn note_done(
    tx: &mut Tx,
    tenant: TenantId,
    import: i64,
    new: i64,
    changed: i64,
    new_tasks: i64,
) -> Result<(), DbError> {
    sqlx::query(
        "UPDATE order_import SET new_orders = ?, changed = ?, unchanged = done - ? - ?, new_tasks = ?
         WHERE tenant_id = ? AND id = ?",
    )
    .bind(new)
    .bind(changed)
    .bind(new)
    .bind(changed)
    .bind(new_tasks)
    .bind(tenant.0)
    .bind(import)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// How many orders the preview said to be new, and to be changed.
pub(super) async fn previewed(tx: &mut Tx, tenant: TenantId, import: i64) -> Result<(i64, i64), DbError> {
    let row = sqlx::query("SELECT new_orders, changed FROM order_import WHERE tenant_id = ? AND id = ?")
        .bind(tenant.0)
        .bind(import)
        .fetch_one(&mut **tx)
        .await?;
    Ok((row.try_get("new_orders")?, row.try_get("changed")?))
}

/// The orders whose verify codes must go: those that have left `paid`, and those that have changed hands.
pub(super) async fn lost_their_codes(db: &Db, tenant: TenantId, import: i64) -> Result<Vec<i64>, DbError> {
    let rows = sqlx::query(
        "SELECT r.order_id FROM order_import_row r JOIN account a ON a.tenant_id = r.tenant_id AND a.mobile = r.mobile
         WHERE r.import_id = ? AND r.tenant_id = ? AND r.action = 'change'
           AND ((r.old_status = 'paid' AND r.status <> 'paid') OR a.id <> r.old_account_id)",
    )
    .bind(import)
    .bind(tenant.0)
    .fetch_all(db.read())
    .await?;
    Ok(rows.iter().map(|row| row.try_get("order_id")).collect::<Result<_, sqlx::Error>>()?)
}

/// The orders that no code from before may redeem: those that will be `paid` and are not now, or are somebody else's.
pub(super) async fn must_have_no_codes(db: &Db, tenant: TenantId, import: i64) -> Result<Vec<i64>, DbError> {
    let rows = sqlx::query(
        "SELECT r.order_id FROM order_import_row r LEFT JOIN account a ON a.tenant_id = r.tenant_id AND a.mobile = r.mobile
         WHERE r.import_id = ? AND r.tenant_id = ? AND r.action = 'change' AND r.status = 'paid'
           AND (r.old_status <> 'paid' OR a.id IS NULL OR a.id <> r.old_account_id)",
    )
    .bind(import)
    .bind(tenant.0)
    .fetch_all(db.read())
    .await?;
    Ok(rows.iter().map(|row| row.try_get("order_id")).collect::<Result<_, sqlx::Error>>()?)
}

/// Deletes an import's lines, some at a time.
pub(super) async fn delete_lines(db: &Db, tenant: TenantId, import: i64) -> Result<(), DbError> {
    loop {
        let last: Option<i64> = sqlx::query_scalar(
            "SELECT MAX(line) FROM (SELECT line FROM order_import_row WHERE import_id = ? AND tenant_id = ? ORDER BY line LIMIT ?) some_lines",
        )
        .bind(import)
        .bind(tenant.0)
        .bind(DELETED_AT_ONCE)
        .fetch_one(db.read())
        .await?;
        let Some(last) = last else { return Ok(()) };
        let mut tx = db.begin().await?;
        sqlx::query("DELETE FROM order_import_row WHERE import_id = ? AND tenant_id = ? AND line <= ?")
            .bind(import)
            .bind(tenant.0)
            .bind(last)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
    }
}

/// Drops what a server that has gone was reading, before this one reads anything: on a SQLite file one server alone is at
/// work, so that no other can be reading. What the command line reads has no account, and is left to its age.
pub(crate) async fn drop_interrupted(db: &Db, now: i64) -> Result<(), DbError> {
    if !db.is_mysql() {
        let rows =
            sqlx::query("SELECT id, tenant_id FROM order_import WHERE state = 'reading' AND account_id IS NOT NULL");
        for row in rows.fetch_all(db.read()).await? {
            drop_import(db, TenantId(row.try_get("tenant_id")?), row.try_get("id")?).await?;
        }
    }
    drop_leftovers(db, now).await
}

/// Drops what crashed readers have left, and previews that nobody has applied. Of every tenant.
pub(crate) async fn drop_leftovers(db: &Db, now: i64) -> Result<(), DbError> {
    let rows = sqlx::query(
        "SELECT i.id, i.tenant_id, i.state FROM order_import i
         WHERE (i.state = 'reading' AND i.touched_at < ?) OR (i.state = 'previewed' AND i.touched_at < ?)
            OR (i.state IN ('applied', 'refused', 'dropped') AND i.touched_at < ?
                AND EXISTS (SELECT 1 FROM order_import_row r WHERE r.import_id = i.id AND r.tenant_id = i.tenant_id))",
    )
    .bind(now - DEAD_AFTER)
    .bind(now - PREVIEW_LIFE)
    .bind(now - DEAD_AFTER)
    .fetch_all(db.read())
    .await?;
    for row in &rows {
        let (import, tenant) = (row.try_get("id")?, TenantId(row.try_get("tenant_id")?));
        drop_import(db, tenant, import).await?;
        tracing::info!(import.id = import, "what was left of an order file was dropped");
    }
    Ok(())
}
