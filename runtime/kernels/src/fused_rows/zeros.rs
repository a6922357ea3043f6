//! Terms of a product that are 0 because a mask took them out of a factor: whether values let them be left out.
//!
//! The plan says which terms of which member ([`ein_plan::schedule::zeros`]). Must not know how products are computed.
//!
//! ```text
//! [t, d | s] sum m1[t, s] * a0[s, d] / m2[t]   m1 0 outside s ..=t, a0 finite, m2 not 0:   rows 64..128 need the terms s 0..128
//! ```

use super::{Member, Operand};
use crate::Chunk;
use crate::parallel;
use ein_array::{Array, Data};
use ein_plan::schedule::zeros::{self, factors_read, leaves_zero};

/// Elements that one task looks at.
const TASK: usize = 1 << 16;

/// A product some of whose terms may be 0.
pub(super) struct Zeros {
    /// The member that is 0 there.
    pub of: usize,
    /// The index of the terms, which are its columns.
    pub terms: usize,
    /// The members that it is multiplied by (`false`) or divided by.
    beside: Vec<(usize, bool)>,
}

impl Zeros {
    /// Of a member that is a product with such terms, if nothing that is given makes a 0 anything else.
    pub(super) fn of(member: &Member<'_>, decided: &zeros::Zeros) -> Option<Zeros> {
        let (mut given, mut beside) = (vec![], vec![]);
        let mut found = false;
        for factor in factors_read(member.kernel)? {
            match &member.operands[factor.operand as usize] {
                // The first one is 0.
                Operand::Made(of) if *of == decided.of as usize && !factor.divides && !found => {
                    found = true;
                }
                Operand::Made(of) => beside.push((*of, factor.divides)),
                Operand::Given(chunk) => given.push((chunk, factor.divides)),
                // Its values are not there yet.
                Operand::Old(_) => return None,
            }
        }
        let all = |(chunk, divides): &(&Chunk<'_>, bool)| {
            let mut columns = chunk.columns.iter();
            columns.all(|column| leave_zero(column.data(), *divides))
        };
        (found && given.iter().all(all)).then_some(Zeros {
            of: decided.of as usize,
            terms: decided.terms.0 as usize,
            beside,
        })
    }

    /// Returns whether nothing that members made makes a 0 anything else.
    pub(super) fn hold(&self, made: &[Vec<Array>]) -> bool {
        self.beside.iter().all(|(of, divides)| {
            let mut columns = made[*of].iter();
            columns.all(|column| leave_zero(column.data(), *divides))
        })
    }
}

/// Returns whether 0 times each element, or divided by it, is 0, of floats.
fn leave_zero(data: &Data, divides: bool) -> bool {
    fn all<T: Copy + Into<f64> + Sync>(elements: &[T], divides: bool) -> bool {
        // No branch an element: parts are looked at whole.
        let each = |all: bool, x: &T| all & leaves_zero((*x).into(), divides);
        let part = |part: &[T]| part.iter().fold(true, each);
        match elements.len() {
            0..=TASK => part(elements),
            length => parallel::all(length.div_ceil(TASK), |number| {
                part(&elements[number * TASK..length.min((number + 1) * TASK)])
            }),
        }
    }
    match data {
        Data::F32(elements) => all(elements, divides),
        Data::F64(elements) => all(elements, divides),
        _ => false,
    }
}
