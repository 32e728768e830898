"""Reports: the page of peers states what each cannot do, the page of growth has each size, and plots are SVG."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from bench.comparison import COMPARED, PEERS, Peer, cannot, cells_of, page
from bench.growth import Curve, drawing, section
from bench.meter import Sample
from bench.plots import bars, lines
from bench.shapes import read_shapes


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_peer_pins_its_versions_without_hosts(peer: Peer) -> None:
    assert all("==" in line and "/" not in line for line in peer.versions.splitlines())
    assert bool(peer.version) is bool(peer.package)


@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_peer_describes_its_settings(peer: Peer) -> None:
    settings, _ = peer.described()
    assert settings


def test_every_compared_shape_is_measured_with_pointsman_too() -> None:
    shapes = read_shapes()
    for store, compared in COMPARED.items():
        for shape in compared:
            assert store in shapes[shape].public


def test_cells_of_one_shape_stand_beside_each_other() -> None:
    cells = cells_of(PEERS, ["chain"])
    first = [cell.contender for cell in cells if (cell.store, cell.size) == ("memory", 10)]
    assert first[0] == "Pointsman"
    assert "openai SDK" not in first
    assert [cell.contender for cell in cells[: len(first)]] == first


@pytest.mark.integration  # It asks git for the commit.
def test_page_shows_ratios_and_reasons() -> None:
    found = {
        cell: [Sample(1, 0, 10.0 if cell.contender == "Pointsman" else 25.0, 1, 1, 1, 50)]
        for cell in cells_of(PEERS, ["at-once"])
    }
    text = page(found, PEERS, 1, 60)
    assert "25<br>2.5 ×" in text
    for peer in PEERS:
        assert all(reason in text for reason in peer.described()[1].values())
        assert not cannot(peer, "agent", "memory", 10) or peer.name == "Burr"


def test_growth_page_has_a_row_for_each_size() -> None:
    curve = Curve(
        "gates", "Executions parked at gates", "About.", ("MB", "CPU"), [(1, (10.0, 0.0)), (1000, (20.0, 0.0))]
    )
    assert "| 1,000 | 20.00 | 0.00 |" in section(curve)
    assert ElementTree.fromstring(drawing(curve)).tag.endswith("svg")


def test_plots_are_svg() -> None:
    for plot in (
        bars("CPU", "µs", {"chain 10": {"a": 12.5, "b": 400.0}, "chain 100": {"a": 7.0}}),
        lines("growth", "executions", "MB", {"a": [(1, 10.0), (1000, 90.0)]}),
    ):
        assert ElementTree.fromstring(plot).tag.endswith("svg")
