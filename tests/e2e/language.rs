//! The language reference is true: its marked programs check, and so do those of the pages of the codes.

use einc_tests::{einc, root};

fn blocks<'a>(text: &'a str, mark: &str) -> Vec<&'a str> {
    let fence = format!("\n```{mark}\n");
    text.split(&fence)
        .skip(1)
        .map(|rest| rest.split("\n```").next().unwrap())
        .collect()
}

#[test]
fn programs_of_the_reference_check() {
    let text = std::fs::read_to_string(root().join("compiler/LANGUAGE.md")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let programs = blocks(&text, "ein");
    assert!(programs.len() >= 2);
    for (number, program) in programs.iter().enumerate() {
        let file = folder.path().join(format!("block{number}.ein"));
        std::fs::write(&file, program).unwrap();
        einc(&["check", file.to_str().unwrap()]).success();
    }
}

#[test]
fn programs_on_the_pages_of_codes_do_what_the_pages_say() {
    let folder = tempfile::tempdir().unwrap();
    let mut seen = 0;
    for page in std::fs::read_dir(root().join("compiler/diag/codes")).unwrap() {
        let page = page.unwrap().path();
        let code = page.file_stem().unwrap().to_str().unwrap().to_string();
        // Pages whose programs need files beside them, or data that is wrong, are not for `check`.
        if !(code.starts_with("E02")
            || code.starts_with("E03")
            || code.starts_with("E04")
            || code.starts_with("E06"))
        {
            continue;
        }
        let text = std::fs::read_to_string(&page).unwrap();
        for mark in ["ein", "ein,wrong", "ein,warned"] {
            for (number, program) in blocks(&text, mark).iter().enumerate() {
                let file = folder.path().join(format!("{code}_{number}_{mark}.ein"));
                std::fs::write(&file, program).unwrap();
                let finished = einc(&["check", file.to_str().unwrap()]);
                match mark {
                    "ein" => finished.success(),
                    "ein,warned" => finished.success().says(&[&code]),
                    _ => finished.fails_with(1).says(&[&code]),
                };
                seen += 1;
            }
        }
    }
    assert!(seen >= 20, "only {seen} programs on the pages");
}

/// Scatters, prefix sums, modules, several results and sources in functions, each against another way of saying it.
const MIXED: &str = "\
dim N = 1000
dim V = 37
dim D = 5
input idx: i64[N] = iota
input E: f64[N, D] = normal(0, 1)
module linear(D, H)(x[.., D]) -> y[.., H] {
  param w: f64[D, H] = normal(0, 1)
  y[..,h] = x[..,d] * w[d,h]
}
param net: linear(D, D)[2]
fn range(x[n]) -> lo, hi { lo = min[n] x[n]; hi = max[n] x[n] }
fn noisy(x[..]) -> y[..] {
  u[..]: f64[..] = normal(0, 1)
  y[..] = x[..] + u[..]
}
to[n] = (idx[n] * idx[n] + 3 * idx[n]) % V
G[to[n], d]: f64[V, D] += E[n,d]
count[to[n]]: i64[V] += 1
run[n,d] = sum[m <= n] E[m,d]
lo, hi = range(run[N - 1])
B = net[1](net[0](E))
eye[i < D, j < D] = where(i == j, 1.0, f64(0))
net0 = net[0](eye)
net1 = net[1](eye)
a = noisy(E)
b = noisy(E)
missing = 1000 - (sum[v] count[v])
total = norminf[d] ((sum[v] G[v,d]) - (sum[n] E[n,d]))
placed = norminf[v,d] (G[v,d] - sum[n] where(to[n] == v, E[n,d], 0))
last = norminf[d] (run[N - 1, d] - sum[n] E[n,d])
half = norminf[d] (run[499, d] - sum[n < 500] E[n,d])
layers = norminf[n,h] (B[n,h] - (E[n,d] * net0[d,e]) * net1[e,h])
ends = max(abs(lo - min[d] run[N - 1, d]), abs(hi - max[d] run[N - 1, d]))
same = where((norminf[n,d] (a[n,d] - b[n,d])) > 0, 0.0, 1.0)
output missing
output total
output placed
output last
output half
output layers
output ends
output same
";

#[test]
fn the_same_said_otherwise_differs_by_rounding_only() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mixed.ein");
    std::fs::write(&file, MIXED).unwrap();
    for sites in ["1", "2", "3", "4", "5"] {
        let finished = einc(&["run", file.to_str().unwrap(), "--sites", sites]).success();
        let values: Vec<(&str, f64)> = finished
            .stdout
            .lines()
            .filter_map(|line| line.split_once(" = "))
            .map(|(name, value)| (name, value.parse().unwrap()))
            .collect();
        assert_eq!(values.len(), 8, "{finished}");
        for (name, value) in values {
            assert!(value.abs() < 1e-9, "{name} on {sites} sites: {value}");
        }
    }
}
