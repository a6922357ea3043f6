//! The text of scheduled kernels, with the names of the kernel's indices.
//!
//! Must not know how loops are chosen.
//!
//! ```text
//! matmul batch [b] rows [i] columns [j] inner [k]
//! scatter [v] at [n = 3, m = a1]
//! ```

use super::bounded::Bounded;
use super::pairwise::{PairwiseLoops, Term};
use super::{Fused, Grouped, LoopKernel, LoopKind, Matmul, Pairwise, RowReduce, Scan, Segments};
use crate::kernel::{IndexId, Kernel};
use crate::parse::{Line, Result};
use crate::points::Position;
use crate::print::{list, reference};

impl LoopKernel {
    /// The text of the loops of a kernel.
    pub fn text(&self, kernel: &Kernel) -> String {
        let mut text = self.kind.text(kernel);
        if !self.fixed.is_empty() {
            let fixed = self.fixed.iter().map(|(index, position)| {
                let index = name(kernel, *index);
                match position {
                    Position::Constant(value) => format!("{index} = {value}"),
                    Position::Scalar(operand) => format!("{index} = a{operand}"),
                }
            });
            text += &format!(" at [{}]", list(fixed));
        }
        text += &self.rows.text(kernel);
        if let Some(fused) = &self.fused {
            let operands = fused.operands.iter();
            let operands = operands.map(|(member, at)| format!("m{member} {at}"));
            text += &format!(" of [{}] as {}", list(operands), fused.kernel);
        }
        text
    }
}

impl LoopKind {
    fn text(&self, kernel: &Kernel) -> String {
        let own = self.name();
        match self {
            LoopKind::Library
            | LoopKind::Elementwise
            | LoopKind::Gather
            | LoopKind::Patched
            | LoopKind::Selection
            | LoopKind::RowProduct
            | LoopKind::GatheredSum
            | LoopKind::GatheredMatmul
            | LoopKind::ScatteredMatmul
            | LoopKind::Inlined
            | LoopKind::Strips => own.into(),
            LoopKind::Scatter(indices) | LoopKind::Lookup(indices) => {
                own.to_string() + &indices_text(kernel, "", indices)
            }
            LoopKind::Scan(scan) => own.to_string() + &scan_text(kernel, scan),
            LoopKind::Segments(segments) => {
                let index = name(kernel, segments.reduced);
                format!("{own} {index}") + &indices_text(kernel, "by", &segments.by)
            }
            LoopKind::Grouped(grouped) => {
                let passed = indices_text(kernel, "", &grouped.passed);
                let scan = grouped.scan.as_ref();
                let scan = scan.map_or(String::new(), |scan| {
                    " scan".to_string() + &scan_text(kernel, scan)
                });
                format!("{own}{passed}{scan}")
            }
            LoopKind::RowReduce(RowReduce { differences }) => {
                own.to_string() + if *differences { " differences" } else { "" }
            }
            LoopKind::Matmul(matmul) => matmul_text(kernel, matmul),
            LoopKind::Pairwise(pairwise) => {
                let term = named(&Term::NAMES, pairwise.term);
                let by = named(&PairwiseLoops::NAMES, pairwise.by);
                let turned = if pairwise.turned { " turned" } else { "" };
                let mut text = format!("{own} {term} by {by}{turned}");
                for (word, indices) in [
                    ("batch", &pairwise.batch),
                    ("rows", &pairwise.rows),
                    ("columns", &pairwise.columns),
                    ("terms", &pairwise.terms),
                ] {
                    text += &indices_text(kernel, word, indices);
                }
                if let Some(product) = &pairwise.product {
                    text += &format!(" or {}", matmul_text(kernel, product));
                }
                text
            }
        }
    }
}

fn matmul_text(kernel: &Kernel, matmul: &Matmul) -> String {
    let mut text = String::from(if matmul.turned {
        "matmul turned"
    } else {
        "matmul"
    });
    for (word, indices) in [
        ("batch", &matmul.batch),
        ("rows", &matmul.rows),
        ("columns", &matmul.columns),
        ("inner", &matmul.inner),
    ] {
        text += &indices_text(kernel, word, indices);
    }
    if let Some(bounded) = &matmul.bounded {
        let index = name(kernel, bounded.index);
        let by = indices_text(kernel, "by", &bounded.by);
        text += &format!(" bounded {index}{by}");
    }
    if let Some(tiling) = &matmul.tiling {
        text += &tiling.text(kernel, [&matmul.rows, &matmul.columns, &matmul.inner]);
    }
    text
}

/// ` m along n inclusive`.
fn scan_text(kernel: &Kernel, scan: &Scan) -> String {
    let (reduced, output) = (name(kernel, scan.reduced), name(kernel, scan.output));
    let way = if scan.suffix { "against" } else { "along" };
    let inclusive = if scan.inclusive { " inclusive" } else { "" };
    format!(" {reduced} {way} {output}{inclusive}")
}

/// ` rows [i, j]`, or nothing for no index.
pub(super) fn indices_text(kernel: &Kernel, word: &str, indices: &[IndexId]) -> String {
    if indices.is_empty() {
        return String::new();
    }
    let space = if word.is_empty() { "" } else { " " };
    let indices = indices.iter().map(|index| name(kernel, *index));
    format!("{space}{word} [{}]", list(indices))
}

/// The text of an index of a kernel.
pub(super) fn name(kernel: &Kernel, index: IndexId) -> String {
    reference(kernel.indices.iter().map(|i| i.name.as_str()), index.0)
}

fn named<T: Copy + PartialEq>(names: &[(T, &'static str)], value: T) -> &'static str {
    let found = names.iter().find(|(known, _)| *known == value);
    found.map_or("", |(_, name)| *name)
}

impl Line<'_> {
    /// The loops of a kernel.
    pub(crate) fn loop_kernel(&mut self, kernel: &Kernel) -> Result<LoopKernel> {
        let kind = self.loop_kind(kernel)?;
        let mut fused = None;
        let mut fixed = vec![];
        if self.eat_word("at") {
            self.expect("[")?;
            fixed = self.list("]", |line| {
                let index = line.kernel_index(kernel)?;
                line.expect("=")?;
                let position = match line.at_number() || line.peek_symbol() == Some("-") {
                    true => Position::Constant(line.integer()?),
                    false => Position::Scalar(line.numbered('a')?),
                };
                Ok((index, position))
            })?;
        }
        let rows = self.row_loops(kernel)?;
        if self.eat_word("of") {
            self.expect("[")?;
            let operands = self.list("]", |line| Ok((line.numbered('m')?, line.integer()?)))?;
            self.expect_word("as")?;
            let kernel = self.kernel()?;
            fused = Some(Box::new(Fused { kernel, operands }));
        }
        Ok(LoopKernel {
            kind,
            fixed,
            rows,
            fused,
        })
    }

    fn loop_kind(&mut self, kernel: &Kernel) -> Result<LoopKind> {
        Ok(match self.word()? {
            "library" => LoopKind::Library,
            "elementwise" => LoopKind::Elementwise,
            "gather" => LoopKind::Gather,
            "patched" => LoopKind::Patched,
            "selection" => LoopKind::Selection,
            "row_product" => LoopKind::RowProduct,
            "gathered_sum" => LoopKind::GatheredSum,
            "gathered_matmul" => LoopKind::GatheredMatmul,
            "scattered_matmul" => LoopKind::ScatteredMatmul,
            "inlined" => LoopKind::Inlined,
            "strips" => LoopKind::Strips,
            "scatter" => LoopKind::Scatter(self.kernel_indices(kernel, "")?),
            "lookup" => LoopKind::Lookup(self.kernel_indices(kernel, "")?),
            "scan" => LoopKind::Scan(self.scan(kernel)?),
            "grouped" => LoopKind::Grouped(Grouped {
                passed: self.kernel_indices(kernel, "")?,
                scan: match self.eat_word("scan") {
                    true => Some(self.scan(kernel)?),
                    false => None,
                },
            }),
            "segments" => LoopKind::Segments(Segments {
                reduced: self.kernel_index(kernel)?,
                by: self.kernel_indices(kernel, "by")?,
            }),
            "row_reduction" => LoopKind::RowReduce(RowReduce {
                differences: self.eat_word("differences"),
            }),
            "matmul" => LoopKind::Matmul(self.matmul(kernel)?),
            "pairwise" => {
                let term = self.one_of(&Term::NAMES, "a form of terms")?;
                self.expect_word("by")?;
                LoopKind::Pairwise(Pairwise {
                    term,
                    by: self.one_of(&PairwiseLoops::NAMES, "a kind of loops")?,
                    turned: self.eat_word("turned"),
                    batch: self.kernel_indices(kernel, "batch")?,
                    rows: self.kernel_indices(kernel, "rows")?,
                    columns: self.kernel_indices(kernel, "columns")?,
                    terms: self.kernel_indices(kernel, "terms")?,
                    product: match self.eat_word("or") {
                        true => {
                            self.expect_word("matmul")?;
                            Some(Box::new(self.matmul(kernel)?))
                        }
                        false => None,
                    },
                })
            }
            _ => return Err(self.error_before("a kind of loops such as `matmul`")),
        })
    }

    fn scan(&mut self, kernel: &Kernel) -> Result<Scan> {
        let reduced = self.kernel_index(kernel)?;
        let suffix = self.eat_word("against");
        if !suffix {
            self.expect_word("along")?;
        }
        let output = self.kernel_index(kernel)?;
        let inclusive = self.eat_word("inclusive");
        Ok(Scan {
            output,
            reduced,
            suffix,
            inclusive,
        })
    }

    fn matmul(&mut self, kernel: &Kernel) -> Result<Matmul> {
        let mut matmul = Matmul {
            turned: self.eat_word("turned"),
            batch: self.kernel_indices(kernel, "batch")?,
            rows: self.kernel_indices(kernel, "rows")?,
            columns: self.kernel_indices(kernel, "columns")?,
            inner: self.kernel_indices(kernel, "inner")?,
            bounded: match self.eat_word("bounded") {
                true => Some(Bounded {
                    index: self.kernel_index(kernel)?,
                    by: self.kernel_indices(kernel, "by")?,
                }),
                false => None,
            },
            tiling: None,
        };
        let product = [&matmul.rows[..], &matmul.columns, &matmul.inner];
        matmul.tiling = self.tiling(kernel, product)?;
        Ok(matmul)
    }

    /// The indices behind a word, if that is next; without a word a list must be.
    pub(super) fn kernel_indices(&mut self, kernel: &Kernel, word: &str) -> Result<Vec<IndexId>> {
        if !word.is_empty() && !self.eat_word(word) {
            return Ok(vec![]);
        }
        self.expect("[")?;
        self.list("]", |line| line.kernel_index(kernel))
    }

    pub(super) fn kernel_index(&mut self, kernel: &Kernel) -> Result<IndexId> {
        let names = kernel.indices.iter().map(|index| index.name.as_str());
        Ok(IndexId(self.reference(names, "an index of the kernel")?))
    }

    pub(super) fn one_of<T: Copy>(
        &mut self,
        names: &[(T, &'static str)],
        expected: &str,
    ) -> Result<T> {
        let word = self.word()?;
        let found = names.iter().find(|(_, name)| *name == word);
        found
            .map(|(value, _)| *value)
            .ok_or_else(|| self.error_before(expected))
    }
}
