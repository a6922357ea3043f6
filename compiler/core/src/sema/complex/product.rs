//! Products of complex numbers over indices: the factors in a tensor, whose halves are multiplied until one of them is left.
//!
//! There is no formula in the parts that is one reduction. The tensor has the indices around the product before its own, and 1 in the place of
//! factors that a bound leaves out, or that are not read where the product stands. Must not know syntax.
//!
//! ```text
//! prod[j < 5] z[i, j]   =>   f[i, j] = z[i, j];  g[i, k < 3] = f[i, k] * where(k + 3 < 5, f[i, k + 3], 1);  …
//! ```

use crate::einsum::Role;
use crate::sema::{
    complex::value::{Splitter, TensorParts, Value},
    definitions::tensors::{Definition, Tensor},
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    sizes::ranges::Open,
    sizes::size::Size,
};
use ein_plan::{DType, Function, Scalar};
use einc_diag::{Diagnostic, FileId};

/// Factors of which the last index is to be multiplied away.
struct Factors {
    tensors: TensorParts,
    sizes: Vec<Size>,
}

impl Splitter<'_, '_> {
    /// The product of a value over some indices where a guard holds.
    pub(crate) fn product_over(
        &mut self,
        vars: &[VarId],
        guard: Option<ExprId>,
        body: Value,
    ) -> Option<Value> {
        let part = body.part;
        let condition = match (self.path, guard) {
            (Some(path), Some(guard)) => Some(self.call(Function::And, &[path, guard])),
            (path, guard) => path.or(guard),
        };
        let parts = self.whole(body);
        let mut outer: Vec<VarId> = (parts.iter().chain(&condition))
            .flat_map(|id| self.checker.arena.free(*id).to_vec())
            .filter(|var| !vars.contains(var))
            .collect();
        outer.sort();
        outer.dedup();
        let all: Vec<VarId> = outer.iter().chain(vars).copied().collect();
        let mut sizes = vec![];
        for var in &all {
            sizes.push(self.checker.extent(*var)?);
        }
        self.known_sizes(&sizes[outer.len()..])?;
        let name = self.checker.instance_name(FileId(0), "prod");
        let neutral = [1.0, 0.0].map(|number| self.number(number, part));
        let mut number = 0;
        let tensors = parts.map(|value| {
            let root = match condition {
                Some(condition) => self.choose(condition, value, neutral[number]),
                None => value,
            };
            number += 1;
            Some(self.made((&name, number), &sizes, (all.clone(), root), part))
        });
        let mut factors = Factors { tensors, sizes };
        for _ in vars {
            factors = self.multiplied(factors, &name, part)?;
        }
        let at: Vec<ExprId> = outer.iter().map(|var| self.checker.index(*var)).collect();
        let [re, im] =
            (factors.tensors).map(|tensor| Some(self.checker.element(tensor?, at.clone(), part)));
        Some(Value { re, im, part })
    }

    /// Refuses products over the rows of a batch, of which a step reads one at a time.
    fn known_sizes(&mut self, sizes: &[Size]) -> Option<()> {
        let is_batched = sizes.iter().any(|size| size.as_rows().is_some());
        if is_batched && self.checker.training.step.rows.is_some() {
            let what = "`prod` of complex numbers over the rows of a batch";
            self.checker.report.push(
                Diagnostic::error("E0625", what)
                    .at(self.span, "in this statement")
                    .help("make what is multiplied over all rows a `const`"),
            );
            return None;
        }
        Some(())
    }

    fn made(
        &mut self,
        (name, number): (&str, usize),
        sizes: &[Size],
        (vars, root): (Vec<VarId>, ExprId),
        part: DType,
    ) -> TensorRef {
        let end = ["re", "im"][number - 1];
        let tensor = self.checker.add_tensor(Tensor {
            name: format!("{name}.{end}"),
            dtype: part,
            shape: sizes.to_vec(),
            role: Role::Hidden,
            definition: Definition::Statement { vars, root },
            span: self.span,
        });
        self.made.push(tensor);
        tensor
    }

    /// The factors without their last index.
    fn multiplied(&mut self, mut factors: Factors, name: &str, part: DType) -> Option<Factors> {
        let mut left = factors.sizes.last()?.known()?;
        while left > 1 {
            let half = left - left / 2;
            let name = self.checker.numbered(name.to_owned());
            *factors.sizes.last_mut()? = Size::number(half);
            let vars = self.fresh(&factors.sizes);
            let mut at: Vec<ExprId> = vars.iter().map(|var| self.checker.index(*var)).collect();
            let first = self.factor(&factors, &at, part);
            let last = at.last_mut()?;
            let [size, step] = [left, half].map(|number| self.whole_number(number));
            *last = self.call(Function::Add, &[*last, step]);
            let is_there = self.test(Function::Lt, *last, size);
            let mut second = self.factor(&factors, &at, part);
            if left % 2 == 1 {
                let one = self.number(1.0, part);
                let [re, im] = self.whole(second);
                let zero = self.number(0.0, part);
                second = Value {
                    re: Some(self.choose(is_there, re, one)),
                    im: Some(self.choose(is_there, im, zero)),
                    part,
                };
            }
            let product = self.product(first, second);
            let mut number = 0;
            let roots = self.whole(product);
            let sizes = factors.sizes.clone();
            factors.tensors = roots.map(|root| {
                number += 1;
                Some(self.made((&name, number), &sizes, (vars.clone(), root), part))
            });
            left = half;
        }
        let sizes = factors.sizes[..factors.sizes.len() - 1].to_vec();
        let vars = self.fresh(&sizes);
        let name = self.checker.numbered(name.to_owned());
        let mut at: Vec<ExprId> = vars.iter().map(|var| self.checker.index(*var)).collect();
        at.push(self.whole_number(0));
        let last = match left {
            1 => self.factor(&factors, &at, part),
            // The product of nothing.
            _ => Value {
                re: Some(self.number(1.0, part)),
                im: None,
                part,
            },
        };
        let mut number = 0;
        let tensors = self.whole(last).map(|root| {
            number += 1;
            Some(self.made((&name, number), &sizes, (vars.clone(), root), part))
        });
        Some(Factors { tensors, sizes })
    }

    fn factor(&mut self, factors: &Factors, at: &[ExprId], part: DType) -> Value {
        let [re, im] = (factors.tensors)
            .map(|tensor| tensor.map(|tensor| self.checker.element(tensor, at.to_vec(), part)));
        Value { re, im, part }
    }

    fn fresh(&mut self, sizes: &[Size]) -> Vec<VarId> {
        let span = self.span;
        self.checker.indices.open.push(Open::default());
        let numbered = sizes.iter().zip(1..);
        let vars = numbered
            .map(|(size, at): (_, u32)| {
                (self.checker).fresh_var(format!("i{at}"), size.clone(), span)
            })
            .collect();
        self.checker.close();
        vars
    }

    fn whole_number(&mut self, number: i64) -> ExprId {
        let form = Form::Constant(Scalar::Int(number));
        self.checker.arena.add(form, Ty::Typed(DType::I64))
    }
}
