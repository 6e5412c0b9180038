// Figures with a cursor and zoom, tables that sort and filter. No library, nothing to fetch: the data are in the page.
//
// A figure's data:   {title, x: {label, time, log}, y: {label, log, whole, least}, series, bounds, marks, note}
// a series:          {name, style, shape, x, y, low, faint}; shape of line, step, dots, rings, band (from low to y), bars
//                    (from low to y, each as wide as step); x as differences of microseconds where x.time
// a heat map:        {title, rows, x: {label, time}, begin, step, heat: a list of values a row, unit}
"use strict";
(() => {
  const NS = "http://www.w3.org/2000/svg";
  const DASHES = ["", "9 3", "3 2.5", "9 3 2 3"];

  function make(parent, name, attributes = {}, text) {
    const node = ["svg", "g", "path", "line", "rect", "text", "circle", "image", "clipPath", "title", "desc"].includes(name)
      ? document.createElementNS(NS, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    if (parent) parent.append(node);
    return node;
  }

  // Numbers as people read them: four digits that count, thousands apart.
  function shown(value) {
    if (value === null || value === undefined || Number.isNaN(value)) return "–";
    const size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e12)) return value.toExponential(2);
    const digits = size >= 1000 || Number.isInteger(value) ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  function stepFor(span, count) {
    const raw = span / Math.max(1, count);
    const ten = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map(digit => digit * ten).find(step => step >= raw * 0.999);
  }

  function ticks(scale, count) {
    const { low, high, log } = scale;
    const found = [];
    if (log) {
      const from = Math.ceil(Math.log10(low) - 1e-9), to = Math.floor(Math.log10(high) + 1e-9);
      const every = Math.max(1, Math.ceil((to - from + 1) / count));
      for (let power = from; power <= to; power += every) found.push(10 ** power);
      if (found.length > 1) return found.map(at => [at, tickText(at, at)]);
      found.length = 0;
    }
    let step = stepFor(high - low, count);
    if (scale.whole) step = Math.max(1, step);
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + step * 1e-9; n++) found.push(n * step + 0);
    return found.map(at => [at, tickText(at, step)]);
  }

  function tickText(value, step) {
    if (value !== 0 && (Math.abs(value) < 1e-4 || Math.abs(value) >= 1e9)) return value.toExponential(0);
    const digits = Math.max(0, Math.min(9, -Math.floor(Math.log10(step) + 1e-9)));
    return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  }

  class Scale {
    constructor(low, high, from, to, log, whole) {
      Object.assign(this, { low, high, from, to, log, whole });
      this.a = log ? Math.log10(low) : low;
      this.b = (to - from) / ((log ? Math.log10(high) : high) - this.a || 1);
    }
    of(value) { return this.from + this.b * ((this.log ? Math.log10(Math.max(value, 1e-12)) : value) - this.a); }
    at(pixel) {
      const value = this.a + (pixel - this.from) / this.b;
      return this.log ? 10 ** value : value;
    }
  }

  // First index whose x is above a value.
  function above(xs, value) {
    let low = 0, high = xs.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (xs[middle] <= value) low = middle + 1; else high = middle;
    }
    return low;
  }

  const colour = style => `var(--${style.replace(/:.*/, "")})`;
  const dashes = style => DASHES[Number(style.split(":")[1] || 0)];

  class Group {
    constructor() { this.figures = []; this.view = null; }
    full() {
      const all = this.figures.map(figure => figure.range()).filter(Boolean);
      return [Math.min(...all.map(r => r[0])), Math.max(...all.map(r => r[1]))];
    }
    show(view) {
      const [low, high] = this.full();
      if (view) {
        let [from, to] = view;
        const span = Math.min(Math.max(to - from, (high - low) * 1e-5), high - low);
        from = Math.min(Math.max(from, low), high - span);
        view = span >= (high - low) * 0.999 ? null : [from, from + span];
      }
      this.view = view;
      for (const figure of this.figures) figure.draw();
    }
    window() { return this.view || this.full(); }
    zoom(factor, centre) {
      const [low, high] = this.window();
      const middle = centre === undefined ? (low + high) / 2 : centre;
      this.show([middle - (middle - low) * factor, middle + (high - middle) * factor]);
    }
    move(share) {
      const [low, high] = this.window();
      this.show([low + (high - low) * share, high + (high - low) * share]);
    }
    point(x) { for (const figure of this.figures) figure.point(x); }
  }

  class Figure {
    constructor(root, spec, group) {
      Object.assign(this, { root, group, hidden: new Set(), cursor: null });
      group.figures.push(this);
      const tools = make(root.querySelector("figcaption"), "div", { class: "tools" });
      this.buttons = {};
      for (const [key, sign, label, act] of [
        ["in", "+", "Zoom in", () => group.zoom(0.5)],
        ["out", "−", "Zoom out", () => group.zoom(2)],
        ["all", "Whole", "Show the whole range", () => group.show(null)],
      ]) {
        this.buttons[key] = make(tools, "button", { type: "button", "aria-label": label, title: label }, sign);
        this.buttons[key].addEventListener("click", act);
      }
      this.legend = make(root, "ul", { class: "legend" });
      this.said = make(root, "p", { class: "said", hidden: "" });
      this.plot = make(root, "div", { class: "plot" });
      this.svg = make(this.plot, "svg", { tabindex: 0, role: "img" });
      this.at = make(root, "p", { class: "at" });
      this.aloud = make(root, "output", { class: "aside" });
      const values = make(root, "details", { class: "values" });
      make(values, "summary", {}, "Values in view");
      this.table = make(make(values, "div", { class: "wide" }), "table");
      values.addEventListener("toggle", () => this.tabulate());
      this.values = values;
      this.listen();
      this.take(spec);
      new ResizeObserver(entries => {
        const width = Math.round(entries[0].contentRect.width);
        if (width && width !== this.width) this.draw();
      }).observe(this.plot);
    }

    take(spec) {
      this.spec = spec;
      for (const series of spec.series || []) {
        if (spec.x.time && !series.ready) {
          let sum = 0;
          series.x = Float64Array.from(series.x, step => (sum += step) / 1e6);
          series.ready = true;
        }
      }
      this.said.hidden = !spec.note;
      this.said.textContent = spec.note || "";
      this.svg.setAttribute("aria-label",
        `${spec.title}. Arrow keys move the cursor, plus and minus zoom, Home shows the whole range.`);
      this.list();
    }

    range() {
      const spec = this.spec;
      if (spec.heat) return [spec.begin, spec.begin + spec.step * Math.max(...spec.heat.map(row => row.length))];
      if (spec.x.range) return spec.x.range;
      let low = Infinity, high = -Infinity;
      for (const { x } of spec.series) if (x.length) { low = Math.min(low, x[0]); high = Math.max(high, x[x.length - 1]); }
      if (low > high) return null;
      return spec.x.log || spec.x.tight ? [low, high] : [Math.min(0, low), high || 1];
    }

    list() {
      const names = (this.spec.series || []).map(series => series.name).join("\n");
      if (names === this.names) return;
      this.names = names;
      this.legend.replaceChildren();
      this.items = [];
      for (const [index, series] of (this.spec.series || []).entries()) {
        const button = make(make(this.legend, "li"), "button", { type: "button", "aria-pressed": !this.hidden.has(series.name) });
        this.swatch(button, series);
        make(button, "span", {}, series.name);
        this.items[index] = make(button, "b");
        button.addEventListener("click", () => {
          if (!this.hidden.delete(series.name)) this.hidden.add(series.name);
          button.setAttribute("aria-pressed", !this.hidden.has(series.name));
          this.draw();
        });
      }
      for (const bound of this.spec.bounds || []) {
        const item = make(make(this.legend, "li"), "span");
        const svg = make(item, "svg", { viewBox: "0 0 22 12", "aria-hidden": "true" });
        make(svg, "line", { class: "bound", x1: 0, x2: 22, y1: 6, y2: 6 });
        item.append(" " + bound.name);
      }
    }

    swatch(parent, series) {
      const svg = make(parent, "svg", { viewBox: "0 0 22 12", "aria-hidden": "true" });
      const paint = colour(series.style);
      if (series.shape === "band" || series.shape === "bars") 
        make(svg, "rect", { x: 2, y: 1, width: 18, height: 10, style: `fill:${paint};fill-opacity:${series.faint ? 0.22 : 1}` });
      else if (series.shape === "dots" || series.shape === "rings") this.dot(svg, series, 11, 6);
      else make(svg, "path", { class: "curve", d: "M1 6H21", style: `stroke:${paint};stroke-dasharray:${dashes(series.style)}` });
    }

    dot(parent, series, x, y) {
      const paint = colour(series.style);
      const mark = series.mark || (series.shape === "rings" ? "ring" : "dot");
      if (mark === "cross") make(parent, "path", { d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`, style: `stroke:${paint};stroke-width:1.8` });
      else if (mark === "fall") make(parent, "path", { d: `M${x - 4.5} ${y - 4}h9l-4.5 8z`, style: `fill:${paint}` });
      else if (mark === "diamond") make(parent, "path", { d: `M${x - 5} ${y}l5 -5l5 5l-5 5z`, style: `fill:${paint};stroke:var(--paper)` });
      else if (mark === "ring") make(parent, "rect", { x: x - 2.5, y: y - 2.5, width: 5, height: 5, style: `fill:none;stroke:${paint};stroke-width:1.3` });
      else make(parent, "circle", { cx: x, cy: y, r: series.shape === "dots" ? 2.2 : 4, style: `fill:${paint}` });
    }

    shownSeries() { return (this.spec.series || []).filter(series => !this.hidden.has(series.name)); }

    // Least and greatest y of what is in view.
    extent(low, high) {
      const { y } = this.spec;
      let least = y.log ? Infinity : (y.least ?? Infinity), most = y.log ? 0 : (y.most ?? -Infinity);
      for (const series of this.shownSeries()) {
        let from = above(series.x, low), to = above(series.x, high);
        if (series.shape !== "dots" && series.shape !== "rings") { from = Math.max(0, from - 1); to = Math.min(series.x.length, to + 1); }
        for (let i = from; i < to; i++) {
          const value = series.y[i];
          if (value === null || (y.log && value <= 0)) continue;
          if (value > most) most = value;
          const bottom = series.low && series.shape === "band" ? series.low[i] : value;
          if (bottom < least) least = bottom;
        }
      }
      for (const bound of this.spec.bounds || []) if (bound.always || bound.y <= most * 1.6) most = Math.max(most, bound.y);
      if (least > most) [least, most] = y.log ? [0.1, 1] : [0, 1];
      if (y.log) return [10 ** Math.floor(Math.log10(least) - 1e-9), Math.max(most * 1.3, least * 10)];
      const room = (most - least) * 0.06 || Math.abs(most) * 0.06 || 1;
      return [y.least !== undefined && least >= y.least ? y.least : least - room, most + room];
    }

    draw() {
      const width = this.width = Math.round(this.plot.clientWidth);
      if (!width) return;
      const spec = this.spec, svg = this.svg;
      const height = spec.heat ? Math.max(220, Math.min(420, 60 + spec.rows.length * 4)) : width < 500 ? 220 : 260;
      const window_ = this.range() && this.group.window();
      svg.replaceChildren();
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      svg.setAttribute("height", height);
      if (!window_) return;
      const [low, high] = window_;
      const [bottom, top] = spec.heat ? [spec.rows.length + 0.5, 0.5] : this.extent(low, high);
      const foot = height - 36, head = 24;
      const ys = this.ys = new Scale(bottom, top, foot, head, spec.y?.log, spec.y?.whole || Boolean(spec.heat));
      const marks = spec.heat ? this.rowTicks() : ticks(ys, 5);
      const left = 12 + 7 * Math.max(...marks.map(([, text]) => text.length), 2);
      const xs = this.xs = new Scale(low, high, left, width - 14, spec.x.log);
      Object.assign(this, { left, foot, head });
      const clip = `clip-${Figure.count = (Figure.count || 0) + 1}`;
      make(make(svg, "clipPath", { id: clip }), "rect", { x: left, y: head - 4, width: width - 14 - left + 2, height: foot - head + 5 });
      for (const [at, text] of marks) {
        const y = ys.of(at);
        if (!spec.heat) make(svg, "line", { class: "grid", x1: left, x2: width - 14, y1: y, y2: y });
        make(svg, "text", { class: "tick", x: left - 7, y: y + 4, "text-anchor": "end" }, text);
      }
      let last = -Infinity;
      for (const [at, text] of ticks(xs, Math.max(2, (width - left) / 90))) {
        const x = xs.of(at), half = 3.6 * text.length;
        make(svg, "line", { class: "axis", x1: x, x2: x, y1: foot, y2: foot + 4 });
        if (x - half < last + 6 || x + half > width) continue;
        last = x + half;
        make(svg, "text", { class: "tick", x, y: foot + 17, "text-anchor": "middle" }, text);
      }
      make(svg, "text", { class: "unit", x: 2, y: 12 }, spec.heat ? "flow, as in the table" : spec.y.label);
      make(svg, "text", { class: "unit", x: width - 14, y: height - 4, "text-anchor": "end" }, spec.x.label);
      const area = make(svg, "g", { "clip-path": `url(#${clip})`, class: "data" });
      if (spec.heat) this.paint(area);
      for (const bound of spec.bounds || []) {
        const y = ys.of(bound.y);
        make(area, "line", { class: "bound", x1: left, x2: width, y1: y, y2: y });
      }
      for (const at of spec.marks || []) {
        const x = xs.of(at);
        make(area, "line", { class: "event", x1: x, x2: x, y1: head, y2: foot });
      }
      for (const series of this.shownSeries()) this.trace(area, series, low, high);
      make(svg, "line", { class: "axis", x1: left, x2: width - 14, y1: foot, y2: foot });
      this.over = make(svg, "g");
      this.buttons.out.disabled = this.buttons.all.disabled = !this.group.view;
      this.point(this.cursor);
      this.tabulate();
    }

    rowTicks() {
      const count = this.spec.rows.length, step = Math.max(1, stepFor(count, 6));
      const found = [[1, "1"]];
      for (let row = step; row <= count; row += step) if (row > 1) found.push([row, String(row)]);
      return found;
    }

    trace(area, series, low, high) {
      const { xs, ys } = this, { x, y, shape } = series;
      const from = Math.max(0, above(x, low) - 1), to = Math.min(x.length, above(x, high) + 1);
      const style = `stroke:${colour(series.style)};stroke-dasharray:${dashes(series.style)}`;
      const rounded = value => Math.round(value * 10) / 10;
      if (shape === "dots" || shape === "rings") {
        const group = make(area, "g", { class: "mark" });
        const every = Math.max(1, Math.floor((to - from) / 4000));
        for (let i = from; i < to; i += every) if (y[i] !== null) this.dot(group, series, rounded(xs.of(x[i])), rounded(ys.of(y[i])));
        return;
      }
      if (shape === "bars") {
        let path = "";
        for (let i = from; i < to; i++) {
          if (y[i] <= series.low[i]) continue;
          const a = rounded(xs.of(x[i])), b = Math.max(a + 0.8, rounded(xs.of(x[i] + series.step)) - 0.4);
          path += `M${a} ${rounded(ys.of(series.low[i]))}V${rounded(ys.of(y[i]))}H${b}V${rounded(ys.of(series.low[i]))}z`;
        }
        make(area, "path", { class: "mark", d: path, style: `fill:${colour(series.style)}` });
        return;
      }
      // Of all that falls onto a pixel: first, least, greatest, last.
      const kept = [];
      const dense = to - from > 4 * (xs.to - xs.from);
      if (!dense) for (let i = from; i < to; i++) kept.push(i);
      else {
        let i = from;
        while (i < to) {
          const pixel = Math.floor(xs.of(x[i]));
          let least = i, most = i, end = i;
          while (end < to && Math.floor(xs.of(x[end])) === pixel) {
            if (y[end] < y[least]) least = end;
            if (y[end] > y[most]) most = end;
            end++;
          }
          kept.push(...[...new Set([i, least, most, end - 1])].sort((a, b) => a - b));
          i = end;
        }
      }
      const line = (values, indices) => {
        let path = "", open = false;
        for (const i of indices) {
          const value = values[i];
          if (value === null || (ys.log && value <= 0)) { open = false; continue; }
          const px = rounded(xs.of(x[i])), py = rounded(ys.of(value));
          path += !open ? `${path ? "M" : "M"}${px} ${py}` : shape === "step" ? `H${px}V${py}` : `L${px} ${py}`;
          open = true;
        }
        return path;
      };
      if (shape === "band") {
        const back = line(series.low, kept.toReversed ? kept.toReversed() : [...kept].reverse());
        make(area, "path", { class: "mark", d: `${line(y, kept)}${back.replace("M", "L")}z`, style: `fill:${colour(series.style)};fill-opacity:${series.faint ? 0.22 : 1}` });
      } else make(area, "path", { class: "curve mark", d: line(y, kept), style });
      if (series.points) {
        const group = make(area, "g");
        for (const i of kept) if (y[i] !== null) make(group, "circle", { cx: xs.of(x[i]), cy: ys.of(y[i]), r: 3.4, style: `fill:${colour(series.style)}` });
      }
    }

    // A heat map is a picture of one pixel a value; square roots, so that slow flows can be told apart.
    paint(area) {
      const { heat, begin, step } = this.spec;
      const columns = Math.max(...heat.map(row => row.length));
      if (!this.picture || this.painted !== this.spec) {
        const canvas = make(null, "canvas", { width: columns, height: heat.length });
        const context = canvas.getContext("2d"), image = context.createImageData(columns, heat.length);
        const most = Math.max(1e-9, ...heat.map(row => Math.max(0, ...row)));
        const stops = [[0, 32, 76], [54, 72, 107], [104, 106, 112], [168, 155, 96], [255, 233, 69]]; // cividis
        heat.forEach((row, r) => row.forEach((value, c) => {
          const place = Math.sqrt(Math.max(0, value) / most) * 3.999, at = Math.floor(place), part = place - at;
          const pixel = 4 * (r * columns + c);
          for (let k = 0; k < 3; k++) image.data[pixel + k] = stops[at][k] * (1 - part) + stops[at + 1][k] * part;
          image.data[pixel + 3] = 255;
        }));
        context.putImageData(image, 0, 0);
        this.picture = canvas.toDataURL();
        this.painted = this.spec;
        this.most = most;
      }
      const x = this.xs.of(begin), width = this.xs.of(begin + step * columns) - x;
      make(area, "image", { class: "mark", href: this.picture, x, y: this.head, width: Math.max(1, width), height: this.foot - this.head,
        preserveAspectRatio: "none", style: "image-rendering:pixelated" });
      this.said.hidden = false;
      this.said.style.color = "inherit";
      this.said.innerHTML = "";
      this.said.append("0 ");
      make(this.said, "span", { style: "display:inline-block;width:7rem;height:.7rem;background:linear-gradient(90deg,#00204c,#36486b 6%,#686a70 25%,#a89b60 56%,#ffe945)" });
      this.said.append(` ${shown(this.most)} ${this.spec.unit}`);
    }

    index(series, x) {
      const after = above(series.x, x);
      if (series.shape === "step" || series.shape === "bars") return after - 1;
      if (!after) return series.shape === "line" || series.shape === "band" ? -1 : 0;
      return after < series.x.length && series.x[after] - x < x - series.x[after - 1] ? after : after - 1;
    }

    readings(x) {
      const [low, high] = this.group.window();
      return (this.spec.series || []).map(series => {
        const i = this.index(series, x);
        if (i < 0 || i >= series.x.length || this.hidden.has(series.name)) return null;
        const loose = series.shape === "dots" || series.shape === "rings";
        if (loose && Math.abs(series.x[i] - x) > (high - low) / 100) return null;
        if (series.shape === "bars") return { i, text: shown(series.y[i] - series.low[i]) };
        return { i, text: series.shape === "band" ? `${shown(series.low[i])} to ${shown(series.y[i])}` : shown(series.y[i]) };
      });
    }

    // The cursor: a line, and each curve's value there; null takes it away.
    point(x) {
      this.cursor = x;
      if (!this.over || !this.spec) return;
      this.over.replaceChildren();
      const [low, high] = this.group.window();
      const away = x === null || x < low || x > high;
      this.at.textContent = "";
      for (const item of this.items) if (item) item.textContent = "";
      if (away) return;
      const pixel = this.xs.of(x);
      make(this.over, "line", { class: "cursor", x1: pixel, x2: pixel, y1: this.head, y2: this.foot });
      const where = `${shown(x)} ${this.spec.x.short || ""}`.trim();
      if (this.spec.heat) {
        this.at.textContent = this.row === undefined ? `at ${where}` : `${this.spec.rows[this.row]} at ${where}: ${this.heatAt(x)}`;
        return;
      }
      this.readings(x).forEach((reading, n) => {
        if (!reading) return;
        const series = this.spec.series[n];
        this.items[n].textContent = reading.text;
        if (series.shape === "line" || series.shape === "step")
          make(this.over, "circle", { cx: pixel, cy: this.ys.of(series.y[reading.i]), r: 3.6, style: `fill:${colour(series.style)};stroke:var(--paper)` });
      });
      this.at.textContent = `at ${where}`;
    }

    heatAt(x) {
      const value = this.spec.heat[this.row]?.[Math.floor((x - this.spec.begin) / this.spec.step)];
      return value === undefined ? "–" : `${shown(value)} ${this.spec.unit}`;
    }

    speak() {
      if (this.spec.heat) { this.aloud.textContent = this.at.textContent; return; }
      const parts = this.readings(this.cursor).map((r, n) => r && `${this.spec.series[n].name} ${r.text}`).filter(Boolean);
      this.aloud.textContent = `${this.at.textContent}: ${parts.join(", ")}`;
    }

    // What is in view as a table: for those who can't see curves, or want figures.
    tabulate() {
      if (!this.values.open || this.spec.heat && !this.spec.rows) return;
      const [low, high] = this.group.window();
      this.table.replaceChildren();
      const head = make(make(this.table, "thead"), "tr");
      ["", "least", "mean", "greatest", "last"].forEach((name, n) => make(head, "th", { scope: "col", class: n ? "" : "l" }, name));
      const body = make(this.table, "tbody");
      const rows = this.spec.heat
        ? this.spec.rows.map((name, n) => [name, this.spec.heat[n].filter((_, c) => {
            const x = this.spec.begin + c * this.spec.step;
            return x >= low && x <= high;
          })])
        : this.shownSeries().map(s => [s.name, Array.from(s.y).map((v, i) => s.shape === "bars" ? v - s.low[i] : v)
            .filter((v, i) => v !== null && s.x[i] >= low && s.x[i] <= high)]);
      for (const [name, values] of rows) {
        if (!values.length) continue;
        const row = make(body, "tr");
        make(row, "th", { scope: "row", class: "l" }, name);
        const sum = values.reduce((a, b) => a + b, 0);
        const least = values.reduce((a, b) => Math.min(a, b)), most = values.reduce((a, b) => Math.max(a, b));
        for (const value of [least, sum / values.length, most, values[values.length - 1]]) make(row, "td", {}, shown(value));
      }
    }

    listen() {
      const { svg } = this;
      const x = event => this.xs.at(event.clientX - svg.getBoundingClientRect().left);
      let start = null, band = null;
      svg.addEventListener("pointermove", event => {
        if (!this.xs) return;
        const at = Math.min(Math.max(x(event), this.xs.low), this.xs.high);
        if (this.spec.heat) {
          const y = event.clientY - svg.getBoundingClientRect().top;
          const row = Math.floor((y - this.head) / (this.foot - this.head) * this.spec.rows.length);
          this.row = row >= 0 && row < this.spec.rows.length ? row : undefined;
        }
        if (start !== null && band) {
          const a = this.xs.of(Math.min(start, at)), b = this.xs.of(Math.max(start, at));
          band.setAttribute("x", a);
          band.setAttribute("width", b - a);
        }
        this.group.point(at);
      });
      svg.addEventListener("pointerdown", event => {
        if (event.button || !this.xs) return;
        start = x(event);
        band = make(svg, "rect", { class: "drag", y: this.head, height: this.foot - this.head, x: this.xs.of(start), width: 0 });
        if (event.pointerType === "mouse") svg.setPointerCapture(event.pointerId);
      });
      const end = event => {
        if (start === null) return;
        const from = start, wide = Number(band.getAttribute("width")) > 6;
        band.remove();
        start = null;
        if (event.type === "pointerup" && wide) {
          const to = x(event);
          this.group.show([Math.min(from, to), Math.max(from, to)]);
        }
      };
      svg.addEventListener("pointerup", end);
      svg.addEventListener("pointercancel", end);
      svg.addEventListener("pointerleave", () => { if (start === null) this.group.point(null); });
      svg.addEventListener("dblclick", () => this.group.show(null));
      svg.addEventListener("wheel", event => {
        if (!event.ctrlKey && !event.shiftKey || !this.xs) return; // the page scrolls
        event.preventDefault();
        this.group.zoom(event.deltaY + event.deltaX > 0 ? 1.25 : 0.8, x(event));
      }, { passive: false });
      svg.addEventListener("keydown", event => {
        if (!this.xs || event.altKey || event.metaKey || event.ctrlKey) return;
        const [low, high] = this.group.window();
        const at = this.cursor ?? (low + high) / 2, step = (high - low) / 100;
        const acts = {
          ArrowLeft: () => event.shiftKey ? this.group.move(-0.2) : this.group.point(Math.max(low, at - step)),
          ArrowRight: () => event.shiftKey ? this.group.move(0.2) : this.group.point(Math.min(high, at + step)),
          ArrowUp: () => this.spec.heat && (this.row = Math.max(0, (this.row ?? 1) - 1), this.point(at)),
          ArrowDown: () => this.spec.heat && (this.row = Math.min(this.spec.rows.length - 1, (this.row ?? -1) + 1), this.point(at)),
          "+": () => this.group.zoom(0.5, at), "=": () => this.group.zoom(0.5, at), "-": () => this.group.zoom(2, at),
          Home: () => this.group.show(null), Escape: () => this.group.point(null),
        };
        if (!acts[event.key] || (event.key.startsWith("Arrow") && /Up|Down/.test(event.key) && !this.spec.heat)) return;
        event.preventDefault();
        acts[event.key]();
        if (event.key.startsWith("Arrow") && this.cursor !== null) this.speak();
      });
    }
  }

  // Figures over time move together.
  const together = new Group();
  const known = new Map();
  function showFigures(specs) {
    for (const [id, spec] of Object.entries(specs)) {
      let root = document.querySelector(`figure[data-figure="${id}"]`);
      if (!root) {
        const parent = document.querySelector("[data-figures]");
        if (!parent) continue;
        root = make(parent, "figure", { "data-figure": id });
        make(make(root, "figcaption"), "strong", {}, spec.title);
      }
      if (known.has(id)) known.get(id).take(spec);
      else known.set(id, new Figure(root, spec, spec.x.time ? together : new Group()));
    }
    for (const figure of known.values()) figure.draw();
  }

  // Tables: a click on a column's name sorts; long ones have a filter.
  function number(text) {
    const found = text.replace(/,/g, "").match(/-?\d+(\.\d+)?(e[-+]?\d+)?/);
    return found ? Number(found[0]) : NaN;
  }
  function sortable(table) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      if (!head.textContent) return;
      const button = make(null, "button", { type: "button" }, head.textContent);
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const way = head.getAttribute("aria-sort") === "descending" ? "ascending" : "descending";
        heads.forEach(other => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", way);
        const texts = head.classList.contains("l");
        const rows = [...body.rows].map(row => [row, row.cells[column].textContent]);
        rows.sort(([, a], [, b]) => {
          const order = texts ? a.localeCompare(b, "en", { numeric: true }) : (number(a) || 0) - (number(b) || 0);
          return way === "ascending" ? order : -order;
        });
        body.append(...rows.map(([row]) => row));
      });
    });
    if (body.rows.length > 25) {
      const label = make(null, "label", { class: "filter" }, `${body.rows.length} rows; show those with`);
      const input = make(label, "input", { type: "search" });
      table.parentElement.before(label);
      input.addEventListener("input", () => {
        const wanted = input.value.toLowerCase();
        for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
      });
    }
  }
  document.querySelectorAll("table[data-sort]").forEach(sortable);

  for (const pre of document.querySelectorAll(".copy")) {
    if (!navigator.clipboard) break;
    const button = make(pre, "button", { type: "button" }, "Copy");
    button.addEventListener("click", () => navigator.clipboard.writeText(pre.querySelector("pre").textContent.trim())
      .then(() => { button.textContent = "Copied"; }));
  }

  const data = document.getElementById("figures-data");
  if (data) showFigures(JSON.parse(data.textContent));

  // A page of a run that goes on asks for what is new.
  const live = document.querySelector("[data-live]");
  if (live) {
    const ask = async () => {
      let again = 2000;
      try {
        const answer = await fetch(live.dataset.live, { cache: "no-store" });
        if (!answer.ok) throw new Error(`${answer.status}`);
        const news = await answer.json();
        for (const [id, text] of Object.entries(news.parts)) {
          const part = document.getElementById(id);
          if (part && part.innerHTML !== text) part.innerHTML = text;
        }
        showFigures(news.figures);
        if (news.over) again = 0;
      } catch (error) {
        document.getElementById("verdict").innerHTML = '<p class="verdict bad" role="status"><b>No answer</b> from bentpipe serve; asking again.</p>';
        again = 5000;
      }
      if (again) setTimeout(ask, again);
    };
    ask();
  }
})();
