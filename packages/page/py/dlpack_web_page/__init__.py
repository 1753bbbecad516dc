"""The page's GPU for other kernels, and the page's tensors for other processes.

`dlpack_web_page.widget` lends a kernel on a server the GPU of the page that shows a notebook, and
`dlpack_web_page.wire` sends tensors in pieces over any channel.
"""

import dlpack_web as _dlw

_VERSION = "0.1.0"

if _dlw.__version__ != _VERSION:
    raise ImportError(
        f"dlpack-web-page is {_VERSION}, and dlpack-web is {_dlw.__version__}: install both "
        "in the same version"
    )
