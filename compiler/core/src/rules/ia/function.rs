//! Functions that operators apply to arrays: kernels, and compositions of them.
//!
//! Kernels are kept once in a table and named by number. The laws of kernels that the rules rest on (it only selects elements, it
//! works element by element, it adds) are read off a kernel's expression here, so that no rule assumes one. Must not know
//! relations, placements or rules.
//!
//! ```text
//! diag(matAdd(x, y)) = matAdd(diag(x), diag(y)),   for diag selects and matAdd works element by element
//! ```

use ein_plan::{ArrayDim, DType, Function, Graph, IndexId, Kernel, Node, NodeId, Reduction};
use std::cell::RefCell;
use std::collections::HashMap;

/// A kernel of a [`Kernels`] table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub u32);

/// A function of the arrays of a tuple. The ranges of its kernels are pieces of the *input's* key dimensions: those of the joined
/// key for a join, before any key map.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ArrayFunction {
    /// An operand as it is.
    Operand(u32),
    /// A kernel of what other functions give.
    Apply {
        /// The kernel.
        kernel: KernelId,
        /// By index of the kernel: the key dimension whose piece it runs over; `None`: all of it.
        ranges: Vec<Option<u32>>,
        /// The functions that make the kernel's operands.
        arguments: Vec<ArrayFunction>,
    },
}

/// The dimensions and columns of an array.
pub type Shape = (Vec<ArrayDim>, Vec<DType>);

impl ArrayFunction {
    /// The identity of one operand.
    pub const IDENTITY: ArrayFunction = ArrayFunction::Operand(0);

    /// A kernel of the operands in order.
    pub fn of_kernel(kernel: KernelId, ranges: Vec<Option<u32>>, operands: u32) -> ArrayFunction {
        ArrayFunction::Apply {
            kernel,
            ranges,
            arguments: (0..operands).map(ArrayFunction::Operand).collect(),
        }
    }

    /// Returns whether it gives its only operand as it is.
    pub fn is_identity(&self) -> bool {
        *self == ArrayFunction::IDENTITY
    }

    /// `self ∘ inner`; `self` has one operand.
    #[must_use]
    pub fn after(&self, inner: &ArrayFunction) -> ArrayFunction {
        match self {
            ArrayFunction::Operand(_) => inner.clone(),
            ArrayFunction::Apply {
                kernel,
                ranges,
                arguments,
            } => ArrayFunction::Apply {
                kernel: *kernel,
                ranges: ranges.clone(),
                arguments: arguments.iter().map(|a| a.after(inner)).collect(),
            },
        }
    }

    /// Renumbers the key dimensions; `None` if one has no new number.
    pub fn rename(&self, to: &impl Fn(u32) -> Option<u32>) -> Option<ArrayFunction> {
        Some(match self {
            ArrayFunction::Operand(number) => ArrayFunction::Operand(*number),
            ArrayFunction::Apply {
                kernel,
                ranges,
                arguments,
            } => ArrayFunction::Apply {
                kernel: *kernel,
                ranges: ranges
                    .iter()
                    .map(|range| match range {
                        None => Some(None),
                        Some(key) => to(*key).map(Some),
                    })
                    .collect::<Option<_>>()?,
                arguments: arguments
                    .iter()
                    .map(|a| a.rename(to))
                    .collect::<Option<_>>()?,
            },
        })
    }

    /// The kernel and its ranges, if it is one kernel of the operands in order.
    pub fn as_kernel(&self) -> Option<(KernelId, &[Option<u32>])> {
        match self {
            ArrayFunction::Apply {
                kernel,
                ranges,
                arguments,
            } if (0u32..)
                .zip(arguments)
                .all(|(n, a)| *a == ArrayFunction::Operand(n)) =>
            {
                Some((*kernel, ranges))
            }
            _ => None,
        }
    }

    /// The array that it gives for operands of these shapes, cuts being of the key dimensions of its ranges; `None` if its kernels
    /// do not fit. `extents` are those of the key dimensions.
    pub fn shape(&self, operands: &[Shape], extents: &[u64], kernels: &Kernels) -> Option<Shape> {
        match self {
            ArrayFunction::Operand(number) => operands.get(*number as usize).cloned(),
            ArrayFunction::Apply {
                kernel,
                ranges,
                arguments,
            } => {
                let shapes: Vec<Shape> = arguments
                    .iter()
                    .map(|a| a.shape(operands, extents, kernels))
                    .collect::<Option<_>>()?;
                kernels.with(*kernel, |kernel| {
                    let fits = kernel.operands.len() == shapes.len()
                        && kernel.indices.len() == ranges.len()
                        && kernel.operands.iter().zip(&shapes).all(|(o, shape)| {
                            o.columns == shape.1
                                && o.shape.len() == shape.0.len()
                                && o.shape
                                    .iter()
                                    .zip(&shape.0)
                                    .all(|(n, dim)| *n == dim.extent)
                        });
                    let cut = kernel.indices.iter().zip(ranges).all(|(index, range)| {
                        range.is_none_or(|key| extents.get(key as usize) == Some(&index.extent))
                    });
                    let dims = kernel.indices.iter().zip(ranges);
                    let dims = dims
                        .take(kernel.output_rank as usize)
                        .map(|(i, range)| ArrayDim::new(i.extent, *range));
                    (fits && cut).then(|| (dims.collect(), kernel.output.clone()))
                })
            }
        }
    }

    /// It as text, in the thesis's manner: `outer∘inner` where all operands go through the same.
    pub fn print(&self, kernels: &Kernels) -> String {
        match self {
            ArrayFunction::Operand(_) => "idOp".into(),
            ArrayFunction::Apply {
                kernel, arguments, ..
            } => {
                let inner: Vec<String> = arguments.iter().map(|a| a.print(kernels)).collect();
                let outer = kernels.label(*kernel);
                match inner.split_first() {
                    _ if inner.iter().all(|i| i == "idOp") => outer,
                    Some((first, rest)) if rest.iter().all(|i| i == first) => {
                        format!("{outer}∘{first}")
                    }
                    _ => format!("{outer}({})", inner.join(", ")),
                }
            }
        }
    }
}

/// Kernels, each once, with the name under which it is printed.
#[derive(Debug, Default)]
pub struct Kernels(RefCell<Table>);

#[derive(Debug, Default)]
struct Table {
    kernels: Vec<(Kernel, String)>,
    numbers: HashMap<Kernel, KernelId>,
}

impl Kernels {
    /// The number of a kernel; index names do not tell kernels apart.
    pub fn add(&self, kernel: &Kernel) -> KernelId {
        let text = kernel.to_string();
        let label = text.split_once(" = ").map_or(text.as_str(), |(_, of)| of);
        self.labelled(kernel, label)
    }

    /// Interns a kernel, with the name under which it is printed if it is new.
    pub fn labelled(&self, kernel: &Kernel, label: &str) -> KernelId {
        let mut nameless = kernel.clone();
        for index in &mut nameless.indices {
            index.name.clear();
        }
        let mut table = self.0.borrow_mut();
        let next = KernelId(table.kernels.len() as u32);
        let number = *table.numbers.entry(nameless).or_insert(next);
        if number == next {
            table.kernels.push((kernel.clone(), label.into()));
        }
        number
    }

    /// Looks at a kernel of the table.
    pub fn with<T>(&self, id: KernelId, look: impl FnOnce(&Kernel) -> T) -> T {
        look(&self.0.borrow().kernels[id.0 as usize].0)
    }

    /// The name under which a kernel is printed.
    pub fn label(&self, id: KernelId) -> String {
        self.0.borrow().kernels[id.0 as usize].1.clone()
    }

    /// Returns whether f(op(x, y)) = op(f(x), f(y)) for the combination of two carriers of a reduction.
    pub fn commutes(&self, function: &ArrayFunction, reduction: Reduction) -> bool {
        let one_column = reduction.carrier(DType::F64).len() == 1;
        if function.is_identity() {
            return true;
        }
        function.as_kernel().is_some_and(|(id, _)| {
            self.with(id, |kernel| {
                one_column
                    && kernel.operands.len() == 1
                    && (selects(kernel)
                        || matches!(
                            (only_function(kernel), reduction),
                            (Some(Function::Neg), Reduction::Sum)
                                | (Some(Function::Relu), Reduction::Max | Reduction::Min)
                        ))
            })
        })
    }

    /// The kernel p′ with f(p(x, …)) = p′(f(x), …), if f selects elements and p works element by element.
    pub fn distributed(&self, outer: KernelId, inner: KernelId) -> Option<KernelId> {
        let selected = self.with(outer, |kernel| {
            selects(kernel).then(|| {
                let indices = kernel.indices.clone();
                let shape: Vec<u64> = indices.iter().map(|index| index.extent).collect();
                (indices, shape, kernel.operands[0].clone())
            })
        })?;
        let (indices, shape, taken) = selected;
        let reshaped = self.with(inner, |kernel| {
            let shape_before: Vec<u64> = kernel.indices.iter().map(|i| i.extent).collect();
            if !elementwise(kernel)
                || kernel.output != taken.columns
                || shape_before != taken.shape
                || kernel.operands.iter().any(|o| o.columns != taken.columns)
            {
                return None;
            }
            let mut graph = Graph::default();
            let positions: Vec<NodeId> = (0..indices.len() as u32)
                .map(|i| graph.add(Node::Index(IndexId(i)), DType::I64))
                .collect();
            let moved = graph.append(&kernel.graph, |graph, _, node, dtype| {
                let node = match node {
                    Node::Read {
                        operand, column, ..
                    } => Node::Read {
                        operand,
                        column,
                        positions: positions.clone(),
                        otherwise: None,
                    },
                    // Indices occur in positions of reads only; a stand-in keeps the numbering.
                    Node::Index(_) => Node::Constant(ein_plan::Scalar::Int(0)),
                    other => other,
                };
                graph.add(node, dtype)
            });
            let mut operands = kernel.operands.clone();
            for operand in &mut operands {
                operand.shape = shape.clone();
            }
            let reshaped = Kernel {
                output_rank: indices.len() as u32,
                root: moved[kernel.root.0 as usize],
                indices: indices.clone(),
                operands,
                graph,
                ..kernel.clone()
            };
            Some(reshaped.canonical())
        })?;
        Some(self.labelled(&reshaped, &self.label(inner)))
    }

    /// Returns whether a function of operands that are addends, each at some coordinate, gives addends of its result.
    pub fn adds(&self, function: &ArrayFunction) -> bool {
        match function.as_kernel() {
            None => function.is_identity(),
            Some((id, _)) => self.with(id, |kernel| {
                elementwise(kernel) && linear(&kernel.graph, kernel.root)
            }),
        }
    }
}

/// Returns whether a kernel takes elements of its one operand as they are, at positions that are bare indices.
pub fn selects(kernel: &Kernel) -> bool {
    let plain = kernel.reduction.is_none() && kernel.guard.is_none();
    plain
        && kernel.operands.len() == 1
        && kernel.operands[0].columns == kernel.output
        && kernel.output.len() == 1
        && match kernel.graph.node(kernel.root) {
            Node::Read {
                positions,
                otherwise: None,
                ..
            } => positions
                .iter()
                .all(|p| kernel.graph.as_index(*p).is_some()),
            _ => false,
        }
}

/// Returns whether element x of the result depends on element x of each operand alone, and not on x itself.
pub fn elementwise(kernel: &Kernel) -> bool {
    let shape: Vec<u64> = kernel.indices.iter().map(|index| index.extent).collect();
    let own = |positions: &[NodeId]| {
        positions.len() == shape.len()
            && (0u32..)
                .zip(positions)
                .all(|(n, p)| kernel.graph.as_index(*p) == Some(IndexId(n)))
    };
    let computes = |id: &NodeId| !matches!(kernel.graph.node(*id), Node::Index(_));
    kernel.reduction.is_none()
        && kernel.guard.is_none()
        && kernel.operands.iter().all(|o| o.shape == shape)
        && computes(&kernel.root)
        && kernel.graph.iter().all(|(_, node, _)| match node {
            Node::Read {
                positions,
                otherwise,
                ..
            } => otherwise.is_none() && own(positions),
            Node::Apply(_, arguments) => arguments.iter().all(computes),
            Node::Convert(argument) => computes(argument),
            Node::Constant(_) | Node::Index(_) => true,
        })
}

/// The function, if an element-by-element kernel is one function of its one operand.
fn only_function(kernel: &Kernel) -> Option<Function> {
    match kernel.graph.node(kernel.root) {
        Node::Apply(function, arguments)
            if elementwise(kernel)
                && arguments.len() == 1
                && kernel.operands[0].columns == kernel.output
                && matches!(kernel.graph.node(arguments[0]), Node::Read { .. }) =>
        {
            Some(*function)
        }
        _ => None,
    }
}

/// Returns whether a node is a sum or difference of reads.
fn linear(graph: &Graph, id: NodeId) -> bool {
    match graph.node(id) {
        Node::Read { .. } => true,
        Node::Apply(Function::Add | Function::Sub | Function::Neg, arguments) => {
            arguments.iter().all(|a| linear(graph, *a))
        }
        _ => false,
    }
}
