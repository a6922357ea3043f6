//! Boxes of arrays whose positions along a dimension are lists: copied line by line.
//!
//! Must not know neurons, sites, or why a box is copied.
//!
//! ```text
//! to[1 4, 0 2] = from[:, 3 5]   =>   lines at rows 1 and 4, of two elements each
//! ```

use ein_array::{Array, Data};
use std::sync::Arc;

/// Positions along each dimension, ascending; `None`: all of them.
pub(super) type Selection = Vec<Option<Arc<[u32]>>>;

/// Copies a box of that shape between positions of two arrays of one type.
pub(super) fn copy(to: (&mut Array, &Selection), from: (&Array, &Selection), shape: &[usize]) {
    let ((to, to_at), (from, from_at)) = (to, from);
    let lines = Lines::of((&to.strides(), to_at), (&from.strides(), from_at), shape);
    match (to.data_mut(), from.data()) {
        (Data::F16(to), Data::F16(from)) => lines.copy(to, from),
        (Data::BF16(to), Data::BF16(from)) => lines.copy(to, from),
        (Data::F32(to), Data::F32(from)) => lines.copy(to, from),
        (Data::F64(to), Data::F64(from)) => lines.copy(to, from),
        (Data::I32(to), Data::I32(from)) => lines.copy(to, from),
        (Data::I64(to), Data::I64(from)) => lines.copy(to, from),
        (Data::U8(to), Data::U8(from)) | (Data::Bool(to), Data::Bool(from)) => lines.copy(to, from),
        (Data::U16(to), Data::U16(from)) => lines.copy(to, from),
        (Data::U32(to), Data::U32(from)) => lines.copy(to, from),
        (Data::U64(to), Data::U64(from)) => lines.copy(to, from),
        (Data::I8(to), Data::I8(from)) => lines.copy(to, from),
        (Data::I16(to), Data::I16(from)) => lines.copy(to, from),
        // A parcel has the type of its tensor.
        _ => {}
    }
}

/// Where the lines of a box begin in two arrays, and what a line is.
struct Lines<'a> {
    /// By dimension but the last: offsets in both.
    outer: Vec<(Vec<usize>, Vec<usize>)>,
    /// Positions along the last dimension in both, of runs of so many elements; `None`: one after the other.
    last: [Option<&'a [u32]>; 2],
    length: usize,
    run: usize,
}

impl<'a> Lines<'a> {
    fn of(
        (to, to_at): (&[usize], &'a Selection),
        (from, from_at): (&[usize], &'a Selection),
        shape: &[usize],
    ) -> Lines<'a> {
        // What is whole in both at the end makes one run.
        let whole = |dim: usize| to_at[dim].is_none() && from_at[dim].is_none();
        let (mut inner, mut run) = (shape.len(), 1);
        while inner > 0 && whole(inner - 1) {
            inner -= 1;
            run *= shape[inner];
        }
        let offsets = |at: &Selection, strides: &[usize], dim: usize| -> Vec<usize> {
            match &at[dim] {
                Some(list) => list.iter().map(|p| *p as usize * strides[dim]).collect(),
                None => (0..shape[dim]).map(|p| p * strides[dim]).collect(),
            }
        };
        let outer = (0..inner.saturating_sub(1))
            .map(|dim| (offsets(to_at, to, dim), offsets(from_at, from, dim)));
        let outer = outer.collect();
        match inner.checked_sub(1) {
            None => Lines {
                outer,
                last: [None, None],
                length: 1,
                run,
            },
            Some(last) => Lines {
                outer,
                last: [to_at[last].as_deref(), from_at[last].as_deref()],
                length: shape[last],
                run,
            },
        }
    }

    fn copy<T: Copy>(&self, to: &mut [T], from: &[T]) {
        let mut at = vec![0; self.outer.len()];
        if self.outer.iter().any(|(to, _)| to.is_empty()) {
            return;
        }
        loop {
            let (mut t, mut f) = (0, 0);
            for ((to, from), at) in self.outer.iter().zip(&at) {
                t += to[*at];
                f += from[*at];
            }
            self.line(&mut to[t..], &from[f..]);
            let mut dim = at.len();
            loop {
                if dim == 0 {
                    return;
                }
                dim -= 1;
                at[dim] += 1;
                if at[dim] < self.outer[dim].0.len() {
                    break;
                }
                at[dim] = 0;
            }
        }
    }

    fn line<T: Copy>(&self, to: &mut [T], from: &[T]) {
        let (length, run) = (self.length, self.run);
        match self.last {
            [None, None] => to[..length * run].copy_from_slice(&from[..length * run]),
            [None, Some(list)] if run == 1 => {
                let pairs = to[..length].iter_mut().zip(list);
                pairs.for_each(|(to, at)| *to = from[*at as usize]);
            }
            [Some(list), None] if run == 1 => {
                let pairs = list.iter().zip(&from[..length]);
                pairs.for_each(|(at, from)| to[*at as usize] = *from);
            }
            [Some(to_list), Some(from_list)] if run == 1 => {
                let pairs = to_list.iter().zip(from_list);
                pairs.for_each(|(t, f)| to[*t as usize] = from[*f as usize]);
            }
            [to_list, from_list] => {
                for at in 0..length {
                    let place = |list: Option<&[u32]>| list.map_or(at, |l| l[at] as usize) * run;
                    let (t, f) = (place(to_list), place(from_list));
                    to[t..t + run].copy_from_slice(&from[f..f + run]);
                }
            }
        }
    }
}
