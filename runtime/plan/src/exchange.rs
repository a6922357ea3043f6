//! Exchanges: movements that go together, and those that go on while steps behind them are taken.
//!
//! The members of an exchange stand one behind the other; what they send to a site is one message. It begins at the last
//! of them and has come when its last step has been taken, so nothing before that reads a member. Must not know transports.
//!
//! ```text
//! exchange r9, r14 until r14      r9 and r14 are one message for each pair of sites
//! exchange r3 until r7            r3 is on its way while r4, r5, r6 and r7 are computed
//! ```

use crate::plan::{Operation, Plan};

impl Operation {
    /// Whether tuples go to other sites.
    pub fn moves(&self) -> bool {
        matches!(
            self,
            Operation::Broadcast { .. } | Operation::Shuffle { .. } | Operation::Window { .. }
        )
    }
}

impl Plan {
    /// By step: the exchange that it is in.
    pub fn exchanges_of_steps(&self) -> Vec<Option<usize>> {
        let mut of = vec![None; self.steps.len()];
        for (number, exchange) in self.exchanges.iter().enumerate() {
            for member in &exchange.members {
                if let Some(slot) = of.get_mut(member.0 as usize) {
                    *slot = Some(number);
                }
            }
        }
        of
    }

    /// By step: whether sites meet in it: in a movement by itself, and in the last one of an exchange.
    pub fn meetings(&self) -> Vec<bool> {
        let of = self.exchanges_of_steps();
        let steps = self.steps.iter().zip(of);
        let meets = steps.map(|(step, exchange)| {
            let begins = exchange.is_none_or(|e| self.exchanges[e].last() == step.result);
            step.operation.moves() && begins
        });
        meets.collect()
    }

    /// How often sites meet to move something, with as many rounds of loops as are expected.
    pub fn expected_meetings(&self) -> u64 {
        let times = self.times_of_steps(&self.expected_times()).into_iter();
        let meets = times.zip(self.meetings()).filter(|(_, meets)| *meets);
        meets.fold(0, |sum, (times, _)| sum.saturating_add(times))
    }
}
