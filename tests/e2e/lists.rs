//! Constant lists without a type: they take the type of what they meet, wherever it is.

use einc_tests::everywhere::printed;
use einc_tests::{einc_command, run};

#[test]
fn lists_take_the_type_of_what_they_meet() {
    let text = "
const q = [0.25, 0.5, 0.25]
const k = [1, 2, 3]
const S = [[2, 1], [1, 3]]
input x: f32[3] = ones
input v: f64[2] = [1.5, -2]
input b: u8[3] = [1, 2, 3]
p = [2, 0, 1, 5]
pad[i < 4] = q[i - 1] else 0
at[i < 4] = k[p[i]] else 7
first[i < 3] = x[i] * (k[i - 1] else 0.5)
beside[i < 3] = b[i] + (k[i - 1] else (b[2]))
w[t,i] = scan[t < 3](h: q[i], h[i] * (q[i - 1] else 1))
twice[i] = k[i] * 2
half[i] = x[i] / twice[i]
s = solve(S, v)
o = argsort(q)
l = sum[i] x[i]^2
j = jvp(l, x, q)
h = hvp(l, x, k)
output pad
output at
output first
output beside
output w
output half
output s
output o
output j
output h
";
    let expected = "pad = [0.   0.25 0.5  0.25]
at = [3 1 2 7]
first = [0.5 1.  2. ]
beside = [4 3 5]
w = [[0.25      0.125     0.125    ]
     [0.25      0.03125   0.0625   ]
     [0.25      0.0078125 0.03125  ]]
half = [0.5        0.25       0.16666667]
s = [ 1.3 -1.1]
o = [0 2 1]
j = 2.0
h = [2. 4. 6.]
";
    let found = printed(&[("p.ein", text)]);
    assert_eq!(found, expected);
}

/// A training gives one result with the types of lists and without them.
#[test]
fn lists_meet_params_in_training() {
    let text = "
const K = [1, 2, 1]
const B = [0.9, 0.5]
param w: f32[3] = ones
input x: f32[3] = [1, 2, 3]
fn weighted(v[n]) -> r[n] { r[i] = v[i] * K[i] }
u = weighted(x)
loss = sum[i] (w[i] * x[i] - K[i])^2 + sum[i] (w[i] * B[0] - u[i])^2
train { loss: loss; steps: 3; optimizer: sgd(lr: 0.01) }
output w
";
    let typed = text
        .replace("const K =", "const K: f32[3] =")
        .replace("const B =", "const B: f32[2] =");
    let folder = tempfile::tempdir().unwrap();
    let found = [text, &typed].map(|text| {
        std::fs::write(folder.path().join("p.ein"), text).unwrap();
        let mut command = einc_command(&["run", "p.ein", "--sites", "2"]);
        command.current_dir(folder.path());
        run(&mut command).success().stdout
    });
    assert!(found[0].starts_with("w = ["), "{}", found[0]);
    assert_eq!(found[0], found[1]);
}
