//! Images of a plan's functions that are made ahead, for GPUs that need not be there.
//!
//! A unit of functions has, for each architecture, machine code and PTX. A GPU takes the code of its own generation that is newest and not newer
//! than itself, else such PTX, which its driver compiles. A function is found by its whole text. Must not know how an image gets into a GPU.
//!
//! ```text
//! texts k, l for sm_80 and sm_90, on sm_86   ->   code for sm_80;   on sm_100   ->   PTX for sm_90;   on sm_75   ->   none
//! ```

use crate::functions::{sources_of, texts};
use crate::text::Text;
use crate::unit::{kept, unit};
use crate::units::MOST;
use ein_nvidia::{Architecture, CompileError, Image, compile_ahead};
use ein_plan::{DType, Plan, Source};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::panic::resume_unwind;

/// Images of functions, for some architectures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Images {
    units: Vec<Unit>,
}

/// Functions that are one image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Unit {
    /// Their texts, all under the name `k`.
    functions: Vec<String>,
    compiled: Vec<Compiled>,
}

/// The images of a unit for one architecture.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Compiled {
    architecture: Architecture,
    code: Image,
    portable: Image,
}

impl Images {
    /// Compiles all functions of some plans, and of sources that are made beside them (of a type and rank), for some architectures.
    ///
    /// # Errors
    /// There is no compiler, it does not know an architecture, or it refuses a text.
    pub fn of(
        plans: &[&Plan],
        sources: &[(&Source, DType, usize)],
        architectures: &[Architecture],
    ) -> Result<Images, String> {
        let mut all: Vec<(String, Text)> = vec![];
        let mut known: HashSet<String> = HashSet::new();
        let of_plans = plans.iter().flat_map(|plan| texts(plan));
        let of_sources = sources.iter();
        let of_sources =
            of_sources.flat_map(|(source, dtype, rank)| sources_of(source, *dtype, *rank));
        for text in of_plans.chain(of_sources) {
            let function = text.function("k");
            if known.insert(function.clone()) {
                all.push((function, text));
            }
        }
        let units: Vec<Result<Unit, String>> = std::thread::scope(|scope| {
            let begun: Vec<_> = (all.chunks(MOST))
                .map(|functions| scope.spawn(|| compiled(functions, architectures)))
                .collect();
            let done = begun.into_iter().map(|unit| unit.join());
            done.map(|unit| unit.unwrap_or_else(|panic| resume_unwind(panic)))
                .collect()
        });
        Ok(Images {
            units: units.into_iter().collect::<Result<_, _>>()?,
        })
    }

    /// How many units there are.
    pub(crate) fn units(&self) -> usize {
        self.units.len()
    }

    /// Where each function is: its unit, and its number there.
    pub(crate) fn places(&self) -> HashMap<&str, (usize, usize)> {
        let units = self.units.iter().enumerate();
        let places = units.flat_map(|(unit, own)| {
            let functions = own.functions.iter().enumerate();
            functions.map(move |(number, text)| (text.as_str(), (unit, number)))
        });
        places.collect()
    }

    /// The number of functions of a unit, and its images that a GPU of an architecture takes, the best first.
    pub(crate) fn fitting(&self, unit: usize, gpu: Architecture) -> (usize, Vec<&Image>) {
        let unit = &self.units[unit];
        let mut fitting: Vec<&Compiled> = unit.compiled.iter().collect();
        fitting.retain(|compiled| compiled.architecture <= gpu);
        fitting.sort_by_key(|compiled| std::cmp::Reverse(compiled.architecture));
        let own = fitting.iter();
        let own = own.filter(|compiled| compiled.architecture.major == gpu.major);
        let code = own.map(|compiled| &compiled.code);
        let portable = fitting.iter().map(|compiled| &compiled.portable);
        (unit.functions.len(), code.chain(portable).collect())
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.units.is_empty()
    }
}

fn compiled(functions: &[(String, Text)], architectures: &[Architecture]) -> Result<Unit, String> {
    let texts: Vec<&Text> = functions.iter().map(|(_, text)| text).collect();
    let whole = unit(&texts);
    let compiled = architectures.iter().map(|architecture| {
        let images = compile_ahead(&whole, *architecture);
        let (code, portable) = images.map_err(|error| match error {
            CompileError::Compiler(why) => why,
            CompileError::Text(log) => kept(&whole, &log),
        })?;
        Ok(Compiled {
            architecture: *architecture,
            code,
            portable,
        })
    });
    Ok(Unit {
        functions: functions.iter().map(|(text, _)| text.clone()).collect(),
        compiled: compiled.collect::<Result<_, String>>()?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_gpu_takes_code_of_its_generation_then_portable_images() {
        let image = |name: &str| Image::of(name.as_bytes().to_vec());
        let compiled = |name: &str| Compiled {
            architecture: name.parse().unwrap(),
            code: image(&format!("code {name}")),
            portable: image(&format!("portable {name}")),
        };
        let images = Images {
            units: vec![Unit {
                functions: vec!["k".into(), "l".into()],
                compiled: ["sm_75", "sm_90", "sm_80"].map(compiled).to_vec(),
            }],
        };
        let fitting = |gpu: &str| {
            let (functions, images) = images.fitting(0, gpu.parse().unwrap());
            assert_eq!(functions, 2);
            let images = images
                .iter()
                .map(|image| String::from_utf8_lossy(image.bytes()));
            images.collect::<Vec<_>>().join(", ")
        };
        assert_eq!(
            fitting("sm_86"),
            "code sm_80, portable sm_80, portable sm_75"
        );
        assert_eq!(
            fitting("sm_100"),
            "portable sm_90, portable sm_80, portable sm_75"
        );
        assert_eq!(fitting("sm_70"), "");
        assert_eq!(images.places()["l"], (0, 1));
    }
}
