//! `guidepost-server serve [--demo]`.

use super::say;
use anyhow::Context;
use guidepost_server::{Config, Demo};
use tokio::signal::unix::{SignalKind, signal};

/// Serves until SIGTERM or Ctrl-C, then finishes what is in flight.
pub(super) async fn serve(config: Config, demo: bool) -> anyhow::Result<()> {
    let config = if demo { config.into_demo()? } else { config };
    let (channels, log_codes) = (config.sms.channels.len(), config.sms.log_codes);
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for SIGTERM")?;
    let mut running = guidepost_server::start(config).await?;
    say(format_args!("listening on http://{}", running.address()))?;
    if let Some(demo) = running.demo() {
        tell(demo, channels, log_codes)?;
    }
    tokio::select! {
        ended = running.ended() => return ended,
        _ = terminate.recv() => {}
        interrupted = tokio::signal::ctrl_c() => interrupted?,
    }
    running.stop().await
}

/// Where to look in the demo. These links and the password are good for made-up bookings on this machine alone.
fn tell(demo: &Demo, channels: usize, log_codes: bool) -> anyhow::Result<()> {
    for link in &demo.visitors {
        if let Some(order_no) = &link.order_no {
            say(format_args!("visitor page of {}, order {order_no}: {}", link.name, link.url.expose()))?;
        }
    }
    for link in &demo.guides {
        say(format_args!("sign-in link of guide {}, to be pasted in a kiosk: {}", link.name, link.url.expose()))?;
    }
    say(codes_of_a_demo(channels, log_codes))?;
    say(format_args!("admin: user name {}, password {}", demo.admin, demo.admin_password.expose()))
}

/// Who carries SMS codes, and how one gets at them.
fn codes_of_a_demo(channels: usize, log_codes: bool) -> String {
    match (channels, log_codes) {
        (1.., _) => "SMS codes: by the channels of the settings".to_owned(),
        (0, true) => {
            "SMS codes: they stand whole in the log (standard error); sign in with any number on the visitor page"
                .to_owned()
        }
        (0, false) => {
            "SMS codes: nobody gets them; start with GUIDEPOST_SMS__LOG_CODES=true and they stand in the log".to_owned()
        }
    }
}
