"""Data as inference sees them, and what people hand over: arrays, tables, graphs, tensors, files."""
