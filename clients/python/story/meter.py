"""Counts what is taken, and stops the story at its budget.

Requests of the story are counted by the `ConsumedCapacity` of their answers. What gateways and commands take by themselves, moves and the registry,
no answer tells: it is computed, from above, and counted beside.
"""

import threading

from story.prices import REGION, Use


class OverBudget(Exception):
    """The budget is used up, or what comes next does not fit into it."""


class Meter:
    def __init__(self, budget, region=REGION):
        self.budget, self.region = budget, region
        self.counted, self.computed = Use(), Use()
        self.lock = threading.Lock()

    def dollars(self):
        return (self.counted + self.computed).dollars(self.region)

    def write(self, answer):
        self._count(Use(writes=units(answer)))

    def read(self, answer, sent=0):
        self._count(Use(reads=units(answer), gb_sent=sent / 1e9))

    def _count(self, use):
        with self.lock:
            self.counted += use
        self.check()

    def compute(self, use):
        with self.lock:
            self.computed += use
        self.check()

    def afford(self, use, what):
        """Refuses to begin what would go over the budget."""
        then = (self.counted + self.computed + use).dollars(self.region)
        if then > self.budget:
            raise OverBudget(f"{what} would bring it to ${then:.4f}, the budget is ${self.budget:.4f}")

    def check(self):
        if self.dollars() > self.budget:
            raise OverBudget(f"${self.dollars():.4f} are used up, the budget is ${self.budget:.4f}")

    def document(self):
        return {
            "budget_dollars": self.budget, "dollars": round(self.dollars(), 6), "region": self.region,
            "counted": vars(self.counted), "computed": vars(self.computed),
        }


def units(answer):
    """The capacity units of an answer: of one table, or of several."""
    told = answer.get("ConsumedCapacity") or []
    return sum(one["CapacityUnits"] for one in (told if isinstance(told, list) else [told]))
