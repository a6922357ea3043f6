//! Reads printed groups back.
//!
//! Must not know what a group is for.
//!
//! ```text
//! "f32 (v, u) v2 = mul v0 v1 -> v2"   ->   two inputs, one step, one output
//! ```

use crate::{Group, Input, Step};
use ein_plan::Function;
use std::str::FromStr;

impl FromStr for Group {
    type Err = String;

    fn from_str(text: &str) -> Result<Group, String> {
        let (dtype, rest) = text
            .split_once(" (")
            .ok_or("a group begins with its type and inputs")?;
        let double = match dtype {
            "f32" => false,
            "f64" => true,
            other => return Err(format!("`{other}` is not the type of a group's numbers")),
        };
        let (inputs, rest) = rest.split_once(") ").ok_or("the inputs do not end")?;
        let inputs: Vec<Input> = inputs
            .split(", ")
            .filter(|kind| !kind.is_empty())
            .map(input)
            .collect::<Result<_, _>>()?;
        let (steps, outputs) = rest
            .split_once(" -> ")
            .ok_or("a group ends with its outputs")?;
        let mut known = inputs.len() as u32;
        let mut list = vec![];
        for text in steps.split("; ") {
            list.push(step(text, known)?);
            known += 1;
        }
        let outputs = outputs
            .split(", ")
            .map(|output| value(output, known))
            .collect::<Result<Vec<u32>, _>>()?;
        if outputs
            .iter()
            .any(|output| (*output as usize) < inputs.len())
        {
            return Err("an output is a step, not an input".to_owned());
        }
        Ok(Group {
            double,
            inputs,
            steps: list,
            outputs,
        })
    }
}

fn input(kind: &str) -> Result<Input, String> {
    let (truth, uniform) = match kind {
        "v" => (false, false),
        "u" => (false, true),
        "b" => (true, false),
        "ub" => (true, true),
        other => return Err(format!("`{other}` is not an input")),
    };
    Ok(Input { truth, uniform })
}

/// The number of a value among the first `known`.
fn value(text: &str, known: u32) -> Result<u32, String> {
    let number = text.strip_prefix('v').and_then(|n| n.parse().ok());
    number
        .filter(|n| *n < known)
        .ok_or_else(|| format!("`{text}` is not a value"))
}

/// The step that makes value `known`.
fn step(text: &str, known: u32) -> Result<Step, String> {
    let (own, body) = text
        .split_once(" = ")
        .ok_or_else(|| format!("`{text}` is not a step"))?;
    if own != format!("v{known}") {
        return Err(format!("v{known} is next, not `{own}`"));
    }
    let mut words = body.split(' ');
    let name = words.next().unwrap_or_default();
    let function = Function::from_name(name)
        .filter(|f| Group::has(*f))
        .ok_or_else(|| format!("a group has no `{name}`"))?;
    let arguments = words
        .map(|word| value(word, known))
        .collect::<Result<Vec<u32>, _>>()?;
    if arguments.len() != function.arity() {
        return Err(format!("`{name}` has {} arguments", function.arity()));
    }
    let mut list = [0; 3];
    list[..arguments.len()].copy_from_slice(&arguments);
    Ok((function, list))
}
