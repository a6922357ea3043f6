//! Loops of a plan: a body of steps that is walked round after round, with the relations that go from one to the next.
//!
//! In a round a state is what the round began with; what it ends with is another relation of the same type. A state has
//! one placement, in the loop and behind it; its initial and its next value may be at more sites than that. Must not know how a round is walked.
//!
//! ```text
//! repeat b0 k < 100 until r7; state r0 next r4; state r1 next r5; free r0   // model.ein:3
//!   r2 x: {i: 10/2} f64[i] @ PART(i) = loop state b0.0   // model.ein:4
//!   …
//! end b0; free r1
//! r9 x: {i: 10/2} f64[i] @ PART(i) = loop last b0.0   // model.ein:4
//! ```

use crate::dtype::DType;
use crate::loops::{BlockId, LoopValue, Repeat};
use crate::mesh::Mesh;
use crate::plan::{Operation, Plan, Step, same_cut};
use crate::relation::{ArrayDim, ArrayType, AxisRole, Placement, RelationType};

impl Plan {
    /// A loop by its number.
    pub fn repeat(&self, block: BlockId) -> &Repeat {
        &self.repeats[block.0 as usize]
    }

    /// By step: the innermost loop whose body it is in.
    pub fn blocks_of_steps(&self) -> Vec<Option<BlockId>> {
        let mut blocks = vec![None; self.steps.len()];
        // Inner loops stand behind those around them.
        for (number, repeat) in (0u32..).zip(&self.repeats) {
            let end = (repeat.end as usize).min(blocks.len());
            if let Some(body) = blocks.get_mut(repeat.first as usize..end) {
                body.fill(Some(BlockId(number)));
            }
        }
        blocks
    }

    /// By loop: how many times its rounds are expected to be walked, rounds of the loops around it included.
    pub fn expected_times(&self) -> Vec<u64> {
        let mut times: Vec<u64> = vec![];
        for repeat in &self.repeats {
            let around = repeat
                .block
                .parent
                .map_or(1, |parent| times[parent.0 as usize]);
            times.push(around.saturating_mul(repeat.block.expected_rounds()));
        }
        times
    }

    /// By step: how many times it is walked if the rounds of every loop are walked so many times.
    pub fn times_of_steps(&self, times: &[u64]) -> Vec<u64> {
        let blocks = self.blocks_of_steps().into_iter();
        blocks
            .map(|block| block.map_or(1, |block| times[block.0 as usize]))
            .collect()
    }

    /// The type and placement that a state has in a loop and behind it; those of its initial value, if it is asked for
    /// nowhere.
    pub fn state_kind(&self, block: BlockId, number: u32) -> Option<&RelationType> {
        let repeat = self.repeat(block);
        let is = |step: &&Step| {
            let value = match step.operation {
                Operation::Loop { value } => value,
                _ => return false,
            };
            value == LoopValue::State(block, number) || value == LoopValue::Last(block, number)
        };
        let mut behind = self.steps.iter().skip(repeat.first as usize);
        let initial = repeat.block.states.get(number as usize)?.initial;
        let initial = self.steps.get(initial.0 as usize);
        behind.find(is).or(initial).map(|step| &step.kind)
    }

    /// The type of what a loop collects, if it is asked for.
    pub fn collected_kind(&self, block: BlockId, number: u32) -> Option<&RelationType> {
        let wanted = LoopValue::Collected(block, number);
        let mut behind = self.behind(block);
        let found = behind.find(|(_, value)| *value == wanted);
        found.map(|(step, _)| &step.kind)
    }

    /// The steps right behind a loop that give its values.
    pub fn behind(&self, block: BlockId) -> impl Iterator<Item = (&Step, LoopValue)> {
        let steps = self.steps.iter().skip(self.repeat(block).end as usize);
        steps.map_while(move |step| match step.operation {
            Operation::Loop { value } if value.is_behind() && value.block() == block => {
                Some((step, value))
            }
            _ => None,
        })
    }
}

/// The type of a scalar that every site of a mesh has.
pub fn scalar(dtype: DType, mesh: &Mesh) -> RelationType {
    RelationType {
        keys: vec![],
        array: ArrayType {
            dims: vec![],
            columns: vec![dtype],
        },
        placement: Placement::all(mesh),
    }
}

/// The type of a value of so many rounds.
pub fn collected(value: &RelationType, dim: u32, rounds: u64) -> RelationType {
    let mut kind = value.clone();
    let at = (dim as usize).min(kind.array.dims.len());
    let counts = ArrayDim::whole(rounds);
    kind.array.dims.insert(at, counts);
    kind
}

/// Whether two relations hold the same tuples if they hold the same tensor: equal types but for the placement,
/// whatever their key dimensions are called.
pub fn alike(a: &RelationType, b: &RelationType) -> bool {
    let cuts =
        a.keys.len() == b.keys.len() && a.keys.iter().zip(&b.keys).all(|(a, b)| same_cut(a, b));
    cuts && a.array == b.array
}

/// Whether one relation has every tuple of a like one at every site where that one has it: each site that has more
/// leaves it out.
pub fn includes(has: &RelationType, wanted: &RelationType, mesh: &Mesh) -> bool {
    let roles = has.placement.roles.iter().zip(&wanted.placement.roles);
    let mut roles = roles.zip(&mesh.axes);
    alike(has, wanted)
        && roles
            .all(|((has, wanted), count)| has == wanted || *has == AxisRole::Every || *count == 1)
}

/// Whether a relation is a scalar that every site of a mesh has.
pub fn is_known(kind: &RelationType, dtype: DType, mesh: &Mesh) -> bool {
    alike(kind, &scalar(dtype, mesh)) && includes(kind, &scalar(dtype, mesh), mesh)
}
