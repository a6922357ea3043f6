//! Operations on lists by their definitions. Must not know kernels.
//!
//! ```text
//! find [1 4 7] 7   =>   2
//! ```

use ein_plan::{DType, Scalar};

/// The place of a number in a list, or -1.
pub fn find(list: &[Scalar], number: Scalar) -> Scalar {
    let place = list.iter().position(|x| *x == number);
    Scalar::Int(place.map_or(-1, |at| at as i64))
}

/// The sum over all pairs of elements of two listed rows with the same position, of so many there may be.
pub fn dot(dtype: DType, columns: &[Vec<Scalar>], positions: u64) -> Scalar {
    let whole = |x: &Scalar| match x {
        Scalar::Int(x) => *x,
        _ => 0,
    };
    let row = |first: usize, row: i64| {
        let ends = &columns[first];
        let end = |row: i64| {
            let end = usize::try_from(row).ok().and_then(|row| ends.get(row));
            end.map_or(0, whole) as usize
        };
        let (start, end) = (end(row - 1), end(row));
        let places = if start <= end { start..end } else { 0..0 };
        places.map(move |at| (columns[first + 1][at], columns[first + 2][at]))
    };
    let is_whole = !dtype.is_float();
    let rounds = dtype == DType::F32;
    let (mut float, mut integer) = (0.0, 0i64);
    for (position, x) in row(0, whole(&columns[6][0])) {
        if !(0..positions as i64).contains(&whole(&position)) {
            continue;
        }
        for (_, y) in row(3, whole(&columns[7][0])).filter(|(other, _)| *other == position) {
            let product = x.as_f64() * y.as_f64();
            float += if rounds {
                f64::from(product as f32)
            } else {
                product
            };
            integer = integer.wrapping_add(whole(&x).wrapping_mul(whole(&y)));
        }
    }
    match is_whole {
        true => Scalar::Int(integer),
        false => Scalar::Float(float),
    }
}
