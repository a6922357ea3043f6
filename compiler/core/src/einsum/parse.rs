//! Einstein programs from their text: the inverse of [`super::print`].
//!
//! Statements come out in canonical form ([`super::canonical`]). Whether the program makes sense is for
//! [`super::verify`] to say. Must not know what is parsed for.
//!
//! ```text
//! 3:18: expected a tensor or operand that is known here
//! ```

use super::canonical::statement;
use super::{Definition, Output, Program, Role, Tensor, TensorId};
use ein_plan::parse::expression::{body, indices};
use ein_plan::parse::{Line, Result, lines};
use ein_plan::{DType, Graph, Kernel, NodeId, Operand};
use std::cell::RefCell;
use std::collections::HashMap;

/// Parses a program.
pub fn parse(text: &str) -> Result<Program> {
    let mut program = Program::default();
    let mut names: HashMap<String, TensorId> = HashMap::new();
    for line in lines(text) {
        let mut line = line?;
        if line.at_words("files") {
            program.files = line.files()?;
        } else if line.at_words("output") {
            line.expect_word("output")?;
            let error = line.error("a tensor that stands above");
            let tensor = *names.get(&line.name()?).ok_or(error)?;
            let file = line.eat("->").then(|| line.quoted()).transpose()?;
            let origin = line.origin(&program.files)?;
            program.outputs.push(Output {
                tensor,
                file,
                origin,
            });
        } else {
            let tensor = tensor(&mut line, &program, &names)?;
            names.insert(tensor.name.clone(), TensorId(program.tensors.len() as u32));
            program.tensors.push(tensor);
        }
    }
    Ok(program)
}

fn tensor(
    line: &mut Line<'_>,
    program: &Program,
    names: &HashMap<String, TensorId>,
) -> Result<Tensor> {
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
    } else {
        Definition::Source(line.source()?)
    };
    Ok(Tensor {
        name,
        dtype,
        shape,
        role: role.unwrap_or(Role::Named),
        definition,
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
