//! Functions as arguments of functions and modules: each against the same text written out by hand, or a closed form, on 1 to 5 sites.

use einc_tests::everywhere::printed;

#[test]
fn what_is_passed_is_called() {
    let text = "use std.nn
input x: f64[4] = iota
fn half(x) = x / 2
fn twice(f, x) = f(f(x))
fn chain(f, g, x) = twice(f, twice(g, x))
fn total(of, x[n], start = half) -> s { s = sum[n] start(of(x[n])) }
a[n] = twice(half, x[n])
b[n] = chain(half, sqrt, x[n]^4) - twice(half, x[n])
c[n] = twice(nn.silu, x[n]) - nn.silu(nn.silu(x[n]))
d = total(half, x)
e = total(start: exp, of: f64, x: x) - (sum[n] exp(x[n]))
g[n] = grad(total(twice_half, x), x)[n]
fn twice_half(x) = twice(half, x)
output a; output b; output c; output d; output e; output g
";
    let expected = "a = [0.   0.25 0.5  0.75]
b = [0. 0. 0. 0.]
c = [0. 0. 0. 0.]
d = 1.5
e = 0.0
g = [0.125 0.125 0.125 0.125]
";
    assert_eq!(printed(&[("p.ein", text)]), expected);
}

#[test]
fn an_integrator_takes_its_equation() {
    let library = "/// The state after `steps` steps of length h by the classical method of Runge and Kutta: s' = f(s).
fn rk4(f, s0[n], h, steps) -> s[n] {
  repeat t < steps {
    state y[i] = s0[i]
    k1 = f(y)
    y2[i] = y[i] + h / 2 * k1[i]
    k2 = f(y2)
    y3[i] = y[i] + h / 2 * k2[i]
    k3 = f(y3)
    y4[i] = y[i] + h * k3[i]
    k4 = f(y4)
    next y[i] = y[i] + h / 6 * (k1[i] + 2 * k2[i] + 2 * k3[i] + k4[i])
  }
  s[i] = y[i]
}
";
    let text = "use \"ode.ein\"
dim steps = 20
input start: f64[2] = [1, 0]
input many: f64[3, 2] = iota
fn turn(y[n]) -> d[n] { d[i] = where(i == 0, -y[1], y[0]) }
fn decay(y[n]) -> d[n] { d[i] = -y[i] }
module linear(N)(y[N]) -> d[N] {
  param A: f64[N, N] = [[0, -1], [1, 0]]
  d[i] = A[i,j] * y[j]
}
param net: linear(2)
turned = ode.rk4(turn, start, 0.05, steps)
same = ode.rk4(net, start, 0.05, steps)
off = max[i] abs(turned[i] - where(i == 0, cos(1.0), sin(1.0)))
apart = max[i] abs(turned[i] - same[i])
shrunk[p, i] = ode.rk4(decay, many[p], 0.05, steps)[i]
left = max[p, i] abs(shrunk[p, i] - many[p, i] * exp(-1.0))
moved = grad(sum[i] same[i], start)
wrong = max[i] abs(moved[i] - where(i == 0, cos(1.0) + sin(1.0), cos(1.0) - sin(1.0)))
close = i64(off < 1e-6) + i64(left < 1e-6) + i64(apart < 1e-12) + i64(wrong < 1e-6)
output close
";
    let found = printed(&[("p.ein", text), ("ode.ein", library)]);
    assert_eq!(found, "close = 4\n");
}

#[test]
fn a_module_takes_its_activation() {
    let text = "use std.nn
input x: f32[5, 4] = normal(0, 1)
module layer(D, act = relu)(x[.., D]) -> y[.., D] {
  param w: f32[D, D] = normal(0, 1)
  y[.., e] = act(x[.., d] * w[d, e])
}
module two(D, act)(x[.., D]) -> y[.., D] {
  param a: layer(D, act)
  param b: layer(D)
  y = b(a(x))
}
param plain: layer(4)
param smooth: layer(4, act: nn.silu)
param both: two(4, tanh)
p = plain(x)
s = smooth(x)
t = both(x)
left = max[n,e] abs(p[n,e] - relu(x[n,d] * plain.w[d,e]))
right = max[n,e] abs(s[n,e] - nn.silu(x[n,d] * smooth.w[d,e]))
h[n,e] = tanh(x[n,d] * both.a.w[d,e])
last = max[n,e] abs(t[n,e] - relu(h[n,d] * both.b.w[d,e]))
fine = i64(left < 1e-6) + i64(right < 1e-6) + i64(last < 1e-6)
output fine
";
    assert_eq!(printed(&[("p.ein", text)]), "fine = 3\n");
}
