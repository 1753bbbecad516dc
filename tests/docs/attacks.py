"""Outputs that are meant to do harm, by name.

Each would set `hit`, ask for something with "steal" in its address, lead away from the page, cover
it, or take the place of something in it. tests/lite opens them in JupyterLite.
"""

from __future__ import annotations

from typing import Any

EVIL = "https://evil.example/steal"
COVER = "position:fixed;inset:0;width:100vw;height:100vh;z-index:2147483647"
PIXEL = "R0lGODlhAQABAAAAACwAAAAAAQABAAA="
SVG = "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' width='90' height='40'"

HTML = {
    "script": "<script>top.hit = 1; parent.hit = 1</script>",
    "event": "<img src=x onerror='top.hit = 1'><details open ontoggle='top.hit = 1'>x</details>",
    "svg event": f"{SVG} onload='top.hit = 1'><script>top.hit = 1</script></svg>",
    "javascript link": "<a href='javascript:top.hit=1'>x</a>",
    "javascript link in pieces": "<a href='java\nscript:top.hit=1' target='_top'>x</a>",
    "srcdoc": "<iframe srcdoc='<script>top.hit=1</script>'></iframe>",
    "frame": f"<iframe src='{EVIL}'></iframe><object data='{EVIL}'></object><embed src='{EVIL}'>",
    "template": "<div><template shadowrootmode=open><script>top.hit=1</script></template></div>",
    "mutation": "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=x"
    " onerror=top.hit=1&gt;'>",
    "noscript": "<noscript><p title='</noscript><img src=x onerror=top.hit=1>'></noscript>",
    "covering styles": f"<style>*{{{COVER.replace(';', '!important;')}!important}}</style><a href='{EVIL}'>x</a>",
    "covering attribute": f"<a style='{COVER}' href='{EVIL}'>x</a>",
    "covering host": f"<style>:host,:root,html,body{{{COVER}}}</style><a href='{EVIL}'>x</a>",
    "covering by transform": f"<a style='display:block;transform:scale(1e4)' href='{EVIL}'>x</a>",
    "covering by margins": f"<a style='display:block;margin:-9999px;padding:9999px' href='{EVIL}'>x</a>",
    "endless height": "<style>body{height:calc(100vh + 9px)}</style>x",
    "height to and fro": "<style>body{height:90px}@media(min-height:80px){body{height:20px}}</style>x",
    "page's styles": "<style>body,header,.acts,:has(.run){display:none!important}"
    "@property --color-background-primary{syntax:'<length>';inherits:false;initial-value:1px}</style>x",
    "styles that load": f"<style>@import url({EVIL});@font-face{{font-family:e;src:url({EVIL})}}"
    f"p{{background:url({EVIL});font-family:e}}:has(a){{background:url(/steal)}}</style><p>x<a>y</a></p>",
    "attribute that loads": f"<p style='background:url({EVIL})'>x</p>",
    "image": f"<img src='{EVIL}' srcset='{EVIL} 2x'><picture><source srcset='{EVIL}'></picture>",
    "own image": "<img src='/steal'><video src='/steal' poster='/steal'></video><audio src='/steal'></audio>",
    "stylesheet": f"<link rel='stylesheet' href='{EVIL}'><link rel='prefetch' href='/steal'>",
    "refresh": f"<meta http-equiv='refresh' content='0;url={EVIL}'>",
    "refresh at home": "<meta http-equiv='refresh' content='0;url=/index.html?steal'>",
    "base": f"<base href='{EVIL}/' target='_top'><a href='x'>x</a>",
    "link at the top": f"<a href='{EVIL}' target='_top'>x</a>",
    "link to the parent": f"<a href='{EVIL}' target='_parent'>x</a>",
    "link at home": "<a href='/index.html?steal' target='_top'>x</a><a href='#steal'>y</a>",
    "svg link": f"{SVG}><a href='{EVIL}' target='_top'><rect width='90' height='40'/></a></svg>",
    "svg xlink": f"{SVG}><a xlink:href='{EVIL}'><rect width='90' height='40'/></a></svg>",
    "svg link at home": f"{SVG}><a href='/?steal'><rect width='90' height='40'/></a></svg>",
    "svg set": f"{SVG}><a><set attributeName='href' to='javascript:top.hit=1'/>"
    "<animate attributeName='href' values='javascript:top.hit=1'/><rect width='90' height='40'/></a></svg>",
    "svg use": f"{SVG}><use href='{EVIL}#x'/><image href='{EVIL}'/><foreignObject><iframe src='{EVIL}'/></foreignObject></svg>",
    "area": f"<map name='m'><area shape='default' href='{EVIL}' target='_top'></map>"
    f"<img usemap='#m' width='90' height='40' src='data:image/gif;base64,{PIXEL}'>",
    "form": f"<form action='{EVIL}' target='_top'><input type='submit' formaction='{EVIL}'><button>x</button></form>",
    "button of the page": "<label for='search'>x</label><button form='f' popovertarget='keys'>y</button>",
    "popover": f"<div popover id='p' style='{COVER}'>x</div><button popovertarget='p'>y</button><dialog open>z</dialog>",
    "names": "<form id='searchbox'></form><img name='__python' id='content'><a id='sidebar' name='body'>x</a>"
    "<input id='nodeName' name='getElementById'><img name='currentScript'>",
    "keys": "<a accesskey='s' href='javascript:top.hit=1' tabindex='1' autofocus>x</a>"
    "<p contenteditable tabindex='5'>y</p>",
    "classes": "<section class='block' tabindex='0'><button class='run'>x</button></section>",
    "policy": "<meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\">x",
}

# As far as Markdown has means of its own.
MARKDOWN = {
    "md link": "[x](javascript:top.hit=1) <javascript:top.hit=1>",
    "md image": f"![x]({EVIL})",
    "md link at home": "[x](/index.html?steal) [y](../demo.html)",
    "md reference": "[x][1]\n\n[1]: javascript:top.hit=1",
    "md classes": "<div class='python-bar acts' role='alert' aria-live='assertive'>x</div>",
}

OTHERS: dict[str, dict[str, Any]] = {
    "terminal link": {
        "output_type": "stream",
        "name": "stdout python-bar acts",
        "text": f"\x1b]8;;{EVIL}\x1b\\x\x1b]8;;\x1b\\ \x1b]8;;javascript:top.hit=1\x1b\\y\x1b]8;;\x1b\\",
    },
    "text": {"output_type": "stream", "name": "stderr", "text": HTML["event"]},
    "error": {
        "output_type": "error",
        "ename": HTML["event"],
        "evalue": HTML["script"],
        "traceback": [],
    },
    "drawing": {
        "output_type": "display_data",
        "data": {
            "image/svg+xml": f"{SVG} onload='top.hit=1'><style>@import url({EVIL});</style>"
            f"<script>top.hit=1</script><image href='{EVIL}' width='9' height='9'/>"
            f"<a href='{EVIL}'><rect width='90' height='40'/></a></svg>"
        },
    },
    "picture": {
        "output_type": "display_data",
        "data": {"image/png": "x' onerror='top.hit=1", "text/plain": "x"},
    },
}


def outputs(name: str) -> list[dict[str, Any]]:
    """Outputs in which the attack of that name is everywhere where it can be."""
    if name in OTHERS:
        return [OTHERS[name] | {"metadata": {}}]
    source = HTML.get(name) or MARKDOWN[name]
    return [
        {"output_type": "display_data", "data": {kind: source}, "metadata": {}}
        for kind in ("text/html", "text/markdown")
    ]


NAMES = [*HTML, *MARKDOWN, *OTHERS]
