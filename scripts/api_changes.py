# noqa: INP001 - a script
"""List what breaks programs between two descriptions of the interface: api_changes.py [RELEASED [CURRENT]].

Names stay what they are for as long as the version in the address does: an operation, a field of an
answer, a parameter, a code or a value that was released is there, and a request that was good is good.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

CRATE = Path(__file__).parent.parent / "crates" / "servo-api"
RELEASED, CURRENT = CRATE / "released.json", CRATE / "openapi.json"

Json = dict[str, Any]


def breaking(released: Json, current: Json) -> list[str]:
    """Give every change that breaks a program which was written for the released description.

    >>> was = {"paths": {"/runs": {"get": {"responses": {}}}}}
    >>> breaking(was, {"paths": {}})
    ['GET /runs is gone']
    >>> breaking(was, was)
    []
    """
    return _Comparison(released, current).all()


class _Comparison:
    def __init__(self, released: Json, current: Json) -> None:
        self.released, self.current = released, current
        self.found: list[str] = []
        # Pairs of schemas that were compared already, by direction: types refer to each other in circles.
        self.seen: set[tuple[str, str, bool]] = set()

    def all(self) -> list[str]:
        for path, methods in self.released["paths"].items():
            for method, was in methods.items():
                now = self.current["paths"].get(path, {}).get(method)
                name = f"{method.upper()} {path}"
                if now is None:
                    self.found.append(f"{name} is gone")
                else:
                    self._operation(name, was, now)
        return self.found

    def _operation(self, name: str, was: Json, now: Json) -> None:
        if was.get("operationId") != now.get("operationId"):
            self.found.append(f"{name}: its id is not {was.get('operationId')} any more")
        self._parameters(name, was, now)
        self._body(name, was.get("requestBody"), now.get("requestBody"))
        for status, response in was.get("responses", {}).items():
            answer = now.get("responses", {}).get(status)
            if answer is None:
                # That a problem cannot happen any more breaks nobody.
                if status.startswith(("2", "3")):
                    self.found.append(f"{name}: {status} is gone")
                continue
            for kind, content in response.get("content", {}).items():
                if kind not in answer.get("content", {}):
                    self.found.append(f"{name}: {status} is not {kind} any more")
                else:
                    there = answer["content"][kind]
                    self._schema(
                        f"{name} answers {status}", content.get("schema"), there.get("schema"), asked=False
                    )

    def _parameters(self, name: str, was: Json, now: Json) -> None:
        before = {(it["in"], it["name"]): it for it in was.get("parameters", [])}
        after = {(it["in"], it["name"]): it for it in now.get("parameters", [])}
        for key, parameter in before.items():
            if key not in after:
                self.found.append(f"{name}: parameter {key[1]} is gone")
                continue
            if after[key].get("required") and not parameter.get("required"):
                self.found.append(f"{name}: parameter {key[1]} is needed now")
            self._schema(f"{name} {key[1]}", parameter.get("schema"), after[key].get("schema"), asked=True)
        for key, parameter in after.items():
            if key not in before and parameter.get("required"):
                self.found.append(f"{name}: parameter {key[1]} is new and needed")

    def _body(self, name: str, was: Json | None, now: Json | None) -> None:
        if now is not None and now.get("required") and not (was or {}).get("required"):
            self.found.append(f"{name}: a body is needed now")
        if was is None:
            return
        for kind, content in was.get("content", {}).items():
            taken = (now or {}).get("content", {}).get(kind)
            if taken is None:
                self.found.append(f"{name}: takes no {kind} any more")
            else:
                self._schema(f"{name} takes", content.get("schema"), taken.get("schema"), asked=True)

    def _schema(self, at: str, was: Json | None, now: Json | None, *, asked: bool) -> None:
        """Compare what is asked of callers, or what they are answered."""
        was, now = was or {}, now or {}
        if "$ref" in was and "$ref" in now:
            pair = (was["$ref"], now["$ref"], asked)
            if pair in self.seen:
                return
            self.seen.add(pair)
        was, now = _resolved(self.released, was), _resolved(self.current, now)
        self._kinds(at, was, now, asked=asked)
        self._values(at, was, now, asked=asked)
        self._fields(at, was, now, asked=asked)
        for inner in ("items", "additionalProperties"):
            if isinstance(was.get(inner), dict) and isinstance(now.get(inner), dict):
                self._schema(f"{at}[]", was[inner], now[inner], asked=asked)
        for several in ("allOf", "oneOf", "anyOf"):
            before, after = was.get(several, []), now.get(several, [])
            if len(before) != len(after):
                self.found.append(f"{at}: {several} has other parts")
            for number, (first, second) in enumerate(zip(before, after, strict=False)):
                self._schema(f"{at}/{several}{number}", first, second, asked=asked)

    def _fields(self, at: str, was: Json, now: Json, *, asked: bool) -> None:
        before, after = was.get("properties", {}), now.get("properties", {})
        for field, schema in before.items():
            if field not in after:
                self.found.append(f"{at}: {field} is gone")
            else:
                self._schema(f"{at}.{field}", schema, after[field], asked=asked)
        needed_before, needed_now = set(was.get("required", [])), set(now.get("required", []))
        if asked:
            self.found += [f"{at}: {field} is needed now" for field in sorted(needed_now - needed_before)]
            if (
                now.get("additionalProperties") is False
                and was.get("additionalProperties", True) is not False
            ):
                self.found.append(f"{at}: other fields are refused now")
        else:
            gone = sorted(field for field in needed_before - needed_now if field in after)
            self.found += [f"{at}: {field} may be absent now" for field in gone]

    def _kinds(self, at: str, was: Json, now: Json, *, asked: bool) -> None:
        before, after = _kinds(was), _kinds(now)
        # What takes or gives anything has no kinds.
        narrower = (
            after and not before <= after if asked else bool(before) and not (after and after <= before)
        )
        if before != after and narrower:
            self.found.append(f"{at}: was {_named(before)}, is {_named(after)}")
        elif before == after and was.get("format") != now.get("format"):
            self.found.append(f"{at}: was {was.get('format')}, is {now.get('format')}")

    def _values(self, at: str, was: Json, now: Json, *, asked: bool) -> None:
        before, after = was.get("enum"), now.get("enum")
        if before is not None and after is not None:
            # New values of answers are announced as possible: programs take those that they do not know.
            gone = [str(value) for value in before if value not in after]
            self.found += [f"{at}: the value {value} is gone" for value in gone]
        elif asked and after is not None:
            self.found.append(f"{at}: takes some values only")
        for limit, is_narrower in (("maximum", int.__lt__), ("minimum", int.__gt__)):
            old, new = was.get(limit), now.get(limit)
            if (
                asked
                and isinstance(new, int)
                and (old is None or (isinstance(old, int) and is_narrower(new, old)))
            ):
                self.found.append(f"{at}: {limit} is {new} now")


def _resolved(description: Json, schema: Json) -> Json:
    while "$ref" in schema:
        schema = description["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _kinds(schema: Json) -> set[str]:
    kind = schema.get("type", [])
    return {kind} if isinstance(kind, str) else set(kind)


def _named(kinds: set[str]) -> str:
    return " or ".join(sorted(kinds)) or "anything"


def main(arguments: list[str]) -> int:
    """Print what breaks; exit code 1 if anything does."""
    paths = (
        [*map(Path, arguments), RELEASED, CURRENT][:2]
        if len(arguments) != 1
        else [Path(arguments[0]), CURRENT]
    )
    released, current = (json.loads(path.read_bytes()) for path in paths)
    found = breaking(released, current)
    sys.stdout.writelines(f"{line}\n" for line in found)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
