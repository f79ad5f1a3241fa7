//! Receivers of web hooks, as `doctor` sees them: what `serve` would refuse, and who cannot be reached now.

use super::Findings;
use crate::config::Config;
use crate::web_hooks::{check_tenant, connect, receiver};
use wire::TenantId;

const HOOKS: &str = "web hooks";

/// The checks of `serve`, and whether each receiver can be connected to. `tenants` are those of the database, where they
/// are known.
pub(super) async fn receivers(found: &mut Findings, config: &Config, tenants: Option<&[TenantId]>) {
    for (n, hook) in config.web_hooks.iter().enumerate() {
        if let Some(Err(error)) = tenants.map(|tenants| check_tenant(n, hook, tenants)) {
            found.fault(
                HOOKS,
                error.to_string(),
                "correct the number, or make the tenant: guidepost-server tenant add --name NAME",
            );
        }
        let url = match receiver(n, hook) {
            Ok((url, _)) => url,
            Err(error) => {
                found.fault(HOOKS, format!("{error:#}"), "correct the setting, or install the package ca-certificates");
                continue;
            }
        };
        // What stands behind the host may be a secret.
        let host = url.host_str().unwrap_or_default();
        let at = format!("{host}:{}", url.port_or_known_default().unwrap_or(0));
        let name = &hook.name;
        match connect(hook, &url).await {
            Ok(()) => found.ok(HOOKS, format!("{name}: the receiver at {at} can be connected to")),
            Err(why) => found.warning(
                HOOKS,
                format!("{name}: the receiver at {at} cannot be connected to: {why}"),
                "check its address, the firewall, and whether it runs; what it misses is sent again for a day",
            ),
        }
    }
}
