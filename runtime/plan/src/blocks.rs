//! What the tensors of a matrix operation by blocks are called, so that messages can say which place of which matrix they are about.
//!
//! Must not know which operations there are, or how they run.
//!
//! ```text
//! S.blocks.block2   =>   of `S`: the `block` of step 2;  S.blocks2.unit   =>   of `S`, in its second such operation: the `unit`
//! ```

/// A tensor of an operation by blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockName<'a> {
    /// The tensor that it is made of.
    pub tensor: &'a str,
    /// What it is: `block`, `column`, `unit`.
    pub what: &'a str,
    /// The number of the step, in blocks of rows or columns; 0 where there is none.
    pub step: u64,
}

/// What the names of the `number`th operation by blocks of a tensor begin with, counted from 1; a point and what it is follow.
pub fn prefix(tensor: &str, number: u64) -> String {
    match number {
        1 => format!("{tensor}.blocks"),
        _ => format!("{tensor}.blocks{number}"),
    }
}

/// What a name says, if it is that of a tensor of an operation by blocks.
pub fn read(name: &str) -> Option<BlockName<'_>> {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let (prefix, last) = name.rsplit_once('.')?;
    let (tensor, blocks) = prefix.rsplit_once('.')?;
    let what = last.trim_end_matches(is_digit);
    let number = blocks.strip_prefix("blocks")?;
    let ours = !what.is_empty() && number.chars().all(is_digit);
    ours.then_some(BlockName {
        tensor,
        what,
        step: last[what.len()..].parse().unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_as_they_are_written() {
        let named = |tensor, what, step| Some(BlockName { tensor, what, step });
        for (number, name) in [(1, "a.S.blocks"), (12, "a.S.blocks12")] {
            assert_eq!(prefix("a.S", number), name);
            assert_eq!(read(&format!("{name}.block3")), named("a.S", "block", 3));
            assert_eq!(read(&format!("{name}.unit")), named("a.S", "unit", 0));
        }
        for other in [
            "S",
            "S.block3",
            "S.blocksx.block3",
            "S.blocks.3",
            "blocks.x1",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
