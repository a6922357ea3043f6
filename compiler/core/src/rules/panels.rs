//! Large products in panels: a loop over pieces of the summed index, so that a site holds a piece of each factor at a time.
//!
//! On a grid of sites each one needs whole rows of the one factor and whole columns of the other. In panels it needs a part of them in every round, and
//! the rounds together move what the product moves (SUMMA; van de Geijn and Watts 1997). As with any reordered sum, rounding may differ. Must not
//! know layouts: the search lays the rounds out.
//!
//! ```text
//! C = [i: 900, j: 900 | k: 900] sum A[i, k] * B[k, j]
//! =>  repeat C.panel < 9 { C.A = [i, k: 100] A[i, 100 * C.panel + k];  C.B = [k, j] B[100 * C.panel + k, j]
//!                          C.next = [i, j] C.sum[i, j] + sum C.A[i, k] * C.B[k, j] }
//! ```

use super::{Alternative, RuleInfo, may_fault};
use crate::einsum::{
    Block, Bound, Definition, LoopValue, Program, Rewriting, State, Statement, Tensor, TensorId,
    canonical,
};
use ein_plan::{DType, IndexId, Kernel, Node, NodeId, Reduction};

const NAME: &str = "panels";

/// Fewest rounds of a product in panels.
const LEAST_ROUNDS: u64 = 2;

/// Most widths of panels that are tried for one that divides all values.
const MOST_WIDTHS: usize = 1 << 12;

/// The rule of this family.
pub(super) fn rows() -> Vec<RuleInfo> {
    vec![RuleInfo {
        name: NAME,
        family: "panels",
        paper: "van de Geijn and Watts 1997, SUMMA",
        left: "C[i,j] = sum[k] A[i,k] * B[k,j]",
        right: "repeat p { C[i,j] += sum[k < K] A[i,K*p+k] * B[K*p+k,j] }",
        conditions: &[
            "a sum of f32 or f64 of all points",
            "k stands alone in the positions that read it",
            "no read may be outside",
            "more than one site, and no plan without panels fits in `--memory`",
        ],
        note: "The rounds together move what the product moves; a site holds a panel of each factor at a time.",
    }]
}

/// The program whose products are in panels, if the rows and columns that a site of so many needs take more than `room` bytes in any of them.
pub fn expand(
    program: &Program,
    disabled: &[String],
    (sites, room): (u32, u64),
) -> Option<Alternative> {
    Alternative::by_rule(program, (NAME, disabled), |rewriting, old| {
        let Definition::Statement { kernel, .. } = &old.definition else {
            return None;
        };
        let panels = Panels::of(kernel, (sites, room))?;
        let tensor = rewriting.copy(old);
        Some(panels.write(rewriting, tensor))
    })
}

/// A dimension of an operand along which its panels follow each other.
type Cut = (u32, usize);

/// A sum in panels.
struct Panels<'a> {
    kernel: &'a Kernel,
    /// The summed index.
    along: IndexId,
    /// The dimensions that it reads.
    cuts: Vec<Cut>,
    /// Values of the index in a round.
    width: u64,
    rounds: u64,
}

impl<'a> Panels<'a> {
    fn of(kernel: &'a Kernel, (sites, room): (u32, u64)) -> Option<Panels<'a>> {
        let is_float = matches!(kernel.output[..], [DType::F32 | DType::F64]);
        let is_sum = kernel.reduction == Some(Reduction::Sum) && kernel.guard.is_none();
        let is_same = kernel.output == [kernel.graph.dtype(kernel.root)];
        if !is_float || !is_sum || !is_same || kernel.output_rank == 0 || may_fault(kernel) {
            return None;
        }
        let side = f64::from(sites).sqrt();
        let reduced = kernel.output_rank..kernel.indices.len() as u32;
        let cuts = reduced.filter_map(|index| {
            let cuts = cuts(kernel, IndexId(index))?;
            let needed: f64 = cuts.iter().map(|cut| bytes(kernel, *cut) / side).sum();
            Some((IndexId(index), cuts, needed))
        });
        let (along, cuts, needed) = cuts.max_by(|a, b| a.2.total_cmp(&b.2))?;
        let values = kernel.indices[along.0 as usize].extent;
        let width = width(values, (needed / room.max(1) as f64).ceil() as u64)?;
        Some(Panels {
            kernel,
            along,
            cuts,
            width,
            rounds: values / width,
        })
    }

    /// Adds the loop; returns the tensor of what it ends with.
    fn write(&self, rewriting: &mut Rewriting, mut tensor: Tensor) -> Tensor {
        let Definition::Statement { operands, .. } = &tensor.definition else {
            return tensor;
        };
        let operands = operands.clone();
        let (dtype, shape, origin) = (tensor.dtype, tensor.shape.clone(), tensor.origin);
        let name_of = |part: &str| format!("{}.{part}", tensor.name);
        let names = self.kernel.indices[..shape.len()].iter();
        let names: Vec<String> = names.map(|index| index.name.clone()).collect();
        let initial = match self.kernel.indices[self.along.0 as usize].extent % self.width {
            0 => (zeros(dtype, &shape, names.clone()), vec![]),
            rest => {
                let first = self.rounds * self.width;
                let place = Place::Fixed(first, rest);
                self.product(rewriting, &operands, &place, &tensor)
            }
        };
        let initial = rewriting.add_hidden(&name_of("initial"), initial, origin);
        let block = rewriting.add_block(Block {
            name: name_of("panel"),
            parent: tensor.block,
            bound: Bound::Rounds(self.rounds),
            until: None,
            states: vec![],
            collected: vec![],
            origin,
        });
        let (counter, sum) = (LoopValue::Counter(block), LoopValue::State(block, 0));
        let round = rewriting.add_loop_value(&name_of("panel"), (DType::I64, &[]), counter, origin);
        let sum = rewriting.add_loop_value(&name_of("sum"), (dtype, &shape), sum, origin);
        let place = Place::Round(round, self.width);
        let product = self.product(rewriting, &operands, &place, &tensor);
        let product = rewriting.add_hidden(&name_of("product"), product, origin);
        let next = canonical::statement(both(dtype, &shape, names), &[sum, product]);
        let next = rewriting.add_hidden(&name_of("next"), next, origin);
        rewriting.carry(block, State { initial, next });
        tensor.definition = Definition::Loop(LoopValue::Last(block, 0));
        tensor
    }

    /// The sum over the panels at a place, which are added to the program.
    fn product(
        &self,
        rewriting: &mut Rewriting,
        operands: &[TensorId],
        place: &Place,
        tensor: &Tensor,
    ) -> Statement {
        let mut kernel = self.kernel.clone();
        kernel.indices[self.along.0 as usize].extent = place.width();
        let mut all = operands.to_vec();
        for (operand, dim) in &self.cuts {
            let from = operands[*operand as usize];
            let name = &rewriting.result().tensor(from).name;
            let name = format!("{}.{name}", tensor.name);
            let panel = panel(self.kernel, (*operand, *dim), from, place);
            all.push(rewriting.add_hidden(&name, panel, tensor.origin));
            let mut of = kernel.operands[*operand as usize].clone();
            of.shape[*dim] = place.width();
            kernel.operands.push(of);
        }
        let kernel = kernel.rewritten(|graph, _, mut node, dtype| {
            if let Node::Read {
                operand, positions, ..
            } = &mut node
            {
                let read = |cut: &Cut| {
                    cut.0 == *operand && graph.as_index(positions[cut.1]) == Some(self.along)
                };
                if let Some(cut) = self.cuts.iter().position(read) {
                    *operand = (operands.len() + cut) as u32;
                }
            }
            graph.add(node, dtype)
        });
        canonical::statement(kernel, &all)
    }
}

/// Where panels begin, and how wide they are.
enum Place {
    /// At that many widths times the round.
    Round(TensorId, u64),
    Fixed(u64, u64),
}

impl Place {
    fn width(&self) -> u64 {
        match self {
            Place::Round(_, width) | Place::Fixed(_, width) => *width,
        }
    }
}

/// The dimensions that an index reads, if it stands alone in each of them and nowhere else, and all of its values are inside.
fn cuts(kernel: &Kernel, index: IndexId) -> Option<Vec<Cut>> {
    let graph = &kernel.graph;
    let depends = graph.dependencies();
    let reads_it = |id: NodeId| depends[id.0 as usize] >> index.0 & 1 == 1;
    let extent = kernel.indices[index.0 as usize].extent;
    let mut cuts: Vec<Cut> = vec![];
    for (operand, positions) in graph.reads() {
        for (dim, position) in positions.iter().enumerate() {
            if !reads_it(*position) {
                continue;
            }
            let whole = kernel.operands[operand as usize].shape[dim] == extent;
            let twice = positions.iter().filter(|other| *other == position).count() > 1;
            if graph.as_index(*position) != Some(index) || !whole || twice {
                return None;
            }
            if !cuts.contains(&(operand, dim)) {
                cuts.push((operand, dim));
            }
        }
    }
    // Outside of positions an index is an argument of a function, or converted.
    let is_index = |id: NodeId| graph.as_index(id) == Some(index);
    let beside = graph.iter().any(|(_, node, _)| match node {
        Node::Apply(..) | Node::Convert(_) => node.arguments().any(is_index),
        Node::Constant(_) | Node::Index(_) | Node::Read { .. } => false,
    });
    (!cuts.is_empty() && !beside && !is_index(kernel.root)).then_some(cuts)
}

/// Bytes of an operand.
fn bytes(kernel: &Kernel, (operand, _): Cut) -> f64 {
    let operand = &kernel.operands[operand as usize];
    let elements: f64 = operand.shape.iter().map(|extent| *extent as f64).product();
    elements * operand.columns[0].size() as f64
}

/// The most values of an index in a round if there are at least so many rounds; fewer, if those divide all of them.
fn width(values: u64, rounds: u64) -> Option<u64> {
    let most = values / rounds.max(1);
    if rounds < LEAST_ROUNDS || most == 0 {
        return None;
    }
    let mut fewer = (most / 2 + 1..=most).rev().take(MOST_WIDTHS);
    let even = fewer.find(|width| values.is_multiple_of(*width));
    Some(even.unwrap_or(most))
}

/// The panel of an operand, which is the tensor `from`, along a dimension.
fn panel(kernel: &Kernel, (operand, dim): Cut, from: TensorId, place: &Place) -> Statement {
    let of = &kernel.operands[operand as usize];
    let mut shape = of.shape.clone();
    shape[dim] = place.width();
    let mut positions = numbered(shape.len());
    positions[dim] = match place {
        Place::Round(_, width) => format!("{width} * a1[] + i{dim}"),
        Place::Fixed(first, _) => format!("i{dim} + {first}"),
    };
    let (counter, operands) = match place {
        Place::Round(round, _) => (", i64[]", vec![from, *round]),
        Place::Fixed(..) => ("", vec![from]),
    };
    let (typed, indices) = (typed(of.columns[0], &of.shape), indices(&shape));
    let (dtype, positions) = (of.columns[0].name(), positions.join(", "));
    let text = format!("({typed}{counter}) {indices} {dtype} = a0[{positions}]");
    canonical::statement(named(&text, names(kernel, operand)), &operands)
}

/// The kernel of zeros.
fn zeros(dtype: DType, shape: &[u64], names: Vec<String>) -> Kernel {
    let zero = match dtype {
        DType::F32 => "0.0",
        _ => "0.0_f64",
    };
    let (indices, dtype) = (indices(shape), dtype.name());
    named(&format!("() {indices} {dtype} = {zero}"), names)
}

/// The kernel that adds two tensors.
fn both(dtype: DType, shape: &[u64], names: Vec<String>) -> Kernel {
    let (of, at) = (typed(dtype, shape), numbered(shape.len()).join(", "));
    let (indices, dtype) = (indices(shape), dtype.name());
    let text = format!("({of}, {of}) {indices} {dtype} = a0[{at}] + a1[{at}]");
    named(&text, names)
}

/// A name for each dimension of an operand: that of the index at which it is read, if it is read at one.
fn names(kernel: &Kernel, operand: u32) -> Vec<String> {
    let graph = &kernel.graph;
    let mut reads = graph.reads();
    let read = reads.find(|(of, _)| *of == operand);
    let positions = read.map_or(&[][..], |(_, positions)| positions);
    let mut names: Vec<String> = vec![];
    for position in positions {
        let index = graph.as_index(*position);
        let own = index.map(|index| kernel.indices[index.0 as usize].name.clone());
        let numbers = (names.len()..).map(|dim| format!("dim{dim}"));
        let free = own
            .into_iter()
            .chain(numbers)
            .find(|name| !names.contains(name));
        names.extend(free);
    }
    names
}

/// The kernel of a text with numbered indices, which have other names then.
fn named(text: &str, names: Vec<String>) -> Kernel {
    let mut kernel: Kernel = text.parse().expect("a kernel of numbered indices");
    for (index, name) in kernel.indices.iter_mut().zip(names) {
        index.name = name;
    }
    kernel
}

fn numbered(rank: usize) -> Vec<String> {
    (0..rank).map(|dim| format!("i{dim}")).collect()
}

fn indices(shape: &[u64]) -> String {
    let indices = numbered(shape.len()).into_iter().zip(shape);
    let indices: Vec<String> = indices.map(|(name, n)| format!("{name}: {n}")).collect();
    format!("[{}]", indices.join(", "))
}

fn typed(dtype: DType, shape: &[u64]) -> String {
    let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
    format!("{}[{}]", dtype.name(), shape.join(", "))
}
