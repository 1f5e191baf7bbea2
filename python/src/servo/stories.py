"""Stories: what automation conditions request when things happen, played without a server.

A story is given the declarations of a project, and told what happens. The engine of the `servo` binary
evaluates the conditions, and plays workers: what is requested is made at once, and what follows from that
too.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

from servo.arguments import wrong
from servo.canonical import canonical_json
from servo.dependencies import key_of
from servo.durations import milliseconds
from servo.manifest import ManifestContext, build
from servo.registry import Registry

if TYPE_CHECKING:
    from servo.dependencies import AssetLike
    from servo.durations import Duration

BINARY = "SERVO_BINARY"
"""Environment variable that names the `servo` binary, if it is not on the path."""


class Story:
    """Things that happen to a project, and what its conditions request because of them.

    Every method gives the list of what was requested, in the order of requests: `shop.revenue`, or
    `shop.revenue 2026-01-05` for a partition. `runs` is how many runs that were.
    """

    def __init__(self, declared: Registry, *, start: str = "2026-01-05T00:00:00.000Z") -> None:
        """Take what `servo.collecting()` found, and deploy it at a time."""
        if not isinstance(declared, Registry):
            raise wrong("Story(declared)", declared, "what servo.collecting() gives")
        self._declared = declared
        self._start = start
        self._steps: list[dict[str, object]] = []
        self._versions: dict[str, int] = {}
        self.runs = 0
        self._happens({"do": "deploy", "manifest": self._manifest()})

    def materialize(self, asset: AssetLike, partition: str | None = None) -> list[str]:
        """Somebody makes an asset, or a partition of it."""
        return self._happens(self._made(asset, partition))

    def fail(self, asset: AssetLike, partition: str | None = None) -> list[str]:
        """Somebody tries to make an asset, and it fails."""
        return self._happens({**self._made(asset, partition), "fails": True})

    def failing(self, *assets: AssetLike) -> list[str]:
        """Every attempt at these assets fails from now on, and at no others."""
        names = sorted(_name(asset) for asset in assets)
        return self._happens({"do": "failing", "assets": names})

    def advance(self, length: Duration) -> list[str]:
        """Time passes."""
        return self._happens({"do": "advance", "ms": milliseconds("advance(length)", length)})

    def add_partitions(self, name: str, *keys: str) -> list[str]:
        """Keys of dynamic partitions are added."""
        return self._happens({"do": "add_partitions", "name": name, "keys": list(keys)})

    def change_code(self, asset: AssetLike) -> list[str]:
        """The code of an asset changes, and is deployed."""
        name = _name(asset)
        self._versions[name] = self._versions.get(name, 1) + 1
        return self._happens({"do": "deploy", "manifest": self._manifest()})

    def deploy(self, declared: Registry) -> list[str]:
        """Other declarations are deployed."""
        self._declared = declared
        return self._happens({"do": "deploy", "manifest": self._manifest()})

    def _made(self, asset: AssetLike, partition: str | None) -> dict[str, object]:
        made: dict[str, object] = {"do": "materialize", "asset": _name(asset)}
        return made if partition is None else {**made, "partition": partition}

    def _manifest(self) -> dict[str, object]:
        context = ManifestContext(relative_path=os.path.basename, code_version=lambda _: "1")
        manifest = build(self._declared, "story", context)
        assets = manifest["assets"]
        for asset in assets if isinstance(assets, list) else ():
            version = self._versions.get(asset["key"].replace("/", ".", 1))
            if version is not None:
                asset["code_version"] = str(version)
        # Only what conditions look at: what schedules and sensors do is not part of a story.
        return {**manifest, "schedules": [], "sensors": []}

    def _happens(self, step: dict[str, object]) -> list[str]:
        self._steps.append(step)
        story = canonical_json({"start": self._start, "steps": self._steps})
        binary = os.environ.get(BINARY) or shutil.which("servo")
        if binary is None:
            raise FileNotFoundError(
                f"a story needs the servo binary: put it on the path, or name it in {BINARY}"
            )
        command = [binary, "automation", "play", "--json"]
        done = subprocess.run(command, input=story, capture_output=True, text=True, check=False)  # noqa: S603
        if done.returncode != 0:
            self._steps.pop()
            raise ValueError(_problem(done.stderr, done.stdout))
        requested = json.loads(done.stdout)[-1]
        self.runs = len({item["run"] for item in requested})
        return [" ".join(filter(None, (item["asset"], item.get("partition")))) for item in requested]


def _name(asset: AssetLike) -> str:
    return key_of("asset", asset).replace("/", ".", 1)


def _problem(error: str, output: str) -> str:
    for text in (output, error):
        try:
            return str(json.loads(text)["detail"])
        except (ValueError, KeyError, TypeError):
            continue
    return error.strip() or output.strip()
