"""The decision API: HTTP in front of an engine. It reads, asks and answers; it decides nothing.

The parser and the event loop are those of uvicorn (httptools, uvloop), driven by a protocol of our own:
a request costs a third of what it costs through ASGI, and deadlines and sizes apply from the first byte on.
"""
