"""Help of every command: what it shows, and its examples, each of which is run as it is printed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from scanning import SOURCE
from serving import NAMES, PROGRAM, Served, Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ASSETS = """
import os
import servo

LEFT_OUT = os.environ.get("LEFT_OUT", "").split(",")
days = servo.DailyPartitions("2012-01-01", end="2013-12-31")
this_year = servo.DailyPartitions("2026-01-01", end="2026-01-31")
customers = servo.DynamicPartitions("customers")


class Limits(servo.Config):
    least: int = 10


@servo.asset(namespace="raw", partitions=days, tags={"daily": "yes"}, checks=[servo.row_count(min=1)])
def flights(ctx) -> list[dict]:
    if "FAIL" in os.environ:
        raise ValueError("not today")
    return [{"day": str(ctx.partition), "delay": 3}]


@servo.asset(namespace="raw", partitions=this_year)
def orders(ctx) -> list[dict]:
    return [{"n": 1}]


@servo.asset(namespace="raw")
def uploads() -> list[dict]:
    return [{"n": 1}]


@servo.asset(namespace="raw")
def a() -> int:
    return 1


@servo.asset(namespace="raw")
def b() -> int:
    return 1


@servo.asset(namespace="raw", partitions=customers)
def accounts(ctx) -> str:
    return str(ctx.partition)


@servo.asset(namespace="raw", quarantine=True, checks=[servo.row_count(min=3, severity="critical")])
def few() -> list[dict]:
    return [{"n": 1}] * int(os.environ.get("ROWS", "3"))


@servo.asset(namespace="mart", kind="view")
def both(a, b) -> int:
    return a + b


@servo.asset(namespace="ops")
def report() -> int:
    return 1


@servo.asset(namespace="ops", retry=servo.Retry(max_attempts=2, delay="1h"))
def flaky(ctx) -> int:
    if ctx.attempt == 1 and "FLAKY" in os.environ:
        raise ConnectionError("not this time")
    return 1


@servo.asset(namespace="analytics", partitions=days, automation=servo.eager())
def delays(flights: list[dict], config: Limits) -> list[dict]:
    return [row for row in flights if row["delay"] < config.least]


@servo.asset(
    namespace="analytics",
    partitions=days,
    group="reports",
    freshness=servo.Freshness(max_lag="100d"),
    deps=[servo.dep(delays, mapping=servo.window(-6, 0))],
)
def weekly(delays: list[dict]) -> list[dict]:
    return delays


if "nightly" not in LEFT_OUT:
    servo.schedule(name="nightly", cron="0 2 * * *", selection="raw.uploads")
servo.schedule(name="morning", cron="0 6 * * *", timezone="Europe/Amsterdam", selection="analytics.delays")


@servo.sensor(interval="1h", selection="raw.uploads")
def inbox(ctx):
    return servo.SensorResult([servo.RunRequest()], cursor="2013-01-15")


if "uploaded" not in LEFT_OUT:

    @servo.push_sensor(selection="raw.uploads")
    def uploaded(message):
        return servo.RunRequest()


if "oncall" not in LEFT_OUT:
    servo.notify("oncall", when="run_failed", to=servo.Command(["true"]))
"""

WEEK = "servo materialize '+analytics.weekly' --partitions 2013-01-09..2013-01-15"
FAILED = "ROWS=1 servo materialize raw.few; true"
BACKFILL = "servo backfill create raw.flights --partitions 2013-06-01..2013-06-02"
MARK = "servo partition mark raw.flights --as materialized"
NIGHTLY = "servo schedule create nightly --cron '0 2 * * *' --select raw.uploads"
UPLOADED = "servo sensor create uploaded --push --select raw.uploads"
ONCALL = "servo notification create oncall.json"
TENANT = "servo admin tenants create acme"
WORKSPACE = f"{TENANT}; servo admin workspaces create acme/main"

# What is done before the examples of a page, so that there is what they are about.
BEFORE = {
    "backfill cancel": [BACKFILL],
    "backfill create": ["servo partition mark raw.flights --partition 2012-12-01 --as failed"],
    "backfill pause": [BACKFILL],
    "backfill resume": [BACKFILL, "servo backfill pause latest"],
    "backfill retry-failed": [f"FAIL=1 {BACKFILL} --wait; true"],
    "backfill show": [BACKFILL],
    "check run": ["servo materialize raw.flights --partitions 2013-01-01..2013-01-31"],
    "notification delete": [ONCALL],
    "notification update": [ONCALL],
    "partition remove": ["servo partition add customers globex"],
    "asset rename": ["sed -i 's/flights/arrivals/' work.py", "servo deploy"],
    "partition undo": [f"{MARK} --partition 2013-01-20 --json > mark.json", f"{MARK} --partition 2013-01-21"],
    "quarantine approve": [FAILED],
    "quarantine reject": [FAILED],
    "schedule delete": [NIGHTLY],
    "schedule update": [NIGHTLY],
    "sensor delete": [UPLOADED],
    "sensor update": [UPLOADED],
    "admin tenants disable": [TENANT],
    "admin tenants enable": [TENANT, "servo admin tenants disable acme"],
    "admin tenants remove": [TENANT],
    "admin workspaces create": [TENANT],
    "admin workspaces disable": [WORKSPACE],
    "admin workspaces enable": [WORKSPACE, "servo admin workspaces disable acme/main"],
    "admin workspaces remove": [WORKSPACE, "servo admin workspaces disable acme/main"],
    "admin quotas show": [TENANT],
    "admin quotas set": [TENANT],
    "admin quotas unset": [TENANT, "servo admin quotas set acme max_daily_runs=7"],
    "admin api-keys create": [WORKSPACE],
}
# What the code of the project leaves to the command.
LEFT_OUT = {
    "notification create": "oncall",
    "notification delete": "oncall",
    "notification update": "oncall",
    "schedule create": "nightly",
    "schedule delete": "nightly",
    "schedule update": "nightly",
    "sensor create": "uploaded",
    "sensor delete": "uploaded",
    "sensor update": "uploaded",
}
# Those that ask a server for many.
OF_A_SERVER = ("admin tenants", "admin workspaces", "admin quotas", "admin api-keys", "admin sessions")


def environment(home: Path, **variables: str) -> dict[str, str]:
    """Give the variables of a shell that finds the program, the SDK and nothing of whoever runs the tests."""
    inherited = {name: value for name, value in os.environ.items() if name not in NAMES}
    found = {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "SERVO_CONFIG": str(home / "contexts.toml"),
        "SERVO_PYTHON": sys.executable,
        "PYTHONPATH": str(SOURCE),
        "SERVO_NOTIFY_SLACK": "http://127.0.0.1:9/",
        "PATH": f"{home / 'bin'}:{inherited['PATH']}",
    }
    return {**inherited, **found, **variables}


class Shell:
    """A shell in a project."""

    def __init__(self, directory: Path, home: Path, **variables: str) -> None:
        """Open it with further variables."""
        self.directory = directory
        self.environment = environment(home, **variables)

    def run(self, line: str) -> subprocess.CompletedProcess[str]:
        """Run a line as people type it."""
        return subprocess.run(  # noqa: S603 - examples of our own help
            ["bash", "-c", line],  # noqa: S607 - the shell of the machine
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def good(self, line: str) -> str:
        """Run a line that must succeed, and give what it prints."""
        done = self.run(line)
        assert done.returncode == 0, f"$ {line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def begin(self, line: str, said: str, ends_with: signal.Signals = signal.SIGINT) -> None:
        """Run a line that stays until it says something, and end it; interrupted, it must end well."""
        log = self.directory / "staying.log"
        with log.open("w") as file:
            process = subprocess.Popen(  # noqa: S603 - as above
                ["bash", "-c", f"exec {line}"],  # noqa: S607 - the shell of the machine
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
            )
        deadline = time.monotonic() + 60
        try:
            while said not in log.read_text("utf-8"):
                assert process.poll() is None, f"$ {line}\n{log.read_text('utf-8')}"
                assert time.monotonic() < deadline, f"$ {line}\n{log.read_text('utf-8')}"
                time.sleep(0.02)
            process.send_signal(ends_with)
            expected = 0 if ends_with == signal.SIGINT else -ends_with
            assert process.wait(timeout=60) == expected, f"$ {line}\n{log.read_text('utf-8')}"
        finally:
            process.kill()


def help_of(*command: str) -> str:
    """Give what a command says of itself, where a terminal is wide."""
    variables = {**environment(Path("/nonexistent")), "COLUMNS": "200"}
    done = subprocess.run(  # noqa: S603 - our own program
        [PROGRAM, *command, "--help"], env=variables, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def pages() -> dict[str, str]:
    """Give the help of every command, by its name."""
    if not Path(PROGRAM).is_file():
        return {}
    found: dict[str, str] = {}
    below = [()]
    while below:
        command: tuple[str, ...] = below.pop()
        found[" ".join(command)] = text = help_of(*command)
        listed = re.search(r"^Commands:\n((?:  .*\n)+)", text, re.MULTILINE)
        names = re.findall(r"^  ([a-z-]+)", listed[1], re.MULTILINE) if listed else []
        below.extend((*command, name) for name in names if name != "help")
    return found


def examples(text: str) -> list[str]:
    """Give the examples of a page; a line that ends with a backslash goes on."""
    block = re.search(r"^Examples?:\n((?:  .*\n?)+)", text, re.MULTILINE)
    lines = block[1].replace("\\\n", " ").splitlines() if block else []
    return [re.sub(r"\s+", " ", line).strip() for line in lines]


PAGES = pages()
LEAVES = sorted(name for name, text in PAGES.items() if "\nCommands:\n" not in text)


def test_every_command_has_an_example_and_its_own_options_come_first() -> None:
    assert PAGES, "the servo program is not built: make demo builds it"
    assert [name for name in LEAVES if not examples(PAGES[name])] == []
    for name, text in PAGES.items():
        assert text.index("\nGlobal options:\n") > text.find("\nOptions:\n"), name
        assert "…" not in "".join(examples(text)), name


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a home with the program on its path, and a project in it that has made something."""
    home = tmp_path_factory.mktemp("home")
    (home / "bin").mkdir()
    for name in ("dot", "man"):
        script = home / "bin" / name
        script.write_text("#!/bin/sh\ncat > /dev/null < /dev/stdin\n", encoding="utf-8")
        script.chmod(0o755)
    (home / "bin" / "servo").symlink_to(PROGRAM)
    for directory in (".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions"):
        (home / directory).mkdir(parents=True)
    project = home / "project"
    project.mkdir()
    (project / "servo.toml").write_text('[project]\nname = "work"\nmodules = ["work"]\n', encoding="utf-8")
    (project / "work.py").write_text(ASSETS, encoding="utf-8")
    (project / "query.sql").write_text("select count(*) as n from runs", encoding="utf-8")
    to = [{"type": "slack", "url": {"name": "url", "provider": "env", "path": "SERVO_NOTIFY_SLACK"}}]
    rule = {"name": "oncall", "when": ["run_failed", "recovered"], "to": to}
    (project / "oncall.json").write_text(json.dumps(rule), encoding="utf-8")
    shell = Shell(project, home)
    shell.good(WEEK)
    shell.good("servo materialize '+analytics.weekly' --latest")
    shell.good("servo deploy")
    return home


@pytest.fixture
def shell(made: Path, tmp_path: Path) -> Callable[..., Shell]:
    """Copy the project, and give a shell in the copy."""

    def opened(**variables: str) -> Shell:
        left = shutil.ignore_patterns("__pycache__")
        return Shell(shutil.copytree(made / "project", tmp_path / "project", ignore=left), made, **variables)

    return opened


def id_in(shell: Shell, line: str, *path: Any) -> str:  # noqa: ANN401 - names and numbers
    """Give an id that a command prints as JSON."""
    found = json.loads(shell.good(line))
    for step in path:
        found = found[step]
    return str(found)


def newest_run(shell: Shell, example: str) -> str:
    """Give the beginning of the newest run's id, of those that have the task if the example names one."""
    task = re.search(r"\brun_\w+ ([a-z]+\.[a-z]+) ([\d-]+)", example)
    which = f"--asset {task[1]} --partition {task[2]}" if task else ""
    return id_in(shell, f"servo run list {which} --json", "items", 0, "run_id")[:12]


# The ids of examples, and where to find those that they stand for.
IDS: dict[str, Callable[[Shell], str]] = {
    "01JHKM51": lambda shell: id_in(shell, "servo backfill list --json", "items", 0, "backfill_id")[:24],
    "01JB2X": lambda shell: id_in(shell, "servo quarantine list --json", "items", 0, "materialization_id")[
        :24
    ],
    "01JHKM51000000000000000008": lambda shell: id_in(shell, "cat mark.json", "accepted_event_id"),
    "3f1c9a7be204": lambda shell: id_in(shell, "servo admin api-keys list --json", "items", 0, "key_id"),
}


def real(shell: Shell, example: str) -> str:
    """Give an example with ids that exist."""
    if "run_yqlw" in example:
        example = example.replace("run_yqlw", newest_run(shell, example))
    for written, find in IDS.items():
        if re.search(rf"\b{written}\b", example):
            example = example.replace(written, find(shell))
    return example


# Commands of servers are tried with one.
WITH_A_SERVER = ("dev", "serve", "open", "login", "logout", "worker")
# Those about a run that waits, which is what only it can show.
WAITING = ("run cancel", "run retry")
HERE = [
    name
    for name in LEAVES
    if name not in (*WITH_A_SERVER, *WAITING)
    and not name.startswith((*OF_A_SERVER, "context", "worker", "admin audit"))
]


def prepared(shell: Shell, name: str) -> None:
    """Do what comes before the examples of a page."""
    for line in BEFORE.get(name, []):
        shell.good(line)


@pytest.mark.parametrize("name", HERE)
def test_the_examples_of_a_command_work(name: str, shell: Callable[..., Shell]) -> None:
    here = shell(LEFT_OUT=LEFT_OUT.get(name, ""))
    prepared(here, name)
    for number, example in enumerate(examples(PAGES[name])):
        if number > 0 and name == "quarantine reject":
            prepared(here, name)
        # Whoever has no terminal is not asked.
        here.good(
            real(here, example) + (" --yes" if name == "partition wipe" and "--yes" not in example else "")
        )


@pytest.mark.parametrize("name", WAITING)
def test_the_examples_about_a_run_that_waits_work(name: str, shell: Callable[..., Shell]) -> None:
    for example in examples(PAGES[name]):
        here = shell()
        if "--from-failure" in example:
            here.run("ROWS=1 servo materialize raw.few")
            here.good(example)
            shutil.rmtree(here.directory)
            continue
        here.begin("env FLAKY=1 servo materialize ops.flaky", "attempt 2 in", ends_with=signal.SIGKILL)
        here.good(example)
        shutil.rmtree(here.directory)


def free_port() -> str:
    """Give a port that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return str(listener.getsockname()[1])


@pytest.fixture
def served(shell: Callable[..., Shell], tmp_path: Path) -> Iterator[Shell]:
    """Give a shell that is about a server for many, with its first key."""
    here = shell()
    left = shutil.ignore_patterns(".servo")
    with Served(shutil.copytree(here.directory, tmp_path / "server", ignore=left)) as server:
        here.environment.update(SERVO_URL=server.url, SERVO_KEY=server.key)
        yield here


@pytest.mark.parametrize("name", [name for name in LEAVES if name.startswith((*OF_A_SERVER, "admin audit"))])
def test_the_examples_of_a_command_about_a_server_work(name: str, served: Shell) -> None:
    if name.startswith("admin audit"):
        served.good("servo deploy")
    prepared(served, name)
    for example in examples(PAGES[name]):
        if "ses_" not in example:
            served.good(real(served, example))


@pytest.mark.parametrize("name", ["login", "logout", "context list", "context show", "context use"])
def test_the_examples_about_contexts_work(name: str, served: Shell, tmp_path: Path) -> None:
    url, key = (served.environment.pop(name) for name in ("SERVO_URL", "SERVO_KEY"))
    served.environment["SERVO_CONFIG"] = str(tmp_path / "contexts.toml")
    (served.directory / "key.txt").write_text(f"{key}\n", encoding="utf-8")
    if name != "login":
        served.good(f"servo login {url} --name prod --key-stdin < key.txt")
    for example in examples(PAGES[name]):
        line = example.replace("https://servo.example.org", url)
        if name == "login" and "--key-stdin" not in line:
            # Without an identity provider a key is asked for; with one it is tried in the tests of servo-cli.
            line += " < key.txt"
        served.good(line)


def test_the_examples_of_a_worker_of_this_machine_work(shell: Callable[..., Shell]) -> None:
    first, _, third = examples(PAGES["worker"])
    here = shell()
    with Server(here.directory, "--port", "0") as server:
        here.begin(first.replace("http://127.0.0.1:8741", server.url), " slots for http")
        here.good(third)
        for line in examples(PAGES["worker list"]):
            here.good(line)


def test_the_example_of_a_worker_of_a_server_works(served: Shell, tmp_path: Path) -> None:
    served.good("servo deploy")
    served.good("servo admin api-keys create gpu --role worker --scope default/main --service > key.txt")
    url, _ = (served.environment.pop(name) for name in ("SERVO_URL", "SERVO_KEY"))
    served.environment["SERVO_CONFIG"] = str(tmp_path / "contexts.toml")
    served.environment["SERVO_DIR"] = str(tmp_path / "server" / ".servo")
    served.good(f"servo login {url} --name prod --key-stdin < key.txt")
    served.begin(examples(PAGES["worker"])[1], " slots for http")


def test_the_examples_of_open_work(shell: Callable[..., Shell]) -> None:
    here = shell()
    with Server(here.directory, "--port", "0"):
        for line in examples(PAGES["open"]):
            here.good(line)


def test_the_examples_of_servers_work(shell: Callable[..., Shell], tmp_path: Path) -> None:
    here = shell()
    for line in examples(PAGES["dev"]):
        here.begin(f"{line} --port {free_port()}", "reloaded when you save")
    here.good(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=servo.example.org"
        " -keyout server.key -out server.pem"
    )
    for line in examples(PAGES["serve"]):
        there = line.replace("/var/lib/servo", str(tmp_path / "served"))
        there = there.replace("0.0.0.0:8741", f"127.0.0.1:{free_port()}")
        if "--listen" not in there:
            there += f" --listen 127.0.0.1:{free_port()}"
        here.begin(there, "servo serve http")
