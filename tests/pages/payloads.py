"""Texts that try to become markup, script, attributes, addresses or templates; each sets `window.hit` if it succeeds."""

_RUN = "window.hit=1"
_TAGS = (
    "img src=x onerror", "svg onload", "body onload", "iframe onload", "input autofocus onfocus", "video src=x onerror",
    "audio src=x onerror", "details open ontoggle", "marquee onstart", "select autofocus onfocus",
    "textarea autofocus onfocus", "object data=x onerror", "embed src=x onerror", "style onload", "link rel=stylesheet href=x onerror",
    "form onsubmit", "button autofocus onfocus", "a href=x onmouseover", "div onpointerover", "math onclick",
)  # fmt: skip
_BREAKERS = ("", '">', "'>", "</title>", "</textarea>", "</script>", "</style>")
_WHOLE = (
    f"<script>{_RUN}</script>",
    f"<scr<script>ipt>{_RUN}</scr</script>ipt>",
    f"<SCRIPT SRC=data:text/javascript,{_RUN}></SCRIPT>",
    f"javascript:{_RUN}",
    f"data:text/html,<script>{_RUN}</script>",
    f'" autofocus onfocus={_RUN} x="',
    f"' autofocus onfocus={_RUN} x='",
    "{{ 7 * 7 }}{{ self.__init__.__globals__ }}",
    "{% raw %}{{ ''.__class__.__mro__ }}",
    "${7*7}#{7*7}<%= 7*7 %>",
    f"<svg><animate onbegin={_RUN} attributeName=x dur=1s>",
    f"<svg><script>{_RUN}</script></svg>",
    f"<math><mtext></form><form><mglyph><style></math><img src onerror={_RUN}>",
    f'<noscript><p title="</noscript><img src=x onerror={_RUN}>">',
    f'<iframe srcdoc="<script>parent.{_RUN}</script>"></iframe>',
    f'<a href="javascript:{_RUN}">x</a>',
    f'<base href="//evil.example/"><script src=x></script>{_RUN}',
    f'<meta http-equiv=refresh content="0;url=javascript:{_RUN}">',
    "<link rel=stylesheet href=//evil.example/x.css>",
    "<img src=//evil.example/x.png>",
    "\u202eright to left\u202c",
    "z̶͎̑a̸l̵g̷o̴" * 12,
    "&lt;script&gt;" + _RUN,
    "--><img src=x onerror=" + _RUN + ">",
    "]]><img src=x onerror=" + _RUN + ">",
    "/*</style><img src=x onerror=" + _RUN + ">*/",
    "w" * 400,
    "word " * 80,
    "../../../../etc/passwd",
    "%3Cscript%3E" + _RUN + "%3C/script%3E",
)
PAYLOADS = list(
    dict.fromkeys([*_WHOLE, *(f"{breaker}<{tag}={_RUN}>" for tag in _TAGS for breaker in _BREAKERS[:6])])
)
assert len(PAYLOADS) >= 150
