//! Loops that the threads of the pool share.
//!
//! A task reaches what is below as a trait object. So rayon's machinery, which is many times as long as most loops, is compiled once, and what
//! gathers results once for each type of item and result, and not once for each loop. A call is worth thousands of operations, beside which calling
//! through a pointer takes no time. Must not know what is done.
//!
//! ```text
//! chunks_mut(numbers of 100,000, 32768, fill)   ->   fill(0, [..32768]), fill(1, ..), fill(2, ..), fill(3, [..1696]), on any threads
//! ```

use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Calls `task` with ranges that have all numbers below `count`, of at least `least` numbers each but for what is left.
pub(crate) fn ranges(count: usize, least: usize, task: &(dyn Fn(Range<usize>) + Sync)) {
    (0..count)
        .into_par_iter()
        .with_min_len(least)
        .fold(
            || 0..0,
            |range, number| match range.is_empty() {
                true => number..number + 1,
                false => range.start..number + 1,
            },
        )
        .for_each(task);
}

/// Calls `task` with each number below `count`.
pub(crate) fn each(count: usize, task: impl Fn(usize) + Sync) {
    ranges(count, 1, &|range| range.for_each(&task));
}

/// Calls `task` with each number below `count`, and with what `scratch` made for the numbers that follow each other on a thread.
pub(crate) fn each_with<S>(
    count: usize,
    least: usize,
    scratch: impl Fn() -> S + Sync,
    task: impl Fn(&mut S, usize) + Sync,
) {
    ranges(count, least, &|range| {
        let mut scratch = scratch();
        range.for_each(|number| task(&mut scratch, number));
    });
}

/// Returns whether `task` is true of all numbers below `count`; it may not be called with all of them if not.
pub(crate) fn all(count: usize, task: impl Fn(usize) -> bool + Sync) -> bool {
    let sound = AtomicBool::new(true);
    each(count, |number| {
        if sound.load(Ordering::Relaxed) && !task(number) {
            sound.store(false, Ordering::Relaxed);
        }
    });
    sound.into_inner()
}

/// The results of `task` for all numbers below `count`, in their order.
pub(crate) fn map<R: Send>(count: usize, task: impl Fn(usize) -> R + Sync) -> Vec<R> {
    map_with(vec![(); count], || (), |(), number, ()| task(number))
}

/// Calls `task` with the number of each item, and the item.
pub(crate) fn items<T: Send>(items: Vec<T>, task: impl Fn(usize, T) + Sync) {
    map_with(items, || (), |(), number, item| task(number, item));
}

/// The results of `task` for each item, with its number, in their order. What `scratch` makes is for the items that follow each other on a thread.
pub(crate) fn map_with<S, T: Send, R: Send>(
    items: Vec<T>,
    scratch: impl Fn() -> S + Sync,
    task: impl Fn(&mut S, usize, T) -> R + Sync,
) -> Vec<R> {
    mapped(items, &scratch, &task)
}

fn mapped<S, T: Send, R: Send>(
    items: Vec<T>,
    scratch: &(dyn Fn() -> S + Sync),
    task: &(dyn Fn(&mut S, usize, T) -> R + Sync),
) -> Vec<R> {
    let places = items.into_iter().map(|item| (Some(item), None));
    let places: Vec<Place<T, R>> = places.map(Mutex::new).collect();
    each_with(places.len(), 1, scratch, |scratch, number| {
        let item = open(&places[number]).0.take();
        let result = task(scratch, number, item.expect("each number comes up once"));
        open(&places[number]).1 = Some(result);
    });
    let results = places.into_iter().map(|place| {
        let (_, result) = place.into_inner().unwrap_or_else(PoisonError::into_inner);
        result.expect("each number came up")
    });
    results.collect()
}

/// An item, then its result.
type Place<T, R> = Mutex<(Option<T>, Option<R>)>;

fn open<P>(place: &Mutex<P>) -> MutexGuard<'_, P> {
    place.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `task` with the number of each part of `size` elements (the last one may have fewer), and the part.
pub(crate) fn chunks_mut<T: Send>(
    elements: &mut [T],
    size: usize,
    task: impl Fn(usize, &mut [T]) + Sync,
) {
    items(elements.chunks_mut(size).collect(), task);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_come_up_once_and_in_their_places() {
        for count in [0, 1, 7, 1000] {
            let found = Mutex::new(vec![0; count]);
            ranges(count, 3, &|range| {
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                range.for_each(|number| found[number] += 1);
            });
            assert_eq!(
                found.into_inner().ok(),
                Some(vec![1; count]),
                "{count} numbers"
            );
            let squares: Vec<usize> = (0..count).map(|number| number * number).collect();
            assert_eq!(map(count, |number| number * number), squares);
            let mut numbers = vec![0; count];
            chunks_mut(&mut numbers, 16, |part, to| {
                (to.iter_mut().zip(part * 16..)).for_each(|(to, at)| *to = at * at);
            });
            assert_eq!(numbers, squares);
            assert!(all(count, |number| squares[number] == number * number));
        }
        assert!(!all(1000, |number| number != 999));
    }

    #[test]
    fn scratch_is_of_one_thread_at_a_time() {
        let items: Vec<String> = (0..100).map(|n: i32| n.to_string()).collect();
        let longer = map_with(items, Vec::new, |seen, number, item| {
            seen.push(number);
            // Numbers follow each other within a scratch.
            let first = seen[0];
            assert_eq!(*seen, (first..=number).collect::<Vec<usize>>());
            item.len()
        });
        assert_eq!(longer.iter().sum::<usize>(), 190);
    }
}
