//! The largest values of a vector by parts: the largest of each part, then the largest of those.
//!
//! One call needs the whole vector at one site. The largest values of all are among the largest ones of the parts, which are few. Parts and values
//! keep their order, so equal values stay in the order of their places; a last part that is shorter is filled up behind its end with what comes
//! last of all. Must not know sites or costs: the search lays the program out beside the others.
//!
//! ```text
//! p = [i: 100] topk(x[:1], i)
//! =>  x.parts = [q: 64, r: 900] x[900 * q + r];  p.parts = [q, i] topk(x.parts[q, :1], i);  p.found = [c: 6400] x.parts[c / 100, p.parts[c / 100, c % 100]]
//!     p.places = [i] topk(p.found[:1], i);  p = [i] 900 * (p.places[i] / 100) + p.parts[p.places[i] / 100, p.places[i] % 100]
//! ```

use super::{Alternative, RuleInfo};
use crate::einsum::{Definition, Program, Rewriting, Statement, Tensor, TensorId, canonical};
use ein_plan::{DType, Function, Graph, Kernel, Node, NodeId, Operand, Scalar};

const NAME: &str = "topk-by-parts";

/// How many parts there are, the most first.
const PARTS: [u64; 3] = [64, 16, 4];

/// How many times the values of a part are more than those that are looked for.
const LEAST: u64 = 4;

/// The rule of this family.
pub(super) fn rows() -> Vec<RuleInfo> {
    vec![RuleInfo {
        name: NAME,
        family: "topk",
        paper: "classical",
        left: "topk(x, k)",
        right: "topk of topk(x[part], k) of every part",
        conditions: &[
            "x is a vector of floats, i32 or i64",
            "a part has 4 k values at least",
            "more than one site",
        ],
        note: "Values that are read at the positions found are read among those of the parts.",
    }]
}

/// The program with the largest values of these vectors by parts, if it has any.
pub fn expand(
    program: &Program,
    disabled: &[String],
    is_wanted: &dyn Fn(TensorId) -> bool,
) -> Option<Alternative> {
    let mut known: Vec<Found> = vec![];
    Alternative::by_rule(program, (NAME, disabled), |rewriting, old| {
        let Definition::Statement { kernel, operands } = &old.definition else {
            return None;
        };
        let tensor = rewriting.copy(old);
        match Parts::of(kernel).filter(|_| is_wanted(operands[0])) {
            Some(parts) => {
                let (tensor, found) = parts.write(rewriting, tensor)?;
                known.push(found);
                Some(tensor)
            }
            None => read_found(tensor, &known),
        }
    })
}

/// The vectors of which the largest values are looked for.
pub fn tables(program: &Program) -> Vec<TensorId> {
    let mut tables = vec![];
    for tensor in &program.tensors {
        if let Definition::Statement { kernel, operands } = &tensor.definition
            && Parts::of(kernel).is_some()
            && !tables.contains(&operands[0])
        {
            tables.push(operands[0]);
        }
    }
    tables
}

/// The largest values of a vector, as far as others read them.
struct Found {
    vector: TensorId,
    /// Their positions in the vector.
    positions: TensorId,
    /// The values of the parts, and where among them the largest are.
    values: (TensorId, Operand),
    places: (TensorId, Operand),
}

/// A call by parts.
struct Parts {
    dtype: DType,
    /// Elements of the vector.
    size: u64,
    /// How many values are looked for.
    count: u64,
    parts: u64,
    /// Elements of a part.
    length: u64,
}

impl Parts {
    fn of(kernel: &Kernel) -> Option<Parts> {
        let library = kernel.library()?;
        if library.operation != Function::Topk || kernel.indices.len() != 1 {
            return None;
        }
        let operand = &kernel.operands[0];
        let dtype = operand.columns[0];
        let is_ordered = dtype.is_float() || matches!(dtype, DType::I32 | DType::I64);
        let [size] = operand.shape[..] else {
            return None;
        };
        let count = kernel.indices[0].extent;
        let mut parts = PARTS.into_iter().filter(|_| count > 0);
        let parts = parts.find(|parts| size.div_ceil(*parts) >= LEAST * count)?;
        is_ordered.then_some(Parts {
            dtype,
            size,
            count,
            parts,
            length: size.div_ceil(parts),
        })
    }

    /// Adds the statements of the parts; returns the tensor of the positions, and what was found.
    fn write(&self, rewriting: &mut Rewriting, mut tensor: Tensor) -> Option<(Tensor, Found)> {
        let Definition::Statement { operands, .. } = &tensor.definition else {
            return None;
        };
        let vector = operands[0];
        let (n, k, dtype) = (self.length, self.count, self.dtype.name());
        let (parts, all) = (self.parts, self.parts * k);
        let cut = format!("{}.parts", rewriting.result().tensor(vector).name);
        let cut = rewriting.add_hidden(&cut, self.cut(vector), tensor.origin);
        let mut add = |part: &str, text: String, operands: &[TensorId]| {
            let name = format!("{}.{part}", tensor.name);
            rewriting.add_hidden(&name, statement(&text, operands), tensor.origin)
        };
        let text = format!("({dtype}[{parts}, {n}]) [q: {parts}, i: {k}] i64 = topk(a0[q, :1], i)");
        let of_parts = add("parts", text, &[cut]);
        let text = format!(
            "({dtype}[{parts}, {n}], i64[{parts}, {k}]) [c: {all}] {dtype} = a0[floordiv(c, {k}), a1[floordiv(c, {k}), rem(c, {k})]]"
        );
        let values = add("found", text, &[cut, of_parts]);
        let text = format!("({dtype}[{all}]) [i: {k}] i64 = topk(a0[:1], i)");
        let places = add("places", text, &[values]);
        let text = format!(
            "(i64[{k}], i64[{parts}, {k}]) [i: {k}] i64 = {n} * floordiv(a0[i], {k}) + a1[floordiv(a0[i], {k}), rem(a0[i], {k})]"
        );
        let (kernel, operands) = statement(&text, &[places, of_parts]);
        tensor.definition = Definition::Statement { kernel, operands };
        let operand = |dtype, extent| Operand {
            columns: vec![dtype],
            shape: vec![extent],
        };
        let found = Found {
            vector,
            positions: TensorId(rewriting.result().tensors.len() as u32),
            values: (values, operand(self.dtype, all)),
            places: (places, operand(DType::I64, k)),
        };
        Some((tensor, found))
    }

    /// The vector in parts.
    fn cut(&self, vector: TensorId) -> Statement {
        let &Parts {
            size,
            parts,
            length,
            ..
        } = self;
        let dtype = self.dtype.name();
        let text =
            format!("({dtype}[{size}]) [q: {parts}, r: {length}] {dtype} = a0[{length} * q + r]");
        let (kernel, operands) = statement(&text, &[vector]);
        if parts * length == size {
            return (kernel, operands);
        }
        let kernel = kernel.rewritten(|graph, _, mut node, dtype| {
            if let Node::Read { otherwise, .. } = &mut node {
                *otherwise = Some(graph.add(Node::Constant(last(dtype)), dtype));
            }
            graph.add(node, dtype)
        });
        canonical::statement(kernel, &operands)
    }
}

/// The statement that reads values of the parts where it reads a vector at the positions of its largest values; nothing if it does not.
fn read_found(mut tensor: Tensor, known: &[Found]) -> Option<Tensor> {
    let Definition::Statement { kernel, operands } = &mut tensor.definition else {
        return None;
    };
    let mut found = false;
    for Found {
        vector,
        positions,
        values,
        places,
    } in known
    {
        let number = |id: &TensorId| operands.iter().position(|operand| operand == id);
        let (Some(vector), Some(chosen)) = (number(vector), number(positions)) else {
            continue;
        };
        let first = operands.len() as u32;
        let read = |number: u32, at: Vec<NodeId>| Node::Read {
            operand: first + number,
            column: 0,
            positions: at,
            otherwise: None,
        };
        let mut made = kernel.clone().rewritten(|graph, _, node, dtype| {
            let at = at_chosen(graph, &node, (vector as u32, chosen as u32));
            let Some(at) = at else {
                return graph.add(node, dtype);
            };
            found = true;
            let place = graph.add(read(1, at), DType::I64);
            graph.add(read(0, vec![place]), dtype)
        });
        made.operands.extend([values.1.clone(), places.1.clone()]);
        let all = [&operands[..], &[values.0, places.0]].concat();
        (*kernel, *operands) = canonical::statement(made, &all);
    }
    found.then_some(tensor)
}

/// Where a read of a vector finds its position in the list of those chosen, if it reads there.
fn at_chosen(graph: &Graph, node: &Node, (vector, chosen): (u32, u32)) -> Option<Vec<NodeId>> {
    let Node::Read {
        operand, positions, ..
    } = node
    else {
        return None;
    };
    let position = positions.first().filter(|_| *operand == vector)?;
    match graph.node(*position) {
        Node::Read {
            operand,
            positions,
            otherwise: None,
            ..
        } if *operand == chosen => Some(positions.clone()),
        _ => None,
    }
}

/// The value of a type that comes last, NaN being the first.
fn last(dtype: DType) -> Scalar {
    match dtype {
        DType::I32 => Scalar::Int(i64::from(i32::MIN)),
        DType::I64 => Scalar::Int(i64::MIN),
        _ => Scalar::Float(f64::NEG_INFINITY),
    }
}

/// A statement of a kernel's text.
fn statement(text: &str, operands: &[TensorId]) -> Statement {
    let kernel = text.parse().expect("a kernel of names and numbers");
    canonical::statement(kernel, operands)
}
