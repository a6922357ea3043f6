//! What of a sweep is taken at once, and in which order.
//!
//! Must not know blocks.
//!
//! ```text
//! members 0 1 2 3 4, bundle 0 2, 1 gathers:   0 and 2, 3, 4, 1
//! ```

use super::Member;
use super::bundle::Bundle;
use super::part::gathers;

/// What is taken at once.
#[derive(PartialEq, Eq)]
pub(super) enum Turn {
    /// A member.
    Alone(usize),
    /// A bundle.
    Together(usize),
}

/// The order in which members are taken: bundles where their last member stands, what is gathered at the end, since no member reads it.
pub(super) fn turns(members: &[Member<'_>], bundles: &[Bundle]) -> Vec<Turn> {
    let bundle_of = |member: usize| {
        let mut all = bundles.iter();
        all.position(|bundle| bundle.merged.members.contains(&member))
    };
    let (mut turns, mut last) = (vec![], vec![]);
    for (number, member) in members.iter().enumerate() {
        match bundle_of(number) {
            Some(at) if bundles[at].merged.members.last() == Some(&number) => {
                turns.push(Turn::Together(at));
            }
            Some(_) => {}
            None if gathers(member).is_some() => last.push(Turn::Alone(number)),
            None => turns.push(Turn::Alone(number)),
        }
    }
    turns.extend(last);
    turns
}
