//! The tensor that holds a param of every instance of an array, and the paths and sources of its parts.
//!
//! Must not know which arrays are stored so.
//!
//! ```text
//! enc.*.w of 3 instances   =>   enc.w, parts enc.0.w, enc.1.w, enc.2.w
//! ```

use crate::sema::sizes::size::Size;
use ein_plan::{Part, Source};

/// A tensor that holds a param of all instances.
#[derive(Clone)]
pub(crate) struct Stack {
    /// The path with `*` for the number of an instance: `enc.*.att.wq`.
    path: String,
    /// How many instances, by leading dimension; `None` where that is not known yet.
    counts: Option<Vec<u64>>,
    /// How many leading dimensions count instances.
    pub(crate) leading: usize,
}

impl Stack {
    pub(crate) fn new(path: &str, counts: &[Size]) -> Stack {
        let known = counts
            .iter()
            .map(|count| count.known().map(|n| n.max(0) as u64));
        Stack {
            path: path.to_owned(),
            counts: known.collect(),
            leading: counts.len(),
        }
    }

    /// The name of the tensor.
    pub(crate) fn name(&self) -> String {
        self.path.replace(".*", "")
    }

    /// The paths of the instances' own tensors, in the order in which they lie.
    pub(crate) fn parts(&self) -> Vec<String> {
        let mut paths = vec![self.path.clone()];
        for count in self.counts.iter().flatten() {
            let numbered = |path: &String| {
                let path = path.clone();
                (0..*count).map(move |number| path.replacen('*', &number.to_string(), 1))
            };
            paths = paths.iter().flat_map(numbered).collect();
        }
        paths
    }

    /// The source of the tensor; each part has one of its own.
    pub(crate) fn source(&self, each: &Source, name: impl Fn(&str) -> String) -> Source {
        let part = |path: String| Part {
            name: name(&path),
            source: each.clone(),
        };
        Source::Stacked {
            leading: self.leading as u32,
            parts: self.parts().into_iter().map(part).collect(),
        }
    }

    /// Names the slice that a round reads: `label` stands for the number of the instance.
    pub(crate) fn inside(&mut self, label: &str) {
        self.path = self.path.replacen('*', label, 1);
        self.leading -= 1;
    }

    /// The path as messages show it.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}
