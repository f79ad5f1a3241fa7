//! `guidepost-server serve [--demo]`.

use super::say;
use anyhow::Context;
use guidepost_server::{Config, Demo};
use tokio::signal::unix::{SignalKind, signal};

/// Serves until SIGTERM or Ctrl-C, then finishes what is in flight.
pub(super) async fn serve(config: Config, demo: bool) -> anyhow::Result<()> {
    let config = if demo { config.into_demo()? } else { config };
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut running = guidepost_server::start(config).await?;
    say(format_args!("listening on http://{}", running.address()))?;
    if let Some(demo) = running.demo() {
        tell(demo)?;
    }
    tokio::select! {
        ended = running.ended() => return ended,
        _ = terminate.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    running.stop().await
}

/// Where to look in the demo. These links and the password are good for made-up bookings on this machine alone.
fn tell(demo: &Demo) -> anyhow::Result<()> {
    for link in &demo.visitors {
        if let Some(order_no) = &link.order_no {
            say(format_args!("visitor page of {}, order {order_no}: {}", link.name, link.url.expose()))?;
        }
    }
    for link in &demo.guides {
        say(format_args!("sign-in link of guide {}, to be pasted in a kiosk: {}", link.name, link.url.expose()))?;
    }
    say(format_args!("admin: user name {}, password {}", demo.admin, demo.admin_password.expose()))
}
