//! IA programs from their text: the inverse of [`super::print`], except that of an origin only file and line
//! are printed.
//!
//! A parsed program is well formed as a list; whether it is right is for [`super::verify`] to say. Must not
//! know what is parsed for.
//!
//! ```text
//! 3:18: expected a relation that stands above, found `D`
//! ```

use super::{Operation, Program, Relation};
use crate::tra::blocks::Names;
use crate::tra::blocks::Reading;
use crate::tra::parse::{dim, heading, join_inputs, key_set, no_operator, output, over};
use ein_plan::parse::{Line, Result, lines};
use ein_plan::{KeyDim, RelationId};

/// Parses a program.
pub fn parse(text: &str) -> Result<Program> {
    let mut program = Program::default();
    let mut names = Names::default();
    let mut loops = Reading::default();
    for line in lines(text) {
        let mut line = line?;
        if line.at_words("files") {
            program.files = line.files()?;
        } else if program.sites == 0 {
            line.expect_word("sites")?;
            program.sites = line.integer()?;
            program.mesh = line.mesh(program.sites)?;
            line.end()?;
        } else if loops.read(&mut line, &names, &program.files)? {
        } else if line.at_words("output") {
            let output = output(&mut line, &names, &program.files)?;
            program.outputs.push(output);
        } else {
            let (name, tensor) = heading(&mut line)?;
            let kind = line.relation_type()?;
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

fn operation(
    line: &mut Line<'_>,
    program: &Program,
    names: &Names,
    keys: &[KeyDim],
) -> Result<Operation> {
    let keys_of = |id: RelationId| program.relation(id).kind.keys.as_slice();
    let local = line.eat_word("local");
    let word = line.word()?;
    Ok(match (local, word) {
        (false, "source") => {
            let name = line.name()?;
            line.expect_word("from")?;
            let source = line.source()?;
            Operation::Source { name, source }
        }
        (false, "broadcast") => Operation::Broadcast {
            input: names.read(line)?,
        },
        (false, "shuffle") => Operation::Shuffle {
            input: names.read(line)?,
        },
        (false, "window") => Operation::Window {
            input: names.read(line)?,
        },
        (true, "join" | "fold") => {
            let fold = line.fold(word)?;
            let keys = fold.as_ref().map_or(keys, |fold| &fold.keys);
            Operation::LocalJoin {
                inputs: join_inputs(line, names, keys)?,
                ranges: over(line, keys)?,
                kernel: line.kernel()?,
                fold,
            }
        }
        (true, "aggregate") => {
            let reduction = line.reduction()?;
            let input = names.read(line)?;
            line.expect_word("keep")?;
            Operation::LocalAggregate {
                input,
                keep: key_set(line, keys_of(input))?,
                reduction,
            }
        }
        (true, "filter") => {
            let input = names.read(line)?;
            line.expect_word("where")?;
            let key = line.key(keys_of(input))?;
            line.expect("=")?;
            Operation::LocalFilter {
                input,
                key,
                value: line.integer()?,
            }
        }
        (true, "map") => {
            let input = names.read(line)?;
            line.expect_word("by")?;
            let by = key_set(line, keys_of(input))?;
            let map = if line.at_word("over") {
                let ranges = over(line, keys)?;
                Some((line.kernel()?, ranges))
            } else {
                None
            };
            Operation::LocalMap {
                input,
                keys: by,
                map,
            }
        }
        (true, "tile") => Operation::LocalTile {
            input: names.read(line)?,
            array_dim: dim(line)?,
        },
        (false, "loop") => Operation::Loop {
            value: line.loop_value()?,
        },
        (true, "concat") => Operation::LocalConcat {
            input: names.read(line)?,
            array_dim: dim(line)?,
        },
        _ => return Err(no_operator(line)),
    })
}
