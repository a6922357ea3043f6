//! Reductions of a function of two elements: distances, sums of products, shortest ways.
//!
//! Both are elements of operands as they lie. Where each has output indices that the other lacks, rows of the left and columns of the right one
//! meet in blocks; otherwise lines of neighbours are reduced. Must not know how a loop is carried out.
//!
//! ```text
//! [n, k | d] sum (a0[n, d] - a1[k, d])^2   rows n, columns k: blocks
//! [i | d]    sum a0[i, d] * a1[i, d]       lines
//! [i | d]    sum (a0[i, d] - a1[i])^2      lines, each to one element
//! [j | d]    sum a0[d] * a1[d, j]          sums of rows
//! ```

use super::access::merged;
use super::facts::Facts;
use super::matmul::Matmul;
use super::reason::Reason;
use crate::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Reduction, Scalar};
use serde::{Deserialize, Serialize};

/// Fewest rows, and columns, that are worth blocks.
const LEAST_SIDE: usize = 4;
/// Fewest terms of a line.
const LEAST_LINE: usize = 16;
/// Fewest columns that rows are added up over, and most rows.
const LEAST_COLUMNS: usize = 1024;
const MOST_ROWS: usize = 1 << 20;
/// Most elements that are copied.
const MOST_COPIED: usize = 1 << 25;

/// The function of two elements, and how that is reduced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Term {
    /// Σ (x - y)²
    SumOfSquares,
    /// Σ |x - y|
    SumOfDistances,
    /// Σ x y
    SumOfProducts,
    /// max |x - y|
    LargestDistance,
    /// max (x + y)
    LargestSum,
    /// min (x + y)
    LeastSum,
}

/// Which loops pair the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PairwiseLoops {
    /// Rows and columns in blocks, columns copied to panels.
    Blocks,
    /// Line by line of neighbouring terms.
    Lines,
    /// Line by line, a line's right elements being one.
    LinesToOne,
    /// All columns term by term: neighbouring columns of one row.
    Sums,
}

/// A kernel in this form.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pairwise {
    /// The reduced expression.
    pub term: Term,
    /// How.
    pub by: PairwiseLoops,
    /// True if the left element is the second one of the expression.
    pub turned: bool,
    /// Output indices of both elements.
    pub batch: Vec<IndexId>,
    /// Output indices of the left element.
    pub rows: Vec<IndexId>,
    /// Output indices of the right element.
    pub columns: Vec<IndexId>,
    /// Reduced indices.
    pub terms: Vec<IndexId>,
    /// The matrix products that do the same, for where a library for them is loaded.
    pub product: Option<Box<Matmul>>,
}

impl Term {
    /// All terms with their printed names.
    pub const NAMES: [(Term, &'static str); 6] = [
        (Term::SumOfSquares, "sum_of_squares"),
        (Term::SumOfDistances, "sum_of_distances"),
        (Term::SumOfProducts, "sum_of_products"),
        (Term::LargestDistance, "largest_distance"),
        (Term::LargestSum, "largest_sum"),
        (Term::LeastSum, "least_sum"),
    ];
}

impl PairwiseLoops {
    /// All of them with their printed names.
    pub const NAMES: [(PairwiseLoops, &'static str); 4] = [
        (PairwiseLoops::Blocks, "blocks"),
        (PairwiseLoops::Lines, "lines"),
        (PairwiseLoops::LinesToOne, "lines_to_one"),
        (PairwiseLoops::Sums, "sums"),
    ];
}

/// The two elements of a kernel in this form, and which loops pair them: with a reason if these are not worth it.
pub(super) fn pairwise(facts: &Facts<'_>) -> Result<(Pairwise, Option<Reason>), Reason> {
    let meeting = Meeting::of(facts)?;
    let mut unworthy = None;
    let by = meeting.loops(facts, &mut unworthy)?;
    let product = (meeting.term == Term::SumOfProducts)
        .then(|| super::matmul::matmul(facts).ok())
        .flatten()
        .filter(|(_, slow)| slow.is_none());
    let list = |indices: Vec<usize>| indices.into_iter().map(|i| IndexId(i as u32)).collect();
    let pairwise = Pairwise {
        term: meeting.term,
        by,
        turned: meeting.turned,
        batch: list(meeting.batch),
        rows: list(meeting.rows),
        columns: list(meeting.columns),
        terms: list(meeting.terms),
        product: product.map(|(product, _)| Box::new(product.untiled())),
    };
    Ok((pairwise, unworthy))
}

/// How two elements meet.
struct Meeting {
    term: Term,
    turned: bool,
    /// Steps of the left and the right element.
    left: Vec<i64>,
    right: Vec<i64>,
    /// True if one right element meets all terms.
    to_one: bool,
    batch: Vec<usize>,
    rows: Vec<usize>,
    columns: Vec<usize>,
    terms: Vec<usize>,
}

impl Meeting {
    fn of(facts: &Facts<'_>) -> Result<Meeting, Reason> {
        let kernel = facts.kernel;
        let (Some(reduction), None) = (kernel.reduction, kernel.guard) else {
            return Err(Reason::of("it is no reduction of all points"));
        };
        let found = term_of(&kernel.graph, kernel.root, reduction);
        let (term, x, y) = found.ok_or(Reason::of("its terms are no function of two elements"))?;
        let dtype = facts.value();
        let floats = matches!(dtype, DType::F32 | DType::F64) && kernel.output == [dtype];
        if !floats || (reduction == Reduction::Mean && !kernel.finish) {
            return Err(Reason::of("the result is not of the elements' type"));
        }
        if facts.is_empty() {
            return Err(Reason::of("there is no point"));
        }
        let steps = |id| {
            let steps = facts.steps(id, dtype);
            steps.ok_or(Reason::of("an element is computed, converted or outside"))
        };
        let (mut left, mut right) = (steps(x)?, steps(y)?);
        let (lengths, rank) = (&facts.lengths, facts.rank());
        // Columns have the output's last index.
        let last = |own: &[i64], other: &[i64]| {
            (0..rank).rfind(|i| lengths[*i] > 1 && own[*i] != 0 && other[*i] == 0)
        };
        let reduced = (rank..lengths.len()).filter(|i| lengths[*i] > 1);
        let one = |steps: &[i64]| reduced.clone().all(|i| steps[i] == 0);
        let (left_is_one, right_is_one) = (one(&left), one(&right));
        let turned = left_is_one || !right_is_one && last(&left, &right) > last(&right, &left);
        if turned {
            std::mem::swap(&mut left, &mut right);
        }
        let to_one = left_is_one != right_is_one;
        let (mut batch, mut rows, mut columns, mut terms) = (vec![], vec![], vec![], vec![]);
        for i in (0..lengths.len()).filter(|i| lengths[*i] > 1) {
            match (i < rank, left[i] != 0, right[i] != 0) {
                (true, true, true) => batch.push(i),
                (true, true, false) => rows.push(i),
                (true, false, true) => columns.push(i),
                (false, true, own) if own != to_one => terms.push(i),
                _ => return Err(Reason::of("an index belongs to neither element")),
            }
        }
        Ok(Meeting {
            term,
            turned,
            left,
            right,
            to_one,
            batch,
            rows,
            columns,
            terms,
        })
    }

    /// The loops that fit; `unworthy`: why they are not worth it, if they are not.
    fn loops(
        &self,
        facts: &Facts<'_>,
        unworthy: &mut Option<Reason>,
    ) -> Result<PairwiseLoops, Reason> {
        let (lengths, rank) = (&facts.lengths, facts.rank());
        let [m, n, k] = [&self.rows, &self.columns, &self.terms].map(|list| facts.count(list));
        let product = self.term == Term::SumOfProducts;
        let neighbours = |steps: &[i64]| merged(steps, &self.terms, lengths) == Some(1);
        let mut steps = vec![1; lengths.len()];
        for i in (1..rank).rev() {
            steps[i - 1] = steps[i] * lengths[i] as i64;
        }
        let run = |steps: &[i64]| merged(steps, &self.columns, lengths) == Some(1);
        let short = |unworthy: &mut Option<Reason>| {
            if k < LEAST_LINE {
                *unworthy = Some(Reason::few("terms", k, LEAST_LINE));
            }
        };
        if self.to_one {
            if product || !self.columns.is_empty() || !neighbours(&self.left) {
                return Err(Reason::of("terms that meet one element are no neighbours"));
            }
            short(unworthy);
            return Ok(PairwiseLoops::LinesToOne);
        }
        if product && m.min(n) > 1 {
            return Err(Reason::of("rows and columns of products make matrices"));
        }
        if m.min(n) >= LEAST_SIDE {
            if n.checked_mul(k).is_none_or(|size| size > MOST_COPIED) {
                *unworthy = Some(Reason::many(
                    "elements to copy",
                    n.saturating_mul(k),
                    MOST_COPIED,
                ));
            }
            return Ok(PairwiseLoops::Blocks);
        }
        // A matrix times a vector is a contraction's business: several lines at a time are faster.
        let lines = !(product && n > 1) && neighbours(&self.left) && neighbours(&self.right);
        let sums = m == 1 && n > 1 && run(&self.right) && run(&steps);
        if lines && (k >= LEAST_LINE || !sums) {
            short(unworthy);
            return Ok(PairwiseLoops::Lines);
        }
        if !sums {
            return Err(Reason::of("neither terms nor columns are neighbours"));
        }
        if n < LEAST_COLUMNS {
            *unworthy = Some(Reason::few("columns", n, LEAST_COLUMNS));
        } else if k > MOST_ROWS {
            *unworthy = Some(Reason::many("rows to add up", k, MOST_ROWS));
        }
        Ok(PairwiseLoops::Sums)
    }
}

impl Pairwise {
    /// The left and the right element of a kernel in this form.
    pub fn elements(&self, kernel: &Kernel) -> Option<(NodeId, NodeId)> {
        let (term, x, y) = term_of(&kernel.graph, kernel.root, kernel.reduction?)?;
        let elements = match self.turned {
            true => (y, x),
            false => (x, y),
        };
        (term == self.term).then_some(elements)
    }

    /// Returns whether it is taken line by line.
    pub fn by_lines(&self) -> bool {
        matches!(self.by, PairwiseLoops::Lines | PairwiseLoops::LinesToOne)
    }
}

/// The form of a reduction's body, and its two elements.
fn term_of(graph: &Graph, root: NodeId, reduction: Reduction) -> Option<(Term, NodeId, NodeId)> {
    let two = |id: NodeId, function: Function| match graph.node(id) {
        Node::Apply(f, a) if *f == function => Some((a[0], *a.get(1)?)),
        _ => None,
    };
    let is_two = |id: NodeId| match graph.node(id) {
        Node::Constant(Scalar::Float(x)) => *x == 2.0,
        Node::Constant(Scalar::Int(x)) => *x == 2,
        _ => false,
    };
    let squared = || {
        let product = two(root, Function::Mul).filter(|(a, b)| a == b);
        let power = || two(root, Function::Pow).filter(|(_, power)| is_two(*power));
        two(product.or_else(power)?.0, Function::Sub)
    };
    let distance = || match graph.node(root) {
        Node::Apply(Function::Abs, a) => two(a[0], Function::Sub),
        _ => None,
    };
    let sum = || two(root, Function::Add);
    let (term, (x, y)) = match reduction {
        Reduction::Sum | Reduction::Mean => squared()
            .map(|pair| (Term::SumOfSquares, pair))
            .or_else(|| Some((Term::SumOfDistances, distance()?)))
            .or_else(|| Some((Term::SumOfProducts, two(root, Function::Mul)?)))?,
        Reduction::Max => distance()
            .map(|pair| (Term::LargestDistance, pair))
            .or_else(|| Some((Term::LargestSum, sum()?)))?,
        Reduction::Min => (Term::LeastSum, sum()?),
        _ => return None,
    };
    Some((term, x, y))
}
