"""Project files, and what is wrong with them."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING

import pytest

from servo.environment import Settings
from servo.project import Project, ProjectError, plain_tables

if TYPE_CHECKING:
    from pathlib import Path


def read(directory: Path, text: str) -> Project:
    (directory / "servo.toml").write_text(text, encoding="utf-8")
    return Project.read(str(directory / "servo.toml"))


def problems(directory: Path, text: str) -> list[tuple[int | None, str]]:
    with pytest.raises(ProjectError) as refusal:
        read(directory, text)
    assert refusal.value.file == str(directory / "servo.toml")
    assert all(problem.message in str(refusal.value) for problem in refusal.value.problems)
    return [(problem.line, problem.message) for problem in refusal.value.problems]


def test_a_project_says_all_there_is_to_say(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    project = read(
        tmp_path,
        '[project]\nname = "flights"\nmodules = ["flights", "more.raw"]\npath = ["code"]\n'
        'python = ".venv/bin/python"\nstorage = "s3://lake"\n[server]\nport = 1\n',
    )
    assert project == Project(
        str(tmp_path),
        "flights",
        ("flights", "more.raw"),
        (str(tmp_path / "code"),),
        Settings(str(tmp_path)),
    )
    assert project.file == str(tmp_path / "servo.toml")


def test_modules_are_looked_for_beside_the_file(tmp_path: Path) -> None:
    assert read(tmp_path, '[project]\nmodules = ["a"]').path == (str(tmp_path),)


def test_a_directory_src_comes_first(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    assert read(tmp_path, '[project]\nmodules = ["a"]').path == (str(tmp_path / "src"), str(tmp_path))


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("flights", "flights"),
        ("My Flights", "my-flights"),
        ("__x", "x"),
        ("数据", "project"),
        ("a" * 80, "a" * 63),
    ],
)
def test_a_project_is_named_after_its_directory(tmp_path: Path, directory: str, name: str) -> None:
    (tmp_path / directory).mkdir()
    assert read(tmp_path / directory, '[project]\nmodules = ["a"]').name == name


def test_the_nearest_file_upward_counts(tmp_path: Path) -> None:
    inner = tmp_path / "one" / "two"
    inner.mkdir(parents=True)
    read(tmp_path, '[project]\nname = "outer"\nmodules = ["a"]')
    assert Project.find(str(inner)).name == "outer"
    read(tmp_path / "one", '[project]\nname = "inner"\nmodules = ["a"]')
    assert Project.find(str(inner)).name == "inner"


def test_where_there_is_no_file_an_example_is_shown(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r'no servo\.toml here(.|\n)*modules = \["flights"\]'):
        Project.find(str(tmp_path))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "servo.toml").mkdir()
    with pytest.raises(ProjectError, match="cannot be read: Is a directory"):
        Project.read(str(tmp_path / "servo.toml"))


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    (tmp_path / "servo.toml").write_bytes(b'[project]\nname = "\xff"\n')
    with pytest.raises(ProjectError) as refusal:
        Project.read(str(tmp_path / "servo.toml"))
    assert refusal.value.problems == [(2, "not UTF-8: save the file as UTF-8")]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", None, "the table [project] is missing"),
        ("project = 1", None, "project is not a table"),
        ("[project]", 1, "modules is missing"),
        ("[project]\nmodules = []", 2, "modules is empty"),
        ("[project]\nmodules = 'flights'", 2, "modules is a text, it must be a list of texts"),
        ("[project]\nmodules = ['a', 1]", 2, "modules is a list with a number in it"),
        (
            "[project]\n\nmodules = ['src/flights.py']",
            3,
            "'src/flights.py' is not the name of a module: write 'src.f",
        ),
        ("[project]\nmodules = ['a-b']", 2, "'a-b' is not the name of a module: write its dotted name"),
        ("[project]\nmodules = ['']", 2, "'' is not the name of a module"),
        ("[project]\nmodules = ['a']\nname = true", 3, "name is a boolean, it must be a text"),
        ("[project]\nmodules = ['a']\npython = 2013-01-01", 3, "python is a date or time, it must be a text"),
        ("[project]\nmodules = ['a']\npath = 'src'", 3, "path is a text, it must be a list of texts"),
        ("[project]\nmodules = ['a']\npath = ['nope']", 3, "path has 'nope', but /"),
        (
            "[other]\nmodule=1\n[project]\nmodules = ['a']\nmodule = 1",
            5,
            "unknown key 'module': [project] has name,",
        ),
        ("[project]\nmodules = ['a'\nname = 'b'", 3, "not TOML: Unclosed array at column 1"),
        ("[project]\nname = ", 2, "not TOML: Invalid value at the end of the file"),
        ("[project]\nname = 'a'\nname = 'b'", 3, "not TOML: Cannot overwrite a value"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, text: str, line: int | None, message: str
) -> None:
    ((found_line, found),) = problems(tmp_path, text)
    assert message in found
    assert found_line == line


def test_everything_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    found = problems(tmp_path, "[project]\nname = 1\nmodul = ['a']\npath = ['nope']\n")
    assert [line for line, _ in found] == [1, 2, 3, 4]


def test_paths_are_written_for_everybody(tmp_path: Path) -> None:
    project = Project(str(tmp_path), "p", ("a",), (str(tmp_path),))
    assert project.relative(str(tmp_path / "a" / "b.py")) == "a/b.py"
    assert project.relative(str(tmp_path) + "-other/b.py") == str(tmp_path) + "-other/b.py"
    assert project.relative("<string>") == "<string>"
    assert project.relative(str(tmp_path / "caf\udce9.py")) == "caf\\xe9.py"
    assert project.relative(str(tmp_path / "café.py")) == "café.py"


PLAIN = [
    '[project]\nname = "flights"\nmodules = ["raw", "delays"]\n',
    '# a comment\n\n[project]\n\tname="é"# right behind it\nmodules = [ "raw" ]\n[dev]\nopen = true\n',
    'name = ""\n[a-b_1]\nc = []\n',
    "",
]
NOT_PLAIN = [
    "[project]\nname = 'flights'",
    '[project]\nmodules = [\n  "raw",\n]',
    '[project]\nmodules = ["raw",]',
    '[project]\nname = "a\\tb"',
    '[project]\nname = """flights"""',
    "[project]\nworkers = 2\nat = 2013-01-01\nratio = 0.5",
    '[project]\nmodules = [["raw"]]',
    '[project.more]\n"quoted key" = "x"',
    'project.name = "flights"',
    '[[project]]\nname = "flights"',
    '[project] # behind a table\nname = "x"',
    'project = {name = "flights"}',
]
WRONG = [
    '[project]\nname = "a"\nname = "b"',
    "[project]\n[project]",
    'project = "x"\n[project]',
    '[project]\nname = "a" "b"',
    "[project]\nname = null",
    "[project]\nname",
    '[project]\n= "x"',
    '[project]\nname = "a\x00"',
    '\u00a0[project]\nname = "a"',
    '[project]\nna me = "a"',
    '[project\nname = "a"',
    '[project]\nname = {"a": "b"}',
    "# \x07",
]


@pytest.mark.parametrize("text", PLAIN)
def test_files_as_most_are_written_need_no_parser_of_toml(text: str) -> None:
    assert plain_tables(text) == tomllib.loads(text)


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_other_files_are_left_to_the_parser_of_toml(text: str) -> None:
    assert tomllib.loads(text)
    assert plain_tables(text) is None


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_toml_is_not_read_as_if_it_were(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError):
        tomllib.loads(text)
    assert plain_tables(text) is None
