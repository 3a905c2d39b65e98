"""Programs that say too much, too little or what nobody can read, and those that lie about how they ended."""

from __future__ import annotations

from tests.adapters.sandbox.hostile.model import (
    FAILED,
    KILLED,
    OK,
    OUTPUT,
    SIGNALED,
    WALL,
    Control,
    Hostile,
    family,
    lines,
)

_CAP = 4096
_ENDLESS = {
    "lines": """\
        while told['most'] > 0:
            print('y' * 60); told['most'] -= 1""",
    "one_line": """\
        while told['most'] > 0:
            sys.stdout.write('y' * 60); told['most'] -= 1""",
    "zero_bytes": """\
        while told['most'] > 0:
            os.write(1, bytes(5000)); told['most'] -= 1""",
    "one_gibibyte": """\
        for _ in range(min(told['most'], 2**14)):
            os.write(1, b'z' * 2**16)""",
    "single_bytes": """\
        while told['most'] > 0:
            os.write(1, b'x' * 90); told['most'] -= 1""",
    "by_a_child": """\
        if os.fork() == 0:
            while told['most'] > 0:
                os.write(1, b'x' * 100); told['most'] -= 1
            os._exit(0)
        os.wait()""",
    "by_a_program": """\
        import subprocess
        subprocess.run(['/usr/bin/head', '-c', str(told['most'] * 100), '/dev/zero'])""",
    "by_a_thread": """\
        import threading
        def more():
            while told['most'] > 0:
                os.write(1, b'x' * 100); told['most'] -= 1
        thread = threading.Thread(target=more); thread.start(); thread.join()""",
    "ignoring_closed_pipes": """\
        import signal
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        while told['most'] > 0:
            told['most'] -= 1
            try:
                os.write(1, b'x' * 100)
            except OSError:
                pass""",
}
_STREAMS = {
    "on_standard_error": """\
        while told['most'] > 0:
            os.write(2, b'e' * 100); told['most'] -= 1""",
    "on_both": """\
            while told['most'] > 0:
                os.write(1, b'o' * 100); os.write(2, b'e' * 100); told['most'] -= 1""",
    "traceback_without_end": "raise ValueError('x' * 10**6)",
    "warnings_without_end": """\
            import warnings
            for n in range(min(told['most'], 10**6)):
                warnings.warn('w%d' % n, stacklevel=1)""",
}

_EXACT = {
    "nothing": ("", b""),
    "blank": ("print('  ')", b"  \n"),
    "binary": ("os.write(1, bytes(range(256)))", bytes(range(256))),
    "invalid_utf8": ("os.write(1, b'\\xff\\xfe\\x80{}')", b"\xff\xfe\x80{}"),
    "cut_utf8": ("os.write(1, '\\u20ac'.encode()[:2])", b"\xe2\x82"),
    "half_an_object": ("print('{\"a\": 1,', end='')", b'{"a": 1,'),
    "two_objects": ("print('{}{}')", b"{}{}\n"),
    "not_a_number": ("print(json.dumps({'a': float('nan')}))", b'{"a": NaN}\n'),
    "infinite_number": ("print(json.dumps([float('inf')]))", b"[Infinity]\n"),
    "huge_number": ("print('9' * 4000, end='')", b"9" * 4000),
    "deep_json": ("print('[' * 2000 + ']' * 2000, end='')", b"[" * 2000 + b"]" * 2000),
    "twice_the_same_key": ('print(\'{"a": 1, "a": 2}\')', b'{"a": 1, "a": 2}\n'),
    "terminal_escapes": ("print('\\033]0;owned\\007\\033[2J')", b"\x1b]0;owned\x07\x1b[2J\n"),
    "exactly_the_cap": ("os.write(1, b'x' * 4096)", b"x" * _CAP),
    "status_of_the_launcher": (
        "print('{ \"exit-code\": 0 }'); print('R'); print('E 0 0')",
        b'{ "exit-code": 0 }\nR\nE 0 0\n',
    ),
}

_LIES = {f"exit_code_{code}": (f"os._exit({code})", code) for code in (1, 2, 3, 65, 124, 125, 126, 127, 128, 130)}
_LIES |= {f"exit_code_{code}": (f"os._exit({code})", code) for code in (137, 139, 143, 152, 153, 159, 255)}
_LIES |= {
    "exit_by_exception": ("raise SystemExit(137)", 137),
    "exit_with_text": ("raise SystemExit('no')", 1),
    "uncaught": ("raise KeyError('x')", 1),
    "exit_in_a_handler": (
        """\
        import atexit
        atexit.register(os._exit, 159)""",
        159,
    ),
    "syntax": ("eval('1 +')", 1),
    "negative_exit_code": ("sys.exit(-9)", 247),
    "broken_standard_output": ("os.close(1); os.open('main.py', 0); print('x'); sys.stdout.flush()", 120),
}
_SIGNALS = {
    "abort": 6,
    "kill": 9,
    "terminate": 15,
    "segmentation_fault": 11,
    "user_signal": 10,
    "interrupt": 2,
    "quit": 3,
}

PROGRAMS = family(
    "output",
    [
        *(
            Hostile(
                f"endless_{name}",
                lines(code, "harm('all of it')"),
                status=OUTPUT,
                limit="stdout",
                inside={"most": 10**9},
                outside={"most": 400},
            )
            for name, code in _ENDLESS.items()
        ),
        *(
            Hostile(
                f"endless_{name}",
                code,
                status=OUTPUT,
                control=Control.SAME,
                inside={"most": 10**9},
                outside={"most": 10},
            )
            for name, code in _STREAMS.items()
        ),
        Hostile(
            "one_byte_too_many",
            """\
            os.write(1, b'x' * 4097)
            harm()""",
            status=OUTPUT,
            limit="stdout",
        ),
        Hostile(
            "sleeping_after_too_much",
            """\
                os.write(1, b'x' * 5000)
                __import__('time').sleep(told['long'])
                harm()""",
            status=OUTPUT,
            limit="stdout",
            inside={"long": 600},
            outside={"long": 0.1},
            bounds={"wall_seconds": 900.0},
        ),
        *(
            Hostile(f"says_{name}", code, status=OK, says="", control=Control.SAME, output=output)
            for name, (code, output) in _EXACT.items()
        ),
        *(
            Hostile(f"ends_{name}", code, status=FAILED, control=Control.SAME, exit_code=code_)
            for name, (code, code_) in _LIES.items()
        ),
        *(
            Hostile(
                f"ends_by_{name}",
                f"import signal\nsignal.signal({number}, signal.SIG_DFL) if {number} != 9 else None\n"
                f"os.kill(os.getpid(), {number})\n__import__('time').sleep(1)",
                status=SIGNALED,
                control=Control.SAME,
            )
            for name, number in _SIGNALS.items()
        ),
        Hostile(
            "lies_a_killed_child",
            """\
            child = os.fork()
            if child == 0:
                call(165, b'none', b'/tmp', b'tmpfs', 0, None)
                os._exit(0)
            found = os.waitpid(child, 0)[1]
            held() if os.WIFSIGNALED(found) else print('lived')
            """,
            status=OK,
            control=Control.LIVES,
        ),
        Hostile(
            "lies_a_signal_of_the_filter",
            """\
                os.kill(os.getpid(), 31)
                __import__('time').sleep(1)""",
            status=KILLED,
            control=Control.SAME,
        ),
        Hostile(
            "lies_a_signal_of_the_processor_limit",
            """\
                import signal
                signal.signal(24, signal.SIG_DFL)
                os.kill(os.getpid(), 24)
                __import__('time').sleep(1)""",
            status=SIGNALED,
            control=Control.SAME,
        ),
        Hostile(
            "lies_no_memory", "sys.stderr.write('MemoryError\\n'); os._exit(1)", status=FAILED, control=Control.SAME
        ),
        Hostile("closes_all_descriptors", "os.closerange(0, 1024)", status=OK | FAILED, says="", control=Control.SAME),
        Hostile(
            "closes_standard_output",
            """\
                os.close(1)
                __import__('time').sleep(0.05)
                os._exit(0)""",
            status=OK,
            says="",
            control=Control.SAME,
        ),
        Hostile(
            "kills_who_started_it",
            """\
                os.kill(os.getppid(), 9)
                __import__('time').sleep(2)""",
            status=SIGNALED,
            control=Control.NONE,
        ),
        Hostile(
            "signals_who_started_it",
            """\
                for n in (1, 2, 3, 6, 10, 11, 12, 13, 14, 15, 31):
                    os.kill(os.getppid(), n)
                held()""",
            control=Control.NONE,
        ),
        *(
            Hostile(
                f"stops_{name}",
                f"os.kill({process}, 19)\nheld()",
                status=WALL,
                says="held",
                control=Control.NONE,
                bounds={"wall_seconds": 0.4},
            )
            for name, process in {"who_started_it": "os.getppid()", "everybody": "-1"}.items()
        ),
    ],
)
