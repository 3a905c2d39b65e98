"""The backend `wasmtime`: runs WebAssembly in a process that cannot open files, connect or start programs."""
