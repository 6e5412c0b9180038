"""Sessions over HTTP: what goes on to the control socket and comes back, who may ask, and the OpenAPI document."""

import http.client
import json
import os
import threading

import pytest

from bentpipe.attach.client import SessionClient
from bentpipe.attach.control import Control
from bentpipe.attach.rpc import METHODS, Refused, Service
from bentpipe.errors import BentpipeError
from bentpipe.serve.runs import live_page
from bentpipe.serve.server import make_server

TOKEN = "a-token-of-20-chars."


class FakeService(Service):
    """A session without a simulation."""

    def __init__(self):
        self.written = []

    def close(self):
        pass

    def _call(self, given):
        return getattr(self, given["method"])(**given["params"])

    def session(self):
        return {"experiment": "acts-1flow"}

    def get(self, keys=None):
        return dict.fromkeys(keys or ["satellite.ber"], 1e-13)

    def set(self, values=None, settings=None):
        if not values:
            raise Refused("set: give values")
        self.written.append(values)
        return {"at_s": 1.0, "changes": []}

    def events(self, since=0):
        return {"events": [], "next": since}


@pytest.fixture
def session(tmp_path):
    """The folder of a session, and what was written to it."""
    folder = tmp_path / "runs" / "a"
    (folder / ".running").mkdir(parents=True)
    service = FakeService()
    control = Control(folder / ".running" / "control", service)
    yield folder, service
    control.close()


def asking(folder, token=""):
    server = make_server(folder, token=token)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    port = server.server_address[1]

    def ask(verb, path, content=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        given = {} if content is None else {"Content-Type": "application/json"}
        body = None if content is None else json.dumps(content)
        connection.request(
            verb, path, body, {**given, **{name.replace("_", "-"): value for name, value in headers.items()}}
        )
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, json.loads(text) if answer.headers["Content-Type"] == "application/json" else text

    return server, ask


@pytest.fixture
def ask(session):
    server, ask = asking(session[0].parent)
    with server:
        yield ask
        server.shutdown()


A = "/api/sessions/a"


def test_methods_go_on_to_the_session(ask, session):
    assert ask("GET", f"{A}/session") == (200, {"experiment": "acts-1flow"})
    assert ask("GET", f"{A}/get?keys=x,y") == (200, {"x": 1e-13, "y": 1e-13})
    assert ask("GET", f"{A}/events?since=3") == (200, {"events": [], "next": 3})
    assert ask("POST", f"{A}/set", {"values": {"satellite.ber": 1e-6}})[0] == 200
    assert session[1].written == [{"satellite.ber": 1e-6}]


@pytest.mark.parametrize(
    ("verb", "path", "content", "status", "what"),
    [
        ("GET", "/api/sessions/b/session", None, 404, "b: no session is in progress there"),
        ("GET", "/api/sessions/a/bother", None, 404, "no such path"),
        ("GET", f"{A}/set", None, 405, "set is asked for by POST"),
        ("POST", f"{A}/session", {}, 405, "session is asked for by GET"),
        ("GET", f"{A}/session?odd=1", None, 400, "session has no parameter 'odd'; it has none"),
        ("GET", f"{A}/events?since=x", None, 400, "invalid literal"),
        ("POST", f"{A}/set", [1], 400, "the body is not a JSON object"),
        ("POST", f"{A}/set", {}, 409, "set: give values"),
    ],
)
def test_what_is_wrong_is_said(ask, verb, path, content, status, what):
    found, answer = ask(verb, path, content)
    assert found == status and what in answer["error"]


def test_a_page_from_elsewhere_changes_nothing(ask, session):
    """It can't send JSON without being asked for leave, which nobody gives; and it names its origin."""
    values = {"values": {"satellite.ber": 1e-6}}
    assert ask("POST", f"{A}/set", values, Origin="http://evil.example")[0] == 403
    assert ask("POST", f"{A}/set", values, Host="evil.example")[0] == 421
    assert ask("POST", f"{A}/set", values, Content_Type="text/plain")[0] == 415
    assert ask("OPTIONS", f"{A}/set")[0] == 501
    assert ask("POST", "/runs/a/result.json", {})[0] == 405
    assert not session[1].written


def test_with_a_token_each_request_needs_it(session):
    server, ask = asking(session[0].parent, TOKEN)
    with server:
        assert ask("GET", f"{A}/session")[0] == ask("GET", "/")[0] == 401
        assert ask("POST", f"{A}/set", {"values": {"a": 1}})[0] == ask("GET", f"{A}/session?token=wrong")[0] == 401
        assert ask("GET", f"{A}/session", Authorization=f"Bearer {TOKEN}", Host="lab.example")[0] == 200
        assert ask("GET", f"/?token={TOKEN}")[0] == 303
        assert ask("GET", f"{A}/session", Cookie=f"x=1; bentpipe={TOKEN}")[0] == 200
        server.shutdown()
    assert not session[1].written


def test_another_address_than_loopback_needs_a_token(tmp_path):
    with pytest.raises(BentpipeError, match=r"--address 0\.0\.0\.0: not a loopback address; give --token FILE"):
        make_server(tmp_path, "0.0.0.0")
    make_server(tmp_path, "0.0.0.0", token=TOKEN).server_close()


def test_the_openapi_document_has_each_method(ask):
    status, document = ask("GET", "/api/openapi.json")
    assert status == 200 and document["openapi"] == "3.1.0"
    operations = {one["operationId"]: (verb, one) for each in document["paths"].values() for verb, one in each.items()}
    assert operations.keys() == METHODS.keys() | {"sessions"}
    assert operations["set"][0] == "post" and operations["losses"][0] == "get"
    body = operations["set"][1]["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"].keys() == {"values", "settings"}
    assert all(one["summary"] for _, one in operations.values())


def test_a_client_on_the_socket_is_answered_beside(session):
    with SessionClient(session[0]) as client:
        assert client.session() == {"experiment": "acts-1flow"}
    assert os.stat(session[0] / ".running" / "control").st_mode & 0o777 == 0o600


def test_the_live_page_of_a_session_asks_for_its_settings(session):
    """The page's script has these paths; a run without real hosts has no controls."""
    summary = {"title": "A session", "id": "a"}
    page = live_page("b/a 1", summary | {"attached": {}})
    assert 'data-session="/api/sessions/b/a%201"' in page
    for path in ("`${at}/keys`", "`${at}/${method}`", 'post("set", { values: { [key]:', 'post("reset", {})'):
        assert path in page
    assert "data-session" not in live_page("a", summary)
