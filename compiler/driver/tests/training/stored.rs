//! Data in files: rows of one that lies in memory as it is, of one in the other byte order, and of none.

use crate::attempt_in;
use crate::made;
use ein_plan::Source;
use std::path::Path;

const ROWS: u64 = 20_011;
const COLUMNS: u64 = 64;

/// Writes a matrix of `f32` in rows as .npy.
fn write(path: &Path, values: &[f64], order: char) {
    let mut header =
        format!("{{'descr': '{order}f4', 'fortran_order': False, 'shape': ({ROWS}, {COLUMNS}), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    for x in values {
        let x = *x as f32;
        bytes.extend(match order {
            '<' => x.to_le_bytes(),
            _ => x.to_be_bytes(),
        });
    }
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn it_does_not_matter_how_rows_are_stored() {
    let folder = tempfile::tempdir().unwrap();
    let uniform = Source::Uniform { lo: -1.0, hi: 1.0 };
    let values = made(&uniform, "X", &[ROWS, COLUMNS]);
    write(&folder.path().join("little.npy"), &values, '<');
    write(&folder.path().join("big.npy"), &values, '>');
    let trained = |source: &str, sites: u32| {
        let text = format!(
            "dim N = {ROWS}\ninput X: f32[N, {COLUMNS}] = {source}\ninput y: f32[N] = uniform(-1, 1)\n\
             param w: f32[{COLUMNS}] = zeros\nloss = mean[n] (X[n,d] * w[d] - y[n])^2\n\
             train {{ loss: loss; data: (X, y) over N by 500 shuffle; steps: 50; optimizer: sgd(lr: 0.1) }}\noutput w\n"
        );
        let run = attempt_in(folder.path().into(), &text, sites, &|_, _| {}).unwrap();
        run.outputs["w"].clone()
    };
    for sites in [1, 3] {
        let want = trained("uniform(-1, 1)", sites);
        assert!(want.iter().any(|w| *w != 0.0));
        for file in ["little", "big"] {
            let got = trained(&format!("load(\"{file}.npy\")"), sites);
            assert_eq!(got, want, "{file}, {sites} sites");
        }
    }
}
