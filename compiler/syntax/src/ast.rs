//! The syntax tree, with a span on every node that a message can point at.
//!
//! Must not know what names mean. Everything a file says is here except comments and layout, which the
//! formatter takes from the tokens.
//!
//! ```text
//! y[n] = sum[d] X[n,d]   =>   Definition { targets: [y[n]], value: Reduce(sum, [d], …) }
//! ```

#![allow(missing_docs)] // fields say what they are; variants and types are documented

mod children;

use ein_plan::{DType, Reduction};
use einc_diag::Span;
use serde::{Deserialize, Serialize};

/// A name or a dotted path, NFC-normalised, with its place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name {
    /// The text.
    pub text: String,
    /// The place.
    pub span: Span,
}

/// A parsed file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct File {
    /// Items in source order.
    pub items: Vec<Item>,
}

/// An item with its documentation (`///` lines before it, without the slashes).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// What it is.
    pub kind: ItemKind,
    /// The whole item.
    pub span: Span,
    /// Documentation, if any.
    pub doc: Option<String>,
}

/// The items of a file; the first group may also stand in a body.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(clippy::large_enum_variant)] // a program has few items, and matching on boxes is clumsy
pub enum ItemKind {
    /// `dim N = 4` or `dim N`.
    Dim { name: Name, value: Option<Expr> },
    /// `input X: f32[N, D] = load("x.npy")`.
    Input {
        name: Name,
        ty: Type,
        source: Option<Expr>,
    },
    /// `param w: f32[D] = zeros` or `param enc: encoder(D, 12)[L]`.
    Param {
        name: Name,
        ty: Type,
        source: Option<Expr>,
    },
    /// `const mu[d]: f32[D] = …`.
    Const {
        target: Target,
        ty: Option<Type>,
        value: Expr,
    },
    /// `output x on (Xv, yv) -> "x.npy"`.
    Output {
        name: Name,
        on: Option<Vec<Name>>,
        file: Option<StringLiteral>,
    },
    /// `use std.nn`.
    UseLibrary { path: Name },
    /// `use "layers.ein"`.
    UseFile { path: StringLiteral },
    /// `assert D % H == 0`, `assert all[n] (x[n] > 0), "x must be positive"`.
    Assert {
        condition: Expr,
        message: Option<StringLiteral>,
    },
    /// `fn f(x[n], k = 2) -> y[n] { … }` or `fn f(x) = …`.
    Function(Function),
    /// `module linear(D, H)(x[.., D]) -> y[.., H] { … }`.
    Module(Module),
    /// `optimizer sgd(lr) for w[..], g[..] { … }`.
    Optimizer(Optimizer),
    /// `schedule warmup(steps) for steps = …`.
    Schedule(Schedule),
    /// `train { … }`.
    Train(Train),
    /// A definition, scatter or `repeat` at the top level.
    Statement(Statement),
    /// Text that did not parse; its diagnostics have been reported.
    Error(Option<Name>),
}

/// What `output x on (Xv, yv)` is called, in what is printed and behind `--save`: `x.on.Xv.yv`; without `on` it is the name.
pub fn output_name(name: &Name, on: Option<&[Name]>) -> String {
    let mut full = name.text.clone();
    if let Some(on) = on {
        full.push_str(&on_suffix(on));
    }
    full
}

/// `.on.Xv.yv`: what is behind the names of what is computed of other data.
pub fn on_suffix(on: &[Name]) -> String {
    let names: Vec<&str> = on.iter().map(|name| name.text.as_str()).collect();
    format!(".on.{}", names.join("."))
}

/// `fn`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// Name.
    pub name: Name,
    /// Parameters.
    pub formals: Vec<Formal>,
    /// Results and body.
    pub body: FunctionBody,
}

/// The two forms of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FunctionBody {
    /// `= expression`.
    Expression(Expr),
    /// `-> results { … }`.
    Block {
        results: Vec<Formal>,
        body: Vec<Item>,
    },
}

/// `module`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// Name.
    pub name: Name,
    /// The first brackets: sizes and options.
    pub options: Vec<Formal>,
    /// The second brackets: what it is applied to.
    pub formals: Vec<Formal>,
    /// Results.
    pub results: Vec<Formal>,
    /// Body.
    pub body: Vec<Item>,
}

/// `optimizer`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Optimizer {
    /// Name.
    pub name: Name,
    /// Arguments.
    pub formals: Vec<Formal>,
    /// `w[..]`.
    pub weight: Formal,
    /// `g[..]`.
    pub gradient: Formal,
    /// Body.
    pub body: Vec<Item>,
}

/// `schedule`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Name.
    pub name: Name,
    /// Arguments.
    pub formals: Vec<Formal>,
    /// `for length`.
    pub length: Option<Expr>,
    /// The factor.
    pub value: Expr,
}

/// `train`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Train {
    /// Entries in order.
    pub entries: Vec<TrainEntry>,
}

/// A line of a `train` block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TrainEntry {
    /// `key: value suffix…`; `value` is absent in `data: over N …`. `then` joins schedules.
    Setting {
        key: Name,
        value: Option<Expr>,
        then: Vec<Expr>,
        suffixes: Vec<Suffix>,
        span: Span,
    },
    /// `group pattern, … { key: value, … }`; a pattern as written, without blanks.
    Group {
        patterns: Vec<Name>,
        settings: Vec<Argument>,
        span: Span,
    },
}

/// What may follow a value in a `train` block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Suffix {
    /// `over N`.
    Over(Name),
    /// `by 512`.
    By(Expr),
    /// `shuffle`.
    Shuffle(Span),
    /// `every 1 epoch`.
    Every { count: Expr, unit: Name },
    /// `keep 3`.
    Keep(Expr),
    /// `on (Xv, yv)`.
    On(Vec<Name>),
}

/// A parameter or result: `x[.., d]: f32 = default`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Formal {
    /// Name.
    pub name: Name,
    /// Sizes in brackets; `None`: a scalar (or, in an expression function, whatever is passed).
    pub shape: Option<Vec<Position>>,
    /// Type.
    pub ty: Option<Type>,
    /// Default.
    pub default: Option<Expr>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Statement {
    /// `y[n] = …`, `a, b = f(x)`, `next x[i] = …`, `state x[i] = …`.
    Definition {
        role: Role,
        targets: Vec<Target>,
        ty: Option<Type>,
        value: Expr,
        span: Span,
    },
    /// `G[tok[n], d]: f32[V, D] += …`; with `else drop` behind the left side, values without a place are left out. Also
    /// `y[28*r + c] = …`.
    Scatter {
        target: Target,
        ty: Option<Type>,
        combine: Combine,
        drops: bool,
        value: Expr,
        span: Span,
    },
    /// `repeat k < 100 until … { … }`.
    Repeat {
        counter: Name,
        bound: Expr,
        until: Option<Expr>,
        body: Vec<Item>,
        span: Span,
    },
}

/// What a definition defines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// An ordinary name.
    Plain,
    /// `state x = …`: the value before the first round.
    State,
    /// `next x = …`: the value at the end of a round.
    Next,
}

/// How scattered values combine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Combine {
    /// `+=`.
    Add,
    /// `max=`.
    Max,
    /// `min=`.
    Min,
    /// `=`: no two values meet, and every place has one.
    Once,
}

/// A left side: a name and, in brackets, indices (`i`, `i < bound`, `..`) or, in a scatter, positions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Target {
    /// Name.
    pub name: Name,
    /// Brackets, if any.
    pub positions: Option<Vec<Position>>,
    /// Name and brackets.
    pub span: Span,
}

/// What stands in square brackets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Position {
    /// An expression; `i < n` and `i <= n` bind `i` with a bound.
    Expr(Expr),
    /// `..`.
    Rest(Span),
}

/// A type: `f32`, `f32[N, D]`, or, for a param, `linear(128, 10)[L]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Type {
    /// An element type and sizes; no sizes: a scalar.
    Tensor {
        dtype: DType,
        shape: Option<Vec<Position>>,
        span: Span,
    },
    /// A module with options and, for an array of instances, counts.
    Module {
        name: Name,
        arguments: Vec<Argument>,
        shape: Option<Vec<Position>>,
        span: Span,
    },
}

/// An argument, named or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Argument {
    /// `name:` before it.
    pub name: Option<Name>,
    /// The value.
    pub value: Expr,
}

/// A string with its place (quotes included in the span, not in the text).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StringLiteral {
    /// The text.
    pub text: String,
    /// The place.
    pub span: Span,
}

/// An expression with its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expr {
    /// What it is.
    pub kind: Box<ExprKind>,
    /// Where it is.
    pub span: Span,
}

/// The kinds of expressions, as written: nothing is inserted or folded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ExprKind {
    /// A whole number. Beyond `u64`: a syntax error.
    Integer(u64),
    /// A number with a point or exponent.
    Float(f64),
    /// `true`, `false`.
    Bool(bool),
    /// A string.
    String(String),
    /// A name or path; `inf`, `nan` and `pi` are names here.
    Name(String),
    /// `next x`.
    Next(Name),
    /// `base[positions]`.
    Access {
        base: Expr,
        positions: Vec<Position>,
    },
    /// `callee(arguments)`; an element type as callee is a conversion and is `Name("f32")`.
    Call {
        callee: Expr,
        arguments: Vec<Argument>,
    },
    /// `value else fallback`.
    Else { value: Expr, fallback: Expr },
    /// `-x`.
    Negate(Expr),
    /// `not x`.
    Not(Expr),
    /// Arithmetic, comparison and logic with two operands.
    Binary {
        operator: Binary,
        operator_span: Span,
        left: Expr,
        right: Expr,
    },
    /// `a < b <= c`: `first`, then (operator, operand) at least twice; a single comparison is `Binary`.
    Chain {
        first: Expr,
        rest: Vec<(Binary, Expr)>,
    },
    /// `sum[i, j < n] body`.
    Reduce {
        reduction: Reduction,
        reduction_span: Span,
        indices: Vec<Position>,
        body: Expr,
    },
    /// `(x)`: brackets matter to the implicit-sum rule.
    Bracket(Expr),
    /// `(a, b)`.
    Tuple(Vec<Expr>),
    /// `[a, b]`.
    List(Vec<Expr>),
    /// Text that did not parse; reported.
    Error,
}

/// Operators with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs)]
pub enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Power,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    BitAnd,
    BitOr,
    BitXor,
    ShiftLeft,
    ShiftRight,
    And,
    Or,
}
