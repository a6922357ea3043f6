//! Names, and the walk over all text that says what each stands for and in which order items are checked.
//!
//! Its result never changes afterwards, and every pass of the checker over the text shares it. Must not know sizes or types.
//!
//! ```text
//! y[n] = relu(X[n,d] * w[d] + b)     bound n, implicit d, uses X w b
//! ```

pub(crate) mod body_names;
pub(crate) mod body_order;
pub(crate) mod called;
pub(crate) mod collect;
pub(crate) mod counted;
pub(crate) mod counters;
pub(crate) mod cycles;
pub(crate) mod forms;
pub(crate) mod item_order;
pub(crate) mod names;
pub(crate) mod shapes;
pub(crate) mod state_pairs;
pub(crate) mod static_scope;
pub(crate) mod unknown;
pub(crate) mod walk;
pub(crate) mod walk_call;
mod walk_names;
pub(crate) mod walk_repeat;

use crate::sema::{
    SourceFile, Sources,
    hir::{Kind, notes::Notes},
    report::Report,
    rounds::desugar::{Collections, state_of},
};
use einc_diag::{Diagnostic, FileId, Span};
use names::{EntityId, FileNames, Names, Templates};
use std::collections::{HashMap, HashSet};

/// A program in which every name is resolved.
pub(crate) struct Resolved<'a> {
    pub(crate) names: Names<'a>,
    pub(crate) readings: Readings<'a>,
    /// The errors found so far.
    pub(crate) report: Report,
}

/// The findings of the walk over all text.
#[derive(Default)]
pub(crate) struct Readings<'a> {
    /// By entity: the entities that it uses, with the places of the uses.
    pub(crate) uses: Vec<Vec<(usize, Span)>>,
    /// Entities with an error in their text.
    pub(crate) failed: HashSet<EntityId>,
    /// Unsupported parts in functions of imported files. Each is reported where the function is called.
    pub(crate) on_call: HashMap<EntityId, Diagnostic>,
    /// Items of the program without a name, by number, with an error in their text.
    pub(crate) failed_items: HashSet<usize>,
    /// For functions with a body: its items in the order of their uses.
    pub(crate) plans: HashMap<EntityId, Vec<usize>>,
    /// For modules: the params, and the dims and consts that they need, in that order.
    pub(crate) owned: HashMap<EntityId, Vec<usize>>,
    /// The items of a block in the order of their uses, by the place where it is stored.
    pub(crate) rounds: HashMap<usize, Vec<usize>>,
    /// How many blocks before a block in its body have the same counter, if any, by the place where it is stored.
    pub(crate) before: HashMap<usize, usize>,
    /// Products at which indices are summed, by [`forms::key`].
    pub(crate) sums: HashMap<usize, Vec<&'a str>>,
    /// The indices of the left sides of scatters, by [`forms::key`] of their values.
    pub(crate) scatters: HashMap<usize, Vec<&'a str>>,
    /// Where names are defined and used.
    pub(crate) notes: Notes,
    /// The paths in the text that go into instances, with the instances' name.
    pub(crate) member_uses: Vec<(EntityId, String, Span)>,
    /// Paths in the bodies of modules, with the module, to what instances inside it own.
    pub(crate) inner_uses: Vec<(EntityId, String, Span)>,
}

/// The walk over all text.
pub(crate) struct Resolver<'a> {
    pub(crate) names: Names<'a>,
    pub(crate) readings: Readings<'a>,
    pub(crate) report: Report,
}

/// Resolves the names of a program.
pub(crate) fn resolve<'a>(
    sources: &'a Sources,
    collections: &'a Collections,
    templates: &'a Templates,
) -> Resolved<'a> {
    let mut resolver = collected(sources, collections);
    resolver.names.templates = Some(templates);
    resolver.walk();
    let Resolver {
        names,
        readings,
        report,
    } = resolver;
    Resolved {
        names,
        readings,
        report,
    }
}

/// The names of a program, with nothing about their uses.
pub(crate) fn names_of<'a>(sources: &'a Sources, collections: &'a Collections) -> Names<'a> {
    collected(sources, collections).names
}

fn collected<'a>(sources: &'a Sources, collections: &'a Collections) -> Resolver<'a> {
    let mut resolver = Resolver {
        names: Names {
            sources,
            collections,
            templates: None,
            files: sources.files.iter().map(|_| FileNames::default()).collect(),
            entities: vec![],
            inner: HashMap::new(),
            lines: sources.files.iter().map(line_starts).collect(),
        },
        readings: Readings::default(),
        report: Report::default(),
    };
    resolver.collect_names();
    resolver
}

/// The first bytes of the lines of a file.
fn line_starts(file: &SourceFile) -> Vec<u32> {
    let bytes = file.text.bytes().enumerate();
    let breaks = bytes.filter(|(_, byte)| *byte == b'\n');
    let starts = breaks.map(|(at, _)| at as u32 + 1);
    std::iter::once(0).chain(starts).collect()
}

impl Resolver<'_> {
    /// Notes the place where a name is defined. Names that the compiler made stand nowhere.
    pub(crate) fn define(&mut self, name: &str, at: Span, kind: Kind) {
        if self.names.text(at) == name {
            self.readings.notes.define(at, kind);
        }
    }

    /// Notes which definition a name means. Names that the compiler made stand nowhere.
    pub(crate) fn refer(&mut self, name: &str, at: Span, definition: Span) {
        let text = self.names.text(at);
        if text == name || Some(text) == state_of(name) {
            self.readings.notes.refer(at, definition);
        }
    }

    /// Reports an unknown name with the nearest known one.
    pub(crate) fn unknown(
        &mut self,
        file: FileId,
        name: &str,
        span: Span,
        locals: &[&str],
        functions: bool,
    ) {
        let error = self.names.unknown(file, name, span, locals, functions);
        self.report.push(error);
    }
}
