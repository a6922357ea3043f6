//! Which whole numbers a tensor's elements can be.
//!
//! From what is computed alone, in intervals: positions of extremes are below the extent, a counter below the bound of
//! its loop. What a state is, or what is loaded or may be bound when the program runs, can be anything. Must not know what the ranges are wanted for.
//!
//! ```text
//! lo = argmin[i < 900] f[i]   0..=899        min(t + 1, 9), t of 40 rounds   1..=9
//! ```

use crate::einsum::{Bound, Definition, LoopValue, Program, TensorId};
use ein_plan::{DType, Function, Graph, Kernel, Node, NodeId, Reduction, Scalar, Source};
use std::collections::HashMap;

/// The least and the largest value.
pub(super) type Range = (i64, i64);

/// Most nodes of an expression that is looked through, those of the tensors that it reads included.
const MOST: u32 = 256;

/// Ranges that are known for a reason that the definition does not tell.
#[derive(Default)]
pub(super) struct Ranges {
    /// Selections, with what they select of.
    selected: HashMap<TensorId, TensorId>,
}

impl Ranges {
    /// Notes that every element of a tensor is one of another tensor's.
    pub(super) fn selected(&mut self, tensor: TensorId, of: TensorId) {
        self.selected.insert(tensor, of);
    }

    /// The range of a tensor's elements, if one is known.
    pub(super) fn of_tensor(&self, program: &Program, tensor: TensorId) -> Option<Range> {
        self.tensor(program, tensor, &mut MOST.clone())
    }

    fn tensor(&self, program: &Program, tensor: TensorId, left: &mut u32) -> Option<Range> {
        *left = left.checked_sub(1)?;
        if let Some(of) = self.selected.get(&tensor) {
            return self.tensor(program, *of, left);
        }
        let described = program.tensor(tensor);
        match &described.definition {
            Definition::Source(_) if described.role.is_bound() => None,
            Definition::Source(Source::Full(Scalar::Int(value))) => Some((*value, *value)),
            Definition::Source(Source::Permutation) => {
                Some((0, i64::try_from(*described.shape.first()?).ok()? - 1))
            }
            Definition::Source(_) => None,
            Definition::Loop(LoopValue::Counter(block)) => match program.block(*block).bound {
                Bound::Rounds(rounds) => Some((0, i64::try_from(rounds).ok()?.saturating_sub(1))),
                Bound::Value(_) | Bound::Unbounded => None,
            },
            Definition::Loop(_) => None,
            Definition::Statement { kernel, operands } => match kernel.reduction {
                Some(Reduction::ArgMax | Reduction::ArgMin) => {
                    let extent = kernel.indices.last()?.extent;
                    Some((0, i64::try_from(extent).ok()?.saturating_sub(1)))
                }
                Some(_) => None,
                None => {
                    let reading = Reading {
                        ranges: self,
                        program,
                        kernel,
                        operands,
                    };
                    reading.node(kernel.root, left)
                }
            },
        }
    }
}

/// An expression that is looked through.
struct Reading<'a> {
    ranges: &'a Ranges,
    program: &'a Program,
    kernel: &'a Kernel,
    operands: &'a [TensorId],
}

impl Reading<'_> {
    fn node(&self, id: NodeId, left: &mut u32) -> Option<Range> {
        *left = left.checked_sub(1)?;
        let graph: &Graph = &self.kernel.graph;
        let range = match graph.node(id) {
            Node::Constant(Scalar::Int(value)) => (*value, *value),
            Node::Constant(_) => return None,
            Node::Index(index) => {
                let extent = self.kernel.indices[index.0 as usize].extent;
                (0, i64::try_from(extent).ok()?.saturating_sub(1))
            }
            Node::Read {
                operand, otherwise, ..
            } => {
                let of = self.operands[*operand as usize];
                let range = self.ranges.tensor(self.program, of, left);
                // It can be anything; what is made of it may still be bounded.
                let range = range.unwrap_or((i64::MIN, i64::MAX));
                match otherwise {
                    None => range,
                    Some(otherwise) => union(range, self.node(*otherwise, left)?),
                }
            }
            Node::Convert(argument) => match graph.dtype(*argument) {
                DType::I32 | DType::I64 => self.node(*argument, left)?,
                DType::Bool => (0, 1),
                _ => return None,
            },
            Node::Apply(function, arguments) => self.apply(*function, arguments, left)?,
        };
        let whole = (i64::from(i32::MIN), i64::from(i32::MAX));
        Some(match graph.dtype(id) {
            DType::I64 => range,
            // Arithmetic of 32 bits wraps.
            _ if range.0 < whole.0 || range.1 > whole.1 => whole,
            _ => range,
        })
    }

    fn apply(&self, function: Function, arguments: &[NodeId], left: &mut u32) -> Option<Range> {
        if function == Function::Select {
            let (a, b) = (
                self.node(arguments[1], left)?,
                self.node(arguments[2], left)?,
            );
            return Some(union(a, b));
        }
        if function == Function::Rem {
            // It has the sign of the divisor, whatever is divided.
            let (from, to) = self.node(*arguments.get(1)?, left)?;
            return (from > 0).then_some((0, to - 1));
        }
        let (low, high) = self.node(*arguments.first()?, left)?;
        if function == Function::Neg {
            return Some((high.checked_neg()?, low.checked_neg()?));
        }
        let (from, to) = self.node(*arguments.get(1)?, left)?;
        Some(match function {
            Function::Add => (low.checked_add(from)?, high.checked_add(to)?),
            Function::Sub => (low.checked_sub(to)?, high.checked_sub(from)?),
            Function::Min => (low.min(from), high.min(to)),
            Function::Max => (low.max(from), high.max(to)),
            Function::Mul => {
                let ends = [(low, from), (low, to), (high, from), (high, to)];
                let ends = ends.map(|(a, b)| a.checked_mul(b));
                let ends: Vec<i64> = ends.into_iter().collect::<Option<_>>()?;
                (*ends.iter().min()?, *ends.iter().max()?)
            }
            Function::FloorDiv if from == to && from > 0 => {
                (low.div_euclid(from), high.div_euclid(from))
            }
            _ => return None,
        })
    }
}

fn union(a: Range, b: Range) -> Range {
    (a.0.min(b.0), a.1.max(b.1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::einsum::parse::parse;

    #[test]
    fn ranges_follow_from_what_is_computed() {
        let text = "input f: f64[90] = unbound\ninput s: i64[] = unbound\n\
            lo: i64[5] = [j: 5 | i: 90] argmin f[i] * f[j]\n\
            a: i64[] = [] max(min(s[], 7), -2) - lo[0]\n\
            b: i64[] = [] rem(s[], 8) + floordiv(lo[1], 10)\n\
            c: i64[4] = [i: 4] where(i < 2, 100, -i)\n\
            e: i64[] = [] (lo[0] - 9) * -3\n\
            d: i64[] = [] s[] * 2\noutput a\noutput b\noutput c\noutput d\noutput e";
        let program = parse(text).unwrap();
        let range = |name: &str| {
            let at = program.tensors.iter().position(|t| t.name == name);
            Ranges::default().of_tensor(&program, TensorId(at.unwrap() as u32))
        };
        assert_eq!(range("lo"), Some((0, 89)));
        assert_eq!(range("a"), Some((-91, 7)));
        assert_eq!(range("b"), Some((0, 15)));
        assert_eq!(range("c"), Some((-3, 100)));
        assert_eq!(range("e"), Some((-240, 27)));
        assert_eq!(range("d"), None);
        assert_eq!(range("s"), None);
    }
}
