// What a refusal looks like on each face.

import assert from "node:assert/strict";

/** Asserts one answer in the v4 envelope with this status and code; gives its message. */
export function refused({ answers, text }, status, code) {
  assert.equal(answers.length, 1, `got ${answers.length} answers:\n${text.slice(0, 2000)}`);
  const [answer] = answers;
  assert.equal(answer.status, status, text.slice(0, 2000));
  assert.match(answer.headers.get("content-type") ?? "", /^application\/json/);
  assert.equal(answer.json?.success, false, text.slice(0, 2000));
  assert.ok(Array.isArray(answer.json.messages), "messages");
  assert.ok(answer.json.result === null || (Array.isArray(answer.json.result) && answer.json.result.length === 0), "an empty result");
  const [error] = answer.json.errors;
  assert.equal(error.code, code, text.slice(0, 2000));
  assert.ok(error.message.length > 0 && error.message.length < 1000, `a message of ${error.message.length} characters`);
  return error.message;
}

/** The same for the face of the bindings: status and `{success: false, error}`; gives its text. */
export function refusedByBinding({ answers, text }, status) {
  assert.equal(answers.length, 1, `got ${answers.length} answers:\n${text.slice(0, 2000)}`);
  const [answer] = answers;
  assert.equal(answer.status, status, text.slice(0, 2000));
  assert.equal(answer.headers.get("content-type"), "application/json");
  const body = Array.isArray(answer.json) ? answer.json[0] : answer.json;
  assert.equal(body?.success, false, text.slice(0, 2000));
  assert.equal(typeof body.error, "string");
  return body.error;
}

/** Asserts that the request was refused below HTTP: one answer with one of these statuses, or none, and then a close. */
export function broken({ answers, closed, text }, ...statuses) {
  assert.ok(answers.length <= 1, `got ${answers.length} answers:\n${text.slice(0, 2000)}`);
  for (const { status } of answers) assert.ok(statuses.includes(status), `got ${text.slice(0, 300)}`);
  assert.ok(closed, "the connection stays open");
}
