"""Layout changes under load, with real processes. `clients/fence` runs it and says how."""
