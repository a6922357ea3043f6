//! Sums over the rows of a list, from where each row begins to where the next one does.
//!
//! A list that ascends along a dimension has the elements of each position there beside each other. A sum of products of elements, one number for each
//! position, needs to know no more than where they begin: that is less to read than the position of each element. Must not know how a sum is computed.
//!
//! ```text
//! y: f32[9] = [i: 9 | e: 50] sum A.values[e] * x[A.at1[e]] if i == A.at0[e]
//!
//! A.starts0: u32[10] = listed("A", f32, starts, load("a.mtx"))
//! y: f32[9] = [i: 9 | e: 50] sum A.values[e] * x[A.at1[e]] if and(A.starts0[i] <= e, e < A.starts0[i + 1])
//! ```

use crate::einsum::canonical::statement;
use crate::einsum::{Definition, Program, Rewriting, Role, Statement, Tensor, TensorId};
use crate::rules::factors;
use ein_plan::schedule::guard::solved;
use ein_plan::source::position_type;
use ein_plan::{
    Affine, DType, Function, IndexId, Kernel, ListColumn, Node, NodeId, Operand, Source,
};
use std::collections::BTreeMap;

/// Most factors of a product that loops over a list multiply without a copy of all terms.
const FACTORS: usize = 4;

/// Returns the program in which such sums go from start to start.
pub(super) fn between(program: &Program) -> Program {
    let mut rewriting = Rewriting::of(program);
    let tensors = || (0..).map(TensorId).zip(&program.tensors);
    // Those that are there have their names already.
    let mut made = BTreeMap::new();
    for (old, tensor) in tensors().filter(|(_, tensor)| is_starts(tensor)) {
        let key = (tensor.name.clone(), tensor.shape.clone());
        made.insert(key, rewriting.place(old, tensor.clone()));
    }
    let mut changed = false;
    for (old, tensor) in tensors().filter(|(_, tensor)| !is_starts(tensor)) {
        let mut tensor = rewriting.copy(tensor);
        if let Definition::Statement { kernel, operands } = &mut tensor.definition
            && let Some(found) = Rows::of(kernel, operands, rewriting.result())
        {
            let key = (found.tensor.name.clone(), found.tensor.shape.clone());
            let starts = *(made.entry(key)).or_insert_with(|| rewriting.add(found.tensor.clone()));
            (*kernel, *operands) = found.statement(kernel, operands, starts);
            changed = true;
        }
        rewriting.place(old, tensor);
    }
    match changed {
        false => program.clone(),
        true => (rewriting.finish().needed().arranged())
            .expect("a sum from start to start reads what it read before, and the starts"),
    }
}

/// Returns whether a tensor tells where the rows of a list start.
fn is_starts(tensor: &Tensor) -> bool {
    matches!(
        tensor.definition,
        Definition::Source(Source::Listed {
            column: ListColumn::Starts,
            ..
        })
    )
}

/// The tensor that tells where each of so many rows starts in a list, which has the rows' numbers in this column, ascending.
pub(super) fn of_column(numbers: &Tensor, rows: u64) -> Option<Tensor> {
    let Definition::Source(source) = &numbers.definition else {
        return None;
    };
    let mut source = source.clone();
    let Source::Listed {
        tensor, column, by, ..
    } = &mut source
    else {
        return None;
    };
    if *column != ListColumn::Positions(*by) {
        return None;
    }
    *column = ListColumn::Starts;
    Some(Tensor {
        name: format!("{tensor}.starts{by}"),
        dtype: position_type(numbers.shape.first()? + 1),
        shape: vec![rows + 1],
        role: Role::Hidden,
        definition: Definition::Source(source),
        block: None,
        origin: numbers.origin,
    })
}

/// The rows of a list that a sum goes through, by where they start.
struct Rows {
    /// The tensor of the starts.
    tensor: Tensor,
    rows: u64,
}

impl Rows {
    fn of(kernel: &Kernel, operands: &[TensorId], program: &Program) -> Option<Rows> {
        let [row, element] = &kernel.indices[..] else {
            return None;
        };
        let Node::Read {
            operand, positions, ..
        } = kernel.graph.node(place(kernel)?)
        else {
            return None;
        };
        let listed = program.tensor(operands[*operand as usize]);
        let in_turn = kernel.graph.as_index(positions[0]) == Some(IndexId(1))
            && listed.shape == [element.extent];
        if !in_turn || row.extent >= element.extent {
            return None;
        }
        let tensor = of_column(listed, row.extent)?;
        let rows = row.extent;
        Some(Rows { tensor, rows })
    }

    /// The sum, from start to start.
    fn statement(&self, kernel: &Kernel, operands: &[TensorId], starts: TensorId) -> Statement {
        let (row, element) = (IndexId(0), IndexId(1));
        let mut kernel = kernel.clone();
        let operand = kernel.operands.len() as u32;
        kernel.operands.push(Operand {
            columns: vec![self.tensor.dtype],
            shape: vec![self.rows + 1],
        });
        let graph = &mut kernel.graph;
        let mut start = |constant: i64| {
            let terms = vec![(row, 1)];
            let position = graph.add_affine(&Affine { constant, terms });
            let read = Node::Read {
                operand,
                column: 0,
                positions: vec![position],
                otherwise: None,
            };
            graph.add(read, DType::I64)
        };
        let (first, behind) = (start(0), start(1));
        let element = graph.add(Node::Index(element), DType::I64);
        let mut compared = |function, sides| graph.add(Node::Apply(function, sides), DType::Bool);
        let conditions = [
            compared(Function::Le, vec![first, element]),
            compared(Function::Lt, vec![element, behind]),
        ];
        kernel.guard = None;
        conditions
            .into_iter()
            .for_each(|condition| kernel.restrict(condition));
        statement(kernel, &[operands, &[starts]].concat())
    }
}

/// Which row each term goes to, if the sum is one of products of elements, each at a place that an index or a list of one dimension says.
fn place(kernel: &Kernel) -> Option<NodeId> {
    let graph = &kernel.graph;
    let known = [DType::F32, DType::F64, DType::I64].contains(&graph.dtype(kernel.root));
    let rows = [IndexId(0)];
    if !known || !kernel.finish || kernel.scattered() != rows {
        return None;
    }
    let plain = |id: &NodeId| match graph.node(*id) {
        Node::Constant(_) => true,
        Node::Read {
            positions,
            otherwise,
            ..
        } => positions.len() == 1 && otherwise.is_none(),
        _ => false,
    };
    let factors = factors(graph, kernel.root);
    let solved = solved(kernel, &rows);
    let (_, place) = solved.places.first()?;
    let place = match graph.node(*place) {
        Node::Convert(place) => *place,
        _ => *place,
    };
    let plain = factors.len() <= FACTORS && factors.iter().all(plain) && plain(&place);
    (plain && solved.rest.is_empty()).then_some(place)
}
