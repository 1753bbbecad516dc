"""How a page loads tinygrad and this package."""

LOAD = """
import json
from js import URL, fetch, location
from pyodide_js import loadPackage

for folder, package in (("wheels/wheels", "tinygrad"), ("wheel/packages", "dlpack-web-tinygrad")):
    names = json.loads(await (await fetch(f"/{folder}.json")).text())
    wheel = f"/{folder.partition('/')[0]}/{names[package]}"
    await loadPackage(URL.new(wheel, location.href).href)
"""
