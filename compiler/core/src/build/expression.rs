//! Expressions of built programs, with the brackets that keep their meaning.
//!
//! Must not know the names of a program.
//!
//! ```text
//! (x.at([&i]) + 1) * sum([&k], w.at([&k]))   =>   (x[i] + 1) * (sum[k] w[k])
//! ```

use super::settings;
use ein_plan::Reduction;
use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

/// How tightly an expression holds together; a looser one is bracketed inside a tighter one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Or,
    And,
    Not,
    Comparison,
    /// A reduction goes on to the right.
    Reduction,
    Sum,
    Product,
    Negation,
    Power,
    Atom,
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expr {
    text: String,
    level: Level,
}

/// A dim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dim(Expr);

/// An index: it is bound by the left sides and reductions that list it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index(Expr);

/// A tensor of the program: an input, a param, a state or a definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor(Expr);

impl Dim {
    pub(super) fn named(name: &str) -> Dim {
        Dim(Expr::name(name))
    }
}

impl Tensor {
    pub(super) fn named(name: &str) -> Tensor {
        Tensor(Expr::name(name))
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0.text
    }

    /// `x[i, k]`.
    pub fn at<P: Into<Expr>>(&self, positions: impl IntoIterator<Item = P>) -> Expr {
        Expr::atom(format!("{}{}", self.0.text, bracketed(positions)))
    }
}

/// An index of that name.
pub fn index(name: &str) -> Index {
    Index(Expr::name(name))
}

/// `f(x, y)`: a function of the language, of a library (`nn.relu`) or a source (`normal`).
pub fn call<A: Into<Expr>>(function: &str, arguments: impl IntoIterator<Item = A>) -> Expr {
    let arguments = listed(arguments.into_iter().map(Into::into));
    Expr::atom(format!("{function}({arguments})"))
}

/// `f(a: x, b: y)`: an optimizer, a schedule or a strategy.
pub fn named<V: Into<Expr> + Clone>(function: &str, arguments: &[(&str, V)]) -> Expr {
    Expr::atom(format!("{function}({})", settings(arguments)))
}

/// `where(condition, yes, no)`.
pub fn select(condition: Expr, yes: impl Into<Expr>, no: impl Into<Expr>) -> Expr {
    call("where", [condition, yes.into(), no.into()])
}

/// `sum[i, k] body`.
pub fn sum<I: Into<Expr>>(indices: impl IntoIterator<Item = I>, body: impl Into<Expr>) -> Expr {
    reduce(Reduction::Sum, indices, body)
}

/// `max[i, k] body`, and so on.
pub fn reduce<I: Into<Expr>>(
    reduction: Reduction,
    indices: impl IntoIterator<Item = I>,
    body: impl Into<Expr>,
) -> Expr {
    let (indices, body) = (bracketed(indices), body.into().inside(Level::Product));
    Expr {
        text: format!("{}{indices} {body}", reduction.name()),
        level: Level::Reduction,
    }
}

impl Expr {
    /// Something that is known by its name: `zeros`, `pi`, `head.w`.
    pub fn name(name: &str) -> Expr {
        Expr::atom(name.to_owned())
    }

    fn atom(text: String) -> Expr {
        Expr {
            text,
            level: Level::Atom,
        }
    }

    /// The text inside an expression that holds together so tightly.
    fn inside(&self, level: Level) -> String {
        match self.level < level {
            true => format!("({})", self.text),
            false => self.text.clone(),
        }
    }

    fn binary(self, level: Level, operator: &str, right: Expr) -> Expr {
        // Operators of one level are read from left to right.
        let tighter = match level {
            Level::Sum => Level::Product,
            Level::Product => Level::Negation,
            Level::Or => Level::And,
            Level::And => Level::Not,
            _ => Level::Sum,
        };
        let left = match level {
            Level::Comparison => self.inside(Level::Sum),
            _ => self.inside(level),
        };
        Expr {
            text: format!("{left} {operator} {}", right.inside(tighter)),
            level,
        }
    }

    /// `x ^ y`.
    pub fn power(self, exponent: impl Into<Expr>) -> Expr {
        let exponent = exponent.into().inside(Level::Negation);
        Expr {
            text: format!("{} ^ {exponent}", self.inside(Level::Atom)),
            level: Level::Power,
        }
    }

    /// `x[i - 1] else 0`: the value outside of the tensor.
    pub fn otherwise(self, fallback: impl Into<Expr>) -> Expr {
        let (own, fallback) = (self.inside(Level::Atom), fallback.into());
        Expr::atom(format!("({own} else ({fallback}))"))
    }

    /// `x == y`.
    pub fn equals(self, other: impl Into<Expr>) -> Expr {
        self.binary(Level::Comparison, "==", other.into())
    }

    /// `x < y`.
    pub fn less(self, other: impl Into<Expr>) -> Expr {
        self.binary(Level::Comparison, "<", other.into())
    }

    /// `x <= y`.
    pub fn at_most(self, other: impl Into<Expr>) -> Expr {
        self.binary(Level::Comparison, "<=", other.into())
    }

    /// `x and y`.
    pub fn and(self, other: impl Into<Expr>) -> Expr {
        self.binary(Level::And, "and", other.into())
    }

    /// `x or y`.
    pub fn or(self, other: impl Into<Expr>) -> Expr {
        self.binary(Level::Or, "or", other.into())
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Neg for Expr {
    type Output = Expr;

    fn neg(self) -> Expr {
        Expr {
            text: format!("-{}", self.inside(Level::Negation)),
            level: Level::Negation,
        }
    }
}

macro_rules! conversions {
    ($($of:ty),*) => {$(
        impl From<$of> for Expr {
            fn from(value: $of) -> Expr {
                value.0
            }
        }
        impl From<&$of> for Expr {
            fn from(value: &$of) -> Expr {
                value.0.clone()
            }
        }
    )*};
}

conversions!(Dim, Index, Tensor);

impl From<&Expr> for Expr {
    fn from(value: &Expr) -> Expr {
        value.clone()
    }
}

macro_rules! numbers {
    ($($of:ty),*) => {$(
        impl From<$of> for Expr {
            fn from(value: $of) -> Expr {
                let level = match value < <$of>::default() {
                    true => Level::Negation,
                    false => Level::Atom,
                };
                // `{:?}` gives a float its point, and enough digits.
                Expr { text: format!("{value:?}"), level }
            }
        }
    )*};
}

numbers!(i32, i64, f64);

macro_rules! operators {
    ($(($trait:ident, $method:ident, $level:ident, $sign:literal)),*) => {$(
        impl<R: Into<Expr>> $trait<R> for Expr {
            type Output = Expr;
            fn $method(self, right: R) -> Expr {
                self.binary(Level::$level, $sign, right.into())
            }
        }
        operators!(@left $trait, $method, $level, $sign, i32, i64, f64, &Index, &Dim, &Tensor);
    )*};
    (@left $trait:ident, $method:ident, $level:ident, $sign:literal, $($left:ty),*) => {$(
        impl $trait<Expr> for $left {
            type Output = Expr;
            fn $method(self, right: Expr) -> Expr {
                Expr::from(self).binary(Level::$level, $sign, right)
            }
        }
    )*};
}

operators!(
    (Add, add, Sum, "+"),
    (Sub, sub, Sum, "-"),
    (Mul, mul, Product, "*"),
    (Div, div, Product, "/"),
    (Rem, rem, Product, "%")
);

/// `[i, k]`, or nothing for none.
pub(super) fn bracketed<E: Into<Expr>>(list: impl IntoIterator<Item = E>) -> String {
    let inside = listed(list.into_iter().map(Into::into));
    match inside.is_empty() {
        true => inside,
        false => format!("[{inside}]"),
    }
}

/// `a, b`.
pub(super) fn listed(list: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let parts: Vec<String> = list.into_iter().map(|part| part.to_string()).collect();
    parts.join(", ")
}
