//! Reads that go around the end of a dimension, or stay at it, as reads on either side of it.
//!
//! A position `(i + 1) % N` is no affine form, so its reader needs the whole dimension. Where the form under the remainder passes
//! a multiple of N or two, the read is one of few affine ones, each of which has a window: the neighbours' edges, and the
//! few rows on the other side. A position `max(i - 1, 0)` is one form or a number. Each read is taken only where it is inside, so no value
//! changes. Must not know sites or costs: the search lays the program out beside the others.
//!
//! ```text
//! z = [i: 900] x[rem(i + 1, 900)]   =>   z = [i: 900] where(i + 1 < 900, x[i + 1] else 0.0, x[i + 1 - 900] else 0.0)
//! z = [i: 900] x[max(i - 1, 0)]     =>   z = [i: 900] where(i - 1 < 0, x[0], x[i - 1] else 0.0)
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
        left: "x[a % N], x[max(a, c)], x[min(a, c)]",
        right: "where(a < m*N, x[a - (m-1)*N] else 0, x[a - m*N] else 0), where(a < c, x[c], x[a] else 0), where(a < c, x[a] else 0, x[c])",
        conditions: &[
            "a is affine, and of all multiples of N passes m*N alone, or two neighbours; or such a position itself",
            "x has N elements along this dimension",
            "the read is inside along the others, or something else is read outside",
            "more than one site",
        ],
        note: "Each of the reads has a window.",
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

/// The most multiples of an extent that a position passes.
const MOST_PASSED: i64 = 2;

/// A position that is another one on either side of an end.
enum End {
    /// The node under a remainder, which lies in so many-th repetitions of the dimension.
    Around { form: NodeId, first: i64, last: i64 },
    /// The greater or lesser one of a node and a number.
    At {
        form: NodeId,
        number: NodeId,
        is_least: bool,
    },
}

/// How a read goes around the end of a dimension or stays at it, if it does. The positions are nodes of `graph`.
fn end(
    kernel: &Kernel,
    graph: &Graph,
    (operand, positions): (u32, &[NodeId]),
    dim: usize,
) -> Option<End> {
    let extent = i64::try_from(kernel.operands[operand as usize].shape[dim]).ok()?;
    let Node::Apply(function, sides) = graph.node(positions[dim]) else {
        return None;
    };
    let (low, high) = interval(kernel, graph, positions[dim])?;
    let is_number = |id: &NodeId| matches!(graph.node(*id), Node::Constant(Scalar::Int(_)));
    match (function, &sides[..]) {
        (Function::Rem, [form, divisor]) => {
            if *graph.node(*divisor) != Node::Constant(Scalar::Int(extent)) {
                return None;
            }
            let (low, high) = interval(kernel, graph, *form)?;
            let (first, last) = (low.div_euclid(extent), high.div_euclid(extent));
            (first < last && last - first <= MOST_PASSED).then_some(End::Around {
                form: *form,
                first,
                last,
            })
        }
        (Function::Max | Function::Min, [a, b]) => {
            let (form, number) = match is_number(b) {
                true => (*a, *b),
                false => (*b, *a),
            };
            let is_inside = low >= 0 && high < extent;
            (is_number(&number) && !is_number(&form) && is_inside).then_some(End::At {
                form,
                number,
                is_least: *function == Function::Max,
            })
        }
        _ => None,
    }
}

/// The least and the greatest value of an affine form, of its remainder, or of the greater or lesser one of such.
fn interval(kernel: &Kernel, graph: &Graph, form: NodeId) -> Option<(i64, i64)> {
    let extent = |index: IndexId| kernel.indices[index.0 as usize].extent;
    if let Some(form) = graph.as_affine(form) {
        return form.reach(extent, None);
    }
    let Node::Apply(function, sides) = graph.node(form) else {
        return None;
    };
    let of = |side: usize| interval(kernel, graph, sides[side]);
    match function {
        Function::Max => {
            let ((a, b), (c, d)) = (of(0)?, of(1)?);
            Some((a.max(c), b.max(d)))
        }
        Function::Min => {
            let ((a, b), (c, d)) = (of(0)?, of(1)?);
            Some((a.min(c), b.min(d)))
        }
        Function::Rem => match (of(0), graph.node(sides[1])) {
            (Some(_), Node::Constant(Scalar::Int(by))) if *by > 0 => Some((0, by - 1)),
            _ => None,
        },
        _ => None,
    }
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
        let extent = i64::try_from(shape[other]).unwrap_or(i64::MAX);
        let reach = interval(kernel, graph, positions[other]);
        reach.is_some_and(|(low, high)| low >= 0 && high < extent)
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
    let found = (0..positions.len()).find_map(|dim| {
        let end = end(kernel, graph, (operand, &positions), dim)?;
        // A read that stops the run outside has to go on doing so.
        let stops =
            otherwise.is_none() && may_be_outside(kernel, graph, (operand, &positions), dim);
        (!stops).then_some((dim, end))
    });
    let Some((dim, end)) = found else {
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
    let side = |graph: &mut Graph, position: NodeId| {
        let mut positions = positions.clone();
        positions[dim] = position;
        let read = Node::Read {
            operand,
            column,
            positions,
            otherwise: Some(outside),
        };
        let read = graph.add(read, dtype);
        sides(kernel, graph, read)
    };
    let below = |graph: &mut Graph, form, end, before, behind| {
        let is_before = graph.add(Node::Apply(Function::Lt, vec![form, end]), DType::Bool);
        let chosen = Node::Apply(Function::Select, vec![is_before, before, behind]);
        graph.add(chosen, dtype)
    };
    match end {
        End::At {
            form,
            number,
            is_least,
        } => {
            let (there, at_end) = (side(graph, form), side(graph, number));
            match is_least {
                true => below(graph, form, number, at_end, there),
                false => below(graph, form, number, there, at_end),
            }
        }
        End::Around { form, first, last } => {
            let turn = |graph: &mut Graph, turn: i64| {
                let position = match turn * extent {
                    0 => form,
                    less => {
                        let less = whole(graph, less);
                        graph.add(Node::Apply(Function::Sub, vec![form, less]), DType::I64)
                    }
                };
                side(graph, position)
            };
            let mut all = turn(graph, last);
            for before in (first..last).rev() {
                let own = turn(graph, before);
                let end = whole(graph, (before + 1) * extent);
                all = below(graph, form, end, own, all);
            }
            all
        }
    }
}
