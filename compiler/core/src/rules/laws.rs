//! The laws of arithmetic that rules rely on, in one table.
//!
//! A row says that a product distributes over a sum, for which element types, and what is kept where values are not
//! finite. Rounding may differ on either side of a law; nothing else may. The table is tested numerically. Must not
//! know terms.
//!
//! ```text
//! sum/add over mul   f32 f64 i32 i64   non-finite stays non-finite
//! max/max over add   f32 f64           non-finite stays non-finite
//! any/or  over and   bool              exact
//! ```

use ein_plan::{DType, Function, Reduction, Scalar};

/// The values that stay equal where an operand is infinite or NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonFinite {
    /// Every value is kept, NaN included.
    Exact,
    /// Elements that depend on it are not finite on either side; which of inf, -inf and NaN they are may differ.
    Spreads,
}

/// `x ⊗ (y ⊕ z) = (x ⊗ y) ⊕ (x ⊗ z)`, and so for a reduction by ⊕ over a range that is not empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Law {
    /// The reduction by ⊕.
    pub reduction: Reduction,
    /// ⊕ of two values.
    pub sum: Function,
    /// ⊗.
    pub product: Function,
    /// Compute types for which it holds.
    pub dtypes: &'static [DType],
    /// The values that stay equal where operands are not finite.
    pub non_finite: NonFinite,
}

const FLOATS: &[DType] = &[DType::F32, DType::F64];
const NUMBERS: &[DType] = &[DType::F32, DType::F64, DType::I32, DType::I64];
const TRUTHS: &[DType] = &[DType::Bool];

const fn law(
    reduction: Reduction,
    sum: Function,
    product: Function,
    dtypes: &'static [DType],
    non_finite: NonFinite,
) -> Law {
    Law {
        reduction,
        sum,
        product,
        dtypes,
        non_finite,
    }
}

/// Every law. Integers wrap, which sums of products allow and `max` over sums does not.
pub const LAWS: &[Law] = &[
    law(
        Reduction::Sum,
        Function::Add,
        Function::Mul,
        NUMBERS,
        NonFinite::Spreads,
    ),
    law(
        Reduction::Max,
        Function::Max,
        Function::Add,
        FLOATS,
        NonFinite::Spreads,
    ),
    law(
        Reduction::Min,
        Function::Min,
        Function::Add,
        FLOATS,
        NonFinite::Spreads,
    ),
    law(
        Reduction::Max,
        Function::Max,
        Function::Min,
        NUMBERS,
        NonFinite::Exact,
    ),
    law(
        Reduction::Min,
        Function::Min,
        Function::Max,
        NUMBERS,
        NonFinite::Exact,
    ),
    law(
        Reduction::Any,
        Function::Or,
        Function::And,
        TRUTHS,
        NonFinite::Exact,
    ),
    law(
        Reduction::All,
        Function::And,
        Function::Or,
        TRUTHS,
        NonFinite::Exact,
    ),
];

/// The law of a reduction and a product for a compute type, if it holds.
pub fn of_reduction(reduction: Reduction, product: Function, dtype: DType) -> Option<&'static Law> {
    LAWS.iter().find(|law| {
        law.reduction == reduction && law.product == product && law.dtypes.contains(&dtype)
    })
}

/// The laws of a binary sum for a compute type.
pub fn of_sum(sum: Function, dtype: DType) -> impl Iterator<Item = &'static Law> {
    LAWS.iter()
        .filter(move |law| law.sum == sum && law.dtypes.contains(&dtype))
}

/// The reduction that repeats an associative, commutative function of two values.
pub fn repeated(function: Function) -> Option<Reduction> {
    Some(match function {
        Function::Add => Reduction::Sum,
        Function::Mul => Reduction::Prod,
        Function::Max => Reduction::Max,
        Function::Min => Reduction::Min,
        Function::And => Reduction::All,
        Function::Or => Reduction::Any,
        _ => return None,
    })
}

/// The function of two values that a reduction repeats, if it is nothing but that.
pub fn step(reduction: Reduction) -> Option<Function> {
    let all = [
        Function::Add,
        Function::Mul,
        Function::Max,
        Function::Min,
        Function::And,
        Function::Or,
    ];
    all.into_iter().find(|f| repeated(*f) == Some(reduction))
}

/// The value that changes nothing: 0 for `add`, 1 for `mul`, -inf for `max` of floating-point numbers, …
pub fn identity(function: Function, dtype: DType) -> Option<Scalar> {
    let number = |x: i64| match dtype {
        DType::F32 | DType::F64 => Some(Scalar::Float(x as f64)),
        DType::I32 | DType::I64 => Some(Scalar::Int(x)),
        _ => None,
    };
    match function {
        Function::Add => number(0),
        Function::Mul => number(1),
        Function::Max if dtype.is_float() => Some(Scalar::Float(f64::NEG_INFINITY)),
        Function::Min if dtype.is_float() => Some(Scalar::Float(f64::INFINITY)),
        Function::And if dtype == DType::Bool => Some(Scalar::Bool(true)),
        Function::Or if dtype == DType::Bool => Some(Scalar::Bool(false)),
        _ => None,
    }
}
