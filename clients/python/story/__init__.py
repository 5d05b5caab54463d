"""Heatsink's whole story against a store, real AWS included, within a budget. `clients/aws/story` says how it is run."""
