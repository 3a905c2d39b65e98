"""The bundled OPA: built from its pinned Go module, run as a private process, asked over a unix socket."""
