"""What a file says, made harmless for a terminal."""


def harmless(text: str, *, kept: str = "") -> str:
    """Write out as escapes what a terminal would obey or hide; characters in `kept` stay.

    A packed file may come from anywhere, and its card and its words may hold any character.
    """
    return "".join(
        character
        if character.isprintable() or character in kept
        else character.encode("unicode_escape").decode()
        for character in text
    )
