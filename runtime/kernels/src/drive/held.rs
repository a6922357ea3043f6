//! Strips of elements as they lie, on their way into results that are lanes: several at once, so that what the lanes have come to is loaded and
//! stored once for all of them.
//!
//! The order of operations is that of one strip after another. Must not know where strips lie.
//!
//! ```text
//! sums of lanes s; strips a b c d held   =>   (((s + a) + b) + c) + d
//! ```

use crate::accumulate::{Accumulator, HELD};
use crate::machine::{Machine, View};
use crate::program::{Kind, Program};
use crate::wide::{self, Job};
use ein_plan::Reduction;

/// Strips that are not yet added.
#[derive(Default)]
pub(super) struct Held<'a> {
    /// True if the lanes that are reduced may be held.
    holds: bool,
    singles: Vec<&'a [f32]>,
    doubles: Vec<&'a [f64]>,
}

impl<'a> Held<'a> {
    /// For a program. Held is what it reads and reduces, lane by lane, if no point can fault and no place of a point is wanted.
    pub(super) fn of(program: &Program<'_>) -> Held<'a> {
        use Reduction as R;
        let reads = |operation: &crate::program::Operation| {
            operation.node == program.root && matches!(operation.kind, Kind::Read(_))
        };
        let taken = matches!(
            program.reduction,
            Some(R::Sum | R::Mean | R::Prod | R::Max | R::Min | R::Norm1 | R::NormInf)
        );
        let inner = program.levels.last();
        Held {
            holds: taken
                && program.nest.output_lanes
                && program.guard.is_none()
                && program.banks[5] == 0
                && inner.is_some_and(|level| level.iter().any(reads)),
            ..Held::default()
        }
    }

    /// Holds the present strip, and adds what is held if that is enough; whether the strip is of elements as they lie, which can be held.
    pub(super) fn holds(
        &mut self,
        machine: &Machine<'_, 'a>,
        accumulator: &mut Accumulator,
    ) -> bool {
        if !self.holds {
            return false;
        }
        let sizes = &machine.extents.sizes[machine.program.nest.of_output()];
        let results = sizes.iter().product();
        match machine.view_of(machine.program.root) {
            Some(View::F32(lanes)) => self.singles.extend(lanes.chunks(results)),
            Some(View::F64(lanes)) => self.doubles.extend(lanes.chunks(results)),
            None => {
                self.add(accumulator);
                return false;
            }
        }
        if self.singles.len().max(self.doubles.len()) >= HELD {
            self.add(accumulator);
        }
        true
    }

    /// Adds what is held.
    pub(super) fn add(&mut self, accumulator: &mut Accumulator) {
        if self.singles.is_empty() && self.doubles.is_empty() {
            return;
        }
        wide::run(Add {
            held: self,
            accumulator,
        });
        self.singles.clear();
        self.doubles.clear();
    }
}

/// Strips that are held until they are added.
struct Add<'h, 'a> {
    held: &'h Held<'a>,
    accumulator: &'h mut Accumulator,
}

impl Job for Add<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run<const BYTES: usize>(self) {
        for strips in self.held.singles.chunks(HELD) {
            self.accumulator.add_strips(strips);
        }
        for strips in self.held.doubles.chunks(HELD) {
            self.accumulator.add_strips(strips);
        }
    }
}
