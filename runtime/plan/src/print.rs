//! The text of kernels, relation types and plans: one statement a line, with its type.
//!
//! The text parses back ([`crate::parse`]) to an equal value if the value is one that [`crate::verify`]
//! accepts. Two things are left out: of an origin only file and line are printed, and names of key dimensions
//! stand for their numbers where they are unique. Must not know how anything is computed.
//!
//! ```text
//! plan for 2 sites
//! files "model.ein"
//! kernel k0 (f32[10, 6], f32[6, 8]) [i: 10, j: 8 | k: 6] f32 = sum a0[i, k] * a1[k, j]
//! r0 A: {i: 10/2, k: 6/1} f32[i, k] @ PART(i) = source A from load("a.npy")   // model.ein:1
//! r1 B: {k: 6/1, j: 8/1} f32[k, j] @ ALL = source B from load("b.npy")   // model.ein:2
//! r2 C: {i: 10/2, j: 8/1, k: 6/1} f32[i, j] @ PART(i) = join k0(r0{i, k}, r1{k, j}) over [i, j, k]; free r0, r1   // model.ein:3
//! output C = r2: f32[10, 8] -> "c.npy"   // model.ein:4
//! ```

pub mod expression;
mod plan;

use crate::dtype::DType;
use crate::ids::{Origin, RelationId};
use crate::kernel::{Kernel, Operand};
use crate::loops::{BlockId, LoopValue};
use crate::mesh::Mesh;
use crate::plan::Fold;
use crate::relation::{ArrayType, AxisRole, KeyDim, Placement, RelationType, Window};
use crate::source::{ListColumn, Source};
pub(crate) use expression::number;
use expression::{body, indices};
use std::fmt::{self, Display, Formatter};

pub use plan::WithLoops;

/// Displays a name: as it is, or in quotes where it could be taken for something else.
pub struct Name<'a>(pub &'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if is_plain(self.0) {
            f.write_str(self.0)
        } else {
            write!(f, "{:?}", self.0)
        }
    }
}

/// Where an output goes, as it is printed behind it: ` replaces W`, ` -> "c.npy"`.
pub fn destination(replaces: Option<&str>, file: Option<&str>) -> String {
    let replaces = replaces.map(|name| format!(" replaces {}", Name(name)));
    let file = file.map(|file| format!(" -> {file:?}"));
    [replaces, file].into_iter().flatten().collect()
}

/// Words that a bare name may not be, because they are numbers or placeholders.
const RESERVED: [&str; 7] = ["inf", "inf_f64", "nan", "nan_f64", "true", "false", "_"];

fn is_plain(name: &str) -> bool {
    let mut segments = name.split('.');
    let first = segments.next().unwrap_or_default();
    first.starts_with(starts_name)
        && first.chars().all(continues_name)
        && segments.all(|s| !s.is_empty() && s.chars().all(continues_name))
        && !RESERVED.contains(&name)
}

/// Whether a bare name may begin with this character.
pub(crate) fn starts_name(c: char) -> bool {
    c.is_alphabetic() || c == '_'
}

/// Whether this character may stand inside a bare name.
pub(crate) fn continues_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '\''
}

/// Displays the items with `, ` between them.
pub fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    items.join(", ")
}

/// How item `number` of a list of names is referred to: by its name, or as `#number` where the name is not
/// unique or there is no such item.
pub fn reference<'a>(names: impl Iterator<Item = &'a str> + Clone, number: u32) -> String {
    match names.clone().nth(number as usize) {
        Some(name) if names.filter(|n| *n == name).count() == 1 => Name(name).to_string(),
        _ => format!("#{number}"),
    }
}

/// The columns of an array: `f32`, or `(f32, i64)`.
pub fn columns(columns: &[DType]) -> String {
    match columns {
        [one] => one.to_string(),
        many => format!("({})", list(many)),
    }
}

/// `   // model.ein:5`, or nothing for the origin of what has no place.
pub fn origin(origin: Origin, files: &[String]) -> String {
    if origin.file == 0 && origin.line == 0 {
        return String::new();
    }
    let file = files.get(origin.file as usize).filter(|file| {
        let same = files.iter().filter(|f| f == file).count();
        same == 1
            && !file.is_empty()
            && !file.starts_with('#')
            && file.trim() == *file
            && !file.contains(char::is_control)
    });
    match file {
        Some(file) => format!("   // {file}:{}", origin.line),
        None => format!("   // #{}:{}", origin.file, origin.line),
    }
}

/// `files "a.ein", "b.ein"` and a line end, or nothing.
pub fn files(files: &[String]) -> String {
    if files.is_empty() {
        return String::new();
    }
    format!("files {}\n", list(files.iter().map(|f| format!("{f:?}"))))
}

fn key_names(keys: &[KeyDim]) -> impl Iterator<Item = &str> + Clone {
    keys.iter().map(|k| k.name.as_str())
}

/// A key dimension of a type by its name (or number).
pub fn key(keys: &[KeyDim], number: u32) -> String {
    reference(key_names(keys), number)
}

impl Display for Operand {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", columns(&self.columns), list(&self.shape))
    }
}

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let operands = list(&self.operands);
        let output = columns(&self.output);
        let expression = body(self, &|operand| format!("a{operand}"));
        write!(f, "({operands}) {} {output} = {expression}", indices(self))
    }
}

impl Display for Source {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Source::Load(file) => match &file.key {
                Some(key) => write!(f, "load({:?}, {key:?})", file.path),
                None => write!(f, "load({:?})", file.path),
            },
            Source::Unbound => f.write_str("unbound"),
            Source::Full(value) => write!(f, "full({})", number(*value, None)),
            Source::Iota => f.write_str("iota"),
            Source::Numbers(values) => {
                let values: Vec<String> = values.iter().map(|v| number(*v, None)).collect();
                write!(f, "numbers({})", values.join(", "))
            }
            Source::Uniform { lo, hi } => write!(f, "uniform({lo:?}, {hi:?})"),
            Source::Normal { mean, std } => write!(f, "normal({mean:?}, {std:?})"),
            Source::Bernoulli { p } => write!(f, "bernoulli({p:?})"),
            Source::Gumbel => f.write_str("gumbel"),
            Source::Permutation => f.write_str("permutation"),
            Source::Fed => f.write_str("fed"),
            Source::Kept => f.write_str("kept"),
            Source::Listed {
                tensor,
                file,
                dtype,
                column,
                by,
            } => {
                write!(f, "listed({tensor:?}, {dtype}, ")?;
                match column {
                    ListColumn::Values => f.write_str("values")?,
                    ListColumn::Positions(dim) => write!(f, "{dim}")?,
                    ListColumn::Starts => f.write_str("starts")?,
                }
                if *by > 0 {
                    write!(f, " by {by}")?;
                }
                f.write_str(", ")?;
                let source = match file {
                    Some(file) => Source::Load(file.clone()),
                    None => Source::Unbound,
                };
                write!(f, "{source})")
            }
            Source::Stacked { leading, parts } => {
                write!(f, "stacked({leading}")?;
                for part in parts {
                    write!(f, ", {:?} {}", part.name, part.source)?;
                }
                f.write_str(")")
            }
        }
    }
}

impl Display for RelationType {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let array = array(&self.array, &self.keys);
        let placement = placement(&self.placement, &self.keys);
        write!(f, "{{{}}} {array} @ {placement}", list(&self.keys))
    }
}

/// The letters of a mesh's axes.
pub(crate) const AXES: [char; 3] = ['x', 'y', 'z'];

/// `i: 10/2`, or with the axes that number its blocks, if they are not the first alone: `i: 16/4@xy`, `i: 6/2@_`.
impl Display for KeyDim {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}/{}", Name(&self.name), self.extent, self.pieces)?;
        match self.axes[..] {
            [0] => Ok(()),
            [] => f.write_str("@_"),
            _ => {
                let letter = |axis: &u8| AXES.get(usize::from(*axis)).unwrap_or(&'?');
                let letters: String = self.axes.iter().map(letter).collect();
                write!(f, "@{letters}")
            }
        }
    }
}

/// On sites in a row `ALL`, `PART(i)` or `ONE`; on other meshes by axis a key dimension, `*` (every coordinate) or
/// `.` (the first): `GRID(i, *)`.
pub fn placement(placement: &Placement, keys: &[KeyDim]) -> String {
    match placement.roles[..] {
        [AxisRole::Every] => "ALL".into(),
        [AxisRole::First] => "ONE".into(),
        [AxisRole::Key(k)] => format!("PART({})", key(keys, k)),
        _ => {
            let roles = placement.roles.iter().map(|role| match role {
                AxisRole::Every => "*".into(),
                AxisRole::First => ".".into(),
                AxisRole::Key(k) => key(keys, *k),
            });
            format!("GRID({})", list(roles))
        }
    }
}

/// ` mesh 2x3`, or nothing for that many sites in a row.
pub fn mesh(mesh: &Mesh, sites: u32) -> String {
    match mesh.axes[..] {
        [all] if all == sites => String::new(),
        _ => format!(" mesh {mesh}"),
    }
}

/// `f32[i, 6]`: a cut dimension is its key's name, a whole one its extent.
fn array(array: &ArrayType, keys: &[KeyDim]) -> String {
    let dims = array.dims.iter().map(|dim| match dim.cut {
        None => match dim.window {
            None => dim.extent.to_string(),
            Some(window) => {
                let (low, high) = (
                    bound(window, window.low, keys),
                    bound(window, window.high, keys),
                );
                format!("{low}..{high} of {}", dim.extent)
            }
        },
        Some(cut) => {
            let name = key(keys, cut);
            match keys.get(cut as usize) {
                Some(k) if k.extent == dim.extent => name,
                _ => format!("{name}: {}", dim.extent),
            }
        }
    });
    format!("{}[{}]", columns(&array.columns), list(dims))
}

/// One end of a window: `i+1`, `-i+99`, `2*i-1`, `7`, `(i-1)/4`.
fn bound(window: Window, offset: i64, keys: &[KeyDim]) -> String {
    let Some(number) = window.key else {
        return offset.to_string();
    };
    let name = key(keys, number);
    let moved = match window.scale {
        1 => name,
        -1 => format!("-{name}"),
        scale => format!("{scale}*{name}"),
    };
    match (offset, window.divisor) {
        (0, 1) => moved,
        (offset, 1) => format!("{moved}{offset:+}"),
        (0, divisor) => format!("{moved}/{divisor}"),
        (offset, divisor) => format!("({moved}{offset:+})/{divisor}"),
    }
}

/// `join`, or `fold {i: 10/2, k: 6/4@xy} keep {i}`.
pub fn join_word(fold: Option<&Fold>) -> String {
    match fold {
        None => "join".into(),
        Some(Fold { keys, keep }) => {
            let keep = keep.iter().map(|k| key(keys, *k));
            format!("fold {{{}}} keep {{{}}}", list(keys), list(keep))
        }
    }
}

impl Display for RelationId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

impl Display for BlockId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "b{}", self.0)
    }
}

/// `counter b0`, `state b0.1`, `last b0.1`, `rounds b0`, `collected b0.0`.
impl Display for LoopValue {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            LoopValue::Counter(block) => write!(f, "counter {block}"),
            LoopValue::State(block, number) => write!(f, "state {block}.{number}"),
            LoopValue::Last(block, number) => write!(f, "last {block}.{number}"),
            LoopValue::Rounds(block) => write!(f, "rounds {block}"),
            LoopValue::Collected(block, number) => write!(f, "collected {block}.{number}"),
        }
    }
}

/// The mark of an output of complex numbers.
pub fn complex(is_complex: bool) -> &'static str {
    match is_complex {
        true => " complex",
        false => "",
    }
}

/// The assertion that an output is, as it is printed: ` asserts "x is empty"`.
pub fn assertion(message: Option<&str>) -> String {
    message.map_or(String::new(), |message| format!(" asserts {message:?}"))
}
