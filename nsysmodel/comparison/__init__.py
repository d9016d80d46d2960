"""Two results side by side: what changed, and whether more than chance."""
