//! The whole compiler behind sema, top to bottom: einsum → TRA → IA → plan.
//!
//! Every pass's output is verified, always; what does not verify is an internal error, reported like any other
//! diagnostic. Must not know files, terminals or the command line.
//!
//! ```text
//! share → layout → TRA → IA → plan → cost
//! ```

mod explain;

use crate::cost::{self, Cost, Machine};
use crate::{einsum, ia, lower, search, tra};
use ein_plan::Plan;
use ein_plan::verify::MOST_SITES;
use einc_diag::Diagnostic;

pub use explain::explain;

/// What is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Number of sites, from 1.
    pub sites: u32,
    /// Whether results must not depend on the number of sites, bit for bit.
    pub deterministic: bool,
}

/// A compiled program, with what the passes gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Compiled {
    /// The program as tensor relations.
    pub tra: tra::Program,
    /// The same on sites.
    pub ia: ia::Program,
    /// What every site walks.
    pub plan: Plan,
    /// What it costs; `cost.steps[s]` is of `plan.steps[s]`.
    pub cost: Cost,
}

/// Compiles a program. An error is an internal one (E0999), or says that the program cannot be planned for so
/// many sites (E0998).
pub fn compile(program: &einsum::Program, options: &Options) -> Result<Compiled, Vec<Diagnostic>> {
    if options.sites == 0 || options.sites > MOST_SITES {
        return Err(vec![Diagnostic::error(
            "E0998",
            format!(
                "a plan is for 1 to {MOST_SITES} sites, not for {}",
                options.sites
            ),
        )]);
    }
    passes(program, options).map_err(|what| {
        vec![
            Diagnostic::error("E0999", format!("internal error: {what}")).help(
                "this is a defect of einc, not of the program; please report it with the program",
            ),
        ]
    })
}

fn passes(program: &einsum::Program, options: &Options) -> Result<Compiled, String> {
    let shared = search::share::share(program);
    einsum::verify::verify(&shared.program).map_err(|what| format!("einsum: {what}"))?;
    let layout = search::greedy::layout(&shared.program, options.sites, options.deterministic);

    let chunking = ia::from_layout::chunking(&shared.program, &layout, options.deterministic)?;
    let mut lowered = tra::from_einsum::lower(&shared.program, &chunking)?;
    for (output, name) in lowered.program.outputs.iter_mut().zip(shared.output_names) {
        output.name = name;
    }
    tra::verify::verify(&lowered.program).map_err(|what| format!("TRA: {what}"))?;

    let places = ia::from_layout::places(&shared.program, &layout, &lowered);
    let ia = ia::from_tra::placed(&lowered.program, options.sites, &places)?;
    let tra = lowered.program;
    ia::verify::verify(&ia).map_err(|what| format!("IA: {what}"))?;

    let plan = lower::lower(&ia, options.deterministic)?;
    ein_plan::verify::verify(&plan).map_err(|what| format!("plan: {what}"))?;

    let machine = Machine {
        sites: options.sites,
    };
    let cost = cost::of(&ia, &plan, &machine);
    Ok(Compiled {
        tra,
        ia,
        plan,
        cost,
    })
}
