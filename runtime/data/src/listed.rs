//! Arrays of which a file lists some elements, each with its place; all others are 0.
//!
//! A list is read as a whole, once for all readers of this process, when the first box is asked for; a box is filled from it. Must not know
//! formats.
//!
//! ```text
//! f32[3, 4], elements 1: 2.5 and 6: -1   ->   box [(0, 2), (1, 2)]: 2.5 0 | 0 -1
//! ```

use crate::error::{DataError, Place, UNREADABLE};
use crate::file_state::FileState;
use crate::header::Header;
use crate::layout::{Order, runs};
use crate::region::check_box;
use ein_array::Data;
use ein_plan::source::Listing;
use ein_plan::{DType, ListColumn};
use std::borrow::Cow;
use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::fs::File;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

/// Some elements of an array, in row-major order of their places; no place stands twice.
#[derive(Debug)]
pub(crate) struct Listed {
    header: Header,
    /// Row-major numbers of the elements.
    places: Vec<u64>,
    values: Data,
    listing: OnceLock<Listing>,
    /// By dimension: the numbers of the elements, in ascending order of their positions there.
    orders: Vec<OnceLock<Vec<usize>>>,
}

/// Positions along a dimension of which each is counted, at least.
const MOST_COUNTED: u64 = 1 << 24;

/// Reads the whole list from a file.
pub(crate) type Load = Box<dyn Fn(&File, &Place) -> Result<Listed, DataError> + Send + Sync>;

/// A list that has not been read yet.
pub(crate) struct Unread {
    /// Element type and shape of the array.
    pub header: Header,
    /// True if the file says only how long the last dimension is at least.
    pub at_least: bool,
    /// Reads it.
    pub load: Load,
}

impl fmt::Debug for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unread({})", self.header)
    }
}

impl Listed {
    /// A list in any order, of places inside the shape. Elements that stand twice are added in the order of the list: truth values by or,
    /// integers modulo their range.
    pub fn new(header: Header, places: Vec<u64>, values: Data) -> Listed {
        let orders = header.shape.iter().map(|_| OnceLock::new()).collect();
        if places.is_sorted_by(|a, b| a < b) {
            return Listed {
                header,
                places,
                values,
                listing: OnceLock::new(),
                orders,
            };
        }
        // Doubles keep the order of the list.
        let mut order: Vec<(u64, usize)> = places.into_iter().zip(0..).collect();
        order.sort_unstable();
        let mut firsts = Vec::new();
        let mut ends = Vec::new();
        for (number, (place, _)) in order.iter().enumerate() {
            if firsts.last() != Some(place) {
                firsts.push(*place);
                ends.push(number);
            }
        }
        let mut groups = ends.iter().zip(ends.iter().skip(1)).map(|(a, b)| *a..*b);
        let last = ends.last().map(|last| *last..order.len());
        let groups: Vec<_> = groups.by_ref().chain(last).collect();
        let values = match values {
            Data::F16(v) => Data::F16(added(&v, &order, &groups, |a, b| a + b)),
            Data::BF16(v) => Data::BF16(added(&v, &order, &groups, |a, b| a + b)),
            Data::F32(v) => Data::F32(added(&v, &order, &groups, |a, b| a + b)),
            Data::F64(v) => Data::F64(added(&v, &order, &groups, |a, b| a + b)),
            Data::U8(v) => Data::U8(added(&v, &order, &groups, u8::wrapping_add)),
            Data::U16(v) => Data::U16(added(&v, &order, &groups, u16::wrapping_add)),
            Data::U32(v) => Data::U32(added(&v, &order, &groups, u32::wrapping_add)),
            Data::U64(v) => Data::U64(added(&v, &order, &groups, u64::wrapping_add)),
            Data::I8(v) => Data::I8(added(&v, &order, &groups, i8::wrapping_add)),
            Data::I16(v) => Data::I16(added(&v, &order, &groups, i16::wrapping_add)),
            Data::I32(v) => Data::I32(added(&v, &order, &groups, i32::wrapping_add)),
            Data::I64(v) => Data::I64(added(&v, &order, &groups, i64::wrapping_add)),
            Data::Bool(v) => Data::Bool(added(&v, &order, &groups, |a, b| a | b)),
        };
        Listed {
            header,
            places: firsts,
            values,
            listing: OnceLock::new(),
            orders,
        }
    }

    /// How many elements are listed, and how many at the positions that list most.
    pub fn listing(&self) -> &Listing {
        self.listing.get_or_init(|| self.counted())
    }

    fn counted(&self) -> Listing {
        let shape = &self.header.shape;
        let mut inner: u64 = shape.iter().product();
        let mut dims = vec![];
        for extent in shape {
            inner /= (*extent).max(1);
            // Of a longer dimension few positions list something: counts of all would take more than the list.
            if *extent > MOST_COUNTED.max(4 * self.count()) {
                break;
            }
            let mut counts = vec![0; *extent as usize];
            for position in along(&self.places, inner, *extent) {
                counts[position as usize] += 1;
            }
            dims.push(counts);
        }
        Listing {
            count: self.count(),
            ..Listing::of(dims)
        }
    }

    /// A column of the elements in some rows, by row in this order, and zeros in the last row up to so many; `None` if there is no room for all, or
    /// for starts, which no batch has. Positions are of the type `dtype`.
    pub fn column_of_rows(
        &self,
        (column, dtype): (ListColumn, DType),
        rows: &[u64],
        room: usize,
    ) -> Option<Data> {
        let inner = self.header.shape.get(1..)?.iter().product::<u64>();
        let mut data = match column {
            ListColumn::Values => Data::room(self.header.dtype, room),
            ListColumn::Positions(_) => Data::room(dtype, room),
            ListColumn::Starts => return None,
        };
        data.bytes_mut().fill(0);
        let mut done = 0;
        for (number, row) in rows.iter().enumerate() {
            let first = self.places.partition_point(|place| *place < row * inner);
            let listed = self.places[first..].iter();
            let count = listed
                .take_while(|place| **place < (row + 1) * inner)
                .count();
            let to = data_range(&mut data, done, count)?;
            match column {
                ListColumn::Values => {
                    let size = self.header.dtype.size();
                    to.copy_from_slice(&self.values.bytes()[first * size..(first + count) * size]);
                }
                ListColumn::Starts => return None,
                ListColumn::Positions(0) => fill(to, dtype, number as u64),
                ListColumn::Positions(dim) => {
                    let mut own = Data::room(dtype, count);
                    self.copy_positions(dim as usize, (0, first), &mut own);
                    to.copy_from_slice(own.bytes());
                }
            }
            done += count;
        }
        if let ListColumn::Positions(0) = column {
            let last = rows.len().saturating_sub(1);
            fill(
                data_range(&mut data, done, room - done)?,
                dtype,
                last as u64,
            );
        }
        Some(data)
    }

    /// Number of elements in the list.
    pub fn count(&self) -> u64 {
        self.places.len() as u64
    }

    /// The numbers of the elements in ascending order of their positions along a dimension; those of one position keep their order.
    fn order(&self, by: usize) -> &[usize] {
        self.orders[by].get_or_init(|| {
            let extent = self.header.shape[by];
            let inner: u64 = self.header.shape[by + 1..].iter().product();
            let positions = || along(&self.places, inner, extent).map(|at| at as usize);
            if extent > MOST_COUNTED.max(4 * self.count()) {
                let positions: Vec<usize> = positions().collect();
                let mut order: Vec<usize> = (0..positions.len()).collect();
                order.sort_by_key(|number| positions[*number]);
                return order;
            }
            let mut ends = vec![0; extent as usize];
            positions().for_each(|at| ends[at] += 1);
            let mut begin = 0;
            for end in &mut ends {
                begin += std::mem::replace(end, begin);
            }
            let mut order = vec![0; self.places.len()];
            for (number, at) in positions().enumerate() {
                order[ends[at]] = number;
                ends[at] += 1;
            }
            order
        })
    }

    /// Copies elements of the list that ascends along a dimension, from this number on, to the bytes of an array.
    pub fn copy_values(&self, by: usize, first: usize, to: &mut [u8]) {
        let size = self.header.dtype.size();
        let bytes = self.values.bytes();
        if by == 0 {
            to.copy_from_slice(&bytes[first * size..][..to.len()]);
            return;
        }
        let order = &self.order(by)[first..];
        for (to, number) in to.chunks_exact_mut(size).zip(order) {
            to.copy_from_slice(&bytes[number * size..][..size]);
        }
    }

    /// Stores the positions, along a dimension, of elements of the list that ascends along another one, from this number on, as whole numbers of a type that
    /// holds them.
    pub fn copy_positions(&self, dim: usize, (by, first): (usize, usize), to: &mut Data) {
        let shape = &self.header.shape;
        let inner: u64 = shape[dim + 1..].iter().product();
        let range = first..first + to.len();
        let places = match by {
            0 => Cow::Borrowed(&self.places[range]),
            by => {
                let order = self.order(by)[range].iter();
                order.map(|number| self.places[*number]).collect()
            }
        };
        store(along(&places, inner, shape[dim]), to);
    }

    /// Stores how many elements stand before those at each position along a dimension, from this one on, in the list that ascends along it, as whole numbers of
    /// a type that holds them. The position behind the last one has all before it.
    pub fn copy_starts(&self, by: usize, first: usize, to: &mut Data) {
        let shape = &self.header.shape;
        let inner: u64 = shape[by + 1..].iter().product();
        let behind = first + to.len();
        let mut counts = vec![0u64; behind + 1];
        for position in along(&self.places, inner, shape[by]) {
            counts[(position as usize).min(behind)] += 1;
        }
        let mut before = 0;
        let starts = counts.iter().map(|count| {
            before += count;
            before - count
        });
        store(starts.skip(first), to);
    }

    /// Fills the bytes of a row-major array, which is as long as the box.
    pub fn read_into(
        &self,
        ranges: &[(u64, u64)],
        target: &mut [u8],
        place: &Place,
    ) -> Result<(), DataError> {
        let shape = &self.header.shape;
        check_box(shape, ranges).map_err(|why| place.error(UNREADABLE, why))?;
        let size = self.header.dtype.size();
        let values = self.values.bytes();
        target.fill(0);
        let filled: Result<(), Infallible> = runs(shape, Order::C, ranges, |run| {
            let first = self.places.partition_point(|at| *at < run.file);
            let listed = self.places[first..]
                .iter()
                .zip(values[first * size..].chunks_exact(size));
            for (at, value) in listed.take_while(|(at, _)| **at < run.file + run.len as u64) {
                let to = (run.array + (at - run.file) as usize * run.stride) * size;
                target[to..to + size].copy_from_slice(value);
            }
            Ok(())
        });
        match filled {
            Ok(()) => Ok(()),
            Err(never) => match never {},
        }
    }
}

/// The positions of places along a dimension of this extent, each of whose positions has `inner` places that follow each other.
fn along(places: &[u64], inner: u64, extent: u64) -> impl Iterator<Item = u64> + '_ {
    // Neighbours mostly lie in one row: it is found once for all of them.
    let (mut first, mut position) = (0, 0);
    let length = if inner > 1 { inner } else { extent };
    places.iter().map(move |place| {
        if place.wrapping_sub(first) >= length {
            let number = place / length;
            first = number * length;
            position = number % extent;
        }
        if inner > 1 { position } else { place - first }
    })
}

/// Stores numbers as whole numbers of a type that holds them.
fn store(numbers: impl Iterator<Item = u64>, to: &mut Data) {
    match to {
        Data::U32(to) => (to.iter_mut().zip(numbers)).for_each(|(to, at)| *to = at as u32),
        Data::I64(to) => (to.iter_mut().zip(numbers)).for_each(|(to, at)| *to = at as i64),
        _ => {}
    }
}

/// The bytes of some elements, if they are all there.
fn data_range(data: &mut Data, first: usize, count: usize) -> Option<&mut [u8]> {
    let size = data.dtype().size();
    data.bytes_mut()
        .get_mut(first * size..(first + count) * size)
}

/// Fills the bytes of whole numbers of a type with one of them that it holds.
fn fill(bytes: &mut [u8], dtype: DType, number: u64) {
    let number = match dtype {
        DType::U32 => (number as u32).to_ne_bytes().to_vec(),
        _ => number.to_ne_bytes().to_vec(),
    };
    for to in bytes.chunks_exact_mut(number.len()) {
        to.copy_from_slice(&number);
    }
}

/// The sums of groups of values; a group is a range of `order`, which has the number of each value behind its place.
fn added<T: Copy>(
    values: &[T],
    order: &[(u64, usize)],
    groups: &[std::ops::Range<usize>],
    add: impl Fn(T, T) -> T,
) -> Vec<T> {
    let sum = |group: &std::ops::Range<usize>| {
        let mut members = order[group.clone()].iter().map(|(_, at)| values[*at]);
        members
            .by_ref()
            .next()
            .map(|first| members.fold(first, &add))
    };
    groups.iter().filter_map(sum).collect()
}

/// Which list of which file, as it is now: the key, and the element type and shape that it is read as.
type Identity = (FileState, Option<String>, Header);

/// The lists that this process has read.
static READ: Mutex<Option<HashMap<Identity, Known>>> = Mutex::new(None);

/// A list that has been read.
struct Known {
    /// It, as long as somebody uses it.
    used: Weak<Listed>,
    /// It, if it is kept for the next who asks for it.
    kept: Option<Arc<Listed>>,
}

impl Unread {
    /// The list, read by the first reader of this process.
    pub fn read(&self, file: &File, place: &Place) -> Result<Arc<Listed>, DataError> {
        let identity = self.identity(file, place)?;
        // Held while reading, so that sites of one process wait for the first instead of doing it again.
        let mut table = READ.lock().unwrap_or_else(PoisonError::into_inner);
        let table = table.get_or_insert_default();
        if let Some(known) = table.get_mut(&identity)
            && let Some(done) = known.kept.take().or_else(|| known.used.upgrade())
        {
            return Ok(done);
        }
        let done = Arc::new((self.load)(file, place)?);
        table.retain(|_, list| list.used.strong_count() > 0);
        let used = Arc::downgrade(&done);
        table.insert(identity, Known { used, kept: None });
        Ok(done)
    }

    /// Keeps a list that has been read for the next who asks for it. Another shape is asked for if the file does not say all of it, and nothing is kept.
    pub fn keep(&self, list: &Arc<Listed>, file: &File, place: &Place) -> Result<(), DataError> {
        if self.at_least {
            return Ok(());
        }
        let identity = self.identity(file, place)?;
        let mut table = READ.lock().unwrap_or_else(PoisonError::into_inner);
        let known = table.get_or_insert_default().get_mut(&identity);
        // A file that has been changed since has no such list.
        if let Some(known) = known.filter(|known| known.used.ptr_eq(&Arc::downgrade(list))) {
            known.kept = Some(Arc::clone(list));
        }
        Ok(())
    }

    fn identity(&self, file: &File, place: &Place) -> Result<Identity, DataError> {
        let state = FileState::of(file, place)?;
        Ok((state, place.key.clone(), self.header.clone()))
    }
}

/// Row-major number of a place in a matrix.
pub(crate) fn in_matrix(row: u64, column: u64, columns: u64) -> u64 {
    row * columns + column
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_positions_along_each_dimension() {
        let shape = [3u64, 4, 5];
        let places = [0, 1, 7, 19, 20, 24, 45, 59];
        for dim in 0..3 {
            let inner: u64 = shape[dim + 1..].iter().product();
            let expected: Vec<u64> = places.map(|place| place / inner % shape[dim]).to_vec();
            let found: Vec<u64> = along(&places, inner, shape[dim]).collect();
            assert_eq!(found, expected);
        }
        let dtype = DType::I64;
        let values = Data::I64((10..18).collect());
        let list = Listed::new(
            Header {
                dtype,
                shape: shape.to_vec(),
            },
            places.to_vec(),
            values,
        );
        // By the second dimension, from the second element on.
        let positions = |dim: usize| {
            let mut data = Data::room(dtype, 7);
            list.copy_positions(dim, (1, 1), &mut data);
            data
        };
        assert_eq!(positions(1), Data::I64(vec![0, 0, 0, 1, 1, 3, 3]));
        assert_eq!(positions(0), Data::I64(vec![0, 1, 1, 0, 2, 0, 2]));
        let mut values = Data::room(dtype, 7);
        list.copy_values(1, 1, values.bytes_mut());
        assert_eq!(values, Data::I64(vec![11, 14, 15, 12, 16, 13, 17]));
    }

    #[test]
    fn doubles_are_added_and_boxes_filled() {
        let header = Header {
            dtype: DType::I32,
            shape: vec![3, 4],
        };
        let list = Listed::new(header, vec![6, 1, 6, 11], Data::I32(vec![5, 2, -6, 9]));
        assert_eq!(list.places, [1, 6, 11]);
        assert_eq!(list.values, Data::I32(vec![2, -1, 9]));
        let place = Place {
            file: "x".to_owned(),
            key: None,
        };
        let mut part = Data::I32(vec![7; 4]);
        let ranges = [(0, 2), (1, 2)];
        list.read_into(&ranges, part.bytes_mut(), &place)
            .expect("the box is inside");
        assert_eq!(part, Data::I32(vec![2, 0, 0, -1]));
        assert!(
            list.read_into(&[(2, 2), (0, 4)], part.bytes_mut(), &place)
                .is_err()
        );
    }
}
