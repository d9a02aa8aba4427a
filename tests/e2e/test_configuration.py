"""A configuration that changes under a running provider."""

import json
import signal
from pathlib import Path

import yaml

from tests.e2e.harness import GROUP, Provider, simulator, until


def test_a_changed_file_takes_effect_and_a_broken_one_does_not(tmp_path: Path) -> None:
    """By itself within seconds, at once with SIGHUP; `/readyz` and the metrics show what is in effect."""
    with simulator() as sim, Provider(tmp_path, sim, {"gpu-workers": GROUP}) as provider:
        settings = yaml.safe_load(provider.config.read_text())
        settings["node_groups"]["gpu-workers"]["max_size"] = 7
        settings["logging"]["level"] = "error"
        provider.config.write_text(yaml.safe_dump(settings))
        provider.send(signal.SIGHUP)
        until(lambda: _max_size(provider) == 7, what="the new maximum")
        settings["node_groups"]["gpu-workers"]["max_size"] = -1
        provider.config.write_text(yaml.safe_dump(settings))
        until(lambda: "verda_ca_configuration_valid 0.0" in provider.get("/metrics/")[1], what="the rejection")
        assert _max_size(provider) == 7
        status, body = provider.get("/readyz")
        assert status == 200
        (remark,) = [item for item in json.loads(body)["remarks"] if item["code"] == "configuration-rejected"]
        assert "node_groups.gpu-workers.max_size: must be" in remark["message"]
        until(lambda: "the earlier one stays" in provider.log.read_text(), what="the problem in the log")


def _max_size(provider: Provider) -> int:
    (group,) = provider.client.node_groups()
    return group.maxSize
