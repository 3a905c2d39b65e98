"""`scripts/mutate [PATH…]`: change one condition at a time, run its tests, and report changes that no test notices."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from mutation import python, rego, tested
from mutation.model import ROOT, WORK, Mutant, Results, Verdict, digest

ACCEPTED = ROOT / "docs" / "mutation.md"
"""Survivors that stay, each with its reason."""

DEFAULT = (
    "rego/admission/requirements",
    "rego/admission/lib",
    "engine/flow.py",
    "engine/idempotency.py",
    "engine/gather.py",
    "engine/decide.py",
    "engine/enforce.py",
    "engine/work.py",
    "engine/drive.py",
    "engine/steps.py",
    "engine/record",
    "engine/secrets",
    "engine/state",
    "adapters",
)
"""The rules, the path, the record, the state and the executors."""

_ENTRY = re.compile(r"^- ``(?P<name>.+)``$")


def accepted(text: str) -> dict[str, set[str]]:
    """The names of accepted survivors by file: headings are files, entries are names in double backticks."""
    found: dict[str, set[str]] = {}
    file = ""
    for line in text.splitlines():
        if line.startswith("### "):
            file = line.removeprefix("### ").strip("` ")
        elif entry := _ENTRY.match(line):
            found.setdefault(file, set()).add(entry["name"])
    return found


def files(chosen: list[str]) -> Iterator[Path]:
    """The rule and source files below the chosen paths."""
    for one in chosen:
        path = (ROOT / one).resolve()
        for file in [path] if path.is_file() else sorted((*path.rglob("*.rego"), *path.rglob("*.py"))):
            if not file.stem.endswith("_test") and "launcher/inside" not in file.as_posix():
                yield file


def in_sample(file: str, name: str, one_in: int) -> bool:
    """Whether a mutant is in the sample of one in so many: by its name, so the same ones in each tree and run."""
    return int(digest(file.encode(), name.encode())[:8], 16) % one_in == 0


def _apart() -> None:
    """Go on in a PID namespace of its own: a changed condition may make the engine kill whatever it can reach.

    Where the kernel grants none, such as to an ordinary user, what the user may kill is within reach.
    """
    within = [shutil.which("unshare") or "", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getpid() == 1 or not within[0] or subprocess.run([*within, "true"], check=False).returncode:
        return
    os.execv(within[0], [*within, sys.executable, "-m", "mutation", *sys.argv[1:]])  # noqa: S606  (a command without a shell)


def main() -> int:
    """Judge the mutants of the chosen files; exits with 1 if a survivor is not accepted."""
    _apart()
    parser = argparse.ArgumentParser(prog="scripts/mutate", description=__doc__)
    parser.add_argument("path", nargs="*", default=list(DEFAULT), help="files or folders (default: all)")
    parser.add_argument("--list", action="store_true", help="print each survivor")
    parser.add_argument("--one-in", type=int, default=1, metavar="N", help="judge a sample: one mutant in N")
    parser.add_argument(
        "--further",
        action="store_true",
        help="of Python, leave out raises and calls and change conditions without a comparison instead; list survivors",
    )
    chosen = parser.parse_args()
    judged: dict[str, list[tuple[Mutant, Verdict]]] = {}
    by_opa = rego.Judge(Results(WORK / "rego.json"))
    with tested.Judge() as by_pytest:
        for file in files(chosen.path):
            name = file.relative_to(ROOT).as_posix()
            started = time.perf_counter()
            taken = partial(in_sample, name, one_in=chosen.one_in)
            if file.suffix == ".py":
                made = python.mutants(file, further=chosen.further)
                judged[name] = [(one, by_pytest.verdict(one)) for one in made if taken(one.name)]
            elif not chosen.further:
                judged[name] = [(one, by_opa.verdict(one)) for one in rego.mutants(file) if taken(one.name)]
            else:
                continue
            counts = Counter(verdict.value for _, verdict in judged[name])
            print(f"{time.perf_counter() - started:7.1f} s  {name}  {dict(counts)}", file=sys.stderr, flush=True)
    if chosen.further:
        return report(judged, None, every=True)
    known = accepted(ACCEPTED.read_text(encoding="utf-8")) if ACCEPTED.exists() else {}
    listed = {file: {one for one in names if in_sample(file, one, chosen.one_in)} for file, names in known.items()}
    return report(judged, listed, every=chosen.list)


def report(
    judged: Mapping[str, list[tuple[Mutant, Verdict]]], known: Mapping[str, set[str]] | None, *, every: bool
) -> int:
    """Print the counts of each folder and every discrepancy with what is `known`; returns 0 if there is none."""
    folders: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for file, found in judged.items():
        count = folders.setdefault(str(Path(file).parent), Counter())
        survivors = {one.name: one for one, verdict in found if verdict is Verdict.SURVIVED}
        count.update(verdict.value for _, verdict in found)
        listed = survivors.keys() if known is None else known.get(file, set())
        count["accepted"] += len(listed & set(survivors))
        for name, one in survivors.items():
            if every:
                print(f"{file}:{one.line}: {name}")
        wrong += [f"survives and is not in docs/mutation.md: {file}: {name}" for name in survivors.keys() - listed]
        wrong += [f"is in docs/mutation.md and does not survive: {file}: {name}" for name in listed - survivors.keys()]
    print(f"\n{'folder':58} {'killed':>7} {'survived':>9} {'accepted':>9} {'%':>7}")
    for folder, count in sorted(folders.items()):
        _line(folder, count)
    _line("all", sum(folders.values(), Counter()))
    print("\n".join(["", *wrong]))
    print(f"\n{len(wrong)} entries to correct" if wrong else "\nall survivors are accepted")
    return 1 if wrong else 0


def _line(what: str, count: Counter[str]) -> None:
    killed, survived = count[Verdict.KILLED], count[Verdict.SURVIVED]
    share = 100 * killed / max(1, killed + survived)
    print(f"{what:58} {killed:7} {survived:9} {count['accepted']:9} {share:7.1f}")


if __name__ == "__main__":
    sys.exit(main())
