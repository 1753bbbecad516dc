"""The GPU of a page that shows this kernel's widget: a driver of dlpack_web.backends.
`js/src/widget` is the page's side.

Tensors travel by the wire (../_wire), everything else as numbered messages.
"""
