"""PynamoDB: models, result iterators that stop and go on, indexes, batches, transactions, conditions, versions."""

import uuid

import pytest
from pynamodb.attributes import NumberAttribute, UnicodeAttribute, VersionAttribute
from pynamodb.connection import Connection
from pynamodb.exceptions import DoesNotExist, PutError, TransactWriteError, UpdateError
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex, LocalSecondaryIndex
from pynamodb.models import Model
from pynamodb.transactions import TransactGet, TransactWrite

import chat as rooms
from conftest import ENDPOINT

CONNECTION = {
    "host": ENDPOINT, "region": "us-east-1", "aws_access_key_id": "local", "aws_secret_access_key": "local",
}


class ByTopic(LocalSecondaryIndex):
    class Meta:
        index_name = "by_topic"
        projection = AllProjection()

    room = UnicodeAttribute(hash_key=True)
    topic = UnicodeAttribute(range_key=True)


class ByRank(GlobalSecondaryIndex):
    class Meta:
        index_name = "by_rank"
        projection = AllProjection()
        read_capacity_units = write_capacity_units = 1000

    room = UnicodeAttribute(hash_key=True)
    rank = NumberAttribute(range_key=True)


class ByAuthor(GlobalSecondaryIndex):
    class Meta:
        index_name = "by_author"
        projection = AllProjection()
        read_capacity_units = write_capacity_units = 1000

    author = UnicodeAttribute(hash_key=True)
    rank = NumberAttribute(range_key=True)


class Message(Model):
    class Meta:
        table_name = "Chat_pynamodb"
        read_capacity_units = write_capacity_units = 1000
        host, region = CONNECTION["host"], CONNECTION["region"]
        aws_access_key_id, aws_secret_access_key = "local", "local"

    room = UnicodeAttribute(hash_key=True)
    id = UnicodeAttribute(range_key=True)
    author = UnicodeAttribute()
    rank = NumberAttribute()
    topic = UnicodeAttribute()
    text = UnicodeAttribute()
    by_topic = ByTopic()
    by_rank = ByRank()
    by_author = ByAuthor()


class Document(Model):
    class Meta:
        table_name = "Documents_pynamodb"
        read_capacity_units = write_capacity_units = 1000
        host, region = CONNECTION["host"], CONNECTION["region"]
        aws_access_key_id, aws_secret_access_key = "local", "local"

    owner = UnicodeAttribute(hash_key=True)
    path = UnicodeAttribute(range_key=True)
    size = NumberAttribute(default=0)
    title = UnicodeAttribute(null=True)
    version = VersionAttribute()


@pytest.fixture(scope="module")
def messages():
    """The chat rooms, created and filled by PynamoDB's own batch. Tests only read them."""
    Message.create_table(wait=True)
    with Message.batch_write() as batch:
        for message in rooms.messages():
            batch.save(Message(**{**message, "rank": int(message["rank"])}))
    yield
    Message.delete_table()


@pytest.fixture
def documents(client):
    Document.create_table(wait=True)
    yield Document
    Document.delete_table()
    # `create_table` takes a table that is still being deleted for one that exists.
    client.get_waiter("table_not_exists").wait(
        TableName=Document.Meta.table_name, WaiterConfig={"Delay": 1, "MaxAttempts": 60})


BOTH_WAYS = pytest.mark.parametrize("forward", [True, False], ids=["up", "down"])
ORDERS = pytest.mark.parametrize("index", list(rooms.ORDERS), ids=str)


def ask(index, **more):
    """A Query of the table or of an index for the key that has many messages."""
    queried = Message if index is None else getattr(Message, index)
    return queried.query(rooms.ORDERS[index][2], **more)


def ids(found):
    return [message.id for message in found]


def expected(index, forward=True, keep=lambda message: True):
    return [message["id"] for message in rooms.ordered(index, forward, keep)]


@BOTH_WAYS
@ORDERS
def test_an_iterator_crosses_pages_in_order(messages, index, forward):
    want = expected(index, forward)
    found = ask(index, scan_index_forward=forward, page_size=6)
    assert ids(found) == want
    assert found.total_count == len(want)
    assert found.last_evaluated_key is None


@BOTH_WAYS
@ORDERS
def test_an_iterator_goes_on_where_another_stopped(messages, index, forward):
    want = rooms.cut(expected(index, forward), 8)
    assert len(want) >= 3
    # Pages of three: a limit falls inside a page, and PynamoDB then builds the cursor from the last item itself.
    for page_size in (3, 8):
        cursor, got = None, []
        for _ in want:
            found = ask(index, scan_index_forward=forward, limit=8, page_size=page_size, last_evaluated_key=cursor)
            got.append(ids(found))
            cursor = found.last_evaluated_key
            if cursor is None:
                break
        assert [part for part in got if part] == [part for part in want if part]


@BOTH_WAYS
@ORDERS
def test_an_iterator_can_be_left_and_taken_up_by_an_item(messages, index, forward):
    want = expected(index, forward)
    found = ask(index, scan_index_forward=forward, page_size=7)
    seen = [next(found).id for _ in range(10)]
    rest = ask(index, scan_index_forward=forward, page_size=7, last_evaluated_key=found.last_evaluated_key)
    assert seen + ids(rest) == want


@BOTH_WAYS
def test_conditions_on_range_keys_and_filters(messages, forward):
    for condition, keep in [
        (Message.id == "0007", lambda m: m["id"] == "0007"),
        (Message.id < "0007", lambda m: m["id"] < "0007"),
        (Message.id >= "0060", lambda m: m["id"] >= "0060"),
        (Message.id.between("0010", "0050"), lambda m: "0010" <= m["id"] <= "0050"),
        (Message.id.startswith("002"), lambda m: m["id"].startswith("002")),
    ]:
        found = Message.query(rooms.LOBBY, condition, scan_index_forward=forward, page_size=9)
        assert ids(found) == expected(None, forward, keep)
    for condition, keep in [
        (Message.author == "ann", lambda m: m["author"] == "ann"),
        (Message.author.is_in("ann", "cyd") & (Message.text != "message 3"),
         lambda m: m["author"] in ("ann", "cyd") and m["text"] != "message 3"),
        (~Message.text.contains("1") | (Message.rank > 10), lambda m: "1" not in m["text"] or m["rank"] > 10),
        (Message.topic.exists() & Message.text.startswith("message 2"), lambda m: m["text"].startswith("message 2")),
    ]:
        found = Message.query(rooms.LOBBY, filter_condition=condition, scan_index_forward=forward, page_size=16)
        assert ids(found) == expected(None, forward, keep)
    found = Message.by_rank.query(rooms.LOBBY, Message.rank.between(-20, 20), scan_index_forward=forward, page_size=9)
    assert ids(found) == expected("by_rank", forward, lambda m: -20 <= m["rank"] <= 20)


def test_counts(messages):
    assert Message.count(rooms.LOBBY) == 70
    assert Message.count(rooms.LOBBY, Message.id > "0033") == 36
    assert Message.count(rooms.LOBBY, filter_condition=Message.author == "ann") == 24
    assert Message.by_author.count("bob") == len(expected("by_author"))
    assert Message.by_topic.count(rooms.LOBBY) == 70


def test_scans(messages):
    everything = [message["id"] for message in rooms.messages()]
    assert sorted(ids(Message.scan(page_size=10))) == everything
    assert sorted(ids(Message.by_rank.scan(page_size=20))) == everything
    assert sorted(ids(Message.scan(Message.room == rooms.ATTIC, page_size=10))) == everything[70:]
    parts = [ids(Message.scan(segment=segment, total_segments=3, page_size=10)) for segment in range(3)]
    assert sorted(sum(parts, [])) == everything
    first = Message.scan(limit=30)
    seen = ids(first)
    assert sorted(seen + ids(Message.scan(last_evaluated_key=first.last_evaluated_key))) == everything
    # A rate limit reads the units of every page.
    assert sorted(ids(Message.scan(page_size=20, rate_limit=400))) == everything
    assert ids(Message.query(rooms.LOBBY, page_size=20, rate_limit=400)) == expected(None)


def test_batches(messages, documents):
    wanted = [(rooms.LOBBY, f"{number:04d}") for number in range(0, 70, 2)] + [(rooms.ATTIC, "none")]
    assert sorted(ids(Message.batch_get(wanted))) == [id for _, id in wanted[:-1]]
    with documents.batch_write() as batch:
        for number in range(60):
            batch.save(Document("eve", f"/{number:02d}", size=number))
    with documents.batch_write(auto_commit=True) as batch:
        for number in range(0, 60, 2):
            batch.delete(Document("eve", f"/{number:02d}"))
    assert [document.size for document in documents.query("eve")] == list(range(1, 60, 2))


def test_models_save_update_refresh_and_delete(documents):
    document = Document("eve", "/a", size=1)
    document.save(Document.owner.does_not_exist())
    with pytest.raises(PutError) as caught:
        Document("eve", "/a").save(Document.owner.does_not_exist())
    assert caught.value.cause_response_code == "ConditionalCheckFailedException"
    document.update(actions=[Document.size.add(4), Document.title.set("first")], condition=Document.size == 1)
    assert (document.size, document.title, document.version) == (5, "first", 2)
    again = Document.get("eve", "/a", consistent_read=True)
    assert (again.owner, again.size, again.title, again.version) == ("eve", 5, "first", 2)
    with pytest.raises(UpdateError):
        again.update(actions=[Document.title.remove()], condition=Document.owner == "eve#~1")
    again.update(actions=[Document.title.set(Document.owner)])
    document.refresh()
    assert (document.title, document.version) == ("eve", 3)
    document.delete()
    with pytest.raises(DoesNotExist):
        Document.get("eve", "/a")


def test_versions_hold_back_a_stale_write(documents):
    Document("eve", "/a").save()
    mine, theirs = Document.get("eve", "/a"), Document.get("eve", "/a")
    theirs.size = 7
    theirs.save()
    mine.size = 8
    with pytest.raises(PutError) as caught:
        mine.save()
    assert caught.value.cause_response_code == "ConditionalCheckFailedException"
    assert (Document.get("eve", "/a").size, theirs.version) == (7, 2)
    theirs.delete()
    assert list(documents.query("eve")) == []


def test_transactions(documents):
    connection = Connection(**CONNECTION)
    token = str(uuid.uuid4())
    for _ in range(2):
        with TransactWrite(connection=connection, client_request_token=token) as transaction:
            for number in range(8):
                transaction.save(Document("eve", f"/{number}", size=number))
    assert [(d.path, d.size, d.version) for d in documents.query("eve")] == [(f"/{n}", n, 1) for n in range(8)]
    with TransactWrite(connection=connection) as transaction:
        transaction.update(Document.get("eve", "/1"), actions=[Document.size.add(10)])
        transaction.delete(Document.get("eve", "/2"))
        transaction.condition_check(Document, "eve", "/3", condition=Document.size == 3)
    assert [d.size for d in documents.query("eve", scan_index_forward=False)] == [7, 6, 5, 4, 3, 11, 0]
    with pytest.raises(TransactWriteError) as caught:
        with TransactWrite(connection=connection) as transaction:
            transaction.save(Document("eve", "/9"))
            transaction.condition_check(Document, "eve", "/3", condition=Document.size == 4)
            transaction.delete(Document("eve", "/5", version=1))
    assert caught.value.cause_response_code == "TransactionCanceledException"
    # PynamoDB sends checks first, then deletes, then puts.
    assert [reason and reason.code for reason in caught.value.cancellation_reasons] == [
        "ConditionalCheckFailed", None, None]
    with TransactGet(connection=connection) as transaction:
        futures = [transaction.get(Document, "eve", path) for path in ("/7", "/1", "/0")]
    assert [future.get().size for future in futures] == [7, 11, 0]
    with TransactGet(connection=connection) as transaction:
        missing = transaction.get(Document, "eve", "/2")
    with pytest.raises(DoesNotExist):
        missing.get()
