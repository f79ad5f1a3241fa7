//! Accounts, sessions, links and API keys in the database.

use crate::db::{self, Db, DbError, Tx, new_id};
use sqlx::any::AnyRow;
use sqlx::{Any, QueryBuilder, Row};
use wire::api::Role;
use wire::{Mobile, TenantId};

/// A person in a tenant.
#[derive(Debug, Clone)]
pub struct Account {
    /// The account's id.
    pub id: i64,
    /// Its tenant.
    pub tenant: TenantId,
    /// Its name.
    pub name: String,
    /// What it may be.
    pub roles: Vec<Role>,
}

impl Account {
    fn from_row(row: &AnyRow) -> Result<Self, sqlx::Error> {
        let flags = [("is_visitor", Role::Visitor), ("is_guide", Role::Guide), ("is_admin", Role::Admin)];
        let mut roles = Vec::new();
        for (column, role) in flags {
            if row.try_get::<i64, _>(column)? != 0 {
                roles.push(role);
            }
        }
        Ok(Self {
            id: row.try_get("account_id")?,
            tenant: TenantId(row.try_get("tenant_id")?),
            name: row.try_get("name")?,
            roles,
        })
    }
}

/// A session's row.
#[derive(Debug)]
pub(crate) struct SessionRow {
    pub(crate) account: Account,
    pub(crate) created_at: i64,
    pub(crate) expires_at: i64,
    pub(crate) last_used_at: i64,
}

/// All tenants' ids.
pub(crate) async fn tenants(db: &Db) -> Result<Vec<TenantId>, DbError> {
    tenants_by(db.read()).await
}

/// All tenants' ids, by a connection of the caller's.
pub(crate) async fn tenants_by(
    executor: impl sqlx::Executor<'_, Database = sqlx::Any>,
) -> Result<Vec<TenantId>, DbError> {
    let rows = sqlx::query("SELECT id FROM tenant ORDER BY id").fetch_all(executor).await?;
    rows.iter().map(|row| Ok(TenantId(row.try_get("id")?))).collect()
}

/// A tenant's name.
pub(crate) async fn tenant_name(db: &Db, tenant: TenantId) -> Result<Option<String>, DbError> {
    let row = sqlx::query("SELECT name FROM tenant WHERE id = ?").bind(tenant.0).fetch_optional(db.read()).await?;
    Ok(row.map(|row| row.try_get("name")).transpose()?)
}

/// The session with this token's hash.
pub(crate) async fn session(db: &Db, token_hash: &str) -> Result<Option<SessionRow>, DbError> {
    let row = sqlx::query(
        "SELECT s.created_at, s.expires_at, s.last_used_at, a.id AS account_id, a.tenant_id, a.name, a.is_visitor, a.is_guide, a.is_admin
         FROM session s JOIN account a ON a.id = s.account_id AND a.tenant_id = s.tenant_id
         WHERE s.token_hash = ?",
    )
    .bind(token_hash)
    .fetch_optional(db.read())
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(SessionRow {
        account: Account::from_row(&row)?,
        created_at: row.try_get("created_at")?,
        expires_at: row.try_get("expires_at")?,
        last_used_at: row.try_get("last_used_at")?,
    }))
}

/// Notes that a session was used.
pub(crate) async fn touch_session(db: &Db, token_hash: &str, now: i64) -> Result<(), DbError> {
    let mut tx = db.begin().await?;
    sqlx::query("UPDATE session SET last_used_at = ? WHERE token_hash = ? AND last_used_at < ?")
        .bind(now)
        .bind(token_hash)
        .bind(now)
        .execute(&mut *tx)
        .await?;
    Ok(tx.commit().await?)
}

pub(crate) async fn insert_session(
    tx: &mut Tx,
    token_hash: &str,
    account: &Account,
    now: i64,
    expires_at: i64,
) -> Result<(), DbError> {
    sqlx::query(
        "INSERT INTO session (token_hash, tenant_id, account_id, created_at, expires_at, last_used_at) VALUES (?, ?, ?, ?, ?, ?)",
    )
    .bind(token_hash)
    .bind(account.tenant.0)
    .bind(account.id)
    .bind(now)
    .bind(expires_at)
    .bind(now)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// Revokes a session.
pub(crate) async fn delete_session(db: &Db, token_hash: &str) -> Result<(), DbError> {
    let mut tx = db.begin().await?;
    sqlx::query("DELETE FROM session WHERE token_hash = ?").bind(token_hash).execute(&mut *tx).await?;
    Ok(tx.commit().await?)
}

pub(crate) async fn insert_sign_in_link(
    tx: &mut Tx,
    token_hash: &str,
    account: &Account,
    expires_at: i64,
) -> Result<(), DbError> {
    sqlx::query("INSERT INTO sign_in_link (token_hash, tenant_id, account_id, expires_at) VALUES (?, ?, ?, ?)")
        .bind(token_hash)
        .bind(account.tenant.0)
        .bind(account.id)
        .bind(expires_at)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Uses a link up and gives its account; `None` where it was used, has run out or never was.
pub(crate) async fn use_sign_in_link(tx: &mut Tx, token_hash: &str, now: i64) -> Result<Option<Account>, DbError> {
    let used =
        sqlx::query("UPDATE sign_in_link SET used_at = ? WHERE token_hash = ? AND used_at IS NULL AND expires_at > ?")
            .bind(now)
            .bind(token_hash)
            .bind(now)
            .execute(&mut **tx)
            .await?;
    if used.rows_affected() == 0 {
        return Ok(None);
    }
    let row = sqlx::query(
        "SELECT a.id AS account_id, a.tenant_id, a.name, a.is_visitor, a.is_guide, a.is_admin
         FROM sign_in_link l JOIN account a ON a.id = l.account_id AND a.tenant_id = l.tenant_id WHERE l.token_hash = ?",
    )
    .bind(token_hash)
    .fetch_one(&mut **tx)
    .await?;
    Ok(Some(Account::from_row(&row)?))
}

/// The account with this user name, or with this number, and its password's hash.
pub(crate) async fn account_by_username(
    db: &Db,
    tenant: TenantId,
    username: &str,
) -> Result<Option<(Account, Option<String>)>, DbError> {
    // What is no number is looked for as one as well: it takes as long.
    let mobile = Mobile::parse(username).map_or_else(|_| "none".to_owned(), |mobile| mobile.expose().to_owned());
    // Should somebody's user name be another's number, the user name counts.
    let row = sqlx::query(
        "SELECT id AS account_id, tenant_id, name, is_visitor, is_guide, is_admin, password_hash
         FROM account WHERE tenant_id = ? AND (username = ? OR mobile = ?)
         ORDER BY CASE WHEN username = ? THEN 0 ELSE 1 END LIMIT 1",
    )
    .bind(tenant.0)
    .bind(username)
    .bind(mobile)
    .bind(username)
    .fetch_optional(db.read())
    .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some((Account::from_row(&row)?, row.try_get("password_hash")?)))
}

/// The account with this number.
///
/// # Errors
/// Where the database is away.
pub async fn account_by_mobile(db: &Db, tenant: TenantId, mobile: &Mobile) -> Result<Option<Account>, DbError> {
    let row = sqlx::query(
        "SELECT id AS account_id, tenant_id, name, is_visitor, is_guide, is_admin FROM account WHERE tenant_id = ? AND mobile = ?",
    )
    .bind(tenant.0)
    .bind(mobile.expose())
    .fetch_optional(db.read())
    .await?;
    Ok(row.as_ref().map(Account::from_row).transpose()?)
}

/// The account with this number, which keeps it until the transaction ends.
pub(crate) async fn account_in(
    db: &Db,
    tx: &mut Tx,
    tenant: TenantId,
    mobile: &Mobile,
) -> Result<Option<Account>, DbError> {
    let found = held(db, tx, tenant, |sql| _ = sql.push("mobile = ").push_bind(mobile.expose().to_owned())).await?;
    Ok(found.map(|(account, _)| account))
}

/// The account, where it still has this password's hash, which it keeps until the transaction ends.
pub(crate) async fn account_with_password(
    db: &Db,
    tx: &mut Tx,
    account: &Account,
    hash: &str,
) -> Result<Option<Account>, DbError> {
    let found = held(db, tx, account.tenant, |sql| _ = sql.push("id = ").push_bind(account.id)).await?;
    Ok(found.filter(|(_, now)| now.as_deref() == Some(hash)).map(|(account, _)| account))
}

/// The account of which this is so, and its password's hash, held: whoever changes its password or number, and with that
/// ends its sessions, comes before this transaction or after it, so that no session slips in between.
async fn held(
    db: &Db,
    tx: &mut Tx,
    tenant: TenantId,
    condition: impl FnOnce(&mut QueryBuilder<Any>),
) -> Result<Option<(Account, Option<String>)>, DbError> {
    let mut sql = QueryBuilder::new(
        "SELECT id AS account_id, tenant_id, name, is_visitor, is_guide, is_admin, password_hash
         FROM account WHERE tenant_id = ",
    );
    sql.push_bind(tenant.0).push(" AND ");
    condition(&mut sql);
    let row = sql.push(db.for_update()).build().fetch_optional(&mut **tx).await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some((Account::from_row(&row)?, row.try_get("password_hash")?)))
}

/// The number of an account.
pub(crate) async fn mobile_of(db: &Db, tenant: TenantId, account: i64) -> Result<Option<Mobile>, DbError> {
    let row = sqlx::query("SELECT mobile FROM account WHERE tenant_id = ? AND id = ?")
        .bind(tenant.0)
        .bind(account)
        .fetch_optional(db.read())
        .await?;
    let Some(row) = row else { return Ok(None) };
    let mobile: Option<String> = row.try_get("mobile")?;
    let unreadable = |_| sqlx::Error::Decode("mobile holds something that is no number".into());
    Ok(mobile.map(|mobile| Mobile::parse(&mobile)).transpose().map_err(unreadable)?)
}

/// Gives an account another number; [`DbError::Duplicate`] where another account has it.
pub(crate) async fn set_mobile(tx: &mut Tx, tenant: TenantId, account: i64, mobile: &Mobile) -> Result<(), DbError> {
    sqlx::query("UPDATE account SET mobile = ? WHERE tenant_id = ? AND id = ?")
        .bind(mobile.expose())
        .bind(tenant.0)
        .bind(account)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Gives an account another password.
pub(crate) async fn set_password(tx: &mut Tx, tenant: TenantId, account: i64, hash: &str) -> Result<(), DbError> {
    sqlx::query("UPDATE account SET password_hash = ? WHERE tenant_id = ? AND id = ?")
        .bind(hash)
        .bind(tenant.0)
        .bind(account)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Ends all of an account's sessions.
pub(crate) async fn end_sessions(tx: &mut Tx, tenant: TenantId, account: i64) -> Result<(), DbError> {
    end_sessions_but(tx, tenant, account, "").await
}

/// Ends an account's sessions, but the one with this token's hash; `false` where that one was ended itself, and then whatever
/// it asked for must not be. Called after the change to the account, in the same transaction: whoever ends sessions has
/// changed the account before.
pub(crate) async fn end_other_sessions(
    tx: &mut Tx,
    tenant: TenantId,
    account: i64,
    own: &str,
) -> Result<bool, DbError> {
    let stands = sqlx::query("SELECT 1 FROM session WHERE token_hash = ?").bind(own).fetch_optional(&mut **tx).await?;
    if stands.is_none() {
        return Ok(false);
    }
    end_sessions_but(tx, tenant, account, own).await?;
    Ok(true)
}

async fn end_sessions_but(tx: &mut Tx, tenant: TenantId, account: i64, but: &str) -> Result<(), DbError> {
    sqlx::query("DELETE FROM session WHERE tenant_id = ? AND account_id = ? AND token_hash <> ?")
        .bind(tenant.0)
        .bind(account)
        .bind(but)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The ids of an account's paid orders.
pub(crate) async fn paid_orders(tx: &mut Tx, tenant: TenantId, account: i64) -> Result<Vec<i64>, DbError> {
    let rows = sqlx::query("SELECT id FROM booking_order WHERE tenant_id = ? AND account_id = ? AND status = 'paid'")
        .bind(tenant.0)
        .bind(account)
        .fetch_all(&mut **tx)
        .await?;
    Ok(rows.iter().map(|row| row.try_get("id")).collect::<Result<_, sqlx::Error>>()?)
}

/// Gives the number's account a role, making the account where there is none; its id. A name that is given replaces the old one.
pub(crate) async fn grant(
    tx: &mut Tx,
    tenant: TenantId,
    mobile: &Mobile,
    role: Role,
    name: (&str, Rename),
    now: i64,
) -> Result<i64, DbError> {
    let row = sqlx::query("SELECT id FROM account WHERE tenant_id = ? AND mobile = ?")
        .bind(tenant.0)
        .bind(mobile.expose())
        .fetch_optional(&mut **tx)
        .await?;
    let flag = |wanted: Role| i64::from(role == wanted);
    let (visitor, guide, admin) = (flag(Role::Visitor), flag(Role::Guide), flag(Role::Admin));
    let Some(row) = row else {
        let inserted = sqlx::query(
            "INSERT INTO account (tenant_id, mobile, name, is_visitor, is_guide, is_admin, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
        )
        .bind(tenant.0)
        .bind(mobile.expose())
        .bind(name.0)
        .bind(visitor)
        .bind(guide)
        .bind(admin)
        .bind(now)
        .execute(&mut **tx)
        .await?;
        return new_id(tx, &inserted).await;
    };
    let id: i64 = row.try_get("id")?;
    let rename = i64::from(name.1 == Rename::Always);
    sqlx::query(
        "UPDATE account SET name = CASE WHEN ? = 1 THEN ? ELSE name END,
            is_visitor = CASE WHEN ? = 1 THEN 1 ELSE is_visitor END,
            is_guide = CASE WHEN ? = 1 THEN 1 ELSE is_guide END,
            is_admin = CASE WHEN ? = 1 THEN 1 ELSE is_admin END
         WHERE id = ? AND tenant_id = ?",
    )
    .bind(rename)
    .bind(name.0)
    .bind(visitor)
    .bind(guide)
    .bind(admin)
    .bind(id)
    .bind(tenant.0)
    .execute(&mut **tx)
    .await?;
    Ok(id)
}

/// Whether a name replaces the one that an account has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rename {
    /// A guide posted again gets the new name.
    Always,
    /// An order's name is that booking's alone.
    IfNew,
}

/// Makes an admin.
pub(crate) async fn insert_admin(
    tx: &mut Tx,
    tenant: TenantId,
    username: &str,
    mobile: Option<&Mobile>,
    password_hash: &str,
    now: i64,
) -> Result<(), DbError> {
    sqlx::query(
        "INSERT INTO account (tenant_id, mobile, username, password_hash, name, is_admin, created_at) VALUES (?, ?, ?, ?, ?, 1, ?)",
    )
    .bind(tenant.0)
    .bind(mobile.map(Mobile::expose))
    .bind(username)
    .bind(password_hash)
    .bind(username)
    .bind(now)
    .execute(&mut **tx)
    .await?;
    Ok(())
}

/// The admin with this user name.
pub(crate) async fn admin_named(tx: &mut Tx, tenant: TenantId, username: &str) -> Result<Option<i64>, DbError> {
    let row = sqlx::query("SELECT id FROM account WHERE tenant_id = ? AND username = ? AND is_admin = 1")
        .bind(tenant.0)
        .bind(username)
        .fetch_optional(&mut **tx)
        .await?;
    Ok(row.map(|row| row.try_get("id")).transpose()?)
}

pub(crate) async fn insert_api_key(
    tx: &mut Tx,
    tenant: TenantId,
    name: &str,
    key_hash: &str,
    now: i64,
) -> Result<(), DbError> {
    sqlx::query("INSERT INTO api_key (tenant_id, name, key_hash, created_at) VALUES (?, ?, ?, ?)")
        .bind(tenant.0)
        .bind(name)
        .bind(key_hash)
        .bind(now)
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// The tenant of the API key with this hash; `None` where there is none or it was revoked.
pub(crate) async fn tenant_of_api_key(db: &Db, key_hash: &str) -> Result<Option<TenantId>, DbError> {
    let row = sqlx::query("SELECT tenant_id FROM api_key WHERE key_hash = ? AND revoked_at IS NULL")
        .bind(key_hash)
        .fetch_optional(db.read())
        .await?;
    Ok(row.map(|row| row.try_get("tenant_id").map(TenantId)).transpose()?)
}

/// Deletes some sessions that ended before a time, or that were last used so long ago that they must have; how many.
pub(crate) async fn purge_sessions(
    db: &Db,
    tenant: TenantId,
    ended_before: i64,
    last_used_before: i64,
) -> Result<u64, DbError> {
    let old = db::Old {
        table: "session",
        key: "token_hash",
        condition: "expires_at < ? OR last_used_at < ?",
        values: &[ended_before, last_used_before],
    };
    db::delete_some(db, tenant, &old).await
}

/// Deletes some sign-in links that ran out or were used before a time; how many.
pub(crate) async fn purge_sign_in_links(db: &Db, tenant: TenantId, before: i64) -> Result<u64, DbError> {
    let old = db::Old {
        table: "sign_in_link",
        key: "token_hash",
        condition: "expires_at < ? OR used_at < ?",
        values: &[before, before],
    };
    db::delete_some(db, tenant, &old).await
}
