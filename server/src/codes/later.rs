//! Steps back that a code store which hangs must make when it goes on: a place given back, a send taken back.

use super::{AttemptId, CodeStore, CodesResult, Place, WindowKey};
use std::sync::Arc;
use std::time::Duration;

/// How often a step is tried, a second apart: what it takes back ends by itself.
const TIMES: u32 = 60;

/// Makes a step once the store answers, and once more a moment later, for what was sent to the store while it hung may be
/// done only then. `false` where the store did not answer in all that time.
pub(crate) async fn until_done_twice<W: Future<Output = CodesResult<()>>>(step: impl Fn() -> W) -> bool {
    let mut again = 2;
    for _ in 0..TIMES {
        if step().await.is_ok() {
            again -= 1;
            if again == 0 {
                return true;
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    false
}

/// Takes a place in each of these windows, each with its limit and span, or in none. `Some`: which of them was full, and
/// for how long.
///
/// # Errors
/// Where the store does not answer.
pub(crate) async fn take_all<'a>(
    codes: &Arc<dyn CodeStore>,
    windows: impl Iterator<Item = (&'a WindowKey, u32, Duration)>,
    attempt: &AttemptId,
) -> CodesResult<Option<(usize, Duration)>> {
    let mut asked = Vec::new();
    for (n, (window, limit, span)) in windows.enumerate() {
        asked.push(window);
        let full = match codes.take(window, attempt, limit, span).await {
            Ok(Place::Taken) => continue,
            Ok(Place::Full(wait)) => Ok(Some((n, wait))),
            Err(error) => Err(error),
        };
        // A store that did not answer may have taken this one.
        for window in asked {
            give_back(codes, window, attempt).await;
        }
        return full;
    }
    Ok(None)
}

/// Gives a place back, or sees to it that it is given back later.
pub(crate) async fn give_back(codes: &Arc<dyn CodeStore>, window: &WindowKey, attempt: &AttemptId) {
    if codes.give_back(window, attempt).await.is_err() {
        give_back_later(codes, window, attempt);
    }
}

/// The same, without asking the store now. Shut-down does not wait for it.
pub(crate) fn give_back_later(codes: &Arc<dyn CodeStore>, window: &WindowKey, attempt: &AttemptId) {
    let (codes, window, attempt) = (codes.clone(), window.clone(), attempt.clone());
    tokio::spawn(async move {
        if !until_done_twice(|| codes.give_back(&window, &attempt)).await {
            tracing::warn!("a place could not be given back; it comes back by itself");
        }
    });
}
