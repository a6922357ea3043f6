//! The emulated GPU's library for products of matrices: by the definition, with sums in f64.
//!
//! Every element's place is checked. Must not know what is multiplied.
//!
//! ```text
//! 1 x f32[2, 2] = 1 * f32[2, 3] . f32[3, 2]
//! ```

use super::memories::Memories;
use crate::machine::{Address, Element, Matrices, Matrix};
use half::{bf16, f16};

/// Multiplies matrices in these memories.
pub(super) fn multiply(memories: &Memories, matrices: &Matrices) {
    let Matrices {
        batches,
        rows,
        columns,
        inner,
        left,
        right,
        result,
        scale,
    } = matrices;
    let [lefts, rights] = [left, right].map(|matrix| numbers(memories, matrix));
    let mut made = vec![];
    for batch in 0..*batches {
        for row in 0..*rows {
            for column in 0..*columns {
                let products = (0..*inner).map(|k| {
                    lefts[place(left, batch, row, k)] * rights[place(right, batch, k, column)]
                });
                let sum: f64 = products.sum();
                made.push((place(result, batch, row, column), scale * sum));
            }
        }
    }
    memories.whole(Address(result.at), |bytes| {
        for (at, number) in made {
            match result.element {
                Element::F16 => store(bytes, at, f16::from_f64(number).to_le_bytes()),
                Element::BF16 => store(bytes, at, bf16::from_f64(number).to_le_bytes()),
                Element::F32 => store(bytes, at, (number as f32).to_le_bytes()),
                Element::F64 => store(bytes, at, number.to_le_bytes()),
            }
        }
    });
}

/// The place of an element in its array.
fn place(matrix: &Matrix, batch: u64, row: u64, column: u64) -> usize {
    let of_batch = matrix.first + batch * matrix.between_batches;
    (of_batch + row * matrix.between_rows + column * matrix.between_columns) as usize
}

/// All numbers of the array that a matrix lies in.
fn numbers(memories: &Memories, matrix: &Matrix) -> Vec<f64> {
    memories.whole(Address(matrix.at), |bytes| match matrix.element {
        Element::F16 => load(bytes, |b| f16::from_le_bytes(b).to_f64()),
        Element::BF16 => load(bytes, |b| bf16::from_le_bytes(b).to_f64()),
        Element::F32 => load(bytes, |b| f64::from(f32::from_le_bytes(b))),
        Element::F64 => load(bytes, f64::from_le_bytes),
    })
}

fn load<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f64) -> Vec<f64> {
    let (elements, _) = bytes.as_chunks::<N>();
    elements.iter().map(|bytes| number(*bytes)).collect()
}

fn store<const N: usize>(bytes: &mut [u8], at: usize, number: [u8; N]) {
    bytes[N * at..N * (at + 1)].copy_from_slice(&number);
}
