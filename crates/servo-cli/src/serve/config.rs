//! What a server is started with: flags win over variables, those over the file, that over defaults.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Serialize;

use crate::exit::Exit;
use crate::output::{self, Format};

/// The file that is read where none is named.
const FILE: &str = "serve.toml";

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
    /// Names besides localhost by which requests may address this server, separated by commas.
    #[arg(long, value_name = "NAMES")]
    hosts: Option<String>,
    /// Tasks of the project in this directory to run at once in this process [default: 0, none].
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
const SETTINGS: [Setting; 9] = [
    Setting {
        name: "listen",
        variable: "SERVO_LISTEN",
        default: "127.0.0.1:8741",
        flag: |it| it.listen.as_ref(),
    },
    Setting { name: "tls_cert", variable: "SERVO_TLS_CERT", default: "", flag: |it| it.tls_cert.as_ref() },
    Setting { name: "tls_key", variable: "SERVO_TLS_KEY", default: "", flag: |it| it.tls_key.as_ref() },
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
        name: "log_format",
        variable: "SERVO_LOG_FORMAT",
        default: "json",
        flag: |it| it.log_format.as_ref(),
    },
];

/// A setting with its value, and where that comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Resolved {
    name: &'static str,
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
    pub(crate) hosts: Vec<String>,
    pub(crate) slots: usize,
    pub(crate) worker_timeout: Duration,
    pub(crate) idle_after: Duration,
    pub(crate) drain: Duration,
}

impl Options {
    /// Whether log lines are JSON: asked before anything else is, so that what is wrong is left to later.
    pub(crate) fn logs_json(&self) -> bool {
        let format = resolve(self).ok().and_then(|all| all.into_iter().find(|it| it.name == "log_format"));
        format.is_none_or(|it| it.value != "text")
    }
}

/// Every setting, in the order in which they are documented.
fn resolve(options: &Options) -> anyhow::Result<Vec<Resolved>> {
    let (path, file) = read(options.config.as_deref())?;
    let known: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    if let Some(unknown) = file.keys().find(|name| !known.contains(&name.as_str())) {
        bail!("{}: there is no setting {unknown}; there are {}", path.display(), known.join(", "));
    }
    let one = |setting: &Setting| {
        let Setting { name, variable, default, flag } = setting;
        let variable_value = std::env::var(variable).ok().filter(|value| !value.is_empty());
        let (value, origin, source) = match (flag(options), variable_value, file.get(*name)) {
            (Some(value), _, _) => (value.clone(), "flag", format!("--{}", name.replace('_', "-"))),
            (None, Some(value), _) => (value, "environment", (*variable).to_owned()),
            (None, None, Some(value)) => (value.clone(), "file", path.display().to_string()),
            (None, None, None) => ((*default).to_owned(), "default", String::new()),
        };
        Resolved { name, value, origin, source }
    };
    Ok(SETTINGS.iter().map(one).collect())
}

/// The file, and what it says by name.
fn read(named: Option<&Path>) -> anyhow::Result<(PathBuf, BTreeMap<String, String>)> {
    let path = named.unwrap_or(Path::new(FILE)).to_owned();
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
            return Ok((path, BTreeMap::new()));
        }
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    let table: toml::Table = text.parse().with_context(|| format!("reading {}", path.display()))?;
    let value = |name: String, value: toml::Value| {
        let text = match value {
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
        };
        Ok((name, text))
    };
    let read = table.into_iter().map(|(name, it)| value(name, it)).collect::<anyhow::Result<_>>()?;
    Ok((path, read))
}

impl ServeConfig {
    /// Reads every value; the first that is wrong is said with where it comes from.
    pub(crate) fn resolve(options: &Options) -> anyhow::Result<Self> {
        let all = resolve(options)?;
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
        Ok(Self {
            listen: address,
            tls_cert: path("tls_cert")?,
            tls_key: path("tls_key")?,
            hosts: hosts.map(str::to_owned).collect(),
            slots: usize::try_from(number("slots", 0, 256)?)?,
            worker_timeout: Duration::from_secs(number("worker_timeout", 3, 86_400)?),
            idle_after: Duration::from_secs(number("idle_after", 1, 31_536_000)?),
            drain: Duration::from_secs(number("drain", 0, 86_400)?),
        })
    }
}

/// Shows what `servo serve` would be started with here, and where each value comes from.
pub(crate) fn show(format: Format) -> anyhow::Result<Exit> {
    let all = resolve(&Options::default())?;
    if format == Format::Json {
        output::json(&serde_json::json!({ "items": all }))?;
        return Ok(Exit::Done);
    }
    let row = |it: Resolved| vec![it.name.to_owned(), it.value, it.origin.to_owned(), it.source];
    output::table(&["setting", "value", "from", "which"], &[], all.into_iter().map(row).collect());
    Ok(Exit::Done)
}
