//! Reverse-mode derivatives of Einstein programs, as Einstein statements.
//!
//! The adjoint of a tensor is the derivative of the loss by each of its elements: the sum, over the statements between it
//! and the loss, of what flows back through their reads. It is stored in the tensor's compute type (f32 for f16
//! and bf16). Every adjoint is a hidden tensor named after its tensor, made when it is first asked for and shared after that,
//! and is planned, fused and distributed like any statement. A contraction's adjoints are contractions. Must not know
//! surface syntax, keys, sites or placements.
//!
//! `derivative` is the table of scalar functions, `reduction` that of reductions, `library` of library operations (`decompositions` and `eigen` of those that factor), `backward` the pass through one
//! expression, `transpose` the way from the adjoint of a read to that of what is read; `ways` says what lies between the
//! two, `rounds` goes back through a block, `points` takes the derivative of each element of a tensor (`diagonal` reads those by its own example), `directional` those along a direction.
//!
//! ```text
//! y: f32[3] = [i: 3 | j: 4] sum W[i, j] * x[j];   loss: f32[] = [| i: 3] sum y[i] * y[i]
//!   => hidden grad.y: f32[3] = [i: 3] y[i] + y[i]
//!      hidden grad.W: f32[3, 4] = [i: 3, j: 4] grad.y[i] * x[j]
//! ```

mod backward;
mod chosen;
mod decompositions;
mod derivative;
mod diagonal;
mod directional;
mod eigen;
mod form;
mod gradient_paths;
mod library;
mod points;
mod reduction;
mod rounds;
mod sketch;
mod statements;
mod transpose;

use crate::einsum::{BlockId, Definition, Program, TensorId};
use backward::{backward, flowing};
pub use diagonal::read_diagonals;
use directional::Directional;
use ein_plan::{Index, Node, NodeId, Reduction, Source};
use einc_diag::Diagnostic;
use gradient_paths::{GradientPaths, Level};
use reduction::{Prepared, prepare};
use sketch::Sketch;
use std::collections::{HashMap, HashSet};
use transpose::{Piece, Reading, transpose};

/// The derivative of a loss by a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gradient {
    /// Of the shape of the tensor, in its compute type.
    pub tensor: TensorId,
    /// True if the loss depends on the tensor by a way that has a derivative; if not, the gradient is zeros.
    pub depends: bool,
}

/// The adjoints of a program that have been made so far.
#[derive(Clone, Default)]
pub struct Gradients {
    statements: Statements,
    /// By the scalar that is differentiated.
    losses: HashMap<TensorId, Loss>,
    /// How many losses there are: scalars, and the rounds of blocks.
    loss_count: u32,
    /// By loss and tensor; `None`: zero.
    adjoints: HashMap<(Loss, TensorId), Option<Adjoint>>,
    /// By loss and statement.
    prepared: HashMap<(Loss, TensorId), Prepared>,
    /// By loss and block: what flows back through it to the tensors that it reads.
    through: HashMap<(Loss, BlockId), Through>,
    /// By loss and tensor.
    finished: HashMap<(TensorId, TensorId), Gradient>,
    /// By the tensor that is differentiated, the one that moves, and the direction.
    directions: HashMap<(TensorId, TensorId, TensorId), Directional>,
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

/// The tensor that is differentiated: a scalar, or a value that a round of a block hands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Loss(u32);

/// The gradients that flow to each tensor, as tensors of its shape.
type Through = HashMap<TensorId, Vec<TensorId>>;

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
#[derive(Clone, Default)]
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
    let of = |tensor: &TensorId| Ok(gradients.derivative(program, loss, *tensor)?.tensor);
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
    /// `E0606` where the loss is no floating-point scalar, the tensor is not floating-point, an operation between the two has
    /// no derivative here, or the number of the rounds between them is not bounded.
    pub fn derivative(
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
        let adjoint = self.adjoint(program, loss, wrt)?;
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

    /// Returns whether a gradient that was taken in a round is one by what stands in the round, now that all of the program is there. When it
    /// is taken, the `next` of a state that is made of it is not.
    ///
    /// # Errors
    /// `E0606` where the loss depends on the tensor through earlier rounds.
    pub fn check_rounds(
        &mut self,
        program: &Program,
        loss: TensorId,
        wrt: TensorId,
    ) -> Result<(), Diagnostic> {
        if program.tensor(loss).block.is_none() {
            return Ok(());
        }
        self.look_at(program);
        GradientPaths::new(program, &self.flows, loss, wrt).map(drop)
    }

    /// The adjoint of a tensor; `None`: zero.
    fn adjoint(
        &mut self,
        program: &mut Program,
        loss: TensorId,
        wrt: TensorId,
    ) -> Result<Option<Adjoint>, Diagnostic> {
        self.look_at(program);
        let ways = GradientPaths::new(program, &self.flows, loss, wrt)?;
        if !ways.leads(wrt) {
            return Ok(None);
        }
        let key = match self.losses.get(&loss) {
            Some(key) => *key,
            None => {
                let key = self.new_loss();
                *self.losses.entry(loss).or_insert(key)
            }
        };
        let level = Level {
            place: program.tensor(loss).block,
            around: true,
        };
        // Tensors between the two, both included, the last first.
        let mut between: Vec<TensorId> = ways.between().collect();
        between.retain(|id| level.has(program, program.tensor(*id).block));
        for tensor in between {
            if self.adjoints.contains_key(&(key, tensor)) {
                continue;
            }
            let adjoint = if tensor == loss {
                Some(Adjoint::Constant(1.0))
            } else {
                self.combined(program, &ways, (key, level), tensor, vec![])?
            };
            self.adjoints.insert((key, tensor), adjoint);
        }
        Ok(self.adjoints.get(&(key, wrt)).copied().flatten())
    }

    fn new_loss(&mut self) -> Loss {
        self.loss_count += 1;
        Loss(self.loss_count)
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

    /// The adjoint of a tensor from those of the statements of a level that read it, of the blocks that do, and what else
    /// flows there: tensors of its shape.
    fn combined(
        &mut self,
        program: &mut Program,
        ways: &GradientPaths,
        (loss, level): (Loss, Level),
        tensor: TensorId,
        more: Vec<TensorId>,
    ) -> Result<Option<Adjoint>, Diagnostic> {
        let mut pieces = vec![];
        let users: Vec<TensorId> = ways.users(tensor).collect();
        for user in users {
            if level.has(program, program.tensor(user).block)
                && let Some(Some(adjoint)) = self.adjoints.get(&(loss, user)).copied()
            {
                let origin = program.tensor(user).origin;
                let new = self.pieces(program, loss, user, adjoint, tensor);
                pieces.extend(new.into_iter().map(|piece| (piece, origin)));
            }
        }
        for block in ways.blocks_at(program, level, tensor) {
            let through = self.through_block(program, ways, loss, block)?;
            let parts = through.get(&tensor).cloned().unwrap_or_default();
            let origin = program.block(block).origin;
            pieces.extend(
                parts
                    .into_iter()
                    .map(|part| (Piece::whole(program, part), origin)),
            );
        }
        let origin = program.tensor(tensor).origin;
        pieces.extend(
            more.into_iter()
                .map(|part| (Piece::whole(program, part), origin)),
        );
        Ok(self.statements.sum(program, tensor, pieces))
    }

    /// Returns the gradients that flow to a tensor through one statement.
    fn pieces(
        &mut self,
        program: &mut Program,
        loss: Loss,
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
            let piece = transpose(&Reading {
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
            });
            pieces.push(piece.without_chosen(|tensor| {
                let definition = &program.tensor(tensor).definition;
                matches!(definition, Definition::Source(Source::Iota))
            }));
        }
        pieces
    }
}
