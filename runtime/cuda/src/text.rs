//! Functions of CUDA C++: their parameters, their threads, their text.
//!
//! A thread takes the terms of an output point alone where there are fewer than [`WARP`], 32 threads do where there are fewer than [`BLOCK`],
//! else 256. That, and so the order of a reduction and its bits, follows from the kernel alone. Must not know kernels, nor how a text is compiled.
//!
//! ```text
//! extern "C" __global__ void k0(ein::whole i0_start, ein::whole i0_length, ein::In<float> a0_0, ein::Out<float> to0) { … }
//! ```

use crate::function::stored_type;
use ein_plan::DType;
use std::fmt;

/// From so many terms on, a warp computes an output point.
const WARP: u64 = 32;
/// From so many terms on, a block does.
const BLOCK: u64 = 2048;

/// The most characters of a line of parameters.
const WIDTH: usize = 140;

/// Why a kernel is computed on the cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It is a library operation.
    Library,
    /// It has an index of which nothing can be counted in 64 bits, or too many indices.
    TooLarge,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Reason::Library => "a library operation",
            Reason::TooLarge => "it has too many indices or points",
        })
    }
}

/// A parameter of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The member of a group whose it is; none: the function's own.
    pub member: Option<usize>,
    /// Its meaning.
    pub meaning: Meaning,
}

/// The meaning of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The first global number of an index.
    Start(usize),
    /// How many values an index has.
    Length(usize),
    /// The global number at which a dimension of an operand begins.
    OperandStart(usize, usize),
    /// Elements of a dimension of an operand.
    OperandLength(usize, usize),
    /// A column of an operand.
    Column(usize, usize, DType),
    /// A column of the result.
    Result(usize, DType),
    /// The flag that is set where a point has no value.
    Flag,
    /// A number that the text names itself.
    Number(usize),
}

impl Meaning {
    /// A parameter of a function that computes one kernel, or none.
    pub fn alone(self) -> Parameter {
        Parameter {
            member: None,
            meaning: self,
        }
    }

    /// Its name in the text of one kernel.
    pub fn name(&self) -> String {
        match self {
            Meaning::Start(i) => format!("i{i}_start"),
            Meaning::Length(i) => format!("i{i}_length"),
            Meaning::OperandStart(o, d) => format!("a{o}_start{d}"),
            Meaning::OperandLength(o, d) => format!("a{o}_length{d}"),
            Meaning::Column(o, c, _) => format!("a{o}_{c}"),
            Meaning::Result(c, _) => format!("to{c}"),
            Meaning::Flag => "flag".into(),
            Meaning::Number(n) => format!("n{n}"),
        }
    }
}

/// The prefix of the names of a member of a group.
pub(crate) fn prefix(member: Option<usize>) -> String {
    member.map_or_else(String::new, |member| format!("m{member}_"))
}

impl Parameter {
    /// Its name in the text.
    pub fn name(&self) -> String {
        prefix(self.member) + &self.meaning.name()
    }

    /// Its type in the text.
    pub fn kind(&self) -> String {
        match self.meaning {
            Meaning::Column(_, _, dtype) => format!("ein::In<{}>", stored_type(dtype)),
            Meaning::Result(_, dtype) => format!("ein::Out<{}>", stored_type(dtype)),
            Meaning::Flag => "ein::Out<int>".into(),
            _ => "ein::whole".into(),
        }
    }

    /// The type of its elements, if it is memory.
    pub fn elements(&self) -> Option<&'static str> {
        match self.meaning {
            Meaning::Column(_, _, dtype) | Meaning::Result(_, dtype) => Some(stored_type(dtype)),
            Meaning::Flag => Some("int"),
            _ => None,
        }
    }
}

/// The threads that compute an output point together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// One.
    Thread,
    /// The 32 of a warp.
    Warp,
    /// The 256 of a block.
    Block,
}

impl Meeting {
    /// Of a reduction of so many terms.
    pub(crate) fn of(terms: u64) -> Meeting {
        match terms {
            0..WARP => Meeting::Thread,
            WARP..BLOCK => Meeting::Warp,
            _ => Meeting::Block,
        }
    }

    /// The threads of a block, and how many output points it computes.
    pub fn block(self) -> (u32, u64) {
        match self {
            Meeting::Thread => (256, 256),
            Meeting::Warp => (128, 4),
            Meeting::Block => (256, 1),
        }
    }
}

/// A function of CUDA C++.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Its parameters, in order.
    pub parameters: Vec<Parameter>,
    /// Its statements.
    pub body: String,
    /// The threads that work together.
    pub meeting: Meeting,
}

impl Text {
    /// The function under a name.
    pub fn function(&self, name: &str) -> String {
        let mut all = format!("extern \"C\" __global__ void {name}(");
        let mut length = all.len();
        for (number, parameter) in self.parameters.iter().enumerate() {
            let text = format!("{} {}", parameter.kind(), parameter.name());
            let comma = if number > 0 { "," } else { "" };
            all += comma;
            if length + text.len() > WIDTH {
                all += "\n    ";
                length = 4;
            } else if number > 0 {
                all.push(' ');
            }
            length += text.len() + 2;
            all += &text;
        }
        all + ") {\n" + &self.body + "}\n"
    }
}

/// The text in front of all functions, as far as every compiler takes it.
pub fn prelude() -> &'static str {
    concat!(
        include_str!("prelude.cuh"),
        "\n",
        include_str!("random.cuh")
    )
}
