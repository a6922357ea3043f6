//! Tensors that are sources: their types, their shapes, and the rounds that each draws for.
//!
//! Must not know file formats or generators.
//!
//! ```text
//! u[v < V]: f32[V] = gumbel   =>   tensor u f32[V], a source
//! ```

use crate::einsum::Role;
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, SourceForm, Target, Tensor},
    expressions::arena::{Ty, VarId},
    expressions::builtins::LISTED,
    expressions::scope::{Binding, Context, Scope},
    sizes::size::Size,
};
use ein_plan::{DType, Source};
use einc_diag::{Diagnostic, Span};
use einc_syntax::ast::Position;

impl<'a> Checker<'a> {
    /// `u[v < V]: f32[V] = gumbel`.
    pub(crate) fn define_source(
        &mut self,
        scope: &Scope<'a>,
        target: &Target<'a>,
        dtype: Option<DType>,
        declared: Option<&'a Vec<Position>>,
    ) -> Option<Binding> {
        let span = target.target.span;
        let (dtype, open) = self.type_of_source(scope, target, dtype)?;
        let shape = match target.target.positions.is_some() {
            true => self.shape_of_source(scope, target, declared)?,
            false => match declared {
                Some(declared) => self.declared_sizes(scope, declared)?,
                None if self.source_name(scope, target.value) == Some(LISTED) => {
                    self.list_sizes(target.value)?
                }
                None => vec![],
            },
        };
        let real = dtype.part().unwrap_or(dtype);
        let mut source = self.source(scope, target.value, real, &shape)?;
        let outer = self.drawn_for(scope, &source, target.value.span)?;
        let shape: Vec<Size> = outer
            .iter()
            .map(|(_, size)| size.clone())
            .chain(shape)
            .collect();
        self.check_elements(&shape, span)?;
        let role = match (target.in_function, target.named) {
            (true, None) => Role::Hidden,
            _ => Role::Named,
        };
        let parts = self.parts_of_source(&mut source, (dtype, &shape), false, span)?;
        let tensor = self.add_tensor(Tensor {
            name: parts.name(&target.name),
            dtype: parts.dtype,
            shape: parts.shape,
            role,
            definition: Definition::Source(source),
            span,
        });
        // The state of a module begins once, wherever it is applied.
        let begins = target.infer && target.guess.is_none();
        if let (Some(block), false) = (scope.block, begins) {
            self.built.drawn_in.insert(tensor, block);
        }
        if let Some(whole) = open {
            self.inference.untyped.insert(tensor, whole);
            if target.guess.is_none() {
                self.inference.lists.insert(tensor, Default::default());
            }
        }
        let tensor = match dtype.is_complex() {
            true => self.complex_over(&target.name, tensor, parts.pairs, span)?,
            false => tensor,
        };
        Some(Binding::Tensor(self.inner_view(tensor, &outer)))
    }

    /// The type of a tensor that a source makes. Where nothing says it, a type that later uses may change: whether it is one
    /// of whole numbers then stands beside it.
    fn type_of_source(
        &mut self,
        scope: &Scope<'a>,
        target: &Target<'a>,
        dtype: Option<DType>,
    ) -> Option<(DType, Option<bool>)> {
        let is_list = self.source_name(scope, target.value) == Some(LISTED);
        let (dtype, open) = match (dtype, target.guess) {
            (None, Some(guess)) => {
                let (typical, whole) = self.typical_type(scope, target.value);
                self.inference.guessed = true;
                (
                    Some(guess.unwrap_or(typical)),
                    guess.is_none().then_some(whole),
                )
            }
            (None, None) if is_list => match self.listed_type(scope, target.value)? {
                Ty::Typed(dtype) => (Some(dtype), None),
                Ty::Number { whole } => {
                    let dtype = match (whole, target.constant) {
                        (true, _) => DType::I64,
                        (false, true) => DType::F64,
                        (false, false) => DType::F32,
                    };
                    (Some(dtype), target.constant.then_some(whole))
                }
            },
            (dtype, _) => (dtype.or(scope.floating), None),
        };
        if dtype.is_none() {
            let written = self.names.text(target.target.span);
            let help = match target.target.positions {
                Some(_) => format!("write it: `{written}: f32[…] = …`"),
                None => format!(
                    "write it: `{written}: f32 = …` for one number, `{written}: f32[…] = …` for a tensor"
                ),
            };
            self.report.push(
                Diagnostic::error("E0207", "a source needs the type of its tensor")
                    .at(target.target.name.span, "no type is written")
                    .help(help),
            );
        }
        Some((dtype?, open))
    }

    /// The sizes of a tensor that a source makes, from the indices on its left side.
    fn shape_of_source(
        &mut self,
        scope: &Scope<'a>,
        target: &Target<'a>,
        declared: Option<&'a Vec<Position>>,
    ) -> Option<Vec<Size>> {
        self.indices
            .open
            .push(crate::sema::sizes::ranges::Open::default());
        let mut context = Context::new(scope);
        let vars = self.left_side(&mut context, target, declared);
        self.indices.open.pop();
        let own = match self.source_name(scope, target.value) == Some(LISTED) {
            true => self.list_sizes(target.value)?,
            false => vec![],
        };
        let mut shape = vec![];
        for (at, var) in vars?.into_iter().enumerate() {
            let var = &self.indices.vars[var.0 as usize];
            if let (None, Some(size)) = (&var.stated, own.get(at)) {
                shape.push(size.clone());
                continue;
            }
            if target.infer && var.stated.is_none() {
                let (name, place) = (var.name.clone(), var.span);
                shape.push(self.provisional_size(&target.name, (&name, place), None));
                continue;
            }
            let Some(stated) = &var.stated else {
                let (name, place) = (var.name.clone(), var.span);
                self.report.push(
                    Diagnostic::error("E0207", format!("a source needs the range of `{name}`"))
                        .at(place, format!("nothing says how far `{name}` runs"))
                        .help(format!("give it a bound: `{name} < n`")),
                );
                return None;
            };
            shape.push(stated.size.clone());
        }
        Some(shape)
    }

    /// The indices around a body for every value of which a source in it is drawn anew: all, if it is random. Notes that the
    /// calls around it differ from each other, however equal their arguments are.
    fn drawn_for(
        &mut self,
        scope: &Scope<'a>,
        source: &SourceForm,
        span: Span,
    ) -> Option<Vec<(VarId, Size)>> {
        match source {
            SourceForm::Ready(
                Source::Unbound
                | Source::Load(_)
                | Source::Full(_)
                | Source::Iota
                | Source::Numbers(_),
            ) => return Some(vec![]),
            SourceForm::Ready(Source::Permutation) if !scope.captured.is_empty() => {
                let index = self.indices.vars[scope.captured[0].0 as usize].name.clone();
                self.report.push(
                    Diagnostic::error(
                        "E0207",
                        format!("a permutation cannot be drawn for every `{index}`"),
                    )
                    .at(
                        span,
                        format!("in a function that is called for every `{index}`"),
                    )
                    .help("draw it outside, and pass it"),
                );
                return None;
            }
            _ => {}
        }
        self.calls.drew = true;
        let vars = scope.captured.iter();
        Some(
            vars.filter_map(|var| Some((*var, self.extent(*var)?)))
                .collect(),
        )
    }
}
