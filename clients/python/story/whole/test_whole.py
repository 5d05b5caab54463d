"""The whole story at the embedded store, which knows the client and gives it no more rights than the page asks for."""

import json
import re
from pathlib import Path

from story.tests.store import store, story

PAGE = Path(__file__).resolve().parents[4] / "docs/how-to/try-on-aws.md"


def test_the_whole_story_under_the_policy_of_the_page(tmp_path):
    policy = re.search(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL).group(1)
    (tmp_path / "policy.json").write_text(policy)
    (tmp_path / "heatsink.toml").write_text('[[client]]\nid = "local"\nsecret_env = "STORY_SECRET"\npolicy = "policy.json"\n')
    with store(tmp_path, "--rules", "heatsink.toml", environment={"STORY_SECRET": "local"}) as endpoint:
        running = story(tmp_path, endpoint, "--seconds", "8")
        said = running.communicate(timeout=900)[0]
    assert running.returncode == 0, said
    told = json.loads((tmp_path / "report.json").read_text())
    steps = {step["step"]: step for step in told["steps"]}
    key, value = steps["one hot key"], steps["one hot value of the index"]
    for hot in (key, value):
        assert hot["before"]["throttled_share"] > 0.1 > 0.05 > hot["after"]["throttled_share"], hot
    assert key["relieved_after_seconds"] is not None
    assert told["faults"] == [] and steps["heatsink verify, moved back"]["items"] == 900
    assert told["taken"]["dollars"] < told["planned"]["dollars"]
