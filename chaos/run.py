"""One chaos run: everything starts, is beaten, comes to rest, and ends."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from chaos.automation import ORCHESTRATION, AutomationClient
from chaos.client import UnansweredError, get
from chaos.killer import Killer
from chaos.load import Client, Load
from chaos.processes import SupervisedProcess, marked, send
from chaos.recovery import Recovery

if TYPE_CHECKING:
    from collections.abc import Callable

    from chaos.environment import Environment
    from chaos.sink import Sink

KEY = "chaos"
CLIENTS = 3
WORKERS = 3
# Those that share a name: which of them it is that began something must never be in doubt.
NAMESAKES = (1, 2)
# Seconds before a worker that was refused asks again.
REFUSED_PAUSE = 5.0
SLOTS = 2
# Seconds after which a silent worker is abandoned: some are stopped for longer, and then go on.
SILENCE = 4
# How long everything may take to come to rest when nobody kills any more.
REST = 300.0
STARTS_IN = 60.0
# What asks for runs by the clock.
CLOCKED = ("schedules/every_second", "schedules/by_function", "sensors/counting")


@dataclass
class ChaosRun:
    """The processes and clients of one chaos run."""

    environment: Environment
    sink: Sink
    seed: int
    tell: Callable[[str], None]
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make everybody; nobody starts yet."""
        environment = self.environment
        self.recovery = Recovery(environment.server)
        serve = ["dev", "--port", str(environment.port), "--slots", str(SLOTS), "--worker-key", KEY]
        serve += ["--worker-timeout", str(SILENCE)]
        ask = ["worker", "--server", environment.url, "--key", KEY]
        work = [*ask, "--slots", str(SLOTS)]
        self.server = SupervisedProcess("server", serve, environment, self.recovery.begun)
        self.workers = [
            SupervisedProcess(f"worker-{number}", [*work, *_named(number)], environment)
            for number in range(WORKERS)
        ]
        # They must never make anything, and nobody has to kill them for that.
        self.strangers = [
            self._stranger("other-code", ask, environment.strange_variables(code=True)),
            self._stranger("other-disk", ask, environment.strange_variables(disk=True)),
        ]
        self.killer = Killer(self.server, self.workers, random.Random(self.seed))  # noqa: S311
        self.load = Load(environment.server, environment.requests)
        self.clients = [
            Client(f"client{number}", self.load, random.Random(self.seed * 1000 + number))  # noqa: S311
            for number in range(CLIENTS)
        ]
        chance = random.Random(self.seed * 1000 + CLIENTS)  # noqa: S311
        self.automation = AutomationClient("automation", self.load, chance, environment.project)
        self.clients.append(self.automation)
        self.rested = 0.0

    def _stranger(self, name: str, ask: list[str], variables: dict[str, str]) -> SupervisedProcess:
        arguments = [*ask, "--name", name, "--slots", "1"]
        process = SupervisedProcess(name, arguments, self.environment, variables=variables)
        process.pause = REFUSED_PAUSE
        return process

    def play(self, seconds: float) -> None:
        """Do all of it; nothing of it runs afterwards, however it ends."""
        try:
            self._begin()
            self._beat(seconds)
            self.rest()
        finally:
            self.end()

    def start(self) -> None:
        """Start the server, and wait until it has deployed the project."""
        self.server.start()
        self._until(lambda: self.recovery.starts[0].ready is not None, STARTS_IN, "the server did not start")
        deployed = "nothing was deployed"
        self._until(lambda: get(self.environment.server, "/deployments/current").ok, STARTS_IN, deployed)

    def _begin(self) -> None:
        self.start()
        for worker in [*self.workers, *self.strangers]:
            worker.start()
        for client in self.clients:
            client.start()

    def _beat(self, seconds: float) -> None:
        beating = threading.Thread(target=self.killer.run, name="killer", daemon=True)
        beating.start()
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            time.sleep(min(left, 10))
            faults, runs = len(self.killer.faults), len(self.load.runs)
            self.tell(
                f"{max(left, 0):4.0f} s left: {faults} faults, {runs} runs, {self.server.starts} starts"
            )
        self.killer.ended.set()
        beating.join()

    def rest(self) -> None:
        """Leave everything in peace until all runs have ended, and nothing asks for more of them."""
        begun = time.monotonic()
        self.load.stop.set()
        self.sink.well.set()
        for client in filter(Client.is_alive, self.clients):
            client.join(REST)
        for what in CLOCKED:
            self.automation.retry_until_acked(f"{ORCHESTRATION}/{what}/pause", {}, f"rest-{what}")
        self._until(self._resumed, REST, "backfills could not be resumed")
        self._until(self._at_rest, REST, "not all came to rest")
        self.rested = time.monotonic() - begun

    def _resumed(self) -> bool:
        """Resume what was paused and has to end by itself."""
        paused = get(self.environment.server, f"{ORCHESTRATION}/backfills?state=PAUSED&limit=100")
        for backfill in paused.body["items"]:
            name = backfill["backfill_id"]
            path = f"{ORCHESTRATION}/backfills/{name}/resume"
            self.automation.retry_until_acked(path, {}, f"rest-{name}-{backfill['state_version']}")
        return not paused.body["items"]

    def _at_rest(self) -> bool:
        """Say whether nothing happens any more, also between two looks."""
        return not any(self._open() for _ in range(2))

    def _open(self) -> int:
        """Count what is not over."""
        server = self.environment.server
        runs = get(server, "/runs?state=PENDING,QUEUED,RUNNING,CANCELLING&limit=100").body["items"]
        backfills = get(server, f"{ORCHESTRATION}/backfills?state=PENDING,RUNNING&limit=100").body["items"]
        told = get(server, "/notifications/failures/history?status=PENDING,SENDING&limit=100").body["items"]
        sensors = get(server, f"{ORCHESTRATION}/sensors?limit=100").body["items"]
        waiting = sum(sensor["messages_waiting"] for sensor in sensors)
        return len(runs) + len(backfills) + len(told) + int(waiting)

    def _until(self, holds: Callable[[], bool], seconds: float, otherwise: str) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if holds():
                    return
            except (UnansweredError, IndexError):
                pass
            time.sleep(0.1)
        self.problems.append(f"{otherwise} within {seconds:.0f} s")

    def end(self) -> None:
        """Stop everything; a process that is left is a problem."""
        self.killer.ended.set()
        self.load.stop.set()
        for process in [*self.strangers, *self.workers, self.server]:
            if process.thread.is_alive() and not process.stop(30):
                self.problems.append(f"{process.name} did not end by itself, or not well")
        # Children of user code live in the groups of runners, which are gone; what is left here is a fault.
        deadline = time.monotonic() + 3
        while (left := marked(str(self.environment.root))) and time.monotonic() < deadline:
            time.sleep(0.1)
        for pid in left:
            self.problems.append(f"process {pid} is left: {_command(pid)}")
            send(pid, signal.SIGKILL)

    def verify(self) -> None:
        """Let Servo check its own tables too."""
        arguments = [str(self.environment.servo), "admin", "projections", "verify"]
        done = subprocess.run(  # noqa: S603 - our own arguments
            arguments, env=self.environment.variables(), capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            self.problems.append(f"servo admin projections verify: {done.stdout}{done.stderr}")


def _named(number: int) -> list[str]:
    return ["--name", "twin"] if number in NAMESAKES else []


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123
            return os.fsdecode(file.read().replace(b"\0", b" "))
    except OSError:
        return "gone by now"
