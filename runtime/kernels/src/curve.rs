//! Transcendental functions and the arithmetic around them as one operation.
//!
//! A strip that is only scaled or shifted on its way into a function, or multiplied by what went in on its way out, needs no loop of its own:
//! vectors that are full of the function's work do it beside. Bits are those of the operations one by one. Must not know how functions are
//! computed.
//!
//! ```text
//! r1 = c * r0; r2 = erf r1; r3 = r2 + 1; r4 = h * r0; r5 = r4 * r3   ->   r5 = (erf(c r0 - 0) + 1) · (h r0)
//! ```

use crate::fuse::{arguments, users};
use crate::program::{Kind, Operation, Program, Register};
use ein_plan::{DType, Function};

/// `(f(scale · x - shift) + plus) · (by · x)` of single precision; all but x are the same in all lanes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Curve {
    pub function: Function,
    /// The node x.
    pub argument: u32,
    pub scale: Option<u32>,
    pub shift: Option<u32>,
    pub plus: Option<u32>,
    /// The last factor, if there is one; without a node it is x.
    pub by: Option<Option<u32>>,
}

impl Curve {
    /// The nodes whose values it needs.
    pub(crate) fn arguments(&self) -> Vec<u32> {
        let uniform = [self.scale, self.shift, self.plus, self.by.flatten()];
        let uniform = uniform.into_iter().flatten();
        uniform.chain([self.argument]).collect()
    }
}

/// Whether there is a loop for a function with arithmetic around it.
fn has(function: Function) -> bool {
    use Function::*;
    matches!(function, Exp | Expm1 | Log | Log1p | Tanh | Sigmoid | Erf)
}

/// Makes one operation of every function and what can be taken with it.
pub(crate) fn replace(program: &mut Program<'_>) {
    let users = users(program);
    for level in 0..program.levels.len() {
        let operations = std::mem::take(&mut program.levels[level]);
        program.levels[level] = Level {
            registers: &program.registers,
            users: &users,
            operations,
        }
        .replaced();
    }
}

/// The operations of a level.
struct Level<'p> {
    registers: &'p [Register],
    /// For each node the nodes that use it.
    users: &'p [Vec<u32>],
    operations: Vec<Operation>,
}

impl Level<'_> {
    fn replaced(mut self) -> Vec<Operation> {
        let segments = self.segments();
        let mut gone = vec![false; self.operations.len()];
        for at in 0..self.operations.len() {
            let Some((curve, taken)) = self.curve(at) else {
                continue;
            };
            // What one branch alone needs stays in it.
            if taken.iter().any(|other| segments[*other] != segments[at]) {
                continue;
            }
            let last = taken.iter().copied().fold(at, usize::max);
            for other in taken.into_iter().chain([at]) {
                gone[other] = other != last;
            }
            self.operations[last].kind = Kind::Curve(Box::new(curve));
        }
        let mut moved = Vec::with_capacity(gone.len() + 1);
        let mut kept = vec![];
        for (operation, gone) in self.operations.into_iter().zip(gone) {
            moved.push(kept.len());
            if !gone {
                kept.push(operation);
            }
        }
        moved.push(kept.len());
        for operation in &mut kept {
            if let Kind::Skip { to, .. } = &mut operation.kind {
                *to = moved[*to];
            }
        }
        kept
    }

    /// For each operation how many branches have begun or ended before it.
    fn segments(&self) -> Vec<usize> {
        let mut begins = vec![0; self.operations.len() + 1];
        for (at, operation) in self.operations.iter().enumerate() {
            if let Kind::Skip { to, .. } = operation.kind {
                begins[at] += 1;
                begins[to] += 1;
            }
        }
        let mut segment = 0;
        let count = |begins: usize| {
            segment += begins;
            segment
        };
        begins.into_iter().map(count).collect()
    }

    /// The operation of a function with what is around it, and the operations that it is instead of.
    fn curve(&self, at: usize) -> Option<(Curve, Vec<usize>)> {
        let (function, a) = self.applied(at)?;
        if !has(function) {
            return None;
        }
        let mut taken = vec![];
        let mut curve = Curve {
            function,
            argument: a[0],
            scale: None,
            shift: None,
            plus: None,
            by: None,
        };
        if let Some((made, Function::Sub, [x, shift, _])) = self.made(curve.argument)
            && self.is_uniform(shift)
        {
            (curve.argument, curve.shift) = (x, Some(shift));
            taken.push(made);
        }
        if let Some((made, Function::Mul, a)) = self.made(curve.argument)
            && let Some((scale, x)) = self.scaled(a)
        {
            (curve.argument, curve.scale) = (x, Some(scale));
            taken.push(made);
        }
        let mut value = self.operations[at].node;
        if let Some((user, Function::Add, a)) = self.user(value)
            && let Some((plus, _)) = self.scaled(a)
        {
            curve.plus = Some(plus);
            taken.push(user);
            value = self.operations[user].node;
        }
        if let Some((user, Function::Mul, [a, b, _])) = self.user(value) {
            let factor = if a == value { b } else { a };
            let by = match self.made(factor) {
                _ if factor == curve.argument => Some(None),
                Some((made, Function::Mul, a)) => match self.scaled(a) {
                    Some((by, x)) if x == curve.argument => {
                        taken.push(made);
                        Some(Some(by))
                    }
                    _ => None,
                },
                _ => None,
            };
            if by.is_some() {
                curve.by = by;
                taken.push(user);
            }
        }
        (!taken.is_empty()).then_some((curve, taken))
    }

    /// The uniform one of two factors or terms, and the other one.
    fn scaled(&self, [a, b, _]: [u32; 3]) -> Option<(u32, u32)> {
        match (self.is_uniform(a), self.is_uniform(b)) {
            (true, false) => Some((a, b)),
            (false, true) => Some((b, a)),
            _ => None,
        }
    }

    fn is_uniform(&self, node: u32) -> bool {
        self.registers[node as usize].uniform
    }

    /// A function of this level of single precision that differs between lanes and cannot fault.
    fn applied(&self, at: usize) -> Option<(Function, [u32; 3])> {
        let operation = &self.operations[at];
        let Kind::Apply(function, a) = operation.kind else {
            return None;
        };
        let plain = |node: &u32| {
            let register = self.registers[*node as usize];
            register.dtype == DType::F32 && register.poison.is_none()
        };
        let known = !operation.uniform && plain(&operation.node);
        (known && a[..function.arity()].iter().all(plain)).then_some((function, a))
    }

    /// The operation that makes a node, if only one other uses that.
    fn made(&self, node: u32) -> Option<(usize, Function, [u32; 3])> {
        if self.users[node as usize].len() != 1 {
            return None;
        }
        let at = self.operations.iter().position(|o| o.node == node)?;
        let (function, a) = self.applied(at)?;
        Some((at, function, a))
    }

    /// The operation that alone uses a node.
    fn user(&self, node: u32) -> Option<(usize, Function, [u32; 3])> {
        let [user] = self.users[node as usize][..] else {
            return None;
        };
        let mut operations = self.operations.iter();
        let at = operations.position(|o| o.node == user && arguments(o).contains(&node))?;
        let (function, a) = self.applied(at)?;
        Some((at, function, a))
    }
}
