//! Rewrites of *what* a program computes: an e-graph over Einstein statements, and the best programs found in it.
//!
//! Every rule is a row ([`all`]) with a name that can be disabled, its two sides and its conditions; one family a
//! file. Statements become n-ary terms over closed tensors ([`term`]), so that transposition, commutativity and
//! associativity need no rules. Must not know sites, placements or costs of moving data.
//!
//! ```text
//! C: f32[9, 1] = [i: 9, j: 1 | k: 9, l: 9] sum A[i, k] * B[k, l] * x[l, j]
//!   contraction-order   C.1 = sum B[k, l] * x[l, j];  C = sum A[i, k] * C.1[k, j]
//! ```

mod assemble;
mod bound;
mod cheapest;
pub mod conditions;
pub mod constant;
pub mod contraction;
mod describe;
pub mod distribute;
mod emit;
mod extract;
pub(crate) mod gathered;
pub mod graph;
pub mod ia;
mod kernel;
pub mod laws;
pub mod lookup;
pub mod matrix_blocks;
mod memory_order;
pub mod order;
pub mod panels;
mod places;
pub mod price;
pub mod reduction;
pub mod reindex;
pub mod running;
mod saturate;
pub(crate) mod short_window;
mod steps;
pub mod term;
pub mod topk_parts;
mod translate;
pub mod wrapped;

pub(crate) use kernel::{
    element, elementwise, factors, free_index, indices_of, may_fault, may_fault_by, may_fault_in,
    neutral, over, permute_operands, permute_output, renamed, restrict_to, summed, times, values,
    values_of_bits, values_passed_over, with_value, zero,
};

pub(crate) use memory_order::in_memory_order;

use crate::einsum::{self, Rewriting};
use std::collections::{BTreeMap, HashSet};
use std::fmt;

/// A rule as it is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleInfo {
    /// The name of the rule, with which it is disabled.
    pub name: &'static str,
    /// The file that it stands in.
    pub family: &'static str,
    /// Paper and section, or "classical".
    pub paper: &'static str,
    /// The pattern that it matches.
    pub left: &'static str,
    /// The pattern that it derives, which equals the left one.
    pub right: &'static str,
    /// The conditions that must hold.
    pub conditions: &'static [&'static str],
    /// A remark, for instance where a paper's form is wrong as printed.
    pub note: &'static str,
}

/// All rules, family by family: what is computed, then what moves.
pub fn all() -> Vec<RuleInfo> {
    let blocks = matrix_blocks::rows();
    let reads = lookup::rows().into_iter().chain(wrapped::rows());
    let reads = reads
        .chain(running::rows())
        .chain(panels::rows())
        .chain(topk_parts::rows());
    let moved = reads.chain(ia::all());
    logic().into_iter().chain(blocks).chain(moved).collect()
}

/// The rules of what is computed.
pub fn logic() -> Vec<RuleInfo> {
    rows().into_iter().map(|row| row.info).collect()
}

/// All rows with what they do.
fn rows() -> Vec<saturate::Row> {
    let mut rows = vec![];
    rows.extend(reindex::rows());
    rows.extend(contraction::rows());
    rows.extend(distribute::rows());
    rows.extend(reduction::rows());
    rows.extend(constant::rows());
    rows
}

/// How far to look.
pub struct LogicOptions<'a> {
    /// Names of rules that are not used. Unknown names change nothing.
    pub disabled: &'a [String],
    /// Most terms of the e-graph; 0 lets no rule fire.
    pub node_limit: usize,
    /// Most programs to give back; at least the best and the original are given.
    pub candidates: usize,
    /// True if time is up: asked between steps, never inside one.
    pub deadline: &'a dyn Fn() -> bool,
}

impl fmt::Debug for LogicOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogicOptions")
            .field("disabled", &self.disabled)
            .field("node_limit", &self.node_limit)
            .field("candidates", &self.candidates)
            .finish_non_exhaustive()
    }
}

/// A rule at work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleUse {
    /// The rule.
    pub rule: &'static str,
    /// The tensor that it was used for.
    pub tensor: String,
    /// The text before the step.
    pub before: String,
    /// The text after the step.
    pub after: String,
}

/// A program that gives the same outputs.
#[derive(Clone, Debug)]
pub struct Alternative {
    /// The program.
    pub program: einsum::Program,
    /// How it came about, in order; empty for the original.
    pub rules: Vec<RuleUse>,
    /// The figure that it is ranked by ([`price::ComputeCost::score`]): weighted operations and bytes touched.
    pub work: f64,
    /// Floating-point operations.
    pub flops: f64,
}

impl Alternative {
    /// The program in which a rule has written tensors in another way, if it is not among the disabled ones and applies anywhere.
    /// `rewrite` is given a tensor of the old program and returns the new one.
    fn by_rule(
        program: &einsum::Program,
        (rule, disabled): (&'static str, &[String]),
        mut rewrite: impl FnMut(&mut Rewriting, &einsum::Tensor) -> Option<einsum::Tensor>,
    ) -> Option<Alternative> {
        if disabled.iter().any(|name| name == rule) {
            return None;
        }
        let mut rewriting = Rewriting::of(program);
        let mut rules = vec![];
        for (at, old) in (0..).map(einsum::TensorId).zip(&program.tensors) {
            let Some(tensor) = rewrite(&mut rewriting, old) else {
                let same = rewriting.copy(old);
                rewriting.place(at, same);
                continue;
            };
            let id = rewriting.place(at, tensor);
            let result = rewriting.result();
            rules.push(RuleUse {
                rule,
                tensor: old.name.clone(),
                before: program.tensor_text(old),
                after: result.tensor_text(result.tensor(id)),
            });
        }
        if rules.is_empty() {
            return None;
        }
        let program = rewriting.finish().arranged()?.canonical();
        Some(Alternative::new(program, rules))
    }

    /// A program with its price, and the rules that lead to it.
    fn new(program: einsum::Program, rules: Vec<RuleUse>) -> Alternative {
        let price = price::program(&program);
        Alternative {
            work: price.score(),
            flops: price.flops,
            program,
            rules,
        }
    }
}

/// The program with the reads of some tables written in another way, where there are such reads and the rule is not among the disabled ones.
pub type Expand =
    fn(&einsum::Program, &[String], &dyn Fn(einsum::TensorId) -> bool) -> Option<Alternative>;

/// Why no more rules were used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nothing new can be found.
    Saturated,
    /// The e-graph is as large as it may be.
    NodeLimit,
    /// The rules went round as often as they may.
    IterationLimit,
    /// Time is up.
    Deadline,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stop::Saturated => "saturated",
            Stop::NodeLimit => "the node limit was reached",
            Stop::IterationLimit => "the iteration limit was reached",
            Stop::Deadline => "time was up",
        })
    }
}

/// How much was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explored {
    /// Terms of the e-graph.
    pub nodes: usize,
    /// Classes of equal tensors.
    pub classes: usize,
    /// Rounds of all rules.
    pub iterations: usize,
    /// Why it ended.
    pub stop: Stop,
    /// How many equalities each rule found, whether or not a program uses them.
    pub fired: BTreeMap<&'static str, usize>,
}

/// The equal programs that the rules found.
#[derive(Clone, Debug)]
pub struct Logic {
    /// Programs, the best first; the original always among them.
    pub alternatives: Vec<Alternative>,
    /// How much was looked at.
    pub explored: Explored,
}

impl Logic {
    /// The program alone.
    fn original(program: &einsum::Program) -> Logic {
        let price = price::program(program);
        Logic {
            alternatives: vec![Alternative {
                program: program.clone(),
                rules: vec![],
                work: price.score(),
                flops: price.flops,
            }],
            explored: Explored {
                nodes: 0,
                classes: 0,
                iterations: 0,
                stop: Stop::Saturated,
                fired: BTreeMap::new(),
            },
        }
    }
}

/// Programs equal to this one, ranked. The original is first unless another has less work, and fewer operations or
/// fewer bytes touched. The program is one that [`einsum::verify`] accepts.
pub fn rewrite(program: &einsum::Program, options: &LogicOptions<'_>) -> Logic {
    if !program.blocks.is_empty() {
        return places::rewrite(program, options);
    }
    let disabled: HashSet<&str> = options.disabled.iter().map(String::as_str).collect();
    let rows: Vec<saturate::Row> = rows()
        .into_iter()
        .filter(|row| !disabled.contains(row.info.name))
        .collect();
    let mut translated = translate::translate(program, &|name| {
        options.node_limit > 0 && !disabled.contains(name)
    });
    let mut explored = saturate::saturate(&mut translated.graph, &rows, options);
    for rule in translated.shared.iter().flatten() {
        *explored.fired.entry(rule).or_default() += 1;
    }
    let alternatives = extract::alternatives(program, &translated, options);
    Logic {
        alternatives,
        explored,
    }
}
