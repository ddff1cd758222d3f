"""Bound what a tab may set: values within the range of a control, and nothing else of it."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import viser

NEVER = frozenset({"ShareUrlRequest", "ShareUrlDisconnect"})
"""Messages that are dropped: they would open the page to the internet."""
_log = logging.getLogger(__name__)


class RefusedError(ValueError):
    """A value that no control of the page sends."""


def _number(handle: Any, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RefusedError(f"a finite number is expected; {value!r} given")
    return min(max(value, handle.min), handle.max)


def _choice(handle: Any, value: Any) -> Any:
    if not isinstance(value, str) or value not in handle.options:
        raise RefusedError(f"one of {handle.options} is expected; {value!r} given")
    return value


def _switch(handle: Any, value: Any) -> Any:
    if not isinstance(value, bool):
        raise RefusedError(f"true or false is expected; {value!r} given")
    return value


BOUNDS: dict[str, Callable[[Any, Any], Any]] = {
    "GuiSliderHandle": _number,
    "GuiDropdownHandle": _choice,
    "GuiCheckboxHandle": _switch,
    "GuiButtonHandle": _switch,
}
"""Kind of control -> (control, value that a tab sends) -> value that it gets. Others keep the checks of the library."""


def bound(server: viser.ViserServer) -> None:
    """Let the messages of tabs through only as far as the controls of the page go."""
    messages = server._websock_server  # pyright: ignore[reportPrivateUsage]
    take = messages._handle_incoming_message  # pyright: ignore[reportPrivateUsage]

    async def bounded(client_id: Any, message: Any) -> None:
        try:
            await take(client_id, allowed(server, message))
        except Exception as error:
            _log.info("a message %s was dropped: %r", type(message).__name__, error)

    messages._handle_incoming_message = bounded  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]


def allowed(server: viser.ViserServer, message: Any) -> Any:
    """Return a message with its value in bounds; raise `RefusedError` if there is no such value."""
    kind = type(message).__name__
    if kind in NEVER:
        raise RefusedError(f"{kind} is not taken")
    controls = server.gui._gui_input_handle_from_uuid  # pyright: ignore[reportPrivateUsage]
    if kind == "FileTransferStartUpload":
        target = controls.get(message.source_component_uuid)
        if type(target).__name__ != "GuiUploadButtonHandle":
            raise RefusedError("no control of the page takes a file")
    if kind != "GuiUpdateMessage" or (handle := controls.get(message.uuid)) is None:
        return message
    if list(message.updates) != ["value"]:
        raise RefusedError(f"a tab sets values only; {sorted(map(str, message.updates))} given")
    check = BOUNDS.get(type(handle).__name__)
    return message if check is None else replace(message, updates={"value": check(handle, message.updates["value"])})
