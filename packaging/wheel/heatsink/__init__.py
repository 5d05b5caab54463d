"""A local DynamoDB for programs and their tests, and the `heatsink` command.

>>> import heatsink
>>> with heatsink.local() as server:
...     server.url
'http://127.0.0.1:...'
"""

from heatsink.binary import MissingBinary, find
from heatsink.server import Local, NotStarted, local

__all__ = ["Local", "MissingBinary", "NotStarted", "find", "local"]
