//! Groups of kernels on the emulated GPU: one launch, and what the processor gives.
//!
//! ```text
//! a softmax of four members   ->   one launch; a group with a fault   ->   the first member that has one, and its point
//! ```
#![allow(clippy::unwrap_used)]

mod machines;

use ein_array::{Array, Data};
use ein_cuda::{Counts, Gpu};
use ein_device::{Buffer, Device, Member, MemberOperand, Operand, Prepared};
use ein_device_cpu::Cpu;
use ein_plan::{Fault, Kernel, KernelError, LoopKernel};
use half::f16;
use std::collections::BTreeMap;

/// The operands of a member: arrays that are given, by number, or members that make them.
#[derive(Clone, Copy)]
enum Maker {
    Given(usize),
    Made(usize),
}
use Maker::{Given, Made};

type Columns = Vec<Option<Vec<Buffer>>>;

/// Runs a group, of which the members at `kept` are wanted.
fn run(
    device: &dyn Device,
    texts: &[(&str, &[Maker])],
    arrays: &[Array],
    (rows, kept): (usize, &[usize]),
) -> Result<Columns, (usize, KernelError)> {
    let kernels: Vec<Kernel> = (texts.iter())
        .map(|(text, _)| text.parse().unwrap_or_else(|e| panic!("{text}: {e:?}")))
        .collect();
    let prepared: Vec<Box<dyn Prepared>> = (kernels.iter())
        .map(|kernel| device.prepare(kernel, &LoopKernel::of_whole(kernel), false))
        .collect();
    let given: Vec<Buffer> = (arrays.iter())
        .map(|array| device.adopt(array.clone().into()))
        .collect();
    let operand = |from: &Maker| match from {
        Given(number) => MemberOperand::Given(Operand {
            columns: std::slice::from_ref(&given[*number]),
            start: vec![0; given[*number].shape().len()],
        }),
        Made(member) => MemberOperand::Made(*member),
    };
    let members: Vec<Member<'_>> = (texts.iter().enumerate())
        .map(|(number, (_, operands))| Member {
            kernel: &*prepared[number],
            ranges: (kernels[number]
                .indices
                .iter()
                .map(|index| (0, index.extent)))
            .collect(),
            operands: operands.iter().map(operand).collect(),
            kept: kept.contains(&number),
        })
        .collect();
    device.run_group(&members, rows, BTreeMap::new())
}

/// Runs a group on the GPU and on the processor, compares them, and returns the number of launches.
fn compare(
    texts: &[(&str, &[Maker])],
    arrays: &[Array],
    (rows, kept): (usize, &[usize]),
    near: f64,
) -> Counts {
    compare_on(&machines::gpu(), texts, arrays, (rows, kept), near)
}

fn compare_on(
    gpu: &Gpu,
    texts: &[(&str, &[Maker])],
    arrays: &[Array],
    (rows, kept): (usize, &[usize]),
    near: f64,
) -> Counts {
    let found = run(gpu, texts, arrays, (rows, kept)).unwrap();
    let wanted = run(&Cpu, texts, arrays, (rows, kept)).unwrap();
    for (number, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        assert_eq!(found.is_some(), wanted.is_some(), "member {number}");
        let (Some(found), Some(wanted)) = (found, wanted) else {
            continue;
        };
        let (found, wanted) = (found[0].to_host(), wanted[0].to_host());
        assert_eq!(found.shape(), wanted.shape());
        for at in 0..wanted.data().len() {
            let (a, b) = (
                found.data().get(at).as_f64(),
                wanted.data().get(at).as_f64(),
            );
            let agrees = (a - b).abs() <= near * b.abs().max(1e-3) || a == b;
            assert!(agrees, "member {number}, element {at}: {a}, not {b}");
        }
    }
    gpu.counts()
}

fn single(shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|at| ((at * 7919 + 13) % 4001) as f32 / 400.0 - 5.0);
    Array::new(shape.to_vec(), Data::F32(values.collect())).unwrap()
}

fn half(shape: &[usize]) -> Array {
    let count: usize = shape.iter().product();
    let values = (0..count).map(|at| f16::from_f64(((at * 7919 + 13) % 4001) as f64 / 400.0));
    Array::new(shape.to_vec(), Data::F16(values.collect())).unwrap()
}

/// The members of a masked softmax of rows of so many columns.
fn softmax(columns: usize) -> Vec<(String, Vec<Maker>)> {
    let of = |shape: &str, text: &str, operands: &[Maker]| {
        let text = text.replace("ROW", &format!("f32[3, 5, {columns}]"));
        let shape = shape.replace('C', &columns.to_string());
        (text.replace("AT", &shape), operands.to_vec())
    };
    let points = "[b: 3, t: 5, s: C]";
    let rows = "[b: 3, t: 5 | s: C]";
    vec![
        of(
            points,
            "(ROW) AT f32 = where(s <= 40 * t, a0[b, t, s], -inf)",
            &[Given(0)],
        ),
        of(rows, "(ROW) AT f32 = max a0[b, t, s]", &[Made(0)]),
        of(
            points,
            "(ROW, f32[3, 5]) AT f32 = exp(a0[b, t, s] - a1[b, t])",
            &[Made(0), Made(1)],
        ),
        of(rows, "(ROW) AT f32 = sum a0[b, t, s]", &[Made(2)]),
        of(
            points,
            "(ROW, f32[3, 5]) AT f32 = a0[b, t, s] / a1[b, t]",
            &[Made(2), Made(3)],
        ),
    ]
}

#[test]
fn a_softmax_is_one_launch() {
    // In shared memory, too large for it, and rows that are few enough for one thread.
    for columns in [301, 12_007, 9] {
        let members = softmax(columns);
        let members: Vec<(&str, &[Maker])> = (members.iter())
            .map(|(text, operands)| (text.as_str(), &operands[..]))
            .collect();
        let counts = compare(&members, &[single(&[3, 5, columns])], (2, &[4]), 1e-5);
        assert_eq!((counts.launches, counts.on_cores), (1, 0), "{columns}");
    }
}

/// Of 15 rows, each of which has 48 KB of exponentials that are read again.
#[test]
fn what_members_make_for_each_other_is_made_in_strips() {
    let members = softmax(12_007);
    let members: Vec<(&str, &[Maker])> = (members.iter())
        .map(|(text, operands)| (text.as_str(), &operands[..]))
        .collect();
    // By the longest index of the rows: all of it, three of its five values, one; then by the other one. A strip is a launch, and a copy of each
    // result that is kept.
    for (bytes, kept, launches) in [
        (4 << 20, &[4][..], 1),
        (1 << 20, &[4], 4),
        (300_000, &[4], 10),
        (1, &[3, 4], 55),
    ] {
        let gpu = machines::gpu().working_in(bytes);
        let counts = compare_on(&gpu, &members, &[single(&[3, 5, 12_007])], (2, kept), 1e-5);
        assert_eq!((counts.launches, counts.on_cores), (launches, 0), "{bytes}");
    }
}

#[test]
fn what_is_kept_and_read_is_both() {
    let members: [(&str, &[Maker]); 3] = [
        (
            "(f32[7, 40]) [n: 7, d: 40] f32 = a0[n, d] * 0.5_f32",
            &[Given(0)],
        ),
        (
            "(f32[7, 40], f32[40]) [n: 7 | d: 40] f32 = sum a0[n, d] * a1[d]",
            &[Made(0), Given(1)],
        ),
        (
            "(f32[7, 40], f32[7]) [n: 7, d: 40] f32 = a0[n, d] - a1[n]",
            &[Made(0), Made(1)],
        ),
    ];
    let arrays = [single(&[7, 40]), single(&[40])];
    let counts = compare(&members, &arrays, (1, &[0, 1, 2]), 1e-5);
    assert_eq!(counts.launches, 1);
}

/// A result is rounded as it is stored, whoever reads it.
#[test]
fn halves_are_rounded_between_members() {
    let members: [(&str, &[Maker]); 2] = [
        (
            "(f16[6, 50]) [n: 6, d: 50] f16 = a0[n, d] * 0.3_f32",
            &[Given(0)],
        ),
        (
            "(f16[6, 50]) [n: 6, d: 50] f32 = a0[n, d] * 1024.0_f32",
            &[Made(0)],
        ),
    ];
    let counts = compare(&members, &[half(&[6, 50])], (1, &[1]), 0.0);
    assert_eq!(counts.launches, 1);
}

/// Numbers that depend on all rows are gathered when the rows are there, and products are left to the cores.
#[test]
fn what_cannot_be_taken_by_rows_is_taken_alone() {
    let members: [(&str, &[Maker]); 4] = [
        (
            "(f32[6, 50]) [n: 6, d: 50] f32 = exp(a0[n, d])",
            &[Given(0)],
        ),
        (
            "(f32[6, 50]) [n: 6 | d: 50] f32 = logsumexp a0[n, d]",
            &[Made(0)],
        ),
        (
            "(f32[6, 50]) [ | n: 6, d: 50] f32 = sum a0[n, d]",
            &[Made(0)],
        ),
        ("(f32[6]) [n: 6] f32 = -a0[n]", &[Made(1)]),
    ];
    let counts = compare(&members, &[single(&[6, 50])], (1, &[2, 3]), 1e-5);
    assert_eq!((counts.launches, counts.on_cores), (3, 0));
}

#[test]
fn the_first_member_that_faults_is_named() {
    let members: [(&str, &[Maker]); 3] = [
        ("(i64[6]) [n: 6] i64 = a0[n] * 2", &[Given(0)]),
        (
            "(i64[6], i64[12]) [n: 6] i64 = a1[a0[n]]",
            &[Made(0), Given(1)],
        ),
        ("(i64[6]) [n: 6] i64 = floordiv(a0[n], 0)", &[Made(1)]),
    ];
    let numbers =
        |values: &[i64]| Array::new(vec![values.len()], Data::I64(values.to_vec())).unwrap();
    let arrays = [numbers(&[0, 1, 2, 3, 6, 7]), numbers(&[5; 12])];
    // In strips of a row, the last member faults in the first one.
    let (gpu, in_strips) = (machines::gpu(), machines::gpu().working_in(1));
    let found = [&Cpu as &dyn Device, &gpu, &in_strips].map(|device| {
        let made = run(device, &members, &arrays, (1, &[2]));
        made.map(|_| ()).unwrap_err()
    });
    assert_eq!(found[0], found[1]);
    assert_eq!(found[0], found[2]);
    let fault = Fault::OutOfRange {
        operand: 1,
        dimension: 0,
        position: 12,
        extent: 12,
    };
    assert_eq!((found[1].0, &found[1].1.fault), (1, &fault));
    assert_eq!(found[1].1.point, [4]);
}
