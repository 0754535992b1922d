"""Memory of a serving process: what it holds, what it may hold, and giving it back."""
