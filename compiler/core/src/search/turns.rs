//! Axes of equal counts that lie alike over nodes, which can take each other's roles: prices stay as they are where every placement is turned alike, but
//! those of windows.
//!
//! Must not know prices.
//!
//! ```text
//! 2x2: (Cut(1), Every) -> (Cut(0), Cut(1)) costs what (Every, Cut(1)) -> (Cut(1), Cut(0)) does
//! ```

use super::machine::Levels;
use super::mesh::AXES;
use super::transfer::{Counts, Roles, is_windowed};
use rustc_hash::FxHashMap;

/// Returns whether prices stay as they are where two axes change places: they have the same count, and lie alike over nodes.
pub(super) fn alike(counts: Counts, levels: Option<&Levels>, one: usize, other: usize) -> bool {
    counts[one] == counts[other] && levels.is_none_or(|levels| levels.alike(one, other))
}

/// The groups of axes that are alike.
pub(super) fn equal_axes(counts: Counts, levels: Option<&Levels>) -> Vec<Vec<usize>> {
    let groups = (0..AXES).map(|axis| -> Vec<usize> {
        let equal = (0..AXES).filter(|other| alike(counts, levels, *other, axis));
        equal.collect()
    });
    groups
        .enumerate()
        .filter(|(axis, group)| group.len() > 1 && group[0] == *axis && counts[*axis] > 1)
        .map(|(_, group)| group)
        .collect()
}

/// Roles with those of each group of axes in ascending order.
pub(super) fn turned<T: Ord + Copy>(roles: [T; AXES], groups: &[Vec<usize>]) -> [T; AXES] {
    let order = order(&roles, groups);
    order.map(|axis| roles[axis])
}

/// By axis: the axis whose role it has where the roles of each group are in ascending order.
fn order<T: Ord + Copy>(roles: &[T; AXES], groups: &[Vec<usize>]) -> [usize; AXES] {
    let mut order = std::array::from_fn(|axis| axis);
    for group in groups {
        let mut own = group.clone();
        own.sort_by_key(|axis| roles[*axis]);
        for (axis, from) in group.iter().zip(own) {
            order[*axis] = from;
        }
    }
    order
}

/// Entries of a table between placements that are earlier entries with axes turned.
pub(super) struct Turns {
    /// By row: an earlier one that it is turned, and by column the column there.
    rows: Vec<Option<(usize, usize)>>,
    columns: Vec<Vec<Option<usize>>>,
}

impl Turns {
    /// The turns of a table between what is given and what is needed, several placements at once. In windows the order of axes
    /// matters: it says which of the pieces a site has.
    pub(super) fn new(groups: &[Vec<usize>], gives: &[Roles], needs: &[Vec<Roles>]) -> Turns {
        let numbered = needs.iter().enumerate();
        let plain = numbered.filter(|(_, needs)| !needs.iter().any(|to| is_windowed(*to)));
        let places: FxHashMap<&[Roles], usize> = plain
            .map(|(column, needs)| (needs.as_slice(), column))
            .collect();
        let turn = |order: [usize; AXES]| -> Vec<Option<usize>> {
            let columns = needs.iter().map(|needs| {
                let turned = needs.iter().map(|roles| order.map(|axis| roles[axis]));
                let mut turned: Vec<Roles> = turned.collect();
                turned.sort_unstable();
                places.get(turned.as_slice()).copied()
            });
            columns.collect()
        };
        let mut turns = Turns {
            rows: vec![],
            columns: vec![],
        };
        // By placement with its roles in order: the first row that is it turned, and how it is turned.
        let mut first: FxHashMap<Roles, (usize, [usize; AXES])> = FxHashMap::default();
        let mut made: FxHashMap<[usize; AXES], usize> = FxHashMap::default();
        for (row, roles) in gives.iter().enumerate() {
            let to = order(roles, groups);
            let entry = first.entry(to.map(|axis| roles[axis]));
            let (before, from) = *entry.or_insert((row, to));
            // Axis `from[a]` of the earlier row has the role that axis `to[a]` has here.
            let mut there = [0; AXES];
            for (from, to) in from.into_iter().zip(to) {
                there[from] = to;
            }
            turns.rows.push((before < row).then(|| {
                let columns = made.entry(there).or_insert_with(|| {
                    turns.columns.push(turn(there));
                    turns.columns.len() - 1
                });
                (before, *columns)
            }));
        }
        turns
    }

    /// The row and the column of an earlier entry that an entry is turned; none for entries of their own.
    pub(super) fn before(&self, row: usize, column: usize) -> Option<(usize, usize)> {
        let (before, columns) = self.rows[row]?;
        Some((before, self.columns[columns][column]?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ia::layout::TensorRole::{Cut, Every};

    #[test]
    fn entries_are_earlier_ones_turned() {
        let gives = [[Cut(0), Every, Cut(1)], [Cut(1), Cut(0), Every]];
        let needs = [vec![[Cut(2), Every, Cut(3)]], vec![[Cut(3), Cut(2), Every]]];
        let groups = equal_axes([2, 2, 2], None);
        let turns = Turns::new(&groups, &gives, &needs);
        assert_eq!(turns.before(0, 0), None);
        // The second column is the first one turned as the second row is; no column is the first one turned so.
        assert_eq!(turns.before(1, 0), None);
        assert_eq!(turns.before(1, 1), Some((0, 0)));
        let [first, second] = [[Every, Cut(0), Every], [Cut(0), Every, Every]];
        let needs = [vec![first], vec![second]];
        let groups = equal_axes([2, 2, 3], None);
        let turns = Turns::new(&groups, &[first, second], &needs);
        assert_eq!(turns.before(1, 0), Some((0, 1)));
        assert_eq!(equal_axes([2, 3, 1], None), Vec::<Vec<usize>>::new());
        assert_eq!(turned([3, 1, 2], &equal_axes([2, 2, 2], None)), [1, 2, 3]);
    }
}
