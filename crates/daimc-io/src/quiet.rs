//! Panics of other people's code: caught, and not printed.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread is about to be caught.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Calls something that may panic; `None` if it did. What it was working on must not be used again.
///
/// Whoever is told of panics (by default they are printed) is told of all others as before, those of other threads at the
/// same time included.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let told = take_hook();
        set_hook(Box::new(move |panic| {
            if !CAUGHT.get() {
                told(panic);
            }
        }));
    });
    let outer = CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    CAUGHT.set(outer);
    result.ok()
}
