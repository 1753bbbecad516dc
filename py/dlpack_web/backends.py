"""The GPU backends, for packages beside dlpack_web, without a promise between minor versions.

A backend does the GPU work of its devices; `dlpack_web.webgpu` is over them.
"""

from ._backends import default, owner

__all__ = ["default", "owner"]
