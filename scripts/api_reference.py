# noqa: INP001 - a script
"""Write docs/api-reference.md from the description of the interface; `--check` compares them."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
DESCRIPTION = ROOT / "crates" / "servo-api" / "openapi.json"
PAGE = ROOT / "docs" / "api-reference.md"
WIDTH = 120
# Texts and answers that are longer are cut off in examples.
LONGEST_TEXT, LONGEST_ANSWER = 60, 40

Json = dict[str, Any]


def page(description: Json) -> str:
    """Give the page: operations by subject, then types by name."""
    version = description["info"]["version"]
    lines = [
        "# Reference of the HTTP interface",
        "",
        *_wrapped(
            f"Every operation and every type of version {version}, made from "
            "`crates/servo-api/openapi.json` by `scripts/api_reference.py`. "
            "[http-api.md](http-api.md) says what holds for all of them.",
        ),
        "",
    ]
    by_tag: dict[str, list[list[str]]] = {}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            by_tag.setdefault(operation["tags"][0], []).append(_operation(method.upper(), path, operation))
    for tag in sorted(by_tag):
        lines += [f"## {tag.capitalize()}", ""]
        for found in by_tag[tag]:
            lines += found
    lines += ["## Types", ""]
    for name, schema in sorted(description["components"]["schemas"].items()):
        lines += [f"### {name}", "", *_wrapped(schema.get("description", "")), *_fields(schema), ""]
    return "\n".join(_without_doubles(lines)).rstrip() + "\n"


def _operation(method: str, path: str, operation: Json) -> list[str]:
    lines = [
        f"### `{method} {path}`",
        "",
        *_wrapped(f"{operation['summary']} {_longer(operation)}".strip()),
        "",
    ]
    needs = operation["x-permission"]
    lines += _item(f"operation `{operation['operationId']}`; permission `{needs}`")
    for parameter in operation.get("parameters", []):
        text = parameter.get("description", "")
        lines += _item(f"`{parameter['name']}` ({parameter['in']}, {_type(parameter['schema'])}): {text}")
    body = operation.get("requestBody")
    if body is not None:
        for content in body["content"].values():
            lines += _item(f"body: {_type(content['schema'])}")
    for status, response in sorted(operation["responses"].items()):
        kinds = response.get("content", {})
        own = [_type(content["schema"]) for kind, content in kinds.items() if "problem" not in kind]
        text = ", ".join([*own, *(f"`{code}`" for code in response.get("x-codes", []))])
        lines += _item(f"{status}: {text or response['description']}")
    lines.append("")
    if body is not None:
        lines += _example(body)
    well: Json = next(
        (it for status, it in sorted(operation["responses"].items()) if status.startswith("2")), {}
    )
    return lines + _example(well)


def _longer(operation: Json) -> str:
    text = str(operation.get("description", ""))
    return "" if text == operation["summary"] else text


def _example(holder: Json) -> list[str]:
    for content in holder.get("content", {}).values():
        if "example" in content:
            text = json.dumps(_cut(content["example"]), indent=1, ensure_ascii=False).splitlines()
            if len(text) > LONGEST_ANSWER:
                text = [*text[:LONGEST_ANSWER], " …"]
            return ["```json", *text, "```", ""]
    return []


def _cut(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return {name: _cut(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_cut(inner) for inner in value]
    if isinstance(value, str) and len(value) > LONGEST_TEXT:
        return value[:LONGEST_TEXT] + "…"
    return value


def _fields(schema: Json) -> list[str]:
    if "enum" in schema:
        return ["", *_wrapped(", ".join(f"`{name}`" for name in schema["enum"]))]
    lines = [""]
    for part in schema.get("allOf", []):
        lines += _item(f"all of {_type(part)}") if "$ref" in part else _fields(part)[1:]
    for part in schema.get("oneOf", []):
        lines += _item(f"one of: {_type(part)} {part.get('description', '')}".rstrip())
    needed = schema.get("required", [])
    for name, field in schema.get("properties", {}).items():
        optional = "" if name in needed else ", optional"
        lines += _item(f"`{name}` ({_type(field)}{optional}): {field.get('description', '')}")
    return lines


def _type(schema: Any) -> str:  # noqa: ANN401 - JSON
    """Give the type of a value in a few words."""
    if not isinstance(schema, dict):
        return "nothing"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for several in ("oneOf", "anyOf", "allOf"):
        if several in schema:
            kinds = [_type(part) for part in schema[several] if part.get("type") != "null"]
            return (" and " if several == "allOf" else " or ").join(kinds)
    kind = schema.get("type", "any")
    kind = " or ".join(part for part in kind if part != "null") if isinstance(kind, list) else kind
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"{_type(schema['additionalProperties'])} by name"
    return str(schema["format"] if kind == "string" and "format" in schema else kind)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), WIDTH, break_long_words=False, break_on_hyphens=False)


def _item(text: str) -> list[str]:
    joined = " ".join(text.split()).rstrip(": ")
    return textwrap.wrap(
        f"- {joined}", WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _without_doubles(lines: list[str]) -> list[str]:
    """Leave out empty lines after empty ones."""
    return [line for at, line in enumerate(lines) if line or not at or lines[at - 1]]


def main(arguments: list[str]) -> int:
    """Write the page, or compare it."""
    text = page(json.loads(DESCRIPTION.read_bytes()))
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
    elif PAGE.read_text("utf-8") != text:
        sys.stderr.write(f"{PAGE.relative_to(ROOT)} is not current; run scripts/api_reference.py\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
