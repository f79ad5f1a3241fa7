//! Making tenants, admins and API keys: what the command line does, not the network.

use super::{password, store};
use crate::app::{App, token_hash};
use crate::db::{DbError, new_id};
use anyhow::{Context, ensure};
use wire::{Mobile, Secret, TenantId};

/// All tenants.
///
/// # Errors
/// Where the database is away.
pub async fn tenants(app: &App) -> anyhow::Result<Vec<TenantId>> {
    Ok(store::tenants(&app.db).await?)
}

/// Makes a tenant; its number.
///
/// # Errors
/// Where the database is away.
pub async fn tenant(app: &App, name: &str) -> anyhow::Result<TenantId> {
    let mut tx = app.db.begin().await?;
    let inserted = sqlx::query("INSERT INTO tenant (name, created_at) VALUES (?, ?)")
        .bind(name)
        .bind(app.clock.now_ms())
        .execute(&mut *tx)
        .await?;
    let id = new_id(&mut tx, &inserted).await?;
    tx.commit().await?;
    Ok(TenantId(id))
}

/// Makes an admin. Where no password is given, one is made and returned.
///
/// # Errors
/// Where the user name or the number is taken, or the password too short.
pub async fn admin(
    app: &App,
    tenant: TenantId,
    username: &str,
    mobile: Option<&Mobile>,
    given: Option<Secret>,
) -> anyhow::Result<Option<Secret>> {
    let username = wire::trim(username);
    let fits = (1..=64).contains(&username.chars().count()) && !username.chars().any(char::is_control);
    ensure!(fits, "a user name has 1 to 64 characters");
    let (hash, made) = given_or_made(app, given)?;
    let mut tx = app.db.begin().await?;
    match store::insert_admin(&mut tx, tenant, username, mobile, &hash, app.clock.now_ms()).await {
        Ok(()) => tx.commit().await?,
        Err(DbError::Duplicate) => anyhow::bail!("there is an account with that user name or number already"),
        Err(error) => return Err(error.into()),
    }
    Ok(made)
}

/// Gives an admin another password, and ends every session of theirs. Where none is given, one is made and returned.
///
/// # Errors
/// Where no admin has that user name, or the password is too short.
pub async fn admin_password(
    app: &App,
    tenant: TenantId,
    username: &str,
    given: Option<Secret>,
) -> anyhow::Result<Option<Secret>> {
    let (hash, made) = given_or_made(app, given)?;
    let mut tx = app.db.begin().await?;
    let admin = store::admin_named(&mut tx, tenant, wire::trim(username)).await?;
    let admin = admin.context("no admin has that user name")?;
    store::set_password(&mut tx, tenant, admin, &hash).await?;
    store::end_sessions(&mut tx, tenant, admin).await?;
    tx.commit().await?;
    Ok(made)
}

/// The hash of a password, and the password where it had to be made.
fn given_or_made(app: &App, given: Option<Secret>) -> anyhow::Result<(String, Option<Secret>)> {
    match given {
        Some(password) => Ok((password::hash(app, &password)?, None)),
        None => {
            let password = app.new_token();
            Ok((password::hash(app, &password)?, Some(password)))
        }
    }
}

/// Makes an API key; it is shown this once, and kept as its SHA-256.
///
/// # Errors
/// Where the database is away.
pub async fn api_key(app: &App, tenant: TenantId, name: &str) -> anyhow::Result<Secret> {
    let name = wire::trim(name);
    ensure!((1..=64).contains(&name.chars().count()), "a key's name has 1 to 64 characters");
    let key = Secret::new(format!("gp_{}", app.new_token().expose()));
    let mut tx = app.db.begin().await?;
    store::insert_api_key(&mut tx, tenant, name, &token_hash(key.expose()), app.clock.now_ms()).await?;
    tx.commit().await?;
    Ok(key)
}
