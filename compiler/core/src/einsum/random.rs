//! Random well-typed programs with inputs, for property tests of everything below the Einstein IR.
//!
//! A seed gives one case, always the same. Sizes are uneven and small, 0 and 1 among them; every reduction, element
//! type and scalar function occurs, as do affine reads with `else`, diagonals, gathers, `where`, guards, masks with
//! infinities, and chains of statements. Values stay small enough, and are whole or halved often enough, that most
//! results are exact in any order of summation; [`Case::tolerance`] says how far the others may be off. No case stops its run. Must not
//! know how programs are lowered or run.
//!
//! ```text
//! input x0: i32[3, 5] = unbound
//! y0: f32[5] = [j: 5 | k: 3] sum f32(x0[k, j + 1] else 0_i32) * 0.5 if k <= j
//! output y0
//! ```

mod expression;
mod leaf;
pub(crate) mod numbers;

use super::canonical::statement;
use super::interpret::Values;
use super::{Definition, Output, Program, Role, Tensor, TensorId};
use ein_plan::{DType, Index, Kernel, Operand, Origin, Reduction, Scalar, Source};
use expression::{Builder, MOST_INEXACT, Term};
use numbers::Numbers;
use std::collections::BTreeMap;

/// A program, what its inputs hold, and how exact its outputs are.
#[derive(Clone, Debug)]
pub struct Case {
    /// The program; every statement is an output.
    pub program: Program,
    /// The values of its inputs, by name.
    pub inputs: BTreeMap<String, Values>,
    /// By output: the largest error of an element that rounding explains; 0 where every order gives the same.
    pub tolerance: Vec<f64>,
}

/// Facts about the values of a tensor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quality {
    /// No value is larger in magnitude.
    pub bound: f64,
    /// Values are multiples of `2^-fraction`, if they are exact at all.
    pub fraction: u32,
    /// True if any order of computing gives the same bits.
    pub exact: bool,
    /// True if values are finite; others are given out but not computed with.
    pub usable: bool,
}

impl Case {
    /// The values of an input, as `interpret` asks for them.
    pub fn input(&self, tensor: &Tensor) -> Values {
        self.inputs[&tensor.name].clone()
    }

    /// Returns whether values are those of output number `output`, up to its tolerance; if not, the first difference.
    pub fn compare(&self, output: usize, expected: &Values, found: &Values) -> Result<(), String> {
        if expected.shape != found.shape {
            return Err(format!(
                "shape {:?} is not {:?}",
                found.shape, expected.shape
            ));
        }
        let tolerance = self.tolerance[output];
        for (at, (a, b)) in expected.data.iter().zip(&found.data).enumerate() {
            let (x, y) = (a.as_f64(), b.as_f64());
            let same = x == y || (x.is_nan() && y.is_nan()) || (x - y).abs() <= tolerance;
            if !same {
                return Err(format!(
                    "element {at}: {b:?} is not {a:?} (within {tolerance})"
                ));
            }
        }
        Ok(())
    }
}

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut maker = Maker {
        numbers: Numbers::new(seed),
        program: Program::default(),
        qualities: vec![],
        inputs: BTreeMap::new(),
    };
    let sizes: Vec<u64> = (0..3).map(|_| maker.numbers.size()).collect();
    for _ in 0..maker.numbers.between(1, 3) {
        maker.source(&sizes);
    }
    for _ in 0..maker.numbers.between(1, 4) {
        maker.statement(&sizes);
    }
    maker.finish()
}

struct Maker {
    numbers: Numbers,
    program: Program,
    /// By tensor.
    qualities: Vec<Quality>,
    inputs: BTreeMap<String, Values>,
}

impl Maker {
    fn add(&mut self, tensor: Tensor, quality: Quality) {
        self.program.tensors.push(tensor);
        self.qualities.push(quality);
    }

    fn source(&mut self, sizes: &[u64]) {
        let rank = self.numbers.between(0, 3);
        let shape: Vec<u64> = (0..rank).map(|_| *self.numbers.pick(sizes)).collect();
        let dtype = *self.numbers.pick(&DType::ALL);
        let count = shape.iter().product::<u64>();
        let name = format!("x{}", self.program.tensors.len());
        let kind = self.numbers.between(0, 9);
        let wild = dtype.is_float() && kind == 9;
        let (source, bound, fraction) = match kind {
            0 if dtype != DType::Bool && count < 256 => (Source::Iota, count as f64, 0),
            1 if dtype.is_float() => (Source::Full(Scalar::Float(1.5)), 1.5, 1),
            2 if dtype.is_float() && (1..32).contains(&count) => {
                let values = (0..count).map(|at| Scalar::Float(at as f64 / 4.0 - 2.0));
                (Source::Numbers(values.collect()), 6.0, 1)
            }
            _ => (Source::Unbound, 6.0, 1),
        };
        if source == Source::Unbound {
            let data = (0..count)
                .map(|_| self.numbers.value(dtype, wild))
                .collect();
            let values = Values {
                shape: shape.clone(),
                data,
            };
            self.inputs.insert(name.clone(), values);
        }
        let role = match source {
            Source::Unbound => Role::Input,
            _ => Role::Param,
        };
        let tensor = Tensor {
            name,
            dtype,
            shape,
            role,
            definition: Definition::Source(source),
            block: None,
            origin: Origin::default(),
        };
        let quality = Quality {
            bound,
            fraction: if dtype.is_float() { fraction } else { 0 },
            exact: true,
            usable: !wild,
        };
        self.add(tensor, quality);
    }

    fn statement(&mut self, sizes: &[u64]) {
        let rank = self.numbers.between(0, 2);
        let reduction = match self.numbers.between(0, 3) {
            0 => None,
            _ => Some(*self.numbers.pick(&Reduction::ALL)),
        };
        let reduced = match reduction {
            None => 0,
            Some(reduction) if reduction.is_arg() => 1,
            Some(_) => self.numbers.between(1, 2),
        };
        let mut indices: Vec<Index> = (0..rank + reduced)
            .map(|number| Index {
                name: ["i", "j", "k", "l"][number as usize].to_string(),
                extent: *self.numbers.pick(sizes),
            })
            .collect();
        if reduction.is_some_and(Reduction::is_arg) {
            // To choose from nothing stops the run.
            let last = indices.len() - 1;
            indices[last].extent = indices[last].extent.max(1);
        }
        let points: u64 = indices[rank as usize..].iter().map(|i| i.extent).product();
        let operands = self.program.tensors.iter().map(|tensor| Operand {
            columns: vec![tensor.dtype],
            shape: tensor.shape.clone(),
        });
        let operands: Vec<Operand> = operands.collect();
        let mut builder = Builder::new(&mut self.numbers, &indices, &operands, &self.qualities);
        let dtype = builder.type_for(reduction);
        let value = builder.root(dtype, reduction, points);
        let guard = match reduction {
            Some(reduction) if !reduction.is_arg() && builder.numbers.one_in(3) => {
                Some(builder.condition())
            }
            _ => None,
        };
        let graph = builder.graph;
        let result = reduction.map_or(dtype, |reduction| reduction.result(dtype));
        let mut quality = reduced_quality(value, reduction, points, guard.is_some());
        let output = self.stored_type(result, &mut quality);
        let kernel = Kernel {
            output_rank: rank as u32,
            operands,
            graph,
            root: value.node,
            guard,
            reduction,
            finish: true,
            output: vec![output],
            indices,
        };
        let all: Vec<TensorId> = (0..kernel.operands.len() as u32).map(TensorId).collect();
        let (kernel, operands) = statement(kernel, &all);
        let shape = kernel.indices[..rank as usize].iter().map(|i| i.extent);
        let tensor = Tensor {
            name: format!("y{}", self.program.tensors.len()),
            dtype: output,
            shape: shape.collect(),
            role: Role::Named,
            definition: Definition::Statement { kernel, operands },
            block: None,
            origin: Origin::default(),
        };
        self.add(tensor, quality);
    }

    /// A type in which a result may be stored; narrow ones only if that loses nothing.
    fn stored_type(&mut self, result: DType, quality: &mut Quality) -> DType {
        let steps = quality.bound * f64::from(1u32 << quality.fraction.min(16));
        let narrow = match result {
            DType::F32 if quality.exact && steps <= 2048.0 => Some(DType::F16),
            DType::I32 if quality.bound <= 255.0 => Some(DType::U8),
            _ => None,
        };
        match narrow {
            Some(DType::U8) if self.numbers.one_in(4) => {
                // Negative values wrap.
                quality.bound = 255.0;
                DType::U8
            }
            Some(DType::F16) if steps <= 256.0 && self.numbers.one_in(6) => DType::BF16,
            Some(DType::F16) if self.numbers.one_in(6) => DType::F16,
            _ => result,
        }
    }

    /// Gives out every statement, and drops the inputs that nothing reads.
    fn finish(self) -> Case {
        let mut program = self.program;
        let mut read = vec![false; program.tensors.len()];
        for tensor in &program.tensors {
            if let Definition::Statement { operands, .. } = &tensor.definition {
                operands.iter().for_each(|o| read[o.0 as usize] = true);
            }
        }
        let is_statement =
            |tensor: &Tensor| matches!(tensor.definition, Definition::Statement { .. });
        let mut numbers = vec![TensorId(0); read.len()];
        let (mut kept, mut outputs, mut tolerance) = (vec![], vec![], vec![]);
        for (at, mut tensor) in std::mem::take(&mut program.tensors).into_iter().enumerate() {
            let number = TensorId(kept.len() as u32);
            numbers[at] = number;
            if is_statement(&tensor) {
                let quality = self.qualities[at];
                // Relative 2^-13 of what the values are made of, at least of 1.
                let error = quality.bound.max(1.0) / 8192.0;
                tolerance.push(if quality.exact { 0.0 } else { error });
                outputs.push(Output {
                    tensor: number,
                    replaces: None,
                    file: None,
                    asserts: None,
                    complex: false,
                    origin: Origin::default(),
                });
            } else if !read[at] {
                continue;
            }
            if let Definition::Statement { operands, .. } = &mut tensor.definition {
                for operand in operands {
                    *operand = numbers[operand.0 as usize];
                }
            }
            kept.push(tensor);
        }
        program.tensors = kept;
        program.outputs = outputs;
        let names: Vec<&str> = program.tensors.iter().map(|t| t.name.as_str()).collect();
        let mut inputs = self.inputs;
        inputs.retain(|name, _| names.contains(&name.as_str()));
        Case {
            program,
            inputs,
            tolerance,
        }
    }
}

/// Returns facts about a reduction of values over that many points.
fn reduced_quality(
    value: Term,
    reduction: Option<Reduction>,
    points: u64,
    guarded: bool,
) -> Quality {
    let mut quality = value.quality;
    let Some(reduction) = reduction else {
        return quality;
    };
    let empty = points == 0 || guarded;
    match reduction {
        Reduction::Sum | Reduction::Norm1 => quality.bound *= points as f64,
        Reduction::Prod => quality.bound = quality.bound.max(1.0).powi(points as i32),
        Reduction::Max | Reduction::Min => quality.usable &= !empty,
        Reduction::Mean | Reduction::LogSumExp | Reduction::Norm => {
            quality.bound = quality.bound * (points as f64).sqrt().max(1.0) + 8.0;
            quality.exact = false;
            quality.usable &= !empty;
        }
        Reduction::ArgMax | Reduction::ArgMin => {
            quality = Quality {
                bound: points as f64,
                fraction: 0,
                exact: true,
                usable: true,
            };
        }
        Reduction::Any | Reduction::All | Reduction::NormInf => {}
    }
    // Beyond 2^23 steps a sum in f32 depends on the order.
    let steps = quality.bound * f64::from(1u32 << quality.fraction.min(16));
    quality.exact &= steps < 8_388_608.0 || value.dtype.is_integer();
    quality.usable &= quality.exact || quality.bound <= MOST_INEXACT;
    quality
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::einsum::interpret::interpret;
    use crate::einsum::parse::parse;
    use crate::einsum::verify::verify;

    #[test]
    fn cases_are_verified_and_print_and_run() {
        for seed in 0..600 {
            let case = case(seed);
            let text = case.program.to_string();
            assert_eq!(verify(&case.program), Ok(()), "seed {seed}\n{text}");
            assert_eq!(
                parse(&text),
                Ok(case.program.clone()),
                "seed {seed}\n{text}"
            );
            let values = interpret(&case.program, &|tensor| case.input(tensor));
            let values = values.unwrap_or_else(|fault| panic!("seed {seed}\n{text}{fault:?}"));
            for (output, values) in values.iter().enumerate() {
                assert_eq!(case.compare(output, values, values), Ok(()));
            }
        }
    }

    #[test]
    fn cases_hold_everything() {
        let texts: Vec<String> = (0..600).map(|s| case(s).program.to_string()).collect();
        let all = texts.concat();
        let words = Reduction::ALL.iter().map(|r| format!("] {} ", r.name()));
        let types = DType::ALL.iter().map(|t| format!(": {}[", t.name()));
        let functions = [
            "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "tanh", "sigmoid",
        ];
        let more = [
            "relu", "gelu", "erf", "sin", "cos", "abs", "sign", "floor", "ceil",
        ];
        let last = [
            "round", "min", "max", "pow", "rem", "floordiv", "where", "and", "not",
        ];
        let calls = functions
            .iter()
            .chain(&more)
            .chain(&last)
            .map(|f| format!("{f}("));
        let forms = [" if ", " else ", "-inf", ": 0", ": 1", " == ", " < ", " / "];
        let forms = forms.iter().map(|f| f.to_string());
        for form in words.chain(types).chain(calls).chain(forms) {
            assert!(all.contains(&form), "no case has `{form}`");
        }
    }
}
