//! Printed outputs, laid out as numpy lays them out.
//!
//! Up to 1000 elements are shown whole, of more only the first and last three along each long dimension.
//! Must not know sites.
//!
//! ```text
//! best = 17
//! C = [[ 1.    2.5 ]
//!      [-0.25  3.  ]]
//! ```

use crate::number::{complex_scalar, complex_words, scalar, words};
use ein_array::Array;
use std::fmt;

/// Characters of a line.
const WIDTH: usize = 75;

/// An output as it is printed: [`fmt::Display`] gives `name = value`, without a newline at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// The output's name.
    pub name: String,
    /// Extents of the whole output.
    pub shape: Vec<u64>,
    /// True if the last dimension holds the real and the imaginary part of a complex number.
    pub complex: bool,
    /// How many elements are shown at either end of a dimension that is shorter in `values` than in `shape`.
    pub edge: usize,
    /// The whole output, or its corners put together.
    pub values: Array,
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = ", self.name)?;
        let parts = self.complex.then(|| [0, 1].map(|at| self.part(at)));
        let shown = parts.as_ref().map_or(&self.values, |[re, _]| re);
        let rank = self.shape.len() - usize::from(self.complex);
        if rank == 0 {
            return f.write_str(&match &parts {
                Some([re, im]) => complex_scalar(re.data(), im.data()),
                None => scalar(shown.data()),
            });
        }
        if shown.data().is_empty() {
            return f.write_str("[]");
        }
        let pairs = self.shape.iter().zip(shown.shape()).take(rank);
        let layout = Layout {
            words: &match &parts {
                Some([re, im]) => complex_words(re.data(), im.data()),
                None => words(shown.data()),
            },
            shape: &shown.shape()[..rank],
            strides: shown.strides(),
            cut: pairs
                .map(|(whole, shown)| *whole != *shown as u64)
                .collect(),
            edge: self.edge,
        };
        let indent = " ".repeat(self.name.chars().count() + 4);
        f.write_str(&layout.nested(0, 0, &indent, WIDTH))
    }
}

impl Printed {
    /// The real (0) or the imaginary part (1) of complex numbers, in a last dimension of 1.
    fn part(&self, at: usize) -> Array {
        let mut shape = self.values.shape().to_vec();
        let mut from = vec![0; shape.len()];
        if let (Some(last), Some(from)) = (shape.last_mut(), from.last_mut()) {
            (*last, *from) = (1, at);
        }
        let mut part = Array::zeros(self.values.dtype(), &shape);
        part.copy_box(&vec![0; shape.len()], &self.values, &from, &shape);
        part
    }
}

/// Where the words of a tensor go.
struct Layout<'a> {
    words: &'a [String],
    shape: &'a [usize],
    strides: Vec<usize>,
    /// Dimensions of which only the ends are shown.
    cut: Vec<bool>,
    edge: usize,
}

impl Layout<'_> {
    /// The part from dimension `dim` on, beginning at element `base`; lines after the first are indented.
    fn nested(&self, dim: usize, base: usize, indent: &str, width: usize) -> String {
        let left = self.shape.len() - dim;
        let ellipsis_at = if self.cut[dim] { self.edge } else { usize::MAX };
        let items = (0..self.shape[dim]).map(|i| (i, base + i * self.strides[dim]));
        let mut text = String::from("[");
        if left == 1 {
            let mut column = indent.chars().count();
            let mut add = |text: &mut String, word: &str, first: bool| {
                let length = word.chars().count();
                if !first && column + 1 + length > width - 1 {
                    text.truncate(text.trim_end().len());
                    text.push('\n');
                    text.push_str(indent);
                    column = indent.chars().count();
                } else if !first {
                    text.push(' ');
                    column += 1;
                }
                text.push_str(word);
                column += length;
            };
            for (i, at) in items {
                if i == ellipsis_at {
                    add(&mut text, "...", i == 0);
                }
                add(&mut text, &self.words[at], i == 0);
            }
        } else {
            let inner = format!("{indent} ");
            let next = format!("{}{indent}", "\n".repeat(left - 1));
            for (i, at) in items {
                if i == ellipsis_at {
                    text.push_str(&next);
                    text.push_str("...");
                }
                if i > 0 {
                    text.push_str(&next);
                }
                text.push_str(&self.nested(dim + 1, at, &inner, width.saturating_sub(1)));
            }
        }
        text.push(']');
        text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::corner::Corner;
    use ein_array::Data;

    fn show(shape: &[u64], data: Data) -> String {
        let corner = Corner::of(shape, false);
        let whole = Array::new(shape.iter().map(|n| *n as usize).collect(), data).unwrap();
        let ranges: Vec<(u64, u64)> = shape.iter().map(|n| (0, *n)).collect();
        Printed {
            name: "x".into(),
            shape: shape.to_vec(),
            complex: false,
            edge: corner.edge(),
            values: corner.cut(&whole, &ranges),
        }
        .to_string()
    }

    #[test]
    fn scalars() {
        assert_eq!(show(&[], Data::I64(vec![17])), "x = 17");
        assert_eq!(show(&[], Data::F32(vec![0.1])), "x = 0.1");
        assert_eq!(
            show(&[], Data::F64(vec![1.0 / 3.0])),
            "x = 0.3333333333333333"
        );
        assert_eq!(show(&[], Data::F32(vec![2.0])), "x = 2.0");
        assert_eq!(show(&[], Data::F32(vec![-0.0])), "x = -0.0");
        assert_eq!(show(&[], Data::F64(vec![1e20])), "x = 1e+20");
        assert_eq!(show(&[], Data::F64(vec![1.5e-7])), "x = 1.5e-07");
        assert_eq!(show(&[], Data::F32(vec![f32::NAN])), "x = nan");
        assert_eq!(show(&[], Data::F64(vec![f64::NEG_INFINITY])), "x = -inf");
        assert_eq!(show(&[], Data::F32(vec![0.001])), "x = 0.001");
        assert_eq!(show(&[], Data::Bool(vec![1])), "x = true");
        let tenth = half::f16::from_f64(0.1);
        assert_eq!(show(&[], Data::F16(vec![tenth])), "x = 0.1");
    }

    // The expected texts are numpy 2's, save for the names of truth values.
    #[test]
    fn vectors() {
        assert_eq!(
            show(&[3], Data::I64(vec![1, -20, 300])),
            "x = [  1 -20 300]"
        );
        assert_eq!(show(&[2], Data::F32(vec![1.0, 2.5])), "x = [1.  2.5]");
        assert_eq!(show(&[0], Data::F32(vec![])), "x = []");
        assert_eq!(show(&[2], Data::Bool(vec![0, 1])), "x = [false  true]");
        assert_eq!(
            show(&[2], Data::F64(vec![1e-5, 1.25e10])),
            "x = [1.00e-05 1.25e+10]"
        );
        assert_eq!(
            show(&[3], Data::F64(vec![1.0 / 3.0, f64::NAN, -f64::INFINITY])),
            "x = [0.33333333        nan       -inf]"
        );
        assert_eq!(show(&[2], Data::F64(vec![f64::NAN, 1.0])), "x = [nan  1.]");
        assert_eq!(show(&[3], Data::F32(vec![0.0, 0.0, 0.0])), "x = [0. 0. 0.]");
        assert_eq!(
            show(&[2], Data::F64(vec![0.999999999999, 2.0])),
            "x = [1. 2.]"
        );
        assert_eq!(
            show(&[2], Data::F64(vec![0.0625, 10.0])),
            "x = [ 0.0625 10.    ]"
        );
    }

    // The expected texts are numpy 2's.
    #[test]
    fn complex_numbers() {
        let show = |shape: &[usize], data: Data| {
            let shape = [shape, &[2]].concat();
            let printed = Printed {
                name: "x".into(),
                shape: shape.iter().map(|n| *n as u64).collect(),
                complex: true,
                edge: 0,
                values: Array::new(shape, data).unwrap(),
            };
            printed.to_string()
        };
        assert_eq!(show(&[], Data::F32(vec![1.0, 2.0])), "x = (1+2j)");
        assert_eq!(show(&[], Data::F64(vec![-0.5, -1e-7])), "x = (-0.5-1e-07j)");
        assert_eq!(show(&[], Data::F64(vec![0.0, 2.5])), "x = 2.5j");
        assert_eq!(show(&[], Data::F64(vec![-0.0, 2.5])), "x = (-0+2.5j)");
        assert_eq!(
            show(&[2], Data::F32(vec![1.0, 2.0, -3.5, -0.25])),
            "x = [ 1. +2.j   -3.5-0.25j]"
        );
        assert_eq!(
            show(&[2, 1], Data::F64(vec![1e-5, 1.0, 0.0, f64::NAN])),
            "x = [[1.e-05 +1.j]\n     [0.e+00+nanj]]"
        );
        assert_eq!(show(&[0], Data::F32(vec![])), "x = []");
    }

    #[test]
    fn long_lines_are_broken() {
        let expected = "x = [ 0  1  2  3  4  5  6  7  8  9 10 11 12 13 14 15 16 17 18 19 20 21 22\n     23 24 25 26 27 28 29]";
        assert_eq!(show(&[30], Data::I64((0..30).collect())), expected);
    }

    #[test]
    fn matrices_and_beyond() {
        assert_eq!(
            show(&[2, 2], Data::F32(vec![1.0, 2.5, -0.25, 3.0])),
            "x = [[ 1.    2.5 ]\n     [-0.25  3.  ]]"
        );
        assert_eq!(
            show(&[2, 1, 2], Data::I32(vec![1, 2, 3, 4])),
            "x = [[[1 2]]\n\n     [[3 4]]]"
        );
    }

    #[test]
    fn corners_of_large_tensors() {
        assert_eq!(
            show(&[2000], Data::I64((0..2000).collect())),
            "x = [   0    1    2 ... 1997 1998 1999]"
        );
        assert_eq!(
            show(&[40, 50], Data::I64((0..2000).collect())),
            "x = [[   0    1    2 ...   47   48   49]
     [  50   51   52 ...   97   98   99]
     [ 100  101  102 ...  147  148  149]
     ...
     [1850 1851 1852 ... 1897 1898 1899]
     [1900 1901 1902 ... 1947 1948 1949]
     [1950 1951 1952 ... 1997 1998 1999]]"
        );
        assert_eq!(
            show(&[400, 5], Data::I64((0..2000).collect()))
                .lines()
                .count(),
            7
        );
    }
}
