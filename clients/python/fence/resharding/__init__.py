"""What the scenario `reshard` is made of: a schedule of troubles, an operator, clients that know their items, and what is measured."""
