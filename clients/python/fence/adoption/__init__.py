"""What the scenario `table` is made of: an operator who adopts a whole table, clients with partitions of keys of their own, and readers of all."""
