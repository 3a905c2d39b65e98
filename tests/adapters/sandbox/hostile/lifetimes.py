"""Programs that leave something running behind: each has to be dead before its answer."""

from __future__ import annotations

from tests.adapters.sandbox.hostile.model import FAILED, OK, SIGNALED, WALL, Control, Hostile, family, lines

_STAY = """\
def stay():
    __import__('time').sleep(told['long'])
    os._exit(0)
"""
_DAEMONS = {
    "child": """\
        if os.fork() == 0:
            stay()""",
    "session": """\
        if os.fork() == 0:
            os.setsid(); stay()""",
    "double_fork": """\
        if os.fork() == 0:
            os.setsid()
            stay() if os.fork() == 0 else os._exit(0)
        os.wait()""",
    "five_sessions": """\
        for _ in range(5):
            if os.fork() == 0:
                os.setsid(); stay()""",
    "closed_streams": """\
        if os.fork() == 0:
            os.setsid(); os.closerange(0, 64); stay()""",
    "kept_streams": """\
        if os.fork() == 0:
            os.setsid(); os.dup2(1, 40); stay()""",
    "ignoring_signals": """\
        import signal
        if os.fork() == 0:
            os.setsid()
            for number in (1, 2, 3, 13, 15):
                signal.signal(number, signal.SIG_IGN)
            stay()""",
    "stopped": """\
        if os.fork() == 0:
            os.setsid()
            os.kill(os.getpid(), 19) if not told['outside'] else None
            stay()""",
    "another_program": """\
        import subprocess
        subprocess.Popen(['/bin/sleep', str(told['long'])], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)""",
    "by_a_shell": """\
        import subprocess
        subprocess.run(['/bin/sh', '-c', '(sleep %s &) > /dev/null 2>&1' % told['long']])""",
    "no_hang_up": """\
        import subprocess
        subprocess.Popen(['/usr/bin/nohup', '/bin/sleep', str(told['long'])],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)""",
    "spinning": """\
        import time
        end = time.monotonic() + told['long']
        if os.fork() == 0:
            os.setsid()
            while time.monotonic() < end:
                pass
            os._exit(0)""",
    "forking_on": """\
        import time
        end = time.monotonic() + told['long']
        if os.fork() == 0:
            os.setsid()
            while time.monotonic() < end:
                if os.fork() != 0:
                    os._exit(0)
                time.sleep(0.002)
            os._exit(0)""",
    "waiting_for_the_end_of_its_parent": """\
        parent = os.getpid()
        if os.fork() == 0:
            os.setsid()
            while os.getppid() == parent:
                __import__('time').sleep(0.001)
            stay()""",
}
_ENDS = {
    "failure": ("os._exit(3)", FAILED),
    "signal": ("os.kill(os.getpid(), 9)", SIGNALED),
    "time": ("__import__('time').sleep(600 if not told['outside'] else 0)", WALL),
}

PROGRAMS = family(
    "lifetimes",
    [
        *(
            Hostile(name, lines(_STAY, code, "held()"), inside={"long": 600}, outside={"long": 20})
            for name, code in _DAEMONS.items()
        ),
        *(
            Hostile(
                f"session_and_{name}",
                lines(_STAY, _DAEMONS["five_sessions"], "held()", code),
                status=status,
                says="held",
                inside={"long": 600},
                outside={"long": 20},
                bounds={"wall_seconds": 0.5} if status == WALL else {},
            )
            for name, (code, status) in _ENDS.items()
        ),
        Hostile(
            "thread_that_stays",
            """\
                import threading, time
                threading.Thread(target=time.sleep, args=(told['long'],)).start()
                held()""",
            status=WALL,
            says="held",
            control=Control.SAME,
            inside={"long": 600},
            outside={"long": 0.1},
            bounds={"wall_seconds": 0.5},
        ),
        Hostile(
            "thread_that_is_left",
            """\
                import threading, time
                threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
                held()""",
            status=OK,
            control=Control.SAME,
        ),
    ],
)
