"""One release for all engines of a state: activated once, and served by all of them from one moment on."""
