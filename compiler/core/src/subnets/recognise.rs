//! Which indices of a loss count neurons, and why others that look like it cannot be cut.
//!
//! Must not know what a step computes besides the loss, nor blocks or sites.
//!
//! ```text
//! W1 makes k, W2 contracts k   =>   neurons of W1
//! ... and p[n,k] = h[n,k] / sum[k] h[n,k]   =>   `p` adds up over the neurons without a weight
//! ```

use super::Neurons;
use super::classes::{Class, Classes, bare_reads};
use super::weights::Weights;
use crate::einsum::nodes::read;
use crate::einsum::{Definition, Program, Role, Tensor, TensorId};
use ein_plan::{Function, Graph, IndexId, Kernel, Node, NodeId, Origin, Reduction};
use std::collections::{BTreeMap, BTreeSet};

/// Which neurons are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Tensors or params that have them, or all that can be found.
    pub names: Option<Vec<String>>,
    /// True if only those of layers without convolutions.
    pub dense: bool,
}

/// The result of a recognition.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Found {
    /// In the order of the program.
    pub neurons: Vec<Neurons>,
    /// Weights that contract neurons, of which nothing but a sum reaches what is not neurons, with the number of dealt indices that the sum
    /// runs over: a sum over n of them has, in a subnet, one of parts^n terms of the full net's.
    pub summed: Vec<(String, u32)>,
    /// Weights between two layers of neurons, after which no statistic of a neuron is taken; where the sum stands.
    pub unnormalised: Vec<(String, Origin)>,
}

/// Why there are no subnets.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// There are no neurons. The reason for one index that a weight makes or sums over, and its place, if one is known.
    None(Option<(String, Origin)>),
    /// A named layer has no neurons; the name.
    Unknown(String),
    /// Neurons that cannot be cut: whose, what is in the way, and where.
    InTheWay {
        /// The param that makes them.
        neurons: String,
        /// A description of the obstacle.
        reason: String,
        /// Where.
        origin: Origin,
    },
}

/// The facts that are known of an index.
#[derive(Default)]
pub(super) struct About {
    /// Weights that make it.
    makers: BTreeSet<TensorId>,
    /// Weights that it is contracted with.
    takers: BTreeSet<TensorId>,
    /// The reason why it cannot be cut.
    pub(super) reason: Option<(String, Origin)>,
    /// A source that is not trained and has it: an input, or random numbers.
    data: Option<TensorId>,
}

/// The operands whose product is summed, by their numbers.
#[derive(Default)]
pub(super) struct Factors {
    /// Those that are made of params alone.
    pub(super) weights: Vec<u32>,
    /// Those that depend on data.
    pub(super) others: Vec<u32>,
}

/// Finds the neurons of a program whose first output is the loss; `params` are those that are trained.
///
/// # Errors
/// Why nothing can be cut.
pub fn recognise(
    program: &Program,
    params: &BTreeSet<String>,
    asked: &Asked,
) -> Result<Found, Failure> {
    let net = Net::new(program, params);
    let mut about: BTreeMap<Class, About> = BTreeMap::new();
    net.look(&mut about);
    net.totals(&mut about);
    let candidates: Vec<(Class, &About)> = about
        .iter()
        .filter(|(_, a)| a.data.is_none() && !a.makers.is_empty() && !a.takers.is_empty())
        .map(|(class, about)| (*class, about))
        .collect();
    if candidates.is_empty() {
        return Err(Failure::None(net.cause(&about)));
    }
    let wanted = net.wanted(&candidates, asked)?;
    let mut found = Found::default();
    for (class, about) in &candidates {
        if !wanted.contains(class) {
            continue;
        }
        let neurons = net.neurons(*class, about);
        if neurons.params.is_empty() {
            continue;
        }
        let twice = net.twice(about, &neurons);
        let reason = match (&about.reason, twice) {
            (Some(reason), _) => Some(reason.clone()),
            (None, Some(param)) => {
                let param = program.tensor(param);
                let what = format!("the weight `{}` has them twice", param.name);
                Some((what, param.origin))
            }
            (None, None) => None,
        };
        if let Some((reason, origin)) = reason {
            return Err(Failure::InTheWay {
                neurons: neurons.name,
                reason,
                origin,
            });
        }
        found.neurons.push(neurons);
    }
    if found.neurons.is_empty() {
        return Err(Failure::None(None));
    }
    net.sums(&wanted, &mut found)?;
    Ok(found)
}

/// A program, with what of it depends on data and on weights.
pub(super) struct Net<'a> {
    pub(super) program: &'a Program,
    pub(super) classes: Classes,
    pub(super) weights: Weights,
    /// By tensor: whether it is a param.
    trained: Vec<bool>,
}

impl<'a> Net<'a> {
    fn new(program: &'a Program, params: &BTreeSet<String>) -> Net<'a> {
        let tensors = program.tensors.iter();
        let trained: Vec<bool> = tensors.map(|t| params.contains(&t.name)).collect();
        Net {
            program,
            classes: Classes::of_program(program),
            weights: Weights::of_program(program, &trained),
            trained,
        }
    }

    /// A tensor made of params alone.
    pub(super) fn is_weight(&self, id: TensorId) -> bool {
        self.weights.is_weight(id)
    }

    pub(super) fn statements(
        &self,
    ) -> impl Iterator<Item = (TensorId, &'a Tensor, &'a Kernel, &'a [TensorId])> {
        let program = self.program;
        (0..)
            .zip(&program.tensors)
            .filter_map(|(at, tensor)| match &tensor.definition {
                Definition::Statement { kernel, operands } => {
                    Some((TensorId(at), tensor, kernel, operands.as_slice()))
                }
                _ => None,
            })
    }

    /// Returns why an index that a weight makes or sums over counts no neurons, for the first such index.
    fn cause(&self, about: &BTreeMap<Class, About>) -> Option<(String, Origin)> {
        let near = |about: &&About| match about.data {
            Some(_) => !about.makers.is_empty() && !about.takers.is_empty(),
            None => !about.makers.is_empty() || !about.takers.is_empty(),
        };
        let mut near = about.values().filter(near);
        near.find_map(|about| match about.data {
            Some(source) => {
                let source = self.program.tensor(source);
                let what = format!(
                    "`{}` has an index that a weight makes, and is not trained",
                    source.name
                );
                Some((what, source.origin))
            }
            None => about.reason.clone(),
        })
    }

    /// Goes through all statements.
    fn look(&self, about: &mut BTreeMap<Class, About>) {
        for (at, tensor) in (0..).zip(&self.program.tensors) {
            let source = matches!(tensor.definition, Definition::Source(_));
            if source && !self.trained[at as usize] {
                for dim in 0..tensor.shape.len() {
                    about
                        .entry(self.classes.of_dim(TensorId(at), dim))
                        .or_default()
                        .data
                        .get_or_insert(TensorId(at));
                }
            }
        }
        for (id, tensor, kernel, operands) in self.statements() {
            self.positions(about, id, tensor, kernel, operands);
            let factors = self.contraction(kernel, operands).unwrap_or_default();
            for number in 0..kernel.indices.len() as u32 {
                let index = IndexId(number);
                let entry = about.entry(self.classes.of_index(id, index)).or_default();
                let holds = |o: u32| bare_reads(kernel).contains_index(o, index);
                let weight = factors.weights.iter().find(|o| holds(**o));
                let other = factors.others.iter().any(|o| holds(*o));
                if number < kernel.output_rank {
                    if let (Some(weight), false) = (weight, factors.others.is_empty() || other) {
                        entry.makers.insert(operands[*weight as usize]);
                    }
                } else if let (Some(weight), true) = (weight, other) {
                    entry.takers.insert(operands[*weight as usize]);
                } else if self.weights.on_data(id) || kernel.reduction != Some(Reduction::Sum) {
                    let reduction = kernel
                        .reduction
                        .map_or("a reduction".into(), |r| format!("`{}`", r.name()));
                    let name = shown(tensor);
                    let what = format!("{name} takes {reduction} over them without a weight");
                    entry.reason.get_or_insert((what, tensor.origin));
                }
            }
        }
    }

    /// Positions that are more than an index, and indices that are read as numbers.
    fn positions(
        &self,
        about: &mut BTreeMap<Class, About>,
        id: TensorId,
        tensor: &Tensor,
        kernel: &Kernel,
        operands: &[TensorId],
    ) {
        let graph = &kernel.graph;
        let mut spoil = |class: Class, what: String| {
            let entry = about.entry(class).or_default();
            entry.reason.get_or_insert((what, tensor.origin));
        };
        let name = shown(tensor);
        let mut number = |node: NodeId| {
            if let Some(index) = graph.as_index(node) {
                let what = format!("{name} uses their numbers");
                spoil(self.classes.of_index(id, index), what);
            }
        };
        number(kernel.root);
        kernel.guard.into_iter().for_each(&mut number);
        for (_, node, _) in graph.iter() {
            match node {
                Node::Read { otherwise, .. } => otherwise.iter().for_each(|o| number(*o)),
                Node::Apply(_, arguments) => arguments.iter().for_each(|a| number(*a)),
                Node::Convert(argument) => number(*argument),
                Node::Constant(_) | Node::Index(_) => {}
            }
        }
        for (operand, positions) in graph.reads() {
            let read = operands[operand as usize];
            for (dim, position) in positions.iter().enumerate() {
                let whole = graph.as_index(*position).is_some_and(|index| {
                    let extent = kernel.indices[index.0 as usize].extent;
                    extent == self.program.tensor(read).shape[dim]
                });
                if !whole {
                    let what = format!("{name} reads them at positions of its own");
                    spoil(self.classes.of_dim(read, dim), what);
                }
            }
        }
    }

    /// The operands that are factors of a sum of products; `None` if the statement is something else.
    pub(super) fn contraction(&self, kernel: &Kernel, operands: &[TensorId]) -> Option<Factors> {
        if kernel.reduction != Some(Reduction::Sum) {
            return None;
        }
        let is_weight = |operand: u32| self.is_weight(operands[operand as usize]);
        let (mut factors, mut open) = (Factors::default(), vec![kernel.root]);
        while let Some(node) = open.pop() {
            match kernel.graph.node(node) {
                Node::Apply(Function::Mul, arguments) => open.extend(arguments),
                Node::Apply(Function::Neg, arguments) => open.extend(arguments),
                Node::Apply(Function::Div, arguments) => open.extend(arguments.first()),
                Node::Convert(argument) => open.push(*argument),
                // A look-up by data in a weight, such as a word's row of an embedding, depends on data.
                Node::Read {
                    operand, positions, ..
                } => match is_weight(*operand) && !read(&kernel.graph, positions) {
                    true => factors.weights.push(*operand),
                    false => factors.others.push(*operand),
                },
                // Another factor may be anything that is no weight.
                _ => {
                    let mut below = vec![node];
                    while let Some(node) = below.pop() {
                        let node = kernel.graph.node(node);
                        below.extend(node.arguments());
                        if let Node::Read { operand, .. } = node
                            && !is_weight(*operand)
                        {
                            factors.others.push(*operand);
                        }
                    }
                }
            }
        }
        Some(factors)
    }

    /// The params of a class.
    fn neurons(&self, class: Class, about: &About) -> Neurons {
        let mut params = vec![];
        let mut size = 0;
        for (at, tensor) in (0..).zip(&self.program.tensors) {
            if self.trained[at as usize] {
                for (dim, extent) in tensor.shape.iter().enumerate() {
                    if self.classes.of_dim(TensorId(at), dim) == class {
                        params.push((tensor.name.clone(), dim));
                        size = *extent;
                    }
                }
            }
        }
        let makers = about.makers.iter();
        let maker = makers.flat_map(|m| self.weights.params(*m)).next();
        let maker = maker.map(|maker| self.program.tensor(*maker));
        let name = maker.map_or_else(String::new, |maker| maker.name.clone());
        Neurons { name, size, params }
    }

    /// The classes that are asked for.
    fn wanted(
        &self,
        candidates: &[(Class, &About)],
        asked: &Asked,
    ) -> Result<BTreeSet<Class>, Failure> {
        let classes = || candidates.iter().map(|(class, _)| *class);
        let connected = |class: Class| {
            let mut tensors = (0..).zip(&self.program.tensors);
            tensors.all(|(at, tensor)| {
                let has = |dim| self.classes.of_dim(TensorId(at), dim) == class;
                !self.trained[at as usize]
                    || !(0..tensor.shape.len()).any(has)
                    || !self.convolves(TensorId(at))
            })
        };
        let allowed = |class: &Class| !asked.dense || connected(*class);
        let Some(names) = &asked.names else {
            return Ok(classes().filter(allowed).collect());
        };
        let mut wanted = BTreeSet::new();
        for name in names {
            let last = |tensor: &&Tensor| tensor.name.rsplit('.').next() == Some(name.as_str());
            let tensors = || self.program.tensors.iter();
            let exact = tensors().any(|tensor| tensor.name == *name);
            let before = wanted.len();
            for (at, tensor) in (0..).zip(tensors()) {
                if tensor.name != *name && (exact || !last(&tensor)) {
                    continue;
                }
                for dim in 0..tensor.shape.len() {
                    let class = self.classes.of_dim(TensorId(at), dim);
                    let found = candidates.iter().find(|(other, _)| *other == class);
                    // Of a weight between two layers those are meant that it makes.
                    let own = |about: &About| {
                        !self.trained[at as usize] || about.makers.contains(&TensorId(at))
                    };
                    if found.is_some_and(|(_, about)| own(about)) && allowed(&class) {
                        wanted.insert(class);
                    }
                }
            }
            if wanted.len() == before {
                return Err(Failure::Unknown(name.clone()));
            }
        }
        Ok(wanted)
    }

    /// The param by which neurons are made and summed over, or that has them twice.
    fn twice(&self, about: &About, neurons: &Neurons) -> Option<TensorId> {
        let of = |weights: &BTreeSet<TensorId>| -> BTreeSet<TensorId> {
            let params = weights.iter().flat_map(|w| self.weights.params(*w));
            params.copied().collect()
        };
        let (makers, takers) = (of(&about.makers), of(&about.takers));
        let mut pairs = neurons.params.windows(2);
        let pair = pairs.find(|pair| pair[0].0 == pair[1].0);
        let named = |name: &String| {
            let mut tensors = (0..).zip(&self.program.tensors);
            tensors.find_map(|(at, tensor)| (tensor.name == *name).then_some(TensorId(at)))
        };
        let both = makers.intersection(&takers).next().copied();
        both.or_else(|| pair.and_then(|pair| named(&pair[0].0)))
    }

    /// Returns whether a param is that of a convolution: data are read at positions that it is read at, and others.
    fn convolves(&self, param: TensorId) -> bool {
        self.statements().any(|(id, _, kernel, operands)| {
            let graph = &kernel.graph;
            let of_param = |operand: u32| {
                let read = operands[operand as usize];
                self.is_weight(read) && self.weights.params(read).contains(&param)
            };
            let (mut weight, mut windows) = (BTreeSet::new(), BTreeSet::new());
            for (operand, positions) in graph.reads() {
                for position in positions {
                    match graph.as_index(*position) {
                        Some(index) if of_param(operand) => {
                            weight.insert(index);
                        }
                        Some(_) => {}
                        None => windows.extend(indices_below(graph, *position)),
                    }
                }
            }
            self.weights.on_data(id) && !weight.is_disjoint(&windows)
        })
    }
}

/// The indices that a position is computed of.
fn indices_below(graph: &Graph, position: NodeId) -> BTreeSet<IndexId> {
    let (mut found, mut open) = (BTreeSet::new(), vec![position]);
    while let Some(node) = open.pop() {
        found.extend(graph.as_index(node));
        open.extend(graph.node(node).arguments());
    }
    found
}

/// True if an operand is read at an index.
pub(super) trait HasIndex {
    fn contains_index(&self, operand: u32, index: IndexId) -> bool;
}

impl HasIndex for Vec<(u32, usize, IndexId)> {
    fn contains_index(&self, operand: u32, index: IndexId) -> bool {
        self.iter()
            .any(|(own, _, at)| *own == operand && *at == index)
    }
}

/// A tensor in a message.
pub(super) fn shown(tensor: &Tensor) -> String {
    match tensor.role {
        Role::Hidden => "this".into(),
        _ => format!("`{}`", tensor.name),
    }
}
