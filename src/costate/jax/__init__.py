"""Costate in JAX: kernels, robots and worlds as functions of JAX arrays, on the CPU.

    import costate.jax as cj

    f = cj.function(kernel)          # any `cs.Kernel`
    r = cj.robot(robot)              # r.forward_dynamics(q, v, tau), ...
    w = cj.world(world)              # w.step(state, control), w.rollout(state, controls)

They work under jit, grad, jvp, vmap, hessian, scan and checkpoint, and compute the same bits as with torch. Needs the extra `jax`.
"""

from costate.core.extras import needs

try:
    import jax
except ImportError as error:
    raise ImportError(needs("costate.jax", "jax", "jax")) from error

from costate.jax.function import function
from costate.jax.robots import JaxRobot, robot
from costate.jax.worlds import JaxWorld, world

del jax
__all__ = ["JaxRobot", "JaxWorld", "function", "robot", "world"]
