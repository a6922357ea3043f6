//! Makes the table of code pages from the files in `codes/`.

use std::{env, error::Error, fmt::Write, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=codes");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("codes");
    let mut pages: Vec<_> = fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
    pages.sort_by_key(|page| page.file_name());
    let mut table = String::from("&[\n");
    for page in pages {
        let path = page.path();
        let code = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .ok_or("a page's name is not UTF-8")?;
        writeln!(table, "    ({code:?}, include_str!({path:?})),")?;
    }
    table.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR")?).join("pages.rs"), table)?;
    Ok(())
}
