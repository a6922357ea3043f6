//! Relations of a device with a memory of its own that rest in the host's memory.
//!
//! Must not know when a relation rests, nor what a device is.
//!
//! ```text
//! r3 {i: 9/3} f32[i, 5] at site 0: (0,) f32[3, 5] of the host
//! ```

use crate::error::RunError;
use crate::resting_place::{RestingPlace, absent};
use crate::store::Tuple;
use ein_device::{Buffer, Device};
use ein_plan::{RelationId, RelationType};
use std::collections::HashMap;
use std::sync::Arc;

/// The relations in the host's memory at a site.
pub(crate) struct HostMemory {
    device: Arc<dyn Device>,
    /// By key: the columns of its tuple, in the host's memory.
    relations: HashMap<RelationId, HashMap<Vec<u32>, Tuple>>,
}

impl HostMemory {
    /// Nothing yet; what comes back will be in the memory of a device.
    pub fn new(device: Arc<dyn Device>) -> HostMemory {
        HostMemory {
            device,
            relations: HashMap::new(),
        }
    }
}

impl RestingPlace for HostMemory {
    fn open(&mut self, relation: RelationId) -> Result<(), RunError> {
        self.relations.insert(relation, HashMap::new());
        Ok(())
    }

    fn has(&self, relation: RelationId) -> bool {
        self.relations.contains_key(&relation)
    }

    fn put(
        &mut self,
        relation: RelationId,
        key: Vec<u32>,
        tuple: &[Buffer],
    ) -> Result<(), RunError> {
        let columns = tuple.iter().map(|column| column.to_host().into());
        let resting = self.relations.get_mut(&relation);
        let resting = resting.ok_or_else(|| absent(relation))?;
        resting.insert(key, columns.collect());
        Ok(())
    }

    fn get(&self, relation: RelationId, _: &RelationType, key: &[u32]) -> Result<Tuple, RunError> {
        let resting = self.relations.get(&relation);
        let tuple = resting.and_then(|resting| resting.get(key));
        let columns = tuple.ok_or_else(|| absent(relation))?.iter();
        Ok(columns
            .map(|column| self.device.adopt(column.clone()))
            .collect())
    }

    fn expect(&self, _: RelationId, _: Option<(&RelationType, &[u32])>) {}

    fn close(&mut self, relation: RelationId) {
        self.relations.remove(&relation);
    }
}
