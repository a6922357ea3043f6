//! Checked tensors as an Einstein program: kernels, with nested reductions as tensors of their own.
//!
//! Contract: no error has been reported and all sizes are known. A reduction inside an expression becomes a
//! hidden tensor over its free indices; what is read only in a branch of `where` stays unread there, so the
//! branch's condition goes with it. Must not know syntax.
//!
//! ```text
//! y[n] = exp(x[n] - max[k] x[k])   =>   y.1 = max x[k];  y = exp(x[n] - y.1[])
//! ```

use crate::autodiff::read_diagonals;
use crate::einsum::{self, Program, Role, TensorId};
use crate::sema::{
    Checker,
    definitions::tensors::Definition,
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    lower::parts::{Builder, apply, number_of},
    sizes::size::Size,
};
use ein_plan::{DType, Function, Graph, IndexId, Kernel, Node, NodeId, Operand, Reduction, Scalar};
use einc_diag::{Diagnostic, Span};
use std::collections::HashMap;

impl<'a> Checker<'a> {
    /// The program that the outputs need; `None` after an error.
    pub(crate) fn lower(&mut self) -> Option<Program> {
        let Some(order) = self.split_complex() else {
            // In a text with a broken line, rounds may lack what they end with.
            if !self.names.sources.incomplete {
                let what = "internal error: a complex value has no parts";
                self.report.push(Diagnostic::error("E0999", what));
            }
            return None;
        };
        let needed = self.needed();
        let files = self.names.sources.files.iter();
        let mut program = Program {
            files: files.map(|file| file.name.clone()).collect(),
            ..Program::default()
        };
        let mut numbers = HashMap::new();
        let blocks = self.lower_blocks(&mut program, &needed)?;
        let mut gradients = self.no_gradients();
        let (mut taken, mut along) = (vec![], vec![]);
        let order = order.into_iter().map(|tensor| tensor.0 as usize);
        for number in order.filter(|number| needed[*number]) {
            let tensor = self.built.tensors[number].clone();
            let id = match tensor.definition {
                Definition::Source(form) => {
                    let source = self.settle_source(TensorRef(number as u32), form)?;
                    let origin = self.origin(tensor.span);
                    push(
                        &mut program,
                        einsum::Tensor {
                            name: tensor.name,
                            dtype: tensor.dtype,
                            shape: tensor.shape.iter().map(number_of).collect::<Option<_>>()?,
                            role: tensor.role,
                            block: self
                                .built
                                .drawn_in
                                .get(&TensorRef(number as u32))
                                .filter(|_| source.is_random())
                                .and_then(|block| blocks.get(block).copied()),
                            definition: einsum::Definition::Source(source),
                            origin,
                        },
                    )
                }
                Definition::Statement { vars, root } => {
                    let (mut hidden, first) = (0, program.tensors.len());
                    let id = self.lower_tensor(
                        &mut program,
                        &numbers,
                        (tensor.name.clone(), tensor.dtype, tensor.role, tensor.span),
                        vars,
                        root,
                        &mut hidden,
                        None,
                    )?;
                    read_diagonals(&mut program, first);
                    id
                }
                Definition::Loop(value) => {
                    let (value, block) = self.lower_value(&blocks, value)?;
                    let origin = self.origin(tensor.span);
                    push(
                        &mut program,
                        einsum::Tensor {
                            name: tensor.name,
                            dtype: tensor.dtype,
                            shape: tensor.shape.iter().map(number_of).collect::<Option<_>>()?,
                            role: tensor.role,
                            definition: einsum::Definition::Loop(value),
                            block,
                            origin,
                        },
                    )
                }
                Definition::Gradient { loss, wrt } => {
                    let pair = (loss, wrt);
                    taken.push((pair, tensor.span));
                    // What comes later is of no concern to it.
                    let _ = self.fill_blocks(&mut program, &blocks, &numbers);
                    self.lower_gradient(&mut program, &numbers, &mut gradients, pair, tensor.span)?
                }
                Definition::Along(what) => {
                    along.push((what, tensor.span));
                    let _ = self.fill_blocks(&mut program, &blocks, &numbers);
                    self.lower_along(&mut program, &numbers, &mut gradients, what, tensor.span)?
                }
            };
            numbers.insert(TensorRef(number as u32), id);
        }
        self.lower_outputs(&mut program, &numbers)?;
        self.fill_blocks(&mut program, &blocks, &numbers)?;
        for (pair, span) in taken {
            self.check_gradient(&program, &numbers, &mut gradients, pair, span)?;
        }
        for (what, span) in along {
            self.check_along(&program, &numbers, &mut gradients, what, span)?;
        }
        program.needed().arranged()
    }

    /// The reduction that an expression is, with its guards and body; its indices are added to `vars`. Reductions of one kind directly inside each
    /// other are one, but for extremes: of equal values the gradient gives shares to those of the outer one first.
    fn nested(
        &self,
        root: ExprId,
        vars: &mut Vec<VarId>,
    ) -> (Option<Reduction>, Vec<ExprId>, ExprId) {
        let (mut reduction, mut guards, mut body) = (None, vec![], root);
        while let Form::Reduce {
            reduction: next,
            vars: own,
            guard,
            body: inner,
        } = &*self.arena.form(body)
        {
            let nests = matches!(
                next,
                Reduction::Sum | Reduction::Prod | Reduction::Any | Reduction::All
            );
            if reduction.is_some_and(|r| r != *next || !nests)
                || self.arena.ty(body) != self.arena.ty(root)
            {
                break;
            }
            reduction = Some(*next);
            vars.extend(own);
            guards.extend(*guard);
            body = *inner;
        }
        (reduction, guards, body)
    }

    /// One kernel; `condition`: where it is not true, nothing is read and the value does not matter.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn lower_tensor(
        &mut self,
        program: &mut Program,
        numbers: &HashMap<TensorRef, TensorId>,
        (name, dtype, role, span): (String, DType, Role, Span),
        vars: Vec<VarId>,
        root: ExprId,
        hidden: &mut usize,
        condition: Option<ExprId>,
    ) -> Option<TensorId> {
        let output_rank = vars.len();
        let mut builder = Builder {
            vars,
            graph: Graph::default(),
            operands: vec![],
            memo: HashMap::new(),
            name: name.clone(),
            hidden: *hidden,
            span,
        };
        let sizes: Option<Vec<Size>> = builder.vars.iter().map(|var| self.extent(*var)).collect();
        self.check_elements(&sizes?, span)?;
        let (reduction, guards, body) = self.nested(root, &mut builder.vars);
        if let Some(reduction) = reduction {
            let reduced = &builder.vars[output_rank..];
            if let Some(root) = self.extreme_of_type(reduction, reduced, &guards, body, dtype) {
                builder.vars.truncate(output_rank);
                let what = (name, dtype, role, span);
                let vars = builder.vars;
                return self.lower_tensor(program, numbers, what, vars, root, hidden, condition);
            }
        }
        let on = match condition {
            Some(condition) => {
                Some(self.lower_condition(program, numbers, &mut builder, condition)?)
            }
            None => None,
        };
        let (path, mut guard) =
            self.lower_guards(program, numbers, &mut builder, &guards, condition)?;
        // It is stored in its type as it is.
        let body = match &*self.arena.form(body) {
            Form::Convert(value) if body == root => {
                let ty = self.arena.ty(body);
                self.arena.add(Form::Computed(*value), ty)
            }
            _ => body,
        };
        let mut value = self.lower_node(program, numbers, &mut builder, body, path)?;
        if let Some(on) = on {
            (value, guard) = only_where(&mut builder, on, value, guard);
        }
        *hidden = builder.hidden;
        let indices = self.indices(&builder.vars)?;
        let operands = builder
            .operands
            .iter()
            .map(|id| {
                let tensor = program.tensor(*id);
                Operand {
                    columns: vec![tensor.dtype],
                    shape: tensor.shape.clone(),
                }
            })
            .collect();
        let shape = indices[..output_rank].iter().map(|i| i.extent).collect();
        let kernel = Kernel {
            indices,
            output_rank: output_rank as u32,
            operands,
            graph: builder.graph,
            root: value,
            guard,
            reduction,
            finish: true,
            output: vec![dtype],
        };
        let (kernel, operands) = einsum::canonical::statement(kernel, &builder.operands);
        let origin = self.origin(span);
        Some(push(
            program,
            einsum::Tensor {
                name,
                dtype,
                shape,
                role,
                block: program.innermost(&operands),
                definition: einsum::Definition::Statement { kernel, operands },
                origin,
            },
        ))
    }

    /// The read of a tensor at these positions, with what stands for elements that are not there.
    fn lower_read(
        &mut self,
        program: &mut Program,
        numbers: &HashMap<TensorRef, TensorId>,
        builder: &mut Builder,
        (tensor, positions, otherwise): (TensorRef, &[ExprId], Option<ExprId>),
        condition: Option<ExprId>,
    ) -> Option<Node> {
        let mut at = vec![];
        for (dimension, position) in positions.iter().enumerate() {
            let row = self.row_position(builder, tensor, dimension, *position)?;
            at.push(match row {
                Some(row) => row,
                None => self.lower_position(program, numbers, builder, *position, condition)?,
            });
        }
        let otherwise = match otherwise {
            Some(otherwise) => {
                Some(self.lower_node(program, numbers, builder, otherwise, condition)?)
            }
            None => None,
        };
        let operand = builder.operand(*numbers.get(&tensor)?);
        Some(Node::Read {
            operand,
            column: 0,
            positions: at,
            otherwise,
        })
    }

    /// The test of a choice and its two values, each lowered under the condition that it is chosen.
    fn lower_select(
        &mut self,
        program: &mut Program,
        numbers: &HashMap<TensorRef, TensorId>,
        builder: &mut Builder,
        arguments: &[ExprId],
        condition: Option<ExprId>,
    ) -> Option<Vec<NodeId>> {
        let (test, a, b) = (arguments[0], arguments[1], arguments[2]);
        let branch = |c: &mut Self, holds: bool| -> Option<ExprId> {
            let this = if holds {
                test
            } else {
                c.apply(Function::Not, vec![test], builder.span)?
            };
            match condition {
                Some(outer) => c.apply(Function::And, vec![outer, this], builder.span),
                None => Some(this),
            }
        };
        // Only what holds a reduction has to know the condition.
        let under = |c: &mut Self, arm: ExprId, holds: bool| {
            if c.has_faulty_reduction(arm) {
                branch(c, holds).map(Some)
            } else {
                Some(condition)
            }
        };
        let (first, second) = (under(self, a, true)?, under(self, b, false)?);
        Some(vec![
            self.lower_node(program, numbers, builder, test, condition)?,
            self.lower_node(program, numbers, builder, a, first)?,
            self.lower_node(program, numbers, builder, b, second)?,
        ])
    }

    pub(crate) fn lower_node(
        &mut self,
        program: &mut Program,
        numbers: &HashMap<TensorRef, TensorId>,
        builder: &mut Builder,
        id: ExprId,
        condition: Option<ExprId>,
    ) -> Option<NodeId> {
        if let Some(node) = builder.memo.get(&(id, condition)) {
            return Some(*node);
        }
        let form = self.arena.form(id);
        let Ty::Typed(stored) = self.arena.ty(id) else {
            return None;
        };
        let compute = stored.compute();
        let node = match &*form {
            Form::Constant(scalar) => builder.graph.add(Node::Constant(*scalar), compute),
            Form::Whole(size) => {
                let number = size.known()?;
                let scalar = if compute.is_float() {
                    Scalar::Float(number as f64)
                } else {
                    Scalar::Int(number)
                };
                builder.graph.add(Node::Constant(scalar), compute)
            }
            Form::Index(var) if self.is_row(*var) => self.lower_row(numbers, builder, *var)?,
            Form::Index(var) => {
                let at = builder.vars.iter().position(|v| v == var)?;
                builder
                    .graph
                    .add(Node::Index(IndexId(at as u32)), DType::I64)
            }
            Form::SizeOf(var) => {
                let number = self.extent(*var)?.known()?;
                builder
                    .graph
                    .add(Node::Constant(Scalar::Int(number)), DType::I64)
            }
            Form::Read {
                tensor,
                positions,
                otherwise,
            } => {
                let at = (*tensor, &positions[..], *otherwise);
                let read = self.lower_read(program, numbers, builder, at, condition)?;
                builder.graph.add(read, compute)
            }
            Form::Convert(argument) => {
                // A stored type in the middle of an expression is stored, so that it rounds as the text says.
                if stored.is_narrow() {
                    let needed = self.needed_where(id, condition, builder.span)?;
                    let tensor = self.hidden(program, numbers, builder, id, needed)?;
                    let node = self.read_hidden(builder, tensor, id, needed, compute)?;
                    builder.memo.insert((id, condition), node);
                    return Some(node);
                }
                let from = self.lower_node(program, numbers, builder, *argument, condition)?;
                if builder.graph.dtype(from) == compute {
                    from
                } else {
                    builder.graph.add(Node::Convert(from), compute)
                }
            }
            Form::Computed(argument) => {
                let from = self.lower_node(program, numbers, builder, *argument, condition)?;
                match builder.graph.dtype(from) == compute {
                    true => from,
                    false => builder.graph.add(Node::Convert(from), compute),
                }
            }
            Form::Apply(Function::Select, arguments) => {
                let nodes = self.lower_select(program, numbers, builder, arguments, condition)?;
                builder
                    .graph
                    .add(Node::Apply(Function::Select, nodes), compute)
            }
            Form::Apply(function, arguments) => {
                let mut nodes = vec![];
                for argument in arguments {
                    nodes.push(self.lower_node(program, numbers, builder, *argument, condition)?);
                }
                builder.graph.add(Node::Apply(*function, nodes), compute)
            }
            // Complex numbers have been split into their parts.
            Form::Complex(..) => return None,
            Form::Reduce { .. } => {
                let needed = self.needed_where(id, condition, builder.span)?;
                let tensor = self.hidden(program, numbers, builder, id, needed)?;
                self.read_hidden(builder, tensor, id, needed, compute)?
            }
        };
        builder.memo.insert((id, condition), node);
        Some(node)
    }
}

fn push(program: &mut Program, tensor: einsum::Tensor) -> TensorId {
    program.tensors.push(tensor);
    TensorId(program.tensors.len() as u32 - 1)
}

/// A value that is 0 where a condition is not true, and a guard that is true there: nothing is looked at.
fn only_where(
    builder: &mut Builder,
    condition: NodeId,
    value: NodeId,
    guard: Option<NodeId>,
) -> (NodeId, Option<NodeId>) {
    let compute = builder.graph.dtype(value);
    let scalar = match compute {
        DType::Bool => Scalar::Bool(false),
        _ if compute.is_integer() => Scalar::Int(0),
        _ => Scalar::Float(0.0),
    };
    let nothing = builder.graph.add(Node::Constant(scalar), compute);
    let chosen = vec![condition, value, nothing];
    let value = apply(builder, Function::Select, chosen, compute);
    let guard = guard.map(|inner| {
        let all = Node::Constant(Scalar::Bool(true));
        let all = builder.graph.add(all, DType::Bool);
        let chosen = vec![condition, inner, all];
        apply(builder, Function::Select, chosen, DType::Bool)
    });
    (value, guard)
}
