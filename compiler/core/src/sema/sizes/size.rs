//! Symbolic sizes: polynomials with whole coefficients over dims whose numbers are not known yet.
//!
//! A known size is the constant polynomial, so that `einc check` without data and a build with all sizes bound
//! take one path: what cannot be decided yet is left open, and is decided when the sizes are known. Every dim is
//! at least 0. Must not know tensors, indices or messages.
//!
//! ```text
//! (N + 2*M - 1)/4
//! ```

use ein_plan::Function;
use std::{
    cmp::Ordering,
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    rc::Rc,
};

/// Sizes that would be written with more symbols than this are kept as one opaque symbol.
const MOST_SYMBOLS: usize = 32;

/// An unknown number in a size.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Atom {
    /// A dim.
    Dim(Rc<str>),
    /// A dim that batches are taken over, with the rows that it has here: a number that remembers where it is from.
    Rows(Rc<str>, i64),
    /// A function of sizes that is not a polynomial: floor division, remainder, min, max, power.
    Apply(Function, Rc<Vec<Size>>),
    /// Something too long to keep; equal marks are equal numbers.
    Opaque(u64),
}

/// A size or, more generally, a whole number made of sizes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Size {
    /// Products of atoms with their coefficients, ascending, none zero. The empty product is the constant.
    terms: Vec<(Vec<Atom>, i64)>,
}

/// Why a size has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SizeError {
    /// Beyond 64 bits.
    Overflow,
    /// Division or remainder by zero.
    DivisionByZero,
}

type Result = std::result::Result<Size, SizeError>;

impl Size {
    /// A known number.
    pub(crate) fn number(value: i64) -> Size {
        Size {
            terms: if value == 0 {
                vec![]
            } else {
                vec![(vec![], value)]
            },
        }
    }

    /// A dim without a number.
    pub(crate) fn dim(name: &str) -> Size {
        Size {
            terms: vec![(vec![Atom::Dim(name.into())], 1)],
        }
    }

    /// The number, if it is known.
    pub(crate) fn known(&self) -> Option<i64> {
        self.terms.iter().try_fold(0i64, |sum, (product, factor)| {
            let value = product.iter().try_fold(*factor, |value, atom| match atom {
                Atom::Rows(_, rows) => value.checked_mul(*rows),
                _ => None,
            })?;
            sum.checked_add(value)
        })
    }

    /// The rows of a batched dim.
    pub(crate) fn rows(name: &str, rows: i64) -> Size {
        Size {
            terms: vec![(vec![Atom::Rows(name.into(), rows)], 1)],
        }
    }

    /// The batched dim and its rows, if it is nothing else.
    pub(crate) fn as_rows(&self) -> Option<(Rc<str>, i64)> {
        match self.terms.as_slice() {
            [(product, 1)] => match product.as_slice() {
                [Atom::Rows(name, rows)] => Some((name.clone(), *rows)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether it is made of the rows of a batched dim.
    pub(crate) fn has_rows(&self) -> bool {
        let mut atoms = self.terms.iter().flat_map(|(product, _)| product);
        atoms.any(|atom| matches!(atom, Atom::Rows(..)))
    }

    /// The number without the memory of where it is from.
    pub(crate) fn plain(&self) -> Size {
        self.known().map_or_else(|| self.clone(), Size::number)
    }

    /// The dim, if it is nothing else.
    pub(crate) fn as_dim(&self) -> Option<Rc<str>> {
        match self.terms.as_slice() {
            [(product, 1)] => match product.as_slice() {
                [Atom::Dim(name)] => Some(name.clone()),
                _ => None,
            },
            _ => None,
        }
    }

    /// The dims that it is made of, each once.
    pub(crate) fn dims(&self) -> Vec<Rc<str>> {
        let mut found = vec![];
        self.collect_dims(&mut found);
        found.sort();
        found.dedup();
        found
    }

    fn collect_dims(&self, found: &mut Vec<Rc<str>>) {
        for atom in self.terms.iter().flat_map(|(product, _)| product) {
            match atom {
                Atom::Dim(name) => found.push(name.clone()),
                Atom::Apply(_, arguments) => arguments.iter().for_each(|a| a.collect_dims(found)),
                Atom::Rows(..) | Atom::Opaque(_) => {}
            }
        }
    }

    /// The value of the only dim of `self = factor * dim + constant` for which `self` is `number`; `None` if it
    /// has not that form or no whole number fits.
    pub(crate) fn solve(&self, number: i64) -> Option<(Rc<str>, i64)> {
        let (mut dim, mut rest) = (None, number);
        for (product, factor) in &self.terms {
            match product.as_slice() {
                [] => rest = rest.checked_sub(*factor)?,
                [Atom::Dim(name)] if dim.is_none() => dim = Some((name.clone(), *factor)),
                _ => return None,
            }
        }
        let (name, factor) = dim?;
        (rest % factor == 0).then(|| (name, rest / factor))
    }

    /// Returns whether it is at least 0, if that can be said without knowing the dims.
    pub(crate) fn at_least_zero(&self) -> Option<bool> {
        if let Some(known) = self.known() {
            return Some(known >= 0);
        }
        let signs = |sign: i64| {
            self.terms.iter().all(|(product, factor)| {
                factor.signum() == sign && product.iter().all(Atom::at_least_zero)
            })
        };
        if signs(1) {
            return Some(true);
        }
        let below = Size::number(-1).subtract(self).ok()?; // self < 0 if -1 - self >= 0
        let negative = below
            .terms
            .iter()
            .all(|(product, factor)| *factor > 0 && product.iter().all(Atom::at_least_zero));
        negative.then_some(false)
    }

    /// The order of two sizes, if it can be told.
    pub(crate) fn compare(&self, other: &Size) -> Option<Ordering> {
        let difference = self.subtract(other).ok()?;
        if let Some(difference) = difference.known() {
            return Some(difference.cmp(&0));
        }
        let below = Size::number(-1).plus(&difference).ok()?;
        if below.at_least_zero() == Some(true) {
            return Some(Ordering::Greater);
        }
        (difference.at_least_zero() == Some(false)).then_some(Ordering::Less)
    }

    /// Returns whether the two are certainly not the same number.
    pub(crate) fn differs(&self, other: &Size) -> bool {
        matches!(
            self.compare(other),
            Some(Ordering::Less | Ordering::Greater)
        )
    }

    /// The sum.
    pub(crate) fn plus(&self, other: &Size) -> Result {
        let mut terms = self.terms.clone();
        terms.extend(other.terms.iter().cloned());
        Size::collect(terms)
    }

    /// The difference.
    pub(crate) fn subtract(&self, other: &Size) -> Result {
        self.plus(&other.times(&Size::number(-1))?)
    }

    /// The product.
    pub(crate) fn times(&self, other: &Size) -> Result {
        let mut terms = vec![];
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let mut product: Vec<Atom> = left.iter().chain(right).cloned().collect();
                product.sort();
                terms.push((product, a.checked_mul(*b).ok_or(SizeError::Overflow)?));
            }
        }
        Size::collect(terms)
    }

    /// `FloorDiv`, `Rem`, `Min`, `Max` or `Pow` of two sizes.
    pub(crate) fn apply(function: Function, a: &Size, b: &Size) -> Result {
        let exact = |divisor: i64| a.terms.iter().all(|(_, factor)| factor % divisor == 0);
        match (function, a.known(), b.known()) {
            (Function::FloorDiv | Function::Rem, _, Some(0)) => Err(SizeError::DivisionByZero),
            (Function::FloorDiv, Some(a), Some(b)) => {
                floor_div(a, b).map(Size::number).ok_or(SizeError::Overflow)
            }
            (Function::Rem, Some(a), Some(b)) => floor_div(a, b)
                .map(|quotient| Size::number(a.wrapping_sub(quotient.wrapping_mul(b))))
                .ok_or(SizeError::Overflow),
            (Function::Pow, Some(a), Some(b)) => u32::try_from(b)
                .ok()
                .and_then(|b| a.checked_pow(b))
                .map(Size::number)
                .ok_or(SizeError::Overflow),
            (Function::Pow, None, Some(b @ 0..=8)) => {
                (0..b).try_fold(Size::number(1), |power, _| power.times(a))
            }
            (Function::FloorDiv, None, Some(d)) if d > 0 && exact(d) => Ok(Size {
                terms: a.terms.iter().map(|(p, f)| (p.clone(), f / d)).collect(),
            }),
            (Function::FloorDiv, ..) if a == b => Ok(Size::number(1)),
            (Function::Rem, None, Some(d)) if exact(d) => Ok(Size::number(0)),
            (Function::Rem, ..) if a == b => Ok(Size::number(0)),
            (Function::Min | Function::Max, ..) => match a.compare(b) {
                Some(order) => {
                    let first = (order == Ordering::Less) == (function == Function::Min);
                    Ok(if first { a.clone() } else { b.clone() })
                }
                None => Size::atom(Atom::Apply(function, Rc::new(vec![a.clone(), b.clone()]))),
            },
            _ => Size::atom(Atom::Apply(function, Rc::new(vec![a.clone(), b.clone()]))),
        }
    }

    fn atom(atom: Atom) -> Result {
        Size::collect(vec![(vec![atom], 1)])
    }

    /// Sorts, adds up equal products, and folds what has become too long into one symbol.
    fn collect(mut terms: Vec<(Vec<Atom>, i64)>) -> Result {
        terms.sort();
        let mut sums: Vec<(Vec<Atom>, i64)> = vec![];
        for (product, factor) in terms {
            match sums.last_mut() {
                Some((last, sum)) if *last == product => {
                    *sum = sum.checked_add(factor).ok_or(SizeError::Overflow)?;
                }
                _ => sums.push((product, factor)),
            }
        }
        sums.retain(|(_, factor)| *factor != 0);
        let size = Size { terms: sums };
        if size.symbols() <= MOST_SYMBOLS {
            return Ok(size);
        }
        let mut hasher = DefaultHasher::new();
        size.hash(&mut hasher);
        Ok(Size {
            terms: vec![(vec![Atom::Opaque(hasher.finish())], 1)],
        })
    }

    fn symbols(&self) -> usize {
        self.terms
            .iter()
            .map(|(product, _)| 1 + product.iter().map(Atom::symbols).sum::<usize>())
            .sum()
    }
}

impl Atom {
    fn symbols(&self) -> usize {
        match self {
            Atom::Apply(_, arguments) => 1 + arguments.iter().map(Size::symbols).sum::<usize>(),
            _ => 1,
        }
    }

    fn at_least_zero(&self) -> bool {
        let known = |size: &Size| size.at_least_zero() == Some(true);
        match self {
            Atom::Dim(_) => true,
            Atom::Rows(_, rows) => *rows >= 0,
            Atom::Opaque(_) => false,
            Atom::Apply(Function::Rem, arguments) => known(&arguments[1]),
            Atom::Apply(Function::Max, arguments) => arguments.iter().any(known),
            Atom::Apply(Function::Pow, arguments) => known(&arguments[0]),
            Atom::Apply(_, arguments) => arguments.iter().all(known),
        }
    }
}

/// Division rounded down; `None` on overflow or a divisor of zero.
pub(crate) fn floor_div(a: i64, b: i64) -> Option<i64> {
    let quotient = a.checked_div(b)?;
    Some(quotient - i64::from(a % b != 0 && (a < 0) != (b < 0)))
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() {
            return f.write_str("0");
        }
        // The constant reads best at the end.
        let (constants, products): (Vec<_>, Vec<_>) = self
            .terms
            .iter()
            .partition(|(product, _)| product.is_empty());
        for (at, (product, factor)) in products.into_iter().chain(constants).enumerate() {
            match (at, *factor < 0) {
                (0, true) => f.write_str("-")?,
                (0, false) => {}
                (_, true) => f.write_str(" - ")?,
                (_, false) => f.write_str(" + ")?,
            }
            let magnitude = factor.unsigned_abs();
            if product.is_empty() {
                write!(f, "{magnitude}")?;
                continue;
            }
            if magnitude != 1 {
                write!(f, "{magnitude}*")?;
            }
            for (at, atom) in product.iter().enumerate() {
                write!(f, "{}{atom}", if at > 0 { "*" } else { "" })?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Atom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Atom::Dim(name) => f.write_str(name),
            Atom::Rows(_, rows) => write!(f, "{rows}"),
            Atom::Opaque(_) => f.write_str("…"),
            Atom::Apply(function, arguments) => {
                let operand = |size: &Size| {
                    if size.terms.len() > 1 {
                        format!("({size})")
                    } else {
                        size.to_string()
                    }
                };
                let symbol = match function {
                    Function::FloorDiv => "/",
                    Function::Rem => "%",
                    Function::Pow => "^",
                    other => {
                        return write!(f, "{}({}, {})", other.name(), arguments[0], arguments[1]);
                    }
                };
                write!(
                    f,
                    "{}{symbol}{}",
                    operand(&arguments[0]),
                    operand(&arguments[1])
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn n() -> Size {
        Size::dim("N")
    }

    #[test]
    fn arithmetic_is_exact_and_checked() {
        let one = Size::number(1);
        let twice = n().times(&Size::number(2)).unwrap();
        assert_eq!(twice.plus(&one).unwrap().to_string(), "2*N + 1");
        assert_eq!(
            Size::apply(Function::FloorDiv, &twice, &Size::number(2)).unwrap(),
            n()
        );
        let half = Size::apply(
            Function::FloorDiv,
            &n().plus(&one).unwrap(),
            &Size::number(2),
        );
        assert_eq!(half.unwrap().to_string(), "(N + 1)/2");
        let floor = |a, b| Size::apply(Function::FloorDiv, &Size::number(a), &Size::number(b));
        assert_eq!(floor(-7, 2).unwrap().known(), Some(-4));
        assert_eq!(floor(1, 0), Err(SizeError::DivisionByZero));
        assert_eq!(floor(i64::MIN, -1), Err(SizeError::Overflow));
        assert_eq!(Size::number(i64::MAX).plus(&one), Err(SizeError::Overflow));
        assert_eq!(twice.plus(&one).unwrap().solve(7), Some(("N".into(), 3)));
        assert_eq!(twice.solve(7), None);
    }

    #[test]
    fn what_the_dims_decide_stays_open() {
        let next = n().plus(&Size::number(1)).unwrap();
        assert_eq!(n().compare(&next), Some(Ordering::Less));
        assert_eq!(n().compare(&n()), Some(Ordering::Equal));
        assert_eq!(n().compare(&Size::dim("M")), None);
        assert_eq!(n().compare(&Size::number(3)), None);
        assert_eq!(n().compare(&Size::number(-1)), Some(Ordering::Greater));
        assert_eq!(next.at_least_zero(), Some(true));
    }

    #[test]
    fn long_sizes_are_kept_short() {
        let mut size = n();
        for name in ["A", "B", "C", "D", "E", "F", "G", "H"] {
            size = size
                .times(&Size::dim(name).plus(&Size::number(1)).unwrap())
                .unwrap();
        }
        assert!(size.symbols() <= MOST_SYMBOLS);
        assert_eq!(size.subtract(&size).unwrap().known(), Some(0));
    }
}
