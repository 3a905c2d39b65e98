"""The backend `gvisor`: a kernel in user space answers the system calls."""
