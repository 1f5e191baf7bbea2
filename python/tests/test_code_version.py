"""Versions of code: what changes them, and what does not."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from itertools import count
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from scanning import SOURCE
from servo.code_version import CodeVersions, Scope, code_version
from servo.code_version.compiled import meaning_of_code
from servo.code_version.source import Sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import ModuleType

    Load = Callable[[str], Any]

_numbers = count()


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Import a module from its text."""
    names = []

    def import_text(text: str) -> ModuleType:
        name = f"versioned_{next(_numbers)}"
        path = tmp_path / f"{name}.py"
        path.write_text(dedent(text), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        names.append(name)
        spec.loader.exec_module(module)
        return module

    yield import_text
    for name in names:
        del sys.modules[name]


def version(load: Load, text: str, name: str = "f") -> str:
    found = code_version(getattr(load(text), name))
    assert found.startswith("sha256:")
    assert len(found) == 71
    return found


BASE = """
    LIMIT = 10
    def helper(x):
        return x + 1
    def f(x, y=1):
        return helper(x) + LIMIT + y
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "return helper(x) + LIMIT + y",
            "# why\n        return (helper(x)\n                + LIMIT + y)  # how",
        ),
        ("def f(x, y=1):", "def f(x, y=1):\n        'What it does.'"),
        ("def f(x, y=1):", "def f(\n        x,\n        y=1,\n    ):\n        pass"),
        ("def f(x, y=1):", "def decorator(a): return lambda g: g\n    @decorator(1)\n    def f(x, y=1):"),
        (
            "def f(x, y=1):",
            "def decorator(a): return lambda g: g\n    @decorator('def f(x):')\n    def f(x, y=1):",
        ),
        ("return x + 1", "'Helps.'\n        return x + 1  # one more"),
        ("LIMIT = 10", "import json\n    OTHER = 3\n    LIMIT = 5 + 5"),
        ("def helper", "def other(): pass\n    def helper"),
    ],
)
def test_what_means_the_same_has_the_same_version(load: Load, old: str, new: str) -> None:
    assert old in BASE
    assert version(load, BASE) == version(load, BASE.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("+ LIMIT", "- LIMIT"),
        ("+ LIMIT", "+ LIMIT + 0"),
        ("LIMIT = 10", "LIMIT = 11"),
        ("LIMIT = 10", "LIMIT = 10.0"),
        ("LIMIT = 10", "LIMIT = '10'"),
        ("return x + 1", "return x + 2"),
        ("y=1", "y=2"),
        ("y=1", "y=True"),
        ("x, y=1", "x, *, y=1"),
        ("x, y=1", "x: int, y=1"),
        ("def f", "async def f"),
    ],
)
def test_what_means_something_else_has_another_version(load: Load, old: str, new: str) -> None:
    assert old in BASE
    assert version(load, BASE) != version(load, BASE.replace(old, new))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("'a'", '"a"'),
        ("'a' 'b'", "'ab'"),
        ("f'a{x}' 'b'", "f'a{x}b'"),
        ("0x10", "16"),
        ("1_000", "1000"),
        ("(x)", "x"),
        ("[x, 1,]", "[x, 1]"),
        ("'\\x41'", "'A'"),
    ],
)
def test_the_spelling_of_values_does_not_matter(load: Load, one: str, other: str) -> None:
    assert version(load, f"def f(x): return {one}") == version(load, f"def f(x): return {other}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("True", "1"),
        ("1", "1.0"),
        ("0.0", "-0.0"),
        ("b'a'", "'a'"),
        ("(x + 1) * 2", "x + 1 * 2"),
        ("f'{x}'", "f'{x!r}'"),
        ("f'{x:3}'", "f'{x}3'"),
        ("f'a{x}'", "f'{x}a'"),
        ("[x]", "(x,)"),
        ("{**x}", "{x: x}"),
        ("x.a", "x.b"),
        ("None", "'None'"),
        ("x", "'$x'"),
        ("1" + "0" * 5000, "2" + "0" * 5000),
    ],
)
def test_different_expressions_have_different_versions(load: Load, one: str, other: str) -> None:
    if len(one) > 4300:
        one, other = (hex(10**5000 * int(text[0])) for text in (one, other))
    assert version(load, f"def f(x): return {one}") != version(load, f"def f(x): return {other}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("{'b': 1, 'a': {3, 1, 2}}", "{'a': {2, 3, 1}, 'b': 1}"),
        ("frozenset('abc')", "frozenset('cba')"),
        ("object()", "object()"),
        ("open", "open"),
    ],
)
def test_equal_values_are_equal(load: Load, one: str, other: str) -> None:
    text = "VALUE = {}\ndef f(): return VALUE"
    assert version(load, text.format(one)) == version(load, text.format(other))


VALUES = [
    "None",
    "1",
    "'1'",
    "b'1'",
    "1.5",
    "1j",
    "True",
    "10 ** 5000",
    "[1]",
    "(1,)",
    "{1}",
    "frozenset({1})",
    "{1: 1}",
    "{1: 2}",
    "[[1]]",
    "range(3)",
    "len",
    "max",
    "int",
    "__import__('json').dumps",
    "__import__('json')",
    "__import__('datetime').date(2024, 1, 1)",
    "__import__('datetime').date(2024, 1, 2)",
    "__import__('datetime').datetime(2024, 1, 1)",
    "__import__('datetime').timedelta(1)",
    "__import__('decimal').Decimal('1.0')",
    "__import__('decimal').Decimal('1.00')",
    "__import__('fractions').Fraction(1, 3)",
    "__import__('uuid').UUID(int=1)",
    "__import__('re').compile('a')",
    "__import__('re').compile('a', 2)",
    "__import__('pathlib').Path('/a')",
    "__import__('pathlib').Path('/b')",
    "__import__('functools').partial(int, base=2)",
    "__import__('functools').partial(int, base=3)",
    "__import__('collections').OrderedDict(a=1)",
    "__import__('collections').namedtuple('P', 'x')(1)",
    "__import__('types').MappingProxyType({1: 1})",
    "__import__('http').HTTPStatus.OK",
    "__import__('http').HTTPStatus.CREATED",
    "__import__('servo').DailyPartitions(start='2024-01-01')",
    "__import__('servo').DailyPartitions(start='2024-01-02')",
    "object()",
    "lambda: 1",
    "lambda: 2",
]


def test_different_values_have_different_versions(load: Load) -> None:
    versions: dict[str, str] = {}
    for value in VALUES:
        found = version(load, f"VALUE = {value}\ndef f(): return VALUE")
        assert found not in versions, (value, versions[found])
        versions[found] = value


def test_a_value_that_holds_itself(load: Load) -> None:
    version(load, "VALUE = [1]\nVALUE.append(VALUE)\ndef f(): return VALUE")
    version(load, "VALUE = {}\nVALUE['f'] = lambda: VALUE\ndef f(): return VALUE")


def test_a_value_that_does_not_want_to_be_looked_at(load: Load) -> None:
    text = """
        class Shy:
            @property
            def __class__(self): raise RuntimeError("not here")
            def __getattr__(self, name): raise RuntimeError(name)
            def __repr__(self): raise RuntimeError("no")
        SHY = Shy()
        def f(): return SHY
    """
    assert version(load, text) == version(load, text)


def test_functions_made_by_a_factory_differ_by_what_they_close_over(load: Load) -> None:
    module = load("""
        def make(n):
            def inner(x):
                return x * n
            return inner
        made = [make(n) for n in (1, 2, 1)]
        lambdas = [lambda x, n=n: x * n for n in (1, 2, 1)]
        pair = (lambda x: x + 1, lambda x: x + 2)
        nested = lambda: (lambda x: x)
    """)
    for functions in (module.made, module.lambdas):
        one, two, one_again = map(code_version, functions)
        assert one == one_again != two
    assert code_version(module.pair[0]) != code_version(module.pair[1])
    assert code_version(module.nested) != code_version(module.nested())


def test_a_variable_that_is_not_set_yet(load: Load) -> None:
    module = load("""
        def make():
            def inner(): return later
            first = inner
            yield first
            later = 1
            yield first
        maker = make()
    """)
    before = code_version(next(module.maker))
    assert before != code_version(next(module.maker))


def test_code_without_source_is_known_by_what_it_compiles_to() -> None:
    def made(text: str) -> str:
        space: dict[str, Any] = {"N": 1}
        exec(text, space)  # noqa: S102 - the point of the test
        return code_version(space["f"])

    assert made("def f(x): return x + 1") == made("def f(x):\n  # why\n  return (x + 1)")
    assert made("def f(x): 'One.'; return x + 1") == made("def f(x): 'Two.'; return x + 1")
    assert made("def f(x): return x + 1") != made("def f(x): return x + 2")
    assert made("def f(x): return x in {'a', 'b'}") == made("def f(x): return x in {'b', 'a'}")
    assert made("def f(x): return N") != made("N = 2\ndef f(x): return N")
    assert made("def f(x): return lambda: 1") != made("def f(x): return lambda: 2")


def test_circles_have_the_same_versions_wherever_one_begins(load: Load) -> None:
    text = """
        def even(n): return n == 0 or odd(n - 1)
        def odd(n): return n != 0 and even(n - {step})
        def forever(): return forever()
    """
    names = ["even", "odd", "forever"]
    found = []
    for order in (names, names[::-1]):
        module = load(text.format(step=1))
        versions = CodeVersions(Scope())
        found.append({name: versions.of(getattr(module, name)) for name in order})
    assert found[0] == found[1]
    assert len(set(found[0].values())) == 3
    assert version(load, text.format(step=2), "even") != found[0]["even"]
    assert version(load, text.format(step=2), "forever") == found[0]["forever"]


def test_a_chain_of_helpers_longer_than_the_stack(load: Load) -> None:
    def text(end: int) -> str:
        return f"def f0(): return {end}\n" + "".join(
            f"def f{n}(): return f{n - 1}()\n" for n in range(1, 3000)
        )

    assert (
        version(load, text(1), "f2999") == version(load, text(1), "f2999") != version(load, text(2), "f2999")
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("return self.rate", "return self.rate * 2"),
        ("rate: float = 0.5", "rate: float = 0.6"),
        ("unit = 'm'", "unit = 'km'"),
        ("return 'base'", "return 'other'"),
        ("RED = 1", "RED = 2"),
        ("@dataclass", "@dataclass(frozen=True)"),
        ("def scaled(self)", "@property\n        def scaled(self)"),
        ("return FACTOR", "return -FACTOR"),
        ("FACTOR = 3", "FACTOR = 4"),
    ],
)
def test_classes_count_with_all_that_is_in_them(load: Load, old: str, new: str) -> None:
    text = """
    import enum
    from dataclasses import dataclass
    FACTOR = 3
    class Base:
        def name(self):
            return 'base'
        @staticmethod
        def factor():
            return FACTOR
    @dataclass
    class Tax(Base):
        '''A tax.'''
        rate: float = 0.5
        unit = 'm'
        def scaled(self):
            # Nothing to it.
            return self.rate
    class Color(enum.Enum):
        RED = 1
    def f():
        return Tax().scaled(), Color.RED
    """
    assert old in text
    assert version(load, text) == version(
        load, text.replace("# Nothing to it.", "'Scale.'").replace("A tax", "Tax")
    )
    assert version(load, text) != version(load, text.replace(old, new))


@pytest.mark.parametrize(
    "value", ["Tax(1)", "Tax(1).get", "[Tax(1)]", "Color.RED", "functools.partial(Tax, 1)", "Tax"]
)
def test_values_of_the_projects_classes_bring_their_class_along(load: Load, value: str) -> None:
    text = f"""
    import enum, functools
    from dataclasses import dataclass
    @dataclass
    class Tax:
        rate: int
        def get(self): return 1
    class Color(enum.Enum):
        RED = 1
        def get(self): return 1
    VALUE = {value}
    def f(): return VALUE
    """
    assert version(load, text) == version(load, text)
    assert version(load, text) != version(load, text.replace("return 1", "return 2"))
    if value not in {"Tax", "Color.RED"}:
        assert version(load, text) != version(
            load, text.replace("Tax(1)", "Tax(2)").replace("Tax, 1", "Tax, 2")
        )


def test_decorators_are_followed_to_what_they_wrap(load: Load) -> None:
    text = """
    import contextlib, functools
    def doubled(times):
        def decorate(g):
            @functools.wraps(g)
            def wrapper(*args):
                return [g(*args)] * times
            return wrapper
        return decorate
    @doubled(2)
    def own(): return 1
    @functools.cache
    def cached(): return 1
    @contextlib.contextmanager
    def managed(): yield 1
    def uses_cached(): return cached()
    def uses_managed(): return managed()
    """
    for name in ("own", "cached", "managed", "uses_cached", "uses_managed"):
        assert version(load, text, name) == version(load, text, name)
        changed = text.replace("return 1", "return 2").replace("yield 1", "yield 2")
        assert version(load, text, name) != version(load, changed, name), name
    assert version(load, text, "own") != version(load, text.replace("doubled(2)", "doubled(3)"), "own")


def test_modules_of_the_project_are_followed_by_attribute(load: Load) -> None:
    def with_helpers(number: int) -> str:
        helpers = load(f"def clean(x): return x + {number}\ndef other(): pass\nLIMIT = 3\n")
        return version(load, f"import {helpers.__name__} as helpers\ndef f(x): return helpers.clean(x)")

    assert with_helpers(1) == with_helpers(1) != with_helpers(2)


def test_assets_are_known_by_their_key(load: Load) -> None:
    text = """
    import servo
    with servo.collecting():
        @servo.asset(namespace="raw")
        def flights(): return 1
    def f(): return flights
    """
    assert version(load, text) == version(load, text.replace("return 1", "return 2"))
    assert version(load, text) != version(load, text.replace('"raw"', '"clean"'))


@pytest.mark.parametrize("indent", ["", "  ", "\t"])
@pytest.mark.parametrize(
    "body",
    [
        'x = """\nSELECT 1\n>"""',
        "x = (\n1,\n)",
        "x = [\n>1,\n]",
        "x = 1 + \\\n1",
        "x = 1\n# a comment at the margin\n># and more",
        "if True:\n>  x = '''\n'''\n>else:\n>  x = 2",
    ],
)
def test_functions_end_where_they_end(load: Load, indent: str, body: str) -> None:
    def found(ending: int, after: int) -> str:
        lines = [f"{indent}def f():", f">{body}", f">return x, {ending}", f"def g(): return {after}"]
        text = "\n".join(lines).replace(">", indent + "  ")
        module = load(f"class C:\n{text}\n" if indent else text)
        return code_version(module.C.f if indent else module.f)

    assert found(1, 3) == found(1, 4) != found(2, 3)


def test_sources_in_other_encodings_and_line_endings(tmp_path: Path) -> None:
    def found(data: bytes) -> str | None:
        path = tmp_path / f"module_{next(_numbers)}.py"
        path.write_bytes(data)
        space: dict[str, Any] = {}
        exec(compile(data, path, "exec"), space)  # noqa: S102 - the point of the test
        meaning = Sources().function(space["f"].__code__)
        return None if meaning is None else meaning.text

    plain = found("x = 1\ndef f():\n    return 'é'\n".encode())
    assert plain is not None
    assert plain == found("x = 1\r\ndef f():\r\n    return 'é'\r\n".encode())
    assert plain == found("\ufeffdef f():\n    return 'é'\n".encode())
    assert plain == found("# coding: latin-1\ndef f():\n    return 'é'\n".encode("latin-1"))


def test_a_file_that_has_changed_since_it_was_imported(load: Load) -> None:
    module = load("def f(x): return x")
    path = module.__file__
    with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123 - a name, not a path
        file.write("\n\n\ndef g(): pass\n")
    assert Sources().function(module.f.__code__) is None
    assert code_version(module.f) == code_version(module.f)


def test_very_long_expressions(load: Load) -> None:
    text = "def f(): return " + " + ".join(["'a'"] * 2000)
    assert version(load, text) == version(load, text)


def test_the_directory_of_the_project_is_left_out(tmp_path: Path, load: Load) -> None:
    found = set()
    for place in ("here", "there"):
        root = tmp_path / place
        module = load(f"HERE = {str(root / 'data.csv')!r}\ndef f(): return HERE")
        found.add(CodeVersions(Scope(str(root))).of(module.f))
    assert len(found) == 1


def test_compiled_code_names_what_it_reads() -> None:
    assert ("helper",) in meaning_of_code((lambda: helper).__code__).reads  # type: ignore[name-defined]  # noqa: F821


def test_every_process_finds_the_same_versions(tmp_path: Path) -> None:
    (tmp_path / "mod.py").write_text(
        dedent("""
            KINDS = {"a", "b", "c", "d"}
            def first(x): return x
            def second(x): return x + 1
            HANDLERS = {first, second}
            class Options:
                names = frozenset(KINDS)
                handlers = HANDLERS
                def __init__(self): self.at = id(self)
            OPTIONS = Options()
            def f(x): return x in KINDS and x in {"x", "y", "z"} and OPTIONS
        """)
    )
    program = "import mod; from servo.code_version import code_version; print(code_version(mod.f))"
    found = set()
    for seed in ("1", "2", "3"):
        run = subprocess.run(  # noqa: S603 - our own program
            [sys.executable, "-c", program],
            cwd=tmp_path,
            env={"PYTHONPATH": f"{SOURCE}:{tmp_path}", "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        found.add(run.stdout)
    assert len(found) == 1
