//! `admin add`, `api-key add`, `tenant add`.

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
    let given = if password_stdin {
        let mut text = String::new();
        std::io::stdin().take(4096).read_to_string(&mut text).context("the password cannot be read")?;
        Some(Secret::new(text.trim_end_matches(['\r', '\n'])))
    } else {
        None
    };
    let made = create::admin(app, tenant, username, mobile.as_ref(), given).await?;
    match made {
        Some(password) => say(password.expose()),
        None => Ok(()),
    }
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
