//! Scatters in which values meet, in two steps: sums of the values that meet, then a scatter of one value to each place.
//!
//! Of `2·y + r == p` with `r < 3`, two pairs `y`, `r` may give one place. With `r = 2·t + o` and `u = y + t` the place is `2·u + o`, and no two
//! pairs `u`, `o` give one place. So a sum over `t` comes first, whose values are read at `u - t`, and [`super::digits`] makes a read of the
//! scatter that is left. A site needs a window of the values, and nothing is added where something lies already. As with any reordered sum,
//! rounding may differ. Must not know placements.
//!
//! ```text
//! O: f32[9] = [p: 9 | y: 4, r: 3] sum T[y, r] if 2 * y + r == p
//! O.phases: f32[2, 5] = [r': 2, y: 5 | r: 2] sum T[y - r, 2 * r + r'] if …;  O: f32[9] = [p: 9 | y: 5, r: 2] sum O.phases[r, y] if 2 * y + r == p
//! ```

use super::digits::{both, compared, with_values};
use super::meeting::{Digit, Meeting};
use crate::einsum::{Program, Rewriting, canonical};
use crate::rules::{may_fault, over};
use ein_plan::schedule::guard::conjuncts;
use ein_plan::{
    Affine, DType, Function, Graph, Index, IndexId, Kernel, Node, NodeId, Operand, Reduction,
};
use std::ops::Range;

/// How many times as many points the two steps may have as the scatter.
const MOST_POINTS: u64 = 4;

/// Returns the program in which values that meet are summed before they are scattered.
pub fn parted(program: &Program) -> Program {
    Rewriting::of_statements(program, |mut statement| {
        let (sums, scatter) = Meetings::of(statement.kernel).and_then(Meetings::steps)?;
        let sums = canonical::statement(sums, statement.operands);
        Some(match scatter {
            None => sums,
            Some(scatter) => {
                let sums = statement.add("phases", sums);
                canonical::statement(scatter.canonical(), &[sums])
            }
        })
    })
}

/// Where a sum lies and which of its values is meant: the place within its phase, the phase and the turn, in terms of the kernel's indices.
struct At {
    place: Affine,
    phase: Affine,
    turn: Affine,
}

/// A constant, or one index.
fn one(constant: i64, index: Option<usize>) -> Affine {
    let terms = index.map(|index| (IndexId(index as u32), 1));
    Affine {
        constant,
        terms: terms.into_iter().collect(),
    }
}

/// A scatter whose values meet.
struct Meetings<'a> {
    kernel: &'a Kernel,
    value: DType,
    meetings: Vec<Meeting>,
    /// The other conditions.
    others: Vec<NodeId>,
}

impl Meetings<'_> {
    fn of(kernel: &Kernel) -> Option<Meetings<'_>> {
        let value = kernel.graph.dtype(kernel.root);
        let plain = matches!(
            kernel.reduction?,
            Reduction::Sum | Reduction::Max | Reduction::Min
        );
        let one = kernel.finish && kernel.output == [value] && value != DType::Bool;
        // The sums also take in values whose place is outside of the result.
        if !plain || !one || kernel.scattered().is_empty() || may_fault(kernel) {
            return None;
        }
        let mut others = conjuncts(&kernel.graph, kernel.guard?);
        let mut meetings: Vec<Meeting> = vec![];
        others.retain(|condition| {
            let new = Meeting::of(kernel, *condition);
            let new = new.filter(|new| meetings.iter().all(|other| !new.shares(other)));
            match new {
                Some(new) => meetings.push(new),
                None => return true,
            }
            false
        });
        let found = Meetings {
            kernel,
            value,
            meetings,
            others,
        };
        (found.meet() && found.are_few() && found.leave_places()).then_some(found)
    }

    /// True if several values may go to one place.
    fn meet(&self) -> bool {
        self.meetings.iter().any(|meeting| meeting.turns() > 1)
    }

    /// True if the sums have few points for those of the scatter.
    fn are_few(&self) -> bool {
        let mut points = self.meetings.iter().map(|m| m.points(self.kernel));
        let all = points.try_fold((1u64, 1u64), |(new, old), points| {
            let (sums, scatter) = points?;
            Some((new.checked_mul(sums)?, old.checked_mul(scatter)?))
        });
        all.is_some_and(|(new, old)| new <= old.saturating_mul(MOST_POINTS))
    }

    /// True if nothing but the places depends on the indices that the sums have not.
    fn leave_places(&self) -> bool {
        let depends = self.kernel.graph.dependencies();
        let needed = self.others.iter().chain([&self.kernel.root]);
        let needed = needed.fold(0, |all, node| all | depends[node.0 as usize]);
        self.placed().iter().all(|index| needed >> index.0 & 1 == 0)
    }

    /// The indices of places that the sums have not.
    fn placed(&self) -> Vec<IndexId> {
        let scattered = self.meetings.iter().filter(|meeting| !meeting.is_plain());
        let places = scattered.flat_map(|meeting| &meeting.place.terms);
        places.map(|(index, _)| *index).collect()
    }

    /// The sums of what meets, and the scatter of them if they do not lie in their places.
    fn steps(self) -> Option<(Kernel, Option<Kernel>)> {
        let kernel = self.kernel;
        let mut sums = Kernel {
            guard: None,
            ..kernel.clone()
        };
        let (mut phases, mut places, mut turns, mut at) = (vec![], vec![], vec![], vec![]);
        for meeting in &self.meetings {
            let name = |digit: &Digit| kernel.indices[digit.index.0 as usize].name.clone();
            let near = name(meeting.near().unwrap_or(&meeting.far));
            let mut new = |name: String, extent: i64| {
                let index = sums.indices.len();
                let several = extent > 1;
                if several {
                    let extent = extent.unsigned_abs();
                    sums.indices.push(Index { name, extent });
                }
                several.then_some(index)
            };
            let turn = new(near.clone(), meeting.turns());
            turns.extend(turn);
            let turn = one(0, turn);
            if meeting.is_plain() {
                at.push(At {
                    place: meeting.place.clone(),
                    phase: one(0, None),
                    turn,
                });
                continue;
            }
            let place = new(name(&meeting.far), meeting.places()?);
            places.extend(place);
            let phase = new(self.free(near), meeting.taken());
            phases.extend(phase);
            at.push(At {
                place: one(0, place),
                phase: one(0, phase),
                turn,
            });
        }
        let placed = self.placed();
        let digits = self.meetings.iter().flat_map(Meeting::indices);
        let gone: Vec<usize> = digits.chain(placed).map(|index| index.0 as usize).collect();
        let (rank, count) = (kernel.output_rank as usize, kernel.indices.len());
        let left = |range: Range<usize>| range.filter(|i| !gone.contains(i)).collect::<Vec<_>>();
        let (kept, reduced) = (left(0..rank), left(rank..count));
        let mut indices = [&kept[..], &phases, &places].concat();
        sums.output_rank = indices.len() as u32;
        (sums.root, sums.guard) = self.write(&mut sums, &at)?;
        indices.extend(reduced.iter().chain(&turns));
        let wide = sums.clone();
        let sums = over(sums.canonical(), &wide, &indices);
        if !sums.scattered().is_empty() {
            return None;
        }
        let scatter = match self.meetings.iter().all(Meeting::is_plain) {
            true => None,
            false => Some(self.scatter(&sums, &wide, &at, &indices)?),
        };
        Some((sums, scatter))
    }

    /// Writes the value at places, phases and turns, and the condition under which there is one.
    fn write(&self, sums: &mut Kernel, at: &[At]) -> Option<(NodeId, Option<NodeId>)> {
        let Kernel { graph, indices, .. } = sums;
        let extent = |index: IndexId| indices[index.0 as usize].extent;
        let mut values: Vec<(IndexId, NodeId)> = vec![];
        let mut held: Vec<NodeId> = vec![];
        for (meeting, at) in self.meetings.iter().zip(at) {
            let far = (&meeting.far, &at.place, -1);
            let near = meeting.near().map(|near| (near, &at.phase, meeting.phases));
            for (digit, from, times) in [far].into_iter().chain(near) {
                let mut counted = from.plus(&at.turn, times)?;
                let (low, high) = counted.reach(extent, None).unwrap_or((i64::MIN, i64::MAX));
                let node = graph.add_affine(&counted);
                if low < 0 {
                    held.push(compared(graph, Function::Ge, node, 0));
                }
                if high >= digit.extent {
                    held.push(compared(graph, Function::Le, node, digit.extent - 1));
                }
                if digit.turned {
                    counted = one(digit.extent - 1, None).plus(&counted, -1)?;
                }
                values.push((digit.index, graph.add_affine(&counted)));
            }
        }
        let moved = with_values(graph, &self.kernel.graph, &values);
        let all = |graph: &mut Graph, conditions: Vec<NodeId>| {
            let and = |all, condition| {
                let and = Node::Apply(Function::And, vec![all, condition]);
                graph.add(and, DType::Bool)
            };
            conditions.into_iter().reduce(and)
        };
        let inside = all(graph, held);
        let others = self.others.iter().map(|c| moved[c.0 as usize]).collect();
        let others = all(graph, others);
        let root = moved[self.kernel.root.0 as usize];
        Some((root, both(graph, inside, others)))
    }

    /// The scatter of the sums to their places. The sums have the first of `indices`, which are those of the kernel `wide`.
    fn scatter(
        &self,
        sums: &Kernel,
        wide: &Kernel,
        at: &[At],
        indices: &[usize],
    ) -> Option<Kernel> {
        let rank = self.kernel.output_rank as usize;
        let of_sums = &indices[..sums.output_rank as usize];
        let new: Vec<usize> = of_sums.iter().copied().filter(|i| *i >= rank).collect();
        let all: Vec<usize> = (0..rank).chain(new).collect();
        let mut graph = Graph::default();
        let positions = (of_sums.iter())
            .map(|i| graph.add(Node::Index(IndexId(*i as u32)), DType::I64))
            .collect();
        let read = Node::Read {
            operand: 0,
            column: 0,
            positions,
            otherwise: None,
        };
        let root = graph.add(read, self.value);
        let extents = sums.indices[..of_sums.len()].iter().map(|i| i.extent);
        let mut scatter = Kernel {
            operands: vec![Operand {
                columns: vec![self.value],
                shape: extents.collect(),
            }],
            output_rank: rank as u32,
            graph,
            root,
            guard: None,
            ..self.kernel.clone()
        };
        for (meeting, at) in self.meetings.iter().zip(at).filter(|(m, _)| !m.is_plain()) {
            let value = one(0, None).plus(&at.place, meeting.unit.checked_mul(meeting.phases)?)?;
            let value = scatter
                .graph
                .add_affine(&value.plus(&at.phase, meeting.unit)?);
            let to = scatter.graph.add_affine(&meeting.place);
            let equal = Node::Apply(Function::Eq, vec![value, to]);
            let equal = scatter.graph.add(equal, DType::Bool);
            scatter.restrict(equal);
        }
        Some(over(scatter, wide, &all))
    }

    /// A name that no index of the kernel has.
    fn free(&self, mut name: String) -> String {
        while self.kernel.indices.iter().any(|index| index.name == name) {
            name.push('\'');
        }
        name
    }
}
