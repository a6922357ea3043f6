//! The duties of a place in which relations rest. Must not know which place it is, nor when a relation rests.
//!
//! ```text
//! open r3, put r3 (0,), put r3 (1,), get r3 (1,), close r3
//! ```

use crate::error::RunError;
use crate::store::Tuple;
use ein_device::Buffer;
use ein_plan::{RelationId, RelationType};

/// A place that keeps tuples by relation and key.
pub(crate) trait RestingPlace: Send {
    /// Makes room for a relation.
    ///
    /// # Errors
    /// The disk does not let it.
    fn open(&mut self, relation: RelationId) -> Result<(), RunError>;

    /// Says whether a relation is here.
    fn has(&self, relation: RelationId) -> bool;

    /// Keeps a tuple of a relation for which there is room.
    ///
    /// # Errors
    /// The disk does not take it.
    fn put(
        &mut self,
        relation: RelationId,
        key: Vec<u32>,
        tuple: &[Buffer],
    ) -> Result<(), RunError>;

    /// Returns a tuple of a relation of this type, in the memory of the device.
    ///
    /// # Errors
    /// It is not here, or the disk does not give it back.
    fn get(
        &self,
        relation: RelationId,
        kind: &RelationType,
        key: &[u32],
    ) -> Result<Tuple, RunError>;

    /// Has a tuple, or all of a relation, fetched while something else is done, since it is read soon.
    fn expect(&self, relation: RelationId, tuple: Option<(&RelationType, &[u32])>);

    /// Drops a relation, if it is here.
    fn close(&mut self, relation: RelationId);
}

/// The error about a relation that is read before it has come to rest.
pub(crate) fn absent(relation: RelationId) -> RunError {
    RunError::internal(format!("r{} is read before it is written", relation.0))
}
