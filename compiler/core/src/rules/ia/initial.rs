//! The initial translation: table 3.1 to the letter, nothing left out.
//!
//! Every join broadcasts all but its last input, every aggregation shuffles by its groups, every CONCAT by the other key dimensions;
//! what a placement cannot say is broadcast. It is what every plan is proved equal to. Must not know costs.
//!
//! ```text
//! A.all = broadcast A;  C.partial = local join(A.all{i, k}, B{k, j});  C.partial.groups = shuffle C.partial;  C = local aggregate sum …
//! ```

use crate::ia::placement::{concat_key, image, position};
use crate::ia::{Operation, Program, Relation};
use crate::tra;
use crate::tra::blocks::{Move, Nesting};
use ein_plan::{
    AxisRole, Block, BlockId, Bound, Fold, JoinInput, KeyDim, Mesh, Placement, RelationId,
};

/// The translation of a program for that many sites, at least those of the mesh that take part.
pub fn initial(program: &tra::Program, sites: u32, mesh: &Mesh) -> Program {
    let names = program.relations.iter().map(|r| r.name.as_str());
    let mut translation = Translation {
        program,
        mesh,
        names: tra::Names::taken(names),
        made: vec![],
        everywhere: vec![None; program.relations.len()],
        relations: vec![],
        blocks: program.blocks.clone(),
        nesting: Nesting::new(program.blocks.len()),
    };
    for (number, relation) in program.relations.iter().enumerate() {
        translation.go_to(relation);
        translation.operator(RelationId(number as u32));
    }
    let left = translation.nesting.leave(0);
    translation.moves(left);
    let Translation {
        made,
        relations,
        blocks,
        ..
    } = translation;
    let mut result = Program {
        sites: sites.max(mesh.sites()),
        mesh: mesh.clone(),
        blocks,
        outputs: program
            .outputs
            .iter()
            .map(|output| tra::Output {
                relation: made[output.relation.0 as usize],
                ..output.clone()
            })
            .collect(),
        relations,
        files: program.files.clone(),
    };
    if !program.blocks.is_empty() {
        result.drop_unused();
    }
    result
}

struct Translation<'a> {
    program: &'a tra::Program,
    mesh: &'a Mesh,
    names: tra::Names,
    /// By TRA relation: its physical relation.
    made: Vec<RelationId>,
    /// By TRA relation: its copy at every site, once there is one.
    everywhere: Vec<Option<RelationId>>,
    relations: Vec<Relation>,
    /// With physical relations where the loop has begun, or ended.
    blocks: Vec<Block>,
    nesting: Nesting,
}

impl Translation<'_> {
    fn operator(&mut self, id: RelationId) {
        let relation = self.program.relation(id);
        let keys = relation.kind.keys.len() as u32;
        let all_keys = self.by(&relation.kind.keys, |_| true);
        let (placement, operation) = match &relation.operation {
            tra::Operation::Source { name, source } => {
                let (name, source) = (name.clone(), source.clone());
                (all_keys, Operation::Source { name, source })
            }
            tra::Operation::Loop { value } => (
                self.of_value(&relation.kind),
                Operation::Loop { value: *value },
            ),
            tra::Operation::Join {
                inputs,
                kernel,
                ranges,
                fold,
            } => {
                let (placement, inputs) = self.join(inputs, fold.as_ref(), &relation.kind.keys);
                (
                    placement,
                    Operation::LocalJoin {
                        inputs,
                        kernel: kernel.clone(),
                        ranges: ranges.clone(),
                        fold: fold.clone(),
                    },
                )
            }
            tra::Operation::Aggregate {
                input,
                group_by,
                reduction,
            } => {
                let (placement, input) = self.grouped(*input, group_by);
                (
                    placement,
                    Operation::LocalAggregate {
                        input,
                        keep: group_by.clone(),
                        reduction: *reduction,
                    },
                )
            }
            tra::Operation::Rekey { input, keys } => {
                let (placement, input) = self.where_it_is(*input, |_, dim| position(keys, dim));
                let keys = keys.clone();
                let map = None;
                (placement, Operation::LocalMap { input, keys, map })
            }
            tra::Operation::Filter { input, key, value } => {
                let (placement, input) = self.where_it_is(*input, |_, dim| without(*key, dim));
                let (key, value) = (*key, *value);
                (placement, Operation::LocalFilter { input, key, value })
            }
            tra::Operation::Transform {
                input,
                kernel,
                ranges,
            } => {
                let (placement, input) = self.where_it_is(*input, |_, dim| Some(dim));
                let keys = (0..keys).collect();
                let map = Some((kernel.clone(), ranges.clone()));
                (placement, Operation::LocalMap { input, keys, map })
            }
            tra::Operation::Tile { input, array_dim } => {
                let (placement, input) = self.where_it_is(*input, |_, dim| Some(dim));
                let array_dim = *array_dim;
                (placement, Operation::LocalTile { input, array_dim })
            }
            tra::Operation::Concat { input, array_dim } => {
                let kind = &self.program.relation(*input).kind;
                let key = concat_key(&kind.array.dims, *array_dim);
                let others: Vec<u32> = (0..kind.keys.len() as u32)
                    .filter(|k| Some(*k) != key)
                    .collect();
                let (placement, input) = self.grouped(*input, &others);
                let array_dim = *array_dim;
                (placement, Operation::LocalConcat { input, array_dim })
            }
            tra::Operation::Window { input } => {
                let input = self.made[input.0 as usize];
                (all_keys, Operation::Window { input })
            }
        };
        let name = relation.name.clone();
        let made = self.push(id, name, placement, operation);
        self.made.push(made);
    }

    /// SHUF by the whole key, as far as its key dimensions that are left can be cut: along each axis by the first one of that axis.
    fn by(&self, keys: &[KeyDim], left: impl Fn(u32) -> bool) -> Placement {
        let role = |axis: usize| {
            let cut = (0u32..).zip(keys).find(|(number, key)| {
                left(*number) && key.axes.iter().any(|a| usize::from(*a) == axis)
            });
            cut.map_or(AxisRole::First, |(number, _)| AxisRole::Key(number))
        };
        Placement {
            roles: (0..self.mesh.axes.len()).map(role).collect(),
        }
    }

    /// ⋈ᴸ(BCAST(R₁), …, Rₙ): at the last input's placement, as far as the result has its key dimensions.
    fn join(
        &mut self,
        inputs: &[JoinInput],
        fold: Option<&Fold>,
        keys: &[KeyDim],
    ) -> (Placement, Vec<JoinInput>) {
        let Some((last, others)) = inputs.split_last() else {
            return (self.by(keys, |_| true), vec![]);
        };
        let mut placed: Vec<JoinInput> = others
            .iter()
            .map(|input| JoinInput {
                relation: self.broadcast(input.relation),
                keys: input.keys.clone(),
            })
            .collect();
        let (placement, relation) = self.where_it_is(last.relation, |axis, dim| {
            let joined = last.keys.get(dim as usize).copied()?;
            let at = match fold {
                None => joined,
                Some(fold) => position(&fold.keep, joined)?,
            };
            // A key dimension kept in coarser pieces may have lost the axis.
            keys[at as usize].axes.contains(&axis).then_some(at)
        });
        placed.push(JoinInput {
            relation,
            keys: last.keys.clone(),
        });
        (placement, placed)
    }

    /// An input shuffled by its groups, and the placement of what is made of each group.
    fn grouped(&mut self, input: RelationId, groups: &[u32]) -> (Placement, RelationId) {
        let relation = self.program.relation(input);
        let there = self.by(&relation.kind.keys, |key| groups.contains(&key));
        let result = image(&there, |key| position(groups, key));
        let name = self.names.fresh(&format!("{}.groups", relation.name));
        let operation = Operation::Shuffle {
            input: self.made[input.0 as usize],
        };
        match result {
            None => (Placement::all(self.mesh), self.broadcast(input)),
            Some(result) => (result, self.push(input, name, there, operation)),
        }
    }

    /// An input as it is and the placement of the result, if the result can be where the input is; else everywhere. `map` says what a
    /// key dimension that cuts an axis becomes.
    fn where_it_is(
        &mut self,
        input: RelationId,
        map: impl Fn(u8, u32) -> Option<u32>,
    ) -> (Placement, RelationId) {
        let made = self.made[input.0 as usize];
        let roles = (0u8..).zip(&self.relations[made.0 as usize].kind.placement.roles);
        let roles = roles.map(|(axis, role)| match role {
            AxisRole::Key(key) => map(axis, *key).map(AxisRole::Key),
            other => Some(*other),
        });
        match roles.collect::<Option<Vec<AxisRole>>>() {
            Some(roles) => (Placement { roles }, made),
            None => (Placement::all(self.mesh), self.broadcast(input)),
        }
    }

    /// Where a loop's value is: by its whole key; a number is everywhere.
    fn of_value(&self, kind: &tra::Type) -> Placement {
        match kind.array.dims.is_empty() {
            true => Placement::all(self.mesh),
            false => self.by(&kind.keys, |_| true),
        }
    }

    /// Ends and begins loops, so that a relation can be made.
    fn go_to(&mut self, relation: &tra::Relation) {
        let path = tra::blocks::path(&self.program.blocks, relation.block);
        let value = relation.operation.loop_value();
        let behind = value.filter(|value| value.is_behind());
        let moves = self.nesting.go_to(&path, behind.map(|value| value.block()));
        self.moves(moves);
    }

    /// Ends and begins loops.
    fn moves(&mut self, moves: Vec<Move>) {
        for of in moves {
            match of {
                Move::Begin(block) => self.begin(block),
                Move::End(block) => self.ends(block, true),
            }
        }
    }

    /// Adds the relations that a loop begins with, and those that its rounds end with but do not compute.
    fn begin(&mut self, block: BlockId) {
        let of = self.program.blocks[block.0 as usize].clone();
        for (number, state) in of.states.iter().enumerate() {
            self.blocks[block.0 as usize].states[number].initial = self.held(state.initial);
        }
        if let Bound::Value(bound) = of.bound {
            self.blocks[block.0 as usize].bound = Bound::Value(self.broadcast(bound));
        }
        self.ends(block, false);
    }

    /// Takes what the rounds of a loop end with to where it is to be: all of it, or what is outside the loop.
    fn ends(&mut self, block: BlockId, all: bool) {
        let program = self.program;
        let of = &program.blocks[block.0 as usize];
        let wanted = |relation: RelationId| {
            let place = program.relation(relation).block;
            all || !tra::blocks::path(&program.blocks, place).contains(&block)
        };
        for (number, state) in of.states.iter().enumerate() {
            if wanted(state.next) {
                self.blocks[block.0 as usize].states[number].next = self.held(state.next);
            }
        }
        for (number, kept) in of.collected.iter().enumerate() {
            if wanted(kept.value) {
                // Collected values are cut as their parts are, scalars are everywhere only behind the loop.
                let kind = &program.relation(kept.value).kind;
                let at = self.by(&kind.keys, |_| true);
                self.blocks[block.0 as usize].collected[number].value = self.at(kept.value, at);
            }
        }
        if let Some(until) = of.until.filter(|until| wanted(*until)) {
            self.blocks[block.0 as usize].until = Some(self.broadcast(until));
        }
    }

    /// A state's initial or next value where the state is.
    fn held(&mut self, id: RelationId) -> RelationId {
        let at = self.of_value(&self.program.relation(id).kind);
        self.at(id, at)
    }

    fn at(&mut self, id: RelationId, at: Placement) -> RelationId {
        let made = self.made[id.0 as usize];
        let is = &self.relations[made.0 as usize].kind.placement;
        if *is == at {
            return made;
        }
        let operation = match is.grows_to(&at) {
            true => Operation::Broadcast { input: made },
            false => Operation::Shuffle { input: made },
        };
        let name = self
            .names
            .fresh(&format!("{}.held", self.program.relation(id).name));
        self.push(id, name, at, operation)
    }

    fn broadcast(&mut self, id: RelationId) -> RelationId {
        if let Some(there) = self.everywhere[id.0 as usize] {
            return there;
        }
        let made = self.made[id.0 as usize];
        let all = Placement::all(self.mesh);
        let there = match self.relations[made.0 as usize]
            .kind
            .placement
            .grows_to(&all)
        {
            false => made,
            true => {
                let name = &self.program.relation(id).name;
                let name = self.names.fresh(&format!("{name}.all"));
                self.push(id, name, all, Operation::Broadcast { input: made })
            }
        };
        self.everywhere[id.0 as usize] = Some(there);
        there
    }

    fn push(
        &mut self,
        of: RelationId,
        name: String,
        placement: Placement,
        operation: Operation,
    ) -> RelationId {
        let relation = self.program.relation(of);
        let id = RelationId(self.relations.len() as u32);
        self.relations.push(Relation {
            name,
            tensor: relation.tensor.clone(),
            kind: relation.kind.placed(placement),
            operation,
            block: relation.block,
            origin: relation.origin,
        });
        id
    }
}

/// A key dimension's number without another; `None` for that one itself.
fn without(key: u32, dim: u32) -> Option<u32> {
    (dim != key).then(|| dim - u32::from(dim > key))
}
