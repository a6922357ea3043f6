//! Tensors while a program is checked: how each comes about, and what is known of a definition before its value is read.
//!
//! Must not know how expressions are checked.
//!
//! ```text
//! O[n,y]: f32[N, H/2] = …   =>   O, f32 [N, H/2], a statement over (v0, v1)
//! ```

use crate::einsum::{BlockId, LoopValue, Role};
use crate::sema::{
    InputInfo,
    expressions::arena::{ExprId, TensorRef, VarId},
    rounds::block::Block,
    sizes::{ranges::StatedBy, size::Size},
};
use ein_plan::{DType, Source};
use einc_diag::Span;
use einc_syntax::ast::{self, Expr, Type};
use std::collections::HashMap;

/// A source; those that depend on how a parameter is used are settled at the end.
#[derive(Clone, Debug)]
pub(crate) enum SourceForm {
    Ready(Source),
    /// Normal with variance 2 / fan-in.
    HeNormal {
        fan: Option<f64>,
    },
    /// Uniform with variance 2 / (fan-in + fan-out).
    GlorotUniform {
        fan: Option<f64>,
    },
}

/// How a tensor comes about.
#[derive(Clone, Debug)]
pub(crate) enum Definition {
    Source(SourceForm),
    Statement {
        vars: Vec<VarId>,
        root: ExprId,
    },
    /// The derivative of a scalar by a tensor.
    Gradient {
        loss: TensorRef,
        wrt: TensorRef,
    },
    /// The derivative of a tensor along a direction.
    Along(Along),
    /// A value that a block gives.
    Loop(LoopValue),
}

/// A derivative along a direction, by the tensors of the checker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Along {
    pub(crate) of: TensorRef,
    /// The tensor that moves.
    pub(crate) wrt: TensorRef,
    pub(crate) direction: TensorRef,
}

/// A tensor.
#[derive(Clone, Debug)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<Size>,
    pub(crate) role: Role,
    pub(crate) definition: Definition,
    /// Where it is declared.
    pub(crate) span: Span,
}

/// A tensor that the program gives out.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) tensor: TensorRef,
    /// The carried tensor whose place it takes after a step.
    pub(crate) replaces: Option<TensorRef>,
    /// The file that the text names, or the mark of what is evaluated for training only.
    pub(crate) file: Option<String>,
    /// True if its last dimension holds the parts of complex numbers.
    pub(crate) complex: bool,
    pub(crate) span: Span,
}

impl Output {
    /// A tensor that is printed, or that a session asks for.
    pub(crate) fn of(tensor: TensorRef, span: Span) -> Output {
        Output {
            tensor,
            replaces: None,
            file: None,
            complex: false,
            span,
        }
    }
}

/// An assertion on data: a truth value that the run looks at before anything is given out.
#[derive(Clone, Debug)]
pub(crate) struct Assertion {
    pub(crate) value: TensorRef,
    /// The message where it is false.
    pub(crate) said: String,
    pub(crate) span: Span,
    /// Of one in a body: what the call gives. It is tested where an output needs any of these.
    pub(crate) of: Option<Vec<TensorRef>>,
    /// The block in whose rounds the value is, until all of that block has been read.
    pub(crate) block: Option<BlockId>,
}

/// The parts of the program that have been made so far.
#[derive(Default)]
pub(crate) struct Built {
    pub(crate) tensors: Vec<Tensor>,
    pub(crate) blocks: Vec<Block>,
    /// The block in whose rounds a source is drawn.
    pub(crate) drawn_in: HashMap<TensorRef, BlockId>,
    pub(crate) inputs: Vec<InputInfo>,
    pub(crate) outputs: Vec<Output>,
    pub(crate) asserts: Vec<Assertion>,
    /// Expressions of the text with their places, if the task asks for tables.
    pub(crate) expressions: Vec<(Span, ExprId)>,
    /// True if a source has a number that is not known yet.
    pub(crate) open_source: bool,
}

/// A definition with what is known about it from outside.
pub(crate) struct Target<'a> {
    pub(crate) target: &'a ast::Target,
    pub(crate) ty: Option<&'a Type>,
    pub(crate) value: &'a Expr,
    /// By `const`: a number stays an untyped number.
    pub(crate) constant: bool,
    /// The tensor's full name.
    pub(crate) name: String,
    /// Where the program names it, if it does.
    pub(crate) named: Option<Span>,
    /// Sizes that a signature, or the state whose next value it is, says of it, and where.
    pub(crate) stated: Option<(Vec<Option<Size>>, Span, StatedBy)>,
    pub(crate) in_function: bool,
    /// A state: ranges that are not written follow from other statements.
    pub(crate) infer: bool,
    /// Of a round's state: its type where the value has none of its own; the inner `None`: not known yet.
    pub(crate) guess: Option<Option<DType>>,
}

impl<'a> Target<'a> {
    /// A definition in a body.
    pub(crate) fn local(
        target: &'a ast::Target,
        ty: Option<&'a Type>,
        value: &'a Expr,
        prefix: &str,
    ) -> Target<'a> {
        Target {
            target,
            ty,
            value,
            constant: false,
            name: format!("{prefix}.{}", target.name.text),
            named: None,
            stated: None,
            in_function: true,
            infer: false,
            guess: None,
        }
    }
}
