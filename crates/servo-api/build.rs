//! Embeds the files of the web UI in release builds. Other builds read them from disk, so that nothing is compiled again
//! when they change.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rustc-check-cfg=cfg(embedded_ui)");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("PROFILE").is_ok_and(|profile| profile != "release") {
        return Ok(());
    }
    println!("cargo::rustc-cfg=embedded_ui");
    println!("cargo::rerun-if-changed=../../ui/dist");
    let dist = Path::new(&env::var("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../ui/dist");
    let mut files = Vec::new();
    if dist.is_dir() {
        collect(&dist.canonicalize()?, &mut files)?;
    }
    files.sort();
    let mut table = String::from("&[\n");
    for (name, path) in &files {
        let _infallible =
            writeln!(table, "    ({name:?}, include_bytes!({:?})),", path.display().to_string());
    }
    table.push_str("]\n");
    fs::write(Path::new(&env::var("OUT_DIR").unwrap_or_default()).join("ui_files.rs"), table)
}

/// Every file with its path from the root, with `/` between the parts.
fn collect(root: &Path, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            let parts = path.strip_prefix(root).map_err(io::Error::other)?.iter();
            let parts: Vec<String> = parts.map(|part| part.to_string_lossy().into_owned()).collect();
            files.push((parts.join("/"), path));
        }
    }
    Ok(())
}
