//! `servo open`: lets a browser in to the server of the workspace.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::json;

use crate::backend::other_process;
use crate::exit::Exit;
use crate::location::{Location, write_private};
use crate::output::{self, Format};

/// Options of `servo open`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only print the link, which lets one browser in, once.
    #[arg(long)]
    print: bool,
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<Exit> {
    let Some(client) = other_process(location).await? else {
        bail!("no server has this workspace; start one with servo dev");
    };
    let link = format!("{}{}", client.server(), client.login().await?.path);
    let is_opened = !options.print && browse(&location.dir(), &link)?;
    match format {
        Format::Json => output::json(&json!({ "url": link, "opened": is_opened }))?,
        Format::Table if is_opened => eprintln!("{} is opened in a browser", client.server()),
        Format::Table => println!("{link}"),
    }
    Ok(Exit::Done)
}

/// Opens a link in the browser of the user, if there is one. Arguments of a process can be read by every user of the
/// machine, so the browser is given a file that only this one can read.
pub(crate) fn browse(dir: &Path, link: &str) -> anyhow::Result<bool> {
    let page = dir.join("open.html");
    let text = format!(
        "<!doctype html><meta charset=\"utf-8\"><meta http-equiv=\"refresh\" content=\"0;url={link}\"><title>Servo</title>\
         <a href=\"{link}\">Servo</a>\n"
    );
    write_private(&page, text.as_bytes()).with_context(|| format!("writing {}", page.display()))?;
    let page = page.canonicalize().with_context(|| format!("finding {}", page.display()))?;
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = Command::new(opener);
    let started = command.arg(page).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match started {
        Ok(mut opener) => {
            std::thread::spawn(move || opener.wait());
            Ok(true)
        }
        Err(_) => Ok(false),
    }
}
