//! Numbers as numpy writes them: the fewest digits that give the number back in its type, at most eight
//! after the point in tensors, points below each other.
//!
//! Must not know tensors' shapes.
//!
//! ```text
//! f32 [1, 2.5, nan] -> "1. " "2.5" "nan"      f64 [1e-5, 1.25e10] -> "1.00e-05" "1.25e+10"
//! [1, 2.5] and [0, -1] as complex numbers -> "1. +0.j" "2.5-1.j"
//! ```

use ein_array::Data;
use ein_plan::Scalar;

/// Digits after the point.
const PRECISION: usize = 8;

/// A single number in full.
pub(crate) fn scalar(data: &Data) -> String {
    match data.get(0) {
        Scalar::Int(x) => whole(data, x),
        Scalar::Bool(x) => x.to_string(),
        Scalar::Float(x) => {
            let number = Number::of(data, 0, x);
            let magnitude = x.abs();
            if !x.is_finite() || x == 0.0 || (1e-4..1e16).contains(&magnitude) {
                let text = number.positional(usize::MAX);
                let whole = text.ends_with('.');
                if whole { text + "0" } else { text }
            } else {
                let text = number.scientific(None, 2);
                text.replace(".e", "e")
            }
        }
    }
}

/// A whole number; one of u64 is given by its bits.
fn whole(data: &Data, x: i64) -> String {
    match data {
        Data::U64(_) => (x as u64).to_string(),
        _ => x.to_string(),
    }
}

/// A single complex number in full; a real part of 0 is left out.
pub(crate) fn complex_scalar(re: &Data, im: &Data) -> String {
    let plain = |data: &Data| {
        let text = scalar(data);
        text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
    };
    let (real, imaginary) = (re.get(0).as_f64(), plain(im));
    if real == 0.0 && real.is_sign_positive() {
        return imaginary + "j";
    }
    format!("({}{}j)", plain(re), signed(imaginary))
}

/// Every complex number as a word; all words are equally wide.
pub(crate) fn complex_words(re: &Data, im: &Data) -> Vec<String> {
    let parts = words(re).into_iter().zip(written(im, true));
    parts
        .map(|(real, imaginary)| {
            let (digits, blank) = imaginary.split_at(imaginary.trim_end().len());
            format!("{real}{digits}j{blank}")
        })
        .collect()
}

/// The text of a number with its sign, whatever it is.
fn signed(text: String) -> String {
    match text.starts_with('-') {
        true => text,
        false => format!("+{text}"),
    }
}

/// Every element as a word; all words are equally wide.
pub(crate) fn words(data: &Data) -> Vec<String> {
    written(data, false)
}

/// The words of numbers, each with a sign if `is_signed`.
fn written(data: &Data, is_signed: bool) -> Vec<String> {
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
                    Scalar::Int(x) => whole(data, x),
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
    let all: Vec<Number> = all.map(|i| Number::of(data, i, numbers[i])).collect();
    let texts: Vec<String> = if scientific {
        let finite = || all.iter().filter(|number| number.special().is_none());
        let after = finite().map(Number::mantissa).max();
        let wide = finite().any(|number| number.exponent().abs() >= 100);
        let width = if wide { 3 } else { 2 };
        all.iter()
            .map(|number| number.scientific(after, width))
            .collect()
    } else {
        all.iter().map(|n| n.positional(PRECISION)).collect()
    };
    let texts: Vec<String> = match is_signed {
        true => texts.into_iter().map(signed).collect(),
        false => texts,
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

/// A floating-point number and the fewest digits that give it back in its type.
struct Number {
    value: f64,
    /// `1.25e10`; `NaN` and `inf` have no exponent.
    shortest: String,
}

impl Number {
    /// Element `at` of `data`, whose value is `value`.
    fn of(data: &Data, at: usize, value: f64) -> Number {
        let few = |gives_back: &dyn Fn(f64) -> bool| {
            (0..=16)
                .map(|digits| format!("{value:.digits$e}"))
                .find(|text| text.parse().is_ok_and(gives_back))
                .unwrap_or_else(|| format!("{value:e}"))
        };
        let shortest = match data {
            Data::F16(v) => few(&|x| half::f16::from_f64(x) == v[at]),
            Data::BF16(v) => few(&|x| half::bf16::from_f64(x) == v[at]),
            Data::F32(v) => format!("{:e}", v[at]),
            _ => format!("{value:e}"),
        };
        Number { value, shortest }
    }

    /// What is not a number of digits.
    fn special(&self) -> Option<&'static str> {
        if self.value.is_nan() {
            Some("nan")
        } else if self.value.is_infinite() {
            Some(if self.value > 0.0 { "inf" } else { "-inf" })
        } else {
            None
        }
    }

    fn exponent(&self) -> i64 {
        let exponent = self.shortest.split_once('e');
        exponent.and_then(|(_, e)| e.parse().ok()).unwrap_or(0)
    }

    /// Digits after the point in scientific form, at most [`PRECISION`].
    fn mantissa(&self) -> usize {
        let after = |text: &str| {
            let mantissa = text.split('e').next().unwrap_or_default();
            let (_, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
            after.trim_end_matches('0').len()
        };
        match after(&self.shortest) {
            digits if digits <= PRECISION => digits,
            _ => after(&format!("{:.PRECISION$e}", self.value)),
        }
    }

    /// `12.5`, `3.`, `nan`, with at most `precision` digits after the point.
    fn positional(&self, precision: usize) -> String {
        if let Some(special) = self.special() {
            return special.to_owned();
        }
        let mantissa = self.shortest.split('e').next().unwrap_or_default();
        let digits = mantissa.bytes().filter(u8::is_ascii_digit).count() as i64;
        let needed = (digits - 1 - self.exponent()).max(0) as usize;
        let text = if needed <= precision {
            let value: f64 = self.shortest.parse().unwrap_or(self.value);
            format!("{value:.needed$}")
        } else {
            format!("{:.precision$}", self.value)
        };
        match text.contains('.') {
            true => text.trim_end_matches('0').to_owned(),
            false => text + ".",
        }
    }

    /// `1.25e+10`, with `after` digits after the point (the fewest for `None`) and at least `width` in the exponent.
    fn scientific(&self, after: Option<usize>, width: usize) -> String {
        if let Some(special) = self.special() {
            return special.to_owned();
        }
        let text = match after {
            Some(after) => format!("{:.after$e}", self.value),
            None => self.shortest.clone(),
        };
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let exponent: i64 = exponent.parse().unwrap_or(0);
        let point = if mantissa.contains('.') { "" } else { "." };
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{mantissa}{point}e{sign}{:0width$}", exponent.abs())
    }
}
