"""One single-use sandbox as a process: start, supervision, end and result. Shared by all backends."""
