//! The demo: guides, today's tasks and paid orders in an empty database, and one-time sign-in links to them.

use crate::accounts::store::{Rename, account_by_mobile, grant};
use crate::accounts::{link, password, store};
use crate::app::App;
use crate::booking::{NewOrder, NewTask, put_order, put_task};
use anyhow::{Context, ensure};
use jiff::Timestamp;
use sqlx::Row;
use std::collections::BTreeSet;
use wire::api::{OrderStatus, Role};
use wire::{Mobile, OrderNo, Secret, TaskNo, TenantId};

const TENANT: TenantId = TenantId(1);
const ADMIN: &str = "admin";
const GUIDES: &[(&str, &str)] = &[("13900000001", "林悦"), ("13900000002", "周航")];
const VISITORS: &[(&str, &str)] = &[
    ("13800000001", "张伟"),
    ("13800000002", "王芳"),
    ("13800000003", "李娜"),
    ("13800000004", "刘洋"),
    ("13800000005", "陈静"),
    ("13800000006", "欧阳明月"),
];

/// What a demo made, and how to get in.
#[derive(Debug, Clone)]
pub struct Demo {
    /// The guides' links.
    pub guides: Vec<DemoLink>,
    /// The visitors' links, one for each of their orders that may be redeemed.
    pub visitors: Vec<DemoLink>,
    /// The admin's user name.
    pub admin: String,
    /// The admin's one-time password.
    pub admin_password: Secret,
}

/// A one-time sign-in link.
#[derive(Debug, Clone)]
pub struct DemoLink {
    /// Whose.
    pub name: String,
    /// The order that it leads to.
    pub order_no: Option<OrderNo>,
    /// The whole address, token in the fragment; good once.
    pub url: Secret,
}

/// Fills the database and makes the links.
pub(crate) async fn make(app: &App, base_url: &str) -> anyhow::Result<Demo> {
    let used = sqlx::query("SELECT COUNT(*) AS n FROM account").fetch_one(app.db.read()).await?;
    ensure!(used.try_get::<i64, _>("n")? == 0, "--demo wants an empty database; this one has accounts in it");

    let now = app.clock.now_ms();
    let mut guides = BTreeSet::new();
    let mut tx = app.db.begin().await?;
    for (mobile, name) in GUIDES {
        guides.insert(grant(&mut tx, TENANT, &mobile_of(mobile)?, Role::Guide, (name, Rename::Always), now).await?);
    }
    let admin_password = app.new_token();
    let hash = password::hash(app, &admin_password)?;
    store::insert_admin(&mut tx, TENANT, ADMIN, None, &hash, now).await?;
    tx.commit().await?;

    let today = Timestamp::from_millisecond(now)?.to_zoned_datetime(app.zone.clone()).date();
    let day = today.strftime("%Y%m%d").to_string();
    let at = |hour: i8| -> anyhow::Result<i64> {
        Ok(today.at(hour, 0, 0, 0).to_zoned_datetime(app.zone.clone())?.timestamp().as_millisecond())
    };
    for (n, (title, venue, hour)) in
        [("晨光古城徒步", "东门广场", 9), ("博物馆深度讲解", "主馆一层大厅", 14), ("夜游运河", "三号码头", 19)]
            .into_iter()
            .enumerate()
    {
        let task = NewTask {
            task_no: task_no(&day, n)?,
            title: title.to_owned(),
            venue: venue.to_owned(),
            starts_at: at(hour)?,
            ends_at: at(hour + 2)?,
            guides: guides.clone(),
        };
        put_task(app, TENANT, &task).await.map_err(|e| anyhow::anyhow!("{e:?}"))?;
    }

    let sizes = [12, 4, 2, 25, 6, 8, 3, 18, 5, 2, 30, 1];
    let mut orders = Vec::new();
    for (n, size) in sizes.into_iter().enumerate() {
        let (mobile, name) = VISITORS[n % VISITORS.len()];
        let task = n / 4;
        let status = match n {
            3 => OrderStatus::Consumed,
            7 => OrderStatus::Refunding,
            11 => OrderStatus::PendingPayment,
            _ => OrderStatus::Paid,
        };
        let order_no = OrderNo::parse(&format!("BK{day}{:04}", n + 1))?;
        let order = NewOrder {
            order_no: order_no.clone(),
            mobile: mobile_of(mobile)?,
            visitor_name: name.to_owned(),
            party_size: size,
            visit_at: at([9, 14, 19][task])?,
            status,
            task_no: Some(Some(task_no(&day, task)?)),
        };
        put_order(app, TENANT, &order).await.map_err(|e| anyhow::anyhow!("{e:?}"))?;
        if status == OrderStatus::Paid {
            orders.push((name, mobile, order_no));
        }
    }

    let mut demo = Demo { guides: Vec::new(), visitors: Vec::new(), admin: ADMIN.to_owned(), admin_password };
    for (mobile, name) in GUIDES {
        let url = fresh_link(app, base_url, &mobile_of(mobile)?, None).await?;
        demo.guides.push(DemoLink { name: (*name).to_owned(), order_no: None, url });
    }
    for (name, mobile, order_no) in orders {
        let url = fresh_link(app, base_url, &mobile_of(mobile)?, Some(&order_no)).await?;
        demo.visitors.push(DemoLink { name: name.to_owned(), order_no: Some(order_no), url });
    }
    tracing::info!("the demo's bookings were made");
    Ok(demo)
}

/// A new link for the visitor of an order.
pub(crate) async fn visitor_link(app: &App, base_url: &str, order_no: &OrderNo) -> anyhow::Result<Secret> {
    let row = sqlx::query(
        "SELECT a.mobile FROM booking_order o JOIN account a ON a.id = o.account_id WHERE o.tenant_id = ? AND o.order_no = ?",
    )
    .bind(TENANT.0)
    .bind(order_no.as_str())
    .fetch_optional(app.db.read())
    .await?
    .with_context(|| format!("there is no order {order_no}"))?;
    let mobile: String = row.try_get("mobile")?;
    fresh_link(app, base_url, &mobile_of(&mobile)?, Some(order_no)).await
}

async fn fresh_link(app: &App, base_url: &str, mobile: &Mobile, order_no: Option<&OrderNo>) -> anyhow::Result<Secret> {
    let account = account_by_mobile(&app.db, TENANT, mobile).await?.context("the account is gone")?;
    let token = link::make(app, &account).await?;
    let order = order_no.map(|no| format!("?order={no}")).unwrap_or_default();
    Ok(Secret::new(format!("{base_url}/{order}#sign-in={}", token.expose())))
}

fn mobile_of(text: &str) -> anyhow::Result<Mobile> {
    Ok(Mobile::parse(text)?)
}

fn task_no(day: &str, n: usize) -> anyhow::Result<TaskNo> {
    Ok(TaskNo::parse(&format!("T{day}-{}", n + 1))?)
}
