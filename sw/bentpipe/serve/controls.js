// The settings of a session's lines on its live page: a slider or button for each, which writes the setting by HTTP.
(() => {
  const place = document.getElementById("controls"), told = document.getElementById("told"), at = place.dataset.session;
  const powers = (low, high) => ({ to: (p) => (p > 0 ? 10 ** (low + ((high - low) * p) / 100) : 0),
    from: (v) => (v > 0 ? Math.min(100, Math.max(1, (100 * (Math.log10(v) - low)) / (high - low))) : 0) });
  const seconds = (t) => (typeof t === "number" ? t : parseFloat(t) * ({ ms: 1e-3, us: 1e-6, ns: 1e-9, ps: 1e-12 }[t.split(" ")[1]] || 1));
  const bits = (t) => (typeof t === "number" ? t : { "OC-3c": 149.76e6, "OC-12c": 599.04e6 }[t] || parseFloat(t) * ({ "kb/s": 1e3, "Mb/s": 1e6, "Gb/s": 1e9 }[t.split(" ")[1]] || 1));
  const kinds = {
    ber: { ...powers(-12, -3), read: Number, write: (v) => v, show: (v) => v.toExponential(1) },
    rate: { ...powers(4, 8.78), read: bits, write: (v) => Math.round(Math.max(v, 1e4)), show: (v) => `${(v / 1e6).toPrecision(3)} Mb/s` },
    delay: { to: (p) => p / 100, from: (v) => 100 * v, read: seconds, write: (v) => v, show: (v) => `${(v * 1e3).toFixed(0)} ms` },
  };
  const name = (key) => {
    const [line, last] = key.split(".").slice(-2);
    return `${line}: ${last === "ber" ? "bit error ratio" : last}`;
  };
  const post = async (method, content) => {
    const answer = await fetch(`${at}/${method}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content) });
    const found = await answer.json();
    told.textContent = answer.ok ? found.changes.map((c) => `${name(c.key)}: ${c.old} → ${c.new}`).join("; ") || "Nothing changed." : found.error;
    if (!answer.ok || method === "reset") show();
  };
  const make = (tag, more) => Object.assign(document.createElement(tag), more);
  const row = ({ key, value }) => {
    const kind = kinds[key.split(".").pop()], first = Array.isArray(value) ? value[0] : value;
    const control = make(kind ? "label" : "div", { className: "control" });
    control.append(make("span", { textContent: name(key) }));
    if (!kind) {
      const button = make("button", { textContent: first ? "End the outage" : "Start an outage" });
      button.onclick = () => post("set", { values: { [key]: !first } }).then(show);
      button.ariaLabel = `${button.textContent}, ${name(key).split(":")[0]}`;
      return control.append(button), control;
    }
    const now = kind.read(first ?? 0), slider = make("input", { type: "range", min: 0, max: 100, step: "any", value: kind.from(now) });
    const said = make("output", { textContent: kind.show(now) });
    slider.oninput = () => { said.textContent = kind.show(kind.write(kind.to(+slider.value))); };
    slider.onchange = () => post("set", { values: { [key]: kind.write(kind.to(+slider.value)) } });
    return control.append(slider, said), control;
  };
  const show = async () => {
    const keys = await (await fetch(`${at}/keys`)).json();
    if (!Array.isArray(keys)) return;
    const rows = keys.filter(({ key }) => /^network\.lines\.[^.]+\.(ber|rate|delay|outage)$/.test(key)).map(row);
    const back = make("button", { textContent: "As in the file" });
    back.onclick = () => post("reset", {});
    place.replaceChildren(...rows.map((each) => make("p", {})).map((p, k) => (p.append(rows[k]), p)), back);
  };
  show().catch(() => { told.textContent = "The session has no control socket, or has ended."; });
})();
