//! Support vector machines on parts of the data, in `examples/methods`, against plain loops.
#![allow(
    clippy::needless_range_loop,
    reason = "references are loops over indices"
)]

use super::families::{
    Row, balanced, first_come, inputs, k_means, least, means, method, on_sites_and_ranks, rows,
    square, vector,
};
use einc_tests::everywhere::{dims, everywhere};
use einc_tests::{Tensor, einc};

const C: f64 = 4.0;
const G: f64 = 2.0;
const TOL: f64 = 1e-8;

fn gauss(a: &[f64], b: &[f64]) -> f64 {
    (-G * square(a, b)).exp()
}

/// Rows with their labels and multipliers.
#[derive(Clone, Default)]
struct Machine {
    x: Vec<Row>,
    y: Row,
    a: Row,
    b: f64,
}

impl Machine {
    fn new(x: &[Row], y: &[f64], part: &[usize], own: usize) -> Machine {
        let of = || (0..x.len()).filter(move |n| part[*n] == own);
        Machine {
            x: of().map(|n| x[n].clone()).collect(),
            y: of().map(|n| y[n]).collect(),
            a: vec![0.0; of().count()],
            b: 0.0,
        }
    }

    /// Sequential minimal optimisation with all slopes computed anew in each step.
    fn train(&mut self) {
        let n = self.x.len();
        let snap = |a: f64| {
            if a < 1e-9 * C {
                0.0
            } else if a > C * (1.0 - 1e-9) {
                C
            } else {
                a
            }
        };
        if n == 0 {
            return;
        }
        let kernel: Vec<Row> = self
            .x
            .iter()
            .map(|a| self.x.iter().map(|b| gauss(a, b)).collect())
            .collect();
        loop {
            let slope = |i: usize| {
                (0..n)
                    .map(|j| kernel[i][j] * self.a[j] * self.y[j])
                    .sum::<f64>()
                    - self.y[i]
            };
            let f: Row = (0..n).map(slope).collect();
            let free = |i: usize| 0.0 < self.a[i] && self.a[i] < C;
            let at = |i: usize, sign: f64| {
                self.y[i] * sign > 0.0 && self.a[i] == 0.0
                    || self.y[i] * sign < 0.0 && self.a[i] == C
            };
            let high = least((0..n).map(|i| {
                if free(i) || at(i, 1.0) {
                    f[i]
                } else {
                    f64::INFINITY
                }
            }));
            let low = least((0..n).map(|i| {
                if free(i) || at(i, -1.0) {
                    -f[i]
                } else {
                    f64::INFINITY
                }
            }));
            let gap = f[low] - f[high];
            self.b = (f[low] + f[high]) / 2.0;
            if gap <= 2.0 * TOL {
                return;
            }
            let (old_low, old_high) = (self.a[low], self.a[high]);
            let s = self.y[low] * self.y[high];
            let (from, to) = if s < 0.0 {
                (0f64.max(old_low - old_high), C.min(C + old_low - old_high))
            } else {
                (0f64.max(old_low + old_high - C), C.min(old_low + old_high))
            };
            let moved = old_low - self.y[low] * gap / (2.0 - 2.0 * kernel[high][low]);
            self.a[low] = snap(moved.max(from).min(to));
            self.a[high] = snap(old_high - s * (self.a[low] - old_low));
        }
    }

    fn decide(&self, z: &[f64]) -> f64 {
        let terms = (0..self.x.len()).map(|i| gauss(z, &self.x[i]) * self.a[i] * self.y[i]);
        terms.sum::<f64>() - self.b
    }

    /// Two machines' rows: all of them, or the support vectors.
    fn merged(&self, other: &Machine, all: bool) -> Machine {
        let mut sum = Machine::default();
        for machine in [self, other] {
            for i in (0..machine.x.len()).filter(|i| all || machine.a[*i] > 0.0) {
                sum.x.push(machine.x[i].clone());
                sum.y.push(machine.y[i]);
                sum.a.push(machine.a[i]);
            }
        }
        sum
    }
}

struct Classes {
    x: Vec<Row>,
    y: Row,
    z: Vec<Row>,
    t: Row,
    folder: tempfile::TempDir,
}

/// A small problem of two classes, as many rows in a part as `parts` leave.
fn classes(n: usize) -> Classes {
    let x = rows(&Tensor::noise(&[n, 2], 70));
    let z = rows(&Tensor::noise(&[17, 2], 71));
    let side = |r: &Row| {
        if (4.0 * r[0]).sin() + (3.0 * r[1]).cos() > 0.4 {
            1.0
        } else {
            -1.0
        }
    };
    Classes {
        y: x.iter().map(side).collect(),
        t: z.iter().map(side).collect(),
        x,
        z,
        folder: tempfile::tempdir().unwrap(),
    }
}

fn matrix(rows: &[Row]) -> Tensor {
    let columns = rows[0].len();
    Tensor::from_fn(&[rows.len(), columns], |n| rows[n / columns][n % columns])
}

impl Classes {
    fn arguments(&self, sizes: &[(&str, usize)]) -> Vec<String> {
        let tensors = [
            ("X", &matrix(&self.x)),
            ("y", &vector(&self.y)),
            ("Z", &matrix(&self.z)),
            ("t", &vector(&self.t)),
        ];
        [
            inputs(self.folder.path(), &tensors),
            self.constants(),
            dims(sizes),
        ]
        .concat()
    }

    fn constants(&self) -> Vec<String> {
        let set = [format!("C={C}"), format!("g={G}"), format!("tol={TOL}")];
        set.into_iter()
            .flat_map(|set| ["--set".to_string(), set])
            .collect()
    }

    fn machines(&self, part: &[usize], parts: usize) -> Vec<Machine> {
        let mut machines: Vec<Machine> = (0..parts)
            .map(|p| Machine::new(&self.x, &self.y, part, p))
            .collect();
        machines.iter_mut().for_each(Machine::train);
        machines
    }

    /// The decisions of the machines of the nearest centres.
    fn routed(&self, part: &[usize], centres: &[Row]) -> Tensor {
        let machines = self.machines(part, centres.len());
        let value = |z: &Row| machines[least(centres.iter().map(|c| square(z, c)))].decide(z);
        vector(&self.z.iter().map(value).collect::<Row>())
    }

    /// The decisions of the machine at the root of a tree.
    fn tree(&self, part: &[usize], all: bool) -> Tensor {
        let mut machines = self.machines(part, 8);
        while machines.len() > 1 {
            machines = machines
                .chunks(2)
                .map(|two| two[0].merged(&two[1], all))
                .collect();
            machines.iter_mut().for_each(Machine::train);
        }
        vector(
            &self
                .z
                .iter()
                .map(|z| machines[0].decide(z))
                .collect::<Row>(),
        )
    }

    /// That a program gives these values, their accuracy, and these numbers besides.
    fn check(&self, name: &str, arguments: &[String], expected: &Tensor, besides: &[(&str, f64)]) {
        let right = |n: usize| f64::from((expected.data[n] > 0.0) == (self.t[n] > 0.0));
        let accuracy = (0..self.t.len()).map(right).sum::<f64>() / self.t.len() as f64;
        let saved: Vec<&str> = ["value", "accuracy"]
            .into_iter()
            .chain(besides.iter().map(|(name, _)| *name))
            .collect();
        let number = |value: f64| Tensor::from_fn(&[], |_| value);
        on_sites_and_ranks(&method(name), arguments, &saved, |output, how| {
            let how = format!("{name}, {how}");
            output("value").assert_close(expected, 1e-5, &how);
            output("accuracy").assert_close(&number(accuracy), 1e-12, &how);
            for (name, value) in besides {
                output(name).assert_close(&number(*value), 1e-8, &how);
            }
        });
    }
}

#[test]
fn a_machine_a_cluster() {
    let problem = classes(50);
    let (x, parts, room) = (&problem.x, 4, 13);
    let (near, centres) = k_means(x, parts);
    problem.check(
        "cp_svm",
        &problem.arguments(&[("P", parts), ("R", 50)]),
        &problem.routed(&near, &centres),
        &[],
    );
    for (name, part) in [
        ("fcfs_svm", first_come(x, &x[..parts], room)),
        ("kbalance_svm", first_come(x, &centres, room)),
        ("bkm_svm", balanced(x, &near, &centres, room)),
    ] {
        let expected = problem.routed(&part, &means(x, &part, &centres));
        problem.check(name, &problem.arguments(&[("P", parts)]), &expected, &[]);
    }
}

#[test]
fn a_machine_an_even_part() {
    let problem = classes(52);
    let part: Vec<usize> = (0..52).map(|n| n / 13).collect();
    let expected = problem.routed(&part, &means(&problem.x, &part, &problem.x[..4]));
    let x = matrix(&problem.x);
    let cut = Tensor {
        shape: vec![4, 13, 2],
        data: x.data,
    };
    let y = Tensor {
        shape: vec![4, 13],
        data: problem.y.clone(),
    };
    let tensors = [
        ("X", &cut),
        ("y", &y),
        ("Z", &matrix(&problem.z)),
        ("t", &vector(&problem.t)),
    ];
    let arguments = [
        inputs(problem.folder.path(), &tensors),
        problem.constants(),
        dims(&[("K", 3_000)]),
    ];
    problem.check("ca_svm", &arguments.concat(), &expected, &[]);
}

#[test]
fn trees_of_machines() {
    let problem = classes(64);
    let above = [("R2", 64), ("R3", 64), ("R4", 64)];
    let even: Vec<usize> = (0..64).map(|n| n / 8).collect();
    problem.check(
        "cascade",
        &problem.arguments(&above),
        &problem.tree(&even, false),
        &[],
    );
    let (near, _) = k_means(&problem.x, 8);
    let clusters = problem.arguments(&[&above[..], &[("R", 64)]].concat());
    problem.check("dc_filter", &clusters, &problem.tree(&near, false), &[]);
    problem.check("dc_svm", &clusters, &problem.tree(&near, true), &[]);
}

/// The least value of the dual without bias and the decisions there, by cyclic coordinate descent to the end.
fn without_bias(problem: &Classes) -> (f64, Row) {
    let n = problem.x.len();
    let q = |i: usize, j: usize| problem.y[i] * problem.y[j] * gauss(&problem.x[i], &problem.x[j]);
    let mut a = vec![0.0; n];
    let slope = |a: &Row, i: usize| (0..n).map(|j| q(i, j) * a[j]).sum::<f64>() - 1.0;
    loop {
        let mut worst = 0f64;
        for i in 0..n {
            let new = (a[i] - slope(&a, i)).clamp(0.0, C);
            worst = worst.max((new - a[i]).abs());
            a[i] = new;
        }
        if worst < 1e-12 {
            break;
        }
    }
    let objective = (0..n)
        .map(|i| 0.5 * a[i] * (slope(&a, i) - 1.0))
        .sum::<f64>();
    let terms = |z: &Row| {
        (0..n)
            .map(|i| gauss(z, &problem.x[i]) * a[i] * problem.y[i])
            .sum::<f64>()
    };
    let values: Row = problem.z.iter().map(terms).collect();
    (objective, values)
}

#[test]
fn coordinate_descent_over_clusters_minimises_the_dual() {
    let problem = classes(50);
    let (objective, values) = without_bias(&problem);
    let arguments = problem.arguments(&[("P", 4), ("R", 50)]);
    let besides = [("objective", objective)];
    problem.check("asy_gcd", &arguments, &vector(&values), &besides);
}

#[test]
fn coordinate_descent_over_blocks_minimises_the_dual() {
    let problem = classes(42);
    let (objective, _) = without_bias(&problem);
    let tensors = [("X", &matrix(&problem.x)), ("y", &vector(&problem.y))];
    let set = ["--set", "C=4", "--set", "g=2"].map(str::to_string);
    let arguments = [
        inputs(problem.folder.path(), &tensors),
        set.to_vec(),
        dims(&[("P", 3)]),
    ];
    everywhere(
        "gcd.ein",
        &arguments.concat(),
        &["objective"],
        |output, how| {
            // The rounds end at violations of 1e-3, so the value is that close or closer.
            let expected = Tensor::from_fn(&[], |_| objective);
            output("objective").assert_close(&expected, 1e-4, how);
        },
    );
}

#[test]
fn a_machine_of_all_rows() {
    let problem = classes(45);
    let mut machine = Machine::new(&problem.x, &problem.y, &[0; 45], 0);
    machine.train();
    let expected = vector(&machine.a);
    everywhere("smo.ein", &problem.arguments(&[]), &["a"], |output, how| {
        output("a").assert_close(&expected, 1e-5, how);
    });
}

#[test]
fn training_machines_apart_moves_nothing() {
    // Without the prediction, which reads every part, only the count of unfinished machines is made of all sites'.
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(method("ca_svm")).unwrap();
    let text = text
        .replace("output value\n", "")
        .replace("output accuracy\n", "");
    let svm = std::fs::read_to_string(method("svm")).unwrap();
    std::fs::write(folder.path().join("svm.ein"), svm).unwrap();
    let source = folder.path().join("apart.ein");
    std::fs::write(&source, text).unwrap();
    // Rounds over fewer examples are not shared out.
    let problem = classes(560);
    let x = Tensor {
        shape: vec![8, 70, 2],
        data: matrix(&problem.x).data,
    };
    let y = Tensor {
        shape: vec![8, 70],
        data: problem.y.clone(),
    };
    let tensors = [
        ("X", &x),
        ("y", &y),
        ("Z", &matrix(&problem.z)),
        ("t", &vector(&problem.t)),
    ];
    let arguments = [inputs(problem.folder.path(), &tensors), dims(&[("K", 50)])].concat();
    for (sites, floats) in [("1", 0), ("4", 3), ("8", 7)] {
        let base = ["run", source.to_str().unwrap(), "--stats", "--sites", sites];
        let base = base.iter().map(|part| (*part).to_string());
        let command: Vec<String> = base.chain(arguments.iter().cloned()).collect();
        einc(&command)
            .success()
            .says(&[&format!("moved in all = {floats} floats")]);
    }
}
