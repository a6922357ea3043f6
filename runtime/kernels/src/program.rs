//! Turns a kernel's graph into a register program for strips.
//!
//! Every node that is needed becomes one operation with a register of its own, placed at the outermost loop
//! at which its value changes. What is the same in all lanes is computed once and copied to the lanes. A
//! node that can fault has a *poison* mask beside its value; selects pass on the poison of the branch taken
//! only, so a fault counts at a point if and only if it reaches the root there. Must not know how operations
//! are executed.
//!
//! ```text
//! [n, d | k] sum a0[n, k] * a1[k, d]:   level n: -   level tile(d): -   level k: r0 = a0, r1 = a1, r2 = r0 * r1
//! ```

mod places;

pub(crate) use places::{is_place_of, place_of};

use crate::Chunk;
use crate::branches::Branches;
use crate::fuse::Fused;
use crate::nest::{Axis, Nest, Strides};
use crate::shelter::sheltered;
use crate::unary_epilogue::{self, Curve};
use ein_plan::schedule::access::Place;
use ein_plan::schedule::forms::{PositionForm, affine_forms, position_forms};
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Reduction, Scalar};
use places::{prepare_read, proved, read_strides};

/// What is to be evaluated: `output` and `reduced` indices in order; all others keep one value a run.
pub(crate) struct Request<'a, 'r> {
    pub graph: &'r Graph,
    pub operands: &'a [Chunk<'a>],
    pub root: NodeId,
    pub guard: Option<NodeId>,
    pub reduction: Option<Reduction>,
    pub output: &'r [usize],
    pub reduced: &'r [usize],
    /// The values that any run gives an index: start and length.
    pub ranges: &'r [(i64, i64)],
    /// The usual number of values in one run.
    pub lengths: &'r [usize],
    /// Whether lanes are output points, if that is not to be chosen by these lengths.
    pub lanes: Option<bool>,
    /// Whether a strip holds neighbours along the last output index only.
    pub apart: bool,
}

impl<'a, 'r> Request<'a, 'r> {
    /// A whole kernel over these indices.
    pub(crate) fn of_kernel(
        kernel: &'r Kernel,
        operands: &'a [Chunk<'a>],
        (output, reduced): (&'r [usize], &'r [usize]),
        ranges: &'r [(i64, i64)],
        lengths: &'r [usize],
    ) -> Request<'a, 'r> {
        Request {
            graph: &kernel.graph,
            operands,
            root: kernel.root,
            guard: kernel.guard,
            reduction: kernel.reduction,
            output,
            reduced,
            ranges,
            lengths,
            lanes: None,
            apart: false,
        }
    }
}

/// What is known of a node's register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Register {
    pub dtype: DType,
    /// Number of the register among those of its type.
    pub slot: u32,
    /// Number of its poison mask, if it can fault.
    pub poison: Option<u32>,
    /// Whether all lanes have one value.
    pub uniform: bool,
    /// The value, if it is a constant whole number from -8 to 8.
    pub whole: Option<i8>,
    /// Twice the value, if it is a constant half of 1, 3, -1 or -3.
    pub halves: Option<i8>,
}

/// One operation; its result goes to the register of `node`.
#[derive(Clone)]
pub(crate) struct Operation {
    pub node: u32,
    /// Computed in one lane.
    pub uniform: bool,
    /// Copied to all lanes afterwards.
    pub splat: bool,
    pub kind: Kind,
}

/// What an operation does.
#[derive(Clone)]
pub(crate) enum Kind {
    Constant(Scalar),
    Index {
        index: usize,
        /// Step of each dimension of the strip.
        lanes: Vec<i64>,
    },
    Read(Box<Read>),
    Apply(Function, [u32; 3]),
    Convert(u32),
    /// A function and the arithmetic around it.
    Curve(Box<Curve>),
    /// Several operations in one loop; the results go to registers of their own.
    Fused(Box<Fused>),
    /// Goes on at operation `to` of the level if no lane of `condition` is `wanted`.
    Skip {
        condition: u32,
        wanted: bool,
        to: usize,
    },
}

/// A read, prepared.
#[derive(Clone, Debug)]
pub(crate) struct Read {
    pub operand: usize,
    pub column: usize,
    pub dims: Vec<Position>,
    pub otherwise: Option<u32>,
    /// Distance in elements between lanes that are neighbours along each dimension of the strip.
    pub lanes: Vec<i64>,
    /// Whether some position is a register that differs between lanes.
    pub scattered: bool,
}

impl Read {
    /// Whether everything that is read is there, at places that follow from the indices alone.
    pub(crate) fn is_inside(&self) -> bool {
        let known = |form: &Form| {
            matches!(
                form,
                Form::Affine {
                    checked: false,
                    modulus: None,
                    ..
                }
            )
        };
        self.dims.iter().all(|dim| known(&dim.form))
    }
}

/// A position of a read.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    /// First position that the chunk holds, and how many.
    pub start: i64,
    pub length: i64,
    /// Distance in elements between neighbours.
    pub stride: i64,
    pub form: Form,
}

/// How a position is found.
#[derive(Clone, Debug)]
pub(crate) enum Form {
    /// `constant + Σ coefficient · index`; `lanes`: its steps along the strip; `modulus`: what a division by it leaves; `checked`: it
    /// may be outside.
    Affine {
        constant: i64,
        terms: Vec<(usize, i64)>,
        lanes: Vec<i64>,
        modulus: Option<i64>,
        checked: bool,
    },
    /// The value of a node.
    Value(u32),
}

/// A compiled kernel.
pub(crate) struct Program<'a> {
    pub operands: &'a [Chunk<'a>],
    pub root: u32,
    /// Nodes whose values somebody outside wants: the root and other results, the guard.
    pub wanted: Vec<u32>,
    pub guard: Option<u32>,
    pub reduction: Option<Reduction>,
    pub nest: Nest,
    pub registers: Vec<Register>,
    /// Operations of each level: 0 once a run, `p + 1` when axis `p` (units' axes, then steps') moves.
    pub levels: Vec<Vec<Operation>>,
    /// Registers of each bank: f32, f64, i32, i64, bool; then poison masks.
    pub banks: [usize; 6],
    /// Whether it goes from memory to memory (see [`crate::direct`]).
    pub direct: bool,
}

impl<'a> Program<'a> {
    /// Compiles a request.
    pub(crate) fn new(request: &Request<'a, '_>) -> Program<'a> {
        let places: Vec<Place> = request.operands.iter().map(place_of).collect();
        Program::at(request, &places)
    }

    /// The same of operands that lie at these places; without operands it cannot be executed.
    pub(crate) fn at(request: &Request<'a, '_>, places: &[Place]) -> Program<'a> {
        let nest = |reads: &[Strides], work: usize| {
            Some(match request.apart {
                true => Nest::apart(request.output, request.lengths),
                false => Nest::choose(
                    request.output,
                    request.reduced,
                    request.lengths,
                    reads,
                    work,
                    request.lanes,
                ),
            })
        };
        Program::around(request, places, None, nest).expect("there are always loops to choose")
    }

    /// A program of several results, the root among them, that computes both branches of every select, in the loops that `nest` makes
    /// of the strides of the reads, if it makes any.
    pub(crate) fn straight(
        request: &Request<'a, '_>,
        places: &[Place],
        results: &[NodeId],
        nest: impl FnOnce(&[Strides]) -> Option<Nest>,
    ) -> Option<Program<'a>> {
        Program::around(request, places, Some(results), |reads, _| nest(reads))
    }

    /// `straight`: as of [`Program::straight`], and its results. `nest`: of the strides of the reads and the work at a point.
    fn around(
        request: &Request<'a, '_>,
        places: &[Place],
        straight: Option<&[NodeId]>,
        nest: impl FnOnce(&[Strides], usize) -> Option<Nest>,
    ) -> Option<Program<'a>> {
        let graph = request.graph;
        let count = graph.len();
        let affine = affine_forms(graph, request.ranges);
        let forms = position_forms(graph, &affine);
        let inside: Vec<Vec<bool>> = graph
            .iter()
            .map(|(_, node, _)| proved(node, &forms, places))
            .collect();

        // What is needed, users first.
        let results = straight.unwrap_or_default().iter().copied();
        let wanted = [Some(request.root), request.guard].into_iter().flatten();
        let wanted: Vec<u32> = wanted.chain(results).map(|node| node.0).collect();
        let mut needed = vec![false; count];
        for node in &wanted {
            needed[*node as usize] = true;
        }
        for id in (0..count).rev() {
            if needed[id] {
                for argument in value_arguments(graph, id, &forms, &inside[id]) {
                    needed[argument] = true;
                }
            }
        }

        let sheltered = sheltered(request, &wanted, (&needed, &affine), &inside, places);

        // Which indices a node's value depends on.
        let mut depends: Vec<u128> = vec![0; count];
        for id in 0..count {
            let mut mask = match graph.node(NodeId(id as u32)) {
                Node::Index(IndexId(i)) => 1u128 << i,
                Node::Read { positions, .. } => positions
                    .iter()
                    .filter_map(|p| forms[p.0 as usize].as_ref())
                    .flat_map(|form| &form.terms)
                    .fold(0, |mask, (i, _)| mask | 1 << i),
                _ => 0,
            };
            for argument in value_arguments(graph, id, &forms, &inside[id]) {
                mask |= depends[argument];
            }
            depends[id] = mask;
        }

        let (mut reads, mut work) = (Vec::<Strides>::new(), 1);
        for id in (0..count).filter(|id| needed[*id]) {
            match graph.node(NodeId(id as u32)) {
                Node::Read {
                    operand, positions, ..
                } => reads.push(read_strides(
                    &places[*operand as usize],
                    positions,
                    &forms,
                    &depends,
                    request.ranges.len(),
                )),
                Node::Apply(function, _) => work += 1 + function.flops() as usize / 4,
                Node::Convert(_) => work += 1,
                _ => {}
            }
        }
        let nest = nest(&reads, work)?;

        // The level of a node is one more than the innermost axis that it depends on.
        let axes: Vec<Axis> = nest.unit.iter().chain(&nest.step).copied().collect();
        let strip: u128 = nest.strip.iter().fold(0, |mask, i| mask | 1 << i);
        let level_of = |mask: u128| {
            axes.iter()
                .rposition(|axis| match axis {
                    Axis::Index(i) => mask >> i & 1 == 1,
                    Axis::Tile(_) => mask & strip != 0,
                })
                .map_or(0, |p| p + 1)
        };

        let mut banks = [0usize; 6];
        let mut registers: Vec<Register> = Vec::with_capacity(count);
        for id in 0..count {
            let dtype = graph.dtype(NodeId(id as u32));
            let mut register = Register {
                dtype,
                slot: 0,
                poison: None,
                uniform: depends[id] & strip == 0,
                whole: constant(graph, id)
                    .filter(|x| x.trunc() == *x && x.abs() <= 8.0)
                    .map(|x| x as i8),
                halves: constant(graph, id)
                    .map(|x| 2.0 * x)
                    .filter(|x| [1.0, 3.0, -1.0, -3.0].contains(x))
                    .map(|x| x as i8),
            };
            if needed[id] {
                let bank = bank_of(dtype);
                register.slot = banks[bank] as u32;
                banks[bank] += 1;
                let arguments = value_arguments(graph, id, &forms, &inside[id]);
                if (may_fault(graph, id, &inside[id]) && !sheltered[id])
                    || arguments.iter().any(|a| registers[*a].poison.is_some())
                {
                    register.poison = Some(banks[5] as u32);
                    banks[5] += 1;
                }
            }
            registers.push(register);
        }
        // Copied to the lanes: uniform values with a user that is not.
        let mut splat = vec![false; count];
        for node in &wanted {
            splat[*node as usize] = true;
        }
        for id in (0..count).filter(|id| needed[*id] && !registers[*id].uniform) {
            for argument in value_arguments(graph, id, &forms, &inside[id]) {
                splat[argument] = true;
            }
        }

        let mut operations: Vec<Option<Operation>> = vec![None; count];
        for id in (0..count).filter(|id| needed[*id]) {
            let node = graph.node(NodeId(id as u32));
            let kind = match node {
                Node::Constant(value) => Kind::Constant(*value),
                Node::Index(IndexId(i)) => Kind::Index {
                    index: *i as usize,
                    lanes: nest
                        .strip
                        .iter()
                        .map(|s| i64::from(*s == *i as usize))
                        .collect(),
                },
                Node::Read {
                    operand,
                    column,
                    positions,
                    otherwise,
                } => Kind::Read(Box::new(prepare_read(
                    (*operand as usize, *column as usize),
                    &places[*operand as usize],
                    positions,
                    otherwise.filter(|_| inside[id].contains(&false)),
                    &forms,
                    &inside[id],
                    &nest,
                    &registers,
                ))),
                Node::Apply(function, arguments) => {
                    let mut list = [0; 3];
                    for (to, from) in list.iter_mut().zip(arguments) {
                        *to = from.0;
                    }
                    Kind::Apply(*function, list)
                }
                Node::Convert(argument) => Kind::Convert(argument.0),
            };
            let uniform = registers[id].uniform;
            operations[id] = Some(Operation {
                node: id as u32,
                uniform,
                splat: uniform && splat[id],
                kind,
            });
        }
        let level: Vec<usize> = depends.iter().map(|mask| level_of(*mask)).collect();
        let branches = match straight {
            Some(_) => Branches::none(count),
            None => Branches::new(request, (&needed, &sheltered), &level, axes.len(), |id| {
                value_arguments(graph, id, &forms, &inside[id])
            }),
        };
        let levels = branches.place(graph, operations, &level, axes.len());
        let mut program = Program {
            operands: request.operands,
            root: request.root.0,
            wanted,
            guard: request.guard.map(|g| g.0),
            reduction: request.reduction,
            nest,
            registers,
            levels,
            banks,
            direct: false,
        };
        unary_epilogue::replace(&mut program);
        Some(program)
    }

    /// Whether the lanes of an operand can be those of the result before it is written: what is over it is computed in the innermost level,
    /// as all that reads it, and cannot fault.
    pub(crate) fn may_be_over(&self, operand: usize) -> bool {
        let reads = |operation: &Operation| matches!(&operation.kind, Kind::Read(read) if read.operand == operand);
        let Some((inner, outer)) = self.levels.split_last() else {
            return false;
        };
        self.reduction.is_none()
            && self.guard.is_none()
            && self.banks[5] == 0
            && outer.len() == self.nest.unit.len()
            && !outer.is_empty()
            && !outer.iter().flatten().any(reads)
            && !inner
                .iter()
                .any(|operation| reads(operation) && operation.uniform)
    }

    /// Whether a direct program's group reads or makes a node.
    pub(crate) fn has_lanes(&self, node: u32) -> bool {
        let mut level = self.levels.last().into_iter().flatten();
        level.any(|operation| match &operation.kind {
            Kind::Fused(fused) => fused.inputs.contains(&node) || fused.outputs.contains(&node),
            _ => false,
        })
    }

    /// The type of the value at a point.
    pub(crate) fn value(&self) -> DType {
        self.registers[self.root as usize].dtype
    }
}

/// The number that a node is.
fn constant(graph: &Graph, id: usize) -> Option<f64> {
    match graph.node(NodeId(id as u32)) {
        Node::Constant(value) => Some(value.as_f64()),
        _ => None,
    }
}

/// The bank of registers of a compute type.
pub(crate) fn bank_of(dtype: DType) -> usize {
    match dtype.compute() {
        DType::F32 => 0,
        DType::F64 => 1,
        DType::I32 => 2,
        DType::I64 => 3,
        _ => 4,
    }
}

/// The nodes whose values an operation needs: all arguments, but not affine positions, and not what is read
/// elsewhere if nothing is.
fn value_arguments(
    graph: &Graph,
    id: usize,
    forms: &[Option<PositionForm>],
    inside: &[bool],
) -> Vec<usize> {
    match graph.node(NodeId(id as u32)) {
        Node::Constant(_) | Node::Index(_) => vec![],
        Node::Read {
            positions,
            otherwise,
            ..
        } => positions
            .iter()
            .filter(|p| forms[p.0 as usize].is_none())
            .chain(otherwise.iter().filter(|_| inside.contains(&false)))
            .map(|p| p.0 as usize)
            .collect(),
        Node::Apply(_, arguments) => arguments.iter().map(|a| a.0 as usize).collect(),
        Node::Convert(argument) => vec![argument.0 as usize],
    }
}

/// Whether the operation itself can fault.
fn may_fault(graph: &Graph, id: usize, inside: &[bool]) -> bool {
    let node = NodeId(id as u32);
    let constant = |id: NodeId| match graph.node(id) {
        Node::Constant(Scalar::Int(c)) => Some(*c),
        _ => None,
    };
    match graph.node(node) {
        Node::Read { otherwise, .. } => otherwise.is_none() && inside.contains(&false),
        Node::Apply(Function::FloorDiv | Function::Rem | Function::Div, a) => {
            graph.dtype(node).is_integer() && constant(a[1]).is_none_or(|c| c == 0)
        }
        Node::Apply(Function::Pow, a) => {
            graph.dtype(node).is_integer() && constant(a[1]).is_none_or(|c| c < 0)
        }
        _ => false,
    }
}
