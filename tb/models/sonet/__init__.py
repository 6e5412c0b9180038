"""SONET STS-3c and STS-12c with ATM cells, byte by byte, written from the standards and not from the RTL."""
