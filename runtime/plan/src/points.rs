//! Kernels that look at, or change, single points: an index that a scalar names.
//!
//! A reduction whose guard says `i == s` looks at one value of `i`, so it takes as long as if that index were not there. A
//! kernel that gives its operand back but for such points can change the operand where it lies, if nobody else reads it.
//! Must not know how either is carried out.
//!
//! ```text
//! (f64[900], i64[]) [ | i: 900] f64 = max a0[i] if i == a1[]                     looks at i = a1[]
//! (i64[], f64[], f64[900]) [i: 900] f64 = where(i == a0[], a1[], a2[i])          a2, but for i = a0[]
//! ```

use crate::dtype::{DType, Scalar};
use crate::function::Function;
use crate::kernel::{IndexId, Kernel, Node, NodeId};
use serde::{Deserialize, Serialize};

/// A whole number that is the same at all points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Position {
    /// This number.
    Constant(i64),
    /// The only element of an operand of type i64.
    Scalar(u32),
}

/// Indices with the position that each is at; the others run over their whole range.
pub type Point = Vec<(IndexId, Position)>;

/// What a kernel changes of an operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Which operand.
    pub operand: u32,
    /// Where the result may differ from it.
    pub points: Vec<Point>,
}

impl Kernel {
    /// The kernel of an expression alone, a value for each point of these indices, on which alone it depends.
    #[must_use]
    pub fn of_points(&self, expression: NodeId, points: &[IndexId]) -> Kernel {
        let indices = points.iter().map(|i| self.indices[i.0 as usize].clone());
        let own = Kernel {
            indices: indices.collect(),
            output_rank: points.len() as u32,
            root: expression,
            guard: None,
            reduction: None,
            output: vec![self.graph.dtype(expression)],
            ..self.clone()
        };
        own.canonical().rewritten(|graph, _, node, dtype| {
            let node = match node {
                Node::Index(index) => {
                    let number = points.iter().position(|point| *point == index);
                    let number = number.expect("the expression depends on these indices alone");
                    Node::Index(IndexId(number as u32))
                }
                node => node,
            };
            graph.add(node, dtype)
        })
    }

    /// The reduced indices that the guard fixes to one value: at every other the guard is false.
    pub fn fixed(&self) -> Point {
        let Some(guard) = self.guard else {
            return vec![];
        };
        let mut fixed: Point = vec![];
        for part in self.parts(guard, Function::And) {
            match self.equality(part) {
                Some((index, position))
                    if index.0 >= self.output_rank && fixed.iter().all(|(i, _)| *i != index) =>
                {
                    fixed.push((index, position));
                }
                _ => {}
            }
        }
        fixed
    }

    /// What it changes, if it gives an operand back but for single points: `where(point, new, where(…, a[i, j]))`.
    pub fn update(&self) -> Option<Update> {
        if self.reduction.is_some() || self.output.len() != 1 {
            return None;
        }
        let mut points = vec![];
        let mut rest = self.root;
        while let Node::Apply(Function::Select, arguments) = self.graph.node(rest) {
            for either in self.parts(arguments[0], Function::Or) {
                let parts = self.parts(either, Function::And).into_iter();
                let point: Option<Point> = parts.map(|part| self.equality(part)).collect();
                points.push(point?);
            }
            rest = arguments[2];
        }
        let operand = self.own_element(rest).filter(|_| !points.is_empty())?;
        Some(Update { operand, points })
    }

    /// What a chain of one function of two truth values is made of.
    fn parts(&self, node: NodeId, by: Function) -> Vec<NodeId> {
        let (mut open, mut parts) = (vec![node], vec![]);
        while let Some(node) = open.pop() {
            match self.graph.node(node) {
                Node::Apply(function, arguments) if *function == by => open.extend(arguments),
                _ => parts.push(node),
            }
        }
        parts
    }

    /// `i == s`.
    fn equality(&self, node: NodeId) -> Option<(IndexId, Position)> {
        let Node::Apply(Function::Eq, sides) = self.graph.node(node) else {
            return None;
        };
        let of = |index: NodeId, position: NodeId| {
            Some((self.graph.as_index(index)?, self.position(position)?))
        };
        of(sides[0], sides[1]).or_else(|| of(sides[1], sides[0]))
    }

    /// A number that is the same at all points and needs no arithmetic.
    pub fn position(&self, node: NodeId) -> Option<Position> {
        match self.graph.node(node) {
            Node::Constant(Scalar::Int(value)) => Some(Position::Constant(*value)),
            Node::Read {
                operand,
                column: 0,
                positions,
                otherwise: None,
            } if positions.is_empty()
                && self.operands[*operand as usize].columns == [DType::I64] =>
            {
                Some(Position::Scalar(*operand))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn kernel(text: &str) -> Kernel {
        text.parse().unwrap()
    }

    #[test]
    fn a_guard_fixes_indices() {
        let text =
            "(f64[9, 4], i64[]) [j: 4 | i: 9, k: 2] f64 = max a0[i, j] if and(i == a1[], k < 1)";
        assert_eq!(kernel(text).fixed(), [(IndexId(1), Position::Scalar(1))]);
        let text =
            "(f64[9, 4], i64[]) [j: 4 | i: 9] f64 = max a0[i, j] if and(j == a1[], i != a1[])";
        assert_eq!(kernel(text).fixed(), []);
    }

    #[test]
    fn an_update_gives_all_else_back() {
        let text = "(i64[], f64[], f64[9, 4]) [i: 9, j: 4] f64 = \
            where(and(i == a0[], j == 2), a1[], where(a0[] == j, 0.0_f64, a2[i, j]))";
        let (at, two) = (Position::Scalar(0), Position::Constant(2));
        let (i, j) = (IndexId(0), IndexId(1));
        let mut update = kernel(text).update().unwrap();
        update.points[0].sort_by_key(|(index, _)| *index);
        assert_eq!(update.operand, 2);
        assert_eq!(update.points, [vec![(i, at), (j, two)], vec![(j, at)]]);
        for other in [
            "(i64[], f64[], f64[4, 4]) [i: 4, j: 4] f64 = where(i == a0[], a1[], a2[j, i])",
            "(i64[], f64[], f64[5, 4]) [i: 4, j: 4] f64 = where(i == a0[], a1[], a2[i, j])",
            "(i64[], f64[], f64[4, 4]) [i: 4, j: 4] f64 = where(i <= a0[], a1[], a2[i, j])",
            "(f64[4, 4]) [i: 4, j: 4] f64 = a0[i, j]",
        ] {
            assert_eq!(kernel(other).update(), None, "{other}");
        }
    }
}
