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
