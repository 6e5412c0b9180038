"""How does a switch's buffer decide what three TCP flows get? A study in one call of :func:`bentpipe.sweep`.

Run it: ``python examples/buffer_study.py`` (some minutes; ``--duration 1s`` is quick). It prints the throughput and the
cells that the switches discarded for three sizes of their buffers under tail drop, with the 95 % interval over three
seeds.
"""

import argparse

from bentpipe import sweep

BUFFER = "network.switches.west.buffer_cells"
POLICY = "network.switches.*.policy"


def study(duration: str, cells: list[int], seeds: str):
    """Return the sweep's means of throughput and discarded cells, a row for each size of the buffer."""
    found = sweep("lan-3flows", {BUFFER: cells}, seeds, {POLICY: "tail"}, duration=duration, show_progress=False)
    rates = found.means("aggregate_goodput").set_index(BUFFER)
    cells_lost = found.means("cells_dropped").set_index(BUFFER)
    return rates[["mean", "low", "high"]] / 1e6, cells_lost["mean"]


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--duration", default="5 s", help="simulated time of a run (default: %(default)s)")
    parser.add_argument("--cells", type=int, nargs="+", default=[1024, 2048, 8192], help="sizes of the buffer")
    parser.add_argument("--seeds", default="1-3", help="seeds of the runs (default: %(default)s)")
    given = parser.parse_args(arguments)
    rates, lost = study(given.duration, given.cells, given.seeds)
    print(f"{'buffer, cells':>14}  {'Mb/s':>8}  {'95 % interval':>18}  {'cells discarded':>16}")
    for cells, row in rates.iterrows():
        interval = f"{row['low']:.2f} to {row['high']:.2f}"
        print(f"{cells:>14.0f}  {row['mean']:>8.2f}  {interval:>18}  {lost[cells]:>16.1f}")


if __name__ == "__main__":  # the sweep's processes import this file
    main()
