"""The scan through the policy: exactly the violations that are asked for, and one meaning wherever it is asked."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.binaries import find_binary
from engine.cases.run import Runner
from engine.engine import Engine
from engine.errors import WorkError
from engine.flow import Answer
from engine.model import Outcome, Permit, Result
from engine.points.code_scan import CodeScanInput, CodeScanLimits
from engine.reports.explain import report
from engine.settings import Settings
from tests.conftest import ROOT
from tests.covers import cases
from tests.expect import of, there
from tests.values.shipped import SHIPPED

GOLDEN = (ROOT / "fixtures" / "code" / "incident_metrics.py").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def engine(module_settings: Settings) -> Iterator[Engine]:
    with Engine(module_settings) as opened:
        yield opened


def ask(engine: Engine, code: str, language: str = "python") -> Answer:
    return engine.check("code_scan", {"language": language, "code": code})


def violations(engine: Engine, code: str, language: str = "python") -> list[str]:
    """As a stop reason names them: the code, and what it is about."""
    found = ask(engine, code, language).decision.findings
    return sorted({":".join([one.code, *(one.subject or "/").split("/")[1:]]).removesuffix(":") for one in found})


EXACTLY = {
    GOLDEN: [],
    f"import os\n{GOLDEN}": ["import_not_allowed:os"],
    "import json, statistics": [],
    "import os, sys as s, a.b": ["import_not_allowed:a", "import_not_allowed:os", "import_not_allowed:sys"],
    "from urllib.request import urlopen": ["import_not_allowed:urllib"],
    "from . import a": ["import_not_allowed:relative"],
    "from .. import a": ["import_not_allowed:relative"],
    "import os\nprint(os.environ['HOME'])": ["import_not_allowed:os", "name_not_allowed:os"],
    "from os import getenv\ngetenv('HOME')": ["import_not_allowed:os"],
    "import subprocess\nsubprocess.run(['a'])": ["import_not_allowed:subprocess", "name_not_allowed:subprocess"],
    "import os as o\no.system('a')": [
        "attr_not_allowed:system", "call_not_allowed:system", "import_not_allowed:os",
    ],
    "exec('1')": ["call_not_allowed:exec"],
    "eval('1')": ["call_not_allowed:eval"],
    "compile('1', 'a', 'eval')": ["call_not_allowed:compile"],
    "open('a')": ["call_not_allowed:open"],
    "__import__('os')": ["call_not_allowed:__import__", "name_not_allowed:__import__"],
    "getattr(x, 'y')": ["call_not_allowed:getattr", "name_not_allowed:getattr"],
    "setattr(x, 'y', 1)": ["call_not_allowed:setattr", "name_not_allowed:setattr"],
    "delattr(x, 'y')": ["call_not_allowed:delattr", "name_not_allowed:delattr"],
    "x.open('a')": [],
    "system('a')": [],
    **{f"f = x.{name}": [f"attr_not_allowed:{name}"]
       for name in ("system", "popen", "fork", "spawn", "connect", "request", "urlopen")},
    **{f"x.{name}()": [f"attr_not_allowed:{name}", f"call_not_allowed:{name}"]
       for name in ("system", "popen", "fork", "spawn", "connect", "request", "urlopen")},
    **{f"f = {name}": [f"name_not_allowed:{name}"]
       for name in ("builtins", "getattr", "setattr", "delattr", "globals", "locals", "vars", "dir")},
    **{f"{name}()": [f"name_not_allowed:{name}"] for name in ("builtins", "globals", "locals", "vars", "dir")},
    **{f"x = {name}.y": [f"name_not_allowed:{name}"]
       for name in ("os", "sys", "subprocess", "socket", "pathlib", "importlib")},
    "if __name__ == '__main__':\n    pass": ["name_not_allowed:__name__"],
    "x = __y": ["name_not_allowed:__y"],
    "x.__class__": ["attr_not_allowed:__class__"],
    "x.__y()": ["attr_not_allowed:__y"],
    "x = 'http://a/b/c'": ["network_literal_blocked"],
    "x = 'HtTpS://a'": ["network_literal_blocked"],
    "# http://a": ["network_literal_blocked"],
    "x = 'http://a' +": ["syntax_error"],
    "import os\n)": ["syntax_error"],
    "input()": [],
    "input()\ninput()": ["too_many_input_reads"],
    "x = input() + input() + eval('http://a')": [
        "call_not_allowed:eval", "network_literal_blocked", "too_many_input_reads",
    ],
}  # fmt: skip
"""Programs that the lists of the seed know, each with its violations and no others."""


# covers: A79.1 A80.1 A81.1 A82.1 A83.1 C19 C20.2 C21.1-8 C22.1 C22.3-4 C22.6-7
# covers: C23.1-4 C23.6-8 C24.1 C24.3-6 C25 C26 C27.1 C28.1 C54.1
@pytest.mark.parametrize("code", EXACTLY)
def test_each_program_has_exactly_its_listed_violations(engine: Engine, code: str) -> None:
    assert violations(engine, code) == EXACTLY[code]


DETOURS = [
    "e = eval\ne('1')", "[e] = [eval]\ne('1')", "(e := exec)('1')", "list(map(eval, ['1']))", "@exec\ndef f(): pass",
    "class A:\n    f = open", "def f(g=compile): pass", "print(*[eval])", "f'{eval}'", "eval: int = 1",
    "import json\njson.codecs.open('a')", "import json\njson.codecs.builtins", "import json\nx = json.codecs.sys",
    "from statistics import sys", "from json import codecs", "from json import *", "import json.decoder",
    "from json.decoder import scanner", "from .json import loads", "from .statistics import mean",
    "import json as j\nj.codecs", "import json\nj = json\nj.codecs", "import json\n[j] = [json]",
    "import json\nmatch json:\n    case j: j.codecs", "class A:\n    import json\nA.json.codecs",
    "import json\nf = lambda j=json: j.codecs", "import json, statistics\nfor m in (json, statistics): m.sys",
    "breakpoint()", "help()", "exit()", "quit()", "memoryview(b'')", "type('A', (), {})", "super()", "hasattr(x, 'y')",
    "object.mro", "license", "aiter(x)", "x.gi_frame", "x.f_globals", "x.tb_frame", "x.mro()", "type(x).mro",
    "'{0.__class__}'.format(x)", "'{a[b]}'.format(a=x)", "'{:{0.x}}'.format(x)", "t.format(x)", "str.format(t, x)",
    "('{0' + '.x}').format(x)", "f'{{0.x}}'.format(x)", "match x:\n    case T(system=f): pass",
    "match x:\n    case T(__class__=c): pass", "f(__x=1)", "def f(__x): pass", "try: pass\nexcept E as __x: pass",
    "# coding: utf-7\nx = 1", "# coding: utf-16\nx = 1", "p = '/etc/passwd'", "p = '~/.ssh/id'", "p = '../x'",
    "p = b'/etc/shadow'", "p = '/' + 'etc' + '/' + x", "p = f'/proc/{x}/environ'", "p = 'C:\\\\x'", "p = 'file:///x'",
    "x = 'ftp://h'", "x = '\\x68ttp://h'", "x = 'ht' + 'tp://h'", "i = input\ni()", "print(input)", "x = 1\0",
    "(" * 300, "-" * 500 + "1", "-" * 20_000 + "1", "x" + ".a" * 500,
]  # fmt: skip


# covers: A80.1 E08 H03 H17.2-4 H18
@pytest.mark.parametrize("code", DETOURS)
def test_evasion_attempts_are_refused(engine: Engine, code: str) -> None:
    assert ask(engine, code).decision.outcome is Outcome.DENY


PLAIN = [
    "x = 1", "\n", "print('{} of {}'.format(1, 2))", "print(f'{1}/s', 'application/json', 'a/b', '2026-01-01')",
    "# coding: utf-8\nx = 1", "from json import loads as read\nprint(read('1'))", "import statistics as s\ns.mean([1])",
    "class A:\n    def f(self): return self\nA().f()", "try:\n    x = 1\nexcept (ValueError, KeyError) as e: print(e)",
    "raise SystemExit(3)", "while True: pass", "x = [0] * 10 ** 9", "def f(*a, k=1, **b): return sorted(a, key=len)",
    "match x:\n    case {'a': [1, *rest]} if rest: print(rest)\n    case _: pass", "x = (y := 1) + y",
    "async def f():\n    return [i async for i in x]", "x = {'__typename': 1}['__typename']", "'\\d'",
]  # fmt: skip


# covers: C19 E08
@pytest.mark.parametrize("code", PLAIN)
def test_plain_code_is_clean(engine: Engine, code: str) -> None:
    answer = ask(engine, code)
    assert answer.decision.findings == ()
    assert of(CodeScanLimits, answer.decision.limits).complete


SCRIPTS = [
    "const rows = [1, 2]; console.log(rows.map(row => row * 2));", "let x = require('fs')", "eval('1')",
    "(0, eval)('1')", "x['constructor']", "const {constructor: c} = {}", "process.env", "globalThis", "this.x",
    "new Function('1')", "import fs from 'fs'", "import('fs')", "const a = 'http://h'", "const p = '/etc/passwd'",
    "`${1}/etc/x`", "const x = {", "function f(a) { return a.length; } console.log(f('a'));",
    "class A { constructor() { let x = 1; } }", "with (Math) {}", "console.log(Math.max(...[1, 2]))", "a = <b/>;",
    "const a = []; for (const b of a) { console.log(a[b]); }",
]  # fmt: skip


# covers: A79.1 C71 H03
@pytest.mark.full
def test_the_point_and_the_helper_agree_on_every_program(engine: Engine, tmp_path: Path) -> None:
    """The point and the helper `clean` agree on every program here and in the cases."""
    programs = [("python", code) for code in [*EXACTLY, *DETOURS, *PLAIN]] + [("javascript", code) for code in SCRIPTS]
    programs += [
        (file.case.request["language"], file.case.request["code"])
        for file in cases()
        if file.case.point == "code_scan" and isinstance(file.case.request, dict)
    ]
    programs += [("ruby", "puts 1")]
    answers = [ask(engine, code, language) for language, code in programs]
    allowed = [answer.decision.outcome is Outcome.ALLOW for answer in answers]
    assert True in allowed
    assert False in allowed
    assert _clean(engine, [answer.document for answer in answers], tmp_path) == allowed


def _clean(engine: Engine, documents: list[Any], folder: Path) -> list[bool]:
    (folder / "input.json").write_text(json.dumps(documents), encoding="utf-8")
    (folder / "values.json").write_text(json.dumps({"policy": there(engine.policy).data}), encoding="utf-8")
    (folder / "ask.rego").write_text(
        "package ask\n\nimport data.admission.lib.code_scan\n\n"
        "told := [clean | some item in input; clean := is(item)]\n\n"
        "is(item) if code_scan.clean with input as item\n\n"
        "is(item) := false if not code_scan.clean with input as item\n",
        encoding="utf-8",
    )
    done = subprocess.run(
        [find_binary().path, "eval", "-d", ROOT / "rego", "-d", folder / "ask.rego", "-d", folder / "values.json",
         "-i", folder / "input.json", "-f", "json", "data.ask.told"],
        capture_output=True, check=True, env={},
    )  # fmt: skip
    told: list[bool] = json.loads(done.stdout)["result"][0]["expressions"][0]["value"]
    return told


# covers: H03.7
def test_a_clean_scan_does_not_permit_execution(engine: Engine) -> None:
    permits: list[tuple[Permit, str]] = []

    def executor(permit: Permit, _: Any) -> Result:
        permits.append((permit, permit.input_digest))
        return Result("done", {})

    answer = engine.decide("code_scan", {"language": "python", "code": GOLDEN}, executor)
    assert answer.decision.outcome is Outcome.ALLOW
    [(permit, digest)] = permits
    assert permit.demand("code_scan", digest, CodeScanLimits).complete  # the control
    with pytest.raises(WorkError, match="no permit for point `code_execution`"):
        permit.demand("code_execution", digest, CodeScanLimits)


# covers: C29.1
def test_the_scan_does_not_apply_to_the_engine_itself(engine: Engine) -> None:
    own = (ROOT / "engine" / "settings.py").read_text(encoding="utf-8")
    assert "import os" in own
    assert "import_not_allowed:os" in violations(engine, own)  # as generated code it would be refused
    assert ask(engine, GOLDEN).decision.outcome is Outcome.ALLOW  # and the engine runs on


@pytest.mark.parametrize("language", ["c++ 17", "PYTHON", " python", "python/../x", "$", "\u202e"])
def test_an_unknown_language_is_not_scanned(engine: Engine, language: str) -> None:
    assert violations(engine, "x = 1", language) == ["language_not_scanned"]


# covers: C71
def test_javascript_is_scanned_but_not_executed(engine: Engine) -> None:
    code = there(engine.policy).data["code"]
    assert "javascript" in code["languages"]
    assert "javascript" in code["scan"]
    assert "javascript" not in code["execution"]
    assert violations(engine, SCRIPTS[0], "javascript") == []


def test_the_input_holds_names_and_no_text_of_the_code(engine: Engine) -> None:
    code = "# quokka one\nx = 'quokka two'\ny = b'quokka' + z\nf'quokka {x}'\nquokka_name = {'quokka': 1}"
    document = there(ask(engine, code).document)
    assert set(CodeScanInput.model_fields) == {"code_sha256", "scan"}
    assert json.dumps(document).count("quokka") == 1  # the variable


# covers: H18
@pytest.mark.parametrize("code", ["\ud800", "x = '\udfff'", "", "x = 1\0\ud800"])
def test_empty_or_unencodable_code_is_an_invalid_request(engine: Engine, code: str) -> None:
    answer = ask(engine, code)
    assert answer.decision.outcome is Outcome.DENY
    assert answer.decision.findings[0].code == "engine.request_invalid"


def test_allowed_members_are_not_modules() -> None:
    """A module among the allowed members would lead to all others; the values say so, and hold it."""
    import importlib
    import types

    for name, members in SHIPPED["code"]["scan"]["python"]["modules"].items():
        module = importlib.import_module(name)
        assert not [one for one in members if isinstance(getattr(module, one), types.ModuleType)]


def test_every_finding_code_has_a_case(runner: Runner) -> None:
    codes = {code for file in cases() if file.case.point == "code_scan" for code in file.case.want.codes}
    policy = there(there(runner.engine({}).policy))
    own = {code for code, one in policy.catalogue.points["code_scan"].requirements.items() if one.point == "code_scan"}
    assert codes == own


@pytest.mark.parametrize(
    ("language", "code", "lines"),
    [
        (
            "python",
            "x = 1\nimport os\n\nos.system(x)\neval('1')\n",
            {"imports/os": 2, "attributes/system": 4, "calls/eval": 5},
        ),
        ("python", "import json\njson.loads('1')\n'{}/etc/passwd'\n'/etc'\n", {"literals/path": 3}),
        ("python", "class A:\n    def f(self):\n        return (\n", {None: 3}),
        ("javascript", "let a = 1\n\na['b' + a]\neval(a)\n", {"computed/member_built": 3, "calls/eval": 4}),
        ("javascript", "let a = 1\nlet b = ;\nlet c = 2\n", {None: 2}),
    ],
    ids=["python", "python text", "python syntax", "javascript", "javascript syntax"],
)
def test_a_finding_of_a_scan_names_its_line(
    language: str, code: str, lines: dict[str | None, int], engine: Engine
) -> None:
    answer = ask(engine, code, language)
    assert answer.gathered is not None
    places = {one.subject: answer.gathered.places.get(one.subject) for one in answer.decision.findings}
    assert {subject: str(places[subject]) for subject in lines} == {thing: f"code:{at}" for thing, at in lines.items()}


@pytest.mark.parametrize(
    ("language", "code", "lines"),
    [
        ("python", "x = 1\n# see HTTP://a.example\ny = 'https://b.example'\n", {"network_literal_blocked": 2}),
        ("python", "x = 1\ny = 'htt\\x70s://b.example'\n", {"network_literal_blocked": 2}),
        ("python", "x = input()\ny = 1\nz = input()\n", {"too_many_input_reads": 3}),
        ("python", "x = 1\ny = map(input, '')\n", {"too_many_input_reads": 2}),
        (
            "javascript",
            "let x = input()\n\nlet y = input() // http://a.example\n",
            {"too_many_input_reads": 3, "network_literal_blocked": 3},
        ),
        ("javascript", "let x = 1\nlet y = [input]\n", {"too_many_input_reads": 2}),
    ],
    ids=["comment", "escape", "second call", "value", "javascript", "javascript value"],
)
def test_a_finding_about_the_code_as_a_whole_names_its_line(
    language: str, code: str, lines: dict[str, int], engine: Engine
) -> None:
    answer = ask(engine, code, language)
    found = report("code", answer, engine.policy).explained
    shown = {one.finding.code: str(one.where) for one in found if one.finding.code in lines}
    assert shown == {name: f"code:{at}" for name, at in lines.items()}
