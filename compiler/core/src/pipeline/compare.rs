//! The chosen plan beside others: the papers' named plans and the best of other meshes, each with what it would cost
//! and why it lost.
//!
//! Must not know how plans are found, nor how costs are counted.
//!
//! ```text
//! chosen          6.480e7   1.225e7   4.032e11
//! data parallel   8.000e8   3.202e8   3.226e11   7.352e8 more floats
//! one site        0         0         1.613e12   its busiest site does 5.0 times an even share of the work (limit 1.25)
//! ```

use super::choose::search_options;
use super::report::Alternative;
use super::text::{scaled, seconds};
use super::{Compiled, Objective, Options, counted};
use crate::cost::Cost;
use crate::einsum::Program;
use crate::ia::layout::Layout;
use crate::search::{self, LayoutCost, Pinned, SearchOptions};
use ein_plan::Mesh;

/// Meshes other than the chosen one whose best plan is shown.
const MESHES: usize = 3;

/// Prices that differ by less, relatively, are the same.
const TOLERANCE: f64 = 1e-9;

/// A plan in the table.
struct Row {
    name: String,
    layout: Layout,
    /// Its price, as the search counts it.
    price: LayoutCost,
    figures: Figures,
}

/// The figures of a plan.
#[derive(Clone, Copy)]
struct Figures {
    /// Floats transferred.
    transfer: f64,
    /// Words that the site receives that receives most.
    words: f64,
    /// Operations of the site that has most.
    flops: f64,
    /// Bytes that the site holds at one time that holds most.
    peak: f64,
}

impl Figures {
    fn of(cost: &Cost) -> Figures {
        Figures {
            transfer: cost.transfer as f64,
            words: cost.received_max.floats as f64,
            flops: cost.flops as f64,
            peak: cost.peak_bytes.iter().copied().max().unwrap_or(0) as f64,
        }
    }

    /// Of a layout that is not planned, as the search counts it.
    fn estimated(program: &Program, layout: &Layout, price: &LayoutCost) -> Figures {
        let held = search::residency(program, layout);
        Figures {
            transfer: price.transfer,
            words: price.words,
            flops: price.load,
            peak: held.iter().map(|held| held.bytes).fold(0.0, f64::max),
        }
    }

    /// The figure that the objective minimises. Seconds are those of the search's model.
    fn under(&self, objective: &Objective, price: &LayoutCost) -> f64 {
        match objective {
            Objective::Transfer => self.transfer,
            Objective::Bytes => self.words,
            Objective::Time(_) => price.seconds,
        }
    }
}

/// The chosen plan, then the others, the cheapest first. All that can be carried out are planned, and counted like the chosen one.
pub fn compare(
    compiled: &Compiled,
    options: &Options,
    deadline: &dyn Fn() -> bool,
) -> Vec<Alternative> {
    let objective = options.criteria.objective;
    let chosen = &compiled.chosen;
    let program = &compiled.program;
    let others = others(compiled, options, deadline).into_iter();
    let mut rows: Vec<Row> = others
        .map(|(name, layout, price)| {
            let fits = layout.mesh.sites() <= options.sites && !deadline();
            let counted = fits.then(|| counted(program, &layout.clone().coalesced(), options));
            let figures = match counted {
                Some(Ok(cost)) => Figures::of(&cost),
                Some(Err(_)) | None => Figures::estimated(program, &layout, &price),
            };
            Row {
                name,
                layout,
                price,
                figures,
            }
        })
        .collect();
    rows.sort_by(|a, b| {
        let [one, other] = [a, b].map(|row| row.figures.under(&objective, &row.price));
        one.total_cmp(&other)
            .then(a.price.compare(&b.price, &objective))
    });
    let own = Row {
        name: "chosen".into(),
        layout: chosen.layout.clone(),
        price: chosen.price.clone(),
        figures: Figures::of(&compiled.cost),
    };
    let one = rows.iter().find(|row| row.layout.mesh.sites() == 1);
    let even = one.map_or(own.figures.flops, |one| {
        one.figures.flops / f64::from(options.sites)
    });
    let row = |row: &Row, lost: String| Alternative {
        name: row.name.clone(),
        transfer: row.figures.transfer,
        words_per_site_max: row.figures.words,
        flops_per_site_max: row.figures.flops,
        lost,
    };
    let lost = |other: &Row| why(other, &own, even, options);
    let rows = rows.iter().map(|other| row(other, lost(other)));
    [row(&own, String::new())].into_iter().chain(rows).collect()
}

/// The plans that the chosen one is compared with: named ones, and the best on other meshes.
fn others(
    compiled: &Compiled,
    options: &Options,
    deadline: &dyn Fn() -> bool,
) -> Vec<(String, Layout, LayoutCost)> {
    let wanted = search_options(options);
    let named = search::named(&compiled.program, options.sites, &wanted.objective).into_iter();
    let mut plans: Vec<(String, Layout, LayoutCost)> = named
        .map(|named| (named.name.to_string(), named.layout, named.price))
        .collect();
    let chosen = &compiled.chosen;
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
    plans
}

/// Why a plan lost to the chosen one. `even`: an even share of the work.
fn why(row: &Row, chosen: &Row, even: f64, options: &Options) -> String {
    let (layout, price, figures) = (&row.layout, &row.price, &row.figures);
    let criteria = &options.criteria;
    let objective = criteria.objective;
    if layout.mesh.sites() > options.sites {
        return format!(
            "mesh {} is for its price only: there are {} sites",
            layout.mesh, options.sites
        );
    }
    if let Some(limit) = criteria.memory
        && figures.peak > limit as f64
    {
        let (peak, limit) = (scaled(figures.peak as u64, "B"), scaled(limit, "B"));
        return format!("it needs {peak} at a site (limit {limit})");
    }
    let close = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * a.abs().max(b.abs());
    let [own, best] = [row, chosen].map(|row| row.figures.under(&objective, &row.price));
    let unit = match criteria.objective {
        Objective::Transfer => "floats",
        Objective::Bytes => "words at the busiest site",
        Objective::Time(_) => "",
    };
    if own > best && !close(own, best) {
        return match criteria.objective {
            Objective::Time(_) => format!("{} more", seconds(own - best)),
            _ => format!("{} more {unit}", scaled((own - best) as u64, "").trim_end()),
        };
    }
    let times = figures.flops / even.max(1.0);
    // Light statements may run everywhere without being counted; where nothing can be balanced, the chosen plan is not either.
    if times > criteria.balance * 1.01 && figures.flops > chosen.figures.flops * 1.01 {
        return format!(
            "its busiest site does {times:.2} times an even share of the work (limit {})",
            criteria.balance
        );
    }
    let estimated = price.under(&objective);
    let idle = options.sites.saturating_sub(layout.mesh.sites());
    if idle > 0 && estimated < chosen.price.under(&objective) {
        return format!(
            "{idle} of {} sites would idle, and none of the others move less",
            options.sites
        );
    }
    if own < best && !close(own, best) {
        // A plan may move more than its layout tells.
        return format!(
            "the search counted {} {unit} for it",
            scaled(estimated as u64, "").trim_end()
        );
    }
    if figures.flops > chosen.figures.flops && !close(figures.flops, chosen.figures.flops) {
        let more = (figures.flops / chosen.figures.flops.max(1.0) - 1.0) * 100.0;
        return format!("its busiest site does {more:.1} % more work");
    }
    let chosen = &chosen.price;
    if price.touched > chosen.touched && !close(price.touched, chosen.touched) {
        let more = scaled((price.touched - chosen.touched) as u64, "B");
        return format!("its busiest site reads and writes {more} more");
    }
    match price.moves > chosen.moves {
        true => format!("{} more moves", price.moves - chosen.moves),
        false => "the same cost".into(),
    }
}
