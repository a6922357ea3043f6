//! Finds out whether a program has what the command line names, and reads the headers of its data.
//!
//! Only headers are read here, never data. Must not know how sizes follow from them: that is sema's.
//!
//! ```text
//! input X: f32[N, D] = load("x.npy")   +   --input X=points.npy   ->   X: f32[1000, 64]
//! ```

use crate::{
    disk::Disk, infer::declared, program::Program, purpose::Purpose, settings::Settings, weights,
};
use einc_core::sema::{
    Bindings,
    world::{self, Header, Input},
};
use einc_diag::{Diagnostic, did_you_mean};
use einc_syntax::ast::{
    ExprKind, Item, ItemKind, Name, Position, Role, Statement, Type, output_name,
};
use std::collections::{BTreeMap, HashSet};

/// Element types and shapes of data, by the name of the input.
pub type Headers = BTreeMap<String, Header>;

/// The names of a program that a command line can speak of.
#[derive(Debug, Default)]
pub struct Names<'a> {
    /// Dims.
    pub dims: Vec<&'a Name>,
    /// Consts.
    pub constants: Vec<&'a Name>,
    /// Those of them that are tensors.
    pub constant_tensors: Vec<&'a str>,
    /// Inputs, then params.
    pub inputs: Vec<Input>,
    /// Outputs.
    pub outputs: Vec<String>,
    /// Every other name that an output may have: definitions, states, inputs and params.
    pub definitions: Vec<&'a str>,
    /// Instances of modules, and arrays of them.
    pub instances: Vec<&'a str>,
}

/// The names that the program's own file declares.
pub fn names(program: &Program) -> Names<'_> {
    let mut names = Names::default();
    let items: &[Item] = program
        .sources
        .files
        .first()
        .map_or(&[], |file| &file.ast.items);
    for item in items {
        match &item.kind {
            _ if is_instance(item) => names.instances.extend(declared(item)),
            ItemKind::Input { .. } | ItemKind::Param { .. } | ItemKind::Statement(_) => {
                names.definitions.extend(known(item));
            }
            ItemKind::Dim { name, .. } => names.dims.push(name),
            ItemKind::Const { target, ty, value } => {
                names.constants.push(&target.name);
                let shape = match ty {
                    Some(Type::Tensor { shape, .. }) => shape.as_ref(),
                    _ => None,
                };
                let mut brackets = shape.into_iter().chain(&target.positions);
                let is_list = matches!(&*value.kind, ExprKind::List(_));
                if is_list || brackets.any(|positions| !positions.is_empty()) {
                    names.constant_tensors.push(&target.name.text);
                }
            }
            ItemKind::Output { name, on, .. } => {
                names.outputs.push(output_name(name, on.as_deref()));
            }
            _ => {}
        }
    }
    names.inputs = world::inputs(&program.sources);
    names
}

/// True of an instance of a module and of an array of them.
pub(crate) fn is_instance(item: &Item) -> bool {
    matches!(
        item.kind,
        ItemKind::Param {
            ty: Type::Module { .. },
            ..
        }
    )
}

/// The names that an item declares and that are known outside of it: of a block its states, what its counter counts on the left, and
/// the counter.
pub(crate) fn known(item: &Item) -> Vec<&str> {
    let ItemKind::Statement(Statement::Repeat { counter, body, .. }) = &item.kind else {
        return declared(item);
    };
    let is_counter = |position: &Position| matches!(position, Position::Expr(e) if matches!(&*e.kind, ExprKind::Name(name) if *name == counter.text));
    let mut names = vec![];
    for item in body {
        if let ItemKind::Statement(Statement::Definition { role, targets, .. }) = &item.kind {
            let outside = targets.iter().filter(|target| {
                let collected = target.positions.iter().flatten().any(is_counter);
                *role == Role::State || *role == Role::Plain && collected
            });
            names.extend(outside.map(|target| target.name.text.as_str()));
        }
    }
    names.push(&counter.text);
    names
}

/// Names on the command line that the program does not have; usage errors.
pub fn unknown(program: &Program, settings: &Settings) -> Vec<Diagnostic> {
    let names = names(program);
    let list = |names: &[&Name]| names.iter().map(|n| n.text.clone()).collect::<Vec<_>>();
    let tensors = names.inputs.iter().filter(|input| input.dtype.is_some());
    let inputs: Vec<_> = tensors.map(|input| input.name.clone()).collect();
    let mut definitions = names.outputs.clone();
    let mut known: HashSet<&str> = names.outputs.iter().map(String::as_str).collect();
    for name in names.definitions {
        if known.insert(name) {
            definitions.push(name.to_owned());
        }
    }
    let instances = names.instances;
    let is_owned = |path: &str| {
        let owner = path.split_once('.').map(|(owner, _)| owner);
        owner.is_some_and(|owner| instances.contains(&owner))
    };
    let of_modules = settings.numbers.keys().filter(|name| is_owned(name));
    let mut found: Vec<Diagnostic> = of_modules
        .map(|name| {
            let message =
                format!("`--input {name}=…`: the params of a module take files, not numbers");
            Diagnostic::error("E0711", message)
        })
        .collect();
    found.extend(numbers_for_tensors(&names.constant_tensors, settings));
    let mut look = |option: &str, what: &str, given: Vec<&String>, known: &[String]| {
        for name in given {
            // Which params an instance owns is known once it is made.
            let owned = !matches!(option, "--dim" | "--set") && is_owned(name);
            if known.contains(name) || owned {
                continue;
            }
            let written = |name: &str| match option {
                "--show" => format!("`{option} {name}`"),
                _ => format!("`{option} {name}=…`"),
            };
            let message = format!("{}: the program has no {what} `{name}`", written(name));
            let mut diagnostic = Diagnostic::error("E0711", message);
            if let Some(near) = did_you_mean(name, known.iter().map(String::as_str)) {
                diagnostic = diagnostic.help(format!("did you mean {}?", written(near)));
            } else if known.is_empty() {
                diagnostic = diagnostic.help(format!("it has no {what}s at all"));
            } else {
                diagnostic = diagnostic.help(format!("it has: {}", known.join(", ")));
            }
            found.push(diagnostic);
        }
    };
    look(
        "--dim",
        "dim",
        settings.dims.keys().collect(),
        &list(&names.dims),
    );
    look(
        "--set",
        "const",
        settings.constants.keys().collect(),
        &list(&names.constants),
    );
    look(
        "--input",
        "input",
        settings
            .inputs
            .keys()
            .chain(settings.numbers.keys())
            .collect(),
        &inputs,
    );
    look(
        "--formats",
        "input",
        settings.criteria.formats.pinned.keys().collect(),
        &inputs,
    );
    look(
        "--save",
        "definition",
        settings.saves.keys().collect(),
        &definitions,
    );
    look(
        "--show",
        "definition",
        settings.shows.iter().collect(),
        &definitions,
    );
    found
}

/// Consts that are tensors, and to which the command line gives a number.
fn numbers_for_tensors(tensors: &[&str], settings: &Settings) -> Vec<Diagnostic> {
    let given = tensors.iter();
    let given = given.filter(|name| settings.constants.contains_key(**name));
    let wrong = given.map(|name| {
        let message = format!("`--set {name}=…`: `{name}` is a tensor, not a number");
        let help = format!("declare it as an input, and give it a file: `--input {name}=FILE`");
        Diagnostic::error("E0711", message).help(help)
    });
    wrong.collect()
}

/// The types and shapes of the data that are there.
///
/// # Errors
/// E0701 to E0706: a file that cannot be read or is not what it says. E0710: an input without data in a run. A default file that is
/// not there is an error in a run only.
pub fn headers(
    program: &Program,
    settings: &Settings,
    purpose: Purpose,
) -> Result<Headers, Vec<Diagnostic>> {
    let mut files = weights::files(&settings.weights).map_err(|error| vec![error])?;
    let params = params(program);
    files.retain(|name, _| params.contains(&name.as_str()) && !settings.numbers.contains_key(name));
    files.extend(settings.inputs.clone());
    let disk = Disk::of_data(&program.base, &files, purpose);
    world::headers(&disk, &program.sources)
}

/// As [`headers`], without the files of params: those of a program whose sizes are known decide nothing.
///
/// # Errors
/// As [`headers`].
pub fn headers_of_inputs(
    program: &Program,
    settings: &Settings,
    purpose: Purpose,
) -> Result<Headers, Vec<Diagnostic>> {
    let disk = Disk::of_data(&program.base, &settings.inputs, purpose);
    world::headers(&disk, &program.sources)
}

/// The names of the params that a program declares, and of its instances.
fn params(program: &Program) -> Vec<&str> {
    let items = program.sources.files.iter().take(1);
    let items = items.flat_map(|file| &file.ast.items);
    let names = items.filter_map(|item| match &item.kind {
        ItemKind::Param { name, .. } => Some(name.text.as_str()),
        _ => None,
    });
    names.collect()
}

/// A diagnostic about data, with the files in which the data of the tensors that it names stands.
pub fn with_files(
    mut diagnostic: Diagnostic,
    program: &Program,
    settings: &Settings,
) -> Diagnostic {
    if !diagnostic.code.starts_with("E07") {
        return diagnostic;
    }
    for input in names(program).inputs {
        let name = &input.name;
        let file = match settings.inputs.get(name) {
            Some(file) => Some(file.path.clone()),
            None => input
                .file
                .map(|file| program.base.join(file.path).to_string_lossy().into_owned()),
        };
        if let Some(file) = file.filter(|_| diagnostic.message.contains(&format!("`{name}`"))) {
            diagnostic = diagnostic.note(format!("the data of `{name}` is {file}"));
        }
    }
    diagnostic
}

/// What sema needs to know.
pub fn bindings(settings: &Settings, headers: Headers, purpose: Purpose) -> Bindings {
    Bindings {
        dims: settings.dims.clone(),
        constants: settings.constants.clone(),
        headers,
        require_sizes: purpose != Purpose::Look,
        sites: settings.sites,
        params_given: settings.inference,
    }
}
