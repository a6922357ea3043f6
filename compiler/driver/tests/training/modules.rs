//! Arrays of modules that rounds go through, against the same instances applied one by one: the same params by name, so the same
//! numbers, however they are stored.

use crate::{close, run};

const MODEL: &str = "
dim N = 13
dim D = 5
module layer(D, H)(x[.., D]) -> y[.., H] {
  param w: f32[D, H] = he_normal
  param s: f32 = 0.7
  param b: f32[H] = normal(0, 0.1)
  y[..,h] = s * tanh(x[..,d] * w[d,h]) + b[h]
}
module tower(D)(x[n, D]) -> y[n, D] {
  param inner: layer(D, D)[2]
  param g: bf16[D] = ones
  INNER
  y[n,d] = x[n,d] + f32(g[d]) * i[n,d]
}
input X: f32[N, D] = uniform(-1, 1)
input t: f32[N] = uniform(-1, 1)
param net: tower(D)[2]
param head: layer(D, 1)
OUTER
p = head(h)
loss = mean[n] (p[n,0] - t[n])^2
";

/// The model with its arrays in rounds, and with every instance written out.
fn texts(train: &str) -> [String; 2] {
    let of = |inner: &str, outer: &str| {
        let model = MODEL.replace("INNER", inner).replace("OUTER", outer);
        format!("{model}{train}\noutput loss\noutput head.w\n")
    };
    [
        of(
            "repeat l < 2 { state i = x; next i = inner[l](i) }",
            "repeat l < 2 { state h = X; next h = net[l](h) }",
        ),
        of(
            "i0 = inner[0](x)\n  i = inner[1](i0)",
            "h0 = net[0](X)\nh = net[1](h0)",
        ),
    ]
}

fn alike(train: &str) {
    let [rounds, written] = texts(train);
    let expected = run(&written, 1);
    for sites in 1..=4 {
        let found = run(&rounds, sites);
        let what = format!("{train} on {sites} sites");
        close(&found.losses, &expected.losses, &what);
        close(&found.validated, &expected.validated, &what);
        assert_eq!(found.outputs.len(), expected.outputs.len());
        for (name, values) in &expected.outputs {
            close(&found.outputs[name], values, &format!("{what}: {name}"));
        }
    }
}

#[test]
fn what_is_evaluated_and_its_gradient_are_those_of_the_instances() {
    alike("train { loss: loss; data: (X, t) over N by 13; steps: 2; optimizer: sgd(lr: 0.1) }");
}

#[test]
fn a_rule_is_applied_to_the_params_of_each_instance() {
    // Norms, and so the rates of `lamb` and `lars`, are of one instance's param.
    alike(
        "train { loss: loss; data: (X, t) over N by 4; epochs: 3; optimizer: lamb(lr: 0.02, weight_decay: 0.1) }",
    );
    alike("train { loss: loss; data: (X, t) over N by 5; epochs: 2; optimizer: lars(lr: 0.1) }");
}

#[test]
fn groups_clipping_and_parts_see_every_instance() {
    alike(
        "train {
          loss: loss; data: (X, t) over N by 6 shuffle; epochs: 3; accumulate: 2; clip: 0.1
          optimizer: adamw(lr: 0.02, weight_decay: 0.5)
          group net.*.b, *.s { weight_decay: 0 }
          group net.*.w { lr: 0.01 }
          validate: loss every 1 epoch
        }",
    );
}

#[test]
fn a_group_of_one_instance_is_of_that_instance() {
    alike(
        "train {
          loss: loss; data: (X, t) over N by 6; epochs: 3; optimizer: momentum(lr: 0.05)
          group net.1.* { lr: 0 }
        }",
    );
}
