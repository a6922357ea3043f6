//! An order of a program's tensors in which operands stand before their users and blocks stand together.
//!
//! As near to the given order as that allows, with what a block gives right behind it. Must not change anything but the order.
//!
//! ```text
//! x.last = last 0 of t,  x = state 0 of t,  x.1 reads x   =>   x, x.1, x.last
//! ```

use super::{BlockId, Bound, Definition, Item, LoopValue, Program, TensorId};
use std::collections::{BTreeSet, HashMap};

impl Program {
    /// Puts the program in a right order; `None` if a tensor needs itself without a state between. Blocks stand after
    /// those around them.
    #[must_use]
    pub fn arranged(mut self) -> Option<Program> {
        let order = self.order()?;
        let mut numbers = vec![TensorId(0); order.len()];
        for (new, old) in (0..).zip(&order) {
            numbers[old.0 as usize] = TensorId(new);
        }
        self.renumber(&order, &numbers);
        Some(self)
    }

    /// The program in which every statement is in the innermost block of what it reads. A statement that came to read less may be in none.
    #[must_use]
    pub fn settled(mut self) -> Program {
        let mut moves = false;
        for at in 0..self.tensors.len() {
            if let Definition::Statement { operands, .. } = &self.tensors[at].definition {
                let block = self.innermost(operands);
                moves |= block != self.tensors[at].block;
                self.tensors[at].block = block;
            }
        }
        match moves {
            true => self
                .arranged()
                .expect("a statement that reads less needs no tensor that it did not need"),
            false => self,
        }
    }

    /// The tensors in a right order; `None` if a tensor needs itself without a state between. What blocks name may be
    /// unknown yet.
    pub fn order(&self) -> Option<Vec<TensorId>> {
        let mut members: HashMap<Option<BlockId>, Vec<Item>> = HashMap::new();
        for (number, tensor) in (0..).zip(&self.tensors) {
            let item = Item::Tensor(TensorId(number));
            members.entry(tensor.block).or_default().push(item);
        }
        for (number, block) in (0..).zip(&self.blocks) {
            let item = Item::Block(BlockId(number));
            members.entry(block.parent).or_default().push(item);
        }
        // By place: by item, which items of the place have to stand before it.
        let mut before: HashMap<Option<BlockId>, HashMap<Item, BTreeSet<Item>>> = HashMap::new();
        let mut first: Vec<u32> = vec![u32::MAX; self.blocks.len()];
        for (number, tensor) in (0..).zip(&self.tensors) {
            let id = TensorId(number);
            for block in self.path(tensor.block) {
                let first = &mut first[block.0 as usize];
                *first = (*first).min(number);
            }
            let operands = match &tensor.definition {
                Definition::Source(_) => continue,
                Definition::Statement { operands, .. } => operands.clone(),
                Definition::Loop(LoopValue::State(..) | LoopValue::Counter(_)) => continue,
                Definition::Loop(value) => {
                    let places = before.entry(tensor.block).or_default();
                    let block = Item::Block(value.block());
                    places.entry(Item::Tensor(id)).or_default().insert(block);
                    let first = &mut first[value.block().0 as usize];
                    *first = (*first).min(number);
                    continue;
                }
            };
            for operand in operands {
                self.needs(&mut before, (Item::Tensor(id), tensor.block), operand);
            }
        }
        for (number, block) in (0..).zip(&self.blocks) {
            let (id, user) = (Some(BlockId(number)), Item::Block(BlockId(number)));
            let known = |of: &TensorId| (of.0 as usize) < self.tensors.len();
            let initial = block.states.iter().map(|s| s.initial);
            let outer = block.states.iter().map(|s| s.next);
            let outer = outer.chain(block.collected.iter().map(|c| c.value));
            let outer = outer
                .chain(block.until)
                .filter(known)
                .filter(|of| !self.encloses(id, self.tensor(*of).block));
            let bound = match block.bound {
                Bound::Value(bound) => Some(bound),
                Bound::Rounds(_) | Bound::Unbounded => None,
            };
            for needed in initial.chain(outer).chain(bound).filter(known) {
                self.needs(&mut before, (user, block.parent), needed);
            }
        }
        // What a block gives stands right behind it.
        let key = |item: &Item| match item {
            Item::Tensor(id) => match &self.tensor(*id).definition {
                Definition::Loop(value) if value.is_result() => {
                    (first[value.block().0 as usize], 1)
                }
                _ => (id.0, 2),
            },
            Item::Block(id) => (first[id.0 as usize], 0),
        };
        let mut order: Vec<TensorId> = vec![];
        let mut open = vec![sorted(&members, &before, None, &key)?.into_iter()];
        while let Some(items) = open.last_mut() {
            match items.next() {
                None => {
                    open.pop();
                }
                Some(Item::Tensor(id)) => order.push(id),
                Some(Item::Block(id)) => {
                    open.push(sorted(&members, &before, Some(id), &key)?.into_iter());
                }
            }
        }
        Some(order)
    }

    /// Notes that an item of a place needs a tensor: something of the same place has to stand before something else.
    fn needs(
        &self,
        before: &mut HashMap<Option<BlockId>, HashMap<Item, BTreeSet<Item>>>,
        (user, place): (Item, Option<BlockId>),
        needed: TensorId,
    ) {
        let (mut mine, theirs) = (self.path(place), self.path(self.tensor(needed).block));
        // The innermost place that holds both.
        let common = mine.iter().zip(&theirs).take_while(|(a, b)| a == b).count();
        let item = match theirs.get(common) {
            Some(block) => Item::Block(*block),
            None => Item::Tensor(needed),
        };
        let inner = mine.split_off(common);
        let user = inner.first().map_or(user, |block| Item::Block(*block));
        if user != item {
            let places = before.entry(mine.last().copied()).or_default();
            places.entry(user).or_default().insert(item);
        }
    }

    /// Gives every tensor a new number: `order[new]` is the old one.
    fn renumber(&mut self, order: &[TensorId], numbers: &[TensorId]) {
        let new = |id: &mut TensorId| *id = numbers[id.0 as usize];
        self.tensors = order.iter().map(|old| self.tensor(*old).clone()).collect();
        for tensor in &mut self.tensors {
            if let Definition::Statement { operands, .. } = &mut tensor.definition {
                operands.iter_mut().for_each(new);
            }
        }
        self.rename_ends(new);
    }
}

/// The items of a place in order.
fn sorted(
    members: &HashMap<Option<BlockId>, Vec<Item>>,
    before: &HashMap<Option<BlockId>, HashMap<Item, BTreeSet<Item>>>,
    place: Option<BlockId>,
    key: &impl Fn(&Item) -> (u32, u32),
) -> Option<Vec<Item>> {
    let items = members.get(&place).map_or(&[][..], Vec::as_slice);
    let none = HashMap::new();
    let before = before.get(&place).unwrap_or(&none);
    let mut waiting: HashMap<Item, usize> = HashMap::new();
    let mut users: HashMap<Item, Vec<Item>> = HashMap::new();
    for (user, needed) in before {
        waiting.insert(*user, needed.len());
        for item in needed {
            users.entry(*item).or_default().push(*user);
        }
    }
    let is_free = |item: &&Item| waiting.get(item).is_none_or(|count| *count == 0);
    let free = items.iter().filter(is_free).map(|item| (key(item), *item));
    let mut ready: BTreeSet<((u32, u32), Item)> = free.collect();
    let mut order = vec![];
    while let Some((_, item)) = ready.pop_first() {
        order.push(item);
        for user in users.get(&item).into_iter().flatten() {
            let waiting = waiting.entry(*user).or_default();
            *waiting = waiting.saturating_sub(1);
            if *waiting == 0 {
                ready.insert((key(user), *user));
            }
        }
    }
    (order.len() == items.len()).then_some(order)
}
