"""The compiled functions of `scipy.special`, without the Python modules around them.

`import scipy.special` takes 0.16 s of processor time, and most of it goes into parts of numpy that nothing here uses
(`numpy.f2py`, `numpy.testing`). The functions themselves are in one extension module, which loads in 0.02 s: see
docs/decisions/0282-special-functions-without-their-package.md.
"""

import importlib._bootstrap
import importlib.machinery
import sys
from functools import cache
from typing import Any

# In this order none of them asks for the package. Another version may be laid out otherwise, and is imported as usual.
_KNOWN_VERSIONS = ("1.17.",)
_PRIVATE = ("_ModuleLockManager", "_load_unlocked")
"""What is used of Python's import system and has no public name; a Python without them imports the whole package."""
_MODULES = ("_sf_error", "_ufuncs_cxx", "_ellip_harm_2", "_special_ufuncs", "_gufuncs", "_ufuncs")


@cache
def special() -> Any:
    """The module with `ndtri`, `stdtrit`, `betaincinv` and their like: the functions that `scipy.special` exports."""
    import scipy

    folder = [f"{place}/special" for place in scipy.__path__]
    names = [f"scipy.special.{name}" for name in _MODULES]
    specs = {full: importlib.machinery.PathFinder.find_spec(full, folder) for full in names}
    if (
        "scipy.special" in sys.modules
        or not scipy.__version__.startswith(_KNOWN_VERSIONS)
        or None in specs.values()
        or not all(hasattr(importlib._bootstrap, name) for name in _PRIVATE)
    ):
        import scipy.special as whole

        return whole
    for full, spec in specs.items():
        # As an `import` does it: under the lock of the module, and only if no other thread was first. All this is
        # without a public name.
        with importlib._bootstrap._ModuleLockManager(full):  # type: ignore[attr-defined]
            if full not in sys.modules:
                importlib._bootstrap._load_unlocked(spec)  # type: ignore[attr-defined]
    return sys.modules["scipy.special._ufuncs"]
