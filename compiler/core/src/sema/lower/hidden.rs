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
    expressions::arena::{ExprId, Form, TensorRef, Ty, VarId},
    lower::parts::Builder,
};
use ein_plan::{DType, Function, IndexId, Node, NodeId, Reduction, Scalar};
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
