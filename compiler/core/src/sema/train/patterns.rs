//! Patterns of names of params: those of `group` lines and of files of params.
//!
//! Must not know params.
//!
//! ```text
//! enc.*.w   matches   enc.0.w, enc.3.att.w
//! ```

/// Returns whether a name is of a pattern, in which `*` stands for any text.
pub fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(head) else {
        return false;
    };
    let starts = name.char_indices().map(|(at, _)| at).chain([name.len()]);
    starts.into_iter().any(|at| matches(rest, &name[at..]))
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_stand_for_names() {
        assert!(matches("*.b", "head.b") && matches("*.b", "enc.0.b") && matches("b", "b"));
        assert!(matches("enc.*.w", "enc.3.att.w") && matches("*", "W1"));
        assert!(!matches("*.b", "b") && !matches("norm.*", "norms.g") && !matches("b", "b1"));
    }
}
