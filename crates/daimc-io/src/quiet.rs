//! Catches panics of dependencies without printing them.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// Whether a panic of this thread will be caught.
    static CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Calls a function that may panic; `None` if it did. The values that it worked on must not be used again.
///
/// The panic hook (by default it prints the panic) still receives all other panics, also those of other threads at the same time.
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = take_hook();
        set_hook(Box::new(move |panic| {
            if !CAUGHT.get() {
                previous(panic);
            }
        }));
    });
    let outer = CAUGHT.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    CAUGHT.set(outer);
    result.ok()
}
