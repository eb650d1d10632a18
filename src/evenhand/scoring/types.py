"""`ScorerInput`, under the name that scorers import it by."""

from evenhand.core.sample import ScorerInput

__all__ = ["ScorerInput"]
