"""Programs that leave something running behind: each has to be dead before its answer."""

from __future__ import annotations

from tests.adapters.sandbox.hostile.model import FAILED, OK, SIGNALED, WALL, Control, Hostile, family

_STAY = "__import__('time').sleep(told['long']); os._exit(0)"
_DAEMONS = {
    "child": f"if os.fork() == 0:\n    {_STAY}",
    "session": f"if os.fork() == 0:\n    os.setsid(); {_STAY}",
    "double_fork": f"if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        {_STAY}\n    os._exit(0)\nos.wait()",
    "five_sessions": f"for _ in range(5):\n    if os.fork() == 0:\n        os.setsid(); {_STAY}",
    "closed_streams": f"if os.fork() == 0:\n    os.setsid(); os.closerange(0, 64); {_STAY}",
    "kept_streams": f"if os.fork() == 0:\n    os.setsid(); os.dup2(1, 40); {_STAY}",
    "ignoring_signals": "import signal\nif os.fork() == 0:\n    os.setsid()\n    for n in (1, 2, 3, 13, 15):\n"
    f"        signal.signal(n, signal.SIG_IGN)\n    {_STAY}",
    "stopped": "child = os.fork()\nif child == 0:\n    os.setsid()\n"
    f"    os.kill(os.getpid(), 19) if not told['outside'] else None\n    {_STAY}",
    "another_program": "import subprocess\nsubprocess.Popen(['/bin/sleep', str(told['long'])], start_new_session=True,\n"
    "    stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)",
    "by_a_shell": "import subprocess\nsubprocess.run(['/bin/sh', '-c', '(sleep %s &) > /dev/null 2>&1' % told['long']])",
    "no_hang_up": "import subprocess\nsubprocess.Popen(['/usr/bin/nohup', '/bin/sleep', str(told['long'])],\n"
    "    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)",
    "spinning": "import time\nend = time.monotonic() + told['long']\nif os.fork() == 0:\n    os.setsid()\n"
    "    while time.monotonic() < end:\n        pass\n    os._exit(0)",
    "forking_on": "import time\nend = time.monotonic() + told['long']\nif os.fork() == 0:\n    os.setsid()\n"
    "    while time.monotonic() < end:\n        if os.fork() != 0:\n            os._exit(0)\n        time.sleep(0.002)\n    os._exit(0)",
    "waiting_for_the_end_of_its_parent": "parent = os.getpid()\nif os.fork() == 0:\n    os.setsid()\n"
    f"    while os.getppid() == parent:\n        __import__('time').sleep(0.001)\n    {_STAY}",
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
            Hostile(name, f"{code}\nheld()", inside={"long": 600}, outside={"long": 3})
            for name, code in _DAEMONS.items()
        ),
        *(
            Hostile(
                f"session_and_{name}",
                f"{_DAEMONS['five_sessions']}\nheld()\n{code}",
                status=status,
                inside={"long": 600},
                outside={"long": 3},
                bounds={"wall_seconds": 0.5},
            )
            for name, (code, status) in _ENDS.items()
        ),
        Hostile(
            "thread_that_stays",
            "import threading, time\nthreading.Thread(target=time.sleep, args=(told['long'],)).start()\nheld()",
            status=WALL,
            control=Control.SAME,
            inside={"long": 600},
            outside={"long": 0.1},
            bounds={"wall_seconds": 0.5},
        ),
        Hostile(
            "thread_that_is_left",
            "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\nheld()",
            status=OK,
            control=Control.SAME,
        ),
    ],
)
