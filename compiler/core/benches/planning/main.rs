//! How long whole networks take to plan, and what their plans cost: `cargo bench -p einc-core --bench planning [-- NAME [SITES]]`.
//! `-- NAME --text` prints the program of a network in place of planning it.
//!
//! ```text
//! bert-base    8 sites    2.9 s   4021 tensors   transfer 1.234e10   gap 0.2 %
//! ```
#![allow(clippy::unwrap_used, missing_docs)]

mod networks;

use einc_core::einsum::Program;
use einc_core::pipeline::{Objective, Options, compile};
use einc_core::sema::{self, Bindings, SourceFile, Sources};
use einc_diag::FileId;
use networks::{BERT_BASE, Encoders, GPT2_XL, chain, encoders, resnet, tangle};
use std::time::Instant;

/// The part of a text that is planned: a step of its training, if it trains.
fn program(text: &str) -> Program {
    let sources = Sources {
        files: vec![SourceFile {
            name: "network.ein".into(),
            text: text.into(),
            ast: einc_syntax::parse(FileId(0), text).ast,
        }],
        ..Sources::default()
    };
    let bindings = Bindings {
        require_sizes: true,
        ..Bindings::default()
    };
    let analysis = sema::check(&sources, &bindings);
    let step = analysis.training.as_ref();
    let step = step.and_then(|training| training.blocks[0].step.values().next());
    let program = step.or(analysis.program.as_ref());
    let program = program.unwrap_or_else(|| panic!("{:#?}\n{text}", analysis.diagnostics));
    program.clone()
}

fn main() {
    let bert = |layers| {
        encoders(Encoders {
            layers,
            ..BERT_BASE
        })
    };
    let cases: [(&str, String); 10] = [
        ("bert-2", bert(2)),
        ("bert-base", bert(12)),
        ("resnet-14", resnet([1, 1, 1, 1], 64)),
        ("resnet-50", resnet([3, 4, 6, 3], 64)),
        ("gpt2-xl", encoders(GPT2_XL)),
        ("chain-100", chain(100)),
        ("chain-1000", chain(1000)),
        ("dag-30", tangle(30, 1)),
        ("dag-100", tangle(100, 1)),
        ("dag-1000", tangle(1000, 1)),
    ];
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut words = words.iter().filter(|word| !word.starts_with('-'));
    let (name, sites) = (words.next(), words.next());
    let sites: u32 = sites.map_or(8, |sites| sites.parse().unwrap());
    let text_only = std::env::args().any(|word| word == "--text");
    for (case, text) in cases {
        if name.is_some_and(|name| name != case) {
            continue;
        }
        if text_only {
            print!("{text}");
            continue;
        }
        let begun = Instant::now();
        let program = program(&text);
        let checked = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let compiled = compile(&program, &Options::new(sites), &|| false).unwrap();
        let planned = begun.elapsed().as_secs_f64();
        let chosen = &compiled.chosen;
        let price = chosen.price.under(&Objective::Transfer);
        println!(
            "{case:<11} {sites:>4} sites   checked {checked:>6.2} s   planned {planned:>7.2} s   {:>5} tensors   mesh {:<6} transfer {price:.6e}   gap {:.2} %   {}",
            program.tensors.len(),
            chosen.mesh.to_string(),
            100.0 * chosen.gap / price.max(1.0),
            if chosen.proved_optimal {
                "proved"
            } else {
                "not proved"
            },
        );
    }
}
