//! Servers that a user has logged in to, and which of them commands are about.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::support::{Dev, Project};

const PROJECT: &str = r#"
import servo

@servo.asset(namespace="raw")
def numbers() -> list[int]:
    return [1]

@servo.asset(namespace="raw")
def broken() -> int:
    raise ValueError("100% wrong\\n::set-output::")
"#;

/// Runs a command of a user elsewhere, who has nothing but a file of contexts.
fn elsewhere(home: &tempfile::TempDir, project: &Project, arguments: &[&str], input: &str) -> Output {
    let mut command = project.command(arguments);
    command.current_dir(home.path()).env("SERVO_CONFIG", home.path().join("config.toml"));
    for name in ["SERVO_DIR", "SERVO_PROJECT", "SERVO_URL", "SERVO_KEY", "SERVO_TOKEN", "SERVO_CONTEXT"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    // One that asks for nothing may be gone.
    let _unread = process.stdin.take().unwrap().write_all(input.as_bytes());
    process.wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_user_logs_in_and_commands_are_about_that_server_and_say_so() {
    let project = Project::new(PROJECT);
    let _dev = Dev::start(&project);
    let server: Value =
        serde_json::from_slice(&std::fs::read(project.path(".servo/server.json")).unwrap()).unwrap();
    let (url, token) = (server["url"].as_str().unwrap(), server["token"].as_str().unwrap());
    let home = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str], input: &str| elsewhere(&home, &project, arguments, input);

    let wrong = run(&["login", url, "--name", "prod", "--key-stdin"], "not the key\n");
    assert!(!wrong.status.success());
    let wrong = run(&["login", url, "--name", "prod", "--key-stdin"], "wrong\n");
    assert!(text(&wrong.stderr).contains("nothing was saved"), "{}", text(&wrong.stderr));
    assert!(!home.path().join("config.toml").exists());
    let local = run(&["context", "show"], "");
    assert_eq!(text(&local.stdout), "the workspace on this machine\n");

    let done = run(&["login", url, "--name", "prod", "--key-stdin"], &format!("{token}\n"));
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert!(!text(&done.stderr).contains(token) && !text(&done.stdout).contains(token));
    let file = std::fs::metadata(home.path().join("config.toml")).unwrap();
    assert_eq!(file.permissions().mode() & 0o777, 0o600);
    assert_eq!(text(&run(&["context", "show"], "").stdout), format!("prod ({url}), by servo context use\n"));
    let listed: Value = serde_json::from_slice(&run(&["context", "list", "--json"], "").stdout).unwrap();
    assert_eq!((&listed["items"][0]["name"], &listed["items"][0]["current"]), (&"prod".into(), &true.into()));
    assert!(!listed.to_string().contains(token));

    let assets: Value = serde_json::from_slice(&run(&["asset", "list", "--json"], "").stdout).unwrap();
    assert!(assets.to_string().contains("raw/numbers"), "{assets}");
    let made = run(&["materialize", "raw.numbers", "--json"], "");
    assert!(made.status.success(), "{}", text(&made.stderr));
    let cancelled = run(&["run", "cancel", "latest"], "");
    assert!(text(&cancelled.stderr).contains(&format!("on prod ({url})")), "{}", text(&cancelled.stderr));

    // Flags win over the environment, which wins over the context.
    let shown = |arguments: &[&str]| text(&run(arguments, "").stdout);
    assert_eq!(shown(&["context", "show", "--url", "http://127.0.0.1:1"]), "http://127.0.0.1:1, by --url\n");
    assert_eq!(shown(&["context", "show", "--context", "local"]), "the workspace on this machine\n");
    let of_environment = |variable: &str, value: &str, arguments: &[&str]| {
        let mut command = project.command(arguments);
        command.current_dir(home.path()).env("SERVO_CONFIG", home.path().join("config.toml"));
        for name in ["SERVO_DIR", "SERVO_PROJECT", "SERVO_URL", "SERVO_KEY", "SERVO_TOKEN", "SERVO_CONTEXT"] {
            command.env_remove(name);
        }
        text(&command.env(variable, value).output().unwrap().stdout)
    };
    let other = "http://127.0.0.1:1";
    assert_eq!(of_environment("SERVO_URL", other, &["context", "show"]), format!("{other}, by SERVO_URL\n"));
    let by_flag = of_environment("SERVO_URL", other, &["context", "show", "--context", "prod"]);
    assert_eq!(by_flag, format!("prod ({url}), by --context\n"));
    let here = of_environment("SERVO_CONTEXT", "local", &["context", "show"]);
    assert_eq!(here, "the workspace on this machine\n");
    let both = run(&["context", "show", "--url", other, "--context", "prod"], "");
    assert!(text(&both.stderr).contains("give one"), "{}", text(&both.stderr));
    let absent = run(&["run", "list", "--context", "absent"], "");
    assert!(text(&absent.stderr).contains("there is no context \"absent\""), "{}", text(&absent.stderr));
    assert!(run(&["context", "use", "local"], "").status.success());
    assert_eq!(shown(&["context", "show"]), "the workspace on this machine\n");
    assert!(run(&["context", "use", "prod"], "").status.success());
    assert!(run(&["logout"], "").status.success());
    assert!(!std::fs::read_to_string(home.path().join("config.toml")).unwrap().contains(token));
    assert!(!run(&["context", "use", "prod"], "").status.success());
}

/// Somebody who listens, and takes down the credentials that it is shown.
fn listening() -> (String, std::sync::mpsc::Receiver<Option<String>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, shown) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines: Vec<String> = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map(Result::unwrap)
                .take_while(|line| !line.is_empty())
                .collect();
            let bearer = lines.iter().find_map(|line| {
                let (name, value) = line.split_once(": Bearer ")?;
                name.eq_ignore_ascii_case("authorization").then(|| value.to_owned())
            });
            let answer = "HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
            stream.write_all(answer.as_bytes()).unwrap();
            if sender.send(bearer).is_err() {
                return;
            }
        }
    });
    (url, shown)
}

#[test]
fn the_key_of_the_environment_is_shown_to_the_server_that_it_is_meant_for_and_to_no_other() {
    let project = Project::new(PROJECT);
    let home = tempfile::tempdir().unwrap();
    let (url, shown) = listening();
    let config = home.path().join("config.toml");
    let contexts = format!(
        "current = \"keyed\"\n[contexts.keyed]\nurl = \"{url}\"\nkey = \"own\"\n\
         [contexts.bare]\nurl = \"{url}/\"\n"
    );
    let kept = |text: &str| std::fs::write(&config, text).unwrap();
    let shown_by = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = project.command(arguments);
        command.current_dir(home.path()).env("SERVO_CONFIG", &config).envs(variables.iter().copied());
        assert!(!command.output().unwrap().status.success());
        shown.try_iter().collect::<Vec<_>>().pop().expect("it was asked")
    };
    let (key, elsewhere) = (("SERVO_KEY", "secret"), ("SERVO_URL", "http://127.0.0.1:1"));
    let here = ("SERVO_URL", url.as_str());
    let some = |text: &str| Some(text.to_owned());
    kept("");
    assert_eq!(shown_by(&["run", "list"], &[key, here]), some("secret"));
    assert_eq!(shown_by(&["run", "list", "--url", &url], &[key]), some("secret"), "there is no other");
    assert_eq!(shown_by(&["run", "list", "--url", &url], &[key, elsewhere]), None);
    assert_eq!(shown_by(&["run", "list", "--url", &url], &[("SERVO_TOKEN", "t"), elsewhere]), None);
    assert_eq!(shown_by(&["run", "list", "--url", &url, "--key", "told"], &[key, elsewhere]), some("told"));
    kept(&contexts);
    assert_eq!(shown_by(&["run", "list"], &[key]), some("own"), "the context in use has its own");
    assert_eq!(shown_by(&["run", "list", "--context", "keyed"], &[key, here]), some("own"));
    assert_eq!(shown_by(&["run", "list", "--context", "bare"], &[key]), None);
    assert_eq!(shown_by(&["run", "list", "--context", "bare"], &[key, here]), some("secret"));
    assert_eq!(shown_by(&["run", "list", "--context", "bare", "--key", "told"], &[key]), some("told"));
    assert_eq!(
        shown_by(&["run", "list", "--url", &url], &[key, elsewhere]),
        some("own"),
        "it is kept for it"
    );
}

#[test]
fn steps_of_github_actions_are_told_in_their_own_words() {
    let project = Project::new(PROJECT);
    let summary = project.path("summary.md");
    let mut command = project.command(&["materialize", "raw.*", "--slots", "1"]);
    command.env("GITHUB_ACTIONS", "true").env("GITHUB_STEP_SUMMARY", &summary);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("::group::run_") && said.contains("::endgroup::"), "{said}");
    assert!(said.contains("::error title=raw.broken failed::100%25 wrong"), "{said}");
    assert!(!said.lines().any(|line| line.starts_with("::set-output")), "{said}");
    let table = std::fs::read_to_string(summary).unwrap();
    assert!(
        table.contains("| raw.broken | FAILED | 1 |") && table.contains("| raw.numbers | SUCCEEDED |"),
        "{table}"
    );
    let plain = project.servo(&["materialize", "raw.numbers"]);
    assert!(!text(&plain.stderr).contains("::group::"));
}
