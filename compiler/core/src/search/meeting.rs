//! Places that reduced indices give, and those at which several of their values may meet.
//!
//! Must not know which values those are.
//!
//! ```text
//! 2 * y + r == p with y < 4, r < 3   ->   p = 2 · (y + t) + o with r = 2 · t + o:   2 phases o, 2 turns t, 5 places y + t
//! ```

use ein_plan::{Affine, Function, IndexId, Kernel, Node, NodeId};

/// A place in the result that reduced indices say: `Σ weight · index = place`.
pub(super) struct Placed {
    /// The place, in terms of the indices of the result.
    pub(super) place: Affine,
    /// The reduced indices with their weights, the heaviest first. An index with a negative weight is counted from its end.
    pub(super) terms: Vec<(IndexId, i64)>,
}

impl Placed {
    /// Of a condition, if it is one that says so.
    pub(super) fn of(kernel: &Kernel, condition: NodeId) -> Option<Placed> {
        let Node::Apply(Function::Eq, sides) = kernel.graph.node(condition) else {
            return None;
        };
        let (one, other) = (
            kernel.graph.as_affine(sides[0])?,
            kernel.graph.as_affine(sides[1])?,
        );
        let rank = kernel.output_rank;
        let reduced = |index: IndexId| index.0 >= rank;
        let is_place = |form: &Affine| {
            let mut indices = form.terms.iter();
            !form.terms.is_empty() && indices.all(|(index, _)| !reduced(*index))
        };
        let is_value = |form: &Affine| {
            let mut indices = form.terms.iter();
            !form.terms.is_empty() && indices.all(|(index, _)| reduced(*index))
        };
        let (value, mut place) = match (is_value(&one), is_value(&other)) {
            (true, false) if is_place(&other) => (one, other),
            (false, true) if is_place(&one) => (other, one),
            _ => return None,
        };
        let extent = |index: &IndexId| i64::try_from(kernel.indices[index.0 as usize].extent).ok();
        place.constant = place.constant.checked_sub(value.constant)?;
        let mut terms = value.terms;
        for (index, weight) in &terms {
            if *weight < 0 {
                let end = weight.checked_mul(extent(index)?.checked_sub(1)?)?;
                place.constant = place.constant.checked_sub(end)?;
            }
        }
        terms.sort_by_key(|(_, weight)| std::cmp::Reverse(weight.unsigned_abs()));
        Some(Placed { place, terms })
    }

    /// How many places the indices give, if they are digits: no two choices of them give the same.
    pub(super) fn digits(&self, kernel: &Kernel) -> Option<u64> {
        let extent = |index: &IndexId| i64::try_from(kernel.indices[index.0 as usize].extent).ok();
        // Lighter digits never reach the weight of a heavier one.
        let mut reach = 0i64;
        let mut values = 1u64;
        for (index, weight) in self.terms.iter().rev() {
            let count = extent(index)?;
            let weight = weight.checked_abs()?;
            if count < 1 || reach >= weight {
                return None;
            }
            reach = reach.checked_add(weight.checked_mul(count - 1)?)?;
            values = values.saturating_mul(count.unsigned_abs());
        }
        Some(values)
    }
}

/// A place that one or two indices give: `unit · (phases · far + near) = place`.
pub(super) struct Meeting {
    pub(super) place: Affine,
    pub(super) unit: i64,
    /// How many values of `near` lie between two of `far`.
    pub(super) phases: i64,
    pub(super) far: Digit,
    pub(super) near: Option<Digit>,
}

/// An index as it counts in a place.
pub(super) struct Digit {
    pub(super) index: IndexId,
    pub(super) extent: i64,
    /// True if it is counted from its end.
    pub(super) turned: bool,
}

impl Meeting {
    pub(super) fn of(kernel: &Kernel, condition: NodeId) -> Option<Meeting> {
        let Placed { place, terms } = Placed::of(kernel, condition)?;
        let digit = |&(index, weight): &(IndexId, i64)| {
            let extent = i64::try_from(kernel.indices[index.0 as usize].extent).ok()?;
            let turned = weight < 0;
            (extent > 0).then_some(Digit {
                index,
                extent,
                turned,
            })
        };
        let (mut far, mut near) = match &terms[..] {
            [far] => (digit(far)?, None),
            [far, near] => (digit(far)?, Some(digit(near)?)),
            _ => return None,
        };
        let (most, unit) = (terms[0].1.checked_abs()?, terms.last()?.1.checked_abs()?);
        if let Some(near) = &mut near
            && most == unit
            && far.extent < near.extent
        {
            std::mem::swap(&mut far, near);
        }
        (most % unit == 0).then_some(Meeting {
            place,
            unit,
            phases: most / unit,
            far,
            near,
        })
    }

    /// How many values of `near` of one phase there are.
    pub(super) fn turns(&self) -> i64 {
        self.near()
            .map_or(1, |near| (near.extent - 1) / self.phases + 1)
    }

    /// How many phases have values.
    pub(super) fn taken(&self) -> i64 {
        self.near().map_or(1, |near| near.extent.min(self.phases))
    }

    pub(super) fn near(&self) -> Option<&Digit> {
        self.near.as_ref()
    }

    /// How many places of one phase there are.
    pub(super) fn places(&self) -> Option<i64> {
        self.far.extent.checked_add(self.turns() - 1)
    }

    pub(super) fn indices(&self) -> impl Iterator<Item = IndexId> {
        let near = self.near().map(|near| near.index);
        [self.far.index].into_iter().chain(near)
    }

    /// True if its places are those of the result, all of one phase.
    pub(super) fn is_plain(&self) -> bool {
        self.unit == 1 && self.phases == 1
    }

    /// Points of the sums by points of the scatter.
    pub(super) fn points(&self, kernel: &Kernel) -> Option<(u64, u64)> {
        let extent = |(index, _): &(IndexId, i64)| kernel.indices[index.0 as usize].extent;
        let places = match self.is_plain() {
            true => self
                .place
                .terms
                .iter()
                .map(extent)
                .try_fold(1, u64::checked_mul)?,
            false => u64::try_from(self.places()?).ok()?,
        };
        let turns = u64::try_from(self.turns().checked_mul(self.taken())?).ok()?;
        let near = self.near().map_or(1, |near| near.extent);
        let all = u64::try_from(self.far.extent.checked_mul(near)?).ok()?;
        Some((places.checked_mul(turns)?, all))
    }

    /// Returns true if both name one index.
    pub(super) fn shares(&self, other: &Meeting) -> bool {
        let place = |index: &IndexId| other.place.terms.iter().any(|(i, _)| i == index);
        self.indices()
            .any(|index| other.indices().any(|i| i == index))
            || self.place.terms.iter().any(|(index, _)| place(index))
    }
}
