//! The mean of an array over groups of sites: every site sums a piece, then all gather the pieces.
//!
//! Must not know what is averaged.
//!
//! ```text
//! 2 sites, [1 2 3] and [3 4 5]   ->   site 0 sums 4 6, site 1 sums 8; both have [2 3 4]
//! ```

use crate::error::RunError;
use ein_array::{Array, Data};
use ein_comm::Communicator;
use ein_device::{Buffer, BufferType};
use ein_plan::relation::piece;
use half::{bf16, f16};
use std::sync::Arc;

/// The mean over this site's group; summed in the order of the sites, so that all get the same bits. All sites call it.
pub(super) fn mean(
    array: &Array,
    group: &[u32],
    comm: &dyn Communicator,
) -> Result<Array, RunError> {
    let (length, dtype) = (array.data().len() as u64, array.dtype());
    let count = group.len() as u32;
    let bounds = |number: usize| {
        let (start, length) = piece(length, count, number as u32);
        (start as usize, length as usize)
    };
    let cut = |data: &Array, (start, length): (usize, usize)| {
        let mut part = Array::zeros(dtype, &[length]);
        let size = dtype.size();
        let bytes = &data.data().bytes()[start * size..(start + length) * size];
        part.data_mut().bytes_mut().copy_from_slice(bytes);
        Buffer::from(part)
    };
    let me = group.iter().position(|site| *site == comm.site());
    let me = me.ok_or_else(|| RunError::internal("a site is of no group"))?;
    let none = || vec![vec![]; comm.sites() as usize];
    let kind = |number: usize| BufferType::dense(dtype, vec![bounds(number).1]);
    let (mut outgoing, mut incoming) = (none(), vec![vec![]; comm.sites() as usize]);
    for (number, site) in group.iter().enumerate() {
        outgoing[*site as usize] = vec![cut(array, bounds(number))];
        incoming[*site as usize] = vec![kind(me)];
    }
    let pieces = comm.exchange(outgoing, &incoming)?;
    let pieces = pieces.into_iter().flatten();
    let pieces: Vec<Arc<Array>> = pieces.map(|piece| piece.to_host()).collect();
    let own = Buffer::from(of(&pieces));
    let (mut outgoing, mut incoming) = (none(), vec![vec![]; comm.sites() as usize]);
    for (number, site) in group.iter().enumerate() {
        outgoing[*site as usize] = vec![own.clone()];
        incoming[*site as usize] = vec![kind(number)];
    }
    let pieces = comm.exchange(outgoing, &incoming)?;
    let mut whole = Array::zeros(dtype, array.shape());
    let mut done = 0;
    for piece in pieces.iter().flatten() {
        let piece = piece.to_host();
        let bytes = piece.data().bytes();
        whole.data_mut().bytes_mut()[done..done + bytes.len()].copy_from_slice(bytes);
        done += bytes.len();
    }
    Ok(whole)
}

/// The mean, element by element.
fn of(arrays: &[Arc<Array>]) -> Array {
    let Some(first) = arrays.first() else {
        return Array::zeros(ein_plan::DType::F32, &[0]);
    };
    let mut sums = vec![0.0f64; first.data().len()];
    for array in arrays {
        match array.data() {
            Data::F32(values) => sums
                .iter_mut()
                .zip(values)
                .for_each(|(sum, x)| *sum += f64::from(*x)),
            Data::F64(values) => sums.iter_mut().zip(values).for_each(|(sum, x)| *sum += x),
            other => {
                for (at, sum) in sums.iter_mut().enumerate() {
                    *sum += other.get(at).as_f64();
                }
            }
        }
    }
    let count = arrays.len() as f64;
    sums.iter_mut().for_each(|sum| *sum /= count);
    like(first, &sums)
}

/// Every element times a number.
pub(super) fn times(array: &Array, factor: f64) -> Array {
    let data = array.data();
    let values: Vec<f64> = (0..data.len())
        .map(|at| data.get(at).as_f64() * factor)
        .collect();
    like(array, &values)
}

/// An array like another with these values.
fn like(other: &Array, values: &[f64]) -> Array {
    let mut array = other.clone();
    match array.data_mut() {
        Data::F32(to) => to
            .iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = *x as f32),
        Data::F64(to) => to.copy_from_slice(values),
        Data::F16(to) => to
            .iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = f16::from_f64(*x)),
        Data::BF16(to) => to
            .iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = bf16::from_f64(*x)),
        Data::I32(to) => to
            .iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = x.round() as i32),
        Data::I64(to) => to
            .iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = x.round() as i64),
        Data::U16(to) => to
            .iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = x.round() as u16),
        Data::U32(to) => to
            .iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = x.round() as u32),
        Data::U64(to) => to
            .iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = x.round() as u64),
        Data::I8(to) => to
            .iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = x.round() as i8),
        Data::I16(to) => to
            .iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = x.round() as i16),
        Data::U8(to) | Data::Bool(to) => to
            .iter_mut()
            .zip(values)
            .for_each(|(to, x)| *to = x.round() as u8),
    }
    array
}

#[cfg(test)]
mod tests {
    use super::*;
    use ein_comm::in_process;

    #[test]
    fn groups_get_their_means_in_the_same_bits() {
        for sites in 1..=5u32 {
            for parts in 1..=sites {
                let found: Vec<Array> = std::thread::scope(|scope| {
                    let threads = in_process(sites).into_iter().map(|comm| {
                        scope.spawn(move || {
                            let me = comm.site();
                            let group: Vec<u32> =
                                (me % parts..sites).step_by(parts as usize).collect();
                            let values = (0..7).map(|at| (me * 10 + at) as f32).collect();
                            let mine = Array::new(vec![7], Data::F32(values)).expect("seven");
                            mean(&mine, &group, &comm).expect("no site is lost")
                        })
                    });
                    let threads: Vec<_> = threads.collect();
                    threads
                        .into_iter()
                        .map(|t| t.join().expect("no thread fails"))
                        .collect()
                });
                for (me, array) in (0..sites).zip(&found) {
                    let group: Vec<u32> = (me % parts..sites).step_by(parts as usize).collect();
                    let sum: u32 = group.iter().sum();
                    for at in 0..7 {
                        let wanted = f64::from(10 * sum) / group.len() as f64 + at as f64;
                        assert!((array.data().get(at).as_f64() - wanted).abs() < 1e-5);
                    }
                    assert_eq!(array, &found[(me % parts) as usize]);
                }
            }
        }
    }
}
