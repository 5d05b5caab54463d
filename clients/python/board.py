"""The leaderboard that the tests play: its rows, and what any unsharded DynamoDB answers about them.

The expected answers are computed here from a plain list. Nothing here knows about shards.
"""

import random

VIRAL = "game_x"
COLD = ("game_a", "game_b", "game_c")
REGIONS = ("ap", "eu", "us")


def rows():
    """2,000 scores for one game, 20 for each of three others. Scores repeat; keys do not."""
    rng = random.Random(7)
    made = []
    for game, count in [(VIRAL, 2000)] + [(game, 20) for game in COLD]:
        for number in range(count):
            score = rng.randrange(0, 1500)
            player = f"player_{number:04d}"
            made.append({
                "pk": game,
                "sk": f"{score:08d}#{player}",
                "player": player,
                "score": score,
                "region": REGIONS[number % 3],
                # Large enough that the game's rows do not fit one 1 MB page.
                "note": f"{number:04d}" * 150,
            })
    return made


def collection(all_rows, game, forward=True, keep=lambda row: True):
    """One game's rows in the order a Query gives them. Zero-padded ASCII keys sort as Python sorts them."""
    return sorted((r for r in all_rows if r["pk"] == game and keep(r)), key=lambda r: r["sk"], reverse=not forward)


def key(row):
    return {"pk": row["pk"], "sk": row["sk"]}


def evaluated(pages, expected):
    """Whether the pages' ScannedCount adds up to `expected`.

    DynamoDB counts each row once. The embedded engine counts the row that ends a 1 MB page on both sides of it, so one more
    for each page boundary is let through.
    """
    return expected <= sum(page["ScannedCount"] for page in pages) < expected + len(pages)
