//! Transcendental functions and the arithmetic around them as one operation.
//!
//! A strip that is only scaled or shifted on its way into a function, or multiplied by what went in on its way out, needs no loop of its own:
//! vectors that are full of the function's work do it beside. A division of many numbers by one is taken the same way. Bits are those of the
//! operations one by one. Must not know how functions are computed.
//!
//! ```text
//! r1 = c * r0; r2 = erf r1; r3 = r2 + 1; r4 = h * r0; r5 = r4 * r3   ->   r5 = (erf(c r0 - 0) + 1) · (h r0)
//! ```

use crate::math;
use crate::program::{Curve, Kind, Operation, Program, Register};
use crate::quotient;
use crate::stream::{self, Ahead};
use crate::wide::{self, Job};
use ein_plan::{DType, Function};

/// Lanes that go by way of the first cache at once.
const PART: usize = 1024;

/// Lanes after which memory is asked for again: far fewer lines than may be under way at once.
const EACH: usize = 128;

/// A curve, the values of its nodes known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub function: Function,
    pub scale: f32,
    pub shift: f32,
    pub plus: f32,
    pub by: Option<f32>,
    pub under: Option<f32>,
}

impl Known {
    /// `to[l]` of `from[l]`.
    pub(crate) fn run(self, to: &mut [f32], from: &[f32]) {
        self.run_ahead(to, from, Ahead::Nothing);
    }

    /// The same, meanwhile asking for memory.
    pub(crate) fn run_ahead(self, to: &mut [f32], from: &[f32], ahead: Ahead<'_>) {
        match (self.under, ahead) {
            // It computes too little to be slower than memory that it reads itself.
            (Some(under), Ahead::Nothing | Ahead::Next) => quotient::run(to, from, under),
            (Some(under), Ahead::Soon(soon)) => {
                for (to, from) in to.chunks_mut(PART).zip(from.chunks(PART)) {
                    soon.ask(from.len());
                    quotient::run(to, from, under);
                }
            }
            (None, _) => wide::run(Lanes {
                curve: self,
                to,
                from,
                ahead,
            }),
        }
    }

    /// The same past the caches, part by part, most of them whole lines; [`stream::fence`] comes after the last one.
    pub(crate) fn past(self, to: &mut [f32], from: &[f32], ahead: Ahead<'_>) {
        let mut buffer = [0.0; PART];
        let (head, rest) = to.split_at_mut(stream::before_line(to));
        let (from_head, from) = from.split_at(head.len());
        self.run(head, from_head);
        for (to, from) in rest.chunks_mut(PART).zip(from.chunks(PART)) {
            let buffer = &mut buffer[..to.len()];
            self.run_ahead(buffer, from, ahead);
            stream::copy(to, buffer, true);
        }
    }

    /// The same of what is there.
    pub(crate) fn over(self, lanes: &mut [f32], ahead: Ahead<'_>) {
        let mut buffer = [0.0; PART];
        for part in lanes.chunks_mut(PART) {
            // Memory is read at the pace of the function, and written while it is in the first cache.
            let buffer = &mut buffer[..part.len()];
            self.run_ahead(buffer, part, ahead);
            part.copy_from_slice(buffer);
        }
    }
}

/// The lanes that a curve is computed of, and what is asked for meanwhile.
struct Lanes<'l> {
    curve: Known,
    to: &'l mut [f32],
    from: &'l [f32],
    ahead: Ahead<'l>,
}

impl Job for Lanes<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const BYTES: usize>(self) {
        let Known {
            function,
            scale,
            shift,
            plus,
            by,
            under: _,
        } = self.curve;
        let only_shift = scale == 1.0 && plus.to_bits() == (-0.0_f32).to_bits() && by.is_none();
        let alone = only_shift && shift.to_bits() == 0;
        // The function is called by its name: one that is passed as a value may be left out of line.
        macro_rules! each {
            ($x:ident => $value:expr) => {
                for (to, from) in self.to.chunks_mut(EACH).zip(self.from.chunks(EACH)) {
                    self.ahead.ask(from);
                    for (to, $x) in to.iter_mut().zip(from) {
                        *to = $value;
                    }
                }
            };
        }
        macro_rules! curve {
            ($($f:tt)+) => {
                match by {
                    None if alone => each!(x => $($f)+(*x)),
                    None => each!(x => $($f)+(scale * *x - shift) + plus),
                    Some(by) => each!(x => ($($f)+(scale * *x - shift) + plus) * (by * *x)),
                }
            };
        }
        match function {
            // Softmax: what changes nothing would take a third as long again as the rest.
            Function::Exp if only_shift => self.exponentials(shift),
            Function::Exp => curve!(math::exp_f32),
            Function::Expm1 => curve!(math::expm1_f32),
            Function::Log => curve!(math::log_f32),
            Function::Log1p => curve!(math::log1p_f32),
            Function::Tanh => curve!(math::tanh_f32),
            Function::Sigmoid => curve!(math::sigmoid_f32),
            Function::Erf => curve!(math::erf_f32),
            Function::Gelu => curve!(math::gelu_f32),
            other => unreachable!("{} has no loop with arithmetic around it", other.name()),
        }
    }
}

impl Lanes<'_> {
    /// e^(x - shift), by the short way where the differences are near 0.
    #[inline(always)]
    fn exponentials(self, shift: f32) {
        let (to, to_rest) = self.to.as_chunks_mut::<EACH>();
        let (from, from_rest) = self.from.as_chunks::<EACH>();
        for (to, from) in to.iter_mut().zip(from) {
            self.ahead.ask(from);
            let magnitudes = from.iter().map(|x| math::magnitude_bits(*x - shift));
            if magnitudes.fold(0, u32::max) <= math::NEAR {
                for (to, x) in to.iter_mut().zip(from) {
                    *to = math::exp_near_f32(*x - shift);
                }
            } else {
                for (to, x) in to.iter_mut().zip(from) {
                    *to = math::exp_f32(*x - shift);
                }
            }
        }
        for (to, x) in to_rest.iter_mut().zip(from_rest) {
            *to = math::exp_f32(*x - shift);
        }
    }
}

/// Whether there is a loop for a function with arithmetic around it.
fn has(function: Function) -> bool {
    use Function::*;
    matches!(
        function,
        Exp | Expm1 | Log | Log1p | Tanh | Sigmoid | Erf | Gelu
    )
}

/// Makes a curve of a function, or a division by what is the same in all lanes, that stands alone in the innermost level but for reads and other
/// names for it. Whether there is one now.
pub(crate) fn alone(program: &mut Program<'_>) -> bool {
    let registers = &program.registers;
    let Some(level) = program.levels.last_mut() else {
        return false;
    };
    let mut others = level.iter().filter(|o| !matches!(o.kind, Kind::Read(_)));
    let Some(first) = others.next() else {
        return false;
    };
    let mut node = first.node;
    for other in others {
        match other.kind {
            Kind::Apply(Function::Stop, [of, ..]) if of == node => node = other.node,
            _ => return false,
        }
    }
    let single = registers[first.node as usize].dtype == DType::F32;
    let uniform = |node: u32| registers[node as usize].uniform;
    let curve = match &first.kind {
        Kind::Curve(curve) => Curve::clone(curve),
        Kind::Apply(function, [x, ..]) if has(*function) && single => Curve::of(*function, *x),
        Kind::Apply(Function::Div, [x, by, _]) if single && !uniform(*x) && uniform(*by) => Curve {
            under: Some(*by),
            ..Curve::of(Function::Stop, *x)
        },
        _ => return false,
    };
    if first.uniform || node != program.root {
        return false;
    }
    level.retain(|o| matches!(o.kind, Kind::Read(_)) || o.node == node);
    for operation in level.iter_mut().filter(|o| o.node == node) {
        operation.kind = Kind::Curve(Box::new(curve.clone()));
    }
    // It takes one lane of what is the same in all.
    for operation in program.levels.iter_mut().flatten() {
        operation.splat = false;
    }
    true
}

/// Makes one operation of every function and what can be taken with it.
pub(crate) fn replace(program: &mut Program<'_>) {
    let users = program.users();
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
        let mut curve = Curve::of(function, a[0]);
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
        let at = operations.position(|o| o.node == user && o.arguments().contains(&node))?;
        let (function, a) = self.applied(at)?;
        Some((at, function, a))
    }
}
