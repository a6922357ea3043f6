//! Plans as bytes, for a built program to carry: a header with a version, then the plan in postcard's encoding.
//!
//! What [`decode`] gives is verified, so whatever bytes it is given, what comes out can be walked. Must not know
//! where the bytes are kept.
//!
//! ```text
//! 65 69 6e 70 0b 00 …      "einp", version 11, the plan
//! ```

use crate::plan::Plan;
use crate::verify::{VerifyError, verify};
use std::fmt;

const MAGIC: [u8; 4] = *b"einp";
/// The version of the encoding; a change of any type in a plan needs a new one.
pub const VERSION: u16 = 30;

/// Why bytes are no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// They do not begin like one.
    NotAPlan,
    /// They are one of another version.
    Version(u16),
    /// They end early, go on after the end, or hold what no plan holds.
    Damaged,
    /// They are a plan that does not hold together.
    Invalid(VerifyError),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::NotAPlan => f.write_str("this is not a plan"),
            DecodeError::Version(found) => write!(
                f,
                "the plan is of version {found}, but this program reads version {VERSION}"
            ),
            DecodeError::Damaged => f.write_str("the plan is damaged"),
            DecodeError::Invalid(error) => write!(f, "the plan is damaged: {error}"),
        }
    }
}
impl std::error::Error for DecodeError {}

/// The bytes of a plan.
pub fn encode(plan: &Plan) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend(
        postcard::to_stdvec(plan).expect("a plan has only encodable parts, and memory grows"),
    );
    bytes
}

/// The plan that these bytes are.
pub fn decode(bytes: &[u8]) -> Result<Plan, DecodeError> {
    let rest = bytes.strip_prefix(&MAGIC).ok_or(DecodeError::NotAPlan)?;
    let (version, rest) = rest.split_first_chunk().ok_or(DecodeError::Damaged)?;
    let version = u16::from_le_bytes(*version);
    if version != VERSION {
        return Err(DecodeError::Version(version));
    }
    match postcard::take_from_bytes::<Plan>(rest) {
        Ok((plan, [])) => verify(&plan).map_err(DecodeError::Invalid).map(|()| plan),
        _ => Err(DecodeError::Damaged),
    }
}
