//! The command line of a built program.
//!
//! Must not know how a bundle came into the process.
//!
//! ```text
//! $ ./matmul --dim I=512 --save C=c.npy --sites 4
//! ```

use crate::{
    arguments::{BindArguments, Format, PlanArguments, RunArguments},
    bind,
    bundle::Bundle,
    environment, exit,
    program::Program,
    run,
    shims::EmbeddedShim,
};
use clap::{CommandFactory, FromArgMatches, Parser};
use einc_diag::Diagnostic;
use einc_syntax::ast::{Expr, ExprKind, Item, ItemKind, Position, Type, output_name};
use std::ffi::OsString;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    bind: BindArguments,
    #[command(flatten)]
    run: RunArguments,
    #[command(flatten)]
    plan: PlanArguments,
    /// How errors are printed
    #[arg(
        long,
        value_enum,
        default_value_t,
        value_name = "FORMAT",
        help_heading = "Messages"
    )]
    format: Format,
}

/// Runs the program of an encoded bundle, or prints why there is none. The first argument is the program's own name. Returns
/// the exit status.
pub fn main(
    bundle: Result<Vec<u8>, Diagnostic>,
    embedded: &'static [EmbeddedShim],
    arguments: Vec<OsString>,
) -> i32 {
    exit::guard(move || {
        let bundle = match bundle {
            Ok(bundle) => bundle,
            Err(diagnostic) => {
                exit::show(vec![diagnostic], &[], Format::Text);
                return 1;
            }
        };
        let Some(mut bundle) = Bundle::decode(&bundle) else {
            exit::internal("the program's bundle cannot be read");
        };
        let carried = bundle.take_shims();
        let (program, mut settings, planned) = bundle.open();
        // clap keeps names for as long as the process lives.
        let name: &'static str = program.name.clone().leak();
        let mut command = environment::without_empty(Arguments::command())
            .name(name)
            .bin_name(name)
            .about(about(&program))
            .after_help(after_help(&program));
        let parsed = command
            .try_get_matches_from_mut(arguments)
            .and_then(|matches| Arguments::from_arg_matches(&matches));
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(error) => return exit::arguments(&error),
        };
        let bound = settings.bind(parsed.bind);
        let taken = bound.and_then(|()| settings.plan(&parsed.plan, parsed.run.device));
        if let Err(diagnostic) = taken.and_then(|()| settings.run(parsed.run)) {
            exit::show(vec![diagnostic], &[], parsed.format);
            return 1;
        }
        let shims = (&carried, embedded);
        run::run(|| Ok((program, planned)), &settings, shims, parsed.format)
    })
}

fn items(program: &Program) -> &[Item] {
    program
        .sources
        .files
        .first()
        .map_or(&[], |file| &file.ast.items)
}

/// The documentation that the file begins with.
fn about(program: &Program) -> String {
    let doc = items(program).first().and_then(|item| item.doc.clone());
    doc.unwrap_or_else(|| "A program built by einc.".into())
}

/// Describes the dims, inputs and outputs of the program, and how to run it.
fn after_help(program: &Program) -> String {
    let name = &program.name;
    let mut text = String::new();
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text += &format!("{title}:\n");
            for line in lines {
                text += &format!("  {line}\n");
            }
            text.push('\n');
        }
    };
    let source = |from: u32, to: u32| {
        let text = program
            .sources
            .files
            .first()
            .map_or("", |f| f.text.as_str());
        text.get(from as usize..to as usize)
            .unwrap_or("")
            .to_string()
    };
    let of = |value: &Expr| source(value.span.start, value.span.end);
    let (mut dims, mut inputs, mut outputs) = (vec![], vec![], vec![]);
    for item in items(program) {
        match &item.kind {
            ItemKind::Dim { name, value } => dims.push(match value {
                Some(value) => format!("{} = {}", name.text, of(value)),
                None => format!("{}, from the data", name.text),
            }),
            ItemKind::Input { name, ty, source } => {
                let source = source.as_ref().map(|value| format!(" = {}", of(value)));
                inputs.push(format!(
                    "{}: {}{}",
                    name.text,
                    type_text(ty, &of),
                    source.unwrap_or_default()
                ));
            }
            ItemKind::Output { name, on, file } => {
                let name = output_name(name, on.as_deref());
                outputs.push(match file {
                    Some(file) => format!("{name} -> {:?}", file.text),
                    None => name,
                });
            }
            _ => {}
        }
    }
    let first = bind::names(program);
    let example = first.inputs.first().map_or(String::new(), |input| {
        format!(" --input {0}={0}.npy", input.name)
    });
    section("Dims (--dim)", dims);
    section("Inputs (--input)", inputs);
    section("Outputs (--save)", outputs);
    section(
        "Examples",
        vec![
            format!("./{name}{example}"),
            format!("./{name} --sites 4"),
            format!("mpirun -n 4 ./{name}"),
        ],
    );
    text.trim_end().to_string()
}

fn type_text(ty: &Type, of: &dyn Fn(&Expr) -> String) -> String {
    match ty {
        Type::Tensor { dtype, shape, .. } => match shape {
            None => dtype.to_string(),
            Some(shape) => {
                let sizes: Vec<_> = shape
                    .iter()
                    .map(|position| match position {
                        Position::Expr(size) => match &*size.kind {
                            ExprKind::Name(name) => name.clone(),
                            _ => of(size),
                        },
                        Position::Rest(_) => "..".into(),
                    })
                    .collect();
                format!("{dtype}[{}]", sizes.join(", "))
            }
        },
        Type::Module { name, .. } => name.text.clone(),
    }
}
