//! The manifest of a checkpoint: what it holds, of which program, and a checksum of every tensor and of itself.
//!
//! Must not know where tensors are stored.
//!
//! ```text
//! {"checksum": "9e1c3a55", "manifest": {"format": 1, "step": 120, "counters": {"epoch": 5, "seed": 0},
//!   "tensors": [{"name": "W1", "type": "f32", "shape": [64, 256], "checksum": "04d1e7f0"}], …}}
//! ```

use crate::error::{DAMAGED, DataError, FOREIGN, Place};
use crate::header::Header;
use crate::set::Named;
use ein_plan::DType;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The version of the format that is written.
const FORMAT: u32 = 1;

/// What a checkpoint says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Steps that were made, over the whole run.
    pub step: u64,
    /// Numbers that the run continues with: epochs, seed, ….
    pub counters: BTreeMap<String, u64>,
    /// What must be the same for a run to continue: batch, optimizer, …, each as the user would write it.
    pub facts: BTreeMap<String, String>,
    /// The tensors, in the order of the run that wrote them.
    pub tensors: Vec<Named>,
    /// CRC-32C of the little-endian bytes of each tensor, in the same order.
    pub(crate) checksums: Vec<u32>,
    /// CRC-32C of the file's length and table.
    pub(crate) table: u32,
}

/// The file: the manifest's very bytes, and their checksum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sealed {
    checksum: String,
    manifest: Box<RawValue>,
}

/// As it is written.
#[derive(Serialize, Deserialize)]
struct Text {
    format: u32,
    step: u64,
    counters: BTreeMap<String, u64>,
    facts: BTreeMap<String, String>,
    fingerprint: String,
    table: String,
    tensors: Vec<TensorText>,
}

#[derive(Serialize, Deserialize)]
struct TensorText {
    name: String,
    r#type: String,
    shape: Vec<u64>,
    checksum: String,
}

/// Only the version, which every format has.
#[derive(Deserialize)]
struct Version {
    format: u32,
}

impl Manifest {
    /// The text of the file.
    pub(crate) fn print(&self) -> Result<String, serde_json::Error> {
        let tensors = self.tensors.iter().zip(&self.checksums);
        let text = Text {
            format: FORMAT,
            step: self.step,
            counters: self.counters.clone(),
            facts: self.facts.clone(),
            fingerprint: fingerprint(&self.tensors),
            table: hex(self.table),
            tensors: tensors
                .map(|(tensor, checksum)| TensorText {
                    name: tensor.name.clone(),
                    r#type: tensor.header.dtype.to_string(),
                    shape: tensor.header.shape.clone(),
                    checksum: hex(*checksum),
                })
                .collect(),
        };
        let manifest = RawValue::from_string(serde_json::to_string_pretty(&text)?)?;
        let mut sealed = serde_json::to_string_pretty(&Sealed {
            checksum: hex(crc32c::crc32c(manifest.get().as_bytes())),
            manifest,
        })?;
        sealed.push('\n');
        Ok(sealed)
    }

    /// Reads the text of the file.
    pub(crate) fn parse(text: &[u8], place: &Place) -> Result<Manifest, DataError> {
        let damaged = |why: &dyn std::fmt::Display| {
            place.error(DAMAGED, format_args!("its manifest is damaged: {why}"))
        };
        let sealed: Sealed = serde_json::from_slice(text).map_err(|error| damaged(&error))?;
        let inner = sealed.manifest.get();
        if sealed.checksum != hex(crc32c::crc32c(inner.as_bytes())) {
            return Err(damaged(&"its checksum does not fit what it says"));
        }
        let Version { format } = serde_json::from_str(inner).map_err(|error| damaged(&error))?;
        if format != FORMAT {
            return Err(place.error(
                FOREIGN,
                format_args!(
                    "has format {format}; this program reads format {FORMAT}: it was written by another version of einc"
                ),
            ));
        }
        let text: Text = serde_json::from_str(inner).map_err(|error| damaged(&error))?;
        let number = |text: &str| {
            u32::from_str_radix(text, 16).map_err(|_| damaged(&"a checksum is no number"))
        };
        let mut manifest = Manifest {
            step: text.step,
            counters: text.counters,
            facts: text.facts,
            table: number(&text.table)?,
            ..Manifest::default()
        };
        for tensor in text.tensors {
            let dtype = DType::ALL
                .into_iter()
                .find(|dtype| dtype.to_string() == tensor.r#type)
                .ok_or_else(|| damaged(&format_args!("there is no type `{}`", tensor.r#type)))?;
            manifest.checksums.push(number(&tensor.checksum)?);
            manifest.tensors.push(Named {
                name: tensor.name,
                header: Header {
                    dtype,
                    shape: tensor.shape,
                },
            });
        }
        if text.fingerprint != fingerprint(&manifest.tensors) {
            return Err(damaged(&"its fingerprint does not fit its tensors"));
        }
        Ok(manifest)
    }

    /// Checks that this is of a run with these tensors and facts; says what is different (`E0708`).
    pub(crate) fn expect(
        &self,
        tensors: &[Named],
        facts: &BTreeMap<String, String>,
        place: &Place,
    ) -> Result<(), DataError> {
        let mut different = vec![];
        for wanted in tensors {
            match self.tensors.iter().find(|t| t.name == wanted.name) {
                Some(have) if have.header == wanted.header => {}
                Some(have) => different.push(format!(
                    "`{}` is {} there and {} here",
                    wanted.name, have.header, wanted.header
                )),
                None => different.push(format!("it has no `{}`", wanted.name)),
            }
        }
        for have in &self.tensors {
            if tensors.iter().all(|wanted| wanted.name != have.name) {
                different.push(format!("it has `{}`, which this one has not", have.name));
            }
        }
        let named: BTreeSet<&String> = facts.keys().chain(self.facts.keys()).collect();
        for name in named {
            let said = |facts: &BTreeMap<String, String>| {
                facts
                    .get(name)
                    .map_or("not given".to_owned(), |value| format!("`{value}`"))
            };
            let (there, here) = (said(&self.facts), said(facts));
            if there != here {
                different.push(format!("{name} is {there} there and {here} here"));
            }
        }
        if different.is_empty() {
            return Ok(());
        }
        const MOST: usize = 5;
        let more = different.len().saturating_sub(MOST);
        different.truncate(MOST);
        if more > 0 {
            different.push(format!("and {more} more"));
        }
        Err(place.error(
            FOREIGN,
            format_args!(
                "is a checkpoint of another program or of other settings: {}",
                different.join("; ")
            ),
        ))
    }
}

/// What tells programs apart: the names, types and shapes of their tensors.
fn fingerprint(tensors: &[Named]) -> String {
    let mut lines: Vec<String> = tensors
        .iter()
        .map(|tensor| format!("{}: {}\n", tensor.name, tensor.header))
        .collect();
    lines.sort();
    let digest = Sha256::digest(lines.concat().as_bytes());
    digest
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn hex(number: u32) -> String {
    format!("{number:08x}")
}
