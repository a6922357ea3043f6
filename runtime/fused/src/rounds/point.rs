//! The value of a kernel at one point, and the elements that it reads.
//!
//! A value comes with its poison: a truth value that says whether computing it is a mistake, such as a read outside. A select hands on the
//! poison of the branch that it takes alone. Must not know loops.
//!
//! ```text
//! where(i > 0, a0[i - 1], 0)   ->   c = i > 0; inside = i - 1 <u 9; x = load a0 + 4 * (inside ? i - 1 : 0); c ? x : 0, poison c & !inside
//! ```

use super::Code;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value, types};
use ein_plan::small_rounds::RoundStep;
use ein_plan::{DType, Function, Kernel, Node, NodeId, Scalar};

/// A value, and its poison if it may have any.
pub(super) type Poisoned = (Value, Option<Value>);

impl Code<'_, '_> {
    /// The kernel's value at a point of all of its indices.
    pub(super) fn value(&mut self, step: &RoundStep, at: &[Value]) -> Poisoned {
        let mut known = vec![None; step.kernel.graph.len()];
        self.node(step, at, step.kernel.root, &mut known)
    }

    /// The value of a node; `known` has those of other nodes, which stand in blocks before this one.
    pub(super) fn node(
        &mut self,
        step: &RoundStep,
        at: &[Value],
        wanted: NodeId,
        known: &mut [Option<Poisoned>],
    ) -> Poisoned {
        let graph = &step.kernel.graph;
        let mut needed = vec![false; graph.len()];
        needed[wanted.0 as usize] = true;
        for number in (0..=wanted.0 as usize).rev() {
            if needed[number] && known[number].is_none() {
                let arguments = graph.node(NodeId(number as u32)).arguments();
                arguments.for_each(|argument| needed[argument.0 as usize] = true);
            }
        }
        for (id, node, dtype) in graph.iter().take(wanted.0 as usize + 1) {
            if needed[id.0 as usize] && known[id.0 as usize].is_none() {
                let value = self.computed(step, at, (node, dtype), known);
                known[id.0 as usize] = Some(value);
            }
        }
        known[wanted.0 as usize].expect("a node that is needed is computed")
    }

    fn computed(
        &mut self,
        step: &RoundStep,
        at: &[Value],
        (node, dtype): (&Node, DType),
        known: &[Option<Poisoned>],
    ) -> Poisoned {
        let graph = &step.kernel.graph;
        let argument =
            |id: NodeId| known[id.0 as usize].expect("arguments stand before their users");
        match node {
            Node::Constant(value) => (self.constant(dtype, *value), None),
            Node::Index(index) => (at[index.0 as usize], None),
            Node::Convert(from) => {
                let (value, poison) = argument(*from);
                (self.convert(value, graph.dtype(*from), dtype), poison)
            }
            Node::Read {
                operand,
                positions,
                otherwise,
                ..
            } => {
                let values: Vec<Poisoned> = positions.iter().map(|p| argument(*p)).collect();
                let otherwise = otherwise.map(argument);
                self.read(step, (*operand, positions), &values, otherwise)
            }
            Node::Apply(Function::Select, arguments) => {
                let [c, a, b] = [0, 1, 2].map(|number| argument(arguments[number]));
                let value = self.builder.ins().select(c.0, a.0, b.0);
                let poison = self.either(c.0, a.1, b.1);
                (value, self.joined(c.1, poison))
            }
            Node::Apply(function, arguments) => {
                let values: Vec<Poisoned> = arguments.iter().map(|id| argument(*id)).collect();
                let poison = values.iter().fold(None, |all, (_, p)| self.joined(all, *p));
                let constant = arguments.get(1).and_then(|id| match graph.node(*id) {
                    Node::Constant(value) => Some(*value),
                    _ => None,
                });
                let of = graph.dtype(arguments[0]);
                let values: Vec<Value> = values.into_iter().map(|(value, _)| value).collect();
                let (value, own) = self.apply(*function, &values, of, constant);
                (value, self.joined(poison, own))
            }
        }
    }

    fn constant(&mut self, dtype: DType, value: Scalar) -> Value {
        let whole = || match value {
            Scalar::Int(x) => x,
            other => other.as_f64() as i64,
        };
        match dtype {
            DType::F32 => self.builder.ins().f32const(value.as_f64() as f32),
            DType::F64 => self.builder.ins().f64const(value.as_f64()),
            DType::I32 => {
                let bits = i64::from((whole() as i32).cast_unsigned());
                self.builder.ins().iconst(types::I32, bits)
            }
            DType::I64 => self.builder.ins().iconst(types::I64, whole()),
            _ => self.truth(value.as_f64() != 0.0),
        }
    }

    /// Poison of either of two values.
    pub(super) fn joined(&mut self, a: Option<Value>, b: Option<Value>) -> Option<Value> {
        match (a, b) {
            (Some(a), Some(b)) => Some(self.builder.ins().bor(a, b)),
            (one, None) | (None, one) => one,
        }
    }

    /// Poison of the value that is chosen.
    fn either(&mut self, chooses: Value, a: Option<Value>, b: Option<Value>) -> Option<Value> {
        if a.is_none() && b.is_none() {
            return None;
        }
        let [a, b] = [a, b].map(|poison| poison.unwrap_or_else(|| self.truth(false)));
        Some(self.builder.ins().select(chooses, a, b))
    }

    /// An element of an operand, or something else where the positions are outside.
    fn read(
        &mut self,
        step: &RoundStep,
        (operand, nodes): (u32, &[NodeId]),
        positions: &[Poisoned],
        otherwise: Option<Poisoned>,
    ) -> Poisoned {
        let place = step.operands[operand as usize];
        let dtype = self.rounds.places[place].dtype;
        if positions.is_empty() {
            return (self.scalar(place), None);
        }
        let shape = self.rounds.places[place].shape.clone();
        let mut poison = None;
        let mut inside = None;
        for ((position, own), (node, extent)) in positions.iter().zip(nodes.iter().zip(&shape)) {
            poison = self.joined(poison, *own);
            if !is_inside(&step.kernel, *node, *extent) {
                let less = IntCC::UnsignedLessThan;
                let here = self
                    .builder
                    .ins()
                    .icmp_imm_u(less, *position, *extent as i64);
                inside = Some(match inside {
                    Some(inside) => self.builder.ins().band(inside, here),
                    None => here,
                });
            }
        }
        let at: Vec<Value> = positions.iter().map(|(position, _)| *position).collect();
        let offset = self.offset(&shape, &at, dtype);
        let Some(inside) = inside else {
            let address = self.builder.ins().iadd(self.addresses[place], offset);
            return (self.load(dtype, address), poison);
        };
        let zero = self.builder.ins().iconst(types::I64, 0);
        let offset = self.builder.ins().select(inside, offset, zero);
        let address = self.builder.ins().iadd(self.addresses[place], offset);
        let value = self.load(dtype, address);
        match otherwise {
            Some((other, own)) => {
                let value = self.builder.ins().select(inside, value, other);
                let own = self.either(inside, None, own);
                (value, self.joined(poison, own))
            }
            None => {
                let outside = self.builder.ins().bxor_imm_u(inside, 1);
                (value, self.joined(poison, Some(outside)))
            }
        }
    }

    /// The address of an element of a place, and its type.
    pub(super) fn element_address(&mut self, place: usize, at: &[Value]) -> (DType, Value) {
        let dtype = self.rounds.places[place].dtype;
        let shape = self.rounds.places[place].shape.clone();
        let offset = self.offset(&shape, at, dtype);
        (
            dtype,
            self.builder.ins().iadd(self.addresses[place], offset),
        )
    }

    /// Bytes in front of an element.
    fn offset(&mut self, shape: &[u64], at: &[Value], dtype: DType) -> Value {
        let mut offset = self.builder.ins().iconst(types::I64, 0);
        let mut stride = dtype.size() as i64;
        for (at, extent) in at.iter().zip(shape).rev() {
            let part = self.builder.ins().imul_imm_s(*at, stride);
            offset = self.builder.ins().iadd(offset, part);
            stride *= *extent as i64;
        }
        offset
    }
}

/// Returns whether a position is inside of a dimension at all points.
fn is_inside(kernel: &Kernel, position: NodeId, extent: u64) -> bool {
    let Some(form) = kernel.graph.as_affine(position) else {
        return false;
    };
    let (mut low, mut high) = (i128::from(form.constant), i128::from(form.constant));
    for (index, coefficient) in form.terms {
        let last = i128::from(kernel.indices[index.0 as usize].extent) - 1;
        let reach = i128::from(coefficient) * last;
        low += reach.min(0);
        high += reach.max(0);
    }
    low >= 0 && high < i128::from(extent)
}
