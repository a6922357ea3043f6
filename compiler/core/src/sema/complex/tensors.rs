//! The parts of complex tensors: two real tensors for each, in the order of a program; states and collected slices are doubled, and outputs are
//! one real tensor of pairs.
//!
//! A part that is 0 for certain is no tensor, unless a round, a derivative or a place outside of the tensor asks for it. Must not know
//! formulas.
//!
//! ```text
//! w[i] = z[i] * c[i]; output w   =>   w.re[i], w.im[i], w[i, p] = where(p == 0, w.re[i], w.im[i])
//! ```

use crate::einsum::{BlockId, LoopValue, Role};
use crate::sema::{
    Checker,
    complex::value::{Splitter, TensorParts, Value},
    definitions::tensors::{Definition, Tensor},
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    sizes::size::Size,
};
use ein_plan::{DType, Function, Scalar};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::HashMap;
use std::rc::Rc;

/// The ends of the names of the parts.
pub(super) const ENDS: [&str; 2] = ["re", "im"];

/// Which tensor is differentiated, and by which.
type Derivative = (TensorRef, TensorRef);

/// The complex tensors behind their parts.
#[derive(Default)]
pub(crate) struct ComplexTensors {
    /// The real tensors of pairs that complex ones are read from.
    pub(crate) pairs: HashMap<TensorRef, TensorRef>,
    /// The derivatives that are one for the user, by each of them: those of and by the parts of complex tensors.
    together: HashMap<Derivative, Rc<[Derivative]>>,
    /// The names that the user knows parts by that derivatives are of or by.
    whole_names: HashMap<String, String>,
    /// Those that are 0.
    independent: FxHashSet<Derivative>,
}

impl ComplexTensors {
    /// Notes which derivatives are one for the user.
    pub(super) fn together(&mut self, pairs: Vec<Derivative>) {
        let pairs: Rc<[_]> = pairs.into();
        for pair in pairs.iter() {
            self.together.insert(*pair, pairs.clone());
        }
    }

    /// Notes the name of the complex tensor that a part is of.
    pub(super) fn part_named(&mut self, part: String, whole: String) {
        self.whole_names.insert(part, whole);
    }

    /// The name of a tensor in the text: that of a complex one for a part of it.
    pub(crate) fn name_of<'n>(&'n self, name: &'n str) -> &'n str {
        self.whole_names.get(name).map_or(name, String::as_str)
    }

    /// Returns whether a derivative that is 0 is so for the user: one of parts, where those of the other parts are 0 as well.
    pub(crate) fn is_independent(&mut self, of: TensorRef, wrt: TensorRef) -> bool {
        let Some(all) = self.together.get(&(of, wrt)) else {
            return true;
        };
        self.independent.insert((of, wrt));
        all.iter().all(|pair| self.independent.contains(pair))
    }
}

/// The parts in the making.
pub(super) struct Parts<'c, 'a> {
    pub(super) splitter: Splitter<'c, 'a>,
    /// The tensors in the order in which a program has them.
    pub(super) order: Vec<TensorRef>,
    /// Complex tensors of which both parts are tensors.
    whole: FxHashSet<TensorRef>,
    /// The imaginary parts of states and of collected slices, by block and number.
    states: FxHashMap<(BlockId, u32), u32>,
    collected: FxHashMap<(BlockId, u32), u32>,
}

impl Checker<'_> {
    /// Puts real tensors in the place of complex ones, and returns all tensors in the order of a program.
    pub(crate) fn split_complex(&mut self) -> Option<Vec<TensorRef>> {
        let count = self.built.tensors.len() as u32;
        let all = (0..count).map(TensorRef);
        if !self.arena.has_complex() {
            return Some(all.collect());
        }
        let mut parts = Parts {
            splitter: Splitter::new(self),
            order: vec![],
            whole: FxHashSet::default(),
            states: FxHashMap::default(),
            collected: FxHashMap::default(),
        };
        parts.find_whole();
        parts.number_loop_values();
        for tensor in all {
            parts.tensor(tensor)?;
        }
        parts.blocks()?;
        parts.outputs()?;
        Some(parts.order)
    }
}

impl Parts<'_, '_> {
    pub(super) fn record(&self, tensor: TensorRef) -> &Tensor {
        &self.splitter.checker.built.tensors[tensor.0 as usize]
    }

    pub(super) fn is_complex(&self, tensor: TensorRef) -> bool {
        self.record(tensor).dtype.is_complex()
    }

    /// Finds the tensors of which both parts are needed, also where they are 0.
    fn find_whole(&mut self) {
        let checker = &self.splitter.checker;
        for tensor in &checker.built.tensors {
            match tensor.definition {
                Definition::Gradient { loss, wrt } => self.whole.extend([loss, wrt]),
                Definition::Along(along) => {
                    (self.whole).extend([along.of, along.wrt, along.direction]);
                }
                _ => {}
            }
        }
        for block in &checker.built.blocks {
            for (initial, next) in &block.states {
                self.whole.insert(*initial);
                self.whole.extend(*next);
            }
            self.whole
                .extend(block.collected.iter().map(|(value, _)| *value));
        }
        for number in 0..checker.arena.len() {
            if let Form::Read {
                tensor,
                otherwise: Some(_),
                ..
            } = &*checker.arena.form(ExprId(number as u32))
            {
                self.whole.insert(*tensor);
            }
        }
    }

    /// Numbers the imaginary parts of states and collected slices: behind all others of their block.
    fn number_loop_values(&mut self) {
        let checker = &self.splitter.checker;
        let complex =
            |tensor: &TensorRef| checker.built.tensors[tensor.0 as usize].dtype.is_complex();
        for (id, block) in (0..).map(BlockId).zip(&checker.built.blocks) {
            let mut next = block.states.len() as u32;
            for (number, (initial, _)) in (0..).zip(&block.states) {
                if complex(initial) {
                    self.states.insert((id, number), next);
                    next += 1;
                }
            }
            let mut next = block.collected.len() as u32;
            for (number, (value, _)) in (0..).zip(&block.collected) {
                if complex(value) {
                    self.collected.insert((id, number), next);
                    next += 1;
                }
            }
        }
    }

    /// Puts the parts of one tensor into the order, or the tensor itself if it is real.
    fn tensor(&mut self, tensor: TensorRef) -> Option<()> {
        let record = self.record(tensor).clone();
        self.splitter.span = record.span;
        let Some(part) = record.dtype.part() else {
            match &record.definition {
                Definition::Statement { vars, root } => {
                    let (vars, root) = (vars.clone(), self.splitter.real(*root)?);
                    self.order.append(&mut self.splitter.made);
                    self.splitter.checker.built.tensors[tensor.0 as usize].definition =
                        Definition::Statement { vars, root };
                }
                Definition::Along(along) => self.real_along(tensor, &record, *along)?,
                _ => {}
            }
            self.order.push(tensor);
            return Some(());
        };
        let parts = match &record.definition {
            Definition::Statement { vars, root } => {
                let value = self.splitter.value(*root)?;
                self.order.append(&mut self.splitter.made);
                self.statement(tensor, &record, (vars, value))
            }
            Definition::Loop(value) => {
                let values = [*value, self.imaginary(*value)?];
                let definitions = values.map(Definition::Loop);
                self.both(&record, part, definitions)
            }
            Definition::Gradient { loss, wrt } => self.gradient(&record, (*loss, *wrt))?,
            Definition::Along(along) => self.along(&record, *along)?,
            Definition::Source(_) => return None,
        };
        self.splitter.tensors.insert(tensor, parts);
        Some(())
    }

    pub(super) fn add(&mut self, record: Tensor) -> TensorRef {
        let tensor = self.splitter.checker.add_tensor(record);
        self.order.push(tensor);
        tensor
    }

    /// Two tensors with the names of the parts.
    pub(super) fn both(
        &mut self,
        record: &Tensor,
        part: DType,
        definitions: [Definition; 2],
    ) -> TensorParts {
        let mut number = 0;
        definitions.map(|definition| {
            let end = ENDS[number];
            number += 1;
            Some(self.add(Tensor {
                name: format!("{}.{end}", record.name),
                dtype: part,
                definition,
                ..record.clone()
            }))
        })
    }

    fn statement(
        &mut self,
        tensor: TensorRef,
        record: &Tensor,
        (vars, value): (&[VarId], Value),
    ) -> TensorParts {
        let is_whole = self.whole.contains(&tensor);
        let roots = match is_whole {
            true => self.splitter.whole(value).map(Some),
            false => [value.re, value.im],
        };
        let mut parts = [None, None];
        for (at, root) in roots.into_iter().enumerate() {
            let Some(root) = root else {
                continue;
            };
            if let Some(same) = self.same(vars, &record.shape, root)
                && !is_whole
            {
                parts[at] = Some(same);
                continue;
            }
            let definition = Definition::Statement {
                vars: vars.to_vec(),
                root,
            };
            parts[at] = Some(self.add(Tensor {
                name: format!("{}.{}", record.name, ENDS[at]),
                dtype: value.part,
                definition,
                ..record.clone()
            }));
        }
        parts
    }

    /// The tensor that a value is all of.
    fn same(&self, vars: &[VarId], shape: &[Size], root: ExprId) -> Option<TensorRef> {
        let arena = &self.splitter.checker.arena;
        let Form::Read {
            tensor,
            positions,
            otherwise: None,
        } = &*arena.form(root)
        else {
            return None;
        };
        let own = positions.len() == vars.len()
            && positions.iter().zip(vars).all(
                |(position, var)| matches!(&*arena.form(*position), Form::Index(v) if v == var),
            );
        (own && self.record(*tensor).shape == shape).then_some(*tensor)
    }

    /// The imaginary part of what a block gives.
    fn imaginary(&self, value: LoopValue) -> Option<LoopValue> {
        Some(match value {
            LoopValue::State(block, number) => {
                LoopValue::State(block, *self.states.get(&(block, number))?)
            }
            LoopValue::Last(block, number) => {
                LoopValue::Last(block, *self.states.get(&(block, number))?)
            }
            LoopValue::Collected(block, number) => {
                LoopValue::Collected(block, *self.collected.get(&(block, number))?)
            }
            LoopValue::Counter(_) | LoopValue::Rounds(_) => return None,
        })
    }

    /// Says of the blocks which parts their states and collected slices are.
    fn blocks(&mut self) -> Option<()> {
        for number in 0..self.splitter.checker.built.blocks.len() {
            let mut block = self.splitter.checker.built.blocks[number].clone();
            let mut more = vec![];
            for (initial, next) in &mut block.states {
                if let Some([Some(re), Some(im)]) = self.splitter.tensors.get(initial).copied() {
                    let [re_next, im_next] = *self.splitter.tensors.get(&(*next)?)?;
                    more.push((im, im_next));
                    (*initial, *next) = (re, re_next);
                }
            }
            block.states.extend(more);
            let mut more = vec![];
            for (value, dim) in &mut block.collected {
                if let Some([Some(re), Some(im)]) = self.splitter.tensors.get(value).copied() {
                    more.push((im, *dim));
                    *value = re;
                }
            }
            block.collected.extend(more);
            self.splitter.checker.built.blocks[number] = block;
        }
        Some(())
    }

    /// Makes a tensor of pairs of every complex output.
    fn outputs(&mut self) -> Option<()> {
        let mut made: HashMap<TensorRef, TensorRef> = self.splitter.checker.complex.pairs.clone();
        for number in 0..self.splitter.checker.built.outputs.len() {
            let tensor = self.splitter.checker.built.outputs[number].tensor;
            if !self.is_complex(tensor) {
                continue;
            }
            let joined = match made.get(&tensor) {
                Some(joined) => *joined,
                None => self.joined(tensor)?,
            };
            made.insert(tensor, joined);
            let output = &mut self.splitter.checker.built.outputs[number];
            (output.tensor, output.complex) = (joined, true);
        }
        Some(())
    }

    /// A tensor of the pairs of both parts, with the name of the complex one.
    fn joined(&mut self, tensor: TensorRef) -> Option<TensorRef> {
        let mut like = self.record(tensor).clone();
        let part = like.dtype.part()?;
        like.shape.push(Size::number(2));
        let parts = *self.splitter.tensors.get(&tensor)?;
        let checker = &mut *self.splitter.checker;
        let joined = checker.pointwise(like.name.clone(), &like, like.span, |c, at| {
            let (last, at) = at.split_last()?;
            let zero = c
                .arena
                .add(Form::Constant(Scalar::Int(0)), Ty::Typed(DType::I64));
            let is_real = c.apply(Function::Eq, vec![*last, zero], like.span)?;
            let [re, im] = parts.map(|tensor| match tensor {
                Some(tensor) => c.element(tensor, at.to_vec(), part),
                None => c
                    .arena
                    .add(Form::Constant(Scalar::Float(0.0)), Ty::Typed(part)),
            });
            c.apply(Function::Select, vec![is_real, re, im], like.span)
        })?;
        checker.built.tensors[joined.0 as usize].role = Role::Named;
        self.order.push(joined);
        Some(joined)
    }
}
