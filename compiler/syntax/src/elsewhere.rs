//! Functions that people expect under a name that the language has not: what to write.
//!
//! Those of the standard library by the library, those of numpy and its kin by a table. Must not know programs.
//!
//! ```text
//! softmax       =>   it is in a library: write `use std.nn`, then `nn.softmax(…)`
//! np.transpose  =>   exchange the indices: `y[j,i] = x[i,j]`
//! ```

/// The functions of the standard library. A test of the library compares the list with its files.
pub const LIBRARY: [(&str, &[&str]); 9] = [
    (
        "array",
        &[
            "concat",
            "concat_last",
            "stack",
            "flatten",
            "unflatten",
            "flip",
            "roll",
            "diff",
            "pad",
            "cumsum",
            "cumprod",
            "cummax",
            "cummin",
            "one_hot",
            "interp",
        ],
    ),
    ("fft", &["ifft", "rfft", "irfft"]),
    (
        "linalg",
        &[
            "trace",
            "slogdet",
            "det",
            "pinv",
            "lstsq",
            "matrix_power",
            "expm",
            "kron",
            "solve_lower",
            "solve_upper",
            "lu",
        ],
    ),
    (
        "nn",
        &[
            "relu",
            "gelu",
            "silu",
            "softmax",
            "log_softmax",
            "layer_norm",
            "rms_norm",
            "dense",
            "attention",
            "conv2d",
            "max_pool2d",
            "avg_pool2d",
            "mse",
            "cross_entropy",
            "bce",
        ],
    ),
    ("optim", &["ratio"]),
    (
        "random",
        &[
            "exponential",
            "categorical",
            "loggamma",
            "gamma",
            "beta",
            "dirichlet",
            "poisson",
        ],
    ),
    ("schedule", &["linear_scaling", "sqrt_scaling"]),
    ("select", &["nonzero", "rows", "unique", "rank"]),
    (
        "stats",
        &[
            "var",
            "std",
            "zscore",
            "quantile",
            "median",
            "cov",
            "corr",
            "histogram",
        ],
    ),
];

/// Says what to write for a function of the standard library, or of another language.
pub fn function(name: &str) -> Option<String> {
    let (prefix, own) = name.rsplit_once('.').unwrap_or(("", name));
    let is_foreign = matches!(
        prefix,
        "" | "np" | "numpy" | "np.linalg" | "jnp" | "torch" | "F" | "tf" | "math"
    );
    if !is_foreign {
        return None;
    }
    if let Some(library) = library(own) {
        return Some(format!(
            "it is in a library: write `use std.{library}`, then `{library}.{own}(…)`"
        ));
    }
    let help = match own {
        "reshape" | "ravel" | "view" => {
            "positions on the left put values elsewhere, `y[4*r + c] = x[r,c]`, and `array.flatten` of `std.array` joins dimensions"
        }
        "transpose" | "permute" | "swapaxes" => "exchange the indices: `y[j,i] = x[i,j]`",
        "matmul" | "dot" | "mm" | "bmm" | "einsum" | "tensordot" | "inner" => {
            "a product sums over the index that both factors have: `C[i,j] = A[i,k] * B[k,j]`"
        }
        "outer" => "write the indices: `y[i,j] = a[i] * b[j]`",
        "concatenate" | "cat" | "hstack" | "vstack" => {
            "it is in a library: write `use std.array`, then `array.concat(…)`"
        }
        "squeeze" => "read the dimension at 0: `y[i] = x[i,0]`",
        "expand_dims" | "unsqueeze" | "newaxis" | "broadcast_to" | "tile" | "repeat" => {
            "an index that a tensor does not have repeats it: `y[i,j] = x[i]`"
        }
        "zeros_like" | "ones_like" | "full_like" | "empty" => {
            "a number fills: `y[i < N]: f32[N] = 0`"
        }
        "arange" | "linspace" | "range" => "an index is a number: `y[i < 10] = 0.5 * i`",
        "rand" | "random" => "it is a source: `x: f32[10] = uniform(0, 1)`",
        "randn" => "it is a source: `x: f32[10] = normal(0, 1)`",
        "randint" => "it is a source: `x: i64[10] = uniform(0, 6)`",
        "eye" | "identity" => "write `I[i < N, j < N] = where(i == j, 1.0, 0.0)`",
        "diag" | "diagonal" => "write `d[i] = A[i,i]`",
        "tril" => "write `where(j <= i, A[i,j], 0)`",
        "triu" => "write `where(j >= i, A[i,j], 0)`",
        "average" => "write `mean[i] x[i]`",
        "square" => "write `x^2`",
        "power" => "write `x^y`",
        "ln" => "write `log(x)`",
        "sgn" => "write `sign(x)`",
        "arcsin" | "arccos" | "arctan" | "arcsinh" | "arccosh" | "arctanh" | "arctan2" => {
            return Some(format!("write `a{}(…)`", &own[3..]));
        }
        "absolute" | "fabs" => "write `abs(x)`",
        "maximum" | "amax" => "write `max(a, b)`, or `max[i] x[i]` over an index",
        "minimum" | "amin" => "write `min(a, b)`, or `min[i] x[i]` over an index",
        "len" | "shape" | "numel" => "the number of values of an index is `size(i)`",
        "float" | "double" => "write `f32(x)` or `f64(x)`",
        "int" | "long" | "astype" => "write `i64(x)`",
        "print" => "write `output y`",
        _ => return None,
    };
    Some(help.to_owned())
}

/// Says what to write for what other languages have as a part of a tensor, `x.T` or `x.reshape(…)`; `x'` is one, too.
pub fn part(name: &str) -> Option<(&str, String)> {
    let (owner, part) = match name.strip_suffix('\'') {
        Some(owner) => (owner, "transpose"),
        None => name.rsplit_once('.')?,
    };
    let help = match part {
        "T" | "mT" | "H" => function("transpose")?,
        part => function(part)?,
    };
    Some((owner, help))
}

/// The library that has a function of this name.
pub fn library(function: &str) -> Option<&'static str> {
    let mut libraries = LIBRARY.iter();
    let found = libraries.find(|(_, functions)| functions.contains(&function));
    found.map(|(library, _)| *library)
}
