//! Steps of a training without the statements whose values are the same in every step: these move to the program of its constants.
//!
//! A value that depends on nothing but unbatched data is computed once, before the first step, and carried as a `const` of the text is. Files are
//! read once. A statement moves if it is more than a formula of elements beside each other (a reduction, a gather, a library operation) and not much
//! larger than its data, since it stays in memory; and a formula moves if the rest of the step then no longer reads an operand of its size. Must not
//! know why a step has a statement, nor where tensors rest.
//!
//! ```text
//! step:        input A = kept, degree[i] = [i: 9 | j: 9] sum A[i, j], y[i] = [i: 9] x[i] / degree[i]
//! becomes
//! constants:   input A = load("A.npy"), degree[i] = [i: 9 | j: 9] sum A[i, j], output degree
//! step:        input degree = kept, y[i] = [i: 9] x[i] / degree[i]
//! ```

use crate::einsum::{Definition, Output, Program, Role, Tensor, TensorId};
use crate::lists::{LEAST_OUTPUT, with_ordered_points};
use ein_plan::training::{Carried, CarriedKind, Training};
use ein_plan::{Format, Kernel, ListColumn, NodeId, Source};
use std::collections::{BTreeMap, BTreeSet};

/// A constant of at most so many bytes is kept however small its data are.
const SMALL: u64 = 1 << 24;
/// Most numbers that are tried behind a name.
const MOST_NUMBERS: u32 = 100;

/// Returns the training whose steps read what depends on unbatched data alone. Blocks in which sites make steps by themselves are left as they are.
#[must_use]
pub fn hoisted(mut training: Training<Program>) -> Training<Program> {
    let mut constants = training.constants.take().unwrap_or_default();
    let mut found = BTreeMap::new();
    for block in &mut training.blocks {
        if block.rounds.is_some() {
            continue;
        }
        let batched: BTreeSet<&str> = block.inputs.iter().map(|i| i.name.as_str()).collect();
        let carried = &training.carried;
        let is_steady = |name: &str| {
            let kind = carried.get(name).map(|carried| carried.kind);
            let of_data = matches!(kind, Some(CarriedKind::Input | CarriedKind::Constant));
            of_data && !batched.contains(name)
        };
        let ascends = |name: &str| {
            let begin = carried.get(name).map(|carried| &carried.begin);
            matches!(begin, Some(Source::Listed { column, by, .. }) if *column == ListColumn::Positions(*by))
        };
        for program in block.step.values_mut().chain(&mut block.apply) {
            let data = Steady::of(program, &is_steady).data;
            let steady: Vec<bool> = data.iter().map(Option::is_some).collect();
            *program = with_ordered_points(program, LEAST_OUTPUT, &steady, &ascends);
            let moved = Steady::of(program, &is_steady).moved();
            if !moved.is_empty() {
                found.extend(moved_to(&mut constants, program, &moved));
            }
        }
    }
    training.carried.extend(found);
    if constants.outputs.is_empty() {
        return training;
    }
    forget_unread(&mut training, &mut constants);
    training.constants = Some(constants.needed());
    training
}

/// A step, and the parts of it that are the same in every step.
struct Steady<'p> {
    program: &'p Program,
    /// By tensor: the bytes of the data that it is computed from, if no step changes it.
    data: Vec<Option<u64>>,
    /// By tensor: whether it moves.
    moves: Vec<bool>,
}

impl<'p> Steady<'p> {
    /// Follows the data that `is_steady` names through a step.
    fn of(program: &'p Program, is_steady: &dyn Fn(&str) -> bool) -> Steady<'p> {
        let mut step = Steady {
            program,
            data: vec![],
            moves: vec![],
        };
        for tensor in &program.tensors {
            let (data, moves) = step.follow(tensor, is_steady);
            step.data.push(data);
            step.moves.push(moves);
        }
        // An output is of the step.
        for output in &program.outputs {
            step.data[output.tensor.0 as usize] = None;
            step.moves[output.tensor.0 as usize] = false;
        }
        step
    }

    /// The statements that move and that the rest of the step reads.
    fn moved(mut self) -> Vec<TensorId> {
        while self.more() {}
        let read = self.read().into_iter();
        read.filter(|id| self.moves[id.0 as usize]).collect()
    }

    /// Of a tensor whose operands are known: the bytes of its data, if no step changes it, and whether it moves.
    fn follow(&self, tensor: &Tensor, is_steady: &dyn Fn(&str) -> bool) -> (Option<u64>, bool) {
        match &tensor.definition {
            Definition::Source(Source::Kept) if is_steady(&tensor.name) => {
                (Some(bytes(tensor)), false)
            }
            Definition::Source(Source::Load(_) | Source::Listed { .. }) => {
                (Some(bytes(tensor)), tensor.block.is_none())
            }
            Definition::Source(Source::Full(_) | Source::Iota | Source::Numbers(_)) => {
                (Some(0), false)
            }
            Definition::Statement { kernel, operands } if tensor.block.is_none() => {
                let distinct: BTreeSet<&TensorId> = operands.iter().collect();
                let data = distinct.into_iter().map(|id| self.data[id.0 as usize]);
                let data = data.sum::<Option<u64>>();
                let fits = data.is_some_and(|data| data > 0 && bytes(tensor) <= data.max(SMALL));
                (data, fits && is_costly(kernel))
            }
            _ => (None, false),
        }
    }

    /// The tensors that the rest of the step reads, directly or not, where those that move are given to it.
    fn read(&self) -> Vec<TensorId> {
        let mut rest = self.program.clone();
        for (tensor, moves) in rest.tensors.iter_mut().zip(&self.moves) {
            if *moves {
                tensor.definition = Definition::Source(Source::Kept);
            }
        }
        let rest = rest.needed();
        let left: BTreeSet<&str> = rest.tensors.iter().map(|t| t.name.as_str()).collect();
        let ids = (0..).map(TensorId).zip(&self.program.tensors);
        let read = ids.filter(|(_, tensor)| left.contains(tensor.name.as_str()));
        read.map(|(id, _)| id).collect()
    }

    /// Lets formulas move after which the rest of the step does not read one of their operands, if they are not larger than that. Returns
    /// whether there are any.
    fn more(&mut self) -> bool {
        let read = self.read();
        let mut readers: BTreeMap<TensorId, Vec<TensorId>> = BTreeMap::new();
        for id in &read {
            if let Definition::Statement { operands, .. } = &self.program.tensor(*id).definition
                && !self.moves[id.0 as usize]
            {
                for operand in operands {
                    readers.entry(*operand).or_default().push(*id);
                }
            }
        }
        for (operand, mut readers) in readers {
            readers.dedup();
            let own = bytes(self.program.tensor(operand));
            let all = readers.iter().map(|id| bytes(self.program.tensor(*id)));
            let steady = |id: &TensorId| self.data[id.0 as usize].is_some_and(|data| data > 0);
            if steady(&operand) && readers.iter().all(steady) && all.sum::<u64>() <= own {
                for id in readers {
                    self.moves[id.0 as usize] = true;
                }
                return true;
            }
        }
        false
    }
}

/// The bytes of a tensor.
fn bytes(tensor: &Tensor) -> u64 {
    Format::default().bytes_of(tensor.dtype, &tensor.shape)
}

/// Returns whether a statement is more than a formula of elements that lie beside each other.
fn is_costly(kernel: &Kernel) -> bool {
    let gathers = |(_, positions): (u32, &[NodeId])| {
        let mut positions = positions.iter();
        positions.any(|position| kernel.graph.as_affine(*position).is_none())
    };
    kernel.reduction.is_some() || kernel.library().is_some() || kernel.graph.reads().any(gathers)
}

/// Moves statements of a step to the program of the constants. Returns what is carried for them.
fn moved_to(
    constants: &mut Program,
    program: &mut Program,
    moved: &[TensorId],
) -> Vec<(String, Carried)> {
    let of_constant = |tensor, origin| Output {
        tensor,
        replaces: None,
        file: None,
        asserts: None,
        complex: false,
        origin,
    };
    let outputs = moved
        .iter()
        .map(|id| of_constant(*id, program.tensor(*id).origin));
    let part = Program {
        outputs: outputs.collect(),
        ..program.clone()
    };
    let Some(given) = joined(constants, &part.needed(), program) else {
        return vec![];
    };
    let mut carried = vec![];
    for (id, constant) in moved.iter().zip(given) {
        let Tensor {
            name,
            dtype,
            shape,
            origin,
            ..
        } = constants.tensor(constant);
        let about = Carried {
            kind: CarriedKind::Constant,
            begin: Source::Unbound,
            dtype: *dtype,
            shape: shape.clone(),
            complex: false,
        };
        carried.push((name.clone(), about));
        let output = of_constant(constant, *origin);
        let tensor = &mut program.tensors[id.0 as usize];
        tensor.name.clone_from(name);
        tensor.role = Role::Input;
        tensor.definition = Definition::Source(Source::Kept);
        if !constants.outputs.iter().any(|own| own.tensor == constant) {
            constants.outputs.push(output);
        }
    }
    *program = std::mem::take(program).needed();
    carried
}

/// Adds a part of a step to the program of the constants. Names that are taken there, or in the step, by other tensors get a number behind them.
/// `None` if that does not help, since an input is another one there.
fn joined(constants: &mut Program, part: &Program, step: &Program) -> Option<Vec<TensorId>> {
    let of_step: BTreeSet<&str> = step.tensors.iter().map(|t| t.name.as_str()).collect();
    for number in 0..MOST_NUMBERS {
        let suffix = match number {
            0 => String::new(),
            _ => format!(".{number}"),
        };
        let mut with = constants.clone();
        let given = with.join(part, &suffix);
        let mut names = BTreeSet::new();
        let differ = with.tensors.iter().all(|t| names.insert(t.name.as_str()));
        let mut added = with.tensors[constants.tensors.len()..].iter();
        let clashes = |t: &Tensor| !t.role.is_bound() && of_step.contains(t.name.as_str());
        if differ && (number == 0 || !added.any(clashes)) {
            *constants = with;
            return Some(given);
        }
    }
    None
}

/// Carries no longer what nothing but the program of the constants reads: inputs are its own, and it gives none that no other program reads.
fn forget_unread(training: &mut Training<Program>, constants: &mut Program) {
    let mut read: BTreeSet<String> = BTreeSet::new();
    for program in training.programs().chain(training.own_programs()) {
        read.extend(program.tensors.iter().map(|tensor| tensor.name.clone()));
    }
    let batched = training.blocks.iter().flat_map(|block| &block.inputs);
    read.extend(batched.map(|input| input.name.clone()));
    for tensor in &mut constants.tensors {
        if let Some(input) = training.carried.get(&tensor.name)
            && input.kind == CarriedKind::Input
            && !read.contains(&tensor.name)
            && tensor.definition == Definition::Source(Source::Kept)
        {
            tensor.definition = Definition::Source(input.begin.clone());
        }
    }
    training.carried.retain(|name, carried| {
        let of_data = matches!(carried.kind, CarriedKind::Input | CarriedKind::Constant);
        !of_data || read.contains(name)
    });
    let name = |output: &Output| constants.tensors[output.tensor.0 as usize].name.as_str();
    constants
        .outputs
        .retain(|output| read.contains(name(output)));
}
