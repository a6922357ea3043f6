//! Choosing terms: whole programs priced with everything shared counted once.
//!
//! Two programs are the start, the one as it is written and the one of the cheapest trees; single terms are exchanged
//! as long as the program gets cheaper. Must not know rules, only which terms they made.
//!
//! ```text
//! written: score 1.2e9   trees: 3.1e6   after exchanges: 2.9e6
//! ```

use super::bound::Bound;
use super::cheapest::cheapest;
use super::emit::{self, Statement};
use super::price::{self, ComputeCost};
use super::steps::Steps;
use super::term::{Head, Term};
use super::translate::Translated;
use super::{Alternative, LogicOptions};
use crate::einsum::{Definition, Program};
use egg::Id;
use rustc_hash::FxHashMap;
use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
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
    let mut found: Vec<(ComputeCost, Alternative)> = vec![];
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
pub(super) type Choice = FxHashMap<Id, usize>;

/// A program under a choice.
pub(super) struct Solution {
    /// The price of the program.
    pub price: ComputeCost,
    /// Its statements, operands first.
    pub statements: Vec<(Id, Rc<Statement>)>,
}

/// A statement under the choices that it depends on.
type Known = Vec<(Vec<(Id, usize)>, Option<Rc<Statement>>)>;

pub(super) struct Search<'a> {
    pub bound: &'a Bound<'a>,
    pub translated: &'a Translated,
    options: &'a LogicOptions<'a>,
    /// By class: the term of the cheapest tree.
    best: FxHashMap<Id, usize>,
    known: RefCell<FxHashMap<Id, Known>>,
    trials: RefCell<(usize, usize)>,
    /// How terms came about, once somebody asks.
    pub steps: OnceCell<Steps<'a>>,
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
            steps: OnceCell::new(),
        }
    }

    pub fn terms(&self, class: Id) -> &[Term] {
        &self.bound.graph.egraph[class].nodes
    }

    pub fn chosen(&self, choice: &Choice, class: Id) -> usize {
        let class = self.bound.graph.egraph.find(class);
        let found = choice.get(&class).or_else(|| self.best.get(&class));
        found.copied().unwrap_or(0)
    }

    /// The choice of every statement as it is written.
    fn written(&self) -> Choice {
        let egraph = &self.bound.graph.egraph;
        let mut choice = Choice::default();
        for (at, original) in self.translated.original.iter().enumerate() {
            let Some(term) = original else {
                continue;
            };
            let class = egraph.find(self.translated.places[at].class);
            let term = self.bound.graph.current(term);
            if let Some(number) = self.terms(class).iter().position(|t| *t == term) {
                choice.entry(class).or_insert(number);
            }
        }
        choice
    }

    /// The programs worth looking at.
    fn solutions(&self) -> Vec<(Choice, Solution)> {
        let mut found: Vec<(Choice, Solution)> = vec![];
        for start in [Choice::default(), self.written()] {
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
            price: ComputeCost::default(),
            statements: vec![],
        };
        let mut done: FxHashMap<Id, bool> = FxHashMap::default();
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
        done: &mut FxHashMap<Id, bool>,
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
        price: ComputeCost::default(),
    }
}
