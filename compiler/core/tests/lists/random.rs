//! Random programs over a list give what they give over all elements.

use super::{assert_same, listing, program};
use einc_core::einsum::verify::verify;
use einc_core::lists::with_lists;

/// Numbers that look random.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    pub fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// A program of some matrices and sums of them; all values are finite.
fn random_program(random: &mut Random) -> String {
    let mut text = "input A: f32[12, 20] = unbound\ninput U: f32[12, 3] = unbound\ninput V: f32[20, 3] = unbound\n\
        input d: f32[12] = unbound\ninput b: f32[20] = unbound\n".to_owned();
    let mut matrices = vec!["A[i, j]".to_owned(), "A[i, j]".to_owned()];
    let mut vectors = vec!["d[i]".to_owned(), "b[j]".to_owned()];
    let mut outputs = String::new();
    for number in 0..6 {
        let side = |random: &mut Random| match random.below(6) {
            0 => vectors[random.below(vectors.len())].clone(),
            1 => random.of(&["0.0", "2.0", "-1.0"]).to_owned(),
            _ => matrices[random.below(matrices.len())].clone(),
        };
        let (x, y, z) = (side(random), side(random), side(random));
        let value = match random.below(8) {
            0 => format!("{x} * {y}"),
            1 => format!("where({x} != 0.0, {y}, {z})"),
            2 => format!("tanh({x})"),
            3 => format!("{x} + {y} * {z}"),
            4 => format!("-{x} / 3.0"),
            5 => format!("where({x} > {y}, {x} * {z}, 0.0)"),
            6 => format!("max({x}, {y})"),
            _ => format!("cos({x}) * {y}"),
        };
        match random.below(5) {
            0 | 1 => {
                text += &format!("m{number}: f32[12, 20] = [i: 12, j: 20] {value}\n");
                matrices.push(format!("m{number}[i, j]"));
            }
            2 => {
                text += &format!(
                    "m{number}: f32[20, 12] = [j: 20, i: 12 | k: 3] sum ({value}) * U[i, k] * V[j, k]\n"
                );
                matrices.push(format!("m{number}[j, i]"));
            }
            3 => {
                let reduction = random.of(&["sum", "max", "min", "mean", "norm", "norm1"]);
                text += &format!("m{number}: f32[12] = [i: 12 | j: 20] {reduction} {value}\n");
                vectors.push(format!("m{number}[i]"));
            }
            _ => {
                let guard = random.of(&["", " if i > 2", " if j < i"]);
                text += &format!("m{number}: f32[20] = [j: 20 | i: 12] sum {value}{guard}\n");
                vectors.push(format!("m{number}[j]"));
            }
        }
        outputs += &format!("output m{number}\n");
    }
    text + "all: f32[12] = [i: 12 | h: 3, j: 20] sum A[i, j] * V[j, h] * U[i, h] * d[i] * b[j]\n"
        + &outputs
        + "output all\n"
}

#[test]
fn random_programs_keep_their_meaning() {
    let mut over = 0;
    for seed in 0..300 {
        let dense = program(&random_program(&mut Random(seed)));
        let lists = with_lists(&dense, &listing(7));
        assert_eq!(verify(&lists), Ok(()), "{seed}: {lists}");
        over += usize::from(lists != dense);
        assert_same((&dense, &lists), &[12, 20], &format!("seed {seed}"));
    }
    assert!(over > 200, "{over}");
}
