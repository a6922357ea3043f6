//! Reads a kernel's indices and expressions: the inverse of [`crate::print::expression`].
//!
//! Must not know what operands are: a callback says which operand a name is and what its columns hold.
//!
//! ```text
//! sum let $0 = exp(A[i, k]) in $0 / ($0 + 1.0) if k <= i
//! ```

use super::line::{Line, Result};
use crate::dtype::DType;
use crate::function::Function;
use crate::kernel::{Graph, Index, IndexId, Kernel, Node, NodeId};
use crate::library;
use crate::print::expression::{call_name, infix};

/// Says which operand has a name, and the stored types of its columns.
pub type Operands<'a> = &'a dyn Fn(&str) -> Option<(u32, Vec<DType>)>;

/// `[i: 4, j: 8 | k: 6]`: the indices, and how many are the output's.
pub fn indices(line: &mut Line<'_>) -> Result<(Vec<Index>, u32)> {
    line.expect("[")?;
    let mut indices = vec![];
    let mut rank = None;
    if line.eat("|") {
        rank = Some(0);
    } else if line.eat("]") {
        return Ok((indices, 0));
    }
    loop {
        let name = line.name()?;
        line.expect(":")?;
        let extent = line.integer()?;
        indices.push(Index { name, extent });
        if line.eat("]") {
            let all = indices.len() as u32;
            return Ok((indices, rank.unwrap_or(all)));
        }
        if rank.is_none() && line.eat("|") {
            rank = Some(indices.len() as u32);
        } else {
            line.expect(",")?;
        }
    }
}

/// What stands after the indices. Sets the kernel's graph, root, guard, reduction and `finish`; its indices
/// are there already.
pub fn body(line: &mut Line<'_>, kernel: &mut Kernel, operands: Operands<'_>) -> Result<()> {
    if (kernel.output_rank as usize) < kernel.indices.len() {
        kernel.finish = !line.eat_word("partial");
        kernel.reduction = Some(line.reduction()?);
    }
    let mut reader = Reader {
        line,
        graph: Graph::default(),
        indices: &kernel.indices,
        operands,
        shared: vec![],
    };
    if reader.line.at_pair("let", "$") {
        reader.line.expect_word("let")?;
        loop {
            reader.line.expect("$")?;
            let number: usize = reader.line.integer()?;
            let next = reader.shared.len();
            reader
                .line
                .require(number == next, &format!("expected `{next}`"))?;
            reader.line.expect("=")?;
            let node = reader.expression()?;
            reader.shared.push(node);
            if !reader.line.eat(",") {
                break;
            }
        }
        reader.line.expect_word("in")?;
    }
    kernel.root = reader.expression()?;
    if reader.line.eat_word("if") {
        kernel.guard = Some(reader.expression()?);
    }
    kernel.graph = reader.graph;
    Ok(())
}

struct Reader<'r, 'l> {
    line: &'r mut Line<'l>,
    graph: Graph,
    indices: &'r [Index],
    operands: Operands<'r>,
    shared: Vec<NodeId>,
}

impl Reader<'_, '_> {
    fn apply(&mut self, function: Function, arguments: Vec<NodeId>) -> Result<NodeId> {
        let types: Vec<DType> = arguments.iter().map(|a| self.graph.dtype(*a)).collect();
        let result = function.result(&types);
        let dtype = result.map_err(|why| self.line.error_before(&why))?;
        Ok(self.graph.add(Node::Apply(function, arguments), dtype))
    }

    fn infix(&mut self, among: &[Function]) -> Option<Function> {
        let found = among
            .iter()
            .find(|f| infix(**f) == self.line.peek_symbol() && infix(**f).is_some())?;
        self.line.eat(infix(*found)?);
        Some(*found)
    }

    fn expression(&mut self) -> Result<NodeId> {
        let left = self.sum()?;
        let comparisons = [
            Function::Eq,
            Function::Ne,
            Function::Lt,
            Function::Le,
            Function::Gt,
            Function::Ge,
        ];
        match self.infix(&comparisons) {
            Some(function) => {
                let right = self.sum()?;
                self.apply(function, vec![left, right])
            }
            None => Ok(left),
        }
    }

    fn sum(&mut self) -> Result<NodeId> {
        let mut left = self.product()?;
        while let Some(function) = self.infix(&[Function::Add, Function::Sub]) {
            let right = self.product()?;
            left = self.apply(function, vec![left, right])?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<NodeId> {
        let mut left = self.sign()?;
        while let Some(function) = self.infix(&[Function::Mul, Function::Div]) {
            let right = self.sign()?;
            left = self.apply(function, vec![left, right])?;
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<NodeId> {
        if self.line.peek_symbol() == Some("-") && !self.line.at_constant() {
            self.line.expect("-")?;
            let argument = self.nested(Self::sign)?;
            return self.apply(Function::Neg, vec![argument]);
        }
        self.atom()
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<NodeId>) -> Result<NodeId> {
        // The line counts the depth; the reader itself is what goes on.
        self.line.deeper()?;
        let value = read(self);
        self.line.shallower();
        value
    }

    fn atom(&mut self) -> Result<NodeId> {
        if self.line.at_constant() {
            let (value, dtype) = self.line.number(None)?;
            return Ok(self.graph.add(Node::Constant(value), dtype));
        }
        if self.line.eat(":") {
            let dimension = self.line.integer()?;
            return Ok(library::whole(&mut self.graph, dimension));
        }
        if self.line.eat("$") {
            let number: usize = self.line.integer()?;
            let known = self.shared.get(number).copied();
            return known.ok_or_else(|| self.line.error_before("a name that `let` gave before"));
        }
        if self.line.eat("(") {
            let inner = self.nested(Self::expression)?;
            self.line.expect(")")?;
            return Ok(inner);
        }
        if self.line.peek_symbol() == Some("#") {
            return self.index();
        }
        match self.line.peek_after_name() {
            Some("(") => self.call(),
            Some("[" | "#") => self.read(),
            _ => self.index(),
        }
    }

    fn index(&mut self) -> Result<NodeId> {
        let names = self.indices.iter().map(|i| i.name.as_str());
        let number = self
            .line
            .reference(names, "an index, a number or a bracket")?;
        self.line
            .require((number as usize) < self.indices.len(), "no such index")?;
        Ok(self.graph.add(Node::Index(IndexId(number)), DType::I64))
    }

    fn list(&mut self, close: &str) -> Result<Vec<NodeId>> {
        let mut nodes = vec![];
        if self.line.eat(close) {
            return Ok(nodes);
        }
        loop {
            nodes.push(self.nested(Self::expression)?);
            if self.line.eat(close) {
                return Ok(nodes);
            }
            self.line.expect(",")?;
        }
    }

    fn call(&mut self) -> Result<NodeId> {
        let name = self.line.word()?;
        let error = self.line.error_before("a function or an element type");
        self.line.expect("(")?;
        let arguments = self.list(")")?;
        if let Some(dtype) = DType::from_name(name) {
            return match arguments[..] {
                [argument] if dtype == dtype.compute() => {
                    Ok(self.graph.add(Node::Convert(argument), dtype))
                }
                _ => Err(error),
            };
        }
        let function = Function::ALL.iter().find(|f| call_name(**f) == name);
        let function = *function.ok_or(error)?;
        self.apply(function, arguments)
    }

    fn read(&mut self) -> Result<NodeId> {
        let name = self.line.name()?;
        let found = (self.operands)(&name);
        let (operand, columns) = found.ok_or_else(|| {
            self.line
                .error_before("a tensor or operand that is known here")
        })?;
        let mut column = 0;
        if self.line.eat("#") {
            column = self.line.integer()?;
        }
        let stored = columns.get(column as usize);
        let dtype = stored.ok_or_else(|| self.line.error_before("a column of the operand"))?;
        self.line.expect("[")?;
        let positions = self.list("]")?;
        let otherwise = match self.line.eat_word("else") {
            true => Some(self.nested(Self::atom)?),
            false => None,
        };
        let node = Node::Read {
            operand,
            column,
            positions,
            otherwise,
        };
        Ok(self.graph.add(node, dtype.compute()))
    }
}
