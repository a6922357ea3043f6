//! The choice of the loops of a kernel, with every kind that was looked at and the reason why it was not taken.
//!
//! Kinds are asked in order, special ones first; the first one that fits and is worth it is taken, and strips fit everything. A kind that fits is
//! correct, whether it is worth it or not: the verifier asks for no more. Must not know plans.
//!
//! ```text
//! [i: 2, j: 2 | k: 9] sum a0[i, k] * a1[k, j]
//! pairwise: rows and columns of products make matrices   row_reduction: its terms are computed
//! matmul: rows and columns: 2, fewer than 4              strips: taken
//! ```

use super::facts::{Facts, MOST_INDICES};
use super::reason::Reason;
use super::{
    LoopKernel, LoopKind, Matmul, RowLoops, gathered_sum, grouped, guarded, matmul, pairwise,
    patched, placed_matmul, row_product, row_reduce, segments, selection,
};

/// A kind of loops that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The name of the kind.
    pub name: &'static str,
    /// The verdict on it.
    pub verdict: Verdict,
}

/// The verdict on a kind of loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The loops are these.
    Taken(LoopKind),
    /// The kernel has this form, but others are faster.
    Unworthy(LoopKind, Reason),
    /// The kernel does not have this form.
    Unfit(Reason),
}

/// The loops of a kernel.
pub fn choose(facts: &Facts<'_>) -> LoopKernel {
    let taken = candidates(facts)
        .into_iter()
        .find_map(|candidate| match candidate.verdict {
            Verdict::Taken(kind) => Some(kind),
            _ => None,
        });
    LoopKernel {
        kind: taken.unwrap_or(LoopKind::Strips),
        fixed: facts.kernel.fixed(),
        rows: RowLoops::default(),
        fused: None,
    }
}

/// The kinds that are looked at for a kernel, the one that is taken last.
pub fn candidates(facts: &Facts<'_>) -> Vec<Candidate> {
    let mut all = vec![];
    for ask in kinds(facts) {
        let candidate = ask.candidate(facts);
        let taken = matches!(candidate.verdict, Verdict::Taken(_));
        all.push(candidate);
        if taken {
            break;
        }
    }
    all
}

/// Returns whether loops of this kind compute the kernel, worth it or not.
pub(crate) fn fits(facts: &Facts<'_>, kind: &LoopKind) -> Result<(), String> {
    let mut candidates = kinds(facts).iter().map(|ask| ask.candidate(facts));
    let Some(candidate) = candidates.find(|candidate| candidate.name == kind.name()) else {
        return Err(format!("the kernel is no {}", kind.name()));
    };
    match candidate.verdict {
        Verdict::Taken(found) | Verdict::Unworthy(found, _) if found == *kind => Ok(()),
        Verdict::Taken(LoopKind::Matmul(found)) | Verdict::Unworthy(LoopKind::Matmul(found), _) => {
            fits_tiled(facts, &found, kind)
        }
        Verdict::Taken(_) | Verdict::Unworthy(..) => {
            Err(format!("the kernel is another {}", kind.name()))
        }
        Verdict::Unfit(reason) => Err(reason.to_string()),
    }
}

/// Returns whether `kind` is the product `found` in blocks that compute it, fast or not.
fn fits_tiled(facts: &Facts<'_>, found: &Matmul, kind: &LoopKind) -> Result<(), String> {
    let LoopKind::Matmul(given) = kind else {
        return Err("the kernel is another matmul".into());
    };
    let Some(tiling) = &given.tiling else {
        let same = found.untiled() == *given;
        return same
            .then_some(())
            .ok_or("the kernel is another matmul".into());
    };
    let mut tilings = matmul::tilings_of(facts, given).into_iter();
    let known = found.untiled() == given.untiled() && tilings.any(|(_, known)| known == **tiling);
    known
        .then_some(())
        .ok_or("its blocks are none of this matmul".into())
}

/// A kind of loops to look at.
#[derive(Clone, Copy)]
enum Ask {
    Library,
    Elementwise,
    Patched,
    Gather,
    Scatter,
    Lookup,
    Scan,
    Grouped,
    Segments,
    Pairwise,
    RowReduce,
    Selection,
    RowProduct,
    GatheredSum,
    GatheredMatmul,
    ScatteredMatmul,
    Matmul,
    Strips,
}

/// The kinds that may fit a kernel, in the order in which they are asked.
fn kinds(facts: &Facts<'_>) -> &'static [Ask] {
    let kernel = facts.kernel;
    if kernel.library().is_some() {
        &[Ask::Library]
    } else if kernel.reduction.is_none() {
        match facts.gathers() {
            true if patched::patched(kernel).is_some() => &[Ask::Patched, Ask::Gather],
            true => &[Ask::Gather],
            false => &[Ask::Elementwise],
        }
    } else if kernel.indices.len() > MOST_INDICES {
        &[Ask::Strips]
    } else if selection::selection(kernel).is_some() {
        &[Ask::Selection]
    } else if placed_matmul::scattered(kernel).is_some() {
        &[Ask::ScatteredMatmul, Ask::Scatter, Ask::Strips]
    } else if segments::segments(kernel).is_some() {
        &[
            Ask::Scatter,
            Ask::Lookup,
            Ask::Scan,
            Ask::Grouped,
            Ask::Segments,
            Ask::Matmul,
            Ask::Strips,
        ]
    } else if kernel.guard.is_some() {
        &[
            Ask::Scatter,
            Ask::Lookup,
            Ask::Scan,
            Ask::Grouped,
            Ask::Matmul,
            Ask::Strips,
        ]
    } else if placed_matmul::gathered(kernel).is_some() {
        &[Ask::GatheredMatmul, Ask::Matmul, Ask::Strips]
    } else if facts.gathers() {
        &[
            Ask::Pairwise,
            Ask::RowReduce,
            Ask::RowProduct,
            Ask::GatheredSum,
            Ask::Matmul,
            Ask::Strips,
        ]
    } else {
        &[Ask::Pairwise, Ask::RowReduce, Ask::Matmul, Ask::Strips]
    }
}

impl Ask {
    fn candidate(self, facts: &Facts<'_>) -> Candidate {
        let always = |kind: LoopKind| (kind.name(), Verdict::Taken(kind));
        let (name, verdict) = match self {
            Ask::Library => always(LoopKind::Library),
            Ask::Elementwise => always(LoopKind::Elementwise),
            Ask::Patched => {
                let found = patched::patched(facts.kernel).map(|_| LoopKind::Patched);
                let reason = Reason::of("it gives no operand back but for rows that data find");
                ("patched", plain(found.ok_or(reason)))
            }
            Ask::Gather => always(LoopKind::Gather),
            Ask::Selection => always(LoopKind::Selection),
            Ask::Strips => always(LoopKind::Strips),
            Ask::Scatter => (
                "scatter",
                plain(guarded::scatter(facts).map(LoopKind::Scatter)),
            ),
            Ask::Lookup => (
                "lookup",
                plain(guarded::lookup(facts).map(LoopKind::Lookup)),
            ),
            Ask::Scan => ("scan", plain(guarded::scan(facts).map(LoopKind::Scan))),
            Ask::Grouped => (
                "grouped",
                plain(grouped::grouped(facts).map(LoopKind::Grouped)),
            ),
            Ask::Segments => (
                "segments",
                plain(segments::of_facts(facts).map(LoopKind::Segments)),
            ),
            Ask::Pairwise => (
                "pairwise",
                weighed(pairwise::pairwise(facts), LoopKind::Pairwise),
            ),
            Ask::RowReduce => {
                let found = row_reduce::row_reduce(facts);
                ("row_reduction", weighed(found, LoopKind::RowReduce))
            }
            Ask::RowProduct => {
                let found = row_product::row_product(facts);
                ("row_product", weighed(found, |()| LoopKind::RowProduct))
            }
            Ask::GatheredSum => {
                let found = gathered_sum::gathered_sum(facts);
                ("gathered_sum", weighed(found, |()| LoopKind::GatheredSum))
            }
            Ask::GatheredMatmul => {
                let places = placed_matmul::gathered(facts.kernel);
                let found = placed_matmul::of_facts(facts, places);
                let kind = |()| LoopKind::GatheredMatmul;
                ("gathered_matmul", weighed(found, kind))
            }
            Ask::ScatteredMatmul => {
                let places = placed_matmul::scattered(facts.kernel);
                let found = placed_matmul::of_facts(facts, places);
                let kind = |()| LoopKind::ScatteredMatmul;
                ("scattered_matmul", weighed(found, kind))
            }
            Ask::Matmul => ("matmul", weighed(matmul::matmul(facts), LoopKind::Matmul)),
        };
        Candidate { name, verdict }
    }
}

fn plain(found: Result<LoopKind, Reason>) -> Verdict {
    found.map_or_else(Verdict::Unfit, Verdict::Taken)
}

fn weighed<T>(
    found: Result<(T, Option<Reason>), Reason>,
    kind: impl FnOnce(T) -> LoopKind,
) -> Verdict {
    match found {
        Ok((form, None)) => Verdict::Taken(kind(form)),
        Ok((form, Some(reason))) => Verdict::Unworthy(kind(form), reason),
        Err(reason) => Verdict::Unfit(reason),
    }
}
