//! Reductions and the carriers through which they split into phases.
//!
//! A carrier is what a partial result has to remember: `sum` one number, `argmax` a value and an index. A
//! reduction is: points into a carrier (in the order of the indices), carriers of neighbouring pieces
//! combined in key order, and a last `finish`. Must not know how any of these is computed.
//!
//! ```text
//! logsumexp f32   carrier (f32 max, f32 sum)   finish max + log(sum)
//! ```

use crate::dtype::DType;
use serde::{Deserialize, Serialize};

/// A reduction of the language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Reduction {
    /// Σ; over nothing 0.
    Sum,
    /// Π; over nothing 1.
    Prod,
    /// Largest; over nothing -inf (integers: the least value of the type). NaN wins.
    Max,
    /// Smallest; over nothing inf (integers: the greatest value of the type). NaN wins.
    Min,
    /// Arithmetic mean of floating-point values; over nothing NaN. Carrier: sum, count.
    Mean,
    /// Some is true; over nothing false.
    Any,
    /// All are true; over nothing true.
    All,
    /// Index (i64) of the largest; ties: the lowest index; the first NaN wins; over nothing the run stops.
    /// Carrier: value, index (-1: none yet).
    ArgMax,
    /// Index (i64) of the smallest; ties: the lowest index; the first NaN wins. Carrier: value, index.
    ArgMin,
    /// log Σ e^x, stable; over nothing -inf. Carrier: largest, Σ e^(x - largest).
    LogSumExp,
    /// Square root of Σ x², without overflow. Carrier: scale, Σ (x / scale)².
    Norm,
    /// Σ |x|.
    Norm1,
    /// max |x|; over nothing 0.
    NormInf,
}

impl Reduction {
    /// Every reduction, in the order of the language reference.
    pub const ALL: [Reduction; 13] = [
        Reduction::Sum,
        Reduction::Prod,
        Reduction::Max,
        Reduction::Min,
        Reduction::Mean,
        Reduction::Any,
        Reduction::All,
        Reduction::ArgMax,
        Reduction::ArgMin,
        Reduction::LogSumExp,
        Reduction::Norm,
        Reduction::Norm1,
        Reduction::NormInf,
    ];

    /// The name used in the language.
    pub const fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Prod => "prod",
            Reduction::Max => "max",
            Reduction::Min => "min",
            Reduction::Mean => "mean",
            Reduction::Any => "any",
            Reduction::All => "all",
            Reduction::ArgMax => "argmax",
            Reduction::ArgMin => "argmin",
            Reduction::LogSumExp => "logsumexp",
            Reduction::Norm => "norm",
            Reduction::Norm1 => "norm1",
            Reduction::NormInf => "norminf",
        }
    }

    /// The reduction of that name, if there is one.
    pub fn from_name(name: &str) -> Option<Reduction> {
        Reduction::ALL.into_iter().find(|r| r.name() == name)
    }

    /// Whether it gives the position of a value rather than a value.
    pub const fn is_arg(self) -> bool {
        matches!(self, Reduction::ArgMax | Reduction::ArgMin)
    }

    /// The columns of the carrier for values of compute type `value` (one of `F32 F64 I32 I64 Bool`).
    pub fn carrier(self, value: DType) -> Vec<DType> {
        match self {
            Reduction::ArgMax | Reduction::ArgMin => vec![value, DType::I64],
            Reduction::Mean => vec![value, DType::I64],
            Reduction::LogSumExp | Reduction::Norm => vec![value, value],
            _ => vec![value],
        }
    }

    /// The compute type of the finished result for values of compute type `value`.
    pub fn result(self, value: DType) -> DType {
        if self.is_arg() { DType::I64 } else { value }
    }

    /// Whether `finish` is anything but taking the carrier's only column.
    pub const fn needs_finish(self) -> bool {
        matches!(
            self,
            Reduction::Mean
                | Reduction::ArgMax
                | Reduction::ArgMin
                | Reduction::LogSumExp
                | Reduction::Norm
        )
    }
}
