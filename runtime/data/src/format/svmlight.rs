//! The SVMlight (LIBSVM) format: a label and the features of one row a line.
//!
//! It holds `x`, the features as a matrix, and `y`, the labels. Numbers have the element type that the program declares. Features are counted
//! from 1, or from 0 if a feature 0 stands in the file; there may be more of them than the file names. `qid:` and comments are passed over. Must not know boxes or other formats.
//!
//! ```text
//! 1 3:0.5 10:2   # row 0: label 1, features 2 and 9
//! ```

use crate::error::{DAMAGED, DataError, Place};
use crate::format::{Opened, Wanted, choose};
use crate::header::Header;
use crate::lines::Lines;
use crate::listed::{Listed, Unread, in_matrix};
use crate::number::{push, shorten};
use ein_array::Data;
use ein_plan::DType;
use std::fs::File;
use std::io::{BufReader, Seek};

/// What one pass over a file has found.
struct Pass {
    rows: u64,
    /// Row and feature as written of every value.
    entries: Vec<(u64, u64)>,
    values: Data,
    labels: Data,
    /// The least and the greatest feature.
    features: Option<(u64, u64)>,
}

/// Finds the features or the labels of a file, by one pass over it.
pub(crate) fn open(
    file: &File,
    _: u64,
    wanted: &Wanted<'_>,
    place: &mut Place,
) -> Result<Opened, DataError> {
    let keys = ["x", "y"].map(str::to_owned);
    let at = choose(&keys, wanted.key, place)?;
    let dtype = wanted.dtype.unwrap_or(DType::F64);
    let features = at == 0;
    let found = pass(file, (dtype, features), place)?;
    place.key = Some(keys[at].clone());
    // A file may be a part of the rows, in which the last features do not occur.
    let room = match wanted.shape {
        Some([_, columns]) => *columns,
        _ => 0,
    };
    let shape = match features {
        true => vec![found.rows, found.columns().max(room)],
        false => vec![found.rows],
    };
    let header = Header { dtype, shape };
    header.fits(place)?;
    let of = header.clone();
    let load = move |file: &File, place: &Place| {
        let found = pass(file, (of.dtype, features), place)?;
        found.listed(&of, place)
    };
    Ok(Opened::Listed(Unread {
        header,
        at_least: features,
        load: Box::new(load),
    }))
}

/// Reads a file: its features (true) or its labels.
fn pass(file: &File, (dtype, features): (DType, bool), place: &Place) -> Result<Pass, DataError> {
    let mut input = file;
    input.rewind().map_err(|error| place.read_failed(&error))?;
    let mut input = BufReader::with_capacity(1 << 18, input);
    let mut lines = Lines::of(&mut input, place);
    let mut found = Pass {
        rows: 0,
        entries: Vec::new(),
        values: Data::zeros(dtype, 0),
        labels: Data::zeros(dtype, 0),
        features: None,
    };
    while let Some(line) = lines.next()? {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.is_empty() {
            continue;
        }
        let taken = match features {
            true => found.take_features(line),
            false => found.take_label(line),
        };
        taken.map_err(|why| lines.wrong(why))?;
        found.rows += 1;
    }
    Ok(found)
}

impl Pass {
    fn columns(&self) -> u64 {
        self.features.map_or(0, |(least, greatest)| {
            (greatest - least.min(1)).saturating_add(1)
        })
    }

    fn take_label(&mut self, line: &str) -> Result<(), String> {
        let word = line.split_ascii_whitespace().next().unwrap_or("");
        if word.contains(',') {
            return Err(format!(
                "`{}` are several labels, and `y` has one a row",
                shorten(word)
            ));
        }
        if word.contains(':') {
            return Err("the label is missing".to_owned());
        }
        push(&mut self.labels, word)
    }

    fn take_features(&mut self, line: &str) -> Result<(), String> {
        let first = self.entries.len();
        for word in line
            .split_ascii_whitespace()
            .skip(usize::from(!begins_with_feature(line)))
        {
            let Some((feature, value)) = word.split_once(':') else {
                return Err(format!("`{}` is not feature:value", shorten(word)));
            };
            if feature == "qid" {
                continue;
            }
            let feature: u64 = (feature.parse())
                .map_err(|_| format!("`{}` is no number of a feature", shorten(feature)))?;
            push(&mut self.values, value)?;
            self.entries.push((self.rows, feature));
            let (least, greatest) = self.features.unwrap_or((feature, feature));
            self.features = Some((least.min(feature), greatest.max(feature)));
        }
        let mut own: Vec<u64> = self.entries[first..]
            .iter()
            .map(|(_, feature)| *feature)
            .collect();
        own.sort_unstable();
        match own.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("feature {} stands twice", pair[0])),
            None => Ok(()),
        }
    }

    /// The list of elements, if they are still those of the header.
    fn listed(self, header: &Header, place: &Place) -> Result<Listed, DataError> {
        let least = self.features.map_or(0, |(least, _)| least.min(1));
        let extent = |at: usize| header.shape.get(at).copied().unwrap_or(0);
        let (rows, columns) = (extent(0), extent(1));
        let same = rows == self.rows && self.columns() <= columns;
        if !same {
            return Err(place.error(DAMAGED, "was changed while it was read"));
        }
        Ok(match header.shape.len() {
            1 => Listed::new(header.clone(), (0..self.rows).collect(), self.labels),
            _ => {
                let place = |(row, feature): &(u64, u64)| in_matrix(*row, feature - least, columns);
                let places = self.entries.iter().map(place).collect();
                Listed::new(header.clone(), places, self.values)
            }
        })
    }
}

/// True for a row without a label.
fn begins_with_feature(line: &str) -> bool {
    let first = line.split_ascii_whitespace().next();
    first.is_some_and(|word| word.contains(':'))
}
