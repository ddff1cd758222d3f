"""Gymnasium's robots in a vertical plane: Hopper-v5, HalfCheetah-v5 and Walker2d-v5."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
from casadi import SX

from costate.tasks.locomotion.v5.definition import PRACTICE, VersionFive, least


class HopperV5(VersionFive):
    """Hopper-v5: healthy above 0.7 m, within 0.2 rad of upright, and with no other coordinate beyond 100."""

    name = "hopper_v5"
    summary = "gymnasium's Hopper-v5: a one-legged robot hops along x"
    training = replace(
        PRACTICE, iterations=1000, batch=128, horizon=32, discount=0.995, state_clip=3000.0, calming=True
    )
    gym, file, skip = "Hopper-v5", "hopper", 4
    cost, noise = 1e-3, 5e-3
    care = 4.0

    def observation_of(self, x: SX, action: SX, time: SX) -> SX:
        nq = self.world.nq
        return ca.vertcat(x[1:nq], ca.fmin(ca.fmax(x[nq:], -10), 10))

    def margin_of(self, x: SX) -> SX:
        return least(x[1] - 0.7, 0.2 - ca.fabs(x[2]), 100 - ca.fabs(x[2:]))

    def safety_of(self, x: SX) -> SX:
        return least((x[1] - 0.7) / 0.4, 1 - ca.fabs(x[2]) / 0.2, 100 - ca.fabs(x[2:]))


class Walker2dV5(HopperV5):
    """Walker2d-v5: healthy between 0.8 and 2 m and within 1 rad of upright."""

    name = "walker2d_v5"
    summary = "gymnasium's Walker2d-v5: a two-legged robot walks along x"
    training = replace(HopperV5.training, iterations=700, batch=256, discount=0.99)
    gym, file, skip = "Walker2d-v5", "walker2d_v5", 4
    practice = {"integrator": "euler"}  # noqa: RUF012
    care = 2.0

    def margin_of(self, x: SX) -> SX:
        return least(x[1] - 0.8, 2 - x[1], 1 - ca.fabs(x[2]))

    def safety_of(self, x: SX) -> SX:
        return self.margin_of(x) / 0.4


class HalfCheetahV5(VersionFive):
    """HalfCheetah-v5: an episode always lasts its time."""

    name = "half_cheetah_v5"
    summary = "gymnasium's HalfCheetah-v5: a two-legged robot runs along x"
    training = PRACTICE
    gym, file, skip = "HalfCheetah-v5", "half_cheetah", 5
    alive, cost, noise, normal = 0.0, 0.1, 0.1, True

    def observation_of(self, x: SX, action: SX, time: SX) -> SX:
        return x[1:]
