"""Two wires with queues between them."""

from dlpack_web_page.wire import Wire, joined


def pair(**options):
    """Two ends, connected; their queues; a function that carries all frames."""
    queues = [], []
    ends = [
        Wire(lambda h, p, q=queue: q.append(joined(h, p)), **options)
        for queue in queues
    ]

    def carry():
        while any(queues):
            for queue, target in zip(queues, reversed(ends), strict=True):
                if queue:
                    target.receive(queue.pop(0))

    ends[0].connect()
    carry()
    return ends, queues, carry
