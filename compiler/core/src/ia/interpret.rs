//! The interpreter of IA programs: triples (key, array, site), the oracle for plans.
//!
//! A local operator sees only what is at its site, and makes the tuples that its placement gives that site; what
//! it needs and does not find there is an error. So a program that this interprets is one that sites can walk.
//! Must not know plans.
//!
//! ```text
//! C.partial @ PART(k): {((0), […], site 0), ((1), […], site 1)}
//! ```

use super::{Operation, Program, Relation, content};
use crate::tra::chunk::{self, Chunk, Content, Stop};
use crate::tra::chunks;
use crate::tra::typing::rekey;
use crate::tra::{Type, rounds};
use ein_plan::{JoinInput, RelationId};

/// A physical relation's content: by site.
pub type Physical = Vec<Content>;

/// The outputs of a verified program, whole, in order. `inputs` gives the values of a source by its tensor's
/// name.
pub fn interpret(program: &Program, inputs: &dyn Fn(&str) -> Chunk) -> Result<Vec<Chunk>, Stop> {
    let places: Vec<_> = program.places().collect();
    let on_sites = OnSites { program, inputs };
    let relations = rounds::run(&on_sites, &program.blocks, &places)?;
    let outputs = program.outputs.iter().map(|output| {
        let kind = content(&program.relation(output.relation).kind);
        let mut all = Content::new();
        for site in relations[output.relation.0 as usize].iter().flatten() {
            all.extend(site.iter().map(|(key, chunk)| (key.clone(), chunk.clone())));
        }
        chunk::whole(&all, &kind)
    });
    Ok(outputs.collect())
}

/// Relations as one content a site.
struct OnSites<'a> {
    program: &'a Program,
    inputs: &'a dyn Fn(&str) -> Chunk,
}

impl OnSites<'_> {
    fn keys(&self, at: usize) -> impl Iterator<Item = (u32, Vec<Vec<u32>>)> {
        let (kind, mesh) = (&self.program.relations[at].kind, &self.program.mesh);
        (0..self.program.sites).map(move |site| (site, kind.keys_at(site, mesh).collect()))
    }
}

impl rounds::Values for OnSites<'_> {
    type Value = Physical;

    fn operator(&self, at: usize, values: &[Option<Physical>]) -> Result<Physical, Stop> {
        let relation = &self.program.relations[at];
        let at_site = |site| {
            let made = operator(self.program, values, relation, self.inputs, site);
            made.map_err(|stop| match stop {
                Stop::Absent(what) => {
                    Stop::Absent(format!("`{}` at site {site}: {what}", relation.name))
                }
                fault => fault,
            })
        };
        (0..self.program.sites).map(at_site).collect()
    }

    fn number(&self, at: usize, number: u64) -> Physical {
        let sites = self.keys(at);
        sites
            .map(|(_, keys)| rounds::scalar(number, keys.into_iter()))
            .collect()
    }

    fn read(&self, value: &Physical) -> Option<i64> {
        rounds::read(value.first()?)
    }

    fn collected(&self, at: usize, dim: u32, parts: &[Physical]) -> Physical {
        let kind = &self.program.relations[at].kind;
        let shape = |key: &[u32]| kind.ranges(key).iter().map(|(_, n)| *n).collect();
        let zero = rounds::zero(kind.array.columns[0]);
        let at_site = |(site, keys): (u32, Vec<Vec<u32>>)| {
            let parts: Vec<&Content> = parts.iter().map(|part| &part[site as usize]).collect();
            rounds::collected(&parts, &shape, keys.into_iter(), dim, zero)
        };
        self.keys(at).map(at_site).collect()
    }
}

fn operator(
    program: &Program,
    relations: &[Option<Physical>],
    relation: &Relation,
    inputs: &dyn Fn(&str) -> Chunk,
    site: u32,
) -> Result<Content, Stop> {
    let kind = content(&relation.kind);
    let keys: Vec<Vec<u32>> = relation.kind.keys_at(site, &program.mesh).collect();
    // Inputs stand before their users.
    let none = Content::new();
    let here = |id: &RelationId| match &relations[id.0 as usize] {
        Some(physical) => &physical[site as usize],
        None => &none,
    };
    let kind_of = |id: &RelationId| -> Type { content(&program.relation(*id).kind) };
    match &relation.operation {
        Operation::Source { name, source } => {
            let whole = chunks::source(source, name, &kind, inputs);
            Ok(chunk::cut(&whole, &kind, &keys))
        }
        Operation::Broadcast { input } | Operation::Shuffle { input } => {
            let anywhere = |key: &Vec<u32>| {
                let found = relations[input.0 as usize]
                    .iter()
                    .flatten()
                    .find_map(|site| site.get(key));
                found.ok_or_else(|| Stop::Absent(format!("no site has the tuple {key:?}")))
            };
            keys.into_iter()
                .map(|key| anywhere(&key).map(|chunk| (key.clone(), chunk.clone())))
                .collect()
        }
        Operation::Window { input } => {
            let anywhere = relations[input.0 as usize].iter().flatten();
            let all: Content = anywhere
                .flat_map(|site| site.iter().map(|(key, chunk)| (key.clone(), chunk.clone())))
                .collect();
            chunks::window(&all, &kind_of(input), &kind, &keys)
        }
        Operation::LocalJoin {
            inputs,
            kernel,
            ranges,
            fold,
        } => {
            let kinds: Vec<Type> = inputs.iter().map(|i| kind_of(&i.relation)).collect();
            let inputs: Vec<_> = inputs
                .iter()
                .zip(&kinds)
                .map(|(input, kind)| (here(&input.relation), kind, input))
                .collect();
            match fold {
                None => chunks::join(&inputs, kernel, ranges, &kind.keys, &keys),
                Some(fold) => {
                    chunks::fold(&inputs, kernel, ranges, fold, &kind, &keys, &program.mesh)
                }
            }
        }
        Operation::LocalAggregate {
            input,
            keep,
            reduction,
        } => chunks::aggregate(here(input), &kind_of(input), keep, *reduction, &keys),
        Operation::LocalFilter { input, key, value } => {
            let arity = kind_of(input).keys.len();
            let kept: Vec<u32> = (0..arity as u32).filter(|k| k != key).collect();
            chunks::rekey(here(input), arity, &kept, &[(*key, *value)], &keys)
        }
        Operation::LocalMap {
            input,
            keys: by,
            map,
        } => {
            let moved = chunks::rekey(here(input), by.len(), by, &[], &keys)?;
            let Some((kernel, ranges)) = map else {
                return Ok(moved);
            };
            let join = JoinInput {
                relation: *input,
                keys: (0..by.len() as u32).collect(),
            };
            let moved_kind = rekey(&kind_of(input), by).map_err(Stop::Absent)?;
            let inputs = [(&moved, &moved_kind, &join)];
            chunks::join(&inputs, kernel, ranges, &kind.keys, &keys)
        }
        Operation::LocalTile { input, array_dim } => {
            chunks::tile(here(input), *array_dim, &kind, &keys)
        }
        Operation::Loop { value } => Err(Stop::Absent(format!("`{value}` is no operator"))),
        Operation::LocalConcat { input, array_dim } => {
            chunks::concat(here(input), &kind_of(input), *array_dim, &kind, &keys)
        }
    }
}
