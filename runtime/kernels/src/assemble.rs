//! Turns a kernel's graph into a register program for strips.
//!
//! Nodes are looked at once each: which are needed, which indices they depend on, which of them may fault; the loops follow from the strides of
//! the reads, registers and levels from the loops. Must not know how operations are executed.
//!
//! ```text
//! [n, d | k] sum a0[n, k] * a1[k, d]:   level n: -   level tile(d): -   level k: r0 = a0, r1 = a1, r2 = r0 * r1
//! ```

use crate::branches::Branches;
use crate::nest::{Axis, Nest, Strides, WIDTH};
use crate::operations as op;
use crate::program::{
    Kind, Operation, Program, Register, Request, bank_of, place_of, prepare_read, proved,
    read_strides,
};
use crate::shelter::sheltered;
use crate::unary_epilogue;
use ein_plan::schedule::access::Place;
use ein_plan::schedule::forms::{PositionForm, affine_forms, position_forms};
use ein_plan::{Function, Graph, IndexId, Node, NodeId, Scalar};

/// Bytes of registers and accumulators that stay in the first cache beside what is read.
const FIRST_CACHE: usize = 32 << 10;
/// Most lanes of a register.
const WIDEST: usize = 8 * WIDTH;

impl<'a> Program<'a> {
    /// Compiles a request.
    pub(crate) fn new(request: &Request<'a, '_>) -> Program<'a> {
        let places: Vec<Place> = request.operands.iter().map(place_of).collect();
        Program::at(request, &places)
    }

    /// The same of operands that lie at these places; without operands it cannot be executed.
    pub(crate) fn at(request: &Request<'a, '_>, places: &[Place]) -> Program<'a> {
        let nest = |reads: &[Strides], work: (usize, usize)| {
            let (output, lengths) = (request.output, request.lengths);
            let patches = match request.patches && request.reduced.is_empty() {
                true => Nest::patches(output, lengths, reads),
                false => None,
            };
            let other = || match request.apart {
                true => Nest::apart(output, lengths),
                false => Nest::choose(output, request.reduced, lengths, reads, work, request.lanes),
            };
            Some(patches.unwrap_or_else(other))
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

    /// `straight`: as of [`Program::straight`], and its results. `nest`: of the strides of the reads, the work at a point and the lanes that
    /// registers may have.
    fn around(
        request: &Request<'a, '_>,
        places: &[Place],
        straight: Option<&[NodeId]>,
        nest: impl FnOnce(&[Strides], (usize, usize)) -> Option<Nest>,
    ) -> Option<Program<'a>> {
        let results = straight.unwrap_or_default().iter().copied();
        let wanted = [Some(request.root), request.guard].into_iter().flatten();
        let wanted: Vec<u32> = wanted.chain(results).map(|node| node.0).collect();
        let nodes = Nodes::of(request, places, &wanted);
        let (reads, work) = nodes.reads_and_work(places, request.ranges.len());
        let nest = nest(&reads, (work, nodes.width()))?;
        let strip: u128 = nest.strip.iter().fold(0, |mask, i| mask | 1 << i);
        let rows: u128 = nest.strip[..nest.rows()]
            .iter()
            .fold(0, |mask, i| mask | 1 << i);
        let (registers, banks) = nodes.registers(strip);
        let operations = nodes.operations(places, &wanted, &nest, &registers);
        // The level of a node is one more than the innermost axis that it depends on.
        let axes: Vec<Axis> = nest.unit.iter().chain(&nest.step).copied().collect();
        let level_of = |mask: &u128| {
            axes.iter()
                .rposition(|axis| match axis {
                    Axis::Index(i) => mask >> i & 1 == 1,
                    // Rows of a strip have the lanes of all outputs.
                    Axis::Tile(d) if nest.rows() > 0 => {
                        let of = if *d < nest.rows() {
                            rows
                        } else {
                            strip & !rows
                        };
                        mask & of != 0
                    }
                    Axis::Tile(_) => mask & strip != 0,
                })
                .map_or(0, |p| p + 1)
        };
        let level: Vec<usize> = nodes.depends.iter().map(level_of).collect();
        let branches = match straight {
            Some(_) => Branches::none(level.len()),
            None => {
                let (needed, sheltered) = (&nodes.needed[..], &nodes.sheltered[..]);
                let arguments = |id| nodes.arguments(id);
                Branches::new(request, (needed, sheltered), &level, axes.len(), arguments)
            }
        };
        let levels = branches.place(request.graph, operations, &level, axes.len());
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
}

/// The facts of a graph's nodes, by node.
struct Nodes<'q> {
    graph: &'q Graph,
    /// Its form, if it is a position that follows from the indices.
    forms: Vec<Option<PositionForm>>,
    /// For each position of a read, whether it is known to be inside.
    inside: Vec<Vec<bool>>,
    /// Whether its value counts.
    needed: Vec<bool>,
    /// Whether it is a read of which no value counts where it is outside.
    sheltered: Vec<bool>,
    /// The indices that it depends on.
    depends: Vec<u128>,
}

impl<'q> Nodes<'q> {
    /// Of a request, of which these nodes are wanted.
    fn of(request: &Request<'_, 'q>, places: &[Place], wanted: &[u32]) -> Nodes<'q> {
        let graph = request.graph;
        let count = graph.len();
        let affine = affine_forms(graph, request.ranges);
        let forms = position_forms(graph, &affine);
        let proved = |(_, node, _): (_, &Node, _)| proved(node, &forms, places);
        let inside: Vec<Vec<bool>> = graph.iter().map(proved).collect();
        let mut nodes = Nodes {
            graph,
            forms,
            inside,
            needed: vec![false; count],
            sheltered: vec![],
            depends: vec![0; count],
        };
        for node in wanted {
            nodes.needed[*node as usize] = true;
        }
        // Users come first.
        for id in (0..count).rev() {
            if nodes.needed[id] {
                for argument in nodes.arguments(id) {
                    nodes.needed[argument] = true;
                }
            }
        }
        let (needed, inside) = (&nodes.needed[..], &nodes.inside[..]);
        nodes.sheltered = sheltered(request, wanted, (needed, &affine), inside, places);
        for id in 0..count {
            let own = match graph.node(NodeId(id as u32)) {
                Node::Index(IndexId(i)) => 1u128 << i,
                Node::Read { positions, .. } => positions
                    .iter()
                    .filter_map(|p| nodes.forms[p.0 as usize].as_ref())
                    .flat_map(|form| &form.terms)
                    .fold(0, |mask, (i, _)| mask | 1 << i),
                _ => 0,
            };
            let arguments = nodes.arguments(id).into_iter();
            nodes.depends[id] = arguments.fold(own, |mask, a| mask | nodes.depends[a]);
        }
        nodes
    }

    /// The nodes whose values are computed.
    fn computed(&self) -> impl Iterator<Item = usize> {
        (0..self.graph.len()).filter(|id| self.needed[*id])
    }

    /// The strides of all reads, and about how much work a point is.
    fn reads_and_work(&self, places: &[Place], indices: usize) -> (Vec<Strides>, usize) {
        let (mut reads, mut work) = (Vec::<Strides>::new(), 1);
        for id in self.computed() {
            match self.graph.node(NodeId(id as u32)) {
                Node::Read {
                    operand, positions, ..
                } => reads.push(read_strides(
                    &places[*operand as usize],
                    positions,
                    &self.forms,
                    &self.depends,
                    indices,
                )),
                Node::Apply(function, _) => work += 1 + function.flops() as usize / 4,
                Node::Convert(_) => work += 1,
                _ => {}
            }
        }
        (reads, work)
    }

    /// How many lanes registers may have: more than usual where all that a point takes is there at places that follow from the indices, and
    /// the registers of so many lanes stay in the first cache.
    fn width(&self) -> usize {
        let mut bytes = size_of::<f64>();
        for id in self.computed() {
            let node = NodeId(id as u32);
            let inside = &self.inside[id];
            let size = self.graph.dtype(node).size();
            bytes += match self.graph.node(node) {
                _ if may_fault(self.graph, id, inside) => return WIDTH,
                // Most are views of what lies there.
                Node::Read { positions, .. } => {
                    let along = |p: &NodeId| {
                        let form = self.forms[p.0 as usize].as_ref();
                        form.is_some_and(|form| form.divisor == 1 && form.modulus.is_none())
                    };
                    if inside.contains(&false) || !positions.iter().all(along) {
                        return WIDTH;
                    }
                    0
                }
                _ => size,
            };
        }
        (FIRST_CACHE / bytes / WIDTH * WIDTH).clamp(WIDTH, WIDEST)
    }

    /// The register of each node, and how many of each bank there are; `strip`: the indices of the lanes.
    fn registers(&self, strip: u128) -> (Vec<Register>, [usize; 6]) {
        let graph = self.graph;
        let mut banks = [0usize; 6];
        let mut registers: Vec<Register> = Vec::with_capacity(graph.len());
        for id in 0..graph.len() {
            let dtype = graph.dtype(NodeId(id as u32));
            let (whole, halves) = constant(graph, id).map_or((None, None), op::exponent);
            let mut register = Register {
                dtype,
                slot: 0,
                poison: None,
                uniform: self.depends[id] & strip == 0,
                whole,
                halves,
            };
            if self.needed[id] {
                let bank = bank_of(dtype);
                register.slot = banks[bank] as u32;
                banks[bank] += 1;
                let mut arguments = self.arguments(id).into_iter();
                let faults = may_fault(graph, id, &self.inside[id]) && !self.sheltered[id];
                if faults || arguments.any(|a| registers[a].poison.is_some()) {
                    register.poison = Some(banks[5] as u32);
                    banks[5] += 1;
                }
            }
            registers.push(register);
        }
        (registers, banks)
    }

    /// The operation of each node that is computed.
    fn operations(
        &self,
        places: &[Place],
        wanted: &[u32],
        nest: &Nest,
        registers: &[Register],
    ) -> Vec<Option<Operation>> {
        // Copied to the lanes: uniform values with a user that is not.
        let mut splat = vec![false; registers.len()];
        for node in wanted {
            splat[*node as usize] = true;
        }
        for id in self.computed().filter(|id| !registers[*id].uniform) {
            for argument in self.arguments(id) {
                splat[argument] = true;
            }
        }
        let mut operations: Vec<Option<Operation>> = vec![None; registers.len()];
        for id in self.computed() {
            let uniform = registers[id].uniform;
            operations[id] = Some(Operation {
                node: id as u32,
                uniform,
                splat: uniform && splat[id],
                kind: self.kind(id, places, nest),
            });
        }
        operations
    }

    fn kind(&self, id: usize, places: &[Place], nest: &Nest) -> Kind {
        let inside = &self.inside[id];
        match self.graph.node(NodeId(id as u32)) {
            Node::Constant(value) => Kind::Constant(*value),
            Node::Index(IndexId(i)) => {
                let lanes = nest.strip.iter();
                let lanes = lanes.map(|s| i64::from(*s == *i as usize));
                Kind::Index {
                    index: *i as usize,
                    lanes: lanes.collect(),
                }
            }
            Node::Read {
                operand,
                column,
                positions,
                otherwise,
            } => Kind::Read(Box::new(prepare_read(
                (*operand as usize, *column as usize),
                &places[*operand as usize],
                positions,
                otherwise.filter(|_| inside.contains(&false)),
                &self.forms,
                inside,
                nest,
                &self.depends,
            ))),
            Node::Apply(function, arguments) => {
                let mut list = [0; 3];
                for (to, from) in list.iter_mut().zip(arguments) {
                    *to = from.0;
                }
                Kind::Apply(*function, list)
            }
            Node::Convert(argument) => Kind::Convert(argument.0),
        }
    }

    /// The nodes whose values an operation needs: all arguments, but not affine positions, and not what is read
    /// elsewhere if nothing is.
    fn arguments(&self, id: usize) -> Vec<usize> {
        match self.graph.node(NodeId(id as u32)) {
            Node::Constant(_) | Node::Index(_) => vec![],
            Node::Read {
                positions,
                otherwise,
                ..
            } => positions
                .iter()
                .filter(|p| self.forms[p.0 as usize].is_none())
                .chain(
                    otherwise
                        .iter()
                        .filter(|_| self.inside[id].contains(&false)),
                )
                .map(|p| p.0 as usize)
                .collect(),
            Node::Apply(_, arguments) => arguments.iter().map(|a| a.0 as usize).collect(),
            Node::Convert(argument) => vec![argument.0 as usize],
        }
    }
}

/// The number that a node is.
fn constant(graph: &Graph, id: usize) -> Option<f64> {
    match graph.node(NodeId(id as u32)) {
        Node::Constant(value) => Some(value.as_f64()),
        _ => None,
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
        Node::Apply(Function::Within, _) => true,
        _ => false,
    }
}
