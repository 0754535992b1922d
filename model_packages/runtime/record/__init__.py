"""Records written beside serving and never in its way."""
