//! The verifier of kernels. Invariants:
//!
//! - index names are distinct, extents fit `i64`, and there is a reduction if and only if there is a reduced index;
//!   `argmax` and `argmin` reduce one index; without a reduction there is no guard and nothing to leave unfinished;
//! - arguments stand before their users, no node stands twice, and the graph is in canonical order
//!   ([`Kernel::canonical`]);
//! - every node has the compute type that the table of functions gives; positions are `i64`; a guard is `bool`;
//! - reads name operands and columns that exist, with one position a dimension;
//! - a library operation is the root, in the form of [`crate::library`];
//! - reductions suit the type of the value, and the output's columns are the result or the carrier.
//!
//! Must not know chunks, keys or sites.
//!
//! ```text
//! node 3: 2 values of one type for `add`, found (f32, i64)
//! ```

use crate::dtype::{DType, Scalar};
use crate::kernel::{Kernel, Node, NodeId};
use crate::library;
use crate::reduction::Reduction;
use std::collections::HashSet;

/// The first broken invariant of a kernel, if there is one.
pub fn kernel(kernel: &Kernel) -> Result<(), String> {
    indices(kernel)?;
    for operand in &kernel.operands {
        if operand.columns.is_empty() {
            return Err("an operand has no column".into());
        }
        elements(&operand.shape).ok_or("an operand has more elements than can be counted")?;
    }
    let mut seen = HashSet::new();
    for (id, node, dtype) in kernel.graph.iter() {
        let fail = |what: &str| Err(format!("node {}: {what}", id.0));
        if node.arguments().any(|a| a >= id) {
            return fail("an argument does not stand before it");
        }
        if dtype != dtype.compute() {
            return fail("its type is not one that is computed in");
        }
        if !seen.insert((node, dtype)) {
            return fail("it stands twice");
        }
        let expected = of_node(kernel, node, dtype).or_else(|what| fail(&what).map(|()| dtype))?;
        if expected != dtype {
            return fail(&format!("its type is {dtype} but should be {expected}"));
        }
    }
    let count = kernel.graph.len();
    let known = |id: NodeId| (id.0 as usize) < count;
    if !known(kernel.root) || !kernel.guard.is_none_or(known) {
        return Err("the root or the guard is no node".into());
    }
    if kernel
        .guard
        .is_some_and(|guard| kernel.graph.dtype(guard) != DType::Bool)
    {
        return Err("the guard is no truth value".into());
    }
    result(kernel)?;
    library::verify(kernel)?;
    if kernel.clone().canonical().graph != kernel.graph {
        return Err("the graph is not in canonical order".into());
    }
    Ok(())
}

/// Number of elements of a shape if it can be counted in `i64`, bytes of any type included. Extents of 0 count
/// as 1, so that no product of a part of the shape overflows either.
pub fn elements(shape: &[u64]) -> Option<u64> {
    let count = shape
        .iter()
        .try_fold(1u64, |n, extent| n.checked_mul((*extent).max(1)))?;
    (count <= i64::MAX as u64 / 16).then_some(count)
}

fn indices(kernel: &Kernel) -> Result<(), String> {
    let rank = kernel.output_rank as usize;
    if rank > kernel.indices.len() {
        return Err("the output has more dimensions than there are indices".into());
    }
    let mut names = HashSet::new();
    for index in &kernel.indices {
        if !names.insert(&index.name) {
            return Err(format!("two indices are named `{}`", index.name));
        }
        if i64::try_from(index.extent).is_err() {
            return Err(format!("index `{}` is too long", index.name));
        }
    }
    let reduced = kernel.indices.len() - rank;
    match kernel.reduction {
        None if reduced > 0 => Err("there are reduced indices but no reduction".into()),
        None if kernel.guard.is_some() => Err("there is a guard but no reduction".into()),
        None if !kernel.finish => Err("there is nothing to leave unfinished".into()),
        Some(_) if reduced == 0 => Err("there is a reduction but no reduced index".into()),
        Some(reduction) if reduction.is_arg() && reduced > 1 => {
            Err(format!("`{}` reduces one index", reduction.name()))
        }
        _ => Ok(()),
    }
}

/// The type that a node must have; `dtype` is the one that it has.
fn of_node(kernel: &Kernel, node: &Node, dtype: DType) -> Result<DType, String> {
    let type_of = |id: &NodeId| kernel.graph.dtype(*id);
    match node {
        Node::Constant(value) => {
            let fits = match value {
                Scalar::Float(_) => dtype.is_float(),
                Scalar::Int(x) => {
                    dtype == DType::I64 || (dtype == DType::I32 && i32::try_from(*x).is_ok())
                }
                Scalar::Bool(_) => dtype == DType::Bool,
            };
            let problem = || format!("{value:?} is no value of {dtype}");
            fits.then_some(dtype).ok_or_else(problem)
        }
        Node::Index(index) => match kernel.indices.get(index.0 as usize) {
            Some(_) => Ok(DType::I64),
            None => Err(format!("there is no index {}", index.0)),
        },
        Node::Read {
            operand,
            column,
            positions,
            otherwise,
        } => {
            let Some(of) = kernel.operands.get(*operand as usize) else {
                return Err(format!("there is no operand {operand}"));
            };
            let Some(stored) = of.columns.get(*column as usize) else {
                return Err(format!("operand {operand} has no column {column}"));
            };
            if positions.len() != of.shape.len() {
                return Err(format!(
                    "operand {operand} has {} dimensions but is read at {} positions",
                    of.shape.len(),
                    positions.len()
                ));
            }
            if positions.iter().any(|p| type_of(p) != DType::I64) {
                return Err("a position is not i64".into());
            }
            if otherwise.is_some_and(|o| type_of(&o) != stored.compute()) {
                return Err("what stands after `else` has another type than the operand".into());
            }
            Ok(stored.compute())
        }
        Node::Apply(function, arguments) => {
            let types: Vec<DType> = arguments.iter().map(type_of).collect();
            function.result(&types)
        }
        Node::Convert(_) => Ok(dtype),
    }
}

fn result(kernel: &Kernel) -> Result<(), String> {
    let value = kernel.graph.dtype(kernel.root);
    let expected = match kernel.reduction {
        None => vec![value],
        Some(reduction) => {
            let suits = match reduction {
                Reduction::Any | Reduction::All => value == DType::Bool,
                Reduction::Mean | Reduction::LogSumExp | Reduction::Norm => value.is_float(),
                _ => value != DType::Bool,
            };
            if !suits {
                return Err(format!("`{}` of {value} values", reduction.name()));
            }
            if kernel.finish {
                vec![reduction.result(value)]
            } else if reduction.carrier(value) == kernel.output {
                return Ok(());
            } else {
                return Err("the output is not the carrier of the reduction".into());
            }
        }
    };
    let computed: Vec<DType> = kernel.output.iter().map(|c| c.compute()).collect();
    if computed == expected {
        Ok(())
    } else {
        let (found, expected) = (
            crate::print::columns(&kernel.output),
            crate::print::columns(&expected),
        );
        Err(format!("the output is {found} but the value is {expected}"))
    }
}
