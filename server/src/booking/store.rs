//! Orders and tasks in the database.

use super::{NewOrder, NewTask};
use crate::db::{Db, DbError, Tx, new_id};
use crate::redemption::store::{order_no_of, status_of, task_no_of, unknown_word};
use sqlx::any::AnyRow;
use sqlx::{Any, QueryBuilder, Row};
use std::collections::BTreeSet;
use std::ops::Range;
use wire::api::{OrderStatus, OwnOrder, TaskOrder, TaskView};
use wire::{OrderNo, Secret, TaskNo, TenantId};

/// A visitor's own orders: those from today on, the next one first, then earlier ones, the latest first.
pub(super) async fn own_orders(db: &Db, tenant: TenantId, visitor: i64, today: i64) -> Result<Vec<OwnOrder>, DbError> {
    let rows = sqlx::query(
        "SELECT o.order_no, o.visitor_name, o.party_size, o.visit_at, o.status, o.consumed_at, t.title, t.venue
         FROM booking_order o LEFT JOIN task t ON t.id = o.task_id AND t.tenant_id = o.tenant_id
         WHERE o.tenant_id = ? AND o.account_id = ? ORDER BY CASE WHEN o.visit_at >= ? THEN 0 ELSE 1 END,
            CASE WHEN o.visit_at >= ? THEN o.visit_at ELSE -o.visit_at END, o.id LIMIT 200",
    )
    .bind(tenant.0)
    .bind(visitor)
    .bind(today)
    .bind(today)
    .fetch_all(db.read())
    .await?;
    let order = |row| -> Result<OwnOrder, sqlx::Error> {
        Ok(OwnOrder {
            order_no: order_no_of(row)?,
            visitor_name: row.try_get("visitor_name")?,
            party_size: row.try_get("party_size")?,
            visit_at: row.try_get("visit_at")?,
            status: status_of(row)?,
            consumed_at: row.try_get("consumed_at")?,
            title: row.try_get("title")?,
            venue: row.try_get("venue")?,
        })
    };
    Ok(rows.iter().map(order).collect::<Result<_, _>>()?)
}

/// A guide's tasks that start within `day`, with how far they are. Orders that were called off or paid back do not count.
pub(super) async fn tasks_of_guide(
    db: &Db,
    tenant: TenantId,
    guide: i64,
    day: Range<i64>,
) -> Result<Vec<TaskView>, DbError> {
    let rows = sqlx::query(
        "SELECT t.task_no, t.title, t.venue, t.starts_at, t.ends_at,
            COUNT(CASE WHEN o.status IN ('paid', 'consumed') THEN 1 END) AS total,
            COUNT(CASE WHEN o.status = 'paid' THEN 1 END) AS paid,
            COUNT(CASE WHEN o.status = 'consumed' THEN 1 END) AS consumed
         FROM task t
         JOIN task_guide g ON g.task_id = t.id AND g.tenant_id = t.tenant_id
         LEFT JOIN booking_order o ON o.task_id = t.id AND o.tenant_id = t.tenant_id
         WHERE t.tenant_id = ? AND g.account_id = ? AND t.starts_at >= ? AND t.starts_at < ?
         GROUP BY t.id, t.task_no, t.title, t.venue, t.starts_at, t.ends_at
         ORDER BY t.starts_at, t.task_no",
    )
    .bind(tenant.0)
    .bind(guide)
    .bind(day.start)
    .bind(day.end)
    .fetch_all(db.read())
    .await?;
    let task = |row| -> Result<TaskView, sqlx::Error> {
        Ok(TaskView {
            task_no: task_no_of(row)?.ok_or_else(|| unknown_word("task_no"))?,
            title: row.try_get("title")?,
            venue: row.try_get("venue")?,
            starts_at: row.try_get("starts_at")?,
            ends_at: row.try_get("ends_at")?,
            total: row.try_get("total")?,
            paid: row.try_get("paid")?,
            consumed: row.try_get("consumed")?,
        })
    };
    Ok(rows.iter().map(task).collect::<Result<_, _>>()?)
}

/// The id of a task, if the guide is assigned to it.
pub(super) async fn task_of_guide(
    db: &Db,
    tenant: TenantId,
    guide: i64,
    task_no: &TaskNo,
) -> Result<Option<i64>, DbError> {
    let row = sqlx::query(
        "SELECT t.id FROM task t JOIN task_guide g ON g.task_id = t.id AND g.tenant_id = t.tenant_id
         WHERE t.tenant_id = ? AND t.task_no = ? AND g.account_id = ?",
    )
    .bind(tenant.0)
    .bind(task_no.as_str())
    .bind(guide)
    .fetch_optional(db.read())
    .await?;
    Ok(row.map(|row| row.try_get("id")).transpose()?)
}

/// A task's orders, by name masked.
pub(super) async fn orders_of_task(db: &Db, tenant: TenantId, task: i64) -> Result<Vec<TaskOrder>, DbError> {
    let rows = sqlx::query(
        "SELECT order_no, visitor_name, party_size, visit_at, status, consumed_at FROM booking_order
         WHERE tenant_id = ? AND task_id = ? ORDER BY visit_at, id",
    )
    .bind(tenant.0)
    .bind(task)
    .fetch_all(db.read())
    .await?;
    let order = |row| -> Result<TaskOrder, sqlx::Error> {
        Ok(TaskOrder {
            order_no: order_no_of(row)?,
            visitor_name: masked(row.try_get("visitor_name")?),
            party_size: row.try_get("party_size")?,
            visit_at: row.try_get("visit_at")?,
            status: status_of(row)?,
            consumed_at: row.try_get("consumed_at")?,
        })
    };
    Ok(rows.iter().map(order).collect::<Result<_, _>>()?)
}

/// Family name and `*`: the first character of a Chinese name, two where they are a compound family name; the last word of others.
pub(crate) fn masked(name: &str) -> String {
    const COMPOUND: &[&str] = &[
        "欧阳", "太史", "端木", "上官", "司马", "东方", "独孤", "南宫", "万俟", "闻人", "夏侯", "诸葛", "尉迟", "公羊",
        "赫连", "澹台", "皇甫", "宗政", "濮阳", "公冶", "太叔", "申屠", "公孙", "慕容", "仲孙", "钟离", "长孙", "宇文",
        "司徒", "鲜于", "司空", "令狐",
    ];
    let name = name.trim();
    let family = if name.contains(char::is_whitespace) {
        name.split_whitespace().next_back().unwrap_or_default()
    } else {
        let compound = COMPOUND.iter().find(|family| name.starts_with(**family) && name.chars().count() > 2);
        let first = name.chars().next().map_or(0, char::len_utf8);
        compound.copied().unwrap_or(&name[..first])
    };
    format!("{family}*")
}

pub(super) async fn task_id(tx: &mut Tx, tenant: TenantId, task_no: &TaskNo) -> Result<Option<i64>, DbError> {
    let row = sqlx::query("SELECT id FROM task WHERE tenant_id = ? AND task_no = ?")
        .bind(tenant.0)
        .bind(task_no.as_str())
        .fetch_optional(&mut **tx)
        .await?;
    Ok(row.map(|row| row.try_get("id")).transpose()?)
}

pub(super) async fn insert_task(tx: &mut Tx, tenant: TenantId, task: &NewTask, now: i64) -> Result<i64, DbError> {
    let inserted = sqlx::query(
        "INSERT INTO task (tenant_id, task_no, title, venue, starts_at, ends_at, created_at, updated_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(tenant.0)
    .bind(task.task_no.as_str())
    .bind(&task.title)
    .bind(&task.venue)
    .bind(task.starts_at)
    .bind(task.ends_at)
    .bind(now)
    .bind(now)
    .execute(&mut **tx)
    .await?;
    new_id(tx, &inserted).await
}

pub(super) async fn update_task(
    tx: &mut Tx,
    tenant: TenantId,
    id: i64,
    task: &NewTask,
    now: i64,
) -> Result<(), DbError> {
    sqlx::query(
        "UPDATE task SET title = ?, venue = ?, starts_at = ?, ends_at = ?, updated_at = ? WHERE id = ? AND tenant_id = ?",
    )
    .bind(&task.title)
    .bind(&task.venue)
    .bind(task.starts_at)
    .bind(task.ends_at)
    .bind(now)
    .bind(id)
    .bind(tenant.0)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Makes these accounts, and nobody else, the task's guides.
pub(super) async fn assign_guides(
    tx: &mut Tx,
    tenant: TenantId,
    task: i64,
    guides: &BTreeSet<i64>,
) -> Result<(), DbError> {
    sqlx::query("DELETE FROM task_guide WHERE task_id = ? AND tenant_id = ?")
        .bind(task)
        .bind(tenant.0)
        .execute(&mut **tx)
        .await?;
    for guide in guides {
        sqlx::query("INSERT INTO task_guide (task_id, account_id, tenant_id) VALUES (?, ?, ?)")
            .bind(task)
            .bind(*guide)
            .bind(tenant.0)
            .execute(&mut **tx)
            .await?;
    }
    Ok(())
}

/// An order as it stands before a change.
#[derive(Debug)]
pub(super) struct OldOrder {
    pub(super) id: i64,
    pub(super) visitor: i64,
    pub(super) status: OrderStatus,
    pub(super) consumed_at: Option<i64>,
    pub(super) task_id: Option<i64>,
}

/// An order, held for the change that follows.
pub(super) async fn order_to_change(
    db: &Db,
    tx: &mut Tx,
    tenant: TenantId,
    order_no: &OrderNo,
) -> Result<Option<OldOrder>, DbError> {
    let mut sql = QueryBuilder::<Any>::new(
        "SELECT id, account_id, status, consumed_at, task_id FROM booking_order WHERE tenant_id = ",
    );
    sql.push_bind(tenant.0).push(" AND order_no = ").push_bind(order_no.as_str()).push(db.for_update());
    let row = sql.build().fetch_optional(&mut **tx).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(OldOrder {
        id: row.try_get("id")?,
        visitor: row.try_get("account_id")?,
        status: status_of(&row)?,
        consumed_at: row.try_get("consumed_at")?,
        task_id: row.try_get("task_id")?,
    }))
}

/// What is written of an order.
#[derive(Debug)]
pub(super) struct OrderValues<'a> {
    pub(super) order: &'a NewOrder,
    pub(super) visitor: i64,
    pub(super) now: i64,
}

pub(super) async fn insert_order(
    tx: &mut Tx,
    tenant: TenantId,
    values: &OrderValues<'_>,
    task_id: Option<i64>,
) -> Result<i64, DbError> {
    let consumed_at = (values.order.status == OrderStatus::Consumed).then_some(values.now);
    let inserted = sqlx::query(
        "INSERT INTO booking_order (tenant_id, order_no, account_id, visitor_name, party_size, visit_at, status, task_id,
            consumed_at, created_at, updated_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )
    .bind(tenant.0)
    .bind(values.order.order_no.as_str())
    .bind(values.visitor)
    .bind(&values.order.visitor_name)
    .bind(values.order.party_size)
    .bind(values.order.visit_at)
    .bind(values.order.status.as_str())
    .bind(task_id)
    .bind(consumed_at)
    .bind(values.now)
    .bind(values.now)
    .execute(&mut **tx)
    .await?;
    new_id(tx, &inserted).await
}

/// Changes an order that still has the status it was read with; `false` where it has another by now.
pub(super) async fn update_order(
    tx: &mut Tx,
    tenant: TenantId,
    values: &OrderValues<'_>,
    old: &OldOrder,
    task_id: Option<i64>,
) -> Result<bool, DbError> {
    let updated = sqlx::query(
        "UPDATE booking_order SET account_id = ?, visitor_name = ?, party_size = ?, visit_at = ?, status = ?, task_id = ?, updated_at = ?
         WHERE id = ? AND tenant_id = ? AND status = ?",
    )
    .bind(values.visitor)
    .bind(&values.order.visitor_name)
    .bind(values.order.party_size)
    .bind(values.order.visit_at)
    .bind(values.order.status.as_str())
    .bind(task_id)
    .bind(values.now)
    .bind(old.id)
    .bind(tenant.0)
    .bind(old.status.as_str())
    .execute(&mut **tx)
    .await?;
    Ok(updated.rows_affected() == 1)
}

pub(super) async fn task_no_of_order(db: &Db, tenant: TenantId, order_id: i64) -> Result<Option<TaskNo>, DbError> {
    let row = sqlx::query(
        "SELECT t.task_no FROM booking_order o LEFT JOIN task t ON t.id = o.task_id AND t.tenant_id = o.tenant_id
         WHERE o.tenant_id = ? AND o.id = ?",
    )
    .bind(tenant.0)
    .bind(order_id)
    .fetch_one(db.read())
    .await?;
    Ok(task_no_of(&row)?)
}

/// Which orders an export holds.
#[derive(Debug, Clone)]
pub(super) struct OrderFilter {
    /// Those for this range (Unix ms).
    pub(super) visit: Option<Range<i64>>,
    pub(super) task_no: Option<TaskNo>,
    pub(super) status: Option<OrderStatus>,
}

/// An order as a file holds it.
#[derive(Debug)]
pub(super) struct FiledOrder {
    pub(super) id: i64,
    pub(super) order_no: OrderNo,
    pub(super) mobile: Option<Secret>,
    pub(super) visitor_name: String,
    pub(super) party_size: i64,
    pub(super) visit_at: i64,
    pub(super) status: OrderStatus,
    pub(super) task_no: Option<TaskNo>,
}

/// The tenant's orders in the order of their ids, those after `after`, with the visitors' whole numbers.
pub(super) async fn orders_after(
    db: &Db,
    tenant: TenantId,
    filter: &OrderFilter,
    after: i64,
    limit: i64,
) -> Result<Vec<FiledOrder>, DbError> {
    let mut sql = QueryBuilder::<Any>::new(
        "SELECT o.id, o.order_no, a.mobile, o.visitor_name, o.party_size, o.visit_at, o.status, t.task_no
         FROM booking_order o
         JOIN account a ON a.id = o.account_id AND a.tenant_id = o.tenant_id
         LEFT JOIN task t ON t.id = o.task_id AND t.tenant_id = o.tenant_id
         WHERE o.tenant_id = ",
    );
    sql.push_bind(tenant.0).push(" AND o.id > ").push_bind(after);
    if let Some(visit) = &filter.visit {
        sql.push(" AND o.visit_at >= ").push_bind(visit.start).push(" AND o.visit_at < ").push_bind(visit.end);
    }
    if let Some(task_no) = &filter.task_no {
        sql.push(" AND t.task_no = ").push_bind(task_no.as_str());
    }
    if let Some(status) = filter.status {
        sql.push(" AND o.status = ").push_bind(status.as_str());
    }
    sql.push(" ORDER BY o.id LIMIT ").push_bind(limit);
    let rows = sql.build().fetch_all(db.read()).await?;
    let order = |row: &AnyRow| -> Result<FiledOrder, sqlx::Error> {
        Ok(FiledOrder {
            id: row.try_get("id")?,
            order_no: order_no_of(row)?,
            mobile: row.try_get::<Option<String>, _>("mobile")?.map(Secret::new),
            visitor_name: row.try_get("visitor_name")?,
            party_size: row.try_get("party_size")?,
            visit_at: row.try_get("visit_at")?,
            status: status_of(row)?,
            task_no: task_no_of(row)?,
        })
    };
    Ok(rows.iter().map(order).collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::masked;

    #[test]
    fn a_name_is_masked_to_its_family_name() {
        for (name, want) in [
            ("张伟", "张*"),
            ("欧阳娜娜", "欧阳*"),
            ("高圆圆", "高*"),
            ("李", "李*"),
            ("Ada Lovelace", "Lovelace*"),
            ("Cher", "C*"),
            ("", "*"),
        ] {
            assert_eq!(masked(name), want);
        }
    }
}
