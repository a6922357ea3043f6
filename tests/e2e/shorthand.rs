//! Lists of numbers, counts, positions over several indices, scatters that drop, assertions on data, `--check-nan` and archives of outputs:
//! each against the values that plain arithmetic gives, on 1 to 5 sites.

use einc_tests::everywhere::{self, SITES};
use einc_tests::{einc, run};
use std::path::Path;
use std::process::Command;

fn written(folder: &Path, text: &str) -> String {
    let program = folder.join("p.ein");
    std::fs::write(&program, text).unwrap();
    program.display().to_string()
}

/// Returns the text that a program prints, which is the same on any number of sites.
fn printed(text: &str) -> String {
    everywhere::printed(&[("p.ein", text)])
}

#[test]
fn lists_are_tensors() {
    let text = "dim N = 3, M = 5
const w = [1, -2, 1]
const K = [[0.5, 1], [2, M]]
flags = [true, false, true]
input x: f32[M] = iota
input y: f64[M] = iota
param p: f32[2] = [3, 4]
second[i < M - 2] = (sum[r < 3] x[i + r]^2 * w[r])
double[i < M - 2] = (sum[r < 3] y[i + r]^2 * w[r])
both[i] = K[i,j] * p[j]
chosen = sum[i] where(flags[i], w[i], 0)
repeat t < 3 { state s = [1.0, 2.0]; next s[i] = 2 * s[i] }
output second; output double; output both; output chosen; output s; output w
";
    let expected = "second = [2. 2. 2.]
double = [2. 2. 2.]
both = [ 5.5 26. ]
chosen = 2
s = [ 8. 16.]
w = [ 1 -2  1]
";
    assert_eq!(printed(text), expected);
}

#[test]
fn counts_and_positions() {
    let text = "input A: f32[7, 6] = iota
B[i,j] = (A[i,j] * 17) % 41
n = count[i,j] (B[i,j] > 20)
rows[i] = count[j] (B[i,j] > 20)
same = n - (sum[i] rows[i])
best = argmax[i,j] B[i,j]
worst = argmin[i,j] B[i,j]
high = (max[i,j] B[i,j]) - B[best / 6, best % 6]
low = (min[i,j] B[i,j]) - B[worst / 6, worst % 6]
ties = argmax[i,j] (B[i,j] - B[i,j])
tail = argmax[i, j <= i] (B[i,j] * 1)
fits = best == argmax[k < 42] B[k / 6, k % 6]
few = argmax[k < 2, i, j] B[i,j] * k
deep = few - 42 == best
e = argmin[i, j < i] (B[i,j] - B[i,j] + inf)
g = argmax[i < 4, j < 2] f64(argmin[k <= i] (B[k,0] + B[i,j]))
h[i < 4, j < 2] = argmin[k <= i] (B[k,0] + B[i,j])
same_best = g == argmax[i, j] h[i,j]
f = argmax[i, j < i] min(i64(B[i,j]), -9223372036854775807 - 1)
output n; output same; output high; output low; output ties; output fits; output deep; output tail; output e; output f; output same_best
";
    // 17 k mod 41 for k = 0 .. 41, as the rows of B.
    let value = |k: i64| (k * 17) % 41;
    let n = (0..42).filter(|k| value(*k) > 20).count();
    let lower = (0..42).filter(|k| k % 6 <= k / 6);
    let tail = lower.max_by_key(|k| (value(*k), -k)).unwrap();
    let expected = format!(
        "n = {n}\nsame = 0\nhigh = 0.0\nlow = 0.0\nties = 0\nfits = true\ndeep = true\ntail = {tail}\ne = 6\nf = 6\nsame_best = true\n"
    );
    assert_eq!(printed(text), expected);
}

#[test]
fn ranges_by_quotients_and_remainders_of_other_indices() {
    let text = "dim N = 7
input x: f64[N] = iota
a[i < N] = sum[k <= i / 2] (x[i - k] else 0)
b[i < N] = sum[k < min(i + 1, 3)] (x[i - k] else 0) * (k + 1)
c[i < N] = sum[k <= (i + 1) % 3 + i / 3] (k + 1)
output a; output b; output c
";
    let terms = |most: &dyn Fn(i64) -> i64, term: &dyn Fn(i64, i64) -> i64| -> Vec<i64> {
        let sum = |i: i64| (0..most(i)).map(|k| term(i, k)).sum();
        (0..7).map(sum).collect()
    };
    let floats = |values: Vec<i64>| {
        let values: Vec<String> = values.iter().map(|v| format!("{v:>2}.")).collect();
        format!("[{}]", values.join(" "))
    };
    let a = floats(terms(&|i| i / 2 + 1, &|i, k| i - k));
    let b = floats(terms(&|i| (i + 1).min(3), &|i, k| (i - k) * (k + 1)));
    let c = terms(&|i| (i + 1) % 3 + i / 3 + 1, &|_, k| k + 1);
    let c: Vec<String> = c.iter().map(|v| format!("{v:>2}")).collect();
    let expected = format!("a = {a}\nb = {b}\nc = [{}]\n", c.join(" "));
    assert_eq!(printed(text), expected);
}

/// The best row is the same in every column, also where only one branch of a `where` reads it.
#[test]
fn positions_within_conditions() {
    let text = "input a: i64[2, 3] = [[2, 5, 2], [5, 1, 1]]
input b: i64[2, 4] = 1
p[k < 2] = argmax[i, j] where(a[i,j] < 2, b[i, k % 4], a[i,j])
q = argmin[i, j] where(a[i,j] > 1, -a[i,j], b[i, i % 4])
output p; output q
";
    assert_eq!(printed(text), "p = [1 1]\nq = 1\n");
}

/// Values are not rounded or wrapped before they are compared, over several indices as over one.
#[test]
fn positions_of_values_in_narrow_types() {
    let text = "input x: u16[3] = iota
input h: f16[3] = 60000
one = argmax[i] -x[i]
two = argmax[i, j < 2] -x[i]
three = argmin[j < 2, i, k < 2] -x[i]
high = argmax[i, j < 2] h[i] * (i + 1)
output one; output two; output three; output high
";
    assert_eq!(printed(text), "one = 0\ntwo = 0\nthree = 4\nhigh = 4\n");
}

#[test]
fn scatters_drop_what_has_no_place() {
    let text = "dim N = 9
input at: i64[N] = iota
input x: f64[N] = iota
to[n] = at[n] * 2 - 5
g[to[n]] else drop: f64[6] += x[n]
top[to[n], k]else drop: f64[6, 2] max= x[n] * (k + 1)
shifted[n - 3] else drop: f64[4] += x[n]
loss = (sum[v] g[v] * (v + 1)) + (sum[v] shifted[v]^2)
d = grad(loss, x)
left[n] = where(0 <= to[n] < 6, f64(to[n] + 1), 0) + where(0 <= n - 3 < 4, 2 * x[n], 0)
wrong = norminf[n] (d[n] - left[n])
output g; output top; output shifted; output wrong
";
    let expected = "g = [0. 3. 0. 4. 0. 5.]
top = [[-inf -inf]
       [  3.   6.]
       [-inf -inf]
       [  4.   8.]
       [-inf -inf]
       [  5.  10.]]
shifted = [3. 4. 5. 6.]
wrong = 0.0
";
    assert_eq!(printed(text), expected);
}

#[test]
fn assertions_look_at_data() {
    let folder = tempfile::tempdir().unwrap();
    let text = "input x: f32[4] = iota
input low: f32 = 0
assert all[i] (x[i] >= low), \"x must not be below low\"
assert (sum[i] x[i]) < 100
y[i] = sqrt(x[i] - low)
output y -> \"y.npy\"
output low
";
    let program = written(folder.path(), text);
    for sites in SITES {
        let start = |low: &str| {
            let mut command = Command::new(einc_tests::einc_path());
            let low = format!("low={low}");
            let arguments = ["run", &program, "--sites", sites, "--input", &low];
            run(command.args(arguments).current_dir(folder.path()))
        };
        start("-1").success();
        let file = folder.path().join("y.npy");
        std::fs::remove_file(&file).unwrap();
        let stopped = start("1").fails_with(1);
        assert_eq!(stopped.stdout, "");
        stopped.says(&[
            "E0727",
            "x must not be below low",
            "p.ein:3",
            "asserted here",
        ]);
        assert!(!file.exists());
    }
    let large = ["run", &program, "--input", "x=50"];
    einc(&large)
        .fails_with(1)
        .says(&["`(sum[i] x[i]) < 100` does not hold"]);
    let plan = einc(&["plan", &program]).success().stdout;
    assert!(
        plan.contains("asserts \"x must not be below low\""),
        "{plan}"
    );
}

#[test]
fn the_first_nan_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = "input x: f64[3, 40] = iota
a[i,j] = x[i,j] - 46
b[i,j] = sqrt(a[i,j] * a[i,j]) - 1
c[i,j] = where(j == 6, log(b[i,j]), 0)
d = sum[i,j] c[i,j]
output d
";
    let program = written(folder.path(), text);
    for sites in SITES {
        let arguments = ["run", &program, "--sites", sites];
        einc(&arguments).success();
        let found = einc(&[&arguments[..], &["--check-nan"]].concat()).fails_with(1);
        found.says(&["E0728", "NaN", "p.ein:4"]);
    }
    let fine = ["run", &program, "--check-nan", "--input", "x=7"];
    einc(&fine).success();
}

#[test]
fn outputs_share_an_archive() {
    let folder = tempfile::tempdir().unwrap();
    let text = "input x: f32[5, 3] = iota
y[i] = sum[j] x[i,j]
n = 7
output y; output n; output x
";
    let program = written(folder.path(), text);
    let archive = folder.path().join("all.npz");
    let file = archive.display().to_string();
    let back = folder.path().join("q.ein");
    let text = "input x: f32[5, 3] = load(\"all.npz\", \"x\")
input y: f32[5] = load(\"all.npz\", \"y\")
input n: i64 = load(\"all.npz\", \"n\")
wrong = norminf[i] (y[i] - sum[j] x[i,j])
output wrong; output n
";
    std::fs::write(&back, text).unwrap();
    for sites in SITES {
        einc(&["run", &program, "--sites", sites, "--save", &file]).success();
        let read = einc(&["run", &back.display().to_string()]).success();
        assert_eq!(read.stdout, "wrong = 0.0\nn = 7\n");
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert_eq!(left.len(), 3, "{left:?}");
    }
    einc(&["run", &program, "--save", "all.npy"])
        .fails_with(2)
        .says(&["FILE.npz"]);
    let (one, two) = (format!("y={file}"), format!("x={file}"));
    einc(&["run", &program, "--save", &one, "--save", &two]).success();
}

#[test]
fn bits_of_integers() {
    let text = "input a: i32[6] = [5, -7, 0, 1_000_000, -1, 2_147_483_647]
input b: i64[6] = iota
input c: u32[3] = [4_000_000_000, 7, 65_536]
const mask = 1 << 4 | 3
both[i] = a[i] & 255
either[i] = b[i] | 8
one[i] = a[i] xor -1
left[i] = a[i] << 3
right[i] = a[i] >> 2
none[i] = b[i] << (b[i] - 3)
far[i] = a[i] >> 40
ones[i] = popcount(a[i])
high[i] = c[i] >> 16
loose[i] = b[i] + 1 & 3 << 1 | 1 xor 1
output both; output either; output one; output left; output right; output none; output far; output ones
output high; output loose; output mask
";
    let expected = "both = [  5 249   0  64 255 255]
either = [ 8  9 10 11 12 13]
one = [         -6           6          -1    -1000001           0
       -2147483648]
left = [     40     -56       0 8000000      -8      -8]
right = [        1        -2         0    250000        -1 536870911]
none = [ 0  0  0  3  8 20]
far = [ 0 -1  0  0 -1  0]
ones = [ 2 30  0  7 32 31]
high = [61035     0     1]
loose = [0 2 2 4 4 6]
mask = 19
";
    assert_eq!(printed(text), expected);
}

/// A conversion to a narrow type stores its value, also where it is of that type already: arithmetic on narrow values is wider.
#[test]
fn conversions_to_the_type_of_an_expression_store_it() {
    let program = "input x: i8[3] = [100, 127, -128]
input u: u8[3] = [200, 255, 3]
input h: f16[2] = [1, 3]
input w: u32[2] = [4294967295, 7]
a[i] = i32(i8(x[i] * x[i]))
b[i] = i8(x[i] + x[i]) > 127
c[i] = i32(u8(u[i] + u[i]))
e[i] = f32(f16(h[i] / 3)) == f32(h[i]) / 3
s = sum[i] i8(x[i] + x[i])
d[i] = i64(u32(w[i] + 1))
k[i] = i32(i8(i8(x[i]) + x[i])) - i32(i8(x[i]))
output a
output b
output c
output e
output s
output d
output k
";
    let expected = "a = [16  1  0]
b = [false false false]
c = [144 254   6]
e = [false  true]
s = -58
d = [0 8]
k = [-156 -129  128]
";
    assert_eq!(printed(program), expected);
}

/// Indices, counters and numbers have no type of their own: a conversion to a narrow one stores them, too.
#[test]
fn conversions_of_numbers_without_a_type_store_them() {
    let program = "a[i < 4] = i64(i8(i + 126))
b = sum[i < 4] f64(u8(i - 1))
c[i < 2] = where(i8(i + 127) > 0, 1, 0)
repeat t < 3 { state s = 0.0; next s = s + f64(u8(t + 255)) }
d[i < 2] = f64(f16(i + 0.1))
fn f(v) = f64(u8(v))
e[i < 3] = f(i + 254)
g = f64(bf16(0.1))
h[i < 3] = i64(u32(i + 4294967294))
k[i < 2] = i64(u16(i % 2 + 65535))
output a; output b; output c; output s; output d; output e; output g; output h; output k
";
    let expected = "a = [ 126  127 -128 -127]
b = 258.0
c = [1 0]
s = 256.0
d = [0.09997559 1.09960938]
e = [254. 255.   0.]
g = 0.10009765625
h = [4294967294 4294967295          0]
k = [65535     0]
";
    assert_eq!(printed(program), expected);
}

/// `min` and the like take the numbers themselves and wrap the result; a position is the wrapped number.
#[test]
fn numbers_without_a_type_wrap_where_they_are_converted() {
    let program = "dim N = 300
input x: f64[N] = iota
input n: u64 = 9223372036854775808
a[i < N] = u8(min(i, 100))
b[i < N] = i8(sign(i - 120))
c[i < N] = u8(max[j <= i] j)
d[i < N]: u8[N] = max(i - 10, 0)
e[i < N] = x[u8(i)]
f[i < 3] = x[i8(i + 255)] else 5
loss = sum[i < N] x[u8(i)] * f64(i)
g = grad(loss, x)
h[i < 3] = i32(2^31 + i)
k = sum[j < n] x[j]
repeat t < n until s > 4 { state s = 0; next s = s + 1 }
l[i < 4] = max[j <= u64(i - 3)] x[j]
m[i < 4] = x[u64(i) + 1]
a256 = a[256]; b200 = b[200]; c256 = c[256]; d270 = d[270]; e256 = e[256]; g0 = g[0]
output a256; output b200; output c256; output d270; output e256; output f; output g0; output h; output k; output s; output l; output m
";
    let expected = "a256 = 100
b200 = 1
c256 = 0
d270 = 4
e256 = 0.0
f = [5. 0. 1.]
g0 = 256.0
h = [-2147483648 -2147483647 -2147483646]
k = 44850.0
s = 6
l = [299. 299. 299.   0.]
m = [1. 2. 3. 4.]
";
    assert_eq!(printed(program), expected);
}

/// An index is compared as it is, also with integers that do not hold all its values.
#[test]
fn indices_are_compared_whole() {
    let program = "dim N = 300
input k: i8[N] = zeros
input u: u8[N] = iota
input w: i32[N] = iota
input x: f64[N] = ones
a = count[i] (i < k[i])
b = count[i] (i == k[i])
c = count[i] (u[i] == i)
d = count[i] (i + 1 == w[i] + 1)
e[i < 3] = sum[n] where(w[n] == i, x[n], 0)
f[i < N] = sum[n] where(u[n] == i, x[n], 0)
g = f[256]; h = sum[i] f[i]
repeat t < N { state s = 0; next s = s + where(t == k[0], 1, 0) }
output a; output b; output c; output d; output e; output g; output h; output s
";
    let expected = "a = 0
b = 1
c = 256
d = 300
e = [1. 1. 1.]
g = 0.0
h = 300.0
s = 1
";
    assert_eq!(printed(program), expected);
}

/// Whole numbers of 64 bits have an order in scatters, and are rounded once.
#[test]
fn numbers_of_64_bits() {
    let program = "input x: u64[4] = [1, 18446744073709551615, 9223372036854775808, 7]
input n: i64[1] = [4611686293305294849]
k[i < 4] = i % 2
h[k[i]]: u64[3] max= x[i]
l[k[i]]: u64[3] min= x[i]
a = h[0] == 9223372036854775808 and h[1] == 18446744073709551615 and h[2] == 0
b = l[0] == 1 and l[1] == 7 and l[2] == 18446744073709551615
const one = f32(4611686293305294849)
c = f64(one) == 4611686568183201792
d[i] = f64(f32(n[i])) == 4611686568183201792
output a; output b; output c; output d
";
    assert_eq!(
        printed(program),
        "a = true\nb = true\nc = true\nd = [true]\n"
    );
}

/// Beside narrow values an index is a number of the type in which these are computed.
#[test]
fn indices_are_computed_with_narrow_values() {
    let program = "dim N = 300
input k: i8[N] = full(5)
input u: u8[N] = full(2)
input m: bf16[N] = ones
input x: f64[N] = iota
a = max[i] i64(i + k[i])
b = max[i] i64(i * k[i] - div(i, 3))
c = max[i] i8(i + k[i])
d[i < 2] = f64(m[i] * (i + 257))
e[i < 2] = x[i + 290 + u[i]]
f = sum[i] f32(where(i > 298, i + u[i], 0))
repeat t < N { state s = 0; next s = max(s, i64(t * u[0])) }
g[i] = k[i] + i
h = g[299]
p = i64(popcount(k[0] - 6)) + i64(popcount(u[0]))
output a; output b; output c; output d; output e; output f; output h; output s; output p
";
    let expected = "a = 304
b = 1396
c = 127
d = [257. 258.]
e = [292. 293.]
f = 301.0
h = 48
s = 598
p = 9
";
    assert_eq!(printed(program), expected);
}

/// An index runs as far as its own bound lets it, wherever else it is a bound.
#[test]
fn bounds_of_bounds_cut_no_index() {
    let program = "dim N = 9; dim M = 3
input q: f64[M] = ones
a[i < N] = sum[a < i] (sum[b < a] q[b])
c[i < N] = sum[a < i, b <= a] q[b]
s[a < N] = sum[b < a] q[b]
d[i < N] = sum[a < i] s[a]
output a; output c; output d
";
    let expected = "a = [ 0.  0.  1.  3.  6.  9. 12. 15. 18.]
c = [ 0.  1.  3.  6.  9. 12. 15. 18. 21.]
d = [ 0.  0.  1.  3.  6.  9. 12. 15. 18.]
";
    assert_eq!(printed(program), expected);
}

#[test]
fn narrow_integers_are_stored_and_wrap() {
    let text = "input x: f32[5] = [-1e9, -200.5, 3.9, 300, 1e10]
input u: u16[3] = [65_535, 1, 40_000]
a[i] = i8(x[i]); b[i] = i16(x[i]); c[i] = u16(x[i]); d[i] = u32(x[i])
twice[i] = u[i] + u[i]
all = sum[i] u[i]
back[i] = f64(d[i])
most = max[i] u[i]
at = argmax[i] c[i]
output a; output b; output c; output d; output twice; output all; output back; output most; output at
";
    let expected = "a = [-128 -128    3  127  127]
b = [-32768   -200      3    300  32767]
c = [    0     0     3   300 65535]
d = [         0          0          3        300 4294967295]
twice = [65534     2 14464]
all = 105536
back = [0.000000000e+00 0.000000000e+00 3.000000000e+00 3.000000000e+02
     4.294967295e+09]
most = 65535
at = 4
";
    let said = printed(text);
    let (told, wanted): (Vec<&str>, Vec<&str>) = (
        said.split_whitespace().collect(),
        expected.split_whitespace().collect(),
    );
    let cut = |words: &[&str]| words[..words.iter().position(|w| *w == "back").unwrap()].join(" ");
    assert_eq!(cut(&told), cut(&wanted));
    assert!(said.contains("most = 65535\nat = 4\n"), "{said}");
    let folder = tempfile::tempdir().unwrap();
    let program = written(
        folder.path(),
        "const w: i16[2, 2] = [[-5, 6], [7, 32767]]\ninput x: i8[3] = [1, -2, 3]\ny[i,j] = w[j,i]\nz[i] = x[i]\noutput y; output z\n",
    );
    let file = folder.path().join("y.npz").display().to_string();
    einc(&["run", &program, "--save", &file]).success();
    let back = written(
        folder.path(),
        "input y: i16[2, 2] = load(\"y.npz\", \"y\")\ninput z: i8[3] = load(\"y.npz\", \"z\")\noutput y; output z\n",
    );
    let said = einc(&["run", &back, "--sites", "2"]).success().stdout;
    assert_eq!(
        said,
        "y = [[   -5     7]\n     [    6 32767]]\nz = [ 1 -2  3]\n"
    );
}

#[test]
fn bounds_that_name_other_indices_are_ranges() {
    let text = "input x: f32[5] = iota
v[i < 5] = sum[j < 5 - i] x[i + j]
w[i < 3] = sum[j <= i + 2, k < j] f32(j * k)
output v
output w
";
    assert_eq!(
        printed(text),
        "v = [10. 10.  9.  7.  4.]\nw = [ 2. 11. 35.]\n"
    );
}

#[test]
fn more_selected_places_than_room_stop_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let text = "use std.select
input x: f32[9] = iota
large[n] = x[n] > 4
at, count = select.nonzero(large, room: 3)
output at
output count
";
    let program = written(folder.path(), text);
    for sites in SITES {
        let finished = einc(&["run", &program, "--sites", sites]);
        finished.fails_with(1).says(&[
            "position 3 is outside `at`, whose dimension 1 has positions 0 to 2; at n = 8",
            "p.ein:4:1",
        ]);
    }
}

#[test]
fn scans_are_recurrences() {
    let text = "dim T = 4
input x: f64[T, 2] = iota
input w: f64 = 0.5
H[t, i] = scan[t < T](h: 10 * (i + 1.0), w * h[i] + x[t,i])
run[t] = scan[t < T](s: 0.0, s + x[t,0])
fn each(x[n, d]) -> y[n, d] { y[t, k] = scan[t < size(n)](h: x[0,k], max(h[k], x[t,k] - 3)) }
most = each(x)
loss = sum[i] H[3,i]
g = grad(loss, w)
at[i] = H[3,i]
third[k] = most[2,k]
output at; output run; output third; output g
";
    // w^4 h + w^3 x0 + w^2 x1 + w x2 + x3 of both columns at w = 1/2, and its derivative by w.
    let expected = "at = [ 9.125 11.625]
run = [ 0.  2.  6. 12.]
third = [1. 2.]
g = 29.75
";
    assert_eq!(printed(text), expected);
}

#[test]
fn assertions_of_functions_look_at_data() {
    let folder = tempfile::tempdir().unwrap();
    let text = "input X: f32[3, 4] = iota
input low: f32 = 0
fn root(x[n], low) -> y[n] {
  assert all[n] (x[n] >= low), \"root takes numbers from low on\"
  y[n] = sqrt(x[n] - low)
}
Y[p, n] = root(X[p], low)[n]
Z[p, n] = root(X[p], 100)[n]
output Y
";
    let program = written(folder.path(), text);
    for sites in SITES {
        let start = |low: &str, more: &[&str]| {
            let low = format!("low={low}");
            let mut arguments = vec!["run", program.as_str(), "--sites", sites, "--input", &low];
            arguments.extend(more);
            einc(&arguments)
        };
        // What no output needs is not tested.
        start("-1", &[]).success();
        let stopped = start("1", &[]).fails_with(1);
        assert_eq!(stopped.stdout, "");
        stopped.says(&["E0727", "root takes numbers from low on", "p.ein:4"]);
        start("-1", &["--show", "Z"])
            .fails_with(1)
            .says(&["root takes numbers"]);
    }
}

#[test]
fn assertions_of_rounds_look_at_data() {
    let folder = tempfile::tempdir().unwrap();
    let text = "use std.random
dim N = 5
input x: f64[N] = iota
input most: f64 = 256
input ends: f64 = 1
fn doubled(x[n], most) -> y[n] {
  repeat k < 3 {
    state s[i] = x[i]
    repeat j < 2 {
      state t[i] = s[i]
      next t[i] = 2 * t[i]
      assert all[i] (next t[i] <= most), \"too large\"
    }
    next s = t
  }
  y[i] = s[i]
}
y = doubled(x, most)
unused = doubled(x, 3)
repeat k < inf until ends > 0 {
  state z[i] = x[i]
  next z[i] = z[i] + 1
  assert ends > 0 or (max[i] z[i]) < 9, \"this would never end\"
}
repeat t < 3 {
  state total[n < N]: i64 = zeros
  p = random.poisson(x)
  next total[n] = total[n] + p[n]
}
none = total[0]
output y
output none
";
    let program = written(folder.path(), text);
    for sites in SITES {
        let run = |more: &[&str]| {
            let mut arguments = vec!["run", program.as_str(), "--sites", sites];
            arguments.extend(more);
            einc(&arguments)
        };
        let right = run(&[]).success();
        assert_eq!(right.stdout, "y = [  0.  64. 128. 192. 256.]\nnone = 0\n");
        let stopped = run(&["--input", "most=255"]).fails_with(1);
        stopped.says(&["E0727", "too large", "p.ein:12"]);
        // What stands in the program itself is always tested; in functions, where an output needs what they give.
        run(&["--input", "ends=0"]).fails_with(1).says(&[
            "E0727",
            "this would never end",
            "p.ein:23",
        ]);
        run(&["--show", "unused"])
            .fails_with(1)
            .says(&["E0727", "too large"]);
    }
}

#[test]
fn whole_numbers_are_uniform() {
    let text = "input die: i64[6000] = uniform(1, 7)
input small: u8[1000] = uniform(250, 256)
thrown[k < 8]: i64[8] = count[n] (die[n] == k)
even[k] = i64(abs(thrown[k] - 1000) < 130)
least = min[n] small[n]
most = max[n] small[n]
outside = thrown[0] + thrown[7]
output even; output least; output most; output outside
";
    let found = printed(text);
    for part in [
        "even = [0 1 1 1 1 1 1 0]",
        "least = 250",
        "most = 255",
        "outside = 0",
    ] {
        assert!(found.contains(part), "{part} is not in {found}");
    }
}

#[test]
fn further_indices_outside_of_functions() {
    let text = "input x: f32[2, 2, 3] = iota
input w: f32[2] = 2
input h0: f64[2] = ones
input z: f64[3, 2] = iota
y[n, ..] = x[n, ..] / w[n] + 1
s[n] = sum[..] y[n, ..]
top[k] = max[..] x[.., k]
H[t, ..] = scan[t < 3](h: h0[..], h[..] + z[t, ..])
repeat t < 2 { state a[..] = z[..]; next a[..] = 2 * a[..] }
last[i] = a[2,i] + H[2,i]
const at = [2, 0]
G[at[n], ..]: f32[3, ..] += x[n, .., 0]
fn half(x[n, m]) -> y[n, m] { y[i, ..] = x[i, ..] / 2 }
less = half(z)
output s; output top; output last; output G; output less
";
    // Sums of n / 2 + 1 over six numbers; the last of three columns; 4 z + (1 + z_0 + z_1 + z_2).
    let expected = "s = [13.5 31.5]
top = [ 9. 10. 11.]
last = [23. 30.]
G = [[6. 9.]
     [0. 0.]
     [0. 3.]]
less = [[0.  0.5]
        [1.  1.5]
        [2.  2.5]]
";
    assert_eq!(printed(text), expected);
}

#[test]
fn affine_left_sides_rearrange() {
    let text = "dim R = 3, C = 5
input x: f32[2, R, C] = iota
input big: f64[7, 11] = iota
input w: f64[77] = iota
flat[n, C*r + c] = x[n, r, c] + 1
turned[n, R*c + r] = x[n, r, c]
back[C - 1 - c] = x[0, 1, c]
odd[2*i + n] = x[n, 0, i] > 3
both[C*r + c, 1 - n] = x[n, r, c]
summed[2*r + n] = x[n, r, c] * x[n, 1, c]
long[11*i + j] = big[i, j]
G = grad(sum[p] long[p]^2 * w[p], big)
left = max[i, j] abs(G[i, j] - 2 * big[i, j] * w[11*i + j])
far = max[p] abs(long[p] - w[p])
fn pairs(a[n, m]) -> b[q] { b[size(m)*i + j] = 2 * a[i, j] }
p = pairs(x[1])
output flat; output turned; output back; output odd; output both; output summed; output left; output far; output p
";
    let expected = "flat = [[ 1.  2.  3.  4.  5.  6.  7.  8.  9. 10. 11. 12. 13. 14. 15.]
        [16. 17. 18. 19. 20. 21. 22. 23. 24. 25. 26. 27. 28. 29. 30.]]
turned = [[ 0.  5. 10.  1.  6. 11.  2.  7. 12.  3.  8. 13.  4.  9. 14.]
          [15. 20. 25. 16. 21. 26. 17. 22. 27. 18. 23. 28. 19. 24. 29.]]
back = [9. 8. 7. 6. 5.]
odd = [false  true false  true false  true false  true  true  true]
both = [[15.  0.]
        [16.  1.]
        [17.  2.]
        [18.  3.]
        [19.  4.]
        [20.  5.]
        [21.  6.]
        [22.  7.]
        [23.  8.]
        [24.  9.]
        [25. 10.]
        [26. 11.]
        [27. 12.]
        [28. 13.]
        [29. 14.]]
summed = [  80. 1880.  255. 2430.  430. 2980.]
left = 0.0
far = 0.0
p = [30. 32. 34. 36. 38. 40. 42. 44. 46. 48. 50. 52. 54. 56. 58.]
";
    assert_eq!(printed(text), expected);
}

#[test]
fn scatters_bound_indices_inside_of_places() {
    let text = "dim Z = 7
const letter = [0, 2, 1, 2, 2, 0, 1]
pairs[letter[z < Z - 1], letter[z + 1]]: i64[3, 3] += 1
first[2 * letter[z < 3]]: f32[5] += z
half[letter[2 * (k) + letter[m <= 1] / 2]]: i64[3] += 1
const k = 2
output pairs; output first; output half
";
    let expected = "pairs = [[0 1 1]
         [0 0 1]
         [1 1 1]]
first = [0. 0. 2. 0. 1.]
half = [1 0 1]
";
    assert_eq!(printed(text), expected);
}

#[test]
fn an_output_is_saved_once() {
    let folder = tempfile::tempdir().unwrap();
    let program = written(folder.path(), "y: f32[3] = 1\noutput y\n");
    let start = |saves: &[&str]| {
        let mut command = Command::new(einc_tests::einc_path());
        let saves = saves.iter().flat_map(|save| ["--save", save]);
        let arguments = ["run", program.as_str()].into_iter().chain(saves);
        run(command.args(arguments).current_dir(folder.path()))
    };
    for (first, second) in [("y=a.npy", "y=b.npy"), ("a.npz", "b.npz")] {
        let twice = start(&[first, second]).fails_with(1);
        twice.says(&["E0723", "a.np", "b.np"]);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    start(&["y=a.npy", "y=a.npy"]).success();
    assert!(folder.path().join("a.npy").exists());
}

#[test]
fn a_missing_range_is_offered() {
    let folder = tempfile::tempdir().unwrap();
    for (statement, offered) in [
        ("y[i] = x[(i - 1) % N]", "`i < 6`"),
        ("y[i] = x[i / 2] + x[2 * i]", "`i < 6`"),
        ("y[i] = x[2 * i]", "`i < 3`"),
        ("y = sum[i] x[i % 3]", "`i < 6`"),
    ] {
        let text = format!("dim N = 6\ninput x: f32[N] = iota\n{statement}\noutput y\n");
        let program = written(folder.path(), &text);
        let wrong = einc(&["check", &program]).fails_with(1);
        wrong.says(&["E0306", "p.ein:3", offered]);
    }
}

/// A letter of a result is the function's own, whatever number of the program has its name; a dim or a constant is meant.
#[test]
fn sizes_of_results_are_no_data() {
    let text = "const c = 2
input x: i64[3] = [3, 0, 2]
k = x[0]
fn f(v[n]) -> w[k] { w[i] = v[i] * 10 }
fn g(v[n]) -> w[t] { w[t] = f(v)[t] + t }
fn h(v[n]) -> w[c] { w[i] = v[i + 1] }
y = f(x)
z = g(x)
u = h(x)
repeat t < 2 { state s = 0; next s = s + k }
output y; output z; output u; output s
";
    assert_eq!(
        printed(text),
        "y = [30  0 20]\nz = [30  1 22]\nu = [0 2]\ns = 6\n"
    );
}
