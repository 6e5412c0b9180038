"""Barriers in pages for people who use the keyboard, a screen reader or strong contrast: rules of axe-core."""

from pathlib import Path

import axe_playwright_python

_AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8")

# The contrast of axe-core 4.12 takes 3 to 18 s on a long page of the documentation, that of the script below some ms.
_RUN = """async contrast => (await axe.run(document, { resultTypes: ["violations"], preload: false,
    rules: { "color-contrast": { enabled: contrast } } }))
    .violations.flatMap(({ id, help, nodes }) => nodes.map(({ target }) => [id, target.flat().join(" "), help]))"""

# Of every element with text of its own: the contrast of its colour with what is behind it (WCAG 2.2, 1.4.3).
_CONTRAST = """() => {
    const light = colour => {
        const [r, g, b] = colour.match(/[0-9.]+/g).map(Number).map(v => v / 255)
            .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const parts = colour => { const [r, g, b, a = 1] = colour.match(/[0-9.]+/g).map(Number); return [[r, g, b], a]; };
    const behind = element => { // backgrounds that let others through are laid over them
        const layers = [];
        for (let at = element; at && !layers.some(([, a]) => a === 1); at = at.parentElement)
            layers.push(parts(getComputedStyle(at).backgroundColor));
        const over = (below, [above, a]) => above.map((v, k) => a * v + (1 - a) * below[k]);
        const sum = layers.reduceRight(over, [255, 255, 255]);
        return `rgb(${sum.join(", ")})`;
    };
    const found = [];
    for (const element of document.querySelectorAll("main *, header *, article *, aside *, footer *")) {
        const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
        if (!own || !element.getClientRects().length || element.disabled) continue;
        const style = getComputedStyle(element);
        const svg = element.namespaceURI.endsWith("svg");
        if (svg && !["text"].includes(element.tagName)) continue;
        const [a, b] = [light(svg ? style.fill : style.color), light(behind(element))];
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (contrast < 4.5) found.push([element.tagName, element.className.baseVal ?? element.className,
            element.textContent.slice(0, 30), contrast.toFixed(2)].join(" "));
    }
    return [...new Set(found)];
}"""


def barriers(page, contrast=False):
    """Return what axe-core finds, and texts with too little contrast, each as `rule, page, selector, explanation`.

    With `contrast` axe-core also measures the contrast.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE)
    name = page.url.rpartition("/")[2] or page.title()
    rows = [*page.evaluate(_RUN, contrast), *(["contrast", text, "below 4.5"] for text in faint_texts(page))]
    return [f"{rule}, {name}, {where}, {text}" for rule, where, text in rows]


def faint_texts(page):
    """Return the texts whose contrast with their background is below 4.5."""
    return page.evaluate(_CONTRAST)
