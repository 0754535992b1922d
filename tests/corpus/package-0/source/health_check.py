"""Says that all is well."""

print("{}")
