//! Panics of the libraries that read strangers' bytes are caught, and kept out of the log: they are no fault of ours, and
//! their text is no business of the screen.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`; `None` when it panicked. Whatever it was changing must not be used afterwards.
pub(crate) fn catch<T>(what: &'static str, work: impl FnOnce() -> T) -> Option<T> {
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
    if result.is_err() {
        tracing::debug!(what, "a library panicked over a picture");
    }
    result.ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_panic_becomes_nothing() {
        assert_eq!(super::catch("test", || 7), Some(7));
        assert_eq!(super::catch("test", || if true { panic!("as planned") } else { 7 }), None);
    }
}
