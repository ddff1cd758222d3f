"""The contact models that come with the package, and the one that worlds have by default."""

from __future__ import annotations

from typing import Any

from costate.sim.contact.compliant import Compliant
from costate.sim.contact.hard.model import Hard
from costate.sim.contact.model import ContactModel
from costate.sim.contact.newton.model import Newton
from costate.sim.contact.pgs.model import PGS
from costate.sim.contact.smooth import NoContact, SmoothContact

DEFAULT = Hard()


def contact_model(given: Any) -> ContactModel:
    """Return the contact model of World(contact=given)."""
    if given is None:
        return NoContact()
    if isinstance(given, ContactModel):
        return given
    hint = f"; make one of the class: {given.__name__}()" if isinstance(given, type) else ""
    raise TypeError(
        f"contact must be Hard(...), PGS(...), Compliant(...), Newton(...), a ContactModel of your own or None, not {given!r}{hint}"
    )


__all__ = [
    "DEFAULT",
    "PGS",
    "Compliant",
    "ContactModel",
    "Hard",
    "Newton",
    "NoContact",
    "SmoothContact",
    "contact_model",
]
