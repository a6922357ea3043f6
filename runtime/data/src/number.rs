//! Numbers in text files, read as the element type that a program declares.
//!
//! Must not know formats.
//!
//! ```text
//! "2.5" as f32: 2.5;  as i32: refused;  "300" as u8: refused
//! ```

use ein_array::Data;
use half::{bf16, f16};

/// Appends the number that a word says. The error says why it is none of that type.
pub(crate) fn push(values: &mut Data, word: &str) -> Result<(), String> {
    let dtype = values.dtype();
    let pushed = match values {
        Data::F16(v) => word.parse().map(|x| v.push(f16::from_f64(x))).ok(),
        Data::BF16(v) => word.parse().map(|x| v.push(bf16::from_f64(x))).ok(),
        Data::F32(v) => word.parse().map(|x| v.push(x)).ok(),
        Data::F64(v) => word.parse().map(|x| v.push(x)).ok(),
        Data::U8(v) => integer(word).map(|x| v.push(x)),
        Data::U16(v) => integer(word).map(|x| v.push(x)),
        Data::U32(v) => integer(word).map(|x| v.push(x)),
        Data::U64(v) => integer(word).map(|x| v.push(x)),
        Data::I8(v) => integer(word).map(|x| v.push(x)),
        Data::I16(v) => integer(word).map(|x| v.push(x)),
        Data::I32(v) => integer(word).map(|x| v.push(x)),
        Data::I64(v) => integer(word).map(|x| v.push(x)),
        Data::Bool(v) => integer(word).filter(|x| *x <= 1).map(|x: u8| v.push(x)),
    };
    pushed.ok_or_else(|| {
        let is_number = word.parse::<f64>().is_ok();
        let what = if is_number { "" } else { "not a number, so " };
        format!("`{}` is {what}no {dtype}", shorten(word))
    })
}

/// An integer, which may be written as 3.0 or 1e3 too.
fn integer<T: std::str::FromStr + TryFrom<i64>>(word: &str) -> Option<T> {
    if let Ok(number) = word.parse() {
        return Some(number);
    }
    /// Floats up to this one stand for one integer each.
    const EXACT: f64 = (1u64 << 53) as f64;
    let number: f64 = word.parse().ok()?;
    let whole = number.fract() == 0.0 && number.abs() <= EXACT;
    whole.then(|| T::try_from(number as i64).ok()).flatten()
}

/// Appends `-x` for the last number `x`; false if the type has no negative numbers.
pub(crate) fn push_negated(values: &mut Data) -> bool {
    match values {
        Data::F16(v) => v.extend(v.last().map(|x| -*x)),
        Data::BF16(v) => v.extend(v.last().map(|x| -*x)),
        Data::F32(v) => v.extend(v.last().map(|x| -*x)),
        Data::F64(v) => v.extend(v.last().map(|x| -*x)),
        Data::I32(v) => v.extend(v.last().map(|x| x.wrapping_neg())),
        Data::I64(v) => v.extend(v.last().map(|x| x.wrapping_neg())),
        Data::I8(v) => v.extend(v.last().map(|x| x.wrapping_neg())),
        Data::I16(v) => v.extend(v.last().map(|x| x.wrapping_neg())),
        Data::U8(_) | Data::U16(_) | Data::U32(_) | Data::U64(_) | Data::Bool(_) => return false,
    }
    true
}

/// Appends the last number once more.
pub(crate) fn push_again(values: &mut Data) {
    ein_array::each_data!(values, v => v.extend(v.last().copied()));
}

/// A word of a damaged file, fit to be shown.
pub(crate) fn shorten(word: &str) -> String {
    match word.char_indices().nth(40) {
        Some((end, _)) => format!("{}…", word[..end].escape_debug()),
        None => word.escape_debug().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ein_plan::DType;

    #[test]
    fn words_as_types() {
        let said = |dtype, word| {
            let mut values = Data::zeros(dtype, 0);
            match push(&mut values, word) {
                Ok(()) => format!("{:?}", values.get(0)),
                Err(why) => why,
            }
        };
        assert_eq!(said(DType::F32, "2.5"), "Float(2.5)");
        assert_eq!(said(DType::I32, "3.0"), "Int(3)");
        assert_eq!(
            said(DType::I64, "9007199254740993"),
            "Int(9007199254740993)"
        );
        assert_eq!(said(DType::I32, "2.5"), "`2.5` is no i32");
        assert_eq!(said(DType::U8, "300"), "`300` is no u8");
        assert_eq!(said(DType::Bool, "1"), "Bool(true)");
        assert_eq!(said(DType::F64, "a:b"), "`a:b` is not a number, so no f64");
    }
}
