//! Operations on lists by their definitions. Must not know kernels.
//!
//! ```text
//! find [1 4 7] 7   =>   2
//! ```

use ein_plan::{DType, Function, Kernel, Library, Scalar};
use std::collections::{BTreeMap, BTreeSet};

/// Returns whether an operation is of this module.
pub fn is_of_lists(operation: Function) -> bool {
    matches!(
        operation,
        Function::Find
            | Function::ListedDot
            | Function::ListedProduct
            | Function::ListedPlaces
            | Function::ListedSums
    )
}

/// The results of a call at a point, with these columns; nothing for other operations.
pub fn call(
    (kernel, library): (&Kernel, &Library),
    point: &[u64],
    columns: &[Vec<Scalar>],
) -> Option<Vec<Scalar>> {
    let dtype = kernel.output[0];
    let positions = library.positions.unwrap_or(0);
    let own = library.own.first();
    let own = own.map_or(1, |own| kernel.indices[own.0 as usize].extent);
    Some(match library.operation {
        Function::Find => vec![find(&columns[0], columns[1][0])],
        Function::ListedDot => vec![dot(dtype, columns, positions)],
        Function::ListedPlaces => places(columns, positions, own),
        Function::ListedSums => sums(dtype, columns, positions),
        Function::ListedProduct => {
            let number = point[library.batch.first()?.0 as usize];
            row(dtype, columns, number, own)
        }
        _ => return None,
    })
}

/// The place of a number in a list, or -1.
fn find(list: &[Scalar], number: Scalar) -> Scalar {
    let place = list.iter().position(|x| *x == number);
    Scalar::Int(place.map_or(-1, |at| at as i64))
}

/// The sum over all pairs of elements of two listed rows with the same position, of so many there may be.
fn dot(dtype: DType, columns: &[Vec<Scalar>], positions: u64) -> Scalar {
    let mut sum = Sum::default();
    for at in places_of_row(&columns[0], whole(columns[6][0])) {
        let position = whole(columns[1][at]);
        if !(0..positions as i64).contains(&position) {
            continue;
        }
        for other in places_of_row(&columns[3], whole(columns[7][0])) {
            if whole(columns[4][other]) == position {
                sum.add(dtype, columns[2][at], columns[5][other]);
            }
        }
    }
    sum.of(dtype)
}

/// A row of the product of two matrices, with so many columns.
fn row(dtype: DType, columns: &[Vec<Scalar>], row: u64, width: u64) -> Vec<Scalar> {
    let mut sums = vec![Sum::default(); width as usize];
    for (at, other) in terms([&columns[0], &columns[1], &columns[3]], row as i64) {
        if let Ok(position) = usize::try_from(whole(columns[4][other]))
            && let Some(sum) = sums.get_mut(position)
        {
            sum.add(dtype, columns[2][at], columns[5][other]);
        }
    }
    sums.iter().map(|sum| sum.of(dtype)).collect()
}

/// The places of the product's elements, `width` a row, and behind them, up to so many, the last place that there is.
fn places(columns: &[Vec<Scalar>], width: u64, count: u64) -> Vec<Scalar> {
    let (rows, width) = (columns[0].len() as i64, width as i64);
    let mut found = BTreeSet::new();
    for row in 0..rows {
        for (_, other) in terms([&columns[0], &columns[1], &columns[2]], row) {
            let position = whole(columns[3][other]);
            if (0..width).contains(&position) {
                found.insert(row * width + position);
            }
        }
    }
    let behind = std::iter::repeat(rows * width - 1);
    let all = found.into_iter().chain(behind).take(count as usize);
    all.map(Scalar::Int).collect()
}

/// The elements of the product at places. A place that stands there again has the value 0.
fn sums(dtype: DType, columns: &[Vec<Scalar>], width: u64) -> Vec<Scalar> {
    let mut sums: BTreeMap<i64, Sum> = BTreeMap::new();
    for row in 0..columns[0].len() as i64 {
        for (at, other) in terms([&columns[0], &columns[1], &columns[3]], row) {
            let position = whole(columns[4][other]);
            if (0..width as i64).contains(&position) {
                let sum = sums.entry(row * width as i64 + position).or_default();
                sum.add(dtype, columns[2][at], columns[5][other]);
            }
        }
    }
    let sum = |place: &Scalar| sums.remove(&whole(*place)).unwrap_or_default().of(dtype);
    columns[6].iter().map(sum).collect()
}

fn whole(x: Scalar) -> i64 {
    match x {
        Scalar::Int(x) => x,
        _ => 0,
    }
}

/// Where a row lies in a list whose rows end there.
fn places_of_row(ends: &[Scalar], row: i64) -> std::ops::Range<usize> {
    let end = |row: i64| {
        let end = usize::try_from(row).ok().and_then(|row| ends.get(row));
        end.map_or(0, |end| whole(*end)) as usize
    };
    let (start, end) = (end(row - 1), end(row));
    if start <= end { start..end } else { 0..0 }
}

/// The terms of a row of a product, from the ends and positions of one matrix and the ends of the other: where both elements stand.
fn terms([ends, at, others]: [&[Scalar]; 3], row: i64) -> Vec<(usize, usize)> {
    let meets = |one: usize| places_of_row(others, whole(at[one])).map(move |other| (one, other));
    places_of_row(ends, row).flat_map(meets).collect()
}

/// A sum of products.
#[derive(Clone, Default)]
struct Sum {
    float: f64,
    integer: i64,
}

impl Sum {
    fn add(&mut self, dtype: DType, x: Scalar, y: Scalar) {
        let product = x.as_f64() * y.as_f64();
        self.float += match dtype {
            DType::F32 => f64::from(product as f32),
            _ => product,
        };
        let product = whole(x).wrapping_mul(whole(y));
        self.integer = self.integer.wrapping_add(product);
    }

    fn of(&self, dtype: DType) -> Scalar {
        match dtype.is_float() {
            true => Scalar::Float(self.float),
            false => Scalar::Int(self.integer),
        }
    }
}
