//! The resolved, typed tree: where each name of a program is defined and used, how far each index runs, and the type of
//! every expression.
//!
//! An editor or another front end asks it; it never changes once it is made. It is also there for programs with errors, as far
//! as they could be checked. Must not know files on disk or messages.
//!
//! ```text
//! y[n] = X[n,d] * w[d]    with X: f32[8, 4]
//!   =>   `d`: index 0..4, uses 1:12, 1:19;   X[n,d] * w[d]: f32
//! ```

pub(crate) mod collect;
pub(crate) mod notes;

use ein_plan::DType;
use einc_diag::{FileId, Span};
use std::fmt;

/// A definition in [`Hir`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DefinitionId(pub u32);

/// The kind of thing that a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `dim N`.
    Dim,
    /// `input X: f32[N]`.
    Input,
    /// `param w: f32[N]`.
    Param,
    /// `const c = 2`.
    Const,
    /// A definition: `y[n] = …`.
    Value,
    /// `fn f(…)`.
    Function,
    /// `module m(…)(…)`.
    Module,
    /// `param layer: m(…)`.
    Instance,
    /// A parameter of a function or module.
    Formal,
    /// A size that a signature names: `d` of `fn f(x[d])`.
    Size,
    /// An index of a left side, a reduction or an implicit sum.
    Index,
    /// The counter of a `repeat`.
    Counter,
    /// `state h[n] = …`.
    State,
}

impl Kind {
    /// The word for it in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Dim => "dim",
            Kind::Input => "input",
            Kind::Param => "param",
            Kind::Const => "const",
            Kind::Value => "definition",
            Kind::Function => "function",
            Kind::Module => "module",
            Kind::Instance => "instance",
            Kind::Formal => "parameter",
            Kind::Size => "size",
            Kind::Index => "index",
            Kind::Counter => "counter",
            Kind::State => "state",
        }
    }
}

/// How far a dimension or an index runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// As a formula over dims: `N + 1`. A known size is its number.
    pub text: String,
    /// The number, where it is known.
    pub number: Option<i64>,
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The type of an expression or a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The element type; `None`: a number that takes the type of the expressions that it meets.
    pub element: Option<DType>,
    /// The dimensions; none of a scalar.
    pub shape: Vec<Extent>,
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            Some(element) => f.write_str(element.name())?,
            None => f.write_str("number")?,
        }
        if self.shape.is_empty() {
            return Ok(());
        }
        let sizes: Vec<&str> = self.shape.iter().map(|size| size.text.as_str()).collect();
        write!(f, "[{}]", sizes.join(", "))
    }
}

/// A name that is defined somewhere in the text.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The name, as the text has it.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// The place of the name where it is defined.
    pub span: Span,
    /// The types that it has: one, or in the body of a function one for each different call.
    pub types: Vec<Type>,
    /// How far an index runs, for each different call; the number of a dim.
    pub extents: Vec<Extent>,
}

/// The resolved, typed tree of a program.
#[derive(Clone, Debug, Default)]
pub struct Hir {
    /// In source order.
    definitions: Vec<Definition>,
    /// Every place where a name stands, definitions included, in source order.
    names: Vec<(Span, DefinitionId)>,
    /// Every expression that has a type, in source order, the outer before the inner.
    expressions: Vec<(Span, Type)>,
}

impl Hir {
    /// All definitions, in source order.
    pub fn definitions(&self) -> impl Iterator<Item = (DefinitionId, &Definition)> {
        let numbered = self.definitions.iter().enumerate();
        numbered.map(|(at, definition)| (DefinitionId(at as u32), definition))
    }

    /// The definition of that number.
    pub fn definition(&self, id: DefinitionId) -> &Definition {
        &self.definitions[id.0 as usize]
    }

    /// The name that stands at a byte of a file, with its definition.
    pub fn name_at(&self, file: FileId, byte: u32) -> Option<(Span, DefinitionId)> {
        innermost(&self.names, file, byte).copied()
    }

    /// The places where a definition is used, in source order.
    pub fn uses(&self, id: DefinitionId) -> impl Iterator<Item = Span> {
        let own = self.definition(id).span;
        let places = self.names.iter().filter(move |(_, of)| *of == id);
        places.map(|(span, _)| *span).filter(move |at| *at != own)
    }

    /// The smallest expression that has a type and stands at a byte of a file, with every type that it has: one, or in the body of
    /// a function one for each different call.
    pub fn types_at(&self, file: FileId, byte: u32) -> Option<(Span, Vec<&Type>)> {
        let (span, _) = innermost(&self.expressions, file, byte)?;
        let from = self
            .expressions
            .partition_point(|(other, _)| order(*other) < order(*span));
        let own = self.expressions[from..].iter();
        let own = own.take_while(|(other, _)| other == span);
        Some((*span, own.map(|(_, ty)| ty).collect()))
    }
}

/// The order of places: by file and first byte, the longer before the shorter.
fn order(span: Span) -> (FileId, u32, std::cmp::Reverse<u32>) {
    (span.file, span.start, std::cmp::Reverse(span.end))
}

/// The shortest entry that holds a byte. Entries are in the order of [`order`], and nested or apart.
fn innermost<T>(entries: &[(Span, T)], file: FileId, byte: u32) -> Option<&(Span, T)> {
    let before = entries.partition_point(|(span, _)| (span.file, span.start) <= (file, byte));
    let holding = entries[..before].iter().rev();
    let mut holding = holding
        .take_while(|(span, _)| span.file == file)
        .filter(|(span, _)| byte < span.end);
    holding.next()
}
