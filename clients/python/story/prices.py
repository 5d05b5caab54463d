"""What DynamoDB costs. The only place of the story that knows prices."""

from dataclasses import dataclass

SOURCE = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
AS_OF = "2024-11-01"
REGION = "us-east-1"

# US dollars, us-east-1, on demand, Standard class, in force since AS_OF.
WRITE_UNIT = 0.625 / 1e6
READ_UNIT = 0.125 / 1e6
STORED_GB_HOUR = 0.25 / 730
# To the internet, where the story runs outside AWS.
SENT_GB = 0.09
# Other regions are dearer, none known by so much. AWS's page has their prices.
ELSEWHERE = 2.0


@dataclass(frozen=True)
class Use:
    """What is taken of a store. Units are request units, of 1 KB written and 4 KB read."""

    writes: float = 0
    reads: float = 0
    gb_hours: float = 0
    gb_sent: float = 0

    def __add__(self, other):
        return Use(self.writes + other.writes, self.reads + other.reads, self.gb_hours + other.gb_hours, self.gb_sent + other.gb_sent)

    def dollars(self, region=REGION):
        factor = 1.0 if region == REGION else ELSEWHERE
        return factor * (
            self.writes * WRITE_UNIT + self.reads * READ_UNIT + self.gb_hours * STORED_GB_HOUR + self.gb_sent * SENT_GB)
