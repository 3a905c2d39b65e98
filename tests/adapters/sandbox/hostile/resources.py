"""Programs that want all of something: processes, threads, memory, disk, files, processor time, the clock."""

from __future__ import annotations

from tests.adapters.sandbox.hostile.model import (
    CPU,
    MEMORY,
    OK,
    OUTPUT,
    SIGNALED,
    TIME,
    WALL,
    Control,
    Hostile,
    attempt,
    family,
    lines,
)

_MIB = 1024 * 1024
_SOON = {"wall_seconds": 0.4}
_ENDLESS = {"most": 10**9}
_FEW = {"most": 40}

_MEMORY = {
    "heap": """\
        kept = []
        for _ in range(told['most']):
            kept.append(bytearray(8 * 2**20))""",
    "one_piece": "kept = bytearray(told['most'] * 8 * 2**20 if told['outside'] else 2**40)\n",
    "text": """\
        kept = 'x' * 2**20
        for _ in range(9 if told['outside'] else 60):
            kept += kept""",
    "number": "kept = 1 << (8 * 8 * 2**20 * 60 if told['outside'] else 2**45)\n",
    "list_of_lists": "kept = [[0] * 2**20 for _ in range(told['most'])]\n",
    "dictionary": """\
        kept = {}
        for n in range(0, told['most'] * 60000 if not told['outside'] else 600000):
            kept[n] = (n, n)""",
    "mapping": """\
        import mmap
        kept = []
        for _ in range(told['most']):
            kept.append(mmap.mmap(-1, 8 * 2**20)); kept[-1][:] = b'x' * 8 * 2**20
        """,
    "shared_mapping": """\
        import mmap
        kept = []
        for _ in range(told['most']):
            kept.append(mmap.mmap(-1, 8 * 2**20, flags=mmap.MAP_SHARED)); kept[-1][:] = b'x' * 8 * 2**20
        """,
    "c_library": """\
        import ctypes
        libc = ctypes.CDLL(None); libc.malloc.restype = ctypes.c_void_p
        for _ in range(told['most']):
            found = libc.malloc(8 * 2**20)
            if not found:
                raise MemoryError
            ctypes.memset(found, 1, 8 * 2**20)
        """,
    "regular_expression": """\
        import re
        re.compile('(' * 0 + '|'.join('a%d' % n for n in range(1000 if told['outside'] else 10**12)))""",
}

_DISK = {
    "working_folder": "where = 'big'",
    "tmp": "where = '/tmp/' + os.environ['RUN']",
    "deleted_file": "where = 'gone'",
    "artifact_folder": "where = 'artifacts/big'; os.makedirs('artifacts', exist_ok=True)",
}
_WRITE = """
try:
    with open(where, 'wb') as file:
        if where == 'gone':
            os.unlink(where)
        for _ in range(told['most']):
            file.write(b'x' * 2**20)
            file.flush()
except OSError as error:
    held(error.errno)
else:
    harm('written')
"""

_FLOODS = {
    "shared_memory": """\
        for n in range(told['most']):
            with open('/dev/shm/hostile%d' % n, 'wb') as file:
                file.write(b'x' * 2**20)
            if told['outside']:
                os.unlink('/dev/shm/hostile%d' % n)
        """,
    "many_big_files": """\
        for n in range(told['most']):
            with open('part%d' % n, 'wb') as file:
                file.write(b'x' * 2**20)
        """,
    "one_sparse_file": """\
        with open('sparse', 'wb') as file:
            file.seek(2**40 if not told['outside'] else 2**25); file.write(b'x')""",
    "reserved_file": """\
        import os
        os.posix_fallocate(os.open('big', os.O_CREAT | os.O_WRONLY), 0, 2**40 if not told['outside'] else 2**25)""",
    "open_files": "kept = [open('main.py') for _ in range(min(told['most'] * 4, 5000))]\n",
    "pipes": "kept = [os.pipe() for _ in range(min(told['most'] * 3, 5000))]\n",
    "event_files": "kept = [os.eventfd(0) for _ in range(min(told['most'] * 4, 5000))]\n",
    "threads": """\
        import threading, time
        for _ in range(min(told['most'], 3000)):
            threading.Thread(target=time.sleep, args=(1.0,), daemon=True).start()
        """,
    "processes": """\
        children = []
        try:
            for _ in range(min(told['most'], 3000)):
                child = os.fork()
                if child == 0:
                    __import__('time').sleep(0.3); os._exit(0)
                children.append(child)
        finally:
            for child in children:
                os.waitpid(child, 0)
        """,
    "sessions": """\
        children = []
        try:
            for _ in range(min(told['most'], 3000)):
                child = os.fork()
                if child == 0:
                    os.setsid(); __import__('time').sleep(0.3); os._exit(0)
                children.append(child)
        finally:
            for child in children:
                os.waitpid(child, 0)
        """,
    "subprocesses": """\
        import subprocess
        children = [subprocess.Popen(['/bin/sleep', '0.3']) for _ in range(min(told['most'], 3000))]
        """,
    "locked_memory": """\
        import ctypes
        room = ctypes.create_string_buffer(2**20)
        if ctypes.CDLL(None, use_errno=True).mlock(room, 2**20) != 0:
            raise OSError(ctypes.get_errno(), 'mlock')
        """,
}

_WAITING = {
    "sleep": """\
        import time
        time.sleep(told['long'])""",
    "wait_for_nobody": """\
        import threading
        threading.Event().wait(told['long'])""",
    "stopped_itself": "os.kill(os.getpid(), 19) if not told['outside'] else __import__('time').sleep(told['long'])",
    "stopped_by_a_child": """\
            if os.fork() == 0:
                os.kill(os.getppid(), 19 if not told['outside'] else 0); os._exit(0)
            __import__('time').sleep(told['long'])""",
    "ignoring_signals": """\
            import signal, time
            for n in range(1, 32):
                try:
                    signal.signal(n, signal.SIG_IGN)
                except OSError:
                    pass
            time.sleep(told['long'])""",
    "blocking_signals": """\
            import signal, time
            signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
            time.sleep(told['long'])""",
    "timers": """\
            import signal, time
            signal.signal(signal.SIGALRM, lambda *_: None)
            signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
            end = time.monotonic() + told['long']
            while time.monotonic() < end:
                time.sleep(1)""",
    "reading_what_never_comes": """\
        r, w = os.pipe()
        import select
        select.select([r], [], [], told['long'])""",
    "child_that_sleeps": """\
            import subprocess
            subprocess.run(['/bin/sleep', str(told['long'])])""",
    "closed_everything_and_sleeps": """\
            import time
            os.closerange(0, 1024)
            time.sleep(told['long'])""",
    "spin": """\
        import time
        end = time.monotonic() + told['long']
        while time.monotonic() < end:
            pass""",
    "spin_in_a_child": """\
            import time
            end = time.monotonic() + told['long']
            child = os.fork()
            while child == 0 and time.monotonic() < end:
                pass
            os.waitpid(child, 0) if child else os._exit(0)""",
}
_WORKING = {
    "expensive_expression": (
        """\
        import re
        re.match('(a+)+$', 'a' * (21 if told['outside'] else 60) + 'b')""",
        TIME,
    ),
    "expensive_number": ("n = 3 ** (3 * 10**6 if told['outside'] else 10**8)", TIME),
    "fork_bomb": (
        """\
            import time
            end = time.monotonic() + told['long']
            made = 0
            while time.monotonic() < end:
                try:
                    if made < told['most']:
                        made += 1
                        if os.fork() == 0:
                            made = 0 if not told['outside'] else told['most']
                except OSError:
                    pass""",
        TIME,
    ),
    "thread_bomb": (
        """\
            import threading, time
            end = time.monotonic() + told['long']
            def more():
                while time.monotonic() < end:
                    try:
                        if threading.active_count() < told['most']:
                            threading.Thread(target=more).start()
                    except RuntimeError:
                        pass
                    time.sleep(0.001)
            more()""",
        TIME | MEMORY | OUTPUT,  # each thread without memory for its stack says so on the standard error
    ),
    "inode_flood": (
        """\
            import time
            end = time.monotonic() + told['long']
            n = 0
            while time.monotonic() < end:
                n += 1
                if n < told['most'] * 100:
                    try:
                        open('f%d' % n, 'w').close()
                    except OSError:
                        pass""",
        TIME | MEMORY,
    ),
    "folder_flood": (
        """\
            import time
            end = time.monotonic() + told['long']
            depth = 0
            while time.monotonic() < end:
                depth += 1
                if depth < told['most']:
                    try:
                        os.mkdir('d'); os.chdir('d')
                    except OSError:
                        pass""",
        TIME | MEMORY,
    ),
}

PROGRAMS = family(
    "resources",
    [
        *(
            Hostile(f"memory_{name}", lines(code, "harm('kept')"), status=MEMORY, inside=_ENDLESS, outside=_FEW)
            for name, code in _MEMORY.items()
        ),
        *(
            Hostile(
                f"disk_{name}", lines(code, _WRITE), bounds={"file_bytes": 64 * _MIB}, inside=_ENDLESS, outside=_FEW
            )
            for name, code in _DISK.items()
        ),
        *(
            Hostile(f"flood_{name}", attempt(code, "harm('all of it')"), inside=_ENDLESS, outside=_FEW)
            for name, code in _FLOODS.items()
        ),
        *(
            Hostile(
                f"time_{name}",
                lines(code, "harm('past the limit')"),
                status=status,
                control=Control.SAME if name.startswith("closed") else Control.HARM,
                bounds=_SOON,
                inside=_ENDLESS | {"long": 600},
                outside={"most": 12, "long": 0.45},
            )
            for name, (code, status) in ({name: (code, WALL) for name, code in _WAITING.items()} | _WORKING).items()
        ),
        *(
            Hostile(
                f"processor_time{name}",
                f"{before}while True:\n    pass",
                status=CPU,
                control=Control.NONE,
                bounds={"wall_seconds": 30.0, "cpu_seconds": 1},
                limit="cpu",
            )
            for name, before in {
                "": "",
                "_ignoring_the_signal": "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\n",
            }.items()
        ),
        Hostile(
            "stack",
            """\
                sys.setrecursionlimit(10**9)
                def down(n):
                    return down(n + 1) if n < told['most'] else n
                down(0)
                harm()""",
            status=MEMORY | SIGNALED,  # just below the bound, finding memory takes the kernel seconds
            bounds={"memory_bytes": 48 * _MIB, "wall_seconds": 90.0, "cpu_seconds": 60},
            inside=_ENDLESS,
            outside={"most": 20000},
        ),
        Hostile(
            "endless_garbage",
            """\
                import gc
                for _ in range(20000):
                    a = []; a.append(a)
                held()""",
            status=OK,
            control=Control.SAME,
        ),
    ],
)
