//! Sums of products whose condition holds for all but the ends of an index, in parts.
//!
//! A condition that only the first or the last values of an index can break, as where a filter begins or two shifted series end, keeps a sum from
//! the loops of products; an operand that is padded there is copied. The values between are a product without the condition, and the ends are
//! sums of their own with it. As with any reordered sum, rounding may differ. Must not know placements.
//!
//! ```text
//! y: f32[64] = [l: 64 | i: 5000] sum x[i] * x[l + i] if l + i < 5000
//! y.inner: f32[64] = [l: 64 | i: 4937] sum x[i] * x[l + i]
//! y.edge: f32[64] = [l: 64 | i: 63] sum x[i + 4937] * x[l + i + 4937] if l + i + 4937 < 5000
//! y: f32[64] = [l: 64] y.inner[l] + y.edge[l]
//! ```

use crate::einsum::{Program, Rewriting, Rewritten, Statement, TensorId, canonical};
use crate::rules::conditions::guarded;
use crate::rules::{elementwise, neutral};
use ein_plan::schedule::mask::Mask;
use ein_plan::schedule::{LoopKernel, LoopKind};
use ein_plan::{Affine, DType, Function, Graph, IndexId, Kernel, Node, Operand, Reduction, Scalar};
use std::ops::Range;

/// Kernels of more indices stay: the bits of a number tell so many apart.
const MOST_INDICES: usize = 128;

/// Fewest values of an index that is cut.
const LEAST: u64 = 64;

/// The ends are at most one in so many of an index's values.
const ENDS: i64 = 8;

/// Fewest terms of an element, if elements are put together from parts.
const TERMS: u64 = 32;

/// Returns the program in which sums of products have no conditions but at the ends of indices.
pub fn parted(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let mut kernel = guarded(statement.kernel).unwrap_or_else(|| statement.kernel.clone());
        if is_product(&kernel) && !(is_padded(&kernel) && is_read_once(&kernel)) {
            return None;
        }
        let mut cuts = vec![];
        while let Some(cut) = Cut::of(&kernel) {
            kernel = cut.inner.clone();
            cuts.push(cut);
        }
        let whole = kernel.guard.is_some() || is_padded(&kernel);
        if cuts.is_empty() || whole || !is_product(&kernel) {
            return None;
        }
        let mut made = canonical::statement(kernel, statement.operands);
        while let Some(cut) = cuts.pop() {
            made = cut.together(&mut statement, made);
        }
        Some(made)
    })
}

/// Returns whether the loops of a sum are those of products or of other functions of two elements.
fn is_product(kernel: &Kernel) -> bool {
    let loops = || LoopKernel::of_whole(kernel).kind;
    kernel.reduction == Some(Reduction::Sum)
        && matches!(loops(), LoopKind::Matmul(_) | LoopKind::Pairwise(_))
}

/// Returns whether some operand is read beyond its ends.
fn is_padded(kernel: &Kernel) -> bool {
    let mut nodes = kernel.graph.iter();
    nodes.any(|(_, node, _)| {
        matches!(
            node,
            Node::Read {
                otherwise: Some(_),
                ..
            }
        )
    })
}

/// Returns whether a product is one of a matrix and a vector: a factor that is copied with its padding is then copied for one use.
fn is_read_once(kernel: &Kernel) -> bool {
    match LoopKernel::of_whole(kernel).kind {
        LoopKind::Matmul(product) => product.rows.is_empty() || product.columns.is_empty(),
        _ => false,
    }
}

/// A sum, cut along an index.
struct Cut {
    whole: Kernel,
    index: IndexId,
    /// The values for which the conditions of the index hold at every point.
    always: Range<i64>,
    /// The sum of these, without the conditions.
    inner: Kernel,
}

impl Cut {
    fn of(kernel: &Kernel) -> Option<Cut> {
        let few = kernel.indices.len() < MOST_INDICES;
        let plain = few && kernel.reduction == Some(Reduction::Sum) && kernel.finish;
        if !plain || !kernel.passed_over().is_empty() {
            return None;
        }
        let rank = kernel.output_rank as usize;
        let terms = kernel.indices[rank..].iter().map(|index| index.extent);
        let terms = terms.fold(1, u64::saturating_mul);
        let all = (0u32..).zip(&kernel.indices);
        let mut long = all.filter(|(at, index)| {
            index.extent >= LEAST && (*at as usize >= rank || terms >= TERMS)
        });
        long.find_map(|(at, index)| {
            let extent = i64::try_from(index.extent).ok()?;
            let index = IndexId(at);
            let (always, others) = Mask::always(kernel, index)?;
            let inside = inside(kernel, index);
            let always = always.start.max(inside.start)..always.end.min(inside.end);
            let length = always.end.saturating_sub(always.start);
            if length == extent || length < extent - extent / ENDS {
                return None;
            }
            let mut inner = kernel.clone();
            inner.guard = None;
            others.into_iter().for_each(|id| inner.restrict(id));
            Some(Cut {
                whole: kernel.clone(),
                index,
                inner: unpadded(over(inner, index, &always)),
                always,
            })
        })
    }

    /// The statement of the whole, from that of the inner part.
    fn together(self, statement: &mut Rewritten<'_>, inner: Statement) -> Statement {
        let extent = self.whole.indices[self.index.0 as usize].extent as i64;
        let edges = [0..self.always.start, self.always.end..extent];
        let [first, last] = edges.map(|edge| {
            let kernel = || over(self.whole.clone(), self.index, &edge);
            let made = || canonical::statement(kernel(), statement.operands);
            (!edge.is_empty()).then(|| (edge.clone(), "edge", made()))
        });
        let inner = Some((self.always.clone(), "inner", inner));
        let parts = [first, inner, last].into_iter().flatten();
        let dtype = self.whole.graph.dtype(self.whole.root);
        let parts = parts.map(|(range, name, mut made)| {
            made.0.output = vec![dtype];
            (range, statement.add(name, made))
        });
        let (ranges, operands): (Vec<Range<i64>>, Vec<TensorId>) = parts.unzip();
        canonical::statement(self.sum(&ranges), &operands)
    }

    /// The kernel of the whole, whose operands are the parts.
    fn sum(&self, parts: &[Range<i64>]) -> Kernel {
        let rank = self.whole.output_rank;
        let is_output = self.index.0 < rank;
        let dtype = self.whole.graph.dtype(self.whole.root);
        let indices = &self.whole.indices[..rank as usize];
        let mut graph = Graph::default();
        let (mut operands, mut reads) = (vec![], vec![]);
        let zero = neutral(Reduction::Sum, dtype).expect("a sum has a value over nothing");
        let zero = graph.add(Node::Constant(zero), dtype);
        for (number, part) in (0..).zip(parts) {
            let mut shape: Vec<u64> = indices.iter().map(|index| index.extent).collect();
            if is_output {
                shape[self.index.0 as usize] = (part.end - part.start) as u64;
            }
            operands.push(Operand {
                columns: vec![dtype],
                shape,
            });
            let positions = (0..rank).map(IndexId).map(|index| {
                let first = if index == self.index { part.start } else { 0 };
                graph.add_affine(&Affine {
                    constant: -first,
                    terms: vec![(index, 1)],
                })
            });
            let read = Node::Read {
                operand: number,
                column: 0,
                positions: positions.collect(),
                otherwise: is_output.then_some(zero),
            };
            reads.push((part.end, graph.add(read, dtype)));
        }
        let root = reads.into_iter().rev().reduce(|(_, rest), (end, read)| {
            let (function, arguments, dtype) = match is_output {
                true => {
                    let index = graph.add(Node::Index(self.index), DType::I64);
                    let end = graph.add(Node::Constant(Scalar::Int(end)), DType::I64);
                    let before = Node::Apply(Function::Lt, vec![index, end]);
                    let before = graph.add(before, DType::Bool);
                    (Function::Select, vec![before, read, rest], dtype)
                }
                false => (Function::Add, vec![read, rest], dtype),
            };
            (end, graph.add(Node::Apply(function, arguments), dtype))
        });
        let (_, root) = root.expect("the inner part is there");
        Kernel {
            operands,
            graph,
            root,
            ..elementwise(&self.whole)
        }
    }
}

/// The kernel over some of the values of an index.
fn over(mut kernel: Kernel, index: IndexId, values: &Range<i64>) -> Kernel {
    kernel.indices[index.0 as usize].extent = (values.end - values.start) as u64;
    if values.start == 0 {
        return kernel;
    }
    let shifted = Affine {
        constant: values.start,
        terms: vec![(index, 1)],
    };
    kernel.rewritten(|graph, _, node, dtype| match node {
        Node::Index(of) if of == index => graph.add_affine(&shifted),
        node => {
            let id = graph.add(node, dtype);
            match graph.as_affine(id) {
                Some(form) => graph.add_affine(&form),
                None => id,
            }
        }
    })
}

/// The values of an index at which padded reads are of elements, whatever the other indices are.
fn inside(kernel: &Kernel, index: IndexId) -> Range<i64> {
    let extent = |of: IndexId| kernel.indices[of.0 as usize].extent;
    let mut inside = 0..extent(index) as i64;
    for (_, node, _) in kernel.graph.iter() {
        let Node::Read {
            operand,
            positions,
            otherwise: Some(_),
            ..
        } = node
        else {
            continue;
        };
        let shape = &kernel.operands[*operand as usize].shape;
        for (position, size) in positions.iter().zip(shape) {
            let form = kernel.graph.as_affine(*position);
            let Some((form, (least, most))) =
                form.and_then(|form| Some((form.clone(), form.reach(extent, Some(index))?)))
            else {
                continue;
            };
            let term = form.terms.iter().find(|(of, _)| *of == index);
            let end = (*size as i64).saturating_sub(1);
            // The first and the last value, if positions rise by one with the index, or fall.
            let (first, last) = match term {
                Some((_, 1)) => (least.saturating_neg(), end.saturating_sub(most)),
                Some((_, -1)) => (most.saturating_sub(end), least),
                _ => continue,
            };
            inside = inside.start.max(first)..inside.end.min(last.saturating_add(1));
        }
    }
    inside
}

/// The kernel without the padding of reads that are always of elements.
fn unpadded(kernel: Kernel) -> Kernel {
    let indices = kernel.indices.clone();
    let shapes: Vec<Vec<u64>> = kernel.operands.iter().map(|o| o.shape.clone()).collect();
    let extent = |of: IndexId| indices[of.0 as usize].extent;
    kernel.rewritten(|graph, _, mut node, dtype| {
        if let Node::Read {
            operand,
            positions,
            otherwise,
            ..
        } = &mut node
        {
            let mut dims = positions.iter().zip(&shapes[*operand as usize]);
            let inside = dims.all(|(position, size)| {
                let form = graph.as_affine(*position);
                let reach = form.and_then(|form| form.reach(extent, None));
                reach.is_some_and(|(least, most)| least >= 0 && most < *size as i64)
            });
            if inside {
                *otherwise = None;
            }
        }
        graph.add(node, dtype)
    })
}
