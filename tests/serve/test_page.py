"""The live page in a real Chromium: it shows what the report says, moves, and loads nothing from elsewhere."""

import os
import random

import pytest

from serve.browser import CHROMIUM, Browser
from serve.serving import Server, Talk

if CHROMIUM is None and os.environ.get("RUE_BROWSER") != "required":
    pytest.skip("there is no Chromium here: the page is not tested (apt-get install chromium)", allow_module_level=True)


def examples(many, begin=0):
    chance = random.Random(begin)
    for _ in range(many):
        x, colour = chance.random(), chance.choice(["red", "green", "blue"])
        yield {"features": {"price": x, "colour": colour}, "label": x + (colour == "red") / 2 + chance.random() > 1}


def shown(browser, id_):
    return float(browser.ask(f"document.getElementById('{id_}').dataset.value"))


def test_the_page_shows_the_report_and_moves(tmp_path):
    with Server(tmp_path / "served") as server, Talk(server.port) as talk, Browser(tmp_path / "browser") as browser:
        talk.batch(examples(500))
        for i in range(12):
            talk.ask("predict", {"id": f"{i}", "features": {"price": 0.5, "colour": "red"}})
        for i in range(5):
            talk.ask("label", {"id": f"{i}", "label": True})
        assert talk.ask("label", {"id": "3", "label": False})[0] == 409
        report = talk.ask("report")[1]
        browser.open(f"http://127.0.0.1:{server.port}/")
        browser.until("document.getElementById('certificate').dataset.examples == 505")
        browser.until("document.getElementById('examples').dataset.value == 505")
        assert shown(browser, "risk") == report["risk"]
        assert shown(browser, "regret") == report["certificate"]["regret_at_most"]
        words = browser.ask("document.getElementById('certificate').textContent")
        assert words == report["certificate"]["words"]
        assert shown(browser, "pending") == report["service"]["pending"] == 7
        assert shown(browser, "late") == report["service"]["late"]["labels"] == 5
        assert "used with something else" in browser.ask("document.getElementById('errors').textContent")
        browser.until("document.getElementById('weights').rows.length > 2")
        weights = browser.ask("[...document.getElementById('weights').rows].map((row) => row.cells[0].textContent)")
        assert weights == [name for name, *_ in talk.ask("weights?top=10")[1]["weights"]]
        assert browser.ask("document.querySelectorAll('#curve polyline').length") == 2
        members = browser.ask("[...document.getElementById('members').rows].map((row) => row.cells[0].textContent)")
        assert members == [stage["kind"] for stage in report["stages"]["stages"]]

        before = browser.ask("document.querySelector('#curve .own').getAttribute('points')")
        talk.batch(examples(300, 1))
        report = talk.ask("report")[1]
        browser.until("document.getElementById('examples').dataset.value == 805")
        browser.until("document.getElementById('certificate').dataset.examples == 805")
        assert shown(browser, "risk") == report["risk"]
        assert shown(browser, "regret") == report["certificate"]["regret_at_most"]
        assert browser.ask("document.querySelector('#curve .own').getAttribute('points')") != before
        assert browser.ask("document.getElementById('state').textContent") == "live"
        assert browser.messages == []
        own = f"http://127.0.0.1:{server.port}/"
        assert browser.requested
        assert all(url.startswith(own) for url in browser.requested)

        browser.call("Emulation.setDeviceMetricsOverride", width=360, height=740, deviceScaleFactor=1, mobile=True)
        assert browser.ask("document.documentElement.scrollWidth") <= 360
        light = browser.ask("getComputedStyle(document.body).backgroundColor")
        browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        assert browser.ask("getComputedStyle(document.body).backgroundColor") != light
        browser.picture(tmp_path / "page.png")
        assert (tmp_path / "page.png").stat().st_size > 10_000

        server.kill()
        browser.until("document.getElementById('state').textContent == 'not reached'")


def test_the_page_asks_for_the_token(tmp_path):
    token = "a token of a test".replace(" ", "-")
    (tmp_path / "token").write_text(token)
    options = "--token-file", tmp_path / "token", "--learner", "ogd"
    with Server(tmp_path / "served", *options) as server, Browser(tmp_path / "browser") as browser:
        browser.open(f"http://127.0.0.1:{server.port}/")
        browser.until("document.getElementById('ask') && !document.getElementById('ask').hidden")
        browser.ask(f"document.getElementById('token').value = '{token}'")
        browser.ask("document.getElementById('ask').requestSubmit()")
        browser.until("document.getElementById('state').textContent == 'live'")


def test_examples_with_markup_in_their_names_are_text(tmp_path):
    with Server(tmp_path / "served") as server, Talk(server.port) as talk, Browser(tmp_path / "browser") as browser:
        nasty = '<img src=x onerror="window.broken = 1">'
        for i in range(20):
            talk.ask("learn", {"features": {nasty: i % 3}, "label": i % 2})
        talk.ask("learn", {"features": {nasty: nasty}, "label": 1})
        browser.open(f"http://127.0.0.1:{server.port}/")
        browser.until("document.getElementById('weights') && document.getElementById('weights').rows.length > 1")
        browser.until("document.getElementById('errors').textContent.includes('<img')")
        assert browser.ask("document.querySelectorAll('img').length") == 0
        assert browser.ask("window.broken === undefined")
