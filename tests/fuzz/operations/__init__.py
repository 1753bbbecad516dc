"""All that the driver does to the library, in small operations. Each is a function of the
world and of random numbers of its own, so that it can be left out of a sequence."""

from operations import exports, lifetimes, nonsense, sharing, views
from operations.steps import OPERATIONS, choose

__all__ = [
    "OPERATIONS",
    "choose",
    "exports",
    "lifetimes",
    "nonsense",
    "sharing",
    "views",
]
