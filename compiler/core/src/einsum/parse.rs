//! Einstein programs from their text: the inverse of [`super::print`].
//!
//! Statements come out in canonical form ([`super::canonical`]). Whether the program makes sense is for
//! [`super::verify`] to say. Must not know what is parsed for.
//!
//! ```text
//! 3:18: expected a tensor or operand that is known here
//! ```

use super::canonical::statement;
use super::{
    Block, BlockId, Bound, Collected, Definition, LoopValue, Output, Program, Role, State, Tensor,
    TensorId,
};
use ein_plan::parse::expression::{body, indices};
use ein_plan::parse::{Line, ParseError, Result, lines};
use ein_plan::{DType, Graph, Kernel, NodeId, Operand};
use std::cell::RefCell;
use std::collections::HashMap;

/// Parses a program.
pub fn parse(text: &str) -> Result<Program> {
    let mut reader = Reader::default();
    for line in lines(text) {
        let mut line = line?;
        let program = &mut reader.program;
        if line.at_words("files") {
            program.files = line.files()?;
        } else if line.at_words("output") {
            line.expect_word("output")?;
            let error = line.error("a tensor that stands above");
            let tensor = *reader.names.get(&line.name()?).ok_or(error)?;
            let (replaces, file) = line.destination()?;
            let asserts = line
                .eat_word("asserts")
                .then(|| line.quoted())
                .transpose()?;
            let origin = line.origin(&program.files)?;
            program.outputs.push(Output {
                tensor,
                replaces,
                file,
                asserts,
                complex: line.eat_word("complex"),
                origin,
            });
        } else if !reader.block_line(&mut line)? {
            let tensor = tensor(&mut line, &reader)?;
            let id = TensorId(reader.program.tensors.len() as u32);
            reader.names.insert(tensor.name.clone(), id);
            reader.program.tensors.push(tensor);
        }
    }
    if reader.open.is_some() {
        let end = text.lines().count() as u32;
        return Err(ParseError::new(end, 1, "a block has no end"));
    }
    reader.finish()
}

#[derive(Default)]
struct Reader {
    program: Program,
    names: HashMap<String, TensorId>,
    /// The block whose lines are read.
    open: Option<BlockId>,
    /// Names in blocks, which may stand further down: the place, the name, and the error if there is none.
    later: Vec<(LoopSlot, String, ParseError)>,
}

/// Where the tensor of a name goes.
enum LoopSlot {
    Until(BlockId),
    Next(BlockId, usize),
    Collected(BlockId, usize),
}

impl Reader {
    fn known(&self, line: &mut Line<'_>) -> Result<TensorId> {
        let error = line.error("a tensor that stands above");
        self.names.get(&line.name()?).copied().ok_or(error)
    }

    fn later(&mut self, line: &mut Line<'_>, place: LoopSlot) -> Result<()> {
        let error = line.error("a tensor of the program");
        let name = line.name()?;
        self.later.push((place, name, error));
        Ok(())
    }

    /// A line that is no tensor: the begin or end of a block, a state, something collected.
    fn block_line(&mut self, line: &mut Line<'_>) -> Result<bool> {
        let id = BlockId(self.program.blocks.len() as u32);
        if line.at_words("repeat") {
            line.expect_word("repeat")?;
            let name = line.name()?;
            line.expect("<")?;
            let bound = if line.at_number() {
                Bound::Rounds(line.integer()?)
            } else if line.eat_word("inf") {
                Bound::Unbounded
            } else {
                Bound::Value(self.known(line)?)
            };
            let until = line.eat_word("until");
            if until {
                self.later(line, LoopSlot::Until(id))?;
            }
            line.expect("{")?;
            let origin = line.origin(&self.program.files)?;
            self.program.blocks.push(Block {
                name,
                parent: self.open,
                bound,
                until: until.then_some(TensorId::UNKNOWN),
                states: vec![],
                collected: vec![],
                origin,
            });
            self.open = Some(id);
            return Ok(true);
        }
        let Some(open) = self.open else {
            return Ok(false);
        };
        let at = open.0 as usize;
        if line.eat("}") {
            self.open = self.program.blocks[at].parent;
        } else if line.at_words("carry") {
            line.expect_word("carry")?;
            let initial = self.known(line)?;
            line.expect("->")?;
            let number = self.program.blocks[at].states.len();
            self.later(line, LoopSlot::Next(open, number))?;
            self.program.blocks[at].states.push(State {
                initial,
                next: TensorId::UNKNOWN,
            });
        } else if line.at_words("collect") {
            line.expect_word("collect")?;
            let number = self.program.blocks[at].collected.len();
            self.later(line, LoopSlot::Collected(open, number))?;
            line.expect_word("at")?;
            let dim = line.integer()?;
            self.program.blocks[at].collected.push(Collected {
                value: TensorId::UNKNOWN,
                dim,
            });
        } else {
            return Ok(false);
        }
        line.end()?;
        Ok(true)
    }

    fn finish(self) -> Result<Program> {
        let mut program = self.program;
        for (place, name, error) in self.later {
            let id = *self.names.get(&name).ok_or(error)?;
            match place {
                LoopSlot::Until(block) => program.blocks[block.0 as usize].until = Some(id),
                LoopSlot::Next(block, at) => program.blocks[block.0 as usize].states[at].next = id,
                LoopSlot::Collected(block, at) => {
                    program.blocks[block.0 as usize].collected[at].value = id;
                }
            }
        }
        Ok(program)
    }

    /// `state 0 of t` and the like.
    fn loop_value(&self, line: &mut Line<'_>) -> Result<Option<LoopValue>> {
        let numbered = ["state", "last", "collected"];
        let word = if let Some(word) = numbered.into_iter().find(|w| line.at_word_and_number(w)) {
            word
        } else if let Some(word) = ["counter", "rounds"].into_iter().find(|w| line.at_words(w)) {
            word
        } else {
            return Ok(None);
        };
        line.expect_word(word)?;
        let number = match line.at_number() {
            true => line.integer()?,
            false => 0,
        };
        line.expect_word("of")?;
        let error = line.error("a block that stands above");
        let name = line.name()?;
        let block = self.program.blocks.iter().position(|b| b.name == name);
        let block = block.map(|at| BlockId(at as u32)).ok_or(error)?;
        Ok(Some(match word {
            "counter" => LoopValue::Counter(block),
            "rounds" => LoopValue::Rounds(block),
            "state" => LoopValue::State(block, number),
            "last" => LoopValue::Last(block, number),
            _ => LoopValue::Collected(block, number),
        }))
    }
}

fn tensor(line: &mut Line<'_>, reader: &Reader) -> Result<Tensor> {
    let (program, names) = (&reader.program, &reader.names);
    let role = [Role::Input, Role::Param, Role::Hidden]
        .into_iter()
        .find(|role| role.word().is_some_and(|word| line.at_words(word)));
    if role.is_some() {
        line.word()?;
    }
    let name = line.name()?;
    line.expect(":")?;
    let dtype = line.dtype()?;
    line.expect("[")?;
    let shape = line.list("]", Line::integer)?;
    line.expect("=")?;
    let definition = if line.peek_symbol() == Some("[") {
        let (kernel, operands) = definition(line, program, names, dtype)?;
        Definition::Statement { kernel, operands }
    } else if let Some(value) = reader.loop_value(line)? {
        Definition::Loop(value)
    } else {
        Definition::Source(line.source()?)
    };
    Ok(Tensor {
        name,
        dtype,
        shape,
        role: role.unwrap_or(Role::Named),
        definition,
        block: reader.open,
        origin: line.origin(&program.files)?,
    })
}

fn definition(
    line: &mut Line<'_>,
    program: &Program,
    names: &HashMap<String, TensorId>,
    dtype: DType,
) -> Result<(Kernel, Vec<TensorId>)> {
    let (indices, output_rank) = indices(line)?;
    let mut kernel = Kernel {
        indices,
        output_rank,
        operands: vec![],
        graph: Graph::default(),
        root: NodeId(0),
        guard: None,
        reduction: None,
        finish: true,
        output: vec![dtype],
    };
    // Operands are numbered as they are met.
    let met: RefCell<Vec<TensorId>> = RefCell::default();
    body(line, &mut kernel, &|name| {
        let id = *names.get(name)?;
        let mut met = met.borrow_mut();
        let number = met.iter().position(|m| *m == id).unwrap_or_else(|| {
            met.push(id);
            met.len() - 1
        });
        Some((number as u32, vec![program.tensor(id).dtype]))
    })?;
    let operands = met.into_inner();
    kernel.operands = operands
        .iter()
        .map(|id| Operand {
            columns: vec![program.tensor(*id).dtype],
            shape: program.tensor(*id).shape.clone(),
        })
        .collect();
    Ok(statement(kernel, &operands))
}
