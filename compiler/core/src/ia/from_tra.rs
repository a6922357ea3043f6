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
//!
//! A join is placed where its inputs cost the fewest transfers. Sources and the operators that only re-arrange
//! tuples (REKEY, σ, TILE, CONCAT) are translated when an operator asks for them, at the placement that it
//! asks for: a tensor that is wanted whole at every site is broadcast in pieces and put together there. Must not
//! know chunkings, nor plans.
//!
//! ```text
//! C = join(A{i}, B{})   A @ PART(i), B @ PART()   gives   B.all = broadcast B; C = local join(A{i}, B.all{})
//! ```

use super::placement::{Required, concat_key, image, of_join_input, position, satisfies};
use super::{Operation, Program, Relation, floats};
use crate::tra;
use ein_plan::{JoinInput, Placement, RelationId, RelationType};

/// Translates a program for that many sites, at least one.
pub fn from_tra(program: &tra::Program, sites: u32) -> Result<Program, String> {
    let mut translation = Translation {
        program,
        sites: sites.max(1),
        versions: vec![vec![]; program.relations.len()],
        relations: vec![],
        names: tra::Names::taken(program.relations.iter().map(|r| r.name.as_str())),
    };
    for number in 0..program.relations.len() {
        translation.operator(RelationId(number as u32))?;
    }
    let mut outputs = vec![];
    for output in &program.outputs {
        outputs.push(tra::Output {
            relation: translation.realize(output.relation, &Required::Any)?,
            ..output.clone()
        });
    }
    let mut result = Program {
        sites: translation.sites,
        relations: translation.relations,
        outputs,
        files: program.files.clone(),
    };
    drop_unused(&mut result);
    Ok(result)
}

/// How a relation of the TRA program can be had at a placement.
enum Way {
    /// It is there already.
    Use(RelationId),
    /// Made there: a source, or a re-arrangement of its input at a placement.
    Make(Placement),
    /// Made at its own placement, if it is not there yet, and then moved.
    Move(Placement),
}

struct Translation<'a> {
    program: &'a tra::Program,
    sites: u32,
    /// By TRA relation: its physical relations, no two at one placement.
    versions: Vec<Vec<RelationId>>,
    relations: Vec<Relation>,
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
            | tra::Operation::Concat { .. } => {}
            tra::Operation::Join {
                inputs,
                kernel,
                ranges,
            } => {
                let placement = self.place_join(relation, inputs);
                let mut placed = vec![];
                for input in inputs {
                    let required = of_join_input(input, &placement);
                    placed.push(JoinInput {
                        relation: self.realize(input.relation, &required)?,
                        keys: input.keys.clone(),
                    });
                }
                let operation = Operation::LocalJoin {
                    inputs: placed,
                    kernel: kernel.clone(),
                    ranges: ranges.clone(),
                };
                self.push(id, placement, operation);
            }
            tra::Operation::Aggregate {
                input,
                group_by,
                reduction,
            } => {
                let placement = self.place_aggregate(*input, group_by);
                let required = match &placement {
                    Placement::All => Required::All,
                    Placement::Part(dims) => Required::Part(
                        image(dims, |dim| group_by.get(dim as usize).copied())
                            .ok_or("an aggregation cannot be placed")?,
                    ),
                };
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
    fn place_join(&self, relation: &tra::Relation, inputs: &[JoinInput]) -> Placement {
        let keys = &relation.kind.keys;
        let price = |placement: &Placement| -> u128 {
            let mut asked: Vec<(RelationId, Required)> = vec![];
            for input in inputs {
                let need = (input.relation, of_join_input(input, placement));
                if !asked.contains(&need) {
                    asked.push(need);
                }
            }
            asked.iter().fold(0, |sum: u128, (input, required)| {
                sum.saturating_add(self.way(*input, required).0)
            })
        };
        if keys.is_empty() {
            return if price(&Placement::All) == 0 {
                Placement::All
            } else {
                Placement::Part(vec![])
            };
        }
        let mut candidates: Vec<Vec<u32>> = (0..keys.len() as u32).map(|key| vec![key]).collect();
        candidates.push((0..keys.len() as u32).collect());
        for input in inputs {
            let mut placements: Vec<Placement> = self.versions[input.relation.0 as usize]
                .iter()
                .map(|version| self.relations[version.0 as usize].kind.placement.clone())
                .collect();
            placements.push(self.own_placement(input.relation));
            for placement in placements {
                if let Placement::Part(dims) = placement
                    && let Some(dims) = image(&dims, |dim| input.keys.get(dim as usize).copied())
                    && !dims.is_empty()
                {
                    candidates.push(dims);
                }
            }
        }
        // Partial results whose key dimensions are not all kept have to be shuffled afterwards.
        let kept = |key: &u32| {
            let dims = &relation.kind.array.dims;
            dims.iter().any(|dim| dim.cut == Some(*key))
        };
        let later = |dims: &[u32]| match &relation.operation {
            tra::Operation::Join { kernel, .. } if !kernel.finish && !dims.iter().all(kept) => {
                floats(keys, &relation.kind.array)
            }
            _ => 0,
        };
        let best = candidates.into_iter().min_by_key(|dims| {
            let price = price(&Placement::Part(dims.clone())).saturating_add(later(dims));
            (price, self.busiest(keys, dims), dims.clone())
        });
        Placement::Part(best.unwrap_or_default())
    }

    /// Tuples of the busiest site, if tuples are placed by `dims`.
    fn busiest(&self, keys: &[ein_plan::KeyDim], dims: &[u32]) -> u128 {
        let product = |of: &dyn Fn(u32) -> bool| {
            (0u32..)
                .zip(keys)
                .filter(|(number, _)| of(*number))
                .fold(1u128, |n, (_, key)| {
                    n.saturating_mul(u128::from(key.pieces))
                })
        };
        let values = product(&|key| dims.contains(&key));
        let each = product(&|key| !dims.contains(&key));
        values.div_ceil(u128::from(self.sites)).saturating_mul(each)
    }

    /// Where an aggregation runs: where its input is, if groups are whole there, else SHUF(groupBy).
    fn place_aggregate(&self, input: RelationId, group_by: &[u32]) -> Placement {
        if self.way(input, &Required::All).0 == 0 && self.sites > 1 {
            return Placement::All;
        }
        for version in &self.versions[input.0 as usize] {
            let Placement::Part(dims) = &self.relations[version.0 as usize].kind.placement else {
                continue;
            };
            if (!dims.is_empty() || group_by.is_empty())
                && let Some(dims) = image(dims, |dim| position(group_by, dim))
            {
                return Placement::Part(dims);
            }
        }
        let keys = &self.program.relation(input).kind.keys;
        let ascending = group_by.windows(2).all(|pair| pair[0] < pair[1]);
        if ascending {
            return Placement::Part((0..group_by.len() as u32).collect());
        }
        // A permuted key has another mapping; one dimension keeps it.
        let longest = (0..group_by.len() as u32).max_by_key(|at| {
            let key = group_by[*at as usize];
            (keys[key as usize].pieces, std::cmp::Reverse(*at))
        });
        Placement::Part(longest.into_iter().collect())
    }

    /// The fewest transfers for which a relation can be had as required, and how.
    fn way(&self, id: RelationId, required: &Required) -> (u128, Way) {
        for version in &self.versions[id.0 as usize] {
            let actual = &self.relations[version.0 as usize].kind.placement;
            if satisfies(actual, required, self.sites) {
                return (0, Way::Use(*version));
            }
        }
        let relation = self.program.relation(id);
        let own = self.own_placement(id);
        let wanted = required.placement().unwrap_or_else(|| own.clone());
        let made = self.make_cost(id, &wanted);
        if wanted == own
            && let Some(cost) = made
        {
            return (cost, Way::Make(wanted));
        }
        let f = floats(&relation.kind.keys, &relation.kind.array);
        let moving = match &wanted {
            Placement::All => f.saturating_mul(u128::from(self.sites)),
            Placement::Part(_) => f,
        };
        let first = if self.versions[id.0 as usize].is_empty() {
            self.make_cost(id, &own).unwrap_or(0)
        } else {
            0
        };
        let moved = first.saturating_add(moving);
        match made {
            Some(cost) if cost <= moved => (cost, Way::Make(wanted)),
            _ => (moved, Way::Move(wanted)),
        }
    }

    /// What it costs to make a source or a re-arrangement at a placement; `None` if it cannot be made there, or
    /// is computed by an operator that has run already.
    fn make_cost(&self, id: RelationId, placement: &Placement) -> Option<u128> {
        match &self.program.relation(id).operation {
            tra::Operation::Source { source, .. } => {
                let keyless = self.program.relation(id).kind.keys.is_empty();
                let readable = match placement {
                    Placement::All => false,
                    // Everything read by one site is only for what cannot be cut.
                    Placement::Part(dims) => keyless || !dims.is_empty(),
                };
                let first = self.versions[id.0 as usize].is_empty();
                (source.is_free() || (readable && first)).then_some(0)
            }
            tra::Operation::Join { .. }
            | tra::Operation::Aggregate { .. }
            | tra::Operation::Transform { .. } => None,
            _ => {
                let (input, required) = self.arrange(id, placement)?;
                Some(self.way(input, &required).0)
            }
        }
    }

    /// The input of a re-arranging operator and where it must be, for the result to be at a placement.
    fn arrange(&self, id: RelationId, placement: &Placement) -> Option<(RelationId, Required)> {
        let relation = self.program.relation(id);
        let input = *relation.operation.inputs().first()?;
        let Placement::Part(dims) = placement else {
            return Some((input, Required::All));
        };
        let required = match &relation.operation {
            tra::Operation::Tile { .. } => {
                let new = relation.kind.keys.len() as u32 - 1;
                if dims.contains(&new) {
                    Required::All
                } else {
                    Required::Part(dims.clone())
                }
            }
            _ => Required::Part(image(dims, |dim| self.key_before(relation, dim))?),
        };
        Some((input, required))
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

    /// Where a relation is if nobody asks for more: computed ones where they are; a source cut by its whole
    /// key; a re-arrangement where its input is, if that leaves its groups whole, else SHUF by its whole key.
    fn own_placement(&self, id: RelationId) -> Placement {
        if let Some(version) = self.versions[id.0 as usize].first() {
            return self.relations[version.0 as usize].kind.placement.clone();
        }
        let relation = self.program.relation(id);
        let keys = relation.kind.keys.len() as u32;
        let inputs = relation.operation.inputs();
        let Some(input) = inputs.first() else {
            return Placement::Part((0..keys).collect());
        };
        let before = match self.own_placement(*input) {
            Placement::All => return Placement::All,
            Placement::Part(dims) => dims,
        };
        let after = image(&before, |dim| {
            (0..keys).find(|key| self.key_before(relation, *key) == Some(dim))
        });
        match (after, &relation.operation) {
            (Some(dims), _) => Placement::Part(dims),
            // A permuted key has another mapping; one dimension keeps it.
            (None, tra::Operation::Rekey { .. }) => Placement::Part((0..keys.min(1)).collect()),
            (None, _) => Placement::Part((0..keys).collect()),
        }
    }

    /// A physical relation of a TRA relation where it is required.
    fn realize(&mut self, id: RelationId, required: &Required) -> Result<RelationId, String> {
        match self.way(id, required).1 {
            Way::Use(version) => Ok(version),
            Way::Make(placement) => self.make(id, placement),
            Way::Move(placement) => {
                let from = match self.versions[id.0 as usize].first() {
                    Some(version) => *version,
                    None => self.make(id, self.own_placement(id))?,
                };
                let operation = match placement {
                    Placement::All => Operation::Broadcast { input: from },
                    Placement::Part(_) => Operation::Shuffle { input: from },
                };
                Ok(self.push(id, placement, operation))
            }
        }
    }

    fn make(&mut self, id: RelationId, placement: Placement) -> Result<RelationId, String> {
        let operation = match &self.program.relation(id).operation {
            tra::Operation::Source { name, source } => Operation::Source {
                name: name.clone(),
                source: source.clone(),
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
            origin: relation.origin,
        });
        self.versions[id.0 as usize].push(made);
        made
    }
}

/// A placement in a relation's name: `all`, `one`, or `by` the key dimensions.
fn placement_name(placement: &Placement, keys: &[ein_plan::KeyDim]) -> String {
    match placement {
        Placement::All => "all".into(),
        Placement::Part(dims) if dims.is_empty() => "one".into(),
        Placement::Part(dims) => {
            let names: Vec<&str> = dims
                .iter()
                .filter_map(|dim| keys.get(*dim as usize))
                .map(|key| key.name.as_str())
                .collect();
            format!("by.{}", names.join("."))
        }
    }
}

/// Drops the relations that no output needs.
fn drop_unused(program: &mut Program) {
    let mut used = vec![false; program.relations.len()];
    for output in &program.outputs {
        used[output.relation.0 as usize] = true;
    }
    for at in (0..used.len()).rev() {
        if used[at] {
            for input in program.relations[at].operation.inputs() {
                used[input.0 as usize] = true;
            }
        }
    }
    let mut moved = vec![RelationId(0); used.len()];
    let mut kept = 0;
    for (at, used) in used.iter().enumerate() {
        moved[at] = RelationId(kept);
        kept += u32::from(*used);
    }
    let mut position = 0;
    program.relations.retain(|_| {
        position += 1;
        used[position - 1]
    });
    for relation in &mut program.relations {
        relation.operation.rename(|id| moved[id.0 as usize]);
    }
    for output in &mut program.outputs {
        output.relation = moved[output.relation.0 as usize];
    }
}
