//! A plan as data for people: `einc plan` prints it as text, JSON, a graph or a page, and compares two of
//! them. The JSON form is documented in compiler/PLAN.md and versioned by [`SCHEMA`].
//!
//! Must not know how it is printed, nor how a plan is chosen.
//!
//! ```text
//! { "schema": "einc-plan/1", "sites": 5, "objective": "transfer", "cost": { "transfer": 81000000, … }, "steps": [ … ] }
//! ```

use crate::lists::FormChoice;
use crate::rules::RuleUse;
use ein_plan::Resting;
use serde::{Deserialize, Serialize};

/// The name and version of the JSON form. The number changes when a field changes its meaning or goes away.
pub const SCHEMA: &str = "einc-plan/1";

/// A plan in words and numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanReport {
    /// [`SCHEMA`].
    pub schema: String,
    /// The program's first file.
    pub program: String,
    /// Number of sites planned for.
    pub sites: u32,
    /// Sites along each axis of the mesh that is used; their product may be less than `sites`.
    pub mesh: Vec<u32>,
    /// By axis of the mesh: how many of its coordinates are in one node, if the machine has nodes and the mesh lies over several.
    #[serde(default)]
    pub mesh_inside: Option<Vec<u32>>,
    /// The quantity that was minimised: `transfer`, `bytes` or `time`.
    pub objective: String,
    /// True if results do not depend on the number of sites in any bit.
    pub deterministic: bool,
    /// How many times its even share of the arithmetic a site may do.
    pub balance: f64,
    /// Bytes that a site may hold, if there is a limit.
    pub memory_limit: Option<u64>,
    /// Where values rest between two uses, if any does: `disk` or `host memory`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resting: Option<Resting>,
    /// The cost of the whole plan.
    pub cost: PlanCost,
    /// True if no plan of the searched space is cheaper.
    pub proved_optimal: bool,
    /// How much cheaper, in the objective's unit, a plan could be at most; 0 if proved optimal.
    pub gap: f64,
    /// The space that was searched.
    pub search: Searched,
    /// The forms of inputs whose data list elements.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forms: Vec<FormChoice>,
    /// The steps that every site walks, in order.
    pub steps: Vec<PlanStep>,
    /// The loops, in the order in which they begin.
    #[serde(default)]
    pub loops: Vec<PlanLoop>,
    /// If sites make steps by themselves: what they exchange. The plan is then that of a step of one site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds: Option<PlanRounds>,
    /// The outputs of the program.
    pub outputs: Vec<PlanOutput>,
    /// Other plans, cheapest first (`--compare`).
    pub alternatives: Vec<Alternative>,
    /// Every rewrite between the program as written and this plan (`--explain-rewrites`).
    pub rewrites: Vec<Rewrite>,
    /// The plan's own text with the loops of each step ([`ein_plan::print::WithLoops`]); left out of the written report.
    #[serde(skip)]
    pub kernels: String,
}

/// Rounds of steps that sites make by themselves, and what they fetch between them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanRounds {
    /// Number of sites.
    pub sites: u32,
    /// Into how many parts the neurons are dealt; 1: every site has the whole net.
    pub parts: u32,
    /// Steps of a round.
    pub local_steps: u64,
    /// The tensors that are exchanged, params first.
    pub tensors: Vec<PlanExchanged>,
}

/// A tensor that is exchanged between rounds. Floats are those of all sites together, fetched, per gradient step: a step in which every site
/// has a batch of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanExchanged {
    /// Its name.
    pub name: String,
    /// Extents.
    pub shape: Vec<u64>,
    /// The dimensions that count neurons.
    pub neurons: Vec<usize>,
    /// Floats where all sites have all params and fetch them in every step.
    pub data_parallel: f64,
    /// Floats where they fetch them in every round.
    pub local_sgd: f64,
    /// Floats of the blocks that sites begin rounds with.
    pub fetched: f64,
    /// Floats that are expected to change site for it: a site has some of its next block already, means are taken in two phases,
    /// weights between two layers of neurons go home and back.
    pub sent: f64,
    /// Flops of the products with it, forward and backward, of the site with the largest block.
    pub flops: u64,
}

/// The cost of a plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanCost {
    /// Floats transferred, as the thesis counts them (section 3.3.3).
    pub transfer: u64,
    /// Bytes that change site, over all sites.
    pub bytes: u64,
    /// Bytes that the site receives that receives most.
    pub bytes_per_site_max: u64,
    /// Floating-point operations of the busiest site.
    pub flops_per_site_max: u64,
    /// Bytes that the site holds at one time that holds most.
    pub peak_memory_per_site_max: u64,
    /// The step at which it holds them.
    pub peak_step: usize,
    /// How often sites meet to move something; movements that go together meet once.
    #[serde(default)]
    pub meetings: u64,
    /// Bytes that the site that has most writes to disk, of what rests there between two uses.
    #[serde(default)]
    pub spill_written: u64,
    /// Bytes that it reads again.
    #[serde(default)]
    pub spill_read: u64,
    /// Bytes that rest at one time at the site where most do.
    #[serde(default)]
    pub rests_per_site_max: u64,
    /// Seconds by the machine's figures, if the plan was chosen by time.
    #[serde(default)]
    pub seconds: Option<f64>,
}

/// The space that was searched, and the parts that were not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// Meshes whose best plan was found, with its cost in the objective's unit.
    pub meshes: Vec<(String, f64)>,
    /// The parts that were left out, each with the reason.
    pub not_explored: Vec<String>,
    /// Programs that say the same that were planned.
    pub programs: usize,
    /// Size of the e-graph of rewrites of the program: nodes, classes.
    pub logic_nodes: usize,
    /// See `logic_nodes`.
    pub logic_classes: usize,
    /// True if the plan was proved equal to the table 3.1 translation of the program; `None`: not attempted.
    pub proved_equal: Option<bool>,
}

/// One step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanStep {
    /// Its number; inputs name earlier ones.
    pub step: usize,
    /// Name of the relation that it makes.
    pub name: String,
    /// The user's tensor that it is or belongs to.
    pub tensor: String,
    /// `source`, `broadcast`, `shuffle`, `local join`, …
    pub operator: String,
    /// The whole operation in one line.
    pub text: String,
    /// The steps that it reads.
    pub inputs: Vec<usize>,
    /// Keys, array and placement.
    #[serde(rename = "type")]
    pub kind: String,
    /// Number of pieces along each key dimension.
    pub frontier: Vec<u32>,
    /// Which sites hold which tuples.
    pub placement: String,
    /// The rules that led to it.
    pub rules: Vec<String>,
    /// Floats transferred, as the thesis counts them.
    pub transfer: u64,
    /// Elements that change site, over all sites.
    pub floats: u64,
    /// The bytes of these floats.
    pub bytes: u64,
    /// Floating-point operations of the step's busiest site.
    pub flops: u64,
    /// Bytes of the result at the site that holds most of it.
    pub memory: u64,
    /// The steps that it is taken together with, itself included, block of rows by block of rows; empty for a step by itself.
    #[serde(default)]
    pub sweep: Vec<usize>,
    /// True if its result passes: read in its sweep only, and never held whole.
    #[serde(default)]
    pub passes: bool,
    /// True if its result rests and is made and read tuple by tuple.
    #[serde(default)]
    pub streamed: bool,
    /// The movements that it goes together with, itself included, in one message for each pair of sites; empty for others.
    #[serde(default)]
    pub together: Vec<usize>,
    /// The last of the steps beside which it is on its way, if there are any.
    #[serde(default)]
    pub beside: Option<usize>,
    /// The steps whose results go to disk in front of it.
    #[serde(default)]
    pub spills: Vec<usize>,
    /// The steps whose results are back from disk in front of it.
    #[serde(default)]
    pub restores: Vec<usize>,
    /// The line of the program that asks for it.
    pub source: SourceLine,
    /// Why something moves; empty for local steps.
    pub because: String,
    /// In a few words, who reads a tensor that moves whole at positions that are no index alone; empty where it moves for another reason.
    #[serde(default)]
    pub looked_up: String,
    /// How many times it is expected to be walked: the rounds of the loops around it. The other figures are of one time.
    #[serde(default = "once")]
    pub times: u64,
}

fn once() -> u64 {
    1
}

/// A loop.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanLoop {
    /// Full name of its counter.
    pub name: String,
    /// The number of the loop around it.
    pub parent: Option<usize>,
    /// The first step of its body.
    pub first: usize,
    /// The step behind its body.
    pub end: usize,
    /// The most rounds, and what ends it: `k < 100 until small`.
    pub text: String,
    /// How many rounds it is expected to make each time: its bound, unless that is not known or something may end it
    /// before.
    pub rounds: u64,
    /// Floats transferred in one round, as the thesis counts them; expected rounds of loops in it included.
    pub transfer_per_round: u64,
    /// The transfer in all, with the rounds of the loops around it.
    pub transfer: u64,
    /// The states, which go from round to round.
    #[serde(default)]
    pub states: Vec<PlanState>,
}

/// A value that goes from one round of a loop to the next, by the numbers of steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanState {
    /// The step whose result the first round begins with.
    pub initial: usize,
    /// The step whose result a round ends with.
    pub next: usize,
    /// The steps that a round begins with, and those that are had behind the loop, where they are asked for.
    pub values: Vec<usize>,
}

impl PlanReport {
    /// By step: the innermost loop that it is in.
    pub fn loops_of_steps(&self) -> Vec<Option<usize>> {
        let mut loops = vec![None; self.steps.len()];
        // Inner loops stand behind those around them.
        for (number, of) in self.loops.iter().enumerate() {
            let end = of.end.min(loops.len());
            if let Some(body) = loops.get_mut(of.first..end) {
                body.fill(Some(number));
            }
        }
        loops
    }
}

impl PlanStep {
    /// Returns whether tuples go to other sites.
    pub fn moves(&self) -> bool {
        matches!(self.operator.as_str(), "broadcast" | "shuffle" | "window")
    }
}

/// A line of the program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SourceLine {
    /// The file as it was named.
    pub file: String,
    /// From 1; 0 if there is none.
    pub line: u32,
    /// The line's own text, where it is at hand.
    pub text: String,
}

impl SourceLine {
    /// `model.ein:7`, or nothing if the place is unknown.
    pub fn label(&self) -> String {
        match self.line {
            0 => String::new(),
            line => format!("{}:{line}", self.file),
        }
    }
}

/// An output.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PlanOutput {
    /// Its name.
    pub name: String,
    /// The step that makes it.
    pub step: usize,
    /// The file that it is written to.
    pub file: Option<String>,
    /// Of an assertion: what is said where it does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asserts: Option<String>,
}

/// A plan that was not chosen, or the chosen one among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alternative {
    /// `chosen`, `data parallel`, `BMM`, `mesh 2x2`, …
    pub name: String,
    /// Floats transferred.
    pub transfer: f64,
    /// Words that the site receives that receives most.
    pub words_per_site_max: f64,
    /// Floating-point operations of the busiest site.
    pub flops_per_site_max: f64,
    /// Why it was not chosen; empty for the chosen one.
    pub lost: String,
}

/// One rewrite.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rewrite {
    /// The rule's name.
    pub rule: String,
    /// The tensor that it was applied to.
    pub tensor: String,
    /// The text before the step.
    pub before: String,
    /// The text after the step.
    pub after: String,
}

impl From<&RuleUse> for Rewrite {
    fn from(applied: &RuleUse) -> Rewrite {
        Rewrite {
            rule: applied.rule.into(),
            tensor: applied.tensor.clone(),
            before: applied.before.clone(),
            after: applied.after.clone(),
        }
    }
}
