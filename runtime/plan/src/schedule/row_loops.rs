//! How the members of a sweep are taken in each block of rows: which of them one loop computes, which columns of a row are computed, and which
//! terms of a product are left out.
//!
//! Every decision leaves results as they are; the verifier asks whether it does, not whether it is worth it. Must not know how a block is taken.
//!
//! ```text
//! [t, s | d] sum a0[t, d] * a1[s, d]             within m1
//! [t, s] where(s <= t, m0[t, s], -inf)      where s < t + 1 else -inf over m0
//! [t, s] exp(m1[t, s] - m2[t])                   where s < t + 1
//! [t, d | s] sum m3[t, s] * a2[s, d]             skips zeros of m3 along s
//! ```

use super::mask::{self, Masked};
use super::merging::{candidates, groups};
use super::outline::Outline;
use super::zeros::{Zeros, zeros};
use serde::{Deserialize, Serialize};

/// How a member is taken in each block of rows. Members are named by their numbers in the sweep.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RowLoops {
    /// The columns of its rows that are computed, if not all are.
    pub masked: Option<Masked>,
    /// The member whose mask chooses all that is wanted of it, which is a product.
    pub within: Option<u32>,
    /// The terms that may be left out, of a product.
    pub zeros: Option<Zeros>,
    /// The members that one loop computes, ascending, of which this is the last one. Empty: it is computed alone, or by the loop of a later one.
    pub together: Vec<u32>,
}

impl RowLoops {
    /// Returns whether nothing is decided of it: it is computed alone, all of it.
    pub fn is_plain(&self) -> bool {
        *self == RowLoops::default()
    }

    /// The same decisions with other numbers for the members.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(u32) -> u32) -> RowLoops {
        let mut moved = self.clone();
        let masked = moved.masked.iter_mut();
        let over = masked.filter_map(|masked| masked.over.as_mut());
        let zeros = moved.zeros.iter_mut().map(|zeros| &mut zeros.of);
        let others = over.chain(zeros).chain(&mut moved.within);
        for member in others.chain(&mut moved.together) {
            *member = number(*member);
        }
        moved
    }
}

/// Decides how each member of a sweep over so many `rows` indices is taken.
pub(super) fn decided(members: &[Outline<'_>], rows: usize) -> Vec<RowLoops> {
    let groups = groups(members, rows);
    let mut masked: Vec<Option<Masked>> = vec![];
    for (number, member) in members.iter().enumerate() {
        let alone = !groups.iter().any(|group| group.contains(&number));
        masked.push(match alone {
            true => mask::masked(member, rows, &masked),
            false => None,
        });
    }
    let decided = (0..members.len()).map(|number| {
        let own = masked[number].clone().map(|own| Masked {
            over: mask::over(members, &masked, number).map(|product| product as u32),
            ..own
        });
        let group = groups.iter().find(|group| group.last() == Some(&number));
        let together = group.into_iter().flatten();
        RowLoops {
            masked: own,
            within: mask::within(members, &masked, number).map(|reader| reader as u32),
            zeros: zeros(members, &masked, number),
            together: together.map(|member| *member as u32).collect(),
        }
    });
    decided.collect()
}

/// Returns whether members taken like this have their results; else a member, and why not.
pub(super) fn fit(
    members: &[Outline<'_>],
    rows: usize,
    loops: &[RowLoops],
) -> Result<(), (usize, &'static str)> {
    let masked: Vec<Option<Masked>> = loops.iter().map(|own| own.masked.clone()).collect();
    let candidates = candidates(members, rows);
    for (number, (member, own)) in members.iter().zip(loops).enumerate() {
        let fail = |why| Err((number, why));
        let together = own.together.iter().map(|member| *member as usize);
        let together: Vec<usize> = together.collect();
        let fits = candidates.contains(&together) && together.last() == Some(&number);
        if !fits && !together.is_empty() {
            return fail("one loop does not compute these members");
        }
        if let Some(own) = &own.masked {
            let found = mask::masked(member, rows, &masked[..number]);
            if found
                .is_none_or(|found| (found.mask, found.outside) != (own.mask.clone(), own.outside))
            {
                return fail("its rows are not one number outside these columns");
            }
            let over = mask::over(members, &masked, number).map(|product| product as u32);
            if own.over.is_some() && own.over != over {
                return fail("it cannot take the memory of this member");
            }
            let mut others = loops.iter().flat_map(|other| &other.together);
            if others.any(|other| *other as usize == number) {
                return fail("a loop of several members computes its columns");
            }
        }
        let within = mask::within(members, &masked, number).map(|reader| reader as u32);
        if own.within.is_some() && own.within != within {
            return fail("the mask of this member does not choose all that is wanted of it");
        }
        if own.zeros.is_some() && own.zeros != zeros(members, &masked, number) {
            return fail("these terms are no zeros of this member");
        }
    }
    Ok(())
}
