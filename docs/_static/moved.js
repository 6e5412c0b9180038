// Places that moved to another page, by page and anchor: an old link leads on. The table is JSON, for the test.
const moved = {
  "writing-experiments.html": {
    "variants": "tcp.html#variants",
    "growths": "tcp.html#growths",
    "all-ends": "tcp.html#all-ends",
    "when-a-connection-is-given-up": "tcp.html#when-a-connection-is-given-up",
    "what-stays-as-in-4-4bsd": "tcp.html#what-stays-as-in-4-4bsd",
    "what-stays-as-in-44bsd": "tcp.html#what-stays-as-in-4-4bsd",
    "axis": "keys.html#axis",
    "axis-points": "keys.html#axis-points",
    "experiment": "keys.html#experiment",
    "hosts": "keys.html#hosts",
    "hosts-tcp": "keys.html#hosts-tcp",
    "vc": "keys.html#vc",
    "vc-police": "keys.html#vc-police",
    "vc-shape": "keys.html#vc-shape",
    "vc-oam": "keys.html#vc-oam",
    "vc-cdv": "keys.html#vc-cdv",
    "flow": "keys.html#flow",
    "traffic": "keys.html#traffic",
    "loss": "keys.html#loss",
    "event": "keys.html#event",
    "profile": "keys.html#profile",
    "record": "keys.html#record",
    "splitting": "keys.html#splitting",
    "published": "keys.html#published",
    "open": "keys.html#open",
    "theory": "keys.html#theory",
    "expect": "keys.html#expect",
    "case": "keys.html#case",
    "profiles": "keys.html#profiles",
    "series": "keys.html#series",
    "metrics": "keys.html#metrics",
    "network": "keys-network.html#network",
    "network-switches-name": "keys-network.html#network-switches-name",
    "network-switches-name-credits": "keys-network.html#network-switches-name-credits",
    "network-switches-name-oam": "keys-network.html#network-switches-name-oam",
    "network-switches-name-histograms": "keys-network.html#network-switches-name-histograms",
    "network-lines-name": "keys-network.html#network-lines-name",
    "network-lines-name-reactive": "keys-network.html#network-lines-name-reactive",
    "network-lines-name-red": "keys-network.html#network-lines-name-red",
    "network-lines-name-variation": "keys-network.html#network-lines-name-variation",
    "network-lines-name-reorder": "keys-network.html#network-lines-name-reorder",
    "network-lines-name-bursts": "keys-network.html#network-lines-name-bursts",
    "network-lines-name-back": "keys-network.html#network-lines-name-back",
    "network-hosts-name": "keys-network.html#network-hosts-name",
    "network-vps-name": "keys-network.html#network-vps-name"
  },
  "catalogue-studies.html": {
    "netspec-100": "catalogue-traffic.html#netspec-100",
    "phase-lock": "catalogue-traffic.html#phase-lock",
    "upc-study": "catalogue-traffic.html#upc-study"
  },
  "experiments.html": {
    "what-the-papers-leave-open": "published.html#what-the-papers-leave-open",
    "where-ours-differ-and-why": "published.html#where-ours-differ-and-why",
    "orders-over-ten-seeds": "published.html#orders-over-ten-seeds",
    "what-acts-modern-shows": "catalogue-studies.html#what-acts-modern-shows",
    "what-acts-vp-shows": "catalogue-studies.html#what-acts-vp-shows",
    "what-decides-magic-mismatch": "catalogue-laz.html#what-decides-magic-mismatch",
    "load-reactive-links": "traffic-management.html#load-reactive-links",
    "what-the-lines-clocks-change": "catalogue-traffic.html#what-the-lines-clocks-change",
    "how-bit-errors-come": "catalogue-acts98.html#how-bit-errors-arrive",
    "the-experiments": "experiments.html#all-experiments"
  },
  "speed.html": {
    "from-amaranth-to-c": "engine-internals.html#from-amaranth-to-c",
    "one-evaluation-where-there-is-work": "engine-internals.html#one-evaluation-where-there-is-work",
    "bulk-data-stays-out-of-python": "engine-internals.html#bulk-data-stays-out-of-python",
    "the-hosts-compiled": "engine-internals.html#the-compiled-hosts",
    "bodies-for-what-is-known": "engine-internals.html#specialised-bodies",
    "how-to-write-rtl-for-it": "engine-internals.html#write-rtl-for-it",
    "what-was-decided-otherwise-than-first-planned": "engine-internals.html#design-choices"
  }
};
function leadOn() {
  const own = moved[location.pathname.split("/").pop()] ?? {};
  const target = own[decodeURIComponent(location.hash.slice(1))];
  if (target) location.replace(new URL(target, location.href));
}
leadOn();
addEventListener("hashchange", leadOn);
