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

use super::placement::{
    Required, before_tile, by_one_key, concat_key, image, of_join_input, placement_name, position,
    satisfies, spread,
};
use super::{Operation, Program, Relation, floats};
use crate::tra;
use crate::tra::blocks::Nesting;
use ein_plan::amounts::Amounts;
use ein_plan::{AxisRole, Block, JoinInput, KeyDim, Mesh, Placement, RelationId, RelationType};
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

    /// Where a join costs the fewest transfers; then where its busiest site has the fewest tuples. A join
    /// without key dimensions runs everywhere if that costs nothing, else at one site.
    fn place_join(&self, relation: &tra::Relation) -> Placement {
        let tra::Operation::Join {
            inputs,
            kernel,
            fold,
            ..
        } = &relation.operation
        else {
            return Placement::all(&self.places.mesh);
        };
        let (keys, mesh) = (&relation.kind.keys, &self.places.mesh);
        let price = |placement: &Placement| -> u128 {
            let mut asked: Vec<(RelationId, Required)> = vec![];
            for input in inputs {
                let required = of_join_input(input, fold.as_ref(), placement);
                let need = (input.relation, required);
                if !asked.contains(&need) {
                    asked.push(need);
                }
            }
            asked.iter().fold(0, |sum: u128, (input, required)| {
                sum.saturating_add(self.way(*input, required).0)
            })
        };
        if keys.is_empty() {
            let everywhere = Placement::all(mesh);
            return match price(&everywhere) {
                0 => everywhere,
                _ => Placement::one(mesh),
            };
        }
        let mut candidates: Vec<Placement> = (0..keys.len() as u32)
            .map(|key| by_one_key(keys, key, mesh))
            .collect();
        for input in inputs {
            let mut placements: Vec<Placement> = self.versions[input.relation.0 as usize]
                .iter()
                .map(|version| self.relations[version.0 as usize].kind.placement.clone())
                .collect();
            placements.push(self.own_placement(input.relation));
            let to = |dim: u32| {
                let joined = *input.keys.get(dim as usize)?;
                match fold {
                    None => Some(joined),
                    Some(fold) => position(&fold.keep, joined),
                }
            };
            let images = placements
                .iter()
                .filter_map(|placement| image(placement, to));
            candidates.extend(images.filter(|placement| {
                let mut roles = placement.roles.iter();
                roles.any(|role| matches!(role, AxisRole::Key(_)))
            }));
        }
        // Partial results whose key dimensions are not all kept have to be shuffled afterwards.
        let dims = &relation.kind.array.dims;
        let partial = |placement: &Placement| {
            let mut roles = placement.roles.iter();
            roles.any(|role| match role {
                AxisRole::Key(key) => dims.iter().all(|dim| dim.cut != Some(*key)),
                _ => false,
            })
        };
        let later = |placement: &Placement| match !kernel.finish && partial(placement) {
            true => floats(keys, &relation.kind.array),
            false => 0,
        };
        let tuples = Amounts::new(keys, mesh, 1, |_, _| 1);
        let busiest = |placement: &Placement| tuples.at_sites(&[placement]).into_iter().max();
        let best = candidates.into_iter().min_by_key(|placement| {
            let price = price(placement).saturating_add(later(placement));
            (price, busiest(placement), placement.clone())
        });
        best.unwrap_or_else(|| Placement::one(mesh))
    }

    /// Where an aggregation runs: where its input is, if groups are whole there, else SHUF(groupBy).
    fn place_aggregate(&self, input: RelationId, group_by: &[u32]) -> Placement {
        let mesh = &self.places.mesh;
        let everywhere = Placement::all(mesh);
        if self.way(input, &Required::At(everywhere.clone())).0 == 0 && mesh.sites() > 1 {
            return everywhere;
        }
        let one = Placement::one(mesh);
        for version in &self.versions[input.0 as usize] {
            let actual = &self.relations[version.0 as usize].kind.placement;
            let here = image(actual, |dim| position(group_by, dim));
            if let Some(here) = here.filter(|here| *here != one || group_by.is_empty()) {
                return here;
            }
        }
        let keys = &self.program.relation(input).kind.keys;
        let kept: Vec<KeyDim> = group_by
            .iter()
            .map(|key| keys[*key as usize].clone())
            .collect();
        spread(&kept, mesh)
    }

    /// The fewest transfers for which a relation can be had as required, and how.
    fn way(&self, id: RelationId, required: &Required) -> (u128, Version) {
        for version in &self.versions[id.0 as usize] {
            let actual = &self.relations[version.0 as usize].kind.placement;
            if satisfies(actual, required, &self.places.mesh) {
                return (0, Version::Use(*version));
            }
        }
        let relation = self.program.relation(id);
        let own = self.first_placement(id);
        let wanted = match required {
            Required::Any => self.own_placement(id),
            Required::At(placement) => placement.clone(),
        };
        let made = self.make_cost(id, &wanted);
        if wanted == own
            && let Some(cost) = made
        {
            return (cost, Version::Make(wanted));
        }
        let f = floats(&relation.kind.keys, &relation.kind.array);
        let moving = f.saturating_mul(u128::from(wanted.copies(&self.places.mesh)));
        let first = if self.versions[id.0 as usize].is_empty() {
            self.make_cost(id, &own).unwrap_or(0)
        } else {
            0
        };
        let moved = first.saturating_add(moving);
        match made {
            Some(cost) if cost <= moved => (cost, Version::Make(wanted)),
            _ => (moved, Version::Move(wanted)),
        }
    }

    /// Returns the cost of making a source or a re-arrangement at a placement; `None` if it cannot be made there, or
    /// is computed by an operator that has run already.
    fn make_cost(&self, id: RelationId, placement: &Placement) -> Option<u128> {
        match &self.program.relation(id).operation {
            tra::Operation::Source { source, .. } => {
                let first = self.versions[id.0 as usize].is_empty();
                let readable = match self.places.rests.get(&id) {
                    Some(rest) => rest == placement,
                    None => self.readable(id, placement),
                };
                (source.is_free() || (readable && first)).then_some(0)
            }
            tra::Operation::Join { .. }
            | tra::Operation::Aggregate { .. }
            | tra::Operation::Transform { .. }
            | tra::Operation::Loop { .. } => None,
            tra::Operation::Window { input } => {
                let (first, from) = match self.base(*input) {
                    Some(base) => (0, self.relations[base.0 as usize].kind.clone()),
                    None => {
                        let own = self.own_placement(*input);
                        let kind = &self.program.relation(*input).kind;
                        (self.make_cost(*input, &own)?, kind.placed(own))
                    }
                };
                let kind = self.program.relation(id).kind.placed(placement.clone());
                let lacking = ein_plan::window::lacking(&from, &kind, &self.places.mesh);
                let lacking = lacking.into_iter().map(u128::from);
                Some(lacking.fold(first, u128::saturating_add))
            }
            _ => {
                let (input, required) = self.arrange(id, placement)?;
                Some(self.way(input, &required).0)
            }
        }
    }

    /// The physical relation that is moved for readers, if there is one yet.
    fn base(&self, id: RelationId) -> Option<RelationId> {
        let first = self.versions[id.0 as usize].first().copied();
        self.bases[id.0 as usize].or(first)
    }

    /// Returns whether a source is read so if nothing is prescribed: once, and by one site only if it cannot be cut.
    fn readable(&self, id: RelationId, placement: &Placement) -> bool {
        let mesh = &self.places.mesh;
        let keyless = self.program.relation(id).kind.keys.is_empty();
        placement.copies(mesh) == 1 && (keyless || *placement != Placement::one(mesh))
    }

    /// The input of a re-arranging operator and where it must be, for the result to be at a placement.
    fn arrange(&self, id: RelationId, placement: &Placement) -> Option<(RelationId, Required)> {
        let relation = self.program.relation(id);
        let input = *relation.operation.inputs().first()?;
        let before = match &relation.operation {
            tra::Operation::Tile { .. } => {
                before_tile(placement, relation.kind.keys.len() as u32 - 1)
            }
            _ => image(placement, |dim| self.key_before(relation, dim))?,
        };
        Some((input, Required::At(before)))
    }

    /// The input's key dimension that is key dimension `dim` of a re-arranged relation.
    fn key_before(&self, relation: &tra::Relation, dim: u32) -> Option<u32> {
        match &relation.operation {
            tra::Operation::Rekey { keys, .. } => keys.get(dim as usize).copied(),
            tra::Operation::Filter { key, .. } => Some(dim + u32::from(dim >= *key)),
            tra::Operation::Concat { input, array_dim } => {
                let dims = &self.program.relation(*input).kind.array.dims;
                Some(dim + u32::from(dim >= concat_key(dims, *array_dim)?))
            }
            _ => Some(dim),
        }
    }

    /// Where a relation is if nobody asks for more: where it rests or is computed; a source spread by its key; a
    /// re-arrangement where its input is, if that leaves its groups whole, else spread by its key.
    fn own_placement(&self, id: RelationId) -> Placement {
        if let Some(rest) = self.places.rests.get(&id) {
            return rest.clone();
        }
        self.first_placement(id)
    }

    /// Where a relation is made, wherever it is to rest: a source is read there, a re-arrangement is made where its input is.
    fn first_placement(&self, id: RelationId) -> Placement {
        if let Some(version) = self.versions[id.0 as usize].first() {
            return self.relations[version.0 as usize].kind.placement.clone();
        }
        let relation = self.program.relation(id);
        if let (tra::Operation::Source { .. }, Some(rest)) =
            (&relation.operation, self.places.rests.get(&id))
        {
            return rest.clone();
        }
        let keys = &relation.kind.keys;
        let inputs = relation.operation.inputs();
        let windows = matches!(relation.operation, tra::Operation::Window { .. });
        let Some(input) = inputs.first().filter(|_| !windows) else {
            return spread(keys, &self.places.mesh);
        };
        let after = image(&self.own_placement(*input), |dim| {
            (0..keys.len() as u32).find(|key| self.key_before(relation, *key) == Some(dim))
        });
        after.unwrap_or_else(|| spread(keys, &self.places.mesh))
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
