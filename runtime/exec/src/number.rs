//! Numbers as numpy writes them: the fewest digits that give the number back in its type, at most eight
//! after the point in tensors, points below each other.
//!
//! Must not know tensors' shapes.
//!
//! ```text
//! f32 [1, 2.5, nan] -> "1. " "2.5" "nan"      f64 [1e-5, 1.25e10] -> "1.00e-05" "1.25e+10"
//! ```

use ein_array::Data;
use ein_plan::Scalar;

/// Digits after the point.
const PRECISION: usize = 8;

/// A single number in full.
pub(crate) fn scalar(data: &Data) -> String {
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
pub(crate) fn words(data: &Data) -> Vec<String> {
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
