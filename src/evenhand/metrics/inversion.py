"""Distributions of sums from their characteristic functions: the limit of infinitely many resamples.

The mean of a resample is a sum of n independent draws, so its characteristic function is that of one draw to
the power n; a sum with random signs has a product of cosines. Some thirty frequencies give the distribution
function to ten digits (Davies 1973, Biometrika 60:415):

    F(x) = ½ − Σ_k Im(φ(t_k) e^{−i t_k x}) / (π (k + ½)),   t_k = (k + ½)Δ

in units of the standard deviation. Cutting the series where φ has died away smooths the steps of F; that is
harmless while the steps are small, so φ is also looked at beyond the cut, up to the frequency of steps of
`FINEST_STEP` standard deviations. Where φ does not die away, or comes back, the answer here is None and the
caller resamples.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evenhand.metrics.types import FloatArray

SPACING = 2.0 * math.pi / 24.0
"""Δ: the period is 24 standard deviations, far beyond any mass."""
FINEST_STEP = 0.05
"""Steps of F up to this many standard deviations may be smoothed away: half of one is a Monte-Carlo error of a
2.5 % quantile from 10,000 resamples."""

_DEAD = 1e-11  # what is left of φ where the series is cut
_ALIVE = 1e-3  # what φ must stay below beyond the cut
_QUIET = 4  # so many dead terms in a row end the series
_MOST_TERMS = 300
_LAST = int(2.0 * math.pi / FINEST_STEP / SPACING)
_SUBSAMPLE = 1024
_BATCH = 36  # nearly always enough
_PIECE = 8192


@dataclass(frozen=True)
class Inverted:
    """A distribution in units of its standard deviation, around its mean."""

    terms: npt.NDArray[np.complex128]

    def cdf(self, x: float) -> float:
        """P(X ≤ x), x in standard deviations from the mean."""
        k = np.arange(self.terms.size) + 0.5
        waves = self.terms * np.exp(-1j * SPACING * x * k)
        return float(min(1.0, max(0.0, 0.5 - float((waves.imag / k).sum()) / math.pi)))

    def quantile(self, p: float) -> float:
        """x with P(X ≤ x) = p."""
        return bisected(lambda x: self.cdf(x) - p, -12.0, 12.0)


def bisected(rising: Callable[[float], float], low: float, high: float, *, halvings: int = 48) -> float:
    """Where a rising function crosses 0."""
    for _ in range(halvings):
        middle = (low + high) / 2.0
        if rising(middle) < 0.0:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def mean_distribution(values: FloatArray, weights: FloatArray, n: int) -> Inverted | None:
    """The mean of n draws from `values` with probabilities `weights`, standardised; None where it has steps."""
    mean = float((weights * values).sum())
    sd = float((weights * (values - mean) ** 2).sum()) ** 0.5
    if sd == 0.0 or n < 2:
        return None
    scaled = (values - mean) / (sd * n**0.5)
    terms: list[complex] = []
    quiet = 0
    while quiet < _QUIET:
        if len(terms) >= _MOST_TERMS:
            return None
        for base in _characteristic(scaled, weights, len(terms), _BATCH):
            terms.append(_power(complex(base), n))
            quiet = quiet + 1 if abs(terms[-1]) < _DEAD else 0
            if quiet == _QUIET:
                break
    if float(scaled.max() - scaled.min()) > FINEST_STEP and _returns(scaled, weights, n, len(terms)):
        return None
    return Inverted(np.array(terms))


def _characteristic(
    scaled: FloatArray, weights: FloatArray, first: int, count: int
) -> npt.NDArray[np.complex128]:
    """Σ wⱼ e^{i t_k xⱼ} for `count` frequencies from the `first` on, by turning one wave step by step.

    In pieces that fit the cache, and below the length at which BLAS would start threads: on a busy machine
    those cost more than the sum.
    """
    out = np.zeros(count, dtype=np.complex128)
    for start in range(0, scaled.size, _PIECE):
        piece = scaled[start : start + _PIECE]
        shares = weights[start : start + _PIECE].astype(np.complex128)
        wave = _wave((first + 0.5) * SPACING * piece)
        turn = _wave(SPACING * piece)
        for k in range(count):
            out[k] += shares @ wave
            wave *= turn
    return out


def _wave(angles: FloatArray) -> npt.NDArray[np.complex128]:
    wave = np.empty(angles.size, dtype=np.complex128)
    np.cos(angles, out=wave.real)
    np.sin(angles, out=wave.imag)
    return wave


def _power(base: complex, n: int) -> complex:
    size = abs(base)
    if size == 0.0 or n * math.log(size) < -700.0:
        return 0j
    return complex(np.exp(n * np.log(base)))


def _returns(scaled: FloatArray, weights: FloatArray, n: int, first: int) -> bool:
    # To come back φ must be near 1 for a single draw, that is, nearly all values on a lattice; a subsample
    # across the ranks shows that as well as all of them.
    if scaled.size > _SUBSAMPLE:
        picked = np.linspace(0, scaled.size - 1, _SUBSAMPLE).astype(np.int64)
        scaled, weights = scaled[picked], weights[picked] / weights[picked].sum()
    sizes = np.abs(_characteristic(scaled, weights, first, _LAST - first))
    return bool((n * np.log(sizes + 1e-300) > math.log(_ALIVE)).any())


def ratio_cdf(sums: FloatArray, sizes: FloatArray, ratio: float) -> float | None:
    """P(Σ sums / Σ sizes ≤ ratio) over resampled groups; None where the distribution has steps.

    The ratio is at most r exactly when the sum of (sum − r·size) over the groups drawn is at most 0.
    """
    shifted = sums - ratio * sizes
    found = mean_distribution(shifted, np.full(sums.size, 1.0 / sums.size), sums.size)
    if found is None:
        return None
    return found.cdf(-float(shifted.mean() / shifted.std()) * sums.size**0.5)


def flip_distribution(sizes: FloatArray) -> Inverted | None:
    """Σ ±sizes with fair random signs, standardised; None where it has steps."""
    scaled = sizes / float((sizes**2).sum()) ** 0.5
    terms: list[complex] = []
    quiet = 0
    while quiet < _QUIET:
        if len(terms) == _MOST_TERMS:
            return None
        term = float(np.cos((len(terms) + 0.5) * SPACING * scaled).prod())
        terms.append(complex(term))
        quiet = quiet + 1 if abs(term) < _DEAD else 0
    if 2.0 * float(scaled.max()) > FINEST_STEP:
        largest = np.sort(scaled)[-_SUBSAMPLE:]  # a product of some of the cosines bounds that of all
        for k in range(len(terms), _LAST):
            if abs(float(np.cos((k + 0.5) * SPACING * largest).prod())) > _ALIVE:
                return None
    return Inverted(np.array(terms))
