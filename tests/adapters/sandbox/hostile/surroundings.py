"""Programs that look for what they were not given: variables, open descriptors, terminals, other code."""

from __future__ import annotations

from tests.adapters.sandbox.hostile.model import Control, Hostile, attempt, family

_ENVIRONMENT = {
    "os_environ": "found = [v for v in os.environ.values() if told['mark'] in v]",
    "bytes_of_environ": "found = [v for v in os.environb.values() if told['mark'].encode() in v]",
    "of_c_library": """\
        import ctypes
        environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), 'environ')
        found, at = [], 0
        while environ[at]:
            found += [environ[at]] if told['mark'].encode() in environ[at] else []
            at += 1""",
    "of_a_child": """\
        import subprocess
        out = subprocess.run(['/usr/bin/env'], capture_output=True).stdout
        found = [1] if told['mark'].encode() in out else []""",
    "own_in_proc": "found = [1] if told['mark'] in open('/proc/self/environ').read() else []",
    "of_parent": "found = [1] if told['mark'] in open('/proc/%d/environ' % os.getppid()).read() else []",
    "of_victim": "found = [1] if told['mark'] in open('/proc/%d/environ' % told['victim']).read() else []",
    "of_everybody": """\
        found = []
        for name in os.listdir('/proc'):
            if name.isdigit():
                try:
                    found += [name] if told['mark'] in open('/proc/%s/environ' % name).read() else []
                except OSError:
                    pass""",
    "argument_list": "found = [1] if told['mark'] in open('/proc/%d/cmdline' % told['victim']).read() else []",
}

_DESCRIPTORS = {
    "read_all": """\
        found = []
        for number in range(1024):
            try:
                found += [number] if number > 2 and told['mark'].encode() in os.pread(number, 400, 0) else []
            except OSError:
                pass""",
    "count_all": """\
        found = []
        for number in range(3, 1024):
            try:
                os.fstat(number)
            except OSError:
                continue
            found.append(number)""",
    "write_all": """\
        found = []
        for number in range(3, 1024):
            try:
                os.write(number, b'{ "exit-code": 0 }\\n')
            except OSError:
                continue
            found.append(number)""",
    "seek_standard_input_back": """\
        found = []
        try:
            os.lseek(0, 0, 0)
            os.ftruncate(0, 0)
            found = [0]
        except OSError:
            pass""",
    "duplicate_high": """\
        import fcntl
        found = []
        for number in range(3, 64):
            try:
                found.append(fcntl.fcntl(number, fcntl.F_DUPFD, 50))
            except OSError:
                pass""",
    "through_proc": """\
        found = [n for n in os.listdir('/proc/self/fd') if int(n) > 2]""",
    "walk_up_from_a_folder": """\
        found = []
        for number in range(3, 1024):
            try:
                found.append(os.listdir(number))
            except OSError:
                pass""",
    "execute_inherited": """\
        import ctypes
        found, nothing = [], (ctypes.c_char_p * 1)()
        for number in range(3, 1024):
            try:
                call(322, number, b'', nothing, nothing, 0x1000)
            except OSError as error:
                found += [number] if error.errno in (13, 8) else []""",
    "exit_status_on_standard_streams": """\
        os.write(1, b'{ "exit-code": 0, "child-pid": 1 }\\nR\\nG\\n'); os.write(2, b'{ "exit-code": 0 }\\n')
        found = []""",
}

_TERMINAL = {
    "open_the_terminal": "tried(os.open, '/dev/tty', os.O_RDWR)",
    "open_the_console": "tried(os.open, '/dev/console', os.O_RDWR)",
    "push_into_the_terminal": """\
        import fcntl
        def push():
            terminal = next(n for n in (os.open('/dev/tty', os.O_RDWR),))
            for letter in 'echo out\\n':
                fcntl.ioctl(terminal, 0x5412, letter.encode())
        tried(push)""",
    "push_into_standard_streams": """\
        import fcntl
        for number in range(3):
            tried(fcntl.ioctl, number, 0x5412, b'x')""",
    "take_a_terminal": """\
        import fcntl
        tried(fcntl.ioctl, 0, 0x540E, 1)""",
    "paste_of_a_console": """\
        import fcntl
        tried(fcntl.ioctl, 0, 0x541C, b'\\x03' + bytes(7))""",
    "new_pseudo_terminal_push": """\
        import fcntl
        def push():
            leader, follower = os.openpty()
            fcntl.ioctl(follower, 0x5412, b'x')
        tried(push)""",
}

_IMPORTS = {
    "module_beside_the_program": """\
        open('colorsys.py', 'w').write('SECRET = 1')
        import colorsys
        harm('ours') if hasattr(colorsys, 'SECRET') else held()""",
    "module_for_a_child": """\
        import subprocess
        open('json.py', 'w').write('print("HARM hijacked")')
        flags = [] if told['outside'] else ['-s', '-S', '-P']
        print(subprocess.run([sys.executable, *flags, '-c', 'import json'], capture_output=True, text=True).stdout)
        held()""",
    "user_customization": "harm('ran') if 'usercustomize' in sys.modules else held()",
    "site_customization": "harm('ran') if getattr(sys.modules.get('sitecustomize'), 'SECRET', 0) else held()",
    "path_file": "harm('ran') if hasattr(sys, 'planted_by_path_file') else held()",
    "user_packages": "tried(lambda: __import__('planted_user_package'))",
    "python_path": "tried(lambda: __import__('planted_on_python_path'))",
    "site_packages": """\
        found = [path for path in sys.path if path.endswith('-packages')]
        harm(found) if found else held()""",
    "script_folder": """\
        found = [path for path in sys.path if path in ('', os.getcwd())]
        harm(found) if found else held()""",
    "change_the_running_program": """\
        me = __file__ if '__file__' in globals() else 'main.py'
        def change():
            with open(me, 'r+') as file:
                file.write('#')
        tried(change)""",
    "replace_the_running_program": "open('other', 'w').write('x'); os.replace('other', 'main.py'); held()",
    "remove_the_running_program": "os.unlink('main.py'); held()",
    "mode_of_the_running_program": "os.chmod('main.py', 0o777); held()",
}


def _control(name: str) -> Control:
    if name.endswith("_the_running_program") and not name.startswith("change"):
        return Control.SAME  # its own copy in its own folder
    if name in {"exit_status_on_standard_streams", "seek_standard_input_back"}:
        return Control.SAME
    if name in {"of_parent", "open_the_console", "paste_of_a_console", "take_a_terminal"}:
        return Control.NONE
    if name.startswith(("push_into", "new_pseudo")):
        return Control.NONE  # kernels of today refuse it to every user unless a setting says otherwise
    return Control.HARM


PROGRAMS = family(
    "surroundings",
    [
        *(
            Hostile(f"{kind}_{name}", attempt(code, "harm(len(found)) if found else held()"), control=_control(name))
            for kind, codes in (("environment", _ENVIRONMENT), ("descriptors", _DESCRIPTORS))
            for name, code in codes.items()
        ),
        *(
            Hostile(f"{kind}_{name}", code, control=_control(name))
            for kind, codes in (("terminal", _TERMINAL), ("imports", _IMPORTS))
            for name, code in codes.items()
        ),
    ],
)
