//! Random programs by differences.
//!
//! The programs are those of the property tests, with every floating-point type made f64, no `stop`, and inputs at points of no
//! special meaning, so that ties, edges of `floor` and kinks are rare. Where differences of two sizes disagree there is
//! a kink nearby, or no derivative, and the element says nothing.

use crate::run;
use ein_plan::{DType, Function, Graph, Kernel, Node, NodeId};
use einc_core::autodiff::gradients;
use einc_core::einsum::verify::verify;
use einc_core::einsum::{Definition, Output, Program, TensorId, canonical, random};
use std::collections::BTreeMap;

fn widened(dtype: DType) -> DType {
    match dtype.is_float() {
        true => DType::F64,
        false => dtype,
    }
}

/// The kernel with f64 for every floating-point type, and without `stop`.
fn wide(kernel: &Kernel) -> Kernel {
    let mut graph = Graph::default();
    let mut moved: Vec<NodeId> = vec![];
    for (_, node, dtype) in kernel.graph.iter() {
        let node = node.map(|a| moved[a.0 as usize]);
        if let Node::Apply(Function::Stop, arguments) = &node {
            moved.push(arguments[0]);
            continue;
        }
        moved.push(graph.add(node, widened(dtype)));
    }
    let mut kernel = kernel.clone();
    kernel.root = moved[kernel.root.0 as usize];
    kernel.guard = kernel.guard.map(|guard| moved[guard.0 as usize]);
    kernel.graph = graph;
    for operand in &mut kernel.operands {
        operand.columns.iter_mut().for_each(|c| *c = widened(*c));
    }
    kernel.output.iter_mut().for_each(|c| *c = widened(*c));
    kernel
}

/// A sum of all f64 outputs, each element with a weight of its own, as one tensor at the end.
fn with_loss(mut program: Program) -> Program {
    let mut parts = vec![];
    for number in 0..program.tensors.len() {
        let tensor = &program.tensors[number];
        if tensor.dtype != DType::F64 || matches!(tensor.definition, Definition::Source(_)) {
            continue;
        }
        let indices: Vec<String> = (0..tensor.shape.len()).map(|at| format!("i{at}")).collect();
        let ranges: Vec<String> = indices
            .iter()
            .zip(&tensor.shape)
            .map(|(index, extent)| format!("{index}: {extent}"))
            .collect();
        let weight: Vec<String> = (1..)
            .zip(&indices)
            .map(|(n, i)| format!(" + f64({i}) * 0.{n}_f64"))
            .collect();
        let value = match indices.is_empty() {
            true => format!("{}[]", tensor.name),
            false => format!("{}[{}]", tensor.name, indices.join(", ")),
        };
        let reduced = match indices.is_empty() {
            true => "[]".to_owned(),
            false => format!("[| {}] sum", ranges.join(", ")),
        };
        let name = format!("part{number}");
        // Infinite and undefined values are left out.
        parts.push((
            name.clone(),
            format!(
                "{name}: f64[] = {reduced} where(abs({value}) < 1000.0_f64, {value} * (1.0_f64{}), 0.0_f64)",
                weight.concat()
            ),
        ));
    }
    let mut text = program.to_string();
    let cut = text.find("\noutput ").map_or(text.len(), |at| at + 1);
    text.truncate(cut);
    parts
        .iter()
        .for_each(|(_, part)| text += &format!("{part}\n"));
    let sum: Vec<String> = parts.iter().map(|(name, _)| format!("{name}[]")).collect();
    let sum = if sum.is_empty() {
        "0.0_f64".into()
    } else {
        sum.join(" + ")
    };
    text += &format!("loss: f64[] = [] {sum}\noutput loss\n");
    program = einc_core::einsum::parse::parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
    program.needed()
}

#[test]
fn random_programs_by_differences() {
    let (mut compared, mut left_out) = (0, 0);
    for seed in 0..150 {
        let case = random::case(seed);
        let mut program = case.program.clone();
        for tensor in &mut program.tensors {
            tensor.dtype = widened(tensor.dtype);
            if let Definition::Statement { kernel, operands } = &mut tensor.definition {
                (*kernel, *operands) = canonical::statement(wide(kernel), operands);
            }
        }
        let loss_program = with_loss(program);
        assert_eq!(verify(&loss_program), Ok(()), "seed {seed}\n{loss_program}");
        let mut state = seed;
        let mut noise = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 40) as f64 / f64::from(1u32 << 24) - 0.5
        };
        let mut inputs = BTreeMap::new();
        let mut wrt = vec![];
        for (number, tensor) in loss_program.tensors.iter().enumerate() {
            let Definition::Source(_) = tensor.definition else {
                continue;
            };
            let Some(values) = case.inputs.get(&tensor.name) else {
                continue;
            };
            let float = tensor.dtype.is_float();
            let values: Vec<f64> = values
                .data
                .iter()
                .map(|x| x.as_f64() + if float { 0.37 * noise() } else { 0.0 })
                .collect();
            inputs.insert(tensor.name.clone(), values);
            if float {
                wrt.push(TensorId(number as u32));
            }
        }
        let mut program = loss_program.clone();
        let loss = program.outputs[0].tensor;
        let all = gradients(&mut program, loss, &wrt).unwrap();
        program.outputs = all
            .iter()
            .map(|tensor| Output {
                tensor: *tensor,
                replaces: None,
                file: None,
                asserts: None,
                complex: false,
                origin: Default::default(),
            })
            .collect();
        let program = program.needed();
        assert_eq!(verify(&program), Ok(()), "seed {seed}\n{program}");
        let found = run(&program, &inputs);
        for (wrt, found) in wrt.iter().zip(found) {
            let name = &loss_program.tensor(*wrt).name;
            for (number, found) in found.into_iter().enumerate() {
                let at = |step: f64| {
                    let mut inputs = inputs.clone();
                    inputs.get_mut(name).unwrap()[number] += step;
                    run(&loss_program, &inputs)[0][0]
                };
                let slope = |step: f64| (at(step) - at(-step)) / (2.0 * step);
                let (small, large) = (slope(1e-6), slope(7e-6));
                let apart = (small - large).abs() / (1.0 + small.abs());
                if apart.is_nan() || apart > 1e-4 {
                    left_out += 1;
                    continue;
                }
                compared += 1;
                assert!(
                    (found - small).abs() <= 1e-3 * (1.0 + small.abs()),
                    "seed {seed}, {name} element {number}: {found}, differences {small} and {large}\n{loss_program}\n{program}"
                );
            }
        }
    }
    assert!(
        compared > 500 && left_out < compared / 5,
        "{compared} compared, {left_out} left out"
    );
}
