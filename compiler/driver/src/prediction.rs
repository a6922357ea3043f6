//! The time that plans take on the cores and on GPUs, predicted by the figures of a machine.
//!
//! Each plan counts once, with as many rounds of its loops as are expected. Sites share the cores, and a GPU reads its sources and gives its
//! outputs over a link. What a GPU leaves to the cores takes their time, and the copies. Movements between sites take the same on both. Must not
//! know devices.
//!
//! ```text
//! C[i,j] = A[i,k] * B[k,j], f32[4096, 4096]   ->   0.9 s on 2 cores, 0.013 s on a GPU, of which 0.008 s are copies
//! ```

use crate::machine_file::{Figures, GpuFigures};
use ein_plan::{Kernel, Operation, Plan, Resting, Step, memory, work};
use einc_core::cost::{Pace, Rates};

/// The steps of a plan that a GPU leaves to the cores, and the bytes that are copied at the site that has most.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Copies {
    /// From the host's memory to the GPU's.
    pub there: f64,
    /// And back.
    pub back: f64,
    /// By step, whether the cores compute it.
    pub on_cores: Vec<bool>,
}

/// Where the outputs of a plan go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    /// To the user, by way of the host.
    Leave,
    /// To the next step of a training, on the same device.
    Stay,
}

/// Seconds on the cores, of which each site has so many, and on GPUs, if the machine has figures of these.
pub fn seconds(plans: &[(&Plan, Outputs)], figures: &Figures, cores: usize) -> (f64, Option<f64>) {
    let all = |of: &dyn Fn(&(&Plan, Outputs)) -> f64| plans.iter().map(of).sum();
    let rates = &figures.cores.compute;
    let on_cores = all(&|(plan, _)| on_cores(plan, rates, cores));
    let on_gpu = figures
        .gpu
        .map(|gpu| all(&|(plan, outputs)| on_gpu((plan, *outputs), &gpu, (rates, cores))));
    (on_cores, on_gpu)
}

/// The copies of a plan between the host's memory and a GPU's: sources that are not made there, outputs, what the cores compute, and what rests
/// in the host's memory.
pub fn copies(plan: &Plan, outputs: Outputs) -> Copies {
    let on_cores = ein_cuda::on_cores(plan);
    let (mut there, mut back) = (0.0, 0.0);
    for ((step, times), on_cores) in in_rounds(plan).zip(&on_cores) {
        match &step.operation {
            Operation::Source { source, .. }
                if *on_cores || !(source.is_free() || source.is_given()) =>
            {
                there += times * bytes(plan, step);
            }
            operation if *on_cores => {
                let inputs = operation.inputs().into_iter();
                back += times
                    * inputs
                        .map(|input| bytes(plan, plan.step(input)))
                        .sum::<f64>();
                there += times * bytes(plan, step);
            }
            _ => {}
        }
    }
    if outputs == Outputs::Leave {
        let outputs = plan.outputs.iter();
        back += outputs
            .map(|output| bytes(plan, plan.step(output.relation)))
            .sum::<f64>();
    }
    if plan.resting == Resting::HostMemory {
        let volume = plan.spilled();
        there += volume.read as f64;
        back += volume.written as f64;
    }
    Copies {
        there,
        back,
        on_cores,
    }
}

fn on_cores(plan: &Plan, rates: &Rates, cores: usize) -> f64 {
    let passing = plan.passing();
    let steps = in_rounds(plan);
    let time =
        |(step, times): (&Step, f64)| times * of_step((plan, &passing), step, rates) / cores as f64;
    steps.map(time).sum()
}

fn on_gpu(
    (plan, outputs): (&Plan, Outputs),
    gpu: &GpuFigures,
    (rates, cores): (&Rates, usize),
) -> f64 {
    let copies = copies(plan, outputs);
    let passing = plan.passing();
    let steps = in_rounds(plan).zip(&copies.on_cores);
    let time = |((step, times), on_cores): ((&Step, f64), &bool)| {
        times
            * match on_cores {
                true => of_step((plan, &passing), step, rates) / cores as f64,
                false => of_step((plan, &passing), step, &gpu.compute),
            }
    };
    steps.map(time).sum::<f64>() + (copies.there + copies.back) * gpu.byte
}

/// The steps, and how often each is taken.
fn in_rounds(plan: &Plan) -> impl Iterator<Item = (&Step, f64)> {
    let times = plan.times_of_steps(&plan.expected_times());
    plan.steps
        .iter()
        .zip(times)
        .map(|(step, times)| (step, times as f64))
}

/// Seconds that a site takes to compute a step once; `passing`: by step, whether its result is never in memory.
fn of_step((plan, passing): (&Plan, &[bool]), step: &Step, rates: &Rates) -> f64 {
    let Some(kernel) = kernel(plan, step) else {
        return 0.0;
    };
    let touched = |step: &Step| match passing[step.result.0 as usize] {
        true => 0.0,
        false => bytes(plan, step),
    };
    let inputs = step.operation.inputs().into_iter();
    let read: f64 = inputs.map(|input| touched(plan.step(input))).sum();
    let tuples = step.kind.tuples().unwrap_or(u64::MAX);
    let tuples = tuples.div_ceil(u64::from(plan.mesh.sites().max(1)));
    let extents = kernel.indices.iter().map(|index| index.extent as f64);
    let whole = work::flops_per_point(kernel) as f64 * extents.product::<f64>();
    rates.of_operations(&Pace::of(kernel, whole), work::of_step(plan, step) as f64)
        + rates.of_tuples(read + touched(step), tuples as usize)
}

fn kernel<'a>(plan: &'a Plan, step: &Step) -> Option<&'a Kernel> {
    match &step.operation {
        Operation::LocalJoin { kernel, .. } => Some(&plan.kernels[kernel.0 as usize]),
        _ => None,
    }
}

/// Bytes of a step's result at the site that has most of it.
fn bytes(plan: &Plan, step: &Step) -> f64 {
    memory::of(plan, &step.kind) as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use einc_core::search::{Link, TimeModel};

    fn figures() -> Figures {
        let none = Link {
            message: 0.0,
            byte: 0.0,
        };
        Figures {
            cores: TimeModel {
                compute: Rates::of_products(1e-11, 1e-10, 1e-6),
                node: none,
                network: None,
            },
            gpu: Some(GpuFigures {
                compute: Rates::of_products(1e-14, 1e-12, 1e-5),
                byte: 1e-10,
            }),
        }
    }

    /// A product of matrices of so many rows, and a system of equations at the end.
    fn plan(size: u64, solved: bool) -> Plan {
        let last = match solved {
            true => format!(
                "r3 x: {{}} f32[{size}, {size}] @ ALL = join k1(r2{{}}, r1{{}}) over [_, _]; free r1, r2\noutput x = r3: f32[{size}, {size}]\n"
            ),
            false => format!("output C = r2: f32[{size}, {size}]\n"),
        };
        let text = format!(
            "plan for 1 sites
kernel k0 (f32[N, N], f32[N, N]) [i: N, j: N | k: N] f32 = sum a0[i, k] * a1[k, j]
kernel k1 (f32[N, N], f32[N, N]) [i: N, j: N] f32 = solve(a0[:1, :2], a1[:1, j], i)
r0 A: {{}} f32[N, N] @ ALL = source A from load(\"a.npy\")
r1 B: {{}} f32[N, N] @ ALL = source B from full(1.0)
r2 C: {{}} f32[N, N] @ ALL = join k0(r0{{}}, r1{{}}) over [_, _, _]; free r0
{last}"
        );
        let text = text.replace('N', &size.to_string());
        text.parse()
            .unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    #[test]
    fn copies_and_arithmetic_decide() {
        let of = |plan: &Plan, cores| {
            let (on_cores, on_gpu) = seconds(&[(plan, Outputs::Leave)], &figures(), cores);
            (on_cores, on_gpu.unwrap())
        };
        // 2e9 operations of 1e-11 s, and 12 MB touched, of which 4 are copied there and 4 back.
        let large = plan(1000, false);
        let (on_cores, on_gpu) = of(&large, 1);
        let near = |found: f64, expected: f64| (found - expected).abs() <= 0.01 * expected;
        assert!(near(on_cores, 2e-2 + 1.2e-3 + 1e-6), "{on_cores}");
        assert!(near(on_gpu, 2e-5 + 1.2e-5 + 1e-5 + 8e-4), "{on_gpu}");
        assert!(near(of(&large, 4).0, on_cores / 4.0));
        // A small one is not worth its launch.
        let (on_cores, on_gpu) = of(&plan(10, false), 1);
        assert!(on_cores < on_gpu, "{on_cores} {on_gpu}");
        // Two operands and a result are copied for the cores.
        let (solved, before) = (of(&plan(1000, true), 1), of(&large, 1));
        let more = solved.1 - before.1 - (solved.0 - before.0);
        assert!(near(more, 3.0 * 4e-4), "{more}");
        let copies = copies(&plan(1000, true), Outputs::Leave);
        assert_eq!((copies.there, copies.back), (8e6, 12e6));
        assert_eq!(copies.on_cores, [false, false, false, true]);
    }
}
