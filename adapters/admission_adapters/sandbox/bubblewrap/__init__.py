"""The backend `bubblewrap`: namespaces, a seccomp filter and kernel limits."""
