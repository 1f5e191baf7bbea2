//! `servo plan`: what would run, in which order, and why each task is in it. Changes nothing.

use std::process::ExitCode;
use std::sync::Arc;

use servo_core::partitions::Moment;
use servo_engine::RunRequest;
use servo_engine::definitions::Definitions;
use servo_engine::planner::{PartitionChoice, Planned, PlannedInput, PlannedTask, Why};
use servo_engine::requests::{self, PlannedRun};

use crate::assets::now;
use crate::describe;
use crate::known::Known;
use crate::location::Location;
use crate::output::{self, Format};

/// Which assets and partitions.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which assets: names, globs, +upstream, downstream+, tag:, group:, owner:, kind:, and, or, not.
    selection: String,
    #[command(flatten)]
    partitions: PartitionArgs,
    /// How many tasks to show.
    #[arg(long, default_value_t = 50)]
    limit: usize,
}

/// Which partitions.
#[derive(clap::Args)]
pub(crate) struct PartitionArgs {
    /// A partition, or those of a time: 2013-01-15, 2013-01, date=2013-01-15,region=eu; may be given several times.
    #[arg(long = "partition", value_name = "KEY")]
    keys: Vec<String>,
    /// A range of partitions, both ends included, either may be left open; may be given several times.
    #[arg(long = "partitions", value_name = "FROM..TO")]
    ranges: Vec<String>,
    /// The newest partition of every asset.
    #[arg(long)]
    latest: bool,
}

impl PartitionArgs {
    pub(crate) fn choice(&self) -> PartitionChoice {
        PartitionChoice { keys: self.keys.clone(), ranges: self.ranges.clone(), latest: self.latest }
    }
}

pub(crate) async fn run(location: &Location, options: &Options, format: Format) -> anyhow::Result<ExitCode> {
    let definitions = location.project.definitions()?;
    let known = Known::read(location).await?;
    let now = now();
    let at = known.at(now);
    let request = RunRequest {
        selection: options.selection.clone(),
        partitions: options.partitions.choice(),
        ..RunRequest::default()
    };
    let PlannedRun { planned, definitions, .. } =
        requests::plan_with(known.state(), Arc::new(definitions), &request, now)?;
    let shown = Shown { definitions: &definitions, planned: &planned, at };
    match format {
        Format::Json => shown.json(),
        Format::Table => shown.table(options.limit),
    }
    Ok(ExitCode::SUCCESS)
}

struct Shown<'a> {
    definitions: &'a Definitions,
    planned: &'a Planned,
    at: Moment<'a>,
}

impl Shown<'_> {
    /// The positions of tasks in the order in which they could run.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.planned.tasks.len()).collect();
        order.sort_by_key(|task| self.planned.tasks[*task].stage);
        order
    }

    fn table(&self, limit: usize) {
        let tasks = &self.planned.tasks;
        let (count, stages) = (tasks.len(), self.planned.stages);
        let edges: usize = self.planned.plan.tasks().iter().map(|task| task.upstream.len()).sum();
        output::line(format_args!(
            "{count} task{} in {stages} stage{}, {edges} edge{}, {}\n",
            plural(count),
            plural(stages as usize),
            plural(edges),
            self.planned.plan.fingerprint(),
        ));
        let row = |task: &usize| {
            let task = &tasks[*task];
            let partition = task.partition.as_ref().map(ToString::to_string).unwrap_or_default();
            let inputs: Vec<String> = task.inputs.iter().map(|input| self.input(input)).collect();
            let why = self.why(task).join("; ");
            vec![(task.stage + 1).to_string(), self.names(task), partition, why, inputs.join("; ")]
        };
        output::table(
            &["stage", "asset", "partition", "why", "reads"],
            &[0],
            self.order().iter().take(limit).map(row).collect(),
        );
        if count > limit {
            output::line(format_args!(
                "\nand {} more; see them with --limit {count} or --json",
                count - limit
            ));
        }
        let never =
            tasks.iter().flat_map(|task| &task.inputs).filter(|input| input.never_materialized.is_some());
        if let never @ 1.. = never.count() {
            output::line(format_args!(
                "\n{never} input{} never materialized; select {} too (\"+name\"), or run {} first",
                if never == 1 { " was" } else { "s were" },
                if never == 1 { "it" } else { "them" },
                if never == 1 { "it" } else { "them" },
            ));
        }
        for external in &self.planned.external {
            output::line(format_args!(
                "{} is external and is not run",
                self.definitions.asset(*external).key
            ));
        }
    }

    fn names(&self, task: &PlannedTask) -> String {
        let names: Vec<String> =
            task.assets.iter().map(|asset| self.definitions.asset(*asset).key.to_string()).collect();
        names.join(" + ")
    }

    /// Every reason for a task.
    fn why(&self, task: &PlannedTask) -> Vec<String> {
        let word = |why: &Why| match why {
            Why::Selected { part } => format!("selected by {part}"),
            Why::Upstream { of } => format!("upstream of {of}"),
            Why::Downstream { of } => format!("downstream of {of}"),
            Why::SameFunction { of } => format!("made together with {}", self.definitions.asset(*of).key),
        };
        self.planned.reasons(task).map(|reason| word(&reason.why)).collect()
    }

    fn input(&self, input: &PlannedInput) -> String {
        let asset = self.definitions.asset(input.asset);
        let which = match input.partitions.is_empty() {
            true => String::new(),
            false => describe::set(asset.partitions.as_deref(), &input.partitions, self.at),
        };
        let mut parts = Vec::new();
        if input.in_run > 0 {
            parts.push(if u128::from(input.in_run) == input.partitions.len() {
                "in this run".to_owned()
            } else {
                format!("{} in this run", input.in_run)
            });
        }
        if input.materialized > 0 {
            parts.push(format!("{} materialized before", input.materialized));
        }
        if let Some((_, count)) = &input.never_materialized {
            parts.push(if *count == input.partitions.len() {
                "never materialized".to_owned()
            } else {
                format!("{count} never materialized")
            });
        }
        if asset.def.external {
            parts.push("external".to_owned());
        }
        if input.partitions.is_empty() {
            parts.push("none".to_owned());
        }
        let space = if which.is_empty() { "" } else { " " };
        format!("{}{space}{which} ({})", asset.key, parts.join(", "))
    }

    fn json(&self) {
        let specs = self.planned.plan.tasks();
        let tasks: Vec<_> = self
            .planned
            .tasks
            .iter()
            .zip(specs.iter())
            .map(|(task, spec)| {
                serde_json::json!({
                    "task_key": spec.task_key.as_str(),
                    "assets": task.assets.iter().map(|asset| self.definitions.asset(*asset).key.to_string()).collect::<Vec<_>>(),
                    "partition": task.partition.as_ref().map(ToString::to_string),
                    "partition_key": task.partition.as_ref().map(|key| key.canonical().to_owned()),
                    "stage": task.stage,
                    "why": self.why(task),
                    "upstream": spec.upstream.iter().map(|at| specs[*at as usize].task_key.as_str()).collect::<Vec<_>>(),
                    "inputs": task.inputs.iter().map(|input| self.input_json(input)).collect::<Vec<_>>(),
                })
            })
            .collect();
        output::json(&serde_json::json!({
            "fingerprint": self.planned.plan.fingerprint().to_string(),
            "stages": self.planned.stages,
            "external": self.planned.external.iter().map(|asset| self.definitions.asset(*asset).key.to_string()).collect::<Vec<_>>(),
            "tasks": tasks,
        }));
    }

    fn input_json(&self, input: &PlannedInput) -> serde_json::Value {
        let asset = self.definitions.asset(input.asset);
        serde_json::json!({
            "asset": asset.key.to_string(),
            "parameter": input.parameter,
            "partitions": describe::set(asset.partitions.as_deref(), &input.partitions, self.at),
            "count": u64::try_from(input.partitions.len()).ok(),
            "in_run": input.in_run,
            "materialized": input.materialized,
            "never_materialized": input.never_materialized.as_ref().map(|(first, count)| serde_json::json!({
                "count": u64::try_from(*count).ok(),
                "first": first.as_ref().map(ToString::to_string),
            })),
        })
    }
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}
