//! The texts of sources that are made: constants, counted and random numbers, the same bits as on every device.
//!
//! Sources that are lists of numbers, and permutations, which are sorted, are left to the cores. Must not know how a text is compiled.
//!
//! ```text
//! uniform(-1, 2) of f32[5, 7], box [1..4, 2..6]   ->   a thread an element: its number in the whole tensor, its four words, its value
//! ```

use crate::function::stored_type;
use crate::machine::Argument;
use crate::text::{Meaning, Meeting, Text};
use ein_device::{Draw, Span};
use ein_plan::{DType, Scalar, Source};
use half::{bf16, f16};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The text that makes a box of a source, and its arguments, but for the box's memory, which comes last. `None` if the cores make it.
///
/// A text has the kind of the source, the element type and the rank; the numbers are arguments.
pub(crate) fn source(draw: &Draw<'_>, ranges: &[Span]) -> Option<(Text, Vec<Argument>)> {
    let mut numbers = Numbers::default();
    let value = value(draw, &mut numbers)?;
    let (count, place) = place(draw.shape, ranges, &mut numbers);
    let body = format!(
        "    const ein::bits at = blockIdx.x * (ein::bits)256 + threadIdx.x;\n    \
         if (at >= {count}) return;\n{place}{value}"
    );
    let parameters = (0..numbers.0.len()).map(|number| Meaning::Number(number).alone());
    let result = Meaning::Result(0, draw.dtype).alone();
    let text = Text {
        parameters: parameters.chain([result]).collect(),
        body,
        meeting: Meeting::Thread,
    };
    Some((text, numbers.0))
}

/// Numbers that are given to a text, in order.
#[derive(Default)]
struct Numbers(Vec<Argument>);

impl Numbers {
    /// A whole number, as the text reads it.
    fn whole(&mut self, number: i64) -> String {
        self.0.push(Argument::Whole(number));
        format!("n{}", self.0.len() - 1)
    }

    /// A float, as the text reads it.
    fn float(&mut self, number: f64) -> String {
        let bits = self.whole(number.to_bits() as i64);
        format!("__longlong_as_double({bits})")
    }
}

/// How many elements there are, and the statements that give an element's number in the whole tensor.
fn place(shape: &[u64], ranges: &[Span], numbers: &mut Numbers) -> (String, String) {
    let mut text = String::from("    ein::bits rest = at, element = 0;\n");
    let (mut counts, mut stride) = (vec![], 1u64);
    for ((start, length), extent) in ranges.iter().zip(shape).rev() {
        let length = numbers.whole(*length as i64);
        let (start, by) = (numbers.whole(*start as i64), numbers.whole(stride as i64));
        let _ = writeln!(
            text,
            "    element += ((ein::bits){start} + rest % (ein::bits){length}) * (ein::bits){by}; rest /= (ein::bits){length};"
        );
        counts.push(format!("(ein::bits){length}"));
        stride = stride.wrapping_mul(*extent);
    }
    match counts.is_empty() {
        true => ("1".into(), text),
        false => (counts.join(" * "), text),
    }
}

/// The statements that store the element.
fn value(draw: &Draw<'_>, numbers: &mut Numbers) -> Option<String> {
    let made = |value: &str| format!("    ein::store_made(to0[at], {value});\n");
    let constant = |value: &Scalar, numbers: &mut Numbers| match (value, draw.dtype) {
        (Scalar::Int(value), DType::U8 | DType::I8 | DType::U16 | DType::I16)
        | (Scalar::Int(value), DType::U32 | DType::U64 | DType::I32 | DType::I64) => {
            numbers.whole(*value)
        }
        // What is no whole number is a float of whatever type.
        (value, _) => numbers.float(value.as_f64()),
    };
    Some(match draw.source {
        Source::Full(value) => made(&constant(value, numbers)),
        Source::Iota => made("(ein::whole)element"),
        // What is added is a whole number, so that no rounding reaches `hi`.
        Source::Uniform { lo, hi }
            if draw.dtype.is_integer() && lo.fract() == 0.0 && hi.fract() == 0.0 =>
        {
            let words = words(draw, numbers);
            let (low, range) = (numbers.whole(*lo as i64), numbers.float(hi - lo));
            let above = format!("ein::to_i64({range} * ein::unit(words.first))");
            words + &made(&format!("ein::add({low}, {above})"))
        }
        Source::Uniform { lo, hi } => {
            let words = words(draw, numbers);
            let (low, range) = (numbers.float(*lo), numbers.float(hi - lo));
            let number = format!("{low} + {range} * ein::unit(words.first)");
            let mut text = format!("{words}    double value = {number};\n");
            if draw.dtype.is_float() && hi > lo {
                let (high, instead) = (
                    numbers.float(*hi),
                    numbers.float(below(draw.dtype, *lo, *hi)),
                );
                let _ = writeln!(
                    text,
                    "    {} stored;\n    ein::store_made(stored, value);\n    \
                     if (!((double)ein::value(stored) < {high})) value = {instead};",
                    stored_type(draw.dtype)
                );
            }
            text + &made("value")
        }
        Source::Normal { mean, std } => {
            let words = words(draw, numbers);
            let (mean, std) = (numbers.float(*mean), numbers.float(*std));
            words + &made(&format!("ein::normal(words, {mean}, {std})"))
        }
        Source::Bernoulli { p } => {
            let words = words(draw, numbers);
            let p = numbers.float(*p);
            words + &made(&format!("(ein::whole)(ein::unit(words.first) < {p})"))
        }
        Source::Gumbel => words(draw, numbers) + &made("ein::gumbel(words)"),
        Source::Numbers(_)
        | Source::Permutation
        | Source::Load(_)
        | Source::Unbound
        | Source::Listed { .. }
        | Source::Fed
        | Source::Kept
        | Source::Stacked { .. } => return None,
    })
}

/// The statement that draws the words of an element.
fn words(draw: &Draw<'_>, numbers: &mut Numbers) -> String {
    let mut hash = Sha256::new();
    hash.update(draw.seed.to_le_bytes());
    hash.update(draw.stream.as_bytes());
    if !draw.rounds.is_empty() {
        // No name has this byte.
        hash.update([255]);
    }
    for round in draw.rounds {
        hash.update(round.to_le_bytes());
    }
    let key: [u8; 32] = hash.finalize().into();
    let words = key.chunks_exact(4).map(|bytes| {
        let word = bytes
            .iter()
            .rev()
            .fold(0u32, |word, byte| word << 8 | u32::from(*byte));
        format!("(unsigned){}", numbers.whole(i64::from(word)))
    });
    let words: Vec<String> = words.collect();
    format!(
        "    const ein::Key key = {{{{{}}}}};\n    const ein::Words words = ein::drawn(key, element);\n",
        words.join(", ")
    )
}

/// Returns the number next below `hi` in the stored type, no less than `lo`: it replaces numbers that would be stored as `hi` or more.
fn below(dtype: DType, lo: f64, hi: f64) -> f64 {
    let stored = |x: f64| match dtype {
        DType::F16 => f16::from_f64(x).to_f64(),
        DType::BF16 => bf16::from_f64(x).to_f64(),
        DType::F32 => f64::from(x as f32),
        _ => x,
    };
    let digits = match dtype {
        DType::F16 => 11,
        DType::BF16 => 8,
        DType::F32 => 24,
        _ => 53,
    };
    // A spacing of the type below `hi`, whatever hi's own rounding was, or less than one.
    let spacing = hi.abs().max(f64::MIN_POSITIVE) * f64::from(-digits).exp2();
    let steps = (1..8).map(|half| hi - spacing * 0.5 * f64::from(half));
    let mut candidates = [hi.next_down()].into_iter().chain(steps);
    let found = candidates.find(|value| stored(*value) < hi);
    found.filter(|value| stored(*value) >= lo).unwrap_or(lo)
}
