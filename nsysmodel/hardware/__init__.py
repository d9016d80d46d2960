"""Devices: the catalogue, peaks from SMs x FLOP per cycle x clock, and what an export says of a GPU."""
