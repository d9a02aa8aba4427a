"""Jobs that bring the cloud in line with the books, and their scheduler."""
