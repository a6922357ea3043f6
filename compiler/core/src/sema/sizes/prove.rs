//! Proofs that positions stay inside their tensors.
//!
//! A position is an affine form over indices; its ends are compared with the size. Conditions that hold around it
//! (`where`, bounds that name indices) are forms that are at least 0, and count. Must not know syntax.
//!
//! ```text
//! 2*y + r - 1 with y < 28, r < 3: -1 … 56
//! ```

use crate::einsum::{BlockId, LoopValue};
use crate::sema::{
    Checker,
    definitions::tensors::Definition,
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    rounds::block::Rounds,
    sizes::linear::{Linear, Terms},
    sizes::ranges::{Obligation, Open, Reach, Stated, StatedBy},
    sizes::size::Size,
};
use ein_plan::{DType, Function, Scalar};
use einc_diag::Diagnostic;
use std::rc::Rc;

impl Checker<'_> {
    /// The last value of a range.
    pub(crate) fn last(&self, size: &Size) -> Size {
        size.subtract(&Size::number(1))
            .unwrap_or_else(|_| size.clone())
    }

    pub(crate) fn prove(&mut self, obligation: &Obligation) -> bool {
        if obligation
            .path
            .iter()
            .any(|c| self.arena.as_truth(*c) == Some(false))
        {
            return true;
        }
        let affine = self.linear(obligation.position);
        let Some(form) = affine else {
            // Data, or arithmetic beyond affine forms: looked up at run time.
            return true;
        };
        // A loop that is never entered reads nothing.
        let empty = |var: &VarId| self.extent(*var).and_then(|e| e.known()) == Some(0);
        let open = |var: &VarId| self.extent(*var).is_none_or(|e| self.is_provisional(&e));
        if form.terms.keys().any(|var| empty(var) || open(var)) {
            return true;
        }
        let Ok(top) = obligation.size.subtract(&Size::number(1)) else {
            return true;
        };
        let above = Linear::constant(top).plus(&form, &Size::number(-1));
        let facts = self.facts(&obligation.path);
        let sides = [(Some((*form).clone()), false), (above, true)];
        for (side, upper) in sides {
            let Some(side) = side else {
                continue;
            };
            if self.proved(&side, &facts) != Some(false) {
                continue;
            }
            let name = self.built.tensors[obligation.tensor.0 as usize]
                .name
                .clone();
            let (low, high) = self.ends(&form);
            let value = if upper { high } else { low };
            let text = self.names.text(obligation.span);
            let mut error = Diagnostic::error(
                "E0305",
                match value {
                    Some(value) => format!(
                        "`{text}` reaches {value}, outside of dimension {} of `{name}`, which has {}",
                        obligation.dimension + 1,
                        obligation.size
                    ),
                    None => format!("`{text}` can leave dimension {} of `{name}`", obligation.dimension + 1),
                },
            )
            .at(obligation.span, self.corner(&form, upper))
            .at(
                self.built.tensors[obligation.tensor.0 as usize].span,
                match obligation.written {
                    true => format!("`{name}` has {} there", obligation.size),
                    false => format!("`{name}` is {} here", self.shape_text(obligation.tensor)),
                },
            );
            error = if obligation.written {
                error.help("bound the indices, or make the tensor larger")
            } else if form.terms.is_empty() && !upper {
                error.help("positions count from 0; the last one is the size minus 1")
            } else {
                let bound = self.bound_inside(&form, &obligation.size, upper);
                let bound = bound.unwrap_or_else(|| "or bound the indices".into());
                error.help(format!("say what is read outside: `… else 0`, {bound}"))
            };
            self.report.push(error);
            return false;
        }
        true
    }

    /// Words the bound that keeps a position inside a dimension at its upper or lower end, if the position has one index, whose
    /// range is that of a dimension or a bound: "or bound the index: `i < N - 1`".
    fn bound_inside(&self, form: &Linear, size: &Size, upper: bool) -> Option<String> {
        let [(var, coefficient)] = form.terms.iter().collect::<Vec<_>>()[..] else {
            return None;
        };
        let var = &self.indices.vars[var.0 as usize];
        let ruled = |stated: &Stated| stated.by != StatedBy::Bound;
        let step = coefficient.known()?;
        if var.stated.as_ref().is_some_and(ruled) || (step > 0) != upper {
            return None;
        }
        let room = match upper {
            true => self.last(size).subtract(&form.constant).ok()?,
            false => form.constant.clone(),
        };
        let turns = Size::apply(
            Function::FloorDiv,
            &room,
            &Size::number(step.checked_abs()?),
        );
        let count = turns.ok()?.plus(&Size::number(1)).ok()?;
        if count.known().is_some_and(|count| count <= 0) {
            return None;
        }
        let name = &var.name;
        Some(format!("or bound the index: `{name} < {count}`"))
    }

    /// Returns how far an index can run without leaving a tensor in the positions that contain it. `None` if the positions
    /// disagree, or if they contain an index of unknown range.
    pub(crate) fn reach(&mut self, var: VarId, open: &Open) -> Option<Reach> {
        let (mut reach, mut steps): (Option<Size>, bool) = (None, false);
        for obligation in open.obligations.iter().filter(|o| !o.written) {
            if !self.arena.free(obligation.position).contains(&var) {
                continue;
            }
            let form = self.linear(obligation.position)?;
            let Some(coefficient) = form.terms.get(&var) else {
                continue;
            };
            let step = coefficient.known().filter(|step| *step != 0)?;
            let mut others = (*form).clone();
            others.terms.remove(&var);
            let unknown = |other: &VarId| self.extent(*other).is_none();
            // Where another index goes depends on this one, so that its ends say nothing.
            let follows = |other: &VarId| {
                let mut bounds = open.dependent_bounds.iter().filter(|b| b.index == *other);
                bounds.any(|bound| self.arena.free(bound.value).contains(&var))
            };
            let others_say = |other: &VarId| !unknown(other) && !follows(other);
            if self.is_provisional(&obligation.size) || !others.terms.keys().all(others_say) {
                return None;
            }
            // How far the position can go on from where it is when the index is 0.
            let room = match step > 0 {
                true => self.last(&obligation.size).subtract(&self.ends(&others).1?),
                false => Ok(self.ends(&others).0?),
            };
            let turns = Size::apply(
                Function::FloorDiv,
                &room.ok()?,
                &Size::number(step.checked_abs()?),
            );
            let size = turns.ok()?.plus(&Size::number(1)).ok()?;
            let size = match size.known() {
                Some(number) => Size::number(number.max(0)),
                None => size,
            };
            steps |= step.abs() != 1;
            reach = Some(match reach {
                None => size,
                Some(first) if !first.differs(&size) => first,
                Some(first) => match (first.known(), size.known()) {
                    (Some(a), Some(b)) => Size::number(a.min(b)),
                    _ => return None,
                },
            });
        }
        reach.map(if steps { Reach::Steps } else { Reach::Whole })
    }

    /// Returns the size of the first dimension that is read at a position which depends on an index and is no affine form.
    pub(crate) fn open_reach(&mut self, var: VarId, obligations: &[Obligation]) -> Option<Reach> {
        let read = obligations.iter().find(|obligation| {
            !obligation.written
                && self.arena.free(obligation.position).contains(&var)
                && !self.is_provisional(&obligation.size)
        })?;
        let (position, size) = (read.position, read.size.clone());
        self.linear(position).is_none().then_some(Reach::Open(size))
    }

    /// "where `y` is 0 and `r` is 0".
    pub(crate) fn corner(&self, form: &Linear, upper: bool) -> String {
        let values: Vec<String> = form
            .terms
            .iter()
            .map(|(var, coefficient)| {
                let rising = coefficient.at_least_zero() == Some(true);
                let value = match self.extent(*var) {
                    Some(extent) if rising == upper => self.last(&extent).to_string(),
                    _ => "0".into(),
                };
                format!("`{}` is {value}", self.indices.vars[var.0 as usize].name)
            })
            .collect();
        if values.is_empty() {
            String::new()
        } else {
            format!("where {}", values.join(" and "))
        }
    }

    /// Returns whether a form is at least 0 wherever the facts (forms that are at least 0) hold; `None`: the sizes decide.
    pub(crate) fn proved(&self, form: &Linear, facts: &[Linear]) -> Option<bool> {
        let least = |form: &Linear| self.ends(form).0.and_then(|least| least.at_least_zero());
        let mut result = least(form);
        // What is left of the form after one fact, or two, must be at least 0.
        let minus = Size::number(-1);
        for (at, fact) in facts.iter().enumerate() {
            let one = form.plus(fact, &minus);
            let two = facts[at..]
                .iter()
                .map(|other| one.as_ref()?.plus(other, &minus));
            for rest in std::iter::once(one.clone()).chain(two) {
                match rest.and_then(|rest| least(&rest)) {
                    _ if result == Some(true) => return result,
                    Some(true) => return Some(true),
                    Some(false) => {}
                    None => result = None,
                }
            }
        }
        result
    }

    /// The least and greatest value of a form, where the signs of its coefficients are known.
    pub(crate) fn ends(&self, form: &Linear) -> (Option<Size>, Option<Size>) {
        let (mut low, mut high) = (Some(form.constant.clone()), Some(form.constant.clone()));
        for (var, coefficient) in form.terms.iter() {
            let reach = self
                .extent(*var)
                .and_then(|extent| extent.subtract(&Size::number(1)).ok())
                .and_then(|last| last.times(coefficient).ok());
            let positive = coefficient.at_least_zero();
            let add = |end: Option<Size>| end.zip(reach.clone()).and_then(|(e, r)| e.plus(&r).ok());
            match positive {
                Some(true) => high = add(high),
                Some(false) => low = add(low),
                None => (low, high) = (None, None),
            }
        }
        (low, high)
    }

    /// The largest value of an affine form over indices whose ranges are known, of the number of a round, or of what `+`, `-`, `*`, `/`,
    /// `%`, `min` and `max` make of such values.
    pub(crate) fn largest(&mut self, id: ExprId) -> Option<Size> {
        if self.linear(id).is_some() {
            return self.affine_ends(id)?.1;
        }
        let (function, arguments) = match &*self.arena.form(id) {
            Form::Read { tensor, .. } => return self.most_rounds(*tensor),
            Form::Convert(argument) if self.holds_whole(id, *argument) => {
                let argument = *argument;
                return self.largest(argument);
            }
            Form::Apply(function, arguments) => (*function, arguments.clone()),
            _ => return None,
        };
        let [a, b] = arguments[..] else { return None };
        match function {
            Function::Add => self.largest(a)?.plus(&self.largest(b)?).ok(),
            Function::Sub => self.largest(a)?.subtract(&self.least(b)?).ok(),
            Function::Min | Function::Max => {
                Size::apply(function, &self.largest(a)?, &self.largest(b)?).ok()
            }
            Function::Mul => {
                let (a, b) = match self.arena.as_size(a) {
                    Some(_) => (b, a),
                    None => (a, b),
                };
                let times = self.arena.as_size(b)?;
                (times.at_least_zero() == Some(true))
                    .then(|| self.largest(a)?.times(&times).ok())
                    .flatten()
            }
            Function::FloorDiv | Function::Rem => {
                let by = self.linear(b)?;
                let last = self.last(&by.constant);
                if !by.terms.is_empty() || last.at_least_zero() != Some(true) {
                    return None;
                }
                match function {
                    Function::Rem => Some(last),
                    _ => Size::apply(function, &self.largest(a)?, &by.constant).ok(),
                }
            }
            _ => None,
        }
    }

    /// The least value of an affine form over indices whose ranges are known, of the number of a round, or of a sum of such values.
    fn least(&mut self, id: ExprId) -> Option<Size> {
        if self.linear(id).is_some() {
            return self.affine_ends(id)?.0;
        }
        let (a, b) = match &*self.arena.form(id) {
            Form::Read { tensor, .. } => {
                return self.most_rounds(*tensor).map(|_| Size::number(0));
            }
            Form::Convert(argument) if self.holds_whole(id, *argument) => {
                let argument = *argument;
                return self.least(argument);
            }
            Form::Apply(Function::Add, arguments) => (arguments[0], arguments[1]),
            _ => return None,
        };
        self.least(a)?.plus(&self.least(b)?).ok()
    }

    /// The ends of an affine form, if the ranges of all its indices are known.
    fn affine_ends(&mut self, id: ExprId) -> Option<(Option<Size>, Option<Size>)> {
        let form = self.linear(id)?;
        let unknown = |var: &VarId| self.extent(*var).is_none_or(|e| self.is_provisional(&e));
        (!form.terms.keys().any(unknown)).then(|| self.ends(&form))
    }

    /// The largest value of the number of a round, or of how many rounds were made, where sizes bound the rounds.
    fn most_rounds(&self, tensor: TensorRef) -> Option<Size> {
        let Definition::Loop(value) = &self.built.tensors[tensor.0 as usize].definition else {
            return None;
        };
        let rounds = |block: &BlockId| match &self.built.blocks[block.0 as usize].bound {
            Rounds::Size(rounds) => Some(rounds.clone()),
            _ => None,
        };
        match value {
            LoopValue::Counter(block) => rounds(block).map(|rounds| self.last(&rounds)),
            LoopValue::Rounds(block) => rounds(block),
            _ => None,
        }
    }

    /// Returns whether a conversion leaves whole numbers as they are. In narrow types they wrap, and so do those below 0 in `u64`.
    fn holds_whole(&self, id: ExprId, argument: ExprId) -> bool {
        let wraps = |dtype: DType| dtype.is_narrow() || dtype == DType::U64;
        let (to, from) = (self.arena.ty(id), self.arena.ty(argument));
        self.is_integral(argument) && (to == from || !matches!(to, Ty::Typed(to) if wraps(to)))
    }

    /// Returns whether an expression is of an integer type, or a whole number.
    fn is_integral(&self, id: ExprId) -> bool {
        match self.arena.ty(id) {
            Ty::Typed(dtype) => dtype.is_integer(),
            Ty::Number { whole } => whole,
        }
    }

    /// Conditions as affine forms that are at least 0.
    pub(crate) fn facts(&mut self, path: &[ExprId]) -> Vec<Linear> {
        let mut facts = vec![];
        let mut open: Vec<(ExprId, bool)> = path.iter().map(|c| (*c, true)).collect();
        while let Some((condition, holds)) = open.pop() {
            if facts.len() > 64 {
                break;
            }
            let form = self.arena.form(condition);
            let Form::Apply(function, arguments) = &*form else {
                continue;
            };
            match (function, holds) {
                (Function::And, true) | (Function::Or, false) => {
                    open.extend(arguments.iter().map(|a| (*a, holds)));
                    continue;
                }
                (Function::Not, _) => {
                    open.push((arguments[0], !holds));
                    continue;
                }
                _ => {}
            }
            let [a, b] = arguments.as_slice() else {
                continue;
            };
            if self.arena.ty(*a) != Ty::Typed(DType::I64) {
                continue;
            }
            let (Some(a), Some(b)) = (self.linear(*a), self.linear(*b)) else {
                continue;
            };
            let mut at_least = |x: &Linear, y: &Linear, slack: i64| {
                let difference = x.plus(y, &Size::number(-1));
                facts.extend(difference.and_then(|d| {
                    d.plus(&Linear::constant(Size::number(slack)), &Size::number(1))
                }));
            };
            match (function, holds) {
                (Function::Lt, true) | (Function::Ge, false) => at_least(&b, &a, -1),
                (Function::Le, true) | (Function::Gt, false) => at_least(&b, &a, 0),
                (Function::Gt, true) | (Function::Le, false) => at_least(&a, &b, -1),
                (Function::Ge, true) | (Function::Lt, false) => at_least(&a, &b, 0),
                (Function::Eq, true) | (Function::Ne, false) => {
                    at_least(&a, &b, 0);
                    at_least(&b, &a, 0);
                }
                // A value that is not at an end of its range is one further in.
                (Function::Ne, true) | (Function::Eq, false) => {
                    for (x, y) in [(&a, &b), (&b, &a)] {
                        let least = x.plus(y, &Size::number(-1));
                        let least = least.and_then(|difference| self.ends(&difference).0);
                        if least.and_then(|least| least.at_least_zero()) == Some(true) {
                            at_least(x, y, -1);
                        }
                    }
                }
                _ => {}
            }
        }
        facts
    }

    /// The affine form of a whole number, if it is one. Ranges must have been found.
    pub(crate) fn linear(&mut self, id: ExprId) -> Option<Rc<Linear>> {
        if let Some(known) = self.indices.linears.get(&id) {
            return known.clone();
        }
        let form = match &*self.arena.form(id) {
            Form::Whole(size) => Some(Linear::constant(size.clone())),
            Form::Constant(Scalar::Int(value)) => Some(Linear::constant(Size::number(*value))),
            Form::Index(var) => Some(Linear {
                constant: Size::number(0),
                terms: Terms::index(*var),
            }),
            Form::SizeOf(var) => self.extent(*var).map(Linear::constant),
            Form::Convert(argument) if self.holds_whole(id, *argument) => {
                let argument = *argument;
                self.linear(argument).map(|l| (*l).clone())
            }
            Form::Apply(function, arguments) => {
                let (function, arguments) = (*function, arguments.clone());
                self.linear_apply(function, &arguments)
            }
            _ => None,
        };
        let form = form.map(Rc::new);
        self.indices.linears.insert(id, form.clone());
        form
    }

    pub(crate) fn linear_apply(
        &mut self,
        function: Function,
        arguments: &[ExprId],
    ) -> Option<Linear> {
        let a = self.linear(*arguments.first()?)?;
        let one = Size::number(1);
        let minus = Size::number(-1);
        match function {
            Function::Neg => Linear::constant(Size::number(0)).plus(&a, &minus),
            Function::Stop => Some((*a).clone()),
            _ => {
                let b = self.linear(*arguments.get(1)?)?;
                match function {
                    Function::Add => a.plus(&b, &one),
                    Function::Sub => a.plus(&b, &minus),
                    Function::Mul if a.terms.is_empty() => {
                        Linear::constant(Size::number(0)).plus(&b, &a.constant)
                    }
                    Function::Mul if b.terms.is_empty() => {
                        Linear::constant(Size::number(0)).plus(&a, &b.constant)
                    }
                    Function::FloorDiv | Function::Rem | Function::Min | Function::Max
                        if a.terms.is_empty() && b.terms.is_empty() =>
                    {
                        Size::apply(function, &a.constant, &b.constant)
                            .ok()
                            .map(Linear::constant)
                    }
                    _ => None,
                }
            }
        }
    }
}
