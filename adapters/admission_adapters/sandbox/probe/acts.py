"""The probe program: runs inside a sandbox and attempts everything that the sandbox must prevent.

The real launcher runs it unchanged, and so does a plain subprocess, so it is one file that imports
no other module of the project.
Standard input is one JSON object: where the canaries are. Standard output is one JSON object: for each act one
word. `did`, `refused:<errno>`, `signal:<number>`, `read:<text>`, `fds:<list>`, `names:<list>`, `value:<text>`.
Each act runs in a child process, so that the kernel kills only that act.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterable, Iterator


def is_open(number: int) -> bool:
    """Whether a descriptor is open: lseek, which every filter allows, fails with EBADF for a closed one only."""
    try:
        os.lseek(number, 0, os.SEEK_CUR)
    except OSError as error:
        return error.errno != errno.EBADF
    return True


OPEN_AT_START = [*filter(is_open, range(3, 4096))]

import ctypes  # noqa: E402  (libffi may keep a file of its own open from here on)

LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.syscall.restype = ctypes.c_long
NEW_USER, NEW_ALL = 0x10000000, 0x7E020000
"""CLONE_NEWUSER; every CLONE_NEW* (clone(2))."""

ALONE = {"new_user_namespace", "new_namespaces", "cloned_namespace", "cloned3_namespace", "mounted", "call_ptrace"}
"""What leaves a process changed where it succeeds: it has a child to itself."""

STEP = 1 << 16  # bytes written at a time
SECONDS = 5.0  # for one canary to answer

SOCKETS: dict[str, tuple[int, int, int]] = {
    "inet6": (socket.AF_INET6, socket.SOCK_STREAM, 0),
    "datagram": (socket.AF_INET, socket.SOCK_DGRAM, 0),
    "raw": (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "mptcp": (socket.AF_INET, socket.SOCK_STREAM, 262),
    "unix": (socket.AF_UNIX, socket.SOCK_STREAM, 0),
    "unix_datagram": (socket.AF_UNIX, socket.SOCK_DGRAM, 0),
    "packet": (socket.AF_PACKET, socket.SOCK_RAW, 0),
    "alg": (socket.AF_ALG, socket.SOCK_SEQPACKET, 0),
}
"""Family, type and protocol of sockets that are made, connected to nothing."""

CALLS: dict[str, int] = {}
"""Numbers of the system calls that are made by number on this machine; read from standard input."""

Act = Callable[[], str]


def checked(result: int) -> int:
    """What a function of the C library gave. Raises OSError for what is below 0."""
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return result


def raw(name: str, *arguments: object) -> int:
    """Make one call of the kernel by number. Raises OSError."""
    return checked(LIBC.syscall(ctypes.c_long(CALLS[name]), *arguments))


def did(call: Callable[..., object], *arguments: object) -> str:
    """Call something that raises OSError where it is refused."""
    call(*arguments)
    return "did"


def word_of(act: Act) -> str:
    """What an act came to, as a word."""
    try:
        return act()
    except OSError as error:
        return f"refused:{errno.errorcode.get(error.errno or 0, 'UNKNOWN')}"
    except MemoryError:
        return "refused:ENOMEM"
    except Exception as error:  # noqa: BLE001 (a word too: it is never taken for `did`)
        return f"failed:{type(error).__name__}"


def done(todo: list[tuple[str, Act]]) -> dict[str, str]:
    """Run the acts in a child, one after the other; after a kill by the kernel, continue in another child."""
    words: dict[str, str] = {}
    while todo:
        output, code = in_child(todo)
        words |= output
        todo = todo[len(output) :]
        if todo:  # the child ended in this one
            words[todo[0][0]] = f"signal:{-code}" if code < 0 else f"failed:{code}"
            todo = todo[1:]
    return words


def in_child(todo: list[tuple[str, Act]]) -> tuple[dict[str, str], int]:
    """The output of a child that performs acts, and its exit code, negative for a signal."""
    out, into = os.pipe()
    child = LIBC.fork()  # half the time of os.fork, whose handling of threads is not needed here
    if child == 0:
        try:
            os.close(out)
            for name, act in todo:
                os.write(into, f"{name} {plain(word_of(act))}\0".encode())
        finally:
            os._exit(0)
    os.close(into)
    if child < 0:
        raise OSError(ctypes.get_errno(), "fork")
    output = b""
    while part := os.read(out, 65536):
        output += part
    os.close(out)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    lines = (line.decode("utf-8", "replace").partition(" ") for line in output.split(b"\0")[:-1])
    return {name: word for name, _, word in lines}, code


def plain(word: str) -> str:
    """A word without the terminating byte, at most as long as one atomic write to a pipe."""
    return word.replace("\0", " ")[:2048]


def read(path: str) -> str:
    """The text of a file."""
    with open(path, "rb") as file:  # noqa: PTH123 (pathlib costs a start)
        return "read:" + file.read(4096).decode("utf-8", "replace").strip("\0\n")


def opened(path: str) -> str:
    """Open a file."""
    os.close(os.open(path, os.O_RDONLY))
    return "did"


def written(path: str, *, keep: bool = False) -> str:
    """Create a file, and remove it unless it is to be kept."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.write(handle, b"canary")
    finally:
        os.close(handle)
        if not keep:
            os.unlink(path)  # noqa: PTH108
    return "did"


def sent(family: int, kind: int, address: object, message: bytes) -> str:
    """Send to a canary and wait for its answer."""
    with socket.socket(family, kind) as canary:
        canary.settimeout(SECONDS)
        canary.connect(address)  # type: ignore[arg-type]
        canary.send(message)
        return "did" if canary.recv(512) else "failed:silence"


def name_query(token: str) -> bytes:
    """A DNS question for `<token>.example`, type A."""
    labels = b"".join(bytes([len(label)]) + label for label in (token.encode(), b"example"))
    return struct.pack(">6H", 1, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)


def shared_memory(key: int) -> str:
    """Read the SysV segment of a canary."""
    LIBC.shmat.restype = ctypes.c_void_p
    segment = checked(LIBC.shmget(ctypes.c_int(key), ctypes.c_size_t(0), ctypes.c_int(0)))
    address = LIBC.shmat(ctypes.c_int(segment), None, ctypes.c_int(0o10000))
    if address in {None, ctypes.c_void_p(-1).value}:
        raise OSError(ctypes.get_errno(), "refused")
    return "read:" + ctypes.string_at(address, 64).split(b"\0")[0].decode()


def open_descriptors(planted: int, others: Iterable[int] = range(3, 4096)) -> list[int]:
    """The one that was left open on purpose, then all but the standard ones.

    A limit that was set later does not apply to descriptors that are already open.
    """
    return [number for number in dict.fromkeys((planted, *others)) if is_open(number)]


def inherited(open_at_start: list[int], secret_bytes: int) -> str:
    """The content of a descriptor that was left open."""
    for number in open_at_start:
        try:
            return "read:" + os.pread(number, secret_bytes, 0).decode("utf-8", "replace")
        except OSError:
            continue
    raise OSError(errno.EBADF, "none is open")


def new_namespaces(flags: int) -> str:
    """Move into new namespaces."""
    return did(checked, LIBC.unshare(ctypes.c_int(flags)))


def born(child: int) -> str:
    """A new process was made: end it, and wait for it."""
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return "did"


def cloned() -> str:
    """Make a process in a new user namespace."""
    return born(raw("clone", ctypes.c_ulong(NEW_USER | signal.SIGCHLD), None, None, None, None))


def cloned3() -> str:
    """The same by the call whose flags no filter can read."""
    arguments = ctypes.create_string_buffer(struct.pack("=8Q", NEW_USER, 0, 0, 0, signal.SIGCHLD, 0, 0, 0), 64)
    return born(raw("clone3", arguments, ctypes.c_size_t(64)))


def mounted() -> str:
    """Use the capabilities that a new user namespace would grant."""
    new_namespaces(NEW_USER | 0x20000)
    raw("mount", b"none", b"/usr", b"tmpfs", ctypes.c_ulong(0), None)
    return "did"


def foreign_call() -> str:
    """Getpid of 32-bit x86 by `int 0x80`: another architecture's numbers pass a filter that looks at numbers only."""
    code = bytes.fromhex("53b814000000cd805bc3")  # push rbx; mov eax, 20; int 0x80; pop rbx; ret
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return "did" if ctypes.CFUNCTYPE(ctypes.c_int)(address)() == os.getpid() else "failed:answer"


def x32_call() -> str:
    """Getpid by a number of the x32 table."""
    return did(checked, LIBC.syscall(ctypes.c_long(0x40000000 | 39)))


FOREIGN: dict[str, Act] = {"foreign_call": foreign_call, "x32_call": x32_call}
"""Acts that only some machines have."""


def call(name: str) -> str:
    """A call that the filter kills, made so that it harms nothing where it is allowed."""
    nothing, page = ctypes.c_long(0), ctypes.create_string_buffer(256)
    wrong = ctypes.c_long(-1)
    vector = struct.pack("=2Q", ctypes.addressof(page), 8)
    arguments: dict[str, tuple[object, ...]] = {
        "process_vm_readv": (ctypes.c_long(os.getpid()), vector, ctypes.c_long(1), vector, ctypes.c_long(1), nothing),
        "kcmp": (ctypes.c_long(os.getpid()), ctypes.c_long(os.getpid()), ctypes.c_long(1), nothing, nothing),
        "personality": (ctypes.c_ulong(0xFFFFFFFF),),
        "add_key": (b"user", b"admission-probe", b"canary", ctypes.c_size_t(6), ctypes.c_long(-2)),
        "keyctl": (nothing, ctypes.c_long(-2), nothing),
        "io_uring_setup": (ctypes.c_long(1), page),
        "userfaultfd": (ctypes.c_long(1),),
        "name_to_handle_at": (ctypes.c_long(-100), b"/", struct.pack("=Ii", 128, 0) + bytes(128), page, nothing),
        "open_tree": (ctypes.c_long(-100), b"/", nothing),
        "syslog": (ctypes.c_long(10), None, nothing),
        "fanotify_init": (ctypes.c_long(0x200), nothing),
        "modify_ldt": (nothing, page, ctypes.c_ulong(256)),
        "ptrace": (nothing, nothing, None, None),
        "reboot": (nothing, nothing, nothing, None),
        "clock_settime": (wrong, None),
        "inotify_init1": (nothing,),
    }
    return did(raw, name, *arguments.get(name, (wrong, None, None, None, None)))


def allocated(size: int) -> str:
    """Take more memory in one process than is allowed, and use some of it."""
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory[0] = memory[size - 1] = 1
    return "did"


def forked(count: int) -> str:
    """Have `count` processes at once, which end when this one does."""
    reader, writer = os.pipe()
    children = []
    try:
        for _ in range(count):
            child = os.fork()
            if not child:  # no comparison: `scripts/mutate` would turn it round, and this forks without end
                os.close(writer)
                os.read(reader, 1)
                os._exit(0)
            children.append(child)
    finally:
        os.close(writer)
        for child in children:
            os.waitpid(child, 0)
    return "did"


def opened_past(count: int) -> str:
    """Have `count` files open at once."""
    handles = []
    try:
        for _ in range(count):
            handles.append(os.open("/dev/null", os.O_RDONLY))  # noqa: PERF401 (each has to be closed)
    finally:
        for handle in handles:
            os.close(handle)
    return "did"


def filled(paths: list[str], size: int, per_file: int) -> str:
    """Write `size` bytes in files of at most `per_file` bytes, named with the prefixes `paths`, and remove them."""
    names, refused = list[str](), list[int]()
    left = [min(size - written, per_file) for written in range(0, size, per_file)]
    try:
        for path in paths:
            try:
                while left:
                    names.append(f"{path}-{len(names)}")
                    extended(names[-1], left[0])
                    del left[0]
            except OSError as error:
                refused.append(error.errno or 0)
        if left:  # a path that does not exist counts as full; one that exists must be filled
            raise OSError(next((code for code in refused if code in {errno.ENOSPC, errno.EFBIG}), refused[-1]), "")
    finally:
        for name in names:
            if os.path.lexists(name):
                os.unlink(name)  # noqa: PTH108
    return "did"


def extended(path: str, size: int) -> None:
    """Write so many bytes into a new file."""
    handle, left = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), size
    try:
        while left > 0:
            left -= os.write(handle, b"x" * min(STEP, left))
    finally:
        os.close(handle)


def child_process() -> str:
    """Run another program."""
    child = os.posix_spawn("/usr/bin/true", ["true"], {})
    return "did" if os.waitpid(child, 0)[1] == 0 else "failed:status"


def computed() -> str:
    """Compute something with the standard library."""
    import statistics

    return "did" if json.loads(json.dumps({"mean": statistics.mean([1, 2, 3])})) == {"mean": 2} else "failed:value"


def acts(world: dict[str, object], start: list[int]) -> Iterator[tuple[str, Act]]:
    """Every act by its name. `world` has the paths of the canaries and the limits."""
    text = {name: str(value) for name, value in world.items()}
    number = {name: value for name, value in world.items() if isinstance(value, int)}
    token, canary = text["token"], number["process"]
    tcp, udp, dns = (("127.0.0.1", number[name]) for name in ("tcp", "udp", "dns"))
    stream, packet = socket.SOCK_STREAM, socket.SOCK_DGRAM
    yield "work_write", lambda: written("work")
    yield "work_child", child_process
    yield "work_compute", computed
    yield "work_environment", lambda: "value:" + os.environ.get(text["allowed_name"], "")
    yield "work_hash_seed", lambda: f"value:{hash('admission')}"
    for name, path in {**world}.items():
        if name.startswith("file_"):
            yield name, lambda path=str(path): read(path)  # type: ignore[misc]
    yield "outside_write", lambda: written(f"{text['folder']}/{token}", keep=True)
    yield "accounts", lambda: opened("/etc/passwd")
    yield "own_memory", lambda: opened("/proc/self/mem")
    yield "core_pattern", lambda: opened("/proc/sys/kernel/core_pattern")
    for name, path in {"usr": "/usr/lib", "root": "", "dev": "/dev"}.items():
        yield f"{name}_write", lambda path=path: written(f"{path}/{token}")  # type: ignore[misc]
    yield "tcp", lambda: sent(socket.AF_INET, stream, tcp, token.encode())
    yield "udp", lambda: sent(socket.AF_INET, packet, udp, token.encode())
    yield "dns", lambda: sent(socket.AF_INET, packet, dns, name_query(token))
    yield "unix_path", lambda: sent(socket.AF_UNIX, stream, text["unix"], token.encode())
    yield "unix_abstract", lambda: sent(socket.AF_UNIX, stream, "\0" + text["abstract"], token.encode())
    yield "netlink", lambda: did(socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close)
    yield "vsock", lambda: did(socket.socket(40, stream).close)
    for name, parts in SOCKETS.items():
        yield f"socket_{name}", lambda parts=parts: did(socket.socket(*parts).close)  # type: ignore[misc]
    yield "listener", lambda: sent(socket.AF_INET, stream, ("127.0.0.1", number["listener"]), token.encode())
    yield "process_seen", lambda: did(os.getpgid, canary)
    yield "process_environment", lambda: read(f"/proc/{canary}/environ")
    yield "shared_memory", lambda: shared_memory(number["segment"])
    yield "secret_variable", lambda: "value:" + os.environ.get(text["secret_name"], "")
    yield "variables", lambda: "names:" + ",".join(sorted(os.environ))
    yield "inherited", lambda: inherited(start, 64)
    yield "descriptors", lambda: "fds:" + ",".join(map(str, start))
    yield "host_name", lambda: f"value:{os.uname().nodename}"
    yield "new_user_namespace", lambda: new_namespaces(NEW_USER)
    yield "new_namespaces", lambda: new_namespaces(NEW_ALL)
    yield "cloned_namespace", cloned
    yield "cloned3_namespace", cloned3
    yield "mounted", mounted
    for name in CALLS:
        if name not in {"clone", "clone3"}:
            yield f"call_{name}", lambda name=name: call(name)  # type: ignore[misc]
    yield from ((name, FOREIGN[name]) for name in text["foreign"].split())
    yield "memory", lambda: allocated(number["memory_bytes"])
    yield "forks", lambda: forked(number["processes"])
    yield "opens", lambda: opened_past(number["open_files"])
    yield "large_file", lambda: filled([token], number["largest_bytes"] + STEP, number["largest_bytes"] + STEP)
    places = [f"{folder}/{token}" for folder in (".", "/tmp", "/dev/shm")]  # noqa: S108 (what is tried)
    yield "disk", lambda: filled(places, number["disk_bytes"] + STEP, number["largest_bytes"])
    yield "process_killed", lambda: did(os.kill, canary, signal.SIGKILL)


def main() -> None:
    """Perform every act and print the result of each."""
    world = json.loads(sys.stdin.read())
    start = open_descriptors(world["descriptor"], OPEN_AT_START)
    CALLS.update(world.pop("calls"))
    words, together = dict[str, str](), list[tuple[str, Act]]()
    for name, act in acts(world, start):
        if name in ALONE:
            words |= done([(name, act)])
        else:
            together.append((name, act))
    json.dump(words | done(together), sys.stdout)


if __name__ == "__main__":
    main()
