//! Values computed again instead of kept: plans for less memory hold less and give the same.
#![allow(clippy::unwrap_used)]

mod support;

use einc_core::einsum::Program;
use einc_core::ia;
use einc_core::pipeline::{Compiled, Options, compile};
use einc_core::search::share::share;
use einc_core::sema::{self, Bindings, SourceFile, Sources};
use einc_diag::FileId;
use support::{given, inputs, same};

fn program(text: &str) -> Program {
    let parsed = einc_syntax::parse(FileId(0), text);
    let mut sources = Sources::default();
    sources.files.push(SourceFile {
        name: "deep.ein".into(),
        text: text.into(),
        ast: parsed.ast,
    });
    let analysis = sema::check(&sources, &Bindings::default());
    let program = analysis.program;
    share(&program.unwrap_or_else(|| panic!("{:?}", analysis.diagnostics))).program
}

/// The gradients of a net of so many layers, which read what every layer gave.
fn deep(layers: usize) -> Program {
    let mut text = String::from("dim N = 48\ndim D = 6\ninput X: f64[N, D]\n");
    for layer in 1..=layers {
        let below = match layer {
            1 => "X".to_string(),
            _ => format!("h{}", layer - 1),
        };
        text += &format!(
            "input W{layer}: f64[D, D]\nh{layer}[n,e] = tanh({below}[n,d] * W{layer}[d,e])\n"
        );
    }
    text += &format!("loss = mean[n,e] h{layers}[n,e]^2\noutput loss\n");
    for layer in (1..=layers).rev() {
        text += &format!(
            "G{layer}[d,e] = W{layer}[d,e] - 0.1 * grad(loss, W{layer})[d,e]\noutput G{layer}\n"
        );
    }
    program(&text)
}

fn planned(
    program: &Program,
    sites: u32,
    memory: Option<u64>,
    deterministic: bool,
) -> Result<Compiled, String> {
    let mut options = Options {
        deterministic,
        ..Options::new(sites)
    };
    options.criteria.memory = memory;
    compile(program, &options, &|| false).map_err(|errors| format!("{errors:?}"))
}

fn most(compiled: &Compiled) -> u64 {
    compiled.cost.peak_bytes.iter().copied().max().unwrap()
}

fn repeated(compiled: &Compiled) -> usize {
    let names = compiled.ia.relations.iter();
    names.filter(|r| r.name.contains(".again")).count()
}

#[test]
fn a_deep_net_fits_in_less_memory_and_gives_the_same() {
    let program = deep(9);
    for (sites, deterministic) in [(1, false), (2, false), (4, false), (3, true)] {
        let free = planned(&program, sites, None, deterministic).unwrap();
        let expected = given(ia::interpret::interpret(&free.ia, &inputs(&program)));
        let whole = most(&free);
        let mut fitted = 0;
        for percent in [90, 80, 70] {
            let limit = whole * percent / 100;
            let Ok(less) = planned(&program, sites, Some(limit), deterministic) else {
                continue;
            };
            fitted += 1;
            assert!(most(&less) <= limit);
            let found = given(ia::interpret::interpret(&less.ia, &inputs(&program)));
            match less.chosen.layout == free.chosen.layout {
                true => assert_eq!(format!("{found:?}"), format!("{expected:?}")),
                false => same(&expected, &found, "another layout"),
            }
        }
        assert!(fitted >= 1, "{sites} sites: none of 3 fits");
    }
    let free = planned(&program, 1, None, false).unwrap();
    let less = planned(&program, 1, Some(most(&free) * 7 / 10), false).unwrap();
    assert!(repeated(&free) == 0 && repeated(&less) > 0, "{}", less.ia);
    assert!(less.cost.flops > free.cost.flops);
    // Ever less memory needs ever more arithmetic, until nothing helps.
    let (mut flops, mut limit) = (free.cost.flops, most(&free));
    let refused = loop {
        limit = limit * 19 / 20;
        match planned(&program, 1, Some(limit), false) {
            Ok(less) => {
                assert!(less.cost.flops >= flops);
                flops = less.cost.flops;
            }
            Err(refused) => break refused,
        }
    };
    assert!(
        refused.contains("E0996") && refused.contains("also with values computed again"),
        "{refused}"
    );
}

#[test]
fn what_a_loop_reads_is_kept_and_what_stands_around_it_is_not() {
    let text = "dim N = 64
        input x: f64[N]
        a[i,j] = exp(x[i] * x[j])
        b[i,j] = a[i,j] + 1
        s = sum[i,j] b[i,j] * a[j,i]
        c[i,j] = x[i] + s * x[j]
        t = sum[i,j] c[i,j]^2
        repeat k < 3 { state y[i] = x[i]; next y[i] = a[i,j] * y[j] / t }
        d[i,j] = b[i,j] * y[i]
        e = sum[i,j] (d[i,j] + c[i,j])
        output e";
    let program = program(text);
    let free = planned(&program, 1, None, false).unwrap();
    let expected = given(ia::interpret::interpret(&free.ia, &inputs(&program)));
    for percent in [90, 75, 60] {
        if let Ok(less) = planned(&program, 1, Some(most(&free) * percent / 100), false) {
            assert!(most(&less) <= most(&free) * percent / 100);
            let found = given(ia::interpret::interpret(&less.ia, &inputs(&program)));
            assert_eq!(format!("{found:?}"), format!("{expected:?}"));
        }
    }
}
