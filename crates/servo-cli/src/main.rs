//! The `servo` binary: parses, calls, prints. Results go to stdout, talk goes to stderr.

mod admin_keys;
mod admin_log;
mod admission;
mod api_keys;
mod assets;
mod audit;
mod automation;
mod backend;
mod backfills;
mod checks;
mod completion;
mod config;
mod contexts;
mod costs;
mod demo;
mod deploy;
mod deployments;
mod describe;
mod dev;
mod doctor;
mod exit;
mod follow;
mod freshness;
mod github;
mod graph;
mod identity;
mod init;
mod interrupts;
mod json_logs;
mod kept_logs;
mod keys;
mod keys_file;
mod lineage;
mod lists;
mod live;
mod location;
mod login;
mod materialization;
mod materialize;
mod named;
mod notifications;
mod open;
mod output;
mod owner;
mod partition_life;
mod partitions;
mod plan;
mod project;
mod projections;
mod quarantine;
mod queues;
mod reconcile;
mod renames;
mod retention;
mod runs;
mod schedules;
mod sensors;
mod serve;
mod session;
mod sessions;
mod sql;
mod sql_engine;
mod staleness;
mod style;
mod summary;
mod target;
mod tenants;
mod time_zones;
mod which;
mod worker;

use std::process::ExitCode;

use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use exit::Exit;
use location::Location;
use output::Format;

/// Many small things are made and dropped on many threads: this costs half of what the system's allocator does.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Keeps data assets up to date.
#[derive(Parser)]
#[command(name = "servo", version = env!("SERVO_VERSION"), propagate_version = true, arg_required_else_help = true, after_help = exit::HELP)]
struct Cli {
    #[command(flatten)]
    location: Location,
    /// Print JSON instead of tables.
    #[arg(long, global = true, help_heading = "Global options")]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Begin a project that runs at once.
    #[command(after_help = "Example:\n  servo init weather && cd weather && servo asset graph")]
    Init(init::Options),
    /// Make data: run what is selected, show how it goes, end with it.
    #[command(
        after_help = "Examples:\n  servo materialize analytics.delays --partition 2013-01-15\n  servo materialize '+analytics.weekly' --partitions 2013-01-01..2013-01-31\n  servo materialize '*' --latest --config least=20 --json"
    )]
    Materialize(materialize::Options),
    /// Serve the project on this machine: HTTP, workers, and the newest code whenever you save.
    #[command(after_help = "Example:\n  servo dev --slots 4")]
    Dev(dev::Options),
    /// Serve many tenants and workspaces, with keys and roles, until it is stopped.
    #[command(
        after_help = "Examples:\n  servo serve --dir /var/lib/servo\n  servo serve --listen 0.0.0.0:8741 --tls-cert server.pem --tls-key server.key --hosts servo.example.org"
    )]
    Serve(serve::Options),
    /// Open the server of the workspace in a browser, which is let in by a link that is good once.
    #[command(after_help = "Examples:\n  servo open\n  servo open --print")]
    Open(open::Options),
    /// Log in to a server, which commands are about from then on.
    #[command(
        after_help = "Examples:\n  servo login https://servo.example.org\n  servo login https://servo.example.org --name prod --key-stdin < key.txt"
    )]
    Login(login::LoginOptions),
    /// Forget a server and its key.
    #[command(after_help = "Example:\n  servo logout prod")]
    Logout(login::LogoutOptions),
    /// Look at servers that you have logged in to, and choose the one that commands are about.
    #[command(subcommand)]
    Context(login::Command),
    /// Run tasks of a server on this machine, or list those who do.
    #[command(
        after_help = "Examples:\n  servo worker --server http://127.0.0.1:8741 --slots 8\n  servo worker --context prod\n  servo worker list"
    )]
    Worker(worker::Options),
    /// Look at what the project declares.
    #[command(subcommand)]
    Asset(assets::Command),
    /// Show what would run, in which order, and why. Changes nothing.
    #[command(
        after_help = "Examples:\n  servo plan analytics.delays --partition 2013-01-15\n  servo plan '+analytics.weekly' --partitions 2013-01-01..2013-01-31\n  servo plan '*' --latest --json"
    )]
    Plan(plan::Options),
    /// Run checks alone, on what is materialized.
    #[command(subcommand)]
    Check(checks::Command),
    /// Check the project and make it what the workspace runs.
    #[command(after_help = "Examples:\n  servo deploy --dry-run\n  servo deploy")]
    Deploy(deploy::Options),
    /// Look at deployments, compare them, and return to an earlier one.
    #[command(subcommand)]
    Deployment(deployments::Command),
    /// Look at partitions; add and remove keys of dynamic ones.
    #[command(subcommand)]
    Partition(partitions::Command),
    /// Explain why an asset or one of its partitions is stale, down to the root cause.
    #[command(
        after_help = "Examples:\n  servo why analytics.weekly\n  servo why analytics.delays --partition 2013-01-15 --json"
    )]
    Why(staleness::WhyOptions),
    /// Run a small graph with the in-process executor and show what became of it.
    #[command(after_help = "Examples:\n  servo demo\n  servo demo --dir /tmp/servo-demo --width 100")]
    Demo(demo::Options),
    /// List, follow, cancel and retry runs.
    #[command(subcommand)]
    Run(runs::Command),
    /// Look at schedules, pause, resume and trigger them; create those that no code declares.
    #[command(subcommand)]
    Schedule(schedules::Command),
    /// Look at sensors, evaluate, pause and resume them, send them messages; create those that no code declares.
    #[command(subcommand)]
    Sensor(sensors::Command),
    /// Look at automation conditions of assets: list, explain, pause, resume.
    #[command(subcommand)]
    Automation(automation::Command),
    /// Look at notification rules, test, pause and resume them; create those that no code declares.
    #[command(subcommand)]
    Notification(notifications::Command),
    /// Make many partitions, chunk by chunk: preview, create, follow, pause, resume, cancel, retry what failed.
    #[command(subcommand)]
    Backfill(backfills::Command),
    /// Look at queues: what waits for each, and who serves it.
    #[command(subcommand)]
    Queue(queues::Command),
    /// Review materializations that checks blocked.
    #[command(subcommand)]
    Quarantine(quarantine::Command),
    /// Show who did what to what, when, and whether it was allowed.
    #[command(
        after_help = "Examples:\n  servo audit --action run --since 2026-01-05T00:00:00Z\n  servo audit --principal local --refused\n  servo audit --subject raw.orders --json"
    )]
    Audit(audit::Options),
    /// Show what attempts cost, failed ones too: by asset, day or run.
    #[command(
        after_help = "Examples:\n  servo cost\n  servo cost 'group:ingest' --by day --since 2026-01-01T00:00:00Z\n  servo cost --by run --limit 5 --json"
    )]
    Cost(costs::Options),
    /// Let the controllers look once, without a server: state from the tables, decisions into the log.
    #[command(after_help = "Example:\n  servo reconcile --once")]
    Reconcile(reconcile::Options),
    /// Query runs, tasks, partitions and the data of assets with SQL. Changes nothing.
    #[command(
        after_help = "Examples:\n  servo sql --tables\n  servo sql \"select state, count(*) from runs group by state\"\n  servo sql \"select * from raw.flights where _partition = '2013-01-15'\" --csv\n  servo sql - < query.sql"
    )]
    Sql(sql::Options),
    /// Show what commands would run with: project, Python, SDK, state, time zones, server.
    #[command(after_help = "Examples:\n  servo doctor\n  servo doctor --json")]
    Doctor,
    /// Show and change settings: limits, timeouts, what is kept.
    #[command(subcommand)]
    Config(config::Command),
    /// Look after a workspace.
    #[command(subcommand)]
    Admin(Admin),
    /// Print a script that completes commands and options in your shell.
    #[command(
        after_help = "Examples:\n  servo completion bash > ~/.local/share/bash-completion/completions/servo\n  servo completion zsh > ~/.zfunc/_servo\n  servo completion fish > ~/.config/fish/completions/servo.fish"
    )]
    Completion(completion::Options),
    /// Write the manual: a page for servo and one for each command.
    #[command(after_help = "Example:\n  servo man ~/.local/share/man/man1 && man servo-materialize")]
    Man(completion::ManOptions),
}

#[derive(Subcommand)]
enum Admin {
    /// List, verify and rebuild the tables.
    #[command(subcommand)]
    Projections(projections::Command),
    /// Show and remove what is not kept any more: logs, superseded data, quarantined outputs.
    #[command(subcommand)]
    Retention(retention::Command),
    /// Stop handing out tasks: of everything, a queue or an asset. What workers are at goes on.
    #[command(
        after_help = "Examples:\n  servo admin pause --reason 'the warehouse is down'\n  servo admin pause --queue gpu\n  servo admin pause --asset raw.flights"
    )]
    Pause(admission::PauseOptions),
    /// Hand out tasks again.
    #[command(after_help = "Examples:\n  servo admin resume\n  servo admin resume --queue gpu")]
    Resume(admission::Scope),
    /// Pause everything and wait until no worker is at anything.
    #[command(after_help = "Example:\n  servo admin drain --timeout 600")]
    Drain(admission::DrainOptions),
    /// Show what is paused and how full the workspace is.
    #[command(after_help = "Example:\n  servo admin status --json")]
    Status,
    /// Show who did what to what: the same as `servo audit`; with --server, to the server itself.
    #[command(
        after_help = "Examples:\n  servo admin audit --refused\n  servo admin audit --server --action key\n  servo admin audit --server --csv --limit 100000 > audit.csv"
    )]
    Audit(audit::Options),
    /// Create, list and revoke the keys that people and programs show a server.
    #[command(subcommand)]
    ApiKeys(api_keys::Command),
    /// List and end the sessions of people who have logged in to a server with a browser.
    #[command(subcommand)]
    Sessions(sessions::Command),
    /// Create, list, switch off and remove tenants of a server.
    #[command(subcommand)]
    Tenants(tenants::TenantCommand),
    /// Create, list, switch off and remove workspaces of a server.
    #[command(subcommand)]
    Workspaces(tenants::WorkspaceCommand),
    /// Show and change the limits of a tenant.
    #[command(subcommand)]
    Quotas(tenants::QuotaCommand),
    /// List and rotate the keys that sign envelopes, task tokens, cursors and sessions.
    #[command(subcommand)]
    Keys(admin_keys::Command),
    /// Look at a log that cannot be read to its end, and repair it.
    #[command(subcommand)]
    Log(admin_log::Command),
}

impl Command {
    /// Name of the command, shown to others that wait for it.
    fn name(&self) -> &'static str {
        match self {
            Self::Init(_) => "init",
            Self::Materialize(_) => "materialize",
            Self::Dev(_) => "dev",
            Self::Serve(_) => "serve",
            Self::Open(_) => "open",
            Self::Login(_) => "login",
            Self::Logout(_) => "logout",
            Self::Context(_) => "context",
            Self::Worker(_) => "worker",
            Self::Asset(_) => "asset",
            Self::Plan(_) => "plan",
            Self::Check(_) => "check",
            Self::Deploy(_) => "deploy",
            Self::Deployment(_) => "deployment",
            Self::Partition(_) => "partition",
            Self::Why(_) => "why",
            Self::Demo(_) => "demo",
            Self::Run(_) => "run",
            Self::Schedule(_) => "schedule",
            Self::Sensor(_) => "sensor",
            Self::Automation(_) => "automation",
            Self::Notification(_) => "notification",
            Self::Backfill(_) => "backfill",
            Self::Queue(_) => "queue",
            Self::Quarantine(_) => "quarantine",
            Self::Audit(_) => "audit",
            Self::Cost(_) => "cost",
            Self::Reconcile(_) => "reconcile",
            Self::Sql(_) => "sql",
            Self::Doctor => "doctor",
            Self::Config(_) => "config",
            Self::Admin(_) => "admin",
            Self::Completion(_) => "completion",
            Self::Man(_) => "man",
        }
    }
}

/// Whether an option of all commands was given, or is in the environment.
fn is_given(matches: &ArgMatches, name: &str) -> bool {
    comes_from(matches, name, |source| source != ValueSource::DefaultValue)
}

/// Whether an option of all commands has a value of such a source.
fn comes_from(matches: &ArgMatches, name: &str, is_such: fn(ValueSource) -> bool) -> bool {
    let is_here = matches.value_source(name).is_some_and(is_such);
    is_here || matches.subcommand().is_some_and(|(_, below)| comes_from(below, name, is_such))
}

/// Logs to stderr: what is worth a warning, and of a server everything that it does.
fn start_logging(command: &Command) {
    let default = if matches!(command, Command::Serve(_)) { "info" } else { "warn" };
    let filter = EnvFilter::try_from_env("SERVO_LOG").unwrap_or_else(|_| EnvFilter::new(default));
    if let Command::Serve(options) = command
        && options.logs_json()
    {
        return tracing_subscriber::registry().with(filter).with(json_logs::JsonLines).init();
    }
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
}

fn main() -> ExitCode {
    let parsed = Cli::command().try_get_matches().and_then(|matches| {
        let mut cli = Cli::from_arg_matches(&matches)?;
        cli.location.is_addressed = ["tenant", "workspace"].iter().any(|name| is_given(&matches, name));
        cli.location.is_url_flag = comes_from(&matches, "url", |source| source == ValueSource::CommandLine);
        cli.location.is_key_flag = comes_from(&matches, "key", |source| source == ValueSource::CommandLine);
        Ok(cli)
    });
    let mut cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return output::wrong_use(&error),
    };
    cli.location.command = cli.command.name();
    start_logging(&cli.command);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("error: the async runtime cannot start: {error}");
            return Exit::Failed.into();
        }
    };
    let format = if cli.json { Format::Json } else { Format::Table };
    let outcome = runtime.block_on(async {
        let zones = time_zones::install(&cli.location)?;
        match cli.command {
            Command::Init(options) => init::run(&options, format),
            Command::Materialize(options) => materialize::run(&cli.location, &options, format).await,
            Command::Dev(options) => dev::run(&cli.location, &options).await,
            Command::Serve(options) => serve::run(&cli.location, &options, format).await,
            Command::Open(options) => open::run(&cli.location, &options, format).await,
            Command::Login(options) => login::login(&cli.location, &options, format).await,
            Command::Logout(options) => login::logout(&options, format),
            Command::Context(command) => login::run(&cli.location, &command, format),
            Command::Worker(options) => worker::run(&cli.location, &options, format).await,
            Command::Queue(command) => queues::run(&cli.location, &command, format).await,
            Command::Quarantine(command) => quarantine::run(&cli.location, &command, format).await,
            Command::Backfill(command) => backfills::run(&cli.location, &command, format).await,
            Command::Automation(command) => automation::run(&cli.location, &command, format).await,
            Command::Schedule(command) => schedules::run(&cli.location, &command, format).await,
            Command::Sensor(command) => sensors::run(&cli.location, &command, format).await,
            Command::Notification(command) => notifications::run(&cli.location, &command, format).await,
            Command::Asset(command) => assets::run(&cli.location, &command, format).await,
            Command::Plan(options) => plan::run(&cli.location, &options, format).await,
            Command::Check(command) => checks::run(&cli.location, &command, format).await,
            Command::Deploy(options) => deploy::run(&cli.location, &options, format).await,
            Command::Deployment(command) => deployments::run(&cli.location, &command, format).await,
            Command::Partition(command) => partitions::run(&cli.location, &command, format).await,
            Command::Why(options) => staleness::why(&cli.location, &options, format).await,
            Command::Demo(options) => demo::run(&cli.location, &options, format).await,
            Command::Run(command) => runs::run(&cli.location, &command, format).await,
            Command::Audit(options) | Command::Admin(Admin::Audit(options)) => {
                audit::run(&cli.location, &options, format).await
            }
            Command::Cost(options) => costs::run(&cli.location, &options, format).await,
            Command::Reconcile(options) => reconcile::run(&cli.location, &options, format).await,
            Command::Sql(options) => sql::run(&cli.location, &options, format).await,
            Command::Doctor => doctor::run(&cli.location, &zones, format).await,
            Command::Completion(options) => completion::script(&options, Cli::command()),
            Command::Man(options) => completion::manual(&options, Cli::command()),
            Command::Config(command) => config::run(&cli.location, &command, format).await,
            Command::Admin(Admin::Pause(options)) => admission::pause(&cli.location, &options, format).await,
            Command::Admin(Admin::Resume(scope)) => admission::resume(&cli.location, &scope, format).await,
            Command::Admin(Admin::Drain(options)) => admission::drain(&cli.location, &options, format).await,
            Command::Admin(Admin::Status) => admission::status(&cli.location, format).await,
            Command::Admin(Admin::Projections(command)) => {
                projections::run(&cli.location, &command, format).await
            }
            Command::Admin(Admin::Retention(command)) => {
                retention::run(&cli.location, &command, format).await
            }
            Command::Admin(Admin::Log(command)) => admin_log::run(&cli.location, &command, format).await,
            Command::Admin(Admin::ApiKeys(command)) => api_keys::run(&cli.location, &command, format).await,
            Command::Admin(Admin::Sessions(command)) => sessions::run(&cli.location, &command, format).await,
            Command::Admin(Admin::Tenants(command)) => {
                tenants::tenants(&cli.location, &command, format).await
            }
            Command::Admin(Admin::Workspaces(command)) => {
                tenants::workspaces(&cli.location, &command, format).await
            }
            Command::Admin(Admin::Quotas(command)) => tenants::quotas(&cli.location, &command, format).await,
            Command::Admin(Admin::Keys(command)) => admin_keys::run(&cli.location, &command, format),
        }
    });
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            output::failure(&error, format);
            Exit::of_error(&error).into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clap::CommandFactory;

    use super::Cli;

    /// Short and long options of a command and those below it.
    fn options(command: &clap::Command, found: &mut Vec<(String, Option<char>, String)>) {
        let own = command.get_arguments().filter_map(|option| {
            Some((option.get_long()?.to_owned(), option.get_short(), command.get_name().to_owned()))
        });
        found.extend(own);
        command.get_subcommands().for_each(|each| options(each, found));
    }

    #[test]
    fn what_people_type_often_has_the_same_short_option_everywhere() {
        let mut found = Vec::new();
        options(&Cli::command(), &mut found);
        for (long, short) in [("limit", 'n'), ("partition", 'p'), ("yes", 'y')] {
            let (is_there, others): (Vec<_>, Vec<_>) =
                found.iter().filter(|(name, ..)| name == long).partition(|(_, with, _)| *with == Some(short));
            assert!(!is_there.is_empty() && others.is_empty(), "--{long} is not -{short} in {others:?}");
        }
        // A short option means the same wherever it is, but where an option of another command has its letter.
        let mut meanings: BTreeMap<char, BTreeSet<&str>> = BTreeMap::new();
        for (long, short, _) in &found {
            meanings.entry(short.unwrap_or(' ')).or_default().insert(long);
        }
        meanings.remove(&' ');
        for (short, expected) in [('n', &["count", "limit"][..]), ('o', &["output"]), ('y', &["yes"])] {
            assert_eq!(meanings[&short], expected.iter().copied().collect(), "-{short}");
        }
    }
}
