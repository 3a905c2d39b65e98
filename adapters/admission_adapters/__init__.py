"""Executors of approved work. They touch disks, networks and other processes, always under a permit."""
