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

use ein_array::{Array, Data};
use ein_plan::Scalar;
use std::fmt;

/// Elements up to which a tensor is shown whole.
const WHOLE: u64 = 1000;
/// Elements up to which corners are shown with three elements a side.
const CORNERS: u64 = 10_000;
/// Characters of a line.
const WIDTH: usize = 75;
/// Digits after the point.
const PRECISION: usize = 8;

/// An output as it is printed: [`fmt::Display`] gives `name = value`, without a newline at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Printed {
    /// The output's name.
    pub name: String,
    /// Extents of the whole output.
    pub shape: Vec<u64>,
    /// How many elements are shown at either end of a dimension that is shorter in `values` than in `shape`.
    pub edge: usize,
    /// The whole output, or its corners put together.
    pub values: Array,
}

/// Which elements of a tensor are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Corner {
    extents: Vec<u64>,
    edge: u64,
}

impl Corner {
    /// The choice for a tensor of this shape; an `edge` of 0 stands for the whole tensor.
    pub fn of(shape: &[u64]) -> Corner {
        let count = |extents: &mut dyn Iterator<Item = u64>| -> u64 {
            extents.fold(1u64, |n, extent| n.saturating_mul(extent))
        };
        let with = |edge| Corner {
            extents: shape.to_vec(),
            edge,
        };
        if count(&mut shape.iter().copied()) <= WHOLE {
            return with(0);
        }
        let fits = |edge: &u64| count(&mut shape.iter().map(|n| (*n).min(2 * edge))) <= CORNERS;
        with([3, 2].into_iter().find(fits).unwrap_or(1))
    }

    /// How many elements are shown at either end of a long dimension.
    pub fn edge(&self) -> usize {
        self.edge as usize
    }

    /// Extents of what is shown.
    pub fn shape(&self) -> Vec<usize> {
        self.extents
            .iter()
            .map(|extent| self.before(*extent, *extent))
            .collect()
    }

    /// How many positions below `position` are shown.
    fn before(&self, extent: u64, position: u64) -> usize {
        let shown = if self.edge == 0 || extent <= 2 * self.edge {
            position
        } else {
            position.min(self.edge) + (position + self.edge).saturating_sub(extent)
        };
        shown as usize
    }

    /// Where what is shown of a box stands in what is shown of the tensor: start and extents.
    pub fn part(&self, ranges: &[(u64, u64)]) -> (Vec<usize>, Vec<usize>) {
        ranges
            .iter()
            .zip(&self.extents)
            .map(|((start, len), extent)| {
                let first = self.before(*extent, *start);
                (first, self.before(*extent, start + len) - first)
            })
            .unzip()
    }

    /// What is shown of the array that holds a box.
    pub fn cut(&self, array: &Array, ranges: &[(u64, u64)]) -> Array {
        let (_, shape) = self.part(ranges);
        let mut shown = Array::zeros(array.dtype(), &shape);
        // Runs of shown positions along each dimension: (start in the array, start in `shown`, length).
        let runs: Vec<Vec<(usize, usize, usize)>> = ranges
            .iter()
            .zip(&self.extents)
            .map(|((start, len), extent)| {
                let mut runs = vec![];
                let mut to = 0;
                let sides = if self.edge == 0 || *extent <= 2 * self.edge {
                    vec![(0, *extent)]
                } else {
                    vec![(0, self.edge), (extent - self.edge, *extent)]
                };
                for (from, end) in sides {
                    let (from, end) = (from.max(*start), end.min(start + len));
                    if from < end {
                        runs.push(((from - start) as usize, to, (end - from) as usize));
                        to += (end - from) as usize;
                    }
                }
                runs
            })
            .collect();
        let boxes: usize = runs.iter().map(Vec::len).product();
        for number in 0..boxes {
            let mut rest = number;
            let run: Vec<(usize, usize, usize)> = runs
                .iter()
                .map(|runs| {
                    let run = runs[rest % runs.len()];
                    rest /= runs.len();
                    run
                })
                .collect();
            let pick =
                |f: fn(&(usize, usize, usize)) -> usize| run.iter().map(f).collect::<Vec<_>>();
            shown.copy_box(&pick(|r| r.1), array, &pick(|r| r.0), &pick(|r| r.2));
        }
        shown
    }
}

impl fmt::Display for Printed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = ", self.name)?;
        if self.shape.is_empty() {
            return f.write_str(&scalar(self.values.data()));
        }
        if self.values.data().is_empty() {
            return f.write_str("[]");
        }
        let layout = Layout {
            words: &words(self.values.data()),
            shape: self.values.shape(),
            strides: self.values.strides(),
            cut: self
                .shape
                .iter()
                .zip(self.values.shape())
                .map(|(whole, shown)| *whole != *shown as u64)
                .collect(),
            edge: self.edge,
        };
        let indent = " ".repeat(self.name.chars().count() + 4);
        f.write_str(&layout.nested(0, 0, &indent, WIDTH))
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

/// A single number in full.
fn scalar(data: &Data) -> String {
    match data.get(0) {
        Scalar::Int(x) => x.to_string(),
        Scalar::Bool(x) => x.to_string(),
        Scalar::Float(x) => {
            let digits = Digits::shortest(data, 0, x);
            let magnitude = x.abs();
            if !x.is_finite() || x == 0.0 || (1e-4..1e16).contains(&magnitude) {
                let text = digits.positional(usize::MAX);
                let whole = text.ends_with('.');
                if whole { text + "0" } else { text }
            } else {
                let text = digits.scientific(None);
                text.replace(".e", "e")
            }
        }
    }
}

/// Every element as a word; all words are equally wide.
fn words(data: &Data) -> Vec<String> {
    let all = 0..data.len();
    let plain = |words: Vec<String>| {
        let width = words.iter().map(String::len).max().unwrap_or(0);
        words.into_iter().map(|w| format!("{w:>width$}")).collect()
    };
    let numbers: Vec<f64> = match data.get(0) {
        Scalar::Float(_) => all.clone().map(|i| data.get(i).as_f64()).collect(),
        Scalar::Int(_) | Scalar::Bool(_) => {
            return plain(
                all.map(|i| match data.get(i) {
                    Scalar::Int(x) => x.to_string(),
                    Scalar::Bool(x) => x.to_string(),
                    Scalar::Float(x) => x.to_string(),
                })
                .collect(),
            );
        }
    };
    let sizes = numbers
        .iter()
        .filter(|x| x.is_finite() && **x != 0.0)
        .map(|x| x.abs());
    let (least, most) = sizes.fold((f64::INFINITY, 0.0f64), |(a, b), x| (a.min(x), b.max(x)));
    let scientific = most > 0.0 && (most >= 1e8 || least < 1e-4 || most / least > 1000.0);
    let digits: Vec<Digits> = all.map(|i| Digits::shortest(data, i, numbers[i])).collect();
    let texts: Vec<String> = if scientific {
        let longest = digits
            .iter()
            .filter(|d| d.special.is_none())
            .map(|d| d.rounded(PRECISION + 1).digits.len() - 1)
            .max()
            .unwrap_or(0);
        digits.iter().map(|d| d.scientific(Some(longest))).collect()
    } else {
        digits.iter().map(|d| d.positional(PRECISION)).collect()
    };
    // Points stand below each other; what has no point ends where the others end.
    let parts: Vec<(&str, &str)> = texts
        .iter()
        .map(|t| t.split_at(t.find('.').unwrap_or(t.len())))
        .collect();
    let after = parts.iter().map(|(_, a)| a.len()).max().unwrap_or(0);
    let before = parts
        .iter()
        .map(|(b, a)| {
            if a.is_empty() {
                b.len().saturating_sub(after)
            } else {
                b.len()
            }
        })
        .max()
        .unwrap_or(0);
    parts
        .iter()
        .map(|(b, a)| {
            if a.is_empty() {
                let width = before + after;
                format!("{b:>width$}")
            } else {
                format!("{b:>before$}{a:<after$}")
            }
        })
        .collect()
}

/// A floating-point number in decimal: `0.d₁d₂d₃… × 10^(exponent + 1)`, so `d₁.d₂d₃…e exponent`.
#[derive(Clone)]
struct Digits {
    /// `nan`, `inf`, `-inf`; the rest does not count then.
    special: Option<&'static str>,
    negative: bool,
    /// At least one; no zeros at the end but a single one.
    digits: Vec<u8>,
    exponent: i32,
}

impl Digits {
    /// The fewest digits that give element `at` of `data`, whose value is `x`, back in its type.
    fn shortest(data: &Data, at: usize, x: f64) -> Digits {
        let few = |gives_back: &dyn Fn(f64) -> bool| {
            (0..=16)
                .map(|digits| format!("{x:.digits$e}"))
                .find(|text| text.parse().is_ok_and(gives_back))
                .unwrap_or_else(|| format!("{x:e}"))
        };
        match data {
            Data::F16(v) => Digits::parse(x, &few(&|y| half_f16(y) == v[at].to_bits())),
            Data::BF16(v) => Digits::parse(x, &few(&|y| half_bf16(y) == v[at].to_bits())),
            Data::F32(v) => Digits::parse(x, &format!("{:e}", v[at])),
            _ => Digits::parse(x, &format!("{x:e}")),
        }
    }

    fn parse(x: f64, text: &str) -> Digits {
        let special = if x.is_nan() {
            Some("nan")
        } else if x.is_infinite() {
            Some(if x > 0.0 { "inf" } else { "-inf" })
        } else {
            None
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let mut digits: Vec<u8> = mantissa
            .bytes()
            .filter(u8::is_ascii_digit)
            .map(|b| b - b'0')
            .collect();
        while digits.len() > 1 && digits.last() == Some(&0) {
            digits.pop();
        }
        if digits.is_empty() {
            digits.push(0);
        }
        Digits {
            special,
            negative: x.is_sign_negative(),
            digits,
            exponent: exponent.parse().unwrap_or(0),
        }
    }

    /// With at most `count` digits, the last one rounded half up.
    fn rounded(&self, count: usize) -> Digits {
        let mut number = self.clone();
        if number.digits.len() <= count {
            return number;
        }
        let up = number.digits[count] >= 5;
        number.digits.truncate(count);
        if up {
            let mut at = count;
            loop {
                if at == 0 {
                    number.digits.insert(0, 1);
                    number.exponent += 1;
                    break;
                }
                at -= 1;
                if number.digits[at] < 9 {
                    number.digits[at] += 1;
                    break;
                }
                number.digits[at] = 0;
            }
        }
        while number.digits.len() > 1 && number.digits.last() == Some(&0) {
            number.digits.pop();
        }
        if number.digits.is_empty() {
            number.digits.push(0);
            number.exponent = 0;
        }
        number
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    /// `12.5`, `3.`, `nan`, with at most `precision` digits after the point.
    fn positional(&self, precision: usize) -> String {
        if let Some(special) = self.special {
            return special.to_owned();
        }
        let keep = (precision as i64).saturating_add(i64::from(self.exponent) + 1);
        let number = if precision == usize::MAX {
            self.clone()
        } else {
            self.rounded(keep.max(0) as usize)
        };
        let point = i64::from(number.exponent) + 1;
        let digit = |place: i64| match usize::try_from(place)
            .ok()
            .and_then(|p| number.digits.get(p))
        {
            Some(digit) => char::from(b'0' + digit),
            None => '0',
        };
        let mut text = number.sign().to_owned();
        if point <= 0 {
            text.push('0');
        }
        (0..point).for_each(|place| text.push(digit(place)));
        text.push('.');
        if number.digits != [0] {
            (point.min(0)..number.digits.len() as i64)
                .filter(|place| *place >= point)
                .for_each(|place| text.push(digit(place)));
        }
        text
    }

    /// `1.25e+10`, with that many digits after the point (as many as there are for `None`).
    fn scientific(&self, after: Option<usize>) -> String {
        if let Some(special) = self.special {
            return special.to_owned();
        }
        let number = match after {
            Some(after) => self.rounded(after + 1),
            None => self.clone(),
        };
        let after = after.unwrap_or(number.digits.len() - 1);
        let mut text = number.sign().to_owned();
        for place in 0..=after {
            text.push(char::from(
                b'0' + number.digits.get(place).copied().unwrap_or(0),
            ));
            if place == 0 {
                text.push('.');
            }
        }
        let sign = if number.exponent < 0 { '-' } else { '+' };
        text + &format!("e{sign}{:02}", number.exponent.abs())
    }
}

fn half_f16(x: f64) -> u16 {
    half::f16::from_f64(x).to_bits()
}

fn half_bf16(x: f64) -> u16 {
    half::bf16::from_f64(x).to_bits()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn show(shape: &[u64], data: Data) -> String {
        let corner = Corner::of(shape);
        let whole = Array::new(shape.iter().map(|n| *n as usize).collect(), data).unwrap();
        let ranges: Vec<(u64, u64)> = shape.iter().map(|n| (0, *n)).collect();
        Printed {
            name: "x".into(),
            shape: shape.to_vec(),
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

    #[test]
    fn corners_are_the_same_from_pieces() {
        let shape = [37u64, 41];
        let values: Vec<i64> = (0..37 * 41).collect();
        let whole = Array::new(vec![37, 41], Data::I64(values)).unwrap();
        let corner = Corner::of(&shape);
        let expected = corner.cut(&whole, &[(0, 37), (0, 41)]);
        for pieces in [1, 2, 5, 40] {
            let mut got = Array::zeros(whole.dtype(), &corner.shape());
            for p in 0..pieces {
                let (start, len) = ein_plan::piece(37, pieces, p);
                let ranges = [(start, len), (0, 41)];
                let mut part = Array::zeros(whole.dtype(), &[len as usize, 41]);
                part.copy_box(&[0, 0], &whole, &[start as usize, 0], &[len as usize, 41]);
                let (to, extents) = corner.part(&ranges);
                let cut = corner.cut(&part, &ranges);
                assert_eq!(cut.shape(), extents);
                got.copy_box(&to, &cut, &[0, 0], &extents);
            }
            assert_eq!(got, expected);
        }
    }
}
