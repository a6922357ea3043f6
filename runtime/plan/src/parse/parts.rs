//! Reads what lines are made of: types, kernels, keys, meshes, sources.
//!
//! Must not know statements, nor plans.
//!
//! ```text
//! {i: 10/2, k: 6/1} f32[i, k] @ PART(i)   ->   a relation type
//! ```

use super::expression::{body, indices};
use super::line::{Line, Result};
use crate::dtype::DType;
use crate::ids::RelationId;
use crate::kernel::{Graph, Kernel, NodeId, Operand};
use crate::mesh::Mesh;
use crate::plan::Fold;
use crate::print::AXES;
use crate::reduction::Reduction;
use crate::relation::{ArrayDim, ArrayType, AxisRole, KeyDim, Placement, RelationType, Window};
use crate::source::{FileRef, ListColumn, Part, Source};

impl Line<'_> {
    /// `r3`.
    pub fn relation(&mut self) -> Result<RelationId> {
        self.numbered('r').map(RelationId)
    }

    /// A key dimension, by its name or as `#2`.
    pub fn key(&mut self, keys: &[KeyDim]) -> Result<u32> {
        self.reference(keys.iter().map(|k| k.name.as_str()), "a key dimension")
    }

    /// The name of a reduction.
    pub fn reduction(&mut self) -> Result<Reduction> {
        match Reduction::from_name(self.word()?) {
            Some(reduction) => Ok(reduction),
            None => Err(self.error_before("a reduction such as `sum`")),
        }
    }

    /// `f32`.
    pub fn dtype(&mut self) -> Result<DType> {
        match DType::from_name(self.word()?) {
            Some(dtype) if !dtype.is_complex() => Ok(dtype),
            _ => Err(self.error_before("an element type such as `f32`")),
        }
    }

    /// `f32`, or `(f32, i64)`.
    pub fn columns(&mut self) -> Result<Vec<DType>> {
        if self.eat("(") {
            self.list(")", Line::dtype)
        } else {
            Ok(vec![self.dtype()?])
        }
    }

    /// `(f32[10, 6]) [i: 10 | k: 6] f32 = sum a0[i, k]`; the kernel is canonical.
    pub fn kernel(&mut self) -> Result<Kernel> {
        self.expect("(")?;
        let operands = self.list(")", |line| {
            let columns = line.columns()?;
            line.expect("[")?;
            let shape = line.list("]", Line::integer)?;
            Ok(Operand { columns, shape })
        })?;
        let (indices, output_rank) = indices(self)?;
        let output = self.columns()?;
        self.expect("=")?;
        let mut kernel = Kernel {
            indices,
            output_rank,
            operands,
            graph: Graph::default(),
            root: NodeId(0),
            guard: None,
            reduction: None,
            finish: true,
            output,
        };
        let operands = std::mem::take(&mut kernel.operands);
        body(self, &mut kernel, &|name| {
            let number: u32 = name.strip_prefix('a')?.parse().ok()?;
            let operand = operands.get(number as usize)?;
            Some((number, operand.columns.clone()))
        })?;
        kernel.operands = operands;
        Ok(kernel.canonical())
    }

    /// `i: 10/2`, `i: 16/4@xy`, `i: 6/2@_`.
    pub fn key_dim(&mut self) -> Result<KeyDim> {
        let name = self.name()?;
        self.expect(":")?;
        let extent = self.integer()?;
        self.expect("/")?;
        let pieces = self.integer()?;
        let mut axes = vec![0];
        if self.eat("@") {
            let letters = self.word()?;
            let known = |letter: char| AXES.iter().position(|axis| *axis == letter);
            let numbers = letters
                .chars()
                .map(|letter| known(letter).map(|at| at as u8));
            axes = match letters {
                "_" => vec![],
                _ => numbers
                    .collect::<Option<_>>()
                    .ok_or_else(|| self.error_before("axes such as `xy`"))?,
            };
        }
        Ok(KeyDim {
            name,
            extent,
            pieces,
            axes,
        })
    }

    /// What follows `fold` before the inputs; nothing after `join`.
    pub fn fold(&mut self, word: &str) -> Result<Option<Fold>> {
        if word != "fold" {
            return Ok(None);
        }
        self.expect("{")?;
        let keys = self.list("}", Line::key_dim)?;
        self.expect_word("keep")?;
        self.expect("{")?;
        let keep = self.list("}", |line| line.key(&keys))?;
        Ok(Some(Fold { keys, keep }))
    }

    /// `mesh 2x3`, or nothing for all sites in a row.
    pub fn mesh(&mut self, sites: u32) -> Result<Mesh> {
        if !self.eat_word("mesh") {
            return Ok(Mesh::row(sites));
        }
        let mut axes = vec![self.integer()?];
        if let Some(more) = self.eat_word_after('x') {
            for count in more.split('x').skip(1) {
                let count = count.parse();
                axes.push(count.map_err(|_| self.error_before("a mesh such as `2x3`"))?);
            }
        }
        Ok(Mesh { axes })
    }

    /// `{i: 10/2, k: 6/1} f32[i, k]`.
    pub fn keys_and_array(&mut self) -> Result<(Vec<KeyDim>, ArrayType)> {
        self.expect("{")?;
        let keys = self.list("}", Line::key_dim)?;
        let columns = self.columns()?;
        self.expect("[")?;
        let dims = self.list("]", |line| line.array_dim(&keys))?;
        Ok((keys, ArrayType { dims, columns }))
    }

    /// `6`, `i`, `i: 10`, or a window: `2*i-1..2*i+1 of 100`.
    fn array_dim(&mut self, keys: &[KeyDim]) -> Result<ArrayDim> {
        let (key, scale, low, divisor) = self.quotient(keys)?;
        if !self.eat("..") {
            return match (key, scale, u64::try_from(low)) {
                _ if divisor != 1 => Err(self.error("`..`")),
                (None, _, Ok(extent)) => Ok(ArrayDim::whole(extent)),
                (Some(cut), 1, Ok(0)) => {
                    let extent = match self.eat(":") {
                        true => self.integer()?,
                        false => keys.get(cut as usize).map_or(0, |k: &KeyDim| k.extent),
                    };
                    Ok(ArrayDim::new(extent, Some(cut)))
                }
                _ => Err(self.error("`..`")),
            };
        }
        let (same, again, high, by) = self.quotient(keys)?;
        self.require(
            (same, again, by) == (key, scale, divisor),
            "the ends of a window move alike",
        )?;
        self.expect_word("of")?;
        let extent = self.integer()?;
        let window = Window {
            key,
            scale,
            low,
            high,
            divisor,
        };
        Ok(ArrayDim::windowed(extent, window))
    }

    /// One end of a window: the key dimension that moves it, how far, the offset, and what all of it is divided by.
    fn quotient(&mut self, keys: &[KeyDim]) -> Result<(Option<u32>, i64, i64, i64)> {
        let (key, scale, offset) = match self.eat("(") {
            false => self.bound(keys)?,
            true => {
                let bound = self.bound(keys)?;
                self.expect(")")?;
                bound
            }
        };
        let divisor = match self.eat("/") {
            true => self.integer()?,
            false => 1,
        };
        Ok((key, scale, offset, divisor))
    }

    /// An affine form: the key dimension that moves it, how far, and the offset.
    fn bound(&mut self, keys: &[KeyDim]) -> Result<(Option<u32>, i64, i64)> {
        let sign = if self.eat("-") { -1 } else { 1 };
        let mut scale: i64 = 1;
        if self.at_number() {
            scale = self.integer()?;
            if !self.eat("*") {
                return Ok((None, 0, sign * scale));
            }
        }
        let key = self.key(keys)?;
        let offset: i64 = match (self.eat("+"), self.eat("-")) {
            (true, _) => self.integer()?,
            (_, true) => -self.integer::<i64>()?,
            _ => 0,
        };
        Ok((Some(key), sign * scale, offset))
    }

    /// `{i: 10/2, k: 6/1} f32[i, k] @ PART(i)`.
    pub fn relation_type(&mut self) -> Result<RelationType> {
        let (keys, array) = self.keys_and_array()?;
        self.expect("@")?;
        let roles = match self.word()? {
            "ALL" => vec![AxisRole::Every],
            "ONE" => vec![AxisRole::First],
            "PART" => {
                self.expect("(")?;
                let key = self.key(&keys)?;
                self.expect(")")?;
                vec![AxisRole::Key(key)]
            }
            "GRID" => {
                self.expect("(")?;
                self.list(")", |line| {
                    Ok(if line.eat("*") {
                        AxisRole::Every
                    } else if line.eat(".") {
                        AxisRole::First
                    } else {
                        AxisRole::Key(line.key(&keys)?)
                    })
                })?
            }
            _ => return Err(self.error_before("a placement such as `ALL` or `PART(i)`")),
        };
        let placement = Placement { roles };
        Ok(RelationType {
            keys,
            array,
            placement,
        })
    }

    /// `normal(0.0, 0.02)`, `stacked(1, "enc.0.w" zeros, …)`.
    pub fn source(&mut self) -> Result<Source> {
        let word = self.word()?;
        if word == "listed" {
            return self.listed_source();
        }
        if word != "stacked" {
            return self.plain_source(word);
        }
        self.expect("(")?;
        let leading = self.integer()?;
        let mut parts = vec![];
        while self.eat(",") {
            let name = self.quoted()?;
            let word = self.word()?;
            let source = self.plain_source(word)?;
            parts.push(Part { name, source });
        }
        self.expect(")")?;
        Ok(Source::Stacked { leading, parts })
    }

    /// `("A", f32, values by 1, load("a.mtx"))`.
    fn listed_source(&mut self) -> Result<Source> {
        self.expect("(")?;
        let tensor = self.quoted()?;
        self.expect(",")?;
        let dtype = self.dtype()?;
        self.expect(",")?;
        let column = if self.eat_word("values") {
            ListColumn::Values
        } else if self.eat_word("starts") {
            ListColumn::Starts
        } else {
            ListColumn::Positions(self.integer()?)
        };
        let by = match self.eat_word("by") {
            true => self.integer()?,
            false => 0,
        };
        self.expect(",")?;
        let word = self.word()?;
        let file = match self.plain_source(word)? {
            Source::Load(file) => Some(file),
            Source::Unbound => None,
            _ => return Err(self.error_before("`unbound` or `load(…)`")),
        };
        self.expect(")")?;
        Ok(Source::Listed {
            tensor,
            file,
            dtype,
            column,
            by,
        })
    }

    /// A source of one tensor, behind its first word.
    fn plain_source(&mut self, word: &str) -> Result<Source> {
        let simple = match word {
            "unbound" => Some(Source::Unbound),
            "iota" => Some(Source::Iota),
            "gumbel" => Some(Source::Gumbel),
            "permutation" => Some(Source::Permutation),
            "fed" => Some(Source::Fed),
            "kept" => Some(Source::Kept),
            _ => None,
        };
        if let Some(source) = simple {
            return Ok(source);
        }
        if !["load", "full", "numbers", "uniform", "normal", "bernoulli"].contains(&word) {
            return Err(self.error_before("a source such as `load(…)` or `normal(…)`"));
        }
        self.expect("(")?;
        let source = match word {
            "load" => {
                let path = self.quoted()?;
                let key = self.eat(",").then(|| self.quoted()).transpose()?;
                Source::Load(FileRef { path, key })
            }
            "full" => Source::Full(self.number(None)?.0),
            "numbers" => {
                let mut values = vec![self.number(None)?.0];
                while self.eat(",") {
                    values.push(self.number(None)?.0);
                }
                Source::Numbers(values)
            }
            "bernoulli" => Source::Bernoulli { p: self.float()? },
            _ => {
                let first = self.float()?;
                self.expect(",")?;
                let second = self.float()?;
                if word == "uniform" {
                    Source::Uniform {
                        lo: first,
                        hi: second,
                    }
                } else {
                    Source::Normal {
                        mean: first,
                        std: second,
                    }
                }
            }
        };
        self.expect(")")?;
        Ok(source)
    }
}
