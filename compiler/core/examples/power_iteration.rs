//! A program with rounds that is built by calls, not written as a text, and compiled for four sites: the largest eigenvalue of a
//! matrix by power iteration.
//!
//! ```text
//! cargo run -p einc-core --example power_iteration
//! ```

use ein_plan::DType;
use einc_core::build::{Expr, Program, call, index, sum};
use einc_core::pipeline::{Options, compile};
use einc_core::sema::{Bindings, check, world::Memory};

fn iteration() -> Program {
    let mut program = Program::new();
    let n = program.dim_of("N", 1000);
    let a = program.input("A", DType::F64, [&n, &n]);
    let (i, j) = (index("i"), index("j"));
    let v = program.repeat("t", 50, |round| {
        let v = round.state("v", [&i], Expr::name("ones"));
        let image = round.define("image", [&i], sum([&j], a.at([&i, &j]) * v.at([&j])));
        let squares = sum([&i], image.at([&i]) * image.at([&i]));
        let length = round.scalar("length", call("sqrt", [squares]));
        round.next(&v, [&i], image.at([&i]) / &length);
        v
    });
    let product = v.at([&i]) * a.at([&i, &j]) * v.at([&j]);
    let value = program.scalar("value", sum([&i, &j], product));
    program.output(&value);
    program
}

/// The built program as a text, and its placed operations on four sites.
pub fn run() -> (String, String) {
    let program = iteration();
    let loaded = program.load("power_iteration", &Memory::default());
    let analysis = check(&loaded.sources, &Bindings::default());
    let errors = loaded.diagnostics.iter().chain(&analysis.diagnostics);
    let errors: Vec<&str> = errors.map(|error| error.message.as_str()).collect();
    assert!(errors.is_empty(), "{errors:?}");
    let checked = analysis.program.expect("all sizes are known");
    let compiled = compile(&checked, &Options::new(4), &|| false);
    let compiled = compiled.expect("the program can be planned");
    (program.text().to_owned(), compiled.ia.to_string())
}

#[allow(dead_code)] // a test runs `run`
fn main() {
    let (text, placed) = run();
    print!("{text}\n// on four sites\n{placed}");
}
