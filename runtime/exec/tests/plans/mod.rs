//! Plans built by hand, for tests: the smallest ones that contain every kind of step.
//!
//! Must not know how a plan is run.
//!
//! ```text
//! matmul [7, 5, 6] on 3 sites: A @ PART(i), B @ PART(k); broadcast B; join; C @ PART(i)
//! ```
#![allow(dead_code, clippy::unwrap_used)]

use ein_plan::*;

/// A plan in the making; every relation is freed at its last use when it is finished.
pub struct Builder {
    pub plan: Plan,
}

/// `{name: extent/pieces, …}`.
pub fn keys(dims: &[(&str, u64, u32)]) -> Vec<KeyDim> {
    dims.iter()
        .map(|(name, extent, pieces)| KeyDim {
            name: (*name).into(),
            extent: *extent,
            pieces: *pieces,
            axes: vec![0],
        })
        .collect()
}

/// Array dimensions: extent, and the key dimension that cuts it.
pub fn kind(
    keys: Vec<KeyDim>,
    dims: &[(u64, Option<u32>)],
    column: DType,
    placement: Placement,
) -> RelationType {
    let dims = dims
        .iter()
        .map(|(extent, cut)| ArrayDim::new(*extent, *cut))
        .collect();
    RelationType {
        keys,
        array: ArrayType {
            dims,
            columns: vec![column],
        },
        placement,
    }
}

/// By a key dimension; without one, at the first site.
pub fn part(dims: &[u32]) -> Placement {
    let role = match dims {
        [] => AxisRole::First,
        [key, ..] => AxisRole::Key(*key),
    };
    Placement { roles: vec![role] }
}

/// At every site.
pub fn all() -> Placement {
    Placement {
        roles: vec![AxisRole::Every],
    }
}

impl Builder {
    pub fn new(sites: u32) -> Builder {
        Builder {
            plan: Plan {
                sites,
                mesh: Mesh::row(sites),
                deterministic: true,
                files: vec!["test.ein".into()],
                kernels: vec![],
                steps: vec![],
                repeats: vec![],
                loops: Default::default(),
                sweeps: vec![],
                exchanges: vec![],
                resting: Default::default(),
                spills: vec![],
                streams: vec![],
                outputs: vec![],
            },
        }
    }

    pub fn step(&mut self, tensor: &str, kind: RelationType, operation: Operation) -> RelationId {
        let result = RelationId(self.plan.steps.len() as u32);
        self.plan.steps.push(Step {
            result,
            tensor: tensor.into(),
            kind,
            operation,
            frees: vec![],
            origin: Origin {
                file: 0,
                start: 0,
                end: 1,
                line: result.0 + 1,
            },
        });
        result
    }

    pub fn source(&mut self, name: &str, source: Source, kind: RelationType) -> RelationId {
        let name_ = name.to_owned();
        self.step(
            name,
            kind,
            Operation::Source {
                name: name_,
                source,
            },
        )
    }

    pub fn broadcast(&mut self, input: RelationId) -> RelationId {
        let mut kind = self.plan.kind(input).clone();
        kind.placement = all();
        let tensor = self.plan.step(input).tensor.clone();
        self.step(&tensor, kind, Operation::Broadcast { input })
    }

    pub fn shuffle(&mut self, input: RelationId, placement: Placement) -> RelationId {
        let mut kind = self.plan.kind(input).clone();
        kind.placement = placement;
        let tensor = self.plan.step(input).tensor.clone();
        self.step(&tensor, kind, Operation::Shuffle { input })
    }

    pub fn kernel(&mut self, kernel: Kernel) -> KernelId {
        self.plan.kernels.push(kernel);
        KernelId(self.plan.kernels.len() as u32 - 1)
    }

    pub fn output(&mut self, name: &str, relation: RelationId, file: Option<&str>) {
        let kind = self.plan.kind(relation);
        let (dtype, shape) = (
            kind.array.columns[0],
            kind.array.dims.iter().map(|d| d.extent).collect(),
        );
        self.plan.outputs.push(Output {
            name: name.into(),
            relation,
            dtype,
            shape,
            replaces: None,
            file: file.map(Into::into),
            asserts: None,
            complex: false,
            origin: Origin::default(),
        });
    }

    /// The plan, every relation freed where it is last used.
    pub fn finish(mut self) -> Plan {
        let outputs: Vec<RelationId> = self.plan.outputs.iter().map(|o| o.relation).collect();
        for relation in 0..self.plan.steps.len() as u32 {
            let relation = RelationId(relation);
            if outputs.contains(&relation) {
                continue;
            }
            let last =
                self.plan.steps.iter().rposition(|s| {
                    s.result == relation || inputs(&s.operation).contains(&relation)
                });
            self.plan.steps[last.unwrap()].frees.push(relation);
        }
        self.plan.schedule();
        self.plan
    }
}

fn inputs(operation: &Operation) -> Vec<RelationId> {
    match operation {
        Operation::Source { .. } | Operation::Loop { .. } => vec![],
        Operation::LocalJoin { inputs, .. } => inputs.iter().map(|i| i.relation).collect(),
        Operation::Broadcast { input }
        | Operation::Shuffle { input }
        | Operation::Window { input }
        | Operation::LocalAggregate { input, .. }
        | Operation::LocalConcat { input, .. }
        | Operation::LocalTile { input, .. }
        | Operation::LocalFilter { input, .. } => vec![*input],
    }
}

pub fn join(relation: RelationId, keys: &[u32]) -> JoinInput {
    JoinInput {
        relation,
        keys: keys.to_vec(),
    }
}

fn index(name: &str, extent: u64) -> Index {
    Index {
        name: name.into(),
        extent,
    }
}

fn operand(dtype: DType, shape: &[u64]) -> Operand {
    Operand {
        columns: vec![dtype],
        shape: shape.to_vec(),
    }
}

fn read(graph: &mut Graph, operand: u32, positions: Vec<NodeId>, dtype: DType) -> NodeId {
    graph.add(
        Node::Read {
            operand,
            column: 0,
            positions,
            otherwise: None,
        },
        dtype,
    )
}

/// `[i, j | k] sum a0[i, k] * a1[k, j]`
pub fn product([i, j, k]: [u64; 3]) -> Kernel {
    let mut graph = Graph::default();
    let at: Vec<NodeId> = (0..3)
        .map(|n| graph.add(Node::Index(IndexId(n)), DType::I64))
        .collect();
    let a = read(&mut graph, 0, vec![at[0], at[2]], DType::F64);
    let b = read(&mut graph, 1, vec![at[2], at[1]], DType::F64);
    let root = graph.add(Node::Apply(Function::Mul, vec![a, b]), DType::F64);
    Kernel {
        indices: vec![index("i", i), index("j", j), index("k", k)],
        output_rank: 2,
        operands: vec![operand(DType::F64, &[i, k]), operand(DType::F64, &[k, j])],
        graph,
        root,
        guard: None,
        reduction: Some(Reduction::Sum),
        finish: true,
        output: vec![DType::F64],
    }
}

/// `[n] a0[a1[n]]`
pub fn gather(rows: u64, table: u64) -> Kernel {
    let mut graph = Graph::default();
    let n = graph.add(Node::Index(IndexId(0)), DType::I64);
    let at = read(&mut graph, 1, vec![n], DType::I64);
    let root = read(&mut graph, 0, vec![at], DType::F64);
    Kernel {
        indices: vec![index("n", rows)],
        output_rank: 1,
        operands: vec![operand(DType::F64, &[table]), operand(DType::I64, &[rows])],
        graph,
        root,
        guard: None,
        reduction: None,
        finish: true,
        output: vec![DType::F64],
    }
}

/// A product whose right operand is broadcast: A cut along i, B along k in `pieces`.
pub fn broadcast_product(sites: u32, [i, j, k]: [u64; 3], pieces: u32) -> Plan {
    let mut b = Builder::new(sites);
    let a = b.source(
        "A",
        Source::Iota,
        kind(
            keys(&[("i", i, pieces)]),
            &[(i, Some(0)), (k, None)],
            DType::F64,
            part(&[0]),
        ),
    );
    let right = b.source(
        "B",
        Source::Iota,
        kind(
            keys(&[("j", j, pieces)]),
            &[(k, None), (j, Some(0))],
            DType::F64,
            part(&[0]),
        ),
    );
    let everywhere = b.broadcast(right);
    let kernel = b.kernel(product([i, j, k]));
    let c = b.step(
        "C",
        kind(
            keys(&[("i", i, pieces), ("j", j, pieces)]),
            &[(i, Some(0)), (j, Some(1))],
            DType::F64,
            part(&[0]),
        ),
        Operation::LocalJoin {
            inputs: vec![join(a, &[0]), join(everywhere, &[1])],
            kernel,
            ranges: vec![Range::Key(0), Range::Key(1), Range::Whole],
            fold: None,
        },
    );
    b.output("C", c, None);
    b.finish()
}

/// A product whose contracted index is cut: partial products are shuffled and added up.
pub fn cut_product(sites: u32, [i, j, k]: [u64; 3], pieces: u32) -> Plan {
    let mut b = Builder::new(sites);
    let a = b.source(
        "A",
        Source::Iota,
        kind(
            keys(&[("i", i, pieces), ("k", k, pieces)]),
            &[(i, Some(0)), (k, Some(1))],
            DType::F64,
            part(&[1]),
        ),
    );
    let right = b.source(
        "B",
        Source::Iota,
        kind(
            keys(&[("k", k, pieces)]),
            &[(k, Some(0)), (j, None)],
            DType::F64,
            part(&[0]),
        ),
    );
    let kernel = b.kernel(product([i, j, k]));
    let partial = b.step(
        "C",
        kind(
            keys(&[("i", i, pieces), ("k", k, pieces)]),
            &[(i, Some(0)), (j, None)],
            DType::F64,
            part(&[1]),
        ),
        Operation::LocalJoin {
            inputs: vec![join(a, &[0, 1]), join(right, &[1])],
            kernel,
            ranges: vec![Range::Key(0), Range::Whole, Range::Key(1)],
            fold: None,
        },
    );
    let moved = b.shuffle(partial, part(&[0]));
    let c = b.step(
        "C",
        kind(
            keys(&[("i", i, pieces)]),
            &[(i, Some(0)), (j, None)],
            DType::F64,
            part(&[0]),
        ),
        Operation::LocalAggregate {
            input: moved,
            keep: vec![0],
            reduction: Reduction::Sum,
        },
    );
    b.output("C", c, None);
    b.finish()
}

/// Re-chunks iota[r, c]: cut by rows, put together at site 0, cut by columns, spread, one row block kept.
pub fn rechunk(sites: u32, [r, c]: [u64; 2], rows: u32, columns: u32) -> Plan {
    let mut b = Builder::new(sites);
    let by_row = b.source(
        "X",
        Source::Iota,
        kind(
            keys(&[("r", r, rows)]),
            &[(r, Some(0)), (c, None)],
            DType::F64,
            part(&[0]),
        ),
    );
    let here = b.shuffle(by_row, part(&[]));
    let whole = b.step(
        "X",
        kind(vec![], &[(r, None), (c, None)], DType::F64, part(&[])),
        Operation::LocalConcat {
            input: here,
            array_dim: 0,
        },
    );
    let tiled = b.step(
        "X",
        kind(
            keys(&[("c", c, columns)]),
            &[(r, None), (c, Some(0))],
            DType::F64,
            part(&[]),
        ),
        Operation::LocalTile {
            input: whole,
            array_dim: 1,
        },
    );
    let spread = b.shuffle(tiled, part(&[0]));
    b.output("X", spread, None);
    let everywhere = b.broadcast(spread);
    let first = b.step(
        "F",
        kind(
            vec![],
            &[(r, None), (piece(c, columns, 0).1, None)],
            DType::F64,
            all(),
        ),
        Operation::LocalFilter {
            input: everywhere,
            key: 0,
            value: 0,
        },
    );
    b.output("F", first, None);
    b.finish()
}

/// `out[n] = table[at[n]]`, table at every site, `at` cut; `at` is the row number itself.
pub fn lookup(sites: u32, rows: u64, table: u64, pieces: u32) -> Plan {
    let mut b = Builder::new(sites);
    let values = b.source(
        "table",
        Source::Iota,
        kind(vec![], &[(table, None)], DType::F64, all()),
    );
    let at = b.source(
        "at",
        Source::Iota,
        kind(
            keys(&[("n", rows, pieces)]),
            &[(rows, Some(0))],
            DType::I64,
            part(&[0]),
        ),
    );
    let kernel = b.kernel(gather(rows, table));
    let out = b.step(
        "out",
        kind(
            keys(&[("n", rows, pieces)]),
            &[(rows, Some(0))],
            DType::F64,
            part(&[0]),
        ),
        Operation::LocalJoin {
            inputs: vec![join(values, &[]), join(at, &[0])],
            kernel,
            ranges: vec![Range::Key(0)],
            fold: None,
        },
    );
    let spread = b.broadcast(out);
    b.output("out", spread, None);
    b.finish()
}

/// Rounds that move two vectors, and a movement behind them; `together`: with movements in exchanges, beside steps, and relations
/// that rest on disk.
pub fn meetings(sites: u32, together: bool) -> Plan {
    let more = match together {
        false => "",
        true => {
            "exchange r6, r7 until r8
exchange r14 until r16
spill r1 before r2 until r16
spill r2 before r12 until r13
spill r4 before r5 until r7
spill r4 before r9 until r11
spill r5 before r6 until r8
"
        }
    };
    let text = format!(
        "plan for {sites} sites
kernel k0 (f64[9]) [i: 9] f64 = a0[i] * 0.5_f64
kernel k1 (f64[9], f64[9]) [i: 9] f64 = a0[i] + a1[i]
kernel k2 (f64[9]) [i: 9] f64 = a0[i] - 1.5_f64
kernel k3 (f64[9], f64[9], f64[9], f64[9]) [i: 9 | j: 9] f64 = sum a0[i] * a2[j] + a1[i] * a3[j] * 0.01_f64
r0 x: {{i: 9/4}} f64[i] @ PART(i) = source x from iota
r1 y: {{i: 9/4}} f64[i] @ PART(i) = join k0(r0{{i}}) over [i]
r2 w: {{i: 9/4}} f64[i] @ PART(i) = source w from full(2.0)
repeat b0 t < 3; state r0 next r11
  r3 x: {{i: 9/4}} f64[i] @ PART(i) = loop state b0.0
  r4 a: {{i: 9/4}} f64[i] @ PART(i) = join k2(r3{{i}}) over [i]
  r5 c: {{i: 9/4}} f64[i] @ PART(i) = join k0(r3{{i}}) over [i]
  r6 x: {{i: 9/4}} f64[i] @ ALL = broadcast r3
  r7 a: {{i: 9/4}} f64[i] @ ALL = broadcast r4
  r8 b: {{i: 9/4}} f64[i] @ PART(i) = join k0(r5{{i}}) over [i]
  r9 x: {{}} f64[9] @ ALL = concat r6 dim 0
  r10 a: {{}} f64[9] @ ALL = concat r7 dim 0
  r11 x: {{i: 9/4}} f64[i] @ PART(i) = join k3(r4{{i}}, r8{{i}}, r9{{}}, r10{{}}) over [i, _]
end b0
r12 x: {{i: 9/4}} f64[i] @ PART(i) = loop last b0.0
r13 v: {{i: 9/4}} f64[i] @ PART(i) = join k1(r12{{i}}, r2{{i}}) over [i]
r14 v: {{i: 9/4}} f64[i] @ ALL = broadcast r13
r15 q: {{i: 9/4}} f64[i] @ PART(i) = join k0(r12{{i}}) over [i]
r16 s: {{i: 9/4}} f64[i] @ PART(i) = join k1(r15{{i}}, r1{{i}}) over [i]
r17 v: {{}} f64[9] @ ALL = concat r14 dim 0
{more}output s = r16: f64[9]
output v = r17: f64[9]
"
    );
    let mut plan: Plan = text.parse().unwrap();
    let ends = ein_plan::lifetime::ends(&plan);
    for (step, frees) in plan.steps.iter_mut().zip(ends.steps) {
        step.frees = frees;
    }
    let ends = ends.enters.into_iter().zip(ends.exits);
    for (repeat, (enters, frees)) in plan.repeats.iter_mut().zip(ends) {
        (repeat.enters, repeat.frees) = (enters, frees);
    }
    plan.schedule();
    verify::verify(&plan).unwrap();
    assert_eq!(plan.to_string().parse(), Ok(plan.clone()));
    plan
}
