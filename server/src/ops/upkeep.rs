//! What the server does by itself, beside answering: a knock at the code store, receipts of SMS, a look at how they are used,
//! the daily comparison with the providers, and the deletion of what is old. The loops are here; what each does in a turn
//! stands with its subject.

use super::purge;
use crate::app::App;
use crate::sms::{receipts, reconcile, watch};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How often each is done.
const CODE_STORE: Duration = Duration::from_secs(2);
const RECEIPTS: Duration = Duration::from_secs(1);
const WATCH: Duration = Duration::from_secs(60);
const RECONCILE: Duration = Duration::from_secs(600);
const PURGE: Duration = Duration::from_secs(3600);

/// The loops of a running server; they stop when this is dropped.
#[derive(Debug)]
pub(crate) struct Upkeep {
    stop: DropGuard,
    loops: Vec<JoinHandle<()>>,
}

/// Starts them.
pub(crate) fn start(app: &App) -> Upkeep {
    let stop = CancellationToken::new();
    let loops = vec![
        tokio::spawn(every(CODE_STORE, stop.clone(), app.clone(), async |app| knock(&app).await)),
        tokio::spawn(every(RECEIPTS, stop.clone(), app.clone(), async |app| receipts::turn(&app).await)),
        tokio::spawn(every(WATCH, stop.clone(), app.clone(), async |app| watch::turn(&app).await)),
        tokio::spawn(every(RECONCILE, stop.clone(), app.clone(), async |app| reconcile::turn(&app).await)),
        tokio::spawn(every(PURGE, stop.clone(), app.clone(), async |app| purge::turn(&app).await)),
    ];
    Upkeep { stop: stop.drop_guard(), loops }
}

impl Upkeep {
    /// Ends them; what was in the middle of something is cut off, and done again later.
    pub(crate) async fn stop(self) {
        drop(self.stop);
        for one in self.loops {
            let _ = one.await;
        }
    }
}

async fn every<F: Future<Output = ()>>(period: Duration, stop: CancellationToken, app: App, turn: impl Fn(App) -> F) {
    let mut tick = tokio::time::interval(period);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let turns = async {
        loop {
            tick.tick().await;
            turn(app.clone()).await;
        }
    };
    stop.run_until_cancelled(turns).await;
}

/// One turn of each, by the app's clock, whatever the loops do meanwhile.
pub async fn turn(app: &App) {
    knock(app).await;
    receipts::turn(app).await;
    watch::turn(app).await;
    reconcile::turn(app).await;
    purge::turn(app).await;
}

/// Uses the code store: a connection that has died meanwhile is noticed here and made anew, and not by the next visitor.
async fn knock(app: &App) {
    if let Err(error) = app.codes.ping().await {
        tracing::debug!(%error, "the code store does not answer");
    }
}
