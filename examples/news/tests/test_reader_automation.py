"""Schedules and sensors without a server: what each of them requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

import servo
from reader_news import automation, core, letters
from reader_news.resources import Chat, MailingList, Source
from servo import testing

if TYPE_CHECKING:
    from pathlib import Path


def test_weekends_are_left_out_and_other_nights_count_the_day_before() -> None:
    days = {"activity.daily_stats": "2026-01-05"}
    found = testing.evaluate(automation.every_night, at="2026-01-06T00:30:00+00:00", latest=days)
    assert [request.partition for request in found.requests] == ["2026-01-05"]
    weekend = testing.evaluate(automation.every_night, at="2026-01-10T00:30:00+00:00", latest=days)
    assert weekend.skip == "analysts do not look at weekends"


def test_new_subscribers_are_partitions_and_get_a_letter(tmp_path: Path) -> None:
    file = tmp_path / "subscribers.txt"
    resources = {"mailing_list": MailingList(str(file))}
    assert testing.evaluate(automation.somebody_subscribed, resources=resources).skip == "nobody new"
    file.write_text("ada\nzoe\n", encoding="utf-8")
    found = testing.evaluate(automation.somebody_subscribed, cursor="1", resources=resources)
    assert [request.partition for request in found.requests] == ["zoe"]
    assert found.add_partitions == {"subscribers": ("zoe",)}
    assert found.cursor == "2"


def test_a_letter_has_what_was_recommended_to_its_reader() -> None:
    advised = pl.DataFrame({"reader": ["ada", "bob"], "story": [1, 2]})
    made = servo.materialize(
        [letters.letter], partition="bob", inputs={"recommender.recommendations": advised}
    )
    assert made.value(letters.letter)["story"].to_list() == [2]
    assert "**1** stories" in str(made.metadata(letters.letter)["text"])


def test_the_team_is_told_of_runs_and_attempts_that_failed(tmp_path: Path) -> None:
    class Unreachable(Source):
        def items(self, start: object) -> list[dict[str, object]]:
            raise ConnectionError(f"{self.site} does not answer for {start}")

    file = tmp_path / "chat.txt"
    chat = Chat(str(file))
    message = {"selection": "core.*", "run_id": "run_x"}
    testing.evaluate(automation.a_run_has_failed, message=message, resources={"chat": chat})
    with pytest.raises(ConnectionError):
        servo.materialize(
            [core.items],
            partition="2026-01-05T10:00",
            resources={"source": Unreachable("site"), "chat": chat},
        )
    assert file.read_text(encoding="utf-8").splitlines() == [
        "core.* has failed: run_x",
        "core.items 2026-01-05T09:00:00Z, attempt 1: site does not answer for 2026-01-05 09:00:00+00:00",
    ]


def test_production_has_values_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVO_ENV", "prod")
    monkeypatch.setenv("NEWS_TOKEN", "a secret token")
    made = servo.materialize([core.items], partition="2026-01-05T10:00")
    assert made.value(core.items).height == 160
