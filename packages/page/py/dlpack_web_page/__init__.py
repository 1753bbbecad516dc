"""The page's GPU for other kernels, and the page's tensors for other processes.

`dlpack_web_page.widget` lends a kernel on a server the GPU of the page that shows a notebook, and
`dlpack_web_page.wire` sends tensors in pieces over any channel.
"""
