"""The clients of the scenario `table` take what is right, and find each fault that is planted: ElectroDB's and OneTable's in a double of the Node program,
boto3's in a table in memory."""

import random
from types import SimpleNamespace

import pytest

from fence.adoption.mappers import KEYS, Failed, MapperClient
from fence.adoption.readers import TableReader, Writer
from fence.oracle import Oracle
from fence.tests.table import Table


class Double:
    """What the Node program does, over a dictionary. `plant` does wrong in one way."""

    def __init__(self, plant):
        self.items, self.plant, self.calls = {}, plant, 0

    def planted(self, what):
        self.calls += 1
        return self.plant == what and self.calls % 7 == 0

    def call(self, mapper, call, gateway, **request):
        partition, sort = KEYS[mapper]
        place = lambda key: (partition.format(key["team"]), sort.format(key["id"]))  # noqa: E731
        if call in ("put", "create", "batch"):
            for item in request.get("items", [request.get("item")]):
                if call == "create" and place(item) in self.items and not self.planted("condition ignored"):
                    raise Failed({"status": 400, "refused": False, "name": "ConditionalCheckFailedException", "message": ""})
                if not self.planted("put lost"):
                    self.items[place(item)] = (item["v"], None)
            if self.calls % 11 == 0:
                raise Failed({"status": None, "refused": False, "name": "Error", "message": "socket hang up"})
        elif call in ("update", "add"):
            value, number = self.items.get(place(request["key"]), (None, None))
            one = 2 if self.planted("added twice") else 1
            self.items[place(request["key"])] = (request["v"], number) if call == "update" else (value, (number or 0) + one)
        elif call == "delete":
            self.items.pop(place(request["key"]), None)
        else:
            rows = sorted((*at, *holds) for at, holds in self.items.items())
            if call == "get":
                return [row for row in rows if row[:2] == place(request["key"])]
            rows = [row for row in rows if call == "scan" or row[0] == partition.format(request["team"])]
            rows.reverse() if request.get("order") == "desc" else None
            if self.planted("page out of order"):
                rows.reverse()
            if self.planted("item left out"):
                rows = rows[1:]
            if self.planted("item shown twice"):
                rows = rows[:1] + rows
            return [[f"{row[0]}#~1", *row[1:]] for row in rows] if self.planted("physical key") else rows
        return None


def stage_of(raw):
    clients = SimpleNamespace(rest=lambda _: None, stopping=SimpleNamespace(is_set=lambda: False))
    return SimpleNamespace(oracle=Oracle(), cluster=SimpleNamespace(seed=1), clients=clients, raw=raw)


def mapped(mapper, plant):
    stage, rng = stage_of(None), random.Random(1)
    measures = SimpleNamespace(note=lambda *_: None)
    client = MapperClient(stage, "Town", 0, mapper, Double(plant), measures, 2, ["k1", "k2"], lambda *_: False)
    for _ in range(1500):
        client.act(rng)
    return {kind for kind, times in stage.oracle.faults.items() if times}


def read_by_boto3(plant):
    table, rng = Table(plant), random.Random(1)
    stage = stage_of(table)
    reader = TableReader(stage, "Moves", "r", [table, table], lambda *_: False, [], [])
    # Paginators and resources are boto3's own; here its pages are read as they come.
    reader.own, reader.scan_by_paginator = lambda rng, pk: None, reader.scan
    writer = Writer(stage, "Moves", 0, [table, table], ["k1", "k2", "k3", "k4"], False, [reader])
    for _ in range(1500):
        writer.act(rng)
        reader.act(rng)
    return {kind for kind, times in stage.oracle.faults.items() if times}


@pytest.mark.parametrize("mapper", KEYS)
def test_what_is_right_is_taken_of_mappers(mapper):
    assert mapped(mapper, None) == set()


def test_what_is_right_is_taken_of_boto3():
    assert read_by_boto3(None) == set()


@pytest.mark.parametrize("plant, kind", [
    ("put lost", "lost"), ("condition ignored", "accepted"), ("added twice", "phantom"), ("page out of order", "disordered"),
    ("item left out", "lost"), ("item shown twice", "doubled"), ("physical key", "shown"),
])
def test_what_is_planted_is_found(plant, kind):
    assert kind in mapped("ElectroDB", plant)


@pytest.mark.parametrize("plant, kind", [("put lost", "lost"), ("item left out", "lost"), ("item shown twice", "doubled")])
def test_what_is_planted_is_found_by_boto3(plant, kind):
    assert kind in read_by_boto3(plant)
