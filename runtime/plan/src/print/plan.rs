//! The text of a plan, step by step, with the loops of each step where they are asked for.
//!
//! Must not know how kernels and types are printed.
//!
//! ```text
//! r2 C: {i: 10/2, j: 8/1, k: 6/1} f32[i, j] @ PART(i) = join k0(r0{i, k}, r1{k, j}) over [i, j, k]; free r0, r1   // model.ein:3
//! ```

use super::{Name, assertion, complex, destination, files, join_word, key, list, mesh, origin};
use crate::ids::RelationId;
use crate::lifetime::{Event, events};
use crate::loops::{BlockId, Bound};
use crate::plan::{Operation, Output, Plan, Range, Resting, Step};
use crate::schedule::matmul::blocks_looked_at;
use crate::schedule::{LoopKind, Verdict, candidates};
use std::fmt::{self, Display, Formatter};

/// Displays a plan with the loops of its steps, and every kind of loops that was looked at before with the reason why it was not taken.
pub struct WithLoops<'a>(pub &'a Plan);

impl Display for WithLoops<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.0.write(f, &|event| match event {
            Event::Enter(block) => vec![self.0.rounds_text(block)],
            Event::Step(step) => self.0.loops_text(&self.0.steps[step]),
            Event::Exit(_) => vec![],
        })
    }
}

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, &|_| vec![])
    }
}

impl Plan {
    /// Writes the plan with these lines behind each step, and behind the line that begins a loop.
    fn write(&self, f: &mut Formatter<'_>, behind: &dyn Fn(Event) -> Vec<String>) -> fmt::Result {
        let how = if self.deterministic {
            ", deterministic"
        } else {
            ""
        };
        let mesh = mesh(&self.mesh, self.sites);
        writeln!(f, "plan for {} sites{mesh}{how}", self.sites)?;
        f.write_str(&files(&self.files))?;
        if self.resting != Resting::Disk {
            writeln!(f, "rest {}", self.resting.located())?;
        }
        for (number, kernel) in self.kernels.iter().enumerate() {
            writeln!(f, "kernel k{number} {kernel}")?;
        }
        let mut depth = 0;
        for event in events(self) {
            let text = match event {
                Event::Enter(block) => self.repeat_text(block),
                Event::Step(step) => self.step_text(&self.steps[step]),
                Event::Exit(block) => self.end_text(block),
            };
            depth -= usize::from(matches!(event, Event::Exit(_)));
            writeln!(f, "{:1$}{text}", "", 2 * depth)?;
            depth += usize::from(matches!(event, Event::Enter(_)));
            for line in behind(event) {
                let inner = usize::from(matches!(event, Event::Step(_)));
                writeln!(f, "{:1$}{line}", "", 2 * (depth + inner))?;
            }
        }
        for sweep in &self.sweeps {
            writeln!(f, "sweep {} rows {}", list(&sweep.members), sweep.rows)?;
        }
        for exchange in &self.exchanges {
            let members = list(&exchange.members);
            writeln!(f, "exchange {members} until {}", exchange.until)?;
        }
        for spill in &self.spills {
            let (relation, before, until) = (spill.relation, spill.before, spill.until);
            writeln!(f, "spill {relation} before {before} until {until}")?;
        }
        if !self.streams.is_empty() {
            writeln!(f, "stream {}", list(&self.streams))?;
        }
        for output in &self.outputs {
            writeln!(f, "{}", self.output_text(output))?;
        }
        Ok(())
    }

    /// How the rounds of a loop are made, as it is printed, in a comment.
    pub fn rounds_text(&self, block: BlockId) -> String {
        let around = |block: &BlockId| self.repeat(*block).block.parent;
        let mut outer = std::iter::successors(around(&block), around);
        if outer.any(|block| self.small_rounds(block).is_ok()) {
            return "// rounds are compiled with those around them".into();
        }
        match self.small_rounds(block) {
            Ok(rounds) => {
                let (steps, points) = (rounds.steps.len(), rounds.points());
                let loops = match rounds.inner.is_empty() {
                    true => "",
                    false => ", with the loops in them",
                };
                format!(
                    "// rounds are compiled whole{loops}; steps: {steps}, points of a round: {points}"
                )
            }
            Err(why) => format!("// rounds are made step by step: {why}"),
        }
    }

    /// The loops of a step as they are printed, and in comments the kinds that were looked at before: none for a step that is no join.
    pub fn loops_text(&self, step: &Step) -> Vec<String> {
        let (Some(facts), Some(loops)) = (self.facts(step), self.loops_of(step.result)) else {
            return vec![];
        };
        let mut lines = vec![format!(
            "loops {}: {}",
            step.result,
            loops.text(facts.kernel)
        )];
        let Some(facts) = self.facts_as_run(step) else {
            return lines;
        };
        for candidate in candidates(&facts) {
            let name = candidate.name;
            match candidate.verdict {
                Verdict::Taken(_) => {}
                Verdict::Unfit(reason) => lines.push(format!("// not {name}: {reason}")),
                Verdict::Unworthy(_, reason) => {
                    lines.push(format!("// possible, but slower: {name}; {reason}"));
                }
            }
        }
        if let LoopKind::Matmul(form) = &loops.kind {
            let looked_at = blocks_looked_at(&facts, form);
            lines.extend(looked_at.iter().map(|line| format!("// {line}")));
        }
        lines
    }

    /// One step as it is printed: `r3 C: … = join k0(…) over […]; free r1   // model.ein:5`.
    pub fn step_text(&self, step: &Step) -> String {
        let (result, tensor, kind) = (step.result, Name(&step.tensor), &step.kind);
        let operation = self.operation_text(step);
        let frees = freed(&step.frees);
        let origin = origin(step.origin, &self.files);
        format!("{result} {tensor}: {kind} = {operation}{frees}{origin}")
    }

    /// The line that begins a loop: `repeat b0 k < 100 until r7; state r0 next r4; collect r5 dim 0; free r0`.
    pub fn repeat_text(&self, id: BlockId) -> String {
        let repeat = self.repeat(id);
        let block = &repeat.block;
        let mut text = format!("repeat {id} {} < ", Name(&block.name));
        text += &match block.bound {
            Bound::Rounds(rounds) => rounds.to_string(),
            Bound::Value(relation) => relation.to_string(),
            Bound::Unbounded => "inf".into(),
        };
        if let Some(until) = block.until {
            text += &format!(" until {until}");
        }
        for state in &block.states {
            text += &format!("; state {} next {}", state.initial, state.next);
        }
        for collected in &block.collected {
            text += &format!("; collect {} dim {}", collected.value, collected.dim);
        }
        text += &freed(&repeat.enters);
        text + &origin(block.origin, &self.files)
    }

    /// The line that ends a loop: `end b0; free r1, r2`.
    pub fn end_text(&self, id: BlockId) -> String {
        format!("end {id}{}", freed(&self.repeat(id).frees))
    }

    fn operation_text(&self, step: &Step) -> String {
        let own = &step.kind.keys;
        let of = |relation: &RelationId, number: u32| match self.steps.get(relation.0 as usize) {
            Some(step) => key(&step.kind.keys, number),
            None => format!("#{number}"),
        };
        match &step.operation {
            Operation::Source { name, source } => format!("source {} from {source}", Name(name)),
            Operation::Broadcast { input } => format!("broadcast {input}"),
            Operation::Shuffle { input } => format!("shuffle {input}"),
            Operation::Window { input } => format!("window {input}"),
            Operation::LocalJoin {
                inputs,
                kernel,
                ranges,
                fold,
            } => {
                let keys = fold.as_ref().map_or(own, |fold| &fold.keys);
                let inputs = inputs.iter().map(|input| {
                    let keys = input.keys.iter().map(|k| key(keys, *k));
                    format!("{}{{{}}}", input.relation, list(keys))
                });
                let ranges = ranges.iter().map(|range| match range {
                    Range::Whole => "_".to_string(),
                    Range::Key(k) => key(keys, *k),
                });
                let (inputs, ranges) = (list(inputs), list(ranges));
                let how = match self.in_place(step) {
                    Some(_) => "update".into(),
                    None => join_word(fold.as_ref()),
                };
                format!("{how} k{}({inputs}) over [{ranges}]", kernel.0)
            }
            Operation::LocalAggregate {
                input,
                keep,
                reduction,
            } => {
                let keep = list(keep.iter().map(|k| of(input, *k)));
                format!("aggregate {} {input} keep {{{keep}}}", reduction.name())
            }
            Operation::LocalConcat { input, array_dim } => {
                format!("concat {input} dim {array_dim}")
            }
            Operation::LocalTile { input, array_dim } => format!("tile {input} dim {array_dim}"),
            Operation::LocalFilter { input, key, value } => {
                format!("filter {input} where {} = {value}", of(input, *key))
            }
            Operation::Loop { value } => format!("loop {value}"),
        }
    }

    /// One output as it is printed: `output C = r3: f32[10, 8] -> "c.npy"   // model.ein:5`.
    pub fn output_text(&self, output: &Output) -> String {
        let (name, relation) = (Name(&output.name), output.relation);
        let (dtype, shape) = (output.dtype, list(&output.shape));
        let to = destination(output.replaces.as_deref(), output.file.as_deref());
        let asserts = assertion(output.asserts.as_deref()) + complex(output.complex);
        let origin = origin(output.origin, &self.files);
        format!("output {name} = {relation}: {dtype}[{shape}]{to}{asserts}{origin}")
    }
}

fn freed(relations: &[RelationId]) -> String {
    match relations.is_empty() {
        true => String::new(),
        false => format!("; free {}", list(relations)),
    }
}
