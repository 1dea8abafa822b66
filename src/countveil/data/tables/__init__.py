"""Tables as people publish and download them: files, cells, axes, totals, and what they look like."""
