"""Programs that leave odd things in their artifact folder: nothing comes out but plain files within the bounds."""

from __future__ import annotations

from tests.adapters.sandbox.hostile.model import OK, Control, Hostile, family, lines

_TAKEN = {"artifact_files": 8, "artifact_bytes": 65536}
_OUT = """\
os.makedirs('artifacts', exist_ok=True)
secret = told['home'] + '/.ssh/id_ed25519'
"""
_ODD = {
    "link_to_a_secret": "os.symlink(secret, 'artifacts/out')",
    "link_to_a_folder_of_secrets": "os.symlink(told['home'] + '/.ssh', 'artifacts/out')",
    "link_to_root": "os.symlink('/', 'artifacts/out')",
    "link_upwards": "os.symlink('../../..', 'artifacts/out')",
    "link_to_itself": "os.symlink('out', 'artifacts/out')",
    "link_to_nothing": "os.symlink('/no/such/file', 'artifacts/out')",
    "link_instead_of_the_folder": "os.rename('artifacts', 'kept'); os.symlink(told['home'] + '/.ssh', 'artifacts')",
    "file_instead_of_the_folder": "os.rename('artifacts', 'kept'); open('artifacts', 'w').write('x')",
    "link_to_standard_input": "os.symlink('/dev/stdin', 'artifacts/out')",
    "link_to_memory": "os.symlink('/proc/self/mem', 'artifacts/out')",
    "link_to_an_endless_device": "os.symlink('/dev/zero', 'artifacts/out')",
    "hard_link": "os.link('main.py', 'artifacts/out')",
    "link_to_a_link": "os.symlink(secret, 'artifacts/one'); os.symlink('one', 'artifacts/two')",
    "sparse_file": "open('artifacts/out', 'wb').truncate(2**22)",
    "large_file": "open('artifacts/out', 'wb').write(b'x' * 2**20)",
    "too_many_files": """\
        for n in range(100):
            open('artifacts/f%d' % n, 'w').write('x')""",
    "too_many_folders": """\
        for n in range(100):
            os.mkdir('artifacts/d%d' % n)""",
    "deep_folders": """\
        here = 'artifacts'
        for n in range(200):
            here += '/d'
            os.mkdir(here)
        open(here + '/f', 'w').write('x')""",
    "no_permission": "open('artifacts/out', 'w').write('x'); os.chmod('artifacts/out', 0)",
    "folder_without_permission": "os.chmod('artifacts', 0)",
}
_NAMES = {
    "like_an_option": "b'--recursive'",
    "like_the_shell": "b'$(touch planted);`id`'",
    "with_a_newline": "b'a\\nb'",
    "with_escapes": "b'\\x1b[2Jclear'",
    "not_utf8": "b'\\xff\\xfe'",
    "very_long": "b'x' * 255",
    "backslashes": "b'..\\\\..\\\\up'",
    "two_dots_and_more": "b'...'",
    "blank": "b'  '",
    "right_to_left": "'\\u202egpj.exe'.encode()",
    "one_like_main": "b'main.py'",
}

PROGRAMS = family(
    "folder",
    [
        *(
            Hostile(
                f"leaves_{name}",
                lines(_OUT, code, "held()"),
                status=OK,
                bounds=_TAKEN,
                artifacts=None if name == "too_many_files" else (),
                control=Control.HARM if "secret" in name else Control.SAME,
            )
            for name, code in _ODD.items()
        ),
        *(
            Hostile(
                f"named_{name}",
                f"{_OUT}open(b'artifacts/' + {code}, 'w').write('x')\nheld()",
                status=OK,
                bounds=_TAKEN,
                control=Control.SAME,
            )
            for name, code in _NAMES.items()
        ),
        *(
            Hostile(
                f"leaves_{name}",
                f"{_OUT}try:\n    {code}\nexcept OSError as error:\n    held(error.errno)\nelse:\n    held('left')",
                status=OK,
                bounds=_TAKEN,
                artifacts=(),
                control=Control.SAME,
            )
            for name, code in {
                "fifo": "os.mkfifo('artifacts/out')",
                "device": "os.mknod('artifacts/out', 0o20666, os.makedev(1, 5))",
                "socket": "__import__('socket').socket(1).bind('artifacts/out')",
            }.items()
        ),
        Hostile(
            "changes_while_taken",
            f"""{_OUT}
if os.fork() == 0:
    os.setsid()
    end = __import__('time').monotonic() + (600 if not told['outside'] else 0.2)
    while __import__('time').monotonic() < end:
        try:
            open('artifacts/out', 'w').write('x'); os.unlink('artifacts/out'); os.symlink(secret, 'artifacts/out')
            os.unlink('artifacts/out')
        except OSError:
            pass
    os._exit(0)
held()
""",
            status=OK,
            bounds=_TAKEN,
            control=Control.SAME,
        ),
        Hostile(
            "without_artifacts",
            f"{_OUT}open('artifacts/out', 'w').write('x')\nheld()",
            status=OK,
            artifacts=(),
            control=Control.SAME,
        ),
    ],
)
