"""The site that stories and comments come from, and the places where some assets are stored."""

from __future__ import annotations

import dataclasses
import datetime as dt  # noqa: TC003 - annotations are read when tasks run
import random
from pathlib import Path
from typing import Any

import numpy as np

import servo
import servo.io

NO_TOKEN = servo.Secret("")
USERS = ("ada", "bob", "cleo", "dan", "eve")


@dataclasses.dataclass
class Source(servo.Resource):
    """A news site. It makes up what it has, the same for the same hour: nothing asks a network."""

    site: str
    token: servo.Secret = NO_TOKEN
    stories_per_hour: int = 4

    def items(self, start: dt.datetime) -> list[dict[str, Any]]:
        """Give what was written in the hour from a time on."""
        chance = random.Random(start.isoformat())  # noqa: S311 - no secret
        first = int(start.timestamp()) // 3600 * 1000
        stories = [
            {
                "id": first + n,
                "kind": "story",
                "by": chance.choice(USERS),
                "parent": None,
                "score": chance.randint(1, 99),
            }
            for n in range(self.stories_per_hour)
        ]
        comments = [
            {
                "id": first + self.stories_per_hour + n,
                "kind": "comment",
                "by": chance.choice(USERS),
                "parent": chance.choice(stories)["id"],
                "score": 0,
            }
            for n in range(3 * self.stories_per_hour)
        ]
        return [*stories, *comments]

    def count(self, start: dt.datetime) -> int:
        """Count what was written in the hour from a time on."""
        return len(self.items(start))


@dataclasses.dataclass
class Warehouse(servo.io.DuckDB):
    """The database that analysts read."""

    path: str

    def __post_init__(self) -> None:
        """Take the path as the manager does."""
        super().__init__(self.path)


@dataclasses.dataclass
class MailingList(servo.Resource):
    """Who wants letters: a line for each, the newest last."""

    path: str

    def since(self, known: int) -> list[str]:
        """Give who has subscribed after the first so many."""
        file = Path(self.path)
        names = file.read_text(encoding="utf-8").split() if file.exists() else []
        return names[known:]


@dataclasses.dataclass
class Chat(servo.Resource):
    """Where the team is told: a file here, a channel in production."""

    path: str

    def say(self, text: str) -> None:
        """Add a line."""
        with Path(self.path).open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")


@dataclasses.dataclass
class Model:
    """Which stories go together: a vector for each, and one for each reader."""

    stories: np.ndarray
    readers: np.ndarray

    def to_bytes(self) -> bytes:
        """Write both, without a pickle."""
        shapes = np.array([*self.stories.shape, *self.readers.shape], dtype=np.int64)
        return shapes.tobytes() + self.stories.tobytes() + self.readers.tobytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """Read both."""
        shapes = np.frombuffer(data[:32], dtype=np.int64)
        values = np.frombuffer(data[32:])
        split = int(shapes[0] * shapes[1])
        return cls(values[:split].reshape(shapes[:2]), values[split:].reshape(shapes[2:]))


source = servo.resource(
    "source", Source, retry=servo.Retry(max_attempts=3, delay="1s", retry_on=[ConnectionError])
)
warehouse = servo.resource("warehouse", Warehouse)
mailing_list = servo.resource("mailing_list", MailingList)
chat = servo.resource("chat", Chat)
models = servo.resource("models", servo.io.Bytes(dump=Model.to_bytes, load=Model.from_bytes))
