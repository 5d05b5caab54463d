"""How long requests took, and which errors reached clients.

Not here: whether what they showed was right, which the oracle knows.
"""

import threading
import time
from collections import Counter, defaultdict

from botocore.exceptions import ClientError

# Requests that took less are only counted.
SLOW = 0.1


class Measures:
    def __init__(self, troubles):
        self.troubles, self.lock = troubles, threading.Lock()
        self.calls, self.errors, self.slow = Counter(), Counter(), defaultdict(list)

    def of(self, client, number):
        """boto3 at a gateway, measured."""
        return Measured(self, client, number)

    def note(self, operation, number, begin, error):
        end = time.monotonic()
        with self.lock:
            self.calls[operation] += 1
            if error:
                self.errors[name_of(error)] += 1
            elif end - begin > SLOW:
                self.slow[operation].append((end - begin, number, begin, end))

    def longest(self):
        """The longest wait for a success: at gateways that nothing befell meanwhile, and at any."""
        slow = [one for each in self.slow.values() for one in each]
        calm = [one for one in slow if not self.troubles.touched(one[1], one[2], one[3])]
        return tuple(max((one[0] for one in each), default=0.0) for each in (calm, slow))

    def lines(self):
        calm, any_gateway = self.longest()
        yield f"longest wait for a success {calm:.1f} s, at a gateway that something befell {any_gateway:.1f} s"
        yield "calls: " + ", ".join(f"{times} {operation}" for operation, times in self.calls.most_common())
        yield "errors: " + (", ".join(f"{times} × {name}" for name, times in self.errors.most_common()) or "none")


class Measured:
    def __init__(self, measures, client, number):
        self._measures, self._client, self._number = measures, client, number

    def __getattr__(self, operation):
        call = getattr(self._client, operation)

        def measured(**request):
            begin, failed = time.monotonic(), None
            try:
                return call(**request)
            except Exception as error:
                failed = error
                raise
            finally:
                self._measures.note(operation, self._number, begin, failed)

        return measured


def name_of(error):
    """The type of an error; of a 5xx with the beginning of its message."""
    if hasattr(error, "kind"):
        return error.kind
    if not isinstance(error, ClientError):
        return type(error).__name__
    told = error.response["Error"]
    status = error.response["ResponseMetadata"]["HTTPStatusCode"]
    return told["Code"] if status < 500 else f"{status} {told['Code']} “{' '.join(told.get('Message', '').split()[:9])}”"
