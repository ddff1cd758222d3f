"""The package gymnasium, or the message how to install it."""

from __future__ import annotations

from costate.core.extras import needs

try:
    import gymnasium
except ImportError as error:
    raise ImportError(needs("costate.envs", "gymnasium", "rl")) from error

__all__ = ["gymnasium"]
