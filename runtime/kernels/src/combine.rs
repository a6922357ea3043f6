//! Combines the carriers of two neighbouring pieces of a reduction, element by element.
//!
//! Must not know where the pieces come from.
//!
//! ```text
//! combine(Max, [1 5], [3 2])  ->  [3 5]
//! ```

use crate::carrier::{Carrier, Rule};
use crate::parallel;
use crate::segment::Segment;
use ein_array::{Array, Data};
use ein_plan::Reduction;

/// Elements of a task.
const TASK: usize = 1 << 15;

/// Adds the carriers `next` to `accumulator`. The columns are those of [`Reduction::carrier`], all arrays have
/// one shape, and the points of `accumulator` stand before those of `next` in key order.
pub fn combine(reduction: Reduction, accumulator: &mut [Array], next: &[Array]) {
    if reduction == Reduction::Sum && sum(accumulator, next) {
        return;
    }
    let Some(first) = next.first() else { return };
    let rule = Rule {
        reduction,
        value: first.dtype().compute(),
    };
    let count = first.data().len();
    let mut carriers = vec![Carrier::default(); count];
    parallel::chunks_mut(&mut carriers, TASK, |part, to| {
        for (carrier, at) in to.iter_mut().zip(part * TASK..) {
            *carrier = rule.load(accumulator, at);
            rule.merge(carrier, &rule.load(next, at));
        }
    });
    let mut columns: Vec<Segment<'_>> = accumulator
        .iter_mut()
        .map(|array| Segment::of(array.data_mut()))
        .collect();
    for (at, carrier) in carriers.iter().enumerate() {
        rule.store(carrier, &mut columns, at);
    }
}

/// Sums of the common types, without detour. Whether it was one.
fn sum(accumulator: &mut [Array], next: &[Array]) -> bool {
    fn add<T: Copy + Send + Sync>(to: &mut [T], from: &[T], f: impl Fn(T, T) -> T + Sync) {
        parallel::chunks_mut(to, TASK, |part, to| {
            for (to, from) in to.iter_mut().zip(&from[part * TASK..]) {
                *to = f(*to, *from);
            }
        });
    }
    let ([to], [from]) = (accumulator, next) else {
        return false;
    };
    match (to.data_mut(), from.data()) {
        (Data::F32(to), Data::F32(from)) => add(to, from, |x, y| x + y),
        (Data::F64(to), Data::F64(from)) => add(to, from, |x, y| x + y),
        (Data::I32(to), Data::I32(from)) => add(to, from, i32::wrapping_add),
        (Data::I64(to), Data::I64(from)) => add(to, from, i64::wrapping_add),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f32]) -> Array {
        Array::new(vec![values.len()], Data::F32(values.to_vec())).expect("a vector")
    }
    fn integers(values: &[i64]) -> Array {
        Array::new(vec![values.len()], Data::I64(values.to_vec())).expect("a vector")
    }

    #[test]
    fn sums_and_extremes() {
        let mut a = [floats(&[1.0, f32::NAN, 3.0])];
        combine(Reduction::Max, &mut a, &[floats(&[2.0, 5.0, f32::NAN])]);
        assert_eq!(a[0].data().get(0).as_f64(), 2.0);
        assert!(a[0].data().get(1).as_f64().is_nan() && a[0].data().get(2).as_f64().is_nan());
        let mut a = [integers(&[i64::MAX, 2])];
        combine(Reduction::Sum, &mut a, &[integers(&[1, 3])]);
        assert_eq!(a[0].data(), &Data::I64(vec![i64::MIN, 5]));
    }

    #[test]
    fn the_lowest_index_wins_and_nothing_loses() {
        let infinity = f32::NEG_INFINITY;
        let mut a = [
            floats(&[1.0, infinity, 4.0, f32::NAN, infinity]),
            integers(&[0, -1, 2, 1, 0]),
        ];
        let next = [
            floats(&[1.0, infinity, 5.0, f32::NAN, infinity]),
            integers(&[7, 8, 9, 5, -1]),
        ];
        combine(Reduction::ArgMax, &mut a, &next);
        assert_eq!(a[1].data(), &Data::I64(vec![0, 8, 9, 1, 0]));
    }

    #[test]
    fn logsumexp_and_norm_keep_their_ends() {
        let infinity = f32::INFINITY;
        let mut a = [
            floats(&[-infinity, -infinity, infinity, 0.0]),
            floats(&[0.0, 0.0, 1.0, 1.0]),
        ];
        let next = [
            floats(&[-infinity, 2.0, infinity, 0.0]),
            floats(&[0.0, 1.0, 1.0, 1.0]),
        ];
        combine(Reduction::LogSumExp, &mut a, &next);
        assert_eq!(a[0].data(), &Data::F32(vec![-infinity, 2.0, infinity, 0.0]));
        assert_eq!(a[1].data(), &Data::F32(vec![0.0, 1.0, 1.0, 2.0]));
        let mut a = [floats(&[0.0, 3.0, infinity]), floats(&[1.0, 1.0, 1.0])];
        let next = [floats(&[0.0, 4.0, 1.0]), floats(&[1.0, 1.0, 1.0])];
        combine(Reduction::Norm, &mut a, &next);
        assert_eq!(a[0].data(), &Data::F32(vec![0.0, 4.0, infinity]));
        assert_eq!(a[1].data(), &Data::F32(vec![1.0, 1.5625, 1.0]));
    }
}
