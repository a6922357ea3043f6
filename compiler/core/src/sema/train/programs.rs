//! The passes over a text that training needs: one for each program of each block.
//!
//! Must not know what a step is made of, plans or sites.
//!
//! ```text
//! N = 100 rows by 64, validate on (Xv, yv)   =>   steps with 64 and 36 rows, the validation with N bound anew, the rest
//! ```

use crate::einsum::{self, Program};
use crate::sema::{
    Analysis, Text,
    train::block::{Settings, Validate},
    train::data_override::{self, Reading},
    train::subnet_steps,
    train::training::{Block, Carried, CarriedKind, EVALUATED, Mode, Task, Training, Validation},
};
use crate::subnets::Neurons;
use ein_plan::{DType, Source};
use einc_syntax::ast::{ItemKind, Name};
use std::collections::{BTreeMap, BTreeSet};

/// Rows that statistics are estimated with, where nothing else is said.
const STATISTICS: u64 = 1024;

/// The element type, shape and source of each tensor that a program reads from outside, by name.
type Read = BTreeMap<String, (DType, Vec<u64>, Source)>;

/// Reads the program in every way that training needs. Errors go to `analysis`.
pub(crate) fn passes(reading: Reading<'_, '_>, analysis: &mut Analysis) -> Option<Training> {
    let mut passes = Passes {
        reading,
        analysis,
        training: Training::default(),
    };
    let mut data = vec![];
    for (at, settings) in reading.base.blocks.iter().enumerate() {
        let block = passes.block(settings, at)?;
        data.push(listed(settings, &block));
        passes.training.blocks.push(block);
    }
    data_override::outputs(reading, &data, passes.analysis)?;
    passes.finish()
}

/// The training as far as its programs have been made.
struct Passes<'p, 'a> {
    reading: Reading<'p, 'a>,
    analysis: &'p mut Analysis,
    training: Training,
}

impl<'a> Passes<'_, 'a> {
    /// Completes the training by what the program as a whole says: how everything begins, the constants, what is evaluated at the end.
    fn finish(mut self) -> Option<Training> {
        let complex = self.analysis.inputs.iter();
        let complex = complex.filter(|input| input.dtype.is_complex());
        let complex: BTreeSet<String> = complex.map(|input| input.name.clone()).collect();
        let program = self.analysis.program.as_mut()?;
        let begins = sources_of(program);
        for (name, carried) in &mut self.training.carried {
            if let Some((.., source)) = begins.get(name)
                && carried.kind != CarriedKind::Gradient
            {
                carried.begin = source.clone();
            }
            let names = carried.names(name);
            carried.complex = names.first().is_some_and(|name| complex.contains(*name));
        }
        self.training.constants = constants(program, &self.training);
        for block in &mut self.training.blocks {
            for input in &mut block.inputs {
                if let Some((_, shape, source)) = begins.get(&input.name) {
                    input.source = source.clone();
                    input.shape.clone_from(shape);
                }
            }
            if let Some(validate) = &mut block.validate {
                feed(&mut validate.program, &self.training.carried);
            }
        }
        // What is given out is evaluated after training.
        program
            .outputs
            .retain(|output| output.file.as_deref() != Some(EVALUATED));
        feed(program, &self.training.carried);
        let last = std::mem::take(program).needed();
        *program = last;
        self.training.last = (!program.outputs.is_empty()).then(|| program.clone());
        Some(self.training)
    }

    /// The programs of one block.
    fn block(&mut self, settings: &Settings<'a>, at: usize) -> Option<Block> {
        let known = self.analysis.program.is_some() && settings.total_steps.is_some();
        let counts = match known {
            true => numbers_of_rows(settings),
            false => vec![None],
        };
        let mut block = empty_block(settings, at);
        let task = task(settings);
        for rows in counts {
            let program = self.step(settings, (rows, task), &mut block)?;
            block.step.insert(rows.unwrap_or(1) as u64, program);
        }
        if task == Task::Part {
            block.apply = Some(self.step(settings, (None, Task::Apply), &mut block)?);
        }
        if known {
            block.statistics = self.statistics(settings, &mut block)?;
            self.rounds(settings, &mut block)?;
        }
        if let Some(validate) = &settings.validate {
            block.validate = Some(self.validation(settings, validate, &block, known)?);
        }
        Some(block)
    }

    /// Turns the steps of a block into those that sites make by themselves, if it asks for them; `None` after an error.
    fn rounds(&mut self, settings: &Settings<'a>, block: &mut Block) -> Option<()> {
        let Some(asked) = &settings.strategy.rounds else {
            return Some(());
        };
        let mut warnings = vec![];
        let (rounds, neurons) =
            match subnet_steps::rounds(asked, block, &self.training, &mut warnings) {
                Ok(found) => found,
                Err(error) => {
                    self.analysis.diagnostics.push(error);
                    return None;
                }
            };
        if let Some(error) = self.number_used(settings, block, &neurons) {
            self.analysis.diagnostics.push(error);
            return None;
        }
        self.analysis.diagnostics.append(&mut warnings);
        (block.step, block.apply) = (BTreeMap::new(), None);
        block.rounds = Some(rounds);
        Some(())
    }

    /// The program of what a block validates; `known`: all sizes are.
    fn validation(
        &mut self,
        settings: &Settings<'a>,
        validate: &Validate<'a>,
        block: &Block,
        known: bool,
    ) -> Option<Validation<Program>> {
        let name = validate.name.0.to_owned();
        let program = match validate.on {
            None => evaluating(self.analysis.program.as_ref()?, &name)?,
            Some(on) => {
                let data = [listed(settings, block)];
                let (base, analysis) = (self.reading.base, &mut *self.analysis);
                let listed =
                    data_override::data_of(&data, validate.name, on, &validate.reads, analysis)?;
                let wanted = Name {
                    text: name.clone(),
                    span: validate.name.1,
                };
                let mode = data_override::replacing(base, analysis, &listed, on, wanted)?;
                let (found, carried) = data_override::pass(self.reading, analysis, &mode);
                let program = found.filter(|_| known)?;
                self.carry(carried, &sources_of(&program));
                evaluating(&program, &name)?
            }
        };
        Some(Validation {
            name,
            program,
            every: validate.every,
        })
    }

    /// Returns an error if the loss depends on how many neurons there are: the text is read with twice as many, one dim after the
    /// other.
    fn number_used(
        &self,
        settings: &Settings<'a>,
        block: &Block,
        neurons: &[Neurons],
    ) -> Option<einc_diag::Diagnostic> {
        let (rows, whole) = block.step.iter().next_back()?;
        let loss = |program: &Program| {
            let mut loss = program.clone();
            loss.outputs.truncate(1);
            loss.needed()
        };
        let mut sizes: Vec<u64> = neurons.iter().map(|layer| layer.size).collect();
        sizes.dedup();
        let dims = dims_of(self.reading.text);
        for dim in dims.filter(|dim| settings.over.is_none_or(|(over, _)| over != *dim)) {
            for size in &sizes {
                let mut other = self.reading.bindings.clone();
                other.dims.insert(dim.to_owned(), 2 * *size as i64);
                let mode = self.mode(settings, (Some(*rows as i64), task(settings)));
                let task = crate::sema::Task::new(&other, &mode);
                let found = crate::sema::settle(self.reading.text, task).finish();
                if let Some(program) = &found.program
                    && let Some(error) =
                        subnet_steps::uses_number(&loss(whole), &loss(program), neurons)
                {
                    return Some(error);
                }
            }
        }
        None
    }

    /// The states of modules that are statistics of a step's rows, not of what they were before: steps leave them alone, and a program of its
    /// own estimates them. The outer `None` is an error.
    fn statistics(
        &mut self,
        settings: &Settings<'a>,
        block: &mut Block,
    ) -> Option<Option<(u64, Program)>> {
        let Some(whole) = block.step.values().next_back() else {
            return Some(None);
        };
        let running = |name: &String| {
            let carried = self.training.carried.get(name);
            carried.is_some_and(|carried| carried.kind == CarriedKind::Running)
        };
        let mut names = subnet_steps::learnt(whole);
        names.retain(running);
        for program in block.step.values() {
            let read = sources_of(program);
            names.retain(|name| !read.contains_key(name));
        }
        if names.is_empty() {
            return Some(None);
        }
        let is_one = |output: &einsum::Output| {
            let replaced = output.replaces.as_ref();
            replaced.is_some_and(|name| names.contains(name))
        };
        for program in block.step.values_mut() {
            program.outputs.retain(|output| !is_one(output));
            *program = std::mem::take(program).needed();
        }
        let asked = settings.strategy.statistics;
        let rows = block.rows.min(asked.map_or(STATISTICS, |(rows, _)| rows));
        let how = (settings.over.map(|_| rows as i64), Task::Step);
        let mut scratch = block.clone();
        let mut program = self.step(settings, how, &mut scratch)?;
        program.outputs.retain(is_one);
        Some(Some((rows, program.needed())))
    }

    fn mode(&self, settings: &Settings<'a>, (rows, task): (Option<i64>, Task)) -> Mode {
        let over = settings
            .over
            .map(|(name, _)| (name.to_owned(), rows.or(settings.batch)));
        Mode {
            over: over.into_iter().collect(),
            step: Some((settings.number, task)),
            constants: self.reading.base.constants.clone(),
            ..Mode::default()
        }
    }

    /// One program of a step, checked.
    fn step(
        &mut self,
        settings: &Settings<'a>,
        how: (Option<i64>, Task),
        block: &mut Block,
    ) -> Option<Program> {
        let mode = self.mode(settings, how);
        let task = crate::sema::Task::new(self.reading.bindings, &mode);
        let mut checker = crate::sema::settle(self.reading.text, task);
        let inputs = std::mem::take(&mut checker.training.step.batch);
        let carried = std::mem::take(&mut checker.training.step.carried);
        let optimizer = std::mem::take(&mut checker.training.step.optimizer);
        let found = checker.finish();
        self.analysis.add(&found);
        let program = found.program?;
        block.optimizer = optimizer;
        let mut read = sources_of(&program);
        for output in &program.outputs {
            // What is learnt is carried, also where no step reads it.
            if let Some(name) = &output.replaces {
                let tensor = program.tensor(output.tensor);
                let about = (tensor.dtype, tensor.shape.clone(), Source::Fed);
                read.entry(name.clone()).or_insert(about);
            }
        }
        for input in inputs {
            if read.contains_key(&input.name) && block.inputs.iter().all(|i| i.name != input.name) {
                block.inputs.push(input);
            }
        }
        self.carry(carried, &read);
        Some(program)
    }

    /// Notes what a program reads of what is carried.
    fn carry(&mut self, carried: Vec<(String, CarriedKind, Source)>, read: &Read) {
        for (name, kind, begin) in carried {
            let Some((dtype, shape, _)) = read.get(&name) else {
                continue;
            };
            let (dtype, shape) = (*dtype, shape.clone());
            self.training.carried.entry(name).or_insert(Carried {
                kind,
                begin,
                dtype,
                shape,
                complex: false,
            });
        }
    }
}

/// The sources of a program by name.
pub(crate) fn sources_of(program: &Program) -> Read {
    program
        .tensors
        .iter()
        .filter_map(|tensor| match &tensor.definition {
            einsum::Definition::Source(source) => Some((
                tensor.name.clone(),
                (tensor.dtype, tensor.shape.clone(), source.clone()),
            )),
            einsum::Definition::Statement { .. } | einsum::Definition::Loop(_) => None,
        })
        .collect()
}

/// Puts what the session carries in the place of what a program would make anew: params and states.
fn feed(program: &mut Program, carried: &BTreeMap<String, Carried>) {
    for tensor in &mut program.tensors {
        let known = carried.get(&tensor.name);
        let source = matches!(tensor.definition, einsum::Definition::Source(_));
        let fed = match known.map(|carried| carried.kind) {
            Some(CarriedKind::Param) => source,
            Some(CarriedKind::State | CarriedKind::Running) => true,
            _ => false,
        };
        if fed {
            tensor.definition = einsum::Definition::Source(Source::Fed);
        }
    }
}

/// Constants that are carried are computed once, from all data.
fn constants(program: &mut Program, training: &Training) -> Option<Program> {
    let wanted = |name: &String| {
        let carried = training.carried.get(name);
        let mut inputs = training.blocks.iter().flat_map(|block| &block.inputs);
        carried.is_some_and(|carried| carried.kind == CarriedKind::Constant)
            || inputs.any(|input| input.constant && input.name == *name)
    };
    let ids = (0..).map(einsum::TensorId).zip(&program.tensors);
    let wanted = ids.filter(|(_, tensor)| wanted(&tensor.name));
    let constants: Vec<einsum::Output> = wanted
        .map(|(id, tensor)| einsum::Output {
            tensor: id,
            replaces: None,
            file: None,
            asserts: None,
            complex: false,
            origin: tensor.origin,
        })
        .collect();
    let outputs = std::mem::replace(&mut program.outputs, constants);
    let found = (!program.outputs.is_empty()).then(|| program.clone().needed());
    program.outputs = outputs;
    found
}

/// The work of the programs that batches go through: of a whole step, or of a part.
fn task(settings: &Settings<'_>) -> Task {
    match settings.parts {
        1 => Task::Step,
        _ => Task::Part,
    }
}

/// A block without programs.
fn empty_block(settings: &Settings<'_>, at: usize) -> Block {
    Block {
        rows: settings.rows.unwrap_or(1) as u64,
        batch: settings.batch.unwrap_or(1) as u64,
        shuffle: settings.shuffle,
        steps_per_epoch: settings.steps_per_epoch.unwrap_or(1) as u64,
        steps: settings.total_steps.unwrap_or(0) as u64,
        parts: settings.parts as u64,
        checkpoints: settings.checkpoint.clone(),
        ..Block::named(format!("train.{}", at + 1))
    }
}

/// The numbers of rows that the steps of a block have, or the parts of steps, the largest first; `None` where nothing is batched.
fn numbers_of_rows(settings: &Settings<'_>) -> Vec<Option<i64>> {
    if settings.over.is_none() {
        return vec![None];
    }
    let (batch, rows) = (settings.batch.unwrap_or(1), settings.rows.unwrap_or(1));
    let (sites, together) = (settings.sites, batch.saturating_mul(settings.sites));
    let short = rows % together;
    let mut all: Vec<i64> = vec![];
    // Of a short step some sites may have a row more than others.
    let full = if rows >= together { batch } else { 0 };
    let longer = short / sites + i64::from(short % sites > 0);
    for rows in [full, short / sites, longer] {
        if short < sites && rows != full {
            continue;
        }
        let (less, longer) = (rows / settings.parts, rows % settings.parts);
        all.extend([less, less + i64::from(longer > 0)]);
    }
    all.retain(|rows| *rows > 0);
    all.sort_unstable();
    all.dedup();
    all.into_iter().rev().map(Some).collect()
}

/// The dims of the program's own file, by name.
fn dims_of(text: Text<'_>) -> impl Iterator<Item = &str> {
    let files = text.resolved.names.sources.files.first();
    let items = files.into_iter().flat_map(|file| &file.ast.items);
    items.filter_map(|item| match &item.kind {
        ItemKind::Dim { name, .. } => Some(name.text.as_str()),
        _ => None,
    })
}

/// The part of a program that one scalar needs.
fn evaluating(program: &Program, name: &str) -> Option<Program> {
    let mut program = program.clone();
    program
        .outputs
        .retain(|output| program.tensors[output.tensor.0 as usize].name == name);
    program.outputs.truncate(1);
    for output in &mut program.outputs {
        output.file = None;
    }
    (!program.outputs.is_empty()).then(|| program.needed())
}

/// The data of a block: those that are listed, or all that its steps read by rows.
fn listed(settings: &Settings<'_>, block: &Block) -> Vec<String> {
    let found = block.inputs.iter().filter(|input| !input.constant);
    match &settings.listed {
        Some((names, _)) => names.iter().map(|name| (*name).to_owned()).collect(),
        None => found.map(|input| input.name.clone()).collect(),
    }
}
