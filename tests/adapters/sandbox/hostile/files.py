"""Programs that read or change what is the host's: secrets, personal files, the system, the engine."""

from __future__ import annotations

from textwrap import dedent

from tests.adapters.sandbox.hostile.model import FAILED, OK, Control, Hostile, family

_SECRETS = {
    "ssh_key": ".ssh/id_ed25519",
    "ssh_config": ".ssh/config",
    "aws_credentials": ".aws/credentials",
    "gcloud_credentials": ".config/gcloud/application_default_credentials.json",
    "azure_tokens": ".azure/accessTokens.json",
    "kube_config": ".kube/config",
    "docker_login": ".docker/config.json",
    "netrc": ".netrc",
    "postgres_passwords": ".pgpass",
    "git_credentials": ".git-credentials",
    "npm_token": ".npmrc",
    "vault_token": ".vault-token",
    "gnupg_ring": ".gnupg/secring.gpg",
    "password_store": ".password-store/bank.gpg",
    "shell_history": ".bash_history",
    "chrome_logins": ".config/google-chrome/Default/Login Data",
    "chromium_cookies": ".config/chromium/Default/Cookies",
    "firefox_logins": ".mozilla/firefox/x.default/logins.json",
    "mail": ".thunderbird/x.default/Mail/Inbox",
    "documents": "Documents/taxes.txt",
    "photos": "Pictures/family.jpg",
}
SECRETS = tuple(_SECRETS.values())
"""Where the host's canaries are, below the folder that programs are told as `home`."""

_WAYS = {
    "os_open": "tried(lambda: os.read(os.open(path, os.O_RDONLY), 200))",
    "dot_dot": "tried(lambda: open('../' * 40 + path.lstrip('/')).read())",
    "through_cwd_of_proc": "tried(lambda: open('/proc/self/cwd/' + '../' * 40 + path.lstrip('/')).read())",
    "through_root_of_proc": "tried(lambda: open('/proc/self/root' + path).read())",
    "through_root_of_init": "tried(lambda: open('/proc/1/root' + path).read())",
    "symbolic_link": "tried(lambda: (os.symlink(path, 'link'), open('link').read()))",
    "link_to_its_folder": "tried(lambda: (os.symlink(os.path.dirname(path), 'up'), os.listdir('up')))",
    "hard_link": "tried(lambda: (os.link(path, told['scratch'] + '/hard'), open(told['scratch'] + '/hard').read()))",
    "rename_away": "tried(lambda: os.rename(told['loose'], 'mine'))",
    "mapped": """\
        import mmap
        tried(lambda: mmap.mmap(os.open(path, os.O_RDONLY), 0, prot=mmap.PROT_READ)[:200])""",
    "sent": """\
        tried(lambda: os.sendfile(os.open('copy', os.O_CREAT | os.O_WRONLY), os.open(path, os.O_RDONLY), 0, 200))""",
    "copied": """\
        import shutil
        tried(lambda: (shutil.copyfile(path, 'copy'), open('copy').read()))""",
    "by_a_child": """\
        import subprocess
        found = subprocess.run(['/bin/cat', path], capture_output=True)
        harm(found.stdout) if found.stdout else held(found.returncode)""",
    "by_a_shell": """\
        import subprocess
        found = subprocess.run('cat ' + path, shell=True, capture_output=True)
        harm(found.stdout) if found.stdout else held(found.returncode)""",
    "becoming_another_program": """\
        sys.stdout.write('held: nothing was read before\\n'); sys.stdout.flush()
        os.execv('/bin/cat', ['cat', path])""",
    "as_a_module": """\
        import importlib.util
        spec = importlib.util.spec_from_file_location('stolen', told['module'])
        tried(lambda: (m := importlib.util.module_from_spec(spec), spec.loader.exec_module(m), m.SECRET)[2])""",
    "as_a_database": """\
        import sqlite3
        try:
            data = sqlite3.connect('file:' + told['database'] + '?mode=ro', uri=True)
            harm(data.execute('select * from t').fetchall())
        except sqlite3.OperationalError as error:
            held(error)""",
    "openat2": """\
        import ctypes
        how = (ctypes.c_uint64 * 3)(0, 0, 0)
        tried(lambda: os.read(call(437, -100, path.encode(), how, 24), 200))""",
    "path_only_descriptor": """\
        tried(lambda: open('/proc/self/fd/%d' % os.open(path, os.O_PATH)).read())""",
    "folder_descriptor": """\
        tried(lambda: os.read(os.open(os.path.basename(path), 0, dir_fd=os.open(os.path.dirname(path), 0)), 200))""",
    "listed": "tried(lambda: os.listdir(told['home']))",
    "walked": """\
        found = [top for top in os.listdir('/') if top in {'etc', 'root', 'home', 'var', 'boot', 'srv', 'opt', 'mnt'}]
        harm(found) if found else held()""",
}

_SYSTEM = {
    "etc_passwd": ("/etc/passwd", Control.HARM),
    "etc_shadow": ("/etc/shadow", Control.NONE),
    "etc_hostname": ("/etc/hostname", Control.HARM),
    "etc_ssh_host_key": ("/etc/ssh/ssh_host_ed25519_key", Control.NONE),
    "resolv_conf": ("/etc/resolv.conf", Control.NONE),
    "root_home": ("/root/.bashrc", Control.NONE),
    "machine_id": ("/etc/machine-id", Control.NONE),
    "proc_self_maps": ("/proc/self/maps", Control.HARM),
    "proc_version": ("/proc/version", Control.HARM),
    "proc_mounts": ("/proc/self/mountinfo", Control.HARM),
    "proc_net_unix": ("/proc/net/unix", Control.HARM),
    "proc_kallsyms": ("/proc/kallsyms", Control.HARM),
    "proc_init_command": ("/proc/1/cmdline", Control.HARM),
    "proc_keys": ("/proc/keys", Control.HARM),
    "sys_kernel": ("/sys/kernel/mm/transparent_hugepage/enabled", Control.HARM),
    "sys_network_cards": ("/sys/class/net/lo/address", Control.HARM),
    "kernel_log": ("/dev/kmsg", Control.NONE),
    "disk": ("/dev/vda", Control.NONE),
    "physical_memory": ("/dev/mem", Control.NONE),
    "service_account_token": ("/var/run/secrets/kubernetes.io/serviceaccount/token", Control.NONE),
}

_WRITES = {
    "create_beside_canaries": "tried(lambda: open(told['scratch'] + '/planted', 'w').write('x'))",
    "overwrite_a_canary": "tried(lambda: open(told['loose'], 'r+').write('x'))",
    "append_to_authorized_keys": "tried(lambda: open(told['keys'], 'a').write('ssh-ed25519 AAAA'))",
    "truncate_a_canary": "tried(os.truncate, told['loose'], 0)",
    "remove_a_canary": "tried(os.unlink, told['loose'])",
    "change_mode_of_a_canary": "tried(os.chmod, told['owned'], 0o777)",
    "time_of_a_canary": "tried(os.utime, told['owned'], (1, 1))",
    "folder_in_tmp_of_host": "tried(os.mkdir, told['scratch'] + '/folder')",
    "shared_memory_of_host": "tried(lambda: open(told['shm'], 'r+').write('x'))",
}

_READ_ONLY = {
    "usr_bin": "tried(lambda: open('/usr/bin/planted', 'w'))",
    "usr_local": "tried(lambda: open('/usr/local/planted', 'w'))",
    "standard_library": "tried(lambda: open(os.path.dirname(os.__file__) + '/planted.py', 'w'))",
    "root": "tried(lambda: os.mkdir('/planted'))",
    "dev": "tried(lambda: open('/dev/planted', 'w').write('x' * 100))",
    "interpreter_in_use": "tried(lambda: open(sys.executable, 'r+b'))",
    "core_pattern": "tried(lambda: open('/proc/sys/kernel/core_pattern', 'w'))",
    "sysctl": "tried(lambda: open('/proc/sys/kernel/randomize_va_space', 'w'))",
    "sysrq": "tried(lambda: open('/proc/sysrq-trigger', 'w'))",
    "release_agent": "tried(lambda: open('/sys/fs/cgroup/memory/release_agent', 'w'))",
    "uevent_helper": "tried(lambda: open('/sys/kernel/uevent_helper', 'w'))",
    "score_of_the_killer": "tried(lambda: open('/proc/1/oom_score_adj', 'w').write('-1000'))",
    "uid_map": "tried(lambda: open('/proc/self/uid_map', 'w').write('0 0 1'))",
}

PROGRAMS = family(
    "files",
    [
        *(
            Hostile(f"secret_{name}", f"tried(lambda: open(told['home'] + '/{path}').read())")
            for name, path in _SECRETS.items()
        ),
        *(
            Hostile(
                f"reach_{name}",
                f"path = told['home'] + '/.ssh/id_ed25519'\n{dedent(way)}",
                status=FAILED if name == "becoming_another_program" else OK,
                says="held",
                control=Control.NONE if name == "through_root_of_init" else Control.HARM,
            )
            for name, way in _WAYS.items()
        ),
        *(
            Hostile(f"system_{name}", f"tried(lambda: os.read(os.open({path!r}, os.O_RDONLY), 200))", control=control)
            for name, (path, control) in _SYSTEM.items()
        ),
        *(Hostile(f"write_{name}", code) for name, code in _WRITES.items()),
        *(Hostile(f"read_only_{name}", code, control=Control.NONE) for name, code in _READ_ONLY.items()),
    ],
)
