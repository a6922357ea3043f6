//! Sources that are made, element by element, as the language defines them.
//!
//! Element `e` (row-major number in the whole tensor) is made of the four 32-bit words at position `4 e` of the ChaCha8 stream whose key is
//! SHA-256 of the seed (eight bytes, little-endian), the stream's name and, in loops, the byte 255 and the number of the round of each
//! (eight bytes). Must not know who asks.
//!
//! ```text
//! uniform(0, 2): 53 bits of the first two words, as a part of 1, times 2
//! ```

use ein_device::{Draw, Span};
use ein_plan::{DType, Scalar, Source};
use einc_core::einsum::scalar::{convert, stored};
use einc_core::tra::chunk::{offset, positions};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// The elements of a box, in row-major order.
pub(crate) fn values(draw: &Draw<'_>, ranges: &[Span]) -> Vec<Scalar> {
    let key = key(draw);
    let order = match draw.source {
        Source::Permutation => permutation(&key, draw.shape.iter().product()),
        _ => vec![],
    };
    let lengths: Vec<u64> = ranges.iter().map(|(_, length)| *length).collect();
    let places = positions(&lengths).map(|at| {
        let place = at.iter().zip(ranges).map(|(at, (start, _))| at + start);
        offset(draw.shape, &place.collect::<Vec<u64>>()) as u64
    });
    places
        .map(|number| element(draw, &key, &order, number))
        .collect()
}

/// Element `number` of the whole tensor, in the type that it is stored in.
fn element(draw: &Draw<'_>, key: &[u8; 32], order: &[u64], number: u64) -> Scalar {
    let (first, second) = words(key, number);
    let unit = |word: u64| (word >> 11) as f64 / (1u64 << 53) as f64;
    let within = |word: u64| ((word >> 12) as f64 + 0.5) / (1u64 << 52) as f64;
    let real = |value: f64| match draw.dtype.is_float() || draw.dtype == DType::Bool {
        true => convert(Scalar::Float(value), draw.dtype.compute()),
        false => convert(Scalar::Float(value.floor()), draw.dtype.compute()),
    };
    let whole = |value: i64| convert(Scalar::Int(value), draw.dtype.compute());
    match draw.source {
        Source::Full(value @ Scalar::Float(_)) => real(value.as_f64()),
        Source::Full(value) => convert(*value, draw.dtype.compute()),
        Source::Iota => whole(number as i64),
        Source::Numbers(values) => convert(values[number as usize], draw.dtype.compute()),
        Source::Permutation => whole(order[number as usize] as i64),
        Source::Uniform { lo, hi } => {
            let above = (hi - lo) * unit(first);
            match draw.dtype.is_float() {
                true => Scalar::Float(below(draw.dtype, lo + above, *lo, *hi)),
                false if lo.fract() == 0.0 && hi.fract() == 0.0 => {
                    whole(*lo as i64 + above.floor() as i64)
                }
                false => real(lo + above),
            }
        }
        Source::Normal { mean, std } => {
            let radius = (-2.0 * libm::log(1.0 - unit(first))).sqrt();
            let angle = std::f64::consts::TAU * unit(second);
            real(mean + std * (radius * libm::cos(angle)))
        }
        Source::Bernoulli { p } => whole(i64::from(unit(first) < *p)),
        Source::Gumbel => real(-libm::log(-libm::log(within(first)))),
        Source::Load(_)
        | Source::Unbound
        | Source::Listed { .. }
        | Source::Fed
        | Source::Kept
        | Source::Stacked { .. } => {
            unreachable!("only a free source that is not stacked is made")
        }
    }
}

/// The value, or the largest one of the stored type that is less than `hi` if it would be stored as `hi` or more; `lo` if there is none.
fn below(dtype: DType, value: f64, lo: f64, hi: f64) -> f64 {
    let as_stored = |value: f64| stored(Scalar::Float(value), dtype).as_f64();
    if as_stored(value) < hi || hi <= lo {
        return value;
    }
    // Half a step of the type more each time: the first that is stored as less is next to `hi`.
    let digits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::F32 => 24,
        _ => 53,
    };
    let step = hi.abs().max(f64::MIN_POSITIVE) * f64::from(-digits).exp2();
    let candidates = (0..8).map(|half| hi.next_down() - step * (0.5 * f64::from(half)));
    let found = candidates.map(as_stored).find(|value| *value < hi);
    found.filter(|value| *value >= lo).unwrap_or(lo)
}

fn key(draw: &Draw<'_>) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(draw.seed.to_le_bytes());
    hash.update(draw.stream.as_bytes());
    if !draw.rounds.is_empty() {
        hash.update([255]);
    }
    for round in draw.rounds {
        hash.update(round.to_le_bytes());
    }
    hash.finalize().into()
}

/// The four words of an element, as two.
fn words(key: &[u8; 32], number: u64) -> (u64, u64) {
    let mut stream = ChaCha8Rng::from_seed(*key);
    stream.set_word_pos(u128::from(number) * 4);
    (stream.next_u64(), stream.next_u64())
}

/// The numbers below `count` in the order of the first word of each.
fn permutation(key: &[u8; 32], count: u64) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    order.sort_by_cached_key(|number| words(key, *number).0);
    order
}
