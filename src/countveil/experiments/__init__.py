"""Case studies, one module each, over the library's public parts."""
