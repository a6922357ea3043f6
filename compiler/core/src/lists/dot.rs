//! Sums of products of two lists along one index, one for each place: rows of one list meet rows of the other.
//!
//! A list's rows along either dimension are where each ends, its positions and its values; by columns, the list is sorted once. Must not know
//! how a statement comes to go over a list.
//!
//! ```text
//! t.place: f32[5] = [e: 5 | k: 8] sum A[A.at1[e], k] * A[k, A.at0[e]]            with 5 elements of A: f32[8, 8] listed
//!
//! A.count: i64[8] = [x: 8 | f: 5] sum 1 if x == A.at0[f]
//! A.ends: i64[8] = [x: 8 | y: 8] sum A.count[y] if y <= x
//! A.order: i64[5] = [f: 5] argsort(A.at1[:1], f)
//! A.along: u32[5] = [f: 5] A.at0[A.order[f]]
//! A.terms: f32[5] = [f: 5] A.values[A.order[f]]
//! t.place: f32[5] = [e: 5] listed_dot(A.ends[:1], A.at1[:1], A.values[:1], A.ends1[:1], A.along[:1], A.terms[:1], A.at1[e], A.at0[e], 8)
//! ```

mod products;
mod sides;

use self::sides::{Dot, Side};
use super::statement::{OverList, both};
use super::{Lists, PatternId, fill, written};
use crate::einsum::canonical::statement;
use crate::einsum::{Statement, TensorId};
use crate::rules::renamed;
use ein_plan::library::{is_summed, whole};
use ein_plan::source::position_type;
use ein_plan::{DType, Function, Index, IndexId, Kernel, Node, NodeId, Origin, Reduction, Scalar};

/// Positions that a row may have, at most: where each stands in the row is written down.
const MOST_POSITIONS: u64 = u32::MAX as u64;

/// An operation, its arguments (those that are read at indices, with these), how many positions there are, and the indices of its result.
type Call<'a> = (
    Function,
    &'a [(TensorId, Option<&'a [IndexId]>)],
    Option<u64>,
    &'a [IndexId],
);

impl Lists {
    /// A sum of products of rows of two lists by way of what both list; `None` if it is none.
    pub(super) fn dotted(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
    ) -> Option<(Kernel, Vec<TensorId>)> {
        let rank = kernel.output_rank as usize;
        let dtype = kernel.graph.dtype(kernel.root);
        let is_sum = kernel.reduction == Some(Reduction::Sum)
            && (kernel.guard.is_none() && kernel.finish && kernel.output == [dtype]);
        if !is_sum || kernel.indices.len() != rank + 1 || rank > 126 || !is_summed(dtype) {
            return None;
        }
        let positions = kernel.indices[rank].extent;
        if positions >= MOST_POSITIONS {
            return None;
        }
        let Dot {
            sides,
            fixed,
            conditions,
        } = self.dot(kernel, operands, IndexId(rank as u32))?;
        let mut arguments: Vec<TensorId> = vec![];
        for side in &sides {
            let [ends, along] = self.rows(side, origin);
            let along = self.kept(side, along, (kernel, operands), origin);
            arguments.extend([
                ends,
                along,
                self.values_of_rows(side, kernel, operands, origin),
            ]);
        }
        let mut rows = vec![];
        for side in &sides {
            rows.push(self.row_numbers((name, origin), kernel, operands, side.row)?);
        }
        let call = self.call(
            &kernel.indices[..rank],
            dtype,
            (&arguments, &rows),
            positions,
        );
        let beside = (&fixed[..], &conditions[..]);
        Some(self.with_factors((name, "dot", origin), (kernel, operands), call, beside))
    }

    /// A call's results multiplied with factors that depend on the output alone, and 0 where a condition does not hold.
    fn with_factors(
        &mut self,
        (name, part, origin): (&str, &str, Origin),
        (kernel, operands): (&Kernel, &[TensorId]),
        call: Statement,
        (fixed, conditions): (&[NodeId], &[NodeId]),
    ) -> Statement {
        if fixed.is_empty() && conditions.is_empty() {
            return call;
        }
        let rank = kernel.output_rank as usize;
        let dtype = kernel.output[0];
        let results = self.made(&format!("{name}.{part}"), call, origin);
        let indices = kernel.indices[..rank].to_vec();
        let shape = indices.iter().map(|index| index.extent).collect();
        let mut over = OverList {
            kernel: Kernel {
                indices,
                reduction: None,
                ..kernel.clone()
            },
            operands: operands.to_vec(),
            entry: IndexId(0),
        };
        let at = (0..rank as u32).map(|index| over.index(IndexId(index)));
        let at = at.collect();
        let mut root = over.read_at((results, dtype, shape), at, None);
        for factor in fixed {
            let product = Node::Apply(Function::Mul, vec![*factor, root]);
            root = over.kernel.graph.add(product, dtype);
        }
        let graph = &mut over.kernel.graph;
        let holds = (conditions.iter()).fold(None, |all, id| Some(both(graph, all, *id)));
        if let Some(holds) = holds {
            let zero = graph.add(Node::Constant(fill::zero(dtype)), dtype);
            root = graph.add(
                Node::Apply(Function::Select, vec![holds, root, zero]),
                dtype,
            );
        }
        over.kernel.root = root;
        statement(over.kernel, &over.operands)
    }

    /// Where the rows of a side end in its list, and its positions by row.
    fn rows(&mut self, side: &Side, origin: Origin) -> [TensorId; 2] {
        let pattern = self.pattern(side.pattern);
        let (count, by) = (pattern.count, 1 - side.along);
        let (rows, name) = (pattern.shape[by], self.name_of(side.pattern));
        let [of_row, of_along] = [by, side.along].map(|dim| pattern.position_type(dim).name());
        let (numbers, along) = (pattern.positions[by], pattern.positions[side.along]);
        let ends = match self.starts(side.pattern, by) {
            Some(starts) => {
                let stored = position_type(count + 1).name();
                let ends = written(&format!(
                    "({stored}[{}]) [x: {rows}] i64 = a0[x + 1]",
                    rows + 1
                ));
                statement(ends, &[starts])
            }
            None => {
                let counts = written(&format!(
                    "({of_row}[{count}]) [x: {rows} | f: {count}] i64 = sum 1 if x == a0[f]"
                ));
                let counts = statement(counts, &[numbers]);
                let counts = self.made(&format!("{name}.count"), counts, origin);
                let ends = written(&format!(
                    "(i64[{rows}]) [x: {rows} | y: {rows}] i64 = sum a0[y] if y <= x"
                ));
                statement(ends, &[counts])
            }
        };
        let ends = self.made(&format!("{name}.ends"), ends, origin);
        let along = match self.order(side, origin) {
            None => along,
            Some(order) => {
                let sorted = written(&format!(
                    "({of_along}[{count}], i64[{count}]) [f: {count}] {of_along} = a0[a1[f]]"
                ));
                let sorted = statement(sorted, &[along, order]);
                self.made(&format!("{name}.along"), sorted, origin)
            }
        };
        [ends, along]
    }

    /// Where each row starts in the list of an input, if that is in the order of its rows.
    fn starts(&mut self, pattern: PatternId, by: usize) -> Option<TensorId> {
        if let Some(known) = self.starts.get(&pattern) {
            return (by == 0).then_some(*known);
        }
        let own = self.pattern(pattern);
        own.listing.as_ref().filter(|_| by == 0)?;
        let numbers = self.rewriting.result().tensor(own.positions[0]);
        let starts = super::starts::of_column(numbers, own.shape[0])?;
        let starts = self.rewriting.add(starts);
        self.starts.insert(pattern, starts);
        Some(starts)
    }

    /// The places of a side's list by row, where that is another order than its own.
    fn order(&mut self, side: &Side, origin: Origin) -> Option<TensorId> {
        let pattern = self.pattern(side.pattern);
        let (count, by) = (pattern.count, 1 - side.along);
        let numbers = pattern.positions[by];
        let of_row = pattern.position_type(by).name();
        let order = written(&format!(
            "({of_row}[{count}]) [f: {count}] i64 = argsort(a0[:1], f)"
        ));
        let name = format!("{}.order", self.name_of(side.pattern));
        (by != 0).then(|| self.made(&name, statement(order, &[numbers]), origin))
    }

    /// A statement that is still to be written, with an element for each of a side's list by row, and the place of that in the list.
    fn by_row(&mut self, side: &Side, dtype: DType, origin: Origin) -> (OverList, NodeId) {
        let order = self.order(side, origin);
        let count = self.pattern(side.pattern).count;
        let mut over = OverList::vector("f", count, dtype);
        let place = match order {
            Some(order) => over.read(order, DType::I64, vec![count], vec![], None),
            None => over.index(IndexId(0)),
        };
        (over, place)
    }

    /// The product of the factors of a side at each place of its list, by row.
    fn values_of_rows(
        &mut self,
        side: &Side,
        kernel: &Kernel,
        operands: &[TensorId],
        origin: Origin,
    ) -> TensorId {
        let count = self.pattern(side.pattern).count;
        let dtype = kernel.output[0];
        if let ([(read, values)], [factor]) = (&side.reads[..], &side.factors[..])
            && (read == factor && side.weights.is_empty())
            && self.order(side, origin).is_none()
        {
            return *values;
        }
        let (mut over, place) = self.by_row(side, dtype, origin);
        let mut values = vec![];
        for (read, tensor) in &side.reads {
            let stored = self.rewriting.result().tensor(*tensor).dtype;
            let at = (*tensor, stored, vec![count]);
            values.push((*read, over.read_at(at, vec![place], None)));
        }
        let pattern = self.pattern(side.pattern);
        let stored = pattern.position_type(side.summed);
        let positions = (pattern.positions[side.summed], stored, vec![count]);
        let position = over.read_at(positions, vec![place], None);
        let summed = IndexId(kernel.output_rank);
        let moved = over.moved((kernel, operands), |id, node| match node {
            Node::Index(index) if *index == summed => Some(position),
            _ => {
                let value = values.iter().find(|(read, _)| *read == id);
                value.map(|(_, value)| *value)
            }
        });
        let graph = &mut over.kernel.graph;
        let factors = side.factors.iter().chain(&side.weights);
        let factors = factors.map(|id| moved[id.0 as usize]);
        let product = |a, b| graph.add(Node::Apply(Function::Mul, vec![a, b]), dtype);
        if let Some(root) = factors.reduce(product) {
            over.kernel.root = root;
        }
        let name = format!("{}.terms", self.name_of(side.pattern));
        let over = statement(over.kernel, &over.operands);
        self.made(&name, over, origin)
    }

    /// The positions of a side's list, by row, of which those that break a condition are beyond all others: no row has them.
    fn kept(
        &mut self,
        side: &Side,
        along: TensorId,
        (kernel, operands): (&Kernel, &[TensorId]),
        origin: Origin,
    ) -> TensorId {
        if side.conditions.is_empty() {
            return along;
        }
        let (pattern, by) = (self.pattern(side.pattern), 1 - side.along);
        let (count, stored) = (pattern.count, pattern.position_type(side.along));
        let (mut over, place) = self.by_row(side, stored, origin);
        let pattern = self.pattern(side.pattern);
        let numbers = (
            pattern.positions[by],
            pattern.position_type(by),
            vec![count],
        );
        let row = over.read_at(numbers, vec![place], None);
        let position = over.read(along, stored, vec![count], vec![], None);
        let summed = IndexId(kernel.output_rank);
        let moved = over.moved((kernel, operands), |id, node| match node {
            _ if id == side.row => Some(row),
            Node::Index(index) if *index == summed => Some(position),
            _ => None,
        });
        let graph = &mut over.kernel.graph;
        let conditions = side.conditions.iter().map(|id| moved[id.0 as usize]);
        let holds = conditions.fold(None, |all, id| Some(both(graph, all, id)));
        let beyond = kernel.indices[summed.0 as usize].extent;
        let beyond = Node::Constant(Scalar::Int(i64::try_from(beyond).unwrap_or(i64::MAX)));
        let beyond = graph.add(beyond, DType::I64);
        over.kernel.root = match holds {
            Some(holds) => graph.add(
                Node::Apply(Function::Select, vec![holds, position, beyond]),
                DType::I64,
            ),
            None => position,
        };
        let name = format!("{}.kept", self.name_of(side.pattern));
        let over = statement(over.kernel, &over.operands);
        self.made(&name, over, origin)
    }

    /// The tensor of a row's numbers, and the indices at which it is read.
    fn row_numbers(
        &mut self,
        (name, origin): (&str, Origin),
        kernel: &Kernel,
        operands: &[TensorId],
        row: NodeId,
    ) -> Option<(TensorId, Vec<IndexId>)> {
        if let Node::Read {
            operand,
            column: 0,
            positions,
            otherwise: None,
        } = kernel.graph.node(row)
            && kernel.operands[*operand as usize].columns[0].compute() == DType::I64
        {
            let indices: Option<Vec<IndexId>> =
                (positions.iter().map(|at| kernel.graph.as_index(*at))).collect();
            let shape = &kernel.operands[*operand as usize].shape;
            let is_whole = |indices: &Vec<IndexId>| {
                let mut extents = indices.iter().zip(shape);
                let differ = (1..indices.len()).all(|at| !indices[..at].contains(&indices[at]));
                differ && extents.all(|(i, extent)| kernel.indices[i.0 as usize].extent == *extent)
            };
            if let Some(indices) = indices.filter(is_whole) {
                return Some((operands[*operand as usize], indices));
            }
        }
        let depends = kernel.graph.dependencies()[row.0 as usize];
        let indices: Vec<IndexId> = (0..kernel.output_rank)
            .filter(|index| depends >> index & 1 == 1)
            .map(IndexId)
            .collect();
        if indices.is_empty() {
            return None;
        }
        let own = |index: &IndexId| kernel.indices[index.0 as usize].clone();
        let numbers = Kernel {
            indices: indices.iter().map(own).collect(),
            output_rank: indices.len() as u32,
            root: row,
            reduction: None,
            output: vec![DType::I64],
            ..kernel.clone()
        };
        let numbers = renamed(numbers.canonical(), &|index| {
            let at = indices.iter().position(|own| *own == index);
            IndexId(at.map_or(index.0, |at| at as u32))
        });
        let numbers = statement(numbers, operands);
        Some((self.made(&format!("{name}.row"), numbers, origin), indices))
    }

    /// The call for each point of these indices.
    fn call(
        &self,
        indices: &[Index],
        dtype: DType,
        (lists, rows): (&[TensorId], &[(TensorId, Vec<IndexId>)]),
        positions: u64,
    ) -> Statement {
        let lists = lists.iter().map(|list| (*list, None));
        let rows = rows.iter().map(|(rows, at)| (*rows, Some(&at[..])));
        let arguments: Vec<_> = lists.chain(rows).collect();
        let call = (
            Function::ListedDot,
            &arguments[..],
            Some(positions),
            &[][..],
        );
        self.call_of(indices, dtype, call)
    }

    /// The call of an operation on lists: each argument is read whole or at indices; some indices are those of the result.
    fn call_of(
        &self,
        indices: &[Index],
        dtype: DType,
        (operation, arguments, positions, own): Call<'_>,
    ) -> Statement {
        let rank = indices.len() as u32;
        let mut over = OverList::new(indices.to_vec(), rank, dtype, IndexId(0));
        let whole = whole(&mut over.kernel.graph, 1);
        let mut nodes = vec![];
        for (tensor, at) in arguments {
            let read = self.rewriting.result().tensor(*tensor);
            let positions = match at {
                None => vec![whole],
                Some(at) => at.iter().map(|index| over.index(*index)).collect(),
            };
            let of = (*tensor, read.dtype, read.shape.clone());
            nodes.push(over.read_at(of, positions, None));
        }
        if let Some(positions) = positions {
            let positions = Scalar::Int(i64::try_from(positions).unwrap_or(i64::MAX));
            nodes.push(over.kernel.graph.add(Node::Constant(positions), DType::I64));
        }
        nodes.extend(own.iter().map(|index| over.index(*index)));
        let graph = &mut over.kernel.graph;
        over.kernel.root = graph.add(Node::Apply(operation, nodes), dtype);
        statement(over.kernel, &over.operands)
    }

    /// The name of the input whose places a pattern has.
    fn name_of(&self, pattern: PatternId) -> String {
        let tensor = self.pattern(pattern).tensor;
        self.rewriting.result().tensor(tensor).name.clone()
    }
}

impl OverList {
    /// Takes over the nodes of another statement, some of them by way of others.
    fn moved(
        &mut self,
        (kernel, operands): (&Kernel, &[TensorId]),
        instead: impl Fn(NodeId, &Node) -> Option<NodeId>,
    ) -> Vec<NodeId> {
        let first = self.operands.len() as u32;
        self.operands.extend(operands);
        (self.kernel.operands).extend(kernel.operands.iter().cloned());
        let graph = &mut self.kernel.graph;
        graph.append(&kernel.graph, |graph, id, mut node, dtype| {
            if let Some(instead) = instead(id, kernel.graph.node(id)) {
                return instead;
            }
            if let Node::Read { operand, .. } = &mut node {
                *operand += first;
            }
            graph.add(node, dtype)
        })
    }
}
