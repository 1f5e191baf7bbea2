//! `servo doctor`: what this machine would run with, and where its state lies. Changes nothing.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use servo_core::TimeZones;

use crate::backend::other_process;
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::time_zones::Source;

pub(crate) async fn run(location: &Location, zones: &Source, format: Format) -> anyhow::Result<Exit> {
    let project = location.project.find();
    let python = location.project.python();
    let sdk = python.as_ref().ok().and_then(|(_, interpreter)| sdk_version(interpreter));
    let client = other_process(location).await?;
    let server = match &client {
        Some(client) => Some(client.version().await.map(|version| version.version)),
        None => None,
    };
    let readiness = match &client {
        Some(client) => client.ready().await.ok(),
        None => None,
    };
    let (origin, directory) = match zones {
        Source::Named(path) => ("SERVO_TZDATA", Some(path)),
        Source::Package(path) => ("the tzdata package of the project", Some(path)),
        Source::Compiled => ("compiled in", None),
    };
    let found = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "project": match &project {
            Ok(project) => json!({ "root": project.root().display().to_string() }),
            Err(error) => json!({ "problem": error.to_string() }),
        },
        "python": match &python {
            Ok((_, interpreter)) => json!({ "interpreter": interpreter.display().to_string(), "sdk_version": sdk }),
            Err(error) => json!({ "problem": error.to_string() }),
        },
        "state": {
            "directory": location.dir().display().to_string(),
            "tenant": location.tenant.to_string(),
            "workspace": location.workspace.to_string(),
            "exists": location.exists(),
        },
        "time_zones": {
            "version": TimeZones::in_use().version(),
            "source": origin,
            "directory": directory.map(|path| path.display().to_string()),
            "compiled_version": TimeZones::compiled_version(),
        },
        "server": match &server {
            None => Value::Null,
            Some(Ok(version)) => json!({ "version": version, "readiness": readiness }),
            Some(Err(error)) => json!({ "problem": error.to_string() }),
        },
    });
    match format {
        Format::Json => output::json(&found)?,
        Format::Table => table(&found),
    }
    let is_served = readiness.is_none_or(|readiness| readiness.status == "ok");
    let is_well = project.is_ok() && sdk.is_some() && !matches!(server, Some(Err(_))) && is_served;
    Ok(if is_well { Exit::Done } else { Exit::Failed })
}

/// One line for each part, with what is wrong with it.
fn table(found: &Value) {
    let text = |path: &str| found.pointer(path).and_then(Value::as_str);
    let told = |part: &str, value: &str| match text(&format!("/{part}/problem")) {
        Some(problem) => format!("problem: {problem}"),
        None => text(value).unwrap_or("none").to_owned(),
    };
    let sdk = match (text("/python/problem"), text("/python/sdk_version")) {
        (Some(_), _) => "none".to_owned(),
        (None, Some(version)) => version.to_owned(),
        (None, None) => {
            "problem: this Python cannot import servo; install servo-orchestrator in it".to_owned()
        }
    };
    let zones = [text("/time_zones/version"), text("/time_zones/source"), text("/time_zones/directory")];
    let is_new = found.pointer("/state/exists") != Some(&Value::Bool(true));
    let state = told("state", "/state/directory") + if is_new { " (nothing was written yet)" } else { "" };
    let server = match found.pointer("/server") {
        Some(Value::Null) | None => "none runs here".to_owned(),
        Some(_) => told("server", "/server/version"),
    };
    let rows = [
        ("servo", told("version", "/version")),
        ("project", told("project", "/project/root")),
        ("python", told("python", "/python/interpreter")),
        ("sdk", sdk),
        ("state", state),
        ("time zones", zones.into_iter().flatten().collect::<Vec<_>>().join(", ")),
        ("server", server),
    ];
    let mut rows: Vec<_> = rows.map(|(part, value)| vec![part.to_owned(), value]).into();
    for check in found.pointer("/server/readiness/checks").and_then(Value::as_array).into_iter().flatten() {
        let texts = check["details"].as_array().into_iter().flatten().filter_map(Value::as_str);
        if let Some(reason) = check["reason"].as_str() {
            let told: Vec<&str> = std::iter::once(reason).chain(texts).collect();
            let name = check["name"].as_str().unwrap_or_default();
            rows.push(vec![format!("server: {name}"), format!("problem: {}", told.join("; "))]);
        }
    }
    output::table(&["part", "found"], &[], rows);
}

/// The version of the SDK that an interpreter would import.
fn sdk_version(interpreter: &Path) -> Option<String> {
    let program = "import servo; print(servo.__version__)";
    let output = Command::new(interpreter).args(["-c", program]).output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    Some(printed.trim().to_owned()).filter(|version| output.status.success() && !version.is_empty())
}
