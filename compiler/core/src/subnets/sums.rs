//! Sums over neurons: what becomes of them where a subnet has a part of the terms.
//!
//! The last sums are divided by the number of parts, once for each dealt index, to evaluate the whole net; sums between two layers are left to a normalisation; sums of
//! weights alone are of all neurons, and may be added to a loss only. Must not know which neurons are asked for.
//!
//! ```text
//! z[n,c] = sum h[n,k] W2[k,c], neurons k   =>   W2 is divided;   s = sum W1[d,k]^2, h[n,k] = ... * s   =>   k cannot be cut
//! ```

use super::classes::{Class, bare_reads};
use super::recognise::{About, Failure, Found, HasIndex, Net, shown};
use crate::einsum::TensorId;
use ein_plan::{IndexId, Kernel};
use std::collections::{BTreeMap, BTreeSet};

/// A sum over neurons that are dealt.
struct Sum {
    /// The weight of the sum.
    weight: TensorId,
    /// Number of dealt indices that the sum runs over.
    indices: u32,
    /// Dealt neurons that the result has.
    made: Option<Class>,
}

impl Net<'_> {
    /// Returns the sum over dealt neurons that a statement computes, if it computes one.
    fn sum_over(
        &self,
        id: TensorId,
        (kernel, operands): (&Kernel, &[TensorId]),
        wanted: &BTreeSet<Class>,
    ) -> Option<Sum> {
        let weights = self.contraction(kernel, operands)?.weights;
        let of = |index: u32| self.classes.of_index(id, IndexId(index));
        let reduced = kernel.output_rank..kernel.indices.len() as u32;
        let neurons: Vec<u32> = reduced.filter(|i| wanted.contains(&of(*i))).collect();
        let first = *neurons.first()?;
        let reads = bare_reads(kernel);
        let own = weights
            .iter()
            .find(|o| reads.contains_index(**o, IndexId(first)));
        let weight = operands[*own.or_else(|| weights.first())? as usize];
        let mut made = (0..kernel.output_rank).map(of);
        Some(Sum {
            weight,
            indices: neurons.len() as u32,
            made: made.find(|class| wanted.contains(class)),
        })
    }

    /// Collects the sums over neurons and what a subnet has to make of them.
    pub(super) fn sums(&self, wanted: &BTreeSet<Class>, found: &mut Found) -> Result<(), Failure> {
        for (id, tensor, kernel, operands) in self.statements() {
            let sum = self.sum_over(id, (kernel, operands), wanted);
            let Some(Sum {
                weight,
                indices,
                made,
            }) = sum.filter(|_| self.weights.on_data(id))
            else {
                continue;
            };
            let params = || self.weights.params(weight).iter();
            match made {
                None => {
                    let scales = |param: &&TensorId| {
                        self.weights.scales_with(self.program, weight, **param)
                            && self.only_in_sums(**param, wanted)
                    };
                    let param = params().find(scales).ok_or_else(|| Failure::InTheWay {
                        neurons: found.neurons[0].name.clone(),
                        reason: format!(
                            "`{}` cannot be divided by the number of parts alone",
                            self.program.tensor(weight).name
                        ),
                        origin: tensor.origin,
                    })?;
                    let name = &self.program.tensor(*param).name;
                    match found.summed.iter().find(|(known, _)| known == name) {
                        None => found.summed.push((name.clone(), indices)),
                        Some((_, other)) if *other == indices => {}
                        Some((_, other)) => {
                            return Err(Failure::InTheWay {
                                neurons: found.neurons[0].name.clone(),
                                reason: format!(
                                    "`{name}` stands in a sum over {indices} of their indices and in one over {other}"
                                ),
                                origin: tensor.origin,
                            });
                        }
                    }
                }
                Some(class) if !self.normalised(id, class) => {
                    let param = params().next().copied().unwrap_or(weight);
                    let name = self.program.tensor(param).name.clone();
                    found.unnormalised.push((name, tensor.origin));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Returns whether what a param is divided by divides last sums over neurons and nothing else that depends on data, but for what is added
    /// to a loss.
    fn only_in_sums(&self, param: TensorId, wanted: &BTreeSet<Class>) -> bool {
        self.statements().all(|(id, tensor, kernel, operands)| {
            let mut read = operands.iter().filter(|operand| {
                let scalar =
                    tensor.shape.is_empty() && self.program.tensor(**operand).shape.is_empty();
                self.weights.params(**operand).contains(&param)
                    && self.is_weight(**operand)
                    && !scalar
            });
            let sum = || self.sum_over(id, (kernel, operands), wanted);
            !self.weights.on_data(id)
                || read.all(|operand| {
                    sum().is_some_and(|sum| sum.weight == *operand && sum.made.is_none())
                })
        })
    }

    /// Sums over the neurons of weights alone, which are of all neurons where they go into the net.
    pub(super) fn totals(&self, about: &mut BTreeMap<Class, About>) {
        let mut totals: Vec<BTreeSet<Class>> = vec![BTreeSet::new(); self.program.tensors.len()];
        for (id, tensor, kernel, operands) in self.statements() {
            if self.is_weight(id) {
                let mut own = BTreeSet::new();
                for operand in operands {
                    own.extend(&totals[operand.0 as usize]);
                }
                let reduced = kernel.output_rank..kernel.indices.len() as u32;
                own.extend(reduced.map(|i| self.classes.of_index(id, IndexId(i))));
                totals[id.0 as usize] = own;
                continue;
            }
            for operand in operands {
                let scalar = self.program.tensor(*operand).shape.is_empty();
                // What is added to a loss is of the neurons that there are.
                if scalar && tensor.shape.is_empty() {
                    continue;
                }
                for class in &totals[operand.0 as usize] {
                    let sum = shown(self.program.tensor(*operand));
                    let what = format!(
                        "{} uses {sum}, a sum of the weights of all of them",
                        shown(tensor)
                    );
                    let entry = about.entry(*class).or_default();
                    entry.reason.get_or_insert((what, tensor.origin));
                }
            }
        }
    }

    /// Returns whether a statistic of each neuron, over all rows, is taken of a tensor before another weight is met.
    pub(super) fn normalised(&self, from: TensorId, class: Class) -> bool {
        let rank = self.program.tensor(from).shape.len();
        let mut reached = BTreeSet::from([from]);
        for (id, tensor, kernel, operands) in self.statements() {
            if !operands.iter().any(|operand| reached.contains(operand)) {
                continue;
            }
            let weighed = self.contraction(kernel, operands).is_some_and(|factors| {
                let mut weights = factors.weights.iter().map(|o| operands[*o as usize]);
                weights.any(|weight| self.program.tensor(weight).shape.len() > 1)
            });
            if weighed {
                continue;
            }
            let own = (0..tensor.shape.len()).any(|dim| self.classes.of_dim(id, dim) == class);
            if own && tensor.shape.len() < rank && kernel.reduction.is_some() {
                return true;
            }
            reached.insert(id);
        }
        false
    }
}
