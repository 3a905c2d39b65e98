"""Programs that reach for other processes, or bring machine code of their own."""

from __future__ import annotations

from tests.adapters.sandbox.hostile.model import KILLED, OK, SIGNALED, Control, Hostile, attempt, family

_OTHERS = {
    "signal_the_victim": "os.kill(told['victim'], told['signal'])",
    "signal_the_parent_of_the_engine": "os.kill(told['engine'], 0)",
    "signal_the_group_of_the_victim": "os.killpg(told['victim_group'], told['signal'])",
    "descriptor_of_the_victim": "os.pidfd_open(told['victim'])",
    "signal_by_descriptor": """\
        import signal
        signal.pidfd_send_signal(os.pidfd_open(told['victim']), told['signal'])""",
    "priority_of_the_victim": "os.setpriority(os.PRIO_PROCESS, told['victim'], 19)",
    "processors_of_the_victim": "os.sched_setaffinity(told['victim'], {0})",
    "memory_of_the_victim": """\
        with open('/proc/%d/mem' % told['victim'], 'rb', 0) as memory:
            memory.seek(told['address'])
            assert told['mark'].encode() in memory.read(200)""",
    "own_memory": """\
        import ctypes
        text = ctypes.create_string_buffer(b'before')
        with open('/proc/self/mem', 'r+b', 0) as memory:
            memory.seek(ctypes.addressof(text))
            memory.write(b'after!')""",
    "vector_read_of_the_victim": """\
        import ctypes
        room = ctypes.create_string_buffer(200)
        ours = (ctypes.c_void_p * 2)(ctypes.addressof(room), 200)
        theirs = (ctypes.c_void_p * 2)(told['address'], 200)
        call(310, told['victim'], ours, 1, theirs, 1, 0)
        assert told['mark'].encode() in room.raw""",
    "attach_to_the_victim": """\
        call(101, 16, told['victim'], 0, 0)
        os.waitpid(told['victim'], 0x40000000)
        call(101, 17, told['victim'], 0, 0)""",
    "list_processes": "assert len([n for n in os.listdir('/proc') if n.isdigit()]) > 3",
    "executable_of_the_victim": "os.readlink('/proc/%d/exe' % told['victim'])",
    "maps_of_the_victim": "open('/proc/%d/maps' % told['victim']).read(10)",
    "wait_for_all_by_number": "[os.getsid(n) for n in (told['victim'],)]",
    "group_of_the_victim": "os.getpgid(told['victim'])",
}

_CODE = """\
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex({code!r}))
run = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print('lived', run(), flush=True)
"""
_MACHINE = {
    "thirty_two_bit_getpid": "b814000000cd80c3",  # mov eax, 20; int 0x80; ret
    "thirty_two_bit_ptrace": "53b81a00000031dbcd805bc3",  # mov eax, 26; xor ebx, ebx; int 0x80
    "thirty_two_bit_unshare": "53b836010000bb00000010cd805bc3",  # mov eax, 310; mov ebx, CLONE_NEWUSER
    "thirty_two_bit_socket": "53b867010000bb01000000b901000000ba00000000cd805bc3",  # mov eax, 359
    "bare_io_uring": "b8a9010000bf0400000031f60f05c3",  # mov eax, 425; mov edi, 4; syscall
    "bare_keyctl": "b8fa00000031ff48c7c6fdffffff31d20f05c3",  # mov eax, 250; edi = 0, rsi = -3
    "bare_personality": "b887000000bfffffffff0f05c3",  # mov eax, 135; edi = 0xffffffff
    "bare_x32_getpid": "b8270000400f05c3",  # mov eax, 0x40000027; syscall
}
_FAULTS = {
    "privileged_instruction": ("f4c3", SIGNALED),  # hlt
    "port_output": ("b080e670c3", SIGNALED),  # mov al, 0x80; out 0x70, al
    "interrupts_off": ("fac3", SIGNALED),  # cli
    "illegal_instruction": ("0f0bc3", SIGNALED),  # ud2
    "null_pointer": ("31c08b00c3", SIGNALED),  # xor eax, eax; mov eax, [rax]
    "debug_trap": ("ccc3", SIGNALED),  # int3
}


def _victim(name: str) -> Hostile:
    killed = name in {"vector_read_of_the_victim", "attach_to_the_victim"}
    return Hostile(
        name,
        attempt(_OTHERS[name], "harm('reached')"),
        status=KILLED if killed else OK,
        control=Control.NONE if name == "signal_the_parent_of_the_engine" else Control.HARM,
        inside={"signal": 9},
        outside={"signal": 0},
    )


PROGRAMS = family(
    "processes",
    [
        *(_victim(name) for name in _OTHERS),
        Hostile(
            "signal_everybody",
            """\
            try:
                os.kill(-1, told['signal'])
            except OSError as error:
                held(error)
            else:
                harm('everybody') if told['outside'] else None
            """,
            status=SIGNALED,
            inside={"signal": 9},
            outside={"signal": 0},
        ),
        Hostile(
            "signal_the_first_process",
            """\
            for number in (9, 15, 19, 11):
                try:
                    os.kill(1, number)
                except OSError as error:
                    held(error)
            held('still here')
            """,
            control=Control.NONE,
        ),
        *(
            Hostile(f"machine_{name}", _CODE.format(code=code), status=KILLED, control=Control.LIVES)
            for name, code in _MACHINE.items()
        ),
        *(
            Hostile(f"machine_{name}", _CODE.format(code=code), status=status, control=Control.SAME)
            for name, (code, status) in _FAULTS.items()
        ),
    ],
)
