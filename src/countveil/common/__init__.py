"""What any part may use: output of commands, progress, optional libraries, files that appear whole or not at all."""
