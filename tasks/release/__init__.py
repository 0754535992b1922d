"""Signs, pushes, registers, deploys and rolls back packages; every outer effect is journalled."""
