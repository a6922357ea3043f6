//! Reads the text of kernels, relation types and plans back: the inverse of [`crate::print`].
//!
//! Recursive descent by hand, one line a statement; the depth is bounded and every error has a place. Must not
//! know whether what it reads makes sense: that is [`crate::verify`]'s part.
//!
//! ```text
//! 3:14: expected `]`, found `,`
//! ```

pub mod expression;
pub mod line;
mod parts;
mod repeat;
mod token;

use crate::ids::{KernelId, RelationId};
use crate::kernel::Kernel;
use crate::plan::{Exchange, Spill, Sweep};
use crate::plan::{JoinInput, Operation, Output, Plan, Range, Resting, Step};
use crate::relation::{KeyDim, RelationType};
use crate::schedule::LoopKernel;
use crate::source::Source;
use crate::verify::structure;
pub use line::{Line, ParseError, Result, lines};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Reads the only line of a text.
fn single<T>(text: &str, read: impl FnOnce(&mut Line<'_>) -> Result<T>) -> Result<T> {
    let mut line = Line::new(1, text)?;
    let value = read(&mut line)?;
    line.end()?;
    Ok(value)
}

impl FromStr for Kernel {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Kernel> {
        single(text, |line| line.kernel())
    }
}

impl FromStr for RelationType {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<RelationType> {
        single(text, |line| line.relation_type())
    }
}

impl FromStr for Source {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Source> {
        single(text, |line| line.source())
    }
}

impl FromStr for Plan {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Plan> {
        plan(text)
    }
}

fn plan(text: &str) -> Result<Plan> {
    let mut all = lines(text);
    let Some(first) = all.next() else {
        return Err(ParseError::new(1, 1, "expected `plan for … sites`"));
    };
    let mut line = first?;
    line.expect_word("plan")?;
    line.expect_word("for")?;
    let sites = line.integer()?;
    line.expect_word("sites")?;
    let mesh = line.mesh(sites)?;
    let deterministic = line.eat(",");
    if deterministic {
        line.expect_word("deterministic")?;
    }
    line.end()?;
    let mut plan = Plan {
        sites,
        mesh,
        deterministic,
        files: vec![],
        kernels: vec![],
        steps: vec![],
        repeats: vec![],
        loops: BTreeMap::new(),
        sweeps: vec![],
        exchanges: vec![],
        resting: Resting::Disk,
        spills: vec![],
        streams: vec![],
        outputs: vec![],
    };
    let mut open = repeat::Open::default();
    for line in all {
        let mut line = line?;
        // A step begins with `r3 name:`; the others begin with a word and cannot be taken for one.
        if line.at_words("files") {
            plan.files = line.files()?;
        } else if line.at_words("kernel") {
            line.expect_word("kernel")?;
            let number = line.numbered('k')?;
            line.require(
                number as usize == plan.kernels.len(),
                "kernels are numbered from k0 up",
            )?;
            plan.kernels.push(line.kernel()?);
            line.end()?;
        } else if open.read(&mut line, &mut plan)? {
        } else if line.at_words("loops") {
            let (step, loops) = loops(&mut line, &plan)?;
            plan.loops.insert(step, loops);
        } else if line.at_words("sweep") {
            plan.sweeps.push(line.sweep()?);
        } else if line.at_words("exchange") {
            plan.exchanges.push(line.exchange()?);
        } else if line.at_words("rest") {
            for word in ["rest", "in", "host", "memory"] {
                line.expect_word(word)?;
            }
            line.end()?;
            plan.resting = Resting::HostMemory;
        } else if line.at_words("spill") {
            plan.spills.push(line.spill()?);
        } else if line.at_words("stream") {
            line.expect_word("stream")?;
            plan.streams = line.relations()?;
            line.end()?;
        } else if line.at_words("output") {
            plan.outputs.push(output(&mut line, &plan)?);
        } else {
            let step = step(&mut line, &plan)?;
            plan.steps.push(step);
        }
    }
    if !open.is_empty() {
        let last = text.lines().count() as u32;
        return Err(ParseError::new(last, 1, "a loop does not end"));
    }
    // A text that says nothing of loops stands for those that are chosen.
    if plan.loops.is_empty() && structure(&plan).is_ok() {
        plan.schedule();
    }
    Ok(plan)
}

/// `loops r2: matmul rows [i] columns [j] inner [k]`.
fn loops(line: &mut Line<'_>, plan: &Plan) -> Result<(RelationId, LoopKernel)> {
    line.expect_word("loops")?;
    let relation = line.relation()?;
    let step = plan.steps.get(relation.0 as usize);
    let kernel = step.and_then(|step| match &step.operation {
        Operation::LocalJoin { kernel, .. } => plan.kernels.get(kernel.0 as usize),
        _ => None,
    });
    let kernel = kernel.ok_or_else(|| line.error_before("a join that stands before its loops"))?;
    line.expect(":")?;
    let loops = line.loop_kernel(kernel)?;
    line.end()?;
    Ok((relation, loops))
}

fn output(line: &mut Line<'_>, plan: &Plan) -> Result<Output> {
    line.expect_word("output")?;
    let name = line.name()?;
    line.expect("=")?;
    let relation = line.relation()?;
    line.expect(":")?;
    let dtype = line.dtype()?;
    line.expect("[")?;
    let shape = line.list("]", Line::integer)?;
    let (replaces, file) = line.destination()?;
    let asserts = line
        .eat_word("asserts")
        .then(|| line.quoted())
        .transpose()?;
    Ok(Output {
        name,
        relation,
        dtype,
        shape,
        replaces,
        file,
        asserts,
        complex: line.eat_word("complex"),
        origin: line.origin(&plan.files)?,
    })
}

fn step(line: &mut Line<'_>, plan: &Plan) -> Result<Step> {
    let result = line.relation()?;
    let tensor = line.name()?;
    line.expect(":")?;
    let kind = line.relation_type()?;
    line.expect("=")?;
    let updates = line.at_word("update");
    let operation = operation(line, plan, &kind)?;
    let frees = match line.eat(";") {
        true => line.freed()?,
        false => vec![],
    };
    let step = Step {
        result,
        tensor,
        kind,
        operation,
        frees,
        origin: line.origin(&plan.files)?,
    };
    line.require(
        !updates || plan.in_place(&step).is_some(),
        "this step changes nothing in place",
    )?;
    Ok(step)
}

fn operation(line: &mut Line<'_>, plan: &Plan, kind: &RelationType) -> Result<Operation> {
    let keys_of = |relation: RelationId| -> &[KeyDim] {
        let step = plan.steps.get(relation.0 as usize);
        step.map_or(&[], |step| &step.kind.keys)
    };
    let word = line.word()?;
    Ok(match word {
        "source" => {
            let name = line.name()?;
            line.expect_word("from")?;
            let source = line.source()?;
            Operation::Source { name, source }
        }
        "broadcast" => Operation::Broadcast {
            input: line.relation()?,
        },
        "shuffle" => Operation::Shuffle {
            input: line.relation()?,
        },
        "window" => Operation::Window {
            input: line.relation()?,
        },
        "join" | "fold" | "update" => {
            let fold = line.fold(word)?;
            let keys = fold.as_ref().map_or(&kind.keys, |fold| &fold.keys);
            let kernel = KernelId(line.numbered('k')?);
            line.expect("(")?;
            let inputs = line.list(")", |line| {
                let relation = line.relation()?;
                line.expect("{")?;
                let keys = line.list("}", |line| line.key(keys))?;
                Ok(JoinInput { relation, keys })
            })?;
            line.expect_word("over")?;
            line.expect("[")?;
            let ranges = line.list("]", |line| {
                Ok(if line.eat_word("_") {
                    Range::Whole
                } else {
                    Range::Key(line.key(keys)?)
                })
            })?;
            Operation::LocalJoin {
                inputs,
                kernel,
                ranges,
                fold,
            }
        }
        "aggregate" => {
            let reduction = line.reduction()?;
            let input = line.relation()?;
            line.expect_word("keep")?;
            line.expect("{")?;
            let keep = line.list("}", |line| line.key(keys_of(input)))?;
            Operation::LocalAggregate {
                input,
                keep,
                reduction,
            }
        }
        "concat" | "tile" => {
            let input = line.relation()?;
            line.expect_word("dim")?;
            let array_dim = line.integer()?;
            if word == "concat" {
                Operation::LocalConcat { input, array_dim }
            } else {
                Operation::LocalTile { input, array_dim }
            }
        }
        "filter" => {
            let input = line.relation()?;
            line.expect_word("where")?;
            let key = line.key(keys_of(input))?;
            line.expect("=")?;
            let value = line.integer()?;
            Operation::LocalFilter { input, key, value }
        }
        "loop" => Operation::Loop {
            value: line.loop_value()?,
        },
        _ => return Err(line.error_before("an operation such as `join` or `broadcast`")),
    })
}

impl Line<'_> {
    /// `sweep r1, r2, r4 rows 1`.
    fn sweep(&mut self) -> Result<Sweep> {
        self.expect_word("sweep")?;
        let members = self.relations()?;
        self.expect_word("rows")?;
        let rows = self.integer()?;
        self.end()?;
        Ok(Sweep { members, rows })
    }

    /// `exchange r3, r4 until r7`.
    fn exchange(&mut self) -> Result<Exchange> {
        self.expect_word("exchange")?;
        let members = self.relations()?;
        self.expect_word("until")?;
        let until = self.relation()?;
        self.end()?;
        Ok(Exchange { members, until })
    }

    /// `spill r3 before r5 until r9`.
    fn spill(&mut self) -> Result<Spill> {
        self.expect_word("spill")?;
        let relation = self.relation()?;
        self.expect_word("before")?;
        let before = self.relation()?;
        self.expect_word("until")?;
        let until = self.relation()?;
        self.end()?;
        Ok(Spill {
            relation,
            before,
            until,
        })
    }
}
