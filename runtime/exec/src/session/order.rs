//! Which rows of the data a batch has.
//!
//! The order of an epoch depends on the seed, the block and the epoch alone: not on sites, and not on how far the run has come. Must not
//! know data.
//!
//! ```text
//! 5 rows, batches of 2, epoch 0: 3 0 | 4 1 | 2
//! ```

use super::Block;
use crate::Options;
use ein_array::Data;
use ein_device::{Device, Draw};
use ein_plan::{DType, Source};

/// The rows in the order of an epoch.
pub(super) fn of_epoch(block: &Block, epoch: u64, options: &Options) -> Vec<u64> {
    if !block.shuffle {
        return (0..block.rows).collect();
    }
    shuffled(block, &format!("{}.epoch.{epoch}", block.name), options)
}

/// The rows in an order of which the first ones are a sample of all.
pub(super) fn of_statistics(block: &Block, options: &Options) -> Vec<u64> {
    shuffled(block, &format!("{}.statistics", block.name), options)
}

fn shuffled(block: &Block, stream: &str, options: &Options) -> Vec<u64> {
    permutation(block.rows, stream, (options.seed, &*options.device))
}

/// The numbers below `count`, in the random order of a stream.
pub(super) fn permutation(
    count: u64,
    stream: &str,
    (seed, device): (u64, &dyn Device),
) -> Vec<u64> {
    let draw = Draw {
        source: &Source::Permutation,
        dtype: DType::I64,
        stream,
        seed,
        rounds: &[],
        shape: &[count],
    };
    let order = device.generate(&draw, &[(0, count)]).to_host();
    match order.data() {
        Data::I64(numbers) => numbers.iter().map(|number| *number as u64).collect(),
        _ => unreachable!("what is drawn has the type that was asked for"),
    }
}

/// The rows of a batch of an epoch; the last one may be short.
pub(super) fn of_batch(order: &[u64], batch: u64, number: u64) -> &[u64] {
    let start = (number * batch).min(order.len() as u64);
    let end = (start + batch).min(order.len() as u64);
    &order[start as usize..end as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_epoch_has_every_row_once_and_its_own_order() {
        let block = Block {
            rows: 23,
            shuffle: true,
            ..Block::named("train.1".into())
        };
        let seeded = |seed| Options {
            seed,
            ..Options::on(ein_device_cpu::device())
        };
        let orders: Vec<Vec<u64>> = (0..4)
            .map(|epoch| of_epoch(&block, epoch, &seeded(7)))
            .collect();
        for order in &orders {
            let batches = (0..5).flat_map(|number| of_batch(order, 5, number).to_vec());
            let mut rows: Vec<u64> = batches.collect();
            assert_eq!(&rows, order);
            rows.sort_unstable();
            assert_eq!(rows, (0..23).collect::<Vec<_>>());
        }
        assert!(orders[0] != orders[1] && orders[1] != orders[2]);
        assert_eq!(orders[2], of_epoch(&block, 2, &seeded(7)));
        assert_ne!(orders[2], of_epoch(&block, 2, &seeded(8)));
    }
}
