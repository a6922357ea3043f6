//! Small programs with what they print, which was worked out by hand or from a closed form. On 1 to 5 sites they print the same.

use einc_tests::einc;

/// Programs, and what they print.
const PROGRAMS: &[(&str, &str)] = &[
    // How far an index runs that only the numbers of rounds bound: as far as they ever let it.
    (
        "repeat t < 3 { state s = 0.0; next s = s + sum[k <= t] 1.0 }
         repeat u < 5 {
           state q = 0
           next q = q + sum[k < 5 - u] 1 + sum[k < 2 * u] 1 + sum[k <= u / 2] 1 + sum[k < u % 3] 1
         }
         after = sum[k < (u)] k
         output s; output q; output after",
        "s = 6.0\nq = 48\nafter = 10\n",
    ),
    // Outside of its block a counter's name is an index, in the places of a left side, too.
    (
        "const c = [[1, 2], [3, 4], [5, 6]]
         repeat i < 3 { state s = 0; next s = s + 1 }
         repeat j < 5 { state u = 1; next u = u * 2 }
         even[i % 2, j]: i64[2, 2] += c[i,j]
         flat[2 * i + j] = c[i,j]
         half[i / 2]: i64[2] += c[i,0] * i
         place[(i)]: i64[4] += sum[j] c[j,0]
         output even; output flat; output half; output place; output u",
        "even = [[6 8]\n        [3 4]]\nflat = [1 2 3 4 5 6]\nhalf = [ 3 10]\nplace = [0 0 0 9]\nu = 32\n",
    ),
    // Nothing of nothing: no columns, and no rows.
    (
        "use std.array
         x[i < 4, j < 0] = f64(i); z[i < 0, j < 3] = f64(j)
         y = array.flatten(x); u = array.flatten(z); s = sum[k] y[k]
         output y; output u; output s",
        "y = []\nu = []\ns = 0.0\n",
    ),
    // The root of a negative real number has the sign of its imaginary part, as log and angle do, that of a zero too.
    (
        "input y: f64[3] = 0
         z[i] = complex(f64(1.5), y[i]); b[i] = -z[i]; r[i] = sqrt(b[i]); h[i] = b[i]^0.5; s[i] = sqrt(conj(b[i])); t[i < 3] = sqrt(complex(f64(-4), f64(0 * i)))
         a[i] = angle(b[i]) / pi
         output r; output h; output s; output t; output a",
        "r = [0.-1.22474487j 0.-1.22474487j 0.-1.22474487j]\nh = [0.-1.22474487j 0.-1.22474487j 0.-1.22474487j]\n\
         s = [0.+1.22474487j 0.+1.22474487j 0.+1.22474487j]\nt = [0.+2.j 0.+2.j 0.+2.j]\na = [-1. -1. -1.]\n",
    ),
    // A power of 0 is 0 where the exponent's real part is positive, and 1 where the exponent is 0.
    (
        "input z: c128[2] = 0
         input x: f64[2] = [1.5, 0]
         a[i] = z[i]^x[i]; b[i] = z[i]^complex(f64(1), f64(2)); c[i] = (z[i] + 4)^1.5; d[i] = x[i]^complex(f64(1), f64(0))
         g = grad(sum[i] re(z[i]^1.5), z)
         output a; output b; output c; output d; output g",
        "a = [0.+0.j 1.+0.j]\nb = [0.+0.j 0.+0.j]\nc = [8.+0.j 8.+0.j]\nd = [1.5+0.j 0. +0.j]\ng = [0.-0.j 0.-0.j]\n",
    ),
    // Infinity is a value: what lies between two equal ones is as large, and what stands at a place is the value there.
    (
        "use std.stats
         const c = [1, inf, -inf, inf, -inf]
         x[i] = f64(c[i])
         least = stats.quantile(x, 0); low = stats.quantile(x, 0.125); middle = stats.median(x)
         high = stats.quantile(x, 0.875); most = stats.quantile(x, 1)
         output least; output low; output middle; output high; output most",
        "least = -inf\nlow = -inf\nmiddle = 1.0\nhigh = inf\nmost = inf\n",
    ),
];

#[test]
fn programs_print_what_is_written_here() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.ein");
    for (text, expected) in PROGRAMS {
        std::fs::write(&path, text).unwrap();
        for sites in ["1", "2", "3", "4", "5"] {
            let run = einc(&["run", path.to_str().unwrap(), "--sites", sites]).success();
            assert_eq!(run.stdout, *expected, "{text}\non {sites} sites");
        }
    }
}
