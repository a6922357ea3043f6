//! Running reductions whose reduced index is counted from elsewhere.
//!
//! A result of a running reduction is that of its neighbour and one value more, if the guard compares the reduced index with an index of
//! the result and nothing else depends on the latter. A text may count the same points from the result's own place, or from the end; here
//! they are counted by the place that is read. As with any reordered sum, rounding may differ. Must not know placements.
//!
//! ```text
//! y: f32[900] = [i: 900 | j: 900] sum x[i + j] if j < 900 - i   ->   y: f32[900] = [i: 900 | j: 900] sum x[j] if i <= j
//! y: f32[900] = [i: 900 | j: 900] sum x[j] if j < 900 - i       ->   y: f32[900] = [i: 900 | j: 900] sum x[899 - j] if i <= j
//! ```

use crate::einsum::{Definition, Program, canonical};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{Affine, DType, Function, Graph, IndexId, Kernel, Node, NodeId};

/// Fewest results along the index of a running reduction: fewer are reduced one by one.
const LEAST: u64 = 64;

/// Returns the program in which running reductions count the points by the place that they read.
pub fn recounted(program: &Program) -> Program {
    let mut program = program.clone();
    for tensor in &mut program.tensors {
        if let Definition::Statement { kernel, operands } = &mut tensor.definition
            && let Some(recounted) = recount(kernel)
        {
            (*kernel, *operands) = canonical::statement(recounted, operands);
        }
    }
    program
}

fn recount(kernel: &Kernel) -> Option<Kernel> {
    let plain = kernel
        .reduction
        .is_some_and(|reduction| !reduction.is_arg())
        && kernel.library().is_none()
        && kernel.scanned().is_none();
    let guard = kernel.guard.filter(|_| plain)?;
    let asked = conjuncts(&kernel.graph, guard).into_iter();
    // Gradients ask whether an index is one of a result, too, as it always is.
    let holds = |form| least(kernel, &form).is_some_and(|least| least >= 0);
    let conditions: Vec<NodeId> = asked
        .filter(|condition| !condition_form(&kernel.graph, *condition).is_some_and(holds))
        .collect();
    conditions.iter().find_map(|condition| {
        let side = Side::of(kernel, *condition)?;
        let places = places(kernel, side.reduced);
        places
            .iter()
            .find_map(|place| side.recounted(kernel, &conditions, place))
    })
}

/// A condition that holds on one side of a line through the values of a reduced index and of one of the result: where `form` is not negative.
struct Side {
    condition: NodeId,
    form: Affine,
    output: IndexId,
    reduced: IndexId,
}

/// Another index in the place of the reduced one: its value, and how many values it has.
struct Place {
    value: Affine,
    extent: u64,
}

/// The sum of indices that is not negative where a condition holds, if there is one.
fn condition_form(graph: &Graph, condition: NodeId) -> Option<Affine> {
    let Node::Apply(function, sides) = graph.node(condition) else {
        return None;
    };
    let (small, large, apart) = match function {
        Function::Lt => (sides[0], sides[1], 1),
        Function::Le => (sides[0], sides[1], 0),
        Function::Gt => (sides[1], sides[0], 1),
        Function::Ge => (sides[1], sides[0], 0),
        _ => return None,
    };
    let more = graph.as_affine(large)?.plus(&graph.as_affine(small)?, -1)?;
    more.plus(&constant(apart), -1)
}

/// The places at which elements are read and that follow from the reduced index, one after the other; and its value counted from the end.
fn places(kernel: &Kernel, reduced: IndexId) -> Vec<Place> {
    let mut found = vec![];
    let read = kernel.graph.reads();
    for (operand, positions) in read {
        let shape = &kernel.operands[operand as usize].shape;
        for (position, extent) in positions.iter().zip(shape) {
            if let Some(value) = kernel.graph.as_affine(*position)
                && matches!(weight(&value, reduced), -1 | 1)
            {
                let extent = *extent;
                found.push(Place { value, extent });
            }
        }
    }
    let extent = kernel.indices[reduced.0 as usize].extent;
    if let Ok(last) = i64::try_from(extent).map(|extent| extent - 1) {
        let terms = vec![(reduced, -1)];
        let value = Affine {
            constant: last,
            terms,
        };
        found.push(Place { value, extent });
    }
    found
}

fn weight(form: &Affine, index: IndexId) -> i64 {
    let term = form.terms.iter().find(|(of, _)| *of == index);
    term.map_or(0, |(_, weight)| *weight)
}

fn constant(constant: i64) -> Affine {
    let terms = vec![];
    Affine { constant, terms }
}

fn index(index: IndexId) -> Affine {
    let terms = vec![(index, 1)];
    Affine { constant: 0, terms }
}

impl Side {
    fn of(kernel: &Kernel, condition: NodeId) -> Option<Side> {
        let form = condition_form(&kernel.graph, condition)?;
        let [(output, a), (reduced, b)] = form.terms[..] else {
            return None;
        };
        let rank = kernel.output_rank;
        let is_line = output.0 < rank && reduced.0 >= rank && a.abs() == 1 && b.abs() == 1;
        let many = kernel.indices[output.0 as usize].extent >= LEAST;
        (is_line && many).then_some(Side {
            condition,
            form,
            output,
            reduced,
        })
    }

    /// The kernel with the place as its reduced index, if it is a running reduction then.
    fn recounted(&self, kernel: &Kernel, conditions: &[NodeId], place: &Place) -> Option<Kernel> {
        let follows = place.value.terms.iter();
        if !follows
            .into_iter()
            .all(|(index, _)| [self.output, self.reduced].contains(index))
        {
            return None;
        }
        let last = i64::try_from(place.extent).ok()?.checked_sub(1)?;
        let extent = kernel.indices[self.reduced.0 as usize].extent;
        let reaches = i64::try_from(extent).ok()?.checked_sub(1)?;
        // Every point that counts has a place.
        let room = constant(last).plus(&place.value, -1)?;
        if !self.implies(kernel, &place.value)? || !self.implies(kernel, &room)? {
            return None;
        }
        // The old index by the new one, which has its number: from value = w * old + rest, old = w * (new - rest).
        let turn = weight(&place.value, self.reduced);
        let rest = place
            .value
            .plus(&index(self.reduced), turn.checked_neg()?)?;
        let old = constant(0)
            .plus(&index(self.reduced), turn)?
            .plus(&rest, turn.checked_neg()?)?;
        let mut new = kernel.clone();
        new.indices[self.reduced.0 as usize].extent = place.extent;
        // The places of the points that count are those on one side of a line.
        let sides = [
            self.replaced(&self.form, &old)?,
            constant(reaches).plus(&old, -1)?,
            old.clone(),
        ];
        let side = sides.iter().find(|side| self.compared(side).is_some())?;
        for other in &sides {
            if least(&new, other)? < 0 && least(&new, &other.plus(side, -1)?)? < 0 {
                return None;
            }
        }
        let forms: Vec<Option<Affine>> = (kernel.graph.iter())
            .map(|(id, _, _)| kernel.graph.as_affine(id))
            .collect();
        let mut graph = Graph::default();
        let mut fails = false;
        let moved = graph.append(&kernel.graph, |graph, id, node, dtype| {
            match forms[id.0 as usize].as_ref() {
                Some(form) => match self.replaced(form, &old) {
                    Some(form) => return graph.add_affine(&form),
                    None => fails = true,
                },
                None => fails |= matches!(node, Node::Index(index) if index == self.reduced),
            }
            graph.add(node, dtype)
        });
        let (function, sides) = self.compared(side)?;
        let sides = sides.map(|index| graph.add(Node::Index(index), DType::I64));
        let compared = graph.add(Node::Apply(function, sides.to_vec()), DType::Bool);
        new.root = moved[kernel.root.0 as usize];
        new.guard = Some(compared);
        new.graph = graph;
        for condition in conditions.iter().filter(|other| **other != self.condition) {
            new.restrict(moved[condition.0 as usize]);
        }
        let new = new.canonical();
        (!fails && new.scanned().is_some() && asks_inside(&new)).then_some(new)
    }

    /// Returns whether a form is at least 0 at all points that count; none where a number is too large.
    fn implies(&self, kernel: &Kernel, form: &Affine) -> Option<bool> {
        let more = form.plus(&self.form, -1)?;
        Some(least(kernel, form)? >= 0 || least(kernel, &more)? >= 0)
    }

    /// A form with another one in the place of the reduced index.
    fn replaced(&self, form: &Affine, by: &Affine) -> Option<Affine> {
        let weight = weight(form, self.reduced);
        let rest = form.plus(&index(self.reduced), weight.checked_neg()?)?;
        rest.plus(by, weight)
    }

    /// The comparison of both indices that a side is, if it is one: `<` or `<=`, the smaller and the larger index.
    fn compared(&self, side: &Affine) -> Option<(Function, [IndexId; 2])> {
        let function = match side.constant {
            0 => Function::Le,
            -1 => Function::Lt,
            _ => return None,
        };
        match (weight(side, self.output), weight(side, self.reduced)) {
            (-1, 1) => Some((function, [self.output, self.reduced])),
            (1, -1) => Some((function, [self.reduced, self.output])),
            _ => None,
        }
    }
}

/// Returns whether conditions read no place outside their operands, at any point of the kernel.
fn asks_inside(kernel: &Kernel) -> bool {
    let graph = &kernel.graph;
    let is_inside = |position: &NodeId, extent: u64| {
        let room = || {
            let form = graph.as_affine(*position)?;
            let last = i64::try_from(extent).ok()?.checked_sub(1)?;
            let room = constant(last).plus(&form, -1)?;
            Some(least(kernel, &form)?.min(least(kernel, &room)?))
        };
        room().is_some_and(|room| room >= 0)
    };
    let mut open: Vec<NodeId> = kernel.guard.into_iter().collect();
    while let Some(id) = open.pop() {
        let node = graph.node(id);
        if let Node::Read {
            operand, positions, ..
        } = node
        {
            let shape = &kernel.operands[*operand as usize].shape;
            if !positions
                .iter()
                .zip(shape)
                .all(|(at, extent)| is_inside(at, *extent))
            {
                return false;
            }
        }
        open.extend(node.arguments());
    }
    true
}

/// The least value of a form over all values of its indices; none where it is too large.
fn least(kernel: &Kernel, form: &Affine) -> Option<i64> {
    form.terms
        .iter()
        .try_fold(form.constant, |sum, (index, weight)| {
            let extent = kernel.indices[index.0 as usize].extent;
            let most = i64::try_from(extent).ok()?.checked_sub(1)?.max(0);
            let least = weight.checked_mul(if *weight < 0 { most } else { 0 })?;
            sum.checked_add(least)
        })
}
