//! Elements and rows that a scalar names, and elements alone, as selections of their own.
//!
//! A read at positions keeps its operand whole, so that all of a vector would be moved for one element of it. A selection
//! is a reduction whose guard fixes an index (`Kernel::fixed`): every site looks at what it has, the one that has the row
//! gives it, the others the reduction's value over nothing. The largest of one value is that value, so no bit changes. A
//! position that may be outside is left to the read, which stops the run there. Must not know placements.
//!
//! ```text
//! g: f64[] = [] f[lo[]] - f[hi[]]
//! f.at: f64[] = [ | n: 900] max f[n] if n == lo[];  f.at.1 …;  g: f64[] = [] f.at[] - f.at.1[]
//! ```

mod range;

use crate::einsum::{Definition, Program, Rewriting, Tensor, TensorId, canonical};
use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Origin, Position,
    Reduction, Scalar,
};
use range::Ranges;
use std::collections::HashMap;

/// Where an operand has so few elements more than what is read of it, moving all of it costs no more than a choice.
const FEW: u64 = 32;

/// One element of an operand with so many, at a place that is written, is selected as well: only the site that has it then gives it.
const LARGE: u64 = 1 << 12;

/// A statement of so many points is worth a choice of its own, however few the elements are: its loops see a number there.
const MANY: u64 = 1 << 20;

/// Returns the program with selections in place of reads at positions that a scalar of the program names, if they are surely
/// inside the operand. A statement that gives a state back but for single points stands behind the others that read that state,
/// as far as it can.
pub fn select(program: &Program) -> Program {
    let mut selecting = Selecting {
        rewriting: Rewriting::of(program),
        known: HashMap::new(),
        ranges: Ranges::default(),
    };
    for at in order(program) {
        selecting.tensor(program, at);
    }
    // Nothing that stands in its own round's way was added, so there is a right order.
    let result = selecting.rewriting.finish();
    result
        .arranged()
        .map_or_else(|| program.clone(), Program::canonical)
}

/// The tensors in an order in which what changes a state at single points stands as late as its readers let it.
fn order(program: &Program) -> Vec<usize> {
    let mut order = vec![];
    let mut waiting: Vec<usize> = vec![];
    for (at, tensor) in program.tensors.iter().enumerate() {
        // A tensor of another block ends the round, or is in a loop that may read it.
        let ready = |other: &usize| {
            let id = TensorId(*other as u32);
            program.tensors[*other].block != tensor.block
                || program.made_of(TensorId(at as u32)).contains(&id)
        };
        while let Some(place) = waiting.iter().position(ready) {
            order.push(waiting.remove(place));
        }
        match changes_a_state(program, tensor) {
            true => waiting.push(at),
            false => order.push(at),
        }
    }
    order.extend(waiting);
    order
}

fn changes_a_state(program: &Program, tensor: &Tensor) -> bool {
    let Definition::Statement { kernel, operands } = &tensor.definition else {
        return false;
    };
    kernel.update().is_some_and(|update| {
        let of = program.tensor(operands[update.operand as usize]);
        matches!(of.definition, Definition::Loop(_)) && of.block == tensor.block
    })
}

struct Selecting {
    rewriting: Rewriting,
    /// Selections that are there: operand and position of each dimension.
    known: HashMap<(TensorId, Vec<Option<At>>), TensorId>,
    ranges: Ranges,
}

/// A position at which a dimension is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Constant(i64),
    Scalar(TensorId),
}

impl Selecting {
    fn tensor(&mut self, program: &Program, at: usize) {
        let mut tensor = self.rewriting.copy(&program.tensors[at]);
        if let Definition::Statement { kernel, operands } = &mut tensor.definition
            && kernel.library().is_none()
        {
            (*kernel, *operands) = self.statement(kernel, operands, tensor.origin);
        }
        self.rewriting.place(TensorId(at as u32), tensor);
    }

    /// Gives a statement its selections.
    fn statement(
        &mut self,
        kernel: &Kernel,
        operands: &[TensorId],
        origin: Origin,
    ) -> (Kernel, Vec<TensorId>) {
        let points = kernel.indices.iter();
        let points = points.fold(1u64, |n, index| n.saturating_mul(index.extent));
        let mut operands = operands.to_vec();
        let mut described = kernel.operands.clone();
        // By read: the operand that takes the place of its own, and where that is a selection.
        let mut selections: HashMap<NodeId, (u32, Vec<Option<At>>)> = HashMap::new();
        for (id, node, _) in kernel.graph.iter() {
            let Node::Read {
                operand, positions, ..
            } = node
            else {
                continue;
            };
            let Some(at) = self.wanted(kernel, &operands, *operand, positions, points) else {
                continue;
            };
            let selected = self.selection(operands[*operand as usize], &at, origin);
            let tensor = self.rewriting.result().tensor(selected);
            described.push(Operand {
                columns: vec![tensor.dtype],
                shape: tensor.shape.clone(),
            });
            selections.insert(id, (operands.len() as u32, at));
            operands.push(selected);
        }
        let mut kernel = kernel.clone().rewritten(|graph, id, mut node, dtype| {
            if let Node::Read {
                operand,
                positions,
                otherwise,
                ..
            } = &mut node
                && let Some((selected, at)) = selections.get(&id)
            {
                *operand = *selected;
                let mut dims = at.iter();
                positions.retain(|_| dims.next().is_some_and(Option::is_none));
                if positions.is_empty() {
                    *otherwise = None;
                }
            }
            graph.add(node, dtype)
        });
        kernel.operands = described;
        canonical::statement(kernel, &operands)
    }

    /// By dimension: where a selection stands; nothing if the read is to stay. The positions are nodes of the kernel.
    fn wanted(
        &self,
        kernel: &Kernel,
        operands: &[TensorId],
        operand: u32,
        positions: &[NodeId],
        points: u64,
    ) -> Option<Vec<Option<At>>> {
        let shape = &kernel.operands[operand as usize].shape;
        let mut wanted = vec![];
        let mut rest = 1u64;
        for (position, extent) in positions.iter().zip(shape) {
            let (at, range) = match kernel.position(*position) {
                Some(Position::Constant(value)) => (At::Constant(value), Some((value, value))),
                Some(Position::Scalar(scalar)) => {
                    let scalar = operands[scalar as usize];
                    (
                        At::Scalar(scalar),
                        self.ranges.of_tensor(self.rewriting.result(), scalar),
                    )
                }
                None => {
                    wanted.push(None);
                    rest = rest.saturating_mul(*extent);
                    continue;
                }
            };
            let (low, high) = range?;
            if low < 0 || u64::try_from(high).is_ok_and(|high| high >= *extent) {
                return None;
            }
            wanted.push(Some(at));
        }
        let all = shape
            .iter()
            .fold(1u64, |n, extent| n.saturating_mul(*extent));
        let named = wanted.iter().any(|at| matches!(at, Some(At::Scalar(_))));
        let pays = all.saturating_sub(rest) >= FEW || points >= MANY;
        let is_one = rest == 1 && kernel.indices.is_empty() && all >= LARGE;
        ((named || is_one) && rest <= points && pays).then_some(wanted)
    }

    /// The tensor that an operand is at these positions; its dimensions are those without one.
    fn selection(&mut self, operand: TensorId, at: &[Option<At>], origin: Origin) -> TensorId {
        if let Some(known) = self.known.get(&(operand, at.to_vec())) {
            return *known;
        }
        let of = self.rewriting.result().tensor(operand).clone();
        let extents = || at.iter().zip(&of.shape);
        let kept = extents().filter(|(at, _)| at.is_none());
        let kept: Vec<u64> = kept.map(|(_, extent)| *extent).collect();
        let fixed = extents().filter(|(at, _)| at.is_some());
        let all = kept.iter().chain(fixed.map(|(_, extent)| extent));
        let indices = (0..).zip(all).map(|(number, extent): (u32, _)| Index {
            name: format!("d{number}"),
            extent: *extent,
        });
        let mut operands = vec![operand];
        let mut kernel = Kernel {
            indices: indices.collect(),
            output_rank: kept.len() as u32,
            operands: vec![Operand {
                columns: vec![of.dtype],
                shape: of.shape.clone(),
            }],
            graph: Graph::default(),
            root: NodeId(0),
            guard: None,
            reduction: Some(match of.dtype {
                DType::Bool => Reduction::Any,
                _ => Reduction::Max,
            }),
            finish: true,
            output: vec![of.dtype],
        };
        let (mut next, mut next_fixed) = (0, kept.len() as u32);
        let mut positions = vec![];
        for at in at {
            let number = match at {
                None => &mut next,
                Some(_) => &mut next_fixed,
            };
            let index = kernel.graph.add(Node::Index(IndexId(*number)), DType::I64);
            *number += 1;
            positions.push(index);
            let Some(at) = at else { continue };
            let position = match at {
                At::Constant(value) => Node::Constant(Scalar::Int(*value)),
                At::Scalar(scalar) => {
                    operands.push(*scalar);
                    kernel.operands.push(Operand {
                        columns: vec![DType::I64],
                        shape: vec![],
                    });
                    Node::Read {
                        operand: operands.len() as u32 - 1,
                        column: 0,
                        positions: vec![],
                        otherwise: None,
                    }
                }
            };
            let position = kernel.graph.add(position, DType::I64);
            let here = Node::Apply(Function::Eq, vec![index, position]);
            let here = kernel.graph.add(here, DType::Bool);
            kernel.restrict(here);
        }
        let read = Node::Read {
            operand: 0,
            column: 0,
            positions,
            otherwise: None,
        };
        kernel.root = kernel.graph.add(read, of.dtype.compute());
        let statement = canonical::statement(kernel, &operands);
        let name = format!("{}.at", of.name);
        let selected = self.rewriting.add_hidden(&name, statement, origin);
        self.ranges.selected(selected, operand);
        self.known.insert((operand, at.to_vec()), selected);
        selected
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::einsum::{parse::parse, verify::verify};

    fn selected(text: &str) -> String {
        let program = parse(text).unwrap();
        verify(&program).unwrap();
        let program = select(&program).needed();
        verify(&program).unwrap();
        program.to_string()
    }

    #[test]
    fn an_element_and_a_row_are_selected() {
        insta::assert_snapshot!(selected(
            "input f: f64[90] = unbound\ninput X: f64[90, 4] = unbound\n\
            lo: i64[] = [ | i: 90] argmin f[i]\n\
            g: f64[] = [] f[lo[]] * 2.0_f64 + f[lo[]]\n\
            k: f64[90] = [i: 90 | d: 4] sum (X[i, d] - X[lo[], d]) * X[3, d]\noutput g\noutput k"
        ));
    }

    #[test]
    fn one_element_of_many_is_selected() {
        insta::assert_snapshot!(selected(
            "input f: f64[9000] = unbound\nk: f64[] = [] f[89] + f[89] * f[8999]\noutput k"
        ));
    }

    #[test]
    fn what_may_be_outside_is_read() {
        let text = "input f: f64[90] = unbound\ninput s: i64[] = unbound\n\
            lo: i64[] = [ | i: 91] argmin f[min(i, 89)]\n\
            g: f64[] = [] f[lo[]]\nh: f64[] = [] f[s[]]\nk: f64[] = [] f[89]\noutput g\noutput h\noutput k";
        assert_eq!(selected(text), parse(text).unwrap().to_string());
    }

    #[test]
    fn a_state_is_changed_behind_its_readers() {
        insta::assert_snapshot!(selected(
            "a.0: f64[90] = full(0.0)\n\
            repeat t < 40 {\n  carry a.0 -> a.1\n  carry a.0 -> b.1\n  \
            a: f64[90] = state 0 of t\n  \
            b: f64[90] = state 1 of t\n  \
            lo: i64[] = [ | i: 90] argmin a[i]\n  \
            a.1: f64[90] = [i: 90] where(i == lo[], 1.0_f64, a[i])\n  \
            b.1: f64[90] = [i: 90] a[i] + b[i] * a[lo[]]\n}\n\
            a.last: f64[90] = last 0 of t\nb.last: f64[90] = last 1 of t\noutput a.last\noutput b.last"
        ));
    }
}
