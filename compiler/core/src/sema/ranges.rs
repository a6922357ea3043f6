//! Ranges of indices, and the proof that positions stay inside their tensors.
//!
//! An index runs over its bound; else over the size on the typed left side or in the signature; else over the
//! dimensions where it stands alone; else over those of accesses with `else`. A position that is not an index
//! alone is an affine form or an interval whose ends are compared with the size; conditions that hold around it
//! (`where`, bounds that name indices) count. Must not know syntax.
//!
//! ```text
//! 2*y + r - 1 with y < 28, r < 3: -1 … 55
//! ```

use super::{
    Checker,
    arena::{ExprId, Form, TensorRef, Ty, VarId},
    expr::Scope,
    size::Size,
};
use ein_plan::{DType, Function, Reduction, Scalar};
use einc_diag::{Diagnostic, Span};
use std::{collections::BTreeMap, rc::Rc};

/// Who says how far an index runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatedBy {
    Bound,
    LeftType,
    Signature,
}

/// A stated range.
#[derive(Clone, Debug)]
pub(super) struct Stated {
    pub(super) size: Size,
    pub(super) span: Span,
    pub(super) by: StatedBy,
}

/// A place where an index stands alone in a position.
#[derive(Clone, Debug)]
pub(super) struct Use {
    pub(super) size: Size,
    pub(super) span: Span,
    pub(super) tensor: TensorRef,
    /// In an access with `else`.
    pub(super) lenient: bool,
}

/// An index variable.
#[derive(Clone, Debug)]
pub(super) struct Var {
    pub(super) name: String,
    pub(super) span: Span,
    /// The reduction that binds it; `None`: the left side.
    pub(super) reduction: Option<Reduction>,
    pub(super) stated: Option<Stated>,
    pub(super) uses: Vec<Use>,
    pub(super) extent: Option<Size>,
}

/// A position that must be in range.
#[derive(Clone, Debug)]
pub(super) struct Obligation {
    pub(super) position: ExprId,
    pub(super) size: Size,
    pub(super) span: Span,
    pub(super) tensor: TensorRef,
    pub(super) dimension: usize,
    /// Conditions that hold there.
    pub(super) path: Vec<ExprId>,
}

/// The statement that is being read.
#[derive(Default)]
pub(super) struct Open {
    vars: Vec<VarId>,
    obligations: Vec<Obligation>,
    path: Vec<ExprId>,
    /// The tensor that it defines, if its sizes may follow from other statements.
    label: Option<String>,
    /// Pairs of an index and one that its bound names: `s <= t`.
    related: Vec<(VarId, VarId)>,
}

impl Open {
    /// For the definition of a tensor.
    pub(super) fn of(name: &str) -> Open {
        Open {
            label: Some(name.to_owned()),
            ..Open::default()
        }
    }
}

/// `constant + Σ coefficient · index`.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    pub(super) constant: Size,
    pub(super) terms: BTreeMap<VarId, Size>,
}

impl Linear {
    fn constant(constant: Size) -> Linear {
        Linear {
            constant,
            terms: BTreeMap::new(),
        }
    }

    fn plus(&self, other: &Linear, factor: &Size) -> Option<Linear> {
        let mut sum = self.clone();
        sum.constant = sum
            .constant
            .plus(&other.constant.times(factor).ok()?)
            .ok()?;
        for (var, coefficient) in &other.terms {
            let entry = sum.terms.entry(*var).or_insert_with(|| Size::number(0));
            *entry = entry.plus(&coefficient.times(factor).ok()?).ok()?;
        }
        sum.terms
            .retain(|_, coefficient| coefficient.known() != Some(0));
        Some(sum)
    }
}

impl<'a> Checker<'a> {
    pub(super) fn open_path(&mut self) -> &mut Vec<ExprId> {
        &mut self.open_statement().path
    }

    pub(super) fn open_obligations(&mut self) -> &mut Vec<Obligation> {
        &mut self.open_statement().obligations
    }

    pub(super) fn open_related(&mut self) -> &mut Vec<(VarId, VarId)> {
        &mut self.open_statement().related
    }

    fn open_statement(&mut self) -> &mut Open {
        if self.open.is_empty() {
            self.open.push(Open::default());
        }
        self.open
            .last_mut()
            .expect("one was pushed if there was none")
    }

    /// Variables for a name that is bound here: one, or for `..` as many as it stands for.
    pub(super) fn index_vars(
        &mut self,
        scope: &Scope<'a>,
        name: &str,
        span: Span,
        reduction: Option<Reduction>,
    ) -> Vec<VarId> {
        let stated = |size: &Size, place: Span| Stated {
            size: size.clone(),
            span: place,
            by: StatedBy::Signature,
        };
        if name == ".." {
            let sizes = scope.rest.clone().unwrap_or_default();
            return sizes
                .iter()
                .enumerate()
                .map(|(at, size)| {
                    self.new_var(
                        format!("_{}", at + 1),
                        span,
                        reduction,
                        Some(stated(size, span)),
                    )
                })
                .collect();
        }
        let by_signature = scope
            .letters
            .get(name)
            .map(|(size, place)| stated(size, *place));
        vec![self.new_var(name.to_owned(), span, reduction, by_signature)]
    }

    /// A variable with one value.
    pub(super) fn unit_var(&mut self, span: Span, reduction: Reduction) -> VarId {
        let stated = Stated {
            size: Size::number(1),
            span,
            by: StatedBy::Bound,
        };
        self.new_var("_".into(), span, Some(reduction), Some(stated))
    }

    fn new_var(
        &mut self,
        name: String,
        span: Span,
        reduction: Option<Reduction>,
        stated: Option<Stated>,
    ) -> VarId {
        let id = VarId(self.vars.len() as u32);
        self.vars.push(Var {
            name,
            span,
            reduction,
            stated,
            uses: vec![],
            extent: None,
        });
        self.open_statement().vars.push(id);
        id
    }

    /// Ends the open statement: finds all ranges, proves all positions. Whether that went well.
    pub(super) fn close(&mut self) -> bool {
        let Some(open) = self.open.pop() else {
            return true;
        };
        let mut ok = true;
        let (known, bare): (Vec<VarId>, Vec<VarId>) = open.vars.iter().partition(|id| {
            let var = &self.vars[id.0 as usize];
            var.stated.is_some() || !var.uses.is_empty()
        });
        for var in known {
            ok &= self.solve(var);
        }
        for var in bare {
            ok &= self.solve_bare(var, &open);
        }
        if ok {
            for obligation in &open.obligations {
                ok &= self.prove(obligation);
            }
        }
        ok
    }

    /// An index without bound and position: it runs as far as the index whose bound it is (`sum[s <= t]`), or, on
    /// the left, as far as other statements say of the tensor's dimension.
    fn solve_bare(&mut self, id: VarId, open: &Open) -> bool {
        let other = open.related.iter().find(|(_, bound)| *bound == id);
        if let Some(extent) = other.and_then(|(index, _)| self.extent(*index)) {
            self.vars[id.0 as usize].extent = Some(extent);
            return true;
        }
        let var = &self.vars[id.0 as usize];
        let (name, span) = (var.name.clone(), var.span);
        let Some(label) = open.label.as_ref().filter(|_| var.reduction.is_none()) else {
            self.report.push(unknown_range(&name, span));
            return false;
        };
        let dim = format!("{label}.{name}");
        let extent = match self.inferred.get(&dim) {
            Some(size) => size.clone(),
            None => {
                let size = Size::dim(&dim);
                self.provisional.insert(dim, (name, span));
                size
            }
        };
        self.vars[id.0 as usize].extent = Some(extent);
        true
    }

    fn is_provisional(&self, size: &Size) -> bool {
        size.as_dim()
            .is_some_and(|dim| self.provisional.contains_key(&*dim))
    }

    /// Notes what a dimension without a range is compared with.
    fn infer(&mut self, size: &Size, extent: &Size) {
        if let Some(dim) = size.as_dim()
            && self.provisional.contains_key(&*dim)
            && !self.is_provisional(extent)
        {
            self.found
                .entry(dim.to_string())
                .or_insert_with(|| extent.clone());
        }
    }

    /// Reports dimensions that no statement gives a range.
    pub(super) fn report_provisional(&mut self) {
        for (name, span) in std::mem::take(&mut self.provisional).into_values() {
            self.report.push(unknown_range(&name, span));
        }
    }

    fn solve(&mut self, id: VarId) -> bool {
        let var = self.vars[id.0 as usize].clone();
        let name = &var.name;
        let extent = match &var.stated {
            Some(stated) => {
                for use_ in var.uses.iter().filter(|u| !u.lenient) {
                    if use_.size.differs(&stated.size) {
                        let by = match stated.by {
                            StatedBy::LeftType => "on the left",
                            _ => "in the signature",
                        };
                        self.report.push(
                            Diagnostic::error(
                                "E0301",
                                format!(
                                    "index `{name}` has two sizes: {} {by} and {} in `{}`",
                                    stated.size,
                                    use_.size,
                                    self.tensors[use_.tensor.0 as usize].name
                                ),
                            )
                            .at(use_.span, format!("`{name}` runs over {} here", use_.size))
                            .at(stated.span, format!("and over {} here", stated.size)),
                        );
                        return false;
                    }
                }
                stated.size.clone()
            }
            None => {
                let strict: Vec<&Use> = var.uses.iter().filter(|u| !u.lenient).collect();
                let uses = if strict.is_empty() {
                    var.uses.iter().collect()
                } else {
                    strict
                };
                // A known number serves better than a dim that is not known yet, and that better than no range.
                let rank = |u: &&&Use| (u.size.known().is_none(), self.is_provisional(&u.size));
                let Some(first) = uses.iter().min_by_key(rank).copied() else {
                    self.report.push(unknown_range(name, var.span));
                    return false;
                };
                for other in &uses {
                    if other.size.differs(&first.size) {
                        let names =
                            [first, other].map(|u| self.tensors[u.tensor.0 as usize].name.clone());
                        let mut error = Diagnostic::error(
                            "E0301",
                            format!(
                                "index `{name}` has two sizes: {} in `{}` and {} in `{}`",
                                first.size, names[0], other.size, names[1]
                            ),
                        )
                        .at(
                            other.span,
                            format!("`{name}` runs over {} here", other.size),
                        )
                        .at(first.span, format!("and over {} here", first.size));
                        if other.lenient {
                            error = error
                                .help(format!("say which is meant with a bound: `{name} < …`"));
                        }
                        self.report.push(error);
                        return false;
                    }
                }
                first.size.clone()
            }
        };
        for use_ in &var.uses {
            self.infer(&use_.size, &extent);
        }
        self.vars[id.0 as usize].extent = Some(extent);
        true
    }

    /// The last value of a range.
    fn last(&self, size: &Size) -> Size {
        size.subtract(&Size::number(1))
            .unwrap_or_else(|_| size.clone())
    }

    fn prove(&mut self, obligation: &Obligation) -> bool {
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
            let name = self.tensors[obligation.tensor.0 as usize].name.clone();
            let (low, high) = self.ends(&form);
            let value = if upper { high } else { low };
            let text = self.text(obligation.span);
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
                self.tensors[obligation.tensor.0 as usize].span,
                format!("`{name}` is {} here", self.shape_text(obligation.tensor)),
            );
            error = if form.terms.is_empty() && !upper {
                error.help("positions count from 0; the last one is the size minus 1")
            } else {
                error.help("say what is read outside: `… else 0`, or bound the indices")
            };
            self.report.push(error);
            return false;
        }
        true
    }

    /// "where `y` is 0 and `r` is 0".
    fn corner(&self, form: &Linear, upper: bool) -> String {
        let values: Vec<String> = form
            .terms
            .iter()
            .map(|(var, coefficient)| {
                let rising = coefficient.at_least_zero() == Some(true);
                let value = match self.extent(*var) {
                    Some(extent) if rising == upper => self.last(&extent).to_string(),
                    _ => "0".into(),
                };
                format!("`{}` is {value}", self.vars[var.0 as usize].name)
            })
            .collect();
        if values.is_empty() {
            String::new()
        } else {
            format!("where {}", values.join(" and "))
        }
    }

    pub(super) fn extent(&self, var: VarId) -> Option<Size> {
        self.vars[var.0 as usize].extent.clone()
    }

    /// Whether a form is at least 0 wherever the facts (forms that are at least 0) hold; `None`: the sizes decide.
    fn proved(&self, form: &Linear, facts: &[Linear]) -> Option<bool> {
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
    fn ends(&self, form: &Linear) -> (Option<Size>, Option<Size>) {
        let (mut low, mut high) = (Some(form.constant.clone()), Some(form.constant.clone()));
        for (var, coefficient) in &form.terms {
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

    /// Conditions as affine forms that are at least 0.
    fn facts(&mut self, path: &[ExprId]) -> Vec<Linear> {
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
                _ => {}
            }
        }
        facts
    }

    /// The affine form of a whole number, if it is one. Ranges must have been found.
    pub(super) fn linear(&mut self, id: ExprId) -> Option<Rc<Linear>> {
        if let Some(known) = self.linears.get(&id) {
            return known.clone();
        }
        let form = match &*self.arena.form(id) {
            Form::Whole(size) => Some(Linear::constant(size.clone())),
            Form::Constant(Scalar::Int(value)) => Some(Linear::constant(Size::number(*value))),
            Form::Index(var) => Some(Linear {
                constant: Size::number(0),
                terms: BTreeMap::from([(*var, Size::number(1))]),
            }),
            Form::SizeOf(var) => self.extent(*var).map(Linear::constant),
            Form::Convert(argument) if self.arena.ty(*argument) != Ty::Typed(DType::Bool) => {
                let integer = match self.arena.ty(*argument) {
                    Ty::Typed(dtype) => dtype.is_integer(),
                    Ty::Number { whole } => whole,
                };
                let argument = *argument;
                if integer {
                    self.linear(argument).map(|l| (*l).clone())
                } else {
                    None
                }
            }
            Form::Apply(function, arguments) => {
                let (function, arguments) = (*function, arguments.clone());
                self.linear_apply(function, &arguments)
            }
            _ => None,
        };
        let form = form.map(Rc::new);
        self.linears.insert(id, form.clone());
        form
    }

    fn linear_apply(&mut self, function: Function, arguments: &[ExprId]) -> Option<Linear> {
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

fn unknown_range(name: &str, span: Span) -> Diagnostic {
    Diagnostic::error("E0306", format!("nothing says how far `{name}` runs"))
        .at(
            span,
            format!("`{name}` has no bound, and no position where it stands alone"),
        )
        .help(format!("give it a bound where it is bound: `{name} < …`"))
}
