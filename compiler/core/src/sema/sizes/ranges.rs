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

use crate::einsum::Role;
use crate::sema::{
    Checker,
    expressions::arena::{ExprId, TensorRef, VarId},
    expressions::scope::Scope,
    sizes::linear::Linear,
    sizes::size::Size,
};
use ein_plan::Reduction;
use einc_diag::{Diagnostic, Span};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// Who says how far an index runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StatedBy {
    Bound,
    LeftType,
    Signature,
    /// The state whose next value is defined.
    State,
}

/// A stated range.
#[derive(Clone, Debug)]
pub(crate) struct Stated {
    pub(crate) size: Size,
    pub(crate) span: Span,
    pub(crate) by: StatedBy,
}

/// A place where an index stands alone in a position.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) size: Size,
    pub(crate) span: Span,
    pub(crate) tensor: TensorRef,
    /// In an access with `else`.
    pub(crate) lenient: bool,
}

/// An index variable.
#[derive(Clone, Debug)]
pub(crate) struct Var {
    pub(crate) name: String,
    pub(crate) span: Span,
    /// The reduction that binds it; `None`: the left side.
    pub(crate) reduction: Option<Reduction>,
    pub(crate) stated: Option<Stated>,
    pub(crate) uses: Vec<Use>,
    pub(crate) extent: Option<Size>,
}

/// A position that must be in range.
#[derive(Clone, Debug)]
pub(crate) struct Obligation {
    pub(crate) position: ExprId,
    pub(crate) size: Size,
    pub(crate) span: Span,
    pub(crate) tensor: TensorRef,
    pub(crate) dimension: usize,
    /// True if it is a place that a scatter writes to.
    pub(crate) written: bool,
    /// Conditions that hold there.
    pub(crate) path: Vec<ExprId>,
}

/// The statement that is being read.
#[derive(Default)]
pub(crate) struct Open {
    vars: Vec<VarId>,
    pub(crate) obligations: Vec<Obligation>,
    path: Vec<ExprId>,
    /// The tensor that it defines, if its sizes may follow from other statements.
    label: Option<String>,
    /// Pairs of an index and one that its bound names: `s <= t`.
    related: Vec<(VarId, VarId)>,
    /// Bounds that depend on other indices or on data.
    pub(crate) dependent_bounds: Vec<DependentBound>,
}

/// A bound of an index that no size can express: `j < N - i`, `j <= length[i]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DependentBound {
    pub(crate) index: VarId,
    pub(crate) value: ExprId,
    pub(crate) inclusive: bool,
    pub(crate) span: Span,
}

/// The number of values that an index can take so that all affine positions that contain it stay inside their tensors.
#[derive(Clone, Debug)]
pub(crate) enum Reach {
    /// The index shifts or reverses a dimension: `x[N - 1 - i]`, `x[i + 1]`. This is its range if nothing else states one.
    Whole(Size),
    /// The index goes through a dimension in steps: `x[2 * i]`. The user must state the range; a message offers this one.
    Steps(Size),
    /// The index stands in a position of another form, `x[(i - 1) % N]`: any range may be meant. A message offers the size of what
    /// is read.
    Open(Size),
}

/// A dimension whose range the statement itself does not say; other statements may.
#[derive(Clone, Debug)]
pub(crate) struct Provisional {
    /// The index on the left side.
    pub(super) index: String,
    pub(super) span: Span,
    /// The range that the accesses of the statement allow.
    pub(super) reach: Option<Reach>,
}

impl Open {
    /// For the definition of a tensor.
    pub(crate) fn of(name: &str) -> Open {
        Open {
            label: Some(name.to_owned()),
            ..Open::default()
        }
    }
}

/// All index variables, and the statements that are being read.
#[derive(Default)]
pub(crate) struct Indices {
    pub(crate) vars: Vec<Var>,
    /// Statements being read, the innermost last.
    pub(crate) open: Vec<Open>,
    /// Expressions as affine forms over indices, where they are ones.
    pub(crate) linears: FxHashMap<ExprId, Option<Rc<Linear>>>,
    /// Every read with its positions.
    pub(crate) reads: Vec<(TensorRef, Vec<ExprId>)>,
}

impl<'a> Checker<'a> {
    pub(crate) fn open_path(&mut self) -> &mut Vec<ExprId> {
        &mut self.open_statement().path
    }

    pub(crate) fn open_obligations(&mut self) -> &mut Vec<Obligation> {
        &mut self.open_statement().obligations
    }

    pub(crate) fn open_related(&mut self) -> &mut Vec<(VarId, VarId)> {
        &mut self.open_statement().related
    }

    pub(crate) fn open_dependent_bounds(&mut self) -> &mut Vec<DependentBound> {
        &mut self.open_statement().dependent_bounds
    }

    fn open_statement(&mut self) -> &mut Open {
        if self.indices.open.is_empty() {
            self.indices.open.push(Open::default());
        }
        self.indices
            .open
            .last_mut()
            .expect("one was pushed if there was none")
    }

    /// Variables for a name that is bound here: one, or for `..` as many as it stands for.
    pub(crate) fn index_vars(
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

    /// A variable that runs over a size.
    pub(crate) fn fresh_var(&mut self, name: String, size: Size, span: Span) -> VarId {
        let scope = Scope::file(span.file);
        let var = self.index_vars(&scope, &name, span, None)[0];
        self.indices.vars[var.0 as usize].stated = Some(Stated {
            size,
            span,
            by: StatedBy::Bound,
        });
        var
    }

    /// A variable with one value.
    pub(crate) fn unit_var(&mut self, span: Span, reduction: Reduction) -> VarId {
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
        let id = VarId(self.indices.vars.len() as u32);
        self.indices.vars.push(Var {
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
    pub(crate) fn close(&mut self) -> bool {
        let Some(open) = self.indices.open.pop() else {
            return true;
        };
        let (known, bare): (Vec<VarId>, Vec<VarId>) =
            open.vars.iter().partition(|id| self.is_known(**id));
        let mut failed: Vec<VarId> = vec![];
        for var in known {
            if !self.solve(var) {
                failed.push(var);
            }
        }
        for var in bare {
            let told = self
                .bound_names(var, &open)
                .iter()
                .any(|n| failed.contains(n));
            if told || !self.solve_bare(var, &open) {
                failed.push(var);
            }
        }
        let mut ok = failed.is_empty();
        if ok {
            for obligation in &open.obligations {
                ok &= self.prove(obligation);
            }
        }
        ok
    }

    /// Finds the range of an index before the open statement ends, of what the statement says so far. Whether that went well.
    pub(crate) fn solve_early(&mut self, id: VarId) -> bool {
        if self.is_known(id) {
            return self.solve(id);
        }
        let open = std::mem::take(self.open_statement());
        let known = open.vars.iter().filter(|id| self.is_known(**id));
        let known: Vec<VarId> = known.copied().collect();
        let solved = known.into_iter().all(|id| self.solve(id)) && self.solve_bare(id, &open);
        *self.open_statement() = open;
        solved
    }

    /// True if an index has a bound that is a size, or stands alone in a position.
    fn is_known(&self, id: VarId) -> bool {
        let var = &self.indices.vars[id.0 as usize];
        var.stated.is_some() || !var.uses.is_empty()
    }

    /// The indices in the bound of an index.
    fn bound_names(&self, var: VarId, open: &Open) -> Vec<VarId> {
        let bounds = open.dependent_bounds.iter().filter(|b| b.index == var);
        bounds
            .flat_map(|bound| self.arena.free(bound.value).to_vec())
            .collect()
    }

    /// Finds the range of an index that stands alone in no position and has no bound that is a size. It runs as far as its own
    /// bound ever lets it (`sum[j < N - i]`), or as far as the index whose bound it is (`sum[s <= t]`), or, on
    /// the left, as far as other statements say of the tensor's dimension, or as far as it can in the accesses that it shifts.
    pub(crate) fn solve_bare(&mut self, id: VarId, open: &Open) -> bool {
        let own = open.dependent_bounds.iter().find(|b| b.index == id);
        if let Some(extent) = own.and_then(|bound| self.largest_bound(bound)) {
            self.indices.vars[id.0 as usize].extent = Some(extent);
            return true;
        }
        let other = open.related.iter().find(|(_, bound)| *bound == id);
        if let Some(extent) = other.and_then(|(index, _)| self.extent(*index)) {
            self.indices.vars[id.0 as usize].extent = Some(extent);
            return true;
        }
        if let Some(bound) = own {
            return self.solve_by_largest_bound(bound);
        }
        let var = self.indices.vars[id.0 as usize].clone();
        let (name, span) = (var.name, var.span);
        let reach = self.reach(id, open);
        let reach = reach.or_else(|| self.open_reach(id, &open.obligations));
        let label = open.label.as_ref().filter(|_| var.reduction.is_none());
        let extent = match (label.cloned(), &reach) {
            (Some(label), _) => self.provisional_size(&label, (&name, span), reach),
            (None, Some(Reach::Whole(size))) => size.clone(),
            (None, _) => {
                self.report.push(unknown_range(&name, span, reach.as_ref()));
                return false;
            }
        };
        self.indices.vars[id.0 as usize].extent = Some(extent);
        true
    }

    /// Lets an index run over all values that its bound allows for any values of the indices that the bound names. The bound itself
    /// stays a condition. An index whose range no statement says yet is told by itself.
    fn solve_by_largest_bound(&mut self, bound: &DependentBound) -> bool {
        let extent = self.largest_bound(bound);
        if extent.is_none() {
            let names = self.arena.free(bound.value);
            let mut extents = names.iter().filter_map(|var| self.extent(*var));
            if extents.any(|extent| self.is_provisional(&extent)) {
                return false;
            }
            let name = &self.indices.vars[bound.index.0 as usize].name;
            let error = Diagnostic::error("E0306", format!("nothing says how far `{name}` runs"))
                .at(bound.span, "the sizes do not say how large this can be")
                .help(format!(
                    "bound `{name}` by a size, and put this bound into a condition: `where({name} < …, …, …)`"
                ));
            self.report.push(error);
            return false;
        }
        self.indices.vars[bound.index.0 as usize].extent = extent;
        true
    }

    /// The number of values that an index can take at most, by a bound over indices whose ranges are known.
    fn largest_bound(&mut self, bound: &DependentBound) -> Option<Size> {
        let mut count = self.largest(bound.value)?;
        if bound.inclusive {
            count = count.plus(&Size::number(1)).ok()?;
        }
        Some(match count.known() {
            Some(number) => Size::number(number.max(0)),
            None => count,
        })
    }

    pub(crate) fn solve(&mut self, id: VarId) -> bool {
        let var = self.indices.vars[id.0 as usize].clone();
        let name = &var.name;
        let extent = match &var.stated {
            Some(stated) => {
                for use_ in var.uses.iter().filter(|u| !u.lenient) {
                    // A function may read the first rows of a longer param, such as a table of positions.
                    let longer = matches!(stated.by, StatedBy::Signature)
                        && self.built.tensors[use_.tensor.0 as usize].role == Role::Param
                        && use_.size.known() > stated.size.known()
                        && stated.size.known().is_some();
                    if use_.size.differs(&stated.size) && !longer {
                        let by = match stated.by {
                            StatedBy::LeftType => "on the left",
                            StatedBy::State => "in the state",
                            _ => "in the signature",
                        };
                        let (what, it, by) = match self.names.text(var.span) {
                            ".." => (format!("dimension {} of `..`", &name[1..]), "..", "here"),
                            _ => (format!("index `{name}`"), name.as_str(), by),
                        };
                        let tensor = &self.built.tensors[use_.tensor.0 as usize].name;
                        let (size, other) = (&stated.size, &use_.size);
                        let message =
                            format!("{what} has two sizes: {size} {by} and {other} in `{tensor}`");
                        self.report.push(
                            Diagnostic::error("E0301", message)
                                .at(use_.span, format!("`{it}` runs over {other} here"))
                                .at(stated.span, format!("and over {size} here")),
                        );
                        return false;
                    }
                }
                let known = var
                    .uses
                    .iter()
                    .find(|u| !u.lenient && !self.is_provisional(&u.size));
                match known.filter(|_| self.is_provisional(&stated.size)) {
                    Some(known) => {
                        self.infer(&stated.size, &known.size.clone());
                        known.size.clone()
                    }
                    None => stated.size.clone(),
                }
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
                    self.report.push(unknown_range(name, var.span, None));
                    return false;
                };
                for other in &uses {
                    if other.size.differs(&first.size) {
                        let names = [first, other]
                            .map(|u| self.built.tensors[u.tensor.0 as usize].name.clone());
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
        self.indices.vars[id.0 as usize].extent = Some(extent);
        true
    }

    pub(crate) fn extent(&self, var: VarId) -> Option<Size> {
        self.indices.vars[var.0 as usize].extent.clone()
    }
}

pub(super) fn unknown_range(name: &str, span: Span, reach: Option<&Reach>) -> Diagnostic {
    let help = match reach {
        Some(Reach::Whole(size) | Reach::Steps(size)) => {
            format!("with the bound `{name} < {size}` all that it reads is there")
        }
        Some(Reach::Open(size)) => format!(
            "give it a bound where it is bound; what it reads there has {size} elements: `{name} < {size}`"
        ),
        None => format!("give it a bound where it is bound: `{name} < …`"),
    };
    Diagnostic::error("E0306", format!("nothing says how far `{name}` runs"))
        .at(
            span,
            format!("`{name}` has no bound, and no position where it stands alone"),
        )
        .help(help)
}
