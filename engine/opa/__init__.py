"""The bundled OPA: built from its pinned Go module, run as a private process behind a unix socket."""
