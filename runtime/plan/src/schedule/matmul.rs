//! Sums of products as matrix products: the two factors of the body, and what each index is to them.
//!
//! Indices of both factors that are not summed are looped over, those of one are rows or columns, the summed ones are of both. Must not know how
//! factors are multiplied.
//!
//! ```text
//! [b, h, t, s | d]  a0[b, h, t, d] * a1[b, h, s, d] / sqrt(c)   b, h: batch   t: rows   s: columns   d: inner
//! ```

use super::bounded::{Bounded, bounded};
use super::factors::{Factors, factors};
use super::facts::Facts;
use super::reason::Reason;
use super::tiling::Tiling;
use super::tiling::layout::{FactorHandling, FactorLayout};
use super::tiling::search::{Roles, Sizes};
use super::{LoopKernel, LoopKind};
use crate::{DType, IndexId, Kernel, Node, NodeId, Reduction};
use serde::{Deserialize, Serialize};

/// Fewest rows or columns, whichever are more: products of vectors, and few of them, are left to the strips.
pub const LEAST_SIDE: usize = 4;
/// Fewest multiplications.
pub const LEAST_WORK: usize = 4096;
/// Fewest rows and columns of a product with a guard, or with a matrix that is computed: a matrix that is read once is better masked, and
/// computed, as it is read.
pub const LEAST_MASKED_SIDE: usize = 2;
/// Most windows that are read where they are, one after the other, in place of a product of their copies with a vector.
pub const FEW_WINDOWS: usize = 32;
/// Fewest multiplications of a product with a guard, which is evaluated by a program of its own.
pub const LEAST_MASKED_WORK: usize = 1 << 16;

/// A kernel in this form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Matmul {
    /// True if the left factor is the second one that [`factors`] finds.
    pub turned: bool,
    /// Output indices of both factors.
    pub batch: Vec<IndexId>,
    /// Output indices of the left factor.
    pub rows: Vec<IndexId>,
    /// Output indices of the right factor.
    pub columns: Vec<IndexId>,
    /// Reduced indices, which both factors have.
    pub inner: Vec<IndexId>,
    /// The index that the guard bounds, if blocks of rows or columns need not look at all of it.
    pub bounded: Option<Bounded>,
    /// How the product is cut into blocks; `None` where that depends on the block of rows of a sweep, or of those that bound an index: the same
    /// search chooses it there.
    pub tiling: Option<Box<Tiling>>,
}

impl Matmul {
    /// The indices of more than one value, by their roles.
    pub fn roles(&self, lengths: &[usize]) -> Roles {
        let several = |list: &[IndexId]| {
            let indices = list.iter().map(|index| index.0 as usize);
            indices.filter(|i| lengths[*i] > 1).collect()
        };
        Roles {
            batch: several(&self.batch),
            rows: several(&self.rows),
            columns: several(&self.columns),
            inner: several(&self.inner),
        }
    }

    /// The product without blocks of its own.
    #[must_use]
    pub(super) fn untiled(&self) -> Matmul {
        Matmul {
            tiling: None,
            ..self.clone()
        }
    }

    /// The form over other lengths, where indices of one value have no role.
    #[must_use]
    pub fn of_several(&self, lengths: &[usize]) -> Matmul {
        let several = |list: &[IndexId]| -> Vec<IndexId> {
            let indices = list.iter().copied();
            indices.filter(|i| lengths[i.0 as usize] > 1).collect()
        };
        let [batch, rows, columns, inner] =
            [&self.batch, &self.rows, &self.columns, &self.inner].map(|list| several(list));
        // The columns have the output's last index; without either, the left factor is the first one.
        let turns = match (rows.last(), columns.last()) {
            (None, None) => self.turned,
            (row, column) => row > column,
        };
        let (rows, columns) = match turns {
            true => (columns, rows),
            false => (rows, columns),
        };
        Matmul {
            turned: self.turned != turns,
            batch,
            rows,
            columns,
            inner,
            bounded: None,
            tiling: None,
        }
    }
}

impl Factors {
    /// The role of each index of more than one value; `None` if a product of matrices would repeat work: an output index that neither factor has, or
    /// a summed one of one factor only.
    pub fn roles(&self, lengths: &[usize], rank: usize) -> Option<Matmul> {
        // The columns have the output's last index, so that both orders of writing a product are the same one.
        let output = 1u128.checked_shl(rank as u32).unwrap_or(0).wrapping_sub(1);
        let free = |(_, mask): (NodeId, u128), (_, other): (NodeId, u128)| {
            let own = mask & !other & output;
            (0..rank).rfind(|i| own >> i & 1 == 1 && lengths[*i] > 1)
        };
        let turned = free(self.left, self.right) > free(self.right, self.left);
        let (left, right) = match turned {
            true => (self.right, self.left),
            false => (self.left, self.right),
        };
        let mut roles = Matmul {
            turned,
            batch: vec![],
            rows: vec![],
            columns: vec![],
            inner: vec![],
            bounded: None,
            tiling: None,
        };
        for i in (0..lengths.len()).filter(|i| lengths[*i] > 1) {
            let has = |mask: u128| mask >> i & 1 == 1;
            let list = match (i < rank, has(left.1), has(right.1)) {
                (true, true, true) => &mut roles.batch,
                (true, true, false) => &mut roles.rows,
                (true, false, true) => &mut roles.columns,
                (false, true, true) => &mut roles.inner,
                _ => return None,
            };
            list.push(IndexId(i as u32));
        }
        Some(roles)
    }
}

/// Returns whether the loops of a kernel with a guard, over the whole of every index, are products of matrices.
pub fn is_masked_product(kernel: &Kernel) -> bool {
    kernel.reduction == Some(Reduction::Sum)
        && kernel.guard.is_some()
        && factors(kernel, false).is_some()
        && matches!(LoopKernel::of_whole(kernel).kind, LoopKind::Matmul(_))
}

/// The tilings of a kernel that is a product of matrices in this form, each with the nanoseconds that it takes one core, the cheapest one first.
pub(crate) fn tilings_of(facts: &Facts<'_>, form: &Matmul) -> Vec<(f64, Tiling)> {
    let factors = factors(facts.kernel, false);
    factors.map_or(vec![], |factors| tilings(facts, &factors, form))
}

/// The ways in which the blocks of a product that is tiled were looked at, the cheapest of each: the time that it takes one core.
pub(crate) fn blocks_looked_at(facts: &Facts<'_>, form: &Matmul) -> Vec<String> {
    let tilings = match form.tiling {
        Some(_) => tilings_of(facts, form),
        None => vec![],
    };
    let ways = [(false, "lie in the result"), (true, "are copied to it")];
    let text = ways.iter().filter_map(|(scattered, way)| {
        let (cost, _) = tilings.iter().find(|(_, t)| t.scattered == *scattered)?;
        Some(format!(
            "blocks that {way}: about {:.0} µs of one core",
            cost / 1e3
        ))
    });
    text.collect()
}

/// Returns the role of each index of a kernel, and why matrix products are not worth it, if they are not.
pub(super) fn matmul(facts: &Facts<'_>) -> Result<(Matmul, Option<Reason>), Reason> {
    let kernel = facts.kernel;
    if kernel.reduction != Some(Reduction::Sum) {
        return Err(Reason::of("it is no sum"));
    }
    if !kernel.fixed().is_empty() {
        return Err(Reason::of("the guard leaves one value of a reduced index"));
    }
    if !matches!(facts.value(), DType::F32 | DType::F64) {
        return Err(Reason::of("its terms are no floats"));
    }
    if facts.is_empty() {
        return Err(Reason::of("there is no point"));
    }
    if !kernel.is_product() {
        return Err(Reason::of("its terms are no product of two factors"));
    }
    let factors = factors(kernel, false);
    let factors = factors.ok_or(Reason::of(match kernel.guard {
        None => "its terms are no product of two factors",
        Some(_) => {
            "its terms are no product of a factor that is read and one that has the guard's indices"
        }
    }))?;
    let roles = factors.roles(&facts.lengths, facts.rank());
    let mut roles = roles.ok_or(Reason::of("a matrix product would repeat work"))?;
    let count = |list: &[IndexId]| {
        let lengths = list.iter().map(|i| facts.lengths[i.0 as usize]);
        lengths.fold(1, usize::saturating_mul)
    };
    let (m, n, k) = (
        count(&roles.rows),
        count(&roles.columns),
        count(&roles.inner),
    );
    let work = m.saturating_mul(n).saturating_mul(k);
    let least = match kernel.guard {
        None => LEAST_WORK,
        Some(_) => LEAST_MASKED_WORK,
    };
    let mut unworthy = if m.max(n) < LEAST_SIDE {
        Some(Reason::few("rows and columns", m.max(n), LEAST_SIDE))
    } else if kernel.guard.is_some() && m.min(n) < LEAST_MASKED_SIDE {
        Some(Reason::few("rows or columns", m.min(n), LEAST_MASKED_SIDE))
    } else if work < least {
        Some(Reason::few("multiplications", work, least))
    } else if m.min(n) < LEAST_MASKED_SIDE && is_computed(facts, &factors, &roles, m < n) {
        Some(Reason::of(
            "a matrix that is computed is multiplied by one vector",
        ))
    } else {
        None
    };
    let lists = [&roles.rows[..], &roles.columns, &roles.inner];
    roles.bounded = bounded(kernel, lists, &facts.lengths);
    if roles.bounded.is_none() {
        let cheapest = tilings(facts, &factors, &roles).into_iter().next();
        roles.tiling = cheapest.map(|(_, tiling)| Box::new(tiling));
    }
    let few = m.min(n) < LEAST_MASKED_SIDE && m.max(n) <= FEW_WINDOWS;
    if few && has_copied_windows(facts, &factors, &roles, m < n) {
        unworthy.get_or_insert(Reason::of(
            "few windows are copied to be multiplied by one vector",
        ));
    }
    Ok((roles, unworthy))
}

/// Returns whether the factor that has the rows, or else the columns, is no element that is read, at whatever place.
fn is_computed(facts: &Facts<'_>, factors: &Factors, form: &Matmul, of_columns: bool) -> bool {
    !is_read(facts, matrix(factors, form, of_columns))
}

/// Returns whether blocks of the factor that has the rows, or else the columns, are copies of windows, which hold each element for many of them.
fn has_copied_windows(
    facts: &Facts<'_>,
    factors: &Factors,
    form: &Matmul,
    of_columns: bool,
) -> bool {
    let side = match of_columns {
        true => &form.columns,
        false => &form.rows,
    };
    let copied = form.tiling.as_ref().is_some_and(|tiling| {
        let handling = match of_columns == tiling.swapped {
            true => tiling.left,
            false => tiling.right,
        };
        handling != FactorHandling::InPlace
    });
    let matrix = matrix(factors, form, of_columns);
    copied && is_read(facts, matrix) && facts.takes_windows(matrix, [side, &form.inner])
}

/// The factor that has the columns, or else the rows.
fn matrix(factors: &Factors, form: &Matmul, of_columns: bool) -> NodeId {
    let (matrix, _) = match form.turned == of_columns {
        true => factors.left,
        false => factors.right,
    };
    matrix
}

/// Returns whether a factor is an element that is read.
fn is_read(facts: &Facts<'_>, factor: NodeId) -> bool {
    // A product of several reads stands behind the nodes of the kernel.
    let graph = &facts.kernel.graph;
    (factor.0 as usize) < graph.len() && matches!(graph.node(factor), Node::Read { .. })
}

/// The tilings of a kernel in this form that are looked at, each with the nanoseconds that it takes one core, the cheapest one first.
fn tilings(facts: &Facts<'_>, factors: &Factors, form: &Matmul) -> Vec<(f64, Tiling)> {
    let (left, right) = match form.turned {
        true => (factors.right, factors.left),
        false => (factors.left, factors.right),
    };
    let [left, right] = [left, right].map(|(factor, _)| {
        let read = is_read(facts, factor);
        read.then(|| facts.steps(factor, facts.value())).flatten()
    });
    let (mut left, mut right) = (FactorLayout::of(&left), FactorLayout::of(&right));
    let mut roles = form.roles(&facts.lengths);
    let swapped = roles.turns(left, &facts.lengths);
    if swapped {
        roles = roles.turned();
        (left, right) = (right, left);
    }
    let sizes = Sizes {
        lengths: &facts.lengths,
        rank: facts.rank(),
        roles: &roles,
        left,
        right,
        shares: true,
    };
    Tiling::candidates(&sizes, swapped)
}
