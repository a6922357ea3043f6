//! Conditions on keys: which tuples below the frontier a relation has, and what a filter keeps.
//!
//! A condition is a conjunction of `k0 = k1` and `k0 = 3`, kept in one canonical form, so that conditions which mean the same are
//! equal. Must not know relations or arrays.
//!
//! ```text
//! k1 = k0 and k2 = k1 and k0 = 3   is kept as   k0 = 3 and k1 = 3 and k2 = 3
//! ```

use std::fmt;

/// One part of a condition; key dimensions by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// The first, lower position has the same coordinate as the second.
    Equal(u32, u32),
    /// The position has this coordinate.
    Is(u32, u32),
    /// No key at all.
    Never,
}

/// A conjunction of atoms in canonical form; empty holds of every key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Predicate(Vec<Atom>);

impl Predicate {
    /// The conjunction of these atoms.
    pub fn new(atoms: impl IntoIterator<Item = Atom>) -> Predicate {
        let mut equal: Vec<(u32, u32)> = vec![];
        let mut fixed: Vec<(u32, u32)> = vec![];
        for atom in atoms {
            match atom {
                Atom::Equal(a, b) => equal.push((a, b)),
                Atom::Is(a, value) => fixed.push((a, value)),
                Atom::Never => return Predicate(vec![Atom::Never]),
            }
        }
        let most = equal.iter().map(|(a, b)| *a.max(b));
        let most = most.chain(fixed.iter().map(|(a, _)| *a)).max();
        let Some(most) = most else {
            return Predicate::default();
        };
        // The lowest position of each class of equal ones.
        let mut first: Vec<u32> = (0..=most).collect();
        for (a, b) in &equal {
            let (a, b) = (first[*a as usize], first[*b as usize]);
            for entry in &mut first {
                if *entry == a || *entry == b {
                    *entry = a.min(b);
                }
            }
        }
        let mut value: Vec<Option<u32>> = vec![None; first.len()];
        for (a, wanted) in fixed {
            let slot = &mut value[first[a as usize] as usize];
            if slot.is_some_and(|have| have != wanted) {
                return Predicate(vec![Atom::Never]);
            }
            *slot = Some(wanted);
        }
        let mut atoms: Vec<Atom> = (0..=most)
            .filter_map(|position| {
                let lowest = first[position as usize];
                match value[lowest as usize] {
                    Some(value) => Some(Atom::Is(position, value)),
                    None if lowest != position => Some(Atom::Equal(lowest, position)),
                    None => None,
                }
            })
            .collect();
        atoms.sort_unstable();
        Predicate(atoms)
    }

    /// Its atoms, in order.
    pub fn atoms(&self) -> &[Atom] {
        &self.0
    }

    /// Returns whether it holds of every key.
    pub fn is_always(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether it holds of no key.
    pub fn is_never(&self) -> bool {
        self.0 == [Atom::Never]
    }

    /// Both.
    #[must_use]
    pub fn and(&self, other: &Predicate) -> Predicate {
        Predicate::new(self.0.iter().chain(&other.0).copied())
    }

    /// Returns whether it holds of a key that has all its positions.
    pub fn holds(&self, key: &[u32]) -> bool {
        self.0.iter().all(|atom| match atom {
            Atom::Equal(a, b) => key[*a as usize] == key[*b as usize],
            Atom::Is(a, value) => key[*a as usize] == *value,
            Atom::Never => false,
        })
    }

    /// The positions that it speaks of, ascending.
    pub fn positions(&self) -> Vec<u32> {
        let mut positions: Vec<u32> = self
            .0
            .iter()
            .flat_map(|atom| match atom {
                Atom::Equal(a, b) => vec![*a, *b],
                Atom::Is(a, _) => vec![*a],
                Atom::Never => vec![],
            })
            .collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }

    /// Renames the positions; `None` if one has no image.
    pub fn rename(&self, to: impl Fn(u32) -> Option<u32>) -> Option<Predicate> {
        let atoms: Option<Vec<Atom>> = self
            .0
            .iter()
            .map(|atom| {
                Some(match atom {
                    Atom::Equal(a, b) => Atom::Equal(to(*a)?, to(*b)?),
                    Atom::Is(a, value) => Atom::Is(to(*a)?, *value),
                    Atom::Never => Atom::Never,
                })
            })
            .collect();
        atoms.map(Predicate::new)
    }

    /// Returns the predicate of the positions in `keep` (their new numbers are their places there) that follows if this one holds of the
    /// whole key, whatever the others are.
    #[must_use]
    pub fn project(&self, keep: &[u32]) -> Predicate {
        let place = |position: u32| keep.iter().position(|k| *k == position).map(|at| at as u32);
        if self.is_never() {
            return self.clone();
        }
        let mut atoms = vec![];
        for atom in &self.0 {
            if let Atom::Is(a, value) = atom
                && let Some(at) = place(*a)
            {
                atoms.push(Atom::Is(at, *value));
            }
        }
        // Positions of one class stay equal even where the class's lowest is not kept.
        for (at, position) in keep.iter().enumerate() {
            for (other, with) in keep.iter().enumerate().take(at) {
                if self.same(*position, *with) {
                    atoms.push(Atom::Equal(other as u32, at as u32));
                }
            }
        }
        Predicate::new(atoms)
    }

    /// Returns whether it makes two positions equal, without fixing them.
    pub fn same(&self, a: u32, b: u32) -> bool {
        let lowest = |position: u32| {
            let found = self.0.iter().find_map(|atom| match atom {
                Atom::Equal(lowest, p) if *p == position => Some(*lowest),
                _ => None,
            });
            found.unwrap_or(position)
        };
        lowest(a) == lowest(b)
    }

    /// The coordinate at which it fixes a position.
    pub fn value(&self, position: u32) -> Option<u32> {
        self.0.iter().find_map(|atom| match atom {
            Atom::Is(p, value) if *p == position => Some(*value),
            _ => None,
        })
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let atoms: Vec<String> = self
            .0
            .iter()
            .map(|atom| match atom {
                Atom::Equal(a, b) => format!("k{a} = k{b}"),
                Atom::Is(a, value) => format!("k{a} = {value}"),
                Atom::Never => "never".into(),
            })
            .collect();
        f.write_str(&if atoms.is_empty() {
            "always".into()
        } else {
            atoms.join(" and ")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Atom::{Equal, Is};

    #[test]
    fn what_means_the_same_is_equal() {
        let chain = Predicate::new([Equal(0, 1), Equal(2, 1)]);
        assert_eq!(chain, Predicate::new([Equal(2, 0), Equal(1, 0)]));
        assert_eq!(chain.to_string(), "k0 = k1 and k0 = k2");
        let fixed = chain.and(&Predicate::new([Is(1, 3)]));
        assert_eq!(fixed.to_string(), "k0 = 3 and k1 = 3 and k2 = 3");
        assert!(fixed.and(&Predicate::new([Is(0, 2)])).is_never());
        assert_eq!(chain.project(&[1, 2]).to_string(), "k0 = k1");
        assert!(chain.same(1, 2) && chain.holds(&[4, 4, 4]) && !chain.holds(&[4, 4, 5]));
    }
}
