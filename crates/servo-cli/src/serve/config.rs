//! Start-up configuration of a server: flags win over variables, those over the file, that over defaults.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Serialize;
use servo_api::RateLimits;
use servo_core::{TenantId, WorkspaceId};
use servo_oidc::Provider;
use servo_runtime::WorkspaceKey;

use crate::exit::Exit;
use crate::identity;
use crate::output::{self, Format};
use crate::serve::queues::CalledQueue;

/// The file that is read where none is named.
const FILE: &str = "serve.toml";
/// The table of rate limits in it.
const LIMITS: &str = "limits";

/// How to serve.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Options {
    /// Address to listen on [default: 127.0.0.1:8741].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Certificate chain in PEM; it is read again when it changes.
    #[arg(long, value_name = "FILE")]
    tls_cert: Option<String>,
    /// Its private key in PEM.
    #[arg(long, value_name = "FILE")]
    tls_key: Option<String>,
    /// Certificates of an authority, in PEM, that workers have to show one of.
    #[arg(long, value_name = "FILE")]
    tls_client_ca: Option<String>,
    /// Names besides localhost by which requests may address this server, separated by commas.
    #[arg(long, value_name = "NAMES")]
    hosts: Option<String>,
    /// Tasks of the project in this directory, and of those of [projects], to run at once in this process [default:
    /// 0, none].
    #[arg(long, value_name = "N")]
    slots: Option<String>,
    /// Seconds that a worker may be silent before its tasks are given to others [default: 90].
    #[arg(long, value_name = "SECONDS")]
    worker_timeout: Option<String>,
    /// Seconds after which a workspace that nobody uses is closed [default: 300].
    #[arg(long, value_name = "SECONDS")]
    idle_after: Option<String>,
    /// Seconds that tasks of this process may continue after SIGTERM [default: 30].
    #[arg(long, value_name = "SECONDS")]
    drain: Option<String>,
    /// Seconds that a client may read nothing of an answer or a stream before it is broken off [default: 30].
    #[arg(long, value_name = "SECONDS")]
    write_timeout: Option<String>,
    /// Log lines as json or text [default: json].
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// File with these settings in TOML [default: serve.toml here, if there is one].
    #[arg(long, env = "SERVO_SERVE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
}

/// A setting of a server.
struct Setting {
    name: &'static str,
    variable: &'static str,
    default: &'static str,
    flag: fn(&Options) -> Option<&String>,
}

/// Every setting. Names are those of the flags and of the file.
const SETTINGS: [Setting; 11] = [
    Setting {
        name: "listen",
        variable: "SERVO_LISTEN",
        default: "127.0.0.1:8741",
        flag: |it| it.listen.as_ref(),
    },
    Setting { name: "tls_cert", variable: "SERVO_TLS_CERT", default: "", flag: |it| it.tls_cert.as_ref() },
    Setting { name: "tls_key", variable: "SERVO_TLS_KEY", default: "", flag: |it| it.tls_key.as_ref() },
    Setting {
        name: "tls_client_ca",
        variable: "SERVO_TLS_CLIENT_CA",
        default: "",
        flag: |it| it.tls_client_ca.as_ref(),
    },
    Setting { name: "hosts", variable: "SERVO_HOSTS", default: "", flag: |it| it.hosts.as_ref() },
    Setting { name: "slots", variable: "SERVO_SLOTS", default: "0", flag: |it| it.slots.as_ref() },
    Setting {
        name: "worker_timeout",
        variable: "SERVO_WORKER_TIMEOUT",
        default: "90",
        flag: |it| it.worker_timeout.as_ref(),
    },
    Setting {
        name: "idle_after",
        variable: "SERVO_IDLE_AFTER",
        default: "300",
        flag: |it| it.idle_after.as_ref(),
    },
    Setting { name: "drain", variable: "SERVO_DRAIN", default: "30", flag: |it| it.drain.as_ref() },
    Setting {
        name: "write_timeout",
        variable: "SERVO_WRITE_TIMEOUT",
        default: "30",
        flag: |it| it.write_timeout.as_ref(),
    },
    Setting {
        name: "log_format",
        variable: "SERVO_LOG_FORMAT",
        default: "json",
        flag: |it| it.log_format.as_ref(),
    },
];

/// A setting with its value, and where that comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Resolved {
    name: String,
    value: String,
    /// `flag`, `environment`, `file` or `default`.
    origin: &'static str,
    /// The flag, the variable or the file.
    source: String,
}

/// Start-up configuration of a server.
#[derive(Debug, Clone)]
pub(crate) struct ServeConfig {
    pub(crate) listen: SocketAddr,
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) tls_client_ca: Option<PathBuf>,
    pub(crate) hosts: Vec<String>,
    pub(crate) slots: usize,
    pub(crate) worker_timeout: Duration,
    pub(crate) idle_after: Duration,
    pub(crate) drain: Duration,
    pub(crate) write_timeout: Duration,
    /// The identity provider of `[oidc]`.
    pub(crate) oidc: Option<Provider>,
    /// The limits of `[limits]`.
    pub(crate) limits: RateLimits,
    /// Projects of `[projects]` whose tasks this process runs, by workspace.
    pub(crate) projects: BTreeMap<WorkspaceKey, PathBuf>,
    /// Queues of `[queues]`, which call their workers.
    pub(crate) queues: Vec<CalledQueue>,
}

/// The file of settings.
struct File {
    path: PathBuf,
    /// Values by name.
    values: BTreeMap<String, String>,
    /// The table `[oidc]`.
    oidc: Option<toml::Table>,
    /// The table `[projects]`.
    projects: BTreeMap<WorkspaceKey, PathBuf>,
    /// The table `[queues]`.
    queues: Vec<CalledQueue>,
}

impl Options {
    /// Whether log lines are JSON: asked before anything else is, so that what is wrong is left to later.
    pub(crate) fn logs_json(&self) -> bool {
        let format =
            resolve(self).ok().and_then(|(all, _)| all.into_iter().find(|it| it.name == "log_format"));
        format.is_none_or(|it| it.value != "text")
    }
}

/// Every setting, in the order in which they are documented.
fn resolve(options: &Options) -> anyhow::Result<(Vec<Resolved>, File)> {
    let file = File::read(options.config.as_deref())?;
    let path = &file.path;
    let limits = RateLimits::ALL.iter().map(|(name, _)| format!("{LIMITS}.{name}"));
    let known: Vec<String> = SETTINGS.iter().map(|setting| setting.name.to_owned()).chain(limits).collect();
    if let Some(unknown) = file.values.keys().find(|name| !known.contains(name)) {
        bail!(
            "{}: there is no setting {unknown}; there are {}, [oidc], [projects] and [queues]",
            path.display(),
            known.join(", ")
        );
    }
    let one = |name: String, variable: &str, default: &str, flag: Option<&String>| {
        let variable_value = std::env::var(variable).ok().filter(|value| !value.is_empty());
        let (value, origin, source) = match (flag, variable_value, file.values.get(&name)) {
            (Some(value), _, _) => (value.clone(), "flag", format!("--{}", name.replace('_', "-"))),
            (None, Some(value), _) => (value, "environment", variable.to_owned()),
            (None, None, Some(value)) => (value.clone(), "file", path.display().to_string()),
            (None, None, None) => (default.to_owned(), "default", String::new()),
        };
        Resolved { name, value, origin, source }
    };
    let plain = SETTINGS.iter().map(|setting| {
        let Setting { name, variable, default, flag } = setting;
        one((*name).to_owned(), variable, default, flag(options))
    });
    let limits = RateLimits::ALL.iter().map(|(name, default)| {
        let variable = format!("SERVO_LIMITS_{}", name.to_ascii_uppercase());
        one(format!("{LIMITS}.{name}"), &variable, &default.to_string(), None)
    });
    let all = plain.chain(limits).collect();
    Ok((all, file))
}

impl File {
    /// Reads it. The one that was named must be there.
    fn read(named: Option<&Path>) -> anyhow::Result<Self> {
        let path = named.unwrap_or(Path::new(FILE)).to_owned();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                let (values, projects, queues) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
                return Ok(Self { path, values, oidc: None, projects, queues });
            }
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        let mut table: toml::Table = text.parse().with_context(|| format!("reading {}", path.display()))?;
        let oidc = match table.remove("oidc") {
            Some(toml::Value::Table(oidc)) => Some(oidc),
            Some(_) => bail!("{}: oidc is a table: [oidc]", path.display()),
            None => None,
        };
        let projects = match table.remove("projects") {
            Some(toml::Value::Table(projects)) => projects,
            Some(_) => bail!("{}: projects is a table: [projects]", path.display()),
            None => toml::Table::new(),
        };
        let projects = projects.into_iter().map(|(name, value)| project_of(&path, &name, &value));
        let projects = projects.collect::<anyhow::Result<_>>()?;
        let queues = match table.remove("queues") {
            Some(toml::Value::Table(queues)) => queues,
            Some(_) => bail!("{}: queues is a table: [queues.NAME]", path.display()),
            None => toml::Table::new(),
        };
        let queues = queues.into_iter().map(|(name, value)| CalledQueue::read(&path, &name, value));
        let queues = queues.collect::<anyhow::Result<_>>()?;
        let limits = match table.remove(LIMITS) {
            Some(toml::Value::Table(limits)) => limits,
            Some(_) => bail!("{}: limits is a table: [limits]", path.display()),
            None => toml::Table::new(),
        };
        let limits = limits.into_iter().map(|(name, value)| (format!("{LIMITS}.{name}"), value));
        let mut values = BTreeMap::new();
        for (name, value) in table.into_iter().chain(limits) {
            let text = text_of(&path, &name, value)?;
            values.insert(name, text);
        }
        Ok(Self { path, values, oidc, projects, queues })
    }
}

/// A line of `[projects]`: a workspace, and the directory of its project.
fn project_of(path: &Path, name: &str, value: &toml::Value) -> anyhow::Result<(WorkspaceKey, PathBuf)> {
    let about =
        || format!("{}: projects.{name:?} is no line such as \"acme/main\" = \"/srv/acme\"", path.display());
    let (tenant, workspace) = name.split_once('/').with_context(about)?;
    let key =
        (TenantId::parse(tenant).with_context(about)?, WorkspaceId::parse(workspace).with_context(about)?);
    Ok((key, PathBuf::from(value.as_str().with_context(about)?)))
}

/// A value of the file as it would be written as a flag.
fn text_of(path: &Path, name: &str, value: toml::Value) -> anyhow::Result<String> {
    Ok(match value {
        toml::Value::String(text) => text,
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Array(items) => {
            let text = |item: toml::Value| item.as_str().map(str::to_owned);
            let items: Option<Vec<String>> = items.into_iter().map(text).collect();
            items.with_context(|| format!("{name} is a list of texts"))?.join(",")
        }
        toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_)
        | toml::Value::Table(_) => {
            bail!("{}: {name} is neither a text nor a whole number", path.display())
        }
    })
}

impl ServeConfig {
    /// Reads every value; the first that is wrong is said with where it comes from.
    pub(crate) fn resolve(options: &Options) -> anyhow::Result<Self> {
        let (all, file) = resolve(options)?;
        let one = |name: &str| all.iter().find(|it| it.name == name).context("a setting is in the table");
        let about = |it: &Resolved| format!("{} from {} {}", it.name, it.origin, it.source);
        let number = |name: &str, least: u64, most: u64| {
            let it = one(name)?;
            let read = it.value.parse::<u64>().ok().filter(|value| (least..=most).contains(value));
            read.with_context(|| format!("{}: {:?} is no number from {least} to {most}", about(it), it.value))
        };
        let path =
            |name: &str| anyhow::Ok(Some(&one(name)?.value).filter(|it| !it.is_empty()).map(PathBuf::from));
        let listen = one("listen")?;
        let address = listen.value.parse().with_context(|| {
            format!("{}: {:?} is no address such as 0.0.0.0:8741", about(listen), listen.value)
        })?;
        let format = one("log_format")?;
        if !["json", "text"].contains(&format.value.as_str()) {
            bail!("{}: {:?} is neither json nor text", about(format), format.value);
        }
        let hosts = one("hosts")?.value.split(',').map(str::trim).filter(|name| !name.is_empty());
        let oidc = file.oidc.map(identity::of_table).transpose();
        let oidc = oidc.with_context(|| file.path.display().to_string())?;
        // Browsers come back from the provider to this name.
        let public_host = oidc.as_ref().and_then(|provider| provider.config().public_host());
        let mut limits = RateLimits::default();
        for (name, _) in RateLimits::ALL {
            let limit = number(&format!("{LIMITS}.{name}"), 0, 1_000_000_000)?;
            limits.put(name, u32::try_from(limit)?);
        }
        let slots = usize::try_from(number("slots", 0, 256)?)?;
        if slots == 0 && !file.projects.is_empty() {
            bail!(
                "{}: [projects] needs slots, which are 0; --slots 4 runs 4 tasks at once",
                file.path.display()
            );
        }
        Ok(Self {
            listen: address,
            tls_cert: path("tls_cert")?,
            tls_key: path("tls_key")?,
            tls_client_ca: path("tls_client_ca")?,
            hosts: hosts.map(str::to_owned).chain(public_host).collect(),
            slots,
            worker_timeout: Duration::from_secs(number("worker_timeout", 3, 86_400)?),
            idle_after: Duration::from_secs(number("idle_after", 1, 31_536_000)?),
            drain: Duration::from_secs(number("drain", 0, 86_400)?),
            write_timeout: Duration::from_secs(number("write_timeout", 1, 86_400)?),
            oidc,
            limits,
            projects: file.projects,
            queues: file.queues,
        })
    }
}

/// Shows what `servo serve` would be started with here, and where each value comes from.
pub(crate) fn show(format: Format) -> anyhow::Result<Exit> {
    let (mut all, file) = resolve(&Options::default())?;
    let issuer = file.oidc.as_ref().and_then(|oidc| oidc.get("issuer")?.as_str());
    let (origin, source) = match &file.oidc {
        Some(_) => ("file", file.path.display().to_string()),
        None => ("default", String::new()),
    };
    all.push(Resolved {
        name: "oidc".to_owned(),
        value: issuer.unwrap_or_default().to_owned(),
        origin,
        source,
    });
    all.extend(file.projects.iter().map(|((tenant, workspace), project)| Resolved {
        name: format!("projects.{tenant}/{workspace}"),
        value: project.display().to_string(),
        origin: "file",
        source: file.path.display().to_string(),
    }));
    all.extend(file.queues.iter().map(|queue| Resolved {
        name: format!("queues.{}", queue.shown_name()),
        value: queue.shown_url().to_owned(),
        origin: "file",
        source: file.path.display().to_string(),
    }));
    if format == Format::Json {
        output::json(&serde_json::json!({ "items": all }))?;
        return Ok(Exit::Done);
    }
    let row = |it: Resolved| vec![it.name, it.value, it.origin.to_owned(), it.source];
    output::table(&["setting", "value", "from", "which"], &[], all.into_iter().map(row).collect());
    Ok(Exit::Done)
}
