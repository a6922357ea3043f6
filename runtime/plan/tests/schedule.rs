//! Which loops compute a kernel: the text of a plan, then the text with loops and the reasons against others.
#![allow(clippy::unwrap_used)]

use ein_plan::print::WithLoops;
use ein_plan::verify::verify;
use ein_plan::{Plan, encode};

/// A plan of one site with one join of this kernel over whole operands.
fn plan(kernel: &str) -> String {
    let operands = kernel[1..kernel.find(") [").unwrap()].to_string();
    let mut steps = String::new();
    let mut inputs = vec![];
    let mut rest = operands.as_str();
    while let Some(end) = rest.find(']') {
        let operand = rest[..=end].trim_start_matches(", ");
        let number = inputs.len();
        steps +=
            &format!("r{number} x{number}: {{}} {operand} @ ALL = source x{number} from unbound\n");
        inputs.push(format!("r{number}{{}}"));
        rest = &rest[end + 1..];
    }
    let indices = &kernel[kernel.find(") [").unwrap() + 3..];
    let (indices, result) = indices.split_once(']').unwrap();
    let (output, _) = indices.split_once('|').unwrap_or((indices, ""));
    let extent = |index: &str| index.rsplit(": ").next().unwrap().trim().to_string();
    let shape: Vec<String> = output
        .split(", ")
        .filter(|i| !i.trim().is_empty())
        .map(extent)
        .collect();
    let whole: Vec<&str> = indices
        .split([',', '|'])
        .filter(|i| !i.trim().is_empty())
        .map(|_| "_")
        .collect();
    let dtype = result.trim().split(' ').next().unwrap();
    let result = inputs.len();
    let read: Vec<String> = (0..result).map(|number| format!("r{number}")).collect();
    let frees = if read.is_empty() {
        String::new()
    } else {
        format!("; free {}", read.join(", "))
    };
    format!(
        "plan for 1 sites\nkernel k0 {kernel}\n{steps}r{result} y: {{}} {dtype}[{}] @ ALL = join k0({}) over [{}]{}\noutput y = r{result}: {dtype}[{}]\n",
        shape.join(", "),
        inputs.join(", "),
        whole.join(", "),
        frees,
        shape.join(", ")
    )
}

/// The lines that say which loops a kernel has, and why no others.
#[track_caller]
fn loops(kernel: &str, expected: &str) {
    let text = plan(kernel);
    let plan: Plan = text
        .parse()
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let printed = WithLoops(&plan).to_string();
    let lines = printed
        .lines()
        .map(str::trim)
        .filter(|l| l.starts_with("loops ") || l.starts_with("// "));
    let found: Vec<&str> = lines
        .map(|line| {
            line.split_once(": ")
                .filter(|_| line.starts_with("loops "))
                .map_or(line, |(_, loops)| loops)
        })
        .collect();
    assert_eq!(found.join("\n"), expected, "{kernel}");
    // The text without loops stands for the same plan, and so do the bytes.
    verify(&plan).unwrap();
    assert_eq!(printed.parse::<Plan>().unwrap(), plan);
    assert_eq!(plan.to_string().parse::<Plan>().unwrap(), plan);
    assert_eq!(encode::decode(&encode::encode(&plan)).unwrap(), plan);
}

#[test]
fn products_of_matrices_are_matmuls() {
    loops(
        "(f32[64, 32], f32[32, 48]) [i: 64, j: 48 | k: 32] f32 = sum a0[i, k] * a1[k, j]",
        "matmul rows [i] columns [j] inner [k] tiles [i: 64, j: 48, k: 32]
// not pairwise: rows and columns of products make matrices
// not row_reduction: its terms are computed
// blocks that lie in the result: about 1 µs of one core
// blocks that are copied to it: about 2 µs of one core",
    );
    loops(
        "(f64[3, 64, 32], f64[3, 48, 32]) [b: 3, i: 64, j: 48 | k: 32] f64 = sum a1[b, j, k] * a0[b, i, k] / 3.0_f64",
        "matmul turned batch [b] rows [i] columns [j] inner [k] tiles [b: 1 of 3, i: 64, j: 48, k: 32]
// not pairwise: its terms are no function of two elements
// not row_reduction: its terms are computed
// blocks that lie in the result: about 4 µs of one core
// blocks that are copied to it: about 7 µs of one core",
    );
    loops(
        "(f32[2, 9], f32[9, 2]) [i: 2, j: 2 | k: 9] f32 = sum a0[i, k] * a1[k, j]",
        "strips
// not pairwise: rows and columns of products make matrices
// not row_reduction: its terms are computed
// possible, but slower: matmul; rows and columns: 2, fewer than 4",
    );
}

#[test]
fn products_of_matrices_are_cut_into_blocks() {
    // A large product is shared out by its library, or by us where the library does not.
    blocks(
        "(f32[4096, 512], f32[512, 4096]) [i: 4096, j: 4096 | k: 512] f32 = sum a0[i, k] * a1[k, j]",
        "matmul rows [i] columns [j] inner [k] tiles [i: 4096, j: 4096, k: 512] apart [i: 1024 of 4096, j: 1024 of 4096, k: 512]
// blocks that lie in the result: about 72003 µs of one core
// blocks that are copied to it: about 81176 µs of one core",
    );
    // Neither factor lies as its block does, and neither does the result.
    blocks(
        "(f32[24, 20, 24, 16], f32[12, 12, 24, 20]) [f: 24, e: 24, d: 16, c: 12, b: 12, a: 24 | g: 20] f32 = sum a0[a, g, e, d] * a1[c, b, f, g]",
        "matmul turned rows [f, c, b] columns [e, d, a] inner [g] tiles [f: 1 of 24, e: 1 of 24, d: 1 of 16, c: 12, b: 12, a: 24, g: 20] block_rows [c, b] block_columns [a] right copied
// blocks that lie in the result: about 13761 µs of one core
// blocks that are copied to it: about 15577 µs of one core",
    );
    // What is computed is packed.
    blocks(
        "(f32[512, 512], f32[512, 512]) [i: 512, j: 512 | k: 512] f32 = sum exp(a0[i, k]) * a1[k, j]",
        "matmul rows [i] columns [j] inner [k] tiles [i: 32 of 512, j: 256 of 512, k: 512] left copied
// blocks that lie in the result: about 1647 µs of one core
// blocks that are copied to it: about 1654 µs of one core",
    );
    // Few columns and many neighbouring rows.
    blocks(
        "(f32[512, 4096], f32[512, 4]) [i: 4096, j: 4 | k: 512] f32 = sum a0[k, i] * a1[k, j]",
        "matmul rows [i] columns [j] inner [k] tiles [i: 2048 of 4096, j: 4, k: 512] swapped scattered
// blocks that are copied to it: about 217 µs of one core",
    );
    // The last index is one of a batch.
    blocks(
        "(f32[64, 32, 256], f32[32, 48, 256]) [i: 64, j: 48, b: 256 | k: 32] f32 = sum a0[i, k, b] * a1[k, j, b]",
        "matmul batch [b] rows [i] columns [j] inner [k] tiles [i: 64, j: 48, b: 16 of 256, k: 32] many [b] left packed right packed scattered
// blocks that are copied to it: about 1043 µs of one core",
    );
}

/// The loops of a kernel, and what their blocks were weighed against.
#[track_caller]
fn blocks(kernel: &str, expected: &str) {
    let plan: Plan = plan(kernel).parse().unwrap();
    let text = plan.loops_text(plan.steps.last().unwrap());
    let text = text.iter().filter(|line| !line.starts_with("// not "));
    let text: Vec<&str> = text
        .map(|line| line.trim_start_matches("loops r2: "))
        .collect();
    assert_eq!(text.join("\n"), expected, "{kernel}");
    assert_eq!(WithLoops(&plan).to_string().parse::<Plan>().unwrap(), plan);
    assert_eq!(encode::decode(&encode::encode(&plan)).unwrap(), plan);
}

#[test]
fn functions_of_two_elements_are_pairwise() {
    loops(
        "(f32[90, 20], f32[70, 20]) [n: 90, k: 70 | d: 20] f32 = sum let $0 = a0[n, d] - a1[k, d] in $0 * $0",
        "pairwise sum_of_squares by blocks rows [n] columns [k] terms [d]",
    );
    loops(
        "(f32[90, 20], f32[90]) [n: 90 | d: 20] f32 = sum abs(a1[n] - a0[n, d])",
        "pairwise sum_of_distances by lines_to_one turned batch [n] terms [d]",
    );
    loops(
        "(f64[90], f64[90]) [ | d: 90] f64 = sum a0[d] * a1[d]",
        "pairwise sum_of_products by lines terms [d]",
    );
    loops(
        "(f32[40], f32[40, 2000]) [j: 2000 | d: 40] f32 = min a0[d] + a1[d, j]",
        "pairwise least_sum by sums columns [j] terms [d]",
    );
    loops(
        "(f32[90, 9], f32[90, 9]) [n: 90 | d: 9] f32 = sum a0[n, d] * a1[n, d]",
        "strips
// possible, but slower: pairwise; terms: 9, fewer than 16
// not row_reduction: its terms are computed
// not matmul: its terms are no product of two factors",
    );
}

#[test]
fn products_with_a_guard() {
    blocks(
        "(f32[512, 512], f32[512, 512]) [i: 512, j: 512 | k: 512] f32 = sum a0[i, k] * a1[k, j] if k <= i",
        "matmul rows [i] columns [j] inner [k] bounded k by [i]",
    );
    blocks(
        "(f32[512, 512], f32[512, 512]) [i: 512, k: 512 | j: 512] f32 = sum a0[i, j] * a1[k, j] if and(k <= i, k > i - 9)",
        "matmul rows [i] columns [k] inner [j] bounded k by [i]",
    );
    blocks(
        "(f32[512, 512], f32[512, 512], bool[512, 512]) [i: 512, j: 512 | k: 512] f32 = sum a0[i, k] * a1[k, j] if a2[i, k]",
        "loops r3: matmul rows [i] columns [j] inner [k] tiles [i: 32 of 512, j: 256 of 512, k: 512] left copied
// blocks that lie in the result: about 1647 µs of one core
// blocks that are copied to it: about 1654 µs of one core",
    );
    loops(
        "(f32[512, 512], f32[512, 512]) [i: 512, j: 512 | k: 512] f32 = sum a0[i, k] * exp(a1[k, j]) if k <= i",
        "strips
// not scatter: the guard gives no output index a value
// not lookup: the guard gives no reduced index a value
// not scan: the guard compares no reduced with an output index
// not grouped: the guard equates no value of many reduced points with one of an output point
// not matmul: its terms are no product of a factor that is read and one that has the guard's indices",
    );
}

#[test]
fn products_of_looked_up_rows() {
    loops(
        "(f32[50, 8], i64[90], i64[90]) [e: 90 | h: 8] f32 = sum a0[a1[e], h] * a0[a2[e], h]",
        "row_product\n\
         // not pairwise: an element is computed, converted or outside\n\
         // not row_reduction: its terms are computed",
    );
    loops(
        "(f32[50, 8], i64[90, 8], f32[90, 8]) [e: 90 | h: 8] f32 = sum a0[a1[e, h], h] * a2[e, h]",
        "strips\n\
         // not pairwise: an element is computed, converted or outside\n\
         // not row_reduction: its terms are computed\n\
         // not row_product: rows do not follow each other, nor does one list say which they are\n\
         // not gathered_sum: its terms are no neighbouring elements, times numbers of their row\n\
         // not matmul: its terms are no product of two factors",
    );
}

#[test]
fn sums_of_looked_up_rows() {
    loops(
        "(i64[90, 5], f32[50, 8]) [n: 90, h: 8 | l: 5] f32 = mean a1[a0[n, l], h]",
        "gathered_sum\n\
         // not pairwise: its terms are no function of two elements\n\
         // not row_reduction: its terms are computed\n\
         // not row_product: it is no sum of all points",
    );
    loops(
        "(i64[90, 5], f32[50, 4]) [n: 90, h: 4 | l: 5] f32 = sum a1[a0[n, l], h]",
        "strips\n\
         // not pairwise: its terms are no function of two elements\n\
         // not row_reduction: its terms are computed\n\
         // not row_product: its terms are no products of two elements\n\
         // possible, but slower: gathered_sum; elements of a row: 4, fewer than 8\n\
         // not matmul: its terms are no product of two factors",
    );
}

#[test]
fn segments_between_two_ends() {
    loops(
        "(i64[91], f32[900]) [i: 90 | e: 900] f32 = sum a1[e] if and(a0[i] <= e, e < a0[i + 1])",
        "segments e by [i]\n\
         // not scatter: the guard gives no output index a value\n\
         // not lookup: the guard gives no reduced index a value\n\
         // not scan: the guard compares no reduced with an output index\n\
         // not grouped: the guard equates no value of many reduced points with one of an output point",
    );
    // One end, ends that follow from the indices, few points, an index of a row, and a product of matrices, of which blocks are skipped.
    for text in [
        "(i64[91], f32[900]) [i: 90 | e: 900] f32 = norm a1[e] if a0[i] <= e",
        "(f32[900]) [i: 90 | e: 900] f32 = norm a0[e] if and(2 * i <= e, e < 2 * i + 30)",
        "(i64[91], f32[60]) [i: 90 | e: 60] f32 = sum a1[e] if and(a0[i] <= e, e < a0[i + 1])",
        "(i64[91], f32[900, 8]) [k: 8, i: 90 | e: 900] f32 = sum a1[e, k] if and(a0[i] <= e, e < a0[i + 1])",
        "(i64[91], f32[90, 900], f32[900, 70]) [i: 90, k: 70 | e: 900] f32 = sum a1[i, e] * a2[e, k] if and(a0[i] <= e, e < a0[i + 1])",
    ] {
        let kernel: ein_plan::Kernel = text.parse().unwrap();
        let loops = ein_plan::LoopKernel::of_whole(&kernel).kind;
        assert_ne!(loops.name(), "segments", "{text}");
    }
}

#[test]
fn a_computed_matrix_times_a_vector_is_read_once() {
    loops(
        "(f32[512, 300], f32[300]) [i: 512 | k: 300] f32 = sum exp(a0[i, k]) * a1[k]",
        "strips\n\
         // not pairwise: an element is computed, converted or outside\n\
         // not row_reduction: its terms are computed\n\
         // possible, but slower: matmul; a matrix that is computed is multiplied by one vector",
    );
    loops(
        "(f32[512, 300], f32[300]) [i: 512 | k: 300] f32 = sum a0[i, k] * exp(a1[k])",
        "matmul turned columns [i] inner [k] tiles [i: 512, k: 300] left packed\n\
         // not pairwise: an element is computed, converted or outside\n\
         // not row_reduction: its terms are computed\n\
         // blocks that lie in the result: about 12 µs of one core\n\
         // blocks that are copied to it: about 12 µs of one core",
    );
}

#[test]
fn windows_that_would_be_copied_are_read_where_they_are() {
    // The gradient of a kernel of a convolution channel by channel.
    loops(
        "(f32[16, 64, 56, 56], f32[16, 64, 58, 58]) [c: 64, r: 3, s: 3 | n: 16, i: 56, j: 56] f32 = sum a0[n, c, i, j] * a1[n, c, r + i, s + j]",
        "strips\n\
         // not pairwise: neither terms nor columns are neighbours\n\
         // not row_reduction: its terms are computed\n\
         // possible, but slower: matmul; few windows are copied to be multiplied by one vector",
    );
    // A matrix of windows that lies in memory, and windows of many channels.
    loops(
        "(f32[10000], f32[10100]) [k: 100 | t: 10000] f32 = sum a0[t] * a1[t + k]",
        "matmul turned columns [k] inner [t] tiles [k: 100, t: 10000]\n\
         // possible, but slower: pairwise; columns: 100, fewer than 1024\n\
         // not row_reduction: its terms are computed\n\
         // blocks that lie in the result: about 98 µs of one core\n\
         // blocks that are copied to it: about 98 µs of one core",
    );
    loops(
        "(f32[16, 8, 56, 56], f32[16, 4, 58, 58]) [f: 8, c: 4, r: 3, s: 3 | n: 16, i: 56, j: 56] f32 = sum a0[n, f, i, j] * a1[n, c, r + i, s + j]",
        "matmul turned rows [f] columns [c, r, s] inner [n, i, j] tiles [f: 8, c: 4, r: 3, s: 3, n: 1 of 16, i: 8 of 56, j: 56] right packed\n\
         // not pairwise: rows and columns of products make matrices\n\
         // not row_reduction: its terms are computed\n\
         // blocks that lie in the result: about 1367 µs of one core\n\
         // blocks that are copied to it: about 1367 µs of one core",
    );
}

#[test]
fn products_of_points_that_read_at_the_same_place() {
    loops(
        "(f32[180, 64], f32[8, 64, 128], i64[180]) [n: 180, f: 128 | d: 64] f32 = sum a0[n, d] * a1[a2[n], d, f]",
        "gathered_matmul",
    );
    loops(
        "(f32[90, 2, 64], f32[8, 64, 128], i64[90, 2]) [n: 90, k: 2, f: 128 | d: 64] f32 = sum a1[a2[n, k], d, f] * a0[n, k, d]",
        "gathered_matmul",
    );
    loops(
        "(f32[90, 64], f32[8, 64, 128], i64[90, 2]) [n: 90, k: 2, f: 128 | d: 64] f32 = sum a0[n, d] * a1[a2[n, k], d, f]",
        "gathered_matmul",
    );
    // A matrix for nearly each point; small matrices; rows of a point beside it.
    loops(
        "(f32[9, 64], f32[8, 64, 128], i64[9]) [n: 9, f: 128 | d: 64] f32 = sum a0[n, d] * a1[a2[n], d, f]",
        "matmul turned batch [n] columns [f] inner [d] tiles [n: 1 of 9, f: 128, d: 64] right packed
// possible, but slower: gathered_matmul; points of a place: 1, fewer than 2
// blocks that lie in the result: about 44 µs of one core
// blocks that are copied to it: about 45 µs of one core",
    );
    loops(
        "(f32[90, 16], f32[8, 16, 8], i64[90]) [n: 90, f: 8 | d: 16] f32 = sum a0[n, d] * a1[a2[n], d, f]",
        "strips
// possible, but slower: gathered_matmul; multiplications of a place: 1408, fewer than 131072
// possible, but slower: matmul; multiplications: 128, fewer than 4096",
    );
    loops(
        "(f32[90, 64], f32[90, 128], i64[90]) [e: 3, d: 64, f: 128 | n: 90] f32 = sum a0[n, d] * a1[n, f] if a2[n] == e",
        "scattered_matmul",
    );
    loops(
        "(f32[90, 64], f32[90], i64[90]) [e: 3, d: 64 | n: 90] f32 = sum a0[n, d] * a1[n] if a2[n] == e",
        "scatter [e]
// possible, but slower: scattered_matmul; rows or columns: 1, fewer than 4",
    );
    loops(
        "(f32[90, 20, 64], f32[8, 64, 128], i64[90]) [n: 90, t: 20, f: 128 | d: 64] f32 = sum a0[n, t, d] * a1[a2[n], d, f]",
        "matmul batch [n] rows [t] columns [f] inner [d] tiles [n: 1 of 90, t: 20, f: 128, d: 64] right packed
// not pairwise: an element is computed, converted or outside
// not row_reduction: its terms are computed
// not row_product: rows do not follow each other, nor does one list say which they are
// not gathered_sum: its terms are no neighbouring elements, times numbers of their row
// blocks that lie in the result: about 574 µs of one core
// blocks that are copied to it: about 643 µs of one core",
    );
}

#[test]
fn neighbours_are_reduced_row_by_row() {
    loops(
        "(f32[90, 200]) [n: 90 | d: 200] f32 = max a0[n, d]",
        "row_reduction
// not pairwise: its terms are no function of two elements",
    );
    loops(
        "(f32[90, 200], f32[90]) [n: 90 | d: 200] f32 = logsumexp a0[n, d] - a1[n]",
        "row_reduction differences
// not pairwise: its terms are no function of two elements",
    );
    loops(
        "(f32[200, 90]) [n: 90 | d: 200] f32 = max a0[d, n]",
        "strips
// not pairwise: its terms are no function of two elements
// not row_reduction: the terms of a row are no neighbours
// not matmul: it is no sum",
    );
}

#[test]
fn guards_make_scatters_and_scans() {
    loops(
        "(f32[90, 4], i64[90]) [v: 7, d: 4 | n: 90] f32 = sum a0[n, d] if a1[n] == v",
        "scatter [v]",
    );
    loops(
        "(f32[90]) [n: 90 | m: 90] f32 = sum a0[m] if m <= n",
        "scan m along n inclusive
// not scatter: the guard gives no output index a value
// not lookup: the guard gives no reduced index a value",
    );
    loops(
        "(f32[80]) [n: 90 | m: 80] f32 = logsumexp a0[m] if and(m != 7, n < m)",
        "scan m against n
// not scatter: what is reduced needs more than one number
// not lookup: the guard gives no reduced index a value",
    );
    loops(
        "(f64[9, 4], i64[]) [j: 4 | i: 9, k: 2] f64 = max a0[i, j] if i == a1[]",
        "strips at [i = a1]
// not scatter: the guard gives no output index a value
// not lookup: the guard gives no reduced index a value
// not scan: the guard compares no reduced with an output index
// not grouped: the guard equates no value of many reduced points with one of an output point
// not matmul: it is no sum",
    );
}

#[test]
fn guards_make_groups() {
    let not = "
// not scatter: the guard gives no output index a value
// not lookup: the guard gives no reduced index a value
// not scan: the guard compares no reduced with an output index";
    loops(
        "(f32[90], i64[90]) [n: 90 | m: 90] f32 = sum a0[m] if a1[m] == a1[n]",
        &format!("grouped [n]{not}"),
    );
    loops(
        "(f32[90, 4], i64[90]) [n: 90, d: 4 | m: 90] f32 = sum a0[m, d] if and(n < m, a1[m] == a1[n])",
        &format!("grouped [n] scan m against n{not}"),
    );
    // Few are looked at sooner than grouped; a value of each pair is no key; what is chosen is no total.
    for kernel in [
        "(f32[9], i64[9], i64[90]) [n: 90 | m: 9] f32 = sum a0[m] if a1[m] == a2[n]",
        "(f32[90], i64[90, 90]) [n: 90 | m: 90] f32 = sum a0[m] if a1[m, n] == m",
    ] {
        let reason = "
// not grouped: the guard equates no value of many reduced points with one of an output point
// not matmul: its terms are no product of two factors";
        loops(kernel, &format!("strips{not}{reason}"));
    }
}

#[test]
fn guards_make_lookups() {
    loops(
        "(f32[90, 4], i64[7]) [n: 7, h: 4 | v: 90] f32 = max a0[v, h] if v == within(a1[n], 90)",
        "lookup [v]
// not scatter: the guard gives no output index a value",
    );
    // Of two indices each, one follows from the other.
    loops(
        "(f32[90, 80], i64[7], i64[80]) [n: 7 | v: 90, w: 80] f32 = sum a0[v, w] if and(v == a2[w], w == a1[n])",
        "lookup [v]
// not scatter: the guard gives no output index a value",
    );
    // The number of what is chosen is not known from one value.
    loops(
        "(f32[90], i64[7]) [n: 7 | v: 90] i64 = argmax a0[v] if v == a1[n]",
        "strips
// not scatter: what is reduced needs more than one number
// not lookup: the guard gives no reduced index a value
// not scan: the guard compares no reduced with an output index
// not grouped: the guard equates no value of many reduced points with one of an output point
// not matmul: it is no sum",
    );
}

#[test]
fn work_is_counted_as_loops_do_it() {
    for (kernel, expected) in [
        // Added up once for each point and element of a row.
        (
            "(f32[90, 4], i64[90]) [v: 7, d: 4 | n: 90] f32 = sum a0[n, d] if a1[n] == v",
            90 * 4,
        ),
        // A function and an addition.
        (
            "(f32[90, 4], i64[90]) [v: 7, d: 4 | n: 90] f32 = sum exp(a0[n, d]) if a1[n] == v",
            90 * 4 * 9,
        ),
        // A condition besides is evaluated at each point.
        (
            "(f32[90, 4], i64[90]) [v: 7, d: 4 | n: 90] f32 = sum a0[n, d] if and(a1[n] == v, n < 8)",
            90 * 4 * 2,
        ),
        // One value for each point of the output.
        (
            "(f32[90, 4], i64[7]) [n: 7, h: 4 | v: 90] f32 = max a0[v, h] if v == a1[n]",
            7 * 4,
        ),
        // One value in all.
        (
            "(f64[9, 4], i64[]) [j: 4 | i: 9] f64 = max a0[i, j] if i == a1[]",
            4,
        ),
        // Taken in once each, whatever the place of the result.
        (
            "(f32[90, 3]) [n: 80, d: 3 | m: 90] f32 = sum a0[m, d] if m <= n",
            90 * 3,
        ),
        (
            "(f32[90, 3]) [n: 80, d: 3 | m: 90] f32 = sum -a0[m, d] if and(m != 4, n < m)",
            90 * 3 * 3,
        ),
        // Once for its group.
        (
            "(f32[90], i64[90]) [n: 70 | m: 90] f32 = sum -a0[m] if and(m <= n, a1[m] == a1[n])",
            90 * 3,
        ),
        // All points.
        (
            "(f32[90], i64[90]) [v: 7 | n: 90] f32 = sum a0[n] if a1[n] < v",
            7 * 90 * 2,
        ),
    ] {
        let plan: Plan = plan(kernel).parse().unwrap();
        let step = plan.steps.last().unwrap();
        assert_eq!(ein_plan::work::of_step(&plan, step), expected, "{kernel}");
    }
}

#[test]
fn what_lies_at_fixed_places_is_selected() {
    loops(
        "(f32[9, 4], i64[]) [j: 4 | i: 9] f32 = max a0[i, j] if i == a1[]",
        "selection at [i = a1]",
    );
    loops(
        "(f32[9, 4], i64[]) [| i: 9, j: 4] f32 = max a0[i, j] if and(i == a1[], j == 3)",
        "selection at [j = 3, i = a1]",
    );
}

#[test]
fn what_is_not_reduced_is_elementwise_or_gathered() {
    loops(
        "(f32[9, 4]) [i: 9, j: 4] f32 = exp(a0[i, j])",
        "elementwise",
    );
    loops(
        "(f32[9, 4], i64[5]) [i: 5, j: 4] f32 = a0[a1[i], j]",
        "gather",
    );
    loops(
        "(f32[9, 4], i64[5], f32[5, 4]) [i: 5, j: 4] f32 = a0[a1[i], j] else (a2[i, j])",
        "patched",
    );
}

#[test]
fn members_of_a_sweep_compute_the_differences_that_they_read() {
    let text = "plan for 1 sites
kernel k0 (f32[400, 640]) [n: 400 | d: 640] f32 = mean a0[n, d]
kernel k1 (f32[400, 640], f32[400]) [n: 400, d: 640] f32 = a0[n, d] - a1[n]
kernel k2 (f32[400, 640]) [n: 400 | d: 640] f32 = mean a0[n, d] * a0[n, d]
kernel k3 (f32[400, 640], f32[400]) [n: 400, d: 640] f32 = a0[n, d] * rsqrt(a1[n] + 0.001)
r0 x: {} f32[400, 640] @ ALL = source x from unbound
r1 m: {} f32[400] @ ALL = join k0(r0{}) over [_, _]
r2 c: {} f32[400, 640] @ ALL = join k1(r0{}, r1{}) over [_, _]
r3 v: {} f32[400] @ ALL = join k2(r2{}) over [_, _]
r4 y: {} f32[400, 640] @ ALL = join k3(r2{}, r3{}) over [_, _]
sweep r1, r2, r3, r4 rows 1
output y = r4: f32[400, 640]
";
    let mut plan: Plan = text.parse().unwrap();
    let ends = ein_plan::lifetime::ends(&plan);
    for (step, frees) in plan.steps.iter_mut().zip(ends.steps) {
        step.frees = frees;
    }
    plan.schedule();
    verify(&plan).unwrap();
    let printed = WithLoops(&plan).to_string();
    let lines: Vec<&str> = printed
        .lines()
        .map(str::trim)
        .filter(|l| l.starts_with("loops"))
        .collect();
    let expected = "loops r1: row_reduction
loops r2: inlined
loops r3: pairwise sum_of_squares by lines_to_one batch [n] terms [d] of [m1 0, m1 1] as (f32[400, 640], f32[400]) [n: 400 | d: 640] f32 = mean let $0 = a0[n, d] - a1[n] in $0 * $0
loops r4: elementwise of [m1 0, m3 1, m1 1] as (f32[400, 640], f32[400], f32[400]) [n: 400, d: 640] f32 = (a0[n, d] - a2[n]) * rsqrt(a1[n] + 0.001)";
    assert_eq!(lines.join("\n"), expected);
    assert_eq!(printed.parse::<Plan>().unwrap(), plan);
    assert_eq!(plan.to_string().parse::<Plan>().unwrap(), plan);
    assert_eq!(encode::decode(&encode::encode(&plan)).unwrap(), plan);
    // Whoever reads an inlined member has to compute it; that is what is verified, and not that it is fast.
    let other = printed
        .replace("inlined", "elementwise")
        .parse::<Plan>()
        .unwrap();
    let error = verify(&other).unwrap_err().to_string();
    assert_eq!(error, "r3: its loops are of another kernel");
}

/// Returns the verifier's message for a plan with these loops of the product above.
#[track_caller]
fn refused(loops: &str, expected: &str) {
    let kernel = "(f32[64, 32], f32[32, 48]) [i: 64, j: 48 | k: 32] f32 = sum a0[i, k] * a1[k, j]";
    let text = plan(kernel).replace("\noutput", &format!("\nloops {loops}\noutput"));
    let plan: Plan = text.parse().unwrap();
    assert_eq!(verify(&plan).unwrap_err().to_string(), expected);
    let bytes = encode::decode(&encode::encode(&plan)).unwrap_err();
    assert_eq!(
        bytes.to_string(),
        format!("the plan is damaged: {expected}")
    );
}

#[test]
fn loops_that_do_not_fit_are_refused() {
    refused(
        "r2: library",
        "r2: loops of kind library: the kernel is no library",
    );
    refused(
        "r2: row_reduction",
        "r2: loops of kind row_reduction: its terms are computed",
    );
    refused(
        "r2: matmul rows [j] columns [i] inner [k]",
        "r2: loops of kind matmul: the kernel is another matmul",
    );
    refused(
        "r2: matmul rows [i] columns [j] inner [k] tiles [i: 60 of 64, j: 48, k: 32]",
        "r2: loops of kind matmul: its blocks are none of this matmul",
    );
    refused(
        "r2: strips at [k = 3]",
        "r2: its loops run over other points than the guard's",
    );
    let text = plan("(f32[9]) [i: 9] f32 = exp(a0[i])");
    let error = text
        .replace("output", "loops r0: strips\noutput")
        .parse::<Plan>()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "5:7: expected a join that stands before its loops"
    );
    let mut plan: Plan = text.parse().unwrap();
    plan.loops.clear();
    assert_eq!(
        verify(&plan).unwrap_err().to_string(),
        "r1: it has no loops"
    );
}
