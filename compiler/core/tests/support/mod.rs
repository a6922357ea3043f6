//! Programs built by hand, random programs, inputs, comparison.
#![allow(dead_code, clippy::unwrap_used)]

pub mod build;
pub mod random;

use ein_plan::Scalar;
use einc_core::einsum::Program;
use einc_core::ia;
use einc_core::tra::chunk::Chunk;
use einc_core::tra::{self, Chunking, Cut};

/// A small generator of numbers, good enough to vary tests.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }
}

/// Values of a source, from its name: small numbers, with repetitions, so that ties occur.
pub fn inputs(program: &Program) -> impl Fn(&str) -> Chunk {
    move |name| {
        let tensor = program.tensors.iter().find(|t| t.name == name).unwrap();
        let mut numbers = Numbers(name.bytes().fold(0x9E37_79B9, |n, b| n * 31 + u64::from(b)));
        let count: u64 = tensor.shape.iter().product();
        let value = |n: u64| {
            if tensor.dtype.is_float() {
                Scalar::Float((n % 17) as f64 / 4.0 - 2.0)
            } else if tensor.dtype.is_integer() {
                Scalar::Int((n % 5) as i64)
            } else {
                Scalar::Bool(n % 2 == 1)
            }
        };
        Chunk {
            shape: tensor.shape.clone(),
            columns: vec![(0..count).map(|_| value(numbers.next())).collect()],
        }
    }
}

/// The chunking that cuts nothing.
pub fn uncut(program: &Program) -> Chunking {
    chunking_by(program, || 1)
}

/// A chunking with pieces from a function.
pub fn chunking_by(program: &Program, mut pieces: impl FnMut() -> u32) -> Chunking {
    use einc_core::einsum::Definition;
    let indices: Vec<Vec<Cut>> = program
        .tensors
        .iter()
        .map(|tensor| match &tensor.definition {
            Definition::Source(_) | Definition::Loop(_) => vec![],
            Definition::Statement { kernel, .. } => {
                kernel.indices.iter().map(|_| Cut::row(pieces())).collect()
            }
        })
        .collect();
    let dims = program
        .tensors
        .iter()
        .map(|tensor| tensor.shape.iter().map(|_| Cut::row(pieces())).collect())
        .collect();
    Chunking {
        // Whatever can be read in windows is.
        windowed: program
            .tensors
            .iter()
            .map(|tensor| match &tensor.definition {
                Definition::Source(_) | Definition::Loop(_) => vec![],
                Definition::Statement { operands, .. } => vec![true; operands.len()],
            })
            .collect(),
        moving: program
            .tensors
            .iter()
            .zip(&indices)
            .map(|(tensor, cuts)| match &tensor.definition {
                Definition::Statement { kernel, .. } if kernel.library().is_some() => vec![],
                _ => vec![true; cuts.len()],
            })
            .collect(),
        indices,
        dims,
        ..Chunking::default()
    }
}

/// What a program gives, or the word that it stops.
pub type Given = Result<Vec<Chunk>, &'static str>;

/// Lowers with a chunking, verifies, interprets TRA and, for every number of sites, IA; all must be `expected`.
pub fn check_chunking(program: &Program, chunking: &Chunking, sites: &[u32], expected: &Given) {
    let tra = tra::from_einsum::from_einsum(program, chunking).unwrap();
    tra::verify::verify(&tra).unwrap();
    same(
        expected,
        &given(tra::interpret::interpret(&tra, &inputs(program))),
        "TRA",
    );
    for sites in sites {
        let ia = ia::from_tra::from_tra(&tra, *sites).unwrap();
        ia::verify::verify(&ia).unwrap();
        let actual = given(ia::interpret::interpret(&ia, &inputs(program)));
        same(expected, &actual, &format!("IA on {sites} sites"));
    }
}

pub fn given(result: Result<Vec<Chunk>, tra::chunk::Stop>) -> Given {
    match result {
        Ok(chunks) => Ok(chunks),
        Err(tra::chunk::Stop::Fault(_)) => Err("stopped"),
        Err(tra::chunk::Stop::Absent(what)) => panic!("{what}"),
    }
}

pub fn same(expected: &Given, actual: &Given, what: &str) {
    let (expected, actual) = match (expected, actual) {
        (Ok(expected), Ok(actual)) => (expected, actual),
        (Err(_), Err(_)) => return,
        _ => panic!("{what}: {expected:?} but {actual:?}"),
    };
    assert_eq!(expected.len(), actual.len());
    for (e, a) in expected.iter().zip(actual) {
        assert_eq!(e.shape, a.shape, "{what}");
        assert_eq!(e.columns.len(), a.columns.len(), "{what}");
        for (x, y) in e.columns.iter().flatten().zip(a.columns.iter().flatten()) {
            let close = match (x, y) {
                (Scalar::Float(x), Scalar::Float(y)) => {
                    x.to_bits() == y.to_bits()
                        || x == y
                        || (x.is_nan() && y.is_nan())
                        || (x - y).abs() <= 1e-5 * (1.0 + x.abs())
                }
                (x, y) => x == y,
            };
            assert!(
                close,
                "{what}: {x:?} but {y:?}\nexpected {e:?}\nactual {a:?}"
            );
        }
    }
}
