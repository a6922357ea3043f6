//! The content of a relation, apart from its place: its key dimensions, the keys that it has, its arrays; and the content that each
//! operator makes of its inputs'.
//!
//! Unlike [`crate::tra::Type`], a relation here may have holes (a filter keeps the frontier and says which keys are left), one key
//! dimension may cut several array dimensions (a diagonal), and names play no part. Must not know placements.
//!
//! ```text
//! {8/2, 8/2 where k0 = k1} [8/k0, 8/k1] f32    REKEY ⟨0⟩    {8/2} [8/k0, 8/k0] f32
//! ```

use super::function::{ArrayFunction, Kernels, Shape};
use super::keys::KeyRange;
use super::language::{Algebra, dim_text};
use super::predicate::{Atom, Predicate};
use ein_plan::{ArrayDim, DType, Reduction, piece};
use std::fmt;

/// The type of a relation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Content {
    /// Key dimensions.
    pub keys: Vec<KeyRange>,
    /// Which keys below the frontier it has; it has one tuple of each.
    pub which: Predicate,
    /// Array dimensions.
    pub dims: Vec<ArrayDim>,
    /// Element types of the arrays' columns.
    pub columns: Vec<DType>,
}

impl From<&crate::tra::Type> for Content {
    fn from(kind: &crate::tra::Type) -> Content {
        Content {
            keys: kind.keys.iter().map(KeyRange::from).collect(),
            which: Predicate::default(),
            dims: kind.array.dims.clone(),
            columns: kind.array.columns.clone(),
        }
    }
}

impl Content {
    /// Number of tuples.
    pub fn tuples(&self) -> u128 {
        (0u32..)
            .zip(&self.keys)
            .filter(|(at, _)| {
                self.which.value(*at).is_none() && (0..*at).all(|b| !self.which.same(b, *at))
            })
            .fold(1, |n, (_, key)| n.saturating_mul(u128::from(key.pieces)))
    }

    /// Number of values as the cost model counts them: tuples times the longest pieces, for every column.
    pub fn floats(&self) -> u128 {
        let bound = |dim: &ArrayDim| match (dim.cut, dim.window) {
            (None, None) => dim.extent,
            (Some(key), _) => dim
                .extent
                .div_ceil(u64::from(self.keys[key as usize].pieces)),
            (None, Some(window)) => {
                let longest = window.key.map_or(1, |key| {
                    let key = &self.keys[key as usize];
                    key.extent.div_ceil(u64::from(key.pieces))
                });
                dim.extent.min(window.most(longest))
            }
        };
        let one = self.columns.len() as u128;
        let bounds = self.dims.iter().map(|dim| u128::from(bound(dim)));
        bounds
            .fold(one, u128::saturating_mul)
            .saturating_mul(self.tuples())
    }

    /// Every key that it has, in row-major order.
    pub fn all_keys(&self) -> Vec<Vec<u32>> {
        let mut keys = vec![vec![]];
        for range in &self.keys {
            keys = keys
                .into_iter()
                .flat_map(|key: Vec<u32>| {
                    (0..range.pieces).map(move |k| key.iter().copied().chain([k]).collect())
                })
                .collect();
        }
        keys.retain(|key| self.which.holds(key));
        keys
    }

    /// The range (start, length) of each array dimension in the tuple with this key.
    pub fn ranges(&self, key: &[u32]) -> Vec<(u64, u64)> {
        let frontier = |number: u32| {
            let range = &self.keys[number as usize];
            (range.extent, range.pieces)
        };
        let dims = self.dims.iter();
        dims.map(|dim| dim.range(frontier, key)).collect()
    }

    /// Where a key dimension is found in a new key of the old positions `keep`: itself, or one that is always equal to it.
    pub fn place(&self, keep: &[u32], key: u32) -> Option<u32> {
        let same = |k: &u32| *k == key;
        let at = keep.iter().position(same);
        let at = at.or_else(|| keep.iter().position(|k| self.which.same(*k, key)));
        at.map(|at| at as u32)
    }

    /// The relation under new keys: new key dimension d is the old `keep[d]`. What is left out must follow from the others, else
    /// keys would meet: `None`.
    pub fn project(&self, keep: &[u32]) -> Option<Content> {
        let named =
            |at: usize, key: &u32| (*key as usize) < self.keys.len() && !keep[..at].contains(key);
        if !keep.iter().enumerate().all(|(at, key)| named(at, key)) {
            return None;
        }
        // Where a key dimension is afterwards, or the coordinate at which it is fixed.
        let after = |key: u32| -> Option<Result<u32, u32>> {
            if let Some(at) = self.place(keep, key) {
                return Some(Ok(at));
            }
            let only = (self.keys[key as usize].pieces == 1).then_some(0);
            self.which.value(key).or(only).map(Err)
        };
        for key in 0..self.keys.len() as u32 {
            let _ = after(key)?;
        }
        let mut dims = self.dims.clone();
        for dim in &mut dims {
            if dim.window.is_some() {
                *dim = moved(dim, |key| after(key)?.ok())?;
            }
            let Some(key) = dim.cut else { continue };
            match after(key)? {
                Ok(at) => dim.cut = Some(at),
                Err(value) => {
                    let pieces = self.keys[key as usize].pieces;
                    *dim = ArrayDim::whole(piece(dim.extent, pieces, value).1);
                }
            }
        }
        Some(Content {
            keys: keep
                .iter()
                .map(|key| self.keys[*key as usize].clone())
                .collect(),
            which: self.which.project(keep),
            dims,
            columns: self.columns.clone(),
        })
    }

    fn shape(&self) -> Shape {
        (self.dims.clone(), self.columns.clone())
    }

    fn extents(&self) -> Vec<u64> {
        self.keys.iter().map(|key| key.extent).collect()
    }

    fn with(self, (dims, columns): Shape) -> Content {
        Content {
            dims,
            columns,
            ..self
        }
    }

    fn filtered(&self, by: &Predicate) -> Option<Content> {
        let known = by.atoms().iter().all(|atom| match atom {
            Atom::Equal(a, b) => {
                let (a, b) = (self.keys.get(*a as usize), self.keys.get(*b as usize));
                a.is_some() && a == b
            }
            Atom::Is(a, value) => self
                .keys
                .get(*a as usize)
                .is_some_and(|k| *value < k.pieces),
            Atom::Never => false,
        });
        let which = self.which.and(by);
        (known && !which.is_never()).then(|| Content {
            which,
            ..self.clone()
        })
    }

    /// The relation with another key dimension number `at`, which has every coordinate.
    fn replicated(&self, at: u32, key: KeyRange) -> Option<Content> {
        if at as usize > self.keys.len() || key.pieces == 0 {
            return None;
        }
        let shift = |k: u32| k + u32::from(k >= at);
        let mut result = self.clone();
        result.keys.insert(at as usize, key);
        result.which = self.which.rename(|k| Some(shift(k)))?;
        for dim in &mut result.dims {
            *dim = moved(dim, |key| Some(shift(key)))?;
        }
        Some(result)
    }

    fn is_windowed(&self) -> bool {
        self.dims.iter().any(|dim| dim.window.is_some())
    }
}

/// An array dimension whose part depends on another number of key dimension; `None` where that has none.
fn moved(dim: &ArrayDim, to: impl Fn(u32) -> Option<u32>) -> Option<ArrayDim> {
    let mut dim = dim.clone();
    if let Some(key) = dim.cut {
        dim.cut = Some(to(key)?);
    }
    if let Some(window) = &mut dim.window
        && let Some(key) = window.key
    {
        window.key = Some(to(key)?);
    }
    Some(dim)
}

/// Returns the content that an operator makes of relations of these types; `None` if it cannot be applied to them.
pub fn result_of(operator: &Algebra, inputs: &[&Content], kernels: &Kernels) -> Option<Content> {
    if let Algebra::Join {
        keys,
        inputs: maps,
        keep,
        function,
    } = operator
    {
        return join(keys, maps, inputs, function, kernels)?.project(keep);
    }
    let [input] = inputs else { return None };
    match operator {
        Algebra::Join { .. } => None,
        Algebra::Aggregate { .. }
        | Algebra::Concat { .. }
        | Algebra::Tile { .. }
        | Algebra::Window { .. }
            if input.is_windowed() =>
        {
            None
        }
        Algebra::Window { keys, dims } => {
            let extents = |dims: &[ArrayDim]| dims.iter().map(|d| d.extent).collect::<Vec<_>>();
            let cuts = |key: u32| input.dims.iter().any(|dim| dim.cut == Some(key));
            let whole = input.which.is_always() && (0..input.keys.len() as u32).all(cuts);
            (whole && extents(&input.dims) == extents(dims)).then(|| Content {
                keys: keys.clone(),
                which: Predicate::default(),
                dims: dims.clone(),
                columns: input.columns.clone(),
            })
        }
        Algebra::Aggregate {
            keep,
            coarse,
            before,
            after,
            reduction,
        } => {
            let functions = (before, after);
            aggregated(input, keep, coarse, functions, *reduction, kernels)
        }
        Algebra::Filter(by) => input.filtered(by),
        Algebra::Map { keys, function } => {
            let shape = function.shape(&[input.shape()], &input.extents(), kernels)?;
            (*input).clone().with(shape).project(keys)
        }
        Algebra::Replicate { at, key } => input.replicated(*at, key.clone()),
        Algebra::Tile { array_dim, key } => {
            let mut result = (*input).clone();
            let new = input.keys.len() as u32;
            let dim = result.dims.get_mut(*array_dim as usize)?;
            if dim.cut.is_some() || dim.extent != key.extent || key.pieces == 0 {
                return None;
            }
            dim.cut = Some(new);
            result.keys.push(key.clone());
            Some(result)
        }
        Algebra::Concat { array_dim } => concatenated(input, *array_dim),
    }
}

/// The aggregate of a relation whose keys `keep` are left, in coarser pieces where `coarse` has some, each array mapped before and after it.
fn aggregated(
    input: &Content,
    keep: &[u32],
    coarse: &[Option<KeyRange>],
    (before, after): (&ArrayFunction, &ArrayFunction),
    reduction: Reduction,
    kernels: &Kernels,
) -> Option<Content> {
    let shape = before.shape(&[input.shape()], &input.extents(), kernels)?;
    let first = shape.1.first()?.compute();
    let carrier = reduction.carrier(first);
    let mapped = input.clone().with(shape);
    let kept =
        |key: &u32| (*key as usize) < mapped.keys.len() && mapped.place(keep, *key).is_some();
    let cuts: Vec<u32> = mapped.dims.iter().filter_map(|dim| dim.cut).collect();
    let twice = keep
        .iter()
        .enumerate()
        .any(|(at, k)| keep[..at].contains(k));
    if carrier != mapped.columns || twice || !keep.iter().chain(&cuts).all(kept) {
        return None;
    }
    let mut dims = mapped.dims.clone();
    for dim in &mut dims {
        dim.cut = dim.cut.and_then(|key| mapped.place(keep, key));
    }
    let mut keys: Vec<KeyRange> = vec![];
    for (at, key) in keep.iter().enumerate() {
        keys.push(match coarse.get(at).and_then(Option::as_ref) {
            None => mapped.keys[*key as usize].clone(),
            Some(_) if cuts.iter().any(|cut| mapped.which.same(*cut, *key)) => return None,
            Some(_) if mapped.which.positions().contains(key) => return None,
            Some(range) => range.clone(),
        });
    }
    let result = Content {
        keys,
        which: mapped.which.project(keep),
        dims,
        columns: mapped.columns.clone(),
    };
    let shape = after.shape(&[result.shape()], &result.extents(), kernels)?;
    Some(result.with(shape))
}

/// A relation whose arrays are joined along the dimension that a key cuts.
fn concatenated(input: &Content, array_dim: u32) -> Option<Content> {
    let key = input.dims.get(array_dim as usize)?.cut?;
    let cuts = input.dims.iter().filter(|dim| dim.cut == Some(key)).count();
    if cuts != 1 || input.which.positions().contains(&key) {
        return None;
    }
    let mut result = (*input).clone();
    result.keys.remove(key as usize);
    let shift = |k: u32| k - u32::from(k > key);
    result.which = input.which.rename(|k| Some(shift(k)))?;
    for dim in &mut result.dims {
        dim.cut = dim.cut.filter(|k| *k != key).map(shift);
    }
    Some(result)
}

/// The joined relation, before any key map.
fn join(
    keys: &[KeyRange],
    maps: &[Vec<u32>],
    inputs: &[&Content],
    function: &ArrayFunction,
    kernels: &Kernels,
) -> Option<Content> {
    if maps.len() != inputs.len() || keys.iter().any(|key| key.pieces == 0) {
        return None;
    }
    let mut which = Predicate::default();
    let mut shapes = vec![];
    for (map, input) in maps.iter().zip(inputs) {
        let fits = map.len() == input.keys.len()
            && map
                .iter()
                .zip(&input.keys)
                .enumerate()
                .all(|(at, (to, key))| {
                    keys.get(*to as usize) == Some(key) && !map[..at].contains(to)
                });
        if !fits {
            return None;
        }
        let joined = |key: u32| map.get(key as usize).copied();
        which = which.and(&input.which.rename(joined)?);
        let mut shape = input.shape();
        for dim in &mut shape.0 {
            *dim = moved(dim, joined)?;
        }
        shapes.push(shape);
    }
    if which.is_never() {
        return None;
    }
    let extents: Vec<u64> = keys.iter().map(|key| key.extent).collect();
    let (dims, columns) = function.shape(&shapes, &extents, kernels)?;
    Some(Content {
        keys: keys.to_vec(),
        which,
        dims,
        columns,
    })
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys: Vec<String> = self
            .keys
            .iter()
            .map(|key| format!("{}/{}", key.extent, key.pieces))
            .collect();
        let which = match self.which.is_always() {
            true => String::new(),
            false => format!(" where {}", self.which),
        };
        let dims: Vec<String> = self.dims.iter().map(dim_text).collect();
        let columns: Vec<&str> = self.columns.iter().map(|column| column.name()).collect();
        let (keys, dims) = (keys.join(", "), dims.join(", "));
        write!(f, "{{{keys}{which}}} [{dims}] {}", columns.join(", "))
    }
}
