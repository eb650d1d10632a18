"""The Python SDK of the scoring service."""

from evenhand.client.service import ServiceClient

__all__ = ["ServiceClient"]
