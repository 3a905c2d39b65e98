"""Programs that want out by a network: every family of sockets, each way to a listening canary of the host."""

from __future__ import annotations

from textwrap import dedent

from tests.adapters.sandbox.hostile.model import Control, Hostile, attempt, family

_SENT = {
    "tcp": "s = socket.create_connection(('127.0.0.1', told['tcp']), 0.3); s.sendall(b'out')",
    "tcp_ipv6": "s = socket.create_connection(('::1', told['tcp6']), 0.3); s.sendall(b'out')",
    "tcp_by_name": "s = socket.create_connection(('localhost', told['tcp']), 0.3); s.sendall(b'out')",
    "tcp_without_blocking": """\
        s = socket.socket(); s.setblocking(False); s.connect_ex(('127.0.0.1', told['tcp']))""",
    "udp": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'out', ('127.0.0.1', told['udp']))",
    "udp_connected": """\
        s = socket.socket(type=socket.SOCK_DGRAM); s.connect(('127.0.0.1', told['udp'])); s.send(b'out')""",
    "dns_query": """\
        query = b'\\x00\\x07\\x01\\x00\\x00\\x01' + bytes(6) + b'\\x06secret\\x07example\\x00\\x00\\x01\\x00\\x01'
        socket.socket(type=socket.SOCK_DGRAM).sendto(query, ('127.0.0.1', told['udp']))""",
    "unix_path": "s = socket.socket(socket.AF_UNIX); s.connect(told['unix']); s.sendall(b'out')",
    "unix_datagram": """\
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'out', told['unix_datagram'])""",
    "unix_abstract": "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + told['abstract']); s.sendall(b'out')",
    "http_client": """\
        import http.client
        http.client.HTTPConnection('127.0.0.1', told['tcp'], timeout=0.3).request('GET', '/')""",
    "url_library": """\
        import urllib.request
        urllib.request.ProxyHandler({})
        urllib.request.urlopen('http://127.0.0.1:%d/' % told['tcp'], timeout=0.3).read(1)""",
    "mail": """\
        import smtplib
        smtplib.SMTP('127.0.0.1', told['tcp'], timeout=0.3)""",
    "proxy_of_environment": """\
        import urllib.request
        os.environ['http_proxy'] = 'http://127.0.0.1:%d' % told['tcp']
        urllib.request.urlopen('http://example.invalid/', timeout=0.3).read(1)""",
    "event_loop": """\
        import asyncio
        asyncio.run(asyncio.wait_for(asyncio.open_connection('127.0.0.1', told['tcp']), 0.3))""",
    "bare_call": """\
        import ctypes, struct
        number = call(41, 2, 1, 0)
        address = struct.pack('=H', 2) + struct.pack('!H', told['tcp']) + bytes([127, 0, 0, 1]) + bytes(8)
        call(42, number, address, 16)""",
    "shell_redirection": """\
        import subprocess
        subprocess.run(['/bin/bash', '-c', 'echo out > /dev/tcp/127.0.0.1/%d' % told['tcp']], check=True)""",
    "child_interpreter": """\
        import subprocess
        text = "import socket; socket.create_connection(('127.0.0.1', %d), 0.3)" % told['tcp']
        subprocess.run([sys.executable, '-c', text], check=True)""",
}

_OPENED = {
    "listening": ("s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); print(s.getsockname())", Control.HARM),
    "netlink": ("s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0); s.bind((0, 0))", Control.HARM),
    "kernel_events": ("socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, 15).bind((0, 1))", Control.HARM),
    "raw_icmp": ("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)", Control.NONE),
    "packet": ("socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)", Control.NONE),
    "vsock": ("socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)", Control.NONE),
    "kernel_crypto": ("socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)", Control.NONE),
    "bluetooth": ("socket.socket(31, socket.SOCK_RAW, 1)", Control.NONE),
    "multipath_tcp": ("socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)", Control.NONE),
    "names_of_hosts": ("print(socket.getaddrinfo('localhost', 80, type=socket.SOCK_STREAM))", Control.NONE),
    "cards": ("names = [n for _, n in socket.if_nameindex()]; assert names != []", Control.HARM),
}


PROGRAMS = family(
    "network",
    [
        *(
            Hostile(f"send_{name}", attempt(f"import socket\n{dedent(code)}", "harm('out')"))
            for name, code in _SENT.items()
        ),
        *(
            Hostile(f"open_{name}", attempt(f"import socket\n{dedent(code)}", "harm('open')"), control=control)
            for name, (code, control) in _OPENED.items()
        ),
    ],
)
