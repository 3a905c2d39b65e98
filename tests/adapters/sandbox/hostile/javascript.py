"""The same in JavaScript: what a program for Node would try."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.adapters.sandbox.hostile.model import FAILED, MEMORY, OK, OUTPUT, SIGNALED, TIME, Control, Hostile, family

_ROOM: dict[str, Any] = {
    "memory_bytes": 1024 * 1024 * 1024,
    "wall_seconds": 10.0,
    "processes": 32,
    "stderr_bytes": 65536,
}
_TRIED = {
    "reads_a_secret": "tried(() => fs.readFileSync(told.home + '/.ssh/id_ed25519', 'utf8'));",
    "reads_the_system": "tried(() => fs.readFileSync('/etc/passwd', 'utf8'));",
    "writes_beside_canaries": "tried(() => fs.writeFileSync(told.scratch + '/planted', 'x') || 'written');",
    "lists_the_host": "tried(() => fs.readdirSync(told.home));",
    "own_memory": "tried(() => fs.openSync('/proc/self/mem', 'r+'));",
    "environment": """\
        const found = Object.values(process.env).filter((value) => value.includes(told.mark));
        found.length ? harm(found.length) : held();""",
    "descriptors": """\
        const found = [];
        for (let n = 3; n < 1024; n++) {
            const room = Buffer.alloc(400);
            try { fs.readSync(n, room, 0, 400, 0); if (room.includes(told.mark)) found.push(n); } catch { }
        }
        found.length ? harm(found.length) : held();""",
    "child_that_reads": """\
        const { execFileSync } = require('child_process');
        const stdio = ['ignore', 'pipe', 'ignore'];
        tried(() => execFileSync('/bin/cat', [told.home + '/.ssh/id_ed25519'], { stdio }));""",
    "signals_the_victim": "tried(() => process.kill(told.victim, 0));",
    "connects": """\
        const socket = require('net').connect(told.tcp, '127.0.0.1');
        socket.on('connect', () => { harm('out'); socket.destroy(); }).on('error', (error) => held(error.code));""",
    "connects_by_path": """\
        const socket = require('net').connect(told.unix);
        socket.on('connect', () => { harm('out'); socket.destroy(); }).on('error', (error) => held(error.code));""",
    "sends_a_datagram": """\
        const socket = require('dgram').createSocket('udp4');
        socket.on('error', (error) => { held(error.code); });
        try {
            socket.send('out', told.udp, '127.0.0.1', (error) => {
                error ? held(error.code) : harm('out');
                socket.close();
            });
        } catch (error) { held(error.code); }""",
    "links_an_artifact": """\
        fs.symlinkSync(told.home + '/.ssh/id_ed25519', 'link');
        tried(() => fs.readFileSync('link', 'utf8'));""",
}


def _node(name: str, code: str, bounds: Mapping[str, Any] = _ROOM, **fields: Any) -> Hostile:
    return Hostile(name, code, language="javascript", bounds={**_ROOM, **bounds}, **fields)


PROGRAMS = family(
    "javascript",
    [
        *(_node(name, code, status=OK) for name, code in _TRIED.items()),
        _node("spins", "for (;;) { if (told.outside) { harm(); break; } }", status=TIME, bounds={"wall_seconds": 1.0}),
        _node(
            "sleeps",
            "setTimeout(() => harm(), told.long);",
            status=TIME,
            bounds={"wall_seconds": 1.0},
            inside={"long": 600000},
            outside={"long": 10},
        ),
        _node(
            "talks",
            "for (let n = 0; n < told.most; n++) fs.writeSync(1, 'x'.repeat(100)); harm();",
            status=OUTPUT,
            inside={"most": 1e9},
            outside={"most": 100},
        ),
        _node(
            "hoards",
            "const kept = []; for (let n = 0; n < told.most; n++) kept.push(new Array(2 ** 20).fill(n)); harm();",
            status=MEMORY | SIGNALED,
            inside={"most": 1e9},
            outside={"most": 8},
        ),
        _node(
            "leaves_a_daemon",
            """\
            const { spawn } = require('child_process');
            spawn('/bin/sleep', [String(told.long)], { detached: true, stdio: 'ignore' }).unref();
            held();""",
            status=OK,
            inside={"long": 600},
            outside={"long": 1.5},
        ),
        _node("fails", "process.exit(159);", status=FAILED, control=Control.SAME, exit_code=159),
    ],
)
