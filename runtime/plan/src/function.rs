//! The table of scalar functions: one row a function.
//!
//! Must not know how a function is computed on any device.
//!
//! ```text
//! exp  arity 1  flops 8
//! ```

use crate::dtype::DType;
use serde::{Deserialize, Serialize};

macro_rules! functions {
    ($($(#[$doc:meta])* $variant:ident $name:literal $arity:literal $flops:literal;)*) => {
        /// A scalar function. Arguments all have one compute type unless the row says otherwise.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Function { $($(#[$doc])* $variant,)* }

        impl Function {
            /// Every function, in table order.
            pub const ALL: &'static [Function] = &[$(Function::$variant),*];
            /// The printed name.
            pub const fn name(self) -> &'static str { match self { $(Function::$variant => $name),* } }
            /// Number of arguments.
            pub const fn arity(self) -> usize { match self { $(Function::$variant => $arity),* } }
            /// Floating-point operations a point, for the cost model (a rounded measure, not an exact count).
            pub const fn flops(self) -> u64 { match self { $(Function::$variant => $flops),* } }
            /// The function of that printed name, if there is one.
            pub fn from_name(name: &str) -> Option<Function> {
                match name { $($name => Some(Function::$variant),)* _ => None }
            }
        }
    };
}

functions! {
    /// a + b.
    Add "add" 2 1;
    /// a - b.
    Sub "sub" 2 1;
    /// a * b.
    Mul "mul" 2 1;
    /// a / b on floating-point types.
    Div "div" 2 1;
    /// Floor division, of floats see [`floor_quotient`]; of integers, division by zero stops the run.
    FloorDiv "floordiv" 2 1;
    /// Remainder with the sign of the divisor, as in Python: a - b*floor(a/b) without rounding in between, see [`remainder`];
    /// integer division by zero stops the run.
    Rem "rem" 2 1;
    /// a to the power b (integers: b >= 0, wrapping; a negative b stops the run).
    Pow "pow" 2 10;
    /// The smaller; NaN if either is.
    Min "min" 2 1;
    /// The larger; NaN if either is.
    Max "max" 2 1;
    /// `and` of two truth values.
    And "and" 2 1;
    /// `or` of two truth values.
    Or "or" 2 1;
    /// Equality; the result is bool.
    Eq "eq" 2 1;
    /// Inequality; the result is bool.
    Ne "ne" 2 1;
    /// Less; the result is bool.
    Lt "lt" 2 1;
    /// Less or equal; the result is bool.
    Le "le" 2 1;
    /// Greater; the result is bool.
    Gt "gt" 2 1;
    /// Greater or equal; the result is bool.
    Ge "ge" 2 1;
    /// select(c, a, b): a where c, else b. Only the taken branch is evaluated at a point, so what only the
    /// other would read may be out of range.
    Select "select" 3 1;
    /// The bits of both; of integers.
    BitAnd "bitand" 2 1;
    /// The bits of either; of integers.
    BitOr "bitor" 2 1;
    /// The bits of one and not the other; of integers.
    BitXor "bitxor" 2 1;
    /// The bits of a moved up by b places; 0 where b is negative, or no less than the bits of the type.
    ShiftLeft "shl" 2 1;
    /// The bits of a moved down by b places, with the sign kept; the sign alone (0 or -1) where b is negative, or no less than the
    /// bits of the type.
    ShiftRight "shr" 2 1;
    /// How many bits are 1; of integers, in their own type.
    Popcount "popcount" 1 2;
    /// -a.
    Neg "neg" 1 1;
    /// not a.
    Not "not" 1 1;
    /// e^a.
    Exp "exp" 1 8;
    /// Natural logarithm.
    Log "log" 1 8;
    /// log(1 + a).
    Log1p "log1p" 1 8;
    /// e^a - 1.
    Expm1 "expm1" 1 8;
    /// Square root.
    Sqrt "sqrt" 1 2;
    /// 1 / sqrt(a).
    Rsqrt "rsqrt" 1 3;
    /// Hyperbolic tangent.
    Tanh "tanh" 1 10;
    /// 1 / (1 + e^-a).
    Sigmoid "sigmoid" 1 10;
    /// max(a, 0); NaN stays NaN.
    Relu "relu" 1 1;
    /// a * (1 + erf(a / sqrt 2)) / 2.
    Gelu "gelu" 1 12;
    /// The error function.
    Erf "erf" 1 10;
    /// Sine.
    Sin "sin" 1 8;
    /// Cosine.
    Cos "cos" 1 8;
    /// Tangent.
    Tan "tan" 1 10;
    /// Inverse sine, from -pi/2 to pi/2; NaN where |a| > 1.
    Asin "asin" 1 10;
    /// Inverse cosine, from 0 to pi; NaN where |a| > 1.
    Acos "acos" 1 10;
    /// Inverse tangent, from -pi/2 to pi/2.
    Atan "atan" 1 10;
    /// The angle of the point (b, a), from -pi to pi.
    Atan2 "atan2" 2 12;
    /// Hyperbolic sine.
    Sinh "sinh" 1 10;
    /// Hyperbolic cosine.
    Cosh "cosh" 1 10;
    /// Inverse hyperbolic sine.
    Asinh "asinh" 1 12;
    /// Inverse hyperbolic cosine; NaN where a < 1.
    Acosh "acosh" 1 12;
    /// Inverse hyperbolic tangent; NaN where |a| > 1.
    Atanh "atanh" 1 12;
    /// 2^a.
    Exp2 "exp2" 1 8;
    /// Logarithm of base 2.
    Log2 "log2" 1 8;
    /// Logarithm of base 10.
    Log10 "log10" 1 8;
    /// Cube root.
    Cbrt "cbrt" 1 8;
    /// sqrt(a² + b²), without overflow in between.
    Hypot "hypot" 2 8;
    /// 1 - erf(a), exact to the last digits where that is small.
    Erfc "erfc" 1 12;
    /// The x with erf(x) = a; NaN where |a| > 1.
    Erfinv "erfinv" 1 30;
    /// log |Γ(a)|.
    Lgamma "lgamma" 1 20;
    /// The derivative number a + 1 of log Γ at b: the digamma function for a = 0. a is a whole number, not negative.
    Polygamma "polygamma" 2 30;
    /// The number next to a on the way to b, in the type of both.
    Nextafter "nextafter" 2 2;
    /// |a|.
    Abs "abs" 1 1;
    /// -1, 0 or 1; NaN stays NaN.
    Sign "sign" 1 1;
    /// Rounded down.
    Floor "floor" 1 1;
    /// Rounded up.
    Ceil "ceil" 1 1;
    /// Rounded to the nearest, ties to even.
    Round "round" 1 1;
    /// a itself, without a gradient.
    Stop "stop" 1 0;
    /// a itself, a position from 0 to b - 1; another one stops the run. Not in the language: look-ups at the owner of a row
    /// are checked by it.
    Within "within" 2 0;
    /// Library ([`crate::library`]): x with A x = b, for one right side or several.
    Solve "solve" 2 1;
    /// Library: the lower factor L of A = L Lᵀ.
    Cholesky "cholesky" 1 1;
    /// Library: the inverse.
    Inv "inv" 1 1;
    /// Library: Q and R one behind the other, reduced; R's diagonal is not negative.
    Qr "qr" 1 1;
    /// Library: eigenvalues of a symmetric matrix, ascending, and eigenvectors (columns) behind them.
    Eigh "eigh" 1 1;
    /// Library: U, the singular values, descending, and Vᵀ one behind the other, reduced.
    Svd "svd" 1 1;
    /// Library: the logarithm of the determinant.
    Logdet "logdet" 1 1;
    /// Library: the positions of the values in ascending order, equal ones in their own; NaN last.
    Argsort "argsort" 1 1;
    /// Library: the values in ascending order, equal ones in their own; NaN last.
    Sort "sort" 1 1;
    /// Library: the positions of the largest values, descending, equal ones in their own order; NaN first.
    Topk "topk" 1 1;
    /// Library: elimination with partial pivoting of a matrix with at least as many rows as columns: the numbers of the rows in
    /// the order that the pivots say, and behind them L below the diagonal (which is 1) and U in one matrix. Not in the language:
    /// large matrices are solved by it.
    Lu "lu" 1 1;
    /// Library: the discrete Fourier transform of complex vectors, of their real and imaginary parts: the real parts of the result,
    /// and the imaginary parts behind them. It is not divided by anything.
    Fft "fft" 2 1;
    /// Library: eigenvalues of a square matrix, in the order of their real and then their imaginary parts, and eigenvectors
    /// (columns): the real parts of the values, their imaginary parts, and so of the vectors, one behind the other.
    Eig "eig" 1 1;
    /// Library: the place of a number in an ascending list, -1 if it is not there. Not in the language: elements of a sparse tensor are found
    /// by it.
    Find "find" 2 1;
    /// Library: the sum of the products of two rows' elements at the same positions. The rows of a sparse matrix are a list: where each row ends
    /// in it, positions, ascending in a row, and values. After two matrices come the numbers of the two rows, and how many positions there may
    /// be. Not in the language: products of sparse matrices are computed by it where few of their elements are read.
    ListedDot "listed_dot" 8 1;
    /// Library: the row of a product of two matrices that are such lists, all elements of it. Its number is a batch index. Not in the language.
    ListedProduct "listed_product" 6 1;
    /// Library: the places at which a product of two such matrices may have an element, row by row, each once: the number of the row times that of
    /// the columns, and the column. The result has room for more; it ends with the last place that there is. Values are not read. Not in the language.
    ListedPlaces "listed_places" 4 1;
    /// Library: the elements of such a product at these places. A place that stands there again has the value 0. Not in the language.
    ListedSums "listed_sums" 7 1;
}

/// What `a % b` is of floating-point values: a - b floor(a / b) of the exact quotient, rounded once, with the sign of b also
/// where it is 0; NaN for b = 0 or an infinite a.
pub fn remainder(a: f64, b: f64) -> f64 {
    let rest = a % b;
    if rest == 0.0 {
        0f64.copysign(b)
    } else if (rest < 0.0) != (b < 0.0) {
        rest + b
    } else {
        rest
    }
}

/// What `div(a, b)` is of floating-point values: the floor of the exact quotient, rounded once, so that it and [`remainder`] make up a;
/// of an infinite a it is NaN, as what remains is; else where the quotient is infinite or NaN, it is that.
pub fn floor_quotient(a: f64, b: f64) -> f64 {
    if a.is_infinite() && b != 0.0 {
        return f64::NAN;
    }
    let floor = (a / b).floor();
    // The quotient may have been rounded up to a whole number; then less than nothing is left.
    let rest = if floor == 0.0 {
        a
    } else {
        (-floor).mul_add(b, a)
    };
    let beyond = rest < 0.0 && b > 0.0 || rest > 0.0 && b < 0.0;
    if beyond { floor - 1.0 } else { floor }
}

/// What `a << b` is, in a type of so many bits; the caller wraps.
pub const fn shift_left(a: i64, b: i64, bits: u32) -> i64 {
    match b >= 0 && b < bits as i64 {
        true => a << b,
        false => 0,
    }
}

/// What `a >> b` is, in a type of so many bits.
pub const fn shift_right(a: i64, b: i64, bits: u32) -> i64 {
    match b >= 0 && b < bits as i64 {
        true => a >> b,
        false => a >> 63,
    }
}

impl Function {
    /// Whether it is an operation on whole vectors or matrices ([`crate::library`]) rather than on values.
    pub const fn is_library(self) -> bool {
        use Function::*;
        matches!(
            self,
            Solve
                | Cholesky
                | Inv
                | Qr
                | Eigh
                | Eig
                | Svd
                | Logdet
                | Argsort
                | Sort
                | Topk
                | Lu
                | Fft
                | Find
                | ListedDot
                | ListedProduct
                | ListedPlaces
                | ListedSums
        )
    }

    /// Returns whether it is of the bits of integers.
    pub const fn is_of_bits(self) -> bool {
        use Function::*;
        matches!(
            self,
            BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight | Popcount
        )
    }

    /// Returns whether it is so cheap that groups of such functions are compiled into one loop.
    pub const fn is_cheap(self) -> bool {
        use Function::*;
        matches!(
            self,
            Add | Sub
                | Mul
                | Div
                | Min
                | Max
                | And
                | Or
                | Not
                | Eq
                | Ne
                | Lt
                | Le
                | Gt
                | Ge
                | Select
                | Neg
                | Sqrt
                | Rsqrt
                | Relu
                | Abs
                | Sign
                | Floor
                | Ceil
                | Round
                | Stop
        )
    }

    /// Returns whether it takes floating-point values alone, and gives one of their type.
    pub const fn is_of_reals(self) -> bool {
        use Function::*;
        match self {
            Div | Exp | Log | Log1p | Expm1 | Sqrt | Rsqrt | Tanh | Sigmoid | Gelu | Erf | Sin
            | Cos | Tan | Asin | Acos | Atan | Atan2 | Sinh | Cosh | Asinh | Acosh | Atanh
            | Exp2 | Log2 | Log10 | Cbrt | Hypot | Erfc | Erfinv | Lgamma | Polygamma
            | Nextafter => true,
            Add | Sub | Mul | FloorDiv | Rem | Pow | Min | Max | And | Or | Eq | Ne | Lt | Le
            | Gt | Ge | BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight | Popcount | Select
            | Neg | Not | Relu | Abs | Sign | Floor | Ceil | Round | Stop | Within | Solve
            | Cholesky | Inv | Qr | Eigh | Eig | Svd | Logdet | Argsort | Sort | Topk | Lu
            | Fft | Find | ListedDot | ListedProduct | ListedPlaces | ListedSums => false,
        }
    }

    /// The compute type of the result for arguments of these compute types, or what was expected instead.
    pub fn result(self, arguments: &[DType]) -> Result<DType, String> {
        use Function::*;
        let wants = |what: &str| {
            let found: Vec<&str> = arguments.iter().map(|a| a.name()).collect();
            let (name, arity) = (self.name(), self.arity());
            let found = found.join(", ");
            Err(format!("{arity} {what} for `{name}`, found ({found})"))
        };
        if self.is_library() {
            let Some((values, indices)) = arguments.split_at_checked(self.arity()) else {
                return wants("arguments");
            };
            let suits = match self {
                Argsort | Sort | Topk => values.iter().all(|a| *a != DType::Bool),
                Find | ListedPlaces => values.iter().all(|a| *a == DType::I64),
                ListedDot | ListedProduct | ListedSums => {
                    (values.iter().enumerate()).all(|(number, a)| match number {
                        2 | 5 => *a != DType::Bool && *a == values[2],
                        _ => *a == DType::I64,
                    })
                }
                _ => values.iter().all(|a| a.is_float() && *a == values[0]),
            };
            return match suits && indices.iter().all(|i| *i == DType::I64) {
                true if matches!(self, Argsort | Topk | Find | ListedPlaces) => Ok(DType::I64),
                true if matches!(self, ListedDot | ListedProduct | ListedSums) => Ok(values[2]),
                true => Ok(values[0]),
                false => wants("values of one type and indices"),
            };
        }
        if arguments.len() != self.arity() {
            return wants("arguments");
        }
        let first = arguments[0];
        let same = arguments.iter().all(|a| *a == first);
        match self {
            Select if first != DType::Bool || arguments[1] != arguments[2] => {
                wants("arguments, a bool and two of one type,")
            }
            Select => Ok(arguments[1]),
            And | Or | Not if same && first == DType::Bool => Ok(first),
            And | Or | Not => wants("truth values"),
            Eq | Ne if same => Ok(DType::Bool),
            Lt | Le | Gt | Ge if same && first != DType::Bool => Ok(DType::Bool),
            Stop => Ok(first),
            Within if same && first == DType::I64 => Ok(first),
            Within => wants("whole numbers of 64 bits"),
            BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight | Popcount => {
                match same && first.is_integer() {
                    true => Ok(first),
                    false => wants("integers of one type"),
                }
            }
            Add | Sub | Mul | FloorDiv | Rem | Pow | Min | Max | Neg | Abs | Sign | Relu
            | Floor | Ceil | Round
                if same && first != DType::Bool =>
            {
                Ok(first)
            }
            _ if self.is_of_reals() => match same && first.is_float() {
                true => Ok(first),
                false => wants("floating-point values of one type"),
            },
            _ => wants("values of one type"),
        }
    }
}
