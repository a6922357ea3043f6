//! Results that take an operand's memory have the bits of those that do not.
#![allow(clippy::unwrap_used, missing_docs)]

use ein_array::{Array, Data};
use ein_kernels::{Chunk, Fusion, KernelError, Memo, Options, Scheduled, run, run_over, schedule};
use ein_plan::{DType, Kernel};

fn array(dtype: DType, shape: &[usize], seed: usize) -> Array {
    let n = shape.iter().product();
    let value = |at: usize| ((at + 1) * (seed * 7919 + 104_729) % 4001) as f64 / 1000.0 - 2.0;
    let values = (0..n).map(value);
    let data = match dtype {
        DType::F32 => Data::F32(values.map(|x| x as f32).collect()),
        _ => Data::F64(values.collect()),
    };
    Array::new(shape.to_vec(), data).unwrap()
}

fn chunk<'a>(array: &'a Array, start: &[u64]) -> Chunk<'a> {
    Chunk {
        columns: vec![array],
        start: start.to_vec(),
    }
}

/// The result over operand `over`, and whether it has that operand's memory.
fn over(
    kernel: &Kernel,
    ranges: &[(u64, u64)],
    (operands, at): (&[Chunk<'_>], usize),
    options: &Options,
    memo: Option<&Memo>,
) -> Result<(Array, bool), KernelError> {
    let mut operands = operands.to_vec();
    let old = operands[at].columns[0].clone();
    let loops = &schedule(kernel, ranges, &operands);
    operands[at].columns.clear();
    let address = old.data().bytes().as_ptr();
    let mut made = run_over(
        Scheduled { kernel, loops },
        ranges,
        &operands,
        (at, old),
        options,
        memo,
    )?;
    let made = made.remove(0);
    let same = made.data().bytes().as_ptr() == address;
    Ok((made, same))
}

#[test]
fn results_over_an_operand_have_the_same_bits() {
    for (n, d) in [(1, 5), (7, 3), (301, 1031), (3, 70_001)] {
        for (dtype, name) in [(DType::F32, "f32"), (DType::F64, "f64")] {
            let whole = format!("{name}[{n}, {d}]");
            let types = format!("({whole}, {whole}, {name}[{d}], {name}[])");
            let own = format!("{types} [i: {n}, j: {d}] {name} =");
            // The last two have no loop of their own, compiled ahead or not: they are over an operand strip by strip.
            let texts = [
                format!("{own} where(a0[i, j] > a2[j], a1[i, j], a0[i, j] - a3[])"),
                format!("{own} a0[i, j] * a1[i, j] + a0[i, j]"),
                format!("{own} relu(a1[i, j]) - a0[i, j] / a2[j]"),
                format!("{own} exp(a0[i, j] - a3[])"),
                format!("{own} gelu(a0[i, j])"),
                format!("{own} 0.5_{name} * a0[i, j] * (1.0_{name} + erf(a0[i, j]))"),
                format!("{own} exp(a0[i, j]) - a1[i, j]"),
                format!("{own} where(a0[i, j] > a2[j], exp(a1[i, j]), sin(a0[i, j]) * a3[])"),
            ];
            let given = [
                array(dtype, &[n, d], 1),
                array(dtype, &[n, d], 2),
                array(dtype, &[d], 3),
                array(dtype, &[], 4),
            ];
            for text in texts {
                let kernel: Kernel = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
                let ranges = [(0, n as u64), (0, d as u64)];
                let operands: Vec<_> = given
                    .iter()
                    .map(|array| chunk(array, &vec![0; array.shape().len()]))
                    .collect();
                for fusion in [Fusion::Always, Fusion::Never] {
                    let options = Options {
                        fusion,
                        ..Options::default()
                    };
                    let want = run(&kernel, &ranges, &operands, &options).unwrap();
                    let memo = Memo::default();
                    for at in [0, 1, 0] {
                        for memo in [None, Some(&memo)] {
                            let (got, same) =
                                over(&kernel, &ranges, (&operands, at), &options, memo).unwrap();
                            let equal = got.data().bytes() == want[0].data().bytes();
                            assert!(equal, "{text} over a{at}, {fusion:?}");
                            assert!(same, "{text} over a{at}, {fusion:?}");
                        }
                    }
                }
            }
        }
    }
}

/// A piece of a larger tensor: it begins elsewhere, as do its operands.
#[test]
fn a_piece_is_written_over_a_piece() {
    let kernel: Kernel =
        "(f32[9, 700], f32[9, 800]) [i: 9, j: 700] f32 = a0[i, j] + 0.5_f32 * a1[i, j + 100]"
            .parse()
            .unwrap();
    let ranges = [(4, 3), (0, 700)];
    let (old, other) = (
        array(DType::F32, &[3, 700], 1),
        array(DType::F32, &[3, 800], 2),
    );
    let operands = [chunk(&old, &[4, 0]), chunk(&other, &[4, 0])];
    let options = Options {
        fusion: Fusion::Always,
        ..Options::default()
    };
    let want = run(&kernel, &ranges, &operands, &options).unwrap();
    let (got, same) = over(&kernel, &ranges, (&operands, 0), &options, None).unwrap();
    assert!(same);
    assert_eq!(got.data().bytes(), want[0].data().bytes());
}

/// What can fault keeps its operands for the message.
#[test]
fn faults_are_told_as_without() {
    let kernel: Kernel = "(f32[9, 700], f32[9, 700]) [i: 9, j: 700] f32 = a0[i, j] + a1[i, j + 1]"
        .parse()
        .unwrap();
    let ranges = [(0, 9), (0, 700)];
    let (old, other) = (
        array(DType::F32, &[9, 700], 1),
        array(DType::F32, &[9, 700], 2),
    );
    let operands = [chunk(&old, &[0, 0]), chunk(&other, &[0, 0])];
    let options = Options::default();
    let want = run(&kernel, &ranges, &operands, &options).unwrap_err();
    let got = over(&kernel, &ranges, (&operands, 0), &options, None).unwrap_err();
    assert_eq!(got, want);
    assert_eq!(got.point, [0, 699]);
}
