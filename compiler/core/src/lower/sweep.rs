//! Which steps of a plan are taken together, block of rows by block of rows ([`ein_plan::Sweep`]).
//!
//! A step joins a sweep that it shares memory with: it reads what a member makes, or what a member reads, at its own row.
//! A product of matrices joins if a block of rows is enough for it and what all its rows read stays in a cache beside them; a reduction to
//! one number is gathered.
//! A sweep ends where something outside of it reads what it makes, and where a loop begins or ends. Must not know costs.
//!
//! ```text
//! m[n] = max_d x[n,d]; e[n,d] = exp(x[n,d] - m[n]); s[n] = sum_d e[n,d]; y[n,d] = e[n,d] / s[n]   ->   sweep m, e, s, y rows 1
//! ```

use ein_plan::lifetime::{Event, events};
use ein_plan::sweep::BLOCK;
use ein_plan::{JoinInput, Kernel, NodeId, Operation, Plan, RelationId, RelationType, Step, Sweep};
use std::collections::BTreeSet;

/// Fewest elements of a tuple that are worth it: fewer stay in a cache between steps anyway.
const LARGE: u64 = 1 << 16;
/// Fewest rows of a tuple, so that there is work for every thread.
const FEWEST_ROWS: u64 = 64;
/// Most bytes of a row of all members together, so that it stays in a cache.
const ROW: u64 = 1 << 20;
/// Most members.
const MOST: usize = 24;
/// Fewest rows of a block that are worth a product of matrices.
const BLOCK_ROWS: u64 = 32;
/// Most bytes that all rows of a block read of a product's operands.
const SHARED: u64 = 1 << 21;

/// The sweeps of a plan that has none.
pub(super) fn sweeps(plan: &Plan) -> Vec<Sweep> {
    let (mut open, mut done): (Vec<Sweep>, Vec<Sweep>) = (vec![], vec![]);
    for event in events(plan) {
        let Event::Step(number) = event else {
            done.append(&mut open);
            continue;
        };
        let step = &plan.steps[number];
        let joined = open
            .iter()
            .rposition(|sweep| with(plan, sweep, step).is_some());
        let joined = joined.map(|at| open.remove(at));
        // What it reads must have been made.
        let inputs = step.operation.inputs();
        let (read, others) = open
            .into_iter()
            .partition(|sweep| sweep.members.iter().any(|member| inputs.contains(member)));
        open = others;
        done.extend::<Vec<Sweep>>(read);
        match joined {
            Some(mut sweep) => {
                sweep.rows = with(plan, &sweep, step).unwrap_or(sweep.rows);
                sweep.members.push(step.result);
                open.push(sweep);
            }
            None if plan.may_sweep(step) => open.push(Sweep {
                members: vec![step.result],
                rows: step.kind.array.dims.len() as u32,
            }),
            None => {}
        }
    }
    done.append(&mut open);
    done.retain(|sweep| sweep.members.len() > 1);
    done.sort_by_key(Sweep::last);
    done
}

/// The rows of a sweep with a step, if the step may join and that is worth it.
fn with(plan: &Plan, sweep: &Sweep, step: &Step) -> Option<u32> {
    if sweep.members.len() >= MOST {
        return None;
    }
    let rows = plan.rows_with(sweep, step)?;
    let members = || sweep.members.iter().map(|member| plan.step(*member));
    let (mut row, mut large) = (0u64, false);
    let whole = |step: &&Step| !plan.may_gather(step);
    for kind in members().chain([step]).filter(whole).map(|step| &step.kind) {
        let bytes: u64 = kind.array.columns.iter().map(|c| c.size() as u64).sum();
        let (number, length) = tuple(kind, rows as usize);
        row = row.saturating_add(bytes.saturating_mul(length));
        large |= number.saturating_mul(length) >= LARGE;
        if number < FEWEST_ROWS {
            return None;
        }
    }
    let own = aligned(plan, step, rows);
    // What several read is read once.
    large |= members().any(|member| {
        let mut both = aligned(plan, member, rows)
            .into_iter()
            .filter(|r| own.contains(r));
        both.any(|relation| {
            let (number, length) = tuple(plan.kind(relation), rows as usize);
            number.saturating_mul(length) >= LARGE
        })
    });
    let shares = members().any(|member| {
        own.contains(&member.result) || !own.is_disjoint(&aligned(plan, member, rows))
    });
    if row > ROW || !large || !shares {
        return None;
    }
    let mut most = ROW;
    for (inputs, kernel) in members()
        .chain([step])
        .filter_map(|step| product(plan, step))
    {
        if shared(plan, inputs, kernel, cut(plan, sweep, rows, row)) > SHARED {
            return None;
        }
        most = BLOCK / BLOCK_ROWS;
    }
    (row <= most).then_some(rows)
}

/// Which dimension of rows is cut into blocks, at so many bytes a row: a block has one value of those before it, and all of those behind.
fn cut(plan: &Plan, sweep: &Sweep, rows: u32, row: u64) -> u32 {
    let extents: Vec<u64> = extents(plan.kind(sweep.members[0])).collect();
    let mut wanted = (BLOCK / row.max(1)).max(1);
    let mut cut = rows.saturating_sub(1);
    while cut > 0 && extents[cut as usize] <= wanted {
        wanted /= extents[cut as usize].max(1);
        cut -= 1;
    }
    cut
}

/// The inputs and the kernel of a step that is a product of matrices.
fn product<'a>(plan: &'a Plan, step: &'a Step) -> Option<(&'a [JoinInput], &'a Kernel)> {
    let Operation::LocalJoin { inputs, kernel, .. } = &step.operation else {
        return None;
    };
    let kernel = &plan.kernels[kernel.0 as usize];
    (kernel.is_product() && !plan.may_gather(step)).then_some((inputs, kernel))
}

/// Bytes that a kernel reads again in every block, if blocks differ in the indices up to `cut`: what has all of these indices is read once;
/// else all that it has behind those before `cut`, for a factor of some rows only is read anew at the others.
fn shared(plan: &Plan, inputs: &[JoinInput], kernel: &Kernel, cut: u32) -> u64 {
    let bytes = kernel.graph.reads().map(|(operand, positions)| {
        let kind = plan.kind(inputs[operand as usize].relation);
        let size: u64 = kind.array.columns.iter().map(|c| c.size() as u64).sum();
        let index = |position: &NodeId| kernel.graph.as_index(*position).map(|index| index.0);
        if (0..=cut).all(|row| positions.iter().any(|p| index(p) == Some(row))) {
            return 0;
        }
        let extents = positions.iter().zip(extents(kind));
        let whole = extents.filter(|(position, _)| index(position).is_none_or(|i| i >= cut));
        whole.fold(size, |n, (_, extent)| n.saturating_mul(extent))
    });
    bytes.fold(0, u64::saturating_add)
}

/// The inputs of a step that it reads at its own row.
fn aligned(plan: &Plan, step: &Step, rows: u32) -> BTreeSet<RelationId> {
    let Operation::LocalJoin { inputs, kernel, .. } = &step.operation else {
        return BTreeSet::new();
    };
    let kernel = &plan.kernels[kernel.0 as usize];
    let reads = kernel.graph.reads();
    let own = reads.filter(|(_, positions)| kernel.rows_read(positions) >= rows as usize);
    own.map(|(operand, _)| inputs[operand as usize].relation)
        .collect()
}

/// Rows of the largest tuple, and elements of a row, with that many dimensions of rows.
fn tuple(kind: &RelationType, rows: usize) -> (u64, u64) {
    let extents: Vec<u64> = extents(kind).collect();
    let (rows, row) = extents.split_at(rows.min(extents.len()));
    let product = |extents: &[u64]| extents.iter().fold(1u64, |n, e| n.saturating_mul(*e));
    (product(rows), product(row))
}

/// Extents of the largest tuple.
fn extents(kind: &RelationType) -> impl Iterator<Item = u64> + '_ {
    let pieces = |key: u32| u64::from(kind.keys[key as usize].pieces);
    kind.array
        .dims
        .iter()
        .map(move |dim| match (dim.cut, dim.window) {
            (Some(cut), _) => dim.extent.div_ceil(pieces(cut)),
            (None, None) => dim.extent,
            (None, Some(window)) => {
                let longest = |key: u32| kind.keys[key as usize].extent.div_ceil(pieces(key));
                dim.extent.min(window.most(window.key.map_or(1, longest)))
            }
        })
}
