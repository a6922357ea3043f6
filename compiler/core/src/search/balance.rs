//! Balance: how much work the busiest site may have.
//!
//! Fewest transfers alone would do everything at one site. Each statement may exceed its even share of the work by
//! (κ - 1) times the larger of its own part and 2 % of the whole program's; so heavy statements are balanced by
//! themselves, and small ones may be repeated or done at one site. The smallest ones, together at most 2 %, are
//! free, and so are those of loops whose rounds take less time than a message does. Where no mesh can balance a
//! statement, its limit grows to the best that one can. Must not know prices.
//!
//! ```text
//! κ 1.25, 8 sites, a product with all the work: at most 1.25/8 of it, that is 7 or 8 sites take part
//! ```

use super::choice::least_load;
use super::mesh::{fewest_sites, meshes};
use super::problem::{Problem, Statement};
use super::transfer::counts;
use ein_plan::{IndexId, Mesh};
use std::collections::HashMap;

/// Two loads that differ by less than this part are the same.
const TOLERANCE: f64 = 1e-7;

/// The part of the program's work that counts for a statement that has less.
const LEAST_PART: f64 = 0.02;

/// The largest sum of the parts that count. With many statements, a light one counts for less than [`LEAST_PART`].
const ALL_PARTS: f64 = 1.1;

/// A statement below this part of the work is not held to balance.
const LIGHT_PART: f64 = 0.001;

/// The limits of a program on a number of sites.
#[derive(Clone, Debug, PartialEq)]
pub struct Balance {
    /// By tensor: the most operations that the busiest site may spend on its statement; infinite for light ones.
    pub limits: Vec<f64>,
    /// The most operations over all statements that are not light, each at its busiest site.
    pub whole: f64,
    /// The largest factor over an even share that was asked for or had to be allowed.
    pub kappa: f64,
    /// True if the limit of all small parts together has been kept to.
    pub tight: bool,
    /// The meshes that leave enough sites at work.
    pub meshes: Vec<Mesh>,
}

impl Balance {
    /// The limits for `sites` sites and a factor of at least 1. `tight`: what counts for small statements is less
    /// where there are many of them; for programs whose cheapest plan would otherwise break the limit of the whole.
    pub fn new(problem: &Problem, sites: u32, kappa: f64, tight: bool) -> Balance {
        let kappa = kappa.max(1.0);
        let light = light(problem);
        let even = problem.total / f64::from(sites);
        let all_parts = least_part(problem, &light);
        let least_part = if tight { all_parts } else { LEAST_PART };
        let mut limits = vec![f64::INFINITY; problem.tensors.len()];
        let mut used = kappa;
        let mut whole = 0.0;
        let mut known: HashMap<Cuttable, f64> = HashMap::new();
        for (at, statement) in problem.statements().filter(|(at, _)| !light[*at]) {
            let own = statement.work() / f64::from(sites);
            let part = (own / even).max(least_part);
            let best = known
                .entry(cuttable(statement))
                .or_insert_with(|| best_part(statement, sites));
            let best = *best * statement.work();
            let limit = own + (kappa - 1.0) * even * part;
            let allowed = limit.max(best);
            if best > limit {
                used = used.max(best / own);
            }
            limits[at] = allowed * (1.0 + TOLERANCE);
            whole += (own * kappa).max(best);
        }
        let balance = Balance {
            limits,
            whole: whole * (1.0 + TOLERANCE),
            kappa: used,
            tight: tight || all_parts >= LEAST_PART,
            meshes: meshes(sites, fewest_sites(sites, used)),
        };
        balance.grown(problem, sites)
    }

    /// Returns whether a mesh can run every statement within its limit; if not, one for which it cannot.
    pub fn blocked(&self, problem: &Problem, mesh: &Mesh) -> Option<usize> {
        let mut known: HashMap<Cuttable, f64> = HashMap::new();
        let mut heavy = problem
            .statements()
            .filter(|(at, _)| self.limits[*at].is_finite());
        let found = heavy.find(|(at, statement)| {
            let least = known
                .entry(cuttable(statement))
                .or_insert_with(|| least_load(statement, counts(mesh)) / statement.work());
            *least * statement.work() > self.limits[*at]
        });
        found.map(|(at, _)| at)
    }

    /// Limits that at least one mesh keeps for all statements together.
    fn grown(mut self, problem: &Problem, sites: u32) -> Balance {
        while self
            .meshes
            .iter()
            .all(|mesh| self.blocked(problem, mesh).is_some())
        {
            const STEP: f64 = 1.25;
            self.limits.iter_mut().for_each(|limit| *limit *= STEP);
            self.whole *= STEP;
            self.kappa *= STEP;
            self.meshes = meshes(sites, fewest_sites(sites, self.kappa));
        }
        self
    }
}

/// The extents of a statement's indices, and which of them deal out no work or whole points: its least part of a mesh follows from them.
type Cuttable<'a> = (&'a [u64], &'a [IndexId], &'a [IndexId]);

fn cuttable(statement: &Statement) -> Cuttable<'_> {
    (&statement.extents, &statement.fixed, &statement.solved)
}

/// The part that counts for a statement that has less: at most [`LEAST_PART`], and such that all that count come to at
/// most [`ALL_PARTS`].
fn least_part(problem: &Problem, light: &[bool]) -> f64 {
    let heavy = problem.statements().filter(|(at, _)| !light[*at]);
    let mut parts: Vec<f64> = heavy.map(|(_, s)| s.work() / problem.total).collect();
    parts.sort_by(f64::total_cmp);
    let mut above: f64 = parts.iter().sum();
    let mut below = 0.0;
    for part in parts {
        // With `below` statements raised to this part, and it too.
        if part >= LEAST_PART || (below + 1.0) * part + above - part > ALL_PARTS {
            break;
        }
        above -= part;
        below += 1.0;
    }
    if below == 0.0 {
        return LEAST_PART;
    }
    ((ALL_PARTS - above) / below).clamp(0.0, LEAST_PART)
}

/// The least part of a statement's work that any mesh of at most `sites` sites leaves its busiest site.
fn best_part(statement: &Statement, sites: u32) -> f64 {
    // More sites are never worse by much: the meshes of few sites matter only where nothing can be cut so often.
    let mut best = f64::INFINITY;
    for mesh in meshes(sites, 1) {
        if best <= 1.0 / f64::from(mesh.sites()) {
            break;
        }
        best = best.min(least_load(statement, counts(&mesh)) / statement.work());
    }
    best
}

/// By tensor, whether its statement is light: the smallest ones, each below [`LIGHT_PART`] and together at most
/// [`LEAST_PART`] of the work, and those that are too small to be shared out.
fn light(problem: &Problem) -> Vec<bool> {
    let mut light = vec![false; problem.tensors.len()];
    for (at, statement) in problem.statements() {
        light[at] = statement.small;
    }
    let mut by_work: Vec<(usize, f64)> = problem
        .statements()
        .filter(|(at, _)| !light[*at])
        .map(|(at, statement)| (at, statement.work()))
        .collect();
    by_work.sort_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
    let mut sum = 0.0;
    for (at, work) in by_work {
        sum += work;
        light[at] =
            work == 0.0 || (work < LIGHT_PART * problem.total && sum <= LEAST_PART * problem.total);
    }
    light
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::einsum::parse::parse;

    fn balance(text: &str, sites: u32, kappa: f64) -> (Problem, Balance) {
        let problem = Problem::new(&parse(text).unwrap());
        let balance = Balance::new(&problem, sites, kappa, false);
        (problem, balance)
    }

    #[test]
    fn four_of_five_sites_are_admissible_and_three_are_not() {
        let text = "input A: f32[100, 100] = unbound\nB: f32[100] = [i: 100 | k: 100] sum A[i, k]\n\
            c: f32[] = [| i: 5] sum B[i]\noutput c";
        let (problem, balance) = balance(text, 5, 1.25);
        assert_eq!(balance.kappa, 1.25);
        assert!(balance.limits[2].is_infinite());
        for (axes, blocked) in [(vec![5], None), (vec![2, 2], None), (vec![3], Some(1))] {
            assert_eq!(balance.blocked(&problem, &Mesh { axes }), blocked);
        }
    }

    #[test]
    fn what_cannot_be_cut_so_often_raises_the_factor() {
        let text = "input A: f32[3] = unbound\nB: f32[3] = [i: 3] exp(A[i])\noutput B";
        let (problem, balance) = balance(text, 8, 1.25);
        assert!((balance.kappa - 8.0 / 3.0).abs() < 1e-9);
        let fit: Vec<String> = balance
            .meshes
            .iter()
            .filter(|mesh| balance.blocked(&problem, mesh).is_none())
            .map(Mesh::to_string)
            .collect();
        // On 2x3 each piece is computed twice.
        assert_eq!(fit, ["2x3", "3"]);
    }
}
