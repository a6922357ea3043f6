//! TRA programs from their text: the inverse of [`super::print`], except that of an origin only file and line
//! are printed.
//!
//! A parsed program is well formed as a list; whether it is right is for [`super::verify`] to say. Must not
//! know what is parsed for.
//!
//! ```text
//! 3:18: expected a relation that stands above, found `D`
//! ```

use super::blocks::{Names, Reading};
use super::{Operation, Output, Program, Relation, Type};
use ein_plan::parse::{Line, ParseError, Result, lines};
use ein_plan::{JoinInput, KeyDim, Range, RelationId};

/// Parses a program.
pub fn parse(text: &str) -> Result<Program> {
    let mut program = Program::default();
    let mut names = Names::default();
    let mut loops = Reading::default();
    for line in lines(text) {
        let mut line = line?;
        if line.at_words("files") {
            program.files = line.files()?;
        } else if line.at_word_and_number("mesh") {
            program.mesh = line.mesh(0)?;
            line.end()?;
        } else if loops.read(&mut line, &names, &program.files)? {
        } else if line.at_words("output") {
            let output = output(&mut line, &names, &program.files)?;
            program.outputs.push(output);
        } else {
            let (name, tensor) = heading(&mut line)?;
            let kind = kind(&mut line)?;
            line.expect("=")?;
            let operation = operation(&mut line, &program, &names, &kind.keys)?;
            names.add(&name);
            program.relations.push(Relation {
                name,
                tensor,
                kind,
                operation,
                block: loops.innermost(),
                origin: line.origin(&program.files)?,
            });
        }
    }
    program.blocks = loops.finish(&names)?;
    Ok(program)
}

/// `C.partial of C:` or `C:`.
pub(crate) fn heading(line: &mut Line<'_>) -> Result<(String, String)> {
    let name = line.name()?;
    let tensor = if line.eat_word("of") {
        line.name()?
    } else {
        name.clone()
    };
    line.expect(":")?;
    Ok((name, tensor))
}

/// `{i: 10/2} f32[i, 6]`.
fn kind(line: &mut Line<'_>) -> Result<Type> {
    let (keys, array) = line.keys_and_array()?;
    Ok(Type { keys, array })
}

/// `output C = C.cut -> "c.npy"`, `output W_next = W_next replaces W`.
pub(crate) fn output(line: &mut Line<'_>, names: &Names, files: &[String]) -> Result<Output> {
    line.expect_word("output")?;
    let name = line.name()?;
    line.expect("=")?;
    let relation = names.read(line)?;
    let (replaces, file) = line.destination()?;
    let asserts = line
        .eat_word("asserts")
        .then(|| line.quoted())
        .transpose()?;
    Ok(Output {
        name,
        relation,
        replaces,
        file,
        asserts,
        complex: line.eat_word("complex"),
        origin: line.origin(files)?,
    })
}

/// `(A{i, k}, B{k})`: the inputs of a join whose result has those keys.
pub(crate) fn join_inputs(
    line: &mut Line<'_>,
    names: &Names,
    keys: &[KeyDim],
) -> Result<Vec<JoinInput>> {
    line.expect("(")?;
    line.list(")", |line| {
        let relation = names.read(line)?;
        let keys = key_set(line, keys)?;
        Ok(JoinInput { relation, keys })
    })
}

/// `{i, k}`.
pub(crate) fn key_set(line: &mut Line<'_>, keys: &[KeyDim]) -> Result<Vec<u32>> {
    line.expect("{")?;
    line.list("}", |line| line.key(keys))
}

/// `over [i, _]`.
pub(crate) fn over(line: &mut Line<'_>, keys: &[KeyDim]) -> Result<Vec<Range>> {
    line.expect_word("over")?;
    line.expect("[")?;
    line.list("]", |line| {
        Ok(if line.eat_word("_") {
            Range::Whole
        } else {
            Range::Key(line.key(keys)?)
        })
    })
}

/// `dim 0`.
pub(crate) fn dim(line: &mut Line<'_>) -> Result<u32> {
    line.expect_word("dim")?;
    line.integer()
}

/// Returns the error where no operator of that name is known.
pub(crate) fn no_operator(line: &Line<'_>) -> ParseError {
    line.error_before("an operator such as `join` or `aggregate`")
}

fn operation(
    line: &mut Line<'_>,
    program: &Program,
    names: &Names,
    keys: &[KeyDim],
) -> Result<Operation> {
    let keys_of = |id: RelationId| program.relation(id).kind.keys.as_slice();
    let word = line.word()?;
    Ok(match word {
        "source" => {
            let name = line.name()?;
            line.expect_word("from")?;
            let source = line.source()?;
            Operation::Source { name, source }
        }
        "join" | "fold" => {
            let fold = line.fold(word)?;
            let keys = fold.as_ref().map_or(keys, |fold| &fold.keys);
            Operation::Join {
                inputs: join_inputs(line, names, keys)?,
                ranges: over(line, keys)?,
                kernel: line.kernel()?,
                fold,
            }
        }
        "aggregate" => {
            let reduction = line.reduction()?;
            let input = names.read(line)?;
            line.expect_word("keep")?;
            Operation::Aggregate {
                input,
                group_by: key_set(line, keys_of(input))?,
                reduction,
            }
        }
        "rekey" => {
            let input = names.read(line)?;
            line.expect_word("by")?;
            Operation::Rekey {
                input,
                keys: key_set(line, keys_of(input))?,
            }
        }
        "filter" => {
            let input = names.read(line)?;
            line.expect_word("where")?;
            let key = line.key(keys_of(input))?;
            line.expect("=")?;
            Operation::Filter {
                input,
                key,
                value: line.integer()?,
            }
        }
        "transform" => Operation::Transform {
            input: names.read(line)?,
            ranges: over(line, keys)?,
            kernel: line.kernel()?,
        },
        "tile" => Operation::Tile {
            input: names.read(line)?,
            array_dim: dim(line)?,
        },
        "concat" => Operation::Concat {
            input: names.read(line)?,
            array_dim: dim(line)?,
        },
        "window" => Operation::Window {
            input: names.read(line)?,
        },
        "loop" => Operation::Loop {
            value: line.loop_value()?,
        },
        _ => return Err(no_operator(line)),
    })
}
