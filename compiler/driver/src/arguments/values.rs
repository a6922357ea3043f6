//! How the values of arguments are written: sizes, limits, numbers, files and what is in them.
//!
//! Must not know which argument a value is of.
//!
//! ```text
//! N=1_000   ->   (N, 1000)        X=points.npz::train   ->   (X, the array `train` of points.npz)
//! ```

use super::{Data, FormatChoice, Save, Weights};
use ein_plan::{FileRef, Scalar};
use einc_core::lists::Form;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// More sites than this are refused.
const MOST_SITES: u32 = 4096;

/// More threads than this are refused.
const MOST_THREADS: u32 = 4096;

fn split(text: &str) -> Result<(&str, &str), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.trim().is_empty() => {
            Ok((name.trim(), value.trim()))
        }
        _ => Err("write it as NAME=VALUE".into()),
    }
}

/// `N=1_000`.
///
/// # Errors
/// Says what is wrong with the text.
pub fn dim(text: &str) -> Result<(String, i64), String> {
    let (name, value) = split(text)?;
    let number: i64 = digits(value)
        .parse()
        .map_err(|_| format!("`{value}` is not a whole number below 2^63"))?;
    if number < 0 {
        return Err("a size is not negative".into());
    }
    Ok((name.into(), number))
}

/// `auto`, `list`, `dense`, `A=list`, `A=dense`.
///
/// # Errors
/// Says what is wrong with the text.
pub fn form(text: &str) -> Result<FormatChoice, String> {
    let wrong = || "write auto, list, dense, NAME=list or NAME=dense".to_owned();
    let named = |form: &str| {
        let mut forms = [Form::List, Form::Dense].into_iter();
        forms.find(|known| known.name() == form)
    };
    if text == "auto" {
        return Ok(FormatChoice::All(None));
    } else if let Some(form) = named(text) {
        return Ok(FormatChoice::All(Some(form)));
    }
    let (name, form) = split(text).map_err(|_| wrong())?;
    Ok(FormatChoice::Pinned(
        name.into(),
        named(form).ok_or_else(wrong)?,
    ))
}

/// `8GiB`, `500MB`, `1073741824`.
///
/// # Errors
/// Says what is wrong with the text.
pub fn bytes(text: &str) -> Result<u64, String> {
    match text.parse::<bytesize::ByteSize>() {
        Ok(size) if size.as_u64() > 0 => Ok(size.as_u64()),
        _ => Err("write it as 8GiB, 500MB or a number of bytes above 0".into()),
    }
}

/// How long a site waits for others before it says so.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Patience(pub Option<Duration>);

/// A number from 0; 0 is for ever.
pub fn patience(text: &str) -> Result<Patience, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=1e9).contains(&seconds) => Ok(Patience(
            (seconds > 0.0).then(|| Duration::from_secs_f64(seconds)),
        )),
        _ => Err("write a number of seconds from 0, such as 60".into()),
    }
}

/// A number of sites or ranks.
pub fn sites(text: &str) -> Result<u32, String> {
    whole(text, 1..=MOST_SITES)
}

/// A number of threads.
pub fn threads(text: &str) -> Result<u32, String> {
    whole(text, 1..=MOST_THREADS)
}

/// A whole number from 0.
pub fn seed(text: &str) -> Result<u64, String> {
    whole(text, 0..=u64::MAX)
}

fn whole<T: FromStr + PartialOrd + Display>(
    text: &str,
    range: RangeInclusive<T>,
) -> Result<T, String> {
    let (least, most) = (range.start(), range.end());
    match text.parse::<T>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("write a whole number from {least} to {most}")),
    }
}

/// A number above 0.
pub fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        _ => Err("write a number above 0, such as 2.5".into()),
    }
}

/// A number from 1.
pub fn balance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(times) if times >= 1.0 && times.is_finite() => Ok(times),
        _ => Err("write a number from 1, such as 1.25".into()),
    }
}

/// `eps=1e-5`, `causal=true`, `K=1_000`, `limit=inf`.
///
/// # Errors
/// Says what is wrong with the text.
pub fn constant(text: &str) -> Result<(String, Scalar), String> {
    let (name, value) = split(text)?;
    match number(value) {
        Some(scalar) => Ok((name.into(), scalar)),
        None => Err(format!("`{value}` is neither a number nor true or false")),
    }
}

/// Reads a number, `true` or `false`.
fn number(value: &str) -> Option<Scalar> {
    let number = digits(value);
    match value {
        "true" => Some(Scalar::Bool(true)),
        "false" => Some(Scalar::Bool(false)),
        _ => match (number.parse::<i64>(), number.parse::<f64>()) {
            (Ok(whole), _) => Some(Scalar::Int(whole)),
            (_, Ok(real)) => Some(Scalar::Float(real)),
            _ => None,
        },
    }
}

/// The number without the `_` that stand between its digits.
fn digits(value: &str) -> String {
    let bytes = value.as_bytes();
    let between = |i: usize| {
        bytes.get(i + 1).is_some_and(u8::is_ascii_digit)
            && i.checked_sub(1)
                .and_then(|before| bytes.get(before))
                .is_some_and(u8::is_ascii_digit)
    };
    value
        .char_indices()
        .filter(|(i, c)| *c != '_' || !between(*i))
        .map(|(_, c)| c)
        .collect()
}

/// `X=points.npy`, `X=all.npz::train`, `lr=0.5`; a relative path is one of the working directory. What reads as a number is one: a
/// file with such a name is written `./0.5`.
///
/// # Errors
/// Says what is wrong with the text.
pub fn input(text: &str) -> Result<(String, Data), String> {
    let (name, value) = split(text)?;
    if let Some(number) = number(value) {
        return Ok((name.into(), Data::Number(number)));
    }
    let (path, key) = match value.rsplit_once("::") {
        Some((path, key)) if !path.is_empty() && !key.is_empty() => (path, Some(key.to_string())),
        _ => (value, None),
    };
    let path = absolute(Path::new(path))?
        .to_str()
        .ok_or("the working directory's name is not UTF-8")?
        .to_string();
    Ok((name.into(), Data::File(FileRef { path, key })))
}

/// `C=c.npy`, or `all.npz` for all outputs; a relative path is one of the working directory.
///
/// # Errors
/// Says what is wrong with the text.
pub fn save(text: &str) -> Result<Save, String> {
    let is_archive = Path::new(text)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("npz"));
    if is_archive && !text.contains('=') {
        return Ok(Save::All(absolute(Path::new(text))?));
    }
    let Ok((name, value)) = split(text) else {
        return Err("write it as NAME=FILE, or as FILE.npz for all outputs".into());
    };
    Ok(Save::One(name.into(), absolute(Path::new(value))?))
}

/// `model.safetensors` or `model.safetensors::enc.*`; a relative path is one of the working directory.
///
/// # Errors
/// Says what is wrong with the text.
pub fn weights(text: &str) -> Result<Weights, String> {
    let (path, pattern) = match text.rsplit_once("::") {
        Some((_, "")) => return Err("behind `::` stand names of params, such as `enc.*`".into()),
        Some((path, pattern)) if !path.is_empty() => (path, Some(pattern.to_owned())),
        _ => (text, None),
    };
    let path = absolute(Path::new(path))?;
    Ok(Weights { path, pattern })
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(dim("N=150_000").unwrap(), ("N".into(), 150_000));
        assert_eq!(dim("N=0").unwrap(), ("N".into(), 0));
        for wrong in [
            "N",
            "=4",
            "N=",
            "N=x",
            "N=-1",
            "N=1__0",
            "N=1.5",
            "N=_1",
            "N=99999999999999999999",
        ] {
            assert!(dim(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits() {
        assert_eq!(bytes("8GiB").unwrap(), 8 << 30);
        assert_eq!(bytes("500 MB").unwrap(), 500_000_000);
        assert_eq!(bytes("4096").unwrap(), 4096);
        assert!(bytes("0").is_err() && bytes("much").is_err() && bytes("-1").is_err());
        assert_eq!(balance("1.5").unwrap(), 1.5);
        assert_eq!(
            patience("1.5").unwrap().0,
            Some(Duration::from_millis(1500))
        );
        assert_eq!(patience("0").unwrap().0, None);
        assert!(patience("-1").is_err() && patience("soon").is_err());
        assert!(balance("0.9").is_err() && balance("inf").is_err() && balance("x").is_err());
    }

    #[test]
    fn constants() {
        assert_eq!(constant("a=1e-5").unwrap().1, Scalar::Float(1e-5));
        assert_eq!(constant("a=-2").unwrap().1, Scalar::Int(-2));
        assert_eq!(constant("a=true").unwrap().1, Scalar::Bool(true));
        assert_eq!(constant("a=inf").unwrap().1, Scalar::Float(f64::INFINITY));
        assert!(constant("a=b").is_err());
    }

    #[test]
    fn files_and_keys() {
        let file = |text: &str| match input(text).unwrap() {
            (name, Data::File(file)) => (name, file.path, file.key),
            (name, number) => panic!("{name} is {number:?}"),
        };
        let expected = ("X".into(), "/d/all.npz".into(), Some("train".into()));
        assert_eq!(file("X=/d/all.npz::train"), expected);
        assert_eq!(file("X=/d/x.npy").2, None);
        let number = |text: &str| input(text).unwrap().1;
        assert_eq!(number("lr=0.5"), Data::Number(Scalar::Float(0.5)));
        assert_eq!(number("n=-1_000"), Data::Number(Scalar::Int(-1000)));
        assert!(matches!(number("lr=./0.5"), Data::File(_)));
        assert!(matches!(save("C=c.npy").unwrap(), Save::One(_, path) if path.is_absolute()));
        assert!(matches!(save("all.npz").unwrap(), Save::All(path) if path.is_absolute()));
        assert!(save("c.npy").is_err());
    }
}
