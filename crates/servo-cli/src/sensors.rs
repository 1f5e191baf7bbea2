//! `servo sensor`: what is requested because of something seen or told, and what came of it.

use anyhow::Context;
use clap::ValueEnum;
use serde_json::Value;
use servo_api::client::{Client, ListOptions};
use servo_api::views::{
    EvaluateBody, PushBody, RequestedView, ResetCursorBody, SecretReference, Sensor, SensorBody, SensorEval,
    SensorEvaluation, SensorVerify, VersionBody,
};
use servo_engine::RunState;
use servo_engine::definitions::VerifyScheme;

use crate::backend::{Need, note_without_server, through};
use crate::exit::Exit;
use crate::lists::{PageArgs, fetch_all, print_all, print_page};
use crate::location::{Location, random};
use crate::named::{self, Requested, Turn, Which, set};
use crate::output::{self, Format, words};

/// Look at sensors, evaluate, pause and resume them, send them messages; create those that no code declares.
#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// List sensors.
    #[command(after_help = "Example:\n  servo sensor list")]
    List,
    /// Show one sensor.
    #[command(after_help = "Example:\n  servo sensor show inbox")]
    Show {
        /// Its name or its id.
        sensor: String,
    },
    /// Show the evaluations of a sensor, newest first: what each did, and why.
    #[command(after_help = "Example:\n  servo sensor evals inbox --status failed,stale")]
    Evals {
        /// Its name or its id.
        sensor: String,
        #[command(flatten)]
        page: PageArgs,
        /// Only evaluations with one of these outcomes: triggered, no_new_data, failed, stale.
        #[arg(long)]
        status: Option<String>,
        /// Show what the functions printed, too.
        #[arg(long)]
        output: bool,
    },
    /// Evaluate a sensor now, or show what would happen.
    #[command(
        after_help = "Examples:\n  servo sensor evaluate inbox --dry-run\n  servo sensor evaluate uploaded --payload '{\"file\": \"a.csv\"}'"
    )]
    Evaluate {
        /// Its name or its id.
        sensor: String,
        /// The data of a message to evaluate it with, as JSON.
        #[arg(long, value_name = "JSON", value_parser = parse_json)]
        payload: Option<Value>,
        /// A cursor instead of the one that it has; with --dry-run only.
        #[arg(long, requires = "dry_run")]
        cursor: Option<String>,
        /// Show what would happen, and change nothing.
        #[arg(long)]
        dry_run: bool,
    },
    /// Send a message to a sensor.
    #[command(
        after_help = "Example:\n  servo sensor push uploaded --id upload-7 --data '{\"file\": \"a.csv\"}'"
    )]
    Push {
        /// Its name or its id.
        sensor: String,
        /// The id of the message: the same message counts once [default: a new one].
        #[arg(long)]
        id: Option<String>,
        /// Its data, as JSON.
        #[arg(long, value_name = "JSON", default_value = "{}", value_parser = parse_json)]
        data: Value,
    },
    /// Pause a sensor: it is not evaluated, and messages to it wait.
    #[command(after_help = "Example:\n  servo sensor pause inbox")]
    Pause(Which),
    /// Resume a sensor.
    #[command(after_help = "Example:\n  servo sensor resume inbox")]
    Resume(Which),
    /// Create a sensor that no code declares: it is told something, and requests a selection.
    #[command(
        after_help = "Examples:\n  servo sensor create uploaded --push --select raw.uploads\n  servo sensor create hook --push --secret-env SERVO_SENSOR_HOOK --signature github --select raw.uploads\n  servo sensor create both --on raw.a --on raw.b --all-of --select 'mart.*'\n  servo sensor create mend --run-status failed --select ops.report"
    )]
    Create(Box<Create>),
    /// Change a sensor that was created with `servo sensor create`. Options that are left out stay as they are.
    #[command(
        after_help = "Examples:\n  servo sensor update uploaded --select 'raw.uploads+'\n  servo sensor update uploaded --secret-env SERVO_SENSOR_HOOK --signature github"
    )]
    Update(Box<Update>),
    /// Delete a sensor that was created with `servo sensor create`. Its evaluations stay.
    #[command(after_help = "Example:\n  servo sensor delete uploaded")]
    Delete(Which),
    /// Set the cursor of a sensor, or let it begin anew.
    #[command(
        after_help = "Examples:\n  servo sensor reset-cursor inbox\n  servo sensor reset-cursor inbox --to 2013-01-15"
    )]
    ResetCursor {
        #[command(flatten)]
        which: Which,
        /// The new cursor; without one the sensor begins anew.
        #[arg(long, value_name = "CURSOR")]
        to: Option<String>,
    },
}

/// A new sensor.
#[derive(clap::Args)]
pub(crate) struct Create {
    #[command(flatten)]
    named: named::Definition,
    /// Messages can be sent to it.
    #[arg(long)]
    push: bool,
    /// An asset whose materializations it is told of.
    #[arg(long, value_name = "ASSET")]
    on: Vec<String>,
    /// Wait until all of these were materialized.
    #[arg(long, requires = "on")]
    all_of: bool,
    /// How runs end that it is told of: succeeded, failed, cancelled, timed_out.
    #[arg(long, value_name = "STATE", value_parser = run_state)]
    run_status: Vec<RunState>,
    #[command(flatten)]
    verify: VerifyArgs,
}

/// How senders of messages prove who they are.
#[derive(clap::Args)]
pub(crate) struct VerifyArgs {
    /// Take messages from whoever knows the secret in this variable of the environment of the server, which begins with
    /// SERVO_SENSOR_.
    #[arg(long, value_name = "NAME")]
    secret_env: Option<String>,
    /// Senders sign with the secret as these do, instead of showing it.
    #[arg(long, value_enum, requires = "secret_env")]
    signature: Option<Signature>,
}

/// Senders that sign messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Signature {
    /// `X-Hub-Signature-256`.
    Github,
    /// `Stripe-Signature`.
    Stripe,
}

impl VerifyArgs {
    fn body(&self) -> Option<SensorVerify> {
        let path = self.secret_env.clone()?;
        let scheme = match self.signature {
            None => VerifyScheme::Token,
            Some(Signature::Github) => VerifyScheme::Github,
            Some(Signature::Stripe) => VerifyScheme::Stripe,
        };
        Some(SensorVerify { scheme, secret: SecretReference { provider: "env".to_owned(), path } })
    }
}

/// Changes of a sensor.
#[derive(clap::Args)]
pub(crate) struct Update {
    #[command(flatten)]
    named: named::Redefinition,
    /// An asset whose materializations it is told of, instead of those before.
    #[arg(long, value_name = "ASSET")]
    on: Vec<String>,
    /// Whether to wait until all of these were materialized.
    #[arg(long, value_name = "BOOL")]
    all_of: Option<bool>,
    /// How runs end that it is told of, instead of those before: succeeded, failed, cancelled, timed_out.
    #[arg(long, value_name = "STATE", value_parser = run_state)]
    run_status: Vec<RunState>,
    #[command(flatten)]
    verify: VerifyArgs,
    /// Take messages from whoever may use the server, and from nobody else.
    #[arg(long, conflicts_with = "secret_env")]
    no_secret: bool,
}

impl Update {
    /// The definition of a sensor with these changes.
    fn applied_to(&self, sensor: &Sensor) -> anyhow::Result<SensorBody> {
        let mut body = sensor.to_body();
        self.named.apply(Requested {
            selection: &mut body.selection,
            description: &mut body.description,
            config: &mut body.config,
            tags: &mut body.tags,
            priority: &mut body.priority,
            expected_state_version: &mut body.expected_state_version,
        })?;
        set(&mut body.all_of, &self.all_of);
        body.verify = self.verify.body().or(body.verify).filter(|_| !self.no_secret);
        if !self.on.is_empty() {
            body.on.clone_from(&self.on);
        }
        if !self.run_status.is_empty() {
            body.run_status.clone_from(&self.run_status);
        }
        Ok(body)
    }
}

fn run_state(text: &str) -> Result<RunState, String> {
    let wanted = "expected succeeded, failed, cancelled or timed_out";
    RunState::from_name(&text.to_uppercase())
        .filter(|state| state.is_terminal())
        .ok_or_else(|| wanted.to_owned())
}

pub(crate) async fn run(location: &Location, command: &Command, format: Format) -> anyhow::Result<Exit> {
    match command {
        Command::List => list(location, format).await?,
        Command::Show { sensor } => show(location, sensor, format).await?,
        Command::Evals { sensor, page, status, output } => {
            evals(location, sensor, page, status.as_deref(), *output, format).await?;
        }
        Command::Evaluate { sensor, payload, cursor, dry_run } => {
            let body = EvaluateBody {
                payload: payload.clone(),
                cursor: cursor.clone(),
                dry_run: *dry_run,
                client_request_id: None,
            };
            return evaluate(location, sensor, &body, format).await;
        }
        Command::Push { sensor, id, data } => push(location, sensor, id.as_deref(), data, format).await?,
        Command::Create(new) => create(location, new, format).await?,
        Command::Update(changes) => update(location, changes, format).await?,
        Command::Delete(which) => change(location, which, Turn::Remove, format).await?,
        Command::Pause(which) => change(location, which, Turn::Pause, format).await?,
        Command::Resume(which) => change(location, which, Turn::Resume, format).await?,
        Command::ResetCursor { which, to } => reset_cursor(location, which, to.as_deref(), format).await?,
    }
    Ok(Exit::Done)
}

async fn list(location: &Location, format: Format) -> anyhow::Result<()> {
    let found = fetch_all(location, async |client, options| client.sensors(options).await).await?;
    let row = |sensor: &Sensor| {
        vec![
            sensor.name.clone(),
            sensor.kind.clone(),
            words(&sensor.status),
            sensor.selection.clone().or_else(|| sensor.function.clone()).unwrap_or_default(),
            sensor.last_evaluation_at.map(|at| at.to_string()).unwrap_or_default(),
            sensor.cursor.as_deref().map(shortened).unwrap_or_default(),
        ]
    };
    let header = ["sensor", "kind", "status", "requests", "last evaluation", "cursor"];
    let nothing = "there are no sensors; declare one with @servo.sensor";
    if print_all(found, format, nothing, &header, row)? {
        note_without_server(location, "no sensor is evaluated").await?;
    }
    Ok(())
}

async fn show(location: &Location, sensor: &str, format: Format) -> anyhow::Result<()> {
    let found = through(location, Need::ReadProject, async |client| Ok(client.sensor(sensor).await?)).await?;
    if format == Format::Json {
        return output::json(&found);
    }
    let mut rows = vec![
        ("kind", found.kind.clone()),
        ("status", words(&found.status)),
        ("defined by", found.origin.clone()),
        ("id", found.sensor_id.to_string()),
        ("state version", found.state_version.to_string()),
        ("cursor", found.cursor.clone().unwrap_or_else(|| "–".to_owned())),
        ("last evaluation", output::time(found.last_evaluation_at)),
        ("last run", found.last_run_id.map(|run| run.to_string()).unwrap_or_else(|| "–".to_owned())),
    ];
    let mut add = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    add("next evaluation", found.next_evaluation_at.map(|at| at.to_string()));
    add("interval", found.interval_ms.map(|interval| servo_core::Millis::new(interval).to_string()));
    add("requests", found.selection.clone());
    add("function", found.function.clone());
    add(
        "watches",
        (!found.on.is_empty()).then(|| found.on.join(if found.all_of { " and " } else { " or " })),
    );
    add("runs that end as", (!found.run_status.is_empty()).then(|| found.run_status.join(" or ")));
    let verify = found.verify.as_ref().map(|verify| (verify.scheme, &verify.secret));
    add(
        "senders",
        verify.map(|(scheme, secret)| {
            let how = match scheme {
                VerifyScheme::Token => "show",
                VerifyScheme::Github => "sign as GitHub does with",
                VerifyScheme::Stripe => "sign as Stripe does with",
            };
            format!("{how} the secret in {} {}", secret.provider, secret.path)
        }),
    );
    add("messages waiting", (found.messages_waiting > 0).then(|| found.messages_waiting.to_string()));
    add("messages left out", (found.messages_dropped > 0).then(|| found.messages_dropped.to_string()));
    add("description", found.description.clone());
    add("last error", found.last_error.clone());
    output::facts(&found.name, &rows);
    Ok(())
}

async fn evals(
    location: &Location,
    sensor: &str,
    page: &PageArgs,
    status: Option<&str>,
    with_output: bool,
    format: Format,
) -> anyhow::Result<()> {
    let fetch = async |client: &Client, options: &ListOptions| client.sensor_evals(sensor, options).await;
    let found = page.fetch(location, status, fetch).await?;
    let row = |eval: &SensorEval| {
        let runs: Vec<String> = eval.runs.iter().map(|run| run.run_id.to_string()).collect();
        let manual = if eval.manual { " (by hand)" } else { "" };
        let told = eval.reason.clone().unwrap_or_else(|| runs.join(", "));
        let told = match eval.output.as_deref().filter(|_| with_output) {
            Some(printed) => format!("{told}\n{printed}"),
            None => told.lines().next().unwrap_or_default().to_owned(),
        };
        vec![
            eval.evaluated_at.to_string(),
            format!("{}{manual}", words(&eval.status)),
            eval.message_id.clone().unwrap_or_else(|| eval.trigger.clone()),
            told,
        ]
    };
    let header = ["at", "evaluation", "because of", "run or reason"];
    print_page(&found, format, &header, row, format_args!("servo sensor evals {sensor}"))
}

async fn evaluate(
    location: &Location,
    sensor: &str,
    body: &EvaluateBody,
    format: Format,
) -> anyhow::Result<Exit> {
    let found = through(location, Need::Run { slots: 1 }, async |client| {
        Ok(client.evaluate_sensor(sensor, body).await?)
    })
    .await?;
    let exit = if found.status == "FAILED" { Exit::Failed } else { Exit::Done };
    if format == Format::Json {
        output::json(&found)?;
        return Ok(exit);
    }
    told(&found);
    Ok(exit)
}

fn told(found: &SensorEvaluation) {
    let would = if found.dry_run { "would request" } else { "requested" };
    match (found.requests.len(), found.reason.as_deref()) {
        (0, Some(reason)) if found.status == "FAILED" => output::line(format_args!("it failed: {reason}")),
        (0, Some(reason)) => output::line(format_args!("it {would} nothing: {reason}")),
        (0, None) => output::line(format_args!("it {would} nothing")),
        (count, _) => {
            let plural = if count == 1 { "run" } else { "runs" };
            output::line(format_args!("it {would} {count} {plural}"));
        }
    }
    for request in &found.requests {
        output::line(format_args!("  {}", line(request)));
    }
    for (name, keys) in &found.add_partitions {
        output::line(format_args!("  partitions of {name}: {}", keys.join(", ")));
    }
    if let Some(cursor) = &found.cursor_after {
        let before = found.cursor_before.as_deref().map(shortened).unwrap_or_else(|| "none".to_owned());
        output::line(format_args!("  cursor: {before} → {}", shortened(cursor)));
    }
    if let Some(run) = found.requests.iter().rev().find_map(|request| request.run_id) {
        output::line(format_args!("follow it: servo run watch {run}"));
    }
    if let Some(printed) = &found.output {
        output::line(format_args!("it printed:\n{printed}"));
    }
}

fn line(request: &RequestedView) -> String {
    let mut text = request.selection.clone();
    if let Some(partition) = &request.partition {
        text.push_str(&format!(" [{partition}]"));
    }
    if let Some(key) = &request.run_key {
        text.push_str(&format!(" as {key}"));
    }
    if let Some(run) = &request.run_id {
        text.push_str(&format!(": {run}"));
    }
    if let Some(tasks) = request.tasks {
        text.push_str(&format!(": {tasks} task{}", if tasks == 1 { "" } else { "s" }));
    }
    if let Some(problem) = &request.problem {
        text.push_str(&format!(": cannot be planned: {problem}"));
    }
    text
}

async fn push(
    location: &Location,
    sensor: &str,
    id: Option<&str>,
    data: &Value,
    format: Format,
) -> anyhow::Result<()> {
    let id = match id {
        Some(id) => id.to_owned(),
        None => {
            let bytes = random().context("a new id of a message")?;
            format!("cli-{}", bytes.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>())
        }
    };
    let message = PushBody { message_id: id.clone(), data: data.clone(), ..PushBody::default() };
    let accepted = through(location, Need::ChangeProject, async |client| {
        Ok(client.push_to_sensor(sensor, &message).await?)
    })
    .await?;
    let done = match accepted.accepted_event_id {
        Some(_) => "was taken",
        None => "was taken before",
    };
    named::told(&accepted, format, format_args!("message {id} to {sensor} {done}"))
}

async fn create(location: &Location, options: &Create, format: Format) -> anyhow::Result<()> {
    let new = &options.named;
    let body = SensorBody {
        name: new.name.clone(),
        selection: new.selection.clone(),
        push: options.push,
        on: options.on.clone(),
        all_of: options.all_of,
        run_status: options.run_status.clone(),
        verify: options.verify.body(),
        description: new.description.clone(),
        tags: new.tags(),
        config: new.config.body()?,
        priority: new.priority,
        enabled: Some(!new.paused),
        expected_state_version: None,
        client_request_id: None,
    };
    let next = format!("servo sensor show {} shows it", new.name);
    named::create(location, &new.name, next, format, async |client| client.create_sensor(&body).await).await
}

async fn update(location: &Location, changes: &Update, format: Format) -> anyhow::Result<()> {
    let name = &changes.named.which.name;
    named::redefine(location, name, format, async |client| {
        let known = client.sensor(name).await?;
        Ok(client.change_sensor(name, &changes.applied_to(&known)?).await?)
    })
    .await
}

async fn change(location: &Location, which: &Which, turn: Turn, format: Format) -> anyhow::Result<()> {
    let sensor = &which.name;
    let ask = async |client: &Client, body: &VersionBody| match turn {
        Turn::Pause => client.pause_sensor(sensor, body).await,
        Turn::Resume => client.resume_sensor(sensor, body).await,
        Turn::Remove => client.delete_sensor(sensor, body).await,
    };
    named::turn(location, which, turn, "is deleted; its evaluations stay", format, ask).await
}

async fn reset_cursor(
    location: &Location,
    which: &Which,
    cursor: Option<&str>,
    format: Format,
) -> anyhow::Result<()> {
    let (sensor, expected_state_version) = (&which.name, which.expected_state_version);
    let body = ResetCursorBody {
        cursor: cursor.map(str::to_owned),
        expected_state_version,
        client_request_id: None,
    };
    let accepted = through(location, Need::ChangeProject, async |client| {
        Ok(client.reset_sensor_cursor(sensor, &body).await?)
    })
    .await?;
    let done = match (cursor, accepted.accepted_event_id.is_some()) {
        (None, true) => "begins anew".to_owned(),
        (Some(cursor), true) => format!("goes on from {}", shortened(cursor)),
        (_, false) => "had that cursor already".to_owned(),
    };
    named::told(&accepted, format, format_args!("{sensor} {done}"))
}

/// The beginning of a cursor, which may be long.
fn shortened(cursor: &str) -> String {
    const SHOWN: usize = 40;
    match cursor.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &cursor[..end]),
        None => cursor.to_owned(),
    }
}

fn parse_json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))
}
