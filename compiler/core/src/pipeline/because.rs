//! Why a relation moves, in a sentence for a plan's report.
//!
//! Must not know costs, nor how a report is printed.
//!
//! ```text
//! `C` (matmul.ein:10) needs `B` whole, which rests cut along `k`
//! ```

use crate::ia::{Operation, Program, Relation};
use ein_plan::{AxisRole, Block, Origin, RelationId};

/// Says why a relation moves; nothing of one that does not.
pub fn because(program: &Program, id: RelationId) -> String {
    let relation = program.relation(id);
    let input = match relation.operation {
        Operation::Broadcast { input } | Operation::Shuffle { input } => program.relation(input),
        Operation::Window { input } => return window_reason(program, id, program.relation(input)),
        _ => return String::new(),
    };
    let cut = |relation: &Relation, of: &dyn Fn(u32) -> bool| -> Vec<String> {
        let roles = relation.kind.placement.roles.iter();
        let keys = roles.filter_map(|role| match role {
            AxisRole::Key(key) if of(*key) => Some(*key),
            _ => None,
        });
        let mut names: Vec<String> = keys
            .map(|key| format!("`{}`", relation.kind.keys[key as usize].name))
            .collect();
        names.dedup();
        names
    };
    let kept = |key: u32| {
        let dims = &input.kind.array.dims;
        dims.iter().any(|dim| dim.cut == Some(key))
    };
    let summed = cut(input, &|key| !kept(key));
    if !summed.is_empty() {
        let names = summed.join(" and ");
        return format!(
            "`{}` is reduced over {names}, which is cut over sites: each site's part goes to where it is added up",
            relation.tensor
        );
    }
    let (from, to) = (cut(input, &|_| true), cut(relation, &|_| true));
    let readers = readers(program, id);
    let who = match readers.first() {
        Some(reader) => format!("`{}`{}", reader.tensor, place(program, reader.origin)),
        None => {
            let ends = |block: &&Block| {
                block
                    .begins_with()
                    .chain(block.ends_with())
                    .any(|r| r == id)
            };
            match program.blocks.iter().find(ends) {
                Some(of) => format!("the loop `{}`{}", of.name, place(program, of.origin)),
                None => "the output".into(),
            }
        }
    };
    let rests = match from.is_empty() {
        true => "is at one site".into(),
        false => format!("rests cut along {}", from.join(" and ")),
    };
    match to.is_empty() {
        true => match looked_up(program, id) {
            Some((_, dim)) => format!(
                "{who} reads `{0}` where no index stands alone in dimension {1}, so any of it may be wanted: it needs `{0}` whole, which {rests}",
                relation.tensor,
                dim + 1
            ),
            None => format!("{who} needs `{}` whole, which {rests}", relation.tensor),
        },
        false => format!(
            "{who} needs `{}` cut along {} only, which {rests}",
            relation.tensor,
            to.join(" and ")
        ),
    }
}

/// Why windows are taken: who reads which part.
fn window_reason(program: &Program, id: RelationId, input: &Relation) -> String {
    let relation = program.relation(id);
    let who = readers(program, id)
        .first()
        .map_or("the program".into(), |reader| {
            format!("`{}`{}", reader.tensor, place(program, reader.origin))
        });
    let array = relation.kind.to_string();
    let windows = array.split(" @ ").next().unwrap_or_default();
    let rests = ein_plan::print::placement(&input.kind.placement, &input.kind.keys);
    format!(
        "{who} reads `{}` in the windows {windows}: each site gets what it lacks of its own; `{}` rests at {rests}",
        relation.tensor, relation.tensor
    )
}

/// The computation that a relation moves whole for because it reads it by anything but an index alone, and the first such dimension of
/// those that are cut.
pub fn looked_up(program: &Program, id: RelationId) -> Option<(&Relation, usize)> {
    let moved = program.relation(id);
    let (Operation::Broadcast { input } | Operation::Shuffle { input }) = moved.operation else {
        return None;
    };
    let relation = program.relation(input);
    let is_key = |role: &AxisRole| matches!(role, AxisRole::Key(_));
    if moved.kind.placement.roles.iter().any(is_key) {
        return None;
    }
    let reader = readers(program, id).into_iter().next()?;
    let Operation::LocalJoin { inputs, kernel, .. } = &reader.operation else {
        return None;
    };
    kernel.graph.reads().find_map(|(operand, positions)| {
        let input = program.relation(inputs.get(operand as usize)?.relation);
        if input.tensor != relation.tensor {
            return None;
        }
        let mut dims = positions.iter().zip(&relation.kind.array.dims);
        let dim =
            dims.position(|(at, dim)| dim.cut.is_some() && kernel.graph.as_index(*at).is_none())?;
        Some((reader, dim))
    })
}

/// The computations that read a relation, through what only re-arranges it.
fn readers(program: &Program, id: RelationId) -> Vec<&Relation> {
    let mut found = vec![];
    let mut open = vec![id];
    while let Some(id) = open.pop() {
        for (number, reader) in program.relations.iter().enumerate() {
            if !reader.operation.inputs().contains(&id) {
                continue;
            }
            match reader.operation {
                Operation::LocalJoin { .. } => found.push(reader),
                _ => open.push(RelationId(number as u32)),
            }
        }
    }
    found
}

/// ` (model.ein:7)`, or nothing if the place is unknown.
fn place(program: &Program, origin: Origin) -> String {
    match program.files.get(origin.file as usize) {
        Some(file) if origin.line > 0 => format!(" ({file}:{})", origin.line),
        _ => String::new(),
    }
}
