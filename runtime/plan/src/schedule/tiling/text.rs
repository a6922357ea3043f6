//! The text of a tiling, with the names of the kernel's indices.
//!
//! Indices of one value are left out, and so is what is usual: blocks that have all indices of the product's rows, columns and inner terms, in their
//! order, lie in the output, and multiply the factors where they are. Must not know how a tiling is chosen.
//!
//! ```text
//! tiles [i: 256 of 4096, j: 64, k: 512] block_inner [l, k] left packed right copied scattered
//! ```

use super::Tiling;
use super::layout::FactorHandling;
use crate::kernel::{IndexId, Kernel};
use crate::parse::{Line, Result};
use crate::print::list;
use crate::schedule::text::{indices_text, name};

/// The words for what is not usual.
const HANDLINGS: [(FactorHandling, &str); 2] = [
    (FactorHandling::Copied, "copied"),
    (FactorHandling::Packed, "packed"),
];

/// The rows, columns and inner terms of a block, unless a tiling says otherwise: those of the product.
fn usual([rows, columns, inner]: [&[IndexId]; 3], swapped: bool) -> [&[IndexId]; 3] {
    match swapped {
        true => [columns, rows, inner],
        false => [rows, columns, inner],
    }
}

impl Tiling {
    /// The text, behind a space, of a tiling of a product with these rows, columns and inner terms.
    pub(in crate::schedule) fn text(&self, kernel: &Kernel, product: [&[IndexId]; 3]) -> String {
        let mut text = format!(" tiles [{}]", list(self.sizes(kernel, &self.tile)));
        if let Some(apart) = &self.apart {
            text += &format!(" apart [{}]", list(self.sizes(kernel, apart)));
        }
        text += if self.swapped { " swapped" } else { "" };
        let own = [&self.rows, &self.columns, &self.inner];
        let words = ["block_rows", "block_columns", "block_inner"];
        for ((word, own), usual) in words.iter().zip(own).zip(usual(product, self.swapped)) {
            if own != usual {
                text += &indices_text(kernel, word, own);
            }
        }
        text += &indices_text(kernel, "many", &self.many);
        for (word, own) in [("left", self.left), ("right", self.right)] {
            if let Some((_, how)) = HANDLINGS.iter().find(|(known, _)| *known == own) {
                text += &format!(" {word} {how}");
            }
        }
        text + if self.scattered { " scattered" } else { "" }
    }

    /// `i: 256 of 4096` for each index of several values.
    fn sizes(&self, kernel: &Kernel, tile: &[u64]) -> Vec<String> {
        let sizes = self.lengths.iter().zip(tile).enumerate();
        let several = sizes.filter(|(_, (length, _))| **length > 1);
        let text = several.map(|(index, (length, tile))| {
            let name = name(kernel, IndexId(index as u32));
            match tile == length {
                true => format!("{name}: {tile}"),
                false => format!("{name}: {tile} of {length}"),
            }
        });
        text.collect()
    }
}

impl Line<'_> {
    /// The tiling of a product with these rows, columns and inner terms, if one is next.
    pub(in crate::schedule) fn tiling(
        &mut self,
        kernel: &Kernel,
        product: [&[IndexId]; 3],
    ) -> Result<Option<Box<Tiling>>> {
        if !self.eat_word("tiles") {
            return Ok(None);
        }
        let (tile, lengths) = self.tile_sizes(kernel)?;
        let apart = match self.eat_word("apart") {
            true => Some(self.tile_sizes(kernel)?.0),
            false => None,
        };
        let swapped = self.eat_word("swapped");
        let mut of_block = [vec![], vec![], vec![]];
        let words = ["block_rows", "block_columns", "block_inner"];
        for ((word, own), usual) in words.iter().zip(&mut of_block).zip(usual(product, swapped)) {
            *own = self.kernel_indices(kernel, word)?;
            if own.is_empty() {
                *own = usual.to_vec();
            }
        }
        let [rows, columns, inner] = of_block;
        Ok(Some(Box::new(Tiling {
            lengths,
            tile,
            apart,
            swapped,
            rows,
            columns,
            inner,
            many: self.kernel_indices(kernel, "many")?,
            left: self.handling("left")?,
            right: self.handling("right")?,
            scattered: self.eat_word("scattered"),
        })))
    }

    /// Values of each index in a block, and in the tuple.
    fn tile_sizes(&mut self, kernel: &Kernel) -> Result<(Vec<u64>, Vec<u64>)> {
        let mut tile = vec![1; kernel.indices.len()];
        let mut lengths = tile.clone();
        self.expect("[")?;
        self.list("]", |line| {
            let index = line.kernel_index(kernel)?.0 as usize;
            line.expect(":")?;
            tile[index] = line.integer()?;
            lengths[index] = match line.eat_word("of") {
                true => line.integer()?,
                false => tile[index],
            };
            Ok(())
        })?;
        Ok((tile, lengths))
    }

    fn handling(&mut self, word: &str) -> Result<FactorHandling> {
        match self.eat_word(word) {
            true => self.one_of(&HANDLINGS, "`copied` or `packed`"),
            false => Ok(FactorHandling::InPlace),
        }
    }
}
