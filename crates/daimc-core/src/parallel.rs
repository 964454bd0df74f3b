//! Work on blocks in parallel with results that do not depend on the number of threads.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

struct Queue<I, A, E> {
    items: I,
    /// The number of the next item to take.
    taken: usize,
    /// The number of the next result to merge.
    merged: usize,
    merging: bool,
    done: BTreeMap<usize, A>,
    free: Vec<A>,
    error: Option<(usize, E)>,
    /// A worker has panicked: its result will never come.
    abandoned: bool,
}

/// Wakes the other workers when one of them panics.
struct Abandon<'a, I, A, E>(&'a Mutex<Queue<I, A, E>>, &'a Condvar);

impl<I, A, E> Drop for Abandon<'_, I, A, E> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(self.0).abandoned = true;
            self.1.notify_all();
        }
    }
}

/// Runs `work` on each item, in parallel, each time with its own accumulator, and passes the accumulators to `merge` in
/// the order of the items. Accumulators are created by `new` and reused, so that there are at most about two per
/// thread; `work` or `merge` must reset them.
///
/// # Errors
/// The error of the first item that failed; later items may not have been processed.
pub fn ordered<I, A, E>(
    items: I,
    new: impl Fn() -> A + Sync,
    work: impl Fn(I::Item, &mut A) -> Result<(), E> + Sync,
    merge: impl FnMut(&mut A) + Send,
) -> Result<(), E>
where
    I: Iterator + Send,
    A: Send,
    E: Send,
{
    let threads = rayon::current_num_threads();
    let state = Mutex::new(Queue {
        items,
        taken: 0,
        merged: 0,
        merging: false,
        done: BTreeMap::new(),
        free: Vec::new(),
        error: None,
        abandoned: false,
    });
    let merge = Mutex::new(merge);
    let progress = Condvar::new();
    let worker = || {
        let _guard = Abandon(&state, &progress);
        let mut held = lock(&state);
        loop {
            // A worker that is far ahead waits. The missing result belongs to an item that another worker is
            // processing, so it will come.
            while held.done.len() > threads && held.error.is_none() && !held.abandoned {
                held = progress.wait(held).unwrap_or_else(PoisonError::into_inner);
            }
            if held.error.is_some() || held.abandoned {
                return;
            }
            let Some(item) = held.items.next() else { return };
            let number = held.taken;
            held.taken += 1;
            let free = held.free.pop();
            drop(held);
            let mut accumulator = free.unwrap_or_else(&new);
            let outcome = work(item, &mut accumulator);
            held = lock(&state);
            match outcome {
                Ok(()) => {
                    held.done.insert(number, accumulator);
                }
                Err(error) => {
                    if held.error.as_ref().is_none_or(|(first, _)| number < *first) {
                        held.error = Some((number, error));
                    }
                    progress.notify_all();
                    return;
                }
            }
            while !held.merging {
                let next = held.merged;
                let Some(mut ready) = held.done.remove(&next) else { break };
                held.merging = true;
                drop(held);
                (lock(&merge))(&mut ready);
                held = lock(&state);
                held.merging = false;
                held.merged += 1;
                held.free.push(ready);
                progress.notify_all();
            }
        }
    };
    if threads == 1 {
        worker();
    } else {
        rayon::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|_| worker());
            }
        });
    }
    let state = state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.error.map_or(Ok(()), |(_, error)| Err(error))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    #[test]
    fn results_are_merged_in_the_order_of_the_items() {
        for threads in [1, 2, 7] {
            let mut seen = Vec::new();
            pool(threads).install(|| {
                ordered(
                    0..200_usize,
                    || 0,
                    |item, out| {
                        // Earlier items take longer.
                        std::thread::sleep(std::time::Duration::from_micros(200 - item as u64));
                        *out = item;
                        Ok::<(), ()>(())
                    },
                    |out| seen.push(*out),
                )
                .unwrap();
            });
            assert_eq!(seen, (0..200).collect::<Vec<_>>());
        }
    }

    #[test]
    fn accumulators_are_few_and_used_again() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let made = AtomicUsize::new(0);
        pool(3).install(|| {
            let work = |_, _: &mut ()| Ok::<(), ()>(());
            ordered(
                0..10_000,
                || {
                    made.fetch_add(1, Ordering::Relaxed);
                },
                work,
                |_| (),
            )
            .unwrap();
        });
        assert!(made.into_inner() <= 3 + 3 + 2);
    }

    #[test]
    fn a_panic_in_one_worker_ends_them_all() {
        let work = |item, _: &mut ()| {
            assert!(item != 5, "five");
            Ok::<(), ()>(())
        };
        let run = || pool(3).install(|| ordered(0..10_000, || (), work, |_| ()));
        assert!(std::panic::catch_unwind(run).is_err());
    }

    #[test]
    fn the_first_error_is_returned() {
        for threads in [1, 4] {
            let work = |item, _: &mut ()| if item % 10 == 9 { Err(item) } else { Ok(()) };
            let outcome = pool(threads).install(|| ordered(0..100, || (), work, |_| ()));
            assert_eq!(outcome, Err(9));
        }
    }
}
