// Standard Webhooks' library in a receiver. The requests come on the standard input, each with the secrets that must verify it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Webhook, WebhookVerificationError } from "standardwebhooks";

const requests = JSON.parse(readFileSync(0, "utf8"));

test("there are requests", () => assert.ok(requests.length > 0));

for (const { secrets, headers, body } of requests) {
  const type = JSON.parse(body).type;
  test(`${type} verifies with ${secrets.length} secrets`, () => {
    for (const secret of secrets) {
      assert.deepEqual(new Webhook(secret).verify(body, headers), JSON.parse(body));
    }
  });
  test(`${type} verifies with no change`, () => {
    const receiver = new Webhook(secrets[0]);
    const refuses = (body, headers) => assert.throws(() => receiver.verify(body, headers), WebhookVerificationError);
    refuses(body.replace(type, "session.ended"), headers);
    refuses(body, { ...headers, "webhook-id": "another" });
    refuses(body, { ...headers, "webhook-timestamp": String(Number(headers["webhook-timestamp"]) + 1) });
    assert.throws(() => new Webhook("whsec_" + btoa("another")).verify(body, headers), WebhookVerificationError);
  });
}
