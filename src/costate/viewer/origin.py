"""Check who opens a page: only browsers on this machine that show this very page may."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from costate.viewer.title import titled

LOCAL = frozenset({"127.0.0.1", "localhost", "::1"})
TOLD = "COSTATE_VIEW_HOSTS"
"""Environment variable with other names under which the page may be opened, separated by commas: those of a proxy."""
LARGEST = 1 << 20
"""Largest message that a tab may send [bytes]. Its own messages have some hundred."""
_one_at_a_time = threading.Lock()
_log = logging.getLogger(__name__)


def told_hosts() -> frozenset[str]:
    """Return the names that the user allows besides those of this machine."""
    return frozenset(name.strip().lower() for name in os.environ.get(TOLD, "").split(",") if name.strip())


def refusal(hosts: Sequence[str], origins: Sequence[str], told: frozenset[str] = frozenset()) -> str | None:
    """Return why a request with these headers Host and Origin is refused; None if it is not.

    The host must be this machine, or a foreign page could reach the server under a name of its own that leads here. The
    origin, which browsers send with every web socket, must be the page of this server. Programs send none.
    """
    name = _name(f"//{hosts[0]}") if len(hosts) == 1 else None
    if name not in LOCAL | told:
        return f"this page is open to 127.0.0.1 and localhost only; {TOLD} allows other names"
    if not origins:
        return None
    page = _name(origins[0]) if len(origins) == 1 else None
    if page in told or (page == name and urlsplit(origins[0]).netloc.lower() == hosts[0].lower()):
        return None
    return f"another page may not connect to this one; {TOLD} allows the name of a proxy"


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


@contextmanager
def only_from_here(port: int, title: str) -> Iterator[None]:
    """Check the headers of every request to the server that is started inside of this context on a port, and title its page.

    The library of the page starts its server without such a check and takes none: it is added on the way.
    """
    import websockets.asyncio.server as library

    original, found = library.serve, []

    def serve(handler: Any, host: Any = None, at: Any = None, **options: Any) -> Any:
        if at != port:  # somebody else's, on another thread
            return original(handler, host, at, **options)
        found.append(at)
        options |= {"process_request": _checked(options.get("process_request"), title), "max_size": LARGEST}
        return original(_quiet(handler), host, at, **options)

    with _one_at_a_time:
        library.serve = serve  # pyright: ignore[reportAttributeAccessIssue]
        try:
            yield
        finally:
            library.serve = original
    if not found:
        _log.warning("this version of viser starts its server in another way: Host and Origin are not checked")


def _checked(answer: Callable[[Any, Any], Any] | None, title: str) -> Callable[[Any, Any], Any]:
    """Return an answer to requests that refuses foreign ones."""
    told = told_hosts()

    def checked(connection: Any, request: Any) -> Any:
        why = refusal(request.headers.get_all("Host"), request.headers.get_all("Origin"), told)
        if why is not None:
            return connection.respond(HTTPStatus.FORBIDDEN, why + "\n")
        return None if answer is None else titled(answer(connection, request), title)

    return checked


def _quiet(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a handler of connections that closes those which send what is no message, without a traceback."""

    async def quiet(connection: Any) -> None:
        try:
            await handler(connection)
        except Exception as error:
            _log.info("a connection was closed: %r", error)
            await connection.close(1003, "not a message of this page")

    return quiet
