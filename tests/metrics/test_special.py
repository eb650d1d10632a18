"""The special functions come without their package, and are those of the package all the same."""

import subprocess
import sys

import pytest

from evenhand.metrics.special import special

USED = (
    "ndtri",
    "ndtr",
    "stdtrit",
    "stdtr",
    "betaincinv",
    "bdtr",
    "betaln",
    "xlogy",
    "xlog1py",
    "nctdtr",
    "gammaln",
)


def answer(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_package_is_not_loaded_for_them() -> None:
    program = """
import sys
from evenhand.metrics.quantiles import beta_quantile, normal_quantile, t_quantile
print(normal_quantile(0.975), t_quantile(0.975, 7.0), beta_quantile(0.025, 3.0, 4.0))
print([name for name in ("scipy.special", "numpy.f2py", "numpy.testing") if name in sys.modules])
"""
    values, loaded = answer(program).splitlines()
    from scipy.special import betaincinv, ndtri, stdtrit

    assert values.split() == [
        str(float(one)) for one in (ndtri(0.975), stdtrit(7.0, 0.975), betaincinv(3.0, 4.0, 0.025))
    ]
    assert loaded == "[]", "this scipy is laid out otherwise: see metrics/special.py"


@pytest.mark.parametrize(
    "first", ["evenhand.metrics.special; evenhand.metrics.special.special()", "scipy.special"]
)
def test_they_are_the_same_objects_whoever_comes_first(first: str) -> None:
    program = f"""
import {first}
from evenhand.metrics.special import special
import scipy.special, scipy.stats
print(all(getattr(special(), name) is getattr(scipy.special, name) for name in {USED}))
print(scipy.special.logsumexp([0.0, 0.0]) > 0.69, scipy.stats.norm.ppf(0.975) == special().ndtri(0.975))
"""
    assert answer(program).split() == ["True"] * 3


def test_another_thread_may_import_the_package_at_the_same_time() -> None:
    program = """
import threading
import numpy

def package():
    import scipy.special
    found.append(scipy.special.ndtri(0.975))

def ours():
    from evenhand.metrics.special import special
    found.append(special().ndtri(0.975))

found = []
threads = [threading.Thread(target=one) for one in (package, ours, package, ours)]
for one in threads:
    one.start()
for one in threads:
    one.join()
print(len(found), len(set(found)))
"""
    for _ in range(3):
        assert answer(program) == "4 1"


def test_every_function_is_there() -> None:
    assert all(callable(getattr(special(), name)) for name in USED)
