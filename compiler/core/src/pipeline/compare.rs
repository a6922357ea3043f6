//! The chosen plan beside others: the papers' named plans and the best of other meshes, each with what it would cost
//! and why it lost.
//!
//! Must not know how plans are found.
//!
//! ```text
//! chosen          6.480e7   1.225e7   4.032e11
//! data parallel   8.000e8   3.202e8   3.226e11   7.352e8 more floats
//! one site        0         0         1.613e12   its busiest site does 5.0 times an even share of the work (limit 1.25)
//! ```

use super::choose::search_options;
use super::report::Alternative;
use super::text::{scaled, seconds};
use super::{Compiled, Objective, Options};
use crate::ia::layout::Layout;
use crate::search::{self, LayoutCost, Pinned, SearchOptions};
use ein_plan::Mesh;

/// Meshes other than the chosen one whose best plan is shown.
const MESHES: usize = 3;

/// Prices that differ by less, relatively, are the same.
const TOLERANCE: f64 = 1e-9;

/// The chosen plan, then the others, the cheapest first.
pub fn compare(
    compiled: &Compiled,
    options: &Options,
    deadline: &dyn Fn() -> bool,
) -> Vec<Alternative> {
    let objective = options.criteria.objective;
    let wanted = search_options(options);
    let chosen = &compiled.chosen;
    let mut plans: Vec<(String, Layout, LayoutCost)> =
        search::named(&compiled.program, options.sites, &objective)
            .into_iter()
            .map(|named| (named.name.to_string(), named.layout, named.price))
            .collect();
    let mut meshes: Vec<&(Mesh, f64)> = chosen.meshes.iter().collect();
    meshes.sort_by(|a, b| a.1.total_cmp(&b.1));
    let others = meshes
        .into_iter()
        .filter(|(mesh, _)| *mesh != chosen.mesh)
        .take(MESHES);
    for (mesh, _) in others {
        let pinned = SearchOptions {
            pinned: Pinned {
                mesh: Some(mesh.clone()),
                ..Pinned::default()
            },
            ..wanted.clone()
        };
        if let Ok(found) = search::layout(&compiled.program, &pinned, deadline) {
            plans.push((format!("best on mesh {mesh}"), found.layout, found.price));
        }
    }
    let one = plans.iter().find(|(_, layout, _)| layout.mesh.sites() == 1);
    let even = one.map_or(chosen.price.load, |(.., one)| {
        one.load / f64::from(options.sites)
    });
    plans.sort_by(|a, b| a.2.compare(&b.2, &objective));
    let row = |name: String, price: &LayoutCost, lost: String| Alternative {
        name,
        transfer: price.transfer,
        words_per_site_max: price.words,
        flops_per_site_max: price.load,
        lost,
    };
    let mut rows = vec![row("chosen".into(), &chosen.price, String::new())];
    for (name, layout, price) in plans {
        let peak = search::residency(&compiled.program, &layout);
        let peak = peak.iter().map(|held| held.bytes).fold(0.0, f64::max);
        let lost = why(&layout, &price, &chosen.price, even, options, peak);
        rows.push(row(name, &price, lost));
    }
    rows
}

/// Why a plan lost to the chosen one.
fn why(
    layout: &Layout,
    price: &LayoutCost,
    chosen: &LayoutCost,
    even: f64,
    options: &Options,
    peak: f64,
) -> String {
    let criteria = &options.criteria;
    let objective = criteria.objective;
    if layout.mesh.sites() > options.sites {
        return format!(
            "mesh {} is for its price only: there are {} sites",
            layout.mesh, options.sites
        );
    }
    if let Some(limit) = criteria.memory
        && peak > limit as f64
    {
        let (peak, limit) = (scaled(peak as u64, "B"), scaled(limit, "B"));
        return format!("it needs {peak} at a site (limit {limit})");
    }
    let more = price.under(&objective) - chosen.under(&objective);
    let close = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * a.abs().max(b.abs());
    if more > 0.0 && !close(price.under(&objective), chosen.under(&objective)) {
        let unit = match criteria.objective {
            Objective::Transfer => "floats",
            Objective::Bytes => "words at the busiest site",
            Objective::Time(_) => return format!("{} more", seconds(more)),
        };
        return format!("{} more {unit}", scaled(more as u64, "").trim_end());
    }
    let times = price.load / even.max(1.0);
    // Light statements may run everywhere without being counted.
    if times > criteria.balance * 1.01 {
        return format!(
            "its busiest site does {times:.2} times an even share of the work (limit {})",
            criteria.balance
        );
    }
    let idle = options.sites.saturating_sub(layout.mesh.sites());
    if idle > 0 && price.under(&objective) < chosen.under(&objective) {
        return format!(
            "{idle} of {} sites would idle, and none of the others move less",
            options.sites
        );
    }
    if price.load > chosen.load && !close(price.load, chosen.load) {
        let more = (price.load / chosen.load.max(1.0) - 1.0) * 100.0;
        return format!("its busiest site does {more:.1} % more work");
    }
    if price.touched > chosen.touched && !close(price.touched, chosen.touched) {
        let more = scaled((price.touched - chosen.touched) as u64, "B");
        return format!("its busiest site reads and writes {more} more");
    }
    match price.moves > chosen.moves {
        true => format!("{} more moves", price.moves - chosen.moves),
        false => "the same cost".into(),
    }
}
