//! A solution as a program: names, order, outputs, and the rules that led to it.
//!
//! Must not know how solutions are found.
//!
//! ```text
//! hidden y.1: f64[8] = [k: 8 | l: 7] sum B[k, l] * x[l]
//! y: f64[9] = [i: 9 | k: 8] sum A[i, k] * y.1[k]
//! ```

use super::describe;
use super::emit::{self, Statement};
use super::extract::{Choice, Search, Solution};
use super::steps::Steps;
use super::{Alternative, RuleUse};
use crate::einsum::{Definition, Output, Program, Tensor, TensorId, canonical};
use egg::Id;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

impl Search<'_> {
    /// The program of a solution.
    pub fn emit(&self, choice: &Choice, solution: &Solution) -> Option<Alternative> {
        let program = self.bound.program;
        let egraph = &self.bound.graph.egraph;
        let mut taken: HashSet<String> = program.tensors.iter().map(|t| t.name.clone()).collect();
        // Every statement with the tensor that it belongs to; what the rules made belongs to what needs it.
        let mut owner: HashMap<Id, usize> = HashMap::new();
        for (class, statement) in solution.statements.iter().rev() {
            let own = self.bound.tensor(*class).map(|(tensor, _)| tensor);
            let own = own.or_else(|| owner.get(class).copied())?;
            owner.insert(*class, own);
            for operand in &statement.operands {
                let first = owner.entry(egraph.find(*operand)).or_insert(own);
                *first = (*first).min(own);
            }
        }
        let mut items: Vec<Item> = vec![];
        let mut place: HashMap<Id, usize> = HashMap::new();
        for (class, statement) in &solution.statements {
            let own = *owner.get(class)?;
            let bound = self.bound.tensor(*class).is_some();
            let tensor = &program.tensors[own];
            let tensor = match bound {
                true => tensor.clone(),
                false => Tensor {
                    name: emit::hidden_name(&tensor.name, &mut taken),
                    dtype: self.bound.graph.data(*class).dtype,
                    shape: self.bound.shape(*class),
                    role: emit::NEW,
                    ..tensor.clone()
                },
            };
            let operands = statement.operands.iter();
            let operands: Option<Vec<usize>> = operands
                .map(|o| place.get(&egraph.find(*o)).copied())
                .collect();
            place.insert(*class, items.len());
            items.push(Item {
                key: (own, usize::from(bound)),
                tensor,
                operands: operands?,
                statement: Some(Rc::clone(statement)),
            });
        }
        let mut outputs: HashMap<u32, usize> = HashMap::new();
        for output in &program.outputs {
            let at = output.tensor.0 as usize;
            let from = &self.translated.places[at];
            let class = egraph.find(from.class);
            let Entry::Vacant(number) = outputs.entry(output.tensor.0) else {
                continue;
            };
            if self.bound.is_written(at, class) {
                number.insert(*place.get(&class)?);
                continue;
            }
            number.insert(items.len());
            let copy = emit::copy(self.bound, at, class, &from.order);
            items.push(Item {
                key: (at, 1),
                tensor: program.tensors[at].clone(),
                operands: vec![*place.get(&class)?],
                statement: Some(Rc::new(copy)),
            });
        }
        let (tensors, moved) = ordered(items);
        let result = Program {
            tensors,
            outputs: program
                .outputs
                .iter()
                .map(|output| Output {
                    tensor: moved[outputs[&output.tensor.0]],
                    ..output.clone()
                })
                .collect(),
            files: program.files.clone(),
            blocks: vec![],
        };
        let rules = self.uses(choice, solution, &result, &owner);
        Some(Alternative::new(result, rules))
    }

    /// The rules that led to a solution.
    fn uses(
        &self,
        choice: &Choice,
        solution: &Solution,
        result: &Program,
        owner: &HashMap<Id, usize>,
    ) -> Vec<RuleUse> {
        let program = self.bound.program;
        let egraph = &self.bound.graph.egraph;
        let mut uses: Vec<RuleUse> = vec![];
        for (at, place) in self.translated.places.iter().enumerate() {
            let class = egraph.find(place.class);
            let Some(rule) =
                self.translated.shared[at].filter(|_| !self.bound.is_written(at, class))
            else {
                continue;
            };
            let tensor = &program.tensors[at];
            let other = self.bound.tensor(class).map(|(other, _)| other);
            let other = other.map_or("", |other| &program.tensors[other].name);
            uses.push(RuleUse {
                rule,
                tensor: tensor.name.clone(),
                before: program.tensor_text(tensor),
                after: match result.tensors.iter().any(|t| t.name == tensor.name) {
                    true => format!("{} is a copy of {other}", tensor.name),
                    false => format!("{} is read from {other}", tensor.name),
                },
            });
        }
        let steps = self.steps.get_or_init(|| Steps::new(self.bound.graph));
        let mut told = HashSet::new();
        let of_statements = solution.statements.iter().flat_map(|(class, statement)| {
            let own = owner.get(class).copied();
            let classes = statement.seen.iter().chain(&statement.operands);
            classes.filter_map(move |class| own.map(|own| (*class, own)))
        });
        let of_outputs = program.outputs.iter().map(|output| {
            let at = output.tensor.0 as usize;
            (self.translated.places[at].class, at)
        });
        for (class, own) in of_statements.chain(of_outputs) {
            let class = egraph.find(class);
            if !told.insert(class) {
                continue;
            }
            let term = &self.terms(class)[self.chosen(choice, class)];
            let chain = steps.chain(class, term).into_iter();
            uses.extend(chain.map(|(rule, before, after)| RuleUse {
                rule,
                tensor: program.tensors[own].name.clone(),
                before: describe::term(self.bound, &before),
                after: describe::term(self.bound, &after),
            }));
        }
        uses
    }
}

/// A tensor of the result before it has a number.
struct Item {
    /// Number of the tensor that it belongs to, and whether it is that tensor.
    key: (usize, usize),
    tensor: Tensor,
    operands: Vec<usize>,
    statement: Option<Rc<Statement>>,
}

/// The tensors in the order of the original where that is possible, and where each item went.
fn ordered(items: Vec<Item>) -> (Vec<Tensor>, Vec<TensorId>) {
    let mut waiting: Vec<usize> = items.iter().map(|i| i.operands.len()).collect();
    let mut readers: Vec<Vec<usize>> = vec![vec![]; items.len()];
    for (at, item) in items.iter().enumerate() {
        item.operands.iter().for_each(|o| readers[*o].push(at));
    }
    let mut ready: BTreeSet<((usize, usize), usize)> = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        if waiting[at] == 0 {
            ready.insert((item.key, at));
        }
    }
    let mut moved = vec![TensorId(0); items.len()];
    let mut tensors = vec![];
    while let Some((_, at)) = ready.pop_first() {
        moved[at] = TensorId(tensors.len() as u32);
        let item = &items[at];
        let mut tensor = item.tensor.clone();
        if let Some(statement) = &item.statement
            && !statement.kernel.output.is_empty()
        {
            let operands: Vec<TensorId> = item.operands.iter().map(|o| moved[*o]).collect();
            let (kernel, operands) = canonical::statement(statement.kernel.clone(), &operands);
            tensor.definition = Definition::Statement { kernel, operands };
        }
        tensors.push(tensor);
        for reader in &readers[at] {
            waiting[*reader] -= 1;
            if waiting[*reader] == 0 {
                ready.insert((items[*reader].key, *reader));
            }
        }
    }
    (tensors, moved)
}
