//! Who has which neurons in a round: a random partition of every layer, new for each round.
//!
//! It depends on the seed, the block, the round and the layer alone, so every site knows all of it without a word. Must not know tensors.
//!
//! ```text
//! round 3 of train.1, layer W1 of 5 neurons, 2 parts: 0 2 3 | 1 4
//! ```

use super::order::permutation;
use ein_device::Device;
use ein_plan::relation::piece;
use std::sync::Arc;

/// The neurons of every part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Deal {
    /// By layer and part, ascending.
    neurons: Vec<Vec<Arc<[u32]>>>,
    parts: u32,
}

impl Deal {
    /// The partition of a round. `layers`: their names and sizes.
    pub fn of(
        layers: &[(String, u64)],
        parts: u32,
        (block, round): (&str, u64),
        (seed, device): (u64, &dyn Device),
    ) -> Deal {
        let neurons = layers.iter().map(|(name, size)| {
            let stream = format!("{block}.round.{round}.{name}");
            let order = permutation(*size, &stream, (seed, device)).into_iter();
            let order: Vec<u32> = order.map(|neuron| neuron as u32).collect();
            let part = |part| {
                let (start, length) = piece(*size, parts, part);
                let mut own = order[start as usize..(start + length) as usize].to_vec();
                own.sort_unstable();
                Arc::from(own)
            };
            (0..parts).map(part).collect()
        });
        Deal {
            neurons: neurons.collect(),
            parts,
        }
    }

    /// The neurons of a layer that a part has.
    pub fn neurons(&self, layer: usize, part: u32) -> Arc<[u32]> {
        Arc::clone(&self.neurons[layer][part as usize])
    }

    /// Number of parts.
    pub fn parts(&self) -> u32 {
        self.parts
    }

    /// The part that a site has.
    pub fn part_of(&self, site: u32) -> u32 {
        site % self.parts
    }

    /// The sites that have a part, ascending.
    pub fn sites_of(&self, part: u32, sites: u32) -> Vec<u32> {
        (part..sites).step_by(self.parts as usize).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_neuron_is_of_one_part_and_every_round_has_a_deal_of_its_own() {
        let layers = [("W1".to_owned(), 23), ("W2".to_owned(), 7)];
        let deal =
            |round, seed| Deal::of(&layers, 4, ("train.1", round), (seed, &ein_device_cpu::Cpu));
        for (layer, (_, size)) in layers.iter().enumerate() {
            let parts: Vec<Arc<[u32]>> =
                (0..4).map(|part| deal(0, 0).neurons(layer, part)).collect();
            let mut all: Vec<u32> = parts.iter().flat_map(|p| p.iter().copied()).collect();
            assert!(
                parts
                    .iter()
                    .all(|p| p.is_sorted() && p.len() as u64 - size / 4 <= 1)
            );
            all.sort_unstable();
            assert_eq!(all, (0..*size as u32).collect::<Vec<_>>());
        }
        assert_ne!(deal(0, 0), deal(1, 0));
        assert_ne!(deal(0, 0), deal(0, 1));
        assert_eq!(deal(5, 1), deal(5, 1));
    }

    #[test]
    fn sites_beyond_the_parts_have_a_part_that_another_site_has() {
        let deal = Deal::of(
            &[("W".to_owned(), 6)],
            2,
            ("train.1", 0),
            (0, &ein_device_cpu::Cpu),
        );
        assert_eq!(deal.sites_of(1, 5), [1, 3]);
        assert_eq!(deal.part_of(4), 0);
    }
}
