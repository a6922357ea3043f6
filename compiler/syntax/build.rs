//! Generates the parser from `src/grammar.lalrpop`.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/grammar.lalrpop");
    if let Err(error) = lalrpop::Configuration::new()
        .use_cargo_dir_conventions()
        .emit_rerun_directives(false)
        .process()
    {
        eprintln!("src/grammar.lalrpop: {error}");
        std::process::exit(1);
    }
}
