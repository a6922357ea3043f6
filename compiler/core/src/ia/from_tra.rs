//! Compiling the TRA: each operator becomes its local counterpart, with a BCAST or SHUF of an input wherever
//! what the input has does not satisfy what the operator requires.
//!
//! | TRA | IA |
//! |---|---|
//! | Σ(groupBy, aggOp)(R) | Σᴸ(groupBy, aggOp)(SHUF(groupBy)(R)) |
//! | ⋈(R₁, …, Rₙ) | ⋈ᴸ(…, BCAST(Rᵢ), …, Rⱼ, …): inputs co-located with the result stay, the others are broadcast |
//! | REKEY(f)(R), λ(f)(R) | λᴸ(f, id)(R), λᴸ(id, f)(R) |
//! | σ(p)(R) | σᴸ(p)(R) |
//! | TILE(d, size)(R) | λᴸ(keyTile, arrayTile)(R) |
//! | CONCAT(keyDim, arrayDim)(R) | Σᴸ(keyDimᶜ, arrayConcat)(SHUF(keyDimᶜ)(R)) |
//! | WINDOW(boxes)(R) | SHUF to the boxes: each site gets what it lacks of its own, wherever R is |
//!
//! Where operators run and relations rest may be prescribed ([`Places`]). A join for which nothing is prescribed is
//! placed where its inputs cost the fewest transfers. Sources and the operators that only re-arrange tuples (REKEY,
//! σ, TILE, CONCAT) are translated when an operator asks for them, at the placement that it asks for: a tensor that
//! is wanted whole at every site is broadcast in pieces and put together there. What goes from round to round of a loop
//! is in `loops`. Must not know chunkings, nor plans.
//!
//! ```text
//! C = join(A{i}, B{})   A @ PART(i), B @ ONE   gives   B.all = broadcast B; C = local join(A{i}, B.all{})
//! ```

mod loops;
mod placing;

use super::placement::{Required, image, of_join_input, placement_name, spread};
use super::{Operation, Program, Relation};
use crate::tra;
use crate::tra::blocks::Nesting;
use ein_plan::{Block, JoinInput, Mesh, Placement, RelationId, RelationType};
use std::collections::BTreeMap;

/// Where a TRA program's operators run and its relations rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Places {
    /// The sites that take part.
    pub mesh: Mesh,
    /// Of joins and aggregations: where the result is made.
    pub made: BTreeMap<RelationId, Placement>,
    /// Where a relation waits for its readers: one that is moved for a reader is moved from there.
    pub rests: BTreeMap<RelationId, Placement>,
}

/// Translates a program for that many sites, at least one; they stand in a row, unless the program's key
/// dimensions are cut over a mesh.
pub fn from_tra(program: &tra::Program, sites: u32) -> Result<Program, String> {
    let mesh = match program.mesh.axes.is_empty() {
        true => Mesh::row(sites.max(1)),
        false => program.mesh.clone(),
    };
    let places = Places {
        mesh,
        ..Places::default()
    };
    placed(program, sites, &places)
}

/// Translates a program with operators and relations where they are to be.
pub fn placed(program: &tra::Program, sites: u32, places: &Places) -> Result<Program, String> {
    let mut translation = Translation {
        program,
        places,
        versions: vec![vec![]; program.relations.len()],
        bases: vec![None; program.relations.len()],
        relations: vec![],
        blocks: program.blocks.clone(),
        nesting: Nesting::new(program.blocks.len()),
        names: tra::Names::taken(program.relations.iter().map(|r| r.name.as_str())),
    };
    let mut made = vec![];
    for number in 0..program.relations.len() {
        let id = RelationId(number as u32);
        translation.go_to(id)?;
        translation.operator(id)?;
        made.push(id);
        // What a loop leaves stands together: it is taken elsewhere once all of it is there.
        if loops::left_by(program, id).is_some_and(|block| {
            loops::left_by(program, RelationId(number as u32 + 1)) == Some(block)
        }) {
            continue;
        }
        for id in made.drain(..) {
            if let Some(rest) = places.rests.get(&id) {
                let base = translation.realize(id, &Required::At(rest.clone()))?;
                translation.bases[id.0 as usize] = Some(base);
            }
        }
    }
    let left = translation.nesting.leave(0);
    translation.moves(left)?;
    let mut outputs = vec![];
    for output in &program.outputs {
        // What takes a param's place has to be where that rests.
        let rests = output.replaces.is_some();
        let base = translation.bases[output.relation.0 as usize].filter(|_| rests);
        outputs.push(tra::Output {
            relation: match base {
                Some(base) => base,
                None => translation.realize(output.relation, &Required::Any)?,
            },
            ..output.clone()
        });
    }
    let mut result = Program {
        sites: sites.max(1),
        mesh: places.mesh.clone(),
        relations: translation.relations,
        blocks: translation.blocks,
        outputs,
        files: program.files.clone(),
    };
    result.drop_unused();
    Ok(result)
}

/// How a relation of the TRA program can be had at a placement.
enum Version {
    /// It is there already.
    Use(RelationId),
    /// Made there: a source, or a re-arrangement of its input at a placement.
    Make(Placement),
    /// Made at its own placement, if it is not there yet, and then moved.
    Move(Placement),
}

struct Translation<'a> {
    program: &'a tra::Program,
    places: &'a Places,
    /// By TRA relation: its physical relations, no two at one placement.
    versions: Vec<Vec<RelationId>>,
    /// By TRA relation: the one of them that is moved for readers, if it is prescribed.
    bases: Vec<Option<RelationId>>,
    relations: Vec<Relation>,
    /// With physical relations where the loop has begun, or ended.
    blocks: Vec<Block>,
    nesting: Nesting,
    names: tra::Names,
}

impl Translation<'_> {
    /// Translates the operators that compute; the others wait until they are asked for.
    fn operator(&mut self, id: RelationId) -> Result<(), String> {
        let relation = self.program.relation(id);
        match &relation.operation {
            tra::Operation::Source { .. }
            | tra::Operation::Rekey { .. }
            | tra::Operation::Filter { .. }
            | tra::Operation::Tile { .. }
            | tra::Operation::Window { .. }
            | tra::Operation::Concat { .. } => {}
            tra::Operation::Loop { value } => {
                let placement = self.place_value(id, *value);
                self.push(id, placement, Operation::Loop { value: *value });
            }
            tra::Operation::Join {
                inputs,
                kernel,
                ranges,
                fold,
            } => {
                let prescribed = self.places.made.get(&id).cloned();
                let placement = prescribed.unwrap_or_else(|| self.place_join(relation));
                let mut placed = vec![];
                for input in inputs {
                    let required = of_join_input(input, fold.as_ref(), &placement);
                    placed.push(JoinInput {
                        relation: self.realize(input.relation, &required)?,
                        keys: input.keys.clone(),
                    });
                }
                let operation = Operation::LocalJoin {
                    inputs: placed,
                    kernel: kernel.clone(),
                    ranges: ranges.clone(),
                    fold: fold.clone(),
                };
                self.push(id, placement, operation);
            }
            tra::Operation::Aggregate {
                input,
                group_by,
                reduction,
            } => {
                let prescribed = self.places.made.get(&id).cloned();
                let placement =
                    prescribed.unwrap_or_else(|| self.place_aggregate(*input, group_by));
                let before = image(&placement, |dim| group_by.get(dim as usize).copied());
                let required = Required::At(before.ok_or("an aggregation cannot be placed")?);
                let operation = Operation::LocalAggregate {
                    input: self.realize(*input, &required)?,
                    keep: group_by.clone(),
                    reduction: *reduction,
                };
                self.push(id, placement, operation);
            }
            tra::Operation::Transform {
                input,
                kernel,
                ranges,
            } => {
                let placed = self.realize(*input, &Required::Any)?;
                let kind = &self.relations[placed.0 as usize].kind;
                let placement = kind.placement.clone();
                let operation = Operation::LocalMap {
                    input: placed,
                    keys: (0..kind.keys.len() as u32).collect(),
                    map: Some((kernel.clone(), ranges.clone())),
                };
                self.push(id, placement, operation);
            }
        }
        Ok(())
    }

    /// A physical relation of a TRA relation where it is required.
    fn realize(&mut self, id: RelationId, required: &Required) -> Result<RelationId, String> {
        match self.way(id, required).1 {
            Version::Use(version) => Ok(version),
            Version::Make(placement) => self.make(id, placement),
            Version::Move(placement) => {
                let from = self.based(id)?;
                let actual = &self.relations[from.0 as usize].kind.placement;
                let operation = match actual.grows_to(&placement) {
                    true => Operation::Broadcast { input: from },
                    false => Operation::Shuffle { input: from },
                };
                Ok(self.push(id, placement, operation))
            }
        }
    }

    /// [`Translation::base`]; made where it is by itself, if there is none.
    fn based(&mut self, id: RelationId) -> Result<RelationId, String> {
        match self.base(id) {
            Some(base) => Ok(base),
            None => self.make(id, self.first_placement(id)),
        }
    }

    fn make(&mut self, id: RelationId, placement: Placement) -> Result<RelationId, String> {
        let operation = match &self.program.relation(id).operation {
            tra::Operation::Source { name, source } => Operation::Source {
                name: name.clone(),
                source: source.clone(),
            },
            tra::Operation::Window { input } => Operation::Window {
                input: self.based(*input)?,
            },
            operation => {
                let (input, required) = self
                    .arrange(id, &placement)
                    .ok_or("a relation cannot be made at its placement")?;
                let input = self.realize(input, &required)?;
                match operation {
                    tra::Operation::Rekey { keys, .. } => Operation::LocalMap {
                        input,
                        keys: keys.clone(),
                        map: None,
                    },
                    tra::Operation::Filter { key, value, .. } => Operation::LocalFilter {
                        input,
                        key: *key,
                        value: *value,
                    },
                    tra::Operation::Tile { array_dim, .. } => Operation::LocalTile {
                        input,
                        array_dim: *array_dim,
                    },
                    tra::Operation::Concat { array_dim, .. } => Operation::LocalConcat {
                        input,
                        array_dim: *array_dim,
                    },
                    _ => return Err("a relation is used before it is computed".into()),
                }
            }
        };
        Ok(self.push(id, placement, operation))
    }

    fn push(&mut self, id: RelationId, placement: Placement, operation: Operation) -> RelationId {
        let relation = self.program.relation(id);
        let mut name = relation.name.clone();
        if !self.versions[id.0 as usize].is_empty() {
            let at = placement_name(&placement, &relation.kind.keys);
            name = self.names.fresh(&format!("{name}.{at}"));
        }
        let made = RelationId(self.relations.len() as u32);
        self.relations.push(Relation {
            name,
            tensor: relation.tensor.clone(),
            kind: RelationType {
                keys: relation.kind.keys.clone(),
                array: relation.kind.array.clone(),
                placement,
            },
            operation,
            block: relation.block,
            origin: relation.origin,
        });
        self.versions[id.0 as usize].push(made);
        made
    }
}
