//! u64 against Rust's own: every function at the ends of the range, reductions, orders, conversions and files, on 1 to 5 sites and on the
//! devices that have kernels of their own.

use einc_tests::everywhere::SITES;
use einc_tests::{einc, einc_command, run};
use std::path::Path;

const PROGRAM: &str = "
dim N
input a: u64[N]
input b: u64[N]
input x: f64[6] = [-3.7, 0.5, 9223372036854774784, 9223372036854777856, 1.8446744073709552e19, nan]
sum_[i] = a[i] + b[i]
less[i] = a[i] - b[i]
times[i] = a[i] * b[i]
turned[i] = -a[i]
whole[i] = div(a[i], b[i])
rest[i] = a[i] % b[i]
tens[i] = div(a[i], 10) + a[i] % 7
both[i] = (a[i] & b[i]) | (a[i] xor b[i])
up[i] = a[i] << b[i] % 70
down[i] = a[i] >> b[i] % 70
least[i] = min(a[i], b[i])
most[i] = max(a[i], b[i])
above[i] = a[i] > b[i]
near[i] = where(a[i] >= b[i], a[i] - b[i], b[i] - a[i])
big[i] = a[i] > 18446744073709551614
signs[i] = sign(a[i])
ones[i] = popcount(a[i])
real[i] = f64(a[i])
short[i] = f32(a[i])
half[i]: f64[N] = a[i] / 2.0
narrow[i] = u8(a[i])
signed[i] = i64(a[i])
back[i] = u64(i64(a[i]))
given[i] = u64(x[i])
mixed0[i] = a[i] + 11400714819323198485
mixed1[i] = (mixed0[i] xor mixed0[i] >> 30) * 13787848793156543929
mixed2[i] = (mixed1[i] xor mixed1[i] >> 27) * 10723151780598845931
mixed[i] = mixed2[i] xor mixed2[i] >> 31
total = sum[i] a[i]
greatest = max[i] a[i]
smallest = min[i] a[i]
place = argmax[i] a[i]
first = argmin[i, j < 3] (a[i] xor u64(j))
none = max[i < 0] a[i]
size1 = norm1[i] a[i]
running[i] = sum[j <= i] a[j]
upper[i] = max[j <= i] a[j]
sorted = sort(a)
order = argsort(a)
best, at = topk(a, 3)
bins[i64(a[i] % 5)]: u64[5] += a[i]
repeat t < 4 {
  state s[i] = b[i]
  next s[i] = s[i] * 6364136223846793005 + 1442695040888963407
}
output real
";

fn operands() -> (Vec<u64>, Vec<u64>) {
    let ends = [
        0,
        1,
        2,
        5,
        9,
        63,
        64,
        1 << 31,
        (1 << 53) + 1,
        i64::MAX as u64,
        1 << 63,
        (1 << 63) + 1,
    ];
    let ends = ends
        .into_iter()
        .chain([u64::MAX - 1024, u64::MAX - 1, u64::MAX]);
    let ends: Vec<u64> = ends.collect();
    let pairs = ends.iter().flat_map(|a| ends.iter().map(move |b| (*a, *b)));
    // Division by 0 stops a run.
    pairs.filter(|(_, b)| *b != 0).unzip()
}

fn mix(a: u64) -> u64 {
    let z = a.wrapping_add(11_400_714_819_323_198_485);
    let z = (z ^ z >> 30).wrapping_mul(13_787_848_793_156_543_929);
    let z = (z ^ z >> 27).wrapping_mul(10_723_151_780_598_845_931);
    z ^ z >> 31
}

fn bits(values: impl IntoIterator<Item = f64>) -> Vec<u64> {
    values.into_iter().map(f64::to_bits).collect()
}

/// The bits of the elements of each definition; narrower types are widened.
fn expected(a: &[u64], b: &[u64]) -> Vec<(&'static str, Vec<u64>)> {
    let both = |f: fn(u64, u64) -> u64| {
        a.iter()
            .zip(b)
            .map(|(a, b)| f(*a, *b))
            .collect::<Vec<u64>>()
    };
    let one = |f: fn(u64) -> u64| a.iter().map(|a| f(*a)).collect::<Vec<u64>>();
    let shift = |a: u64, b: u64, f: fn(u64, u32) -> Option<u64>| f(a, (b % 70) as u32).unwrap_or(0);
    let mut order: Vec<usize> = (0..a.len()).collect();
    order.sort_by_key(|at| a[*at]);
    let mut descending = order.clone();
    descending.sort_by_key(|at| std::cmp::Reverse(a[*at]));
    let greatest = *a.iter().max().unwrap();
    let so_far = |f: fn(u64, u64) -> u64| {
        let mut state = 0;
        let next = a.iter().map(|a| {
            state = f(state, *a);
            state
        });
        next.collect::<Vec<u64>>()
    };
    let flat = (0..a.len() * 3).min_by_key(|at| a[at / 3] ^ (at % 3) as u64);
    let mut bins = vec![0u64; 5];
    for a in a {
        let bin = &mut bins[(a % 5) as usize];
        *bin = bin.wrapping_add(*a);
    }
    let round = |s: u64| {
        s.wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407)
    };
    vec![
        ("sum_", both(u64::wrapping_add)),
        ("less", both(u64::wrapping_sub)),
        ("times", both(u64::wrapping_mul)),
        ("turned", one(u64::wrapping_neg)),
        ("whole", both(|a, b| a / b)),
        ("rest", both(|a, b| a % b)),
        ("tens", one(|a| a / 10 + a % 7)),
        ("both", both(|a, b| (a & b) | (a ^ b))),
        (
            "up",
            a.iter()
                .zip(b)
                .map(|(a, b)| shift(*a, *b, u64::checked_shl))
                .collect(),
        ),
        (
            "down",
            a.iter()
                .zip(b)
                .map(|(a, b)| shift(*a, *b, u64::checked_shr))
                .collect(),
        ),
        ("least", both(u64::min)),
        ("most", both(u64::max)),
        ("above", both(|a, b| u64::from(a > b))),
        ("near", both(u64::abs_diff)),
        ("big", one(|a| u64::from(a > u64::MAX - 1))),
        ("signs", one(|a| u64::from(a > 0))),
        ("ones", one(|a| u64::from(a.count_ones()))),
        ("real", bits(a.iter().map(|a| *a as f64))),
        ("short", bits(a.iter().map(|a| f64::from(*a as f32)))),
        ("half", bits(a.iter().map(|a| *a as f64 / 2.0))),
        ("narrow", one(|a| u64::from(a as u8))),
        ("signed", a.to_vec()),
        ("back", a.to_vec()),
        (
            "given",
            vec![0, 0, (1 << 63) - 1024, (1 << 63) + 2048, u64::MAX, 0],
        ),
        ("mixed", one(mix)),
        (
            "total",
            vec![a.iter().fold(0, |s: u64, a| s.wrapping_add(*a))],
        ),
        ("greatest", vec![greatest]),
        ("smallest", vec![*a.iter().min().unwrap()]),
        (
            "place",
            vec![a.iter().position(|a| *a == greatest).unwrap() as u64],
        ),
        ("first", vec![flat.unwrap() as u64]),
        ("none", vec![0]),
        (
            "size1",
            vec![a.iter().fold(0, |s: u64, a| s.wrapping_add(*a))],
        ),
        ("running", so_far(u64::wrapping_add)),
        ("upper", so_far(u64::max)),
        ("sorted", order.iter().map(|at| a[*at]).collect()),
        ("order", order.iter().map(|at| *at as u64).collect()),
        ("best", descending[..3].iter().map(|at| a[*at]).collect()),
        ("at", descending[..3].iter().map(|at| *at as u64).collect()),
        ("bins", bins),
        (
            "s",
            b.iter().map(|b| (0..4).fold(*b, |s, _| round(s))).collect(),
        ),
    ]
}

/// A vector of u64 as numpy writes it.
fn write(path: &Path, values: &[u64]) {
    let head = format!(
        "{{'descr': '<u8', 'fortran_order': False, 'shape': ({},), }}\n",
        values.len()
    );
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((head.len() as u16).to_le_bytes());
    bytes.extend(head.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    std::fs::write(path, bytes).unwrap();
}

/// The bits of the elements of an .npy file; narrower ones are widened, of f32 to f64.
fn read(path: &Path) -> Vec<u64> {
    let bytes = std::fs::read(path).unwrap();
    let length = u16::from_le_bytes([bytes[8], bytes[9]]) as usize;
    let head = String::from_utf8_lossy(&bytes[10..10 + length]).into_owned();
    let data = &bytes[10 + length..];
    match head.split('\'').nth(3).unwrap() {
        "|u1" | "|b1" => data.iter().map(|byte| u64::from(*byte)).collect(),
        "<f4" => bits(
            data.chunks_exact(4)
                .map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))),
        ),
        "<u8" | "<i8" | "<f8" => (data.chunks_exact(8))
            .map(|b| u64::from_le_bytes(b.try_into().unwrap()))
            .collect(),
        other => panic!("{other}"),
    }
}

fn compare(more: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let (a, b) = operands();
    write(&file("a.npy"), &a);
    write(&file("b.npy"), &b);
    std::fs::write(file("model.ein"), PROGRAM).unwrap();
    let wanted = expected(&a, &b);
    let mut command = einc_command(&[
        "run",
        "model.ein",
        "--input",
        "a=a.npy",
        "--input",
        "b=b.npy",
    ]);
    command.args(more).current_dir(folder.path());
    for (name, _) in &wanted {
        command.args(["--save", &format!("{name}={name}.out.npy")]);
    }
    run(&mut command).success();
    for (name, values) in &wanted {
        let found = read(&file(&format!("{name}.out.npy")));
        assert_eq!(found.len(), values.len(), "{name}, {more:?}");
        for (at, (found, value)) in found.iter().zip(values).enumerate() {
            assert_eq!(
                found,
                value,
                "{name}[{at}], {more:?}: of {} and {}",
                a[at % a.len()],
                b[at % b.len()]
            );
        }
    }
}

#[test]
fn functions_of_u64_are_rust_s_on_all_sites() {
    for sites in SITES {
        compare(&["--sites", sites]);
    }
}

#[test]
fn functions_of_u64_are_rust_s_on_other_devices() {
    for device in ["reference", "emulated"] {
        compare(&["--sites", "2", "--device", device]);
    }
}

#[test]
fn numbers_of_u64_are_written_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.ein");
    let program = "const most = 18446744073709551615\nx[i < 3]: u64[3] = most - u64(i)\ny = x[1]\noutput x; output y\n";
    std::fs::write(&path, program).unwrap();
    let said = einc(&["run", path.to_str().unwrap()]).success().stdout;
    assert_eq!(
        said,
        "x = [18446744073709551615 18446744073709551614 18446744073709551613]\ny = 18446744073709551614\n"
    );
    let wrong = |program: &str, says: &[&str]| {
        std::fs::write(&path, program).unwrap();
        einc(&["check", path.to_str().unwrap()])
            .fails_with(1)
            .says(says);
    };
    wrong(
        "input x: u64[3]\ny[i] = x[i] - -1\noutput y\n",
        &["E0406", "u64 holds 0 to 18446744073709551615"],
    );
    wrong(
        "input x: u64[3]\ninput z: i64[3]\ny[i] = x[i] + z[i]\noutput y\n",
        &["E0401"],
    );
    wrong(
        "y = -9223372036854775809\noutput y\n",
        &["E0307", "64 bits"],
    );
    wrong(
        "dim N = 9223372036854775808\ninput x: f32[N]\noutput x\n",
        &["E0"],
    );
}
