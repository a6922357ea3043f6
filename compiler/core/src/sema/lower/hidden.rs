//! Hidden tensors: reductions within an expression, over the free indices of it.
//!
//! Must not know syntax.
//!
//! ```text
//! y[n] = exp(x[n] - max[k] x[k])   =>   y.1 = max x[k], read as y.1[]
//! ```

use crate::einsum::{Program, Role, TensorId};
use crate::sema::{
    Checker,
    definitions::tensors::{Definition, SourceForm},
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    lower::parts::{Builder, apply},
};
use ein_plan::{DType, Function, IndexId, Node, NodeId, Reduction, Scalar, Source};
use einc_diag::Span;
use std::collections::HashMap;

impl Checker<'_> {
    /// The variables of a hidden tensor, in the order in which the statement has them.
    pub(crate) fn hidden_vars(
        &self,
        builder: &Builder,
        id: ExprId,
        condition: Option<ExprId>,
    ) -> Vec<VarId> {
        let mut free = self.arena.free(id).to_vec();
        if let Some(condition) = condition {
            free.extend(self.arena.free(condition).iter());
        }
        builder
            .vars
            .iter()
            .copied()
            .filter(|var| free.contains(var))
            .collect()
    }

    /// Where a hidden tensor must be computed, of where it is read: nothing if it cannot stop the run. That an index which the tensor does not have
    /// is equal to a position says that the position is one of the index's values.
    pub(crate) fn needed_where(
        &mut self,
        id: ExprId,
        condition: Option<ExprId>,
        span: Span,
    ) -> Option<Option<ExprId>> {
        let condition = condition.filter(|_| self.has_faulty_reduction(id));
        let mut parts = vec![];
        let mut open: Vec<ExprId> = condition.into_iter().collect();
        while let Some(part) = open.pop() {
            match &*self.arena.form(part) {
                Form::Apply(Function::And, both) => open.extend(both.iter().rev()),
                _ => parts.push(part),
            }
        }
        let mut needed = None;
        for (number, part) in parts.iter().enumerate() {
            let foreign = |var: VarId| {
                let mut others = parts.iter().enumerate().filter(|(at, _)| *at != number);
                !self.arena.free(id).contains(&var)
                    && others.all(|(_, part)| !self.arena.free(*part).contains(&var))
            };
            let kept = match self.equal_to_index(*part) {
                Some((position, var)) if foreign(var) => self.is_value(position, var, span)?,
                _ => vec![*part],
            };
            for part in kept {
                needed = Some(match needed {
                    None => part,
                    Some(needed) => self.apply(Function::And, vec![needed, part], span)?,
                });
            }
        }
        Some(needed)
    }

    /// The position and the index of an equation, if the position does not depend on the index.
    fn equal_to_index(&self, condition: ExprId) -> Option<(ExprId, VarId)> {
        let form = self.arena.form(condition);
        let Form::Apply(Function::Eq, sides) = &*form else {
            return None;
        };
        let position = sides[0];
        match &*self.arena.form(sides[1]) {
            Form::Index(var) if !self.arena.free(position).contains(var) => Some((position, *var)),
            _ => None,
        }
    }

    /// The conditions that a position is a value of an index. None for a place of a list, which stops the run if there is none.
    fn is_value(&mut self, position: ExprId, var: VarId, span: Span) -> Option<Vec<ExprId>> {
        if let Form::Read { tensor, .. } = &*self.arena.form(position) {
            let list = &self.built.tensors[tensor.0 as usize];
            let is_list = matches!(
                list.definition,
                Definition::Source(SourceForm::Ready(Source::Iota))
            );
            if is_list && list.role == Role::Hidden {
                return Some(vec![]);
            }
        }
        let whole = Ty::Typed(DType::I64);
        let least = self.arena.add(Form::Constant(Scalar::Int(0)), whole);
        let size = Form::Whole(self.extent(var)?);
        let size = self.arena.add(size, whole);
        Some(vec![
            self.apply(Function::Ge, vec![position, least], span)?,
            self.apply(Function::Lt, vec![position, size], span)?,
        ])
    }

    /// Where a hidden tensor is computed. Each part of a condition is looked at where those before it hold.
    pub(crate) fn lower_condition(
        &mut self,
        program: &mut Program,
        numbers: &HashMap<TensorRef, TensorId>,
        builder: &mut Builder,
        id: ExprId,
    ) -> Option<NodeId> {
        let form = self.arena.form(id);
        let Form::Apply(Function::And, both) = &*form else {
            return self.lower_node(program, numbers, builder, id, None);
        };
        let (before, next) = (both[0], both[1]);
        let first = self.lower_condition(program, numbers, builder, before)?;
        let under = Some(before).filter(|_| self.has_faulty_reduction(next));
        let second = self.lower_node(program, numbers, builder, next, under)?;
        if !self.is_faulty(next, true) {
            return Some(apply(
                builder,
                Function::And,
                vec![first, second],
                DType::Bool,
            ));
        }
        let no = Node::Constant(Scalar::Bool(false));
        let no = builder.graph.add(no, DType::Bool);
        let chosen = vec![first, second, no];
        Some(apply(builder, Function::Select, chosen, DType::Bool))
    }

    /// The guards of a statement that is computed under a condition, as one, and the condition under which its values are read. Each guard is looked
    /// at where those before it hold.
    pub(crate) fn lower_guards(
        &mut self,
        program: &mut Program,
        numbers: &HashMap<TensorRef, TensorId>,
        builder: &mut Builder,
        guards: &[ExprId],
        condition: Option<ExprId>,
    ) -> Option<(Option<ExprId>, Option<NodeId>)> {
        let (mut path, mut all) = (condition, None);
        for guard in guards {
            let under = path.filter(|_| self.has_faulty_reduction(*guard));
            let node = self.lower_node(program, numbers, builder, *guard, under)?;
            all = Some(match all {
                None => node,
                Some(all) => apply(builder, Function::And, vec![all, node], DType::Bool),
            });
            path = Some(match path {
                Some(path) => self.apply(Function::And, vec![path, *guard], builder.span)?,
                None => *guard,
            });
        }
        Some((path, all))
    }

    pub(crate) fn hidden(
        &mut self,
        program: &mut Program,
        numbers: &HashMap<TensorRef, TensorId>,
        builder: &mut Builder,
        id: ExprId,
        condition: Option<ExprId>,
    ) -> Option<TensorId> {
        let vars = self.hidden_vars(builder, id, condition);
        builder.hidden += 1;
        let base = builder.name.clone();
        let name = format!("{base}.{}", builder.hidden);
        let Ty::Typed(dtype) = self.arena.ty(id) else {
            return None;
        };
        // Numbers below are shared with the statement, so that names stay flat.
        let mut inner = 0;
        let what = (name, dtype, Role::Hidden, builder.span);
        self.lower_tensor(program, numbers, what, vars, id, &mut inner, condition)
    }

    pub(crate) fn read_hidden(
        &mut self,
        builder: &mut Builder,
        tensor: TensorId,
        id: ExprId,
        condition: Option<ExprId>,
        compute: DType,
    ) -> Option<NodeId> {
        let mut positions = vec![];
        for var in self.hidden_vars(builder, id, condition) {
            let at = builder.vars.iter().position(|v| *v == var)?;
            positions.push(
                builder
                    .graph
                    .add(Node::Index(IndexId(at as u32)), DType::I64),
            );
        }
        let operand = builder.operand(tensor);
        Some(builder.graph.add(
            Node::Read {
                operand,
                column: 0,
                positions,
                otherwise: None,
            },
            compute,
        ))
    }

    /// The largest or least of narrow integers, which may be over nothing: there it is the extreme of their type. The type in which it is found
    /// has another one, which would wrap where it is stored. `None` where the reduction itself says it.
    pub(crate) fn extreme_of_type(
        &mut self,
        reduction: Reduction,
        vars: &[VarId],
        guards: &[ExprId],
        body: ExprId,
        dtype: DType,
    ) -> Option<ExprId> {
        let compute = dtype.compute();
        let ((least, most), (none, all)) = (dtype.whole_range()?, compute.whole_range()?);
        let (found, meant) = match reduction {
            Reduction::Max => (none, least),
            Reduction::Min => (all, most),
            _ => return None,
        };
        let empty = |var: &VarId| self.extent(*var).and_then(|size| size.known()) == Some(0);
        if found == meant || (guards.is_empty() && !vars.iter().any(empty)) {
            return None;
        }
        let (wide, truth) = (Ty::Typed(compute), Ty::Typed(DType::Bool));
        let guard = guards.iter().copied().reduce(|a, b| {
            let both = Form::Apply(Function::And, vec![a, b]);
            self.arena.add(both, truth)
        });
        let form = Form::Reduce {
            reduction,
            vars: vars.to_vec(),
            guard,
            body: self.arena.add(Form::Convert(body), wide),
        };
        let value = self.arena.add(form, wide);
        let [found, meant] = [found, meant].map(|number| {
            let number = Form::Constant(Scalar::Int(number));
            self.arena.add(number, wide)
        });
        let nothing = Form::Apply(Function::Eq, vec![value, found]);
        let nothing = self.arena.add(nothing, truth);
        let chosen = Form::Apply(Function::Select, vec![nothing, meant, value]);
        let chosen = self.arena.add(chosen, wide);
        Some(self.arena.add(Form::Convert(chosen), Ty::Typed(dtype)))
    }
}
