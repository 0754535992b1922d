"""The server: listeners, protocol, batching, slots, supervisor and client."""
