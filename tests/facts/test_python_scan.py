"""What is found in a Python program, and that no text whatever brings the scan down."""

from __future__ import annotations

import ast
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from engine.facts.code.scan import scan
from engine.facts.code.scan_items import CODE_BYTES, DEPTH, ITEMS, NODES, ScanFacts
from tests.conftest import ROOT
from tests.lanes import examples
from tests.threads import at_once

pytestmark = pytest.mark.threat("ACE")

GOLDEN = (ROOT / "fixtures" / "code" / "incident_metrics.py").read_text(encoding="utf-8")


TEMPLATES = pytest.mark.skipif(sys.version_info < (3, 14), reason="template strings need Python 3.14")


def found(code: str) -> ScanFacts:
    facts = scan("python", code)
    assert facts.parsed, facts.problem
    return facts


def ids(code: str, where: str) -> list[str]:
    listed: tuple[Any, ...] = getattr(found(code), where)
    return [one.id for one in listed]


def name(code: str, wanted: str) -> tuple[bool, bool, bool, bool]:
    """Of one name: variable, used as a value, built-in, bound."""
    one = next(one for one in found(code).names if one.id == wanted)
    return one.variable, one.as_value, one.builtin, one.bound


# covers: C54.1
def test_the_golden_code_has_its_expected_facts() -> None:
    assert len(GOLDEN) == 1229
    assert GOLDEN.strip() == GOLDEN
    facts = found(GOLDEN)
    assert [one.id for one in facts.imports] == ["json", "statistics"]
    assert [one.id for one in facts.members] == ["json.dumps", "json.loads", "statistics.fmean"]
    assert (facts.input_calls, facts.input_values, facts.network_literals) == (1, 0, 0)
    assert facts.literals == facts.computed == facts.encodings == ()


# covers: C20.2 H17
@pytest.mark.parametrize(
    ("code", "imports", "members"),
    [
        ("import a.b.c", ["a"], ["a.b"]),
        ("import a as b, c", ["a", "c"], []),
        ("import a as b\nb.c.d", ["a"], ["a.c"]),
        ("import a.b as c\nc.d", ["a"], ["a.b", "a.b.d"]),
        ("from a import b as c", ["a"], ["a.b"]),
        ("from a.b import c", ["a"], ["a.b", "a.b.c"]),
        ("from a import *", ["a"], ["a.*"]),
        ("from . import a", ["relative"], []),
        ("from ..a.b import c", ["relative"], []),
        ("def f():\n    import a\na.b", ["a"], ["a.b"]),
        ("a.b\nimport a", ["a"], ["a.b"]),
        ("import a\ndef f(a): a.b", ["a"], ["a.b"]),
        ("try:\n    import a\nexcept E:\n    from b import c", ["a", "b"], ["b.c"]),
        ("match x:\n    case a.b: pass\nimport a", ["a"], ["a.b"]),
    ],
)
def test_imports(code: str, imports: list[str], members: list[str]) -> None:
    assert ids(code, "imports") == imports
    assert ids(code, "members") == members


# covers: H17
@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("import a\na.b", False),
        ("import a\nb = a", True),
        ("import a\nf(a)", True),
        ("import a\n[a]", True),
        ("import a\na()", True),
        ("import a\na[0]", True),
        ("import a\nfor b in a: pass", True),
        ("import a\na = 1", True),
        ("import a\ndel a", True),
        ("import a\nlambda b=a: b", True),
        ("import a\n(b := a)", True),
        ("import a\nmatch a:\n    case b: pass", True),
        ("import a\nf'{a}'", True),
        ("class A:\n    import a", True),
        ("class A:\n    if x:\n        import a", True),
        ("class A:\n    def f(self):\n        import a", False),
        ("import a as n\nif x:\n    import b as n", True),
    ],
)
def test_modules_as_values(code: str, value: bool) -> None:  # noqa: FBT001
    assert any(one.as_value for one in found(code).modules) == value


# covers: H03 H17
@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("eval(1)", (True, False, True, False)),
        ("e = eval", (True, True, True, False)),
        ("eval(eval)", (True, True, True, False)),
        ("@eval\ndef f(): pass", (True, True, True, False)),
        ("class A(metaclass=eval): pass", (True, True, True, False)),
        ("[eval for x in y]", (True, True, True, False)),
        ("f'{eval}'", (True, True, True, False)),
        pytest.param("t'{eval}'", (True, True, True, False), marks=TEMPLATES),
        ("def f(x=eval): pass", (True, True, True, False)),
        ("(eval := 1)", (True, True, True, True)),
        ("def eval(): pass", (False, False, True, True)),
        ("def f(eval): pass", (False, False, True, True)),
        ("f(eval=1)", (False, False, True, False)),
        ("global eval", (False, False, True, True)),
        ("from a import b as eval", (False, False, False, True)),
        ("try: pass\nexcept E as eval: pass", (False, False, True, True)),
        ("match x:\n    case eval: pass", (False, False, True, True)),
    ],
)
def test_names(code: str, seen: tuple[bool, bool, bool, bool]) -> None:
    assert name(code, "eval") == seen


# covers: C25 H03
@pytest.mark.parametrize(
    "code",
    [
        "__a", "__a = 1", "x(__a=1)", "def __a(): pass", "class __a: pass", "def f(__a): pass", "def f(*__a): pass",
        "def f(**__a): pass", "lambda __a: 1", "async def f(*, __a=1): pass", "def f():\n    global __a",
        "def f():\n    __a = 1\n    def g():\n        nonlocal __a", "import a as __a", "from a import __a",
        "from a import __a as b", "from a import b as __a", "try: pass\nexcept E as __a: pass",
        "match x:\n    case __a: pass", "match x:\n    case [*__a]: pass", "match x:\n    case {**__a}: pass",
        "match x:\n    case y as __a: pass", "[__a for x in y]", "for __a in x: pass", "with x as __a: pass",
        "(__a := 1)", "f'{__a}'", "del __a", "__a: int", "__a += 1", "print(*__a)", "f(**__a)",
    ],
)  # fmt: skip
def test_two_underscores_anywhere(code: str) -> None:
    assert [one.id for one in found(code).names if one.dunder] == ["__a"]


@pytest.mark.parametrize("code", ["x.__a", "x.__a = 1", "del x.__a", "f'{x.__a}'", "match x:\n    case T(__a=1): pass"])
def test_two_underscores_in_attributes(code: str) -> None:
    assert [one.id for one in found(code).attributes if one.dunder] == ["__a"]


# covers: A80.1 H03
@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("'/etc/x'", ["path"]),
        ("'C:' + '\\\\x'", ["path"]),
        ("f'/{x}/y'", ["path"]),
        ("f'{x}/y'", []),
        ("'a/b'", []),
        ("'ftp://h'", ["url"]),
        ("'__x'", ["dunder"]),
        ("'{a.b}'", ["format"]),
        ("'{[b]}'", ["format"]),
        ("'{:{a.b}}'", ["format"]),
        ("'{' '0.a' + '}'", ["format"]),
        ("f'{{0.a}}'", ["format"]),
        ("'{a} {{b.c}} {0!r:>10}'", []),
        ("'{'", []),
        ("'{' * 3 + '0.a}'", []),
        ("b'/etc/x'", ["path"]),
        ('"""a\n/etc/x"""', ["path"]),
        ("x = 1 + 2 - 3", []),
        ("# /etc/x", []),
        ("# \u202e", ["hidden"]),
        ("'a\u200bb'", ["hidden"]),
        (r"'\u202e'", []),
        ("'\u05d0\u200f!'", []),
    ],
)
def test_literals(code: str, kinds: list[str]) -> None:
    assert ids(code, "literals") == kinds


@pytest.mark.parametrize(
    ("code", "computed"),
    [
        ("'{}'.format(1)", []),
        ("x.format(1)", ["format"]),
        ("f'{x}'.format(1)", ["format"]),
        ("('a' + 'b').format(1)", ["format"]),
        ("str.format_map(x, y)", ["format"]),
        ("f = 'a'.format", []),
        ("format(1, '>10')", []),
    ],
)
def test_format_is_computed_only_on_non_literals(code: str, computed: list[str]) -> None:
    assert ids(code, "computed") == computed


# covers: C26.2
@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("# HTTP://a https://b", 2), ("'http:/' '/a'", 1), ("b'\\x68ttp://a'", 1), ("f'http{1}://a'", 0),
        ("'http:' + '//a'", 1), ("http = a", 0),
    ],
)  # fmt: skip
def test_web_addresses(code: str, count: int) -> None:
    assert found(code).network_literals == count


# covers: C28.1
@pytest.mark.parametrize(
    ("code", "calls", "values"),
    [
        ("input()", 1, 0), ("input('a') + input()", 2, 0), ("i = input\ni()", 0, 1), ("map(input, x)", 0, 1),
        ("x.input()", 0, 0), ("[input() for x in y]", 1, 0), ("@input\ndef f(): pass", 0, 1),
    ],
)  # fmt: skip
def test_reads_of_the_input(code: str, calls: int, values: int) -> None:
    facts = found(code)
    assert (facts.input_calls, facts.input_values) == (calls, values)


@pytest.mark.parametrize(
    ("code", "encodings"),
    [
        ("# coding: utf-8", ["utf-8"]), ("#!x\n# vim: fileencoding=Latin_1 :", ["latin-1"]), ("\n\n# coding: x", []),
        ("x = 1 # coding=rot13", ["rot13"]), ("\r# coding: a\r# coding: b", ["a"]),
    ],
)  # fmt: skip
def test_encodings(code: str, encodings: list[str]) -> None:
    assert ids(code, "encodings") == encodings


def test_names_that_are_long_or_not_plain_are_known_by_their_digest() -> None:
    long = "a" * 65
    facts = found(f"{long} = 1\nimport ä\nx.é")
    safe = [one.id for one in facts.imports] + [one.id for one in facts.attributes]
    assert all(id_.startswith("#") and len(id_) == 13 for id_ in safe)
    assert "é" not in facts.model_dump_json()
    assert long not in facts.model_dump_json()


def test_unicode_letters_are_normalized_as_python_does() -> None:
    assert ids("\uff45val(1)\nimport \uff4fs\nx.\uff53ystem", "calls") == ["eval"]
    assert ids("import \uff4fs", "imports") == ["os"]
    assert ids("x.\uff53ystem", "attributes") == ["system"]


# covers: C27.1 H18
@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("x = (", "syntax"),
        ("x = 1\0", "syntax"),
        ("x = '\ud800'", "syntax"),
        ("\ufeffx = 1", "syntax"),
        ("x = " + "1" * 5000, "syntax"),
        ("\t if x:\n  y", "syntax"),
        ("return 1 if", "syntax"),
        ("(" * 5000, "syntax"),
        ("a" * (CODE_BYTES + 1), "too_large"),
        ("#" + "ä" * (CODE_BYTES // 2), "too_large"),
        ("a,\n" * (CODE_BYTES // 3), "too_large"),
        ("".join(f"a{i}\n" for i in range(ITEMS + 1)), "too_large"),
    ],
)
def test_unparsable_or_oversized_code_yields_no_facts(code: str, problem: str) -> None:
    facts = scan("python", code)
    assert (facts.parsed, facts.problem, facts.complete) == (False, problem, problem == "syntax")
    assert not [*facts.names, *facts.calls, *facts.imports]


def test_form_feeds_are_white_space() -> None:
    assert ids("\x0cx\x0c=1", "names") == ["x"]


BOMBS: dict[str, Callable[[int], str]] = {
    "unary": lambda n: "-" * n + "1",
    "not": lambda n: "not " * (n // 4) + "1",
    "attributes": lambda n: "a" + ".b" * (n // 2),
    "calls": lambda n: "a" + "()" * (n // 2),
    "items": lambda n: "a" + "[0]" * (n // 3),
    "sums": lambda n: "1" + "+1" * (n // 2),
    "powers": lambda n: "a" + "**a" * (n // 3),
    "elif": lambda n: "if a:pass\n" + "elif a:pass\n" * (n // 12),
    "ternary": lambda n: "a" + " if b else a" * (n // 12),
    "lambda": lambda n: "lambda:" * (n // 7) + "1",
    "await": lambda n: "async def f(): " + "await " * (n // 6) + "x",
    "brackets": lambda n: "(" * (n // 2) + ")" * (n // 2),
    "braces": lambda n: "{" * n,
    "blocks": lambda n: "".join(" " * i + "if a:\n" for i in range(min(n, 99))) + " " * 99 + "pass",
    "f-strings": lambda n: "f'{" * (n // 3),
    "comprehensions": lambda n: "[x for x in " * (n // 12),
    "patterns": lambda n: "match a:\n case " + "[" * (n // 2) + "]" * (n // 2) + ": pass",
    "decorators": lambda n: "@a\n" * (n // 3) + "def f(): pass",
    "assignments": lambda n: "a=" * (n // 2) + "1",
    "statements": lambda n: "a;" * (n // 2),
    "strings": lambda n: "'a'" * (n // 3),
    "digits": lambda n: "0x" + "f" * (n - 2),
    "braces in text": lambda n: "'" + "{" * (n - 2) + "'",
    "fields in text": lambda n: "'" + "{a}" * (n // 3) + "'",
    "slashes in text": lambda n: "'" + "a/" * (n // 2) + "'",
    "percents in text": lambda n: "'" + "%25" * (n // 3) + "'",
    "ligatures in text": lambda n: "'" + "\ufdfa" * (n // 3) + "'",
}


# covers: C65 H18
@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("size", [DEPTH * 4, 6_000, CODE_BYTES])
def test_hostile_code_is_scanned_in_bounded_time(bomb: str, size: int) -> None:
    started = time.process_time()
    facts = scan("python", BOMBS[bomb](size - 20))
    assert time.process_time() - started < 10  # about half a second
    assert facts.parsed or facts.problem in {"syntax", "too_deep", "too_large"}


@pytest.mark.full
@pytest.mark.parametrize("size", [CODE_BYTES, 6_000])
def test_hostile_code_is_scanned_on_a_thread_with_a_small_stack(size: int) -> None:
    found_there: list[ScanFacts] = []
    before = threading.stack_size(128 << 10)
    try:
        threads = [
            threading.Thread(target=lambda bomb=bomb: found_there.append(scan("python", bomb(size - 20))))
            for bomb in BOMBS.values()
        ]
        for thread in threads:
            thread.start()
            thread.join()
    finally:
        threading.stack_size(before)
    assert len(found_there) == len(BOMBS)
    assert threading.stack_size() == before


def test_the_scan_does_not_depend_on_the_callers_stack_depth() -> None:
    code = "-" * (DEPTH - 20) + "1"

    def deep(rounds: int) -> ScanFacts:
        return scan("python", code) if rounds == 0 else deep(rounds - 1)

    assert deep(700) == scan("python", code)


def test_depth_and_nodes_are_counted() -> None:
    assert scan("python", "-" * (DEPTH - 10) + "1").parsed
    assert scan("python", "-" * (DEPTH + 10) + "1").problem == "too_deep"
    assert scan("python", "[" + "1," * (NODES - 10) + "]"[: CODE_BYTES - NODES * 2]).problem == "too_large"


def test_warnings_about_the_code_are_neither_shown_nor_errors() -> None:
    code = "x = '\\d'\ny = 1if x else 2\nassert (x, y)\nz = x is 1\n"
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        facts = scan("python", code)
        with pytest.warns((DeprecationWarning, SyntaxWarning), match="invalid"):  # the control: it warns
            ast.parse(code)
    assert facts.parsed
    assert not [one for one in shown if "scanned" in one.filename]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert scan("python", code).parsed


def test_many_threads_at_once() -> None:
    codes = [f"import m{n}\nx{n}.y('\\d')" for n in range(40)]
    got = at_once(partial(scan, "python", code) for code in codes)
    assert got == [scan("python", code) for code in codes]
    assert all(facts.parsed for facts in got)


# covers: H18
@hypothesis_settings(max_examples=examples(300))
@given(st.one_of(st.text(), st.text(st.characters()), st.binary().map(lambda data: data.decode("latin-1"))))
def test_arbitrary_text_gives_stable_facts(code: str) -> None:
    for language in ("python", "javascript", "other"):
        facts = scan(language, code)
        assert facts.parsed == (facts.problem is None)
        assert scan(language, code) == facts


TOKENS = [
    "(", ")", "[", "]", "{", "}", ":", ",", ";", "'", '"', '"""', "f'", "b'", "=", ":=", "->", ".", "*", "**", "@", "-",
    "not ", "lambda ", "if ", "else ", "elif ", "for ", "in ", "async ", "await ", "yield ", "match ", "case ", "with ",
    "as ", "import ", "from ", "def ", "class ", "global ", "try:", "except ", "\n", "\n  ", "\n    ", "\t", "#",
    "a", "__b", "eval", "os", "input()", "1", "0x", "1e9", "\x0c", "\ufeff", "\r", "{a.b}", "/etc/x", "http://a", "_",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(40))
def test_any_order_of_its_tokens_gives_facts(seed: int) -> None:
    chosen = random.Random(seed)  # noqa: S311  (the same each time)
    for size in (5, 30, 2_000):
        for _ in range(20 if size < 100 else 1):
            facts = scan("python", "".join(chosen.choice(TOKENS) for _ in range(size)))
            assert facts.parsed == (facts.problem is None)


@hypothesis_settings(max_examples=examples(100))
@example(["1", "in", " ", "a"], [])
@given(st.lists(st.sampled_from(TOKENS), max_size=12), st.lists(st.sampled_from(TOKENS), max_size=12))
def test_calls_are_found_within_arbitrary_surrounding_code(before: list[str], after: list[str]) -> None:
    code = "".join(before) + "\neval(__x)\n" + "".join(after)
    facts = scan("python", code)
    try:
        with warnings.catch_warnings(action="ignore"):  # `1in a` is a program about which Python has doubts
            tree = ast.parse(code)
        called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call)
                  and isinstance(node.func, ast.Name)}  # fmt: skip
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        assert not facts.parsed
    else:
        assert {one.id for one in facts.calls if one.by_name} == called
