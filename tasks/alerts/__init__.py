"""Tells people what was refused: to a file always, to paging and chat services where configured."""
