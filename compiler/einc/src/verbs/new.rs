//! `einc new`: a folder with a small program that runs at once.
//!
//! Must not know the compiler.
//!
//! ```text
//! $ einc new knn
//! $ einc run knn/knn.ein
//! ```

use clap::Args;
use einc_driver::exit;
use std::{
    fs, io,
    path::{Path, PathBuf},
};

const PROGRAM: &str = include_str!("new/program.ein");
const README: &str = include_str!("new/README.md");

/// Make a folder with a small program that runs at once
///
/// The program draws its data at random, so there is nothing to download; its README says how to run it on your own
/// data and on more sites.
#[derive(Args)]
#[command(after_help = "\
Examples:
  einc new knn && einc run knn/knn.ein")]
pub struct Arguments {
    /// The folder to make; its name becomes the program's
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub fn perform(arguments: Arguments) -> i32 {
    let folder = arguments.folder;
    let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
        exit::complain("error: a new folder needs a name, such as `einc new knn`\n");
        return 2;
    };
    match make(&folder, name) {
        Ok(()) => {
            let file = folder.join(format!("{name}.ein"));
            exit::say(&format!(
                "made {}\nrun it:   einc run {}\n",
                folder.display(),
                file.display()
            ));
            0
        }
        Err(error) => {
            let why = match error.kind() {
                io::ErrorKind::AlreadyExists => "it exists already".into(),
                io::ErrorKind::NotFound => "the folder that it should be in does not exist".into(),
                _ => error.to_string(),
            };
            exit::complain(&format!("error: cannot make {}: {why}\n", folder.display()));
            1
        }
    }
}

fn make(folder: &Path, name: &str) -> io::Result<()> {
    fs::create_dir(folder)?;
    fs::write(folder.join(format!("{name}.ein")), PROGRAM)?;
    fs::write(folder.join("README.md"), README.replace("NAME", name))
}
