//! Running reductions by blocks: each block by itself, then what stands before it.
//!
//! A running sum along a dimension needs all of it at every site. Cut into blocks, it is a running sum within each block, a running sum
//! of the blocks' totals, which are few, and one addition. As with any reordered sum, rounding may differ. The blocks are about as
//! many as each has elements, whatever the number of sites: those at the seams between two sites are small. Must not know sites or
//! costs: the search lays the program out beside the others.
//!
//! ```text
//! y = [i: 900 | j: 900] sum x[j] if j <= i
//! =>  y.blocks = [q: 30, r: 30 | s: 30] sum x[30 * q + s] if s <= r;  y.totals = [q: 30] y.blocks[q, 29]
//!     y.before = [q: 30 | p: 30] sum y.totals[p] if p < q;  y = [i: 900] y.before[i / 30] + y.blocks[i / 30, i % 30]
//! ```

use super::{Alternative, RuleInfo, laws, may_fault, neutral};
use crate::einsum::{Definition, Program, Rewriting, Tensor, TensorId, canonical};
use ein_plan::schedule::Scan;
use ein_plan::schedule::guard::besides;
use ein_plan::{DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Scalar};

const NAME: &str = "running-by-blocks";

/// Fewest results of a running reduction that is cut.
const LEAST: u64 = 64;

/// The rule of this family.
pub(super) fn rows() -> Vec<RuleInfo> {
    vec![RuleInfo {
        name: NAME,
        family: "running",
        paper: "classical",
        left: "y[i] = sum[j <= i] x[j]",
        right: "y[i] = sum[p < i/R] x[R*p + s] + sum[s <= i%R] x[R*(i/R) + s]",
        conditions: &[
            "the reduction has a neutral element",
            "i has as many values as j, at least 64",
            "no read may be outside",
            "more than one site",
        ],
        note: "Each of the two has a window: a site needs its own elements, and the totals before them.",
    }]
}

/// The program with the running reductions over these tables by blocks, if it has any.
pub fn expand(
    program: &Program,
    disabled: &[String],
    is_wanted: &dyn Fn(TensorId) -> bool,
) -> Option<Alternative> {
    Alternative::by_rule(program, (NAME, disabled), |rewriting, old| {
        let Definition::Statement { kernel, operands } = &old.definition else {
            return None;
        };
        let is_over = operands.iter().any(|table| is_wanted(*table));
        let blocks = Blocks::of(kernel).filter(|_| is_over)?;
        let tensor = rewriting.copy(old);
        Some(blocks.write(rewriting, tensor))
    })
}

/// The tensors that running reductions are over.
pub fn tables(program: &Program) -> Vec<TensorId> {
    let mut tables = vec![];
    for tensor in &program.tensors {
        if let Definition::Statement { kernel, operands } = &tensor.definition
            && Blocks::of(kernel).is_some()
        {
            for table in operands {
                if !tables.contains(table) {
                    tables.push(*table);
                }
            }
        }
    }
    tables
}

/// A running reduction, and how it is cut.
struct Blocks<'a> {
    kernel: &'a Kernel,
    scan: Scan,
    /// Results of a block, and how many blocks there are.
    length: u64,
    count: u64,
    /// The function that puts two parts of the reduction together.
    together: Function,
    /// The neutral element of the reduction.
    nothing: Scalar,
}

impl<'a> Blocks<'a> {
    fn of(kernel: &'a Kernel) -> Option<Blocks<'a>> {
        let scan = kernel.scanned()?;
        let extent = |index: IndexId| kernel.indices[index.0 as usize].extent;
        let results = extent(scan.output);
        let reduction = kernel.reduction?;
        let together = laws::step(reduction)?;
        let nothing = neutral(reduction, kernel.graph.dtype(kernel.root))?;
        let fits = results >= LEAST && results == extent(scan.reduced);
        if !fits || kernel.output.len() != 1 || may_fault(kernel) {
            return None;
        }
        let length = block(results);
        Some(Blocks {
            kernel,
            scan,
            length,
            count: results.div_ceil(length),
            together,
            nothing,
        })
    }

    /// Adds the statements of the blocks; returns the tensor made of them.
    fn write(&self, rewriting: &mut Rewriting, mut tensor: Tensor) -> Tensor {
        let Definition::Statement { operands, .. } = &tensor.definition else {
            return tensor;
        };
        let operands = operands.clone();
        let mut add = |what: &str, statement| {
            let name = format!("{}.{what}", tensor.name);
            rewriting.add_hidden(&name, statement, tensor.origin)
        };
        let blocks = add("blocks", canonical::statement(self.local(true), &operands));
        let totals = match self.scan.inclusive {
            true => self.last_of(blocks),
            false => canonical::statement(self.local(false), &operands),
        };
        let totals = add("totals", totals);
        let before = add("before", self.before(totals));
        let (kernel, operands) = self.whole(before, blocks);
        tensor.definition = Definition::Statement { kernel, operands };
        tensor
    }

    /// The scanned index as a block, and a place in it.
    fn in_blocks(&self) -> [(&'static str, u64); 2] {
        [("q", self.count), ("r", self.length)]
    }

    /// The scanned index as a block.
    fn in_all(&self) -> [(&'static str, u64); 1] {
        [("q", self.count)]
    }

    /// The indices of the result, those of the scanned one in the place of it.
    fn output(&self, scanned: &[(&str, u64)]) -> Vec<Index> {
        let mut output = vec![];
        for (at, index) in (0u32..).zip(&self.kernel.indices[..self.kernel.output_rank as usize]) {
            match at == self.scan.output.0 {
                false => output.push(index.clone()),
                true => output.extend(scanned.iter().map(|(name, extent)| Index {
                    name: self.free(name),
                    extent: *extent,
                })),
            }
        }
        output
    }

    /// A name that no index of the kernel has.
    fn free(&self, name: &str) -> String {
        let taken = |name: &String| self.kernel.indices.iter().any(|index| index.name == *name);
        let numbered = (1..).map(|number| format!("{name}{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| !taken(name)).unwrap_or_default()
    }

    /// The reduction within each block, for every place in it where `running`, else of all of it.
    fn local(&self, running: bool) -> Kernel {
        let mut source = Kernel {
            guard: None,
            ..self.kernel.clone()
        };
        let others = besides(self.kernel, &self.scan);
        others
            .into_iter()
            .for_each(|condition| source.restrict(condition));
        let mut indices = match running {
            true => self.output(&self.in_blocks()),
            false => self.output(&self.in_all()),
        };
        let rank = indices.len() as u32;
        let added = rank - self.kernel.output_rank;
        for (at, index) in (0u32..)
            .zip(&self.kernel.indices)
            .skip(self.kernel.output_rank as usize)
        {
            let mut index = index.clone();
            if at == self.scan.reduced.0 {
                (index.name, index.extent) = (self.free("s"), self.length);
            }
            indices.push(index);
        }
        let moved = |index: IndexId| match index.0 > self.scan.output.0 {
            true => IndexId(index.0 + added),
            false => index,
        };
        let (block, place) = (self.scan.output, IndexId(self.scan.output.0 + 1));
        let within = moved(self.scan.reduced);
        let mut local = source.rewritten(|graph, _, node, dtype| match node {
            Node::Index(index) if index == self.scan.reduced => self.element(graph, block, within),
            Node::Index(index) => graph.add(Node::Index(moved(index)), dtype),
            node => graph.add(node, dtype),
        });
        local.output = vec![local.graph.dtype(local.root)];
        (local.indices, local.output_rank) = (indices, rank);
        let graph = &mut local.graph;
        if running {
            let here = graph.add(Node::Index(within), DType::I64);
            let place = graph.add(Node::Index(place), DType::I64);
            let taken = self.taken(graph, here, place, self.scan.inclusive);
            local.restrict(taken);
        }
        let graph = &mut local.graph;
        let results = self.kernel.indices[self.scan.output.0 as usize].extent;
        if self.length * self.count > results {
            // The last block is longer than what is left. A choice holds for whole rows of points, where a guard would be asked at each.
            let element = self.element(graph, block, within);
            let end = number(graph, results);
            let inside = Node::Apply(Function::Lt, vec![element, end]);
            let inside = graph.add(inside, DType::Bool);
            let nothing = graph.add(Node::Constant(self.nothing), self.value());
            let chosen = Node::Apply(Function::Select, vec![inside, local.root, nothing]);
            local.root = graph.add(chosen, self.value());
        }
        local
    }

    /// `length * block + within`.
    fn element(&self, graph: &mut Graph, block: IndexId, within: IndexId) -> NodeId {
        let (block, within) = (
            graph.add(Node::Index(block), DType::I64),
            graph.add(Node::Index(within), DType::I64),
        );
        let length = number(graph, self.length);
        let start = graph.add(Node::Apply(Function::Mul, vec![length, block]), DType::I64);
        graph.add(Node::Apply(Function::Add, vec![start, within]), DType::I64)
    }

    /// Returns the condition under which the reduction at `result` takes in `other`.
    fn taken(&self, graph: &mut Graph, other: NodeId, result: NodeId, inclusive: bool) -> NodeId {
        let function = match (self.scan.suffix, inclusive) {
            (false, true) => Function::Le,
            (false, false) => Function::Lt,
            (true, true) => Function::Ge,
            (true, false) => Function::Gt,
        };
        graph.add(Node::Apply(function, vec![other, result]), DType::Bool)
    }

    /// The result at the last place of each block, or at the first where the reduction goes backwards.
    fn last_of(&self, blocks: TensorId) -> (Kernel, Vec<TensorId>) {
        let indices = self.output(&self.in_all());
        let mut kernel = self.over(&[&self.in_blocks()], indices);
        let last = match self.scan.suffix {
            true => 0,
            false => self.length - 1,
        };
        let graph = &mut kernel.graph;
        let block = graph.add(Node::Index(self.scan.output), DType::I64);
        let last = number(graph, last);
        kernel.root = self.read(graph, 0, &[block, last]);
        canonical::statement(kernel, &[blocks])
    }

    /// The reduction of the blocks before each one, or of those behind it.
    fn before(&self, totals: TensorId) -> (Kernel, Vec<TensorId>) {
        let mut indices = self.output(&self.in_all());
        let other = IndexId(indices.len() as u32);
        indices.push(Index {
            name: self.free("p"),
            extent: self.count,
        });
        let mut kernel = self.over(&[&self.in_all()], indices);
        kernel.reduction = self.kernel.reduction;
        let graph = &mut kernel.graph;
        let block = graph.add(Node::Index(self.scan.output), DType::I64);
        let other = graph.add(Node::Index(other), DType::I64);
        kernel.root = self.read(graph, 0, &[other]);
        let taken = self.taken(graph, other, block, false);
        kernel.restrict(taken);
        canonical::statement(kernel, &[totals])
    }

    /// The whole reduction, of what stands before each block and what is in it.
    fn whole(&self, before: TensorId, blocks: TensorId) -> (Kernel, Vec<TensorId>) {
        let indices = self.kernel.indices[..self.kernel.output_rank as usize].to_vec();
        let mut kernel = self.over(&[&self.in_all(), &self.in_blocks()], indices);
        kernel.output.clone_from(&self.kernel.output);
        let graph = &mut kernel.graph;
        let element = graph.add(Node::Index(self.scan.output), DType::I64);
        let length = number(graph, self.length);
        let block = Node::Apply(Function::FloorDiv, vec![element, length]);
        let block = graph.add(block, DType::I64);
        let place = graph.add(
            Node::Apply(Function::Rem, vec![element, length]),
            DType::I64,
        );
        let before_block = self.read(graph, 0, &[block]);
        let in_block = self.read(graph, 1, &[block, place]);
        let both = Node::Apply(self.together, vec![before_block, in_block]);
        kernel.root = graph.add(both, self.value());
        canonical::statement(kernel, &[before, blocks])
    }

    /// The type that is computed in.
    fn value(&self) -> DType {
        self.kernel.graph.dtype(self.kernel.root)
    }

    /// A kernel without a value yet, over these indices; its operands have the dimensions of the result, the scanned one in so many
    /// parts.
    fn over(&self, parts: &[&[(&str, u64)]], indices: Vec<Index>) -> Kernel {
        let operand = |scanned: &&[(&str, u64)]| {
            let dims = self.output(scanned);
            Operand {
                columns: vec![self.value()],
                shape: dims.iter().map(|index| index.extent).collect(),
            }
        };
        Kernel {
            operands: parts.iter().map(operand).collect(),
            output: vec![self.value()],
            output_rank: self.kernel.output_rank,
            indices,
            reduction: None,
            guard: None,
            finish: true,
            graph: Graph::default(),
            root: NodeId(0),
        }
    }

    /// A read at the indices of the result, and at these positions in the place of the scanned one.
    fn read(&self, graph: &mut Graph, operand: u32, scanned: &[NodeId]) -> NodeId {
        let mut positions = vec![];
        for at in 0..self.kernel.output_rank {
            match at == self.scan.output.0 {
                false => positions.push(graph.add(Node::Index(IndexId(at)), DType::I64)),
                true => positions.extend(scanned),
            }
        }
        let read = Node::Read {
            operand,
            column: 0,
            positions,
            otherwise: None,
        };
        graph.add(read, self.value())
    }
}

/// How many results a block has: about as many as there are blocks, so that all are alike if possible.
fn block(results: u64) -> u64 {
    let root = results.isqrt();
    let near = (0..root / 2).flat_map(|far| [root - far, root + far]);
    let mut even = near.filter(|length| results.is_multiple_of(*length));
    even.next().unwrap_or(root)
}

fn number(graph: &mut Graph, value: u64) -> NodeId {
    graph.add(Node::Constant(Scalar::Int(value as i64)), DType::I64)
}
