//! The resolved, typed tree: `$0` in a text stands before the byte that is asked about, and the answer is text.

use crate::Case;
use einc_core::sema;
use einc_core::sema::hir::{Definition, Hir};
use einc_diag::{FileId, Span};

/// Asks about the place of `$0` in a text: the name there, with its definition and uses, and the smallest expression.
#[track_caller]
fn check(text: &str, expected: &str) {
    let at = text.find("$0").expect("a place to ask about");
    let text = text.replacen("$0", "", 1);
    let case = Case::new(&text);
    let (_, hir) = sema::check_with_hir(&case.sources, &case.bindings);
    let found = answer(&hir, &text, at as u32);
    assert_eq!(found.trim(), expected.trim(), "found:\n{found}");
}

/// Line and column, both counted from 1.
fn place(text: &str, span: Span) -> String {
    let before = &text[..span.start as usize];
    let line = before.matches('\n').count() + 1;
    let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
    format!("{line}:{column}")
}

fn answer(hir: &Hir, text: &str, at: u32) -> String {
    let mut lines = vec![];
    if let Some((_, id)) = hir.name_at(FileId(0), at) {
        let definition = hir.definition(id);
        lines.push(described(definition));
        lines.push(format!("defined {}", place(text, definition.span)));
        let uses: Vec<String> = hir.uses(id).map(|span| place(text, span)).collect();
        lines.push(format!("used {}", uses.join(" ")));
    }
    if let Some((span, types)) = hir.types_at(FileId(0), at) {
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        let expression = &text[span.start as usize..span.end as usize];
        lines.push(format!("{expression}: {}", types.join(" or ")));
    }
    lines.join("\n")
}

fn described(definition: &Definition) -> String {
    let mut line = format!("{} {}", definition.kind.name(), definition.name);
    let types: Vec<String> = definition.types.iter().map(ToString::to_string).collect();
    if !types.is_empty() {
        line.push_str(&format!(": {}", types.join(" or ")));
    }
    let extents: Vec<String> = definition.extents.iter().map(ToString::to_string).collect();
    if !extents.is_empty() {
        line.push_str(&format!(" of {}", extents.join(" or ")));
    }
    line
}

#[test]
fn an_input_has_its_type_and_uses() {
    check(
        "dim N\ninput X: f32[N, 4]\ny[n] = sum[d] $0X[n,d]\nz[n] = X[n,0] + y[n]\noutput z\n",
        "input X: f32[N, 4]\ndefined 2:7\nused 3:15 4:8\nX[n,d]: f32",
    );
}

#[test]
fn a_definition_is_used_by_later_lines_and_outputs() {
    check(
        "input X: f64[3]\n$0y[n] = 2 * X[n]\nz[n] = y[n]\noutput y\noutput z\n",
        "definition y: f64[3]\ndefined 2:1\nused 3:8 4:8",
    );
}

#[test]
fn a_dim_has_its_number() {
    check(
        "dim N = 4\ndim M = 2 * N\ninput x: f32[$0M]\noutput x\n",
        "dim M: number of 8\ndefined 2:5\nused 3:14\nM: number",
    );
}

#[test]
fn the_index_of_a_left_side_runs_over_its_dimension() {
    check(
        "input X: f32[5, 4]\ny[n] = sum[d] X[$0n,d]\noutput y\n",
        "index n of 5\ndefined 2:3\nused 2:17\nX[n,d]: f32",
    );
}

#[test]
fn the_index_of_a_reduction_is_known_in_it_only() {
    check(
        "input X: f32[5, 4]\ny[n] = sum[$0d] X[n,d] + max[d] X[n,d]\noutput y\n",
        "index d of 4\ndefined 2:12\nused 2:19\nsum[d] X[n,d]: f32",
    );
}

#[test]
fn the_index_of_an_implicit_sum_begins_where_it_stands_first() {
    check(
        "input X: f32[5, 4]\ninput w: f32[4]\ny[n] = X[n,d] * w[$0d]\noutput y\n",
        "index d of 4\ndefined 3:12\nused 3:19\nw[d]: f32",
    );
}

#[test]
fn an_index_of_a_value_is_that_of_the_position() {
    check(
        "input X: f32[5]\ny = sum[n] $0n * X[n]\noutput y\n",
        "index n of 5\ndefined 2:9\nused 2:12 2:18\nn: number",
    );
}

#[test]
fn products_and_comparisons_have_types() {
    check(
        "input X: f32[5]\ny[n] = where(X[n] $0> 0, X[n], 2 * X[n])\noutput y\n",
        "X[n] > 0: bool",
    );
    check(
        "input X: bf16[5]\ny[n] = 2 $0* X[n]\noutput y\n",
        "2 * X[n]: bf16",
    );
}

#[test]
fn a_function_has_one_type_for_each_different_call() {
    let text = "input a: f32[3]\ninput b: f64[7]\nfn twice(x[n]) -> y[n] { $0y[n] = 2 * x[n] }\n\
                c[i] = twice(a)[i]\nd[i] = twice(b)[i]\noutput c\noutput d\n";
    check(
        text,
        "definition y: f32[3] or f64[7]\ndefined 3:26\nused 3:19",
    );
    let text = text.replace("$0y", "y").replace("2 * x", "2 $0* x");
    check(&text, "2 * x[n]: f32 or f64");
}

#[test]
fn the_parameters_and_sizes_of_a_function_are_its_own() {
    let text = "input x: f32[3]\nfn shifted(x[n], by) -> y[n] { y[i] = $0x[i] + by * size(n) }\n\
                z[i] = shifted(x, 2)[i]\noutput z\n";
    check(text, "parameter x\ndefined 2:12\nused 2:39\nx[i]: f32");
    let text = text.replace("$0x", "x").replace("size(n", "size($0n");
    check(
        &text,
        "size n\ndefined 2:14\nused 2:27 2:56\nsize(n): number",
    );
}

#[test]
fn a_function_is_used_where_it_is_called() {
    check(
        "input x: f32[3]\nfn half(v) = v / 2\ny[i] = $0half(x[i])\nz[i] = half(y[i])\noutput z\n",
        "function half\ndefined 2:4\nused 3:8 4:8\nhalf(x[i]): f32",
    );
}

#[test]
fn an_instance_and_its_module() {
    let text = "input x: f32[5, 3]\nmodule scale(D)(x[n, D]) -> y[n, D] { param w: f32[D] = ones; y[n, d] = x[n, d] * w[d] }\n\
                param s: $0scale(3)\ny[n, d] = s(x)[n, d] + s.w[d]\noutput y\n";
    check(text, "module scale\ndefined 2:8\nused 3:10");
    let text = text.replace("$0scale", "scale").replace("s(x)", "$0s(x)");
    check(
        &text,
        "instance s\ndefined 3:7\nused 4:11 4:24\ns(x)[n, d]: f32",
    );
}

#[test]
fn a_state_and_its_next() {
    let text = "input x: f32[3]\nrepeat t < 4 { state h[i] = x[i]; next h[i] = $0h[i] / 2 }\ny[i] = h[i] + t\noutput y\n";
    check(
        text,
        "state h: f32[3]\ndefined 2:22\nused 2:40 2:47 3:8\nh[i]: f32",
    );
    let text = text.replace("$0h", "h").replace("+ t", "+ $0t");
    check(&text, "counter t: i64\ndefined 2:8\nused 3:15\nt: number");
}

#[test]
fn a_program_with_an_error_has_the_rest() {
    check(
        "input X: f32[5]\ny[n] = $0X[n] + 1\nz[n] = nothing[n]\noutput y\noutput z\n",
        "input X: f32[5]\ndefined 1:7\nused 2:8\nX[n]: f32",
    );
}

#[test]
fn nothing_stands_between_the_lines() {
    check("input X: f32[5]\n$0\ny[n] = X[n]\noutput y\n", "");
}

#[test]
fn a_name_of_another_file() {
    let text = "use \"nn.ein\"\ninput x: f32[3]\ny[i] = nn.$0half(x[i])\noutput y\n// file \"nn.ein\"\nfn half(v) = v / 2\n";
    let at = text.find("$0").unwrap() as u32;
    let case = Case::new(&text.replacen("$0", "", 1));
    let (analysis, hir) = sema::check_with_hir(&case.sources, &case.bindings);
    assert!(
        analysis.diagnostics.is_empty(),
        "{:?}",
        analysis.diagnostics
    );
    let (_, id) = hir.name_at(FileId(0), at).unwrap();
    let definition = hir.definition(id);
    assert_eq!(definition.name, "half");
    assert_eq!(definition.span.file, FileId(1));
    assert_eq!(hir.uses(id).count(), 1);
}
