//! `servo completion` and `servo man`: what shells and `man` know of the commands, made from their declarations.

use std::path::PathBuf;

use anyhow::Context;
use clap_complete::Shell;

use crate::exit::Exit;
use crate::output;

/// Options of `servo completion`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The shell.
    shell: Shell,
}

/// Options of `servo man`.
#[derive(clap::Args)]
pub(crate) struct ManOptions {
    /// The directory for the pages; made if it is not there.
    directory: PathBuf,
}

pub(crate) fn script(options: &Options, mut command: clap::Command) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut command, "servo", &mut script);
    output::line(String::from_utf8_lossy(&script).trim_end());
    Ok(Exit::Done)
}

pub(crate) fn manual(options: &ManOptions, command: clap::Command) -> anyhow::Result<Exit> {
    let directory = &options.directory;
    let written = || format!("writing the manual to {}", directory.display());
    std::fs::create_dir_all(directory).with_context(written)?;
    clap_mangen::generate_to(command, directory).with_context(written)?;
    let pages = std::fs::read_dir(directory).with_context(written)?;
    let is_ours = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("servo");
    let count = pages.filter_map(Result::ok).filter(|page| is_ours(&page.file_name())).count();
    output::line(format_args!("{count} pages in {}", directory.display()));
    Ok(Exit::Done)
}
