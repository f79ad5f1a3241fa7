//! Panics of the libraries that read strangers' files are caught, and their text is kept out of the log: it may hold what
//! stands in the file, and a backtrace looks like a fault of ours.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; `None` when it panicked. Whatever it was changing must not be used afterwards.
pub(super) fn catch<T>(work: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                before(panic);
            }
        }));
    });
    let was_quiet = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(was_quiet);
    result.ok()
}
