"""GPUDevices: what a driver does for one (device.py), and what a request asks of an adapter
(request.py)."""
