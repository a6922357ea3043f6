//! Typed expressions over index variables: a hash-consed graph shared by all statements.
//!
//! A node's arguments have smaller numbers than the node, so that passes over it need no recursion. Must not
//! know syntax, names or messages.
//!
//! ```text
//! e7: f32 = sum[v2] where v1 < v2 of mul(e3, e5)      free: v0, v1
//! ```

use crate::sema::sizes::size::Size;
use ein_plan::{DType, Function, Reduction, Scalar};
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// An expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ExprId(pub(crate) u32);

/// An index variable: every binding of an index name has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct VarId(pub(crate) u32);

/// A tensor of the program being checked; operands have smaller numbers than what uses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TensorRef(pub(crate) u32);

/// The type of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Ty {
    /// An untyped number, which takes the type of what it meets.
    Number {
        /// True if it is a whole number for certain.
        whole: bool,
    },
    /// A stored type; arithmetic is done in its compute type.
    Typed(DType),
}

/// The forms that make complex numbers of real ones, and take them apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ComplexForm {
    /// The complex number of a real and an imaginary part.
    Pair,
    /// The real part.
    Real,
    /// The imaginary part.
    Imaginary,
    /// The number with its imaginary part negated.
    Conjugate,
    /// The angle, from −π to π.
    Angle,
}

/// The form of an expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Form {
    /// A literal that is not a size.
    Constant(Scalar),
    /// A whole number made of literals and sizes.
    Whole(Size),
    /// The number of an index.
    Index(VarId),
    /// How many numbers an index runs over.
    SizeOf(VarId),
    /// An element of a tensor; positions are `i64`.
    Read {
        tensor: TensorRef,
        positions: Vec<ExprId>,
        otherwise: Option<ExprId>,
    },
    /// A function of the table.
    Apply(Function, Vec<ExprId>),
    /// A function that only complex numbers have.
    Complex(ComplexForm, Vec<ExprId>),
    /// A conversion to the node's type.
    Convert(ExprId),
    /// A whole number in the type that values of the node's type are computed in: nothing is stored.
    Computed(ExprId),
    /// A reduction over the points at which `guard` holds.
    Reduce {
        reduction: Reduction,
        vars: Vec<VarId>,
        guard: Option<ExprId>,
        body: ExprId,
    },
}

impl Form {
    /// The expressions that it is made of.
    pub(crate) fn arguments(&self) -> Vec<ExprId> {
        match self {
            Form::Constant(_) | Form::Whole(_) | Form::Index(_) | Form::SizeOf(_) => vec![],
            Form::Read {
                positions,
                otherwise,
                ..
            } => positions.iter().copied().chain(*otherwise).collect(),
            Form::Apply(_, arguments) | Form::Complex(_, arguments) => arguments.clone(),
            Form::Convert(argument) | Form::Computed(argument) => vec![*argument],
            Form::Reduce { guard, body, .. } => guard.iter().copied().chain([*body]).collect(),
        }
    }
}

impl Form {
    /// The expressions that it is made of, to be replaced.
    pub(crate) fn arguments_mut(&mut self) -> Vec<&mut ExprId> {
        match self {
            Form::Constant(_) | Form::Whole(_) | Form::Index(_) | Form::SizeOf(_) => vec![],
            Form::Read {
                positions,
                otherwise,
                ..
            } => positions.iter_mut().chain(otherwise).collect(),
            Form::Apply(_, arguments) | Form::Complex(_, arguments) => {
                arguments.iter_mut().collect()
            }
            Form::Convert(argument) | Form::Computed(argument) => vec![argument],
            Form::Reduce { guard, body, .. } => guard.iter_mut().chain([body]).collect(),
        }
    }
}

struct Node {
    form: Rc<Form>,
    ty: Ty,
    free: Rc<[VarId]>,
    /// True if it is complex, or made of something that is.
    complex: bool,
}

/// All expressions.
#[derive(Default)]
pub(crate) struct Arena {
    nodes: Vec<Node>,
    has_complex: bool,
    known: FxHashMap<(Rc<Form>, Ty), ExprId>,
    /// Untyped expressions that have been given a type.
    pub(crate) coerced: FxHashMap<(ExprId, DType), ExprId>,
}

impl Arena {
    /// The expression of that form and type.
    pub(crate) fn add(&mut self, form: Form, ty: Ty) -> ExprId {
        let form = Rc::new(form);
        if let Some(id) = self.known.get(&(form.clone(), ty)) {
            return *id;
        }
        let mut free: Vec<VarId> = match &*form {
            Form::Index(var) | Form::SizeOf(var) => vec![*var],
            other => other
                .arguments()
                .into_iter()
                .flat_map(|a| self.free(a).to_vec())
                .collect(),
        };
        free.sort();
        free.dedup();
        if let Form::Reduce { vars, .. } = &*form {
            free.retain(|var| !vars.contains(var));
        }
        let complex = matches!(ty, Ty::Typed(dtype) if dtype.is_complex())
            || form.arguments().into_iter().any(|a| self.holds_complex(a));
        self.has_complex |= complex;
        let id = ExprId(self.nodes.len() as u32);
        self.nodes.push(Node {
            form: form.clone(),
            ty,
            free: free.into(),
            complex,
        });
        self.known.insert((form, ty), id);
        id
    }

    /// Its form.
    pub(crate) fn form(&self, id: ExprId) -> Rc<Form> {
        self.nodes[id.0 as usize].form.clone()
    }

    /// Its type.
    pub(crate) fn ty(&self, id: ExprId) -> Ty {
        self.nodes[id.0 as usize].ty
    }

    /// Returns whether it is complex, or made of something that is.
    pub(crate) fn holds_complex(&self, id: ExprId) -> bool {
        self.nodes[id.0 as usize].complex
    }

    /// Returns whether any expression is complex.
    pub(crate) fn has_complex(&self) -> bool {
        self.has_complex
    }

    /// The variables that it depends on, ascending.
    pub(crate) fn free(&self, id: ExprId) -> Rc<[VarId]> {
        self.nodes[id.0 as usize].free.clone()
    }

    /// Number of expressions.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// A whole untyped number.
    pub(crate) fn whole(&mut self, size: Size) -> ExprId {
        self.add(Form::Whole(size), Ty::Number { whole: true })
    }

    /// An untyped number with a fraction.
    pub(crate) fn real(&mut self, value: f64) -> ExprId {
        self.add(
            Form::Constant(Scalar::Float(value)),
            Ty::Number { whole: false },
        )
    }

    /// A truth value.
    pub(crate) fn truth(&mut self, value: bool) -> ExprId {
        self.add(Form::Constant(Scalar::Bool(value)), Ty::Typed(DType::Bool))
    }

    /// The size, if the expression is nothing else.
    pub(crate) fn as_size(&self, id: ExprId) -> Option<Size> {
        match &*self.form(id) {
            Form::Whole(size) => Some(size.clone()),
            _ => None,
        }
    }

    /// The truth value, if it is known.
    pub(crate) fn as_truth(&self, id: ExprId) -> Option<bool> {
        match &*self.form(id) {
            Form::Constant(Scalar::Bool(value)) => Some(*value),
            _ => None,
        }
    }

    /// The number or truth value, if it is known.
    pub(crate) fn as_scalar(&self, id: ExprId) -> Option<Scalar> {
        match &*self.form(id) {
            Form::Constant(scalar) => Some(*scalar),
            Form::Whole(size) => size.known().map(Scalar::Int),
            _ => None,
        }
    }

    /// The number, rounded to a float, if it is known.
    pub(crate) fn as_number(&self, id: ExprId) -> Option<f64> {
        let scalar = self.as_scalar(id);
        let number = scalar.filter(|scalar| !matches!(scalar, Scalar::Bool(_)));
        number.map(|number| number.as_f64())
    }
}
