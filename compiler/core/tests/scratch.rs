#[path = "search/programs.rs"]
#[allow(dead_code)]
mod programs;
use einc_core::pipeline::*;
#[test]
fn scratch() {
    let text = std::fs::read_to_string("/tmp/scratch.einsum").unwrap();
    let program = einc_core::einsum::parse::parse(&text).unwrap();
    let sites = std::env::var("SITES").unwrap().parse().unwrap();
    let objective = if std::env::var("BYTES").is_ok() { Objective::Bytes } else { Objective::Transfer };
    let options = Options { sites, deterministic: false, criteria: Criteria { objective, ..Criteria::default() } };
    let t = std::time::Instant::now();
    match compile(&program, &options, &|| false) {
        Ok(compiled) => { println!("{:?}", t.elapsed()); println!("price {:?}", (compiled.chosen.price.transfer, compiled.chosen.price.words)); println!("{}", explain(&describe(&compiled, &options, &[]))); }
        Err(e) => println!("{e:?}"),
    }
}
