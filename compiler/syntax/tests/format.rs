//! What the formatter makes of texts.

#![allow(clippy::unwrap_used)]

use einc_syntax::format;

fn becomes(text: &str, wanted: &str) {
    let formatted = format(text).unwrap();
    assert_eq!(formatted, wanted);
    assert_eq!(format(wanted).unwrap(), wanted);
}

#[test]
fn blanks() {
    becomes("", "");
    becomes("\n\n// c  \r\n\n\n\nx=1", "// c\n\nx = 1\n");
    becomes(
        "y[ n , h ]=relu( X[n,d]*W[d,h]+b [h] )",
        "y[n, h] = relu(X[n,d] * W[d,h] + b[h])\n",
    );
    becomes(
        "z=-x ^ - 2- -y*sum [ i<3 ]( a )",
        "z = -x^-2 - -y * sum[i < 3] (a)\n",
    );
    becomes(
        "a = I[2*y+r - 1,K / 2]else-inf",
        "a = I[2*y+r - 1,K / 2] else -inf\n",
    );
    becomes("G[k[n]]:f32[V]max =x[n]", "G[k[n]]: f32[V] max= x[n]\n");
    becomes(
        "input X :f32[N]=load ( \"x\" );output X on( a )->\"x\"",
        "input X: f32[N] = load(\"x\"); output X on (a) -> \"x\"\n",
    );
    becomes("ok=not(a)and 0<=b<c", "ok = not (a) and 0 <= b < c\n");
}

#[test]
fn columns_that_were_chosen_stay() {
    let aligned = "input X:  f32[N, 64] = a  // one\ninput yv: i64[V]     = b  // two\nnext  x = 1\nstate y[i]  = 2\n";
    becomes(aligned, aligned);
    becomes(
        "a    =1\nbbbb = 2 +  3   // c\n",
        "a    = 1\nbbbb = 2 + 3    // c\n",
    );
}

#[test]
fn blocks_and_lines_that_go_on() {
    becomes(
        "fn f(x[n])->y[n]{\n// c\ny[n]=x[n]\n    +1\n      // in between\n   *2\n}\nz=f(\na,\n      b\n)",
        "fn f(x[n]) -> y[n] {\n  // c\n  y[n] = x[n]\n      + 1\n        // in between\n     * 2\n}\nz = f(\n  a,\n      b\n)\n",
    );
    becomes("x[i]=y[2\n*i+1]", "x[i] = y[2\n  * i+1]\n");
    becomes(
        "train{loss:a;data:(X,y)over N by 5\n\n\n\ngroup *.b,norm.* {lr:0}\n}",
        "train { loss: a; data: (X, y) over N by 5\n\n  group *.b, norm.* { lr: 0 }\n}\n",
    );
}

#[test]
fn what_does_not_parse_is_not_touched() {
    assert_eq!(format("y = 2 x").unwrap_err()[0].code, "E0117");
}
