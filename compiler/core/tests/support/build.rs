//! Programs built by hand, a statement a call.

use ein_plan::{
    DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Origin, Reduction,
    Scalar, Source,
};
use einc_core::einsum::{Definition, Output, Program, Role, Tensor, TensorId};

pub struct Build {
    pub program: Program,
}

/// The right side of a statement.
pub struct Body<'a> {
    program: &'a Program,
    pub graph: Graph,
    operands: Vec<TensorId>,
    pub guard: Option<NodeId>,
}

impl Build {
    pub fn new() -> Build {
        Build {
            program: Program {
                files: vec!["model.ein".into()],
                ..Program::default()
            },
        }
    }

    fn push(
        &mut self,
        name: &str,
        dtype: DType,
        shape: Vec<u64>,
        definition: Definition,
    ) -> TensorId {
        let line = self.program.tensors.len() as u32 + 1;
        let role = match definition {
            Definition::Source(_) | Definition::Loop(_) => Role::Input,
            Definition::Statement { .. } => Role::Named,
        };
        self.program.tensors.push(Tensor {
            name: name.into(),
            dtype,
            shape,
            role,
            definition,
            block: None,
            origin: Origin {
                file: 0,
                start: 10 * line,
                end: 10 * line + 5,
                line,
            },
        });
        TensorId(line - 1)
    }

    pub fn input(&mut self, name: &str, dtype: DType, shape: &[u64]) -> TensorId {
        self.source(name, dtype, shape, Source::Unbound)
    }

    pub fn source(&mut self, name: &str, dtype: DType, shape: &[u64], source: Source) -> TensorId {
        self.push(name, dtype, shape.to_vec(), Definition::Source(source))
    }

    /// `name[out] = reduction[reduced] body`; index numbers are positions in `out` then `reduced`.
    pub fn statement(
        &mut self,
        name: &str,
        out: &[(&str, u64)],
        reduction: Option<(Reduction, &[(&str, u64)])>,
        body: impl FnOnce(&mut Body<'_>) -> NodeId,
    ) -> TensorId {
        let mut under = Body {
            program: &self.program,
            graph: Graph::default(),
            operands: vec![],
            guard: None,
        };
        let root = body(&mut under);
        let Body {
            graph,
            operands,
            guard,
            ..
        } = under;
        let reduced = reduction.map_or(&[][..], |(_, reduced)| reduced);
        let index = |(name, extent): &(&str, u64)| Index {
            name: (*name).into(),
            extent: *extent,
        };
        let value = graph.dtype(root);
        let dtype = reduction.map_or(value, |(r, _)| r.result(value));
        let kernel = Kernel {
            indices: out.iter().chain(reduced).map(index).collect(),
            output_rank: out.len() as u32,
            operands: operands
                .iter()
                .map(|id| {
                    let tensor = self.program.tensor(*id);
                    Operand {
                        columns: vec![tensor.dtype],
                        shape: tensor.shape.clone(),
                    }
                })
                .collect(),
            graph,
            root,
            guard,
            reduction: reduction.map(|(r, _)| r),
            finish: true,
            output: vec![dtype],
        };
        let shape = out.iter().map(|(_, extent)| *extent).collect();
        self.push(
            name,
            dtype,
            shape,
            Definition::Statement { kernel, operands },
        )
    }

    pub fn output(&mut self, tensor: TensorId) {
        self.program.outputs.push(Output {
            tensor,
            replaces: None,
            file: None,
            asserts: None,
            complex: false,
            origin: Origin {
                file: 0,
                start: 1,
                end: 2,
                line: 99,
            },
        });
    }
}

impl Body<'_> {
    pub fn index(&mut self, number: u32) -> NodeId {
        self.graph.add(Node::Index(IndexId(number)), DType::I64)
    }

    pub fn int(&mut self, n: i64) -> NodeId {
        self.graph.add(Node::Constant(Scalar::Int(n)), DType::I64)
    }

    pub fn float(&mut self, x: f64) -> NodeId {
        self.graph.add(Node::Constant(Scalar::Float(x)), DType::F32)
    }

    fn operand(&mut self, tensor: TensorId) -> u32 {
        let found = self.operands.iter().position(|o| *o == tensor);
        found.unwrap_or_else(|| {
            self.operands.push(tensor);
            self.operands.len() - 1
        }) as u32
    }

    pub fn read_at(
        &mut self,
        tensor: TensorId,
        positions: Vec<NodeId>,
        otherwise: Option<NodeId>,
    ) -> NodeId {
        let operand = self.operand(tensor);
        let dtype = self.program.tensor(tensor).dtype.compute();
        self.graph.add(
            Node::Read {
                operand,
                column: 0,
                positions,
                otherwise,
            },
            dtype,
        )
    }

    /// A read by bare indices.
    pub fn read(&mut self, tensor: TensorId, indices: &[u32]) -> NodeId {
        let positions = indices.iter().map(|i| self.index(*i)).collect();
        self.read_at(tensor, positions, None)
    }

    pub fn apply(&mut self, function: Function, arguments: &[NodeId]) -> NodeId {
        use Function as F;
        let dtype = match function {
            F::Eq | F::Ne | F::Lt | F::Le | F::Gt | F::Ge => DType::Bool,
            F::Select => self.graph.dtype(arguments[1]),
            _ => self.graph.dtype(arguments[0]),
        };
        self.graph
            .add(Node::Apply(function, arguments.to_vec()), dtype)
    }

    pub fn convert(&mut self, node: NodeId, dtype: DType) -> NodeId {
        self.graph.add(Node::Convert(node), dtype)
    }
}

pub fn matmul(i: u64, k: u64, j: u64) -> Program {
    let mut b = Build::new();
    let x = b.input("A", DType::F32, &[i, k]);
    let y = b.input("B", DType::F32, &[k, j]);
    let c = b.statement(
        "C",
        &[("i", i), ("j", j)],
        Some((Reduction::Sum, &[("k", k)])),
        |s| {
            let (x, y) = (s.read(x, &[0, 2]), s.read(y, &[2, 1]));
            s.apply(Function::Mul, &[x, y])
        },
    );
    b.output(c);
    b.program
}

pub fn nearest(n: u64, d: u64) -> Program {
    let mut b = Build::new();
    let x = b.input("X", DType::F32, &[n, d]);
    let q = b.input("q", DType::F32, &[d]);
    let a = b.input("A", DType::F32, &[d, d]);
    let diff = b.statement("diff", &[("n", n), ("d", d)], None, |s| {
        let (x, q) = (s.read(x, &[0, 1]), s.read(q, &[1]));
        s.apply(Function::Sub, &[x, q])
    });
    let proj = b.statement(
        "proj",
        &[("n", n), ("e", d)],
        Some((Reduction::Sum, &[("d", d)])),
        |s| {
            let (x, y) = (s.read(diff, &[0, 2]), s.read(a, &[2, 1]));
            s.apply(Function::Mul, &[x, y])
        },
    );
    let dist = b.statement(
        "dist",
        &[("n", n)],
        Some((Reduction::Sum, &[("e", d)])),
        |s| {
            let (x, y) = (s.read(proj, &[0, 1]), s.read(diff, &[0, 1]));
            s.apply(Function::Mul, &[x, y])
        },
    );
    let best = b.statement("best", &[], Some((Reduction::ArgMin, &[("n", n)])), |s| {
        s.read(dist, &[0])
    });
    b.output(best);
    b.output(dist);
    b.program
}

/// The row of the smallest first element: a gather by a scalar, with a diagonal and an index's number besides.
pub fn gather(n: u64, d: u64) -> Program {
    let mut b = Build::new();
    let x = b.input("X", DType::F32, &[n, d]);
    let first = b.statement("best", &[], Some((Reduction::ArgMin, &[("n", n)])), |s| {
        let (n, zero) = (s.index(0), s.int(0));
        s.read_at(x, vec![n, zero], None)
    });
    let row = b.statement("row", &[("d", d)], None, |s| {
        let best = s.read(first, &[]);
        let at = s.index(0);
        s.read_at(x, vec![best, at], None)
    });
    let m = n.min(d);
    let diagonal = b.statement("diagonal", &[("i", m)], None, |s| {
        let (x, i) = (s.read(x, &[0, 0]), s.index(0));
        let i = s.convert(i, DType::F32);
        s.apply(Function::Add, &[x, i])
    });
    b.output(row);
    b.output(diagonal);
    b.program
}

pub fn softmax(t: u64, s: u64) -> Program {
    let mut b = Build::new();
    let x = b.input("x", DType::F32, &[t, s]);
    let out = [("t", t), ("s", s)];
    let top = b.statement("top", &out[..1], Some((Reduction::Max, &out[1..])), |b| {
        b.read(x, &[0, 1])
    });
    let weight = b.statement("weight", &out, None, |b| {
        let (x, top) = (b.read(x, &[0, 1]), b.read(top, &[0]));
        let less = b.apply(Function::Sub, &[x, top]);
        b.apply(Function::Exp, &[less])
    });
    let total = b.statement("total", &out[..1], Some((Reduction::Sum, &out[1..])), |b| {
        b.read(weight, &[0, 1])
    });
    let y = b.statement("y", &out, None, |b| {
        let (x, total) = (b.read(weight, &[0, 1]), b.read(total, &[0]));
        b.apply(Function::Div, &[x, total])
    });
    b.output(y);
    b.program
}

pub fn conv(n: u64, h: u64) -> Program {
    let mut b = Build::new();
    let image = b.input("I", DType::F32, &[n, 2, h]);
    let filter = b.source(
        "K",
        DType::F32,
        &[3, 2, 3],
        Source::Normal {
            mean: 0.0,
            std: 1.0,
        },
    );
    let out = [("n", n), ("f", 3), ("y", h / 2)];
    let y = b.statement(
        "O",
        &out,
        Some((Reduction::Sum, &[("c", 2), ("r", 3)])),
        |s| {
            let (two, y, r, one) = (s.int(2), s.index(2), s.index(4), s.int(1));
            let y = s.apply(Function::Mul, &[two, y]);
            let y = s.apply(Function::Add, &[y, r]);
            let y = s.apply(Function::Sub, &[y, one]);
            let (n, c) = (s.index(0), s.index(3));
            let zero = s.float(0.0);
            let x = s.read_at(image, vec![n, c, y], Some(zero));
            let k = s.read(filter, &[1, 3, 4]);
            s.apply(Function::Mul, &[x, k])
        },
    );
    b.output(y);
    b.program
}
