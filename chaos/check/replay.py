"""From events to the model, by rules of its own, and what breaks them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from chaos.check.automation import Automation
from chaos.check.facts import decision, inputs
from chaos.check.model import Attempt, Made, Model, Run, Task, asset_of, partition_of
from chaos.check.workers import Workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from chaos.check.findings import Findings
    from chaos.check.ledger import Event

# Attempts that may be lost in a row before the task fails.
MAX_INTERRUPTIONS = 10
# Attempts of a task that says nothing of it.
MAX_ATTEMPTS = 3


def replay(events: list[Event], findings: Findings) -> Model:
    """Give what the events say."""
    return _Replay(findings).run(events)


class _Replay:
    def __init__(self, findings: Findings) -> None:
        self.model = Model()
        self.findings = findings
        self.automation = self.model.automation = Automation(self.model, findings)
        self.known = Workers(findings)
        self.keys: dict[str, str] = {}
        # Runs and answers by what the client named the request.
        self.asked: dict[str, str] = {}
        self.answered: dict[str, str] = {}
        # What counts, by run, task and asset.
        self.counted: set[tuple[str, str, str]] = set()
        # What counts, by asset and materialization.
        self.good: set[tuple[str, str]] = set()
        # Queues of the workers that are given tasks.
        self.workers: dict[str, set[str]] = {}
        # How much was made when something was approved.
        self.approvals: dict[tuple[str, str], int] = {}
        # Tasks that are not tried again, unless the same batch says that they will be.
        self.failing: list[tuple[Run, Task]] = []

    def run(self, events: list[Event]) -> Model:
        handlers = {
            "RunRequested": self.requested,
            "RequestAnswered": self.answer,
            "PlanCreated": self.planned,
            "RunTriggered": self.triggered,
            "RunCancelRequested": self.cancelled,
            "DispatchRequested": self.dispatched,
            "DispatchEnqueued": self.enqueued,
            "TaskStarted": self.started,
            "TaskFinished": self.finished,
            "TimerRequested": self.retried,
            "TimerFired": self.fired,
            "MaterializationApproved": self.approved,
            "MaterializationRejected": self.rejected,
            "MaterializationReleased": self.released,
            "PartitionsWiped": self.wiped,
            "PartitionsRestored": self.restored,
            "RetentionApplied": self.expired,
            "AssetsDeployed": self.deployed,
            "AssetRenamed": self.renamed,
            "WorkerRegistered": self.registered,
            "WorkerChanged": self.changed,
            "WorkerLeft": self.gone,
            "WorkerLost": self.gone,
        }
        seq = 0
        for event in events:
            if event.seq != seq:
                self.settle()
                self.automation.settle()
                seq = event.seq
            if event.type in handlers:
                self.take(handlers[event.type], event)
            self.take(self.automation.take, event)
            self.take(self.known.take, event)
        self.settle()
        self.automation.settle()
        self.automation.end()
        self.model.of_namesakes = self.known.of_namesakes
        return self.model

    def take(self, handle: Callable[[Event], None], event: Event) -> None:
        """Go on after an event of a run or task of which the log has said nothing."""
        try:
            handle(event)
        except KeyError as error:
            self.findings.lost(f"{event.type} {event.id}: nothing in the log before it says {error}")

    def deployed(self, event: Event) -> None:
        self.model.assets |= {entry["definition"]["key"] for entry in event.payload.get("upsert", [])}

    def wiped(self, event: Event) -> None:
        """Forget what was made, and what is at work: a result from before a wipe does not count."""
        asset, keeps = event.payload["asset_key"], event.payload.get("keep_data", False)
        meant = _meant(event)
        self.model.wipes += 1
        self.void(asset, meant)
        for key, made in self.model.newest().items():
            if key[0] == asset and meant(key[1]):
                self.model.wiped[key] = (len(self.model.made), event.id)
                if not keeps:
                    self.model.removed[made.asset, made.id] = made.asset
        for name, made in list(self.model.approved.items()):
            if made.asset == asset and meant(made.partition):
                del self.model.approved[name]
                self.approvals.pop(name, None)
        if not keeps:
            for key in [key for key in self.model.waiting if key[0] == asset and meant(key[1])]:
                del self.model.waiting[key]

    def renamed(self, event: Event) -> None:
        """Give everything that is known of an asset to another name."""
        model, before, after = self.model, event.payload["asset_key"], event.payload["renamed_to"]
        if any(asset == after for asset, _ in model.newest()):
            self.findings.wrong(f"{before} was renamed to {after}, of which something was made")
        model.renamed |= {before, after}

        def key(of: tuple[str, Any]) -> tuple[str, Any]:
            return (after, of[1]) if of[0] == before else of

        def named(made: Made) -> Made:
            return replace(made, asset=after, made_as=made.recorded) if made.asset == before else made

        model.made = [named(made) for made in model.made]
        model.waiting = {key(place): named(made) for place, made in model.waiting.items()}
        model.approved = {key(name): named(made) for name, made in model.approved.items()}
        model.removed = {key(name): then for name, then in model.removed.items()}
        model.wiped = {key(place): wipe for place, wipe in model.wiped.items()}
        self.good = {key(name) for name in self.good}

    def void(self, asset: str, meant: Callable[[str | None], bool]) -> None:
        """Let what open attempts make of an asset not count."""
        for run, task in self.model.tasks:
            makes = asset in task.assets and not task.key.endswith(":check")
            if makes and task.open is not None and not run.cancelled and meant(partition_of(task.key)):
                task.open.voided.add(asset)

    def restored(self, event: Event) -> None:
        change = event.payload["change"]
        for key in [key for key, (_, by) in self.model.wiped.items() if by == change]:
            del self.model.wiped[key]

    def registered(self, event: Event) -> None:
        self.workers[event.payload["worker_id"]] = set(event.payload["queues"])

    def changed(self, event: Event) -> None:
        if event.payload.get("draining", False):
            self.gone(event)

    def gone(self, event: Event) -> None:
        """End what nobody began in queues that nobody serves any more."""
        self.workers.pop(event.payload["worker_id"], None)
        served = set().union(*self.workers.values())
        for run in self.model.runs.values():
            for task in run.tasks.values():
                attempt = task.open
                if attempt is not None and attempt.started is None and task.queue not in served:
                    self.end(run, task, attempt, "UNTAKEN")

    def requested(self, event: Event) -> None:
        run_id, key = event.payload["run_id"], event.payload["run_key"]
        fingerprint = event.payload["request_fingerprint"]
        if self.keys.setdefault(key, run_id) != run_id:
            self.findings.doubled(f"run key {key} is of {self.keys[key]} and of {run_id}")
        request = event.payload.get("request_id")
        if request is not None and self.asked.setdefault(request, run_id) != run_id:
            self.findings.doubled(f"request {request} has the runs {self.asked[request]} and {run_id}")
        known = self.model.runs.get(run_id)
        if known is None:
            self.model.runs[run_id] = Run(id=run_id, key=key, fingerprint=fingerprint, request=request)
        elif known.fingerprint == fingerprint:
            self.findings.doubled(f"{run_id} was requested twice")

    def answer(self, event: Event) -> None:
        request = event.payload["request_id"]
        if self.answered.setdefault(request, event.id) != event.id:
            self.findings.doubled(f"request {request} was carried out twice, by {event.id} too")

    def planned(self, event: Event) -> None:
        run = self.model.runs[event.payload["run_id"]]
        if run.planned:
            self.findings.doubled(f"{run.id} has two plans")
            return
        run.planned = True
        specs: list[dict[str, Any]] = event.payload["tasks"]
        keys = [spec["task_key"] for spec in specs]
        for spec in specs:
            key = spec["task_key"]
            upstream = [keys[position] for position in spec.get("upstream", [])]
            max_attempts = spec.get("retry", {}).get("max_attempts", MAX_ATTEMPTS)
            outputs = [asset_of(key), *spec.get("outputs", [])]
            queue = spec.get("worker_queue", "default")
            run.tasks[key] = Task(key, upstream, outputs, max_attempts, queue=queue)
        for dep_set in event.payload.get("sets", []):
            upstream = [
                keys[position] for start, end in dep_set["upstream"] for position in range(start, end)
            ]
            for start, end in dep_set["downstream"]:
                for key in keys[start:end]:
                    run.tasks[key].upstream.extend(upstream)

    def triggered(self, event: Event) -> None:
        run = self.model.runs[event.payload["run_id"]]
        if run.triggered:
            self.findings.doubled(f"{run.id} was started twice")
        run.triggered = True

    def cancelled(self, event: Event) -> None:
        run = self.model.runs[event.payload["run_id"]]
        # What failed just before, and would have been tried again, waits for that no more.
        self.failing = [
            entry
            for entry in self.failing
            if entry[0] is not run or entry[1].failures >= entry[1].max_attempts
        ]
        self.settle(run)
        if run.state is not None:
            return
        run.cancelled = True
        for task in run.tasks.values():
            attempt = task.open
            if attempt is not None and not attempt.enqueued and attempt.started is None:
                attempt.end = "CANCELLED"
            if task.state is None and task.open is None:
                task.state = "CANCELLED"

    def task(self, event: Event) -> tuple[Run, Task]:
        run = self.model.runs[event.payload["run_id"]]
        return run, run.tasks[event.payload["task_key"]]

    def dispatched(self, event: Event) -> None:
        run, task = self.task(event)
        number, name = event.payload["attempt"], f"{run.id} {task.key}"
        if task.open is not None:
            self.findings.doubled(f"{name}: attempt {number} is dispatched while another is open")
        if task.state is not None:
            self.findings.doubled(f"{name}: attempt {number} is dispatched after it was {task.state}")
        if number != len(task.attempts) + 1:
            self.findings.wrong(f"{name}: attempt {number} comes after attempt {len(task.attempts)}")
        for upstream in task.upstream:
            if run.tasks[upstream].state != "SUCCEEDED":
                self.findings.wrong(f"{name}: dispatched before {upstream} has succeeded")
        task.attempts.append(Attempt(number, event.payload["attempt_id"]))
        provenance = event.payload.get("provenance", {})
        self.model.dispatches[event.payload["attempt_id"]] = provenance
        for asset, _, read, _ in inputs(provenance):
            if read is not None and (asset, read) not in self.good:
                self.findings.wrong(
                    f"{name}: attempt {number} is to read {asset} {read}, which does not count"
                )

    def enqueued(self, event: Event) -> None:
        _, task = self.task(event)
        if (attempt := self.current(task, event)) is not None:
            attempt.enqueued = True

    def started(self, event: Event) -> None:
        run, task = self.task(event)
        attempt = self.current(task, event)
        if attempt is None or attempt.end is not None:
            self.findings.wrong(f"{run.id} {task.key}: an attempt began that was over")
        elif attempt.started is not None:
            self.findings.doubled(f"{run.id} {task.key}: attempt {attempt.number} was begun twice")
        else:
            attempt.started, attempt.worker = event.at, event.payload["worker_id"]

    @staticmethod
    def current(task: Task, event: Event) -> Attempt | None:
        newest = task.attempts[-1] if task.attempts else None
        same = newest is not None and newest.id == event.payload["attempt_id"]
        return newest if same else None

    def finished(self, event: Event) -> None:
        run, task = self.task(event)
        attempt = self.current(task, event)
        if attempt is None or attempt.end is not None:
            self.late(run, task, event)
            return
        payload = event.payload
        attempt.outputs, attempt.ended = payload.get("outputs", []), event.at
        attempt.reported = True
        is_refused = payload["outcome"] == "SUCCEEDED" and self.refused(task, attempt)
        self.end(run, task, attempt, "FAILED" if is_refused else payload["outcome"])
        if not run.cancelled:
            self.quarantined(run, task, attempt, event)
        if task.state == "SUCCEEDED":
            self.count(run, task, attempt, event)

    def refused(self, task: Task, attempt: Attempt) -> bool:
        """Say whether what a worker calls done does not count: it is not stored, or a check blocks it."""
        declared = self.model.dispatches.get(attempt.id, {}).get("checks", [])
        for output in attempt.outputs:
            if output["asset"] not in task.assets:
                continue
            position = task.assets.index(output["asset"])
            blocks = decision(output.get("checks", []), declared, position) == "BLOCK"
            if output["state"] == "MISSING" or (output["state"] == "COMMITTED" and blocks):
                return True
        return False

    def late(self, run: Run, task: Task, event: Event) -> None:
        known = [attempt for attempt in task.attempts if attempt.id == event.payload["attempt_id"]]
        if not known:
            self.findings.wrong(f"{run.id} {task.key}: a report of an attempt that never was")
            return
        attempt = known[0]
        attempt.late += 1
        if attempt.reported:
            self.findings.doubled(f"{run.id} {task.key}: attempt {attempt.number} was reported twice")
        attempt.reported = True

    def end(self, run: Run, task: Task, attempt: Attempt, how: str) -> None:
        attempt.end = how
        task.interruptions = task.interruptions + 1 if how == "INTERRUPTED" else 0
        if run.cancelled:
            task.state = "CANCELLED"
        elif how == "SUCCEEDED":
            task.state = "SUCCEEDED"
        elif how not in {"INTERRUPTED", "UNTAKEN"} or task.interruptions > MAX_INTERRUPTIONS:
            self.failing.append((run, task))

    def retried(self, event: Event) -> None:
        _, task = self.task(event)
        self.failing = [entry for entry in self.failing if entry[1] is not task]

    def fired(self, event: Event) -> None:
        kind = event.payload["timer_type"]
        if kind not in {"HEARTBEAT_CHECK", "DISPATCH_ACK"}:
            return
        run, task = self.task(event)
        attempt = task.open
        if attempt is None or attempt.number != event.payload["attempt"]:
            return
        if kind == "HEARTBEAT_CHECK" and attempt.started is not None:
            self.end(run, task, attempt, "HEARTBEAT_LOST")
        elif kind == "DISPATCH_ACK" and attempt.started is None:
            self.end(run, task, attempt, "UNTAKEN")

    def settle(self, only: Run | None = None) -> None:
        """Fail the tasks that are not tried again, of one run or of all, and skip what is behind them."""
        settled = [entry for entry in self.failing if only is None or entry[0] is only]
        self.failing = [entry for entry in self.failing if entry not in settled]
        for run, task in settled:
            task.state = "FAILED"
            behind = [task.key]
            while behind:
                key = behind.pop()
                for other in run.tasks.values():
                    if other.state is None and not other.attempts and key in other.upstream:
                        other.state = "SKIPPED"
                        behind.append(other.key)

    def quarantined(self, run: Run, task: Task, attempt: Attempt, event: Event) -> None:
        for output in attempt.outputs:
            if output["state"] == "QUARANTINED" and output["asset"] in task.assets:
                made = _made(run, task, attempt, output, event)
                self.model.waiting[made.asset, made.partition] = made

    def count(self, run: Run, task: Task, attempt: Attempt, event: Event) -> None:
        for output in attempt.outputs:
            if output["asset"] in attempt.voided:
                continue
            if output["state"] == "COMMITTED" and output["asset"] in task.assets:
                key = (run.id, task.key, output["asset"])
                if key in self.counted:
                    self.findings.doubled(f"{run.id} {task.key}: {output['asset']} was committed twice")
                self.counted.add(key)
                made = _made(run, task, attempt, output, event)
                self.model.made.append(made)
                self.good.add((made.asset, made.id))
                self.automation.made(made)

    def approved(self, event: Event) -> None:
        if (made := self.reviewed(event)) is not None:
            approved = Made(
                made.asset, made.partition, made.id, made.output, made.task_key, made.run_id, event.at
            )
            self.model.approved[made.asset, made.id] = approved
            self.approvals[made.asset, made.id] = len(self.model.made)

    def released(self, event: Event) -> None:
        """Count what was approved, in the place of its approval among what was made."""
        key = (event.payload["asset_key"], event.payload["materialization_id"])
        if (made := self.model.approved.pop(key, None)) is None:
            self.findings.wrong(f"{key[0]} {key[1]} was released and not approved")
            return
        self.model.made.insert(self.approvals.pop(key), made)
        self.good.add(key)
        self.automation.made(made)

    def expired(self, event: Event) -> None:
        """Remove what retention names, none of which anything needs."""
        newest = self.model.newest()
        tasks = (task for _, task in self.model.tasks)
        read = {
            (asset, name): f"{reader} is to read it"
            for reader, attempt in ((task.key, task.open) for task in tasks)
            if attempt is not None
            for asset, _, name, _ in inputs(self.model.dispatches.get(attempt.id, {}))
        }
        read |= {
            (asset, name): f"the newest {made.asset} was made of it"
            for made in newest.values()
            for asset, _, name, _ in inputs(self.model.dispatches.get(made.id, {}))
        }
        for entry in event.payload.get("superseded", []):
            asset, name = entry["asset_key"], entry["materialization_id"]
            place = (asset, entry.get("partition_key"))
            if (asset, name) in self.model.removed:
                # Tables that were behind had it still. It is gone, and that is all.
                continue
            if (asset, name) not in self.good:
                self.findings.wrong(f"retention removes {asset} {name}, which does not count")
            elif place in newest and newest[place].id == name:
                self.findings.wrong(f"retention removes {asset} {name}, the newest")
            elif (asset, name) in read:
                self.findings.wrong(f"retention removes {asset} {name}, and {read[asset, name]}")
            self.model.removed[asset, name] = asset
            self.good.discard((asset, name))

    def rejected(self, event: Event) -> None:
        self.reviewed(event)

    def reviewed(self, event: Event) -> Made | None:
        asset, name = event.payload["asset_key"], event.payload["materialization_id"]
        for place, made in self.model.waiting.items():
            if made.asset == asset and made.id == name:
                return self.model.waiting.pop(place)
        self.findings.wrong(f"{asset} {name} was reviewed and did not wait for it")
        return None


def _made(run: Run, task: Task, attempt: Attempt, output: dict[str, Any], event: Event) -> Made:
    return Made(output["asset"], task.partition, attempt.id, output, task.key, run.id, event.at)


def _meant(event: Event) -> Callable[[str | None], bool]:
    """Say which partitions a wipe is about: none stand for an asset without any."""
    ranges = [(one["from"], one.get("to", one["from"])) for one in event.payload.get("partitions", [])]
    return lambda key: not ranges if key is None else any(first <= key <= last for first, last in ranges)
