"""Object storage: bytes under keys with conditional writes, and content found by digest."""
