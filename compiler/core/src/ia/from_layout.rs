//! From a layout to what carries it out: the chunking for the lowering to TRA, and the places for the translation
//! to IA.
//!
//! All members of a class of indices ([`Classes`]) are cut into one piece for each coordinate of the axes that cut
//! any of them, so that every cut is along a mesh axis and nothing is re-chunked between statements, unless it is small ([`cuts`]). Where a
//! statement does not cut an index along all those axes, it runs over the local pieces; if the index is reduced,
//! their results are combined as they are made. In deterministic mode the pieces do not depend on the mesh, and
//! only indices that no axis cuts are combined so: the order of all additions stays that of the pieces.
//! Must not know costs.
//!
//! ```text
//! mesh 2x2, C = A·B with i cut by axis 0 and k by axis 1; k elsewhere cut by axis 0 too:
//! C.partial: {i: 8/2, k: 6/2@y} = fold {i: 8/2, k: 6/4@xy} keep {i, k}   @ GRID(i, k)
//! ```

use super::cuts;
use super::from_tra::Places;
use super::layout::{self, Layout, StatementRole, TensorRole};
use crate::einsum::{Definition, LoopValue, Program, Tensor, TensorId};
use crate::tra::classes::Classes;
use crate::tra::from_einsum::Lowered;
use crate::tra::operands::bare_reads;
use crate::tra::{self, Chunking, Cut};
use ein_plan::{AxisRole, IndexId, Kernel, KeyDim, Mesh, Placement, Range, RelationId};

/// Pieces of a cut class in deterministic mode, whatever the mesh, where no statement has too many tuples of them.
pub const DETERMINISTIC_PIECES: u32 = 16;

/// Most tuples that a statement is made in, in deterministic mode.
const DETERMINISTIC_TUPLES: u64 = 1 << 12;

/// Tuples that any statement may be made in, in deterministic mode, however small it is.
const FEWEST_TUPLES: u64 = 1 << 6;

/// Points of a statement (values of its indices) that are worth a tuple of their own, in deterministic mode.
const POINTS_OF_TUPLE: u64 = 1 << 17;

/// A program placed as a layout says: as relations, and on sites.
#[derive(Clone, Debug)]
pub struct Placed {
    /// The relations.
    pub tra: tra::Program,
    /// The program on sites.
    pub ia: super::Program,
}

/// Carries a layout out on that many sites. An error says what is wrong with the layout.
pub fn place(
    program: &Program,
    layout: &Layout,
    sites: u32,
    deterministic: bool,
) -> Result<Placed, String> {
    ein_plan::verify::mesh(&layout.mesh, sites)?;
    let chunking = chunking(program, layout, deterministic)?;
    let lowered = tra::from_einsum::lower(program, &chunking)?;
    let places = places(program, layout, &lowered);
    let ia = super::from_tra::placed(&lowered.program, sites, &places)?;
    Ok(Placed {
        tra: lowered.program,
        ia,
    })
}

/// Returns whether a layout is one of the program.
pub fn check(program: &Program, layout: &Layout) -> Result<(), String> {
    let axes = layout.mesh.axes.len();
    let count = program.tensors.len();
    if layout.statements.len() != count || layout.rests.len() != count {
        return Err("the layout does not fit the program".into());
    }
    let tensors = program.tensors.iter().zip(&layout.statements);
    for ((tensor, statement), rest) in tensors.zip(&layout.rests) {
        let fail = |what: &str| Err(format!("layout of `{}`: {what}", tensor.name));
        let indices = match &tensor.definition {
            Definition::Statement { kernel, .. } => Some(kernel.indices.len()),
            Definition::Loop(value) if value.is_carried() => Some(tensor.shape.len()),
            Definition::Source(_) | Definition::Loop(_) => None,
        };
        if statement.len() != indices.map_or(0, |_| axes) || rest.len() != axes {
            return fail("there is not one role for each axis");
        }
        let counts = match &tensor.definition {
            Definition::Loop(LoopValue::Collected(block, number)) => {
                Some(program.block(*block).collected[*number as usize].dim)
            }
            _ => None,
        };
        for role in statement {
            match role {
                StatementRole::Index(index) if Some(index.0) == counts => {
                    return fail("an axis cuts the rounds that are collected");
                }
                StatementRole::Index(index) if Some(index.0 as usize) >= indices => {
                    return fail("an axis cuts an index that is not there");
                }
                _ => {}
            }
        }
        for role in rest {
            match role {
                TensorRole::Partial => return fail("it rests as addends"),
                TensorRole::Window(..) => return fail("it rests in windows"),
                TensorRole::Cut(dim) if *dim as usize >= tensor.shape.len() => {
                    return fail("an axis cuts a dimension that is not there");
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// How indices and dimensions are cut so that a layout can be carried out.
pub fn chunking(
    program: &Program,
    layout: &Layout,
    deterministic: bool,
) -> Result<Chunking, String> {
    chunking_finer(program, layout, deterministic, &[])
}

/// [`chunking`], with every piece of a class of indices cut into so many again; one number a class ([`cuts::alike`]), or none. A site has all parts
/// of its pieces; what is combined of parts of a reduced index is combined as it is made.
pub fn chunking_finer(
    program: &Program,
    layout: &Layout,
    deterministic: bool,
    finer: &[u32],
) -> Result<Chunking, String> {
    check(program, layout)?;
    let rules = Rules {
        mesh: &layout.mesh,
        deterministic,
    };
    let classes = match deterministic || !finer.is_empty() {
        true => cuts::alike(program, layout),
        false => cuts::worth_while(program, layout),
    };
    let axes = cuts::axes(&classes, layout);
    let mut cuts: Vec<Cut> = axes.iter().map(|axes| rules.cut(axes)).collect();
    if deterministic {
        limit(&mut cuts, &classes, program, layout);
    }
    for (cut, finer) in cuts.iter_mut().zip(finer) {
        cut.pieces = cut.pieces.saturating_mul(*finer);
    }
    let of = |classes: &[Vec<u32>]| -> Vec<Vec<Cut>> {
        let list = |classes: &Vec<u32>| {
            let cuts = classes.iter().map(|class| cuts[*class as usize].clone());
            cuts.collect()
        };
        classes.iter().map(list).collect()
    };
    let mut chunking = Chunking {
        // One axis is what key dimensions are cut over by default; what is left of parts of its pieces is told by its count.
        mesh: match layout.mesh.axes.len() {
            1 if finer.iter().all(|parts| *parts == 1) => Mesh::default(),
            _ => layout.mesh.clone(),
        },
        indices: of(&classes.indices),
        dims: of(&classes.dims),
        addends: vec![],
        scattered: vec![],
        windowed: rules.windowed(program, layout),
        moving: vec![],
    };
    for (at, tensor) in program.tensors.iter().enumerate() {
        let (mut addends, mut scattered) = (vec![], vec![]);
        if let Definition::Statement { kernel, .. } = &tensor.definition {
            let (roles, rest) = (&layout.statements[at], &layout.rests[at]);
            let rank = kernel.output_rank as usize;
            addends = rules.addends(roles, &chunking.indices[at], rank);
            let again = rules.again(roles, rest, rank);
            if !again.is_empty() {
                scattered = rules.scattered(&again, &chunking.dims[at], &tensor.shape);
            }
        }
        chunking
            .moving
            .push(rules.moving(tensor, &layout.statements[at]));
        chunking.addends.push(addends);
        chunking.scattered.push(scattered);
    }
    Ok(chunking)
}

/// Makes pieces fewer until no statement has more tuples than its points are worth, or too many: several of its indices may be
/// of one class, as all of `A[i,j] * A[j,k] * A[k,l]` are. The classes that little work is cut along get fewer pieces first.
fn limit(cuts: &mut [Cut], classes: &Classes, program: &Program, layout: &Layout) {
    let points: Vec<u64> = program.tensors.iter().map(points).collect();
    let mut work = vec![0u64; cuts.len()];
    for (at, roles) in layout.statements.iter().enumerate() {
        for role in roles {
            if let StatementRole::Index(index) = role {
                let class = classes.indices[at][index.0 as usize];
                let work = &mut work[class as usize];
                *work = work.saturating_add(points[at]);
            }
        }
    }
    for (indices, points) in classes.indices.iter().zip(points) {
        let most = (points / POINTS_OF_TUPLE).clamp(FEWEST_TUPLES, DETERMINISTIC_TUPLES);
        loop {
            let pieces = |class: &u32| u64::from(cuts[*class as usize].pieces);
            let tuples = indices.iter().map(pieces).fold(1, u64::saturating_mul);
            let least = indices
                .iter()
                .filter(|class| pieces(class) > 2)
                .min_by_key(|class| (work[**class as usize], std::cmp::Reverse(**class)));
            let Some(least) = least.filter(|_| tuples > most) else {
                break;
            };
            cuts[*least as usize].pieces /= 2;
        }
    }
}

/// The values that a statement's indices take together; nothing else computes any.
fn points(tensor: &Tensor) -> u64 {
    let Definition::Statement { kernel, .. } = &tensor.definition else {
        return 0;
    };
    let extents = kernel.indices.iter().map(|index| index.extent);
    extents.fold(1, u64::saturating_mul)
}

/// The cuts that follow from the roles of axes.
struct Rules<'a> {
    mesh: &'a Mesh,
    deterministic: bool,
}

impl Rules<'_> {
    fn cut(&self, axes: &[u8]) -> Cut {
        let counts = axes.iter().map(|axis| self.mesh.count(*axis));
        match self.deterministic && !axes.is_empty() {
            true => Cut::new(DETERMINISTIC_PIECES, axes),
            false => Cut::new(counts.product(), axes),
        }
    }

    /// Returns whether a role along an axis makes a difference. In deterministic mode what is computed must not depend on
    /// the counts.
    fn matters(&self, axis: u8) -> bool {
        self.deterministic || self.mesh.count(axis) > 1
    }

    /// By tensor and operand of its statement: whether it is worth while to read it in windows, that is unless every site has all that it
    /// reads of it anyway.
    fn windowed(&self, program: &Program, layout: &Layout) -> Vec<Vec<bool>> {
        let of_statement = |(at, tensor): (usize, &Tensor)| {
            let Definition::Statement { kernel, operands } = &tensor.definition else {
                return vec![];
            };
            let lacks = self.lacking(kernel, &layout.statements[at], operands, &layout.rests);
            let is_free = |id: &TensorId| matches!(&program.tensor(*id).definition, Definition::Source(source) if source.is_free());
            operands
                .iter()
                .zip(lacks)
                .map(|(id, lacks)| lacks && !is_free(id))
                .collect()
        };
        program
            .tensors
            .iter()
            .enumerate()
            .map(of_statement)
            .collect()
    }

    /// By operand of a statement: whether a site lacks some of what it reads by bare names, and of all other dimensions.
    fn lacking(
        &self,
        kernel: &Kernel,
        roles: &[StatementRole],
        operands: &[TensorId],
        rests: &[Vec<TensorRole>],
    ) -> Vec<bool> {
        let mut lacking = vec![false; operands.len()];
        for (operand, indices) in bare_reads(kernel) {
            let dim_of = |index| indices.iter().position(|read_by| *read_by == Some(index));
            let required = layout::roles(
                roles,
                |index| Some(dim_of(index)? as u32),
                TensorRole::Every,
            );
            let rest = &rests[operands[operand as usize].0 as usize];
            let axes = (rest.iter().zip(&required)).zip(&self.mesh.axes);
            let apart = axes.filter(|(_, count)| **count > 1).map(|(pair, _)| pair);
            let (actual, required): (Vec<TensorRole>, Vec<TensorRole>) = apart.unzip();
            lacking[operand as usize] |= !layout::satisfies(&actual, &required);
        }
        lacking
    }

    /// By index of a statement: whether windows move with it. In deterministic mode a reduction reads the same arrays whatever
    /// the number of sites, hence no windows.
    fn moving(&self, tensor: &Tensor, roles: &[StatementRole]) -> Vec<bool> {
        let Definition::Statement { kernel, .. } = &tensor.definition else {
            return vec![];
        };
        // A library operation reads whole matrices.
        if kernel.library().is_some() || self.deterministic && kernel.reduction.is_some() {
            return vec![];
        }
        let moves = |index: usize| {
            let role = StatementRole::Index(IndexId(index as u32));
            let mut axes = roles.iter().zip(&self.mesh.axes);
            axes.any(|(other, count)| *other == role && *count > 1)
        };
        (0..kernel.indices.len()).map(moves).collect()
    }

    /// Returns the cut that is left of each index in a statement's carriers.
    fn addends(&self, roles: &[StatementRole], cuts: &[Cut], rank: usize) -> Vec<Option<Cut>> {
        let left = |(number, cut): (usize, &Cut)| {
            if number < rank || cut.is_whole() {
                return None;
            }
            let role = StatementRole::Index(IndexId(number as u32));
            let axes = (0u8..).zip(roles).filter(|(_, other)| **other == role);
            let axes: Vec<u8> = axes.map(|(axis, _)| axis).collect();
            if self.deterministic {
                return axes.is_empty().then(Cut::whole);
            }
            Some(self.cut(&axes)).filter(|left| left != cut)
        };
        cuts.iter().enumerate().map(left).collect()
    }

    /// The axes along which addends, or copies of them, are to become copies of the sum, if they are first added
    /// up in pieces and then broadcast.
    fn again(&self, roles: &[StatementRole], rest: &[TensorRole], rank: usize) -> Vec<u8> {
        let partial = |role: &StatementRole| matches!(role, StatementRole::Index(index) if index.0 as usize >= rank);
        let addends = (0u8..)
            .zip(roles)
            .any(|(axis, role)| partial(role) && self.matters(axis));
        let mut pairs = (0u8..).zip(roles.iter().zip(rest));
        let again = pairs.any(|(axis, (role, rest))| {
            *rest == TensorRole::Every && *role != StatementRole::Every && self.matters(axis)
        });
        if !addends || !again {
            return vec![];
        }
        let pairs = (0u8..).zip(roles.iter().zip(rest));
        let copied = pairs.filter(|(axis, (role, rest))| {
            let from = partial(role) || **role == StatementRole::Every;
            **rest == TensorRole::Every && from && self.matters(*axis)
        });
        copied.map(|(axis, _)| axis).collect()
    }

    /// A tensor's cuts with its longest whole dimension cut over these axes, too; nothing if none is long enough.
    fn scattered(&self, axes: &[u8], dims: &[Cut], shape: &[u64]) -> Vec<Cut> {
        let cut = self.cut(axes);
        let pieces = u64::from(cut.pieces);
        let whole = dims.iter().zip(shape).enumerate();
        let whole = whole.filter(|(_, (cut, extent))| cut.is_whole() && **extent >= pieces);
        let best = whole.max_by_key(|(dim, (_, extent))| {
            (**extent % pieces == 0, **extent, std::cmp::Reverse(*dim))
        });
        let Some((best, _)) = best else {
            return vec![];
        };
        let mut scattered = dims.to_vec();
        scattered[best] = cut;
        scattered
    }
}

/// Where the relations of a lowered program are to be made and to rest.
pub fn places(program: &Program, layout: &Layout, lowered: &Lowered) -> Places {
    let mut places = Places {
        mesh: layout.mesh.clone(),
        ..Places::default()
    };
    let of_relation = |id: RelationId| &lowered.program.relation(id).kind;
    for (at, tensor) in program.tensors.iter().enumerate() {
        let (roles, rest) = (&layout.statements[at], &layout.rests[at]);
        if let Some(id) = lowered.statements[at] {
            places
                .made
                .insert(id, statement(layout, lowered, id, roles));
        }
        if let Definition::Loop(LoopValue::Counter(_) | LoopValue::Rounds(_)) = tensor.definition {
            // Every site knows it; it is not moved anywhere.
            continue;
        }
        if let Some(id) = lowered.aggregates[at]
            && let Definition::Statement { kernel, .. } = &tensor.definition
        {
            let kind = of_relation(id);
            let by_dim = |dim: u32| kind.array.dims[dim as usize].cut;
            let rank = kernel.output_rank;
            let placement = combined(layout, roles, rest, rank, &kind.keys, by_dim);
            places.made.insert(id, placement);
        }
        let free = matches!(&tensor.definition, Definition::Source(source) if source.is_free());
        if let Some(id) = lowered.rests[at].filter(|_| !free) {
            let dims = &of_relation(id).array.dims;
            let role = |role: &TensorRole| match role {
                TensorRole::First => AxisRole::First,
                TensorRole::Cut(dim) => key_or_every(dims[*dim as usize].cut),
                TensorRole::Every | TensorRole::Partial | TensorRole::Window(..) => AxisRole::Every,
            };
            let roles = rest.iter().map(role).collect();
            places.rests.insert(id, normal(&layout.mesh, roles));
        }
    }
    places
}

fn key_or_every(key: Option<u32>) -> AxisRole {
    key.map_or(AxisRole::Every, AxisRole::Key)
}

/// The placement with these roles; along an axis with one coordinate all roles are the same.
fn normal(mesh: &Mesh, roles: Vec<AxisRole>) -> Placement {
    let role = |(role, count): (AxisRole, &u32)| match count {
        1 => AxisRole::Every,
        _ => role,
    };
    Placement {
        roles: roles.into_iter().zip(&mesh.axes).map(role).collect(),
    }
}

/// Where a statement's join is made, or a loop's value is held.
fn statement(
    layout: &Layout,
    lowered: &Lowered,
    id: RelationId,
    roles: &[StatementRole],
) -> Placement {
    let relation = lowered.program.relation(id);
    let key_of = |index: IndexId| match &relation.operation {
        tra::Operation::Join { ranges, fold, .. } => {
            let Some(Range::Key(key)) = ranges.get(index.0 as usize) else {
                return None;
            };
            match fold {
                None => Some(*key),
                Some(fold) => super::placement::position(&fold.keep, *key),
            }
        }
        // A loop's value is cut by its dimensions.
        _ => relation.kind.array.dims.get(index.0 as usize)?.cut,
    };
    let role = |role: &StatementRole| match role {
        StatementRole::Every => AxisRole::Every,
        StatementRole::First => AxisRole::First,
        StatementRole::Index(index) => key_or_every(key_of(*index)),
    };
    normal(&layout.mesh, roles.iter().map(role).collect())
}

/// Where a statement's carriers are combined: where the result rests; but what is to be copied along an axis is
/// first made in pieces, as far as there is a key dimension to cut by, and copied then.
fn combined(
    layout: &Layout,
    roles: &[StatementRole],
    rest: &[TensorRole],
    rank: u32,
    keys: &[KeyDim],
    by_dim: impl Fn(u32) -> Option<u32>,
) -> Placement {
    let counts = &layout.mesh.axes;
    let again = (roles.iter().zip(rest).zip(counts)).any(|((role, rest), count)| {
        *count > 1 && *rest == TensorRole::Every && *role != StatementRole::Every
    });
    let role = |(axis, (role, rest)): (u8, (&StatementRole, &TensorRole))| match rest {
        TensorRole::First => AxisRole::First,
        TensorRole::Cut(dim) => key_or_every(by_dim(*dim)),
        TensorRole::Partial | TensorRole::Window(..) => AxisRole::First,
        TensorRole::Every if !again => AxisRole::Every,
        TensorRole::Every => match role {
            StatementRole::First => AxisRole::First,
            StatementRole::Index(index) if index.0 < rank => key_or_every(by_dim(index.0)),
            StatementRole::Index(_) | StatementRole::Every => {
                let numbered = (0u32..)
                    .zip(keys)
                    .filter(|(_, key)| key.axes.contains(&axis));
                let longest = numbered.max_by_key(|(at, key)| (key.extent, std::cmp::Reverse(*at)));
                longest.map_or(AxisRole::First, |(at, _)| AxisRole::Key(at))
            }
        },
    };
    let roles = (0u8..).zip(roles.iter().zip(rest)).map(role);
    normal(&layout.mesh, roles.collect())
}
