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
    expressions::arena::{ExprId, TensorRef, Ty, VarId},
    lower::parts::Builder,
};
use ein_plan::{DType, IndexId, Node, NodeId};
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
}
