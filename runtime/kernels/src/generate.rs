//! Free sources: any box of a constant, counted or random tensor.
//!
//! Element `e` (row-major number in the whole tensor) of a random tensor is made of the four 32-bit words at
//! position `4 e` of the ChaCha8 stream whose key is SHA-256 of the seed (eight bytes, little-endian) followed by
//! the stream's name and, in loops, the byte 255 and the number of the round of each (eight bytes). So any box can be made by itself, in parallel, and is the same however it is cut.
//! Must not know who asks.
//!
//! ```text
//! iota [3, 4], box [1..3, 2..4]  ->  6 7 10 11
//! ```

use crate::parallel;
use ein_array::{Array, Data};
use ein_plan::{DType, Scalar, Source};
use half::{bf16, f16};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::slice::ParallelSliceMut;
use sha2::{Digest, Sha256};

/// Elements of one task.
const TASK: usize = 1 << 14;

/// The box `ranges` (start and length of each dimension) of a tensor of that shape.
///
/// `source` must be free ([`Source::is_free`]) and not stacked. Random values depend on `seed`, `stream` and the element's number in
/// the whole tensor alone. Values are computed in `f64` and rounded; whole types take the floor.
pub fn generate(
    source: &Source,
    dtype: DType,
    stream: &str,
    seed: u64,
    shape: &[u64],
    ranges: &[(u64, u64)],
) -> Array {
    generate_in_round(source, dtype, stream, (seed, &[]), shape, ranges)
}

/// [`generate()`] in these rounds of the loops around the source, the outermost first: each draws values of its own.
pub fn generate_in_round(
    source: &Source,
    dtype: DType,
    stream: &str,
    (seed, rounds): (u64, &[u64]),
    shape: &[u64],
    ranges: &[(u64, u64)],
) -> Array {
    let extents: Vec<usize> = ranges.iter().map(|(_, n)| *n as usize).collect();
    let mut array = crate::memory::room(dtype, &extents);
    if array.data().is_empty() {
        return array;
    }
    let place = Place::new(shape, ranges);
    let key = key(seed, stream, rounds);
    match source {
        Source::Load(_)
        | Source::Unbound
        | Source::Listed { .. }
        | Source::Fed
        | Source::Kept
        | Source::Stacked { .. } => {
            unreachable!("only a free source that is not stacked can be generated")
        }
        Source::Full(value) => full(&mut array, *value),
        Source::Iota => whole(&mut array, &place, &|first, to| {
            for (to, n) in to.iter_mut().zip(first..) {
                *to = n as i64;
            }
        }),
        Source::Numbers(values) => match values.first() {
            Some(Scalar::Int(_) | Scalar::Bool(_)) => whole(&mut array, &place, &|first, to| {
                for (to, value) in to.iter_mut().zip(&values[first as usize..]) {
                    *to = match value {
                        Scalar::Int(value) => *value,
                        other => other.as_f64() as i64,
                    };
                }
            }),
            _ => real(&mut array, &place, &|first, to| {
                for (to, value) in to.iter_mut().zip(&values[first as usize..]) {
                    *to = value.as_f64();
                }
            }),
        },
        Source::Permutation => {
            let order = permutation(&key, shape.iter().product());
            whole(&mut array, &place, &|first, to| {
                to.copy_from_slice(&order[first as usize..][..to.len()]);
            });
        }
        // What is added is a whole number, so that no rounding reaches `hi`.
        Source::Uniform { lo, hi } if is_whole(dtype, *lo, *hi) => {
            whole(&mut array, &place, &|first, to| {
                random(&key, first, to, |a, _| {
                    *lo as i64 + ((hi - lo) * unit(a)) as i64
                });
            })
        }
        Source::Uniform { lo, hi } => {
            let sure = surely_below(dtype, *hi);
            real(&mut array, &place, &|first, to| {
                random(&key, first, to, |a, _| match lo + (hi - lo) * unit(a) {
                    x if x <= sure => x,
                    x => below(dtype, x, *lo, *hi),
                });
            });
        }
        Source::Normal { mean, std } => real(&mut array, &place, &|first, to| {
            random(&key, first, to, |a, b| {
                let radius = (-2.0 * libm::log(1.0 - unit(a))).sqrt();
                let angle = std::f64::consts::TAU * unit(b);
                mean + std * (radius * libm::cos(angle))
            });
        }),
        Source::Bernoulli { p } => whole(&mut array, &place, &|first, to| {
            random(&key, first, to, |a, _| i64::from(unit(a) < *p));
        }),
        Source::Gumbel => real(&mut array, &place, &|first, to| {
            random(&key, first, to, |a, _| -libm::log(-libm::log(inner(a))));
        }),
    }
    array
}

/// Where a box lies: runs of neighbouring elements.
struct Place {
    strides: Vec<u64>,
    ranges: Vec<(u64, u64)>,
    run: u64,
}

impl Place {
    fn new(shape: &[u64], ranges: &[(u64, u64)]) -> Place {
        let mut strides = vec![1u64; shape.len()];
        for d in (1..shape.len()).rev() {
            strides[d - 1] = strides[d].wrapping_mul(shape[d]);
        }
        Place {
            strides,
            ranges: ranges.to_vec(),
            run: ranges.last().map_or(1, |(_, n)| *n),
        }
    }

    /// The number in the whole tensor of element `at` of the box.
    fn number(&self, mut at: u64) -> u64 {
        let mut number = 0;
        for ((start, n), stride) in self.ranges.iter().zip(&self.strides).rev() {
            number += (start + at % n) * stride;
            at /= n;
        }
        number
    }
}

/// Each element the same.
fn full(array: &mut Array, value: Scalar) {
    macro_rules! store {
        ($v:ident, $x:expr) => {{
            let x = $x;
            parallel::chunks_mut($v, TASK, |_, to| to.fill(x));
        }};
    }
    let real = value.as_f64();
    let whole = match value {
        Scalar::Int(x) => x,
        _ => real.floor() as i64,
    };
    match array.data_mut() {
        Data::F16(v) => store!(v, f16::from_f64(real)),
        Data::BF16(v) => store!(v, bf16::from_f64(real)),
        Data::F32(v) => store!(v, real as f32),
        Data::F64(v) => store!(v, real),
        Data::U8(v) => store!(v, whole as u8),
        Data::U16(v) => store!(v, whole as u16),
        Data::U32(v) => store!(v, whole as u32),
        Data::U64(v) => store!(v, whole as u64),
        Data::I8(v) => store!(v, whole as i8),
        Data::I16(v) => store!(v, whole as i16),
        Data::I32(v) => store!(v, whole as i32),
        Data::I64(v) => store!(v, whole),
        Data::Bool(v) => store!(v, u8::from(real != 0.0)),
    }
}

/// Gives some elements, as numbers of one type, their values; it gets the number of the first of them. It is called through a pointer, so that the
/// loops below are compiled once for each element type, and not once more for each source.
type Make<'a, V> = &'a (dyn Fn(u64, &mut [V]) + Sync);

/// Makes the elements, as floats, run by run.
fn real(array: &mut Array, place: &Place, make: Make<f64>) {
    match array.data_mut() {
        Data::F16(v) => fill(v, place, make, f16::from_f64),
        Data::BF16(v) => fill(v, place, make, bf16::from_f64),
        Data::F32(v) => fill(v, place, make, |x| x as f32),
        Data::F64(v) => fill(v, place, make, |x| x),
        Data::U8(v) => fill(v, place, make, |x| x.floor() as i64 as u8),
        Data::U16(v) => fill(v, place, make, |x| x.floor() as i64 as u16),
        Data::U32(v) => fill(v, place, make, |x| x.floor() as i64 as u32),
        Data::U64(v) => fill(v, place, make, |x| x.floor() as i64 as u64),
        Data::I8(v) => fill(v, place, make, |x| x.floor() as i64 as i8),
        Data::I16(v) => fill(v, place, make, |x| x.floor() as i64 as i16),
        Data::I32(v) => fill(v, place, make, |x| x.floor() as i64 as i32),
        Data::I64(v) => fill(v, place, make, |x| x.floor() as i64),
        Data::Bool(v) => fill(v, place, make, |x| u8::from(x != 0.0)),
    }
}

/// [`real`] of whole numbers.
fn whole(array: &mut Array, place: &Place, make: Make<i64>) {
    match array.data_mut() {
        Data::F16(v) => fill(v, place, make, |x| f16::from_f64(x as f64)),
        Data::BF16(v) => fill(v, place, make, |x| bf16::from_f64(x as f64)),
        Data::F32(v) => fill(v, place, make, |x| x as f64 as f32),
        Data::F64(v) => fill(v, place, make, |x| x as f64),
        Data::U8(v) => fill(v, place, make, |x| x as u8),
        Data::U16(v) => fill(v, place, make, |x| x as u16),
        Data::U32(v) => fill(v, place, make, |x| x as u32),
        Data::U64(v) => fill(v, place, make, |x| x as u64),
        Data::I8(v) => fill(v, place, make, |x| x as i8),
        Data::I16(v) => fill(v, place, make, |x| x as i16),
        Data::I32(v) => fill(v, place, make, |x| x as i32),
        Data::I64(v) => fill(v, place, make, |x| x),
        Data::Bool(v) => fill(v, place, make, |x| u8::from(x != 0)),
    }
}

fn fill<V: Copy + Default, T: Send>(
    array: &mut [T],
    place: &Place,
    make: Make<V>,
    stored: impl Fn(V) -> T + Sync,
) {
    parallel::chunks_mut(array, TASK, |task, mut to| {
        let mut values = [V::default(); 512];
        let mut at = (task * TASK) as u64;
        while !to.is_empty() {
            let left = (place.run - at % place.run) as usize;
            let count = left.min(to.len()).min(values.len());
            let (now, later) = to.split_at_mut(count);
            make(place.number(at), &mut values[..count]);
            for (to, value) in now.iter_mut().zip(values) {
                *to = stored(value);
            }
            (to, at) = (later, at + count as u64);
        }
    });
}

fn key(seed: u64, stream: &str, rounds: &[u64]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(seed.to_le_bytes());
    hash.update(stream.as_bytes());
    if !rounds.is_empty() {
        // No name has this byte.
        hash.update([255]);
    }
    for round in rounds {
        hash.update(round.to_le_bytes());
    }
    hash.finalize().into()
}

/// The stream at the words of an element.
fn at_element(key: &[u8; 32], number: u64) -> ChaCha8Rng {
    let mut rng = ChaCha8Rng::from_seed(*key);
    rng.set_word_pos(u128::from(number) * 4);
    rng
}

fn random<V>(key: &[u8; 32], first: u64, to: &mut [V], f: impl Fn(u64, u64) -> V) {
    let mut rng = at_element(key, first);
    for to in to {
        let (a, b) = (rng.next_u64(), rng.next_u64());
        *to = f(a, b);
    }
}

/// Returns whether whole numbers are drawn between whole ends.
fn is_whole(dtype: DType, lo: f64, hi: f64) -> bool {
    dtype.is_integer() && lo.fract() == 0.0 && hi.fract() == 0.0
}

/// Uniform in [0, 1), 53 bits.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Uniform in (0, 1).
fn inner(bits: u64) -> f64 {
    ((bits >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
}

/// What is at most this is stored as less than `hi`: a number of the type is between.
fn surely_below(dtype: DType, hi: f64) -> f64 {
    let smallest = match dtype {
        DType::F16 => -24,
        DType::BF16 => -133,
        DType::F32 => -149,
        _ => -1074,
    };
    match dtype.is_float() {
        true => hi - (2.0 * spacing(dtype, hi)).max(f64::from(smallest).exp2()),
        false => f64::INFINITY,
    }
}

/// A spacing of the type below `hi`, whatever hi's own rounding was, or less than one.
fn spacing(dtype: DType, hi: f64) -> f64 {
    let digits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::F32 => 24,
        _ => 53,
    };
    hi.abs().max(f64::MIN_POSITIVE) * (-f64::from(digits)).exp2()
}

/// `x`, or what is next below `hi` in the stored type if `x` would be stored as `hi` or more.
fn below(dtype: DType, x: f64, lo: f64, hi: f64) -> f64 {
    let stored = |x: f64| match dtype {
        DType::F16 => f16::from_f64(x).to_f64(),
        DType::BF16 => bf16::from_f64(x).to_f64(),
        DType::F32 => f64::from(x as f32),
        _ => x,
    };
    let value = stored(x);
    if !dtype.is_float() || value < hi || hi <= lo {
        return x;
    }
    let spacing = spacing(dtype, hi);
    let (mut lower, mut factor) = (hi.next_down(), 0.5);
    while stored(lower) >= hi && factor < 4.0 {
        lower = hi - spacing * factor;
        factor += 0.5;
    }
    if stored(lower) < hi && stored(lower) >= lo {
        lower
    } else {
        lo
    }
}

/// The numbers 0..n in the order of their keys.
fn permutation(key: &[u8; 32], n: u64) -> Vec<i64> {
    let mut keyed: Vec<(u64, i64)> = vec![(0, 0); n as usize];
    parallel::chunks_mut(&mut keyed, TASK, |task, to| {
        let first = (task * TASK) as u64;
        let mut rng = at_element(key, first);
        for (to, number) in to.iter_mut().zip(first..) {
            *to = (rng.next_u64(), number as i64);
            rng.next_u64();
        }
    });
    keyed.par_sort_unstable();
    keyed.into_iter().map(|(_, number)| number).collect()
}
