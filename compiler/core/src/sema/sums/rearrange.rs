//! Affine left sides: `y[28*r + c] = x[r,c]`. The places must be those of the whole dimension, each of them once.
//!
//! Such a place counts in mixed radix: one index has step 1, the next one has as its step how many values the first one
//! has, and so on. That is proved here, and gives the dimension its size. The statement is then a scatter whose sums have
//! one term each. Must not know kernels.
//!
//! ```text
//! y[28*r + c] = x[r,c], x: f32[3, 28]   =>   y[p1] = sum[r,c] where 28*r + c == p1 of x[r,c], p1 < 84
//! ```

use crate::sema::{
    Checker,
    definitions::tensors::Target,
    expressions::arena::{ExprId, Ty, VarId},
    expressions::scope::{Binding, Context, Scope},
    sizes::linear::Linear,
    sizes::ranges::Open,
    sizes::size::Size,
    sums::scatter::{Place, Written},
};
use ein_plan::{DType, Reduction};
use einc_diag::{Diagnostic, Span};

/// A dimension of a left side, whose indices have ranges.
enum Dimension {
    /// An index alone.
    Own(VarId),
    /// A place with its text.
    At(ExprId, Span),
}

impl<'a> Checker<'a> {
    /// Checks one definition with an affine left side.
    pub(crate) fn define_rearranged(
        &mut self,
        scope: &Scope<'a>,
        target: Target<'a>,
        (dtype, declared): Written,
    ) -> Option<Binding> {
        let mut context = Context::new(scope);
        self.indices.open.push(Open::default());
        let parts = self.scatter_parts(&mut context, &target, declared.as_deref(), Reduction::Sum);
        let value = self.expr(&mut context, target.value);
        let dimensions = parts.and_then(|(places, reduced)| {
            let dimensions = self.dimensions(&mut context, places)?;
            Some((dimensions, reduced))
        });
        let (Some((dimensions, mut reduced)), Some(value)) = (dimensions, value) else {
            self.indices.open.pop();
            return None;
        };
        if !self.close() {
            return None;
        }
        let own = |dimension: &Dimension| match dimension {
            Dimension::Own(var) => Some(*var),
            Dimension::At(..) => None,
        };
        let alone: Vec<VarId> = dimensions.iter().filter_map(own).collect();
        reduced.retain(|var| !alone.contains(var));
        let sizes = self.sizes_given(&target, &dimensions, &reduced)?;
        self.declared_given(&target, declared.as_deref(), &sizes)?;
        let span = target.target.span;
        self.indices.open.push(Open::default());
        let (mut vars, mut equal) = (vec![], vec![]);
        for (at, (dimension, size)) in dimensions.iter().zip(sizes).enumerate() {
            match dimension {
                Dimension::Own(var) => vars.push(*var),
                Dimension::At(position, _) => {
                    let var = self.fresh_var(format!("p{}", at + 1), size, span);
                    vars.push(var);
                    equal.push((*position, None, var));
                }
            }
        }
        self.close();
        let guard = self.scatter_guard(equal, span)?;
        let reduction = match self.arena.ty(value) {
            Ty::Typed(DType::Bool) => Reduction::Any,
            _ => Reduction::Sum,
        };
        self.scattered(
            scope,
            target,
            (vars, reduced),
            (reduction, guard, value),
            dtype,
        )
    }

    fn dimensions(
        &mut self,
        context: &mut Context<'_, 'a>,
        places: Vec<Place<'a>>,
    ) -> Option<Vec<Dimension>> {
        let of = |place| match place {
            Place::Own(var) | Place::Bounded(var, _) => Some(Dimension::Own(var)),
            Place::At(expr) => {
                let position = self.scatter_position(context, expr)?;
                Some(Dimension::At(position, expr.span))
            }
        };
        places.into_iter().map(of).collect()
    }

    /// The sizes of the dimensions, if every place has one value; reports it otherwise.
    fn sizes_given(
        &mut self,
        target: &Target<'a>,
        dimensions: &[Dimension],
        indices: &[VarId],
    ) -> Option<Vec<Size>> {
        let (mut sizes, mut met): (Vec<Size>, Vec<VarId>) = (vec![], vec![]);
        for dimension in dimensions {
            let (position, span) = match dimension {
                Dimension::Own(var) => {
                    sizes.push(self.extent(*var)?);
                    continue;
                }
                Dimension::At(position, span) => (*position, *span),
            };
            let form = self.linear(position);
            let form = form.filter(|form| form.terms.keys().all(|var| indices.contains(var)));
            let Some(form) = form.filter(|form| !form.terms.is_empty()) else {
                let why = "no sum of indices of its own, each times a size";
                return self.not_once(target, span, why.into());
            };
            if let Some(again) = form.terms.keys().find(|var| met.contains(var)) {
                let name = &self.indices.vars[again.0 as usize].name;
                return self.not_once(target, span, format!("`{name}` stands in two places"));
            }
            met.extend(form.terms.keys());
            match self.places_given(&form) {
                Ok(size) => sizes.push(size),
                Err(why) => return self.not_once(target, span, why),
            }
        }
        // Without places there is nothing to give, and a step that is a size may be 0: `y[size(m) * i + j]`.
        let none = sizes.iter().any(|size| size.known() == Some(0));
        if let Some(lost) = indices.iter().find(|var| !none && !met.contains(var)) {
            let name = &self.indices.vars[lost.0 as usize].name;
            let why = format!("`{name}` does not change the place");
            return self.not_once(target, target.target.span, why);
        }
        Some(sizes)
    }

    /// The number of places that an affine form gives, if these are 0, 1, … and each is given once; else what is wrong.
    fn places_given(&self, form: &Linear) -> Result<Size, String> {
        let zero = Size::number(0);
        let mut open: Vec<(VarId, Size, Size)> = vec![];
        for (var, coefficient) in form.terms.iter() {
            let extent = self.extent(*var).unwrap_or_else(|| zero.clone());
            let step = match coefficient.at_least_zero() {
                Some(false) => zero.subtract(coefficient),
                _ => Ok(coefficient.clone()),
            };
            let step = step.map_err(|_| too_large())?;
            match extent.known() {
                Some(0) => return Ok(zero),
                Some(1) => {}
                _ => open.push((*var, step, extent)),
            }
        }
        let mut count = Size::number(1);
        while !open.is_empty() {
            let same = open.iter().position(|(_, step, _)| *step == count);
            // What the sizes decide is looked at again when they are known.
            let next = same.or_else(|| open.iter().position(|(_, step, _)| !step.differs(&count)));
            let Some(next) = next else {
                let (var, step, _) = &open[0];
                let name = &self.indices.vars[var.0 as usize].name;
                return Err(match count.known() == Some(1) {
                    true => format!("no index goes on by 1: `{name}` goes on by {step}"),
                    false => format!("`{name}` goes on by {step}, and should by {count}"),
                });
            };
            let (_, _, extent) = open.swap_remove(next);
            count = count.times(&extent).map_err(|_| too_large())?;
        }
        match self.ends(form).0 {
            Some(first) if first.differs(&zero) => {
                Err(format!("the first place is {first}, not 0"))
            }
            _ => Ok(count),
        }
    }

    /// Compares the sizes that the places give with the declared ones.
    fn declared_given(
        &mut self,
        target: &Target<'a>,
        declared: Option<&[Option<Size>]>,
        sizes: &[Size],
    ) -> Option<()> {
        for (at, (declared, size)) in declared.unwrap_or_default().iter().zip(sizes).enumerate() {
            let Some(declared) = declared else {
                continue;
            };
            if declared.differs(size) {
                let name = &target.target.name.text;
                self.report.push(
                    Diagnostic::error(
                        "E0301",
                        format!(
                            "dimension {} of `{name}` has two sizes: {declared} and {size}",
                            at + 1
                        ),
                    )
                    .at(
                        target.target.span,
                        format!("the left side has {size} places, and {declared} are declared"),
                    ),
                );
                return None;
            }
            self.infer(declared, size);
        }
        Some(())
    }

    fn not_once<T>(&mut self, target: &Target<'a>, span: Span, why: String) -> Option<T> {
        let (name, text) = (&target.target.name.text, self.names.text(span));
        self.report.push(
            Diagnostic::error(
                "E0311",
                format!("`{text}` does not give every place of `{name}` once"),
            )
            .at(span, why)
            .help(format!(
                "where places get no value, or several, write `+=` and a type: `{}: f32[…] += …`",
                self.names.text(target.target.span)
            )),
        );
        None
    }
}

fn too_large() -> String {
    "the places are too many to count".into()
}
