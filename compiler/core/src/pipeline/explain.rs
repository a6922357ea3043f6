//! The text of `einc plan`: a header and one line a step.
//!
//! Must not know how anything is chosen.
//!
//! ```text
//! plan for 4 sites: transfer 67108864 floats (201.3 MB change site), 34.4 Gflop at the busiest site
//! peak memory: 134.2 MB at each site
//!
//!  1  B@*   {} f32[4096, 4096] @ ALL   = broadcast(B)   67108864 floats   matmul.ein:10
//! ```

use super::Compiled;
use crate::ia::{Operation, Program, Relation};
use ein_plan::{Origin, Placement, RelationId, RelationType};

/// The plan in words, with its cost.
pub fn explain(compiled: &Compiled) -> String {
    let (ia, cost) = (&compiled.ia, &compiled.cost);
    let mut text = format!(
        "plan for {}{}: transfer {} floats ({} change site), {} at the busiest site\n{}\n\n",
        count(u128::from(ia.sites), "site"),
        if compiled.plan.deterministic {
            ", deterministic"
        } else {
            ""
        },
        cost.transfer,
        scaled(cost.bytes, "B"),
        scaled(cost.flops, "flop"),
        memory(&cost.peak_bytes),
    );
    let rows: Vec<[String; 5]> = ia
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
                format!("{}", Kind(&relation.kind)),
                format!("= {}", operation(ia, relation)),
                [moved, place(ia, relation.origin)]
                    .into_iter()
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join("   // "),
            ]
        })
        .collect();
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
            .min(60)
    };
    let widths = [width(0), width(1), width(2), width(3)];
    for row in &rows {
        let [number, name, kind, operation, rest] = row;
        let line = format!(
            "{number:>0$}  {name:<1$}  {kind:<2$}  {operation:<3$}  {rest}",
            widths[0], widths[1], widths[2], widths[3]
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

/// A relation type as text: `{i: 10/4} f32[10/i, 8] @ PART(i)`.
struct Kind<'a>(&'a RelationType);

impl std::fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = self.0;
        let list = |items: Vec<String>| items.join(", ");
        let keys = kind.keys.iter();
        let dims = kind.array.dims.iter().map(|dim| match dim.cut {
            None => dim.extent.to_string(),
            Some(key) => format!("{}/{}", dim.extent, kind.keys[key as usize].name),
        });
        let columns: Vec<&str> = kind.array.columns.iter().map(|c| c.name()).collect();
        let placement = match &kind.placement {
            Placement::All => "ALL".to_string(),
            Placement::Part(part) => {
                let names = part.iter().map(|k| kind.keys[*k as usize].name.clone());
                format!("PART({})", list(names.collect()))
            }
        };
        write!(
            f,
            "{{{}}} {}[{}] @ {placement}",
            list(
                keys.map(|k| format!("{}: {}/{}", k.name, k.extent, k.pieces))
                    .collect()
            ),
            columns.join("+"),
            list(dims.collect()),
        )
    }
}

fn operation(program: &Program, relation: &Relation) -> String {
    let name = |id: &RelationId| program.relation(*id).name.as_str();
    match &relation.operation {
        Operation::Source { .. } => "source".into(),
        Operation::Broadcast { input } => format!("broadcast({})", name(input)),
        Operation::Shuffle { input } => format!("shuffle({})", name(input)),
        Operation::LocalJoin { inputs, kernel, .. } => {
            let names: Vec<&str> = inputs.iter().map(|input| name(&input.relation)).collect();
            let reduction = match kernel.reduction {
                None => String::new(),
                Some(reduction) => format!(" {}", reduction.name()),
            };
            format!("local join({}){reduction}", names.join(", "))
        }
        Operation::LocalAggregate {
            input, reduction, ..
        } => format!("local aggregate({}) {}", name(input), reduction.name()),
        Operation::LocalFilter { input, key, value } => {
            let key = &program.relation(*input).kind.keys[*key as usize].name;
            format!("local filter({}) {key} = {value}", name(input))
        }
        Operation::LocalMap { input, .. } => format!("local map({})", name(input)),
        Operation::LocalTile { input, array_dim } => {
            format!("local tile({}) dim {array_dim}", name(input))
        }
        Operation::LocalConcat { input, array_dim } => {
            format!("local concat({}) dim {array_dim}", name(input))
        }
    }
}

/// `model.ein:7`, or nothing if the place is unknown.
fn place(program: &Program, origin: Origin) -> String {
    match program.files.get(origin.file as usize) {
        Some(file) if origin.line > 0 => format!("{file}:{}", origin.line),
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
