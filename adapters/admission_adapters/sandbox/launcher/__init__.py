"""The launcher: the program that runs first in a sandbox and starts the untrusted one."""
