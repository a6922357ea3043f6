//! Where operators run for which nothing is prescribed, and how their inputs are had there for the fewest transfers.
//!
//! Must not make relations: it looks at those that are there.
//!
//! ```text
//! A @ PART(i), B @ ONE, join on i   ->   @ PART(i): B is broadcast, which costs less than to gather A
//! ```

use super::super::floats;
use super::super::placement::{
    Required, before_tile, by_one_key, concat_key, image, of_join_input, position, satisfies,
    spread,
};
use super::{Translation, Version};
use crate::tra;
use ein_plan::amounts::Amounts;
use ein_plan::{AxisRole, KeyDim, Placement, RelationId};

impl Translation<'_> {
    /// Where a join costs the fewest transfers; then where its busiest site has the fewest tuples. A join
    /// without key dimensions runs everywhere if that costs nothing, else at one site.
    pub(super) fn place_join(&self, relation: &tra::Relation) -> Placement {
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
    pub(super) fn place_aggregate(&self, input: RelationId, group_by: &[u32]) -> Placement {
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
    pub(super) fn way(&self, id: RelationId, required: &Required) -> (u128, Version) {
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
    pub(super) fn make_cost(&self, id: RelationId, placement: &Placement) -> Option<u128> {
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
    pub(super) fn base(&self, id: RelationId) -> Option<RelationId> {
        let first = self.versions[id.0 as usize].first().copied();
        self.bases[id.0 as usize].or(first)
    }

    /// Returns whether a source is read so if nothing is prescribed: once, and by one site only if it cannot be cut.
    pub(super) fn readable(&self, id: RelationId, placement: &Placement) -> bool {
        let mesh = &self.places.mesh;
        let keyless = self.program.relation(id).kind.keys.is_empty();
        placement.copies(mesh) == 1 && (keyless || *placement != Placement::one(mesh))
    }

    /// The input of a re-arranging operator and where it must be, for the result to be at a placement.
    pub(super) fn arrange(
        &self,
        id: RelationId,
        placement: &Placement,
    ) -> Option<(RelationId, Required)> {
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
    pub(super) fn key_before(&self, relation: &tra::Relation, dim: u32) -> Option<u32> {
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
    pub(super) fn own_placement(&self, id: RelationId) -> Placement {
        if let Some(rest) = self.places.rests.get(&id) {
            return rest.clone();
        }
        self.first_placement(id)
    }

    /// Where a relation is made, wherever it is to rest: a source is read there, a re-arrangement is made where its input is.
    pub(super) fn first_placement(&self, id: RelationId) -> Placement {
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
}
