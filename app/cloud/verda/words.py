"""Other people's words, made fit for our logs."""

LONGEST_MESSAGE = 300


def printable(text: str) -> str:
    """One line of at most 300 characters, with anything that could confuse a terminal or a log replaced."""
    line = " ".join(text[: LONGEST_MESSAGE * 4].split())
    line = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
    return line if len(line) <= LONGEST_MESSAGE else f"{line[: LONGEST_MESSAGE - 1]}…"
