//! Large library operations by blocks: programs in which their arithmetic can be cut over sites.
//!
//! An operation on one matrix is a single call, which no cut makes cheaper. Here it becomes many statements: contractions
//! over blocks, and small calls on some of them. Only forms that are as stable as the call itself are there: a Cholesky
//! factor column of blocks by column (right-looking; Golub and Van Loan, section 4.2.9), an inverse as the solutions for the
//! columns of the identity, and a solution by elimination with the pivots of whole columns (`solve`). Elimination of two by two
//! blocks, as the papers' block inverse has it, would pivot within a block only, and stop where a leading block is singular though the matrix is
//! not. Must not know sites or costs: the search lays the program out beside the others.
//!
//! ```text
//! Y = [i: 900, j: 900] inv(A[:1, :2], i, j)   =>   Y.unit = [i, j] where(i == j, 1.0, 0.0);  Y = [i, j] solve(A[:1, :2], Y.unit[:1, j], i)
//! ```

mod solve;
#[cfg(test)]
mod tests;

use super::{Alternative, RuleInfo, RuleUse};
use crate::einsum::parse::parse;
use crate::einsum::{Definition, Program, Tensor, TensorId};
use ein_plan::print::Name;
use ein_plan::{Function, Kernel, Library};
use std::collections::HashSet;
use std::fmt::Write;

/// Smaller matrices are left to one call.
const LEAST: u64 = 512;
/// How many blocks there are along a side of a matrix that is factored.
const BLOCKS: u64 = 6;

const CHOLESKY: &str = "cholesky-blocks";
const INVERSE: &str = "inverse-columns";
const SOLVE: &str = "solve-blocks";

/// The rules of this family.
pub(super) fn rows() -> Vec<RuleInfo> {
    let row = |name, paper, left, right, note| RuleInfo {
        name,
        family: "matrix-blocks",
        paper,
        left,
        right,
        conditions: &[
            "one matrix of at least 512 rows",
            "more than one site",
            "not inside a `repeat`",
        ],
        note,
    };
    vec![
        row(
            CHOLESKY,
            "Golub and Van Loan, Matrix Computations, section 4.2.9",
            "L = cholesky(A)",
            "for each column of blocks: its diagonal block's factor, the blocks below solved against it, the rest updated",
            "The updates run over both triangles, so that one index of all blocks can be cut.",
        ),
        row(
            INVERSE,
            "classical",
            "Y = inv(A)",
            "Y = solve(A, 1)",
            "Each site factors A and solves for its own columns.",
        ),
        row(
            SOLVE,
            "Golub and Van Loan, Matrix Computations, sections 3.2.11 and 3.4",
            "x = solve(A, b)",
            "for each column of blocks: the column eliminated with its own pivots, the rows of the rest and of b in their order, the rest updated; then back",
            "The pivots are those of elimination element by element. The rest is cut by columns, whose rows can be exchanged where they are.",
        ),
    ]
}

/// The program with its large operations in blocks, if it has any that a rule is enabled for.
pub fn expand(program: &Program, disabled: &[String]) -> Option<Alternative> {
    if !program.blocks.is_empty() {
        return None;
    }
    let mut names: HashSet<String> = program.tensors.iter().map(|t| t.name.clone()).collect();
    let mut result = Program {
        files: program.files.clone(),
        ..Program::default()
    };
    let mut moved: Vec<TensorId> = vec![];
    let mut rules = vec![];
    for tensor in &program.tensors {
        let expanded = blocks(program, tensor, disabled, &mut names);
        match expanded {
            Some((rule, part, operands)) => {
                let operands: Vec<TensorId> =
                    operands.iter().map(|o| moved[o.0 as usize]).collect();
                rules.push(RuleUse {
                    rule,
                    tensor: tensor.name.clone(),
                    before: program.tensor_text(tensor),
                    after: format!(
                        "{} statements, `{}` to `{}`",
                        part.tensors.len() - operands.len(),
                        part.tensors[operands.len()].name,
                        tensor.name
                    ),
                });
                splice(&mut result, part, &operands, tensor);
            }
            None => {
                let mut tensor = tensor.clone();
                if let Definition::Statement { operands, .. } = &mut tensor.definition {
                    operands.iter_mut().for_each(|o| *o = moved[o.0 as usize]);
                }
                result.tensors.push(tensor);
            }
        }
        moved.push(TensorId(result.tensors.len() as u32 - 1));
    }
    if rules.is_empty() {
        return None;
    }
    for output in &program.outputs {
        let mut output = output.clone();
        output.tensor = moved[output.tensor.0 as usize];
        result.outputs.push(output);
    }
    let result = result.canonical();
    Some(Alternative::new(result, rules))
}

/// Appends the tensors of a part behind its first, which are `known`; the last one takes the place of `tensor`.
fn splice(result: &mut Program, part: Program, known: &[TensorId], tensor: &Tensor) {
    let base = result.tensors.len() as u32;
    let last = part.tensors.len() - 1;
    for (at, mut new) in part.tensors.into_iter().enumerate().skip(known.len()) {
        new.origin = tensor.origin;
        if at == last {
            new.name.clone_from(&tensor.name);
            new.role = tensor.role;
        }
        if let Definition::Statement { operands, .. } = &mut new.definition {
            for id in operands {
                *id = match known.get(id.0 as usize) {
                    Some(operand) => *operand,
                    None => TensorId(base + id.0 - known.len() as u32),
                };
            }
        }
        result.tensors.push(new);
    }
}

/// The rule for a tensor, its program, whose first tensors are what the operation is called with, and these.
fn blocks(
    program: &Program,
    tensor: &Tensor,
    disabled: &[String],
    names: &mut HashSet<String>,
) -> Option<(&'static str, Program, Vec<TensorId>)> {
    let Definition::Statement { kernel, operands } = &tensor.definition else {
        return None;
    };
    let library = kernel.library()?;
    let (n, _) = library.matrix(kernel, 0);
    if n < LEAST || !library.factored().is_empty() {
        return None;
    }
    let rule = match library.operation {
        Function::Cholesky => CHOLESKY,
        Function::Inv => INVERSE,
        Function::Solve => SOLVE,
        _ => return None,
    };
    if disabled.iter().any(|name| name == rule) {
        return None;
    }
    let arguments = library.arguments.iter();
    let arguments: Vec<TensorId> = arguments.map(|a| operands[a.operand as usize]).collect();
    let of = Writer {
        n,
        dtype: tensor.dtype.name(),
        number: match tensor.dtype {
            ein_plan::DType::F32 => "",
            _ => "_f64",
        },
        rows_first: library.arguments[0].whole == [0, 1],
        outputs: outputs(&library),
        prefix: prefix(&program.tensor(arguments[0]).name, names),
        side: match arguments.get(1) {
            Some(side) => prefix(&program.tensor(*side).name, names),
            None => String::new(),
        },
    };
    let text = of.text(kernel, &library)?;
    // The text is of this module's making: what does not parse is no alternative.
    let part = parse(&text).ok()?;
    (part.tensors.last()?.shape == tensor.shape).then_some((rule, part, arguments))
}

/// Returns whether the row is the output's first dimension, of a result with rows and columns.
fn outputs(library: &Library) -> bool {
    library.own.first() < library.own.get(1)
}

/// Returns the beginning of the names of new tensors: that of the tensor they are made of, so that messages name it.
fn prefix(tensor: &str, names: &mut HashSet<String>) -> String {
    let taken = |prefix: &String| {
        let begin = format!("{prefix}.");
        names.iter().any(|name| name.starts_with(&begin))
    };
    let prefixes = (1..).map(|number| ein_plan::blocks::prefix(tensor, number));
    let free = prefixes.into_iter().find(|prefix| !taken(prefix));
    let free = free.expect("there are more numbers than names");
    names.insert(format!("{free}."));
    free
}

/// Writes the statements of one operation.
struct Writer {
    n: u64,
    dtype: &'static str,
    /// The suffix of numbers.
    number: &'static str,
    rows_first: bool,
    outputs: bool,
    /// The beginning of the names of tensors that are made of the matrix, and of the right sides.
    prefix: String,
    side: String,
}

impl Writer {
    /// The statements behind what the operation is called with.
    fn text(&self, kernel: &Kernel, library: &Library) -> Option<String> {
        match library.operation {
            Function::Cholesky => Some(self.cholesky()),
            Function::Inv => Some(self.inverse()),
            Function::Solve => Some(self.solve(kernel, library)),
            _ => None,
        }
    }

    fn name(&self, what: &str) -> String {
        Name(&format!("{}.{what}", self.prefix)).to_string()
    }

    /// The name of a tensor that is made of the right sides.
    fn side(&self, what: &str, k: u64) -> String {
        Name(&format!("{}.{what}{k}", self.side)).to_string()
    }

    /// A read of the matrix.
    fn matrix(&self, row: &str, column: &str) -> String {
        match self.rows_first {
            true => format!("A[{row}, {column}]"),
            false => format!("A[{column}, {row}]"),
        }
    }

    /// The matrix, and where the result's rows and columns stand.
    fn begin(&self) -> (String, &'static str) {
        let (n, dtype) = (self.n, self.dtype);
        let order = match self.outputs {
            true => "r, c",
            false => "c, r",
        };
        (format!("input A: {dtype}[{n}, {n}] = unbound\n"), order)
    }

    fn inverse(&self) -> String {
        let Writer {
            n, dtype, number, ..
        } = self;
        let (mut text, order) = self.begin();
        let unit = self.name("unit");
        let indices = order
            .replace('r', &format!("r: {n}"))
            .replace('c', &format!("c: {n}"));
        let matrix = self.matrix(":1", ":2");
        let _ = writeln!(
            text,
            "hidden {unit}: {dtype}[{n}, {n}] = [r: {n}, c: {n}] where(r == c, 1.0{number}, 0.0{number})\n\
             inverse: {dtype}[{n}, {n}] = [{indices}] solve({matrix}, {unit}[:1, c], r)"
        );
        text
    }

    /// With T₀ the matrix as blocks T[I, J, i, j], for every k: L[k, k] L[k, k]ᵀ = T[0, 0], L[I, k] L[k, k]ᵀ = T[I, 0], and
    /// T − L L ᵀ goes on. Beyond the matrix stands the identity.
    fn cholesky(&self) -> String {
        let Writer {
            n, dtype, number, ..
        } = self;
        let b = n.div_ceil(BLOCKS);
        let blocks = n.div_ceil(b);
        let (mut text, order) = self.begin();
        let named = |what: &str, k: u64| self.name(&format!("{what}{k}"));
        let (r, c) = (format!("{b} * I + i"), format!("{b} * J + j"));
        let matrix = self.matrix(&format!("max({r}, {c})"), &format!("min({r}, {c})"));
        let _ = writeln!(
            text,
            "hidden {}: {dtype}[{blocks}, {blocks}, {b}, {b}] = [I: {blocks}, J: {blocks}, i: {b}, j: {b}] \
             {matrix} else (where({r} == {c}, 1.0{number}, 0.0{number}))",
            named("rest", 0)
        );
        let mut result = format!("0.0{number}");
        let mut columns = vec![];
        for k in 0..blocks {
            let m = blocks - k - 1;
            let (rest, block) = (named("rest", k), named("block", k));
            let (factor, below) = (named("factor", k), named("below", k));
            let (panel, update) = (named("panel", k), named("update", k));
            let _ = writeln!(
                text,
                "hidden {block}: {dtype}[{b}, {b}] = [i: {b}, j: {b}] {rest}[0, 0, i, j]\n\
                 hidden {factor}: {dtype}[{b}, {b}] = [i: {b}, j: {b}] cholesky({block}[:1, :2], i, j)"
            );
            let diagonal = format!("{factor}[r - {0}, c - {0}] else 0.0{number}", b * k);
            if m == 0 {
                columns.push(diagonal);
                break;
            }
            let next = named("rest", k + 1);
            let _ = writeln!(
                text,
                "hidden {panel}: {dtype}[{m}, {b}, {b}] = [I: {m}, i: {b}, l: {b}] {rest}[I + 1, 0, i, l]\n\
                 hidden {below}: {dtype}[{m}, {b}, {b}] = [I: {m}, i: {b}, l: {b}] solve({factor}[:1, :2], {panel}[I, i, :1], l)\n\
                 hidden {update}: {dtype}[{m}, {m}, {b}, {b}] = [I: {m}, J: {m}, i: {b}, j: {b} | l: {b}] sum {below}[I, i, l] * {below}[J, j, l]\n\
                 hidden {next}: {dtype}[{m}, {m}, {b}, {b}] = [I: {m}, J: {m}, i: {b}, j: {b}] {rest}[I + 1, J + 1, i, j] - {update}[I, J, i, j]"
            );
            columns.push(format!(
                "where(r < {}, {diagonal}, {below}[floordiv(r, {b}) - {}, rem(r, {b}), c - {}])",
                b * (k + 1),
                k + 1,
                b * k
            ));
        }
        for (k, column) in columns.iter().enumerate().rev() {
            let k = k as u64 + 1;
            result = match k == columns.len() as u64 {
                true => column.clone(),
                false => format!("where(c < {}, {column}, {result})", b * k),
            };
        }
        let indices = order
            .replace('r', &format!("r: {n}"))
            .replace('c', &format!("c: {n}"));
        let _ = writeln!(text, "factor: {dtype}[{n}, {n}] = [{indices}] {result}");
        text
    }
}
