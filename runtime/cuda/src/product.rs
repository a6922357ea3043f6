//! Sums of products as products of matrices, which a machine's library computes.
//!
//! A factor that is an operand read by bare indices is given to the library as it lies, where its strides allow that; any other is computed
//! first, as an array of matrices, by a text of its own. A result that does not lie as the library writes it, or has another type, is copied
//! behind it. Must not know how a machine multiplies.
//!
//! ```text
//! [t, s | d] f32 = sum a0[t, d] * a1[s, d] / 8   ->   rows t, columns s, inner d; 0.125 * a0 . a1^T, both as they lie
//! ```

mod factor;
mod layout;

use crate::gpu::Gpu;
use crate::helpers::strides;
use crate::machine::{Address, Matrices, Matrix};
use crate::memory::Elements;
use crate::text::{Reason, Text};
use ein_device::{Buffer, BufferType, Device, Launch, Operand, Span};
use ein_device_cpu::Cpu;
use ein_plan::schedule::factors::factors;
use ein_plan::schedule::matmul::Matmul;
use ein_plan::{DType, IndexId, Kernel, LoopKernel, NodeId};
use factor::{Factor, Part, lies, stored, times};
use layout::{count, element, matrix_of};

/// A kernel that is a product of matrices.
#[derive(Debug)]
pub(crate) struct Product {
    batch: Vec<IndexId>,
    rows: Vec<IndexId>,
    columns: Vec<IndexId>,
    inner: Vec<IndexId>,
    left: Factor,
    right: Factor,
    /// Type of the factors' elements.
    element: DType,
    /// Type of the library's result.
    made: DType,
    /// A factor of all elements.
    scale: f64,
    /// The copy from the library's result to the kernel's.
    copied: Part,
    /// True if that also multiplies, by factors that a whole row of the result has.
    of_rows: bool,
}

impl Product {
    /// Takes a kernel of this form apart.
    ///
    /// # Errors
    /// Why a part of it has no text.
    pub fn new(kernel: &Kernel, form: &Matmul) -> Result<Product, Reason> {
        let factors = factors(kernel, true).expect("a kernel of this form has two factors");
        let (left, right) = match form.turned {
            true => (factors.right.0, factors.left.0),
            false => (factors.left.0, factors.right.0),
        };
        let mut kernel = Kernel {
            graph: factors.graph,
            ..kernel.clone()
        };
        let mut scale = if factors.negative { -1.0 } else { 1.0 };
        let mut scaled = left;
        for (number, divides) in factors.numbers {
            let value = constant(&kernel, number);
            match value.map(|x| if divides { scale / x } else { scale * x }) {
                Some(x) if x.is_normal() => scale = x,
                _ => scaled = times(&mut kernel.graph, scaled, (number, divides)),
            }
        }
        let compute = kernel.graph.dtype(kernel.root);
        let element = match (stored(&kernel, scaled), stored(&kernel, right)) {
            (Some(one), Some(other)) if one == other => one,
            _ => compute,
        };
        let output = kernel.output[0];
        let made = match output == element || output == compute {
            true => output,
            false => compute,
        };
        let depends = kernel.graph.dependencies();
        let factor = |root: NodeId, lists: [&[IndexId]; 3]| -> Result<Factor, Reason> {
            let mut indices = lists.concat();
            let all = (0..kernel.indices.len() as u32).map(IndexId);
            let own = all.filter(|index| depends[root.0 as usize] >> index.0 & 1 == 1);
            let others: Vec<IndexId> = own.filter(|index| !indices.contains(index)).collect();
            indices.extend(others);
            Ok(Factor {
                lies: lies(&kernel, root, element),
                packed: Part::new(&kernel, root, &indices, element)?,
                indices,
            })
        };
        let [batch, rows, columns, inner] =
            [&form.batch, &form.rows, &form.columns, &form.inner].map(Clone::clone);
        Ok(Product {
            left: factor(scaled, [&batch, &rows, &inner])?,
            right: factor(right, [&batch, &inner, &columns])?,
            copied: Part::copy(
                &kernel,
                &[&batch[..], &rows, &columns].concat(),
                (made, &factors.of_rows),
            )?,
            of_rows: !factors.of_rows.is_empty(),
            batch,
            rows,
            columns,
            inner,
            element,
            made,
            scale,
        })
    }

    /// Says which index is what, and how the factors and the result lie.
    pub fn says(&self, kernel: &Kernel) -> String {
        let lists = [
            ("batch", &self.batch),
            ("rows", &self.rows),
            ("columns", &self.columns),
            ("inner", &self.inner),
        ];
        let names = |list: &[IndexId]| {
            let names = list
                .iter()
                .map(|i| kernel.indices[i.0 as usize].name.as_str());
            names.collect::<Vec<&str>>().join(" ")
        };
        let lists = lists.iter().filter(|(_, list)| !list.is_empty());
        let mut all: Vec<String> = lists
            .map(|(role, list)| format!("{role} {}", names(list)))
            .collect();
        for (name, factor) in self.factors() {
            all.push(match &factor.lies {
                Some((operand, ..)) => format!("a{operand} as it lies"),
                None => format!("the {name} factor packed"),
            });
        }
        if self.scale != 1.0 {
            all.push(format!("times {}", self.scale));
        }
        if self.of_rows {
            all.push("each row of the result times a factor of its own".into());
        }
        if self.made != kernel.output[0] {
            all.push(format!("made as {}", self.made));
        }
        all.join(", ")
    }

    /// The texts that it needs in any case, by what they make.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, &Text)> {
        let packed = self.factors().into_iter();
        let packed = packed.filter(|(_, factor)| factor.lies.is_none());
        let packed = packed.map(|(name, factor)| (name, &factor.packed.text));
        let copied = self.of_rows.then_some(("result", &self.copied.text));
        packed.chain(copied)
    }

    /// All texts that it may need, depending on where operands begin and on their strides.
    pub fn all_texts(&self) -> [&Text; 3] {
        [&self.left.packed, &self.right.packed, &self.copied].map(|part| &part.text)
    }

    fn factors(&self) -> [(&'static str, &Factor); 2] {
        [("left", &self.left), ("right", &self.right)]
    }

    /// Multiplies at these ranges; `None` if some factor has no value somewhere. A factor that would take too much room is packed, and
    /// multiplied, piece by piece, and so is a result that is copied.
    pub fn run(&self, gpu: &Gpu, kernel: &Kernel, launch: &Launch<'_>) -> Option<Vec<Buffer>> {
        let lengths: Vec<u64> = launch.ranges.iter().map(|(_, length)| *length).collect();
        let shape = lengths[..kernel.output_rank as usize].iter();
        let shape: Vec<usize> = shape.map(|length| *length as usize).collect();
        let run = Run {
            gpu,
            launch,
            lengths,
            output: kernel.output[0],
            output_rank: kernel.output_rank as usize,
        };
        let Some((index, most)) = self.piece(&run) else {
            return self.multiplied(&run, kernel, shape);
        };
        let mut result = gpu
            .room(BufferType::dense(kernel.output[0], shape.clone()))
            .into();
        let (first, length) = launch.ranges[index];
        for from in (0..length).step_by(most as usize) {
            let mut part = launch.clone();
            part.ranges[index] = (first + from, most.min(length - from));
            let made = self.run(gpu, kernel, &part)?;
            let (mut start, zeros) = (vec![0; shape.len()], vec![0; shape.len()]);
            start[index] = from as usize;
            let extent = made[0].shape().to_vec();
            gpu.copy_box(&mut result, &start, &made[0], &zeros, &extent);
        }
        Some(vec![result])
    }

    /// The output index that is cut, and its values in a piece, where a factor is packed, or a result copied, that takes too much room at once.
    fn piece(&self, run: &Run<'_>) -> Option<(usize, u64)> {
        let cut = |bytes: u64, indices: &[&Vec<IndexId>]| {
            let pieces = bytes.div_ceil(run.gpu.working_space);
            let outputs = indices.iter().copied().flatten();
            let outputs = outputs.map(|index| index.0 as usize);
            let longest = outputs.max_by_key(|index| run.lengths[*index])?;
            let length = run.lengths[longest];
            (pieces > 1 && length > 1).then(|| (longest, length.div_ceil(pieces).max(1)))
        };
        let bytes = |indices: &[IndexId], dtype: DType| {
            count(indices, &run.lengths).saturating_mul(dtype.size() as u64)
        };
        let sides = [(&self.left, &self.rows), (&self.right, &self.columns)];
        let packed = sides.into_iter().find_map(|(factor, own)| {
            let piece = cut(bytes(&factor.indices, self.element), &[&self.batch, own])?;
            self.as_it_lies(factor, run).is_none().then_some(piece)
        });
        packed.or_else(|| {
            let outputs = [&self.batch, &self.rows, &self.columns];
            let all: Vec<IndexId> = outputs.into_iter().flatten().copied().collect();
            let piece = cut(bytes(&all, self.made), &outputs)?;
            self.written_as_it_lies(run, Address(0))
                .is_none()
                .then_some(piece)
        })
    }

    /// The matrices that the library writes where a result begins, if it can write the result as it lies.
    fn written_as_it_lies(&self, run: &Run<'_>, at: Address) -> Option<Matrix> {
        if self.made != run.output || self.of_rows {
            return None;
        }
        let lists = [&self.batch, &self.rows, &self.columns];
        let shape = run.lengths[..run.output_rank].iter();
        let shape: Vec<usize> = shape.map(|length| *length as usize).collect();
        let own = strides(&shape);
        let stride = |index: IndexId| own[index.0 as usize] as u64;
        matrix_of(lists, &run.lengths, stride, (at, 0, self.made))
    }

    /// The lists of indices of a factor's matrices.
    fn lists(&self, factor: &Factor) -> [&Vec<IndexId>; 3] {
        match std::ptr::eq(factor, &self.left) {
            true => [&self.batch, &self.rows, &self.inner],
            false => [&self.batch, &self.inner, &self.columns],
        }
    }

    fn as_it_lies(&self, factor: &Factor, run: &Run<'_>) -> Option<Matrix> {
        factor.as_it_lies(run.launch, &run.lengths, self.lists(factor))
    }

    /// A factor as matrices, and the memory that it is packed in, if it is.
    fn matrix(&self, factor: &Factor, run: &Run<'_>) -> Option<(Matrix, Option<Elements>)> {
        if let Some(matrix) = self.as_it_lies(factor, run) {
            return Some((matrix, None));
        }
        let ranges = factor
            .indices
            .iter()
            .map(|i| run.launch.ranges[i.0 as usize]);
        let ranges: Vec<Span> = ranges.collect();
        let packed = factor.packed.made(run.gpu, &ranges, &run.launch.operands)?;
        let matrix = run.packed(&packed, self.lists(factor), self.element);
        Some((matrix, Some(packed)))
    }

    /// The product at the launch's ranges, in one call of the library.
    fn multiplied(&self, run: &Run<'_>, kernel: &Kernel, shape: Vec<usize>) -> Option<Vec<Buffer>> {
        let (gpu, lengths) = (run.gpu, &run.lengths);
        let result = gpu.room(BufferType::dense(kernel.output[0], shape));
        if result.kind.elements() == 0 {
            return Some(vec![result.into()]);
        }
        // Packed factors are in memory till the product is launched.
        let (left, packed_left) = self.matrix(&self.left, run)?;
        let (right, packed_right) = self.matrix(&self.right, run)?;
        let multiply = |result: Matrix| {
            gpu.multiply(&Matrices {
                batches: count(&self.batch, lengths),
                rows: count(&self.rows, lengths),
                columns: count(&self.columns, lengths),
                inner: count(&self.inner, lengths),
                left,
                right,
                result,
                scale: self.scale,
            });
        };
        if let Some(matrix) = self.written_as_it_lies(run, result.address) {
            multiply(matrix);
            return Some(vec![result.into()]);
        }
        // The copy has room of its own.
        drop(result);
        let lists = [&self.batch, &self.rows, &self.columns];
        let order = lists
            .iter()
            .copied()
            .flatten()
            .map(|index| index.0 as usize);
        let order: Vec<usize> = order.collect();
        let shape = order.iter().map(|index| lengths[*index] as usize);
        let made = gpu.room(BufferType::dense(self.made, shape.collect()));
        multiply(run.packed(&made, lists, self.made));
        drop((packed_left, packed_right));
        let columns = [made.into()];
        let made = Operand {
            columns: &columns,
            start: order
                .iter()
                .map(|index| run.launch.ranges[*index].0)
                .collect(),
        };
        let outputs = &run.launch.ranges[..kernel.output_rank as usize];
        let mut operands = run.launch.operands.clone();
        operands.push(made);
        let copied = self.copied.made(gpu, outputs, &operands)?;
        Some(vec![copied.into()])
    }
}

/// One run of a product.
struct Run<'a> {
    gpu: &'a Gpu,
    launch: &'a Launch<'a>,
    /// Of each index.
    lengths: Vec<u64>,
    /// The type of the result's elements, and the number of its indices.
    output: DType,
    output_rank: usize,
}

impl Run<'_> {
    /// An array of matrices over these indices, row-major.
    fn packed(&self, array: &Elements, lists: [&Vec<IndexId>; 3], dtype: DType) -> Matrix {
        let [_, rows, columns] = lists.map(|list| count(list, &self.lengths));
        Matrix {
            at: array.address.0,
            first: 0,
            element: element(dtype),
            between_rows: columns,
            between_columns: 1,
            between_batches: rows * columns,
        }
    }
}

/// The value of a node without indices, if no operand has a part in it.
fn constant(kernel: &Kernel, number: NodeId) -> Option<f64> {
    let number = Kernel {
        indices: vec![],
        output_rank: 0,
        root: number,
        reduction: None,
        output: vec![kernel.graph.dtype(number)],
        ..kernel.clone()
    };
    let number = number.canonical();
    if number.graph.reads().next().is_some() {
        return None;
    }
    let prepared = Cpu.prepare(&number, &LoopKernel::of_whole(&number), false);
    let made = Cpu.run(&Launch {
        kernel: &*prepared,
        ranges: vec![],
        operands: vec![],
    });
    Some(made.ok()?[0].to_host().data().get(0).as_f64())
}
