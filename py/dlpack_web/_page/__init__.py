"""The GPU of a page that shows this kernel's widget: the third backend
(../_backends/__init__.py). `js/src/widget` is the page's side.

Tensors travel by the wire (../_wire), everything else as numbered messages. Checks are
those of ../_backends/model.
"""
