//! Members that readers compute themselves: elements less the number of their row.
//!
//! Such a member is written and read again for one subtraction, which loops and sums of rows have for nothing. Results have the bits that they
//! have with it. Must not know data.
//!
//! ```text
//! m1 = a0[n, d] - m0[n]; m2 = mean m1[n, d]^2; m3 = m1[n, d] * m2[n]   ->   m2 = mean (a0[n, d] - m0[n])^2; m3 = (a0[n, d] - m0[n]) * m2[n]
//! ```

use super::access::Place;
use super::choose::choose;
use super::outline::{Origin, Outline, ascends};
use super::{Facts, LoopKind};
use crate::{DType, Function, Graph, Kernel, Node, NodeId};
use std::borrow::Cow;

/// A member as it is run.
pub(super) struct Inlined<'a> {
    /// Which one it is.
    pub number: usize,
    pub kernel: Cow<'a, Kernel>,
    /// Each of its operands as the member and the operand of that which it is. Those that the member has itself keep their numbers, which
    /// faults tell.
    pub operands: Vec<(usize, usize)>,
}

/// Which members readers compute.
#[derive(Clone, Copy)]
pub(super) enum Wanted<'w> {
    /// Those of which it is faster.
    Worthy,
    /// These.
    These(&'w [bool]),
}

/// The members that are left where some are computed by their readers. `places`: of a member, where its operands lie.
pub(super) fn inlined<'a>(
    members: &[Outline<'a>],
    places: &dyn Fn(usize) -> Vec<Place>,
    wanted: Wanted<'_>,
) -> Vec<Inlined<'a>> {
    let all = members.iter().enumerate().map(|(number, member)| Inlined {
        number,
        kernel: Cow::Borrowed(member.kernel),
        operands: (0..member.operands.len()).map(|at| (number, at)).collect(),
    });
    let mut all: Vec<Inlined<'a>> = all.collect();
    for number in 0..members.len() {
        let Some(at) = all.iter().position(|member| member.number == number) else {
            continue;
        };
        let made = &all[at];
        if !is_difference(&members[number], &made.kernel) {
            continue;
        }
        let is_read = |reader: &&Inlined<'_>| reader.operand(members, number).is_some();
        let readers: Vec<&Inlined<'a>> = all.iter().filter(is_read).collect();
        // Nobody writes over what it reads before the last reader, so that nothing has to be copied for that.
        let last = readers.last().map_or(number, |reader| reader.number);
        let stays = || members[number..last].iter().all(|member| !member.over);
        // Without a reduction between them, it and its readers are one loop anyway.
        let reduced = || readers.iter().any(|r| r.kernel.reduction.is_some());
        let wanted = match wanted {
            Wanted::Worthy => stays() && reduced(),
            Wanted::These(these) => these[number],
        };
        if !wanted || readers.is_empty() || !readers.iter().all(|r| r.reads_beside(members, number))
        {
            continue;
        }
        let with: Vec<Inlined<'a>> = readers.iter().map(|r| r.with(members, made)).collect();
        let mut fit = readers.iter().zip(&with);
        if !fit.all(|(reader, with)| with.fits(reader, members, places)) {
            continue;
        }
        for with in with {
            let place = all.iter().position(|member| member.number == with.number);
            all[place.expect("a reader is left")] = with;
        }
        all.remove(at);
    }
    all
}

/// How a sum is taken that is as fast of differences as of elements.
#[derive(PartialEq)]
enum Sum {
    Lines,
    Rows,
}

/// Whether a member only its readers want is elements less what is the same in all of a row, at its own point.
fn is_difference(member: &Outline<'_>, kernel: &Kernel) -> bool {
    let graph = &kernel.graph;
    let value = graph.dtype(kernel.root);
    let Node::Apply(Function::Sub, of) = graph.node(kernel.root) else {
        return false;
    };
    let Some(columns) = (kernel.output_rank as usize).checked_sub(1) else {
        return false;
    };
    let depends = graph.dependencies();
    let differs = |id: &NodeId| depends[id.0 as usize] >> columns & 1 == 1;
    let read = |id: &NodeId| match graph.node(*id) {
        Node::Read {
            operand,
            positions,
            otherwise: None,
            ..
        } => {
            let stored = &kernel.operands[*operand as usize].columns;
            stored[..] == [value] && ascends(graph, positions)
        }
        _ => false,
    };
    !member.kept
        && !member.over
        && kernel.reduction.is_none()
        && kernel.guard.is_none()
        && kernel.output_rank as usize == kernel.indices.len()
        && matches!(value, DType::F32 | DType::F64)
        && kernel.output == [value]
        && of.iter().all(read)
        && differs(&of[0])
        && !differs(&of[1])
}

impl Inlined<'_> {
    /// The first operand that is what a member makes.
    fn operand(&self, members: &[Outline<'_>], made: usize) -> Option<usize> {
        let mut operands = self.operands.iter();
        operands.position(|(member, at)| members[*member].operands[*at] == Origin::Made(made))
    }

    /// Whether it reads what a member makes only where it is itself.
    fn reads_beside(&self, members: &[Outline<'_>], made: usize) -> bool {
        let graph = &self.kernel.graph;
        graph.iter().all(|(_, node, _)| match node {
            Node::Read {
                operand,
                positions,
                otherwise,
                ..
            } => {
                let (member, at) = self.operands[*operand as usize];
                members[member].operands[at] != Origin::Made(made)
                    || positions.len() == self.kernel.indices.len()
                        && ascends(graph, positions)
                        && otherwise.is_none()
            }
            _ => true,
        })
    }

    /// Whether it is what `other` is, in the same order and as fast: one compiled loop, or a sum of rows.
    fn fits(
        &self,
        other: &Inlined<'_>,
        members: &[Outline<'_>],
        places: &dyn Fn(usize) -> Vec<Place>,
    ) -> bool {
        if self.kernel.reduction.is_none() {
            let mut applied = self
                .kernel
                .graph
                .iter()
                .filter_map(|(_, node, _)| match node {
                    Node::Apply(function, _) => Some(function),
                    _ => None,
                });
            return applied.all(|function| function.is_cheap());
        }
        let form = |of: &Inlined<'_>| match of.loops(members, places) {
            LoopKind::Pairwise(pairwise) => pairwise.by_lines().then_some(Sum::Lines),
            LoopKind::RowReduce(_) => Some(Sum::Rows),
            _ => None,
        };
        form(self).is_some_and(|own| Some(own) == form(other))
    }

    /// The loops of it by itself.
    pub(super) fn loops(
        &self,
        members: &[Outline<'_>],
        places: &dyn Fn(usize) -> Vec<Place>,
    ) -> LoopKind {
        choose(&self.facts(members, places)).kind
    }

    /// The facts that are known of its tuples.
    pub(super) fn facts(
        &self,
        members: &[Outline<'_>],
        places: &dyn Fn(usize) -> Vec<Place>,
    ) -> Facts<'_> {
        let lengths = members[self.number].ranges.iter();
        let lengths = lengths.map(|(_, length)| *length as usize).collect();
        let own = |(member, at): &(usize, usize)| places(*member).swap_remove(*at);
        Facts::new(
            &self.kernel,
            lengths,
            self.operands.iter().map(own).collect(),
        )
    }

    /// The same computing what `made` makes from what that reads.
    fn with(&self, members: &[Outline<'_>], made: &Inlined<'_>) -> Self {
        let mut kernel = Kernel::clone(&self.kernel);
        let mut operands = self.operands.clone();
        let is_made = |(member, at): &(usize, usize)| {
            members[*member].operands[*at] == Origin::Made(made.number)
        };
        // The first of its operands takes the place of what is gone, the others stand behind.
        let (first, own) = (&made.kernel.operands[0], made.operands[0]);
        for (operand, of) in kernel.operands.iter_mut().zip(&mut operands) {
            if is_made(of) {
                (*operand, *of) = (first.clone(), own);
            }
        }
        let gone: Vec<bool> = self.operands.iter().map(is_made).collect();
        let mut places: Vec<u32> = vec![];
        places.extend(gone.iter().position(|gone| *gone).map(|at| at as u32));
        places.extend(operands.len() as u32..(operands.len() + made.operands.len() - 1) as u32);
        kernel
            .operands
            .extend(made.kernel.operands[1..].iter().cloned());
        operands.extend(&made.operands[1..]);
        let kernel = kernel.rewritten(|graph, _, node, dtype| match node {
            Node::Read { operand, .. } if gone[operand as usize] => {
                difference(graph, &made.kernel, &places)
            }
            node => graph.add(node, dtype),
        });
        Inlined {
            number: self.number,
            kernel: Cow::Owned(kernel),
            operands,
        }
    }
}

/// What a kernel computes at its own point, added to a graph with the same indices; `places`: what each of its operands is there.
fn difference(graph: &mut Graph, kernel: &Kernel, places: &[u32]) -> NodeId {
    let moved = graph.append(&kernel.graph, |graph, _, mut node, dtype| {
        if let Node::Read { operand, .. } = &mut node {
            *operand = places[*operand as usize];
        }
        graph.add(node, dtype)
    });
    moved[kernel.root.0 as usize]
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What is left of a layer norm with these last two members.
    fn left(of: &str, last: &str) -> Vec<String> {
        let texts = [
            "(f32[4, 64]) [n: 4 | d: 64] f32 = mean a0[n, d]",
            "(f32[4, 64], f32[4]) [n: 4, d: 64] f32 = a0[n, d] - a1[n]",
            of,
            last,
        ];
        let kernels: Vec<Kernel> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let operands = [
            vec![Origin::Given(0)],
            vec![Origin::Given(0), Origin::Made(0)],
            vec![Origin::Made(1)],
            vec![Origin::Made(1), Origin::Made(2)],
        ];
        let members = kernels.iter().zip(operands).enumerate();
        let members: Vec<Outline<'_>> = members
            .map(|(number, (kernel, operands))| Outline {
                kernel,
                ranges: kernel.indices.iter().map(|i| (0, i.extent)).collect(),
                cuts: vec![None; kernel.indices.len()],
                operands,
                kept: number == 3,
                over: false,
            })
            .collect();
        let lying = |number: usize| {
            let operands = kernels[number].operands.iter();
            let ranges = |shape: &[u64]| shape.iter().map(|n| (0, *n)).collect::<Vec<_>>();
            operands.map(|o| Place::new(&ranges(&o.shape))).collect()
        };
        let left = inlined(&members, &lying, Wanted::Worthy);
        if left.len() == members.len() {
            return vec![];
        }
        left.iter()
            .map(|member| member.kernel.to_string())
            .collect()
    }

    #[test]
    fn readers_of_a_difference_take_it_themselves() {
        let of = "(f32[4, 64]) [n: 4 | d: 64] f32 = mean a0[n, d] * a0[n, d]";
        let last = "(f32[4, 64], f32[4]) [n: 4, d: 64] f32 = a0[n, d] * rsqrt(a1[n] + 0.001_f32)";
        let want = [
            "(f32[4, 64]) [n: 4 | d: 64] f32 = mean a0[n, d]",
            "(f32[4, 64], f32[4]) [n: 4 | d: 64] f32 = mean let $0 = a0[n, d] - a1[n] in $0 * $0",
            "(f32[4, 64], f32[4], f32[4]) [n: 4, d: 64] f32 = (a0[n, d] - a2[n]) * rsqrt(a1[n] + 0.001)",
        ];
        assert_eq!(left(of, last), want);
        // It is made where a reader takes it slowly, or in another order.
        let none: [&str; 0] = [];
        let exp = last.replace("rsqrt(a1[n] + 0.001_f32)", "exp(a0[n, d])");
        assert_eq!(left(of, &exp), none);
        for of in ["mean exp(a0[n, d])", "max a0[n, d]"] {
            let of = format!("(f32[4, 64]) [n: 4 | d: 64] f32 = {of}");
            assert_eq!(left(&of, last), none, "{of}");
        }
    }
}
