"""The registers of nodes that take long to elaborate and to compile: ``python -m soak.registers`` (``make soak``).

``tb/unit/widths/test_registers.py`` has the same of all others.
"""

from __future__ import annotations

import argparse

from unit.widths import test_registers as registers


def main() -> int:
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    for name in registers.SLOW:
        registers.test_after_reset(registers.Bus(name))
        bus = registers.Bus(name)
        registers.test_a_setting_is_read_as_written_and_changes_no_other(bus)
        registers.test_what_is_read_only_is_not_written(bus)
        registers.test_what_is_write_only_reads_as_nothing(bus)
        registers.test_a_table_ends_where_it_is_said_to(bus)
        registers.check_driver(bus, name)
        print(f"{name}: as declared", flush=True)
    return 0


if __name__ == "__main__":
    main()
