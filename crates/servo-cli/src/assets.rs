//! `servo asset list|show|lineage|graph`: what the project declares.

use servo_api::client::{Client, ClientError, ListOptions, all_pages};
use servo_api::views::{Asset, AssetDep, AssetDetail, MaterializationDetail};
use servo_api::{Code, Page};
use servo_core::AssetKey;
use servo_engine::definitions::{AssetDef, CheckDef};

use crate::backend::{Need, through};
use crate::exit::Exit;
use crate::location::Location;
use crate::output::{self, Format};
use crate::{describe, freshness, graph, lineage, materialization, renames};

/// Inspect assets.
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
    /// Show details of one asset, and what is known of its data: metadata, columns, first rows.
    #[command(
        after_help = "Examples:\n  servo asset show analytics.delays\n  servo asset show analytics.delays -p 2013-01-15"
    )]
    Show {
        /// Its name.
        #[arg(value_parser = AssetKey::parse)]
        asset: AssetKey,
        /// The partition whose data is shown [default: the last that was made].
        #[arg(short, long, value_name = "KEY")]
        partition: Option<String>,
    },
    /// Show what was read to make data, and what was made of it: by execution, not by declaration.
    #[command(
        after_help = "Examples:\n  servo asset lineage analytics.weekly\n  servo asset lineage raw.flights -p 2013-01-15 --down --depth 2"
    )]
    Lineage(lineage::Options),
    /// Show how old the data of assets is that have a freshness policy, and whether that is allowed.
    #[command(
        after_help = "Examples:\n  servo asset freshness\n  servo asset freshness 'group:reports' --status fail --json"
    )]
    Freshness(freshness::Options),
    /// Give what was made of an asset to another name: history, status and data.
    #[command(
        after_help = "Rename it in the code and deploy first; renamed_from=\"raw.flights\" there does both at once.\n\nExample:\n  servo asset rename raw.flights raw.arrivals"
    )]
    Rename(renames::Options),
    /// Show dependencies between assets as a tree from the sources.
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

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    if let Command::Freshness(options) = command {
        return freshness::run(location, options, format).await;
    }
    if let Command::Rename(options) = command {
        return renames::run(location, options, format).await;
    }
    if let Command::Lineage(options) = command {
        return lineage::run(location, options, format).await;
    }
    through(location, Need::ReadProject, async |client| match command {
        Command::Lineage(_) | Command::Freshness(_) | Command::Rename(_) => Ok(()),
        Command::List { selection } => list(selected(client, selection).await?, format),
        Command::Show { asset, partition } => {
            let detail = client.asset(asset).await?;
            let made = made(client, asset, partition.as_deref()).await?;
            show(&detail, made.as_ref(), format)
        }
        Command::Graph { selection, dot } => {
            let graph = graph::of(selected(client, selection).await?);
            match (format, dot) {
                (_, true) => graph::dot(&graph),
                (Format::Json, false) => output::json(&graph)?,
                (Format::Table, false) => graph::tree(&graph),
            }
            Ok(())
        }
    })
    .await?;
    Ok(Exit::Done)
}

async fn selected(client: &Client, selection: &str) -> anyhow::Result<Vec<Asset>> {
    Ok(all_pages(async |options: &ListOptions| client.assets(selection, options).await).await?)
}

fn list(assets: Vec<Asset>, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        return output::json(&Page { items: assets, next_cursor: None });
    }
    if assets.is_empty() {
        output::line("no assets; declare one with @asset in a module that servo.toml names");
        return Ok(());
    }
    let row = |asset: &Asset| {
        let kind = if asset.external { "external".to_owned() } else { asset.kinds.join(", ") };
        let count = asset.partitioned.then(|| asset.partitions.total.to_string());
        vec![
            asset.asset_key.to_string(),
            kind,
            asset.group.clone().unwrap_or_default(),
            asset.partitioning.as_ref().map(describe::partitions).unwrap_or_default(),
            count.unwrap_or_default(),
            asset.upstream.len().to_string(),
            asset.checks.to_string(),
        ]
    };
    output::table(
        &["asset", "kind", "group", "partitioned", "partitions", "reads", "checks"],
        &[4, 5, 6],
        assets.iter().map(row).collect(),
    );
    Ok(())
}

/// The latest materialization; none if there is none, unless a partition of it was asked for.
async fn made(
    client: &Client,
    asset: &AssetKey,
    partition: Option<&str>,
) -> anyhow::Result<Option<MaterializationDetail>> {
    match client.materialization(asset, partition).await {
        Ok(made) => Ok(Some(made)),
        Err(ClientError::Problem(problem))
            if problem.code == Code::NeverMaterialized && partition.is_none() =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

fn show(detail: &AssetDetail, made: Option<&MaterializationDetail>, format: Format) -> anyhow::Result<()> {
    if format == Format::Json {
        let mut whole = serde_json::to_value(detail)?;
        if let Some(made) = made {
            whole["materialization"] = serde_json::to_value(made)?;
        }
        return output::json(&whole);
    }
    let asset = &detail.asset;
    let def: AssetDef = serde_json::from_value(detail.definition.clone())?;
    output::line(&asset.asset_key);
    if let Some(description) = &asset.description {
        output::line(format_args!("  {}", description.trim().replace('\n', "\n  ")));
    }
    output::line("");
    for (name, value) in facts(detail, &def) {
        output::line(format_args!("  {name:<13} {value}"));
    }
    let reads = |dep: &AssetDep| {
        let which = if dep.partitioned { describe::mapping(&dep.mapping) } else { String::new() };
        let parameter = dep.parameter.as_ref().map(|parameter| format!("as {parameter}"));
        vec![dep.asset_key.to_string(), which, parameter.unwrap_or_default()]
    };
    output::section("reads", &detail.deps.iter().map(reads).collect::<Vec<_>>());
    let readers = detail.downstream.iter().map(|reader| vec![reader.to_string()]);
    output::section("read by", &readers.collect::<Vec<_>>());
    let check = |check: &CheckDef| {
        let severity = serde_json::to_value(check.severity).unwrap_or_default();
        vec![check.name.clone(), severity.as_str().unwrap_or_default().to_owned()]
    };
    output::section("checks", &def.checks.iter().map(check).collect::<Vec<_>>());
    if let Some(made) = made {
        materialization::print(made);
    }
    Ok(())
}

/// The properties of an asset, one a line.
fn facts(detail: &AssetDetail, def: &AssetDef) -> Vec<(&'static str, String)> {
    let asset = &detail.asset;
    let mut facts: Vec<(&str, String)> = vec![("declared", def.location.to_string())];
    let mut fact =
        |name, value: Option<String>| facts.extend(value.filter(|v| !v.is_empty()).map(|v| (name, v)));
    let elsewhere = asset.external.then(|| "something else (external)".to_owned());
    fact("made by", def.function.clone().or(elsewhere));
    let together: Vec<String> = detail.made_with.iter().map(ToString::to_string).collect();
    fact("made with", Some(together.join(", ")));
    fact("code version", asset.code_version.clone());
    fact("group", asset.group.clone());
    fact("kinds", Some(asset.kinds.join(", ")));
    fact("owners", Some(asset.owners.join(", ")));
    let tags: Vec<String> = asset.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
    fact("tags", Some(tags.join(", ")));
    fact("partitioned", asset.partitioning.as_ref().map(describe::partitions));
    let ends = detail.first_partition.as_ref().zip(detail.last_partition.as_ref());
    let ends = ends.map(|(first, last)| format!(", {first} to {last}")).unwrap_or_default();
    fact("partitions", asset.partitioned.then(|| format!("{}{ends}", asset.partitions.total)));
    let retry = |retry: &servo_engine::RetryPolicy| {
        format!("{} attempts, first after {}", retry.max_attempts, retry.initial_delay_ms)
    };
    fact("retry", def.retry.as_ref().map(retry));
    let timeout = |timeout: servo_core::Millis| match def.timeout_ms {
        Some(_) => timeout.to_string(),
        None => format!("{timeout} (setting execution_timeout)"),
    };
    fact("timeout", detail.timeout_ms.map(timeout));
    fact("fresh within", def.freshness.as_ref().map(|freshness| freshness.max_lag_ms.to_string()));
    fact("queue", def.queue.clone());
    fact("pool", def.pool.clone());
    fact("resources", Some(def.resources.join(", ")));
    let secrets = def.secrets.iter().map(|secret| format!("{} ({})", secret.name, secret.provider));
    fact("secrets", Some(secrets.collect::<Vec<_>>().join(", ")));
    let fields = def.config.iter().flat_map(|config| &config.fields).map(|field| field.name.clone());
    fact("config", Some(fields.collect::<Vec<_>>().join(", ")));
    if let Some(health) = &detail.asset.health {
        fact("succeeded", health.last_success_at.map(|at| format!("last at {at}")));
        let since = match health.consecutive_failures {
            0 => String::new(),
            1 => ", and has not succeeded since".to_owned(),
            failures => format!(", {failures} times since it last succeeded"),
        };
        fact("failed", health.last_failure_at.map(|at| format!("last at {at}{since}")));
        let outcome = if health.last_check_passed == Some(true) { "passed" } else { "not all passed" };
        fact("checked", health.last_check_at.map(|at| format!("last at {at}: {outcome}")));
    }
    facts
}
