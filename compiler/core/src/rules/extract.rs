//! Choosing terms: whole programs priced with everything shared counted once.
//!
//! Two programs are the start, the one as it is written and the one of the cheapest trees; single terms are exchanged
//! as long as the program gets cheaper. Must not know rules, only which terms they made.
//!
//! ```text
//! written: score 1.2e9   trees: 3.1e6   after exchanges: 2.9e6
//! ```

use super::describe;
use super::emit::{self, Bound, Statement};
use super::price::{self, Price};
use super::term::{Head, Term};
use super::translate::Translated;
use super::{Alternative, LogicOptions, RuleUse};
use crate::einsum::{Definition, Output, Program, Tensor, TensorId, canonical};
use egg::Id;
use ein_plan::{Function, Reduction};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;

/// Most programs that are priced, and most statements of them.
const MOST_TRIALS: usize = 4000;
const MOST_STATEMENTS: usize = 1_000_000;
/// A program with more operations than this times the best one's is no candidate.
const SLACK: f64 = 2.0;

/// The programs found, best first, the original among them.
pub(super) fn alternatives(
    program: &Program,
    translated: &Translated,
    options: &LogicOptions<'_>,
) -> Vec<Alternative> {
    let bound = Bound::new(program, translated);
    let search = Search::new(&bound, translated, options);
    let original = Alternative {
        work: price::program(program).score(),
        flops: price::program(program).flops,
        program: program.clone(),
        rules: vec![],
    };
    let mut found: Vec<(Price, Alternative)> = vec![];
    for (choice, solution) in search.solutions() {
        let Some(alternative) = search.emit(&choice, &solution) else {
            continue;
        };
        let form = nameless(&alternative.program);
        let new = form != nameless(program)
            && found
                .iter()
                .all(|(_, known)| nameless(&known.program) != form);
        if new {
            found.push((price::program(&alternative.program), alternative));
        }
    }
    found.sort_by(|a, b| a.0.score().total_cmp(&b.0.score()));
    let own = price::program(program);
    let better = found.first().is_some_and(|(price, _)| price.beats(&own));
    found.truncate(
        options
            .candidates
            .saturating_sub(1)
            .max(usize::from(better)),
    );
    let mut all: Vec<Alternative> = found
        .into_iter()
        .map(|(_, alternative)| alternative)
        .collect();
    let at = match better {
        true => all
            .iter()
            .position(|a| a.work > original.work)
            .unwrap_or(all.len()),
        false => 0,
    };
    all.insert(at, original);
    all
}

/// The program with indices that have no names: what they are called makes no other program.
fn nameless(program: &Program) -> Program {
    let mut program = program.clone();
    for tensor in &mut program.tensors {
        if let Definition::Statement { kernel, .. } = &mut tensor.definition {
            kernel
                .indices
                .iter_mut()
                .for_each(|index| index.name.clear());
        }
    }
    program
}

/// Terms other than the cheapest tree's, by class.
type Choice = HashMap<Id, usize>;

/// A program under a choice.
struct Solution {
    price: Price,
    /// Its statements, operands first.
    statements: Vec<(Id, Rc<Statement>)>,
}

/// A statement under the choices that it depends on.
type Known = Vec<(Vec<(Id, usize)>, Option<Rc<Statement>>)>;

struct Search<'a> {
    bound: &'a Bound<'a>,
    translated: &'a Translated,
    options: &'a LogicOptions<'a>,
    /// By class: the term of the cheapest tree.
    best: HashMap<Id, usize>,
    known: RefCell<HashMap<Id, Known>>,
    trials: RefCell<(usize, usize)>,
}

impl<'a> Search<'a> {
    fn new(
        bound: &'a Bound<'a>,
        translated: &'a Translated,
        options: &'a LogicOptions<'a>,
    ) -> Search<'a> {
        Search {
            bound,
            translated,
            options,
            best: cheapest(bound),
            known: RefCell::default(),
            trials: RefCell::default(),
        }
    }

    fn terms(&self, class: Id) -> &[Term] {
        &self.bound.graph.egraph[class].nodes
    }

    fn chosen(&self, choice: &Choice, class: Id) -> usize {
        let class = self.bound.graph.egraph.find(class);
        let found = choice.get(&class).or_else(|| self.best.get(&class));
        found.copied().unwrap_or(0)
    }

    /// The choice of every statement as it is written.
    fn written(&self) -> Choice {
        let egraph = &self.bound.graph.egraph;
        let mut choice = Choice::new();
        for (at, original) in self.translated.original.iter().enumerate() {
            let Some(term) = original else {
                continue;
            };
            let class = egraph.find(self.translated.places[at].class);
            let term = self.current(term);
            if let Some(number) = self.terms(class).iter().position(|t| *t == term) {
                choice.entry(class).or_insert(number);
            }
        }
        choice
    }

    /// A term as it is now, classes having been united.
    fn current(&self, term: &Term) -> Term {
        let mut term = term.clone();
        for child in &mut term.children {
            *child = self.bound.graph.egraph.find(*child);
        }
        term
    }

    /// The programs worth looking at.
    fn solutions(&self) -> Vec<(Choice, Solution)> {
        let mut found: Vec<(Choice, Solution)> = vec![];
        for start in [Choice::new(), self.written()] {
            if let Some(solution) = self.solve(&start) {
                let (choice, better) = self.improve(start.clone(), solution);
                found.push((choice, better));
            }
            if let Some(solution) = self.solve(&start) {
                found.push((start, solution));
            }
        }
        let best = found
            .iter()
            .min_by(|a, b| a.1.price.score().total_cmp(&b.1.price.score()));
        let Some((choice, best)) = best else {
            return found;
        };
        let limit = best.price.flops * SLACK;
        let mut more = vec![];
        for class in self.visited(best) {
            for number in 0..self.terms(class).len() {
                if number == self.chosen(choice, class) || self.tired() {
                    continue;
                }
                let mut other = choice.clone();
                other.insert(class, number);
                if let Some(solution) = self.solve(&other)
                    && solution.price.flops <= limit
                    && more.len() < 4 * self.options.candidates
                {
                    more.push((other, solution));
                }
            }
        }
        more.sort_by(|a, b| a.1.price.score().total_cmp(&b.1.price.score()));
        more.truncate(2 * self.options.candidates);
        found.extend(more);
        found
    }

    fn visited(&self, solution: &Solution) -> BTreeSet<Id> {
        let statements = solution.statements.iter();
        statements
            .flat_map(|(_, s)| s.seen.iter().copied())
            .collect()
    }

    fn tired(&self) -> bool {
        let (trials, statements) = *self.trials.borrow();
        trials >= MOST_TRIALS || statements >= MOST_STATEMENTS || (self.options.deadline)()
    }

    /// Exchanges single terms while that helps.
    fn improve(&self, mut choice: Choice, mut solution: Solution) -> (Choice, Solution) {
        loop {
            let mut better = false;
            for class in self.visited(&solution) {
                let now = self.chosen(&choice, class);
                for number in 0..self.terms(class).len() {
                    if number == now || self.tired() {
                        continue;
                    }
                    let mut other = choice.clone();
                    other.insert(class, number);
                    if let Some(next) = self.solve(&other)
                        && next.price.beats(&solution.price)
                    {
                        (choice, solution, better) = (other, next, true);
                    }
                }
            }
            if !better {
                return (choice, solution);
            }
        }
    }

    /// The program of a choice, if it is none that needs itself.
    fn solve(&self, choice: &Choice) -> Option<Solution> {
        self.trials.borrow_mut().0 += 1;
        let mut solution = Solution {
            price: Price::default(),
            statements: vec![],
        };
        let mut done: HashMap<Id, bool> = HashMap::new();
        for output in &self.bound.program.outputs {
            let at = output.tensor.0 as usize;
            let place = &self.translated.places[at];
            let class = self.bound.graph.egraph.find(place.class);
            self.visit(choice, class, &mut done, &mut solution)?;
            if !self.bound.is_written(at, class) {
                let copy = emit::copy(self.bound, at, class, &place.order);
                solution.price = solution.price.plus(copy.price);
            }
        }
        self.trials.borrow_mut().1 += solution.statements.len();
        Some(solution)
    }

    fn visit(
        &self,
        choice: &Choice,
        root: Id,
        done: &mut HashMap<Id, bool>,
        solution: &mut Solution,
    ) -> Option<()> {
        // What is being visited, with the statement and how many of its operands are done.
        let mut stack: Vec<(Id, Rc<Statement>, usize)> = vec![];
        let mut next = Some(root);
        loop {
            if let Some(class) = next.take() {
                match done.get(&class) {
                    Some(true) => {}
                    Some(false) => return None,
                    None => {
                        let statement = self.statement(choice, class)?;
                        done.insert(class, false);
                        stack.push((class, statement, 0));
                    }
                }
            }
            let Some((class, statement, at)) = stack.last_mut() else {
                return Some(());
            };
            match statement.operands.get(*at) {
                Some(operand) => {
                    *at += 1;
                    next = Some(self.bound.graph.egraph.find(*operand));
                }
                None => {
                    done.insert(*class, true);
                    solution.price = solution.price.plus(statement.price);
                    solution.statements.push((*class, Rc::clone(statement)));
                    stack.pop();
                }
            }
        }
    }

    fn statement(&self, choice: &Choice, class: Id) -> Option<Rc<Statement>> {
        let number = self.chosen(choice, class);
        if let Head::Source(_) = self.terms(class)[number].head {
            return Some(Rc::new(source()));
        }
        let same = |on: &[(Id, usize)]| on.iter().all(|(c, n)| self.chosen(choice, *c) == *n);
        if let Some(known) = self.known.borrow().get(&class)
            && let Some((_, statement)) = known.iter().find(|(on, _)| same(on))
        {
            return statement.clone();
        }
        let seen: RefCell<BTreeSet<Id>> = RefCell::default();
        let pick = |class: Id| {
            seen.borrow_mut().insert(class);
            self.terms(class)[self.chosen(choice, class)].clone()
        };
        let statement = emit::statement(self.bound, class, &pick).map(Rc::new);
        let on = seen.into_inner().into_iter();
        let on = on.map(|c| (c, self.chosen(choice, c))).collect();
        let mut known = self.known.borrow_mut();
        known
            .entry(class)
            .or_default()
            .push((on, statement.clone()));
        statement
    }

    /// The program of a solution.
    fn emit(&self, choice: &Choice, solution: &Solution) -> Option<Alternative> {
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
            if self.bound.is_written(at, class) {
                outputs.insert(output.tensor.0, *place.get(&class)?);
            } else if !outputs.contains_key(&output.tensor.0) {
                outputs.insert(output.tensor.0, items.len());
                items.push(Item {
                    key: (at, 1),
                    tensor: program.tensors[at].clone(),
                    operands: vec![*place.get(&class)?],
                    statement: Some(Rc::new(emit::copy(self.bound, at, class, &from.order))),
                });
            }
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
        };
        let price = price::program(&result);
        Some(Alternative {
            work: price.score(),
            flops: price.flops,
            rules: self.uses(choice, solution, &result, &owner),
            program: result,
        })
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
        let steps = Steps::new(self);
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
                before: describe::term(self.bound, before),
                after: describe::term(self.bound, after),
            }));
        }
        uses
    }
}

/// The steps of rules, by class.
struct Steps {
    /// What a class was first made of.
    first: HashMap<Id, Term>,
    steps: HashMap<Id, Vec<Step>>,
}

struct Step {
    rule: &'static str,
    before: Term,
    after: Term,
}

impl Steps {
    fn new(search: &Search<'_>) -> Steps {
        let graph = search.bound.graph;
        let mut first = HashMap::new();
        for (class, term) in &graph.first {
            let entry = first.entry(graph.egraph.find(*class));
            entry.or_insert_with(|| search.current(term));
        }
        let mut steps: HashMap<Id, Vec<Step>> = HashMap::new();
        for step in &graph.history {
            let of_class = steps.entry(graph.egraph.find(step.class)).or_default();
            of_class.push(Step {
                rule: step.rule,
                before: search.current(&step.before),
                after: search.current(&step.term),
            });
        }
        Steps { first, steps }
    }

    /// The shortest way to a term from what its class was first made of.
    fn chain<'s>(&'s self, class: Id, term: &'s Term) -> Vec<(&'static str, &'s Term, &'s Term)> {
        let (Some(first), Some(steps)) = (self.first.get(&class), self.steps.get(&class)) else {
            return vec![];
        };
        if matches!(term.head, Head::Whole(..)) {
            return vec![];
        }
        let mut from: HashMap<&Term, (&'static str, &Term)> = HashMap::new();
        let mut queue = VecDeque::from([first]);
        while let Some(now) = queue.pop_front() {
            for step in steps {
                let next = match (*now == step.before, *now == step.after) {
                    (true, _) => &step.after,
                    (_, true) => &step.before,
                    _ => continue,
                };
                if next != first && !from.contains_key(next) {
                    from.insert(next, (step.rule, now));
                    queue.push_back(next);
                }
            }
        }
        let mut chain = vec![];
        let mut at = term;
        while let Some((rule, before)) = from.get(at) {
            chain.push((*rule, *before, at));
            at = before;
        }
        chain.reverse();
        chain
    }
}

/// A source costs nothing and reads nothing; its statement is never written.
fn source() -> Statement {
    Statement {
        kernel: ein_plan::Kernel {
            indices: vec![],
            output_rank: 0,
            operands: vec![],
            graph: ein_plan::Graph::default(),
            root: ein_plan::NodeId(0),
            guard: None,
            reduction: None,
            finish: true,
            output: vec![],
        },
        operands: vec![],
        seen: vec![],
        price: Price::default(),
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

/// By class, the term of the cheapest tree.
fn cheapest(bound: &Bound<'_>) -> HashMap<Id, usize> {
    let egraph = &bound.graph.egraph;
    let mut classes: Vec<Id> = egraph.classes().map(|c| c.id).collect();
    classes.sort();
    let mut best: HashMap<Id, (f64, usize)> = HashMap::new();
    let own: HashMap<Id, Vec<f64>> = classes
        .iter()
        .map(|class| {
            let terms = egraph[*class].nodes.iter();
            (*class, terms.map(|t| alone(bound, *class, t)).collect())
        })
        .collect();
    loop {
        let mut changed = false;
        for class in &classes {
            for (number, term) in egraph[*class].nodes.iter().enumerate() {
                let children: Option<f64> = term
                    .children
                    .iter()
                    .map(|c| best.get(&egraph.find(*c)).map(|b| b.0))
                    .sum();
                let Some(children) = children else {
                    continue;
                };
                let cost = own[class][number] + children;
                // Prices are only compared where they differ by more than rounding.
                let better = best.get(class).is_none_or(|b| cost < b.0 * (1.0 - 1e-12));
                if better {
                    best.insert(*class, (cost, number));
                    changed = true;
                }
            }
        }
        if !changed {
            return best
                .into_iter()
                .map(|(class, (_, number))| (class, number))
                .collect();
        }
    }
}

/// A bound of what a term costs without its children.
fn alone(bound: &Bound<'_>, class: Id, term: &Term) -> f64 {
    let points: f64 = term.extents.iter().map(|e| *e as f64).product();
    let count = term.children.len() as f64;
    let bytes: f64 = match bound.is_read(class, term) {
        true => {
            let data = bound.graph.data(class);
            data.shape.iter().map(|e| *e as f64).product::<f64>() * data.dtype.size() as f64
        }
        false => 0.0,
    };
    let operations = match term.head {
        Head::Source(_) | Head::Constant(..) => 0.0,
        Head::Fold(_) => count - 1.0 + f64::from(u8::from(term.reduction.is_some())),
        Head::Apply(function) => function.flops() as f64,
        Head::Convert(_) | Head::Store(_) => 0.0,
        Head::Copy => f64::from(u8::from(term.reduction.is_some())),
        Head::Whole(kernel, _) => {
            let kernel = &bound.graph.egraph.analysis.kernels[kernel as usize];
            let price = price::statement(kernel);
            return price.weighted + bytes + 1e-3;
        }
    };
    let product = matches!(term.head, Head::Fold(Function::Mul))
        && term.reduction == Some(Reduction::Sum)
        && count <= 2.0;
    points * operations * if product { 1.0 } else { 4.0 } + bytes + 1e-3
}
