//! The order of the loops around a kernel: which indices make strips, which are looped over outside them.
//!
//! A *unit* is the output points that are worked on together, a *step* one strip of the reduction into them.
//! Either the strip runs over output indices (each lane its own result) or over reduced ones (all lanes one
//! result). The choice depends on the kernel and its sizes alone. Must not know what is computed.
//!
//! ```text
//! [n, d | k] lanes over d:  unit axes n, tile(d)   step axes k
//! [n | k]    lanes over k:  unit axes n            step axes tile(k)
//! ```

/// Most lanes of a strip.
pub(crate) const WIDTH: usize = 256;

/// One loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// Over the values of an index.
    Index(usize),
    /// Over the tiles of a dimension of the strip.
    Tile(usize),
}

/// The loops, outermost first.
#[derive(Clone, Debug)]
pub(crate) struct Nest {
    /// The indices that make the strip, in order; lanes are in row-major order of them.
    pub strip: Vec<usize>,
    /// How many values of each a strip holds at most.
    pub tiles: Vec<usize>,
    /// Loops over units.
    pub unit: Vec<Axis>,
    /// Loops over the steps of one unit.
    pub step: Vec<Axis>,
    /// Whether lanes are output points (else they are points of the reduction).
    pub output_lanes: bool,
    /// About how long a point takes; only comparisons mean something.
    pub price: f64,
}

/// What a read costs: for each index, the distance in elements between neighbours along it.
pub(crate) type Strides = Vec<i64>;

impl Nest {
    /// The loops for `output` and `reduced` indices (in order) of lengths `lengths`; `reads` are the strides of
    /// the reads, `work` about how many other operations a point takes. `lanes` says whether lanes are output points, where
    /// that is decided.
    pub(crate) fn choose(
        output: &[usize],
        reduced: &[usize],
        lengths: &[usize],
        reads: &[Strides],
        work: usize,
        lanes: Option<bool>,
    ) -> Nest {
        if let Some(output_lanes) = lanes {
            return Nest::new(output, reduced, lengths, output_lanes);
        }
        let priced = |output_lanes: bool| {
            let mut nest = Nest::new(output, reduced, lengths, output_lanes);
            nest.price = nest.cost(lengths, reads, work);
            nest
        };
        let by_output = priced(true);
        if reduced.is_empty() {
            return by_output;
        }
        let by_reduced = priced(false);
        if by_reduced.price < by_output.price {
            by_reduced
        } else {
            by_output
        }
    }

    fn new(output: &[usize], reduced: &[usize], lengths: &[usize], output_lanes: bool) -> Nest {
        let from = if output_lanes { output } else { reduced };
        // Innermost first: what fits in a strip as a whole, then a part of the next one. An index of one value
        // is left outside.
        let (mut strip, mut tiles, mut lanes) = (Vec::new(), Vec::new(), 1);
        let mut first = from.len();
        while first > 0 && lanes < WIDTH {
            let length = lengths[from[first - 1]];
            if length > 1 {
                let most = WIDTH / lanes;
                if most == 1 {
                    break;
                }
                strip.insert(0, from[first - 1]);
                if length > most {
                    // Equal tiles rather than full ones and a short rest.
                    let tile = length.div_ceil(length.div_ceil(most));
                    let round = if lanes == 1 { 8 } else { 1 };
                    tiles.insert(0, tile.next_multiple_of(round).min(most));
                    break;
                }
                tiles.insert(0, length);
                lanes *= length;
            }
            first -= 1;
        }
        let outer = from.iter().filter(|i| !strip.contains(i));
        let outer = outer.map(|i| Axis::Index(*i));
        let looped: Vec<Axis> = outer.chain((0..strip.len()).map(Axis::Tile)).collect();
        let whole = |indices: &[usize]| indices.iter().map(|i| Axis::Index(*i)).collect();
        let (unit, step) = if output_lanes {
            (looped, whole(reduced))
        } else {
            (whole(output), looped)
        };
        Nest {
            strip,
            tiles,
            unit,
            step,
            output_lanes,
            price: 0.0,
        }
    }

    /// A rough time a point, in arbitrary units.
    fn cost(&self, lengths: &[usize], reads: &[Strides], work: usize) -> f64 {
        let lanes = self
            .strip
            .iter()
            .zip(&self.tiles)
            .map(|(i, t)| lengths[*i].clamp(1, *t))
            .product::<usize>()
            .max(1) as f64;
        let mut cost = work as f64 + if self.output_lanes { 1.0 } else { 0.5 };
        for strides in reads {
            let inner = self.strip.last().map_or(0, |i| strides[*i]);
            cost += match inner.unsigned_abs() {
                0 if self.strip.iter().all(|i| strides[*i] == 0) => 0.2,
                0 | 1 => 1.0,
                2..=4 => 2.0,
                _ => 6.0,
            };
        }
        cost * (1.0 + 24.0 / lanes)
    }
}
