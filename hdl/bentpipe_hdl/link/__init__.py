"""The link: propagation delay, bit errors, the header check behind them."""
