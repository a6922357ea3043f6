//! Derivatives of a tensor at each of its points: gradients per example, and Jacobians.
//!
//! The derivative of `sum[o] seed[o] * y[o]` is linear in `seed`. So each statement that the seed flows into is made once more for all points
//! `p` together: with the seed that is 1 at `p` and 0 elsewhere. Where a tensor is 0 unless one of its dimensions is `p`, as the seed is,
//! only the elements on that diagonal are kept. So the gradient of each example costs what that of their sum does, and no tensor
//! has examples twice. Must not know surface syntax, or how derivatives are taken.
//!
//! ```text
//! l: f32[N] = [n: N | d: D] sum x[n, d] * w[d]
//!   => seed: f32[N] = full(1);   grad.w: f32[N, D] = [n: N, d: D] sum seed[n] * x[n, d]      (n is kept, not summed)
//! ```

use super::{Gradient, Gradients};
use crate::einsum::{BlockId, Definition, Program, Role, Tensor, TensorId, canonical};
use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar,
};
use einc_diag::Diagnostic;
use std::collections::HashMap;

/// How a tensor depends on one dimension of the points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// By a leading dimension of its own.
    Leading,
    /// It is 0 unless this dimension of it is the point's.
    Diagonal(usize),
}

/// An adjoint for all points that the seed flows into: the tensor with the leading dimensions of some places before its own.
#[derive(Clone, Debug)]
struct Pointwise {
    tensor: TensorId,
    /// By dimension of the points.
    places: Vec<Place>,
}

impl Gradients {
    /// The derivative of each element of a tensor by another tensor, in reverse mode: it has the dimensions of both, in this order.
    ///
    /// # Errors
    /// `E0606` as [`Gradients::derivative`] says, and where the way goes through rounds.
    pub(super) fn in_reverse(
        &mut self,
        program: &mut Program,
        of: TensorId,
        by: TensorId,
    ) -> Result<Gradient, Diagnostic> {
        let Tensor { shape, block, .. } = program.tensor(of);
        let (points, round) = (shape.clone(), *block);
        let (seed, sum) = self.seeded_sum(program, of)?;
        let first = program.tensors.len();
        let gradient = self.derivative(program, sum, by)?;
        let mut flows: HashMap<TensorId, Pointwise> = HashMap::new();
        let places = (0..points.len()).map(Place::Diagonal).collect();
        flows.insert(
            seed,
            Pointwise {
                tensor: seed,
                places,
            },
        );
        for number in first..program.tensors.len() {
            let id = TensorId(number as u32);
            if let Some(new) = self.for_all_points(program, (id, round), &points, &flows)? {
                flows.insert(id, new);
            }
        }
        let whole = match flows.get(&gradient.tensor) {
            Some(found) => {
                let all = vec![true; points.len()];
                self.leading(program, &found.clone(), (&points, &all), by)
                    .tensor
            }
            None => self.spread(program, gradient.tensor, &points),
        };
        Ok(Gradient {
            tensor: whole,
            depends: gradient.depends,
        })
    }

    /// A statement for all points; `None` if the seed does not flow into it. `round`: the block in whose round the derivative is taken.
    fn for_all_points(
        &mut self,
        program: &mut Program,
        (id, round): (TensorId, Option<BlockId>),
        points: &[u64],
        flows: &HashMap<TensorId, Pointwise>,
    ) -> Result<Option<Pointwise>, Diagnostic> {
        let tensor = program.tensor(id).clone();
        let refused = |what: &str| {
            let message = format!("the derivative of each element goes through {what}");
            Err(Diagnostic::error("E0606", message))
        };
        let (kernel, operands) = match tensor.definition {
            Definition::Source(_) => return Ok(None),
            // Loops that were there before do not depend on the seed, and none is made without it.
            Definition::Loop(_) => return refused("rounds"),
            Definition::Statement { kernel, operands } => (kernel, operands),
        };
        if !operands.iter().any(|operand| flows.contains_key(operand)) {
            return Ok(None);
        }
        if !program.encloses(tensor.block, round) {
            return refused("rounds");
        }
        if !matches!(kernel.reduction, None | Some(Reduction::Sum)) {
            return refused(kernel.reduction.map_or("", Reduction::name));
        }
        let known = |operand: u32| flows.get(&operands[operand as usize]);
        let mut found: Vec<Kept> = vec![];
        for dimension in points.iter().copied().enumerate() {
            found.push(kept(&kernel, &known, dimension));
        }
        let mut here: HashMap<TensorId, Pointwise> = HashMap::new();
        if let Some(library) = kernel.library() {
            let operation = library.operation;
            if !matches!(operation, Function::Solve | Function::Fft) {
                return refused(operation.name());
            }
            // A call takes whole tensors: what it is given has the points that its result has.
            let new: Vec<bool> = (found.iter())
                .map(|kept| !matches!(kept, Kept::Diagonal(_)))
                .collect();
            for operand in &operands {
                if let Some(flow) = flows.get(operand) {
                    let flow = self.leading(program, flow, (points, &new), *operand);
                    here.insert(*operand, flow);
                }
            }
        }
        let flow = |operand: &TensorId| here.get(operand).or_else(|| flows.get(operand));
        let of = |operand: u32| flow(&operands[operand as usize]);
        let places = found.iter().map(|kept| match kept {
            Kept::Diagonal(index) => Place::Diagonal(*index),
            Kept::Summed(_) | Kept::New => Place::Leading,
        });
        let places = places.collect();
        let new = pointwise_kernel(&kernel, &of, &found, points);
        let stored: Vec<TensorId> = operands
            .iter()
            .map(|operand| flow(operand).map_or(*operand, |flow| flow.tensor))
            .collect();
        let tensor = self.add(program, (&tensor.name, id), new, &stored);
        Ok(Some(Pointwise { tensor, places }))
    }

    /// An adjoint with these dimensions of the points before its own; `like` has its own dimensions.
    fn leading(
        &mut self,
        program: &mut Program,
        found: &Pointwise,
        (points, wanted): (&[u64], &[bool]),
        like: TensorId,
    ) -> Pointwise {
        let stays = |(place, wanted): (&Place, &bool)| match place {
            Place::Diagonal(_) if !wanted => *place,
            _ => Place::Leading,
        };
        let places: Vec<Place> = found.places.iter().zip(wanted).map(stays).collect();
        if places == found.places {
            return found.clone();
        }
        let own = program.tensor(like).shape.clone();
        let before = points.iter().zip(&places);
        let before = before.filter(|(_, place)| **place == Place::Leading);
        let shape: Vec<u64> = before.map(|(size, _)| *size).chain(own.clone()).collect();
        let dtype = program.tensor(found.tensor).dtype;
        let mut graph = Graph::default();
        let at: Vec<NodeId> = (0..shape.len() as u32)
            .map(|index| graph.add(Node::Index(IndexId(index)), DType::I64))
            .collect();
        let (before, own) = at.split_at(shape.len() - own.len());
        let mut before = before.iter();
        let (mut positions, mut on) = (vec![], None);
        for (was, is) in found.places.iter().zip(&places) {
            let point = match is {
                Place::Leading => before.next(),
                Place::Diagonal(_) => None,
            };
            match (was, point) {
                (Place::Leading, Some(point)) => positions.push(*point),
                (Place::Diagonal(dimension), Some(point)) => {
                    let here = equal(&mut graph, *point, own[*dimension]);
                    on = Some(both(&mut graph, on, here));
                }
                (_, None) => {}
            }
        }
        positions.extend(own);
        let read = Node::Read {
            operand: 0,
            column: 0,
            positions,
            otherwise: None,
        };
        let mut root = graph.add(read, dtype);
        if let Some(on) = on {
            root = where_on(&mut graph, on, root);
        }
        let kernel = plain(numbered(&shape, "i"), graph, root, dtype);
        let name = format!("grad.{}", program.tensor(like).name);
        let tensor = self.add(program, (&name, like), kernel, &[found.tensor]);
        Pointwise { tensor, places }
    }

    /// A tensor that is the same at all points.
    fn spread(&mut self, program: &mut Program, tensor: TensorId, points: &[u64]) -> TensorId {
        let of = program.tensor(tensor).clone();
        let shape: Vec<u64> = points.iter().chain(&of.shape).copied().collect();
        let mut graph = Graph::default();
        let positions = (points.len()..shape.len())
            .map(|index| graph.add(Node::Index(IndexId(index as u32)), DType::I64))
            .collect();
        let read = Node::Read {
            operand: 0,
            column: 0,
            positions,
            otherwise: None,
        };
        let root = graph.add(read, of.dtype.compute());
        let kernel = plain(numbered(&shape, "i"), graph, root, of.dtype.compute());
        self.add(program, (&of.name, tensor), kernel, &[tensor])
    }

    /// Appends a hidden statement like another tensor's.
    fn add(
        &mut self,
        program: &mut Program,
        (name, like): (&str, TensorId),
        mut kernel: Kernel,
        operands: &[TensorId],
    ) -> TensorId {
        kernel.operands = operands
            .iter()
            .map(|id| Operand {
                columns: vec![program.tensor(*id).dtype],
                shape: program.tensor(*id).shape.clone(),
            })
            .collect();
        let shape = kernel.indices[..kernel.output_rank as usize].iter();
        let shape = shape.map(|index| index.extent).collect();
        let dtype = kernel.output[0];
        let (kernel, operands) = canonical::statement(kernel, operands);
        let tensor = Tensor {
            name: self.statements.name(program, name),
            dtype,
            shape,
            role: Role::Hidden,
            block: program.innermost(&operands),
            definition: Definition::Statement { kernel, operands },
            origin: program.tensor(like).origin,
        };
        program.tensors.push(tensor);
        TensorId(program.tensors.len() as u32 - 1)
    }
}

/// The treatment of a dimension of the points by a statement for all points.
#[derive(Clone, Copy, Debug)]
enum Kept {
    /// All that flows in lies on the diagonal with this dimension of the result, and so does the result.
    Diagonal(usize),
    /// All that flows in lies on the diagonal with this index, which is summed: instead, it is kept as the point's.
    Summed(usize),
    /// The result has the point as an index of its own.
    New,
}

/// Looks at how a statement reads what the seed flows into.
fn kept<'f>(
    kernel: &Kernel,
    of: &impl Fn(u32) -> Option<&'f Pointwise>,
    (dimension, size): (usize, u64),
) -> Kept {
    let mut common: Option<usize> = None;
    for (_, node, _) in kernel.graph.iter() {
        let Node::Read {
            operand,
            positions,
            otherwise,
            ..
        } = node
        else {
            continue;
        };
        let Some(flow) = of(*operand) else {
            continue;
        };
        let Place::Diagonal(own) = flow.places[dimension] else {
            return Kept::New;
        };
        let index = kernel.graph.as_index(positions[own]);
        match (index, otherwise, common) {
            (Some(index), None, None) => common = Some(index.0 as usize),
            (Some(index), None, Some(before)) if before == index.0 as usize => {}
            _ => return Kept::New,
        }
    }
    match common {
        Some(index) if index < kernel.output_rank as usize => Kept::Diagonal(index),
        // It stands for all points only if it has as many values.
        Some(index) if kernel.indices[index].extent == size => Kept::Summed(index),
        _ => Kept::New,
    }
}

/// The kernel of a statement for all points. Its operands' shapes are set by who adds it.
fn pointwise_kernel<'f>(
    kernel: &Kernel,
    of: &impl Fn(u32) -> Option<&'f Pointwise>,
    found: &[Kept],
    points: &[u64],
) -> Kernel {
    let rank = kernel.output_rank as usize;
    let mut graph = Graph::default();
    let mut indices: Vec<Index> = vec![];
    // Where each index of the statement is now, and the index of each dimension of the points that has one.
    let mut moved: Vec<Option<usize>> = vec![None; kernel.indices.len()];
    let mut point: Vec<Option<usize>> = vec![None; points.len()];
    for (dimension, kept) in found.iter().enumerate() {
        match kept {
            Kept::Diagonal(_) => {}
            Kept::Summed(index) if moved[*index].is_none() => {
                moved[*index] = Some(indices.len());
                point[dimension] = Some(indices.len());
                indices.push(kernel.indices[*index].clone());
            }
            Kept::Summed(_) | Kept::New => {
                point[dimension] = Some(indices.len());
                let name = format!("p{}", dimension + 1);
                indices.push(Index {
                    name,
                    extent: points[dimension],
                });
            }
        }
    }
    let output_rank = indices.len() + rank;
    let stay: Vec<usize> = (0..kernel.indices.len())
        .filter(|index| moved[*index].is_none())
        .collect();
    for index in stay {
        moved[index] = Some(indices.len());
        indices.push(kernel.indices[index].clone());
    }
    if kernel.reduction.is_some() && indices.len() == output_rank {
        // All that was summed is kept: one point is left of the sum.
        indices.push(Index {
            name: "_".into(),
            extent: 1,
        });
    }
    unique(&mut indices);
    let mut nodes: Vec<NodeId> = vec![];
    for (_, node, dtype) in kernel.graph.iter() {
        let mut new = node.map(|argument| nodes[argument.0 as usize]);
        let mut on = None;
        match &mut new {
            Node::Index(index) => {
                let now = moved[index.0 as usize].unwrap_or_default();
                *index = IndexId(now as u32);
            }
            Node::Read {
                operand, positions, ..
            } => {
                if let Some(flow) = of(*operand) {
                    let mut before = vec![];
                    for (dimension, place) in flow.places.iter().enumerate() {
                        let own = point[dimension]
                            .map(|index| graph.add(Node::Index(IndexId(index as u32)), DType::I64));
                        match (place, own) {
                            (Place::Leading, Some(own)) => before.push(own),
                            (Place::Diagonal(at), Some(own)) if positions[*at] != own => {
                                let here = equal(&mut graph, own, positions[*at]);
                                on = Some(both(&mut graph, on, here));
                            }
                            _ => {}
                        }
                    }
                    positions.splice(0..0, before);
                }
            }
            _ => {}
        }
        let new = graph.add(new, dtype);
        nodes.push(match on {
            Some(on) => where_on(&mut graph, on, new),
            None => new,
        });
    }
    Kernel {
        operands: vec![],
        indices,
        output_rank: output_rank as u32,
        root: nodes[kernel.root.0 as usize],
        guard: kernel.guard.map(|guard| nodes[guard.0 as usize]),
        graph,
        reduction: kernel.reduction,
        finish: kernel.finish,
        output: kernel.output.clone(),
    }
}

/// A kernel without a reduction.
fn plain(indices: Vec<Index>, graph: Graph, root: NodeId, dtype: DType) -> Kernel {
    Kernel {
        operands: vec![],
        output_rank: indices.len() as u32,
        indices,
        graph,
        root,
        guard: None,
        reduction: None,
        finish: true,
        output: vec![dtype],
    }
}

fn numbered(shape: &[u64], letter: &str) -> Vec<Index> {
    (1..)
        .zip(shape)
        .map(|(number, extent)| Index {
            name: format!("{letter}{number}"),
            extent: *extent,
        })
        .collect()
}

/// Gives indices that have one name a number each.
fn unique(indices: &mut [Index]) {
    for at in 0..indices.len() {
        let base = indices[at].name.clone();
        let mut number = 2;
        while indices[..at]
            .iter()
            .any(|index| index.name == indices[at].name)
        {
            indices[at].name = format!("{base}_{number}");
            number += 1;
        }
    }
}

fn equal(graph: &mut Graph, a: NodeId, b: NodeId) -> NodeId {
    graph.add(Node::Apply(Function::Eq, vec![a, b]), DType::Bool)
}

fn both(graph: &mut Graph, a: Option<NodeId>, b: NodeId) -> NodeId {
    match a {
        None => b,
        Some(a) => graph.add(Node::Apply(Function::And, vec![a, b]), DType::Bool),
    }
}

/// The value where a condition holds, and 0 elsewhere.
fn where_on(graph: &mut Graph, on: NodeId, value: NodeId) -> NodeId {
    let dtype = graph.dtype(value);
    let zero = graph.add(Node::Constant(Scalar::Float(0.0)), dtype);
    graph.add(Node::Apply(Function::Select, vec![on, value, zero]), dtype)
}
