//! `admin add`, `admin reset-password`, `api-key add`, `tenant add`.

use super::{WrongUsage, say};
use anyhow::{Context, bail, ensure};
use guidepost_server::accounts::create;
use guidepost_server::app::App;
use std::io::Read;
use wire::{Mobile, Secret, TenantId};

/// The tenant that was named, or the only one there is.
pub(super) async fn tenant(app: &App, named: Option<i64>) -> anyhow::Result<TenantId> {
    let tenants = create::tenants(app).await?;
    match (named, tenants.as_slice()) {
        (Some(id), all) if all.contains(&TenantId(id)) => Ok(TenantId(id)),
        (Some(id), _) => bail!(WrongUsage(format!("there is no tenant {id}"))),
        (None, [only]) => Ok(*only),
        (None, all) => bail!(WrongUsage(format!("there are {} tenants: name one with --tenant", all.len()))),
    }
}

pub(super) async fn add_admin(
    app: &App,
    named: Option<i64>,
    username: &str,
    mobile: Option<&str>,
    password_stdin: bool,
) -> anyhow::Result<()> {
    let tenant = tenant(app, named).await?;
    let mobile = mobile.map(Mobile::parse).transpose().context("--mobile is no mobile number")?;
    say_made(create::admin(app, tenant, username, mobile.as_ref(), given(password_stdin)?).await?)
}

pub(super) async fn reset_admin_password(
    app: &App,
    named: Option<i64>,
    username: &str,
    password_stdin: bool,
) -> anyhow::Result<()> {
    let tenant = tenant(app, named).await?;
    say_made(create::admin_password(app, tenant, username, given(password_stdin)?).await?)
}

/// The password from standard input, where it is to come from there.
fn given(password_stdin: bool) -> anyhow::Result<Option<Secret>> {
    if !password_stdin {
        return Ok(None);
    }
    let mut text = String::new();
    std::io::stdin().take(4096).read_to_string(&mut text).context("the password cannot be read")?;
    Ok(Some(Secret::new(text.trim_end_matches(['\r', '\n']))))
}

/// A password that was made is told this once.
fn say_made(password: Option<Secret>) -> anyhow::Result<()> {
    password.map_or(Ok(()), |password| say(password.expose()))
}

pub(super) async fn add_api_key(app: &App, named: Option<i64>, name: &str) -> anyhow::Result<()> {
    let tenant = tenant(app, named).await?;
    say(create::api_key(app, tenant, name).await?.expose())
}

pub(super) async fn add_tenant(app: &App, name: &str) -> anyhow::Result<()> {
    let name = name.trim();
    ensure!(!name.is_empty() && !name.chars().any(char::is_control), "--name is empty or has control characters");
    say(create::tenant(app, name).await?)
}
