//! The order of the loops around a kernel: which indices make strips, which are looped over outside them.
//!
//! A *unit* is the output points that are worked on together, a *step* one strip of the reduction into them.
//! Either the strip runs over output indices (each lane its own result) or over reduced ones (all lanes one
//! result; several results if they are short). Where the outputs are few, a strip has several points of the reduction, each a row of lanes of its own. The
//! choice depends on the kernel and its sizes alone. Must not know what is computed.
//!
//! ```text
//! [n, d | k] lanes over d:  unit axes n, tile(d)   step axes k
//! [d: 64 | k] over k, d:    unit axes tile(d)      step axes tile(k)    8 rows of 64 results
//! [n | k]    lanes over k:  unit axes n            step axes tile(k)
//! [n | k: 50]  over n, k:   unit axes tile(n)      step axes tile(k)    5 results
//! ```

use std::ops::Range;

/// Most lanes of a strip, but for reductions whose registers have room for more.
pub(crate) const WIDTH: usize = 512;

/// Most lanes of a strip that goes from memory to memory: no register holds it.
const LONGEST: usize = 1 << 16;

/// Fewest lanes of such a strip beside others.
const LEAST_LONG: usize = 128;

/// Most lanes of a piece of a row in a patch.
const PIECE: usize = 32;

/// Elements that are fewer apart share lines, or nearly so.
const NEAR: i64 = 8;

/// Fewest points of a reduction that are a run of lanes beside others.
const LEAST_RUN: usize = 8;

/// Results that are not cut into parts, which follow from strips: they are as many or more.
pub(crate) const MANY: usize = 16;

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
    /// How many of the strip's indices are the output's. If lanes are output points: the last ones, behind a reduced one if rows of
    /// several of its points lie in a strip. Else the first ones, if there is room for several short reductions in a strip, each a run of lanes.
    pub outputs: usize,
    /// True if a strip is a patch: pieces, as long as all its indices but the first one make them, of as many rows of the output as it has
    /// values of the first one. It is none if its lanes are neighbours in the output.
    pub patch: bool,
    /// Lanes that a register has room for.
    pub width: usize,
    /// Most lanes that are reduced into one result together, one after another of such runs: the bits of a result follow from it.
    pub fold: usize,
    /// About how long a point takes; only comparisons mean something.
    pub price: f64,
}

/// What a read costs: for each index, the distance in elements between neighbours along it.
pub(crate) type Strides = Vec<i64>;

impl Nest {
    /// The loops for `output` and `reduced` indices (in order) of lengths `lengths`; `reads` are the strides of
    /// the reads, `work` about how many other operations a point takes, `width` how many lanes a register may have in a
    /// reduction. `lanes` says whether lanes are output points and how many rows a strip has, where
    /// that is decided.
    pub(crate) fn choose(
        output: &[usize],
        reduced: &[usize],
        lengths: &[usize],
        reads: &[Strides],
        (work, width): (usize, usize),
        lanes: Option<(bool, usize)>,
    ) -> Nest {
        let width = if reduced.is_empty() { WIDTH } else { width };
        let of = |output_lanes: bool, rows: Option<usize>| {
            Nest::new(output, reduced, lengths, (output_lanes, rows, width))
        };
        if let Some((output_lanes, rows)) = lanes {
            return of(output_lanes, Some(rows));
        }
        let priced = |output_lanes: bool| {
            let mut nest = of(output_lanes, None);
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

    /// The loops around long strips whose lanes are neighbours in memory, in all reads that differ between lanes; none if there
    /// are no such strips worth a loop. `apart`: along the last index only.
    pub(crate) fn long(
        output: &[usize],
        lengths: &[usize],
        reads: &[Strides],
        apart: bool,
    ) -> Option<Nest> {
        // Of each read, whether it goes on along the strip.
        let mut moving: Option<Vec<bool>> = None;
        let (mut points, mut passed) = (1, 0);
        for index in output.iter().rev() {
            if lengths[*index] > 1 {
                let steps = || reads.iter().map(|strides| strides[*index]);
                let next = |goes: bool| if goes { points as i64 } else { 0 };
                let alike = match &moving {
                    None => steps().all(|step| step == 0 || step == 1),
                    Some(moving) => steps().eq(moving.iter().map(|goes| next(*goes))),
                };
                if !alike {
                    break;
                }
                moving.get_or_insert_with(|| steps().map(|step| step != 0).collect());
                points *= lengths[*index];
            }
            passed += 1;
            if apart {
                break;
            }
        }
        if points <= 1 || (points < LEAST_LONG && passed < output.len()) {
            return None;
        }
        let (mut strip, mut tiles) = (vec![], vec![]);
        let inner = &output[output.len() - passed..];
        fill(&mut strip, &mut tiles, (inner, LONGEST), lengths);
        let outputs = strip.len();
        Some(Nest::around((strip, tiles), (output, &[]), true, outputs))
    }

    /// The loops around patches, if some read goes far along the rows of the output and a little along another index: then what it reads
    /// of a patch lies together.
    pub(crate) fn patches(output: &[usize], lengths: &[usize], reads: &[Strides]) -> Option<Nest> {
        let long = |index: &&usize| lengths[**index] > 1;
        let last = *output.iter().rfind(long)?;
        let near = |strides: &Strides, index: usize| (1..NEAR).contains(&strides[index].abs());
        let far = || reads.iter().filter(|s| s[last] != 0 && !near(s, last));
        let count = |index: &usize| far().filter(|s| near(s, *index)).count();
        let others = output.iter().filter(long).filter(|index| **index != last);
        let across = *others
            .filter(|index| count(index) > 0)
            .max_by_key(|index| count(index))?;
        let behind = output.iter().position(|index| *index == across)? + 1;
        let (mut strip, mut tiles) = (vec![], vec![]);
        fill(&mut strip, &mut tiles, (&output[behind..], PIECE), lengths);
        // Shorter rows lie one behind the other in an ordinary strip.
        let piece: usize = tiles.iter().product();
        let row: usize = output[behind..].iter().map(|i| lengths[*i]).product();
        if piece == row {
            return None;
        }
        fill(&mut strip, &mut tiles, (&[across], WIDTH), lengths);
        let outputs = strip.len();
        let around = Nest::around((strip, tiles), (output, &[]), true, outputs);
        Some(Nest {
            patch: true,
            ..around
        })
    }

    /// The loops around strips of neighbours along the last index only.
    pub(crate) fn apart(output: &[usize], lengths: &[usize]) -> Nest {
        let (mut strip, mut tiles) = (vec![], vec![]);
        let last = &output[output.len().saturating_sub(1)..];
        fill(&mut strip, &mut tiles, (last, WIDTH), lengths);
        let outputs = strip.len();
        Nest::around((strip, tiles), (output, &[]), true, outputs)
    }

    /// The loops of a reduction of all indices, whose lanes are points of it.
    pub(crate) fn of_points(lengths: &[usize]) -> Nest {
        let all: Vec<usize> = (0..lengths.len()).collect();
        Nest::new(&[], &all, lengths, (false, None, WIDTH))
    }

    fn new(
        output: &[usize],
        reduced: &[usize],
        lengths: &[usize],
        (output_lanes, rows, width): (bool, Option<usize>, usize),
    ) -> Nest {
        let (mut strip, mut tiles) = (vec![], vec![]);
        let (mut outputs, mut fold) = (0, WIDTH);
        if output_lanes {
            fill(&mut strip, &mut tiles, (output, width), lengths);
            outputs = strip.len();
            let last = reduced.iter().rfind(|index| lengths[**index] > 1);
            let room = || rows_of(tiles.iter().product());
            if let Some(index) = last
                && let rows @ 2.. = rows.unwrap_or_else(room).min(lengths[*index])
            {
                strip.insert(0, *index);
                tiles.insert(0, rows);
            }
        } else {
            fill(&mut strip, &mut tiles, (reduced, WIDTH), lengths);
            let points: usize = reduced.iter().map(|i| lengths[*i]).product();
            if (LEAST_RUN..=WIDTH / 4).contains(&points) {
                let before = strip.len();
                fill(&mut strip, &mut tiles, (output, WIDTH), lengths);
                outputs = strip.len() - before;
            } else if let ([index], [tile]) = (&strip[..], &mut tiles[..])
                && output.iter().map(|i| lengths[*i]).product::<usize>() >= MANY
            {
                // Several strips in one: what they have in common is done once.
                fold = *tile;
                let strips = lengths[*index].div_ceil(fold);
                *tile = fold * strips.min(width / fold).max(1);
            }
        }
        let nest = Nest::around((strip, tiles), (output, reduced), output_lanes, outputs);
        Nest {
            width,
            fold,
            ..nest
        }
    }

    fn around(
        (strip, tiles): (Vec<usize>, Vec<usize>),
        (output, reduced): (&[usize], &[usize]),
        output_lanes: bool,
        outputs: usize,
    ) -> Nest {
        let index = |i: &usize| Axis::Index(*i);
        let outer = |list: &[usize]| -> Vec<Axis> {
            let left = list.iter().filter(|i| !strip.contains(i));
            left.map(index).collect()
        };
        let (mut unit, mut step) = (outer(output), outer(reduced));
        let rows = if output_lanes {
            strip.len() - outputs
        } else {
            0
        };
        let (of_output, behind) = (rows..rows + outputs, rows + outputs..strip.len());
        unit.extend(of_output.map(Axis::Tile));
        step.extend((0..rows).chain(behind).map(Axis::Tile));
        Nest {
            strip,
            tiles,
            unit,
            step,
            output_lanes,
            outputs,
            patch: false,
            width: WIDTH,
            fold: WIDTH,
            price: 0.0,
        }
    }

    /// How many of the strip's first indices say its rows: each row has the lanes of all outputs, at one point of the reduction.
    pub(crate) fn rows(&self) -> usize {
        if self.output_lanes {
            self.strip.len() - self.outputs
        } else {
            0
        }
    }

    /// The most rows of a strip.
    pub(crate) fn most_rows(&self) -> usize {
        self.tiles[..self.rows()].iter().product()
    }

    /// The dimensions of the strip that are the output's.
    pub(crate) fn of_output(&self) -> Range<usize> {
        self.rows()..self.rows() + self.outputs
    }

    /// Whether a strip holds several whole reductions.
    pub(crate) fn several(&self) -> bool {
        !self.output_lanes && self.outputs > 0
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
        if !self.output_lanes {
            // What it takes to make one result of the lanes of a run.
            let points = self.strip[self.outputs..].iter();
            let points: usize = points.map(|i| lengths[*i]).product();
            cost += 150.0 / points.max(1) as f64;
        }
        cost * (1.0 + 24.0 / lanes)
    }
}

/// The points of a reduction, each a row of so many results, that a strip has room for.
fn rows_of(results: usize) -> usize {
    match (LEAST_RUN..=WIDTH / 2).contains(&results) {
        true => WIDTH / results,
        false => 1,
    }
}

/// Puts indices before those of a strip of at most `width` lanes, the last one first: as a whole while there is room, then a part
/// of the next one. An index of one value is left outside.
fn fill(
    strip: &mut Vec<usize>,
    tiles: &mut Vec<usize>,
    (from, width): (&[usize], usize),
    lengths: &[usize],
) {
    let mut lanes: usize = tiles.iter().product();
    for index in from.iter().rev() {
        let (length, most) = (lengths[*index], width / lanes.max(1));
        if length <= 1 {
            continue;
        }
        if most <= 1 {
            break;
        }
        strip.insert(0, *index);
        if length > most {
            let tile = match lanes {
                1 => strip_of(length, most),
                _ => length.div_ceil(length.div_ceil(most)),
            };
            tiles.insert(0, tile);
            break;
        }
        tiles.insert(0, length);
        lanes *= length;
    }
}

/// The lanes of the strips that so many neighbours are cut into, of at most `most`: equal strips rather than full ones and a
/// short rest.
pub(crate) fn strip_of(length: usize, most: usize) -> usize {
    let strip = length.div_ceil(length.div_ceil(most));
    strip.next_multiple_of(8).min(most)
}
