//! Products of many factors that a program multiplies two by two, and the same programs with them multiplied in another
//! order.
//!
//! A product is a tree of statements of one law (sums of products, maxima of sums, …) whose intermediates have one
//! reader and are not given out. Must not know meshes or prices.
//!
//! ```text
//! T[i, l] = sum A[i, k] * B[k, l];  y[i] = sum T[i, l] * x[l]
//! product of A[i, k], B[k, l], x[l] kept i; as (A (B x)):  y.1[k] = sum B[k, l] * x[l];  y[i] = sum A[i, k] * y.1[k]
//! ```

use crate::einsum::{Definition, Program, Role, Tensor, TensorId, canonical};
use crate::rules::laws::{self, Law};
use crate::rules::order::{Network, Order};
use ein_plan::{DType, Graph, Index, IndexId, Kernel, Node, NodeId, Operand};
use std::collections::{HashMap, HashSet};

/// Most factors, and most indices, of a product that is looked at.
const MOST: usize = 128;

/// A product of three factors or more.
#[derive(Clone, Debug)]
pub struct Product {
    /// The tensor that it makes.
    pub root: TensorId,
    /// The statements of its tree, the root last.
    pub members: Vec<TensorId>,
    /// What is multiplied; a tensor may be there more than once.
    pub factors: Vec<Factor>,
    /// Extents of all indices, the indices of each factor, and those of the result.
    pub network: Network,
    /// The order in which the program multiplies.
    pub order: Order,
    dimensions: Vec<u32>,
    names: Vec<String>,
    law: &'static Law,
    dtype: DType,
}

/// A factor: a tensor read by bare indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Factor {
    /// What is read.
    pub tensor: TensorId,
    /// By dimension: the product's index.
    pub indices: Vec<u32>,
}

/// A statement that does nothing but multiply what it reads, and reduce.
struct Simple {
    /// What it reads, with its own indices.
    factors: Vec<(TensorId, Vec<u32>)>,
    law: &'static Law,
    dtype: DType,
}

/// The products of a program, in the order of their roots.
pub fn products(program: &Program) -> Vec<Product> {
    let simple: Vec<Option<Simple>> = program.tensors.iter().map(|t| simple(program, t)).collect();
    let mut reads = vec![0usize; program.tensors.len()];
    let mut inner = vec![false; program.tensors.len()];
    for tensor in &program.tensors {
        if let Definition::Statement { kernel, operands } = &tensor.definition {
            for (_, node, _) in kernel.graph.iter() {
                if let Node::Read { operand, .. } = node {
                    reads[operands[*operand as usize].0 as usize] += 1;
                }
            }
        }
    }
    for output in &program.outputs {
        reads[output.tensor.0 as usize] = usize::MAX;
    }
    let merges = |outer: &Simple, at: usize| {
        let same =
            |inner: &Simple| std::ptr::eq(inner.law, outer.law) && inner.dtype == outer.dtype;
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

/// What a statement multiplies, if it does nothing else.
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
            Definition::Source(_) => None,
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

impl Product {
    /// The indices of the result, by dimension.
    pub fn dimensions(&self) -> &[u32] {
        &self.dimensions
    }

    /// The program that multiplies in another order.
    pub fn reordered(&self, program: &Program, order: &Order) -> Program {
        let mut build = Build {
            product: self,
            program,
            root: program.tensor(self.root),
            made: vec![],
            taken: program.tensors.iter().map(|t| t.name.as_str()).collect(),
            next: 1,
        };
        build.whole(order);
        let made = build.made;
        let mut numbers: HashMap<TensorId, TensorId> = HashMap::new();
        let mut result = Program {
            tensors: vec![],
            ..program.clone()
        };
        let first_new = program.tensors.len() as u32;
        for (at, tensor) in (0u32..).zip(&program.tensors) {
            let own = if TensorId(at) == self.root {
                let count = made.len() as u32;
                let numbered = (first_new..).map(TensorId).zip(made.clone());
                numbered
                    .map(|(id, made)| match id.0 == first_new + count - 1 {
                        true => (self.root, made),
                        false => (id, made),
                    })
                    .collect()
            } else if self.members.contains(&TensorId(at)) {
                vec![]
            } else {
                vec![(TensorId(at), tensor.clone())]
            };
            for (id, mut tensor) in own {
                if let Definition::Statement { operands, .. } = &mut tensor.definition {
                    for operand in operands {
                        *operand = numbers[operand];
                    }
                }
                numbers.insert(id, TensorId(result.tensors.len() as u32));
                result.tensors.push(tensor);
            }
        }
        for output in &mut result.outputs {
            output.tensor = numbers[&output.tensor];
        }
        result.canonical()
    }

    /// An order in words: `((A B) x)`.
    pub fn text(&self, program: &Program, order: &Order) -> String {
        match order {
            Order::Factor(at) => program.tensor(self.factors[*at].tensor).name.clone(),
            Order::Pair(left, right) => {
                let (left, right) = (self.text(program, left), self.text(program, right));
                format!("({left} {right})")
            }
        }
    }
}

/// Makes the statements of an order.
struct Build<'a> {
    product: &'a Product,
    program: &'a Program,
    root: &'a Tensor,
    /// New tensors; the last one takes the root's place. They are numbered from the program's count on.
    made: Vec<Tensor>,
    taken: HashSet<&'a str>,
    next: usize,
}

/// A tensor read by indices of the product.
type Part = (TensorId, Vec<u32>);

impl Build<'_> {
    fn whole(&mut self, order: &Order) {
        let Order::Pair(left, right) = order else {
            return;
        };
        let (a, b) = (self.set(left), self.set(right));
        let parts = [self.part(left, b), self.part(right, a)];
        let tensor = self.tensor(&parts, &self.product.dimensions, true);
        self.made.push(tensor);
    }

    fn set(&self, order: &Order) -> u128 {
        match order {
            Order::Factor(at) => self.product.network.factors[*at],
            Order::Pair(left, right) => self.set(left) | self.set(right),
        }
    }

    /// What an order makes; `outside` are the indices of all other factors.
    fn part(&mut self, order: &Order, outside: u128) -> Part {
        let (parts, indices) = match order {
            Order::Factor(at) => {
                let factor = &self.product.factors[*at];
                let part = (factor.tensor, factor.indices.clone());
                (vec![part], self.product.network.factors[*at])
            }
            Order::Pair(left, right) => {
                let (a, b) = (self.set(left), self.set(right));
                let parts = vec![self.part(left, outside | b), self.part(right, outside | a)];
                (parts, a | b)
            }
        };
        let remaining = self.product.network.remaining(indices, outside);
        if let ([part], true) = (parts.as_slice(), remaining == indices) {
            return part.clone();
        }
        let mut dimensions: Vec<u32> = vec![];
        for index in parts.iter().flat_map(|(_, indices)| indices) {
            if remaining >> index & 1 == 1 && !dimensions.contains(index) {
                dimensions.push(*index);
            }
        }
        let tensor = self.tensor(&parts, &dimensions, false);
        let id = TensorId((self.program.tensors.len() + self.made.len()) as u32);
        self.made.push(tensor);
        (id, dimensions)
    }

    fn shape(&self, id: TensorId) -> Vec<u64> {
        let count = self.program.tensors.len();
        match (id.0 as usize).checked_sub(count) {
            Some(at) => self.made[at].shape.clone(),
            None => self.program.tensor(id).shape.clone(),
        }
    }

    fn tensor(&mut self, parts: &[Part], dimensions: &[u32], last: bool) -> Tensor {
        let Product {
            network,
            law,
            dtype,
            ..
        } = self.product;
        let mut indices = dimensions.to_vec();
        for index in parts.iter().flat_map(|(_, indices)| indices) {
            if !indices.contains(index) {
                indices.push(*index);
            }
        }
        let mut graph = Graph::default();
        let mut values = vec![];
        for (operand, (_, read)) in (0u32..).zip(parts) {
            let positions = read.iter().map(|index| {
                let at = indices.iter().position(|i| i == index);
                graph.add(Node::Index(IndexId(at.unwrap_or(0) as u32)), DType::I64)
            });
            let positions = positions.collect();
            let node = Node::Read {
                operand,
                column: 0,
                positions,
                otherwise: None,
            };
            values.push(graph.add(node, *dtype));
        }
        let root: NodeId = match values[..] {
            [only] => only,
            _ => graph.add(Node::Apply(law.product, values), *dtype),
        };
        let operands: Vec<TensorId> = parts.iter().map(|(id, _)| *id).collect();
        let kernel = Kernel {
            indices: self.named(&indices),
            output_rank: dimensions.len() as u32,
            operands: operands
                .iter()
                .map(|id| Operand {
                    columns: vec![*dtype],
                    shape: self.shape(*id),
                })
                .collect(),
            graph,
            root,
            guard: None,
            reduction: (indices.len() > dimensions.len()).then_some(law.reduction),
            finish: true,
            output: vec![*dtype],
        };
        let (kernel, operands) = canonical::statement(kernel, &operands);
        let name = match last {
            true => self.root.name.clone(),
            false => self.fresh(),
        };
        Tensor {
            name,
            dtype: *dtype,
            shape: dimensions
                .iter()
                .map(|i| network.extents[*i as usize])
                .collect(),
            role: if last { self.root.role } else { Role::Hidden },
            definition: Definition::Statement { kernel, operands },
            origin: self.root.origin,
        }
    }

    /// The indices with names that differ.
    fn named(&self, indices: &[u32]) -> Vec<Index> {
        let mut names: HashSet<String> = HashSet::new();
        let product = self.product;
        let named = indices.iter().map(|index| {
            let own = &product.names[*index as usize];
            let mut name = own.clone();
            let mut number = 1;
            while !names.insert(name.clone()) {
                number += 1;
                name = format!("{own}{number}");
            }
            Index {
                name,
                extent: product.network.extents[*index as usize],
            }
        });
        named.collect()
    }

    fn fresh(&mut self) -> String {
        loop {
            let name = format!("{}.{}", self.root.name, self.next);
            self.next += 1;
            if !self.taken.contains(name.as_str()) {
                return name;
            }
        }
    }
}
