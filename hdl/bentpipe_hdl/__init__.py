"""The cell path of bentpipe in Amaranth HDL: one RTL for simulation and for the FPGA."""
