//! The optimizers of `std.optim` against golden vectors and against plain loops in double precision.
#![allow(clippy::unwrap_used, clippy::result_large_err)]

mod reference;

use ein_data::{Reader, Writer};
use ein_exec::session::Session;
use ein_plan::{DType, FileRef};
use einc_driver::arguments::DeviceKind;
use einc_driver::planned::Prepared;
use einc_driver::purpose::Purpose;
use einc_driver::session;
use einc_driver::settings::Settings;
use einc_driver::{devices, load};
use reference::{Memory, Rule, norm};
use std::path::Path;

/// Two steps from w = [1, 2, 2] with the gradients [0.1, -0.2, 0.2] and [0.3, 0, -0.4], computed with numpy from the formulas of the papers
/// by someone who did not see this library.
const GRADIENTS: [[f64; 3]; 2] = [[0.1, -0.2, 0.2], [0.3, 0.0, -0.4]];

type Golden = (Rule, [f64; 3], [f64; 3]);

fn golden() -> Vec<Golden> {
    let rule = Rule::new;
    vec![
        (
            rule(
                "lars",
                1.0,
                &[("trust", 1e-3), ("mu", 0.9), ("weight_decay", 0.01)],
            ),
            [0.999, 2.00163636, 1.998],
            [0.99634566, 2.00299581, 1.99835067],
        ),
        (
            rule("lars_ema", 0.1, &[("beta1", 0.9), ("weight_decay", 0.01)]),
            [0.89173051, 2.17716825, 1.78346102],
            [0.63496236, 2.26543655, 1.89938601],
        ),
        (
            rule("lamb", 0.1, &[]),
            [0.82566963, 2.16915305, 1.82394271],
            [0.59455249, 2.33096959, 1.91076146],
        ),
        (
            rule("lamb", 0.1, &[("bias_correction", 0.0)]),
            [0.8264508, 2.17193479, 1.82587619],
            [0.59826361, 2.3369007, 1.91564428],
        ),
        (
            rule("lamb", 0.1, &[("weight_decay", 0.0)]),
            [0.8267955, 2.17320537, 1.82679463],
            [0.59948143, 2.33916354, 1.91747049],
        ),
        (
            rule(
                "lamb",
                0.1,
                &[("weight_decay", 0.0), ("bias_correction", 0.0)],
            ),
            [0.82681317, 2.17321421, 1.82678579],
            [0.59949526, 2.33916595, 1.91746572],
        ),
        (
            rule("nlamb", 0.1, &[]),
            [0.82603517, 2.17049576, 1.8248788],
            [0.58849469, 2.25178459, 1.9804498],
        ),
        (
            rule("nnlamb", 0.1, &[]),
            [0.82586759, 2.16988417, 1.82445151],
            [0.60149261, 2.28848881, 1.97538058],
        ),
    ]
}

/// Two steps by the plain loops.
fn plain(rule: &Rule, start: [f64; 3]) -> [[f64; 3]; 2] {
    let (mut w, mut memory) = (start, Memory::default());
    let mut t = 0;
    GRADIENTS.map(|g| {
        t += 1;
        rule.step(&mut w, &g, &mut memory, t, norm(&g));
        w
    })
}

#[track_caller]
fn close(found: &[f64], wanted: &[f64], tolerance: f64, what: &str) {
    for (found, wanted) in found.iter().zip(wanted) {
        let fits = (found - wanted).abs() <= tolerance * wanted.abs().max(1.0);
        assert!(fits, "{what}: {found} is not {wanted}");
    }
}

#[test]
fn plain_loops_give_the_golden_vectors() {
    for (rule, first, second) in golden() {
        let [one, two] = plain(&rule, [1.0, 2.0, 2.0]);
        close(&one, &first, 1e-8, &format!("{} after step 1", rule.text()));
        close(
            &two,
            &second,
            1e-8,
            &format!("{} after step 2", rule.text()),
        );
    }
}

/// Numbers between -1 and 1 that look random.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / (1u64 << 63) as f64 - 1.0
    }

    fn list(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// A problem whose gradients are given: two params of different sizes and a third that begins with zeros.
struct Problem {
    begin: [Vec<f64>; 3],
    /// By step, of each param.
    gradients: Vec<[Vec<f64>; 3]>,
}

const SIZES: [usize; 3] = [15, 7, 4];

impl Problem {
    fn random(steps: usize) -> Problem {
        let mut noise = Noise(steps as u64);
        let [a, b, c] = SIZES;
        Problem {
            begin: [noise.list(a), noise.list(b), vec![0.0; c]],
            gradients: (0..steps)
                .map(|_| [noise.list(a), noise.list(b), noise.list(c)])
                .collect(),
        }
    }

    /// Where plain loops lead.
    fn plain(&self, rule: &Rule) -> [Vec<f64>; 3] {
        let mut params = self.begin.clone();
        let mut memory = [Memory::default(), Memory::default(), Memory::default()];
        for (t, gradients) in self.gradients.iter().enumerate() {
            let all: Vec<f64> = gradients.iter().flatten().copied().collect();
            for (at, w) in params.iter_mut().enumerate() {
                rule.step(w, &gradients[at], &mut memory[at], t as i32 + 1, norm(&all));
            }
        }
        params
    }
}

/// Where the compiled rule leads, on a number of sites. The loss is linear in the params, so that its gradients are the data.
fn compiled(
    problem: &Problem,
    rule: &Rule,
    dtype: DType,
    sites: u32,
    folder: &Path,
) -> [Vec<f64>; 3] {
    let names = ["a", "b", "c"];
    let steps = problem.gradients.len();
    for (at, name) in names.iter().enumerate() {
        let n = problem.begin[at].len() as u64;
        let gradients: Vec<f64> = problem
            .gradients
            .iter()
            .flat_map(|g| g[at].clone())
            .collect();
        put(
            &folder.join(format!("{name}.npy")),
            dtype,
            &[n],
            &problem.begin[at],
        );
        put(
            &folder.join(format!("g{name}.npy")),
            dtype,
            &[steps as u64, n],
            &gradients,
        );
    }
    let [a, b, c] = [0, 1, 2].map(|at| problem.begin[at].len());
    let text = format!(
        "dim N = {steps}\n\
         input ga: {dtype}[N, {a}] = load(\"ga.npy\")\n\
         input gb: {dtype}[N, {b}] = load(\"gb.npy\")\n\
         input gc: {dtype}[N, {c}] = load(\"gc.npy\")\n\
         param a: {dtype}[{a}] = load(\"a.npy\")\n\
         param b: {dtype}[{b}] = load(\"b.npy\")\n\
         param c: {dtype}[{c}] = load(\"c.npy\")\n\
         row[n] = ga[n,i] * a[i] + gb[n,j] * b[j] + gc[n,k] * c[k]\n\
         loss = mean[n] row[n]\n\
         train {{ loss: loss; data: over N by 1; steps: {steps}; optimizer: {} }}\n\
         output a\noutput b\noutput c\n",
        rule.text()
    );
    let path = folder.join("problem.ein");
    std::fs::write(&path, text).unwrap();
    let settings = Settings {
        saves: names
            .iter()
            .map(|name| (name.to_string(), folder.join(format!("{name}_{sites}.npy"))))
            .collect(),
        sites: Some(sites),
        ..Settings::default()
    };
    let program = load::load(&path).unwrap();
    let planned = session::plan(&program, &settings, sites, Purpose::Run, None);
    let (planned, _) =
        planned.unwrap_or_else(|failure| panic!("{}: {:#?}", rule.text(), failure.diagnostics));
    let Prepared::Session(session) = planned else {
        panic!("a program that trains is a session");
    };
    run(&session, &settings, &program.base, sites);
    names.map(|name| get(&settings.saves[name]))
}

fn run(session: &Session, settings: &Settings, base: &Path, sites: u32) {
    let options = ein_exec::Options {
        seed: 0,
        threads: 2,
        base: base.to_owned(),
        inputs: settings.inputs.clone(),
        saves: settings.saves.clone(),
        ..ein_exec::Options::on(devices::open(DeviceKind::of_environment().unwrap()).unwrap())
    };
    ein_exec::train_in_process(session, sites, &options, &|_| Ok(())).unwrap();
}

fn put(path: &Path, dtype: DType, shape: &[u64], values: &[f64]) {
    let data = match dtype {
        DType::F32 => ein_array::Data::F32(values.iter().map(|x| *x as f32).collect()),
        _ => ein_array::Data::F64(values.to_vec()),
    };
    let extents = shape.iter().map(|n| *n as usize).collect();
    let array = ein_array::Array::new(extents, data).unwrap();
    let writer = Writer::create(path, None, dtype, shape, "t").unwrap();
    let whole: Vec<_> = shape.iter().map(|n| (0, *n)).collect();
    writer.write(&whole, &array).unwrap();
    writer.finish().unwrap();
}

fn get(path: &Path) -> Vec<f64> {
    let file = FileRef {
        path: path.display().to_string(),
        key: None,
    };
    let reader = Reader::open(&file).unwrap();
    let whole: Vec<_> = reader.header().shape.iter().map(|n| (0, *n)).collect();
    let array = reader.read(&whole).unwrap();
    (0..array.data().len())
        .map(|at| array.data().get(at).as_f64())
        .collect()
}

/// Every rule, with its defaults and with everything set.
fn all_rules() -> Vec<Rule> {
    let wd = ("weight_decay", 0.02);
    vec![
        Rule::new("sgd", 0.05, &[]),
        Rule::new("sgd", 0.05, &[wd]),
        Rule::new("momentum", 0.02, &[]),
        Rule::new("momentum", 0.02, &[("mu", 0.5), wd]),
        Rule::new("nesterov", 0.02, &[]),
        Rule::new("nesterov", 0.02, &[("mu", 0.5), wd]),
        Rule::new("adagrad", 0.1, &[]),
        Rule::new("adagrad", 0.1, &[("eps", 0.01), wd]),
        Rule::new("rmsprop", 0.01, &[]),
        Rule::new("rmsprop", 0.01, &[("rho", 0.9), ("eps", 0.01), wd]),
        Rule::new("adam", 0.01, &[]),
        Rule::new(
            "adam",
            0.01,
            &[("beta1", 0.8), ("beta2", 0.99), ("eps", 0.01), wd],
        ),
        Rule::new("adamw", 0.01, &[]),
        Rule::new(
            "adamw",
            0.01,
            &[("beta1", 0.8), ("beta2", 0.99), ("eps", 0.01), wd],
        ),
        Rule::new("lars", 1.0, &[]),
        Rule::new("lars", 1.0, &[("mu", 0.5), ("trust", 0.01), wd]),
        Rule::new("lars", 1.0, &[("adapt", 0.0), ("plain", 0.01), wd]),
        Rule::new("lars_ema", 0.01, &[]),
        Rule::new("lars_ema", 0.01, &[("beta1", 0.5), wd]),
        Rule::new("lars_ema", 0.01, &[("adapt", 0.0)]),
        Rule::new("lamb", 0.01, &[]),
        Rule::new("lamb", 0.01, &[("bias_correction", 0.0)]),
        Rule::new(
            "lamb",
            0.01,
            &[
                ("beta1", 0.8),
                ("beta2", 0.99),
                ("eps", 0.01),
                wd,
                ("lower", 0.5),
                ("upper", 1.5),
            ],
        ),
        Rule::new("lamb", 0.01, &[("adapt", 0.0)]),
        Rule::new("nlamb", 0.01, &[]),
        Rule::new("nlamb", 0.01, &[("adapt", 0.0), wd]),
        Rule::new("nnlamb", 0.01, &[]),
        Rule::new(
            "nnlamb",
            0.01,
            &[("beta1", 0.8), ("beta2", 0.99), ("eps", 0.01), wd],
        ),
        Rule::new("lamb_apex", 0.01, &[]),
        Rule::new("lamb_apex", 0.01, &[("max_norm", 100.0), wd]),
        Rule::new("lamb_apex", 0.01, &[("weight_decay", 0.0)]),
    ]
}

#[test]
fn compiled_rules_give_the_golden_vectors() {
    let folder = tempfile::tempdir().unwrap();
    for (rule, first, second) in golden() {
        for steps in [1, 2] {
            let gradients = GRADIENTS[..steps].iter();
            let problem = Problem {
                begin: [
                    vec![1.0, 2.0, 2.0],
                    vec![1.0, 2.0, 2.0],
                    vec![1.0, 2.0, 2.0],
                ],
                gradients: gradients
                    .map(|g| [g.to_vec(), g.to_vec(), g.to_vec()])
                    .collect(),
            };
            let found = compiled(&problem, &rule, DType::F64, 1, folder.path());
            let wanted = if steps == 1 { first } else { second };
            for found in found {
                close(
                    &found,
                    &wanted,
                    1e-8,
                    &format!("{} after step {steps}", rule.text()),
                );
            }
        }
    }
}

#[test]
fn two_hundred_steps_of_every_rule_follow_the_plain_loops() {
    let problem = Problem::random(200);
    for (number, rule) in all_rules().iter().enumerate() {
        let folder = tempfile::tempdir().unwrap();
        let wanted = problem.plain(rule);
        // Every rule on one site, and each on one other number of them as well.
        for sites in [1, 2 + number as u32 % 3] {
            let found = compiled(&problem, rule, DType::F64, sites, folder.path());
            for (found, wanted) in found.iter().zip(&wanted) {
                assert_eq!(found.len(), wanted.len());
                close(
                    found,
                    wanted,
                    1e-9,
                    &format!("{} on {sites} sites", rule.text()),
                );
            }
        }
    }
}

#[test]
fn two_hundred_steps_in_single_precision() {
    let problem = Problem::random(200);
    for name in ["momentum", "adamw", "lars", "lamb", "nnlamb"] {
        let folder = tempfile::tempdir().unwrap();
        let rule = Rule::new(name, if name == "lars" { 1.0 } else { 0.01 }, &[]);
        let found = compiled(&problem, &rule, DType::F32, 3, folder.path());
        for (found, wanted) in found.iter().zip(problem.plain(&rule)) {
            close(found, &wanted, 2e-4, name);
        }
    }
}

/// Every optimizer of the library is among those that are tested.
#[test]
fn no_rule_is_left_out() {
    let library = ein_stdlib::library("std.optim").unwrap().1;
    for line in library.lines() {
        if let Some(rest) = line.strip_prefix("optimizer ") {
            let name = rest.split_once('(').unwrap().0;
            assert!(
                all_rules().iter().any(|rule| rule.name == name),
                "{name} is not tested"
            );
        }
    }
}
