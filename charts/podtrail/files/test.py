import json
import os
import time
import urllib.error
import urllib.request

with open("/etc/podtrail-gateway/token", encoding="utf-8") as file:
    token = file.readline().strip()
now = str(time.time_ns())
span = {"traceId": os.urandom(16).hex(), "spanId": os.urandom(8).hex(), "name": "helm test"}
span |= {"startTimeUnixNano": now, "endTimeUnixNano": now}
body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()


def answer(shown):
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {shown}"}
    request = urllib.request.Request(os.environ["GATEWAY"], body, headers)
    end = time.monotonic() + 120
    while True:
        try:
            return urllib.request.urlopen(request, timeout=10).status
        except urllib.error.HTTPError as refusal:
            return refusal.code
        except OSError as error:  # the Service does not lead to the gateway yet
            if time.monotonic() > end:
                return error
            time.sleep(1)


taken, refused = answer(token), answer("another")
print(f"with the token: {taken}, with another one: {refused}")
raise SystemExit(0 if (taken, refused) == (200, 401) else 1)
