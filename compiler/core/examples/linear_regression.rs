//! A program with training that is built by calls, not written as a text: a linear model, trained in batches.
//!
//! ```text
//! cargo run -p einc-core --example linear_regression
//! ```

use ein_plan::{DType, Reduction};
use einc_core::build::{Program, Train, call, index, named, reduce, sum};
use einc_core::sema::world::{self, Memory, headers};
use einc_core::sema::{Bindings, check};

/// The standard library, and data of 100 rows.
fn world() -> Memory {
    let library = |library: &ein_stdlib::Library| {
        let file = (library.name.to_owned(), library.text.to_owned());
        (library.path.to_owned(), file)
    };
    let mut world = Memory {
        libraries: ein_stdlib::LIBRARIES.iter().map(library).collect(),
        ..Memory::default()
    };
    world
        .headers
        .insert("X".into(), world::Header::dense(DType::F32, vec![100, 8]));
    world
        .headers
        .insert("y".into(), world::Header::dense(DType::F32, vec![100]));
    world
}

/// The program: `N` is the number of rows of the data.
fn model() -> Program {
    let mut program = Program::new();
    let n = program.dim("N");
    let d = program.dim_of("D", 8);
    let x = program.input("X", DType::F32, [&n, &d]);
    let y = program.input("y", DType::F32, [&n]);
    let w = program.param("w", DType::F32, [&d], call("normal", [0.0, 0.1]));

    let (i, k) = (index("i"), index("k"));
    let guess = program.define("guess", [&i], sum([&k], x.at([&i, &k]) * w.at([&k])));
    let error = program.define("error", [&i], (guess.at([&i]) - y.at([&i])).power(2));
    let loss = program.scalar("loss", reduce(Reduction::Mean, [&i], error.at([&i])));

    let train = Train::new(&loss)
        .data(&[&x, &y], &n, 32, true)
        .epochs(5)
        .optimizer(named("adamw", &[("lr", 0.01)]))
        .setting("clip", 1.0);
    program.train(&train);
    program.output(&w);
    program
}

/// The built program as a text, and the steps of its training as Einstein programs.
pub fn run() -> (String, String) {
    let (program, world) = (model(), world());
    let loaded = program.load("linear_regression", &world);
    let bindings = Bindings {
        headers: headers(&world, &loaded.sources).expect("the world has all data"),
        ..Bindings::default()
    };
    let analysis = check(&loaded.sources, &bindings);
    let errors = loaded.diagnostics.iter().chain(&analysis.diagnostics);
    let errors: Vec<&str> = errors.map(|error| error.message.as_str()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let training = analysis.training.expect("there is a `train` block");
    let steps = training.blocks[0].step.iter();
    let steps: Vec<String> = steps
        .map(|(rows, step)| format!("// a step with {rows} rows\n{step}"))
        .collect();
    (program.text().to_owned(), steps.join("\n"))
}

#[allow(dead_code)] // a test runs `run`
fn main() {
    let (text, steps) = run();
    print!("{text}\n{steps}");
}
