"""What is in a command: its simple commands, their words, and what a rule has to permit beside them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.facts.tools.commands import (
    LONGEST,
    MOST_COMMANDS,
    MOST_FOLDERS,
    MOST_WORDS,
    CommandFacts,
    commands,
    hands_secret,
    host_pieces,
    is_prefix,
    parts,
    path_pieces,
    url_of,
)
from tests.conftest import ROWS
from tests.lanes import examples


def facts(text: Any, *, joined: bool = True) -> list[CommandFacts]:
    return commands([text], ROWS, joined=[joined])[0]


def words(text: Any) -> list[tuple[str, ...] | None]:
    return [one.words for one in facts(text)]


def named(text: Any) -> set[tuple[str, str]]:
    """What a rule has to permit, as kind and name."""
    return {(part.kind, part.name) for one in facts(text) for part in one.parts}


# covers: B10
@pytest.mark.parametrize(
    "text",
    [
        "ssh -p 22 -i key root@host rm a", "ssh host 'ls; rm a'", "ssh -t host 'sudo rm a'", "ssh host rm '*.log'",
        "su -c 'rm a' user", "su - user -c 'rm a'", "su user --command='rm a'", "su -lc 'rm a'",
        "runuser -u user rm a", "runuser -u user -- rm a", "runuser - user -c 'rm a'", "runuser -l user -c 'rm a'",
        "sg group 'rm a'", "sg group -c 'rm a'", "pkexec rm a", "setpriv --reuid 1000 rm a", "sudo -p x rm a",
        "docker exec c rm a", "docker exec -it -u root -w /x c rm a", "docker --context x exec c sh -c 'rm a'",
        "docker run --rm -it -v /:/x --network host image rm a", "docker container run --name x image rm a",
        "docker compose -f x.yaml exec -T web rm a", "docker-compose run --rm web rm a", "podman exec c rm a",
        "kubectl exec pod -- rm a", "kubectl -n x exec -it deploy/web -c app -- rm a", "oc exec pod -- rm a",
        "kubectl run x --image busybox --restart=Never --command -- rm a", "lxc exec c -- rm a",
        "chroot --userspec x /srv rm a", "nsenter -t 1 -m -u rm a", "nsenter --target 1 -a -- rm a", "unshare -rm rm a",
        "script -qc 'rm a' /dev/null", "script -q /dev/null rm a", "flock f rm a", "flock -n f -c 'rm a'",
        "parallel rm ::: a b", "parallel -j 4 'rm {}' ::: a b", "parallel rm ::: *.log",
        "tmux new-session -d -s x 'rm a'", "tmux -L x new -d rm a", "tmux send-keys -t x 'rm a' Enter",
        "screen -dmS x rm a", "systemd-run --user -p Nice=5 --unit x rm a", "ip netns exec x rm a",
        "trap 'rm a' EXIT", "fd -e py -x rm {} \\;", "hyperfine -w 3 'rm a'", "conda run -n x rm a", "entr -r rm a",
        "direnv exec . rm a", "gosu x rm a", "nix develop -c rm a", "nix-shell -p x --run 'rm a'",
        "perf stat -r 3 rm a", "valgrind --tool=x rm a", "bunx rm a", "pipx run rm a", "mpirun -n 2 rm a",
        "bash -euo pipefail -c 'rm a'", "sh -o pipefail -O dotglob -c 'rm a'", "bash +x +O x -c 'rm a'",
        "bash -ce 'rm a'", "bash -c -e 'rm a'", "bash -c --norc 'rm a'", "docker run --entrypoint rm",
        "find . -exec rm $X {} +",
        "bash --rcfile x -c 'rm a'", "bash -eo pipefail <<< 'rm a'", "fish -C 'rm a'", "fish --command='rm a'",
        "bash <<EOF\nls; rm $X\nEOF", "sudo sh -s a <<'EOF'\nrm a\nEOF", "sh <<-EOF\n\trm a\n\tEOF",
        "bash -es <<< 'rm a'", "env A=b sh <<< 'rm a'", "env -S sh <<< 'rm a'",
        "bash - <<EOF\nrm a\nEOF", "sudo -s <<EOF\nrm a\nEOF", "su user <<EOF\nrm a\nEOF",
        "ssh host bash -s <<'EOF'\nrm a\nEOF", "ssh host 'cd x && bash' <<< 'rm a'",
        "bash -c 'sudo sh' <<EOF\nrm a\nEOF", "unshare -r <<< 'rm a'", "sudo -u x <<< 'rm a'",
        "docker run --rm --entrypoint rm image a", "docker run --entrypoint=sh image -c 'rm a'",
        "docker compose run --entrypoint rm web a", "podman run --entrypoint '' image rm a",
        "sort --compress-program='rm a' x", "tar -xf x --to-command='rm a'", "tar -I 'rm a' -cf x y",
        "/bin/sh <<EOF\nr\\\\m a\nEOF", "docker exec -i c sh <<EOF\nrm a\nEOF", "ssh host <<'EOF'\nrm a\nEOF",
        "find . -exec sh -c 'rm {}' \\;", "find . -exec bash -lc 'cd x && rm {}' _ {} +",
        "git submodule foreach 'rm a'", "git submodule foreach --recursive rm a", "git bisect run rm a",
        "uv run rm a", "uv run --with x -p 3.12 -- rm a", "poetry run rm a", "pipenv run rm a", "bundle exec rm a",
        "npx rm a", "npx -y -p x rm a", "npx -c 'rm a'", "npm exec -- rm a", "pnpm exec rm a", "sudo -i rm a",
        "sudo -iu x rm a",
        "env -S 'rm a'", "env - rm a", "zsh -c 'rm a'", "sshpass -p x ssh host rm a",
        "sudo -Zu x rm a", "sudo --new x rm a", "sudo --new x --newer y rm a", "strace -Zfo x rm a", "bash -ic 'rm a'",
        "bash -Zc 'rm a'", "bash --new x -c 'rm a'", "su -Pc 'rm a' x", "ssh -Zp 22 host rm a", "ssh --new x host rm a",
        "docker exec --new x c rm a", "docker --new x exec c rm a", "pnpm --filter x exec rm a", "poetry -C x run rm a",
        "xargs --new x rm", "rbash -c 'rm a'", "linux64 rm a",
        "bash +x* -c 'rm a'", "timeout --signal=K* 5 rm a", "sudo -u* rm a",
        "/usr/bin/sudo rm a", "/bin/bash -c 'rm a'", "/usr/bin/docker exec c rm a", "/usr/bin/find . -exec rm {} +",
    ],
)  # fmt: skip
def test_commands_behind_other_programs_are_found(text: str) -> None:
    assert "rm" in {one[0] for one in words(text) if one}


@pytest.mark.parametrize(
    "text", ["git --namespace x push", "git --new x push -f", "git --new x --newer y -q push", "git -Zc x push"]
)
def test_an_option_that_no_row_lists_hides_no_subcommand(text: str) -> None:
    named = {one.words[:2] for one in facts(text) if one.words} | {one.short[:2] for one in facts(text)}
    assert ("git", "push") in named


def test_a_command_with_many_options_that_no_row_lists_is_refused() -> None:
    assert len(facts(f"git -{'Z' * 2_000}c x {'a ' * 2_000}")) == 2
    assert facts(f"docker exec {'--new x ' * 500} c rm a")[-1].refused == "size"
    assert "size" in {one.refused for one in facts(f"bash {'-Zc x ' * 1_900}")}


@pytest.mark.parametrize(
    "text",
    [
        "ssh git@host", "ssh -T git@github.com", "docker ps -a", "docker compose up -d", "docker run -d --name x image",
        "kubectl get pods -n x", "su - user", "tmux ls", "tmux new-session -d -s x", "screen -ls", "ip addr show",
        "python script.py -c x", "awk '{print $1}' a", "screen -r x", "script out.txt", "flock 9", "./sudo rm",
        "trap - EXIT", "cat <<EOF\nrm a\nEOF", "env -i A=b <<EOF\nrm a\nEOF",
        "grep", "git -C",
        "bash x.sh <<EOF\nrm a\nEOF", "python - <<'EOF'\nprint('rm')\nEOF",
    ],
)  # fmt: skip
def test_commands_that_start_no_other_contain_no_inner_command(text: str) -> None:
    assert [one.refused for one in facts(text)] == [None]


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("src -type f -name '*.py'", True),
        ("-type f -name '*.py'", True),
        ("$X -type f -name '*.py'", False),
        ("src/* -type f -name '*.py'", False),
        (".. -type f -name '*.py'", False),
        ("src .. -type f -name '*.py'", False),
        ("src -type f -name '*.py' -name '*'", True),
        ("src -type f -name '*' -name '*.py'", True),
        ("src -type f -name '*.py' -o -name '*'", False),
        ("src -type f -name '*.py' -print", True),
        ("src -type f -name '*.py' -fprint x", False),
        ("src -type f", False),
    ],
)
def test_what_find_hands_on_is_known_only_by_the_end_of_its_name(text: str, *, known: bool) -> None:
    assert (("word", "input") not in named(f"find {text} -exec cat {{}} +")) is known


def test_another_command_without_words_is_refused() -> None:
    assert facts("find . -exec \\;")[-1].refused == "program"


def test_a_value_that_is_a_pattern_has_to_be_permitted() -> None:
    assert ("word", "pattern") in named("git -C s* status")


# covers: B10
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("git status", [("git", "status")]),
        ("git  log HEAD~1 --format=%H", [("git", "log", "HEAD~1", "--format=%H")]),
        ("git commit -m 'a; b' \"c d\" ''", [("git", "commit", "-m", "a; b", "c d", "")]),
        ("g'i't st\\atus", [("git", "status")]),
        ("ls; rm a", [("ls",), ("rm", "a")]),
        ("ls|rm && ps || df & du", [("ls",), ("rm",), ("ps",), ("df",), ("du",)]),
        ("ls\nrm a", [("ls",), ("rm", "a")]),
        ("echo $(rm a) `df`", [("rm", "a"), ("df",), ("echo",)]),
        ("cat <<E\n$(rm a)\nE", [("rm", "a"), ("cat",)]),
        ("for f in $(rm a); do ls $f; done", [("rm", "a"), ("ls",)]),
        ("if a; then b; else c; fi", [("a",), ("b",), ("c",)]),
        ("cp {a,b}/x c", [("cp", "a/x", "b/x", "c")]),
        ("ls *.py x", [("ls",)]),
        ("x=1", [(":",)]),
        ("> f", [(":",)]),
        ("./run a", [("./run", "a")]),
        (". a/b", [(".", "a/b")]),
        ("/bin/ls", [("/bin/ls",)]),
        ("[ -f a ]", [("[", "-f", "a", "]")]),
        ("timeout -k 5 10 rm a", [("timeout", "-k", "5", "10", "rm", "a"), ("rm", "a")]),
        ("env -u A B=1 rm a", [("env", "-u", "A", "B=1", "rm", "a"), ("rm", "a")]),
        ("find . -exec rm {} + -print", [("find", ".", "-exec", "rm", "{}", "+", "-print"), ("rm",)]),
        ("xargs -n 1 rm -f", [("xargs", "-n", "1", "rm", "-f"), ("rm", "-f")]),
        ("sudo -u root rm a", [("sudo", "-u", "root", "rm", "a"), ("rm", "a")]),
        ("command -p rm a", [("command", "-p", "rm", "a"), ("rm", "a")]),
        ("command -v rm", [("command", "-v", "rm")]),
        ("exec -a x rm a", [("exec", "-a", "x", "rm", "a"), ("rm", "a")]),
        ("taskset -c 0 rm a", [("taskset", "-c", "0", "rm", "a"), ("rm", "a")]),
        ("flock -w 5 f rm a", [("flock", "-w", "5", "f", "rm", "a"), ("rm", "a")]),
        ("eval 'ls; rm' a", [("eval", "ls; rm", "a"), ("ls",), ("rm", "a")]),
        ('eval ls "$x" a', [("eval", "ls"), ("ls",)]),
        ("watch rm *.log", [("watch", "rm"), ("rm",)]),
        ('eval "$x"', [("eval",)]),
        ("watch -n 1 'ls; rm a'", [("watch", "-n", "1", "ls; rm a"), ("ls",), ("rm", "a")]),
        ("bash -lc 'ls; rm a'", [("bash", "-lc", "ls; rm a"), ("ls",), ("rm", "a")]),
        ("bash -c 'timeout 5 sh -c ls'", [("bash", "-c", "timeout 5 sh -c ls"), ("timeout", "5", "sh", "-c", "ls"),
                                           ("sh", "-c", "ls"), ("ls",)]),
    ],
)  # fmt: skip
def test_simple_commands(text: str, found: list[tuple[str, ...]]) -> None:
    assert words(text) == found


# covers: B10
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ls 'a", "syntax"), ("ls |", "syntax"), ("ls )", "syntax"), ("select f in a; do ls; done", "syntax"),
        ("echo x >&-a", "syntax"), ("exec {fd}> x", "syntax"), ("", "empty"), ("# ls", "empty"),
        ("ls\r", "control"), ("ls \x00", "control"), ("ls \u202ea", "control"), ("ls\u00a0a", "control"),
        ("\ud800", "control"),
        ("ls " + "x" * LONGEST, "control"), ("echo $(" * 100 + "ls" + ")" * 100, "nesting"), ("ls;" * 2_001, "nesting"),
        ("ls;" * MOST_COMMANDS + "ls", "size"), ("{a,b}" * 20, "size"),
        ("$X a", "program"), ("$(ls) a", "program"), ("*/ls", "program"), ("../ls", "program"), ("a/../ls", "program"),
        ("ls/", "program"), ("-ls", "program"), (".. f", "program"), ("./ f", "program"),
        ([], "words"), ([5, "a"], "words"), (["ls", None], "words"), (["ls", "a\u202eb"], "words"),
        (["ls", "a\rb"], "words"), (["git status"], "program"),
        ("bash -c 'bash -c \"bash -c \\\"bash -c ls\\\"\"'", "nesting"),
    ],
)  # fmt: skip
def test_an_unreadable_command_is_refused_with_its_reason(text: Any, reason: str) -> None:
    refused = [one for one in facts(text) if one.refused is not None]
    assert [one.refused for one in refused] == [reason]
    assert refused[0].words is None


# covers: B10
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("git log -n 3 --oneline", {("option", "-n"), ("option", "--oneline")}),
        ("git --output=x log", {("option", "--output")}),
        ("git -c a=b log --output x", {("option", "-c"), ("option", "--output")}),
        ("git frob -x", {("subcommand", "subcommand"), ("option", "-x")}),
        ("sort -uo x", {("option", "-u"), ("option", "-o")}),
        ("sort -zQ/etc", {("option", "-z"), ("option", "-Q")}),
        ("ls -- -x", set()),
        ("head -20 a", {("option", "-#")}),
        ("tool -abc --d=e", {("option", "-a"), ("option", "--d")}),
        ("./sort -o x", {("option", "-o")}),
        ("echo $x", {("word", "parameter")}),
        ("echo `ls`", {("word", "substitution"), ("syntax", "substitution")}),
        ("git commit -m \"$(cat <<'E'\na $b\n\nc\nE\n)\"", {("option", "-m")}),
        ("echo $(cat <<'E'\na\nE\n)", {("word", "substitution"), ("syntax", "substitution")}),
        ('echo "$(cat <<E\na\nE\n)"', {("word", "substitution"), ("syntax", "substitution")}),
        ("echo \"`cat <<'E'\n\\\\$x\nE\n`\"", {("word", "substitution"), ("syntax", "substitution")}),
        ("echo \"$(cat f <<'E'\na\nE\n)\"", {("word", "substitution"), ("syntax", "substitution")}),
        ("echo \"$(cat <<'E' >f\na\nE\n)\"",
         {("word", "substitution"), ("syntax", "substitution"), ("redirect", "write")}),
        ("alias cat=ls; echo \"$(cat <<'E'\na\nE\n)\"",
         {("word", "substitution"), ("syntax", "substitution"), ("code", "alias")}),
        ("read PATH; echo \"$(cat <<'E'\na\nE\n)\"", {("word", "substitution"), ("syntax", "substitution")}),
        ("for PATH in /e; do echo \"$(cat <<'E'\na\nE\n)\"; done",
         {("variable", "PATH"), ("syntax", "loop"), ("word", "substitution"), ("syntax", "substitution")}),
        ("PATH=/e; echo \"$(cat <<'E'\na\nE\n)\"",
         {("variable", "PATH"), ("word", "substitution"), ("syntax", "substitution")}),
        ("echo $((1+2))", {("word", "arithmetic")}),
        ("echo $((x))", {("word", "arithmetic"), ("syntax", "arithmetic")}),
        ("echo ${x@P}", {("word", "parameter"), ("syntax", "expansion")}),
        ("echo ${!x} ${x[1]}", {("word", "parameter"), ("syntax", "expansion")}),
        ("[[ $x -eq 0 ]]", {("word", "parameter"), ("syntax", "arithmetic")}),
        ("a[$x]=1", {("variable", "a"), ("syntax", "arithmetic")}),
        ("let x=1", {("syntax", "arithmetic")}), ("((a))", {("syntax", "arithmetic")}),
        ("for ((i=0; i<5; i++)); do :; done", {("syntax", "loop"), ("syntax", "arithmetic")}),
        ("echo {1..5}", {("word", "braces")}),
        ("declare -n r=x", {("option", "-n"), ("variable", "r")}),
        ("CI=1 ls", {("variable", "CI")}),
        ("eval ls", {("code", "eval")}), ("source f", {("code", "source")}), (". f", {("code", ".")}),
        ("command ls", {("code", "command")}), ("pushd a", {("code", "pushd")}),
        ("command -v ls", {("option", "-v")}), ("command -pV ls", {("option", "-p"), ("option", "-V")}),
        ("hash -p a b", {("option", "-p")}),
        ("cmake -DBUILD_TESTING=ON -DX=1", {("option", "-DBUILD_TESTING"), ("option", "-D"), ("option", "-X")}),
        ("ls 2>/dev/stderr >/dev/stdout", set()), ("ls >/dev/tty", {("redirect", "write")}),
        ("env CI=1 ls", {("variable", "CI")}),
        ("ls *.py a*", {("pattern", "pattern")}),
        ("ls a*", set()),
        ("ls > f 2>&1 </dev/null", {("redirect", "write")}),
        ("ls 2>&1 <&3 2>&3- 4>&-", set()), ("ls > >(cat)", {("syntax", "process")}),
        *((f"ls {into}", {("redirect", "write")}) for into in (">& f", ">&1234", "<&x", "<> f", ">| f")),
        *((f"ls {into}", {("redirect", "write"), ("word", "redirect")}) for into in (">&$x", "<&f*")),
        ("ls > $f", {("redirect", "write"), ("word", "redirect")}),
        ("ls > {f,g}", {("redirect", "write"), ("word", "redirect")}),
        *((f"ls {sign}! f", {("redirect", "write"), ("word", "redirect")}) for sign in (">", ">>", "&>")),
        ("ls > '!' f!", {("redirect", "write")}),
        *((f"cat {word}", {("word", "parameter")}) for word in ("$~x", "a$=x", '"$^x"')),
        ("cat ***/x", {("word", "pattern")}), ("cat '***/x' **/x", {("pattern", "pattern")}),
        *((f"for x in a; do cat {word}; done", {("variable", "x"), ("syntax", "loop"), ("word", "parameter")})
          for word in ("$x:s/a/b/", '"$x:h"', "$x[1]", '"$x[1,2]"')),
        ("for x in a; do cat ${x}:s $x: $x:1 $x.b; done", {("variable", "x"), ("syntax", "loop")}),
        ("cat \\\\$~x", {("word", "parameter")}), ("cat \\$~x '$=x' a$ b=c$", set()),
        ("cat < f <<E\nE", set()),
        ("uniq a", set()),
        ("uniq a b", {("word", "operand")}), ("uniq a*", {("word", "operand")}), ("xxd a b", {("word", "operand")}),
        ("xxd -cols 16 a b", {("option", "-c"), ("word", "operand")}),
        ("xxd -ar a", {("option", "-a"), ("option", "-r")}),
        ("{ ls; } > f", {("redirect", "write"), ("syntax", "group")}),
        ("ls &", {("syntax", "background")}),
        ("f() { ls; }", {("syntax", "function"), ("syntax", "group")}),
        ("cat <(ls)", {("syntax", "process")}),
        ("sed 1p f", {("script", "script")}),
        ("sed -n -e 1p f", {("option", "-n"), ("option", "-e"), ("script", "script")}),
        ("bash x", set()),
        ("bash -c $x", {("option", "-c"), ("word", "parameter")}),
        ("cd", {("word", "folder")}), ("cd -", {("word", "folder")}),
        ("cd $x", {("word", "parameter"), ("word", "folder")}),
        ("cd a", set()),
        ("sort -ox* a", {("word", "option")}), ("sort --files0-from=x* a", {("option", "--files0-from")}),
        ("sort --compress-program=x* a", {("word", "option")}), ("find . -del* x", {("word", "option")}),
        ("grep --include=*.py a b", {("option", "--include")}), ("timeout --signal=K* 5 ls", {("option", "--signal")}),
        ("bash -c 'rm a'*", {("option", "-c"), ("word", "pattern")}),
        ("bash -c rm\\ x* a*", {("option", "-c"), ("word", "pattern")}),
        ("bash -c'rm x'*", {("word", "option")}), ("watch 'rm x'*", {("word", "pattern")}),
        ("watch ls a*", {("word", "pattern")}), ("export 'A=b'*", {("word", "pattern")}),
        ("timeout 5* ls", {("word", "pattern")}),
        ("cat .* a", {("word", "pattern")}), ("cat a/.?/b", {("word", "pattern")}),
        ("cat .[.] a", {("word", "pattern")}),
        ("cat .??* .[!.]* a.* .a* ../*.c", set()),
        ("xargs rm", {("word", "input")}),
        ("fd -e c -x rm", {("option", "-e"), ("option", "-x"), ("word", "input")}),
        ("fd -X rm {.}.o", {("option", "-X"), ("word", "input")}),
        ("fd -Hx rm", {("option", "-H"), ("option", "-x"), ("word", "input")}),
        ("fd -xrm", {("option", "-x"), ("word", "input")}),
        ("fd --exec=rm echo", {("option", "--exec"), ("word", "input")}),
        ("xargs -I a head -a", {("option", "-I"), ("word", "input")}),
        ("git log -U --output=a", {("option", "-U"), ("option", "--output")}),
        ("git diff -L --outp=a", {("option", "-L"), ("option", "--output")}),
        ("grep -m -5 a", {("option", "-m")}), ("find . -mtime -7", {("option", "-mtime")}),
        ("git branch --del a", {("option", "--del"), ("option", "--delete"), ("word", "operand")}),
        ("python -m venv x", {("option", "-m")}),
        ("python -m frob -x", {("option", "-m"), ("option", "-x")}),
    ],
)  # fmt: skip
def test_command_parts_that_a_rule_must_permit_are_listed(text: str, found: set[tuple[str, str]]) -> None:
    assert named(text) == found


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("curl -o /dev/null -D/dev/stdout --stderr=/dev/stderr a", (2, 3, 4)),
        ("cat /dev/stdin a", (1,)),
        ("dd if=/dev/zero of=/dev/null", (1, 2)),
        ("cat /dev/tty /dev/nullx ./dev/null /dev/null/a", ()),
        ("mv a /dev/null", ()),
        ("/usr/bin/cat /dev/null", ()),
        ("grep -n a /dev/null", (3, 2)),
    ],
)
def test_streams_name_no_file_where_a_program_only_opens_them(text: str, places: tuple[int, ...]) -> None:
    assert facts(text)[0].nameless == places


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("[ -f .env ]", (1, 2, 3)), ("[[ -f .env ]]", (1,)), ("test -f .env", (1, 2)),
        ("echo .env >> .gitignore", (1,)), ("echo .e* .env", (2,)), ("echo .env | bash", ()),
        ("bash <(echo .env)", ()), ("{ echo .env; } | bash", ()), ("cat $(echo .env)", ()),
        ("echo .env > >(bash)", ()), ("{ echo .env >&3; } 3> >(bash)", ()),
        ("bash -c 'echo .env' | bash", ()), ("timeout 5 sh -c 'echo .env' | sh", ()), ("bash -c 'echo .env'", (1,)),
        ("coproc bash; echo .env >&60", ()), ("echo .env >&2", (1,)),
        ("printf -v a .env", ()), ("./echo .env", ()),
        ("git check-ignore -v .env", (2, 3)), ("git -C /etc status .env", (2,)),
        ("git commit -am 'Ignore .env' .env", (3,)), ("git commit -m.env", (2,)), ("git commit -m .env*", ()),
        ("git log --grep=.env -- .env", (2,)), ("grep -ne .env .env", (2,)), ("find .env -name .env", (3,)),
    ],
)  # fmt: skip
def test_texts_name_no_file_where_no_other_command_gets_them(text: str, places: tuple[int, ...]) -> None:
    found = facts(text)
    assert [one for one in found if ".env" in "".join(one.rest)][-1].nameless == places


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("timeout 5 sed -n /a/p b", (3, 4, 5)),
        ("xargs grep /a", (2,)),
        ("xargs -I{} cp {} /b/{}", ()),
        ("docker exec a cat /b", (4,)),
    ],
)
def test_words_of_another_command_count_for_it_alone(text: str, places: tuple[int, ...]) -> None:
    assert facts(text)[0].nameless == places


@pytest.mark.parametrize(
    ("text", "scripts"),
    [
        ("sed -i '' s/a/b/ c", ["s/a/b/"]),
        ("sed -i '' -e s/a/b/ c", ["s/a/b/"]),
        ("sed -i '' /a/d c", [""]),
        ("sed -i ''", [""]),
        ("sed '' s/a/b/", [""]),
        ("python -c 'f(0)'", ["f(0)"]),
        ("perl -0pi -e s/a/b/ c", ["s/a/b/"]),
    ],
)
def test_the_script_of_a_command(text: str, scripts: list[str]) -> None:
    assert [part.text for part in facts(text)[0].parts if part.kind == "script"] == scripts


def test_a_program_by_a_path_has_a_row_where_one_names_the_path() -> None:
    assert [one.words for one in facts("/bin/zsh -lc 'rm a'")][1:] == [("rm", "a")]
    assert {part.program for part in facts("/opt/zsh -lc 'rm a'")[0].parts} == {None}


def test_the_code_of_a_sourced_file_is_in_the_word_that_names_it() -> None:
    assert [(part.kind, part.index) for part in facts("source a/b")[0].parts] == [("code", 1)]
    assert [(part.kind, part.index) for part in facts("eval ls")[0].parts] == [("code", 0)]


def test_a_word_list_is_read_as_a_command_and_as_joined_text() -> None:
    told = ["git", "commit", "-m", "a; rm b"]
    assert words(["git", "log"]) == [("git", "log")]
    assert words(told) == [tuple(told), ("git", "commit", "-m", "a"), ("rm", "b")]
    assert words(["curl", "-H", "Accept: a"]) == [("curl", "-H", "Accept: a")]
    assert [one.words for one in facts(told, joined=False)] == [tuple(told)]
    assert words(["rm", "$X"]) == [("rm", "$X"), ("rm",)]


def test_words_without_the_options_before_a_subcommand() -> None:
    assert [one.short for one in facts("git --no-pager push -f")] == [("git", "push", "-f")]
    assert [one.short for one in facts("git push -f")] == [()]


def test_only_leading_words_are_compared_but_all_are_searched() -> None:
    (one,) = facts("ls " + "a " * 100 + "/etc/passwd")
    assert one.words == ("ls", *["a"] * (MOST_WORDS - 1))
    assert one.rest[-1] == "/etc/passwd"
    (one,) = facts("ls 'x; /etc/passwd")
    assert "/etc/passwd" in one.rest


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("git -C a --no-pager log", [("git", "-C", "a"), ("git", "--no-pager", "log")]),
        ("git --no-pager -C a -C /b log", [("git", "-C", "a"), ("git", "-C", "/b"), ("git", "--no-pager", "log")]),
        ("git -C a -c b=c log", [("git", "-C", "a"), ("git", "-c", "b=c", "log")]),
        ("sudo git -C a push", [("sudo", "git", "-C", "a", "push"), ("git", "-C", "a"), ("git", "push")]),
        *[(text, [tuple(text.split())]) for text in ("git -C", "git -C a", "git log -C b", "git -Ca log",
                                                      "git --frob -C a log", "git -c b=c -C a log")],
        ("git -C $a log", [("git", "-C")]), ("git -C a* log", [("git", "-C")]),
    ],
)  # fmt: skip
def test_an_option_that_changes_the_folder_is_a_command_of_its_own(text: str, found: list[tuple[str, ...]]) -> None:
    assert words(text) == found


def test_a_command_behind_such_an_option_runs_in_the_folder() -> None:
    first, second = facts("git -C a log ../b > c")
    assert ([one.value for one in first.redirects], second.redirects) == (["c"], ())
    assert (first.folders, second.places) == (("a",), ("a",))
    assert [(part.kind, part.name) for part in first.parts] == [("option", "-C"), ("redirect", "write")]
    for folder in ("~", "''", "-", "-x"):
        first, second = facts(f"git -C {folder} log")
        assert (("word", "folder") in {(part.kind, part.name) for part in first.parts}, second.places) == (True, ())


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("find a b -type f -name '*.c' | xargs -0 grep x", ("grep", "x", "a/.c", "b/.c")),
        ("find . -type f '(' -name '*.c' -o -iname b.h ')' -print0 | xargs cat", ("cat", "./.c", "./b.h")),
        ("find -name '*.c' ! -name 'b*' -a -type f -maxdepth 2 | xargs cat", ("cat", "./.c")),
        ("find . -type f -name '*.c' -o -type f -name '*.h' | xargs wc -l", ("wc", "-l", "./.c", "./.h")),
        ("find . -type f -name '*.c' | xargs -I_ head _ b", ("head", "./.c", "b")),
        ("find . -type f " + "'(' " * 8 + "-name '*.c' " + "')' " * 8 + "| xargs cat", ("cat", "./.c")),
    ],
)
def test_xargs_reads_the_files_that_find_names(text: str, found: tuple[str, ...]) -> None:
    assert words(text)[-1] == found
    assert ("word", "input") not in {(part.kind, part.name) for part in facts(text)[-1].parts}


@pytest.mark.parametrize("command", ["| xargs -0 wc -l", "| xargs stat -c %s", "-exec wc -l '{}' +"])
@pytest.mark.parametrize("tests", ["a -name '*.c'", "a -type f", "a -type f -name '*'", "a -name '*.c' -o -type f"])
def test_what_only_counts_may_get_any_file_below_the_folder(tests: str, command: str) -> None:
    last = facts(f"find {tests} {command}")[-1]
    assert {"a/", "a/.c"}.intersection(last.rest)
    assert ("word", "input") not in {(part.kind, part.name) for part in last.parts}


@pytest.mark.parametrize(
    "text",
    [
        "find -L a -name '*.c' | xargs wc -l", "find a -follow | xargs wc -l", "find ../a -type f | xargs wc -l",
        "find a -name '*.c' -fprint x | xargs wc -l", "find a -name '*.c' -printf '%l' | xargs wc -l",
        "find a -name '*.c' | xargs wc --files0-from", "find a -name '*.c' | xargs ls", "find $a -type f | xargs wc -l",
        "find a -name '*.c' | xargs sh -c 'wc -l'", "find a -name '*.c' | xargs ./wc -l", "find a | cat | xargs wc -l",
        "find -L a -name '*.c' -exec wc -l '{}' +", "find a -name '*.c' -exec ls '{}' +",
    ],
)  # fmt: skip
def test_any_other_files_and_programs_are_not_known(text: str) -> None:
    assert not any({"a/", "a/.c"}.intersection(one.rest) for one in facts(text))


@pytest.mark.parametrize("text", ["ls -d .*", "ls -ld .*", "ls --directory a .?", "ls -d a/.*"])
def test_a_list_of_names_may_have_the_folder_above(text: str) -> None:
    assert ("word", "pattern") not in named(text)


@pytest.mark.parametrize(
    "text",
    ["ls .*", "ls -a .*", "ls -d .*/*", "ls -d .?/x*", "ls .* -d", "cat -d .*", "stat .*", "ls -D .*", "ls -- -d .*"],
)
def test_a_pattern_for_the_folder_above_is_not_known_elsewhere(text: str) -> None:
    assert ("word", "pattern") in named(text)


@pytest.mark.parametrize(
    "tests",
    [
        "-name '*.c'", "-type f", "-type f -name '*'", "-type f -name '*.*'", "-type f -o -name '*.c'",
        "-type f -name '*.c' -o -name '*.h'", "-name '*.c' -o -type f -name '*.h'", "-type f ! -name '*.c'",
        "-type f ! '(' -name '*.c' ')'", "! -type f -name '*.c'", "-type f,l -name '*.c'", "-type l -name '*.c'",
        "-type f -name '*.c' , -type f", "-type f '(' -name '*.c'", "-type f -name '*.c' ')'", "-type f -name $a",
        "-type f -name *.c", "-type f -name '*.c' -printf /etc/x", "-type f -name '*.c' -ls",
        "-type f -name '*.c' -delete",
        "-type f -name '*.c' -exec echo a ';'", "-L -type f -name '*.c'", "-type f -name '*.c' -o",
        "-type f -name '*.c' -follow", "-type f -name", "-type f -name '*.c' -print -o -print",
        "../a -type f -name '*.c'", "-type f -name '*.c' -o -type f", "-type f -o -type f -name '*.c'",
        "-type f -newer a.c", "-type f -newer '*.c'", "'(' -type f -name '*.c'",
        "-type f " + "-not " * 3_000 + "-name '*.c'", "-type f -name '*.c' !", "-type f -name '*.c' -not",
        *["-type f " + "'(' " * many + "-name '*.c' " + "')' " * many for many in (9, 1_000)],
    ],
)  # fmt: skip
def test_xargs_may_read_any_file_where_find_says_less(tests: str) -> None:
    assert ("word", "input") in {(part.kind, part.name) for part in facts(f"find . {tests} | xargs cat")[-1].parts} or (
        facts(f"find . {tests} | xargs cat")[-1].refused is not None
    )


@pytest.mark.parametrize(
    "inner",
    [
        "",
        "rm",
        "sort",
        "rg x",
        "sed 1p",
        "sh",
        "timeout 5 cat",
        "grep -f",
        "cat $a",
        "-a b cat",
        "-I{} cat a{}",
        "-i cat",
    ],
)
def test_xargs_hands_on_unknown_files_to_what_may_do_more_than_read(inner: str) -> None:
    found = facts(f"find . -type f -name '*.c' | xargs {inner}")
    assert not any(word.startswith("./") for one in found for word in one.words or ())


def test_every_command_of_a_text_may_run_in_each_of_its_folders() -> None:
    found = facts("ls; cd a && cd ./b/; bash -c 'cd c'")
    assert {one.folders for one in found} == {("a", "a/b", "b", "a/c", "a/b/c", "b/c", "c")}
    many = facts("; ".join(f"cd d{number}" for number in range(MOST_FOLDERS)))
    assert {one.refused for one in many} == {"folders"}


@pytest.mark.parametrize(
    ("text", "folders", "places"),
    [
        ("cd a; cd /b; ls", ("a", "/b"), ("", "/b", "a")),
        ("cd a; git -C /b log", ("a", "/b"), ("/b",)),
        ("git -C a -C /b log", ("a", "/b"), ("/b",)),
        ("cd a && bash -c 'cd /b && cat x'", ("a", "/b"), ("/b",)),
        ("cd /a; bash -c 'cd b; cat x'", ("/a", "/a/b", "b"), ("", "/a", "/a/b", "b")),
    ],
)
def test_an_absolute_folder_is_below_no_other(text: str, folders: tuple[str, ...], places: tuple[str, ...]) -> None:
    last = facts(text)[-1]
    assert (last.folders, last.places) == (folders, places)


def test_folders_are_not_combined_beyond_their_limit() -> None:
    """Each of many folders below each earlier one would be more than memory can hold."""
    many = facts("; ".join(f"cd {number}" for number in range(MOST_COMMANDS)))
    assert [one.refused for one in many] == ["folders"] * MOST_COMMANDS


def test_only_plain_words_form_a_command_prefix() -> None:
    assert all(map(is_prefix, [["git", "status"], ["./run"], ["["], [":"], ["/bin/ls"], [".", "a"]]))
    odd: list[list[str]] = [[], [""], ["git", ""], ["git", "a;b"], ["$x"], ["-x"], ["../x"], ["a"] * (MOST_WORDS + 1)]
    assert not any(map(is_prefix, odd))


@pytest.mark.parametrize(
    ("word", "url"),
    [
        ("https://a.example.com", "https://a.example.com/"),
        ("https://a.example.com:8443", "https://a.example.com:8443/"),
        ("https://a.example.com/b?c=d#e", "https://a.example.com/b?c=d"),
        ("https://a.example.com#@evil.org/", "https://a.example.com#@evil.org/"),
        ("https://a.example.com/#@evil.org", "https://a.example.com/#@evil.org"),
        ("https://a@b.example.com", "https://a@b.example.com"),
        ("HTTPS://a.example.com", "HTTPS://a.example.com"),
    ],
)
def test_a_url_as_it_is_requested(word: str, url: str) -> None:
    assert url_of(word) == url


def test_the_parts_of_a_word() -> None:
    assert parts("--file=/etc/passwd") == ("--file=/etc/passwd", "/etc/passwd")
    assert parts("-I/usr") == ("-I/usr", "/usr")
    assert parts("a") == ("a",)


def test_possible_paths_in_a_word_are_found() -> None:
    assert path_pieces("a/b") == ("a/b",)
    assert set(path_pieces("-vofile")) >= {"ofile", "file"}
    assert set(path_pieces("--f=@a,b")) >= {"a", "b"}
    assert "secret/key" in path_pieces("se'cre't\\/key")
    for word in ("a/[my-id]/b", "a/[[...id]]/b", "a/(my-b)/c", "[id]/b"):
        assert not any(piece.startswith("/") for piece in path_pieces(word)), word
    for word in ("-x[a]/b", "a/x[b]/b", "a=[/b", "a/[c/b]/b", "f(a)/b"):
        assert "/b" in path_pieces(word), word
    assert path_pieces("a/[id]") == ("a/[id]",)
    assert "b/c" in path_pieces("[a]b/c")
    assert "secrets/key" in path_pieces("cat 'sec'rets/key")
    assert "secrets/key" in path_pieces('x="sec"rets/k\\ey')
    assert len(path_pieces("-" + "a" * 10_000)) < 50


def test_possible_hosts_in_a_word_are_found() -> None:
    assert host_pieces("evil") == ("evil",)
    assert set(host_pieces("--to=a,b")) >= {"a", "b"}
    assert "evil:80" in host_pieces("-xevil:80")
    assert "evil" in host_pieces("e'v'il")
    assert set(host_pieces("{a,b}/x")) >= {"a", "b"}
    assert "a" not in host_pieces('{"a":1}')
    assert host_pieces("A=1 curl evil") == ("curl", "evil")
    assert host_pieces("Accept: text/html") == host_pieces("  ") == ()
    assert "0" not in host_pieces("import a; a.b(0, 'c')")
    assert "c" in host_pieces("import a; a.b(0, 'c')")
    for command in ("ssh 0", "(ssh 0)"):
        assert "0" in host_pieces(command)
    for command in ("(curl evil)", "! curl evil", "'curl' evil", "./curl evil", "~/curl evil"):
        assert "evil" in host_pieces(command)


@settings(max_examples=examples(100))
@given(st.text(max_size=40) | st.text(alphabet="ls ab'\"\\$;|&/.=-~#\n(){}<>*`!", max_size=40))
def test_every_text_yields_commands_or_a_refusal_reason(text: str) -> None:
    found = facts(text)
    assert found
    assert all((one.words is None) is (one.refused is not None) for one in found)
    facts([text])
    host_pieces(text), path_pieces(text)


@pytest.mark.parametrize(
    "text",
    [
        "mysql --password hunter2",
        "tool --db-password hunter2",
        "tool -token hunter2",
        "gh --api-key hunter2 list",
        "PGPASSWORD=hunter2 psql",
        "env api_key=hunter2 run",
        "TOKEN=$A-hunter2 run",
        "TOKEN=${A:-hunter2} run",
        "TOKEN=''hunter2 run",
        "TOKEN=$A API_TOKEN=hunter2 run",
        "tool --token '$A'hunter2",
    ],
)
def test_a_secret_that_is_handed_to_a_program_is_seen(text: str) -> None:
    assert hands_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "git status",
        "tool --password",
        "tool --token -v",
        "docker run --user 1000:1000 image",
        "docker run -u app:app image",
        "ls -u",
        "pytest -k token",
        "TOKEN=$TOKEN ./run.sh",
        'API_TOKEN="${TOKEN}" ./run.sh; ls',
        "GITHUB_TOKEN=$(gh auth token) ./run.sh",
        "GITHUB_TOKEN=`gh auth token` ./run.sh",
        'tool --token "$TOKEN"',
        "tool --token $TOKEN",
        'API_KEY="" npm test',
        "API_KEY='' npm test",
        "OPENAI_API_KEY=test pytest",
        "API_KEY='dummy' npm test",
        "SECRET=fake; npm test",
    ],
)
def test_an_option_without_a_secret_passes_none(text: str) -> None:
    assert not hands_secret(text)


@pytest.mark.parametrize(
    ("word", "known"),
    [
        ("host", True),
        ("ann@host.example", True),
        ("ssh://ann@host.example:22", True),
        ("::1", True),
        ("ann@[::1]", True),
        ("'https://a.example?@b.example'", False),
        ("'a.example#@b.example'", False),
        ("a.example/@b.example", False),
        ("ssh://a.example/@b.example", False),
        ("ann@a.example@b.example", False),
        ("a.example%b.example", False),
        ("$host", False),
    ],
)
def test_what_ssh_connects_to_is_known_only_as_a_user_and_a_host(word: str, *, known: bool) -> None:
    """`ssh https://a.example?@b.example` connects to `b.example`."""
    assert (("word", "destination") not in named(f"ssh -4 {word} uptime")) == known
