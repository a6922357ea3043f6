//! The text of `einc plan`: a header and one line a step.
//!
//! Must not know how anything is chosen.
//!
//! ```text
//! plan for 4 sites: transfer 67108864 floats (201.3 MB change site), 34.4 Gflop at the busiest site
//! peak memory: 134.2 MB at each site
//!
//! 2  B.all  {} f32[4096, 4096] @ ALL  = broadcast B  67108864 floats  // matmul.ein:10
//! ```

use super::Compiled;
use crate::ia::{Operation, Program, Relation};
use ein_plan::print::mesh;
use ein_plan::{Origin, RelationId};

/// Columns are aligned up to this many characters.
const WIDEST: usize = 60;

/// The plan in words, with its cost.
pub fn explain(compiled: &Compiled) -> String {
    let (ia, cost) = (&compiled.ia, &compiled.cost);
    let mut text = format!(
        "plan for {}{}{}: transfer {} floats ({} change site), {} at the busiest site\n{}\n\n",
        count(u128::from(ia.sites), "site"),
        mesh(&ia.mesh, ia.sites),
        if compiled.plan.deterministic {
            ", deterministic"
        } else {
            ""
        },
        cost.transfer,
        scaled(u128::from(cost.bytes), "B"),
        scaled(cost.flops, "flop"),
        memory(&cost.peak_bytes),
    );
    let rows: Vec<[String; 6]> = ia
        .relations
        .iter()
        .zip(&cost.steps)
        .enumerate()
        .map(|(number, (relation, step))| {
            let moved = match step.transfer {
                0 => String::new(),
                floats => count(floats, "float"),
            };
            [
                number.to_string(),
                relation.name.clone(),
                relation.kind.to_string(),
                format!("= {}", operation(ia, relation)),
                moved,
                place(ia, relation.origin),
            ]
        })
        .collect();
    let width = |column: usize| {
        let longest = rows.iter().map(|row| row[column].chars().count()).max();
        longest.unwrap_or(0).min(WIDEST)
    };
    let widths = [width(0), width(1), width(2), width(3), width(4)];
    for [number, name, kind, operation, moved, place] in &rows {
        let line = format!(
            "{number:>0$}  {name:<1$}  {kind:<2$}  {operation:<3$}  {moved:>4$}  {place}",
            widths[0], widths[1], widths[2], widths[3], widths[4],
        );
        text.push_str(line.trim_end());
        text.push('\n');
    }
    for output in &compiled.plan.outputs {
        let to = match &output.file {
            Some(file) => format!(" -> {file:?}"),
            None => String::new(),
        };
        let name = &ia.relation(output.relation).name;
        text.push_str(&format!("output {} = {name}{to}\n", output.name));
    }
    text
}

fn operation(program: &Program, relation: &Relation) -> String {
    let name = |id: &RelationId| program.relation(*id).name.as_str();
    match &relation.operation {
        Operation::Source { .. } => "source".into(),
        Operation::Broadcast { input } => format!("broadcast {}", name(input)),
        Operation::Shuffle { input } => format!("shuffle {}", name(input)),
        Operation::LocalJoin {
            inputs,
            kernel,
            fold,
            ..
        } => {
            let names: Vec<&str> = inputs.iter().map(|input| name(&input.relation)).collect();
            let reduction = match kernel.reduction {
                None => String::new(),
                Some(reduction) => format!("{} ", reduction.name()),
            };
            let how = if fold.is_some() { "fold" } else { "join" };
            format!("local {how} {reduction}({})", names.join(", "))
        }
        Operation::LocalAggregate {
            input, reduction, ..
        } => format!("local aggregate {} {}", reduction.name(), name(input)),
        Operation::LocalFilter { input, key, value } => {
            let key = &program.relation(*input).kind.keys[*key as usize].name;
            format!("local filter {} where {key} = {value}", name(input))
        }
        Operation::LocalMap { input, .. } => format!("local map {}", name(input)),
        Operation::LocalTile { input, array_dim } => {
            format!("local tile {} dim {array_dim}", name(input))
        }
        Operation::LocalConcat { input, array_dim } => {
            format!("local concat {} dim {array_dim}", name(input))
        }
    }
}

/// `// model.ein:7`, or nothing if the place is unknown.
fn place(program: &Program, origin: Origin) -> String {
    match program.files.get(origin.file as usize) {
        Some(file) if origin.line > 0 => format!("// {file}:{}", origin.line),
        _ => String::new(),
    }
}

/// Peak memory: one figure if all sites have it, else each site's.
fn memory(peaks: &[u64]) -> String {
    let same = peaks.windows(2).all(|pair| pair[0] == pair[1]);
    match peaks {
        [] => "peak memory: nothing".into(),
        [only] => format!("peak memory: {}", scaled(u128::from(*only), "B")),
        [first, ..] if same => {
            format!(
                "peak memory: {} at each site",
                scaled(u128::from(*first), "B")
            )
        }
        _ => {
            let shown = peaks.iter().enumerate().take(8);
            let mut each: Vec<String> = shown
                .map(|(site, peak)| format!("site {site}: {}", scaled(u128::from(*peak), "B")))
                .collect();
            if peaks.len() > 8 {
                let most = peaks.iter().copied().max().unwrap_or(0);
                each.push(format!("… at most {}", scaled(u128::from(most), "B")));
            }
            format!("peak memory: {}", each.join(", "))
        }
    }
}

fn count(number: u128, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// A number with a decimal prefix: 201326592 bytes are `201.3 MB`.
fn scaled(number: u128, unit: &str) -> String {
    let mut value = number as f64;
    for prefix in ["", "k", "M", "G", "T", "P"] {
        if value < 999.95 {
            return if prefix.is_empty() {
                format!("{number} {unit}")
            } else {
                format!("{value:.1} {prefix}{unit}")
            };
        }
        value /= 1000.0;
    }
    format!("{value:.1} E{unit}")
}
