//! Reads that go around the end of a dimension, as reads on either side of it.
//!
//! A position `(i + 1) % N` is no affine form, so its reader needs the whole dimension. Where the form under the remainder passes
//! one multiple of N, the read is one of two affine ones, each of which has a window: the neighbours' edges, and the
//! few rows on the other side. Each is taken only where it is inside, so no value changes. Must not know sites or costs: the
//! search lays the program out beside the others.
//!
//! ```text
//! z = [i: 900] x[rem(i + 1, 900)]   =>   z = [i: 900] where(i + 1 < 900, x[i + 1] else 0.0, x[i + 1 - 900] else 0.0)
//! ```

use super::{Alternative, RuleInfo};
use crate::einsum::{Definition, Program, TensorId, canonical};
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Scalar};

const NAME: &str = "wrapped-read";

/// The rule of this family.
pub(super) fn rows() -> Vec<RuleInfo> {
    vec![RuleInfo {
        name: NAME,
        family: "wrapped",
        paper: "classical",
        left: "x[a % N]",
        right: "where(a < m*N, x[a - (m-1)*N] else 0, x[a - m*N] else 0)",
        conditions: &[
            "a is affine, and of all multiples of N passes m*N alone",
            "x has N elements along this dimension",
            "the read is inside along the others, or something else is read outside",
            "more than one site",
        ],
        note: "Each of the two reads has a window.",
    }]
}

/// The program with the reads of these tables that go around an end as affine ones, if it has any.
pub fn expand(
    program: &Program,
    disabled: &[String],
    is_wanted: &dyn Fn(TensorId) -> bool,
) -> Option<Alternative> {
    Alternative::by_rule(program, (NAME, disabled), |rewriting, old| {
        let Definition::Statement { operands: read, .. } = &old.definition else {
            return None;
        };
        let mut tensor = rewriting.copy(old);
        if let Definition::Statement { kernel, operands } = &mut tensor.definition {
            let is_wanted = |operand: u32| is_wanted(read[operand as usize]);
            let unwrapped = unwrapped(kernel, &is_wanted)?;
            (*kernel, *operands) = canonical::statement(unwrapped, operands);
        }
        Some(tensor)
    })
}

/// The tensors that statements read around an end.
pub fn tables(program: &Program) -> Vec<TensorId> {
    let mut tables = vec![];
    for tensor in &program.tensors {
        let Definition::Statement { kernel, operands } = &tensor.definition else {
            continue;
        };
        for (operand, positions) in kernel.graph.reads() {
            let table = operands[operand as usize];
            let around = (0..positions.len())
                .any(|dim| end(kernel, &kernel.graph, (operand, positions), dim).is_some());
            if around && !tables.contains(&table) {
                tables.push(table);
            }
        }
    }
    tables
}

/// A position that goes around an end: the node under the remainder, and the multiple of the extent that it passes.
struct Around {
    form: NodeId,
    passed: i64,
}

/// How a read goes around the end of a dimension, if it does. The positions are nodes of `graph`.
fn end(
    kernel: &Kernel,
    graph: &Graph,
    (operand, positions): (u32, &[NodeId]),
    dim: usize,
) -> Option<Around> {
    let extent = i64::try_from(kernel.operands[operand as usize].shape[dim]).ok()?;
    let Node::Apply(Function::Rem, sides) = graph.node(positions[dim]) else {
        return None;
    };
    if *graph.node(sides[1]) != Node::Constant(Scalar::Int(extent)) || extent == 0 {
        return None;
    }
    let (low, high) = interval(kernel, graph, sides[0])?;
    let (first, last) = (low.div_euclid(extent), high.div_euclid(extent));
    (last == first + 1).then_some(Around {
        form: sides[0],
        passed: last * extent,
    })
}

/// The least and the greatest value of an affine form.
fn interval(kernel: &Kernel, graph: &Graph, form: NodeId) -> Option<(i64, i64)> {
    let extent = |index: IndexId| kernel.indices[index.0 as usize].extent;
    graph.as_affine(form)?.reach(extent, None)
}

/// Returns whether a read may be outside of its operand in another dimension than `dim`.
fn may_be_outside(
    kernel: &Kernel,
    graph: &Graph,
    (operand, positions): (u32, &[NodeId]),
    dim: usize,
) -> bool {
    let shape = &kernel.operands[operand as usize].shape;
    let inside = |other: usize| {
        let around = || end(kernel, graph, (operand, positions), other).is_some();
        let extent = i64::try_from(shape[other]).unwrap_or(i64::MAX);
        match interval(kernel, graph, positions[other]) {
            Some((low, high)) => low >= 0 && high < extent,
            None => around(),
        }
    };
    !(0..positions.len()).all(|other| other == dim || inside(other))
}

/// The kernel with its reads around an end as affine ones, if it has any.
fn unwrapped(kernel: &Kernel, is_wanted: &dyn Fn(u32) -> bool) -> Option<Kernel> {
    // A library operation reads whole matrices.
    if kernel.library().is_some() {
        return None;
    }
    let mut changed = false;
    let rewritten = kernel
        .clone()
        .rewritten(|graph, _, node, dtype| match node {
            Node::Read { operand, .. } if is_wanted(operand) => {
                let read = graph.add(node, dtype);
                let affine = sides(kernel, graph, read);
                changed |= affine != read;
                affine
            }
            node => graph.add(node, dtype),
        });
    changed.then_some(rewritten)
}

/// A read of a new graph as affine ones, dimension by dimension.
fn sides(kernel: &Kernel, graph: &mut Graph, read: NodeId) -> NodeId {
    let dtype = graph.dtype(read);
    let Node::Read {
        operand,
        column,
        positions,
        otherwise,
    } = graph.node(read).clone()
    else {
        return read;
    };
    let around = (0..positions.len()).find_map(|dim| {
        let around = end(kernel, graph, (operand, &positions), dim)?;
        // A read that stops the run outside has to go on doing so.
        let stops =
            otherwise.is_none() && may_be_outside(kernel, graph, (operand, &positions), dim);
        (!stops).then_some((dim, around))
    });
    let Some((dim, Around { form, passed })) = around else {
        return read;
    };
    let extent = kernel.operands[operand as usize].shape[dim] as i64;
    let whole =
        |graph: &mut Graph, value| graph.add(Node::Constant(Scalar::Int(value)), DType::I64);
    let nothing = match dtype {
        DType::Bool => Scalar::Bool(false),
        _ if dtype.is_integer() => Scalar::Int(0),
        _ => Scalar::Float(0.0),
    };
    let outside = otherwise.unwrap_or_else(|| graph.add(Node::Constant(nothing), dtype));
    let side = |graph: &mut Graph, less: i64| {
        let mut positions = positions.clone();
        positions[dim] = match less {
            0 => form,
            less => {
                let less = whole(graph, less);
                graph.add(Node::Apply(Function::Sub, vec![form, less]), DType::I64)
            }
        };
        let read = Node::Read {
            operand,
            column,
            positions,
            otherwise: Some(outside),
        };
        let read = graph.add(read, dtype);
        sides(kernel, graph, read)
    };
    let (before, behind) = (side(graph, passed - extent), side(graph, passed));
    let passed = whole(graph, passed);
    let is_before = graph.add(Node::Apply(Function::Lt, vec![form, passed]), DType::Bool);
    graph.add(
        Node::Apply(Function::Select, vec![is_before, before, behind]),
        dtype,
    )
}
