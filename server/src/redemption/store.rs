//! Redemptions in the database: lookups by who may see, the conditional update, the audit.

use crate::accounts::session::Session;
use crate::clock::Clock;
use crate::db::{Db, DbError, Tx};
use sqlx::any::AnyRow;
use sqlx::{Any, QueryBuilder, Row};
use wire::api::{Consumed, Entry, OrderState, OrderStatus, RedemptionView};
use wire::{ErrorCode, OrderNo, RequestId, TaskNo, TenantId};

/// Who redeems.
#[derive(Debug, Clone)]
pub(crate) struct Operator {
    pub(crate) tenant: TenantId,
    pub(crate) account_id: i64,
    kind: OperatorKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OperatorKind {
    Guide,
    Admin,
}

impl OperatorKind {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Guide => "guide",
            Self::Admin => "admin",
        }
    }
}

impl Operator {
    /// `guide` or `admin`.
    pub(crate) fn type_word(&self) -> &'static str {
        self.kind.as_str()
    }

    /// Guides can be frozen, admins cannot.
    pub(crate) fn is_guide(&self) -> bool {
        self.kind == OperatorKind::Guide
    }

    pub(crate) fn guide(session: &Session) -> Self {
        Self { tenant: session.tenant, account_id: session.account_id, kind: OperatorKind::Guide }
    }

    pub(crate) fn admin(session: &Session) -> Self {
        Self { tenant: session.tenant, account_id: session.account_id, kind: OperatorKind::Admin }
    }
}

/// An order as redemption needs it.
#[derive(Debug)]
pub(crate) struct OrderRow {
    pub(crate) id: i64,
    pub(crate) status: OrderStatus,
    pub(crate) consumed_at: Option<i64>,
    pub(crate) visitor_name: String,
    pub(crate) party_size: i64,
    pub(crate) visit_at: i64,
    pub(crate) task_no: Option<TaskNo>,
}

/// A word in the database that this program does not know.
pub(crate) fn unknown_word(column: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("{column} holds a word that is not of the contract").into())
}

/// A status column.
pub(crate) fn status_of(row: &AnyRow) -> Result<OrderStatus, sqlx::Error> {
    OrderStatus::parse(row.try_get::<&str, _>("status")?).ok_or_else(|| unknown_word("status"))
}

/// An order number column.
pub(crate) fn order_no_of(row: &AnyRow) -> Result<OrderNo, sqlx::Error> {
    OrderNo::parse(row.try_get::<&str, _>("order_no")?).map_err(|_| unknown_word("order_no"))
}

/// A task number column that may be empty.
pub(crate) fn task_no_of(row: &AnyRow) -> Result<Option<TaskNo>, sqlx::Error> {
    let text: Option<String> = row.try_get("task_no")?;
    text.map(|text| TaskNo::parse(&text)).transpose().map_err(|_| unknown_word("task_no"))
}

impl OrderRow {
    fn from_row(row: &AnyRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            status: status_of(row)?,
            consumed_at: row.try_get("consumed_at")?,
            visitor_name: row.try_get("visitor_name")?,
            party_size: row.try_get("party_size")?,
            visit_at: row.try_get("visit_at")?,
            task_no: task_no_of(row)?,
        })
    }
}

/// A visitor's own order.
pub(crate) async fn own_order(
    db: &Db,
    tenant: TenantId,
    visitor: i64,
    order_no: &OrderNo,
) -> Result<Option<OrderRow>, DbError> {
    let row = sqlx::query(
        "SELECT o.id, o.status, o.consumed_at, o.visitor_name, o.party_size, o.visit_at, t.task_no
         FROM booking_order o LEFT JOIN task t ON t.id = o.task_id AND t.tenant_id = o.tenant_id
         WHERE o.tenant_id = ? AND o.order_no = ? AND o.account_id = ?",
    )
    .bind(tenant.0)
    .bind(order_no.as_str())
    .bind(visitor)
    .fetch_optional(db.read())
    .await?;
    Ok(row.as_ref().map(OrderRow::from_row).transpose()?)
}

/// An order that the operator may redeem: any of the tenant for an admin, one of their own tasks for a guide.
pub(crate) async fn order_in_reach(
    db: &Db,
    operator: &Operator,
    order_no: &OrderNo,
) -> Result<Option<OrderRow>, DbError> {
    let row = sqlx::query(
        "SELECT o.id, o.status, o.consumed_at, o.visitor_name, o.party_size, o.visit_at, t.task_no
         FROM booking_order o LEFT JOIN task t ON t.id = o.task_id AND t.tenant_id = o.tenant_id
         WHERE o.tenant_id = ? AND o.order_no = ?
           AND (? = 'admin' OR EXISTS (
               SELECT 1 FROM task_guide g WHERE g.task_id = o.task_id AND g.tenant_id = o.tenant_id AND g.account_id = ?))",
    )
    .bind(operator.tenant.0)
    .bind(order_no.as_str())
    .bind(operator.kind.as_str())
    .bind(operator.account_id)
    .fetch_optional(db.read())
    .await?;
    Ok(row.as_ref().map(OrderRow::from_row).transpose()?)
}

/// Where an order stands now, and when it was redeemed.
pub(crate) async fn status(db: &Db, tenant: TenantId, order_id: i64) -> Result<(OrderStatus, Option<i64>), DbError> {
    let row = sqlx::query("SELECT status, consumed_at FROM booking_order WHERE tenant_id = ? AND id = ?")
        .bind(tenant.0)
        .bind(order_id)
        .fetch_one(db.read())
        .await?;
    Ok((status_of(&row)?, row.try_get("consumed_at")?))
}

/// The success that claimed a request id.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) consumed: Consumed,
    /// Not reversed since.
    pub(crate) standing: bool,
}

/// The success of this operator's with this request id.
pub(crate) async fn claim(db: &Db, operator: &Operator, request_id: &RequestId) -> Result<Option<Claim>, DbError> {
    let row = sqlx::query(
        "SELECT COALESCE(o.consumed_at, r.at) AS consumed_at, r.standing_order_id, o.order_no, o.visitor_name, o.party_size, o.visit_at, t.task_no
         FROM redemption r
         JOIN booking_order o ON o.id = r.order_id AND o.tenant_id = r.tenant_id
         LEFT JOIN task t ON t.id = o.task_id AND t.tenant_id = o.tenant_id
         WHERE r.tenant_id = ? AND r.operator_id = ? AND r.claimed_request_id = ?",
    )
    .bind(operator.tenant.0)
    .bind(operator.account_id)
    .bind(request_id.as_str())
    .fetch_optional(db.read())
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Claim {
        standing: row.try_get::<Option<i64>, _>("standing_order_id")?.is_some(),
        consumed: Consumed {
            order_no: order_no_of(&row)?,
            status: OrderStatus::Consumed,
            consumed_at: row.try_get("consumed_at")?,
            visitor_name: row.try_get("visitor_name")?,
            party_size: row.try_get("party_size")?,
            visit_at: row.try_get("visit_at")?,
            task_no: task_no_of(&row)?,
            replayed: true,
        },
    }))
}

/// Where an order stands, when it was redeemed and by whom, as guides and admins are told.
pub(crate) async fn order_state(db: &Db, tenant: TenantId, order_id: i64) -> Result<OrderState, DbError> {
    let (status, consumed_at) = status(db, tenant, order_id).await?;
    let row = sqlx::query(
        "SELECT a.name FROM redemption r LEFT JOIN account a ON a.id = r.operator_id AND a.tenant_id = r.tenant_id
         WHERE r.tenant_id = ? AND r.standing_order_id = ?",
    )
    .bind(tenant.0)
    .bind(order_id)
    .fetch_optional(db.read())
    .await?;
    let consumed_by = row.map(|row| row.try_get::<Option<String>, _>("name")).transpose()?.flatten();
    Ok(OrderState { status, consumed_at, consumed_by: Some(consumed_by), device: Some(None) })
}

/// `paid -> consumed`, the one statement that decides; `false` where the order is not paid any more.
pub(crate) async fn mark_consumed(tx: &mut Tx, tenant: TenantId, order_id: i64, now: i64) -> Result<bool, DbError> {
    let updated = sqlx::query(
        "UPDATE booking_order SET status = 'consumed', consumed_at = ?, updated_at = ?
         WHERE id = ? AND tenant_id = ? AND status = 'paid'",
    )
    .bind(now)
    .bind(now)
    .bind(order_id)
    .bind(tenant.0)
    .execute(&mut **tx)
    .await?;
    Ok(updated.rows_affected() == 1)
}

/// An audit row of a success.
#[derive(Debug)]
pub(crate) struct SuccessRow<'a> {
    pub(crate) operator: &'a Operator,
    pub(crate) order_id: i64,
    pub(crate) request_id: Option<&'a RequestId>,
    pub(crate) entry: Entry,
    pub(crate) address: Option<&'a str>,
    /// Taken in the transaction, right before the row is inserted: the feed goes by it.
    pub(crate) at: i64,
}

pub(crate) async fn insert_success(tx: &mut Tx, row: &SuccessRow<'_>) -> Result<(), DbError> {
    sqlx::query(
        "INSERT INTO redemption (tenant_id, order_id, request_id, operator_id, operator_type, entry, address,
            status_before, status_after, result, at, standing_order_id, claimed_request_id)
         VALUES (?, ?, ?, ?, ?, ?, ?, 'paid', 'consumed', 0, ?, ?, ?)",
    )
    .bind(row.operator.tenant.0)
    .bind(row.order_id)
    .bind(row.request_id.map(RequestId::as_str))
    .bind(row.operator.account_id)
    .bind(row.operator.kind.as_str())
    .bind(row.entry.as_str())
    .bind(row.address)
    .bind(row.at)
    .bind(row.order_id)
    .bind(row.request_id.map(RequestId::as_str))
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// `consumed -> paid`, and the success that stood stands no more; `false` where the order is not redeemed (any more).
pub(crate) async fn mark_reversed(tx: &mut Tx, tenant: TenantId, order_id: i64, now: i64) -> Result<bool, DbError> {
    let updated = sqlx::query(
        "UPDATE booking_order SET status = 'paid', consumed_at = NULL, updated_at = ?
         WHERE id = ? AND tenant_id = ? AND status = 'consumed'",
    )
    .bind(now)
    .bind(order_id)
    .bind(tenant.0)
    .execute(&mut **tx)
    .await?;
    if updated.rows_affected() != 1 {
        return Ok(false);
    }
    sqlx::query("UPDATE redemption SET standing_order_id = NULL WHERE tenant_id = ? AND standing_order_id = ?")
        .bind(tenant.0)
        .bind(order_id)
        .execute(&mut **tx)
        .await?;
    Ok(true)
}

/// An audit row of what an admin has confirmed by SMS.
#[derive(Debug)]
pub(crate) struct ConfirmedRow<'a> {
    pub(crate) operator: &'a Operator,
    pub(crate) order_id: i64,
    pub(crate) address: Option<&'a str>,
    pub(crate) reason: &'a str,
    pub(crate) before: OrderStatus,
    pub(crate) after: OrderStatus,
    /// Taken in the transaction, right before the row is inserted: the feed goes by it.
    pub(crate) at: i64,
}

pub(crate) async fn insert_confirmed(tx: &mut Tx, row: &ConfirmedRow<'_>) -> Result<(), DbError> {
    let standing = (row.after == OrderStatus::Consumed).then_some(row.order_id);
    sqlx::query(
        "INSERT INTO redemption (tenant_id, order_id, operator_id, operator_type, address, status_before, status_after,
            result, at, standing_order_id, reason)
         VALUES (?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?)",
    )
    .bind(row.operator.tenant.0)
    .bind(row.order_id)
    .bind(row.operator.account_id)
    .bind(row.operator.kind.as_str())
    .bind(row.address)
    .bind(row.before.as_str())
    .bind(row.after.as_str())
    .bind(row.at)
    .bind(standing)
    .bind(row.reason)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The audit row of an order that arrived `consumed`: somebody else redeemed it.
pub(crate) async fn insert_arrived_consumed(
    tx: &mut Tx,
    tenant: TenantId,
    order_id: i64,
    now: i64,
) -> Result<(), DbError> {
    sqlx::query(
        "INSERT INTO redemption (tenant_id, order_id, operator_type, status_before, status_after, result, at, standing_order_id)
         VALUES (?, ?, 'system', 'consumed', 'consumed', 0, ?, ?)",
    )
    .bind(tenant.0)
    .bind(order_id)
    .bind(now)
    .bind(order_id)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// An audit row of a refusal.
#[derive(Debug)]
pub(crate) struct RefusalRow<'a> {
    pub(crate) operator: &'a Operator,
    pub(crate) order_id: i64,
    pub(crate) request_id: Option<&'a RequestId>,
    /// How the code came; none where there was none to come.
    pub(crate) entry: Option<Entry>,
    pub(crate) address: Option<&'a str>,
    pub(crate) status: OrderStatus,
    pub(crate) result: ErrorCode,
}

pub(crate) async fn insert_refusal(db: &Db, clock: &dyn Clock, row: &RefusalRow<'_>) -> Result<(), DbError> {
    // The time is taken when the turn to write has come: the audit's feed relies on a row's time being close to its commit.
    let mut tx = db.begin().await?;
    let now = clock.now_ms();
    sqlx::query(
        "INSERT INTO redemption (tenant_id, order_id, request_id, operator_id, operator_type, entry, address,
            status_before, status_after, result, at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(row.operator.tenant.0)
    .bind(row.order_id)
    .bind(row.request_id.map(RequestId::as_str))
    .bind(row.operator.account_id)
    .bind(row.operator.kind.as_str())
    .bind(row.entry.map(Entry::as_str))
    .bind(row.address)
    .bind(row.status.as_str())
    .bind(row.status.as_str())
    .bind(row.result.code())
    .bind(now)
    .execute(&mut *tx)
    .await?;
    Ok(tx.commit().await?)
}

/// The audit row of a refusal before the order was looked at: one an operator, result and minute.
pub(crate) async fn insert_limited(
    db: &Db,
    clock: &dyn Clock,
    operator: &Operator,
    order_id: Option<i64>,
    address: Option<&str>,
    result: ErrorCode,
) -> Result<(), DbError> {
    let mut tx = db.begin().await?;
    // After the wait for the transaction's turn: the feed goes by it.
    let now = clock.now_ms();
    let inserted = sqlx::query(
        "INSERT INTO redemption (tenant_id, order_id, operator_id, operator_type, address, result, at, limited_minute)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(operator.tenant.0)
    .bind(order_id)
    .bind(operator.account_id)
    .bind(operator.kind.as_str())
    .bind(address)
    .bind(result.code())
    .bind(now)
    .bind(now / 60_000)
    .execute(&mut *tx)
    .await;
    match inserted.map_err(DbError::from) {
        Ok(_) => Ok(tx.commit().await?),
        Err(DbError::Duplicate) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether an admin has frozen this account.
pub(crate) async fn is_frozen(db: &Db, tenant: TenantId, account_id: i64) -> Result<bool, DbError> {
    let row = sqlx::query("SELECT 1 AS n FROM account WHERE tenant_id = ? AND id = ? AND frozen_at IS NOT NULL")
        .bind(tenant.0)
        .bind(account_id)
        .fetch_optional(db.read())
        .await?;
    Ok(row.is_some())
}

/// The paid orders of a guide's tasks: of those that start within `day`, or of one task.
pub(crate) async fn paid_orders_of_guide(
    db: &Db,
    tenant: TenantId,
    guide: i64,
    tasks: &TaskChoice,
) -> Result<Vec<(OrderNo, OrderRow)>, DbError> {
    let (from, to, task_no) = match tasks {
        TaskChoice::Day(day) => (day.start, day.end, ""),
        TaskChoice::Task(task_no) => (i64::MIN, i64::MAX, task_no.as_str()),
    };
    let rows = sqlx::query(
        "SELECT o.order_no, o.id, o.status, o.consumed_at, o.visitor_name, o.party_size, o.visit_at, t.task_no
         FROM task t
         JOIN task_guide g ON g.task_id = t.id AND g.tenant_id = t.tenant_id
         JOIN booking_order o ON o.task_id = t.id AND o.tenant_id = t.tenant_id
         WHERE t.tenant_id = ? AND g.account_id = ? AND o.status = 'paid'
           AND t.starts_at >= ? AND t.starts_at < ? AND (? = '' OR t.task_no = ?)
         ORDER BY o.visit_at, o.id",
    )
    .bind(tenant.0)
    .bind(guide)
    .bind(from)
    .bind(to)
    .bind(task_no)
    .bind(task_no)
    .fetch_all(db.read())
    .await?;
    let order = |row| Ok((order_no_of(row)?, OrderRow::from_row(row)?));
    Ok(rows.iter().map(order).collect::<Result<_, sqlx::Error>>()?)
}

/// Which tasks a by-code redemption looks at.
#[derive(Debug)]
pub(crate) enum TaskChoice {
    /// Those that start within this range (Unix ms).
    Day(std::ops::Range<i64>),
    /// One task.
    Task(TaskNo),
}

/// What an admin asks of the audit.
#[derive(Debug, Clone, Default)]
pub(crate) struct AuditFilter {
    pub(crate) order_no: Option<OrderNo>,
    pub(crate) operator: Option<i64>,
    pub(crate) result: Option<i64>,
    pub(crate) from: Option<i64>,
    pub(crate) to: Option<i64>,
}

/// A row of the audit with what people know its order and operator by.
const AUDIT: &str =
    "SELECT r.id, o.order_no, r.request_id, r.result, r.status_before, r.status_after, a.name, r.operator_type,
        r.entry, r.address, r.at
     FROM redemption r
     LEFT JOIN booking_order o ON o.id = r.order_id AND o.tenant_id = r.tenant_id
     LEFT JOIN account a ON a.id = r.operator_id AND a.tenant_id = r.tenant_id
     WHERE r.tenant_id = ";

fn audit_row(row: &AnyRow) -> Result<RedemptionView, sqlx::Error> {
    let order_no: Option<String> = row.try_get("order_no")?;
    Ok(RedemptionView {
        id: row.try_get("id")?,
        order_no: order_no.map(|no| OrderNo::parse(&no)).transpose().map_err(|_| unknown_word("order_no"))?,
        request_id: row.try_get("request_id")?,
        result: row.try_get("result")?,
        status_before: row.try_get("status_before")?,
        status_after: row.try_get("status_after")?,
        operator: row.try_get("name")?,
        operator_type: row.try_get("operator_type")?,
        entry: row.try_get("entry")?,
        device: None,
        address: row.try_get("address")?,
        at: row.try_get("at")?,
    })
}

/// The audit's rows in the order of their ids, those after `after`. What is not committed yet is missing, and may turn
/// up later between rows that are there.
pub(super) async fn audit_after(
    db: &Db,
    tenant: TenantId,
    after: i64,
    limit: i64,
) -> Result<Vec<RedemptionView>, DbError> {
    let mut sql = QueryBuilder::<Any>::new(AUDIT);
    sql.push_bind(tenant.0).push(" AND r.id > ").push_bind(after).push(" ORDER BY r.id LIMIT ").push_bind(limit);
    let rows = sql.build().fetch_all(db.read()).await?;
    Ok(rows.iter().map(audit_row).collect::<Result<_, _>>()?)
}

/// The audit's rows, the newest first, older than `before`.
pub(crate) async fn audit(
    db: &Db,
    tenant: TenantId,
    filter: &AuditFilter,
    before: i64,
    limit: i64,
) -> Result<Vec<RedemptionView>, DbError> {
    let mut sql = QueryBuilder::<Any>::new(AUDIT);
    sql.push_bind(tenant.0).push(" AND r.id < ").push_bind(before);
    if let Some(order_no) = &filter.order_no {
        sql.push(" AND o.order_no = ").push_bind(order_no.as_str());
    }
    for (condition, value) in [
        (" AND r.operator_id = ", filter.operator),
        (" AND r.result = ", filter.result),
        (" AND r.at >= ", filter.from),
        (" AND r.at < ", filter.to),
    ] {
        if let Some(value) = value {
            sql.push(condition).push_bind(value);
        }
    }
    sql.push(" ORDER BY r.id DESC LIMIT ").push_bind(limit);
    let rows = sql.build().fetch_all(db.read()).await?;
    Ok(rows.iter().map(audit_row).collect::<Result<_, _>>()?)
}
