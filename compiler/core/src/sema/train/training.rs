//! Training: a program with `train` blocks as several programs without loops, between which a session carries parameters.
//!
//! Every block gives a program for a step (one for each number of rows that a batch, or a part of one, can have), one that
//! validates, and, where gradients are accumulated, one that applies them. Must not know plans or sites.
//!
//! ```text
//! train { loss: ce; data: (X, y) over N by 64; epochs: 3; optimizer: sgd(lr: 0.1) }, N = 100
//!   =>   steps with 64 and with 36 rows: W, train.rows, X, y  ->  ce, W_next
//! ```

use crate::einsum::Program;
use crate::sema::{
    Checker, Sources,
    definitions::tensors::Output,
    expressions::arena::TensorRef,
    expressions::scope::{Binding, View},
    resolve::names::{EntityId, EntityKind, Found},
    sizes::size::Size,
    train::block::Settings,
};
use ein_plan::{DType, Scalar, Source};
use einc_diag::{Diagnostic, FileId, Span};
use einc_syntax::ast::{Name, StringLiteral};
use std::collections::{BTreeMap, HashMap};

pub use ein_plan::source::fed::{EPOCH, ROWS, SHARE, STEP, UPDATE};
pub use ein_plan::training::{BatchInput, Carried, CarriedKind, Every, States, Subnet, Validation};

/// A training with its programs, as [`ein_plan::training`] describes it.
pub type Training = ein_plan::training::Training<Program>;
/// A `train` block with its programs.
pub type Block = ein_plan::training::TrainBlock<Program>;
/// Rounds of steps that every site makes by itself.
pub type Rounds = ein_plan::training::Rounds<Program>;

/// The part of a batch's work that a program computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    /// From rows to new parameters.
    Step,
    /// From rows to sums of gradients.
    Part,
    /// From sums of gradients to new parameters.
    Apply,
}

/// How the text is read: as it stands, as a step, or with other data.
#[derive(Clone, Default)]
pub(crate) struct Mode {
    /// Dims that batches are taken over; in a step, with the rows of the batch.
    pub(crate) over: BTreeMap<String, Option<i64>>,
    /// In a step: the number of the `train` item, and what is computed.
    pub(crate) step: Option<(usize, Task)>,
    /// Inputs in whose place others are read.
    pub(crate) replaced: BTreeMap<String, String>,
    /// Dims that are bound anew.
    pub(crate) dims: BTreeMap<String, Size>,
    /// Constants that are tensors: they have their values of the whole data.
    pub(crate) constants: HashMap<EntityId, (String, DType, Vec<Size>)>,
    /// Constants that are numbers, where dims are bound anew.
    pub(crate) numbers: HashMap<EntityId, Scalar>,
    /// All that is asked for; empty: everything that the text asks for.
    pub(crate) wanted: Vec<Name>,
}

impl Mode {
    /// The program as it is written; sizes remember which dims are batched.
    pub(crate) fn of_base(sources: &Sources) -> Mode {
        use einc_syntax::ast::{ItemKind, Suffix, TrainEntry};
        let items = sources.files.first().map_or(&[][..], |f| &f.ast.items);
        let mut over = BTreeMap::new();
        for item in items {
            let ItemKind::Train(train) = &item.kind else {
                continue;
            };
            for entry in &train.entries {
                if let TrainEntry::Setting { suffixes, .. } = entry {
                    over.extend(suffixes.iter().filter_map(|suffix| match suffix {
                        Suffix::Over(name) => Some((name.text.clone(), None)),
                        _ => None,
                    }));
                }
            }
        }
        Mode {
            over,
            ..Mode::default()
        }
    }
}

/// The findings of a pass about training.
#[derive(Default)]
pub(crate) struct Findings<'a> {
    /// True if sizes of batched dims are marked from here on.
    pub(crate) marking: bool,
    /// The values of batched dims for the whole data.
    pub(crate) whole: BTreeMap<EntityId, Binding>,
    pub(crate) blocks: Vec<Settings<'a>>,
    /// Outputs on other data, with their tensors.
    pub(crate) others: Vec<(Other<'a>, TensorRef)>,
    pub(crate) next_states: Vec<NextState>,
    /// The tensors that each application of an instance makes, and where it stands, by its prefix.
    pub(crate) applications: HashMap<String, (std::ops::Range<usize>, Span)>,
    pub(crate) state_tensors: Vec<TensorRef>,
    pub(crate) step: StepFindings,
}

/// The findings of a pass over a step.
#[derive(Default)]
pub(crate) struct StepFindings {
    /// The data that are read by rows.
    pub(crate) batch: Vec<BatchInput>,
    /// The tensors that are carried from step to step, with how each begins.
    pub(crate) carried: Vec<(String, CarriedKind, Source)>,
    pub(crate) rows: Option<TensorRef>,
    pub(crate) counters: BTreeMap<&'static str, TensorRef>,
    pub(crate) optimizer: String,
    /// The rate of the params that are in no group.
    pub(crate) rate: Option<TensorRef>,
    /// True if an untyped number of the step is being computed.
    pub(crate) hoisting: bool,
    /// True if an optimizer's body is being read.
    pub(crate) updating: bool,
    pub(crate) span: Span,
}

/// The results of the pass over the text as it stands that other passes need.
pub(crate) struct Base<'a> {
    pub(crate) blocks: Vec<Settings<'a>>,
    pub(crate) constants: HashMap<EntityId, (String, DType, Vec<Size>)>,
    /// Constants that are numbers.
    pub(crate) numbers: HashMap<EntityId, Scalar>,
    /// Shapes of the program's inputs; a dimension that is a dim with its name.
    pub(crate) inputs: BTreeMap<String, Vec<(Option<&'a str>, Size)>>,
    /// The outputs on other data.
    pub(crate) others: Vec<Other<'a>>,
}

impl Base<'_> {
    /// Returns whether there is nothing to train.
    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }
}

impl<'a> Checker<'a> {
    /// Returns the results of this pass that others need.
    pub(crate) fn base(&self) -> Base<'a> {
        let (mut constants, mut numbers) = (HashMap::new(), HashMap::new());
        for (id, binding) in &self.entities.values {
            let constant = matches!(
                self.names.entity(*id).kind,
                EntityKind::Definition { constant: true, .. }
            );
            match binding {
                // A list takes types in each program anew.
                Binding::Tensor(view) if constant && self.is_open_list(view.tensor) => {}
                Binding::Tensor(view) if constant => {
                    let tensor = &self.built.tensors[view.tensor.0 as usize];
                    let about = (tensor.name.clone(), tensor.dtype, tensor.shape.clone());
                    constants.insert(*id, about);
                }
                Binding::Scalar(value) if constant && self.names.entity(*id).file.0 == 0 => {
                    numbers.extend(self.number_of(*value).map(|number| (*id, number)));
                }
                _ => {}
            }
        }
        let mut blocks = self.training.blocks.clone();
        for validate in blocks
            .iter_mut()
            .filter_map(|block| block.validate.as_mut())
        {
            let tensor = validate.tensor;
            validate.reads = tensor.map_or(vec![], |tensor| self.inputs_of(tensor));
        }
        Base {
            blocks,
            constants,
            numbers,
            inputs: self.shapes_of_inputs(),
            others: self.others(),
        }
    }

    /// The number that a dim has for the whole data.
    pub(crate) fn whole_number(&self, id: EntityId) -> Option<i64> {
        let known = self
            .training
            .whole
            .get(&id)
            .or_else(|| self.entities.values.get(&id))?;
        match known {
            Binding::Scalar(value) => self.arena.as_size(*value)?.known(),
            _ => None,
        }
    }

    /// Evaluates something with the batched dims as they are for the whole data.
    pub(crate) fn with_whole<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        if self.task.mode.step.is_none() || self.training.whole.is_empty() {
            return read(self);
        }
        let calls = std::mem::take(&mut self.calls.results);
        let whole: Vec<_> = self
            .training
            .whole
            .iter()
            .map(|(id, b)| (*id, *b))
            .collect();
        let before: Vec<_> = whole
            .iter()
            .map(|(id, binding)| (*id, self.entities.values.insert(*id, *binding)))
            .collect();
        let value = read(self);
        for (id, binding) in before {
            match binding {
                Some(binding) => self.entities.values.insert(id, binding),
                None => self.entities.values.remove(&id),
            };
        }
        self.calls.results = calls;
        value
    }

    /// Returns whether a definition keeps its value of the whole data in a step.
    pub(crate) fn keeps_whole(&self, id: EntityId) -> bool {
        match self.names.entity(id).kind {
            EntityKind::Dim(_) => {
                let name = &self.names.entity(id).name.text;
                !(self.names.entity(id).file.0 == 0 && self.task.mode.over.contains_key(name))
            }
            EntityKind::Definition { constant, .. } => constant,
            _ => false,
        }
    }

    /// The size of a dim in this pass: of a batched one, marked, that of the batch.
    pub(crate) fn batched(&mut self, id: EntityId, size: Size) -> Size {
        if !self.training.marking || self.names.entity(id).file.0 != 0 {
            return size;
        }
        let name = &self.names.entity(id).name.text;
        if let Some(anew) = self.task.mode.dims.get(name) {
            return anew.clone();
        }
        let Some(rows) = self.task.mode.over.get(name).copied() else {
            return size;
        };
        let whole = Binding::Scalar(self.arena.whole(size.clone()));
        self.training.whole.insert(id, whole);
        match rows.or(size.known()) {
            Some(rows) => Size::rows(name, rows),
            None => size,
        }
    }

    /// Reads the `train` blocks, and adds what they name to what the program computes.
    pub(crate) fn read_blocks(&mut self) {
        for (number, train, span) in self.trains() {
            let Some(mut settings) = self.read_train(number, train, span) else {
                continue;
            };
            let mut evaluated = |name, span| {
                let tensor = self.scalar_named(name, span)?;
                self.built.outputs.push(Output {
                    file: Some(EVALUATED.to_owned()),
                    ..Output::of(tensor, span)
                });
                Some(tensor)
            };
            evaluated(settings.loss.0, settings.loss.1);
            if let Some(validate) = &mut settings.validate {
                validate.tensor = evaluated(validate.name.0, validate.name.1);
            }
            self.training.blocks.push(settings);
        }
    }

    /// The tensor of a scalar definition.
    pub(crate) fn scalar_named(&mut self, name: &'a str, span: Span) -> Option<TensorRef> {
        let refuse = |c: &mut Self, message: String, label: String| {
            let error = Diagnostic::error("E0622", message).at(span, label);
            c.report
                .push(error.help("it is the name of a scalar definition"));
            None
        };
        let binding = match self.names.find(FileId(0), name) {
            Found::Entity(id) => self.entities.values.get(&id).copied(),
            Found::Poison => return None,
            _ => return refuse(self, format!("there is no `{name}`"), "no such name".into()),
        };
        match binding {
            Some(Binding::Tensor(view)) if self.view_shape(view).is_empty() && view.is_whole() => {
                Some(view.tensor)
            }
            Some(Binding::Tensor(view)) => {
                let text = self.view_text(view);
                refuse(
                    self,
                    format!("`{name}` is no scalar"),
                    format!("this is {text}"),
                )
            }
            Some(Binding::Scalar(_)) => refuse(
                self,
                format!("`{name}` is a number"),
                "nothing to learn".into(),
            ),
            Some(Binding::Poison) => None,
            _ => refuse(self, format!("`{name}` has no value"), "no scalar".into()),
        }
    }
}

/// Marks the outputs of the first pass that are evaluated for training only.
pub(crate) const EVALUATED: &str = "\u{1f}";

/// `output D on (Xv, yv) -> "file"`.
#[derive(Clone)]
pub(crate) struct Other<'a> {
    /// The mark that stands in the program's outputs until its tensor is known.
    pub(crate) mark: String,
    pub(crate) name: &'a Name,
    pub(crate) on: &'a [Name],
    pub(crate) file: Option<&'a StringLiteral>,
    /// The inputs that D depends on, in the order of their declarations.
    pub(crate) reads: Vec<String>,
}

/// The `next` of a module's state in one application.
#[derive(Clone)]
pub(crate) struct NextState {
    pub(crate) state: TensorRef,
    pub(crate) value: View,
    /// The prefix of what the application makes.
    pub(crate) application: String,
    pub(crate) span: Span,
}
