"""Events of users and tenants, and running scores: all that the application does with its tables."""

from boto3.dynamodb.conditions import Key


class Events:
    """Everything that happened to an owner, in order of time. An event that is recorded twice is one event."""

    def __init__(self, dynamodb):
        self.table = dynamodb.Table("Events")

    def record(self, owner, at, event, **details):
        self.table.put_item(Item={"owner": owner, "at": f"{at}#{event}", **details})

    def one(self, owner, at, event):
        return self.table.get_item(Key={"owner": owner, "at": f"{at}#{event}"}).get("Item")

    def between(self, owner, start, end):
        """All events from `start` on and before `end`, oldest first."""
        query = {
            "KeyConditionExpression": Key("owner").eq(owner) & Key("at").between(start, end),
            "ProjectionExpression": "#at", "ExpressionAttributeNames": {"#at": "at"},
        }
        while True:
            page = self.table.query(**query)
            yield from (item["at"] for item in page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]


class Scores:
    """One number for each game, which thousands add to."""

    def __init__(self, dynamodb):
        self.table = dynamodb.Table("Scores")

    def describe(self, game, **details):
        self.table.put_item(Item={"game": game, **details})

    def add(self, game, points):
        self.table.update_item(
            Key={"game": game}, UpdateExpression="ADD score :points", ExpressionAttributeValues={":points": points})

    def total(self, game):
        return self.table.get_item(Key={"game": game})["Item"].get("score", 0)
