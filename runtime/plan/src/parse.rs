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
mod repeat;
mod token;

use crate::dtype::DType;
use crate::exchange::Exchange;
use crate::kernel::{Graph, Kernel, NodeId, Operand};
use crate::mesh::Mesh;
use crate::plan::{Fold, JoinInput, KernelId, Operation, Output, Plan, Range, RelationId, Step};
use crate::print::AXES;
use crate::reduction::Reduction;
use crate::relation::{ArrayDim, ArrayType, AxisRole, KeyDim, Placement, RelationType};
use crate::source::{FileRef, Part, Source};
use crate::spill::Spill;
use crate::sweep::Sweep;
use expression::{body, indices};
pub use line::{Line, ParseError, Result, lines};
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
        sweeps: vec![],
        exchanges: vec![],
        spills: vec![],
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
        } else if line.at_words("sweep") {
            plan.sweeps.push(line.sweep()?);
        } else if line.at_words("exchange") {
            plan.exchanges.push(line.exchange()?);
        } else if line.at_words("spill") {
            plan.spills.push(line.spill()?);
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
    Ok(plan)
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
    let file = line.eat("->").then(|| line.quoted()).transpose()?;
    Ok(Output {
        name,
        relation,
        dtype,
        shape,
        file,
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

    /// `r3`.
    pub fn relation(&mut self) -> Result<RelationId> {
        self.numbered('r').map(RelationId)
    }

    /// A key dimension, by its name or as `#2`.
    pub fn key(&mut self, keys: &[KeyDim]) -> Result<u32> {
        self.reference(keys.iter().map(|k| k.name.as_str()), "a key dimension")
    }

    /// The name of a reduction.
    pub fn reduction(&mut self) -> Result<Reduction> {
        match Reduction::from_name(self.word()?) {
            Some(reduction) => Ok(reduction),
            None => Err(self.error_before("a reduction such as `sum`")),
        }
    }

    /// `f32`.
    pub fn dtype(&mut self) -> Result<DType> {
        match DType::from_name(self.word()?) {
            Some(dtype) => Ok(dtype),
            None => Err(self.error_before("an element type such as `f32`")),
        }
    }

    /// `f32`, or `(f32, i64)`.
    pub fn columns(&mut self) -> Result<Vec<DType>> {
        if self.eat("(") {
            self.list(")", Line::dtype)
        } else {
            Ok(vec![self.dtype()?])
        }
    }

    /// `(f32[10, 6]) [i: 10 | k: 6] f32 = sum a0[i, k]`; the kernel is canonical.
    pub fn kernel(&mut self) -> Result<Kernel> {
        self.expect("(")?;
        let operands = self.list(")", |line| {
            let columns = line.columns()?;
            line.expect("[")?;
            let shape = line.list("]", Line::integer)?;
            Ok(Operand { columns, shape })
        })?;
        let (indices, output_rank) = indices(self)?;
        let output = self.columns()?;
        self.expect("=")?;
        let mut kernel = Kernel {
            indices,
            output_rank,
            operands,
            graph: Graph::default(),
            root: NodeId(0),
            guard: None,
            reduction: None,
            finish: true,
            output,
        };
        let operands = std::mem::take(&mut kernel.operands);
        body(self, &mut kernel, &|name| {
            let number: u32 = name.strip_prefix('a')?.parse().ok()?;
            let operand = operands.get(number as usize)?;
            Some((number, operand.columns.clone()))
        })?;
        kernel.operands = operands;
        Ok(kernel.canonical())
    }

    /// `i: 10/2`, `i: 16/4@xy`, `i: 6/2@_`.
    pub fn key_dim(&mut self) -> Result<KeyDim> {
        let name = self.name()?;
        self.expect(":")?;
        let extent = self.integer()?;
        self.expect("/")?;
        let pieces = self.integer()?;
        let mut axes = vec![0];
        if self.eat("@") {
            let letters = self.word()?;
            let known = |letter: char| AXES.iter().position(|axis| *axis == letter);
            let numbers = letters
                .chars()
                .map(|letter| known(letter).map(|at| at as u8));
            axes = match letters {
                "_" => vec![],
                _ => numbers
                    .collect::<Option<_>>()
                    .ok_or_else(|| self.error_before("axes such as `xy`"))?,
            };
        }
        Ok(KeyDim {
            name,
            extent,
            pieces,
            axes,
        })
    }

    /// What follows `fold` before the inputs; nothing after `join`.
    pub fn fold(&mut self, word: &str) -> Result<Option<Fold>> {
        if word != "fold" {
            return Ok(None);
        }
        self.expect("{")?;
        let keys = self.list("}", Line::key_dim)?;
        self.expect_word("keep")?;
        self.expect("{")?;
        let keep = self.list("}", |line| line.key(&keys))?;
        Ok(Some(Fold { keys, keep }))
    }

    /// `mesh 2x3`, or nothing for all sites in a row.
    pub fn mesh(&mut self, sites: u32) -> Result<Mesh> {
        if !self.eat_word("mesh") {
            return Ok(Mesh::row(sites));
        }
        let mut axes = vec![self.integer()?];
        if let Some(more) = self.eat_word_after('x') {
            for count in more.split('x').skip(1) {
                let count = count.parse();
                axes.push(count.map_err(|_| self.error_before("a mesh such as `2x3`"))?);
            }
        }
        Ok(Mesh { axes })
    }

    /// `{i: 10/2, k: 6/1} f32[i, k]`.
    pub fn keys_and_array(&mut self) -> Result<(Vec<KeyDim>, ArrayType)> {
        self.expect("{")?;
        let keys = self.list("}", Line::key_dim)?;
        let columns = self.columns()?;
        self.expect("[")?;
        let dims = self.list("]", |line| {
            if line.at_number() {
                let extent = line.integer()?;
                return Ok(ArrayDim { extent, cut: None });
            }
            let cut = line.key(&keys)?;
            let extent = if line.eat(":") {
                line.integer()?
            } else {
                keys.get(cut as usize).map_or(0, |k: &KeyDim| k.extent)
            };
            Ok(ArrayDim {
                extent,
                cut: Some(cut),
            })
        })?;
        Ok((keys, ArrayType { dims, columns }))
    }

    /// `{i: 10/2, k: 6/1} f32[i, k] @ PART(i)`.
    pub fn relation_type(&mut self) -> Result<RelationType> {
        let (keys, array) = self.keys_and_array()?;
        self.expect("@")?;
        let roles = match self.word()? {
            "ALL" => vec![AxisRole::Every],
            "ONE" => vec![AxisRole::First],
            "PART" => {
                self.expect("(")?;
                let key = self.key(&keys)?;
                self.expect(")")?;
                vec![AxisRole::Key(key)]
            }
            "GRID" => {
                self.expect("(")?;
                self.list(")", |line| {
                    Ok(if line.eat("*") {
                        AxisRole::Every
                    } else if line.eat(".") {
                        AxisRole::First
                    } else {
                        AxisRole::Key(line.key(&keys)?)
                    })
                })?
            }
            _ => return Err(self.error_before("a placement such as `ALL` or `PART(i)`")),
        };
        let placement = Placement { roles };
        Ok(RelationType {
            keys,
            array,
            placement,
        })
    }

    /// `normal(0.0, 0.02)`, `stacked(1, "enc.0.w" zeros, …)`.
    pub fn source(&mut self) -> Result<Source> {
        let word = self.word()?;
        if word != "stacked" {
            return self.plain_source(word);
        }
        self.expect("(")?;
        let leading = self.integer()?;
        let mut parts = vec![];
        while self.eat(",") {
            let name = self.quoted()?;
            let word = self.word()?;
            let source = self.plain_source(word)?;
            parts.push(Part { name, source });
        }
        self.expect(")")?;
        Ok(Source::Stacked { leading, parts })
    }

    /// A source of one tensor, behind its first word.
    fn plain_source(&mut self, word: &str) -> Result<Source> {
        let simple = match word {
            "unbound" => Some(Source::Unbound),
            "iota" => Some(Source::Iota),
            "gumbel" => Some(Source::Gumbel),
            "permutation" => Some(Source::Permutation),
            "fed" => Some(Source::Fed),
            _ => None,
        };
        if let Some(source) = simple {
            return Ok(source);
        }
        if !["load", "full", "uniform", "normal", "bernoulli"].contains(&word) {
            return Err(self.error_before("a source such as `load(…)` or `normal(…)`"));
        }
        self.expect("(")?;
        let source = match word {
            "load" => {
                let path = self.quoted()?;
                let key = self.eat(",").then(|| self.quoted()).transpose()?;
                Source::Load(FileRef { path, key })
            }
            "full" => Source::Full(self.number(None)?.0),
            "bernoulli" => Source::Bernoulli { p: self.float()? },
            _ => {
                let first = self.float()?;
                self.expect(",")?;
                let second = self.float()?;
                if word == "uniform" {
                    Source::Uniform {
                        lo: first,
                        hi: second,
                    }
                } else {
                    Source::Normal {
                        mean: first,
                        std: second,
                    }
                }
            }
        };
        self.expect(")")?;
        Ok(source)
    }
}
