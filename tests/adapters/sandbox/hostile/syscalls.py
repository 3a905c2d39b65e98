"""Programs that ask the kernel for what no honest program needs: one call each, with arguments that mean it.

Numbers are those of x86_64. As positive control each call is tried by the same user without a sandbox,
where it succeeds or is refused for want of privileges, and the program goes on; in the sandbox it ends.
"""

from __future__ import annotations

from tests.adapters.sandbox.hostile.model import KILLED, Control, Hostile, family

_BUFFER = "(__import__('ctypes').c_char * 4096)()"
_CALLS = {
    "ptrace_attach": "101, 16, told['victim'], 0, 0",
    "ptrace_trace_me": "101, 0, 0, 0, 0",
    "process_vm_readv": "310, told['victim'], None, 0, None, 0, 0",
    "process_vm_writev": "311, told['victim'], None, 0, None, 0, 0",
    "process_madvise": "440, 0, None, 0, 21, 0",
    "kcmp": "312, os.getpid(), told['victim'], 0, 0, 0",
    "mount_tmpfs": "165, b'none', b'/tmp', b'tmpfs', 0, None",
    "mount_proc": "165, b'proc', b'/tmp', b'proc', 0, None",
    "mount_writable_again": "165, b'none', b'/', None, 4128, None",
    "umount": "166, b'/tmp', 2",
    "pivot_root": "155, b'/tmp', b'/tmp'",
    "change_root": "161, b'/tmp'",
    "open_tree": "428, -100, b'/', 1",
    "move_mount": "429, -1, b'', -100, b'/tmp', 4",
    "fsopen": "430, b'tmpfs', 0",
    "fsconfig": "431, -1, 6, None, None, 0",
    "fsmount": "432, -1, 0, 0",
    "fspick": "433, -100, b'/', 0",
    "mount_setattr": "442, -100, b'/', 0, None, 0",
    "io_uring_setup": f"425, 4, {_BUFFER}",
    "io_uring_enter": "426, -1, 1, 0, 0, None, 0",
    "io_uring_register": "427, -1, 0, None, 0",
    "bpf_program": f"321, 5, {_BUFFER}, 48",
    "bpf_map": f"321, 0, {_BUFFER}, 48",
    "perf_event_open": f"298, {_BUFFER}, 0, -1, -1, 0",
    "userfaultfd": "323, 1",
    "add_key": "248, b'user', b'planted', b'x', 1, -2",
    "request_key": "249, b'user', b'planted', None, -2",
    "keyctl_new_session": "250, 1, b'planted'",
    "keyctl_read": f"250, 11, -3, {_BUFFER}, 4096",
    "personality_without_randomization": "135, 0x0040000",
    "personality_read_implies_exec": "135, 0x0400000",
    "kexec_load": "246, 0, 0, None, 0",
    "kexec_file_load": "320, -1, -1, 0, None, 0",
    "init_module": "175, b'', 0, b''",
    "finit_module": "313, 0, b'', 0",
    "delete_module": "176, b'no_such_module', 2048",
    "open_by_handle": f"304, -100, {_BUFFER}, 0",
    "name_to_handle": f"303, -100, b'/', {_BUFFER}, {_BUFFER}, 0",
    "pidfd_getfd": "438, -1, 0, 0",
    "swap_on": "167, b'/no/such/file', 0",
    "swap_off": "168, b'/no/such/file'",
    "reboot_keys_off": "169, 0xFEE1DEAD, 672274793, 0, None",
    "set_time_of_day": "164, None, None",
    "set_clock": f"227, 0, {_BUFFER}",
    "adjust_clock": f"159, {_BUFFER}",
    "adjust_one_clock": f"305, 0, {_BUFFER}",
    "process_accounting": "163, b'/no/such/file'",
    "quota": "179, 0x800002, None, 0, None",
    "io_privilege_level": "172, 3",
    "io_permissions": "173, 0, 1, 1",
    "local_descriptor_table": f"154, 0, {_BUFFER}, 4096",
    "kernel_log": "103, 10, None, 0",
    "watch_everything": "300, 0, 0",
    "hang_up": "153,",
    "set_host_name": "170, b'owned', 5",
    "set_domain_name": "171, b'owned', 5",
    "directory_entry_cache": "212, 0, None, 0",
}

_NAMESPACES = {
    "mounts": 0x00020000,
    "cgroup": 0x02000000,
    "host_name": 0x04000000,
    "ipc": 0x08000000,
    "user": 0x10000000,
    "pid": 0x20000000,
    "network": 0x40000000,
}
_USER = 0x10000000
_CHILD_EXITS = "(os._exit(0) if child == 0 else (os.waitpid(child, 0), harm('made')))"


def _clone(flags: int) -> str:
    return f"child = call(56, {flags | 17}, None, None, None, None)\n{_CHILD_EXITS}"


PROGRAMS = family(
    "syscalls",
    [
        *(
            Hostile(
                f"call_{name}",
                f"try:\n    harm(call({arguments}))\nexcept OSError as error:\n    print('lived', error.errno)",
                status=KILLED,
                control=Control.LIVES,
            )
            for name, arguments in _CALLS.items()
        ),
        *(
            Hostile(f"unshare_{name}", f"tried(call, 272, {_USER | flag})", status=KILLED)
            for name, flag in _NAMESPACES.items()
        ),
        *(Hostile(f"clone_{name}", _clone(_USER | flag), status=KILLED) for name, flag in _NAMESPACES.items()),
        Hostile(
            "clone3_user",
            f"""\
            import ctypes, struct
            try:
                child = call(435, struct.pack('=11Q', {_USER}, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0), 88)
            except OSError as error:
                held(error.errno)
            else:
                {_CHILD_EXITS}
            """,
        ),
        *(
            Hostile(
                f"setns_{name}",
                f"""\
                import ctypes
                handle = os.pidfd_open(os.getpid()) if hasattr(os, 'pidfd_open') and told['outside'] else -1
                print('asking', flush=True)
                try:
                    harm(call(308, handle, {flag}))
                except OSError as error:
                    print('lived', error.errno)
                """,
                status=KILLED,
                control=Control.LIVES,
                says="asking",
            )
            for name, flag in _NAMESPACES.items()
        ),
        *(
            Hostile(
                f"x32_{name}",
                f"""\
                try:
                    harm(call({0x40000000 | number}))
                except OSError as error:
                    print('lived', error.errno)
                """,
                status=KILLED,
                control=Control.LIVES,
            )
            for name, number in {"getpid": 39, "ptrace": 521, "execve": 520}.items()
        ),
        Hostile("unknown_call", "tried(call, 999, 0)", control=Control.NONE),
        Hostile("unknown_negative_call", "tried(call, -1 & 0x3FFFFFFF, 0)", control=Control.NONE),
        Hostile("set_user_to_root", "tried(os.setuid, 0)", control=Control.NONE),
        Hostile("set_group_to_root", "tried(os.setgid, 0)", control=Control.NONE),
        Hostile("give_a_file_away", "open('f', 'w'); tried(os.chown, 'f', 0, 0)", control=Control.NONE),
        Hostile(
            "capabilities", "tried(call, 126, b'\\x22\\x05\\x08\\x20' + bytes(4), b'\\xff' * 24)", control=Control.NONE
        ),
        Hostile("seccomp_of_its_own", "tried(call, 317, 1, 0, bytes(16))", control=Control.NONE),
        Hostile(
            "loosen_limits",
            """\
                import resource
                try:
                    resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))
                    harm()
                except (OSError, ValueError) as error:
                    held(error)""",
            control=Control.NONE,
        ),
        Hostile("limits_of_another", f"tried(call, 302, told['victim'], 7, None, {_BUFFER})"),
        Hostile("priority", "tried(os.nice, -5)", control=Control.NONE),
        Hostile("real_time", "tried(os.sched_setscheduler, 0, os.SCHED_FIFO, os.sched_param(1))", control=Control.NONE),
        Hostile("device_node", "tried(os.mknod, 'disk', 0o60666, os.makedev(254, 0))", control=Control.NONE),
        Hostile("anonymous_file", "tried(os.memfd_create, 'hidden')"),
        Hostile("message_queue", "tried(lambda: call(71, call(68, 0, 0o1600), 0, None))"),
        Hostile("shared_segment", "tried(lambda: call(31, call(29, 0, 4096, 0o1600), 0, None))"),
        Hostile("landlock_off", "tried(call, 446, -1, 0)", control=Control.NONE),
        Hostile(
            "set_user_id_bit",
            """\
            import stat, subprocess
            open('shell', 'wb').write(open('/usr/bin/true', 'rb').read())
            os.chmod('shell', 0o4755)
            held() if subprocess.run(['./shell']).returncode == 0 and os.getuid() != 0 else harm()
            """,
            control=Control.NONE,
        ),
        Hostile(
            "become_root_by_a_program",
            """\
            import subprocess, glob
            for name in ('su', 'sudo', 'mount', 'newuidmap', 'passwd'):
                path = '/usr/bin/' + name
                if os.path.exists(path):
                    found = subprocess.run([path, '--version'] if name != 'su' else [path, '-c', 'id'],
                                           stdin=subprocess.DEVNULL, capture_output=True)
                    harm(found.stdout) if b'uid=0' in found.stdout else None
            held()
            """,
            control=Control.NONE,
        ),
    ],
)
