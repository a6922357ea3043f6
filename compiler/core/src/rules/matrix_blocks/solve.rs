//! A system by elimination, column of blocks by column.
//!
//! With T the matrix as columns of blocks T[i, J, j], for every k: the first column is factored with its own pivots, P T[:, 0] = L U;
//! the rows of the rest and of the right sides stand in that order, P T = [L₁ 0; L₂ 1] [V; T′] and P b = [L₁ 0; L₂ 1] [y; b′], and T′, b′ go
//! on. Then back: U x = y − V x′. Beyond the matrix stands the identity. Must not know sites.
//!
//! ```text
//! lu0 = lu(column0);  right0 = solve(lower0, T[order0], …);  rest1 = T[order0] - below0 * right0;  …  x0 = solve(upper0, y0 - right0 * x1)
//! ```

use super::{BLOCKS, Writer};
use ein_plan::{IndexId, Kernel, Library};
use std::fmt::Write;

/// Items in the brackets of a read or a range, those that are there.
fn items(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|p| !p.is_empty()).collect();
    parts.join(", ")
}

/// The indices of the right sides.
struct Sides {
    names: String,
    ranges: String,
    extents: String,
    /// The right side, at row `i`.
    read: String,
    shape: String,
    /// The indices of the result in their order, its rows being `i`.
    result: String,
    result_shape: String,
}

impl Sides {
    fn new(kernel: &Kernel, library: &Library) -> Sides {
        let name = |index: IndexId| {
            let own = &kernel.indices[index.0 as usize].name;
            // Names that mean something here, or that the text cannot hold, give way.
            let plain = own.chars().all(|letter| letter.is_ascii_alphabetic());
            match plain && !["i", "j", "l", "x", "J"].contains(&own.as_str()) {
                true => own.clone(),
                false => format!("s{}", index.0),
            }
        };
        let extent = |index: IndexId| kernel.indices[index.0 as usize].extent;
        let list = |each: &dyn Fn(IndexId) -> String| {
            let all: Vec<String> = library.batch.iter().map(|index| each(*index)).collect();
            all.join(", ")
        };
        let argument = &library.arguments[1];
        let read: Vec<String> = argument
            .at
            .iter()
            .map(|at| at.map_or("i".to_owned(), name))
            .collect();
        let shape = &kernel.operands[argument.operand as usize].shape;
        let shape: Vec<String> = shape.iter().map(u64::to_string).collect();
        let result = (0..kernel.output_rank).map(IndexId);
        let result: Vec<(String, u64)> = result
            .map(|index| match library.own.contains(&index) {
                true => ("i".to_owned(), extent(index)),
                false => (name(index), extent(index)),
            })
            .collect();
        let ranges: Vec<String> = result.iter().map(|(i, n)| format!("{i}: {n}")).collect();
        let extents: Vec<String> = result.iter().map(|(_, n)| n.to_string()).collect();
        Sides {
            names: list(&name),
            ranges: list(&|index| format!("{}: {}", name(index), extent(index))),
            extents: list(&|index| extent(index).to_string()),
            read: read.join(", "),
            shape: shape.join(", "),
            result: ranges.join(", "),
            result_shape: extents.join(", "),
        }
    }
}

impl Writer {
    /// Returns the name of a tensor of step `k`.
    fn named(&self, what: &str, k: u64) -> String {
        self.name(&format!("{what}{k}"))
    }

    pub(super) fn solve(&self, kernel: &Kernel, library: &Library) -> String {
        let Writer {
            n, dtype, number, ..
        } = self;
        let sides = Sides::new(kernel, library);
        let b = n.div_ceil(BLOCKS);
        let blocks = n.div_ceil(b);
        let rows = blocks * b;
        let column = format!("{b} * J + j");
        let matrix = self.matrix("i", &column);
        let (rest, right) = (self.named("rest", 0), self.side("side", 0));
        let (ranges, extents) = (
            items(&[&sides.ranges, &format!("i: {rows}")]),
            items(&[&sides.extents, &rows.to_string()]),
        );
        let mut text = format!(
            "input A: {dtype}[{n}, {n}] = unbound\n\
             input b: {dtype}[{}] = unbound\n\
             hidden {rest}: {dtype}[{rows}, {blocks}, {b}] = [i: {rows}, J: {blocks}, j: {b}] \
             {matrix} else (where(i == {column}, 1.0{number}, 0.0{number}))\n\
             hidden {right}: {dtype}[{extents}] = [{ranges}] b[{}] else 0.0{number}\n",
            sides.shape, sides.read
        );
        for k in 0..blocks {
            self.eliminate(&mut text, &sides, k, b, blocks - k);
        }
        for k in (0..blocks).rev() {
            self.back(&mut text, &sides, k, b, blocks - k - 1);
        }
        let solution = self.side("solution", 0);
        let at = items(&[&sides.names, &format!("floordiv(i, {b}), rem(i, {b})")]);
        let _ = writeln!(
            text,
            "result: {dtype}[{}] = [{}] {solution}[{at}]",
            sides.result_shape, sides.result
        );
        text
    }

    /// Step `k`, of which `left` columns of blocks of size `b` are left.
    fn eliminate(&self, text: &mut String, sides: &Sides, k: u64, b: u64, left: u64) {
        let Writer { dtype, number, .. } = self;
        let named = |what: &str| self.named(what, k);
        let side_named = |what: &str| self.side(what, k);
        let (rest, side) = (named("rest"), side_named("side"));
        let (column, lu, order) = (named("column"), named("lu"), named("order"));
        let (lower, upper, below) = (named("lower"), named("upper"), named("below"));
        let (turned, head) = (side_named("turned"), side_named("head"));
        let known = side_named("known");
        let (m, names) = (left * b, &sides.names);
        let own = |read: &str| items(&[names, read]);
        let over = |range: &str| items(&[&sides.ranges, range]);
        let shape = |extents: &str| items(&[&sides.extents, extents]);
        let packed = m + m * b;
        let _ = writeln!(
            text,
            "hidden {column}: {dtype}[{m}, {b}] = [i: {m}, j: {b}] {rest}[i, 0, j]\n\
             hidden {lu}: {dtype}[{packed}] = [x: {packed}] lu({column}[:1, :2], x)\n\
             hidden {order}: i64[{m}] = [i: {m}] i64({lu}[i])\n\
             hidden {lower}: {dtype}[{b}, {b}] = [i: {b}, j: {b}] where(j < i, {lu}[{m} + {b} * i + j], where(i == j, 1.0{number}, 0.0{number}))\n\
             hidden {upper}: {dtype}[{b}, {b}] = [i: {b}, j: {b}] where(j < i, 0.0{number}, {lu}[{m} + {b} * i + j])\n\
             hidden {turned}: {dtype}[{}] = [{}] {side}[{}]\n\
             hidden {head}: {dtype}[{}] = [{}] {turned}[{}]\n\
             hidden {known}: {dtype}[{}] = [{}] solve({lower}[:1, :2], {head}[{}], i)",
            shape(&m.to_string()),
            over(&format!("i: {m}")),
            own(&format!("{order}[i]")),
            shape(&b.to_string()),
            over(&format!("i: {b}")),
            own("i"),
            shape(&b.to_string()),
            over(&format!("i: {b}")),
            own(":1"),
        );
        if left == 1 {
            return;
        }
        let (others, rows) = (left - 1, m - b);
        let (moved, top, right) = (named("moved"), named("top"), named("right"));
        let (update, effect) = (named("update"), side_named("effect"));
        let (next, after) = (self.named("rest", k + 1), self.side("side", k + 1));
        let _ = writeln!(
            text,
            "hidden {below}: {dtype}[{rows}, {b}] = [i: {rows}, l: {b}] {lu}[{} + {b} * i + l]\n\
             hidden {moved}: {dtype}[{m}, {others}, {b}] = [i: {m}, J: {others}, j: {b}] {rest}[{order}[i], J + 1, j]\n\
             hidden {top}: {dtype}[{others}, {b}, {b}] = [J: {others}, j: {b}, l: {b}] {moved}[l, J, j]\n\
             hidden {right}: {dtype}[{others}, {b}, {b}] = [J: {others}, j: {b}, l: {b}] solve({lower}[:1, :2], {top}[J, j, :1], l)\n\
             hidden {update}: {dtype}[{rows}, {others}, {b}] = [i: {rows}, J: {others}, j: {b} | l: {b}] sum {below}[i, l] * {right}[J, j, l]\n\
             hidden {next}: {dtype}[{rows}, {others}, {b}] = [i: {rows}, J: {others}, j: {b}] {moved}[i + {b}, J, j] - {update}[i, J, j]\n\
             hidden {effect}: {dtype}[{}] = [{} | l: {b}] sum {below}[i, l] * {known}[{}]\n\
             hidden {after}: {dtype}[{}] = [{}] {turned}[{}] - {effect}[{}]",
            m + b * b,
            shape(&rows.to_string()),
            over(&format!("i: {rows}")),
            own("l"),
            shape(&rows.to_string()),
            over(&format!("i: {rows}")),
            own(&format!("i + {b}")),
            own("i"),
        );
    }

    /// The solution of the rows of step `k` and all behind them, of which there are `behind` blocks.
    fn back(&self, text: &mut String, sides: &Sides, k: u64, b: u64, behind: u64) {
        let Writer { dtype, number, .. } = self;
        let (upper, right) = (self.named("upper", k), self.named("right", k));
        let named = |what: &str| self.side(what, k);
        let (known, part, rest) = (named("known"), named("part"), named("reduced"));
        let solution = named("solution");
        let names = &sides.names;
        let own = |read: &str| items(&[names, read]);
        let over = |range: &str| items(&[&sides.ranges, range]);
        let shape = |extents: &str| items(&[&sides.extents, extents]);
        let (range, extent) = (over(&format!("i: {b}")), shape(&b.to_string()));
        let at = own("i");
        let mut side = known.clone();
        let mut behind_it = format!("0.0{number}");
        if behind > 0 {
            let (inner, later) = (named("inner"), self.side("solution", k + 1));
            let _ = writeln!(
                text,
                "hidden {inner}: {dtype}[{extent}] = [{range} | J: {behind}, j: {b}] sum {right}[J, j, i] * {later}[{}]\n\
                 hidden {rest}: {dtype}[{extent}] = [{range}] {known}[{at}] - {inner}[{at}]",
                own("J, j"),
            );
            side = rest;
            behind_it = format!("{later}[{}] else 0.0{number}", own("J - 1, j"));
        }
        let count = behind + 1;
        let _ = writeln!(
            text,
            "hidden {part}: {dtype}[{extent}] = [{range}] solve({upper}[:1, :2], {side}[{}], i)\n\
             hidden {solution}: {dtype}[{}] = [{}] where(J == 0, {part}[{}], {behind_it})",
            own(":1"),
            shape(&format!("{count}, {b}")),
            over(&format!("J: {count}, j: {b}")),
            own("j"),
        );
    }
}
