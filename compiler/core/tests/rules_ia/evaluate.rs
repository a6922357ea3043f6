//! The reference evaluator: what every term is as triples (key, array, site), with nothing taken from the rules.

use crate::support::Numbers;
use ein_plan::{
    ArrayDim, ArrayType, DType, JoinInput, KeyDim, Mesh, Range, Reduction, RelationId, Scalar,
};
use einc_core::rules::ia::content::{self, Content};
use einc_core::rules::ia::function::{ArrayFunction, Kernels};
use einc_core::rules::ia::graph::{Facts, Kind};
use einc_core::rules::ia::keys::KeyRange;
use einc_core::rules::ia::language::{Algebra, Operator};
use einc_core::rules::ia::{Placement, Role};
use einc_core::tra::Type;
use einc_core::tra::chunk::Chunk;
use einc_core::tra::chunks;
use std::collections::BTreeMap;

/// Pairs (key, array).
pub type Pairs = BTreeMap<Vec<u32>, Chunk>;

/// A content, or a physical relation by site, with its kind as the e-graph states it.
#[derive(Clone, Debug)]
pub struct Value {
    pub kind: Kind,
    pub sites: Vec<Pairs>,
}

fn names(keys: &[KeyRange]) -> Vec<KeyDim> {
    let dim = |(at, key): (usize, &KeyRange)| KeyDim {
        name: format!("k{at}"),
        extent: key.extent,
        pieces: key.pieces,
        axes: key.axes.clone(),
    };
    keys.iter().enumerate().map(dim).collect()
}

fn kind_of(keys: &[KeyRange], dims: &[ArrayDim], columns: &[DType]) -> Type {
    Type {
        keys: names(keys),
        array: ArrayType {
            dims: dims.to_vec(),
            columns: columns.to_vec(),
        },
    }
}

/// Two carriers as one.
fn combine(reduction: Reduction, columns: &[DType], a: &Chunk, b: &Chunk) -> Chunk {
    let two = [KeyRange {
        extent: 2,
        pieces: 2,
        axes: vec![],
    }];
    let dims: Vec<ArrayDim> = a.shape.iter().map(|n| ArrayDim::whole(*n)).collect();
    let kind = kind_of(&two, &dims, columns);
    let pairs = Pairs::from([(vec![0], a.clone()), (vec![1], b.clone())]);
    let mut result = chunks::aggregate(&pairs, &kind, &[], reduction, &[vec![]]).unwrap();
    result.remove(&vec![]).unwrap()
}

type Operand = (Chunk, Vec<ArrayDim>, Vec<DType>);

fn compute(
    f: &ArrayFunction,
    operands: &[Operand],
    key: &[u32],
    keys: &[KeyRange],
    kernels: &Kernels,
) -> Chunk {
    let (kernel, ranges, arguments) = match f {
        ArrayFunction::Operand(n) => return operands[*n as usize].0.clone(),
        ArrayFunction::Apply {
            kernel,
            ranges,
            arguments,
        } => (*kernel, ranges, arguments),
    };
    let shapes: Vec<_> = operands
        .iter()
        .map(|(_, dims, columns)| (dims.clone(), columns.clone()))
        .collect();
    let extents: Vec<u64> = keys.iter().map(|k| k.extent).collect();
    let inner: Vec<(Pairs, Type)> = arguments
        .iter()
        .map(|argument| {
            let chunk = compute(argument, operands, key, keys, kernels);
            let (dims, columns) = argument.shape(&shapes, &extents, kernels).unwrap();
            (
                Pairs::from([(key.to_vec(), chunk)]),
                kind_of(keys, &dims, &columns),
            )
        })
        .collect();
    let same = JoinInput {
        relation: RelationId(0),
        keys: (0..keys.len() as u32).collect(),
    };
    let inputs: Vec<_> = inner
        .iter()
        .map(|(pairs, kind)| (pairs, kind, &same))
        .collect();
    let ranges: Vec<Range> = ranges
        .iter()
        .map(|r| r.map_or(Range::Whole, Range::Key))
        .collect();
    let dims = names(keys);
    kernels.with(kernel, |kernel| {
        let mut made = chunks::join(&inputs, kernel, &ranges, &dims, &[key.to_vec()]).unwrap();
        made.remove(key).unwrap()
    })
}

fn all_keys(keys: &[KeyRange]) -> Vec<Vec<u32>> {
    let mut all = vec![vec![]];
    for key in keys {
        all = all
            .iter()
            .flat_map(|k: &Vec<u32>| (0..key.pieces).map(move |n| [&k[..], &[n]].concat()))
            .collect();
    }
    all
}

fn put(pairs: &mut Pairs, key: Vec<u32>, chunk: Chunk) {
    assert!(
        pairs.insert(key.clone(), chunk).is_none(),
        "two tuples get the key {key:?}"
    );
}

fn pick(key: &[u32], from: &[u32]) -> Vec<u32> {
    from.iter().map(|k| key[*k as usize]).collect()
}

/// An operator on the tuples of one place.
fn apply(
    algebra: &Algebra,
    inputs: &[(&Content, &Pairs)],
    result: &Content,
    facts: &Facts,
) -> Pairs {
    let kernels = &facts.kernels;
    let mut made = Pairs::new();
    if let Algebra::Join {
        keys,
        inputs: maps,
        keep,
        function,
    } = algebra
    {
        for key in all_keys(keys) {
            let found: Option<Vec<Operand>> = inputs
                .iter()
                .zip(maps)
                .map(|((kind, pairs), map)| {
                    let chunk = pairs.get(&pick(&key, map))?.clone();
                    let mut dims = kind.dims.clone();
                    for dim in &mut dims {
                        dim.cut = dim.cut.map(|k| map[k as usize]);
                        if let Some(window) = &mut dim.window {
                            window.key = window.key.map(|k| map[k as usize]);
                        }
                    }
                    Some((chunk, dims, kind.columns.clone()))
                })
                .collect();
            if let Some(operands) = found {
                put(
                    &mut made,
                    pick(&key, keep),
                    compute(function, &operands, &key, keys, kernels),
                );
            }
        }
        return made;
    }
    let (kind, pairs) = inputs[0];
    let one = |chunk: &Chunk| vec![(chunk.clone(), kind.dims.clone(), kind.columns.clone())];
    match algebra {
        Algebra::Join { .. } => unreachable!(),
        Algebra::Aggregate {
            keep,
            coarse,
            reduction,
            before,
            after,
        } => {
            for (key, chunk) in pairs {
                let chunk = compute(before, &one(chunk), key, &kind.keys, kernels);
                let group = keep.iter().enumerate().map(|(at, k)| {
                    let own = key[*k as usize];
                    match coarse.get(at).and_then(Option::as_ref) {
                        None => own,
                        Some(to) => {
                            let all = digits(&kind.keys[*k as usize], own, &facts.mesh);
                            to.axes
                                .iter()
                                .fold(0, |n, axis| n * facts.mesh.axes[*axis as usize] + all[axis])
                        }
                    }
                });
                let group: Vec<u32> = group.collect();
                let sum = match made.get(&group) {
                    None => chunk,
                    Some(sum) => combine(*reduction, &reduction.carrier(DType::F64), sum, &chunk),
                };
                made.insert(group, sum);
            }
            if !after.is_identity() {
                // The arrays between combining and finishing: the same operator without its last step.
                let plain = Algebra::Aggregate {
                    keep: keep.clone(),
                    coarse: coarse.clone(),
                    reduction: *reduction,
                    before: before.clone(),
                    after: ArrayFunction::IDENTITY,
                };
                let between = content::result_of(&plain, &[kind], kernels).unwrap();
                for (key, chunk) in &mut made {
                    let operand = (chunk.clone(), between.dims.clone(), between.columns.clone());
                    *chunk = compute(after, &[operand], key, &between.keys, kernels);
                }
            }
        }
        Algebra::Filter(by) => {
            for (key, chunk) in pairs.iter().filter(|(key, _)| by.holds(key)) {
                put(&mut made, key.clone(), chunk.clone());
            }
        }
        Algebra::Map { keys, function } => {
            for (key, chunk) in pairs {
                let chunk = compute(function, &one(chunk), key, &kind.keys, kernels);
                put(&mut made, pick(key, keys), chunk);
            }
        }
        Algebra::Replicate { at, key: range } => {
            for (key, chunk) in pairs {
                for copy in 0..range.pieces {
                    let mut key = key.clone();
                    key.insert(*at as usize, copy);
                    put(&mut made, key, chunk.clone());
                }
            }
        }
        Algebra::Tile {
            array_dim,
            key: range,
        } => {
            for (key, chunk) in pairs {
                for tile in 0..range.pieces {
                    let key = [&key[..], &[tile]].concat();
                    let mut part: Vec<(u64, u64)> = chunk.shape.iter().map(|n| (0, *n)).collect();
                    part[*array_dim as usize] = result.ranges(&key)[*array_dim as usize];
                    put(&mut made, key, chunk.part(&part));
                }
            }
        }
        Algebra::Window { .. } => {
            let shape: Vec<u64> = kind.dims.iter().map(|dim| dim.extent).collect();
            let parts: Vec<(Vec<u64>, &Chunk)> = pairs
                .iter()
                .map(|(key, chunk)| {
                    let ranges = kind.ranges(key);
                    (ranges.iter().map(|(start, _)| *start).collect(), chunk)
                })
                .collect();
            let held: u64 = pairs
                .values()
                .map(|chunk| chunk.shape.iter().product::<u64>())
                .sum();
            assert_eq!(held, shape.iter().product::<u64>(), "pieces are elsewhere");
            let whole = Chunk::together(&shape, kind.columns.len(), &parts);
            for key in result.all_keys() {
                let part = whole.part(&result.ranges(&key));
                put(&mut made, key, part);
            }
        }
        Algebra::Concat { array_dim } => {
            let dim = *array_dim as usize;
            let gone = kind.dims[dim].cut.unwrap();
            let mut groups: BTreeMap<Vec<u32>, Vec<(Vec<u64>, &Chunk)>> = BTreeMap::new();
            for (key, chunk) in pairs {
                let mut start = vec![0; chunk.shape.len()];
                start[dim] = kind.ranges(key)[dim].0;
                let mut group = key.clone();
                group.remove(gone as usize);
                groups.entry(group).or_default().push((start, chunk));
            }
            for (key, parts) in groups {
                assert_eq!(
                    parts.len() as u32,
                    kind.keys[gone as usize].pieces,
                    "pieces are elsewhere"
                );
                let shape: Vec<u64> = result.ranges(&key).iter().map(|(_, n)| *n).collect();
                put(&mut made, key, Chunk::together(&shape, 1, &parts));
            }
        }
    }
    made
}

/// By axis of a key dimension: the digit of the block of a coordinate.
fn digits(key: &KeyRange, coordinate: u32, mesh: &Mesh) -> BTreeMap<u8, u32> {
    let counts: Vec<u32> = key.axes.iter().map(|a| mesh.axes[*a as usize]).collect();
    let blocks: u32 = counts.iter().product();
    let mut block = coordinate * blocks / key.pieces;
    let mut digits = BTreeMap::new();
    for (axis, count) in key.axes.iter().zip(&counts).rev() {
        digits.insert(*axis, block % count);
        block /= count;
    }
    digits
}

/// Whether a site holds a tuple, by the definition of placements.
fn held(at: &Placement, key: &[u32], keys: &[KeyRange], mesh: &Mesh, site: u32) -> bool {
    (0..mesh.axes.len()).all(|axis| {
        let here = mesh.coordinate(site, axis);
        match &at.0[axis] {
            Role::Every | Role::Partial(_) => true,
            Role::Keys(dims) if dims.len() == 1 => {
                let dim = dims[0] as usize;
                digits(&keys[dim], key[dim], mesh)[&(axis as u8)] == here
            }
            Role::Keys(dims) => {
                // Number of the key's part among all of them, then which balanced run of numbers has it.
                let parts: Vec<KeyRange> = dims.iter().map(|d| keys[*d as usize].clone()).collect();
                let own = pick(key, dims);
                let number = all_keys(&parts).iter().position(|k| *k == own).unwrap();
                let total: usize = parts.iter().map(|k| k.pieces as usize).product();
                let count = mesh.axes[axis] as usize;
                let mut from = 0;
                let mut block = 0;
                loop {
                    let size = total / count + usize::from(block < total % count);
                    if number < from + size {
                        break block as u32 == here;
                    }
                    from += size;
                    block += 1;
                }
            }
        }
    })
}

/// A content at a placement; addends differ from coordinate to coordinate.
fn place(pairs: &Pairs, kind: &Content, at: &Placement, mesh: &Mesh) -> Vec<Pairs> {
    let mut numbers = Numbers(77);
    let mut sites = vec![Pairs::new(); mesh.sites() as usize];
    for (key, chunk) in pairs {
        // By coordinates along the partial axes: that addend.
        let mut addends: BTreeMap<Vec<u32>, Chunk> = BTreeMap::new();
        let partial: Vec<usize> = (0..mesh.axes.len())
            .filter(|a| matches!(at.0[*a], Role::Partial(_)))
            .collect();
        let counts: Vec<KeyRange> = partial
            .iter()
            .map(|a| KeyRange {
                extent: 0,
                pieces: mesh.axes[*a],
                axes: vec![],
            })
            .collect();
        let mut rest = chunk.clone();
        for which in all_keys(&counts).into_iter().rev() {
            let mut addend = rest.clone();
            if which.iter().any(|c| *c > 0) {
                // A part of a sum; of a largest value something smaller, of a smallest something larger.
                let of = &at.0[partial[0]];
                let pairs = addend.columns.iter_mut().flatten();
                for (a, r) in pairs.zip(rest.columns.iter_mut().flatten()) {
                    let (n, x) = ((numbers.next() % 9) as f64, r.as_f64());
                    let (value, left) = match of {
                        Role::Partial(Reduction::Sum) => (n, x - n),
                        Role::Partial(Reduction::Max) => (x - n, x),
                        Role::Partial(Reduction::Min) => (x + n, x),
                        other => panic!("no addends of {other}"),
                    };
                    (*a, *r) = (Scalar::Float(value), Scalar::Float(left));
                }
            }
            addends.insert(which, addend);
        }
        for site in 0..mesh.sites() {
            if held(at, key, &kind.keys, mesh, site) {
                let which: Vec<u32> = partial.iter().map(|a| mesh.coordinate(site, *a)).collect();
                sites[site as usize].insert(key.clone(), addends[&which].clone());
            }
        }
    }
    sites
}

/// The content of a physical relation: addends combined, copies taken once. Fails if the relation is not at its placement.
pub fn whole(value: &Value, mesh: &Mesh) -> Pairs {
    let Kind::Placed(kind, at) = &value.kind else {
        return value.sites[0].clone();
    };
    let mut sites: Vec<Option<Pairs>> = value.sites.iter().cloned().map(Some).collect();
    for key in kind.all_keys() {
        for (site, pairs) in value.sites.iter().enumerate() {
            let wanted = held(at, &key, &kind.keys, mesh, site as u32);
            assert_eq!(
                pairs.contains_key(&key),
                wanted,
                "{key:?} at site {site} of {}",
                value.kind
            );
        }
    }
    for pairs in &value.sites {
        assert!(
            pairs.keys().all(|key| kind.which.holds(key)),
            "a tuple too many"
        );
    }
    for axis in 0..mesh.axes.len() {
        for site in 0..mesh.sites() {
            if mesh.coordinate(site, axis) == 0 {
                continue;
            }
            let step: u32 = mesh.axes[axis + 1..].iter().product();
            let first = (site - step * mesh.coordinate(site, axis)) as usize;
            if sites[first].is_none() {
                continue;
            }
            let Some(other) = sites[site as usize].take() else {
                continue;
            };
            let into = sites[first].as_mut().unwrap();
            for (key, chunk) in other {
                let merged = match (into.get(&key), &at.0[axis]) {
                    (Some(have), Role::Partial(of)) => combine(*of, &kind.columns, have, &chunk),
                    (Some(have), _) => {
                        same(have, &chunk, "copies");
                        chunk
                    }
                    (None, _) => chunk,
                };
                into.insert(key, merged);
            }
        }
    }
    let whole = sites[0].take().unwrap();
    assert_eq!(whole.len(), kind.all_keys().len());
    whole
}

pub fn same(a: &Chunk, b: &Chunk, what: &str) {
    assert_eq!(a.shape, b.shape, "{what}");
    for (x, y) in a.columns.iter().flatten().zip(b.columns.iter().flatten()) {
        let (x, y) = (x.as_f64(), y.as_f64());
        assert!(
            x == y || (x - y).abs() <= 1e-9 * (1.0 + x.abs()),
            "{what}: {a:?}\n{b:?}"
        );
    }
}

/// Values of a content that is not computed, by its number.
fn tensor(number: u32, kind: &Content) -> Pairs {
    let mut numbers = Numbers(u64::from(number) * 7919 + 13);
    let pair = |key: Vec<u32>| {
        let shape: Vec<u64> = kind.ranges(&key).iter().map(|(_, n)| *n).collect();
        let count: u64 = shape.iter().product();
        let column = (0..count).map(|_| Scalar::Float((numbers.next() % 11) as f64 - 5.0));
        let columns = vec![column.collect()];
        (key, Chunk { shape, columns })
    };
    kind.all_keys().into_iter().map(pair).collect()
}

/// What a term is, given what its children are.
pub fn evaluate(operator: &Operator, children: &[&Value], facts: &Facts) -> Value {
    let kinds: Vec<&Kind> = children.iter().map(|child| &child.kind).collect();
    let kind = facts.kind(operator, &kinds);
    let contents: Vec<&Content> = kinds
        .iter()
        .map(|kind| match kind {
            Kind::Logical(content) | Kind::Placed(content, _) => &**content,
            Kind::Nothing => panic!("{operator:?} of nothing"),
        })
        .collect();
    let result = match &kind {
        Kind::Logical(content) | Kind::Placed(content, _) => content.clone(),
        Kind::Nothing => panic!("{operator:?} is nothing"),
    };
    let sites = match operator {
        Operator::Tensor(number) => vec![tensor(*number, &result)],
        Operator::Tra(algebra) | Operator::Local(algebra) => {
            let count = children
                .first()
                .map_or(facts.mesh.sites() as usize, |child| child.sites.len());
            let at = |site: usize| {
                let inputs: Vec<_> = contents
                    .iter()
                    .zip(children)
                    .map(|(kind, child)| (*kind, &child.sites[site]))
                    .collect();
                apply(algebra, &inputs, &result, facts)
            };
            (0..count).map(at).collect()
        }
        Operator::At(at) => place(&children[0].sites[0], &result, at, &facts.mesh),
        Operator::Move(to) => {
            let Kind::Placed(_, from) = &children[0].kind else {
                panic!()
            };
            if from == to {
                children[0].sites.clone()
            } else {
                place(&whole(children[0], &facts.mesh), &result, to, &facts.mesh)
            }
        }
    };
    Value { kind, sites }
}

/// The same keys, arrays and placement (addends may be split otherwise), and both are where they are said to be.
pub fn check_same(a: &Value, b: &Value, mesh: &Mesh, what: &str) {
    assert_eq!(a.kind, b.kind, "{what}");
    let (x, y) = (whole(a, mesh), whole(b, mesh));
    assert!(
        x.keys().eq(y.keys()),
        "{what}: {:?} {:?}",
        x.keys(),
        y.keys()
    );
    for (key, chunk) in &x {
        same(chunk, &y[key], &format!("{what}, tuple {key:?}"));
    }
}
