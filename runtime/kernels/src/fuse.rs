//! Which operations of a program become groups that are compiled into one loop.
//!
//! A group is what a strip computes with cheap functions of one floating-point type, and the truth values between
//! them, without a fault, a branch or a transcendental function in between; these stay operations of the strip machine.
//! Must not know how code is made.
//!
//! ```text
//! r2 = r0 * r1; r3 = exp r2; r4 = r3 + r0; r5 = max r4 r1; r6 = r5 / r4   ->   r2; r3; fused {r4, r5, r6} -> r6
//! ```

use crate::compiled::Code;
use crate::program::{Fused, Kind, Operation, Program, Register, bank_of};
use ein_fused::{Group, Input, Step};
use ein_plan::schedule::merging::MOST_OPERATIONS;
use ein_plan::{DType, Function};
use std::collections::HashSet;

/// Fewest operations that are worth a loop of their own: the strip machine's vectors are wider.
pub(crate) const FEWEST: usize = 3;
/// Most operations of a group, so that its values find registers.
pub(crate) const MOST: usize = MOST_OPERATIONS;

/// Most registers that a group reads and writes.
pub(crate) const MOST_REGISTERS: usize = 64;

/// Replaces the operations of every group of at least so many that there is code for.
pub(crate) fn replace(
    program: &mut Program<'_>,
    fewest: usize,
    code: &mut dyn FnMut(&Group) -> Option<Code>,
) {
    let users = program.users();
    for level in 0..program.levels.len() {
        let operations = std::mem::take(&mut program.levels[level]);
        program.levels[level] = Fuser {
            registers: &program.registers,
            users: &users,
            fewest,
            code: &mut *code,
            open: vec![],
            double: None,
            done: vec![],
        }
        .level(operations);
    }
}

/// Whether an operation can be in a group, and which precision it then has (none: truth values only).
pub(crate) fn fits(operation: &Operation, registers: &[Register]) -> Option<Option<bool>> {
    let Kind::Apply(f, a) = &operation.kind else {
        return None;
    };
    let own = registers[operation.node as usize];
    let a = &a[..f.arity()];
    let types = || {
        a.iter()
            .map(|a| registers[*a as usize].dtype)
            .chain([own.dtype])
    };
    let known = types().all(|t| matches!(t, DType::F32 | DType::F64 | DType::Bool));
    if operation.uniform || own.poison.is_some() || !known || !Group::has(*f) {
        return None;
    }
    let logic = matches!(
        f,
        Function::And
            | Function::Or
            | Function::Not
            | Function::Eq
            | Function::Ne
            | Function::Select
            | Function::Stop
    );
    match types().find(|t| t.is_float()) {
        Some(number) => Some(Some(number == DType::F64)),
        None => logic.then_some(None),
    }
}

struct Fuser<'p> {
    registers: &'p [Register],
    users: &'p [Vec<u32>],
    fewest: usize,
    code: &'p mut dyn FnMut(&Group) -> Option<Code>,
    /// The group that is being made.
    open: Vec<Operation>,
    /// The precision of its numbers, once one is seen.
    double: Option<bool>,
    done: Vec<Operation>,
}

impl Fuser<'_> {
    fn level(mut self, operations: Vec<Operation>) -> Vec<Operation> {
        let targets: HashSet<usize> = operations
            .iter()
            .filter_map(|operation| match operation.kind {
                Kind::Skip { to, .. } => Some(to),
                _ => None,
            })
            .collect();
        let mut moved = Vec::with_capacity(operations.len() + 1);
        for (at, operation) in operations.into_iter().enumerate() {
            if targets.contains(&at) || matches!(operation.kind, Kind::Skip { .. }) {
                self.close();
            }
            moved.push(self.done.len());
            match fits(&operation, self.registers) {
                Some(double) => {
                    if self.open.len() == MOST
                        || (double.is_some() && self.double.is_some() && double != self.double)
                    {
                        self.close();
                    }
                    self.double = self.double.or(double);
                    self.open.push(operation);
                }
                None => {
                    let waits = operation
                        .arguments()
                        .iter()
                        .any(|a| self.open.iter().any(|member| member.node == *a));
                    if waits {
                        self.close();
                    }
                    self.done.push(operation);
                }
            }
        }
        self.close();
        moved.push(self.done.len());
        for operation in &mut self.done {
            if let Kind::Skip { to, .. } = &mut operation.kind {
                *to = moved[*to];
            }
        }
        self.done
    }

    /// Ends the group: as one operation if that is worth it and there is code for it, else as it was.
    fn close(&mut self) {
        let members = std::mem::take(&mut self.open);
        let double = self.double.take();
        let fused = double
            .filter(|_| members.len() >= self.fewest)
            .and_then(|double| self.fused(&members, double));
        match fused {
            Some(operation) => self.done.push(operation),
            None => self.done.extend(members),
        }
    }

    fn fused(&mut self, members: &[Operation], double: bool) -> Option<Operation> {
        let inside: HashSet<u32> = members.iter().map(|member| member.node).collect();
        let mut inputs: Vec<u32> = vec![];
        for member in members {
            for argument in member.arguments() {
                if !inside.contains(&argument) && !inputs.contains(&argument) {
                    inputs.push(argument);
                }
            }
        }
        let place = |node: u32| {
            let input = inputs.iter().position(|i| *i == node);
            let step = || members.iter().position(|member| member.node == node);
            input
                .or_else(|| step().map(|at| inputs.len() + at))
                .map(|at| at as u32)
        };
        let mut steps: Vec<Step> = vec![];
        for member in members {
            let Kind::Apply(f, a) = member.kind else {
                return None;
            };
            let mut list = [0; 3];
            for (to, from) in list.iter_mut().zip(&a[..f.arity()]) {
                *to = place(*from)?;
            }
            steps.push((f, list));
        }
        let outputs: Vec<u32> = members
            .iter()
            .map(|member| member.node)
            .filter(|node| {
                self.users[*node as usize]
                    .iter()
                    .any(|user| !inside.contains(user))
            })
            .collect();
        let last = *outputs.last()?;
        if inputs.len() + outputs.len() > MOST_REGISTERS {
            return None;
        }
        let group = Group {
            double,
            inputs: inputs
                .iter()
                .map(|node| {
                    let register = self.registers[*node as usize];
                    Input {
                        truth: bank_of(register.dtype) == 4,
                        uniform: register.uniform,
                    }
                })
                .collect(),
            steps,
            outputs: outputs
                .iter()
                .map(|node| place(*node))
                .collect::<Option<_>>()?,
        };
        let code = (self.code)(&group)?;
        Some(Operation {
            node: last,
            uniform: false,
            splat: false,
            kind: Kind::Fused(Box::new(Fused {
                code,
                width: group.width(),
                inputs,
                outputs,
            })),
        })
    }
}
