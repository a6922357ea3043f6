//! Groups of values by key: a table where keys are whole numbers that lie close together, a hash table elsewhere.
//!
//! Equal keys are those that `==` calls equal: 0 and -0 are one, and NaN is none. Must not know points.
//!
//! ```text
//! keys 7 9 7, values 1 2 3, sums   ->   7: 4, 9: 2
//! ```

use ein_array::Data;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// A table has at most so many places for each value.
const SPARSE: usize = 4;

/// The keys in an array.
pub(super) enum KeysOf<'a> {
    F32(&'a [f32]),
    F64(&'a [f64]),
    I32(&'a [i32]),
    I64(&'a [i64]),
    Truths(&'a [u8]),
}

impl<'a> KeysOf<'a> {
    /// The elements as keys, if they are of a type that is computed in.
    pub(super) fn new(data: &'a Data) -> Option<KeysOf<'a>> {
        Some(match data {
            Data::F32(keys) => KeysOf::F32(keys),
            Data::F64(keys) => KeysOf::F64(keys),
            Data::I32(keys) => KeysOf::I32(keys),
            Data::I64(keys) => KeysOf::I64(keys),
            Data::Bool(keys) => KeysOf::Truths(keys),
            _ => return None,
        })
    }

    /// A key; `None` for NaN.
    #[inline(always)]
    pub(super) fn at(&self, at: usize) -> Option<i64> {
        let float = |x: f64| (!x.is_nan()).then_some((x + 0.0).to_bits() as i64);
        match self {
            KeysOf::F32(keys) => float(keys[at].into()),
            KeysOf::F64(keys) => float(keys[at]),
            KeysOf::I32(keys) => Some(keys[at].into()),
            KeysOf::I64(keys) => Some(keys[at]),
            KeysOf::Truths(keys) => Some((keys[at] != 0).into()),
        }
    }

    /// The least of some keys and the number of places from it to the greatest, if they are so few that a table has them.
    fn table(&self, all: Range<usize>) -> Option<(i64, usize)> {
        if matches!(self, KeysOf::F32(_) | KeysOf::F64(_)) {
            return None;
        }
        let most = all.len().saturating_mul(SPARSE);
        let keys = all.filter_map(|at| self.at(at));
        let (low, high) = keys.fold((i64::MAX, i64::MIN), |(low, high), key| {
            (low.min(key), high.max(key))
        });
        let places = usize::try_from(i128::from(high) - i128::from(low) + 1).ok()?;
        (places <= most).then_some((low, places))
    }
}

/// The totals of the values, key by key.
pub(super) struct Groups<T> {
    neutral: T,
    /// The least key of a table.
    table: Option<i64>,
    totals: Vec<T>,
    /// Places of keys, where there is no table.
    places: HashMap<i64, usize, BuildHasherDefault<Mixing>>,
    /// The last key that was asked for, with its place.
    last: Option<(i64, usize)>,
}

impl<T: Copy> Groups<T> {
    /// Groups for some keys, with nothing in them.
    pub(super) fn new(keys: &KeysOf<'_>, all: Range<usize>, neutral: T) -> Groups<T> {
        let table = keys.table(all);
        Groups {
            neutral,
            table: table.map(|(low, _)| low),
            totals: vec![neutral; table.map_or(0, |(_, places)| places)],
            places: HashMap::default(),
            last: None,
        }
    }

    /// Takes in a value.
    #[inline(always)]
    pub(super) fn take(&mut self, key: Option<i64>, value: T, next: impl Fn(T, T) -> T) {
        let Some(key) = key else { return };
        let place = match (self.table, self.last) {
            (Some(low), _) => (key - low) as usize,
            (None, Some((last, place))) if last == key => place,
            (None, _) => {
                let fresh = self.totals.len();
                let place = *self.places.entry(key).or_insert(fresh);
                if place == fresh {
                    self.totals.push(self.neutral);
                }
                self.last = Some((key, place));
                place
            }
        };
        self.totals[place] = next(self.totals[place], value);
    }

    /// The total of the values of a key.
    #[inline(always)]
    pub(super) fn of(&self, key: Option<i64>) -> T {
        let Some(key) = key else { return self.neutral };
        let place = match (self.table, self.last) {
            (Some(low), _) => key
                .checked_sub(low)
                .and_then(|place| usize::try_from(place).ok()),
            (None, Some((last, place))) if last == key => Some(place),
            (None, _) => self.places.get(&key).copied(),
        };
        let found = place.and_then(|place| self.totals.get(place));
        found.copied().unwrap_or(self.neutral)
    }
}

/// A hash of a number: a product, with its upper half in the lower one.
#[derive(Default)]
struct Mixing(u64);

impl Hasher for Mixing {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, x: u64) {
        let mixed = u128::from(self.0 ^ x) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (mixed as u64) ^ ((mixed >> 64) as u64);
    }

    fn write_i64(&mut self, x: i64) {
        self.write_u64(x as u64);
    }
}
