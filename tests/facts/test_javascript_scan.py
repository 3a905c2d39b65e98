"""What is found in a JavaScript program, and that no text whatever brings the scan down."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from engine.facts.code.scan import scan
from engine.facts.code.scan_items import CODE_BYTES, DEPTH, Lines, ScanFacts
from tests.lanes import examples


def found(code: str) -> ScanFacts:
    facts = scan("javascript", code)
    assert facts.parsed, facts.problem
    return facts


def ids(code: str, where: str) -> list[str]:
    listed: tuple[Any, ...] = getattr(found(code), where)
    return [one.id for one in listed]


# covers: C71
@pytest.mark.parametrize(
    ("code", "imports", "members"),
    [
        ("import a from 'a'", ["a"], []),
        ("import {b, c as d} from 'a/e'", ["a"], ["a.b", "a.c"]),
        ("import * as n from 'node:fs/promises'", ["fs"], []),
        ("import 'a'", ["a"], []),
        ("import 'a.b/c'", ["a.b"], []),
        ("import './a'", ["relative"], []),
        ("import 'https:a'", ["relative"], []),
        ("export {a} from 'b'", ["b"], ["b.a"]),
        ("export * from 'b'", ["b"], []),
        ("require('a')", ["a"], []),
        ("require(`a`)", ["a"], []),
        ("require('a' + b)", ["computed"], []),
        ("require(a)", ["computed"], []),
        ("require()", ["computed"], []),
        ("require('')", ["relative"], []),
        ("require(/**/ 'a')", ["a"], []),
        ("new require('a')", ["a"], []),
        ("new require", ["computed"], []),
        ("b('a')", [], []),
        ("x.require('a')", ["a"], []),
        ("process.getBuiltinModule('fs')", ["fs"], []),
        ("import('a')", ["a"], []),
        ("await import(`${a}`)", ["computed"], []),
        ("require('\\x66s')", ["fs"], []),
    ],
)
def test_imports(code: str, imports: list[str], members: list[str]) -> None:
    assert ids(code, "imports") == imports
    assert ids(code, "members") == members


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("import {b} from 'a'", False), ("import 'a'", False), ("export {b} from 'a'", False),
        ("import b from 'a'", True), ("import * as b from 'a'", True), ("import c, {b} from 'a'", True),
        ("export * from 'a'", True), ("export * as b from 'a'", True), ("require('a')", True), ("import('a')", True),
    ],
)  # fmt: skip
def test_modules_as_values(code: str, value: bool) -> None:  # noqa: FBT001
    assert [one.as_value for one in found(code).modules] == [value]


# covers: C71 H03
@pytest.mark.parametrize(
    ("code", "calls", "attributes"),
    [
        ("a()", ["a"], []),
        ("new a()", ["a"], []),
        ("a.b()", ["b"], ["b"]),
        ("a?.b?.()", ["b"], ["b"]),
        ("a['b']()", ["b"], ["b"]),
        ("a['b' + c]()", [], []),
        ("a[`b`]", [], ["b"]),
        ("a[(/**/ 'b')]", [], ["b"]),
        ("a`b`", ["a"], []),
        ("a.b`c`", ["b"], ["b"]),
        ("const {b: c} = a", [], ["b"]),
        ("const {b} = a", [], ["b"]),
        ("({b: c} = a)", [], ["b"]),
        ("function f({b}) {}", [], ["b"]),
        ("const {['b']: c} = a", [], ["b"]),
        ("const {[/**/ 'b']: c} = a", [], ["b"]),
        ("x = {b: 1}", [], []),
        ("x = {__proto__: a}", [], ["__proto__"]),
        ("class A { b() {} }", [], []),
        ("a.\\u0062", [], ["b"]),
        ("a['\\u{62}']", [], ["b"]),
    ],
)
def test_calls_and_attributes(code: str, calls: list[str], attributes: list[str]) -> None:
    assert ids(code, "calls") == calls
    assert ids(code, "attributes") == attributes


@pytest.mark.parametrize(
    ("code", "computed"),
    [
        ("a[0]", []), ("a['b']", []), ("a[b]", ["member_variable"]), ("a['b' + 'c']", ["member_built"]),
        ("a[i + 1]", ["member_variable"]), ("a[(i + b.c) + f(d)]", ["member_variable"]),
        ("a[i + '']", ["member_built"]), ("a[(i + (1 + ``))]", ["member_built"]),
        ("a[`b${c}`]", ["member_built"]), ("a[('b' + c)]", ["member_built"]), ("a[f('b')]", ["member_variable"]),
        ("a['b' < c]", ["member_variable"]), ("a[+'b']", ["member_variable"]),
        ("x = {[a]: 1}", ["member_variable"]), ("with (a) {}", ["scope"]), ("a = <b/>", ["jsx"]),
    ],
)  # fmt: skip
def test_constructs_computed_at_run_time_are_classified(code: str, computed: list[str]) -> None:
    assert ids(code, "computed") == computed


@pytest.mark.parametrize(
    ("code", "name", "builtin", "bound"),
    [
        ("let a = 1; a", "a", False, True),
        ("a", "a", True, False),
        ("let process = 1", "process", False, True),
        ("function f(a) {}", "a", False, True),
        ("a => a", "a", False, True),
        ("(a, [b], {c: d, e = 1}, ...g) => 1", "e", False, True),
        ("(a, [b], {c: d, e = 1}, ...g) => 1", "g", False, True),
        ("try {} catch (a) {}", "a", False, True),
        ("for (const a of b) {}", "a", False, True),
        ("for (const a of b) {}", "b", True, False),
        ("class A extends B {}", "B", True, False),
        ("class A extends B {}", "A", False, True),
        ("(function a() {})", "a", False, True),
        ("import a from 'b'", "a", False, True),
        ("let [a = b] = c", "b", True, False),
        ("this.a", "this", True, False),
        ("x = {a}", "a", True, False),
        ("\\u0065val", "eval", True, False),
        ("import.meta", "import.meta", True, False),
        ("function f() { new.target.a }", "new.target", True, False),
        ("var a = 1", "a", False, True),
        ("const input = 1", "input", False, True),
    ],
)
def test_names(code: str, name: str, builtin: bool, bound: bool) -> None:  # noqa: FBT001
    one = next(one for one in found(code).names if one.id == name)
    assert (one.builtin, one.bound) == (builtin, bound)


@pytest.mark.parametrize(
    "code",
    [
        "const top = 1; use(top)", "let top; { top }", "function top() {} top()", "class top {} new top()",
        "import top from 'a'; top", "import {a as top} from 'a'; top", "import * as top from 'a'; top",
        "import {top} from 'a'; top", "import {top as a} from 'a'",
        "function f(top) { return () => top }", "function f({a: [top]}, b = top) {}", "top => top",
        "({m(top) { top }})",
        "(function top() { top })", "(function* top() { top })", "(class top { m() { top } })",
        "function f() { { var top } top }", "(() => { for (var top of []) {} top })",
        "class A { static { var top; top } }",
        "try {} catch (top) { top }", "try {} catch ([top]) { top }", "for (const top of []) top",
        "for (let top = 0; top < 1;) top", "switch (1) { case 1: let top; default: top }", "{ function top() {} top }",
    ],
)  # fmt: skip
def test_what_a_scope_declares_is_the_programs_own(code: str) -> None:
    facts = found(f"const use = 1; {code}")
    one = next(one for one in facts.names if one.id == "top")
    assert (one.builtin, one.bound) == (False, True)
    assert not any(call.builtin for call in facts.calls)


@pytest.mark.parametrize(
    "code",
    [
        "var top; top", "for (var top of []) top", "top = 1", "for (top of []) {}", "{ let top } top",
        "({m(top) {}}); top",
        "function f(a = top) { var top }", "({[top](top) {}})", "class A { static [top](top) {} }",
        "(class top {}); top",
        "import {top as a} from 'b'; top", "(function top() {}); top", "try {} catch (top) {} top", "[top] = [1]",
        "for (const top of []) {} top", "switch (top) { case 1: let top }", "if (1) function top() {}\ntop",
        "if (1) {} else function top() {}\ntop", "{ function top() {} } top", "class A { static { var top } } top",
        "(() => { var top })(); top", "((a = () => top) => { var top })()", "for (let top = 0;;) {} top",
        "const {[top]: a} = 1", "const {top: a} = 1; top", "class A { @top m(top) {} }",
    ],
)  # fmt: skip
def test_what_no_scope_declares_is_global(code: str) -> None:
    one = next(one for one in found(code).names if one.id == "top")
    assert one.builtin


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        ("'/etc/x'", ["path"]), ("'/' + 'etc'", ["path"]), ("`/${a}`", ["path"]), ("`${a}/b`", []),
        ("a + '/b'", []), ("a == '/b'", ["path"]), ("+'/b'", ["path"]), ("'\\u{110000}'", []),
        ("'ws://h'", ["url"]),
        ("'constructor'", ["reflection"]), ("'con' + 'structor'", ["reflection"]), ("'__a'", ["dunder"]),
        ("'\\x2fetc\\u{2f}x'", ["path"]), ("// /etc/x", []), ("'http://h/a/b'", []), ("1 + 2", []),
    ],
)  # fmt: skip
def test_literals(code: str, kinds: list[str]) -> None:
    assert ids(code, "literals") == kinds


@pytest.mark.parametrize(
    ("code", "calls", "values"),
    [
        ("JSON.parse(input())", 1, 0), ("input(); input()", 2, 0), ("const f = input; f()", 0, 1),
        ("x = {input}", 0, 1), ("const input = 1", 0, 0),
        ("{ const input = () => 1; input() }", 0, 0), ("{ const input = 1 } input()", 1, 0),
        ("const {readFileSync} = a; readFileSync(0)", 1, 0),
        ("var input = 1", 0, 1), ("fs.readFileSync(0)", 1, 0), ("a.input", 0, 0),
    ],
)  # fmt: skip
def test_reading_the_input(code: str, calls: int, values: int) -> None:
    assert (found(code).input_calls, found(code).input_values) == (calls, values)


def test_web_addresses() -> None:
    assert found("// HTTP://a\n'https://b'").network_literals == 2
    assert found("'\\x68ttp://a'").network_literals == 1
    assert found("'ht' + `tp://a`").network_literals == 1


def test_reads_of_the_input() -> None:
    assert found("a.readFileSync(0); readFileSync(0)").input_calls == 2


# covers: C27.1 H18
@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("const x = {", "syntax"), ("'a", "syntax"), ("x = 1\0", "syntax"), ("'\ud800'", "syntax"),
        ("a\n" * (CODE_BYTES // 2 + 1), "too_large"), ("a;\n" * (CODE_BYTES // 3), None),
        ("".join(f"a{i};" for i in range(1_100)), "too_large"), ("a;" * (CODE_BYTES // 2), "too_large"),
        ("[" * (DEPTH + 9) + "]" * (DEPTH + 9), "too_deep"),
    ],
)  # fmt: skip
def test_bad_syntax_and_excess_size_or_depth_are_reported(code: str, problem: str | None) -> None:
    facts = scan("javascript", code)
    assert (facts.parsed, facts.problem) == (problem is None, problem)
    assert facts.complete == (problem in {None, "syntax"})


@pytest.mark.parametrize("code", ["a\n{ (b }", "a\n0 <!-- b", "a\nyield"])
def test_wrong_syntax_is_reported_with_its_line(code: str) -> None:
    lines: Lines = {}
    scan("javascript", code, lines)
    assert lines == {None: 2}


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("0\n<!-- a; let b = 1\nb", "syntax"), ("0 <!--a", "syntax"), ("a /*\n*/ --> 0; let b = 1\nb", "syntax"),
        ("while (n --> 0) {}", None), ("if (!--n) {}", None), ("<!-- a\n", None), ("a\n--> b\n", None),
        ("`<!-- ${a} -->`; '<!--'; /<!--/ // <!--\n/* -->\n--> */", None), ("`\n-->`", None),
    ],
)  # fmt: skip
def test_what_scripts_read_as_a_comment_of_html_is_never_read_as_operators(code: str, problem: str | None) -> None:
    assert scan("javascript", code).problem == problem


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("var yield = 1, g = 1; yield /1; a() /g", "syntax"), ("yield\n/1; a() /g", "syntax"), ("yield", "syntax"),
        ("await /1; a() /g", "syntax"), ("await /**/ /1; a() /g.b", "syntax"), ("() => { await a }", "syntax"),
        ("function* f() { () => { yield /1; a() /g } }", "syntax"), ("({*[yield /1; a() /g]() {}})", "syntax"),
        ("async function f() { class A { m() { await /1; a() /g } } }", "syntax"),
        ("async function f() { class A { b = await /1 + a() /g } }", "syntax"),
        ("async function f() { class A { [await b] = 1 } }", None),
        ("function* f() { yield /a/; yield; const b = yield }", None), ("({*a() { yield 1 }})", None),
        ("async () => { await a; await /b/ }", None), ("async function* f() { yield await a }", None),
        ("class A { static async m() { for await (const a of b) {} await 1 } }", None), ("await import('a')", None),
    ],
)  # fmt: skip
def test_yield_and_await_are_read_only_where_they_can_be_no_names(code: str, problem: str | None) -> None:
    """As names, they make two divisions of a regular expression, with code between them."""
    assert scan("javascript", code).problem == problem


def test_a_package_scope_is_part_of_the_module_name() -> None:
    assert ids("import '@a/b/c'", "imports") == ids("import '@a/b'", "imports") != ids("import '@a/c'", "imports")


BOMBS: dict[str, Callable[[int], str]] = {
    "brackets": lambda n: "[" * (n // 2) + "]" * (n // 2),
    "open": lambda n: "(" * n,
    "sequences": lambda n: "(a," * (n // 3),
    "templates": lambda n: "`${" * (n // 3),
    "attributes": lambda n: "a" + ".b" * (n // 2),
    "calls": lambda n: "a" + "()" * (n // 2),
    "sums": lambda n: "1" + "+1" * (n // 2),
    "text sums": lambda n: "'a'" + "+'a'" * (n // 4),
    "not": lambda n: "!" * n + "a",
    "arrows": lambda n: "a=>" * (n // 3) + "1",
    "ternary": lambda n: "a?b:" * (n // 4) + "1",
    "if": lambda n: "if(a)" * (n // 5) + ";",
    "quotes": lambda n: "'" * n,
    "comments": lambda n: "/*" * (n // 2),
    "slashes": lambda n: "/a" * (n // 2),
    "elements": lambda n: "<a>" * (n // 3),
    "scopes": lambda n: "let a;" + "{" * (DEPTH - 9) + "a;" * (n // 2 - DEPTH) + "}" * (DEPTH - 9),
    "classes of characters": lambda n: "/[" * (n // 2),
    "open templates": lambda n: "`if a:\n" * (n // 7),
    "comments in texts": lambda n: "f(\"{'a':(0 /*" * (n // 14),
    "escapes": lambda n: "'" + "\\u{62}" * (n // 7) + "'",
}


# covers: C65 H18
@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("size", [DEPTH * 4, 6_000, CODE_BYTES])
def test_bombs_end_within_bounds(bomb: str, size: int) -> None:
    started = time.process_time()
    facts = scan("javascript", BOMBS[bomb](size - 20))
    assert time.process_time() - started < 4  # about half a second
    assert facts.parsed or facts.problem in {"syntax", "too_deep", "too_large"}


@pytest.mark.parametrize("unit", ["/[", "`if a:\n"])
def test_code_with_excessive_parser_steps_is_too_large(unit: str) -> None:
    facts = scan("javascript", unit * (60_000 // len(unit)))
    assert (facts.parsed, facts.complete, facts.problem) == (False, False, "too_large")


@pytest.mark.parametrize(
    "unit",
    ["a()()()()\n", "(a,b)=>(c);\n", "[a,b]=[b,a];\n", "/a[b]c/.test(x);\n", "`${a}${b}`;\n", "((((a,b))));\n"],
)
def test_much_ordinary_code_is_parsed(unit: str) -> None:
    assert found(unit * (20_000 // len(unit))).complete


TOKENS = [
    "(", ")", "[", "]", "{", "}", "=>", ",", ";", "`", "${", "'", '"', "/", "<", ">", "=", "...", "?.", "?", ":",
    "function ", "async ", "await ", "yield ", "class ", "let ", "import ", "export ", "from ", "for ", "of ", "in ",
    "a", "eval", "1", "0x", "\n", "\\u0061", "\\", "//", "/*", "*/", "if ", "else ", "with ", "constructor", "static ",
    "#a", "@", "new ", "\f",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_arbitrary_token_sequences_give_stable_facts(seed: int) -> None:
    chosen = random.Random(seed)  # noqa: S311  (the same each time)
    for size in (5, 30, 2_000):
        for _ in range(20 if size < 100 else 1):
            code = "".join(chosen.choice(TOKENS) for _ in range(size))
            facts = scan("javascript", code)
            assert facts.parsed == (facts.problem is None)
            assert scan("javascript", code) == facts


@hypothesis_settings(max_examples=examples(200))
@given(st.text())
def test_escaped_text_in_a_string_is_inspected(text: str) -> None:
    escaped = "".join(f"\\u{{{ord(letter):x}}}" for letter in text)
    facts = found(f"a['{escaped}']")
    assert len(facts.attributes) == 1
    assert facts.attributes[0].dunder == text.startswith("__")
