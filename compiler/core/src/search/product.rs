//! Products of many factors that a program multiplies two by two.
//!
//! A product is a tree of statements of one law (sums of products, maxima of sums, …) whose intermediates have one
//! reader and are not given out. Must not know meshes or prices.
//!
//! ```text
//! T[i, l] = sum A[i, k] * B[k, l];  y[i] = sum T[i, l] * x[l]
//! product of A[i, k], B[k, l], x[l], of which i is kept
//! ```

use crate::einsum::{Block, BlockId, Bound, Definition, Program, Tensor, TensorId};
use crate::rules::laws::{self, Law};
use crate::rules::order::{Network, Order};
use ein_plan::{DType, Index, Node};
use std::collections::HashSet;

/// Most factors, and most indices, of a product that is looked at.
const MOST: usize = 128;

/// A product of three factors or more.
#[derive(Clone, Debug)]
pub struct Product {
    /// The tensor that it makes.
    pub root: TensorId,
    /// The statements of its tree, the root last.
    pub members: Vec<TensorId>,
    /// The factors; a tensor may be there more than once.
    pub factors: Vec<Factor>,
    /// Extents of all indices, the indices of each factor, and those of the result.
    pub network: Network,
    /// The order in which the program multiplies.
    pub order: Order,
    /// The indices of the result, by dimension.
    pub dimensions: Vec<u32>,
    /// The names of the indices.
    pub names: Vec<String>,
    /// By what it is multiplied and reduced.
    pub law: &'static Law,
    /// The type that it is computed in.
    pub dtype: DType,
}

/// A factor: a tensor read by bare indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// The tensor that is read.
    pub tensor: TensorId,
    /// By dimension: the product's index.
    pub indices: Vec<u32>,
}

/// A statement that does nothing but multiply what it reads, and reduce.
struct Simple {
    /// The tensors that it reads, with its own indices.
    factors: Vec<(TensorId, Vec<u32>)>,
    law: &'static Law,
    dtype: DType,
    block: Option<BlockId>,
}

/// The products of a program, in the order of their roots.
pub fn products(program: &Program) -> Vec<Product> {
    let simple: Vec<Option<Simple>> = program.tensors.iter().map(|t| simple(program, t)).collect();
    let mut reads = vec![0usize; program.tensors.len()];
    let mut inner = vec![false; program.tensors.len()];
    for tensor in &program.tensors {
        if let Definition::Statement { kernel, operands } = &tensor.definition {
            for (operand, _) in kernel.graph.reads() {
                reads[operands[operand as usize].0 as usize] += 1;
            }
        }
    }
    let outputs = program.outputs.iter().map(|output| output.tensor);
    for id in outputs.chain(program.blocks.iter().flat_map(kept_by)) {
        reads[id.0 as usize] = usize::MAX;
    }
    let merges = |outer: &Simple, at: usize| {
        let same = |inner: &Simple| {
            let alike = inner.dtype == outer.dtype && inner.block == outer.block;
            std::ptr::eq(inner.law, outer.law) && alike
        };
        reads[at] == 1 && simple[at].as_ref().is_some_and(same)
    };
    for outer in simple.iter().flatten() {
        for (tensor, _) in &outer.factors {
            let at = tensor.0 as usize;
            inner[at] |= merges(outer, at);
        }
    }
    let mut found = vec![];
    for (at, root) in simple.iter().enumerate() {
        let Some(root) = root.as_ref().filter(|_| !inner[at]) else {
            continue;
        };
        let mut tree = Tree {
            program,
            simple: &simple,
            merges: &merges,
            product: Product {
                root: TensorId(at as u32),
                members: vec![],
                factors: vec![],
                network: Network {
                    extents: vec![],
                    factors: vec![],
                    kept: 0,
                },
                order: Order::Factor(0),
                dimensions: vec![],
                names: vec![],
                law: root.law,
                dtype: root.dtype,
            },
        };
        if tree.collect(at) && tree.product.factors.len() > 2 {
            found.push(tree.product);
        }
    }
    found
}

/// The tensors that a block reads by itself.
fn kept_by(block: &Block) -> Vec<TensorId> {
    let mut kept: Vec<TensorId> = block.until.into_iter().collect();
    if let Bound::Value(bound) = block.bound {
        kept.push(bound);
    }
    kept.extend(block.states.iter().flat_map(|s| [s.initial, s.next]));
    kept.extend(block.collected.iter().map(|c| c.value));
    kept
}

/// Returns the factors of a statement that multiplies and does nothing else.
fn simple(program: &Program, tensor: &Tensor) -> Option<Simple> {
    let Definition::Statement { kernel, operands } = &tensor.definition else {
        return None;
    };
    let graph = &kernel.graph;
    let dtype = graph.dtype(kernel.root);
    let plain = kernel.guard.is_none()
        && kernel.output == [dtype]
        && kernel.indices.iter().all(|index| index.extent > 0);
    let Node::Apply(function, _) = graph.node(kernel.root) else {
        return None;
    };
    let law = match kernel.reduction {
        Some(reduction) => laws::of_reduction(reduction, *function, dtype)?,
        // A product without a reduction belongs to the first law of its kind.
        None => laws::LAWS
            .iter()
            .find(|law| law.product == *function && law.dtypes.contains(&dtype))?,
    };
    let mut factors = vec![];
    let mut stack = vec![kernel.root];
    while let Some(id) = stack.pop() {
        match graph.node(id) {
            Node::Apply(f, arguments) if f == function => stack.extend(arguments.iter().rev()),
            Node::Read {
                operand,
                positions,
                otherwise: None,
                ..
            } => {
                let source = operands[*operand as usize];
                let shape = &program.tensor(source).shape;
                let mut indices = vec![];
                for (position, extent) in positions.iter().zip(shape) {
                    let index = graph.as_index(*position)?.0;
                    let whole = kernel.indices[index as usize].extent == *extent;
                    if !whole || indices.contains(&index) {
                        return None;
                    }
                    indices.push(index);
                }
                if program.tensor(source).dtype != dtype {
                    return None;
                }
                factors.push((source, indices));
            }
            _ => return None,
        }
    }
    let read: HashSet<u32> = factors
        .iter()
        .flat_map(|(_, i)| i.iter().copied())
        .collect();
    (plain && factors.len() > 1 && read.len() == kernel.indices.len()).then_some(Simple {
        factors,
        law,
        dtype,
        block: tensor.block,
    })
}

struct Tree<'a> {
    program: &'a Program,
    simple: &'a [Option<Simple>],
    merges: &'a dyn Fn(&Simple, usize) -> bool,
    product: Product,
}

impl Tree<'_> {
    /// Collects the tree under a root; false if it has too many indices to be looked at.
    fn collect(&mut self, root: usize) -> bool {
        let rank = self.program.tensors[root].shape.len();
        let dimensions: Option<Vec<u32>> = match &self.program.tensors[root].definition {
            Definition::Statement { kernel, .. } => {
                (0..rank).map(|d| self.index(&kernel.indices[d])).collect()
            }
            _ => None,
        };
        let Some(dimensions) = dimensions else {
            return false;
        };
        for index in &dimensions {
            self.product.network.kept |= 1 << index;
        }
        self.product.dimensions.clone_from(&dimensions);
        match self.statement(root, &dimensions) {
            Some(order) => {
                self.product.order = order;
                true
            }
            None => false,
        }
    }

    /// A new index.
    fn index(&mut self, index: &Index) -> Option<u32> {
        let number = self.product.names.len();
        if number == MOST {
            return None;
        }
        self.product.names.push(index.name.clone());
        self.product.network.extents.push(index.extent);
        Some(number as u32)
    }

    /// The tree of a statement whose output's dimensions are these indices. Trees are as deep as products are long, so
    /// nothing here calls itself.
    fn statement(&mut self, root: usize, dimensions: &[u32]) -> Option<Order> {
        enum Work {
            Visit(usize, Vec<u32>),
            Read(usize, Vec<u32>),
            Multiply(usize, usize),
        }
        let mut work = vec![Work::Visit(root, dimensions.to_vec())];
        let mut done: Vec<Order> = vec![];
        while let Some(next) = work.pop() {
            let (at, dimensions) = match next {
                Work::Visit(at, dimensions) => (at, dimensions),
                Work::Read(at, indices) => {
                    if self.product.factors.len() == MOST {
                        return None;
                    }
                    done.push(Order::Factor(self.product.factors.len()));
                    let set = indices.iter().fold(0u128, |set, i| set | 1 << i);
                    self.product.network.factors.push(set);
                    self.product.factors.push(Factor {
                        tensor: TensorId(at as u32),
                        indices,
                    });
                    continue;
                }
                Work::Multiply(at, count) => {
                    let parts = done.split_off(done.len() - count);
                    let whole = parts
                        .into_iter()
                        .reduce(|a, b| Order::Pair(Box::new(a), Box::new(b)))?;
                    done.push(whole);
                    self.product.members.push(TensorId(at as u32));
                    continue;
                }
            };
            let simple = self.simple[at].as_ref()?;
            let Definition::Statement { kernel, .. } = &self.program.tensors[at].definition else {
                return None;
            };
            let mut own = dimensions;
            for index in kernel.indices.iter().skip(own.len()) {
                own.push(self.index(index)?);
            }
            work.push(Work::Multiply(at, simple.factors.len()));
            // What is pushed last is done first.
            for (tensor, indices) in simple.factors.iter().rev() {
                let indices: Vec<u32> = indices.iter().map(|i| own[*i as usize]).collect();
                let at = tensor.0 as usize;
                work.push(match (self.merges)(simple, at) {
                    true => Work::Visit(at, indices),
                    false => Work::Read(at, indices),
                });
            }
        }
        done.pop()
    }
}
