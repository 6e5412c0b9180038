"""README.md as a forge shows it: CommonMark with tables, in GitHub's measures and colours; not its page around it."""

from markdown_it import MarkdownIt

# The measures and colours of github-markdown-css 5: text of 16 px in at most 1012 px; wide tables and code scroll.
_STYLE = """
:root { color-scheme: light dark; --text: light-dark(#1f2328, #f0f6fc); --page: light-dark(#fff, #0d1117);
    --link: light-dark(#0969da, #4493f8); --border: light-dark(#d1d9e0, #3d444d);
    --row: light-dark(#f6f8fa, #151b23); --code: light-dark(#818b981f, #656c7633); --pre: light-dark(#f6f8fa, #151b23) }
body { margin: 0; background: var(--page); color: var(--text); word-wrap: break-word;
    font: 16px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif }
main { max-width: 1012px; margin: 0 auto; padding: 32px; box-sizing: border-box }
h1, h2 { border-bottom: 1px solid var(--border); padding-bottom: .3em; line-height: 1.25 }
a { color: var(--link); text-decoration: underline }
img { max-width: 100%; box-sizing: content-box }
table { display: block; width: max-content; max-width: 100%; overflow: auto; border-spacing: 0;
    border-collapse: collapse; margin: 0 0 16px }
th, td { padding: 6px 13px; border: 1px solid var(--border) }
tr { border-top: 1px solid var(--border) } tbody tr:nth-child(2n) { background: var(--row) }
code, pre { font: 13.6px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace }
code { padding: .2em .4em; background: var(--code); border-radius: 6px; white-space: break-spaces }
pre { padding: 16px; overflow: auto; background: var(--pre); border-radius: 6px }
pre code { padding: 0; background: none; white-space: pre; word-wrap: normal }
@media (max-width: 767px) { main { padding: 15px } }
"""


def forge_html(text, base):
    """Return a page of Markdown `text` whose relative addresses begin at the address `base`."""
    body = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)
    # A forge lets the keyboard reach what scrolls.
    for scrolled in ("table", "pre"):
        body = body.replace(f"<{scrolled}>", f'<{scrolled} tabindex="0">')
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><base href="{base}"><title>README</title>'
        f"<meta name=viewport content='width=device-width'><style>{_STYLE}</style></head><body><main>{body}</main>"
    )
