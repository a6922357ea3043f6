//! Tensors of which few rows are not 0, and what changes no other row.
//!
//! A sum whose points data send to rows is 0 in all rows that data do not name. It is computed in those rows alone, and so is what reads it: a
//! tensor that is 0 in all other rows, a reduction that these do not change, and a tensor that is another one in all other rows, of which the
//! named rows alone are written. So the step of an embedding takes as long as its batch has rows, if the optimizer's rule leaves a param alone
//! where the gradient is 0. Must not know trainings, nor how a tensor is changed in place.
//!
//! ```text
//! grad: f32[9000, 4] = [i: 9000, h: 4 | n: 5] sum g[n, h] if i == tok[n]
//! W_next: f32[9000, 4] = [i: 9000, h: 4] W[i, h] - 0.1 * grad[i, h]
//!
//! grad.row: i64[5] = [e: 5] tok[e]
//! grad.last: i64[9000] = [i: 9000 | e: 5] max e if i == grad.row[e]              by row: the last of its points
//! grad.of: i64[5] = [e: 5] (grad.last[grad.row[e]] else -1)                      by point: the last one of its row
//! grad.rows: f32[5, 4] = [e: 5, h: 4 | n: 5] sum g[n, h] if e == grad.of[n]
//! W_next.rows: f32[5, 4] = [e: 5, h: 4] (W[grad.row[e], h] else 0.0) - 0.1 * grad.rows[e, h]
//! W_next: f32[9000, 4] = [i: 9000, h: 4] (W_next.rows[grad.last[i], h] else W[i, h])
//! ```

mod changed;
mod together;

use super::statement::OverList;
use crate::einsum::canonical::statement;
use crate::einsum::{Definition, Program, Rewriting, Tensor, TensorId};
use crate::rules::conditions::guarded;
use crate::rules::{free_index, may_fault_in};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Reduction, Scalar};
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Rows are computed by themselves if the tensor has at least so many for each point: both ways read and write each row that they look at a few
/// times.
const FEW: u64 = 4;
/// Most indices of a statement that is looked at.
const MOST_INDICES: usize = 16;
/// Fewest elements of a tensor whose rows are worth steps of their own.
pub const LEAST: u64 = 1 << 16;

/// Returns the program in which tensors of at least so many elements that few points touch are computed row by row, where nothing needs the
/// others.
#[must_use]
pub fn with_touched_rows(program: &Program, least: u64) -> Program {
    let mut excluded = BTreeSet::new();
    loop {
        let mut touched = TouchedRows {
            rewriting: Rewriting::of(program),
            least,
            patterns: vec![],
            known: HashMap::new(),
            moved: BTreeMap::new(),
            tensors: BTreeMap::new(),
        };
        let sums = touched.rewrite(program, &excluded);
        if sums.is_empty() {
            return program.clone();
        }
        let rewritten = touched.rewriting.finish().needed();
        let is_left = |sum: &TensorId| {
            let name = &program.tensor(*sum).name;
            rewritten.tensors.iter().any(|tensor| tensor.name == *name)
        };
        // A sum that something needs whole is not computed a second time.
        let left: Vec<TensorId> = sums.into_iter().filter(is_left).collect();
        if left.is_empty() {
            return (rewritten.arranged())
                .expect("a statement over rows reads what the statement in its place reads");
        }
        excluded.extend(left);
    }
}

/// The number of a [`Pattern`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PatternId(usize);

/// The rows that the points of a sum touch.
struct Pattern {
    /// How many points there are.
    count: u64,
    /// How many rows.
    rows: u64,
    /// By point: its row, which may be outside.
    row: TensorId,
    /// By row: the last of its points, which stands for it; for a row that is not touched a number that no point has.
    last: TensorId,
    /// By point: the one that stands for its row; -1 if the row is outside.
    of: TensorId,
    /// Itself and the patterns whose points are among its own, each with the number of the first one.
    parts: Vec<(PatternId, u64)>,
}

/// A tensor that is 0 in every row that is not touched.
#[derive(Clone, Copy)]
struct Touched {
    pattern: PatternId,
    /// The dimension that counts the rows.
    dim: usize,
    /// The tensor with points in the stead of rows; 0 for a point that stands for no row.
    values: TensorId,
}

/// A tensor with its statement.
type Statement<'t> = (&'t Tensor, &'t Kernel, &'t [TensorId]);

/// A program on its way to one over touched rows.
struct TouchedRows {
    rewriting: Rewriting,
    least: u64,
    patterns: Vec<Pattern>,
    /// Patterns by the statement of their rows, and how many rows there are.
    known: HashMap<(Kernel, Vec<TensorId>, u64), PatternId>,
    /// Values of touched tensors, by those at the points of their own pattern and the pattern by whose points they are.
    moved: BTreeMap<(TensorId, PatternId), TensorId>,
    /// By tensor of the new program.
    tensors: BTreeMap<TensorId, Touched>,
}

impl TouchedRows {
    /// Writes the new program. Returns the sums of the old one that touch few rows.
    fn rewrite(&mut self, program: &Program, excluded: &BTreeSet<TensorId>) -> Vec<TensorId> {
        let mut sums = vec![];
        for (old, tensor) in (0..).map(TensorId).zip(&program.tensors) {
            let mut tensor = self.rewriting.copy(tensor);
            let mut touched = None;
            if let Definition::Statement { kernel, operands } = &tensor.definition {
                let about = (&tensor, kernel, &operands[..]);
                match self.changed(about) {
                    Some(changed) => {
                        let (kernel, operands) = changed.statement;
                        touched = changed.touched;
                        tensor.definition = Definition::Statement { kernel, operands };
                    }
                    None if excluded.contains(&old) => {}
                    None => {
                        touched = self.sum(about);
                        sums.extend(touched.map(|_| old));
                    }
                }
            }
            let id = self.rewriting.place(old, tensor);
            self.tensors.extend(touched.map(|touched| (id, touched)));
        }
        sums
    }

    /// The rows of a sum whose points data send to rows, if they are few.
    fn sum(&mut self, about: Statement<'_>) -> Option<Touched> {
        let (tensor, kernel, operands) = about;
        let guarded = guarded(kernel);
        let kernel = guarded.as_ref().unwrap_or(kernel);
        let sent = Sent::of(kernel)?;
        let extent = |index: IndexId| kernel.indices[index.0 as usize].extent;
        let outputs = (0..kernel.output_rank).map(IndexId);
        let elements = outputs.fold(1u64, |n, index| n.saturating_mul(extent(index)));
        let count = product(kernel, &sent.points);
        let few = count > 0 && count.saturating_mul(FEW) <= extent(sent.index);
        if !few || elements < self.least {
            return None;
        }
        let pattern = self.pattern((tensor, kernel, operands), &sent);

        // The sum over the points of a row stands where the point that stands for it does.
        let &Pattern { count, row, of, .. } = &self.patterns[pattern.0];
        let mut over = over_points(kernel, operands, (sent.index, count));
        let point = number_of_point(&mut over, &sent.points);
        let mut at_point =
            |tensor| over.read_at((tensor, DType::I64, vec![count]), vec![point], None);
        let (row, of) = (at_point(row), at_point(of));
        let graph = &mut over.kernel.graph;
        let moved = graph.append(&kernel.graph, |graph, _, node, dtype| match node {
            Node::Index(own) if own == sent.index => row,
            node => graph.add(node, dtype),
        });
        let own = graph.add(Node::Index(sent.index), DType::I64);
        let mut guard = graph.add(Node::Apply(Function::Eq, vec![own, of]), DType::Bool);
        for other in sent.others {
            let other = moved[other.0 as usize];
            guard = graph.add(Node::Apply(Function::And, vec![guard, other]), DType::Bool);
        }
        over.kernel.guard = Some(guard);
        over.kernel.root = moved[kernel.root.0 as usize];
        Some(Touched {
            pattern,
            dim: sent.index.0 as usize,
            values: self.hidden(tensor, "rows", over),
        })
    }

    /// The pattern of the rows to which data send the points of a sum.
    fn pattern(&mut self, (tensor, kernel, operands): Statement<'_>, sent: &Sent) -> PatternId {
        let count = product(kernel, &sent.points);
        let rows = kernel.indices[sent.index.0 as usize].extent;
        let row = row_of_point((kernel, operands), sent);
        self.pattern_of(tensor, row, (count, rows), vec![])
    }

    /// The pattern of points whose rows a statement gives, and which are those of these parts.
    fn pattern_of(
        &mut self,
        tensor: &Tensor,
        row: OverList,
        (count, rows): (u64, u64),
        mut parts: Vec<(PatternId, u64)>,
    ) -> PatternId {
        let key = (row.kernel.clone(), row.operands.clone(), rows);
        if let Some(known) = self.known.get(&key) {
            return *known;
        }
        let row = self.hidden(tensor, "row", row);

        let mut last = OverList::vector("i", rows, DType::I64);
        last.kernel.indices.push(Index {
            name: "e".to_owned(),
            extent: count,
        });
        last.kernel.reduction = Some(Reduction::Max);
        let [index, point] = [0, 1].map(|at| last.index(IndexId(at)));
        let at = last.read_at((row, DType::I64, vec![count]), vec![point], None);
        let equal = Node::Apply(Function::Eq, vec![index, at]);
        last.kernel.guard = Some(last.kernel.graph.add(equal, DType::Bool));
        last.kernel.root = point;
        let last = self.hidden(tensor, "last", last);

        let mut of = OverList::vector("e", count, DType::I64);
        let point = of.index(IndexId(0));
        let at = of.read_at((row, DType::I64, vec![count]), vec![point], None);
        let none = of.constant(Scalar::Int(-1), DType::I64);
        of.kernel.root = of.read_at((last, DType::I64, vec![rows]), vec![at], Some(none));
        let of = self.hidden(tensor, "of", of);

        let id = PatternId(self.patterns.len());
        parts.push((id, 0));
        self.patterns.push(Pattern {
            count,
            rows,
            row,
            last,
            of,
            parts,
        });
        self.known.insert(key, id);
        id
    }

    /// A statement that no user sees.
    fn hidden(&mut self, tensor: &Tensor, part: &str, over: OverList) -> TensorId {
        let over = statement(over.kernel, &over.operands);
        let name = format!("{}.{part}", tensor.name);
        self.rewriting.add_hidden(&name, over, tensor.origin)
    }
}

/// How data send the points of a sum to rows.
pub(super) struct Sent {
    /// The index of the output that counts the rows.
    pub index: IndexId,
    /// The row of a point.
    pub row: NodeId,
    /// The indices on which the row depends.
    pub points: Vec<IndexId>,
    /// The other conditions on a point.
    others: Vec<NodeId>,
}

impl Sent {
    /// Finds the index of the output that is compared with a number that data name.
    pub fn of(kernel: &Kernel) -> Option<Sent> {
        let outputs = kernel.output_rank;
        let is_sum = kernel.reduction == Some(Reduction::Sum) && kernel.finish;
        if !is_sum || kernel.indices.len() > MOST_INDICES {
            return None;
        }
        let depends = kernel.graph.dependencies();
        let all = conjuncts(&kernel.graph, kernel.guard?);
        let find = |part: &NodeId| {
            let Node::Apply(Function::Eq, sides) = kernel.graph.node(*part) else {
                return None;
            };
            let sent = |index: NodeId, row: NodeId| {
                let index = kernel.graph.as_index(index)?;
                let by = depends[row.0 as usize];
                let is_sent = index.0 < outputs
                    && by != 0
                    && by.trailing_zeros() >= outputs
                    && kernel.graph.as_affine(row).is_none()
                    && !may_fault_in(kernel, row);
                is_sent.then_some((index, row))
            };
            sent(sides[0], sides[1]).or_else(|| sent(sides[1], sides[0]))
        };
        let (at, (index, row)) =
            (all.iter().enumerate()).find_map(|(at, part)| Some((at, find(part)?)))?;
        let reduced = (outputs..kernel.indices.len() as u32).map(IndexId);
        let by = depends[row.0 as usize];
        let mut others = all;
        others.remove(at);
        Some(Sent {
            index,
            row,
            points: reduced.filter(|index| by >> index.0 & 1 == 1).collect(),
            others,
        })
    }

    /// The indices of a point from its number in row-major order, as nodes of another statement.
    pub fn places(
        &self,
        kernel: &Kernel,
        over: &mut OverList,
        number: NodeId,
    ) -> BTreeMap<IndexId, NodeId> {
        let mut places = BTreeMap::new();
        let mut inner = 1;
        for point in self.points.iter().rev() {
            let extent = kernel.indices[point.0 as usize].extent as i64;
            let mut place = number;
            if inner > 1 {
                place = over.apply(Function::FloorDiv, place, inner);
            }
            if *point != self.points[0] {
                place = over.apply(Function::Rem, place, extent);
            }
            places.insert(*point, place);
            inner *= extent;
        }
        places
    }
}

/// How many points some indices have.
pub(super) fn product(kernel: &Kernel, indices: &[IndexId]) -> u64 {
    let extents = indices
        .iter()
        .map(|index| kernel.indices[index.0 as usize].extent);
    extents.fold(1, u64::saturating_mul)
}

/// A statement that is still to be written, with one of its indices counting points.
fn over_points(kernel: &Kernel, operands: &[TensorId], (index, count): (IndexId, u64)) -> OverList {
    let mut indices = kernel.indices.clone();
    indices[index.0 as usize] = Index {
        name: free_index(&kernel.indices),
        extent: count,
    };
    OverList {
        kernel: Kernel {
            indices,
            graph: Graph::default(),
            guard: None,
            ..kernel.clone()
        },
        operands: operands.to_vec(),
        entry: index,
    }
}

/// The number of a point of which some indices are known, the last one running fastest.
fn number_of_point(over: &mut OverList, points: &[IndexId]) -> NodeId {
    let mut number: Option<NodeId> = None;
    for point in points {
        let extent = over.kernel.indices[point.0 as usize].extent;
        let own = over.index(*point);
        number = Some(match number {
            None => own,
            Some(outer) => {
                let outer = over.apply(Function::Mul, outer, extent as i64);
                let sum = Node::Apply(Function::Add, vec![outer, own]);
                over.kernel.graph.add(sum, DType::I64)
            }
        });
    }
    number.expect("the row of a point depends on an index")
}

/// By point: the row to which data send it.
pub(super) fn row_of_point((kernel, operands): (&Kernel, &[TensorId]), sent: &Sent) -> OverList {
    let mut row = OverList::vector("e", product(kernel, &sent.points), DType::I64);
    row.operands = operands.to_vec();
    row.kernel.operands.clone_from(&kernel.operands);
    let number = row.index(IndexId(0));
    let places = sent.places(kernel, &mut row, number);
    row.kernel.root = row.part(kernel, sent.row, |index| places.get(&index).copied());
    let (kernel, operands) = statement(row.kernel, &row.operands);
    OverList {
        kernel,
        operands,
        ..row
    }
}
