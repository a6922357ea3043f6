//! The lines along the index that is scanned, and the order in which a scan goes through them.
//!
//! Output points and elements have numbers in the order of the scan: from the beginning of a line for prefixes, from its end for suffixes. Each
//! output point takes in one element more than the one before it, except where there is none yet or no further one. Must not know what is reduced.
//!
//! ```text
//! sum[m <= n]   4 elements, 4 output points   ->   none 0, before 0, each 4
//! sum[m < n]    4 elements, 6 output points   ->   none 1, before 0, each 4, then 1 that takes in no more
//! ```

use ein_plan::schedule::Scan;

/// Lines of elements, and lines of output points.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Lines that are apart.
    pub(crate) outer: usize,
    /// Lines that lie side by side.
    pub(crate) inner: usize,
    /// Elements of a line that some output point takes in.
    pub(crate) used: usize,
    /// Output points of a line.
    pub(crate) outputs: usize,
    /// The first output points, which take in nothing.
    pub(crate) none: usize,
    /// Elements that the next output point takes in, but for its last one.
    pub(crate) before: usize,
    /// Output points from there on that take in one element more each. Those behind them take in no more.
    pub(crate) each: usize,
    suffix: bool,
}

impl Lines {
    /// The lines of a scan of `length` elements from number `start` on for `outputs` points from number `first` on, and the number of the
    /// lowest element that is used.
    pub(crate) fn new(
        scan: &Scan,
        (start, length): (i64, i64),
        (first, outputs): (i64, i64),
        (outer, inner): (usize, usize),
    ) -> (Lines, i64) {
        // What the first output point takes in, as if lines had no ends.
        let beyond = match scan.suffix {
            true => (start + length) - (first + outputs - 1),
            false => first - start + 1,
        };
        let taken = beyond - i64::from(!scan.inclusive);
        let used = (taken + outputs - 1).clamp(0, length);
        let none = (1 - taken).clamp(0, outputs);
        let before = (taken - 1).clamp(0, used);
        let each = (outputs - none).min(used - before);
        let lines = Lines {
            outer,
            inner,
            used: used as usize,
            outputs: outputs as usize,
            none: none as usize,
            before: before as usize,
            each: each as usize,
            suffix: scan.suffix,
        };
        let lowest = if scan.suffix {
            start + length - used
        } else {
            start
        };
        (lines, lowest)
    }

    /// True if a scan goes through lines from their ends.
    pub(crate) fn backward(&self) -> bool {
        self.suffix
    }

    /// The place in a line of the lowest of `count` elements from number `element` on.
    pub(crate) fn element(&self, element: usize, count: usize) -> usize {
        lowest(self.suffix, self.used, element, count)
    }

    /// The place in a line of the lowest of `count` output points from number `output` on.
    pub(crate) fn output(&self, output: usize, count: usize) -> usize {
        lowest(self.suffix, self.outputs, output, count)
    }

    /// Goes through lines of elements side by side, and stores what each output point comes to.
    pub(crate) fn walk<T: Copy>(
        &self,
        elements: &[T],
        start: T,
        next: impl Fn(T, T) -> T,
        mut store: impl FnMut(usize, T),
    ) {
        for outer in 0..self.outer {
            // All lines that lie side by side at once, so that memory is read in its order.
            let mut totals = vec![start; self.inner];
            let take = |element: usize, totals: &mut [T]| {
                let place = outer * self.used + self.element(element, 1);
                let row = &elements[place * self.inner..][..self.inner];
                for (total, x) in totals.iter_mut().zip(row) {
                    *total = next(*total, *x);
                }
            };
            (0..self.before).for_each(|element| take(element, &mut totals));
            for output in 0..self.outputs {
                let number = output.checked_sub(self.none);
                let totals = match number {
                    Some(number) if number < self.each => {
                        take(self.before + number, &mut totals);
                        &totals
                    }
                    Some(_) => &totals,
                    None => &vec![start; self.inner],
                };
                let place = outer * self.outputs + self.output(output, 1);
                for (inner, total) in totals.iter().enumerate() {
                    store(place * self.inner + inner, *total);
                }
            }
        }
    }
}

fn lowest(suffix: bool, all: usize, number: usize, count: usize) -> usize {
    match suffix {
        true => all - number - count,
        false => number,
    }
}
