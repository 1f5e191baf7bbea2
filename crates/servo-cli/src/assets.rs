//! `servo asset list|show|graph`: what the project declares.

use std::process::ExitCode;

use anyhow::bail;
use servo_core::partitions::Moment;
use servo_core::selection::similar_assets;
use servo_core::{AssetKey, Clock};
use servo_engine::definitions::{Asset, CheckDef, Definitions, Dep};

use crate::graph;
use crate::known::Known;
use crate::location::Location;
use crate::output::{self, Format};
use crate::{describe, select};

/// Look at assets.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// The assets of the project.
    #[command(
        after_help = "Examples:\n  servo asset list\n  servo asset list '+analytics.weekly and not kind:view'"
    )]
    List {
        /// Which: names, globs, +upstream, downstream+, tag:, group:, owner:, kind:, and, or, not.
        #[arg(default_value = "*")]
        selection: String,
    },
    /// Everything about one asset.
    #[command(after_help = "Example:\n  servo asset show analytics.delays")]
    Show {
        /// Its name.
        asset: String,
    },
    /// What depends on what: a tree from the sources on.
    #[command(
        after_help = "Examples:\n  servo asset graph\n  servo asset graph '+analytics.weekly' --dot | dot -Tsvg > graph.svg"
    )]
    Graph {
        /// Which assets; edges to others are left out.
        #[arg(default_value = "*")]
        selection: String,
        /// Print the graph in the language of Graphviz.
        #[arg(long)]
        dot: bool,
    },
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<ExitCode> {
    let definitions = location.project.definitions()?;
    match command {
        Command::List { selection } => {
            let known = Known::read(location).await?;
            list(&definitions, &select::positions(&definitions, selection)?, known.at(now()), format);
        }
        Command::Show { asset } => {
            let known = Known::read(location).await?;
            let position = find(&definitions, asset)?;
            let asset = definitions.asset(position);
            match format {
                Format::Json => output::json(&asset_json(&definitions, asset, known.at(now()))),
                Format::Table => show(&definitions, position, known.at(now())),
            }
        }
        Command::Graph { selection, dot } => {
            let positions = select::positions(&definitions, selection)?;
            graph::print(&definitions, &positions, *dot, format);
        }
    }
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn now() -> servo_core::Timestamp {
    servo_runtime::SystemClock.now()
}

/// Where an asset stands, or which was meant.
pub(crate) fn find(definitions: &Definitions, name: &str) -> anyhow::Result<u32> {
    let key = AssetKey::parse(name)?;
    match definitions.position(&key) {
        Some(position) => Ok(position),
        None => {
            let similar = similar_assets(&key, definitions.assets().iter().map(|asset| &asset.key));
            match similar.as_slice() {
                [] => bail!("there is no asset {key}; see the names with \"servo asset list\""),
                similar => bail!("there is no asset {key}; did you mean {}?", similar.join(" or ")),
            }
        }
    }
}

fn list(definitions: &Definitions, positions: &[u32], at: Moment<'_>, format: Format) {
    let assets: Vec<&Asset> = positions.iter().map(|position| definitions.asset(*position)).collect();
    if format == Format::Json {
        let assets: Vec<_> = assets.iter().map(|asset| asset_json(definitions, asset, at)).collect();
        output::json(&serde_json::json!({ "project": definitions.project(), "assets": assets }));
        return;
    }
    if assets.is_empty() {
        output::line("no assets; declare one with @asset in a module that servo.toml names");
        return;
    }
    let row = |asset: &&Asset| {
        let kind = if asset.def.external { "external".to_owned() } else { asset.def.kinds.join(", ") };
        let count = asset.partitions.as_ref().map(|partitions| partitions.count(at).to_string());
        vec![
            asset.key.to_string(),
            kind,
            asset.def.group.clone().unwrap_or_default(),
            asset.def.partitions.as_ref().map(describe::partitions).unwrap_or_default(),
            count.unwrap_or_default(),
            asset.deps.len().to_string(),
            asset.def.checks.len().to_string(),
        ]
    };
    output::table(
        &["asset", "kind", "group", "partitioned", "partitions", "reads", "checks"],
        &[4, 5, 6],
        assets.iter().map(row).collect(),
    );
}

fn show(definitions: &Definitions, position: u32, at: Moment<'_>) {
    let asset = definitions.asset(position);
    let def = &asset.def;
    output::line(&asset.key);
    if let Some(description) = &def.description {
        output::line(format_args!("  {}", description.trim().replace('\n', "\n  ")));
    }
    output::line("");
    let mut facts: Vec<(&str, String)> = vec![("declared", def.location.to_string())];
    let mut fact =
        |name, value: Option<String>| facts.extend(value.filter(|v| !v.is_empty()).map(|v| (name, v)));
    fact(
        "made by",
        def.function.clone().or_else(|| def.external.then(|| "something else (external)".to_owned())),
    );
    let together = definitions.made_with(position).filter(|other| *other != position);
    fact("made with", Some(keys(definitions, together)));
    fact("code version", def.code_version.clone());
    fact("group", def.group.clone());
    fact("kinds", Some(def.kinds.join(", ")));
    fact("owners", Some(def.owners.join(", ")));
    let tags: Vec<String> = def.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    fact("tags", Some(tags.join(", ")));
    fact("partitioned", def.partitions.as_ref().map(describe::partitions));
    if let Some(partitions) = &asset.partitions {
        let count = partitions.count(at);
        let ends = partitions.key(0, at).zip(partitions.key(count.saturating_sub(1), at));
        let ends = ends.map(|(first, last)| format!(", {first} to {last}")).unwrap_or_default();
        fact("partitions", Some(format!("{count}{ends}")));
    }
    fact(
        "retry",
        def.retry
            .as_ref()
            .map(|retry| format!("{} attempts, first after {}", retry.max_attempts, retry.initial_delay_ms)),
    );
    fact("timeout", def.timeout_ms.map(|timeout| timeout.to_string()));
    fact("fresh within", def.freshness.as_ref().map(|freshness| freshness.max_lag_ms.to_string()));
    fact("queue", def.queue.clone());
    fact("resources", Some(def.resources.join(", ")));
    let secrets: Vec<String> =
        def.secrets.iter().map(|secret| format!("{} ({})", secret.name, secret.provider)).collect();
    fact("secrets", Some(secrets.join(", ")));
    let fields = def.config.iter().flat_map(|config| &config.fields).map(|field| field.name.clone());
    fact("config", Some(fields.collect::<Vec<_>>().join(", ")));
    for (name, value) in facts {
        output::line(format_args!("  {name:<13} {value}"));
    }
    let reads = |dep: &Dep| {
        let of = definitions.asset(dep.asset);
        let which = of.partitions.as_ref().map(|_| describe::mapping(&dep.def)).unwrap_or_default();
        let parameter = dep.parameter.as_ref().map(|parameter| format!("as {parameter}"));
        vec![of.key.to_string(), which, parameter.unwrap_or_default()]
    };
    output::section("reads", &asset.deps.iter().map(reads).collect::<Vec<_>>());
    let reads_it = |other: &&Asset| other.deps.iter().any(|dep| dep.asset == position);
    let readers = definitions.assets().iter().filter(reads_it).map(|reader| vec![reader.key.to_string()]);
    output::section("read by", &readers.collect::<Vec<_>>());
    let check = |check: &CheckDef| {
        let severity = serde_json::to_value(check.severity).unwrap_or_default();
        vec![check.name.clone(), severity.as_str().unwrap_or_default().to_owned()]
    };
    output::section("checks", &def.checks.iter().map(check).collect::<Vec<_>>());
}

fn keys(definitions: &Definitions, positions: impl Iterator<Item = u32>) -> String {
    positions.map(|position| definitions.asset(position).key.to_string()).collect::<Vec<_>>().join(", ")
}

fn asset_json(definitions: &Definitions, asset: &Asset, at: Moment<'_>) -> serde_json::Value {
    let deps: Vec<_> = asset
        .deps
        .iter()
        .map(|dep| {
            serde_json::json!({
                "asset": definitions.asset(dep.asset).key.to_string(),
                "parameter": dep.parameter,
                "mapping": dep.def,
            })
        })
        .collect();
    let mut value = serde_json::to_value(&*asset.def).unwrap_or_default();
    value["key"] = asset.key.to_string().into();
    value["deps"] = deps.into();
    value["partition_count"] = match &asset.partitions {
        Some(partitions) => u64::try_from(partitions.count(at)).ok().into(),
        None => serde_json::Value::Null,
    };
    value
}
