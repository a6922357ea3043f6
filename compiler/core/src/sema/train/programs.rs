//! The passes over a text that training needs: one for each program of each block.
//!
//! Must not know what a step is made of, plans or sites.
//!
//! ```text
//! N = 100 rows by 64, validate on (Xv, yv)   =>   steps with 64 and 36 rows, the validation with N bound anew, the rest
//! ```

use crate::einsum::{self, Program};
use crate::sema::{
    Analysis, Bindings, Text,
    train::block::Settings,
    train::data_override,
    train::subnet_steps,
    train::training::{Base, Block, Carried, CarriedKind, EVALUATED, Mode, Rounds, Task, Training},
};
use ein_plan::{DType, Source};
use einc_diag::Diagnostic;
use einc_syntax::ast::Name;
use std::collections::BTreeMap;

/// Reads the program in every way that training needs. `base` and `analysis` are of the text as it stands; errors go to
/// `analysis`.
pub(crate) fn passes(
    text: Text<'_>,
    bindings: &Bindings,
    base: &Base<'_>,
    analysis: &mut Analysis,
) -> Option<Training> {
    let mut training = Training::default();
    let mut data = vec![];
    for (at, settings) in base.blocks.iter().enumerate() {
        let block = block(text, bindings, base, analysis, settings, at, &mut training)?;
        data.push(listed(settings, &block));
        training.blocks.push(block);
    }
    data_override::outputs(text, bindings, base, &data, analysis)?;
    let program = analysis.program.as_mut()?;
    let begins: BTreeMap<String, (DType, Vec<u64>, Source)> = sources_of(program);
    let mut names: Vec<String> = vec![];
    for carried in &mut training.carried {
        if let Some((.., source)) = begins.get(&carried.name)
            && carried.kind != CarriedKind::Gradient
        {
            carried.begin = source.clone();
        }
        names.push(carried.name.clone());
    }
    // Constants that are carried are computed once, from all data.
    let wanted = |name: &String| {
        let constant = |c: &&Carried| c.kind == CarriedKind::Constant && c.name == *name;
        training.carried.iter().find(constant).is_some()
            || training
                .blocks
                .iter()
                .flat_map(|b| &b.inputs)
                .any(|input| input.constant && input.name == *name)
    };
    let constants: Vec<einsum::Output> = program
        .tensors
        .iter()
        .enumerate()
        .filter(|(_, tensor)| wanted(&tensor.name))
        .map(|(at, tensor)| einsum::Output {
            tensor: einsum::TensorId(at as u32),
            replaces: None,
            file: None,
            origin: tensor.origin,
        })
        .collect();
    if !constants.is_empty() {
        let outputs = std::mem::replace(&mut program.outputs, constants);
        training.constants = Some(program.clone().needed());
        program.outputs = outputs;
    }
    for block in &mut training.blocks {
        for input in &mut block.inputs {
            if let Some((_, shape, source)) = begins.get(&input.name) {
                input.source = source.clone();
                input.shape.clone_from(shape);
            }
        }
        if let Some((_, program, _)) = &mut block.validate {
            feed(program, &training.carried);
        }
    }
    // What is given out is evaluated after training.
    program
        .outputs
        .retain(|output| output.file.as_deref() != Some(EVALUATED));
    feed(program, &training.carried);
    let last = std::mem::take(program).needed();
    *program = last;
    Some(training)
}

/// The sources of a program by name.
pub(crate) fn sources_of(program: &Program) -> BTreeMap<String, (DType, Vec<u64>, Source)> {
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
fn feed(program: &mut Program, carried: &[Carried]) {
    for tensor in &mut program.tensors {
        let known = carried.iter().find(|carried| carried.name == tensor.name);
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

/// The programs of one block.
fn block(
    text: Text<'_>,
    bindings: &Bindings,
    base: &Base<'_>,
    analysis: &mut Analysis,
    settings: &Settings<'_>,
    at: usize,
    training: &mut Training,
) -> Option<Block> {
    let batch = settings.batch.unwrap_or(1);
    let rows = settings.rows.unwrap_or(1);
    let known = analysis.program.is_some() && settings.total_steps.is_some();
    let mut counts: Vec<Option<i64>> = vec![None];
    if let (true, Some(_)) = (known, settings.over) {
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
        counts = all.into_iter().rev().map(Some).collect();
    }
    let task = if settings.parts > 1 {
        Task::Part
    } else {
        Task::Step
    };
    let mut block = Block {
        name: format!("train.{}", at + 1),
        span: settings.head,
        rows: rows as u64,
        batch: batch as u64,
        shuffle: settings.shuffle,
        steps_per_epoch: settings.steps_per_epoch.unwrap_or(1) as u64,
        steps: settings.total_steps.unwrap_or(0) as u64,
        parts: settings.parts as u64,
        sites: settings.sites as u64,
        rounds: None,
        statistics: None,
        inputs: vec![],
        step: BTreeMap::new(),
        apply: None,
        optimizer: String::new(),
        validate: None,
        checkpoint: settings.checkpoint.clone(),
    };
    for rows in counts {
        let program = step(
            text,
            bindings,
            base,
            analysis,
            settings,
            (rows, task),
            &mut block,
            training,
        )?;
        block.step.insert(rows.unwrap_or(1) as u64, program);
    }
    if task == Task::Part {
        let how = (None, Task::Apply);
        block.apply = Some(step(
            text, bindings, base, analysis, settings, how, &mut block, training,
        )?);
    }
    if known {
        let found = statistics(
            text, bindings, base, analysis, settings, &mut block, training,
        )?;
        block.statistics = found;
    }
    if let (Some(asked), true) = (&settings.strategy.rounds, known) {
        let mut warnings = vec![];
        match subnet_steps::rounds(asked, &block, training, &mut warnings) {
            Ok(rounds) => {
                if let Some(error) = number_used(text, bindings, base, settings, &block, &rounds) {
                    analysis.diagnostics.push(error);
                    return None;
                }
                block.rounds = Some(rounds);
            }
            Err(error) => {
                analysis.diagnostics.push(error);
                return None;
            }
        }
        analysis.diagnostics.append(&mut warnings);
    }
    if let Some(validate) = &settings.validate {
        let name = validate.name.0.to_owned();
        let program = match validate.on {
            None => evaluating(analysis.program.as_ref()?, &name)?,
            Some(on) => {
                let data = [listed(settings, &block)];
                let listed =
                    data_override::data_of(&data, validate.name, on, &validate.reads, analysis)?;
                let wanted = Name {
                    text: name.clone(),
                    span: validate.name.1,
                };
                let mode = data_override::replacing(base, analysis, &listed, on, wanted)?;
                let (found, carried) = data_override::pass(text, bindings, base, analysis, &mode);
                let program = found.filter(|_| known)?;
                carry(training, carried, &sources_of(&program));
                evaluating(&program, &name)?
            }
        };
        block.validate = Some((name, program, validate.every));
    }
    Some(block)
}

/// Returns whether the loss depends on how many neurons there are: the text is read with twice as many, one dim after the other.
fn number_used(
    text: Text<'_>,
    bindings: &Bindings,
    base: &Base<'_>,
    settings: &Settings<'_>,
    block: &Block,
    rounds: &Rounds,
) -> Option<Diagnostic> {
    let (rows, whole) = block.step.iter().next_back()?;
    let loss = |program: &Program| {
        let mut loss = program.clone();
        loss.outputs.truncate(1);
        loss.needed()
    };
    let dims = text
        .resolved
        .names
        .sources
        .files
        .first()
        .into_iter()
        .flat_map(|file| &file.ast.items);
    let dims = dims.filter_map(|item| match &item.kind {
        einc_syntax::ast::ItemKind::Dim { name, .. } => Some(name.text.clone()),
        _ => None,
    });
    let mut sizes: Vec<u64> = rounds.neurons.iter().map(|layer| layer.size).collect();
    sizes.dedup();
    let task = if settings.parts > 1 {
        Task::Part
    } else {
        Task::Step
    };
    for dim in dims.filter(|dim| settings.over.is_none_or(|(over, _)| over != dim)) {
        for size in &sizes {
            let mut other = bindings.clone();
            other.dims.insert(dim.clone(), 2 * *size as i64);
            let over = settings
                .over
                .map(|(name, _)| (name.to_owned(), Some(*rows as i64)));
            let mode = Mode {
                over: over.into_iter().collect(),
                step: Some((settings.number, task)),
                constants: base.constants.clone(),
                ..Mode::default()
            };
            let found = crate::sema::settle(text, crate::sema::Task::new(&other, &mode)).finish();
            if let Some(program) = &found.program
                && let Some(error) =
                    subnet_steps::uses_number(&loss(whole), &loss(program), &rounds.neurons)
            {
                return Some(error);
            }
        }
    }
    None
}

/// The states of modules that are statistics of a step's rows, not of what they were before: steps leave them alone, and a program of its
/// own estimates them.
fn statistics(
    text: Text<'_>,
    bindings: &Bindings,
    base: &Base<'_>,
    analysis: &mut Analysis,
    settings: &Settings<'_>,
    block: &mut Block,
    training: &mut Training,
) -> Option<Option<(u64, Program)>> {
    let Some(whole) = block.step.values().next_back() else {
        return Some(None);
    };
    let running = |name: &String| {
        let own =
            |carried: &&Carried| carried.name == *name && carried.kind == CarriedKind::Running;
        training.carried.iter().any(|carried| own(&carried))
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
    let rows = block.rows.min(
        settings
            .strategy
            .statistics
            .map_or(STATISTICS, |(rows, _)| rows),
    );
    let how = (settings.over.map(|_| rows as i64), Task::Step);
    let mut scratch = block.clone();
    let mut program = step(
        text,
        bindings,
        base,
        analysis,
        settings,
        how,
        &mut scratch,
        training,
    )?;
    program.outputs.retain(is_one);
    Some(Some((rows, program.needed())))
}

/// Rows that statistics are estimated with, where nothing else is said.
const STATISTICS: u64 = 1024;

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

/// One program of a step, checked.
#[allow(clippy::too_many_arguments)]
fn step(
    text: Text<'_>,
    bindings: &Bindings,
    base: &Base<'_>,
    analysis: &mut Analysis,
    settings: &Settings<'_>,
    (rows, task): (Option<i64>, Task),
    block: &mut Block,
    training: &mut Training,
) -> Option<Program> {
    let over = settings
        .over
        .map(|(name, _)| (name.to_owned(), rows.or(settings.batch)));
    let mode = Mode {
        over: over.into_iter().collect(),
        step: Some((settings.number, task)),
        constants: base.constants.clone(),
        ..Mode::default()
    };
    let mut checker = crate::sema::settle(text, crate::sema::Task::new(bindings, &mode));
    let inputs = std::mem::take(&mut checker.training.step.batch);
    let carried = std::mem::take(&mut checker.training.step.carried);
    let optimizer = std::mem::take(&mut checker.training.step.optimizer);
    let found = checker.finish();
    analysis.add(&found);
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
    carry(training, carried, &read);
    Some(program)
}

/// Notes what a program reads of what is carried.
fn carry(
    training: &mut Training,
    carried: Vec<(String, CarriedKind, Source)>,
    read: &BTreeMap<String, (DType, Vec<u64>, Source)>,
) {
    for (name, kind, begin) in carried {
        let Some((dtype, shape, _)) = read.get(&name) else {
            continue;
        };
        if training.carried.iter().all(|c| c.name != name) {
            training.carried.push(Carried {
                name,
                dtype: *dtype,
                shape: shape.clone(),
                begin,
                kind,
            });
        }
    }
}
