"""The serving engine inside every package; runs alone, knows no orchestration library."""
