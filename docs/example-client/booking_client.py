#!/usr/bin/env python3
"""A booking system's side of Guidepost: sends guides, tasks and orders, reads redemptions, receives web hooks.

Python 3.9 and newer, nothing but its standard library. README.md beside this file says how to run it.
"""

import argparse
import hashlib
import hmac
import http.server
import json
import os
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

# What is worth trying again: too many requests, and a database that is away or may have taken the change. Every call
# here may be repeated: the same content changes nothing.
AGAIN = {1429, 1503}
TRIES = 6

# A web hook that was signed longer ago (ms) is somebody's copy of an old one. The clocks of both sides must be right.
TOLERANCE = 5 * 60 * 1000


class Refused(Exception):
    """The server said no: `code` is one of the documented numbers, `data` what goes with it."""

    def __init__(self, code, message, data):
        super().__init__(f"{code} {message}")
        self.code = code
        self.data = data or {}


class Guidepost:
    """The machine interface of a server."""

    def __init__(self, url, key):
        self.url = url.rstrip("/")
        self.key = key

    def call(self, method, path, body=None):
        """Sends a request, again where that may help, and returns the answer's `data`."""
        for attempt in range(TRIES):
            last = attempt == TRIES - 1
            try:
                return self.call_once(method, path, body)
            except Refused as refused:
                if refused.code not in AGAIN or last:
                    raise
                wait = refused.data.get("retryAfter", 2**attempt)
            except (urllib.error.URLError, TimeoutError, ConnectionError):
                # No answer: it is not known whether it was done.
                if last:
                    raise
                wait = 2**attempt
            time.sleep(min(wait, 60))

    def call_once(self, method, path, body):
        request = urllib.request.Request(self.url + path, method=method)
        request.add_header("X-Api-Key", self.key)
        request.add_header("Accept-Language", "en")
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            request.add_header("Content-Type", "application/json")
        try:
            with urllib.request.urlopen(request, data, timeout=20) as response:
                answer = json.load(response)
        except urllib.error.HTTPError as error:
            # An error has the same envelope.
            answer = json.load(error)
        if answer["code"] != 0:
            raise Refused(answer["code"], answer["msg"], answer["data"])
        return answer["data"]

    def put_guide(self, guide):
        return self.call("POST", "/open-api/guides", guide)

    def put_task(self, task_no, task):
        return self.call("PUT", "/open-api/tasks/" + urllib.parse.quote(task_no, safe=""), task)

    def put_order(self, order_no, order):
        return self.call("PUT", "/open-api/orders/" + urllib.parse.quote(order_no, safe=""), order)

    def redemptions(self, after):
        """The rows of the audit after a cursor, oldest first, and the next cursor."""
        query = {"limit": 100}
        if after is not None:
            query["after"] = after
        page = self.call("GET", "/open-api/redemptions?" + urllib.parse.urlencode(query))
        return page["items"], page["next"]


def push(guidepost, file):
    """Sends what a file has; guides come before the tasks that name them, tasks before their orders."""
    with open(file, encoding="utf-8") as source:
        bookings = json.load(source)
    for guide in bookings.get("guides", []):
        guidepost.put_guide(guide)
    for task_no, task in bookings.get("tasks", {}).items():
        guidepost.put_task(task_no, task)
    refused = 0
    for order_no, order in bookings.get("orders", {}).items():
        try:
            stands = guidepost.put_order(order_no, order)
            print(f"{stands['orderNo']}: {stands['status']}")
        except Refused as error:
            if error.code == 1409:
                # It went another way meanwhile. Redeemed: the visit has taken place, and our side has to follow.
                print(f"{order_no}: stays {error.data['status']}")
            else:
                refused += 1
                print(f"{order_no}: {error}", file=sys.stderr)
    return refused == 0


def read_cursor(file):
    try:
        with open(file, encoding="utf-8") as source:
            text = source.read()
    except FileNotFoundError:
        return None
    # Somebody made the file, and nothing was written to it yet.
    if not text.strip():
        return None
    try:
        return json.loads(text)["after"]
    except (ValueError, KeyError, TypeError):
        sys.exit(f"{file} holds no cursor: correct it, or delete it to read from the beginning")


def write_cursor(file, after):
    """In one step: after a power cut there is the old cursor or the new one, never half of it."""
    folder = os.path.dirname(os.path.abspath(file))
    with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as target:
        json.dump({"after": after}, target)
        target.flush()
        os.fsync(target.fileno())
    os.replace(target.name, file)


def follow(guidepost, state, once):
    """Handles every row of the audit, then writes the cursor down.

    After a power cut between the two a row comes again, so handling one must be safe to do twice: go by its `id`.
    """
    after = read_cursor(state)
    while True:
        rows, following = guidepost.redemptions(after)
        for row in rows:
            handle(row)
        if rows:
            after = following
            write_cursor(state, after)
        elif once:
            return
        else:
            # Rows show once they are ten seconds old; asking more often finds nothing sooner.
            time.sleep(10)


def handle(row):
    """Here a booking system would change its own order."""
    if row["result"] != 0:
        return
    print(f"{row['id']} {row.get('orderNo')}: {row.get('statusBefore')} -> {row.get('statusAfter')}", flush=True)


def is_signed(secret, timestamp, signature, body, now):
    """Whether a web hook comes from the server and was made just now: `v1=` and HMAC-SHA-256 of time stamp, dot, body."""
    if not (timestamp or "").isdecimal() or abs(now - int(timestamp)) > TOLERANCE:
        return False
    signed = timestamp.encode() + b"." + body
    right = "v1=" + hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    # In constant time: how long it takes says nothing of how much was right.
    return hmac.compare_digest(right.encode(), (signature or "").encode("utf-8", "replace"))


def listen(secret, port):
    """Receives web hooks. Each comes at least once; the same one again is answered and not handled."""
    handled = set()  # A booking system keeps these in its database.

    class Receiver(http.server.BaseHTTPRequestHandler):
        timeout = 10

        def do_POST(self):
            length = self.headers.get("Content-Length", "")
            if not length.isdecimal() or int(length) > 65536:
                return self.answer(413)
            # The bytes as they came: what a JSON library makes of them has another signature.
            body = self.rfile.read(int(length))
            stamp, signature = self.headers.get("X-Guidepost-Timestamp"), self.headers.get("X-Guidepost-Signature")
            if not is_signed(secret, stamp, signature, body, time.time_ns() // 1_000_000):
                return self.answer(401)
            event = json.loads(body)
            if event["id"] not in handled:
                print(f"{event['event']} {event['orderNo']}", flush=True)
                handled.add(event["id"])
            # Only now: without an answer it is sent again.
            self.answer(204)

        def answer(self, status):
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", port), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


def setting(name):
    value = os.environ.get(name)
    if not value:
        sys.exit(f"set {name}: README.md says what it is")
    return value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    sends = commands.add_parser("push", help="send guides, tasks and orders")
    sends.add_argument("file", help="what to send (JSON)")
    follows = commands.add_parser("follow", help="read redemptions, from where the last run ended")
    follows.add_argument("--state", required=True, help="the file that keeps the cursor")
    follows.add_argument("--once", action="store_true", help="end when everything has been read")
    listens = commands.add_parser("listen", help="receive web hooks")
    listens.add_argument("--port", type=int, required=True, help="0 takes any free one")
    arguments = parser.parse_args()
    if arguments.command == "listen":
        return listen(setting("GUIDEPOST_HOOK_SECRET"), arguments.port)
    guidepost = Guidepost(setting("GUIDEPOST_URL"), setting("GUIDEPOST_API_KEY"))
    try:
        if arguments.command == "follow":
            return follow(guidepost, arguments.state, arguments.once)
        return None if push(guidepost, arguments.file) else 1
    except (Refused, urllib.error.URLError) as error:
        sys.exit(f"{error}")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
