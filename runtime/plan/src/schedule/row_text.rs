//! The text of how a member of a sweep is taken in each block of rows.
//!
//! Must not know how that is decided.
//!
//! ```text
//! where s >= t - 63 and s < t + 1 else -inf over m0
//! together [m2, m3]
//! ```

use super::mask::{Mask, Masked};
use super::row_loops::RowLoops;
use super::text::name;
use super::zeros::Zeros;
use crate::Affine;
use crate::kernel::{IndexId, Kernel};
use crate::parse::{Line, Result};
use crate::print::{list, number};

impl RowLoops {
    /// The text, each part behind a space; empty if nothing is decided.
    pub(super) fn text(&self, kernel: &Kernel) -> String {
        let mut text = String::new();
        if let Some(masked) = &self.masked {
            text += &format!(" where {}", mask_text(&masked.mask, kernel));
            if let Some(outside) = masked.outside {
                text += &format!(" else {}", number(outside, None));
            }
            if let Some(product) = masked.over {
                text += &format!(" over m{product}");
            }
        }
        if let Some(reader) = self.within {
            text += &format!(" within m{reader}");
        }
        if let Some(Zeros { of, terms }) = &self.zeros {
            let terms = name(kernel, *terms);
            text += &format!(" skips zeros of m{of} along {terms}");
        }
        if !self.together.is_empty() {
            let members = self.together.iter().map(|member| format!("m{member}"));
            text += &format!(" together [{}]", list(members));
        }
        text
    }
}

/// The index whose values are the columns of a kernel's rows.
fn columns(kernel: &Kernel) -> IndexId {
    IndexId(kernel.output_rank.saturating_sub(1))
}

fn mask_text(mask: &Mask, kernel: &Kernel) -> String {
    let columns = name(kernel, columns(kernel));
    let text = |(symbol, bounds): (&str, &[Affine])| {
        let bound = |bound: &Affine| format!("{columns} {symbol} {}", affine_text(bound, kernel));
        bounds.iter().map(bound).collect::<Vec<String>>()
    };
    let conditions = [(">=", &mask.from[..]), ("<", &mask.below)].map(text);
    conditions.concat().join(" and ")
}

/// `2 * t - s + 1`.
fn affine_text(affine: &Affine, kernel: &Kernel) -> String {
    let mut text = String::new();
    let mut add = |negative: bool, term: String| {
        text += match (text.is_empty(), negative) {
            (true, true) => "-",
            (true, false) => "",
            (false, true) => " - ",
            (false, false) => " + ",
        };
        text += &term;
    };
    for (index, coefficient) in &affine.terms {
        let index = name(kernel, *index);
        let term = match coefficient.unsigned_abs() {
            1 => index,
            many => format!("{many} * {index}"),
        };
        add(*coefficient < 0, term);
    }
    if affine.constant != 0 || affine.terms.is_empty() {
        let constant = affine.constant;
        add(constant < 0, constant.unsigned_abs().to_string());
    }
    text
}

impl Line<'_> {
    /// How a member is taken, as far as the text says it.
    pub(super) fn row_loops(&mut self, kernel: &Kernel) -> Result<RowLoops> {
        let mut rows = RowLoops::default();
        if self.eat_word("where") {
            let mask = self.mask(kernel)?;
            let outside = match self.eat_word("else") {
                true => Some(self.number(None)?.0),
                false => None,
            };
            rows.masked = Some(Masked {
                mask,
                outside,
                over: self.member_behind("over")?,
            });
        }
        rows.within = self.member_behind("within")?;
        if self.eat_word("skips") {
            self.expect_word("zeros")?;
            self.expect_word("of")?;
            let of = self.numbered('m')?;
            self.expect_word("along")?;
            let terms = self.kernel_index(kernel)?;
            rows.zeros = Some(Zeros { of, terms });
        }
        if self.eat_word("together") {
            self.expect("[")?;
            rows.together = self.list("]", |line| line.numbered('m'))?;
        }
        Ok(rows)
    }

    fn member_behind(&mut self, word: &str) -> Result<Option<u32>> {
        self.eat_word(word).then(|| self.numbered('m')).transpose()
    }

    fn mask(&mut self, kernel: &Kernel) -> Result<Mask> {
        let mut mask = Mask {
            from: vec![],
            below: vec![],
        };
        loop {
            let error = self.error_before("a bound of the columns such as `s < t + 1`");
            if self.kernel_index(kernel)? != columns(kernel) {
                return Err(error);
            }
            if self.eat("<") {
                mask.below.push(self.affine(kernel)?);
            } else if self.eat(">=") {
                mask.from.push(self.affine(kernel)?);
            } else {
                return Err(error);
            }
            if !self.eat_word("and") {
                return Ok(mask);
            }
        }
    }

    fn affine(&mut self, kernel: &Kernel) -> Result<Affine> {
        let mut affine = Affine {
            terms: vec![],
            constant: 0,
        };
        let mut negative = self.eat("-");
        loop {
            let sign = if negative { -1 } else { 1 };
            if self.at_number() {
                let number = sign * self.integer::<i64>()?;
                match self.eat("*") {
                    true => affine.terms.push((self.kernel_index(kernel)?, number)),
                    false => affine.constant = number,
                }
            } else {
                affine.terms.push((self.kernel_index(kernel)?, sign));
            }
            negative = self.eat("-");
            if !negative && !self.eat("+") {
                return Ok(affine);
            }
        }
    }
}
