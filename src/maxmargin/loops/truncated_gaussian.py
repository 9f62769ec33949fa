"""Paths through a Gaussian that walls through the origin cut or lower.

The density of z is N(0, I)·exp(−Σ cost over the walls a with a·z < 0); an infinite cost cuts the
space, a finite one makes a step. The motion of a particle with energy ½‖z‖² + ½‖v‖² + Σ cost is
known exactly:

    z(t) = z cos t + v sin t,    v(t) = −z sin t + v cos t,    a·z(t) = p cos t + q sin t

with p = a·z and q = a·v, so that a wall is met at the angle atan2(p, −q): the first one is that
with the smallest q/p. There, the velocity along the wall's normal (a has length 1) is reversed, or
the wall is crossed at the price of its cost: v² ← v² − 2·cost if that is positive; on the way back
it is v² + 2·cost. Both keep the energy and can be run backwards, so that a path of fixed duration
from a velocity drawn from N(0, I) leaves the density as it is. A path that meets too many walls is
rejected: its way back would be, too. Pakman & Paninski (2014); the steps as in their section on
binary variables, whose walls are refracting.
"""

import math
from typing import Any

from maxmargin.loops.compiled import compiled

# p of a wall that was just left, or that rounding put on the wrong side.
_TOUCHING = 1e-300
_STRICTLY = 1e-14  # of ‖z‖, by which a kept draw must be off every wall


@compiled
def _begin(walls: Any, velocities: Any, chain: Any, duration: float) -> None:
    """Begin the next path."""
    path = chain.counts[0]
    for j in range(chain.z.shape[0]):
        chain.start[j], chain.v[j] = chain.z[j], velocities[path, j]
    for i in range(walls.shape[0]):
        along, ahead = 0.0, 0.0
        for j in range(chain.z.shape[0]):
            along += walls[i, j] * chain.z[j]
            ahead += walls[i, j] * chain.v[j]
        chain.p[i], chain.q[i] = along, ahead
        chain.side[i] = 1.0 if along > 0.0 else -1.0
    chain.times[0], chain.counts[1], chain.counts[2] = duration, 1, 0


@compiled
def _first(p: Any, q: Any, side: Any) -> Any:
    """Return the wall that is met first, and the angle at which it is."""
    first, least_p, least_q = -1, 0.0, 1.0
    for i in range(p.shape[0]):
        own_p, own_q = max(side[i] * p[i], _TOUCHING), side[i] * q[i]
        if own_q * least_p < least_q * own_p:
            first, least_p, least_q = i, own_p, own_q
    if first < 0:
        return first, math.pi
    return first, math.atan2(least_p, -least_q)


@compiled
def _turn(x: Any, y: Any, cosine: float, sine: float) -> None:
    for i in range(x.shape[0]):
        before = x[i]
        x[i] = before * cosine + y[i] * sine
        y[i] = y[i] * cosine - before * sine


@compiled
def _push(walls: Any, products: Any, k: int, change: float, v: Any, q: Any) -> None:
    """Change the velocity along the normal of wall k."""
    for j in range(v.shape[0]):
        v[j] += change * walls[k, j]
    known = products.shape[0] > 0
    for i in range(q.shape[0]):
        if known:
            q[i] += change * products[k, i]
        else:
            product = 0.0
            for j in range(v.shape[0]):
                product += walls[k, j] * walls[i, j]
            q[i] += change * product


@compiled
def _meet(walls: Any, products: Any, cost: Any, k: int, chain: Any) -> None:
    """Cross wall k if the speed allows it, else come back from it."""
    speed, towards = abs(chain.q[k]), -chain.side[k]
    square = speed * speed + 2.0 * towards * cost[k]
    if square > 0.0:
        velocity = towards * math.sqrt(square)
        chain.side[k] = towards
    else:
        velocity = -towards * speed
        chain.counts[3] += 1
    _push(walls, products, k, velocity - chain.q[k], chain.v, chain.q)
    chain.p[k], chain.q[k] = 0.0, velocity
    chain.counts[2] += 1
    chain.counts[5] += 1


@compiled
def _clear(walls: Any, side: Any, z: Any) -> bool:
    """Return whether a point is on the known side of every wall, by more than rounding."""
    square = 0.0
    for j in range(z.shape[0]):
        square += z[j] * z[j]
    least = _STRICTLY * math.sqrt(square)
    for i in range(walls.shape[0]):
        product = 0.0
        for j in range(z.shape[0]):
            product += walls[i, j] * z[j]
        if not side[i] * product > least:
            return False
    return True


@compiled
def _finish(chain: Any, rejected: bool, length: float, draws: Any) -> None:
    """End a path: keep where it led to, or where it came from if it is rejected."""
    square = 0.0
    for j in range(chain.z.shape[0]):
        if rejected:
            chain.z[j] = chain.start[j]
        square += chain.z[j] * chain.z[j]
    factor = length / math.sqrt(square) if length > 0.0 else 1.0
    for j in range(chain.z.shape[0]):
        chain.z[j] *= factor
        draws[chain.counts[0], j] = chain.z[j]
    chain.counts[4] += 1 if rejected else 0
    chain.counts[0] += 1
    chain.counts[1] = 0


@compiled
def follow(
    walls: Any, products: Any, cost: Any, duration: float, most: int, velocities: Any,
    lengths: Any, chain: Any, draws: Any, setup: int, budget: int,
) -> Any:  # fmt: skip
    """Follow paths one after the other until all are done or ``budget`` steps were made.

    It returns how many steps there were; beginning and ending a path counts as ``setup`` of them.

    Where it stands is in ``chain``, so that the next call goes on from there: z, v, the products p
    and q with the walls, the side of each (1 or −1), the start of the path, times (left of this
    path, of all) and counts (paths done, whether one is under way, walls met by it, reflections of
    all, rejected paths, walls met by all).

    ``lengths`` are those of the draws: with walls through the origin the length of z is
    independent of its direction, so that it is drawn anew; 0 keeps what the path led to.
    ``products`` of all walls with each other may be empty: they are computed then.
    """
    times, counts, steps = chain.times, chain.counts, 0
    while counts[0] < velocities.shape[0] and steps < budget:
        steps += 1
        if counts[1] == 0:
            _begin(walls, velocities, chain, duration)
            steps += setup
        wall, angle = _first(chain.p, chain.q, chain.side)
        ends = angle >= times[0]
        step = times[0] if ends else angle
        times[0] -= step
        times[1] += step
        cosine, sine = math.cos(step), math.sin(step)
        _turn(chain.z, chain.v, cosine, sine)
        if ends:
            rejected = not _clear(walls, chain.side, chain.z)
        else:
            _turn(chain.p, chain.q, cosine, sine)
            _meet(walls, products, cost, wall, chain)
            rejected = counts[2] > most
        if ends or rejected:
            _finish(chain, rejected, lengths[counts[0]], draws)
    return steps
