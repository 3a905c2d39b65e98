"""The parser of shell commands: bounded, and nothing of one that fails, hangs or is missing counts."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from engine.facts import shell
from engine.facts.shell import Parsed, ShellWord, parse


def test_results_keep_the_order_of_the_texts() -> None:
    found = parse(["ls", "ls 'a", "rm a"])
    assert [one.refused for one in found] == [None, "syntax", None]
    assert [word.value for word in found[2].commands[0].words] == ["rm", "a"]
    assert parse([]) == []


@pytest.mark.parametrize(
    "text",
    ["$(" * 10_000, "(" * 60_000, "{" * 30_000, "`" * 2_001, "ls|" * 5_000, "a=(" * 3_000, "${" * 20_000, "x" * 70_000],
)
def test_overly_complex_text_is_refused(text: str) -> None:
    assert parse([text])[0].refused in {"nesting", "size", "syntax"}


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("echo ${PIPESTATUS[0]} ${PIPESTATUS[@]}", False),
        ("echo ${PIPESTATUS[$(a)]}", True),
        ("echo ${PIPESTATUS[a]}", True),
        ("echo ${a[0]}", True),
        ("echo *(e:'a':)", True),
        ("echo [ab]* ?", False),
    ],
)
def test_what_an_expansion_may_carry_out_is_marked(text: str, *, marked: bool) -> None:
    """`zsh` runs the code in `*(e:'code':)`."""
    assert any("expansion" in one.syntax for one in parse([text])[0].commands) == marked


@pytest.mark.parametrize(
    "text", ["$((" * 600, "<(" * 900 + "ls" + ")" * 900, "{a,b}" * 12, "$(" * 63 + "ls" + ")" * 63]
)
def test_text_within_the_bounds_is_parsed_in_time(text: str) -> None:
    parse([text])


@pytest.mark.parametrize(
    "text",
    [
        "{ " + "a;" * 100 + "} <<E\n" + "x" * 60_000 + "\nE\n",
        "{ " + "a;" * 100 + "} >" + "x" * 60_000,
        "for " + "x" * 60_000 + " in a; do " + "a;" * 100 + "done",
        "echo {" + "a," * 1_000 + "b}" + "x" * 60_000,
        "echo " + "{a,b}" * 1_900,
    ],
)
def test_expanded_braces_and_groups_are_bounded_in_bytes(text: str) -> None:
    """Otherwise 64 KiB of text become hundreds of MiB."""
    assert parse([text, "ls"])[0] == Parsed(refused="size")


@pytest.mark.parametrize(
    "text",
    [
        *("a #\\\nb", "a\n# b \\\nc", "`a # b\\\nc`", "x=(a # b \\\n)", "case a in # b \\\na) c;; esac"),
        *("a $\\\nb", 'a "$\\\n{b}"', "a\\", "a 2\\\n>b", "a 0&>b", "x=<-> a b", 'a "${ b; }"', "a ${| b; }"),
    ],
)
def test_text_that_shells_read_differently_is_refused(text: str) -> None:
    """To each shell, a comment ends with its line, even behind a backslash, and the next line is another command."""
    assert parse([text]) == [Parsed(refused="syntax")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x a{.b,} {a,}", "x a.b a a ?"),
        ("x {,a}{,b} {'',a}", "x ? b a ab  a"),
        ("x $'a' $\"a\"", "x ? ?"),
        ("x =a ==", "x ? =="),
        ('x "#1" a#b \\\n c0&>d #c', "x #1 a#b c0"),
    ],
)
def test_words_that_shells_make_differently_are_not_known(text: str, words: str) -> None:
    assert listed(text) == [words]


@pytest.mark.parametrize(
    ("text", "folders"),
    [
        ("cd a && cd b && x && (cd .. && y); z", ["", "a", "a/b", "a/b", "a/b/..", " a a/b"]),
        ("cd a && (cd /b && cd c; x)", ["", "a", "/b", "/b /b/c a"]),
        ("cd a && { cd /b && cd c || x; }", ["", "a", "/b", "/b /b/c a"]),
        ("cd a || exit 1; x", ["", " a", "a"]),
        ("cd a && cd b || { x; exit; }\ny", ["", "a", " a a/b", " a a/b", "a/b"]),
        ("cd a || cd b || exit; x", ["", " a", " a a/b b", " a a/b b"]),
        *[
            (f"cd a || {other}; x", ["", " a", " a"])
            for other in ("exit 1 2", "exit $y", "exit >b", "! exit", "(exit)", "{ exit; } >b", "x=1 exit", "exit x y")
        ],
        ("cd a || exit & x", ["", " a", ""]),
        ("cd a || exit | x", ["", " a", " a"]),
        ("cd a && cd /b && x $(cd c && y) && z", ["", "a", "/b", "/b/c", "/b", "/b"]),
        ("cd a; x; cd .. && y", ["", " a", " a", ".. a/.."]),
        ("cd a; cd /b; x", ["", " a", " /b a"]),
        ("cd a || x; y", ["", " a", " a"]),
        ("cd a | x; y", ["", "", ""]),
        ("x | cd a; y", ["", "", " a"]),
        ("cd a & x", ["", ""]),
        ("! cd a && x", ["", " a"]),
        ("{ cd a; } && x", ["", " a"]),
        ("(cd a) && x", ["", ""]),
        ("cd a; cd b; cd c; x; cd d; y", ["", " a", " a a/b b", *[" a a/b a/b/c a/c b b/c c"] * 2, "?"]),
        ("if x; then cd a; fi && y", ["?", "?", "?"]),
        ("while x; do cd a; done", ["?", "?"]),
        ("case a in a) cd b;; esac && x", ["?", "?"]),
        ("cd $a && x", ["", "?"]),
        ("cd $a; x", ["", "?"]),
        ("cd - && x", ["", "?"]),
        ("cd ~/a && x", ["", "?"]),
        ("cd a b && x", ["", "?"]),
        ("cd a* && x", ["", "?"]),
        ("cd && x", ["", "?"]),
        ("cd && cd a; x", ["", "?", "?"]),
        ("cd a && popd && x", ["", "a", "?"]),
        ("a=b cd c && x", ["", "?"]),
        *[
            (f"{other}; cd a && x", ["?", "?", "?"])
            for other in ("alias cd=x", "\\alias cd=x", "eval x", "$x", "'x'", ". x", "shopt -s x", "trap x EXIT",
                          "CDPATH=/", "read CDPATH", "export 'CDPATH=/'", 'export "PATH=/"', "builtin x", "command x")
        ],
        ("cd() { x; }; cd a && y", ["?", "?", "?"]),
    ],
)  # fmt: skip
def test_the_folders_of_a_command_are_those_from_before_and_after_each_cd(text: str, folders: list[str]) -> None:
    (found,) = parse([text])
    assert [" ".join(one.folders) if one.folders else "?" for one in found.commands] == folders


def listed(text: str) -> list[str]:
    """The commands of a text; `?` for a word that is not known, `<…>` around a pattern."""
    (found,) = parse([text])
    return [
        " ".join("?" if word.value is None else f"<{word.value}>" if word.pattern else word.value for word in one.words)
        for one in found.commands
    ]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ('for f in a \'b c\'; do x $f "$f" "${f}.d"; done', ["x a a a.d", "x ? b c b c.d"]),
        ('for f in s/*.c; do x $f "$f" && sh <<< "$f"; done', ["x ? <s/*.c>", "sh"]),
        ("for f in {a,b}/c d; do x {$f,y}; done", ["x a/c y", "x b/c y", "x d y"]),
        ("for f in a b; do for g in c d; do x $f$g; done; done", ["x ac", "x ad", "x bc", "x bd"]),
        ("for f in a; do x $f; done; for f in b; do x $f; done", ["x a", "x b"]),
        ('for f in a b; do x "$(y $f)"; done', ["y a", "x ?", "y b", "x ?"]),
        ("for f in a b; do printf '%s' $f; done", ["printf %s a", "printf %s b"]),
        ("for f in a b; do x; done", ["x"]),
        ("for f in a; do x '$f' \\$f; done", ["x $f $f"]),
        ("for f in -o; do x $f; done", ["x -o"]),
    ],
)
def test_a_loop_over_known_words_is_read_for_each_of_them(text: str, commands: list[str]) -> None:
    assert listed(text) == commands


@pytest.mark.parametrize(
    "text",
    [
        "for f; do x $f; done", "for f in; do x $f; done", "for f in a; do :; done; x $f",
        "for f in a $b; do x $f; done", "for f in $(y); do x $f; done", "for f in {1..3}; do x $f; done",
        "for f in ~/a; do x $f; done", "for f in ''; do x $f; done", "for f in 'a b'; do x $f; done",
        "for f in '*'; do x $f; done", "for f in *; do x $f; done",
        "for f in a; do x ${f%b} ${#f} ${f:-b}; done", "for f in a; do x ${f:=b} $f; done",
        "for PWD in a; do x $PWD; done", "for F in a; do x $F; done", "for _ in a; do x $_; done",
        "for f in a; do for f in b; do :; done; x $f; done",
        *[
            f"for f in a b; do {other}; x $f; done"
            for other in ("f=c", "f+=c", "f[0]=c", "f=c y", "read f", "read \\f", "read 'f'", "read -r $v",
                          "read $'\\x66'", "printf -v f c", 'printf "-v" $v c', "unset f", "mapfile f", "getopts c f",
                          "wait -p f 1", "IFS=a",
                          "declare f=c", "declare -n g=f", "declare $v", "export f", "let f=1", "((f = 1))",
                          ": $((f++))", "[[ f=1 -eq 1 ]]", "eval y", ". y", "'read' f", "{read,f}", "command read f",
                          "$v f", "trap y DEBUG", "coproc f { y; }", "for ((f = 0; f < 1; f++)); do :; done",
                          "g() { y; }")
        ],
        "f=c; for f in a; do x $f; done", "declare -u f; for f in a; do x $f; done",
    ],
)  # fmt: skip
def test_the_variable_of_a_loop_is_not_known_where_something_may_set_it(text: str) -> None:
    used = [one for one in listed(text) if one.startswith("x ")]
    assert used
    assert all(set(one.split()[1:]) == {"?"} for one in used)


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        ('d=a/b; x $d/c "$d" "${d}e"', [":", "x a/b/c a/b a/be"]),
        ("d=a && x $d && { y $d; }; z $d", [":", "x a", "y a", "z a"]),
        ("D=a; x $D/$D", [":", "x a/a"]),
        ("d=a; e=$d/b; x $e", [":", ":", "x a/b"]),
        ("d=a e=b; x $d $e", [":", "x a b"]),
        ("x && d=a && y $d", ["x", ":", "y a"]),
        ("d=a; for f in b c; do x $d/$f; done", [":", "x a/b", "x a/c"]),
        ("d=a; if x $d; then y $d; fi | z $d", [":", "x a", "y a", "z a"]),
        ("d='b c'; x \"$d\" $d", [":", "x b c ?"]),
        ('d=; x "$d/b" $d/b', [":", "x /b ?"]),
        ('d=a; x > $d <<< "$d"', [":", "x"]),
        ("export e=b f; d=a; x $d", ["export f", ":", "x a"]),
    ],
)
def test_a_variable_that_is_set_once_has_its_value_in_what_comes_after_it(text: str, commands: list[str]) -> None:
    assert listed(text) == commands


@pytest.mark.parametrize(
    "text",
    [
        "x $d; d=a", "d=a x $d", "d=a y; x $d", "(d=a); x $d", "d=a | y; x $d", "y | d=a; x $d", "d=a & x $d",
        "y && d=a; x $d", "d=a || y; x $d", "y || d=a; x $d", "{ d=a; }; x $d", "{ y && d=a; } && x $d",
        "if y; then d=a; fi; x $d", "while y; do d=a; done; x $d", "case y in y) d=a;; esac; x $d", "$(d=a); x $d",
        "d=a; d=b; x $d", "d=a; d+=b; x $d", "d+=a; x $d", "d[0]=a; x $d", "d=(a b); x $d", "d=a > y; x $d",
        "d=~/a; x $d", "d=$(y); x $d", "d=$e; x $d", "d=*; x $d", "d='*'; x $d", "d='a b'; x $d",
        "d=a; x ${d%a} ${d:-b} ${#d} ${!d}", "d=a; x $d[1]", "d=a; x $d:h", "d=a; x $=d", "d=a; bash -c 'x $d'; x $(y)",
        "PWD=a; x $PWD", "PATH=a; x $PATH", "IFS=a; d=b; x $d", "RANDOM=a; x $RANDOM", "_=a; x $_", "DB=a; x $DB",
        "d=a; for d in b; do :; done; x $d", "for d in b; do :; done; d=a; x $d",
        *[
            f"d=a; {other}; x $d"
            for other in ("read d", "read -r $v", "printf -v d c", "unset d", "mapfile d", "getopts c d", "export d=b",
                          "declare -n e=d", "local d=b", "readonly d", "let d=1", "((d = 1))", ": $((d++))",
                          ": ${d:=b}", "[[ d=1 -eq 1 ]]", "eval y", ". y", "source y", "trap y DEBUG",
                          "coproc d { y; }", "for ((d = 0; d < 1; d++)); do :; done", "g() { d=b; }",
                          "alias y=z", "shopt -s x", "$v")
        ],
    ],
)  # fmt: skip
def test_the_value_of_a_variable_is_not_known_where_something_else_may_set_it(text: str) -> None:
    used = [one for one in listed(text) if one.startswith("x ")]
    assert used
    assert all(set(one.split()[1:]) == {"?"} for one in used)


HOME = "/home/ana"


@pytest.mark.parametrize(
    "text",
    [
        "printf '%s\\n' ~ ~/a ~/'b c' ~/$HOME $HOME ${HOME}/a \"$HOME/a b\" x$HOME",
        "printf '%s\\n' {~/a,~/b} {$HOME,c}/d",
        "printf '%s\\n' '~/a' \"~/a\" \\~/a ~'/a' \"~\"/a a~ a/~/b a:~/b -o~/a '$HOME'",
        "d=~/a; e=$HOME/b; printf '%s\\n' $d $e",
        "for d in ~/a $HOME; do printf '%s\\n' $d/b; done",
        "export A=b PATH=~/bin:$PATH; f() { :; }; f; printf '%s\\n' ~/a $HOME",
    ],
)
def test_a_tilde_and_home_are_the_home_folder(text: str) -> None:
    """As bash reads them; what it does not expand keeps its tilde."""
    (found,) = parse([text], HOME)
    words = [word.value for one in found.commands if one.words[0].value == "printf" for word in one.words[2:]]
    ran = subprocess.run(["/bin/bash", "-c", text], env={"HOME": HOME}, capture_output=True, text=True, check=True)
    assert words == ran.stdout.splitlines()


def test_the_folder_and_the_output_of_a_command_may_be_below_home() -> None:
    (found,) = parse(["cd ~/a && cd b && cat *.txt > ~/c"], HOME)
    assert [one.folders for one in found.commands] == [("",), (f"{HOME}/a",), (f"{HOME}/a/b",)]
    assert found.commands[2].redirects[0][1].value == f"{HOME}/c"
    (pattern,) = parse(["cat ~/*.txt"], HOME)
    assert pattern.commands[0].words[1] == ShellWord(f"{HOME}/*.txt", pattern=True)


@pytest.mark.parametrize(
    "other",
    ["HOME=/etc", "HOME=/etc x", "export HOME=/etc", "read HOME", "unset HOME", "printf -v HOME /etc", ". x", "eval x",
     "source x", "declare HOME=/etc", ": ${HOME:=/etc}", "for HOME in /etc; do :; done", "((HOME=1))", "IFS=/", "$v",
     "f() { HOME=/etc; }; f", "getopts x HOME", "v=HOME; read $v", "alias y=HOME=/etc", "builtin y",
     "export $v", 'export "$v=/etc"', "export -n $v", "readonly HOME", "enable -f y z"],
)  # fmt: skip
def test_the_home_folder_is_not_known_where_a_text_may_set_it(other: str) -> None:
    for text in (f"{other}; x ~/a $HOME", f"x ~/a $HOME; {other}"):
        (found,) = parse([text], HOME)
        (used,) = [one.words[1:] for one in found.commands if one.words[0].value == "x" and len(one.words) == 3]
        assert used == (ShellWord("~/a"), ShellWord(None, unknown="parameter"))


@pytest.mark.parametrize("home", [None, "", "/home/a b", "/home/[a]", "/home/$x", "/home/a\nb"])
def test_a_home_folder_that_is_not_plain_is_not_known(home: str | None) -> None:
    (found,) = parse(["x ~/a $HOME"], home)
    assert found.commands[0].words[1:] == (ShellWord("~/a"), ShellWord(None, unknown="parameter"))


def test_only_the_first_variables_of_a_text_are_followed() -> None:
    many = "; ".join(f"a{number}=b; x $a{number}" for number in range(20))
    assert [one for one in listed(many) if one != ":"] == ["x b"] * 16 + ["x ?"] * 4


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("a | b", "a"), ("a 1 2>/dev/null | b | c >d", "a b"), ("x && a | b", "a"), ("a $(y) | b $(z)", "a"),
        ("(a | b)", "a"), ("while x; do a | b; done", "a"),
        *[(text, "") for text in (
            "a |& b", "a 2>&1 | b", "a > c | b", "a < c | b", "a | b < c", "a | b <<< c", "a | b <<E\nE", "{ a; } | b",
            "(a) | b", "a | (b)", "a | { b; c; }", "! { a; } | b", "a && x | { b; }", "a; b", "a & b",
            "a() { x; }; a | b", "alias a=x; a | b", "if a; then x; fi | b", "a | while b; do c; done",
            "PATH=x; a | b",
        )],
    ],
)  # fmt: skip
def test_the_command_whose_output_another_one_reads(text: str, before: str) -> None:
    (found,) = parse([text])
    assert " ".join(one.before[0].value or "?" for one in found.commands if one.before) == before


def test_loops_are_read_again_within_a_bound() -> None:
    """What is longer is read once, and its variable is not known; it is not refused."""
    many = " ".join(f"a{number}" for number in range(100))
    assert len(listed(f"for f in {many}; do x $f; done")) == 100
    assert listed(f"for f in {many}; do x $f y z; done") == ["x ? y z"]
    assert len(listed("for f in a b; do " * 20 + "x $f" + "; done" * 20)) == 2
    nested = "".join(f"for {name} in a b c; do " for name in "defghij")
    assert len(listed(f"{nested} x $d $e $f $g $h $i $j {'; done' * 7}")) < 256


def test_a_document_for_a_group_is_read() -> None:
    (found,) = parse(["{ cat; sort; } <<E\n" + "x" * 60_000 + "\nE\ntouch {a,b}/{c,d}-" + "x" * 200])
    assert [len(one.words) for one in found.commands] == [1, 1, 5]


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("echo {1..5}", ["echo"]),
        ("cp a{01..10..2}.txt b{a..c}/", ["cp"]),
        ("echo {1..3}{a,$(rm x)}", ["rm", "echo"]),
        ("echo {a,{1..3},`rm x`}", ["rm", "echo"]),
        ("echo {1..$(rm x)}", ["rm", "echo"]),
        ("for ((i = 0; i < 5; i++)); do rm $i; done", [":", "rm"]),
        ("((i = $(rm x)))", ["rm", ":"]),
    ],
)
def test_sequences_and_arithmetic_are_read_with_the_commands_in_them(text: str, programs: list[str]) -> None:
    (found,) = parse([text])
    assert (found.refused, [one.words[0].value for one in found.commands]) == (None, programs)


def _stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Another parser in the place of the bundled one, with the digest of what stands there."""
    import hashlib

    path = folder / "shell_parser"
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    note = {"version": "1", "sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
    (folder / "shell_parser.json").write_text(json.dumps(note), encoding="utf-8")
    monkeypatch.setattr("engine.binaries.bundled", lambda name: folder / name)


FAILED = [Parsed(refused="parser_failed")] * 2


@pytest.mark.parametrize(
    "script",
    ["exit 1", "kill -9 $$", "echo", "echo '{}'", "echo '{\"commands\": []}'", "printf '[]\\n[]\\n'", "cat",
     "printf '\\377'",
     "printf 'null\\n{\"commands\": 5}\\n'", "printf '{\"commands\":[{}]}\\n{\"commands\":[{}]}\\n'"],
)  # fmt: skip
def test_output_of_a_failing_parser_is_discarded(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stand_in(tmp_path, monkeypatch, script)
    assert parse(["ls", "rm"]) == FAILED


def test_a_parser_that_hangs_is_ended_and_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stand_in(tmp_path, monkeypatch, f"echo $$ >{tmp_path}/pid; exec sleep 600")
    monkeypatch.setattr(shell, "SECONDS", 0.5)
    assert parse(["ls", "rm"]) == FAILED
    pid = int((tmp_path / "pid").read_text(encoding="utf-8"))
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_missing_or_changed_parser_is_said_to_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _stand_in(tmp_path, monkeypatch, "exit 0")
    (tmp_path / "shell_parser").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    assert parse(["ls"]) == [Parsed(refused="parser_missing")]
    (tmp_path / "shell_parser").unlink()
    assert parse(["ls"]) == [Parsed(refused="parser_missing")]
