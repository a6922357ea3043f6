//! Programs as text, one statement a line, for these tests.

use ein_plan::{Function, Index, Kernel, Node, NodeId, Scalar};
use einc_core::einsum::{Definition, Program};

/// The statements of a program.
pub fn statements(program: &Program) -> Vec<String> {
    program
        .tensors
        .iter()
        .map(|tensor| {
            let sizes: Vec<String> = tensor.shape.iter().map(ToString::to_string).collect();
            let shape = if sizes.is_empty() {
                String::new()
            } else {
                format!("[{}]", sizes.join(", "))
            };
            let head = format!("{}: {}{shape} =", tensor.name, tensor.dtype);
            match &tensor.definition {
                Definition::Source(source) => format!("{head} {source:?}"),
                Definition::Statement { kernel, operands } => {
                    let operands: Vec<&str> = operands
                        .iter()
                        .map(|o| program.tensor(*o).name.as_str())
                        .collect();
                    let list = |indices: &[Index]| {
                        indices
                            .iter()
                            .map(|i| format!("{}: {}", i.name, i.extent))
                            .collect::<Vec<_>>()
                            .join(", ")
                    };
                    let (left, reduced) = kernel.indices.split_at(kernel.output_rank as usize);
                    let mut text = format!("{head} [{}", list(left));
                    if let Some(reduction) = kernel.reduction {
                        text += &format!(" | {}] {}", list(reduced), reduction.name());
                    } else {
                        text += "]";
                    }
                    if let Some(guard) = kernel.guard {
                        text += &format!(" where {}:", node(kernel, &operands, guard));
                    }
                    format!("{text} {}", node(kernel, &operands, kernel.root))
                }
            }
        })
        .collect()
}

fn node(kernel: &Kernel, operands: &[&str], id: NodeId) -> String {
    let dtype = kernel.graph.dtype(id);
    let sub = |id: &NodeId| node(kernel, operands, *id);
    match kernel.graph.node(id) {
        Node::Constant(Scalar::Float(x)) => {
            format!("{x:?}{}", if dtype.size() == 8 { "d" } else { "" })
        }
        Node::Constant(Scalar::Int(x)) => x.to_string(),
        Node::Constant(Scalar::Bool(x)) => x.to_string(),
        Node::Index(index) => kernel.indices[index.0 as usize].name.clone(),
        Node::Read {
            operand,
            positions,
            otherwise,
            ..
        } => {
            let positions: Vec<String> = positions.iter().map(sub).collect();
            let read = format!("{}[{}]", operands[*operand as usize], positions.join(", "));
            match otherwise {
                Some(otherwise) => format!("({read} else {})", sub(otherwise)),
                None => read,
            }
        }
        Node::Convert(argument) => format!("{dtype}({})", sub(argument)),
        Node::Apply(function, arguments) => {
            let symbol = match function {
                Function::Add => "+",
                Function::Sub => "-",
                Function::Mul => "*",
                Function::Div => "/",
                Function::Lt => "<",
                Function::Le => "<=",
                Function::Gt => ">",
                Function::Ge => ">=",
                Function::Eq => "==",
                Function::And => "and",
                Function::Or => "or",
                other => {
                    let arguments: Vec<String> = arguments.iter().map(sub).collect();
                    return format!("{}({})", other.name(), arguments.join(", "));
                }
            };
            format!("({} {symbol} {})", sub(&arguments[0]), sub(&arguments[1]))
        }
    }
}
