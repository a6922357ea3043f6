//! Random well-typed terms: uneven sizes, every placement, one to five sites in a row or a mesh.

use crate::support::Numbers;
use egg::Id;
use ein_plan::{
    ArrayDim, DType, Function, Graph as Expression, Index, IndexId, Kernel, Mesh, Node, NodeId,
    Operand, Reduction, Window,
};
use einc_core::rules::ia::content::Content;
use einc_core::rules::ia::function::ArrayFunction;
use einc_core::rules::ia::graph::{Facts, Graph, Kind, Leaf, Tree};
use einc_core::rules::ia::keys::KeyRange;
use einc_core::rules::ia::language::{Algebra, Operator};
use einc_core::rules::ia::local::required;
use einc_core::rules::ia::predicate::{Atom, Predicate};
use einc_core::rules::ia::{Placement, Role};

pub fn graph(axes: &[u32]) -> Graph {
    Graph::new(Facts {
        mesh: Mesh {
            axes: axes.to_vec(),
        },
        ..Facts::default()
    })
    .with_explanations_enabled()
}

/// `out[indices] = f(operands read at index numbers)`, every index of that extent.
pub fn kernel(
    extents: &[u64],
    reads: &[&[u32]],
    rank: usize,
    body: impl Fn(&mut Expression, &[NodeId]) -> NodeId,
) -> Kernel {
    let mut graph = Expression::default();
    let mut nodes = vec![];
    for (operand, read) in reads.iter().enumerate() {
        let positions = read
            .iter()
            .map(|i| graph.add(Node::Index(IndexId(*i)), DType::I64))
            .collect();
        let read = Node::Read {
            operand: operand as u32,
            column: 0,
            positions,
            otherwise: None,
        };
        nodes.push(graph.add(read, DType::F64));
    }
    let root = body(&mut graph, &nodes);
    Kernel {
        indices: extents
            .iter()
            .enumerate()
            .map(|(n, e)| Index {
                name: format!("i{n}"),
                extent: *e,
            })
            .collect(),
        output_rank: rank as u32,
        operands: reads
            .iter()
            .map(|read| Operand {
                columns: vec![DType::F64],
                shape: read.iter().map(|i| extents[*i as usize]).collect(),
            })
            .collect(),
        graph,
        root,
        guard: None,
        reduction: (rank < extents.len()).then_some(Reduction::Sum),
        finish: true,
        output: vec![DType::F64],
    }
    .canonical()
}

pub fn apply2(graph: &mut Expression, function: Function, a: NodeId, b: NodeId) -> NodeId {
    graph.add(Node::Apply(function, vec![a, b]), DType::F64)
}

/// A unary kernel of arrays of these extents.
pub fn unary(extents: &[u64], function: Option<Function>) -> Kernel {
    let all: Vec<u32> = (0..extents.len() as u32).collect();
    kernel(extents, &[&all], extents.len(), |g, x| match function {
        None => apply2(g, Function::Mul, x[0], x[0]),
        Some(f) => g.add(Node::Apply(f, vec![x[0]]), DType::F64),
    })
}

/// An element-by-element kernel of two arrays.
pub fn binary(extents: &[u64], function: Function) -> Kernel {
    let all: Vec<u32> = (0..extents.len() as u32).collect();
    kernel(extents, &[&all, &all], extents.len(), |g, x| {
        apply2(g, function, x[0], x[1])
    })
}

pub fn key(extent: u64, pieces: u32, axes: &[u8]) -> KeyRange {
    KeyRange {
        extent,
        pieces,
        axes: axes.to_vec(),
    }
}

/// A relation of arrays of doubles: key dimensions, then by array dimension its extent and what cuts it.
pub fn content(keys: &[KeyRange], dims: &[(u64, Option<u32>)]) -> Content {
    Content {
        keys: keys.to_vec(),
        which: Predicate::default(),
        dims: dims
            .iter()
            .map(|(extent, cut)| ArrayDim::new(*extent, *cut))
            .collect(),
        columns: vec![DType::F64],
    }
}

/// A leaf at a placement.
pub fn leaf(graph: &mut Graph, name: &str, content: &Content, at: &Placement) -> Id {
    let leaf = Leaf {
        name: name.into(),
        content: content.clone(),
        free: false,
    };
    let number = graph.analysis.leaf(leaf);
    Tree::at(at.clone(), Tree::Node(Operator::Tensor(number), vec![])).add(graph)
}

pub fn ranges(content: &Content) -> Vec<Option<u32>> {
    content.dims.iter().map(|dim| dim.cut).collect()
}

pub fn extents(content: &Content) -> Vec<u64> {
    content.dims.iter().map(|dim| dim.extent).collect()
}

pub struct Random<'a> {
    pub n: &'a mut Numbers,
    pub graph: &'a mut Graph,
    pub leaves: u32,
}

impl Random<'_> {
    pub fn placed(&self, id: Id) -> Option<(Content, Placement)> {
        match &self.graph[id].data {
            Kind::Placed(content, at) => Some(((**content).clone(), at.clone())),
            _ => None,
        }
    }

    pub fn mesh(&self) -> Mesh {
        self.graph.analysis.mesh.clone()
    }

    fn range(&mut self) -> KeyRange {
        let axes = match (self.mesh().axes.len(), self.n.below(3)) {
            (1, _) => vec![0],
            (_, 0) => vec![0, 1],
            (_, 1) => vec![1, 0],
            _ => vec![self.n.below(2) as u8],
        };
        let extent = self.n.pick(&[1, 2, 3, 5, 7]);
        key(extent, 1 + self.n.below(5) as u32, &axes)
    }

    pub fn content(&mut self) -> Content {
        let mut keys: Vec<KeyRange> = vec![];
        let mut dims = vec![];
        for _ in 0..self.n.below(3) {
            let mut range = self.range();
            if !keys.is_empty() && self.n.below(2) == 0 {
                range = keys[0].clone();
            }
            if self.n.below(3) > 0 {
                dims.push((range.extent, Some(keys.len() as u32)));
                keys.push(range);
            } else {
                dims.push((range.extent, None));
            }
        }
        if keys.len() < 2 || self.n.below(3) == 0 {
            let range = self.range();
            keys.push(range);
        }
        content(&keys, &dims)
    }

    pub fn placement(&mut self, content: &Content, partial: bool) -> Placement {
        let mesh = self.mesh();
        loop {
            let role = |n: &mut Numbers| match n.below(8) {
                0 => Role::Every,
                1 => Role::Keys(vec![]),
                2 if partial => {
                    Role::Partial(n.pick(&[Reduction::Sum, Reduction::Sum, Reduction::Max]))
                }
                3 if content.keys.len() > 1 => Role::Keys(vec![1, 0]),
                _ if content.keys.is_empty() => Role::Every,
                _ => Role::Keys(vec![n.below(content.keys.len()) as u32]),
            };
            let at = Placement(mesh.axes.iter().map(|_| role(self.n)).collect()).on(&mesh);
            // Addends of one kind.
            let kinds: Vec<&Role> =
                at.0.iter()
                    .filter(|r| matches!(r, Role::Partial(_)))
                    .collect();
            if at.fits(&content.keys, &mesh) && kinds.windows(2).all(|pair| pair[0] == pair[1]) {
                return at;
            }
        }
    }

    pub fn leaf(&mut self, content: &Content, at: &Placement) -> Id {
        self.leaves += 1;
        let name = format!("x{}", self.leaves);
        leaf(self.graph, &name, content, at)
    }

    /// A term of some depth.
    pub fn term(&mut self, depth: usize) -> Id {
        if depth == 0 {
            let content = self.content();
            let at = self.placement(&content, true);
            return self.leaf(&content, &at);
        }
        let input = self.term(depth - 1);
        for _ in 0..12 {
            let Some(tree) = self.over(input) else {
                continue;
            };
            let id = tree.add(self.graph);
            if matches!(self.graph[id].data, Kind::Placed(..)) {
                return id;
            }
        }
        input
    }

    /// Some operator of a term.
    fn over(&mut self, input: Id) -> Option<Tree> {
        let (kind, at) = self.placed(input)?;
        let arity = kind.keys.len() as u32;
        // Kernels of whole pieces read more than windows have.
        let windowed = kind.dims.iter().any(|dim| dim.window.is_some());
        let turn = match windowed {
            true => self.n.pick(&[0, 0, 4]),
            false => self.n.below(14),
        };
        let algebra = match turn {
            0..=3 => {
                let to = self.placement(&kind, false);
                return Some(Tree::moved(to, Tree::Class(input)));
            }
            4 if arity > 0 => {
                let k = self.n.below(arity as usize) as u32;
                let atom = match self.n.below(2) {
                    0 => Atom::Is(
                        k,
                        self.n.below(kind.keys[k as usize].pieces as usize) as u32,
                    ),
                    _ if arity > 1 => Atom::Equal(k, (k + 1) % arity),
                    _ => return None,
                };
                Algebra::Filter(Predicate::new([atom]))
            }
            5 | 6 => {
                let function = self.n.pick(&[
                    None,
                    Some(Function::Neg),
                    Some(Function::Relu),
                    Some(Function::Exp),
                ]);
                let kernel = unary(&extents(&kind), function);
                let kernel = self.graph.analysis.kernels.add(&kernel);
                Algebra::transform(
                    arity as usize,
                    ArrayFunction::of_kernel(kernel, ranges(&kind), 1),
                )
            }
            7 => {
                // A selection: the diagonal, or the transposed array.
                let e = extents(&kind);
                let cuts = ranges(&kind);
                let (kernel, ranges) = match &e[..] {
                    [a, b]
                        if a == b
                            && self.n.below(2) == 0
                            && cuts[0].is_some() == cuts[1].is_some() =>
                    {
                        (kernel(&[*a], &[&[0, 0]], 1, |_, x| x[0]), vec![cuts[0]])
                    }
                    [a, b] => (
                        kernel(&[*b, *a], &[&[1, 0]], 2, |_, x| x[0]),
                        vec![cuts[1], cuts[0]],
                    ),
                    _ => return None,
                };
                // A piece of a diagonal is at hand only where both pieces are the same.
                if ranges.len() == 1 && cuts[0] != cuts[1] {
                    return None;
                }
                let kernel = self.graph.analysis.kernels.add(&kernel);
                Algebra::transform(arity as usize, ArrayFunction::of_kernel(kernel, ranges, 1))
            }
            8 if arity > 1 => {
                let turn = self.n.below(3);
                let mut keys: Vec<u32> = (0..arity).collect();
                keys.rotate_left(self.n.below(arity as usize));
                if turn == 0 {
                    keys.remove(self.n.below(arity as usize));
                }
                Algebra::rekey(keys)
            }
            9 | 10 => {
                let cuts: Vec<u32> = kind.dims.iter().filter_map(|d| d.cut).collect();
                let kept = (0..arity)
                    .filter(|k| cuts.contains(k) || self.n.below(3) == 0)
                    .collect();
                let reduction = self.n.pick(&[
                    Reduction::Sum,
                    Reduction::Sum,
                    Reduction::Max,
                    Reduction::Min,
                ]);
                let mut sum = Algebra::aggregate(kept, reduction);
                // Sometimes a kept key dimension that cuts no array is kept along one of its axes only.
                if let Algebra::Aggregate { keep, coarse, .. } = &mut sum
                    && self.n.below(2) == 0
                    && let Some(at) = keep.iter().position(|k| !cuts.contains(k))
                {
                    let mut range = kind.keys[keep[at] as usize].clone();
                    let axis = self.n.pick(&range.axes);
                    range.axes = vec![axis];
                    range.pieces = self.mesh().axes[axis as usize];
                    *coarse = vec![None; keep.len()];
                    coarse[at] = Some(range);
                }
                sum
            }
            11 if self.n.below(2) == 0 => return self.windows(input),
            11 => match self.n.below(3) {
                0 => Algebra::Replicate {
                    at: self.n.below(arity as usize + 1) as u32,
                    key: self.range(),
                },
                1 => {
                    let dim = self.n.below(kind.dims.len());
                    let extent = kind.dims.get(dim)?.extent;
                    let mut key = self.range();
                    key.extent = extent;
                    Algebra::Tile {
                        array_dim: dim as u32,
                        key,
                    }
                }
                _ => Algebra::Concat {
                    array_dim: self.n.below(kind.dims.len()) as u32,
                },
            },
            _ => return self.join(input, &kind, &at),
        };
        Some(Tree::unary(algebra, Tree::Class(input)))
    }

    /// Windows of a term, all of which every site has; nothing where it has key dimensions that cut nothing.
    pub fn windows(&mut self, input: Id) -> Option<Tree> {
        let (kind, at) = self.placed(input)?;
        let range = self.range();
        let dims = kind.dims.iter().map(|dim| {
            let low = self.n.below(4) as i64 - 2;
            let high = low + self.n.below(3) as i64;
            let (key, scale) = match self.n.below(4) {
                0 => return ArrayDim::whole(dim.extent),
                1 => (None, 0),
                turn => (Some(0), 2 * turn as i64 - 5),
            };
            let window = Window {
                key,
                scale,
                low,
                high,
                divisor: key.map_or(1, |_| self.n.below(3) as i64 + 1),
            };
            ArrayDim::windowed(dim.extent, window)
        });
        let window = Algebra::Window {
            dims: dims.collect(),
            keys: vec![range],
        };
        let everywhere = Placement::every(at.0.len());
        Some(Tree::unary(
            window,
            Tree::moved(everywhere, Tree::Class(input)),
        ))
    }

    /// A join with a new leaf: element by element of the same type, or an outer product.
    fn join(&mut self, input: Id, kind: &Content, at: &Placement) -> Option<Tree> {
        let arity = kind.keys.len();
        let e = extents(kind);
        let own: Vec<u32> = (0..arity as u32).collect();
        let (other, join) = if self.n.below(2) == 0 {
            let function = self.n.pick(&[Function::Add, Function::Sub, Function::Mul]);
            let kernel = self.graph.analysis.kernels.add(&binary(&e, function));
            let join = Algebra::Join {
                keys: kind.keys.clone(),
                inputs: vec![own.clone(), own.clone()],
                keep: own,
                function: ArrayFunction::of_kernel(kernel, ranges(kind), 2),
            };
            let plain = Content {
                which: Predicate::default(),
                ..kind.clone()
            };
            (plain, join)
        } else {
            let mut keys = kind.keys.clone();
            let mut map: Vec<u32> = own
                .iter()
                .copied()
                .filter(|_| self.n.below(2) == 0)
                .collect();
            if self.n.below(2) == 0 {
                map.push(keys.len() as u32);
                let range = self.range();
                keys.push(range);
            }
            let other_keys: Vec<KeyRange> = map.iter().map(|k| keys[*k as usize].clone()).collect();
            let other = content(&other_keys, &[(3, None)]);
            let all: Vec<u32> = (0..e.len() as u32).collect();
            let last = [e.len() as u32];
            let sizes = [&e[..], &[3]].concat();
            let outer = kernel(&sizes, &[&all, &last], sizes.len(), |g, x| {
                apply2(g, Function::Mul, x[0], x[1])
            });
            let outer = self.graph.analysis.kernels.add(&outer);
            let mut cuts = ranges(kind);
            cuts.push(None);
            let join = Algebra::Join {
                keep: (0..keys.len() as u32).collect(),
                keys,
                inputs: vec![own, map],
                function: ArrayFunction::of_kernel(outer, cuts, 2),
            };
            (other, join)
        };
        if at.is_partial() && self.n.below(3) > 0 {
            let same = self.leaf(&other, at);
            return Some(Tree::local(
                join,
                vec![Tree::Class(input), Tree::Class(same)],
            ));
        }
        let Algebra::Join { keys, .. } = &join else {
            return None;
        };
        let result = content(keys, &[]);
        let to = self.placement(&result, false);
        let needs = required(&join, &[kind, &other], &to);
        let right = self.leaf(&other, &needs[1]);
        let left = match self.n.below(3) {
            0 => Tree::Class(input),
            _ => Tree::moved(needs[0].clone(), Tree::Class(input)),
        };
        let right = match self.n.below(3) {
            0 => {
                let start = self.placement(&other, false);
                let id = self.leaf(&other, &start);
                Tree::moved(needs[1].clone(), Tree::Class(id))
            }
            _ => Tree::Class(right),
        };
        Some(Tree::local(join, vec![left, right]))
    }
}
