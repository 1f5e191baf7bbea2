//! Has the crate built again when the files of the web UI change, which it embeds.

fn main() {
    println!("cargo::rerun-if-changed=../../ui/dist");
}
