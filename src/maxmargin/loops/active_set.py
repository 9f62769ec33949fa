"""Descent on a sum of hinges by active sets: rows on their kink stay there while the others move.

    ½‖w‖² + Σ max(lowᵢ(kinkᵢ − fᵢ), highᵢ(kinkᵢ − fᵢ)),      f = Zw + b

Rows beyond their kink have β = low, rows before it β = high, and members, which are on their kinks,
what makes the sum stationary: with u = Σβz over the others, w = u + Σβz over members, f = kink for
members, and Σβ = 0 over all if b is free. These are linear equations, whose inverse is updated when
a member joins or leaves.
"""

from typing import Any

from maxmargin.loops.compiled import compiled

# What ends a descent.
LIMIT, BEST, STUCK = 0, 1, 2

_DEPENDENT = 1e-10  # of a row's squared norm: what is left of it beside the members
_OUTSIDE = 1e-9  # of the distance of its bounds, by which a multiplier may be outside


@compiled
def descend(hinges: Any, at: Any, count: int, rule: Any) -> Any:
    """Go down until no member wants to leave, or by so many steps.

    ``count`` rows are members to begin with. Return their number, the steps, and what ended it.
    """
    given, count = count, count - count
    for a in range(given):
        j = at.members[a]
        if _join(hinges.Z, at, count, j, rule.shift):
            count += 1
        else:
            _leave_behind(hinges, at, j, at.f[j] < hinges.kink[j])
    for step in range(rule.limit):
        p_b, slope, curve, far = _direction(hinges, at, count, rule)
        if curve > rule.flat or far > 1.0:
            hit = _walk(hinges, at, p_b, slope, curve, far)
            if hit < 0 and curve > 0.0:
                continue
            if hit < 0 or not _join(hinges.Z, at, count, hit, rule.shift):
                return count, step, STUCK
            count += 1
            continue
        worst = _worst(hinges, at, count, rule)
        if _mend(hinges, at, count, rule) <= rule.aim or worst < 0:
            return count, step, BEST
        j = at.members[worst]
        before = at.multipliers[worst] > hinges.high[j]
        _leave(at, count, worst)
        _leave_behind(hinges, at, j, before)
        count -= 1
    _mend(hinges, at, count, rule)
    return count, rule.limit, LIMIT


@compiled
def _direction(hinges: Any, at: Any, count: int, rule: Any) -> Any:
    """Set p to the way to where the equations hold; return that of b, slope, curvature and end."""
    p_b = _set_multipliers(hinges, at, count, rule)
    curve = 0.0
    for x in range(at.p.shape[0]):
        at.p[x] = at.u[x] - at.w[x]
    for a in range(count):
        j = at.members[a]
        for x in range(at.p.shape[0]):
            at.p[x] += at.multipliers[a] * hinges.Z[j, x]
    for x in range(at.p.shape[0]):
        curve += at.p[x] * at.p[x]
    if rule.free and count == 0 and at.sums[1] != 0.0:
        # No member holds b: it moves alone until one does.
        for x in range(at.p.shape[0]):
            at.p[x] = 0.0
        return (1.0 if at.sums[1] > 0.0 else -1.0), -abs(at.sums[1]), 0.0, 1e300
    return p_b, -curve, curve, 1.0


@compiled
def _set_multipliers(hinges: Any, at: Any, count: int, rule: Any) -> float:
    """Solve the equations for the multipliers of members, and for b; return by how much b moves."""
    summed = ones = 0.0
    for a in range(count):
        j = at.members[a]
        right = hinges.kink[j] - rule.shift * at.sums[1]
        for x in range(at.u.shape[0]):
            right -= hinges.Z[j, x] * at.u[x]
        at.right[a] = right
    for a in range(count):
        total = share = 0.0
        for c in range(count):
            total += at.inverse[a, c] * at.right[c]
            share += at.inverse[a, c]
        at.multipliers[a] = total
        at.shares[a] = share
        summed += total
        ones += share
    if not rule.free or count == 0:
        return 0.0
    b = (summed + at.sums[1]) / ones
    for a in range(count):
        at.multipliers[a] -= b * at.shares[a]
    return float(b - at.sums[0])


@compiled
def _walk(hinges: Any, at: Any, p_b: float, slope: float, curve: float, far: float) -> Any:
    """Go along p as far as the sum falls; return the row on whose kink that ends, −1: on none."""
    d = at.p.shape[0]
    for i in range(at.f.shape[0]):
        total = p_b
        for x in range(d):
            total += hinges.Z[i, x] * at.p[x]
        at.q[i] = total
    t, hit, left, crossed = _cross(hinges, at, slope, curve, far)
    for k in range(left, crossed):
        j = at.order[k]
        change = hinges.low[j] - hinges.high[j]
        _add(hinges, at, j, change if at.beta[j] == hinges.low[j] else -change)
    for x in range(d):
        at.w[x] += t * at.p[x]
    at.sums[0] += t * p_b
    for i in range(at.f.shape[0]):
        at.f[i] += t * at.q[i]
    return hit


@compiled
def _cross(hinges: Any, at: Any, slope: float, curve: float, far: float) -> Any:
    """Find where the sum is smallest on the way along q, and give rows passed their new β.

    ``slope`` and ``curve`` are the derivatives at the start, pieces as they are. Return the step,
    the row on whose kink it ends (−1: none), and which part of ``order`` has the rows passed.
    """
    found = 0
    for i in range(at.f.shape[0]):
        q, r = at.q[i], hinges.kink[i] - at.f[i]
        before, beyond = at.beta[i] == hinges.high[i], at.beta[i] == hinges.low[i]
        if not at.inside[i] and (
            (before and q > 0.0 and r <= far * q) or (beyond and q < 0.0 and r >= far * q)
        ):
            at.order[found] = i
            at.times[found] = max(r / q, 0.0)
            found += 1
    left = found
    while left > 0:
        first = 0
        for k in range(1, left):
            if at.times[k] < at.times[first]:
                first = k
        t, i = at.times[first], at.order[first]
        if slope + curve * t >= 0.0:
            break
        jump = (hinges.high[i] - hinges.low[i]) * abs(at.q[i])
        if slope + curve * t + jump >= 0.0:
            return t, i, left, found
        slope += jump
        at.beta[i] = hinges.low[i] if at.beta[i] == hinges.high[i] else hinges.high[i]
        left -= 1
        at.order[first], at.times[first] = at.order[left], at.times[left]
        at.order[left] = i
    return (-slope / curve if curve > 0.0 else 0.0), -1, left, found


@compiled
def _worst(hinges: Any, at: Any, count: int, rule: Any) -> int:
    """Return the member whose leaving promises most, −1 if no multiplier is outside its bounds.

    A multiplier outside by δ promises ½δ²/m, where m is its entry on the diagonal of the inverse.
    """
    worst, most, ones = -1, 0.0, 0.0
    for a in range(count):
        ones += at.shares[a]
    for a in range(count):
        j = at.members[a]
        off = max(hinges.low[j] - at.multipliers[a], at.multipliers[a] - hinges.high[j])
        if off > _OUTSIDE * (hinges.high[j] - hinges.low[j]):
            own = at.inverse[a, a] - (at.shares[a] * at.shares[a] / ones if rule.free else 0.0)
            promised = off * off / max(own, 1e-12 * at.inverse[a, a])
            if promised > most:
                worst, most = a, promised
    return worst


@compiled
def _mend(hinges: Any, at: Any, count: int, rule: Any) -> float:
    """Set β of members within their bounds, with the same sum if b is free; return the gap then.

    That is ½‖Σδz‖² where δ is by how much they are not the multipliers: members, on their kinks,
    cost nothing else.
    """
    over = slack = square = 0.0
    for a in range(count):
        j = at.members[a]
        at.beta[j] = min(max(at.multipliers[a], hinges.low[j]), hinges.high[j])
        over += at.multipliers[a] - at.beta[j]
    bound = hinges.high if over > 0.0 else hinges.low
    for a in range(count):
        slack += abs(bound[at.members[a]] - at.beta[at.members[a]])
    if rule.free and slack < abs(over):
        return 1e300
    part = abs(over) / slack if rule.free and over != 0.0 else 0.0
    for x in range(at.p.shape[0]):
        at.p[x] = 0.0
    for a in range(count):
        j = at.members[a]
        at.beta[j] += part * (bound[j] - at.beta[j])
        change = at.beta[j] - at.multipliers[a]
        for x in range(at.p.shape[0]):
            at.p[x] += change * hinges.Z[j, x]
    for x in range(at.p.shape[0]):
        square += at.p[x] * at.p[x]
    return 0.5 * square


@compiled
def _leave_behind(hinges: Any, at: Any, j: int, before: bool) -> None:
    """Let a row that is no member have the β of its side of the kink."""
    at.beta[j] = hinges.high[j] if before else hinges.low[j]
    at.inside[j] = False
    _add(hinges, at, j, at.beta[j])


@compiled
def _add(hinges: Any, at: Any, j: int, change: float) -> None:
    """Add to the sums over rows that are no members."""
    for x in range(at.u.shape[0]):
        at.u[x] += change * hinges.Z[j, x]
    at.sums[1] += change


@compiled
def _join(Z: Any, at: Any, count: int, j: int, shift: float) -> bool:
    """Make row j, whose β is in the sums, a member, unless it depends on those there are."""
    own = shift
    for x in range(Z.shape[1]):
        own += Z[j, x] * Z[j, x]
    for a in range(count):
        total = shift
        for x in range(Z.shape[1]):
            total += Z[at.members[a], x] * Z[j, x]
        at.right[a] = total
    left = own
    for a in range(count):
        total = 0.0
        for c in range(count):
            total += at.inverse[a, c] * at.right[c]
        at.shares[a] = total
        left -= total * at.right[a]
    if left <= _DEPENDENT * own or count == at.members.shape[0]:
        return False
    for a in range(count):
        part = at.shares[a] / left
        for c in range(count):
            at.inverse[a, c] += part * at.shares[c]
        at.inverse[a, count] = -part
        at.inverse[count, a] = -part
    at.inverse[count, count] = 1.0 / left
    at.members[count] = j
    at.inside[j] = True
    for x in range(Z.shape[1]):
        at.u[x] -= at.beta[j] * Z[j, x]
    at.sums[1] -= at.beta[j]
    return True


@compiled
def _leave(at: Any, count: int, place: int) -> None:
    """Take a member out of the inverse; the last one has its place then."""
    last = count - 1
    for a in range(count):
        at.inverse[a, place], at.inverse[a, last] = at.inverse[a, last], at.inverse[a, place]
    for a in range(count):
        at.inverse[place, a], at.inverse[last, a] = at.inverse[last, a], at.inverse[place, a]
    at.members[place] = at.members[last]
    for a in range(last):
        part = at.inverse[a, last] / at.inverse[last, last]
        for c in range(last):
            at.inverse[a, c] -= part * at.inverse[last, c]
