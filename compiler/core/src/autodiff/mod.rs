//! Reverse-mode derivatives of Einstein programs, as Einstein statements.
//!
//! The adjoint of a tensor is the derivative of the loss by each of its elements: the sum, over the statements between it
//! and the loss, of what flows back through their reads. It is stored in the tensor's compute type (f32 for f16
//! and bf16). Every adjoint is a hidden tensor named after its tensor, made when it is first asked for and shared after that,
//! and is planned, fused and distributed like any statement. A contraction's adjoints are contractions. Must not know
//! surface syntax, keys, sites or placements.
//!
//! `derivative` is the table of scalar functions, `reduction` that of reductions, `library` of library operations, `backward` the pass through one
//! expression, `transpose` the way from the adjoint of a read to that of what is read.
//!
//! ```text
//! y: f32[3] = [i: 3 | j: 4] sum W[i, j] * x[j];   loss: f32[] = [| i: 3] sum y[i] * y[i]
//!   => hidden grad.y: f32[3] = [i: 3] y[i] + y[i]
//!      hidden grad.W: f32[3, 4] = [i: 3, j: 4] grad.y[i] * x[j]
//! ```

mod backward;
mod derivative;
mod library;
mod reduction;
mod sketch;
mod transpose;

use crate::einsum::{Definition, Program, Role, Tensor, TensorId, canonical};
use backward::{backward, flowing};
use ein_plan::{DType, Index, Kernel, Node, NodeId, Operand, Origin, Reduction};
use einc_diag::Diagnostic;
use reduction::{Prepared, prepare};
use sketch::{Copy, Sketch};
use std::collections::{HashMap, HashSet};
use transpose::{Piece, Reading, transpose};

/// The derivative of a loss by a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gradient {
    /// Of the shape of the tensor, in its compute type.
    pub tensor: TensorId,
    /// Whether the loss depends on the tensor by a way that has a derivative; if not, the gradient is zeros.
    pub depends: bool,
}

/// The adjoints of a program that have been made so far.
#[derive(Default)]
pub struct Gradients {
    statements: Statements,
    /// By loss and tensor; `None`: zero.
    adjoints: HashMap<(TensorId, TensorId), Option<Adjoint>>,
    /// By loss and statement.
    prepared: HashMap<(TensorId, TensorId), Prepared>,
    /// By loss and tensor.
    finished: HashMap<(TensorId, TensorId), Gradient>,
    /// Of every statement: through which operands a derivative flows.
    flows: Vec<Vec<bool>>,
    /// Why a gradient cannot be taken.
    refused: Option<Diagnostic>,
}

/// An adjoint: one number everywhere, or a tensor.
#[derive(Clone, Copy, PartialEq)]
enum Adjoint {
    Constant(f64),
    Tensor(TensorId),
}

/// A hidden statement to be.
struct Statement<'a> {
    indices: Vec<Index>,
    rank: usize,
    sketch: &'a Sketch,
    root: NodeId,
    guard: Option<NodeId>,
    reduction: Option<Reduction>,
}

/// Appends hidden statements, with names of their own.
#[derive(Default)]
struct Statements {
    names: HashSet<String>,
    /// How many tensors of the program have their names in `names`.
    seen: usize,
    exact: HashMap<TensorId, TensorId>,
}

/// Appends the statements that compute the derivatives of a scalar by tensors. Each gradient has its tensor's shape and
/// compute type.
///
/// # Errors
/// `E0606` where the loss is no floating-point scalar, or a tensor is not floating-point.
pub fn gradients(
    program: &mut Program,
    loss: TensorId,
    wrt: &[TensorId],
) -> Result<Vec<TensorId>, Diagnostic> {
    let mut gradients = Gradients::default();
    let of = |tensor: &TensorId| Ok(gradients.of(program, loss, *tensor)?.tensor);
    wrt.iter().map(of).collect()
}

impl Gradients {
    /// None yet; `reserved` names are not given to any tensor.
    pub fn new(reserved: impl IntoIterator<Item = String>) -> Gradients {
        let mut gradients = Gradients::default();
        gradients.statements.names.extend(reserved);
        gradients
    }

    /// The derivative of a scalar by a tensor; what of it is not there yet is appended to the program. The program is
    /// always the same one, and has only grown in between.
    ///
    /// # Errors
    /// `E0606` where the loss is no floating-point scalar, the tensor is not floating-point, or an operation between the two has
    /// no derivative here.
    pub fn of(
        &mut self,
        program: &mut Program,
        loss: TensorId,
        wrt: TensorId,
    ) -> Result<Gradient, Diagnostic> {
        if let Some(known) = self.finished.get(&(loss, wrt)) {
            return Ok(*known);
        }
        let refused = |what: String| Err(Diagnostic::error("E0606", what));
        let (of, by) = (program.tensor(loss), program.tensor(wrt));
        if !of.shape.is_empty() || !of.dtype.is_float() {
            return refused(format!("`{}` is no floating-point scalar", of.name));
        }
        if !by.dtype.is_float() {
            return refused(format!("`{}` is not floating-point", by.name));
        }
        let adjoint = self.adjoint(program, loss, wrt);
        if let Some(refused) = self.refused.take() {
            return Err(refused);
        }
        let gradient = Gradient {
            tensor: match adjoint {
                Some(Adjoint::Tensor(tensor)) => tensor,
                Some(Adjoint::Constant(value)) => self.statements.filled(program, wrt, value),
                None => self.statements.filled(program, wrt, 0.0),
            },
            depends: adjoint.is_some(),
        };
        self.finished.insert((loss, wrt), gradient);
        Ok(gradient)
    }

    fn adjoint(&mut self, program: &mut Program, loss: TensorId, wrt: TensorId) -> Option<Adjoint> {
        self.look_at(program);
        // Tensors between the two, both included.
        let (first, last) = (wrt.0 as usize, loss.0 as usize);
        let mut reached = vec![false; last + 1];
        if first > last {
            return None;
        }
        reached[first] = true;
        for at in first + 1..=last {
            reached[at] = self.read_by(program, at).any(|o| reached[o]);
        }
        let mut between = vec![false; last + 1];
        between[last] = reached[last];
        for at in (first..=last).rev().filter(|at| reached[*at]) {
            if between[at] {
                let operands: Vec<usize> = self.read_by(program, at).collect();
                operands
                    .into_iter()
                    .filter(|o| reached[*o])
                    .for_each(|o| between[o] = true);
            }
        }
        for at in (first..=last).rev().filter(|at| between[*at]) {
            let tensor = TensorId(at as u32);
            if self.adjoints.contains_key(&(loss, tensor)) {
                continue;
            }
            let adjoint = if tensor == loss {
                Some(Adjoint::Constant(1.0))
            } else {
                let users: Vec<usize> = (at + 1..=last)
                    .filter(|user| between[*user])
                    .filter(|user| self.read_by(program, *user).any(|o| o == at))
                    .collect();
                self.combined(program, loss, tensor, &users)
            };
            self.adjoints.insert((loss, tensor), adjoint);
        }
        match between[first] {
            true => self.adjoints[&(loss, wrt)],
            false => None,
        }
    }

    /// Learns through which operands of the statements that are new a derivative flows.
    fn look_at(&mut self, program: &Program) {
        for tensor in &program.tensors[self.flows.len()..] {
            let flows = match &tensor.definition {
                Definition::Source(_) | Definition::Loop(_) => vec![],
                Definition::Statement { kernel, operands } => flowing(kernel, operands.len()),
            };
            self.flows.push(flows);
        }
    }

    /// The tensors from which a derivative flows to a tensor.
    fn read_by<'p>(&self, program: &'p Program, at: usize) -> impl Iterator<Item = usize> + 'p {
        let operands: &[TensorId] = match &program.tensors[at].definition {
            Definition::Source(_) | Definition::Loop(_) => &[],
            Definition::Statement { operands, .. } => operands,
        };
        let flows = self.flows[at].clone();
        let flowing = operands.iter().zip(flows).filter(|(_, flows)| *flows);
        flowing.map(|(operand, _)| operand.0 as usize)
    }

    /// The adjoint of a tensor from those of the statements that read it.
    fn combined(
        &mut self,
        program: &mut Program,
        loss: TensorId,
        tensor: TensorId,
        users: &[usize],
    ) -> Option<Adjoint> {
        let mut pieces = vec![];
        for user in users {
            let user = TensorId(*user as u32);
            if let Some(Some(adjoint)) = self.adjoints.get(&(loss, user)).copied() {
                let origin = program.tensor(user).origin;
                let new = self.pieces(program, loss, user, adjoint, tensor);
                pieces.extend(new.into_iter().map(|piece| (piece, origin)));
            }
        }
        self.statements.sum(program, tensor, pieces)
    }

    /// What flows to a tensor through one statement.
    fn pieces(
        &mut self,
        program: &mut Program,
        loss: TensorId,
        user: TensorId,
        adjoint: Adjoint,
        tensor: TensorId,
    ) -> Vec<Piece> {
        let Definition::Statement { kernel, operands } = program.tensor(user).definition.clone()
        else {
            return vec![];
        };
        let Some(operand) = operands.iter().position(|o| *o == tensor) else {
            return vec![];
        };
        if let Some(library) = kernel.library() {
            let call = library::Call::new(user, &kernel, &library, &operands);
            let pieces = call.pieces(program, &mut self.statements, adjoint, operand);
            return pieces.unwrap_or_else(|refused| {
                self.refused.get_or_insert(refused);
                vec![]
            });
        }
        let mut prepared = match self.prepared.get(&(loss, user)) {
            Some(prepared) => prepared.clone(),
            None => {
                let what = (&kernel, operands.as_slice());
                let prepared = prepare(program, &mut self.statements, user, what, adjoint);
                self.prepared.insert((loss, user), prepared.clone());
                prepared
            }
        };
        let seed = std::mem::take(&mut prepared.seed);
        let sketch = &mut prepared.sketch;
        let reads = backward(sketch, kernel.root, prepared.stored, seed, operand as u32);
        let mut pieces = vec![];
        for (read, terms) in reads {
            let Node::Read { positions, .. } = prepared.sketch.graph.node(read) else {
                continue;
            };
            pieces.push(transpose(&Reading {
                indices: &kernel.indices,
                rank: kernel.output_rank as usize,
                guard: kernel.guard,
                sketch: &prepared.sketch,
                positions,
                shape: &kernel.operands[operand].shape,
                terms: &terms,
                adjoint: match adjoint {
                    Adjoint::Tensor(adjoint) => Some(adjoint),
                    Adjoint::Constant(_) => None,
                },
            }));
        }
        pieces
    }
}

impl Statements {
    /// Appends a hidden statement whose elements have the type of its root.
    fn push(
        &mut self,
        program: &mut Program,
        statement: Statement<'_>,
        name: &str,
        origin: Origin,
    ) -> TensorId {
        let dtype = statement.sketch.graph.dtype(statement.root);
        let operands = statement.sketch.operands.iter().map(|id| Operand {
            columns: vec![program.tensor(*id).dtype],
            shape: program.tensor(*id).shape.clone(),
        });
        let shape = statement.indices[..statement.rank].iter();
        let shape = shape.map(|index| index.extent).collect();
        let kernel = Kernel {
            operands: operands.collect(),
            output_rank: statement.rank as u32,
            graph: statement.sketch.graph.clone(),
            root: statement.root,
            guard: statement.guard,
            reduction: statement.reduction,
            finish: true,
            output: vec![dtype],
            indices: statement.indices,
        };
        let (kernel, operands) = canonical::statement(kernel, &statement.sketch.operands);
        let name = self.name(program, name);
        program.tensors.push(Tensor {
            name,
            dtype,
            shape,
            role: Role::Hidden,
            block: program.innermost(&operands),
            definition: Definition::Statement { kernel, operands },
            origin,
        });
        TensorId(program.tensors.len() as u32 - 1)
    }

    /// The name, or the name with a number where it is taken.
    fn name(&mut self, program: &Program, base: &str) -> String {
        let new = program.tensors[self.seen..].iter();
        self.names.extend(new.map(|tensor| tensor.name.clone()));
        self.seen = program.tensors.len();
        let mut name = base.to_owned();
        let mut number = 1;
        while self.names.contains(&name) {
            number += 1;
            name = format!("{base}.{number}");
        }
        name
    }

    /// A tensor in its compute type: itself, or the same statement again.
    fn exact(&mut self, program: &mut Program, tensor: TensorId, dtype: DType) -> TensorId {
        let of = program.tensor(tensor);
        if of.dtype == dtype {
            return tensor;
        }
        if let Some(known) = self.exact.get(&tensor) {
            return *known;
        }
        let Definition::Statement { kernel, operands } = of.definition.clone() else {
            return tensor;
        };
        let (name, origin) = (format!("grad.{}.exact", of.name), of.origin);
        let sketch = Sketch::of(&kernel, &operands);
        let statement = Statement {
            rank: kernel.output_rank as usize,
            indices: kernel.indices,
            sketch: &sketch,
            root: kernel.root,
            guard: kernel.guard,
            reduction: kernel.reduction,
        };
        let exact = self.push(program, statement, &name, origin);
        self.exact.insert(tensor, exact);
        exact
    }

    /// A tensor of the shape of another, one number everywhere.
    fn filled(&mut self, program: &mut Program, like: TensorId, value: f64) -> TensorId {
        let of = program.tensor(like);
        let (name, origin) = (format!("grad.{}", of.name), of.origin);
        let (shape, dtype) = (of.shape.clone(), of.dtype.compute());
        let mut sketch = Sketch::default();
        let root = sketch.number(value, dtype);
        let statement = Statement {
            rank: shape.len(),
            indices: numbered(&shape),
            sketch: &sketch,
            root,
            guard: None,
            reduction: None,
        };
        self.push(program, statement, &name, origin)
    }

    /// The sum of the pieces of a tensor's adjoint; `None` if there are none. Pieces that sum over indices are tensors of
    /// their own where there are others beside them.
    fn sum(
        &mut self,
        program: &mut Program,
        tensor: TensorId,
        mut pieces: Vec<(Piece, Origin)>,
    ) -> Option<Adjoint> {
        let of = program.tensor(tensor);
        let (name, shape) = (format!("grad.{}", of.name), of.shape.clone());
        let dtype = of.dtype.compute();
        let origin = match pieces.as_slice() {
            [] => return None,
            [(_, origin)] => *origin,
            _ => of.origin,
        };
        if let [(piece, _)] = pieces.as_slice()
            && piece.indices.len() > piece.rank
        {
            let (piece, origin) = pieces.pop()?;
            let tensor = self.push(program, piece.statement(), &name, origin);
            return Some(Adjoint::Tensor(tensor));
        }
        let mut sketch = Sketch::default();
        let mut indices = None;
        let places: Vec<NodeId> = (0..shape.len()).map(|at| sketch.index(at)).collect();
        let mut total: Option<NodeId> = None;
        for (number, (piece, origin)) in (1..).zip(pieces) {
            let part = if piece.indices.len() > piece.rank {
                let name = format!("{name}.{number}");
                let part = self.push(program, piece.statement(), &name, origin);
                sketch.read(part, places.clone(), None, dtype)
            } else {
                let mut copy = Copy::new(&piece.sketch, places.clone(), None);
                copy.node(&mut sketch, piece.root)
            };
            indices.get_or_insert(piece.indices);
            total = Some(total.map_or(part, |total| sketch.add(total, part)));
        }
        let root = total?;
        if let Some(value) = sketch.value(root) {
            return Some(Adjoint::Constant(value));
        }
        if let Node::Read {
            operand,
            positions,
            otherwise: None,
            ..
        } = sketch.graph.node(root)
        {
            let whole = sketch.operands[*operand as usize];
            if *positions == places
                && program.tensor(whole).dtype == dtype
                && program.tensor(whole).shape == shape
            {
                return Some(Adjoint::Tensor(whole));
            }
        }
        let mut indices = indices.unwrap_or_default();
        indices.truncate(shape.len());
        let statement = Statement {
            rank: shape.len(),
            indices,
            sketch: &sketch,
            root,
            guard: None,
            reduction: None,
        };
        Some(Adjoint::Tensor(
            self.push(program, statement, &name, origin),
        ))
    }
}

impl Piece {
    fn statement(&self) -> Statement<'_> {
        let reduces = self.indices.len() > self.rank;
        Statement {
            indices: self.indices.clone(),
            rank: self.rank,
            sketch: &self.sketch,
            root: self.root,
            guard: self.guard,
            reduction: reduces.then_some(Reduction::Sum),
        }
    }
}

/// Indices for dimensions that have no names.
fn numbered(shape: &[u64]) -> Vec<Index> {
    (1..)
        .zip(shape)
        .map(|(number, extent): (u32, _)| Index {
            name: format!("i{number}"),
            extent: *extent,
        })
        .collect()
}
